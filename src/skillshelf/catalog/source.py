"""Define the protocol of a source of skills: list what it offers, fetch files, and say what exactly that was."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from skillshelf.core.limits import SOURCE_ENTRIES, SOURCE_SECONDS, TREE_BYTES, TREE_FILES
from skillshelf.core.records import NamedTuple

__all__ = [
    "NOWHERE",
    "PUBLISHED_SCHEME",
    "SOURCE_SCHEME",
    "ExecutableFile",
    "InstallableSource",
    "Source",
    "SourceEntry",
    "SourceIdentity",
    "SourceLimits",
    "is_remote",
    "source_address",
    "tree_named_in",
]

SOURCE_SCHEME = "source://"
"""The beginning of the path of a skill that a live source offers: `source://LABEL/NAME/SKILL.md`."""

PUBLISHED_SCHEME = "published://"
"""The beginning of the path of a skill that was published to a team server: `published://NAME/SKILL.md`."""

NOWHERE = "/dev/null/"
"""The beginning of the real path of such a skill: nothing can lie below a file, so no disk answers for a source."""


def is_remote(path: str) -> bool:
    """Return whether a path, or a real path, is that of a skill of a live source."""
    return path.startswith((SOURCE_SCHEME, NOWHERE))


def source_address(label: str) -> str:
    """Return the address of a live source, below which its skills have theirs."""
    # Imported here: it takes as long as starting Python.
    from urllib.parse import quote

    return f"{SOURCE_SCHEME}{quote(label, safe=':@')}"


def tree_named_in(real_dir: str) -> str | None:
    """Return the tree that the real folder of a remote skill is named after; None if its source says none."""
    tree = real_dir.rpartition("/")[2]
    return tree if tree.startswith("sha256:") else None


class ExecutableFile(bytes):
    """The bytes of a file that its owner may execute; plain `bytes` are those of a file that nobody may."""


class SourceEntry(NamedTuple):
    """A skill that a source offers; `tree` is the digest of all its files where the source says it.

    `path` is the folder of the skill inside the source, empty at its root. `manifest` is the text whose SHA-256 the
    tree is (`catalog.tree.manifest_of`): with it each file can be checked, and so be fetched, by itself.
    """

    name: str
    description: str
    frontmatter: Mapping[str, Any]
    tree: str | None = None
    path: str = ""
    manifest: str | None = None


class SourceLimits(NamedTuple):
    """The limits that a source keeps to: files and bytes of a skill, entries of a list, and seconds of a request."""

    files: int = TREE_FILES
    bytes: int = TREE_BYTES
    entries: int = SOURCE_ENTRIES
    seconds: float = SOURCE_SECONDS


class Source(Protocol):
    """A place with skills. What it returns is untrusted: names, sizes and digests are checked by the caller."""

    label: str

    def list(self) -> Iterable[SourceEntry]:
        """Return the skills that the source offers now."""

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of a skill by their paths in it, all of them if `paths` is empty.

        A file that may be executed is an `ExecutableFile`.
        """


class SourceIdentity(NamedTuple):
    """The exact version of a fetched skill, as a lock records it; `publisher` is who offers it, for people."""

    source: str
    path: str
    ref: str | None
    commit: str | None
    artifact: str | None
    publisher: str


class InstallableSource(Source, Protocol):
    """A source that can be installed from: it names the exact version that `list` and `fetch` answered from.

    `notes` are remarks for the user, such as parts of a plugin that are left out; they are complete after `fetch`.
    """

    notes: Sequence[str]

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return what a fetched skill is recorded as."""
