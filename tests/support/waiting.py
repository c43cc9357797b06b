"""Wait for what another thread or process does, for a bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_for"]

_T = TypeVar("_T")


def wait_for(look: Callable[[], _T | None], seconds: float = 60.0) -> _T:
    """Return what a function returns once that is true, and neither None nor empty; fail after a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing came within {seconds} seconds")
