"""Read skills from a folder on this machine through open handles, so that no link is ever followed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from skillshelf.catalog.source import ExecutableFile, SourceEntry, SourceIdentity, SourceLimits
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import GIT, tree_digest, tree_of
from skillshelf.core import files
from skillshelf.core.limits import LISTED_ENTRIES, SKILL_FILE_BYTES
from skillshelf.core.text import visible
from skillshelf.errors import SkillError, SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.reference import SourceContext, SourceReference
from skillshelf.install.skill_entries import SKILL_FILE, check_names, check_sizes, chosen_folders, entry_of, some_of

__all__ = ["FolderSource"]

_ATTEMPTS = 3


class FolderSource:
    """Skills in a folder: the folder itself if it has a SKILL.md, else those below it."""

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self.label = reference.canonical
        self.notes: list[str] = []
        self._reference = reference
        self._limits = context.limits

    def list(self) -> Iterable[SourceEntry]:
        """Return the skills in the folder."""
        start = self._reference.path
        with self._opened(start) as folder:
            if (kind := folder.kind(SKILL_FILE)) not in (None, "file", "folder"):
                rule = "link" if kind == "link" else "special-file"
                raise SourceRefused(rule, f"{visible(self.label)}: its {SKILL_FILE} is a {kind}")
            # A skill has no other skills in it, so its folder is not searched.
            paths = (SKILL_FILE,) if kind == "file" else self._paths_in(folder)
            found = chosen_folders(paths, "", self._limits, self.label)
            return [self._entry(folder, start, below) for below in found]

    def _entry(self, folder: files.Folder, start: str, below: str) -> SourceEntry:
        segments = [*filter(None, below.split("/")), SKILL_FILE]
        data = folder.read(segments, limit=SKILL_FILE_BYTES).data
        name = self._reference.location.rstrip("/").rpartition("/")[2]
        return entry_of("/".join(filter(None, (start, below))), data, name)

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of a skill, as they all were at one moment."""
        with self._opened(entry.path) as folder:
            self.notes = ["its .git is left out"] if folder.has(GIT) else []
            for _ in range(_ATTEMPTS):
                if (contents := _read_at_once(folder, limits)) is not None:
                    return some_of(contents, paths)
        raise SourceUnreachable(f"{visible(self.label)}: it changed while it was read")

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return the folder; nothing but the tree of the files tells two versions apart."""
        return SourceIdentity(self.label, entry.path, None, None, None, "a folder on this machine")

    def paths(self) -> Collection[str]:
        """Return the paths of the files in the folder."""
        with self._opened("") as folder:
            return self._paths_in(folder)

    def _paths_in(self, folder: files.Folder) -> Collection[str]:
        tree = folder.tree(LISTED_ENTRIES, without=(GIT,))
        if not tree.complete:
            reason = f"it has more than {LISTED_ENTRIES} entries (LISTED_ENTRIES)"
            raise SourceRefused("too-many-files", f"{visible(self.label)}: {reason}; name the folder of the skill")
        return tree.files

    def read(self, path: str, limit: int) -> bytes | None:
        """Return one file of the folder, or None if there is no such regular file of at most so many bytes."""
        above, _, name = path.rpartition("/")
        try:
            with self._opened(above) as folder:
                return folder.read([name], limit=limit).data
        except SkillError:
            return None

    @contextmanager
    def _opened(self, path: str) -> Iterator[files.Folder]:
        """Open a folder below this one; nothing on the way may be a link, but the user may have typed one."""
        shown = visible("/".join(filter(None, (self.label, path))))
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(files.Folder(files.real_path(self._reference.location)))
                for name in filter(None, path.split("/")):
                    if folder.kind(name) == "link":
                        raise SourceRefused("link", f"{shown}: {visible(name)!r} is a link")
                    folder = stack.enter_context(files.Folder(name, parent=folder))
                yield folder
            except (FileNotFoundError, NotADirectoryError):
                raise SourceNotFound(f"no such folder: {shown}") from None
            except files.TooLarge as error:
                raise SourceRefused("too-large", f"{shown}: a file has {error.size} bytes") from None
            except files.NotRegular as error:
                raise SourceRefused("special-file", f"{shown}: it holds a {error.kind}") from None
            except OSError as error:
                raise SourceUnreachable(f"{shown}: {error.strerror or 'it cannot be read'}") from None


def _read_at_once(folder: files.Folder, limits: SourceLimits) -> dict[str, bytes] | None:
    """Return all files of a skill but a `.git` at its top, or None if they changed meanwhile."""
    without = (GIT,) if folder.has(GIT) else ()
    found = folder.tree(LISTED_ENTRIES, without=(), without_at_top=without)
    for path, kind in found.others.items():
        rule = "link" if kind == "link" else "special-file"
        raise SourceRefused(rule, f"it holds {visible(path)!r}, which is a {kind}")
    check_names(found.files)
    check_sizes({path: stamp[2] for path, stamp in found.files.items()}, limits)
    if not found.complete:
        raise SourceRefused("too-many-files", "it holds more files or deeper folders than a skill may have")
    contents: dict[str, bytes] = {}
    for path, stamp in found.files.items():
        data, _, runnable = folder.read(path.split("/"), limit=stamp[2])
        contents[path] = ExecutableFile(data) if runnable else data
    if SKILL_FILE not in contents:
        raise SourceNotFound(f"no {SKILL_FILE} found")
    now = tree_of(folder)
    return contents if now is not None and now.digest == tree_digest(listed_files(contents)) else None
