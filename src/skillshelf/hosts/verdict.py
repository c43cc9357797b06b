"""Verdict types: the closed list of verdicts, and the case of one file and one host that leads to one."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from skillshelf.catalog.build_context import is_set
from skillshelf.catalog.document import ParsedFrontmatter
from skillshelf.config.profile import Profile
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import is_true
from skillshelf.core.values import Root, VerdictName
from skillshelf.hosts.survey import HostState, SkillFile, Survey

__all__ = [
    "SAFEGUARD",
    "VERDICTS",
    "VISIBLE",
    "FileOnHost",
    "StageVerdict",
    "Verdict",
    "document_of",
    "ignores_safeguard",
    "own_root",
]

MessageGroup = Literal["place", "link", "invalid", "collision", "trust", "budget", "none"]

VERDICTS: Mapping[VerdictName, tuple[MessageGroup, str]] = {
    "visible": ("none", "the model sees it"),
    "root-not-read": ("place", "it is not in a folder that this host reads"),
    "outside-boundary": ("place", "the host reads folders of this name, but not from this working directory"),
    "too-deep": ("place", "it is more levels below the root than this host searches"),
    "limit-hit": ("place", "the host stops its search before it, after a maximum number of folders"),
    "hidden-dir": ("place", "a folder on its path starts with a dot"),
    "ignored": ("place", "the host does not search that folder"),
    "dir-link-skipped": ("link", "the folder is a link, and this host follows none"),
    "file-link-skipped": ("link", "SKILL.md is a link, and this host reads only regular files"),
    "wrong-file-name": ("place", "the file is not named SKILL.md"),
    "no-fence": ("invalid", "the frontmatter does not start or end as this host requires"),
    "bom": ("invalid", "the file starts with a byte order mark"),
    "yaml-error": ("invalid", "the frontmatter is not valid YAML for this host"),
    "repaired": ("none", "visible; the host repairs or ignores a mistake"),
    "missing-name": ("invalid", "this host requires a name"),
    "missing-description": ("invalid", "this host requires a description"),
    "wrong-type": ("invalid", "a value, or the file, does not have the type or size that this host requires"),
    "name-rejected": ("invalid", "this host does not accept the name"),
    "name-from-folder": ("none", "visible, under the name of its folder"),
    "renamed-by-plugin": ("none", "visible, with the name of a plugin as a prefix"),
    "description-cut": ("none", "visible, with a shortened description or none"),
    "shadowed-by": ("collision", "another skill has the name and wins"),
    "shadows": ("none", "visible; it hides another skill of the same name"),
    "ambiguous": ("none", "visible, but several skills have the name"),
    "disabled-by-config": ("place", "a setting of the host turns it off"),
    "untrusted": ("trust", "the host does not trust this folder yet"),
    "hidden-from-model": ("none", "loaded, but the model does not see it"),
    "changed": ("none", "visible, but its files are not those that its lock names; skillshelf does not hand it out"),
    "over-budget": ("budget", "the list of the host is full before it"),
    "unknown": ("none", "there is no evidence, or the behaviour of the host is not deterministic"),
}
"""Every verdict with the group of messages it belongs to, which decides whether the host warns, and its meaning."""

VISIBLE: frozenset[VerdictName] = frozenset(
    {
        *("visible", "repaired", "name-from-folder", "renamed-by-plugin"),
        *("description-cut", "shadows", "ambiguous", "changed"),
    }
)


class Verdict(NamedTuple):
    """The verdict of one host on one file.

    `warns` is true if the host itself would tell its user, `at` the path that was judged, `rule` the rule of skillshelf
    that found the problem.
    """

    host: str
    visible: bool | None
    verdict: VerdictName
    detail: str
    warns: bool | None
    at: str
    rule: str = ""
    line: int | None = None


class FileOnHost(NamedTuple):
    """One file and one host."""

    skill_file: SkillFile
    state: HostState
    survey: Survey

    @property
    def profile(self) -> Profile:
        """The rules of the host."""
        return self.state.profile


class StageVerdict(NamedTuple):
    """A verdict without the answer to whether the host warns its user."""

    verdict: VerdictName
    detail: str = ""
    at: str = ""
    rule: str = ""
    line: int | None = None


def own_root(path: str, roots: Sequence[Root]) -> Root | None:
    """Return the nearest root above a path."""
    inside = [root for root in roots if path.startswith(root.path + "/")]
    return max(inside, key=lambda root: len(root.path), default=None)


def document_of(skill_file: SkillFile, profile: Profile, survey: Survey) -> ParsedFrontmatter:
    """Parse a file as this profile does; the survey keeps the result."""
    return survey.scan.facts.document(skill_file.candidate(), profile)


SAFEGUARD = "disable-model-invocation"


def ignores_safeguard(fields: Mapping[str, Any], profile: Profile) -> bool:
    """Return true if the author keeps a skill from models and this host ignores that, or the spelling of it."""
    value = fields.get(SAFEGUARD)
    return is_true(value) and not (SAFEGUARD in profile.hides_on and is_set(value, profile))
