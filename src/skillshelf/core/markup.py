"""Foreign text to markup: what a skill's author wrote can fill our elements and never open or close one."""

import re

from skillshelf.core.text import fold, visible

__all__ = ["OWN_ELEMENTS", "attribute", "cut", "field", "path_text", "sealed"]

OWN_ELEMENTS = ("skill_content", "skill_context", "active_skill", "preloaded_skills")
"""Elements that hold an author's text byte for byte, but for their own closing tag."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_SPECIAL = re.compile("[&<>\"']")


def field(text: str) -> str:
    """One line of text for an element: folded, all five characters escaped."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], _printable(fold(text)))


def attribute(text: str) -> str:
    """The same for an attribute."""
    return field(text)


def path_text(path: str) -> str:
    """A path that can be opened as it is told: escaped, its blanks as they are, on one line."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], _printable(visible(path)))


def cut(text: str, characters: int) -> str:
    """The text in at most so many characters, with an ellipsis where something is missing."""
    return text if len(text) <= characters else text[: max(0, characters - 1)].rstrip() + "…"


def sealed(body: str, element: str) -> tuple[str, int]:
    """The body with each closing tag of the element around it made harmless, and how many there were."""
    return re.subn(rf"<(?=/\s*{element}\s*>)", r"<\\", body, flags=re.IGNORECASE)


def _printable(text: str) -> str:
    """The text without what XML cannot hold."""
    if text.isascii():
        return text
    return "".join(c for c in text if c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")
