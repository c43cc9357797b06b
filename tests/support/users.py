"""Tests as somebody who may not do everything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Take the rights of nobody in particular while they matter: root may read everything."""
    if os.geteuid() != 0:
        yield
        return
    group = os.getegid()
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
