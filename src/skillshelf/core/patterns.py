"""Regular expressions that are compiled when they are first used.

A module has many of them, a command uses few, and compiling one takes as long as importing a small module.
"""

import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import AnyStr

__all__ = ["lazy_pattern"]

_METHODS = ("finditer", "findall", "fullmatch", "match", "search", "split", "sub", "subn")


class _LazyPattern:
    """Has the attributes of the pattern that it compiles at their first use."""

    __slots__ = ("_source", *_METHODS)

    def __init__(self, source: "tuple[str | bytes, int]") -> None:
        self._source = source

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(*self._source)  # type: ignore[type-var]
        # Found without this function from now on.
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(source: "AnyStr", flags: int = 0) -> "re.Pattern[AnyStr]":
    """Return a pattern that is compiled at its first use; it is not an instance of `re.Pattern`."""
    return _LazyPattern((source, flags))  # type: ignore[return-value]
