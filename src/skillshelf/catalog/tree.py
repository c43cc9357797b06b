"""Compute the digest of a whole skill, `skill-tree-v1`: every file, its size, its bytes and its executable bit.

The digest is the SHA-256 of a text: the line `skill-tree-v1`, then for every regular file, sorted by the bytes of its
path, `<m> <size> <sha256> <path>` and one newline; `m` is `x` if the owner may execute the file, else `-`. A folder
that holds something a text like this cannot describe on every machine has no digest, and `problem` says why.
"""

import sys
import unicodedata
from collections.abc import Iterable, Mapping
from errno import EBUSY

from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.limits import LISTED_ENTRIES, TREE_BYTES, TREE_FILES
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import TreeProblem
from skillshelf.errors import FileReadError, SkillDirectoryNotFound

__all__ = [
    "GIT",
    "PROBLEMS",
    "TREE_DEPTH",
    "SkillTree",
    "TreeFile",
    "covered_entries",
    "folded_path",
    "is_portable",
    "manifest_of",
    "name_problem",
    "parse_manifest",
    "skill_tree",
    "tree_digest",
    "tree_of",
]

PROBLEMS: Mapping[TreeProblem, str] = {
    "link": "it holds a link",
    "name": "it holds a file name that not every machine can have",
    "too-many-files": f"it holds more than {TREE_FILES} files",
    "too-large": f"it holds more than {TREE_BYTES} bytes",
    "special-file": "it holds a pipe, a socket or a device",
    "git-folder": "its .git is left out",
}
"""Each problem in words. All but `git-folder` mean that there is no digest."""

GIT = ".git"
"""The entry that is left out at the top of a skill that we did not install: a skill that is a clone is common."""

_FIRST_LINE = "skill-tree-v1\n"
_SEGMENT_BYTES = 255
_PATH_BYTES = 1024
TREE_DEPTH = _PATH_BYTES // 2
"""Folders that lie in one another in a tree: a path of more than 1,024 bytes is a problem anyway."""

_DEVICES = frozenset(
    [
        "con",
        "prn",
        "aux",
        "nul",
        "conin$",
        "conout$",
        *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"),
    ]
)
_ATTEMPTS = 3
# Nearly every name: it is the same in every normal form, and nothing but a device or `.git` can be wrong with it.
_PLAIN = lazy_pattern(r"[A-Za-z0-9_.\-]{0,199}[A-Za-z0-9_\-]")


class TreeFile(NamedTuple):
    """One file of a tree: its size, the SHA-256 of its bytes in hex, and whether its owner may execute it."""

    size: int
    sha256: str
    executable: bool


class SkillTree(NamedTuple):
    """The digest of a folder, or None and the problem; the number and the bytes of its files as far as they are known.

    `version` changes with every change of the folder that can be seen. It is the digest where there is one, and else
    good on this machine only; None if not even that can be told. `listed` has every file that the digest covers.
    """

    digest: str | None
    problem: TreeProblem | None
    files: int
    size: int
    version: str | None
    listed: Mapping[str, TreeFile] = {}


def manifest_of(listed: Mapping[str, TreeFile]) -> str:
    """Return the text whose SHA-256 is the digest of these files."""
    lines = [
        f"{'x' if file.executable else '-'} {file.size} {file.sha256} {path}\n"
        for path, file in sorted(listed.items(), key=lambda entry: files.path_bytes(entry[0]))
    ]
    return "".join([_FIRST_LINE, *lines])


def parse_manifest(text: str) -> dict[str, TreeFile] | None:
    """Return the files that a manifest lists; None unless the text is exactly what `manifest_of` writes of them."""
    listed = {}
    for line in text.removeprefix(_FIRST_LINE).split("\n")[:-1]:
        mode, _, rest = line.partition(" ")
        size, _, rest = rest.partition(" ")
        digest, _, path = rest.partition(" ")
        is_number = size.isascii() and size.isdecimal() and len(size) < 16
        if not is_number or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            return None
        listed[path] = TreeFile(int(size), digest, mode == "x")
    try:
        return listed if name_problem(listed) is None and manifest_of(listed) == text else None
    except UnicodeEncodeError:
        return None


def tree_digest(listed: Mapping[str, TreeFile]) -> str:
    """Return the digest of these files; their paths have no problem."""
    return f"sha256:{sha256(manifest_of(listed).encode('utf-8')).hexdigest()}"


def name_problem(paths: Iterable[str]) -> str | None:
    """Return the first path that cannot be part of a tree, or None."""
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        if not is_portable(path):
            return path
        folded = folded_path(path)
        above = folded.split("/")[:-1]
        inner = ["/".join(above[: n + 1]) for n in range(len(above))]
        # A file where another path needs a folder is as bad as two files: one of them is lost somewhere.
        if folded in seen or folded in folders or any(folder in seen for folder in inner):
            return path
        seen[folded] = path
        folders.update(dict.fromkeys(inner, path))
    return None


def folded_path(path: str) -> str:
    """Return the identity of a path: two paths are the same on some machine if this is equal."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFKC", path).casefold()


def is_portable(path: str) -> bool:
    """Return whether a relative path names a file on every system."""
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        return False
    return size <= _PATH_BYTES and all(map(_is_portable_segment, path.split("/")))


def _is_portable_segment(name: str) -> bool:
    if _PLAIN.fullmatch(name):
        return name.lower() != GIT and name.partition(".")[0].lower() not in _DEVICES
    if name in ("", ".", "..") or len(name.encode("utf-8")) > _SEGMENT_BYTES or name[-1] in ". ":
        return False
    if folded_path(name) == GIT or name.partition(".")[0].rstrip(" ").casefold() in _DEVICES:
        return False
    return not any(c == "\\" or unicodedata.category(c) == "Cc" for c in name)


def skill_tree(path: str, *, bounded: bool = True, without_git: bool = True) -> SkillTree:
    """Return the tree of a folder as it is on disk now; `path` is a real path.

    `bounded` gives up at 512 files or 16 MiB, by size before anything is read. `without_git` leaves out a `.git` at
    the top. Raise FileReadError if a file cannot be read or the folder keeps changing: a digest is never that of a
    mixture.
    """
    try:
        with files.Folder(path) as folder:
            for _ in range(_ATTEMPTS):
                if (found := tree_of(folder, bounded=bounded, without_git=without_git)) is not None:
                    return found
    except (FileNotFoundError, NotADirectoryError):
        raise SkillDirectoryNotFound(path) from None
    except OSError as error:
        raise FileReadError(path, error) from error
    raise FileReadError(path, OSError(EBUSY, "it changed while it was read"))


def tree_of(folder: files.Folder, *, bounded: bool = True, without_git: bool = True) -> SkillTree | None:
    """Return the tree of an open folder, or None if it changed while it was read; raise an OSError as reading does."""
    try:
        before, git = _entries(folder, bounded=bounded, without_git=without_git)
        problem = _problem(before, bounded=bounded)
        size = sum(stamp[2] for stamp in before.files.values())
        if problem is not None:
            return SkillTree(None, problem, len(before.files), size, _local_version(before))
        listed = {}
        for name, stamp in before.files.items():
            measured = folder.measure(name.split("/"))
            if measured.before != stamp or measured.after != stamp:
                return None
            listed[name] = TreeFile(stamp[2], measured.sha256, measured.executable)
        if _entries(folder, bounded=bounded, without_git=without_git) != (before, git):
            return None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, files.NotRegular):
        # An entry went away or became something else since it was listed.
        return None
    digest = tree_digest(listed)
    return SkillTree(digest, "git-folder" if git else None, len(listed), size, digest, listed)


def covered_entries(folder: files.Folder) -> files.Tree:
    """Return every entry of an open folder that its digest covers or refuses; raise an OSError as reading does."""
    return folder.tree(LISTED_ENTRIES, without=(), without_at_top=(GIT,), depth=TREE_DEPTH)


def _entries(folder: files.Folder, *, bounded: bool, without_git: bool) -> tuple[files.Tree, bool]:
    """Return all entries but a `.git` at the top, and whether there is one."""
    git = without_git and folder.has(GIT)
    most = LISTED_ENTRIES if bounded else sys.maxsize
    return folder.tree(most, without=(), without_at_top=(GIT,) if git else (), depth=TREE_DEPTH), git


def _problem(tree: files.Tree, *, bounded: bool) -> TreeProblem | None:
    """Return the first problem of a tree: what no tree may hold comes before what is only too much."""
    kinds = set(tree.others.values())
    if "link" in kinds:
        return "link"
    if kinds:
        return "special-file"
    if not tree.complete:
        return "too-many-files" if bounded else "name"
    if bounded and len(tree.files) > TREE_FILES:
        return "too-many-files"
    if bounded and sum(stamp[2] for stamp in tree.files.values()) > TREE_BYTES:
        return "too-large"
    return "name" if name_problem(tree.files) is not None else None


def _local_version(tree: files.Tree) -> str | None:
    """Return a text that changes with every change of an entry; no change leaves all stamps as they were."""
    if not tree.complete:
        return None
    entries = {**tree.files, **tree.other_stamps}
    text = "\0".join(f"{path}\0{entries[path]}" for path in sorted(entries))
    return f"local:{sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}"
