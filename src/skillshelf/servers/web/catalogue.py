"""What the pages show: the catalogue that whoever serves them provides, and the values it gives.

Two catalogues exist: the skills of this machine (`local.LocalCatalogue`), and those of a team server. A catalogue
answers for one reader, so it holds only what that reader may see. Its values are plain texts and numbers, ready to be
shown: no text has an absolute path, a home folder or the name of an account. Templates escape every text, so a
catalogue never does.

Skills are named by a slug, which is the last part of their address: the name where that is a plain word, else an
encoding of it (`slug_of`). It is unique in a catalogue.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, Protocol

from skillshelf.catalog.load import SKILL_FILE
from skillshelf.core.records import NamedTuple
from skillshelf.search.query import places

__all__ = [
    "Catalogue",
    "CommandHint",
    "DiffLines",
    "FileBytes",
    "FileEntry",
    "HostAnswer",
    "HostSummary",
    "Preparation",
    "ProblemEntry",
    "ProblemGroup",
    "SearchAnswer",
    "SearchHit",
    "SessionStory",
    "SessionSummary",
    "SkillDetail",
    "SkillDiff",
    "SkillSummary",
    "SkillVersion",
    "StoryLine",
    "TextPart",
    "UsageReport",
    "WhyCandidate",
    "file_order",
    "findings_group",
    "matched_beginning",
    "matched_parts",
    "slug_of",
    "slugs_of",
]


class Preparation(NamedTuple):
    """Work that a page waits for: what it is in words, and how far it is; `total` is 0 while that is not known."""

    what: str
    done: int = 0
    total: int = 0


class CommandHint(NamedTuple):
    """A command to copy, and what it does; the pages themselves change nothing."""

    command: str
    meaning: str


class SkillSummary(NamedTuple):
    """One skill in a list.

    `place` is the folder or the server it is in, in words. `hosts` says of each host whether it sees the skill, None if
    that is not known; a catalogue without hosts leaves it empty. `version` is that of an installed or released skill.
    """

    slug: str
    name: str
    description: str
    place: str
    hosts: Mapping[str, bool | None] = {}
    errors: int = 0
    warnings: int = 0
    version: str = ""
    labels: tuple[str, ...] = ()
    """Short words about it, such as `changed`, `2 copies` or `approved`."""
    declared: str = ""
    """The name in its frontmatter, where that is another one: journals use it."""


class TextPart(NamedTuple):
    """A part of a text, and whether it matches the words of a search."""

    text: str
    matches: bool


class SearchHit(NamedTuple):
    """A skill that a search found: its name, description and best line with the matches in them, and why it is here."""

    skill: SkillSummary
    name: tuple[TextPart, ...]
    description: tuple[TextPart, ...]
    excerpt: tuple[TextPart, ...]
    score: float
    why: tuple[str, ...] = ()


class SearchAnswer(NamedTuple):
    """The answer to a query, best first; while `preparing` is set there is none yet.

    `notes` say how the query was changed or that nothing clearly fits; `near` are names that may have been meant.
    """

    query: str
    hits: tuple[SearchHit, ...] = ()
    truncated: bool = False
    notes: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    searched: int = 0
    preparing: Preparation | None = None


_UNADDRESSED = re.compile("[\n\r\ud800-\udfff]")


class FileEntry(NamedTuple):
    """A file of a skill: its path in the skill, its size in bytes, and whether it may be executed."""

    path: str
    size: int
    executable: bool = False

    @property
    def has_address(self) -> bool:
        """Whether its path can be a part of an address: a line break and a byte that is not UTF-8 cannot."""
        return not _UNADDRESSED.search(self.path)


def file_order(path: str) -> tuple[bool, bool, str]:
    """Return the key by which the files of a skill are sorted: SKILL.md, those beside it, those in folders."""
    return path != SKILL_FILE, "/" in path, path


class FileBytes(NamedTuple):
    """The bytes of one file of a skill; of one with more than are shown only their number, in `too_large`."""

    path: str
    data: bytes
    too_large: int | None = None


class SkillVersion(NamedTuple):
    """A version of a skill that can be compared: its key in addresses, what it is in words, and its tree.

    `current` marks the one that is in use; `details` are pairs of a word and a value, such as `approved` and a date.
    """

    key: str
    label: str
    tree: str
    when: str = ""
    current: bool = False
    details: tuple[tuple[str, str], ...] = ()


class DiffLines(NamedTuple):
    """One file that differs between two versions; the lines are those of a unified diff.

    `left_out` says in words what is not among them; it is empty if nothing is missing.
    """

    path: str
    state: str
    lines: tuple[str, ...]
    left_out: str = ""


class SkillDiff(NamedTuple):
    """How one version becomes another; `remarks` name what deserves a second look.

    `command` shows the same in a terminal; it is empty if none does.
    """

    before: SkillVersion
    after: SkillVersion
    files: tuple[DiffLines, ...]
    remarks: tuple[str, ...] = ()
    command: str = ""


class HostAnswer(NamedTuple):
    """The verdict of a host on a file, as `why --json` gives it; `meaning` says the verdict in words."""

    host: str
    visible: bool | None
    verdict: str
    detail: str
    told: bool | None
    fix: str | None
    as_of: str
    grade: str
    meaning: str = ""


class WhyCandidate(NamedTuple):
    """One file that the name of a skill means, and what every host makes of it."""

    place: str
    answers: tuple[HostAnswer, ...]
    note: str = ""
    hidden: str = ""


class HostSummary(NamedTuple):
    """What one host sees, and what its list of skills costs; `budget` is None if it has none."""

    host: str
    seen: int
    missing: int
    unknown: int
    tokens: int
    chars: int
    budget: int | None
    cut: int
    dropped: int
    grade: str
    as_of: str


class ProblemEntry(NamedTuple):
    """One problem: its severity, what it is about, the rule and the message, and the command that helps.

    `slug` is empty if it is not about one skill. `where` is a file and line, as far as they are known. `other` is the
    name and the slug of a second skill that it is about; the message ends before that name.
    """

    severity: Literal["error", "warning", "info"]
    subject: str
    message: str
    rule: str = ""
    slug: str = ""
    where: str = ""
    command: str = ""
    other: tuple[str, str] | None = None


class ProblemGroup(NamedTuple):
    """Problems of one kind, such as findings or collisions; `empty` is what to say if there are none.

    `preparing` is set while they are still looked for, and `is_complete` is False if some could not be looked for.
    """

    key: str
    title: str
    problems: tuple[ProblemEntry, ...]
    empty: str
    hint: CommandHint | None = None
    preparing: Preparation | None = None
    is_complete: bool = True

    def count(self, severity: str) -> int:
        """Return the number of its problems of a severity."""
        return sum(one.severity == severity for one in self.problems)


_SECURITY = "security-"
"""How the rules begin whose findings come before others of the same severity."""


def findings_group(findings: Iterable[ProblemEntry], hint: CommandHint | None = None) -> ProblemGroup:
    """Return findings as one kind of problems, the most urgent first."""
    ordered = sorted(findings, key=lambda one: (one.severity, not one.rule.startswith(_SECURITY)))
    return ProblemGroup("findings", "Findings", tuple(ordered), "No skill has an error or a warning.", hint)


class UsageReport(NamedTuple):
    """The use of skills, as `log stats --json` gives it: rows of `skills`, `users`, `weeks`, `searches`, `denials`.

    `sources` say in words where the numbers are from.
    """

    sources: tuple[str, ...]
    sessions: int
    events: int
    broken: int
    skills: Sequence[Mapping[str, Any]]
    users: Sequence[Mapping[str, Any]] = ()
    weeks: Sequence[Mapping[str, Any]] = ()
    searches: Sequence[Mapping[str, Any]] = ()
    denials: Sequence[Mapping[str, Any]] = ()
    never_used: tuple[str, ...] = ()
    users_days: int | None = None
    """The days that the rows of `users` are of; None for all."""


class SessionSummary(NamedTuple):
    """One session of a journal; `key` is the last part of its address, `who` the person or program if known.

    `session` is the beginning of its name, empty if that cannot be shown.
    """

    key: str
    session: str
    began: str
    ended: str
    who: str
    events: int
    skills: tuple[str, ...]
    denied: int = 0
    failed: int = 0
    problem: str = ""


class StoryLine(NamedTuple):
    """One event of a session as a sentence.

    `kind` is its type, `tone` decides its mark; `details` is text that a reader may open, such as an output.
    """

    when: str
    kind: str
    text: str
    tone: Literal["plain", "good", "warning", "bad", "quiet"] = "plain"
    details: str = ""
    number: int = 0


class SessionStory(NamedTuple):
    """A session of a journal, event by event; `left_out` events came after those shown. `note` is about all events."""

    summary: SessionSummary
    lines: tuple[StoryLine, ...]
    left_out: int = 0
    note: str = ""


class SkillDetail(NamedTuple):
    """Everything that the page of a skill shows.

    `text` is the body of SKILL.md in Markdown, `fields` its frontmatter as pairs of texts. `listed_tokens` is what a
    model pays for knowing of it in every conversation, `loaded_tokens` for loading it. `tree` is empty if the skill has
    none, and `tree_problem` says why. `others` are skills of the same name.
    """

    summary: SkillSummary
    text: str
    fields: tuple[tuple[str, str], ...]
    files: tuple[FileEntry, ...]
    files_left_out: int
    listed_tokens: int
    loaded_tokens: int
    digest: str
    tree: str
    tree_problem: str
    origin: str
    facts: tuple[tuple[str, str], ...] = ()
    problems: tuple[ProblemEntry, ...] = ()
    commands: tuple[CommandHint, ...] = ()
    others: tuple[SkillSummary, ...] = ()
    copies: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    text_cut: bool = False


class Catalogue(Protocol):
    """The skills that the pages show, and what is known about them.

    All methods may be called from several threads. A method about one skill returns None if there is no such skill, or
    nothing of that kind to show. While `preparing` is not None only `search` and `preparing` are called.
    """

    @property
    def title(self) -> str:
        """What is shown, in a few words: the name of a project or of a team."""

    @property
    def as_of(self) -> str:
        """When the shown state was read, in words; empty if it is always the present one."""

    @property
    def notice(self) -> str:
        """A sentence that every page begins with; empty if there is nothing to say."""

    @property
    def reader(self) -> str:
        """Who logged in to look; empty where nobody does."""

    @property
    def parts(self) -> frozenset[str]:
        """The parts that this catalogue has: any of `hosts`, `usage`, `journal`, `search`.

        With `seen` it is about the hosts of a machine: every list says who sees a skill.
        """

    def preparing(self) -> Preparation | None:
        """Return what must be done before anything can be shown; None if nothing is."""

    def skills(self) -> Sequence[SkillSummary]:
        """Return all skills, sorted by place and name."""

    def places(self) -> Mapping[str, Sequence[SkillSummary]]:
        """Return all skills by place, sorted by name."""

    def slug_named(self, name: str) -> str:
        """Return the slug of the first skill that has a name, or calls itself so; empty if there is none."""

    def search(self, query: str) -> SearchAnswer:
        """Return the skills that fit a query; never wait for an index."""

    def skill(self, slug: str) -> SkillDetail | None:
        """Return a skill with everything its page shows."""

    def file(self, slug: str, path: str) -> FileBytes | None:
        """Return a file of a skill by its path in the skill."""

    def why(self, slug: str) -> Sequence[WhyCandidate] | None:
        """Return which hosts see a skill and why others do not."""

    def hosts(self) -> Sequence[HostSummary]:
        """Return what every host sees."""

    def seen_by_hosts(self, skills: Sequence[SkillSummary]) -> Sequence[SkillSummary] | Preparation:
        """Return some skills with what every host makes of each; while that is found out, how far it is."""

    def problems(self) -> Sequence[ProblemGroup]:
        """Return all problems by kind, the most urgent kind first; a kind without problems is returned, too."""

    def versions(self, slug: str) -> Sequence[SkillVersion] | None:
        """Return the versions of a skill that can be compared, the newest first."""

    def difference(self, slug: str, before: str, after: str) -> SkillDiff | None:
        """Return how one version of a skill, by its key, becomes another; None if either is unknown."""

    def usage(self) -> UsageReport | None:
        """Return the use of skills; None if nothing was recorded."""

    def use(self, skill: SkillSummary) -> Mapping[str, Any] | None:
        """Return the row of one skill in the use of skills; None if it was not used."""

    def sessions(self) -> Sequence[SessionSummary]:
        """Return the sessions of the journals, the newest first."""

    def session(self, key: str) -> SessionStory | None:
        """Return one session, event by event."""


# Addresses ----------------------------------------------------------------------------------------

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_SLUG_CHARS = 100
_IS_SLUG = re.compile(rf"[a-zA-Z0-9_-][a-zA-Z0-9_.-]{{0,{_SLUG_CHARS - 1}}}")


def slug_of(name: str) -> str:
    """Return the last part of the address of a skill: its name, with every other byte as `~` and two hex digits.

    It is also the name of a folder of a static site, so it is short, and neither hidden nor a step upward.
    """
    if _IS_SLUG.fullmatch(name) is not None:
        return name
    encoded = name.encode("utf-8", "surrogateescape")
    slug = "".join(chr(byte) if chr(byte) in _PLAIN else f"~{byte:02x}" for byte in encoded)
    if slug.startswith("."):
        slug = f"~2e{slug[1:]}"
    if len(slug) > _SLUG_CHARS:
        slug = f"{slug[:_SLUG_CHARS]}~~{blake2b(encoded, digest_size=6).hexdigest()}"
    return slug or "~~"


def slugs_of(names: Sequence[str]) -> list[str]:
    """Return one slug for each name; several skills of one name, or of names that differ in case, are numbered."""
    taken: dict[str, int] = {}
    slugs = []
    for name in names:
        slug = slug_of(name)
        number = taken[slug.lower()] = taken.get(slug.lower(), 0) + 1
        slugs.append(slug if number == 1 else f"{slug}~~{number}")
    return slugs


def matched_parts(text: str, terms: Any) -> tuple[TextPart, ...]:
    """Return a text in parts that match some terms and parts that do not."""
    parts, done = [], 0
    for start, end in places(text, terms) if terms else ():
        parts += [TextPart(text[done:start], False), TextPart(text[start:end], True)]
        done = end
    parts.append(TextPart(text[done:], False))
    return tuple(part for part in parts if part.text)


def matched_beginning(text: str, terms: Any, most: int) -> tuple[TextPart, ...]:
    """Return the beginning of a text and what surrounds each word that matches only later, in parts as above."""
    if len(text) <= most:
        return matched_parts(text, terms)
    # Not within a word, unless that is endless.
    last = text.rfind(" ", most - _AROUND_MATCH, most)
    shown, seen = [[0, last if last > 0 else most]], set[str]()
    for start, end in places(text, terms) if terms else ():
        word = text[start:end].lower()
        if end > shown[-1][1] and word not in seen:
            first = max(start - _AROUND_MATCH, shown[-1][1])
            if first == shown[-1][1]:
                shown[-1][1] = end + _AROUND_MATCH
            else:
                shown.append([first, end + _AROUND_MATCH])
        seen.add(word)
    found = " … ".join(text[start:end].strip() for start, end in shown)
    return matched_parts(found if len(text) <= shown[-1][1] else f"{found} …", terms)


_AROUND_MATCH = 60
"""Characters before and after a match that is far from the beginning of a text."""
