"""`allowed-tools` of a skill to patterns, and a tool call to whether they cover it.

A pattern is `Tool`, `Tool(argument)` or `Tool(prefix:*)`. A prefix covers itself and itself followed by a blank
and plain words; a command that could start a second one is covered by no prefix.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Pattern", "common", "covered", "parse_patterns"]

_ENTRY = re.compile(r"(?:\([^()]*\)|[^\s,])+")
_PATTERN = re.compile(r"([A-Za-z_][\w.-]*)(?:\(([^()]*)\))?")
# Whatever lets a shell do more than start one program with the words that stand there.
_SHELL = re.compile(r"[;&|<>$`\\(){}!\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_COMMAND_KEYS = ("command", "cmd", "file_path", "path", "url", "uri", "query", "pattern")


class Pattern(NamedTuple):
    """One entry of `allowed-tools`; without argument and prefix it is the whole tool."""

    tool: str
    argument: str | None = None
    prefix: str | None = None

    def __str__(self) -> str:
        inner = self.argument if self.prefix is None else f"{self.prefix}:*"
        return self.tool if inner is None else f"{self.tool}({inner})"

    def covers_text(self, text: str | None) -> bool:
        """Whether a call of the tool with that argument is meant; None is a call whose argument is not known."""
        if self.prefix is not None:
            return text is not None and _begins(text, self.prefix) and not _SHELL.search(text)
        return self.argument is None or self.argument == text

    def covers(self, other: "Pattern") -> bool:
        """Whether everything the other pattern means is meant by this one."""
        if self.tool != other.tool:
            return False
        if other.prefix is None:
            return self.covers_text(other.argument)
        return (self.argument, self.prefix) == (None, None) or (
            self.prefix is not None and _begins(other.prefix, self.prefix) and not _SHELL.search(other.prefix)
        )


def _begins(text: str, prefix: str) -> bool:
    return text == prefix or text.startswith((prefix + " ", prefix + "\t"))


def parse_patterns(value: Any) -> tuple[tuple[Pattern, ...], tuple[str, ...]] | None:
    """The patterns of a frontmatter's `allowed-tools`, and what is none; None where the field says nothing."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    entries = [str(item) for item in value] if isinstance(value, list) else [str(value)]
    words = [word for entry in entries for word in _ENTRY.findall(entry)]
    found = [(word, _parse(word)) for word in dict.fromkeys(words)]
    strange = tuple(word for word, pattern in found if pattern is None)
    return tuple(pattern for _, pattern in found if pattern is not None), strange


def _parse(word: str) -> Pattern | None:
    """The pattern a word is; a star anywhere but in `prefix:*` or `(*)` means nothing we know."""
    match = _PATTERN.fullmatch(word)
    if match is None:
        return None
    tool, inner = match.groups()
    if inner is None or inner == "*":
        return Pattern(tool)
    if inner.endswith(":*"):
        prefix = inner[:-2].strip()
        return Pattern(tool, prefix=prefix) if prefix and "*" not in prefix else None
    return Pattern(tool, argument=inner) if inner and "*" not in inner else None


def covered(patterns: Iterable[Pattern], tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether one of the patterns means this call."""
    text = _text_of(arguments)
    return any(pattern.tool == tool and pattern.covers_text(text) for pattern in patterns)


def _text_of(arguments: Mapping[str, Any]) -> str | None:
    """The one argument that a pattern speaks of; None if there is none, or if it is not clear which."""
    texts = [arguments[key] for key in _COMMAND_KEYS if key in arguments]
    if not texts and len(arguments) == 1:
        texts = list(arguments.values())
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else None


def common(lists: Sequence[Sequence[Pattern]]) -> tuple[Pattern, ...]:
    """What all of the lists allow: of two patterns of which one covers the other, the narrower."""
    kept = list(lists[0]) if lists else []
    for patterns in lists[1:]:
        pairs = [(one, other) for one in kept for other in patterns]
        kept = [one if other.covers(one) else other for one, other in pairs if other.covers(one) or one.covers(other)]
    return tuple(dict.fromkeys(kept))
