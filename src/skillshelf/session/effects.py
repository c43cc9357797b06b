"""Effects: everything a session does outside itself, behind one value that replay replaces.

A session loads skills, reads files, runs scripts and remembers answers only through its `Effects`. Replay passes
effects that run nothing and write nothing.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from skillshelf.catalog import load as loader
from skillshelf.catalog.load import LoadedSkill, Resource, read_resource
from skillshelf.catalog.lock_places import may_be_locked
from skillshelf.catalog.tree import SkillTree, skill_tree
from skillshelf.config.permission_rules import PermissionRule
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, Trust
from skillshelf.core import files
from skillshelf.core.environment import Environment, make_environment
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Catalog, CatalogSkill
from skillshelf.errors import SkillError

if TYPE_CHECKING:
    from skillshelf.catalog.locked_files import LockedFiles
    from skillshelf.catalog.remote import RemoteSkills
    from skillshelf.config.approvals import Approval
    from skillshelf.sandbox.run import Run, Script
    from skillshelf.search.query import SearchReport
    from skillshelf.search.usage_prior import QueryPrior

__all__ = [
    "Answer",
    "Effects",
    "RuleNotWritten",
    "ShelfProtocol",
    "effects_of",
    "find_script",
    "load_now",
    "read_now",
    "real_effects",
    "require_not_changed",
    "tree_now",
]


class ShelfProtocol(Protocol):
    """The part of a shelf that a conversation uses; `skillshelf.Shelf` has it."""

    attachments: dict[str, object]
    """What is kept for as long as the shelf lives."""

    @property
    def profile(self) -> Profile:
        """The profile of the system."""

    @property
    def environment(self) -> Environment:
        """The folders and environment variables."""

    @property
    def settings(self) -> Settings:
        """The configuration."""

    @property
    def settings_in_force(self) -> Settings:
        """The configuration with the budget from the environment."""

    @property
    def trust(self) -> Trust:
        """The trust rule: whose skills are visible to a model."""

    def renew_policy(self) -> bool:
        """Read the configuration again if the system policy changed since; return True if it did."""

    @property
    def catalog(self) -> Catalog:
        """The skills, and the files that are not in the catalog with their reasons."""

    @property
    def project_root(self) -> str:
        """The repository, or the working directory."""

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        scope: str | None = None,
        model: bool = False,
        keep: Callable[[CatalogSkill], bool] | None = None,
        prior: "QueryPrior | None" = None,
    ) -> "SearchReport":
        """Return the skills that match a query; a `prior` is that of a recorded search."""

    def load(self, name: str | None = None, *, path: str | None = None) -> LoadedSkill:
        """Return one skill with its text."""

    def prompt(self) -> str:
        """Return the catalog text for a model."""

    def refresh(self, *, sources_after: float = 0.0) -> bool:
        """Scan again and return True if anything changed; live sources rest for some seconds."""


class RuleNotWritten(SkillError):
    """The rule that belongs to an answer could not be written; the answer itself is kept."""


class Answer(NamedTuple):
    """An answer for good: a tool, a skill and its tree; `rule` is written besides, if there is one."""

    tool: str
    skill: CatalogSkill
    tree: str
    rule: PermissionRule | None


class Effects(NamedTuple):
    """The functions by which a session reaches the machine."""

    load: Callable[[CatalogSkill, Profile], LoadedSkill]
    search: "Callable[..., SearchReport]"
    real_path: Callable[[str], str]
    untrusted_roots: Callable[[ShelfProtocol], list[str]]
    read: Callable[[str, CatalogSkill, Profile, int], Resource]
    find_script: "Callable[[str, str], Script]"
    run: "Callable[..., Run]"
    artifact: Callable[[str], dict[str, Any]]
    tree: Callable[[CatalogSkill], SkillTree]
    approvals: "Callable[[Environment, str, Sequence[CatalogSkill]], Sequence[Approval]]"
    remember: Callable[[Environment, Answer], None]
    require_not_changed: Callable[[str], None]
    learn_load: Callable[[CatalogSkill], None]


def real_effects(of: Environment | None = None) -> Effects:
    """Return the effects that use the disk and the sandbox of this machine; installed skills are checked each time.

    Locks and store are those of an environment, by default that of the process.
    """
    environment = of or make_environment(None, None, None)
    return Effects(
        load=lambda skill, profile: load_now(skill, profile, environment),
        search=search_shelf,
        real_path=files.real_path,
        untrusted_roots=untrusted_roots,
        read=lambda uri, skill, profile, limit: read_now(uri, skill, profile, limit, environment),
        find_script=lambda skill_dir, script: find_script(skill_dir, script, environment),
        run=lambda skill_dir, *given, **named: _run(skill_dir, *given, environment=environment, **named),
        artifact=_artifact,
        tree=lambda skill: tree_now(skill, environment),
        approvals=_approvals,
        remember=_remember,
        require_not_changed=lambda name: require_not_changed(name, environment),
        # Only a shelf knows whether it learns.
        learn_load=lambda skill: None,
    )


def effects_of(shelf: ShelfProtocol) -> Effects:
    """Return the effects of a shelf: those of this machine, and of the live sources that it has."""
    remote: RemoteSkills | None = getattr(shelf, "remote", None)
    local = real_effects(shelf.environment)
    local = local._replace(learn_load=getattr(shelf, "learn_load", local.learn_load))
    make_ready: Callable[[CatalogSkill], None] | None = getattr(shelf, "make_ready", None)
    if make_ready is not None:
        local = _after(make_ready, local)
    return local if remote is None else _with_sources(local, remote)


def _after(make_ready: Callable[[CatalogSkill], None], local: Effects) -> Effects:
    """Return effects that bring the files of a skill to this disk before they look at them."""

    def load(skill: CatalogSkill, profile: Profile) -> LoadedSkill:
        make_ready(skill)
        return local.load(skill, profile)

    def read(uri: str, skill: CatalogSkill, profile: Profile, limit: int) -> Resource:
        make_ready(skill)
        return local.read(uri, skill, profile, limit)

    def tree(skill: CatalogSkill) -> SkillTree:
        make_ready(skill)
        return local.tree(skill)

    return local._replace(load=load, read=read, tree=tree)


def _with_sources(local: Effects, remote: "RemoteSkills") -> Effects:
    """Return effects that ask the sources for whatever is about a skill of theirs."""
    from skillshelf.catalog.source import is_remote

    def approvals(environment: Environment, tool: str, skills: Sequence[CatalogSkill]) -> "Sequence[Approval]":
        theirs = [skill for skill in skills if is_remote(skill.path)]
        ours = [skill for skill in skills if not is_remote(skill.path)]
        return [*local.approvals(environment, tool, ours), *(remote.approvals(tool, theirs) if theirs else ())]

    def folder(skill_dir: str) -> str:
        return remote.script_folder(skill_dir) if is_remote(skill_dir) else skill_dir

    return local._replace(
        load=lambda skill, profile: (remote if is_remote(skill.path) else local).load(skill, profile),
        real_path=lambda path: path if is_remote(path) else local.real_path(path),
        read=lambda uri, skill, profile, limit: (
            remote.read(uri, skill, profile, limit) if is_remote(skill.path) else local.read(uri, skill, profile, limit)
        ),
        find_script=lambda skill_dir, script: local.find_script(folder(skill_dir), script),
        run=lambda skill_dir, *given, **named: local.run(folder(skill_dir), *given, **named),
        tree=lambda skill: remote.tree(skill) if is_remote(skill.path) else local.tree(skill),
        approvals=approvals,
    )


def search_shelf(shelf: ShelfProtocol, query: str, **options: Any) -> "SearchReport":
    """Search a shelf."""
    return shelf.search(query, **options)


def untrusted_roots(shelf: ShelfProtocol) -> list[str]:
    """Return the folders of skills that the user has not trusted."""
    from skillshelf.catalog.search_roots import resolve_roots

    found = resolve_roots(shelf.profile, shelf.environment, shelf.settings, trust=shelf.trust).roots
    return [root.path for root in found if not root.trusted]


def load_now(skill: CatalogSkill, profile: Profile, environment: Environment) -> LoadedSkill:
    """Load a skill from disk; one that is installed only if all of its files are those of its lock."""
    installed = _locked(skill.real_dir, environment, skill)
    return loader.load(skill, profile) if installed is None else loader.loaded_locked(skill, installed, profile)


def _locked(folder: str, environment: Environment, skill: CatalogSkill | None = None) -> "LockedFiles | None":
    """Return the files of an installed skill, checked; None for any other."""
    name, place = (skill.name, skill.dir) if skill is not None else (None, folder)
    if not may_be_locked(environment, (folder, place)):
        return None
    from skillshelf.catalog.locked_files import read_locked

    return read_locked(folder, environment, name=name, place=place)


def require_not_changed(wanted: str, environment: Environment) -> None:
    """Raise SkillChanged if a name or path that nobody finds is that of an installed skill whose files were changed."""
    folder = os.path.dirname(wanted) if os.path.basename(wanted) == loader.SKILL_FILE else wanted
    if not may_be_locked(environment, [environment.cwd]):
        return
    from skillshelf.catalog.locked_files import require_unchanged

    require_unchanged(os.path.basename(folder), environment)


def read_now(uri: str, skill: CatalogSkill, profile: Profile, limit: int, environment: Environment) -> Resource:
    """Read a file of a skill from disk."""

    def locked(one: CatalogSkill) -> "LockedFiles | None":
        return _locked(one.real_dir, environment, one)

    return read_resource(uri, [skill], profile, limit=limit, locked=locked)[1]


def find_script(skill_dir: str, script: str, environment: Environment) -> "Script":
    """Read a script from disk, with its digest."""
    from skillshelf.sandbox.run import find_script

    return find_script(skill_dir, script, locked=_locked(skill_dir, environment))


def _run(
    skill_dir: str,
    script: str,
    args: list[str],
    *,
    grants: tuple[Any, ...],
    environment: Environment,
    **named: Any,
) -> "Run":
    from skillshelf.sandbox.run import Grants, run_script

    locked = _locked(skill_dir, environment)
    return run_script(skill_dir, script, args, grants=Grants(*grants), locked=locked, **named)


def _artifact(path: str) -> dict[str, Any]:
    size, digest = files.measure(path)
    return {"path": path, "bytes": size, "digest": digest}


def tree_now(skill: CatalogSkill, environment: Environment) -> SkillTree:
    """Return the files of a skill as they are on disk; those of an installed one are those of its lock."""
    if (installed := _locked(skill.real_dir, environment, skill)) is not None:
        return installed.tree
    tree = skill_tree(skill.real_dir)
    if skill.real_path.removeprefix(f"{skill.real_dir}/") in tree.listed:
        return tree
    # Its SKILL.md may be a link to a file that the folder does not hold.
    version = f"{tree.version} {files.stamp_at(skill.real_path)}" if tree.version is not None else None
    return SkillTree(None, "link" if tree.digest else tree.problem, tree.files, tree.size, version)


def _approvals(environment: Environment, tool: str, skills: Sequence[CatalogSkill]) -> "Sequence[Approval]":
    from skillshelf.config.approvals import read_approvals

    found = [one for one in read_approvals(environment) if one.tool == tool]
    paths = {skill.real_path for skill in skills}
    trees = _trees_of_ours(environment, skills) if any(one.path is None for one in found) else ()
    return [one for one in found if one.path in paths or (one.path is None and one.tree in trees)]


def _trees_of_ours(environment: Environment, skills: Sequence[CatalogSkill]) -> set[str]:
    """Return the trees of those skills that lie in the store or are copies that we made."""
    from skillshelf.catalog.lock import Locks

    locks = Locks(environment)
    named = [(skill, skill.tree) for skill in skills if skill.tree is not None]
    return {tree for skill, tree in named if locks.is_ours(skill.real_dir, tree, skill.dir)}


def _remember(environment: Environment, answer: Answer) -> None:
    from skillshelf.config.approvals import add_approval

    skill = answer.skill
    is_from_source = skill.scope == "remote"
    # A skill of a live source has no place: the approval is for these files from that source.
    path, origin = (None, skill.source) if is_from_source else (skill.real_path, None)
    add_approval(environment, answer.tool, skill.name, path, answer.tree, origin=origin)
    if answer.rule is not None:
        from skillshelf.config.settings_edit import add_rule

        try:
            add_rule(environment, answer.rule.tool, answer.rule.skill_name)
        except SkillError as error:
            raise RuleNotWritten(str(error)) from None
