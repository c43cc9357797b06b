"""A survey to verdicts: does this host tell its model about this file, and if not, the first rule that keeps it out.

The stages are asked in the host's own order: root, walk, text, name, model. Each is a function that knows the
answer or passes the question on; what evidence leaves open ends as `unknown`.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from skillshelf import files
from skillshelf.discovery import SKILL_FILE
from skillshelf.document import Document, body_problem, form_of
from skillshelf.judging import read_document
from skillshelf.limits import SKILL_FILE_BYTES
from skillshelf.profile import Profile
from skillshelf.rules import check, description_of, placed
from skillshelf.survey import HostView, Sighting, Survey
from skillshelf.text import fold
from skillshelf.values import Candidate, CatalogSkill, Diagnostic, Finding, Root, VerdictName

__all__ = ["VERDICTS", "Verdict", "document_of", "judge", "own_root", "refusals"]

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


class Verdict(NamedTuple):
    """What one host makes of one file; `rule` is the rule of ours that found it, `at` the way it was judged by."""

    host: str
    visible: bool | None
    verdict: VerdictName
    detail: str
    told: bool | None
    at: str
    rule: str = ""
    line: int | None = None


class Question(NamedTuple):
    """One file, one host."""

    sighting: Sighting
    view: HostView
    survey: Survey

    @property
    def profile(self) -> Profile:
        """The host's rules."""
        return self.view.profile


class Answer(NamedTuple):
    """A verdict before it is known what the host would say about it."""

    verdict: VerdictName
    detail: str = ""
    at: str = ""
    rule: str = ""
    line: int | None = None


def judge(sighting: Sighting, view: HostView, survey: Survey) -> Verdict:
    """The verdict of one host on one file."""
    question = Question(sighting, view, survey)
    answers = (stage(question) for stage in STAGES)
    answer = _settled(next((answer for answer in answers if answer), Answer("unknown")), view.profile)
    told: bool | None = None
    detail = answer.detail
    if answer.verdict not in SEEN and answer.verdict not in ("unknown", "hidden-from-model"):
        telling = view.profile.tells.get(VERDICTS[answer.verdict][0], "unknown")
        told = {"screen": True, "log": False, "nothing": False, "unknown": None}[telling]
        detail += " (only its log says so)" if telling == "log" else ""
    visible = None if answer.verdict == "unknown" else answer.verdict in SEEN
    at = answer.at or sighting.path
    return Verdict(view.profile.name, visible, answer.verdict, detail, told, at, answer.rule, answer.line)


_DOUBTS: Mapping[VerdictName, str] = {
    "too-deep": "max_depth",
    "hidden-dir": "hidden",
    "dir-link-skipped": "links",
    "file-link-skipped": "linked_file",
    "ignored": "below_skill",
    "hidden-from-model": "hides_on",
}


def _settled(answer: Answer, profile: Profile) -> Answer:
    """The answer, or `unknown` where it rests on something nobody has established for this host."""
    if answer.rule in profile.unknown or _DOUBTS.get(answer.verdict) in profile.unknown:
        said = answer.detail or VERDICTS[answer.verdict][1]
        return answer._replace(verdict="unknown", detail=f"not established for this host: {said}")
    return answer


# Files that the host lists ------------------------------------------------------------------------


def _listed(question: Question) -> Answer | None:
    """A file in the host's list: whether its model is told, and what is odd about it."""
    skill = question.view.by_file.get(question.sighting.real_path)
    if skill is None:
        return None
    at = skill.path
    if skill.hidden == "untrusted":
        return Answer("untrusted", _how_to_trust(question.profile), at)
    if skill.hidden is not None:
        why = "it has no description" if skill.hidden == "no-description" else "disable-model-invocation is set"
        return Answer("hidden-from-model", f"{why}; people can still call it", at)
    if skill.path in question.view.dropped:
        budget = question.profile.budget_chars
        said = f"its list ends before this one, at {budget:,} characters" if budget else "its list ends before this one"
        return Answer("over-budget", said, at)
    for found in (_rivalry(question, skill), _open_question(question, skill), _body(question)):
        if found is not None:
            return found._replace(at=at)
    return next(_notes(question, skill), Answer("visible"))._replace(at=at)


def _how_to_trust(profile: Profile) -> str:
    return f"project skills wait until you trust the folder (~/{profile.trust_file})"


def _rivalry(question: Question, skill: CatalogSkill) -> Answer | None:
    """What others of the same name mean for one that is listed."""
    view = question.view
    losers = view.losers.get(skill.path, ())
    if losers and _is_open(question.profile, skill.path, losers[0], view.roots):
        return Answer("unknown", _no_winner(question.profile, len(losers) + 1))
    return None


def _is_open(profile: Profile, path: str, other: str, roots: Sequence[Root]) -> bool:
    """Whether nobody can say which of two copies this host takes."""
    if profile.collision == "race" or profile.collision_doubt == "always":
        return True
    mine, theirs = own_root(path, roots), own_root(other, roots)
    if mine is None or theirs is None or profile.collision_doubt == "none":
        return False
    one_root = mine.path == theirs.path
    return one_root if profile.collision_doubt == "same-root" else not one_root and mine.kind == theirs.kind


def _no_winner(profile: Profile, copies: int) -> str:
    if profile.collision == "race":
        return f"{copies} skills have this name, and which one wins differs from run to run"
    return f"{copies} skills have this name; which one wins is not established"


def _open_question(question: Question, skill: CatalogSkill) -> Answer | None:
    """Something about a listed file that nobody has tried on this host."""
    profile = question.profile
    if not profile.unknown:
        return None
    for what, field in _oddities(question, skill):
        if field in profile.unknown:
            return Answer("unknown", f"not established for this host: {what}")
    document = document_of(question.sighting, profile, question.survey)
    for finding in check(document, question.sighting.folder, profile):
        if finding.rule in profile.unknown:
            found = placed(finding, document)
            return Answer("unknown", f"not established for this host: {finding.message}", rule=found.rule)
    return None


def _oddities(question: Question, skill: CatalogSkill) -> Iterator[tuple[str, str]]:
    """What is unusual about where a listed file lies, with the field of the profile that decides about it."""
    root = own_root(skill.path, question.view.roots)
    assert root is not None
    assert root.real_path is not None
    below = skill.path[len(root.path) + 1 :]
    if root.kind == "project" and not files.is_inside(root.path, question.survey.place.cwd):
        yield "a skill above the working directory", "above-cwd"
    if os.path.basename(skill.real_path) != SKILL_FILE or os.path.dirname(skill.real_path) != skill.real_dir:
        yield "SKILL.md is a link", "linked_file"
    elif f"{root.real_path}/{below}" != skill.real_path and own_root(skill.real_path, question.view.roots) is None:
        yield "the folder is a link", "links"
    if any(part.startswith(".") for part in below.split("/")):
        yield "a folder that begins with a dot", "hidden"
    if "node_modules" in below.split("/"):
        yield "a skill below node_modules", "skip_directories"
    declared = skill.frontmatter.get("name")
    if declared is not None and declared != os.path.basename(skill.dir):
        yield f"a name ({declared!r}) that is not the folder's", "name-directory"
    if below.count("/") > 1:
        yield "a folder of folders", "max_depth"
    if "hides_on" in question.profile.unknown and "disable-model-invocation" in skill.frontmatter:
        yield "what disable-model-invocation does", "hides_on"


def _body(question: Question) -> Answer | None:
    """A file whose rest, which a listing does not read, is not UTF-8, for a host that insists on it."""
    sighting = question.sighting
    if question.profile.body_text == "any" or len(sighting.head) >= sighting.size:
        return None
    try:
        data = files.read_file(sighting.real_path, limit=SKILL_FILE_BYTES, links="never")
    except OSError:
        return Answer("unknown", "the file cannot be read")
    found = body_problem(data or b"")
    return Answer("wrong-type", found.message, rule=found.rule, line=found.line) if found else None


def _notes(question: Question, skill: CatalogSkill) -> Iterator[Answer]:
    """What a person should know about a skill that is visible."""
    view, profile = question.view, question.profile
    if len(view.by_name[skill.name]) > 1:
        others = [other.path for other in view.by_name[skill.name] if other is not skill]
        yield Answer("ambiguous", f"as is {_short(others[0], question)}; both are listed")
    document = document_of(question.sighting, profile, question.survey)
    for finding in document.findings:
        if finding.rule in ("yaml-colon", "yaml-brackets", "yaml-tab", "yaml-lines", "yaml", "frontmatter-missing"):
            yield Answer("repaired", finding.message, rule=finding.rule, line=finding.line)
    root = own_root(skill.path, view.roots)
    if root is not None and root.prefix:
        yield Answer("renamed-by-plugin", f"called {skill.name!r} here")
    declared = document.fields.get("name")
    if skill.name == os.path.basename(skill.dir) != declared:
        yield Answer("name-from-folder", f"called {skill.name!r} here" + (f", not {declared!r}" if declared else ""))
    if cut := _cut(question, skill):
        yield Answer("description-cut", cut)
    if losers := view.losers.get(skill.path):
        yield Answer("shadows", f"in front of {_short(losers[0], question)}")


def _cut(question: Question, skill: CatalogSkill) -> str:
    """What this host leaves of a description, where that is not all of it."""
    most = question.profile.description_shown
    shown = len(fold(skill.description))
    whole = description_of(document_of(question.sighting, _PLAIN, question.survey).fields)
    if question.profile.closing_fence == "anywhere" and 0 < shown < len(fold(whole)):
        return f"ends at the `---` inside it, after {shown} of {len(fold(whole))} characters"
    return f"shows {most:,} of {shown:,} characters" if most is not None and shown > most else ""


_PLAIN = Profile(name="", summary="", evidence="", as_of="")


# Files that the host leaves out -------------------------------------------------------------------


def _shadowed(question: Question) -> Answer | None:
    for way in question.sighting.ways:
        loser = question.view.shadowed.get(way)
        if loser is not None:
            if _is_open(question.profile, way, loser.by, question.view.roots):
                return Answer("unknown", _no_winner(question.profile, 2), way)
            return Answer("shadowed-by", _beside(question, loser.by), way)
    return None


def _beside(question: Question, winner: str) -> str:
    """The copy that won, and whether it says the same."""
    real = files.real_path(winner)
    other = next((sighting for sighting in question.survey.sightings if sighting.real_path == real), None)
    same = other is not None and (other.head, other.size) == (question.sighting.head, question.sighting.size)
    return f"{_short(winner, question)} wins ({'the same text' if same else 'another text'})"


_FILTERED: Mapping[str, VerdictName] = {
    "too-deep": "too-deep",
    "source-off": "disabled-by-config",
    "ignored": "ignored",
    "inside-skill": "ignored",
}


def _filtered(question: Question) -> Answer | None:
    for way in question.sighting.ways:
        left_out = question.view.filtered.get(way)
        if left_out is not None:
            verdict = _FILTERED.get(left_out.reason, "unknown")
            return Answer(verdict, _FILTER_DETAILS[verdict](question, way), way)
    return None


def _too_deep(question: Question, way: str) -> str:
    root = own_root(way, question.view.roots)
    below = way[len(root.path) + 1 :] if root else way
    most = question.profile.max_depth or 0
    levels = "one level" if most == 1 else f"{most} levels"
    return f"{os.path.dirname(below)} is {below.count('/')} levels down; it goes {levels}"


def _switch(question: Question, way: str) -> str:
    root = own_root(way, question.view.roots)
    rules = [rule for rule in question.profile.roots if rule.host_switch and root and root.label in rule.paths]
    return f"off unless its setting {rules[0].host_switch} is on" if rules else "off in its settings"


_FILTER_DETAILS: Mapping[VerdictName, Callable[[Question, str], str]] = {
    "too-deep": _too_deep,
    "disabled-by-config": _switch,
    "ignored": lambda question, way: "left out by its rules",
    "unknown": lambda question, way: "",
}

RULE_VERDICTS: Mapping[str, VerdictName] = {
    "bom": "bom",
    "frontmatter-missing": "no-fence",
    "frontmatter-unclosed": "no-fence",
    "fence-blanks": "no-fence",
    "frontmatter-type": "yaml-error",
    "yaml": "yaml-error",
    "yaml-colon": "yaml-error",
    "yaml-brackets": "yaml-error",
    "yaml-tab": "yaml-error",
    "name-missing": "missing-name",
    "name-type": "wrong-type",
    "name-length": "name-rejected",
    "name-pattern": "name-rejected",
    "name-directory": "name-rejected",
    "description-missing": "missing-description",
    "description-type": "wrong-type",
    "description-length": "wrong-type",
    "field-type": "wrong-type",
    "body-encoding": "wrong-type",
    "not-a-file": "wrong-type",
    "root-file": "root-not-read",
    "file-name": "wrong-file-name",
}
"""The verdict for each rule of ours by which a host leaves a file out; any other rule is a limit of our own."""


def _refused(question: Question) -> Answer | None:
    for way in question.sighting.ways:
        error = question.view.errors.get(way) or _error_above(way, question.view.folder_errors)
        if error is not None:
            return _refusal(error, way, question.profile)
    return None


def _error_above(way: str, errors: Mapping[str, Diagnostic]) -> Diagnostic | None:
    """The error about a folder that a file lies in."""
    return next((error for path, error in errors.items() if way.startswith(path + "/")), None)


def _refusal(error: Diagnostic, way: str, profile: Profile) -> Answer:
    where = f"line {error.line}: " if error.line and error.rule.startswith("yaml") else ""
    if error.rule == "link-skipped":
        verdict: VerdictName = "file-link-skipped" if os.path.basename(error.path) == SKILL_FILE else "dir-link-skipped"
        return Answer(verdict, VERDICTS[verdict][1], way, error.rule)
    if error.rule == "encoding" and profile.body_text == "utf-8":
        return Answer("wrong-type", error.message, way, error.rule, error.line)
    verdict = RULE_VERDICTS.get(error.rule, "unknown")
    if verdict == "unknown":
        return Answer("unknown", f"skillshelf itself does not read this: {error.message}", way, error.rule, error.line)
    # What we would read instead does not matter to a host that reads nothing.
    return Answer(verdict, where + error.message.partition("; read as: ")[0], way, error.rule, error.line)


def _not_walked(question: Question) -> Answer | None:
    """A file below a root of the host that its walk passed by without a word."""
    for way in question.sighting.ways:
        root = own_root(way, question.view.roots)
        if root is None:
            continue
        if root.real_path is None:
            return Answer("unknown", "the root cannot be entered", way)
        if os.path.basename(way) != SKILL_FILE:
            return Answer("wrong-file-name", f"it is called {os.path.basename(way)}", way, "file-name")
        folders = way[len(root.path) + 1 :].split("/")[:-1]
        return _passed_by(folders, root, question)._replace(at=way)
    return None


def _passed_by(folders: Sequence[str], root: Root, question: Question) -> Answer:
    for folder in folders:
        if root.hidden == "skip" and folder.startswith("."):
            return Answer("hidden-dir", f"{folder} begins with a dot")
        if folder in question.profile.skip_directories:
            return Answer("ignored", f"it never looks into {folder}")
    most = question.profile.max_depth
    if most is not None and len(folders) > most:
        return Answer("too-deep", f"{'/'.join(folders)} is {len(folders)} levels down; it goes {most}")
    if question.profile.below_skill == "skip" and len(folders) > 1:
        return Answer("ignored", "it lies inside another skill")
    if question.view.catalog.truncated:
        return Answer("limit-hit", f"it stops after {question.profile.max_directories:,} folders without a skill")
    return Answer("unknown", "it lies in a root of this host and was not met there")


def _no_root(question: Question) -> Answer:
    """A file that lies in no root of the host."""
    profile, place = question.profile, question.survey.place
    labels = [path for rule in profile.roots if rule.kind == "project" for path in rule.paths]
    for way in question.sighting.ways:
        for label in labels:
            base, found, _ = way.partition(f"/{label}/")
            if not found:
                continue
            if base != place.cwd and files.is_inside(base, place.cwd) and profile.nested == "on-use":
                said = "skills of a folder below may count once files there are in use"
                return Answer("unknown", said, way)
            said = f"it reads {label} {_reach(profile)}, not in {_short(base, question) or '.'}"
            return Answer("outside-boundary", said, way)
    return Answer("root-not-read", "reads " + ", ".join(_read_roots(question)))


def _reach(profile: Profile) -> str:
    bases = {rule.base for rule in profile.roots if rule.kind == "project"}
    return "up to the repository" if "chain" in bases else "of the working directory only"


def _read_roots(question: Question) -> list[str]:
    """The roots the file would be expected in: those of a project for a project's file, else those of home."""
    home = question.survey.place.home
    at_home = home is not None and question.sighting.path.startswith(home.rstrip("/") + "/.")
    kind = "user" if at_home else "project"
    paths = [path for rule in question.profile.roots if rule.kind == kind for path in rule.paths]
    return [("~/" if at_home else "") + path for path in dict.fromkeys(paths) if not path.startswith("/")]


STAGES: tuple[Callable[[Question], Answer | None], ...] = (
    _listed,
    _shadowed,
    _filtered,
    _refused,
    _not_walked,
    _no_root,
)
"""Who is asked, in order; the last one always knows."""


# What stages ask ----------------------------------------------------------------------------------


def own_root(path: str, roots: Sequence[Root]) -> Root | None:
    """The root of a host that a path lies below: the nearest."""
    inside = [root for root in roots if path.startswith(root.path + "/")]
    return max(inside, key=lambda root: len(root.path), default=None)


def document_of(sighting: Sighting, profile: Profile, survey: Survey) -> Document:
    """The file as this profile takes it apart."""
    known: Document | None = survey.documents.get((sighting.real_path, form_of(profile)))
    if known is not None:
        return known
    folder = os.path.dirname(sighting.real_path)
    stamp = (0, 0, sighting.size, 0, 0)
    candidate = Candidate(0, sighting.path, sighting.real_path, folder, sighting.head, stamp)
    return read_document(candidate, profile, survey.documents)


def refusals(sighting: Sighting, profile: Profile, survey: Survey, *, folder: str) -> list[Finding]:
    """Why a host would leave the file out if it lay in a folder of that name in a root it reads."""
    document = document_of(sighting, profile, survey)
    found = [placed(finding, document) for finding in check(document, folder, profile)]
    return [finding for finding in found if profile.rules[finding.rule] == "reject" or finding.rule in profile.unknown]


def _short(path: str, question: Question) -> str:
    place = question.survey.place
    if path.startswith(place.cwd + "/"):
        return path[len(place.cwd) + 1 :]
    home = place.home
    return "~" + path[len(home) :] if home and path.startswith(home + "/") else path
