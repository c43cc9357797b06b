"""Read and write the JSON files of the user's state folder.

Each has a version. A file of an older version is migrated forward once, under a lock, and the old file stays beside it.
One that is newer, damaged or not the user's own is refused, and never written over.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from skillshelf.core import files
from skillshelf.core.disk_writes import locked_within, make_own_folder, replace_file, write_new
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError, SkillError

__all__ = ["StateFile", "UnusableState", "unique_members"]

_LOCK_SECONDS = 10.0

Document = dict[str, Any]
"""The content of a file: an object with a member `version`."""


class UnusableState(ConfigurationError):
    """A file of the state folder cannot be used: nothing in it counts, and it is never written over."""


class StateFile(NamedTuple):
    """A JSON file: its version, its largest size, and for messages what it is and what to do when it is full.

    `migrations` are the steps forward, by the version that each one starts from.
    """

    path: str
    version: int
    limit: int
    what: str
    when_full: str
    migrations: Mapping[int, Callable[[Document], Document]] = {}

    def read(self) -> Document | None:
        """Return the content, or None if there is no file; raise UnusableState. An older file is migrated."""
        found = self._read()
        if found is None or found["version"] == self.version:
            return found
        # Where nothing can be written, or another process holds the lock, the migrated content still counts.
        with suppress(OSError), locked_within(f"{self.path}.lock", 0.0) as held:
            if held:
                return self._migrated_on_disk()
        return self._migrated(found)

    def change(self, change: Callable[[Document], Document]) -> None:
        """Change the content under the lock; `change` gets one without any member if there is no file.

        Raise SkillError if the file cannot be written or would become too large.
        """
        try:
            make_own_folder(self.path.rpartition("/")[0])
            with self._locked():
                before = self._migrated_on_disk() or {}
                after = change(before)
                if after != before:
                    self._write(after, before)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise SkillError(f"{self.path} cannot be written: {reason}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked_within(f"{self.path}.lock", _LOCK_SECONDS) as held:
            if not held:
                raise SkillError(f"{self.path} cannot be written: another program holds its lock")
            yield

    def _write(self, document: Document, before: Document) -> None:
        data = self._encoded(document)
        # A file that is too large already may still become smaller.
        if len(data) > self.limit and len(data) > len(self._encoded(before)):
            raise SkillError(f"{self.path} is full; {self.when_full}")
        replace_file(self.path, data, mode=0o600)

    def _migrated_on_disk(self) -> Document | None:
        """Return the content, with the lock held; an older file is replaced, and a copy stays beside it."""
        found = self._read()
        if found is None or found["version"] == self.version:
            return found
        old = files.read_file(self.path, limit=self.limit, links="never") or b""
        # One that is there is from a migration that did not come to its end.
        with suppress(FileExistsError):
            write_new(f"{self.path}.v{found['version']}", old)
        after = self._migrated(found)
        replace_file(self.path, self._encoded(after), mode=0o600)
        return after

    def _migrated(self, document: Document) -> Document:
        while document["version"] < self.version:
            number = document["version"]
            try:
                document = {**self.migrations[number](document), "version": number + 1}
            except (KeyError, TypeError, ValueError, AttributeError):
                raise self.damaged() from None
        return document

    def _read(self) -> Document | None:
        """Return the content as it is on the disk."""
        if files.kind_at(self.path) is None:
            return None
        if not files.is_own_file(self.path):
            raise UnusableState(f"{self.path}: not a file of yours that only you can write; nothing in it counts")
        try:
            data = files.read_file(self.path, limit=self.limit, links="never")
        except OSError as error:
            raise UnusableState(f"{self.path}: cannot be read: {error.strerror}") from None
        if data is None:
            raise UnusableState(f"{self.path}: has more than {self.limit} bytes")
        try:
            document = json.loads(data, object_pairs_hook=unique_members)
        except (ValueError, RecursionError):
            raise self.damaged() from None
        version = document.get("version") if isinstance(document, dict) else None
        if not isinstance(version, int) or isinstance(version, bool):
            raise self.damaged()
        if version > self.version:
            newer = f"version {version} is of a newer skillshelf (this one reads {self.version})"
            raise UnusableState(f"{self.path}: {newer}; nothing in it counts")
        if version != self.version and version not in self.migrations:
            raise self.damaged()
        return document  # type: ignore[no-any-return]  # it is an object

    def _encoded(self, document: Document) -> bytes:
        return (json.dumps({"version": self.version, **document}, indent=2) + "\n").encode()

    def damaged(self) -> UnusableState:
        """Return the error for a file that is not what it should be."""
        help_text = "nothing in it counts. Repair it, or move it away to begin a new one"
        return UnusableState(f"{self.path}: not {self.what}; {help_text}")


def unique_members(pairs: list[tuple[str, Any]]) -> Document:
    """Return the members of a JSON object; raise ValueError if one is there twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member is there twice")
    return found
