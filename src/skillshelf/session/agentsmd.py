"""A working directory to the AGENTS.md files above it: standing context, kept apart from skills."""

import os
from typing import NamedTuple

from skillshelf.core import files
from skillshelf.core.limits import RESOURCE_BYTES

__all__ = ["ContextFile", "agents_context", "find_agents_md"]

STEPS = 20
FILE_NAME = "AGENTS.md"


class ContextFile(NamedTuple):
    """One AGENTS.md, and how far above the working directory it lies."""

    path: str
    depth: int
    text: str


def find_agents_md(cwd: str) -> list[ContextFile]:
    """The files from here upward, nearest first, at most 20 steps; hidden folders are passed over."""
    found = []
    folder = os.path.abspath(cwd)
    for depth in range(STEPS + 1):
        if not os.path.basename(folder).startswith(".") and (text := _text(folder)) is not None:
            found.append(ContextFile(os.path.join(folder, FILE_NAME), depth, text))
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return found


def agents_context(cwd: str) -> str:
    """All of them as one text, the farthest first, so that what is nearer has the last word."""
    return "\n\n".join(file.text.strip() for file in reversed(find_agents_md(cwd)))


def _text(folder: str) -> str | None:
    path = os.path.join(folder, FILE_NAME)
    # A link to another file of the same folder is common; one that leads out of it is not followed.
    if files.is_inside(files.real_path(path), files.real_path(folder)):
        path = files.real_path(path)
    try:
        data = files.read_file(path, limit=RESOURCE_BYTES, links="never")
    except OSError:
        return None
    return None if data is None else data.decode("utf-8", "replace")
