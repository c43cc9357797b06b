"""What locks, generations and the store know of installed skills: their versions, and which of them are outdated."""

import os
from collections.abc import Iterator, Mapping
from shlex import join, quote

from skillshelf.catalog.lock import LockedSkill, read_lock
from skillshelf.catalog.lock_places import user_lock_path
from skillshelf.catalog.locked_catalog import LockState
from skillshelf.catalog.store import store_of
from skillshelf.config.settings import Settings, is_trusted
from skillshelf.core import files
from skillshelf.core.environment import Environment, find_repository
from skillshelf.core.text import plural
from skillshelf.errors import SkillError
from skillshelf.install.difference import difference_of
from skillshelf.install.generation import generation_numbers, read_generation
from skillshelf.install.reference import SourceContext
from skillshelf.install.scope import MARKERS, InstallScope, scope_of
from skillshelf.install.sources import SourceReader, is_local, locked_reference
from skillshelf.install.verify import disk_contents
from skillshelf.servers.web.catalogue import CommandHint, DiffLines, ProblemEntry, ProblemGroup, SkillDiff, SkillVersion
from skillshelf.servers.web.paths import ShownPaths

__all__ = ["VERIFY", "InstalledSkills", "typed_names"]

VERIFY = "skillshelf verify --all"
"""The command that checks the installed skills of the project and of the user."""

_DISK = "disk"
_TREE_SHOWN = 19


def typed_names(*names: str) -> str:
    """Return names as they are typed at the end of a command, where none is taken for an option."""
    dashes = ["--"] if any(name.startswith("-") for name in names) else []
    return join([*dashes, *names])


class InstalledSkills:
    """The installed skills of the user and of the project around a working directory."""

    def __init__(self, environment: Environment, settings: Settings, shown: ShownPaths) -> None:
        self._environment = environment
        self._settings = settings
        self._shown = shown

    def _scopes(self) -> Iterator[InstallScope]:
        for user in (False, True):
            try:
                yield scope_of(self._environment, user=user)
            except SkillError:
                # Without a home folder nothing is kept about installed skills.
                return

    def typed(self, state: LockState) -> str | None:
        """Return an installed skill as commands such as `update` name it here; None if none of them can reach it."""
        locked = state.locked
        if locked.problem is not None:
            return None
        if locked.by == user_lock_path(self._environment):
            return f"{quote(locked.name)} --user"
        here = files.real_path(self._environment.cwd)
        root = find_repository(here, MARKERS) or here
        return quote(locked.name) if files.real_path(os.path.dirname(locked.by)) == root else None

    # Versions -------------------------------------------------------------------------------------

    def versions(self, state: LockState) -> list[SkillVersion]:
        """Return what lies on the disk if it was changed, then every tree that was installed, the newest first."""
        locked = state.locked
        found: dict[str, SkillVersion] = {}
        for scope in self._scopes():
            for number in reversed(generation_numbers(scope.history)):
                try:
                    generation = read_generation(scope.history, number)
                    skill = generation.skills.get(locked.name)
                except SkillError:
                    continue
                if skill is None or skill.source != locked.source or not self._has(skill.tree):
                    continue
                details = (("ref", skill.ref or ""), ("commit", (skill.commit or "")[:12]))
                is_locked = skill.tree == locked.tree
                label = f"generation {number}: {generation.label}" + (", locked" if is_locked and state.changed else "")
                found[skill.tree] = SkillVersion(
                    f"g{number}",
                    self._shown.text(label),
                    skill.tree,
                    generation.at,
                    is_locked and not state.changed,
                    tuple(pair for pair in details if pair[1]),
                )
        listed = sorted(found.values(), key=lambda version: version.when, reverse=True)
        if not listed or state.changed:
            label = "on the disk now, changed" if state.changed else "on the disk now"
            # What was changed is not handed out, so it is not in use.
            listed.insert(0, SkillVersion(_DISK, label, "", current=not state.changed))
        return listed

    def _has(self, tree: str) -> bool:
        try:
            return store_of(self._environment).has(tree)
        except (SkillError, ValueError):
            return False

    def difference(self, before: SkillVersion, after: SkillVersion, state: LockState, folder: str) -> SkillDiff | None:
        """Return how one version becomes another; None if the files of one are not there any more."""
        try:
            sides = [self._contents(version, folder) for version in (before, after)]
        except SkillError:
            return None
        found = difference_of(*sides)
        rows = tuple(DiffLines(one.path, one.state, tuple(map(self._shown.known, one.lines))) for one in found.files)
        name = self.typed(state)
        command = f"skillshelf diff {name} {before.tree or _DISK} {after.tree or _DISK}" if name is not None else ""
        return SkillDiff(before, after, rows, tuple(map(self._shown.text, found.remarks)), command)

    def _contents(self, version: SkillVersion, folder: str) -> Mapping[str, bytes]:
        return disk_contents(folder) if version.key == _DISK else store_of(self._environment).read(version.tree)

    # Outdated -------------------------------------------------------------------------------------

    def outdated(self, slugs: Mapping[str, str]) -> ProblemGroup:
        """Return the skills whose sources on this disk have other files now, and how many were not asked."""
        found: list[ProblemEntry] = []
        remote = untrusted = 0
        kinds: set[str] = set()
        for scope in self._scopes():
            is_own = scope.kind == "user" or is_trusted(scope.root, self._settings.trusted_folders)
            try:
                locked = read_lock(scope.lock_path) or {}
            except SkillError:
                # The inventory reports a lock that cannot be used.
                continue
            kinds |= {scope.kind} if locked else set()
            if not is_own:
                # A lock of a stranger could name any folder of this disk.
                untrusted += len(locked)
                continue
            entries = [self._outdated(name, skill, scope, slugs) for name, skill in locked.items()]
            remote += sum(one is _UNASKED for one in entries)
            found += [one for one in entries if isinstance(one, ProblemEntry)]
        user = " --user" if kinds == {"user"} else ""
        more = "; with --user those of your own" if len(kinds) > 1 else ""
        hint = CommandHint(f"skillshelf outdated{user}", f"ask the sources of all installed skills{more}")
        reasons = [
            f"{plural(count, 'source')} not asked, since {why}"
            for count, why in ((untrusted, "this project is not trusted"), (remote, "a page opens no connection"))
            if count
        ]
        what = f"{'; '.join(reasons)}." if reasons else "No source on this disk has newer files."
        return ProblemGroup("outdated", "Outdated", tuple(found), what, hint, is_complete=not reasons)

    def _outdated(
        self, name: str, skill: LockedSkill, scope: InstallScope, slugs: Mapping[str, str]
    ) -> "ProblemEntry | object | None":
        user = " --user" if scope.kind == "user" else ""
        try:
            reference = locked_reference(skill, self._environment, scope)
            if not is_local(reference):
                return _UNASKED
            newer = SourceReader(SourceContext(self._environment, offline=True)).newer(name, reference, skill)
        except SkillError as error:
            message = f"its source cannot be read: {self._shown.text(str(error))}"
            return ProblemEntry("warning", name, message, "", slugs.get(name, ""), "", f"skillshelf outdated{user}")
        if newer is None:
            return None
        message = f"{self._shown.text(skill.source)} has other files now ({newer.tree[:_TREE_SHOWN]})"
        command = f"skillshelf update {quote(name)}{user}"
        return ProblemEntry("warning", name, message, "", slugs.get(name, ""), "", command)


_UNASKED = object()
"""A source that only the network has."""
