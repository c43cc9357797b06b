"""Define the protocol of a source of skills: list what it offers, fetch files, and say what exactly that was."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from skillshelf.core.limits import SOURCE_ENTRIES, SOURCE_SECONDS, TREE_BYTES, TREE_FILES
from skillshelf.core.records import NamedTuple

__all__ = ["ExecutableFile", "InstallableSource", "Source", "SourceEntry", "SourceIdentity", "SourceLimits"]


class ExecutableFile(bytes):
    """The bytes of a file that its owner may execute; plain `bytes` are those of a file that nobody may."""


class SourceEntry(NamedTuple):
    """A skill that a source offers; `tree` is the digest of all its files where the source says it.

    `path` is the folder of the skill inside the source, empty at its root.
    """

    name: str
    description: str
    frontmatter: Mapping[str, Any]
    tree: str | None = None
    path: str = ""


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
    """What exactly a skill was fetched from, as a lock records it; `publisher` is who offers it, for people."""

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
