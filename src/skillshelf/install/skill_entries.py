"""Find the skills among the files of a source, and refuse names and sizes that no installed skill may have."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from skillshelf.catalog.document import parse
from skillshelf.catalog.source import SourceEntry, SourceLimits
from skillshelf.catalog.tree import GIT, name_problem
from skillshelf.core.limits import ADDRESS_SEGMENTS
from skillshelf.core.text import visible
from skillshelf.errors import SourceNotFound, SourceRefused

__all__ = [
    "SKILL_FILE",
    "check_names",
    "check_sizes",
    "chosen_folders",
    "entry_of",
    "files_below",
    "skill_folders",
    "some_of",
]

SKILL_FILE = "SKILL.md"

_T = TypeVar("_T")
_DRIVE = re.compile(r"[A-Za-z]:")
# Characters that a Mac leaves out of names, so that a name with them can be that of another file.
_LEFT_OUT = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_SHORT_GIT = re.compile(r"git~[0-9]+\Z", re.IGNORECASE)


def check_names(paths: Iterable[str], folders: Iterable[str] = ()) -> None:
    """Raise SourceRefused for the first path that no skill may have, and for two that are one on some machine."""
    given, folders = list(paths), list(folders)
    for path in (*given, *folders):
        if (problem := _problem_of(path)) is not None:
            raise SourceRefused(problem[0], f"it holds {visible(path)!r}: {problem[1]}")
    if len(set(given)) != len(given):
        twice = next(path for path in given if given.count(path) > 1)
        raise SourceRefused("duplicate", f"it holds {visible(twice)!r} twice")
    # A folder of an archive stands for a file in it: a file of its name is its twin.
    if (twin := name_problem([*given, *(f"{folder}/{SKILL_FILE}" for folder in _empty(folders, given))])) is not None:
        raise SourceRefused("twin", f"it holds {visible(twin)!r}, and another entry with nearly the same name")


def _empty(folders: Iterable[str], paths: Sequence[str]) -> list[str]:
    """Return the folders in which there is nothing; the others follow from the paths of files."""
    known = set()
    for path in (*paths, *folders):
        while path := path.rpartition("/")[0]:
            known.add(path)
    return sorted({folder for folder in folders if folder and folder not in known})


def _problem_of(path: str) -> tuple[str, str] | None:
    """Return the rule that a path breaks, and why; None for a path that a skill may have."""
    segments = path.split("/")
    if path.startswith("/") or ".." in segments or _DRIVE.match(path):
        return "path-escape", "the path leads out of the folder"
    if "\\" in path:
        return "backslash", "a backslash separates folders on some machines"
    if any(unicodedata.category(c) == "Cc" for c in path):
        return "control-character", "the name has a control character"
    if any(map(_is_git, segments)):
        return "git-folder", "git would take it for its own folder"
    if len(segments) > ADDRESS_SEGMENTS:
        return "depth", f"the path has more than {ADDRESS_SEGMENTS} segments (ADDRESS_SEGMENTS)"
    if name_problem([path]) is not None:
        return "name", "not every machine can have a file of that name"
    return None


def _is_git(segment: str) -> bool:
    """Return whether some file system takes this name for `.git`."""
    folded = unicodedata.normalize("NFKC", _LEFT_OUT.sub("", segment)).casefold()
    return folded.partition(":")[0].rstrip(". ") == GIT or _SHORT_GIT.match(folded) is not None


def check_sizes(sizes: Mapping[str, int], limits: SourceLimits) -> None:
    """Raise SourceRefused for a skill with more files or bytes than the limits allow."""
    if len(sizes) > limits.files:
        raise SourceRefused("too-many-files", f"the skill has {len(sizes)} files; at most {limits.files}")
    if (size := sum(sizes.values())) > limits.bytes:
        raise SourceRefused("too-large", f"the skill has {size} bytes; at most {limits.bytes}")


def skill_folders(paths: Iterable[str]) -> list[str]:
    """Return the folders with a SKILL.md, sorted; one below another skill belongs to that."""
    found: list[str] = []
    # The order of segments puts a folder directly before everything below it.
    for segments in sorted(path.split("/")[:-1] for path in paths if path.rpartition("/")[2] == SKILL_FILE):
        folder = "/".join(segments)
        if not found or not (found[-1] == "" or f"{folder}/".startswith(f"{found[-1]}/")):
            found.append(folder)
    return found


def chosen_folders(paths: Iterable[str], path: str, limits: SourceLimits, where: str) -> list[str]:
    """Return the folders of the skills at a path of a source, or below it; `where` names the source in errors."""
    start = f"{path}/" if path else ""
    inside = [one[len(start) :] for one in paths if one.startswith(start)]
    found = [f"{start}{folder}".rstrip("/") for folder in skill_folders(inside)]
    if not found:
        place = f" in its folder {visible(path)!r}" if path else ""
        raise SourceNotFound(f"{visible(where)}: no {SKILL_FILE} found{place}")
    if len(found) > limits.entries:
        raise SourceRefused("too-many-skills", f"it offers {len(found)} skills; at most {limits.entries}")
    return found


def files_below(contents: Mapping[str, _T], folder: str) -> dict[str, _T]:
    """Return the files of a folder by their paths in it."""
    start = f"{folder}/" if folder else ""
    return {path[len(start) :]: content for path, content in contents.items() if path.startswith(start)}


def some_of(contents: Mapping[str, _T], paths: Sequence[str]) -> dict[str, _T]:
    """Return the files at these paths, all of them without any; raise SourceNotFound for one that is not there."""
    if missing := [path for path in paths if path not in contents]:
        raise SourceNotFound(f"the skill has no file {visible(missing[0])!r}")
    return {path: contents[path] for path in paths} if paths else dict(contents)


def entry_of(folder: str, data: bytes, otherwise: str) -> SourceEntry:
    """Return the entry of a skill from its SKILL.md; one without a name has that of its folder, else `otherwise`."""
    fields = parse(data, whole=True).fields
    name, description = fields.get("name"), fields.get("description")
    return SourceEntry(
        name if isinstance(name, str) and name else folder.rpartition("/")[2] or otherwise,
        description if isinstance(description, str) else "",
        fields,
        None,
        folder,
    )
