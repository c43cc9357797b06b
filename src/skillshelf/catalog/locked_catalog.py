"""Mark the installed skills of a catalog, and hide those whose files are not what their lock names.

A catalog is built, cached and packed without regard to locks; this is the last step of every scan. Which tree a folder
is now is told by the stamps of everything in it, as long as all of them have settled, and else by reading it.
"""

import marshal
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from skillshelf.catalog.lock import LockedTree, Locks, UnusableLock
from skillshelf.catalog.lock_places import CHANGED, EXTRA, UNUSABLE
from skillshelf.catalog.locked_files import folder_state, read_locked
from skillshelf.catalog.packed import PackedSkills
from skillshelf.catalog.packed_file import read_any, write_sections
from skillshelf.config.system_policy import SystemPolicy, is_kept_untrusted, lock_required
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.limits import LISTED_ENTRIES, SETTLED_NS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic
from skillshelf.errors import PermissionDenied, SkillError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from skillshelf.config.approvals import ApprovedTree

__all__ = ["FolderDigests", "LockState", "SeenFolders", "is_intact", "lock_problems", "lock_state", "with_locks"]

_OVERRIDDEN = (None, "untrusted", "disable-model-invocation", "no-description", "on-use")
"""Why a skill may be hidden while its change is the reason that is told: nobody decided about this skill itself."""


def with_locks(
    catalog: Catalog,
    environment: Environment,
    cache: str | None,
    system: SystemPolicy,
    *,
    approved: Callable[[CatalogSkill], CatalogSkill] | None = None,
) -> tuple[Catalog, Mapping[int, CatalogSkill]]:
    """Return the catalog with its installed skills marked, and these by their position.

    `cache` is the folder in which the trees of folders are remembered with their stamps. `approved` returns a
    skill of an untrusted project as it is if this user installed it there, and so approved exactly these files; without
    it such a skill is held back.
    """
    locks = Locks(environment)
    seen = SeenFolders(cache, repr([root.path for root in catalog.roots]))
    trees = lru_cache(partial(_approved_trees, environment))
    required = lock_required(system)
    marked: dict[int, CatalogSkill] = {}
    warnings: list[Diagnostic] = []
    skills = catalog.skills
    for at in range(len(skills)) if required is not None else _positions(skills, locks):
        skill = skills[at]
        locked = locks.tree_of(skill.real_dir, skill.dir)
        if locked is not None:
            skill = _marked(skill, locked, seen, environment, warnings)
            if approved is not None and skill.hidden == "untrusted" and _is_approved(skill, locks, trees):
                skill = approved(skill)
            marked[at] = skill
        elif required is not None and skill.hidden in _OVERRIDDEN and skill.scope in _NEED_LOCK:
            marked[at] = skill._replace(hidden="denied", hidden_by=required)
    warnings += _left_out(catalog, marked, locks, seen, environment)
    seen.write()
    errors = lock_problems(locks)
    if not marked and not errors and not warnings:
        return catalog, marked
    result = catalog._replace(
        skills=_replaced(catalog.skills, marked),
        errors=(*errors, *catalog.errors) if errors else catalog.errors,
        warnings=(*catalog.warnings, *warnings) if warnings else catalog.warnings,
    )
    return result, marked


def _positions(skills: Sequence[CatalogSkill], locks: Locks) -> Iterable[int]:
    """Return the positions of the skills that may be installed; of a packed catalog no other is made."""
    if not isinstance(skills, PackedSkills):
        return range(len(skills))
    try:
        moved = frozenset(skills.moved())
    except (EOFError, KeyError, TypeError, ValueError):
        return range(len(skills))
    names: dict[str, Collection[str] | None] = {}
    found = []
    for at, path in enumerate(skills.table.text("paths").split("\0")[1:-1]):
        folder = path.rpartition("/")[0]
        parent, _, name = folder.rpartition("/")
        if parent not in names:
            names[parent] = None if _is_moved(parent, moved) else locks.names_in(parent)
        known = names[parent]
        if known is None or name in known or folder in moved:
            found.append(at)
    return found


def _is_moved(folder: str, moved: Collection[str]) -> bool:
    while folder:
        if folder in moved:
            return True
        folder = folder.rpartition("/")[0]
    return False


def _left_out(
    catalog: Catalog,
    marked: Mapping[int, CatalogSkill],
    locks: Locks,
    seen: "SeenFolders",
    environment: Environment,
) -> Iterator[Diagnostic]:
    """Yield a warning for each installed skill that is no skill of the catalog since its files were changed."""
    known = {path for skill in marked.values() for path in (skill.dir, skill.real_dir)}
    for _, place in locks.installed():
        # Most of the names in a stranger's lock may be of nothing.
        if place in known or files.kind_at(place) is None:
            continue
        folder = files.real_path(place)
        if folder in known or files.kind_at(folder) != "folder":
            continue
        locked = locks.tree_of(folder, place)
        if locked is not None and not is_intact(folder, locked, seen.digests(locked.folder), environment, place):
            yield Diagnostic(folder, CHANGED, _change(locked))


_NEED_LOCK = ("project", "repo", "user", "custom", "env")


def _replaced(skills: Sequence[CatalogSkill], marked: Mapping[int, CatalogSkill]) -> Sequence[CatalogSkill]:
    if isinstance(skills, PackedSkills):
        return skills.replaced(marked)
    return tuple(marked.get(at, skill) for at, skill in enumerate(skills))


def _marked(
    skill: CatalogSkill, locked: LockedTree, seen: "SeenFolders", environment: Environment, warnings: list[Diagnostic]
) -> CatalogSkill:
    skill = skill._replace(origin=locked.source, tree=locked.tree)
    known = seen.digests(locked.folder)
    is_extra = known is not None and locked.tree != known.whole and _is_below(locked.inside, known.folders)
    if is_extra or not is_intact(skill.real_dir, locked, known, environment, skill.dir):
        warnings.append(Diagnostic(skill.path, CHANGED, _change(locked)))
        if skill.hidden in _OVERRIDDEN and not is_kept_untrusted(skill.hidden_by):
            return skill._replace(hidden="changed", hidden_by=locked.by)
    elif known is not None and known.folders and locked.tree != known.whole:
        message = f"{visible(known.folders[0])} is not part of the installed skill, and never listed, read or run"
        warnings.append(Diagnostic(skill.path, EXTRA, message))
    return skill


def _is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a skill inside an installed one lies in a folder that Python makes, and is no part of it."""
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _is_approved(skill: CatalogSkill, locks: Locks, trees: "Callable[[], Collection[ApprovedTree]]") -> bool:
    """Return whether this user installed an intact skill where it lies, and so approved its files."""
    if is_kept_untrusted(skill.hidden_by) or skill.tree is None:
        return False
    if not locks.is_ours(skill.real_dir, skill.tree, skill.dir):
        return False
    return (None, skill.tree) in trees() or (skill.real_path, skill.tree) in trees()


def _approved_trees(environment: Environment) -> "Collection[ApprovedTree]":
    """Return the trees that may be loaded; read once for all skills, as there may be many of both."""
    from skillshelf.config.approvals import approved_trees, read_approvals

    try:
        return approved_trees(read_approvals(environment), "skill_load")
    except SkillError:
        return ()


def _change(locked: LockedTree) -> str:
    if locked.problem is not None:
        return f"nobody can tell which files it must have, so it is not handed out: {visible(locked.problem)}"
    return (
        f"its files are not those that {visible(locked.by)} names, so it is not handed out; to see them: skillshelf "
        f"verify; to settle it: skillshelf update {visible(locked.name)} --restore or --accept"
    )


def is_intact(
    folder: str, locked: LockedTree, known: "FolderDigests | None", environment: Environment, place: str | None = None
) -> bool:
    """Return whether a real folder is what it must be; `known` is what was seen of the whole installed skill."""
    if locked.tree is None or known is None:
        return False
    if locked.tree in (known.plain, known.whole):
        return True
    if not known.folders:
        return False
    try:
        # Only some of the folders that Python makes may be installed; the store knows which.
        return read_locked(folder, environment, place=place) is not None
    except (SkillError, PermissionDenied):
        return False


def lock_problems(locks: Locks) -> list[Diagnostic]:
    """Return an error for each lock that could not be used."""
    return [_problem(path, error) for path, error in sorted(locks.unusable.items())]


def _problem(path: str, error: UnusableLock) -> Diagnostic:
    text = str(error).removeprefix(f"{path}: ")
    line, _, rest = text.removeprefix("line ").partition(": ")
    number = int(line) if text.startswith("line ") and line.isdecimal() else None
    message = f"{rest if number else text}; the skills that it may name are not handed out until it can be read"
    return Diagnostic(path, UNUSABLE, message, number)


class LockState(NamedTuple):
    """An installed skill: what it must be, and whether it is; `message` says what is wrong.

    `extra` are folders that Python made in it since.
    """

    locked: LockedTree
    changed: bool
    message: str
    extra: tuple[str, ...] = ()


def lock_state(
    folder: str, environment: Environment, locks: Locks | None = None, place: str | None = None
) -> LockState | None:
    """Return the state of the installed skill in a real folder, as its files are now; None for any other skill.

    `place` is the path that the folder was found at.
    """
    locked = (locks or Locks(environment)).tree_of(folder, place)
    if locked is None:
        return None
    known = SeenFolders(None, "").digests(locked.folder)
    changed = not is_intact(folder, locked, known, environment, place)
    extra = known.folders if known is not None and not changed and known.whole != locked.tree else ()
    return LockState(locked, changed, _change(locked) if changed else "", extra)


class FolderDigests(NamedTuple):
    """The digests of a folder without and with the folders that Python makes, and these folders."""

    plain: str | None
    whole: str | None
    folders: tuple[str, ...]


class SeenFolders:
    """The digests of the folders of installed skills, remembered with the stamps of everything in them."""

    def __init__(self, cache: str | None, about: str) -> None:
        self._cache = cache
        self._key = f"locked folders 1 {about}"
        self._known: dict[str, tuple[bytes, bytes, FolderDigests]] | None = None
        self._kept: dict[str, tuple[bytes, bytes, FolderDigests]] = {}
        self._read: dict[str, FolderDigests | None] = {}
        self._is_new = False

    def digests(self, folder: str) -> FolderDigests | None:
        """Return what a real folder is; None if it cannot be read. Each is looked at once."""
        if folder not in self._read:
            self._read[folder] = self._digests(folder)
        return self._read[folder]

    def _digests(self, folder: str) -> FolderDigests | None:
        known = self._remembered().get(folder)
        if known is not None and _stamps_at(folder, known[0]) == known[1]:
            self._kept[folder] = known
            return known[2]
        before = _stamped(folder)
        try:
            state = folder_state(folder)
        except OSError:
            return None
        whole = state.whole.digest if state.whole is not None and not state.others else None
        found = FolderDigests(state.plain.digest, whole, state.folders)
        if before is not None and before == _stamped(folder):
            self._kept[folder] = (*before, found)
            self._is_new = True
        return found

    def _remembered(self) -> dict[str, tuple[bytes, bytes, FolderDigests]]:
        if self._known is None:
            self._known = _unpacked(self._cache, self._key) if self._cache is not None else {}
        return self._known

    def write(self) -> None:
        """Remember what was seen for the next process."""
        if self._cache is not None and self._is_new:
            rows = {folder: (paths, stamps, tuple(found)) for folder, (paths, stamps, found) in self._kept.items()}
            write_sections(self._cache, self._key, {"folders": marshal.dumps(rows)})


def _unpacked(cache: str, key: str) -> dict[str, tuple[bytes, bytes, FolderDigests]]:
    sections = read_any(cache, key)
    if sections is None:
        return {}
    try:
        rows = marshal.loads(sections["folders"])
        return {folder: (paths, stamps, FolderDigests(*found)) for folder, (paths, stamps, found) in rows.items()}
    except (AttributeError, EOFError, KeyError, TypeError, ValueError):
        return {}


def _stamped(folder: str) -> tuple[bytes, bytes] | None:
    """Return the paths of everything in a folder and their stamps; None if those prove nothing."""
    now = time.time_ns()
    try:
        with files.Folder(folder) as here:
            found = here.tree(LISTED_ENTRIES, without=())
    except OSError:
        return None
    paths = b"\0".join(map(files.path_bytes, _sorted((".", *found.folders, *found.files, *found.others))))
    stamps = _stamps_at(folder, paths)
    numbers = array("Q", stamps)
    # A change within the tick of the clock in which it was read would leave the stamps as they are.
    is_settled = bool(numbers) and max(numbers[4::5]) <= now - SETTLED_NS
    if not found.complete or not is_settled or not all(map(files.stamps_listings, {*numbers[0::5]})):
        return None
    return paths, stamps


def _sorted(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=files.path_bytes)


def _stamps_at(folder: str, paths: bytes) -> bytes:
    try:
        descriptor = files.open_folder(folder)
    except OSError:
        return b""
    try:
        return files.packed_stamps(descriptor, paths)
    finally:
        files.close(descriptor)
