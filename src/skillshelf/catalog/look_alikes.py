"""Find names that look the same and are not, by Unicode's skeletons (UTS #39).

A name has two skeletons: of the text as it is written, and of the folded one. Both are compared without case, since
`Vote` in Cyrillic capitals looks like the Latin word only as it is written.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache

from skillshelf.core.text import folded_name, visible
from skillshelf.core.values import CatalogSkill, Diagnostic

__all__ = ["find_look_alikes", "looks_like_others", "skeleton"]

_ASCII = {"0": "O", "1": "l", "I": "l", "|": "l", "m": "rn"}
"""The characters of ASCII that look like others."""

_ASCII_TABLE = str.maketrans(_ASCII)


def skeleton(text: str) -> str:
    """Return the skeleton of a text: texts that look the same have the same one. It is not made to be shown."""
    if text.isascii():
        return text.translate(_ASCII_TABLE)
    from unicodedata import normalize

    return normalize("NFD", normalize("NFD", text).translate(_table()))


@cache
def _table() -> dict[int, str]:
    # Imported here: nearly all names are ASCII.
    from skillshelf.catalog.confusables import TABLE

    rows = (line.split("\t") for line in TABLE.split("\n") if line)
    table = {ord(c): looks_like for looks_like, characters in rows for c in characters}
    return table | _ASCII_TABLE


def find_look_alikes(skills: Sequence[CatalogSkill]) -> Iterator[Diagnostic]:
    """Yield a warning for each skill whose name looks like that of another, which comes first: a trusted one."""
    ordered = sorted(skills, key=lambda skill: (not skill.trusted, not skill.name.isascii(), skill.root))
    found: dict[str, CatalogSkill] = {}
    for form in _FORMS:
        first: dict[str, CatalogSkill] = {}
        for skill in ordered:
            other = first.setdefault(form(skill.name), skill)
            if other is not skill and folded_name(other.name) != folded_name(skill.name):
                found.setdefault(skill.path, other)
    for path, other in found.items():
        name = next(skill.name for skill in ordered if skill.path == path)
        message = f"{visible(name)!r} looks like {visible(other.name)!r}, the name of {visible(other.path)}"
        yield Diagnostic(path, "name-confusable", message)


def looks_like_others(names: Collection[str], others: Iterable[str]) -> bool:
    """Return whether one of these names looks like another one, of them or of the others, and is not the same."""
    others = (*others, *names)
    for form in _FORMS:
        forms: dict[str, set[str]] = {form(name): set() for name in names}
        for name in others:
            if (looks := form(name)) in forms:
                forms[looks].add(folded_name(name))
        if any(len(found) > 1 for found in forms.values()):
            return True
    return False


def _as_written(name: str) -> str:
    if name.isascii():
        return skeleton(name).casefold()
    from unicodedata import normalize

    return skeleton(normalize("NFKC", name)).casefold()


_FORMS: tuple[Callable[[str], str], ...] = (_as_written, lambda name: skeleton(folded_name(name)).casefold())
