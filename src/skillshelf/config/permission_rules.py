"""Permission rules: parse them, and decide whether one is about a skill.

All members of a rule must match. What denies is wide, so that no spelling gets around it: names are folded, patterns
count, and every path of a skill does. What allows is narrow: the exact name, and both real paths below the folder.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from skillshelf.core import files
from skillshelf.core.environment import Environment, expand
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import folded_name, holds_back, is_name, matches_folded_glob
from skillshelf.errors import SkillError

__all__ = [
    "LOAD_TOOLS",
    "InvalidRule",
    "PermissionRule",
    "RuleSubject",
    "allows",
    "denies",
    "denies_name",
    "expanded",
    "is_kebab_case",
    "parse_rule",
    "rule_to_dict",
]

LOAD_TOOLS = ("skill_load", "activate_skill", "Skill")
"""The names that mean a load, in every profile."""


class PermissionRule(NamedTuple):
    """One entry of `permissions.allow` or `permissions.deny`.

    `path` is a folder: the rule is about the skills below it. `tree` is the digest of all files of a skill. `within` is
    set for a rule of an untrusted project, never by a file: the folder whose untrusted skills are all that it reaches.
    `system` is set for a rule of the system policy: its file and key.
    """

    tool: str
    skill_name: str | None = None
    path: str | None = None
    tree: str | None = None
    within: str | None = None
    system: str | None = None

    @property
    def names_thing(self) -> bool:
        """True if the rule names a place or files, which nobody else can take as one takes a name."""
        return self.path is not None or self.tree is not None

    @property
    def names_skill(self) -> bool:
        """True if the rule is about some skills and not about all of them."""
        return self.skill_name is not None or self.names_thing or self.within is not None


class RuleSubject(NamedTuple):
    """The skill that a rule is compared with.

    `path` is where it was found, the others are real. `tree` reads its files and returns their digest, or None if they
    have none; it raises SkillError if they cannot be read. `declared` is the name in the file, whatever a profile makes
    of it.
    """

    name: str
    path: str
    real_path: str
    real_dir: str
    trusted: bool
    tree: Callable[[], str | None]
    declared: object = None


# Matching -----------------------------------------------------------------------------------------


def denies(rule: PermissionRule, tools: Iterable[str], subject: RuleSubject | None) -> bool:
    """Return True if a rule denies one of these names of a tool for a skill; None is a call without a skill."""
    if folded_name(rule.tool) not in map(folded_name, tools):
        return False
    if subject is None or not rule.names_skill:
        return not rule.names_skill
    if rule.within is not None and (subject.trusted or not files.is_inside(subject.real_path, rule.within)):
        return False
    if rule.skill_name is not None and not any(denies_name(rule.skill_name, name) for name in _names(rule, subject)):
        return False
    if rule.path is not None and not _is_denied_place(subject, rule.path, same=rule.system is not None):
        return False
    try:
        return rule.tree is None or subject.tree() == rule.tree
    except SkillError:
        # Files that cannot be read may be those that the rule denies.
        return True


def _names(rule: PermissionRule, subject: RuleSubject) -> Collection[str]:
    """Return the names that a rule is compared with: for the system policy also those that other profiles see."""
    if rule.system is None:
        return (subject.name,)
    folders = (os.path.basename(os.path.dirname(subject.path)), os.path.basename(subject.real_dir))
    return {subject.name, *folders, *((subject.declared,) if isinstance(subject.declared, str) else ())}


def denies_name(denied: str, name: str) -> bool:
    """Return True if the name in a rule that denies means a skill."""
    return holds_back(denied, name) or matches_folded_glob(name, denied)


def _is_denied_place(subject: RuleSubject, folder: str, *, same: bool) -> bool:
    """Return True if a skill lies in a folder; with `same` also by a second name for the same file or folder."""
    folders = {folder, files.real_path(folder)}
    return (same and _is_same_thing(subject, folder)) or any(
        files.is_inside(path, place)
        for path in (subject.path, subject.real_path, subject.real_dir)
        for place in folders
    )


def _is_same_thing(subject: RuleSubject, folder: str) -> bool:
    """Return True if a skill is in a folder by another mount, or its SKILL.md is a hard link to the one there."""
    place = files.identity_at(folder)
    if place is None:
        return False
    above = [subject.real_dir]
    while above[-1] not in ("/", ""):
        above.append(above[-1].rpartition("/")[0] or "/")
    if place in map(files.identity_at, above):
        return True
    file = files.identity_at(f"{folder}/SKILL.md")
    return file is not None and file == files.identity_at(subject.real_path)


def allows(rule: PermissionRule, tools: Collection[str], subject: RuleSubject | None) -> bool:
    """Return True if a rule allows one of these names of a tool for a skill; None is a call without a skill.

    Anybody can take a name, so a rule that names no place and no files counts for trusted skills only.
    """
    if rule.tool not in tools:
        return False
    if subject is None:
        return not rule.names_skill
    if not (subject.trusted or rule.names_thing) or rule.skill_name not in (None, subject.name):
        return False
    if rule.path is not None:
        place = files.real_path(rule.path)
        # A SKILL.md may be a link out of its folder: neither it nor the scripts beside it may lie elsewhere.
        if not (files.is_inside(subject.real_path, place) and files.is_inside(subject.real_dir, place)):
            return False
    try:
        return rule.tree is None or subject.tree() == rule.tree
    except SkillError:
        return False


# Parsing ------------------------------------------------------------------------------------------


class InvalidRule(ValueError):
    """An invalid permission rule; the message ends a sentence about the list that holds it."""


_KEBAB = lazy_pattern(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = lazy_pattern(r"[A-Za-z_][\w.:-]*")
_TREE = lazy_pattern(r"sha256:[0-9a-f]{64}")
_MEMBERS = ("tool", "skill_name", "path", "tree")
_RULE = '{ tool = "...", skill_name = "...", path = "...", tree = "..." }'
_OWN_TOOLS = ("skill_search", "skill_load", "skill_read", "skill_run", "skill_override", "Skill", "activate_skill")


def is_kebab_case(name: str) -> bool:
    """Return True for lower-case letters and digits, with single hyphens between them."""
    return _KEBAB.fullmatch(name) is not None


def parse_rule(entry: Any) -> PermissionRule:
    """Return the permission rule in a mapping; a rule that is half understood could allow everything, so it raises."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("tool"), str) or not entry["tool"]:
        raise InvalidRule(f"holds {entry!r}; a rule is {_RULE}, all but the tool optional")
    if extra := sorted(str(member) for member in entry if member not in _MEMBERS):
        raise InvalidRule(f"holds a rule with {', '.join(extra)}; a rule has {', '.join(_MEMBERS)} only")
    tool, name, path, tree = entry["tool"], entry.get("skill_name"), entry.get("path"), entry.get("tree")
    if not _TOOL.fullmatch(tool):
        raise InvalidRule(f"holds tool {tool!r}; a rule names one tool, without patterns")
    # A rule with a misspelt tool would never apply.
    known = folded_name(tool)
    if tool not in _OWN_TOOLS and (known.startswith("skill") or known in _OWN_TOOLS):
        raise InvalidRule(f"holds tool {tool!r}; those for skills are {', '.join(_OWN_TOOLS)}")
    # Dropping an invalid member would turn the rule into one for every skill.
    if name is not None and not (isinstance(name, str) and is_name(name)):
        raise InvalidRule(f"holds skill_name {name!r}; a name is a text on one line, without slashes")
    if path is not None and not (isinstance(path, str) and path.strip() and "\0" not in path):
        raise InvalidRule(f"holds path {path!r}; it must be a folder")
    if tree is not None and not (isinstance(tree, str) and _TREE.fullmatch(tree)):
        raise InvalidRule(f"holds tree {tree!r}; it must be `sha256:` and 64 hexadecimal digits")
    return PermissionRule(tool, name, path, tree)


def expanded(rule: PermissionRule, environment: Environment, *, base: str) -> PermissionRule:
    """Return the rule with an absolute path: `~` is the home folder, a relative path starts from the base."""
    if rule.path is None:
        return rule
    return rule._replace(path=expand(rule.path, environment, base=base).removesuffix("/SKILL.md") or "/")


def rule_to_dict(rule: PermissionRule) -> dict[str, str]:
    """Return the members that a rule has, as a configuration file writes them."""
    return {member: value for member, value in rule._asdict().items() if value is not None}
