"""One file and one host to a question, and the closed list of answers."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from skillshelf.catalog.document import Document, parse_options
from skillshelf.catalog.parse import read_document
from skillshelf.config.profile import Profile
from skillshelf.core.console import PathDisplay
from skillshelf.core.text import is_true
from skillshelf.core.values import Candidate, Root, VerdictName
from skillshelf.hosts.survey import HostState, SkillFile, Survey

__all__ = [
    "SAFEGUARD",
    "SEEN",
    "VERDICTS",
    "Case",
    "Outcome",
    "document_of",
    "ignored_safeguard",
    "own_root",
    "shown_path",
]

Group = Literal["place", "link", "invalid", "collision", "trust", "budget", "none"]

VERDICTS: Mapping[VerdictName, tuple[Group, str]] = {
    "visible": ("none", "the model is told of it"),
    "root-not-read": ("place", "it lies in no folder that this host reads"),
    "outside-boundary": ("place", "the folder would count, but not from this working directory"),
    "too-deep": ("place", "more folders lie between the root and the skill than this host goes down"),
    "limit-hit": ("place", "the host stops before it, after so many folders"),
    "hidden-dir": ("place", "a folder on the way begins with a dot"),
    "ignored": ("place", "the host does not look into that folder"),
    "dir-link-skipped": ("link", "the folder is a link, and this host follows none"),
    "file-link-skipped": ("link", "SKILL.md is a link, and this host reads only real files"),
    "wrong-file-name": ("place", "the file is not called SKILL.md"),
    "no-fence": ("invalid", "the frontmatter does not begin or end as this host wants it"),
    "bom": ("invalid", "a byte order mark stands before the frontmatter"),
    "yaml-error": ("invalid", "the frontmatter is not YAML to this host"),
    "repaired": ("none", "visible: the host repairs or overlooks a mistake"),
    "missing-name": ("invalid", "this host wants a name"),
    "missing-description": ("invalid", "this host wants a description"),
    "wrong-type": ("invalid", "a value, or the file, is not of the type or size this host wants"),
    "name-rejected": ("invalid", "this host does not accept the name"),
    "name-from-folder": ("none", "visible, under the name of its folder"),
    "renamed-by-plugin": ("none", "visible, with the name of a plugin before its own"),
    "description-cut": ("none", "visible, with a part of its description"),
    "shadowed-by": ("collision", "another skill has the name"),
    "shadows": ("none", "visible; it takes the name from another skill"),
    "ambiguous": ("none", "visible, but the name alone does not say which one is meant"),
    "disabled-by-config": ("place", "a setting of the host is off"),
    "untrusted": ("trust", "the host does not trust this folder yet"),
    "hidden-from-model": ("none", "loaded, but the model is not told"),
    "over-budget": ("budget", "the host's list is full before it"),
    "unknown": ("none", "no evidence settles it, or the host itself has no fixed answer"),
}
"""The closed list: what group of messages a verdict belongs to, and what it says."""

SEEN: frozenset[VerdictName] = frozenset(
    {"visible", "repaired", "name-from-folder", "renamed-by-plugin", "description-cut", "shadows", "ambiguous"}
)


class Case(NamedTuple):
    """One file, one host."""

    skill_file: SkillFile
    state: HostState
    survey: Survey

    @property
    def profile(self) -> Profile:
        """The host's rules."""
        return self.state.profile


class Outcome(NamedTuple):
    """A verdict before it is known what the host would say about it."""

    verdict: VerdictName
    detail: str = ""
    at: str = ""
    rule: str = ""
    line: int | None = None


def own_root(path: str, roots: Sequence[Root]) -> Root | None:
    """The root of a host that a path lies below: the nearest."""
    inside = [root for root in roots if path.startswith(root.path + "/")]
    return max(inside, key=lambda root: len(root.path), default=None)


def document_of(skill_file: SkillFile, profile: Profile, survey: Survey) -> Document:
    """The file as this profile takes it apart."""
    known: Document | None = survey.documents.get((skill_file.real_path, parse_options(profile)))
    if known is not None:
        return known
    folder = os.path.dirname(skill_file.real_path)
    stamp = (0, 0, skill_file.size, 0, 0)
    candidate = Candidate(0, skill_file.path, skill_file.real_path, folder, skill_file.head, stamp)
    return read_document(candidate, profile, survey.documents)


SAFEGUARD = "disable-model-invocation"


def ignored_safeguard(fields: Mapping[str, Any], profile: Profile) -> bool:
    """Whether an author keeps a skill from models and this host does not."""
    return SAFEGUARD not in profile.hides_on and is_true(fields.get(SAFEGUARD))


def shown_path(path: str, case: Case) -> str:
    """A path as people are shown it: from here, from home, or whole."""
    environment = case.survey.environment
    return PathDisplay(environment.cwd, environment.home).short(path)
