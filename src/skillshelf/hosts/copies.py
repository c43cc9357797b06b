"""A skill to the copies that were made of it, and whether each still says the same."""

import os
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.core import files
from skillshelf.core.limits import COPIED_BYTES, LISTED_ENTRIES, SKILL_FILE_BYTES
from skillshelf.hosts.made import copied_from, is_own_copy, noted
from skillshelf.hosts.putting import link_name
from skillshelf.hosts.survey import Sighting, Survey

__all__ = [
    "Contents",
    "Standing",
    "contents_of",
    "copies_of",
    "digest_at",
    "digest_of",
    "source_of",
    "sources",
    "standing_of",
]

Standing = Literal["same", "behind", "edited"]
"""How a copy stands to its skill: `behind` if only the skill changed since, `edited` if the copy did."""


class Contents(NamedTuple):
    """The files of a skill by relative path, and how many links and other things were left out."""

    files: dict[str, bytes]
    left_out: int


class TooMuch(OSError):
    """A skill has more in it than is copied."""

    def __init__(self, what: str) -> None:
        super().__init__(f"more than {what}")


# Which copies -------------------------------------------------------------------------------------


def copies_of(sighting: Sighting, survey: Survey) -> list[Sighting]:
    """The copies that `link` made of a skill."""
    name = link_name(sighting)
    others = [other for other in survey.sightings if other is not sighting and name in (other.folder, link_name(other))]
    return [other for other in others if source_of(other, survey) is sighting]


def source_of(sighting: Sighting, survey: Survey) -> Sighting | None:
    """The skill that a copy of ours was made from; None for any other file, and where that skill is gone."""
    folder = os.path.dirname(sighting.path)
    if not is_own_copy(folder):
        return None
    source = copied_from(folder)
    found = survey.by_path.get(f"{source}/{SKILL_FILE}") if source else None
    if found is not None and found is not sighting:
        return found
    # It may have been moved; notes also did not always say what a copy was made from.
    alike = [other for other in survey.sightings if link_name(other) == sighting.folder and not other.problem]
    others = [other for other in alike if not is_own_copy(os.path.dirname(other.path))]
    same = [other for other in others if source is None or (other.head, other.size) == (sighting.head, sighting.size)]
    return same[0] if len(same) == 1 else None


def sources(found: Sequence[Sighting], survey: Survey) -> list[Sighting]:
    """The skills that are meant by these files: for a copy of ours, what it was made from."""
    meant = {one.real_path: one for one in ((source_of(one, survey) or one) for one in found)}
    own = [one for one in meant.values() if not one.problem and not is_own_copy(os.path.dirname(one.path))]
    return own or list(meant.values())


# What is in them ----------------------------------------------------------------------------------


def standing_of(copy: Sighting, source: Sighting) -> Standing:
    """How a copy stands to the skill it was made from."""
    folder = os.path.dirname(copy.path)
    here, there = digest_at(folder, copy.real_path), digest_at(os.path.dirname(source.path), source.real_path)
    if here is not None and here == there:
        return "same"
    made = (noted(*os.path.split(folder)) or {}).get("digest")
    return "behind" if here == made else "edited"


def contents_of(path: str, skill_file: str) -> Contents:
    """Everything that is copied of a folder and the SKILL.md it leads to; raises an OSError where that is too much."""
    with files.Folder(files.real_path(path)) as folder:
        tree = folder.tree(LISTED_ENTRIES, without=())
        if not tree.complete:
            raise TooMuch(f"{LISTED_ENTRIES:,} files")
        found: dict[str, bytes] = {}
        room = COPIED_BYTES
        for name in tree.files:
            try:
                found[name] = folder.read(name.split("/"), limit=room).data
            except files.TooLarge as error:
                raise TooMuch(f"{COPIED_BYTES:,} bytes") from error
            room -= len(found[name])
    left_out = len(tree.others)
    if SKILL_FILE not in found:
        found[SKILL_FILE] = files.read_file(skill_file, limit=SKILL_FILE_BYTES, links="never") or b""
        left_out -= SKILL_FILE in tree.others
    return Contents(found, left_out)


def digest_of(contents: Contents) -> str:
    """What tells one tree of files from another."""
    whole = sha256()
    for name in sorted(contents.files):
        whole.update(f"{name}\0{sha256(contents.files[name]).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{whole.hexdigest()}"


def digest_at(path: str, skill_file: str) -> str | None:
    """What tells the folder at a path from another; None where it cannot be read."""
    try:
        return digest_of(contents_of(path, skill_file))
    except OSError:
        return None
