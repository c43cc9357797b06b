"""Decide where a link or copy of a skill goes, find the copies of a skill, and tell whether one is stale."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from skillshelf.catalog.build_context import ban_on
from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import parse
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.system_policy import SystemPolicy, host_refusal
from skillshelf.core import files
from skillshelf.core.environment import Environment, find_repository
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Root
from skillshelf.hosts.copy_contents import contents_at, files_at, is_as_made
from skillshelf.hosts.link_records import record_at
from skillshelf.hosts.survey import HostScan, SkillFile, Survey, is_broken
from skillshelf.hosts.verdict import ignores_safeguard

__all__ = [
    "CopyState",
    "Obstacle",
    "Placement",
    "copied_from",
    "copies_of",
    "copy_state",
    "is_own_copy",
    "leads_out",
    "link_name",
    "own_kind",
    "placement_for",
    "policy_refusal",
    "project_of",
    "readers_ignoring_safeguard",
    "real_root",
    "source_of",
    "sources",
    "why_copy",
    "why_not_copied",
]


# What skillshelf made -----------------------------------------------------------------------------


def own_kind(path: str, environment: Environment) -> Literal["link", "copy"] | None:
    """Return the kind of a link or copy made by skillshelf; None for anything else, and for a redirected link."""
    kind = files.kind_at(path)
    if kind not in ("link", "folder") or (record := record_at(path, environment)) is None:
        return None
    if kind == "link":
        return "link" if record.how == "link" and record.target == files.link_target(path) else None
    return "copy" if record.how == "copy" else None


def is_own_copy(skill_file: SkillFile, environment: Environment) -> bool:
    """Return true if a skill lies in a copy that skillshelf made; it may have been modified since."""
    return own_kind(os.path.dirname(skill_file.path), environment) == "copy"


def copied_from(path: str, environment: Environment) -> str | None:
    """Return the folder that a copy made by skillshelf comes from, or None if its record does not say."""
    record = record_at(path, environment)
    return record.source if record is not None else None


# Where a link or copy goes ------------------------------------------------------------------------


class Placement(NamedTuple):
    """A link or copy of a skill in a root; `label` is the root's path relative to the project or home folder."""

    root: str
    name: str
    how: Literal["link", "copy"]
    label: str

    @property
    def path(self) -> str:
        """The path of the link or copy."""
        return f"{self.root}/{self.name}"


class Obstacle(NamedTuple):
    """Why there is no place for a link or copy, and what to do first; both are empty if the host has no root for it."""

    reason: str = ""
    step: str = ""

    @property
    def what(self) -> str:
        """The reason and the step in one text."""
        return f"{self.reason}: {self.step}" if self.reason else ""


_LONGEST_NAME = 200
"""The bytes of a declared name that can be a folder, and leave room for the ends of temporary names."""


def link_name(skill_file: SkillFile) -> str:
    """Return the name that a link or copy gets: the declared one if it can be a folder, else that of the folder."""
    declared = skill_file.declared
    plain = declared.replace("-", "").replace("_", "").replace(".", "").isalnum()
    is_short = len(declared.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME
    return declared if plain and is_short and not declared.startswith(".") else skill_file.folder


def placement_for(skill_file: SkillFile, host: HostScan, survey: Survey) -> Placement | Obstacle:
    """Return the best place for a link or copy that a host reads, or why there is none.

    Preferred are the folder beside the skill, then one that no host reads that would ignore the author's safeguard,
    then the one that most hosts read.
    """
    roots = _roots_beside(skill_file, host, survey.environment)
    inside = [root for root in roots if not leads_out(root, survey.environment)]
    if roots and not inside:
        real = real_root(roots[0].path, roots[0].label)
        return Obstacle(f"{survey.short(roots[0].path)} is behind a link out of this project, to {real}", _MOVE)
    not_copied = why_not_copied(skill_file, survey)
    usable = [root for root in inside if not not_copied.reason or _how(skill_file, root, host.profile) == "link"]
    if inside and not usable:
        return not_copied
    ignoring = Counter(label for one in _hosts_ignoring_safeguard(skill_file) for label in _labels(one))
    readers = Counter(
        label for one in HOSTS.values() for rule in one.roots for label in dict.fromkeys(rule.paths)
    )  # A link goes where it serves the most hosts.
    for root in sorted(
        usable, key=lambda root: (root.base != skill_file.base, ignoring[root.label], -readers[root.label])
    ):
        placement = Placement(root.path, link_name(skill_file), _how(skill_file, root, host.profile), root.label)
        if _is_free(placement, skill_file, survey.environment):
            return placement
    if not usable:
        return Obstacle()
    path = f"{usable[0].path}/{link_name(skill_file)}"
    return Obstacle(f"{survey.short(path)} is {_description(path, survey)}", _MOVE)


_MOVE = "move it away"


def why_not_copied(skill_file: SkillFile, survey: Survey) -> Obstacle:
    """Return why a skill of the project is not copied: a link in it leads to a file that is none of its project.

    A repository that was cloned could otherwise have any file of the user's copied into itself. What is below a root
    that some host reads is a skill anyway.
    """
    real_path, environment = skill_file.real_path, survey.environment
    if skill_file.kind != "project" or real_path in skill_file.paths:
        return Obstacle()
    own = [root for root in survey.roots if root.kind == "user" and root.real_path]
    is_own = any(path.startswith(f"{root.path}/") for root in own for path in skill_file.paths)
    folders = (project_of(environment), *(root.real_path or "" for root in own))
    if is_own or any(files.is_inside(real_path, folder) for folder in folders):
        return Obstacle()
    reason = f"{survey.short(skill_file.path)} is behind a link out of this project, to {real_path}, and is not copied"
    return Obstacle(reason, "replace the link with the file itself")


def _roots_beside(skill_file: SkillFile, host: HostScan, environment: Environment) -> list[Root]:
    """Return the usable roots of the skill's kind: beside the skill, in the working directory or at home."""
    bases = (skill_file.base, environment.cwd)
    return [
        root
        for root in host.roots
        if root.kind == skill_file.kind and not root.switched_off and not is_broken(root)
        # A variable may have moved a folder of the user's; a plugin is not a place to add skills to.
        if root.base in bases or (root.kind == "user" and not root.label.startswith("/"))
        if root.label in _labels(host.profile)
    ]


def leads_out(root: Root, environment: Environment) -> bool:
    """Return true if a link leads from a root of the project out of it, where nothing may be written."""
    real = real_root(root.path, root.label) if root.kind == "project" else ""
    return real != "" and not files.is_inside(real, project_of(environment))


def real_root(path: str, label: str) -> str:
    """Return the real path of a root that is reached through a link below its base, else an empty string."""
    real = files.real_path(path)
    base = files.real_path(path.removesuffix(f"/{label}"))
    return real if real != f"{base.rstrip('/')}/{label}" else ""


def project_of(environment: Environment) -> str:
    """Return the repository around the working directory, or that directory if there is none."""
    here = files.real_path(environment.cwd)
    return find_repository(here, find_profile(DEFAULT_PROFILE).markers) or here


def _how(skill_file: SkillFile, root: Root, profile: Profile) -> Literal["link", "copy"]:
    """Return "copy" if the host may not follow a link, or if a link to the folder would end at another link."""
    needs_copy = root.links == "never" or "links" in profile.unknown or _is_linked_file(skill_file)
    return "copy" if needs_copy else "link"


def _is_linked_file(skill_file: SkillFile) -> bool:
    return os.path.basename(skill_file.real_path) != skill_file.file_name


def why_copy(skill_file: SkillFile, profile: Profile) -> str:
    """Explain why a host gets a copy instead of a link."""
    if "links" in profile.unknown:
        return f"because it is not known whether {profile.name} follows links"
    return "because SKILL.md is a link" if _is_linked_file(skill_file) else f"because {profile.name} follows no links"


def _is_free(placement: Placement, skill_file: SkillFile, environment: Environment) -> bool:
    """Return true if nothing is there, or a link made by skillshelf that does not serve the host."""
    if files.kind_at(placement.path) is None:
        return True
    leads_here = files.real_path(placement.path) == os.path.dirname(skill_file.real_path)
    return own_kind(placement.path, environment) == "link" and (placement.how == "copy" or not leads_here)


def _description(path: str, survey: Survey) -> str:
    """Describe what occupies a path."""
    kind = files.kind_at(path)
    if own_kind(path, survey.environment) == "copy":
        source = copied_from(path, survey.environment)
        return "a copy made by skillshelf" + (f" from {survey.short(source)}" if source else "")
    if kind == "link":
        return f"a link that skillshelf did not make, to {files.link_target(path)}"
    if kind != "folder":
        return f"a {kind}, not a folder"
    is_skill = files.kind_at(f"{path}/{SKILL_FILE}") is not None
    return "another skill" if is_skill else f"a folder without a {SKILL_FILE}"


def readers_ignoring_safeguard(placement: Placement, skill_file: SkillFile) -> list[str]:
    """Return the hosts that read the folder and would show their model a skill that its author keeps from models."""
    return [host.name for host in _hosts_ignoring_safeguard(skill_file) if placement.label in _labels(host)]


def _labels(host: Profile) -> set[str]:
    return {label for rule in host.roots for label in rule.paths}


def _hosts_ignoring_safeguard(skill_file: SkillFile) -> list[Profile]:
    fields = parse(skill_file.head, whole=len(skill_file.head) >= skill_file.size).fields
    return [host for host in HOSTS.values() if ignores_safeguard(fields, host)]


# Copies -------------------------------------------------------------------------------------------

CopyState = Literal["current", "stale", "modified"]
"""A copy is `stale` if only the skill changed since it was made, `modified` if the copy itself did."""


def copies_of(skill_file: SkillFile, survey: Survey) -> list[SkillFile]:
    """Return the copies that `link` made of a skill."""
    name = link_name(skill_file)
    alike = survey.names.named(name)
    others = [one for one in alike if one is not skill_file and name in (one.folder, link_name(one))]
    return [other for other in others if source_of(other, survey) is skill_file]


def source_of(skill_file: SkillFile, survey: Survey) -> SkillFile | None:
    """Return the skill that a copy made by skillshelf comes from; None for other files, and if that skill is gone."""
    environment = survey.environment
    if not is_own_copy(skill_file, environment):
        return None
    source = copied_from(os.path.dirname(skill_file.path), environment)
    found = survey.by_path.get(f"{source}/{SKILL_FILE}") if source else None
    if found is not None and found is not skill_file:
        return found
    # The skill may have been moved, and early manifests do not name the source.
    named = survey.names.named(skill_file.folder)
    alike = [one for one in named if link_name(one) == skill_file.folder and not one.problem]
    own = [one for one in alike if not is_own_copy(one, environment)]
    others = [one for one in own if source is None or one.text == skill_file.text]
    return others[0] if len(others) == 1 else None


def sources(found: Sequence[SkillFile], survey: Survey) -> list[SkillFile]:
    """Replace copies made by `link` by their sources, and drop files that cannot be read if others can."""
    meant = {one.real_path: one for one in ((source_of(one, survey) or one) for one in found)}
    own = [one for one in meant.values() if not one.problem and not is_own_copy(one, survey.environment)]
    return own or list(meant.values())


def copy_state(copy: SkillFile, source: SkillFile, environment: Environment) -> CopyState:
    """Compare a copy with the skill it was made from."""
    folder = os.path.dirname(copy.path)
    contents = contents_at(folder, copy.real_path)
    if contents is not None and contents.files == files_at(os.path.dirname(source.path), source.real_path):
        return "current"
    record = record_at(folder, environment)
    # A copy that we make holds no link: one that is there was put there.
    is_same = contents is not None and not contents.left_out and record is not None and is_as_made(contents, record)
    return "stale" if is_same else "modified"


def policy_refusal(skill_file: SkillFile, host: str | None, system: SystemPolicy) -> str | None:
    """Return why the system policy lets nobody give a skill to a host; None if it does not forbid that."""
    if system.problem:
        return f"the system policy cannot be used: {system.problem}"
    if host is not None and (by := host_refusal(system, host)):
        return f"the system policy does not allow this host ({by})"
    name, real_path = link_name(skill_file), skill_file.real_path
    for path in skill_file.paths:
        if by := ban_on(system, name, path, real_path, os.path.dirname(real_path), declared=skill_file.declared):
            return f"the system policy forbids this skill ({by})"
    return None
