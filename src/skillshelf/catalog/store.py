"""Keep whole skills in the user's data folder under the digests of their files, read-only, and read them checked."""

import os
from collections.abc import Iterator, Mapping

from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.tree import TREE_DEPTH, TreeFile, manifest_of, name_problem, tree_digest
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.disk_writes import remove_stored, store_folder
from skillshelf.core.environment import Environment, user_data_folder
from skillshelf.core.limits import TREE_BYTES, TREE_FILES
from skillshelf.errors import ConfigurationError, SkillChanged, SkillError, SourceRefused

__all__ = ["STORE_VERSION", "Store", "listed_files", "store_of"]

STORE_VERSION = 1
_MANIFEST = ".manifest"


def listed_files(contents: Mapping[str, bytes]) -> dict[str, TreeFile]:
    """Return what a tree records about these files; raise SourceRefused if no skill may have them."""
    if (path := name_problem(contents)) is not None:
        raise SourceRefused("name", f"it holds a path that not every machine can have: {path!r}")
    if len(contents) > TREE_FILES:
        raise SourceRefused("too-many-files", f"it holds {len(contents)} files; at most {TREE_FILES} (TREE_FILES)")
    if (size := sum(map(len, contents.values()))) > TREE_BYTES:
        raise SourceRefused("too-large", f"it holds {size} bytes; at most {TREE_BYTES} (TREE_BYTES)")
    return {
        path: TreeFile(len(data), sha256(data).hexdigest(), isinstance(data, ExecutableFile))
        for path, data in contents.items()
    }


def store_of(environment: Environment) -> "Store":
    """Return the store of the user, whether or not it exists; raise ConfigurationError without a home folder."""
    folder = user_data_folder(environment)
    if folder is None:
        raise ConfigurationError("there is no home folder to keep skills in; name one with --home")
    return Store(f"{folder}/store/{STORE_VERSION}")


class Store:
    """Skills by the digests of their files, below one folder.

    A skill that is there is whole: it is written elsewhere, flushed to the disk and moved to its place by one rename.
    What is read is checked against the digest again.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def path_of(self, tree: str) -> str:
        """Return the folder of a tree, whether or not it is there."""
        value = tree.removeprefix("sha256:")
        if len(value) != 64 or not set(value) <= set("0123456789abcdef"):
            raise ValueError(f"not a digest of a tree: {tree!r}")
        return f"{self.folder}/{value[:2]}/{value[2:]}"

    def tree_at(self, path: str) -> str | None:
        """Return the digest that the store keeps a real folder under; None for any other folder."""
        if not files.is_inside(path, self.folder):
            return None
        above, name = os.path.split(path)
        start = os.path.basename(above)
        is_tree = os.path.dirname(above) == self.folder and len(start) == 2 and len(name) == 62
        return f"sha256:{start}{name}" if is_tree else None

    def has(self, tree: str) -> bool:
        """Return whether a tree is there; whether it is intact is another question."""
        return files.kind_at(self.path_of(tree)) == "folder"

    def is_intact(self, tree: str) -> bool:
        """Return whether a tree is there with exactly its files."""
        try:
            self.read(tree)
        except SkillError:
            return False
        return True

    def put(self, contents: Mapping[str, bytes]) -> str:
        """Store these files and return the digest of their tree; a damaged tree of that digest is replaced."""
        listed = listed_files(contents)
        tree = tree_digest(listed)
        if not self.is_intact(tree):
            executables = {path for path, file in listed.items() if file.executable}
            manifest = manifest_of(listed).encode("utf-8")
            store_folder(self.path_of(tree), contents, executables, beside=(_MANIFEST, manifest))
        return tree

    def read(self, tree: str) -> dict[str, bytes]:
        """Return the files of a tree; raise SkillChanged if they are not exactly those of its digest."""
        path = self.path_of(tree)
        try:
            with files.Folder(path) as folder:
                found = folder.contents(most=TREE_FILES, limit=TREE_BYTES, depth=TREE_DEPTH)
        except OSError as error:
            raise SkillChanged(path, (error.strerror or str(error),)) from None
        contents = {path: ExecutableFile(one.data) if one.runnable else one.data for path, one in found.files.items()}
        if found.others or not found.complete or tree_digest(listed_files(contents)) != tree:
            raise SkillChanged(path, tuple(sorted({*contents, *found.others})))
        return contents

    def trees(self) -> Iterator[str]:
        """Return the digest of every tree that is there."""
        for start in _folders_in(self.folder):
            for name in _folders_in(f"{self.folder}/{start}"):
                if len(start) == 2 and len(name) == 62 and set(start + name) <= set("0123456789abcdef"):
                    yield f"sha256:{start}{name}"

    def remove(self, tree: str) -> None:
        """Remove a tree; nobody may need it any more."""
        remove_stored(self.path_of(tree), beside=_MANIFEST)


def _folders_in(path: str) -> list[str]:
    try:
        with files.Folder(path) as folder:
            return sorted(name[:-1] for name in folder.children(()) if name.endswith("/"))
    except OSError:
        return []
