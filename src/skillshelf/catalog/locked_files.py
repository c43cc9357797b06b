"""Read an installed skill whole, and hand out its files only if they are those that its lock names.

Everything is read once, and every answer comes from those bytes: their digest decides, so no answer is a mixture of
two states of the folder.
"""

from collections.abc import Callable, Mapping

from skillshelf.catalog.lock import LockedTree, Locks, locked_tree
from skillshelf.catalog.tree import SkillTree, TreeFile, tree_digest
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.environment import Environment, user_data_folder
from skillshelf.core.limits import TREE_BYTES, TREE_FILES, TREE_MANIFEST_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.errors import FileReadError, PermissionDenied, SkillChanged

__all__ = [
    "PYCACHE",
    "FolderState",
    "LockedFiles",
    "ReadFiles",
    "folder_state",
    "read_locked",
    "refuse",
    "require_unchanged",
]

PYCACHE = "__pycache__"
"""The folder that Python makes beside a script that it imports."""

_NAMED = 32
_NAME_CHARS = 200


class LockedFiles(NamedTuple):
    """The files of an installed skill, which are exactly those of its lock, and the folders that it has besides."""

    locked: LockedTree
    tree: SkillTree
    contents: Mapping[str, files.Contents]
    extra: tuple[str, ...] = ()

    @property
    def extra_text(self) -> str:
        """The remark about folders that are no part of the installed skill."""
        shown = ", ".join(visible(path) for path in self.extra[:3])
        more = f" and {len(self.extra) - 3} more" if len(self.extra) > 3 else ""
        return f"{shown}{more}: not part of the installed skill, and never listed, read or run"


class FolderState(NamedTuple):
    """The files of a folder as they are, with and without those in the folders that Python makes.

    `others` are links and the like, which no installed skill has; `folders` are the folders that Python makes.
    """

    plain: "ReadFiles"
    whole: "ReadFiles | None"
    folders: tuple[str, ...]
    others: tuple[str, ...]

    def has(self, tree: str | None) -> bool:
        """Return whether the folder is this tree, but for folders that Python made."""
        return tree is not None and tree in (self.plain.digest, self.whole.digest if self.whole else None)


class ReadFiles(NamedTuple):
    """Files with their bytes, what a tree records of them, and its digest; None if no tree may hold them."""

    contents: Mapping[str, files.Contents]
    listed: Mapping[str, TreeFile]
    digest: str | None


def folder_state(folder: str) -> FolderState:
    """Read a real folder whole; raise OSError as reading does."""
    with files.Folder(folder) as here:
        found = here.contents(most=TREE_FILES, limit=TREE_BYTES, without=(PYCACHE,))
        whole = here.contents(most=TREE_FILES, limit=TREE_BYTES) if found.skipped and found.complete else None
    others = (*found.others, *(() if found.complete else (_TOO_MUCH,)))
    plain = _digested(found.files, valid=not others)
    is_whole = whole is not None and whole.complete and not whole.others
    return FolderState(plain, _digested(whole.files) if whole and is_whole else None, tuple(found.skipped), others)


_TOO_MUCH = "(more than a skill may hold, or it changed just now)"


def _digested(contents: Mapping[str, files.Contents], *, valid: bool = True) -> ReadFiles:
    listed = {
        path: TreeFile(len(one.data), sha256(one.data).hexdigest(), one.runnable) for path, one in contents.items()
    }
    # A name without a line break cannot be taken for another entry: an equal digest means equal names.
    if not valid or any("\n" in path for path in listed):
        return ReadFiles(contents, listed, None)
    try:
        return ReadFiles(contents, listed, tree_digest(listed))
    except UnicodeEncodeError:
        return ReadFiles(contents, listed, None)


def read_locked(
    folder: str,
    environment: Environment,
    *,
    name: str | None = None,
    place: str | None = None,
    find: Callable[[str, Environment, str | None], LockedTree | None] = locked_tree,
) -> LockedFiles | None:
    """Return the files of a skill that a lock, the store or a record of a copy speaks of; None for any other.

    `name` is what an error calls the skill, `place` the path that its folder was found at. Of a skill inside an
    installed one all files of that are checked, and those of the inner one returned. Raise SkillChanged with the files
    that differ, or PermissionDenied if the lock cannot be used.
    """
    locked = find(folder, environment, place)
    if locked is None:
        return None
    # What settles a skill inside an installed one is a command about that.
    name = locked.name if locked.inside or name is None else name
    if locked.tree is None:
        raise refuse(name, locked)
    try:
        state = folder_state(locked.folder)
    except (FileNotFoundError, NotADirectoryError):
        raise SkillChanged(name, ("(the folder is missing)",)) from None
    except OSError as error:
        raise FileReadError(folder, error) from error
    found = _matching(state, locked.tree, environment)
    if found is None:
        raise SkillChanged(name, _differences(state, locked.tree, environment))
    extra = tuple(path for path in state.folders if not any(one.startswith(f"{path}/") for one in found.contents))
    return _part(found, locked, extra)


def _part(whole: ReadFiles, locked: LockedTree, extra: tuple[str, ...]) -> LockedFiles:
    """Return the files of an installed skill, or of the one inside it that was asked about, which has its own tree."""
    above = f"{locked.inside}/" if locked.inside else ""
    contents = {path[len(above) :]: one for path, one in whole.contents.items() if path.startswith(above)}
    listed = {path: whole.listed[above + path] for path in contents}
    digest = tree_digest(listed) if above else locked.tree
    size = sum(one.size for one in listed.values())
    inner = tuple(path[len(above) :] for path in extra if path.startswith(above))
    return LockedFiles(locked, SkillTree(digest, None, len(listed), size, digest, listed), contents, inner)


def require_unchanged(name: str, environment: Environment) -> None:
    """Raise SkillChanged if a lock names an installed skill so, and its files are others: it may be no skill any more.

    One whose folder is gone is not there, rather than changed.
    """
    for known, folder in Locks(environment).installed():
        if known == name and files.kind_at(real := files.real_path(folder)) == "folder":
            read_locked(real, environment, name=name, place=folder)


def refuse(name: str, locked: LockedTree) -> PermissionDenied:
    """Return the refusal of a skill whose lock cannot be used."""
    return PermissionDenied(
        f"{name} is not handed out: nobody can tell which files it must have: {visible(locked.problem or '')}; "
        "resolve the conflict or restore the lock, then run: skillshelf verify"
    )


def _matching(state: FolderState, tree: str, environment: Environment) -> ReadFiles | None:
    """Return those files of a folder that are the tree; None if none are."""
    if tree == state.plain.digest:
        return state.plain
    if state.whole is None or state.others:
        return None
    if tree == state.whole.digest:
        return state.whole
    # Some of the folders that Python makes were installed, and others came later.
    known = _manifest(tree, environment) or {}
    chosen = {path: one for path, one in state.whole.contents.items() if path in state.plain.contents or path in known}
    found = _digested(chosen)
    return found if found.digest == tree else None


def _differences(state: FolderState, tree: str, environment: Environment) -> tuple[str, ...]:
    """Return the paths that differ, for people; all of them if nobody knows what they were."""
    known = _manifest(tree, environment)
    plain = state.plain.listed
    if known is None:
        names = sorted({*state.others, *(() if state.others else plain)})
    else:
        found = {**(state.whole.listed if state.whole else {}), **plain}
        extra = {path for path in found if path not in plain and path not in known}
        differing = {path for path in (*known, *found) if found.get(path) != known.get(path) and path not in extra}
        names = sorted({*state.others, *differing})
    shown = [cut(visible(path), _NAME_CHARS) for path in names[:_NAMED]]
    return tuple(shown) or ("(all files are gone)",)


def _manifest(tree: str, environment: Environment) -> Mapping[str, TreeFile] | None:
    """Return the files that the store keeps for a tree; its manifest proves itself by its digest."""
    from skillshelf.catalog.store import STORE_VERSION, Store

    data_folder = user_data_folder(environment)
    if data_folder is None:
        return None
    path = Store(f"{data_folder}/store/{STORE_VERSION}").path_of(tree) + ".manifest"
    try:
        data = files.read_file(path, limit=TREE_MANIFEST_BYTES, links="never")
    except OSError:
        return None
    if data is None or f"sha256:{sha256(data).hexdigest()}" != tree:
        return None
    lines = [line.split(" ", 3) for line in data.decode("utf-8").split("\n")[1:-1]]
    return {path: TreeFile(int(size), digest, mode == "x") for mode, size, digest, path in lines}
