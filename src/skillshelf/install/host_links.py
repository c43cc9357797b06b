"""Let the links and copies of hosts follow the lock, by the engine of `sync`.

Which link or copy belongs to an installed skill is told by the records: its source is the tree of the skill in the
store or, in a project, the copy of the skill. So this can be done again after a kill, and says the same.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.lock import LockedSkill
from skillshelf.catalog.store import Store, store_of
from skillshelf.config.hosts import HOSTS
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.records import NamedTuple
from skillshelf.errors import SkillError
from skillshelf.hosts.copy_contents import CopyContents, read_contents
from skillshelf.hosts.link import apply_plan
from skillshelf.hosts.link_changes import LinkChange, carry_out, finish_pending, how_it_stands
from skillshelf.hosts.link_plan import LinkAction, LinkPlan, LinkRefusal, plan_links
from skillshelf.hosts.link_records import LinkRecord, links_settled, place_of, read_records
from skillshelf.hosts.placement import link_name
from skillshelf.hosts.survey import SkillFile, Survey, take_survey
from skillshelf.install.scope import InstallScope

__all__ = ["follow_lock", "unserved_hosts"]

_DEFAULT = ".agents/skills"
"""Where a skill of the user is linked if no host is named, below the home folder."""


def follow_lock(
    scope: InstallScope, environment: Environment, names: Sequence[str], skills: Mapping[str, LockedSkill]
) -> tuple[LinkPlan, bool]:
    """Make, move and remove the links and copies of some skills; return what was done and refused.

    The lock counts already, so nothing is raised: what cannot be done is refused with its reason. Return also whether
    it came to its end; if the machine failed, it has to be done again.
    """
    if not names:
        return LinkPlan(), True
    engine = _Engine(scope, environment, skills)
    try:
        with links_settled(engine.environment):
            finish_pending(engine.environment)
            return engine.follow(names), True
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
    except SkillError as error:
        reason = str(error)
    wanted = [(name, host) for name in names for host in (skills[name].hosts if name in skills else ())]
    refused = [LinkRefusal(name, host, f"failed: {reason}") for name, host in wanted or [(names[0], "")]]
    return LinkPlan(refused=tuple(refused)), False


def unserved_hosts(root: str, name: str, hosts: Sequence[str]) -> list[str]:
    """Return which of these hosts have nothing of a name in any folder of a project that they read.

    Whoever clones a project has its lock and copies, and neither the links nor the records of who made it.
    """
    found = []
    for host in hosts:
        folders = (
            [path for rule in HOSTS[host].roots if rule.kind == "project" for path in rule.paths]
            if host in HOSTS
            else []
        )
        if folders and all(files.kind_at(f"{root}/{folder}/{name}") is None for folder in folders):
            found.append(host)
    return found


class _Wanted(NamedTuple):
    """The links that one skill needs: the folder that links lead to, and the hosts; no folder if it is removed."""

    name: str
    folder: str | None
    tree: str
    hosts: tuple[str, ...]
    default: str | None


class _Engine:
    """The inputs of one run: the scope, the skills of its lock, and the environment in which hosts are judged."""

    def __init__(self, scope: InstallScope, environment: Environment, skills: Mapping[str, LockedSkill]) -> None:
        self.scope = scope
        # Not where the command was called: what hosts see of these skills does not depend on that.
        self.environment = environment._replace(cwd=files.real_path(scope.root))
        self.skills = skills
        store = store_of(environment)
        self.store = Store(files.real_path(store.folder))

    def follow(self, names: Sequence[str]) -> LinkPlan:
        """Bring what is recorded up to date, then make what is missing."""
        wanted = [self._wanted(name) for name in names]
        plan = _joined(LinkPlan(refused=tuple(self._unknown(names))), self._updates(wanted))
        # One change for all of them: each writes the file of records several times.
        carry_out(plan.changes, self.environment)
        records = self._records()
        for one in wanted:
            if one.folder is not None and (missing := _unserved(one, records.get(one.name, ()))):
                plan = _joined(plan, self._linked(one, missing))
        return plan

    def _unknown(self, names: Sequence[str]) -> Iterator[LinkRefusal]:
        """Yield the hosts of a lock that this version does not know."""
        for name in names:
            for host in self.skills[name].hosts if name in self.skills else ():
                if host not in HOSTS:
                    yield LinkRefusal(name, host, "this version of skillshelf does not know this host")

    def _wanted(self, name: str) -> _Wanted:
        skill = self.skills.get(name)
        if skill is None:
            return _Wanted(name, None, "", (), None)
        hosts = tuple(host for host in skill.hosts if host in HOSTS)
        if self.scope.skills_folder is not None:
            return _Wanted(name, f"{self.scope.skills_folder}/{name}", skill.tree, hosts, None)
        home = self.environment.home
        default = place_of(f"{home}/{_DEFAULT}/{name}") if home is not None and not hosts else None
        return _Wanted(name, self.store.path_of(skill.tree), skill.tree, hosts, default)

    def _records(self) -> dict[str, list[LinkRecord]]:
        """Return the records of the links and copies of installed skills by name, of whichever tree."""
        found: dict[str, list[LinkRecord]] = {}
        for record in read_records(self.environment):
            name = os.path.basename(record.path)
            if record.source is not None and self._is_own(record.source, name):
                found.setdefault(name, []).append(record)
        return found

    def _is_own(self, source: str, name: str) -> bool:
        if self.scope.skills_folder is not None:
            return source == f"{self.scope.skills_folder}/{name}"
        return self.store.tree_at(files.real_path(source)) is not None

    # What is recorded

    def _updates(self, wanted: Sequence[_Wanted]) -> LinkPlan:
        """Return what becomes of the links and copies that are there."""
        actions: list[LinkAction] = []
        refused: list[LinkRefusal] = []
        records = self._records()
        for one in wanted:
            if one.default is not None and one.default not in [record.path for record in records.get(one.name, ())]:
                made = _default_link(one)
                actions += [made] if isinstance(made, LinkAction) else []
                refused += [made] if isinstance(made, LinkRefusal) else []
            for record in records.get(one.name, ()):
                change = self._change(one, record)
                if change is None:
                    continue
                hosts = record.hosts or ("",)
                if how_it_stands(record.path, record) in ("modified", "foreign"):
                    reason = "it was changed since skillshelf made it; it was left as it is"
                    refused += [LinkRefusal(one.name, host, reason, record.path) for host in hosts]
                    continue
                kind: Literal["update", "remove"] = "remove" if change.after is None else "update"
                actions += [
                    LinkAction(kind, one.name, host, one.folder or record.source or "", record.path, "", change)
                    for host in hosts
                ]
        return LinkPlan(tuple(actions), (), tuple(refused))

    def _change(self, wanted: _Wanted, record: LinkRecord) -> LinkChange | None:
        """Return how the link or copy of a record has to change; None if it is as it should be."""
        hosts = tuple(host for host in record.hosts if host in wanted.hosts)
        if wanted.folder is None or not (hosts or record.path == wanted.default):
            return LinkChange(record.path, record, None)
        if record.how == "link":
            target = os.path.relpath(wanted.folder, os.path.dirname(record.path))
            after = record._replace(source=wanted.folder, target=target, hosts=hosts)
            contents = None
        else:
            contents = self._contents(wanted.folder) if record.tree != wanted.tree else None
            after = record._replace(source=wanted.folder, tree=wanted.tree, digest=None, hosts=hosts)
        is_gone = files.kind_at(record.path) is None
        if after == record and not is_gone:
            return None
        if is_gone and record.how == "copy":
            contents = self._contents(wanted.folder)
        return LinkChange(record.path, record, after, contents)

    def _contents(self, folder: str) -> CopyContents:
        return read_contents(folder, f"{folder}/{SKILL_FILE}")

    # What is missing

    def _linked(self, wanted: _Wanted, hosts: Sequence[str]) -> LinkPlan:
        """Make the links or copies that some hosts lack; what a host does not see then is taken back."""
        survey = take_survey(self.environment, list(HOSTS), path=f"{wanted.folder}/{SKILL_FILE}")
        found = survey.by_path.get(f"{wanted.folder}/{SKILL_FILE}")
        if found is None or found.problem:
            reason = found.problem if found is not None else "its SKILL.md is missing"
            return LinkPlan(refused=tuple(LinkRefusal(wanted.name, host, reason) for host in hosts))
        return self._planned(self._placed(found), wanted.name, hosts, survey)

    def _placed(self, found: SkillFile) -> SkillFile:
        """Return a file with the folder that its links go beside: the home folder for what lies in the store."""
        if self.scope.skills_folder is not None or found.base:
            return found
        return found._replace(kind="user", base=self.environment.home or "")

    def _planned(self, found: SkillFile, name: str, hosts: Sequence[str], survey: Survey) -> LinkPlan:
        if link_name(found) != name:
            reason = f"its declared name {link_name(found)!r} is not the one that it is installed as"
            return LinkPlan(refused=tuple(LinkRefusal(name, host, reason) for host in hosts))
        plan, _ = apply_plan(plan_links([[found]], hosts, survey), survey)
        return plan


def _default_link(wanted: _Wanted) -> LinkAction | LinkRefusal:
    """Return the link of a skill of the user where most hosts look."""
    path, folder = wanted.default or "", wanted.folder or ""
    if files.kind_at(path) is not None:
        return LinkRefusal(wanted.name, "", f"{path} is there, and skillshelf did not make it", path)
    record = LinkRecord(path, "link", folder, target=os.path.relpath(folder, os.path.dirname(path)))
    return LinkAction("link", wanted.name, "", folder, path, "", LinkChange(path, None, record))


def _unserved(wanted: _Wanted, records: Sequence[LinkRecord]) -> tuple[str, ...]:
    """Return the hosts for which nothing is recorded."""
    served = {host for record in records for host in record.hosts}
    return tuple(host for host in wanted.hosts if host not in served)


def _joined(one: LinkPlan, other: LinkPlan) -> LinkPlan:
    return LinkPlan(
        one.actions + other.actions,
        one.unchanged + other.unchanged,
        one.refused + other.refused,
        one.remarks + other.remarks,
    )
