"""The number of examples that a property is tried on."""

from __future__ import annotations

import os

__all__ = ["examples"]


def examples(usual: int) -> int:
    """So many; ten times as many with SKILLSHELF_EXAMPLES=10."""
    return max(1, round(usual * float(os.environ.get("SKILLSHELF_EXAMPLES", "1"))))
