"""Read the files of a skill that a copy gets, and tell whether a copy is still as it was made."""

from hashlib import sha256
from typing import Protocol

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.tree import TreeFile, name_problem, tree_digest
from skillshelf.core import files
from skillshelf.core.limits import COPIED_BYTES, LISTED_ENTRIES, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple

__all__ = ["CopyContents", "CopyFile", "RecordedDigests", "contents_at", "files_at", "is_as_made", "read_contents"]


class RecordedDigests(Protocol):
    """The recorded digests of a copy: the tree of its files, or the digest of version 0.1."""

    @property
    def tree(self) -> str | None:
        """The digest of the files as a tree."""

    @property
    def digest(self) -> str | None:
        """The digest of names and contents."""


def is_as_made(contents: "CopyContents", recorded: RecordedDigests) -> bool:
    """Return true if a copy has the contents with which it was made."""
    if recorded.tree is not None:
        return contents.tree == recorded.tree
    # Version 0.1 recorded another digest; so do we for names that no tree may hold.
    return recorded.digest is not None and contents.digest == recorded.digest


class CopyFile(NamedTuple):
    """One file of a copy."""

    data: bytes
    executable: bool


class CopyContents(NamedTuple):
    """The files of a skill by relative path, and the number of links and special files that are not copied."""

    files: dict[str, CopyFile]
    left_out: int

    @property
    def tree(self) -> str | None:
        """The digest of these files as a tree, or None if a name prevents it."""
        if name_problem(self.files) is not None:
            return None
        listed = {
            path: TreeFile(len(file.data), sha256(file.data).hexdigest(), file.executable)
            for path, file in self.files.items()
        }
        return tree_digest(listed)

    @property
    def digest(self) -> str:
        """The digest of names and contents that version 0.1 recorded."""
        whole = sha256()
        for name in sorted(self.files):
            line = f"{name}\0{sha256(self.files[name].data).hexdigest()}\n"
            whole.update(line.encode("utf-8", "surrogateescape"))
        return f"sha256:{whole.hexdigest()}"

    @property
    def recorded(self) -> dict[str, str]:
        """The members of a record by which `is_as_made` knows these contents again."""
        tree = self.tree
        return {"tree": tree} if tree is not None else {"digest": self.digest}

    @property
    def data(self) -> dict[str, bytes]:
        """The bytes of the files."""
        return {path: file.data for path, file in self.files.items()}

    @property
    def executables(self) -> set[str]:
        """The files that their owner may execute."""
        return {path for path, file in self.files.items() if file.executable}


class SkillTooLarge(OSError):
    """A skill has more files or bytes than `link` copies."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"the skill has more than {limit}")


def read_contents(path: str, skill_file: str) -> CopyContents:
    """Read the files of a folder and the SKILL.md it links to; raise an OSError if they exceed the limits."""
    with files.Folder(files.real_path(path)) as folder:
        tree = folder.tree(LISTED_ENTRIES, without=())
        if not tree.complete:
            raise SkillTooLarge(f"{LISTED_ENTRIES:,} files")
        found: dict[str, CopyFile] = {}
        room = COPIED_BYTES
        for name in tree.files:
            try:
                contents = folder.read(name.split("/"), limit=room)
            except files.TooLarge as error:
                raise SkillTooLarge(f"{COPIED_BYTES:,} bytes") from error
            found[name] = CopyFile(contents.data, contents.runnable)
            room -= len(contents.data)
    left_out = len(tree.others)
    if SKILL_FILE not in found:
        data = files.read_file(skill_file, limit=SKILL_FILE_BYTES, links="never") or b""
        found[SKILL_FILE] = CopyFile(data, executable=False)
        left_out -= SKILL_FILE in tree.others
    return CopyContents(found, left_out)


def contents_at(path: str, skill_file: str) -> CopyContents | None:
    """Return the contents of the folder at a path, or None if it cannot be read."""
    try:
        return read_contents(path, skill_file)
    except OSError:
        return None


def files_at(path: str, skill_file: str) -> dict[str, CopyFile] | None:
    """Return the files of the folder at a path, or None if it cannot be read."""
    contents = contents_at(path, skill_file)
    return contents.files if contents is not None else None
