"""Offer skills that a program holds in memory as a source."""

from collections.abc import Mapping, Sequence

from skillshelf.catalog.document import parse
from skillshelf.catalog.load import SKILL_FILE
from skillshelf.catalog.rules import description_of
from skillshelf.catalog.source import SourceEntry, SourceIdentity, SourceLimits
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import manifest_of, tree_digest
from skillshelf.errors import SourceNotFound

__all__ = ["MemorySource"]


class MemorySource:
    """Skills by name, each a mapping from paths to bytes; a script is an `ExecutableFile`.

    It reads `skills` at every call, so a program may change them; `refresh` of a shelf then finds the new version.
    """

    notes: Sequence[str] = ()

    def __init__(self, label: str, skills: Mapping[str, Mapping[str, bytes]]) -> None:
        self.label = label
        self.skills = skills

    def list(self) -> list[SourceEntry]:
        """Return an entry for each skill, with the tree and the manifest of its files."""
        return [_entry(name, files) for name, files in self.skills.items()]

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> dict[str, bytes]:
        """Return files of a skill, all of them if no path is given; raise SourceNotFound for one that is gone."""
        files = self.skills.get(entry.name)
        if files is None:
            raise SourceNotFound(f"{self.label} has no skill {entry.name}")
        if missing := [path for path in paths if path not in files]:
            raise SourceNotFound(f"{entry.name} of {self.label} has no file {missing[0]}")
        return {path: files[path] for path in paths or files}

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return the label as the place that a skill comes from; its version is its tree."""
        return SourceIdentity(self.label, entry.path, None, None, None, self.label)


def _entry(name: str, files: Mapping[str, bytes]) -> SourceEntry:
    fields = parse(files.get(SKILL_FILE, b""), whole=True).fields
    listed = listed_files(files)
    return SourceEntry(name, description_of(fields), fields, tree_digest(listed), manifest=manifest_of(listed))
