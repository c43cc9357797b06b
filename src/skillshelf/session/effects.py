"""Effects: everything a session does outside itself, behind one value that replay replaces.

A session loads skills, reads files, runs scripts and remembers answers only through its `Effects`. Replay passes
effects that run nothing and write nothing.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.catalog import load as loader
from skillshelf.catalog.load import LoadedSkill, Resource, read_resource
from skillshelf.catalog.tree import SkillTree, skill_tree
from skillshelf.config.profile import Profile
from skillshelf.config.settings import PermissionRule
from skillshelf.core import files
from skillshelf.core.environment import Environment
from skillshelf.core.values import CatalogSkill

if TYPE_CHECKING:
    from skillshelf.config.approvals import Approval
    from skillshelf.sandbox.run import Run, Script

__all__ = ["Answer", "Effects", "find_script", "read_now", "real_effects"]


class Answer(NamedTuple):
    """What a person said yes to for good: a tool, a skill and its tree; `rule` is written besides, if there is one."""

    tool: str
    skill: CatalogSkill
    tree: str
    rule: PermissionRule | None


class Effects(NamedTuple):
    """The functions by which a session reaches the machine."""

    load: Callable[[CatalogSkill, Profile], LoadedSkill]
    read: Callable[[str, CatalogSkill, Profile, int], Resource]
    find_script: "Callable[[str, str], Script]"
    run: "Callable[..., Run]"
    artifact: Callable[[str], dict[str, Any]]
    tree: Callable[[CatalogSkill], SkillTree]
    approvals: "Callable[[Environment, str, CatalogSkill], Sequence[Approval]]"
    remember: Callable[[Environment, Answer], None]


def real_effects() -> Effects:
    """Return the effects that use the disk and the sandbox of this machine."""
    return Effects(loader.load, read_now, find_script, _run, _artifact, _tree, _approvals, _remember)


def read_now(uri: str, skill: CatalogSkill, profile: Profile, limit: int) -> Resource:
    """Read a file of a skill from disk."""
    return read_resource(uri, [skill], profile, limit=limit)[1]


def find_script(skill_dir: str, script: str) -> "Script":
    """Read a script from disk, with its digest."""
    from skillshelf.sandbox.run import find_script

    return find_script(skill_dir, script)


def _run(skill_dir: str, script: str, args: list[str], *, grants: tuple[Any, ...], **named: Any) -> "Run":
    from skillshelf.sandbox.run import Grants, run_script

    return run_script(skill_dir, script, args, grants=Grants(*grants), **named)


def _artifact(path: str) -> dict[str, Any]:
    size, digest = files.measure(path)
    return {"path": path, "bytes": size, "digest": digest}


def _tree(skill: CatalogSkill) -> SkillTree:
    return skill_tree(skill.real_dir)


def _approvals(environment: Environment, tool: str, skill: CatalogSkill) -> "Sequence[Approval]":
    from skillshelf.config.approvals import read_approvals

    return [one for one in read_approvals(environment) if (one.tool, one.path) == (tool, skill.real_path)]


def _remember(environment: Environment, answer: Answer) -> None:
    from skillshelf.config.approvals import add_approval

    add_approval(environment, answer.tool, answer.skill.name, answer.skill.real_path, answer.tree)
    if answer.rule is not None:
        from skillshelf.config.settings_edit import add_rule

        add_rule(environment, answer.rule.tool, answer.rule.skill_name)
