"""A verdict to what to do about it, step by step: a command to type, or what to change in the file, in words."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from skillshelf.catalog.build_context import held_back_by
from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import parse
from skillshelf.config.systems import DEFAULT_PROFILE, find_profile
from skillshelf.core.environment import Environment
from skillshelf.core.values import VerdictName
from skillshelf.hosts.near_misses import rename_for
from skillshelf.hosts.placement import Placement, in_the_way, is_open_to_all, link_name, put_for
from skillshelf.hosts.simulate import after_link, trusting
from skillshelf.hosts.stages import Verdict, judge, refusals, to_turn_on
from skillshelf.hosts.survey import HostState, SkillFile, Survey
from skillshelf.hosts.verdict import document_of, ignored_safeguard
from skillshelf.lint.fix import FixInput, fix_text

__all__ = ["Fix", "Step", "asked_as", "fix_for", "made_readable", "ranked_fixes", "step_for", "steps_for", "wants_put"]


class Step(NamedTuple):
    """One thing to do; `rules` are kept after it.

    For a change of the `text`, which means nothing, these are rules that it is made for. A change by `hand` may settle
    more than one: whoever closes the frontmatter has the fields that are in it.
    """

    kind: Literal["put", "trust", "clear", "text", "hand"]
    what: str
    rules: frozenset[str] = frozenset()


_PLACES: frozenset[VerdictName] = frozenset(
    {"root-not-read", "outside-boundary", "too-deep", "hidden-dir", "ignored", "limit-hit", "dir-link-skipped"}
)

_TEXT_RULES: Mapping[str, str] = {
    "bom": "remove the byte order mark",
    "fence-blanks": "remove the blanks after the opening ---",
    "yaml-colon": "put quotes around the value in {line}",
    "yaml-brackets": "put quotes around the value in {line}",
    "yaml-tab": "indent {line} with blanks instead of tabs",
}
"""Repairs that change no meaning, by the rule they satisfy."""

_BY_HAND: Mapping[str, str] = {
    "frontmatter-missing": "begin the file with a frontmatter: a line ---, name and description, a line ---",
    "frontmatter-unclosed": "end the frontmatter with a line ---",
    "frontmatter-type": "write the frontmatter as `key: value` lines",
    "yaml": "make {line} valid YAML",
    "yaml-duplicate-key": "remove one of the two keys, see {line}",
    "name-missing": "add `name: {folder}`",
    "name-type": "put quotes around the name",
    "name-length": "shorten the name to 64 characters",
    "name-pattern": "use lower-case letters, digits and single hyphens in the name",
    "name-directory": "give the folder and the name the same words",
    "description-missing": "add a description",
    "description-type": "write the description as one text in quotes",
    "description-length": "shorten the description to 1,024 characters",
    "body-encoding": "save the file as UTF-8",
    "encoding": "save the file as UTF-8",
    "file-name": "rename the file to SKILL.md",
    "root-file": "give SKILL.md a folder of its own",
    "link-skipped": "put a real SKILL.md in place of the link",
    "not-a-file": "put a real file in its place",
}


_READABLE = "make the file readable for yourself"


def made_readable(sighting: SkillFile, environment: Environment) -> str:
    """What to do about a file that cannot be read."""
    from shlex import quote

    if not sighting.broken:
        return f"{_READABLE} ({sighting.problem})"
    link = _shown_from(sighting.broken, environment.cwd)
    return f"{sighting.problem}; put that back, or remove the link: rm {quote(link)}"


def fix_for(verdict: Verdict, sighting: SkillFile, view: HostState, survey: Survey) -> str | None:
    """What to do so that this host sees the file; None where there is nothing to do, or nobody knows."""
    return ", then: ".join(step.what for step in steps_for(verdict, sighting, view, survey)) or None


def steps_for(verdict: Verdict, sighting: SkillFile, view: HostState, survey: Survey) -> tuple[Step, ...]:
    """What to do, in order, so that this host sees the file."""
    if sighting.problem:
        return (Step("hand", made_readable(sighting, survey.environment)),)
    if verdict.visible:
        return ()
    if verdict.verdict == "unknown":
        # What keeps us from telling keeps most hosts from reading.
        return _to_mend(verdict, sighting, view) if verdict.rule in _OUR_LIMITS else ()
    if verdict.verdict == "untrusted":
        return _to_trust(sighting, view, survey)
    if wants_put(verdict, sighting):
        return _to_put(sighting, view, survey)
    if sighting.file_name != SKILL_FILE and verdict.verdict not in _FIXES:
        rename = Step("hand", _BY_HAND["file-name"])
        is_misplaced = verdict.verdict in _PLACES
        return (rename, *([_link(asked_as(sighting, survey), view.profile.name)] if is_misplaced else ()))
    return _to_mend(verdict, sighting, view)


def wants_put(verdict: Verdict, sighting: SkillFile) -> bool:
    """Whether the skill lies where this host does not see it, so that a link or a copy is what it lacks."""
    is_misplaced = verdict.verdict in _PLACES and verdict.rule != "root-file"
    return is_misplaced and sighting.file_name == SKILL_FILE and not sighting.problem


def _to_trust(sighting: SkillFile, view: HostState, survey: Survey) -> tuple[Step, ...]:
    """What to do for a host that asks for trust: that, and what is still to do then."""
    trusted = trusting(view, survey)
    then = survey._replace(views={**survey.views, view.profile.name: trusted})
    first = Step("trust", f"trust this folder in {view.profile.name}")
    return (first, *steps_for(judge(sighting, trusted, then), sighting, trusted, then))


def _to_put(sighting: SkillFile, view: HostState, survey: Survey) -> tuple[Step, ...]:
    """The command that makes a host see a file, after whatever has to be done before it."""
    host = view.profile.name
    if ignored_safeguard(document_of(sighting, view.profile, survey).fields, view.profile):
        # Nobody is advised to hand a skill to a host that does not heed its author.
        return ()
    command = _link(asked_as(sighting, survey), host)
    put = put_for(sighting, view, survey.environment)
    if put is None:
        taken = in_the_way(sighting, view, survey.environment)
        if sighting.path != sighting.real_path:
            # The link that is moved away may be where the skill has its name from.
            command = _link(_path_of(sighting.real_path, survey.environment), host)
        return (Step("clear", f"{taken}: move it away"), command) if taken else ()
    (then,) = after_link(put, sighting, survey, [host])
    if then.visible or then.verdict == "hidden-from-model":
        return (command,)
    before = _to_mend(then, sighting, view)
    return (*before, command) if before else ()


def _link(called: str, host: str) -> Step:
    return Step("put", f"skillshelf link {called} --to {host}")


def _path_of(file: str, environment: Environment) -> str:
    """The folder of a file as it is typed in a command."""
    from shlex import quote

    return quote(_shown_from(os.path.dirname(file), environment.cwd))


def _to_mend(verdict: Verdict, sighting: SkillFile, view: HostState) -> tuple[Step, ...]:
    """What to do about what a host does not accept where it looks."""
    if verdict.verdict in _FIXES:
        what = _FIXES[verdict.verdict](verdict, view)
        kind: Literal["trust", "hand"] = "trust" if verdict.verdict == "untrusted" else "hand"
        return (Step(kind, what, frozenset({verdict.rule} - {""})),) if what else ()
    step = step_for(verdict.rule, verdict.line, sighting)
    return (step,) if step else ()


def step_for(rule: str, line: int | None, sighting: SkillFile) -> Step | None:
    """What to change in the file so that a rule is kept."""
    if rule.startswith("yaml") and (lines := _lines_to_quote(sighting)):
        return Step("text", f"put quotes around the value in line {' and '.join(map(str, lines))}", _YAML)
    line = line or _line_of(rule, sighting)
    if rule == "field-type" and line:
        return _as_text(*_pair_in(line, sighting), line, sighting)
    where = f"line {line}" if line else "the frontmatter"
    if rule in _TEXT_RULES:
        return Step("text", _TEXT_RULES[rule].format(line=where), _YAML if rule in _YAML else frozenset({rule}))
    if rule not in _BY_HAND:
        return None
    return Step(
        "hand", _BY_HAND[rule].format(line=where, folder=sighting.folder), _SETTLED.get(rule, frozenset({rule}))
    )


def _as_text(key: str, value: str, line: int, sighting: SkillFile) -> Step | None:
    """What to do about a value that a host wants as text; one that is not there is empty, and of no other type."""
    if key in ("name", "description"):
        return step_for(f"{key}-type" if value else f"{key}-missing", line, sighting)
    if not value:
        return Step("hand", f"write a text after `{key}:`, or remove the line", frozenset({"field-type"}))
    kind: Literal["text", "hand"] = "text" if key in _QUOTED else "hand"
    return Step(kind, f"put quotes around the value in line {line}", frozenset({"field-type"}))


def _pair_in(line: int, sighting: SkillFile) -> tuple[str, str]:
    """Key and value of a line."""
    lines = sighting.head.splitlines()
    text = lines[line - 1].decode("utf-8", "replace") if line <= len(lines) else ""
    key, _, value = text.partition(":")
    return key.strip(), value.strip()


def _line_of(rule: str, sighting: SkillFile) -> int | None:
    """The line of a rule's first finding."""
    findings = parse(sighting.head, whole=len(sighting.head) >= sighting.size).findings
    return next((finding.line for finding in findings if finding.rule == rule), None)


_OUR_LIMITS = frozenset({"yaml-duplicate-key"})
"""Rules by which we read nothing of a file, so that nobody can say what a host makes of it."""

_QUOTED = frozenset({"argument-hint"})
"""Fields that a repair puts into quotes."""

_FIELDS = frozenset({"name-missing", "description-missing"})
_STRUCTURE = (
    "frontmatter-missing",
    "frontmatter-unclosed",
    "frontmatter-type",
    "yaml",
    "yaml-duplicate-key",
    "encoding",
)
_SETTLED: Mapping[str, frozenset[str]] = {
    # A file whose structure is broken only seems to lack what is in it.
    **{rule: frozenset({rule}) | _FIELDS for rule in _STRUCTURE},
    "description-type": frozenset({"description-type", "description-missing", "field-type"}),
    "description-missing": frozenset({"description-missing", "description-type", "field-type"}),
    "name-type": frozenset({"name-type", "field-type"}),
    "name-missing": frozenset({"name-missing", "name-type", "field-type"}),
}
"""What is settled with a rule besides itself."""


_YAML = frozenset({"yaml-colon", "yaml-brackets", "yaml-tab"})
"""Rules whose mistakes are repaired together."""


def _lines_to_quote(sighting: SkillFile) -> list[int]:
    """The lines whose values only lack quotes; none where more than that is wrong."""
    findings = parse(sighting.head, whole=len(sighting.head) >= sighting.size).findings
    return [f.line for f in findings if f.line and f.rule in ("yaml-colon", "yaml-brackets")]


_FIXES: Mapping[VerdictName, Callable[[Verdict, HostState], str | None]] = {
    "shadowed-by": lambda verdict, view: "rename or remove one of the two",
    "disabled-by-config": to_turn_on,
    "untrusted": lambda verdict, view: f"trust this folder in {view.profile.name}",
    "hidden-from-model": lambda verdict, view: _BY_HAND.get(verdict.rule),
    "over-budget": lambda verdict, view: "shorten descriptions, here or of other skills",
}


def asked_as(sighting: SkillFile, survey: Survey) -> str:
    """What a command must call a skill by: its name, or the path of its folder where that does not lead to it alone."""
    from shlex import quote

    name = link_name(sighting)
    alike = [other for other in survey.sightings if name in (other.folder, link_name(other)) and not other.problem]
    # A file without a base lies in no root: only a search below this folder would meet it.
    if len(alike) == 1 and sighting.base and not name.startswith("-"):
        return quote(name)
    return _path_of(sighting.path, survey.environment)


def _shown_from(path: str, folder: str) -> str:
    """A path as it is typed in a folder."""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else path


Kind = Literal["put", "text", "hand"]
"""`put` is done by `link`, `text` changes bytes of the file that mean nothing, `hand` needs a person."""


class Fix(NamedTuple):
    """One thing to do, who will see the skill after it alone, and for a link or a copy where it goes.

    In `calling` people can then call it, but its author keeps it from models. `asking` will then want the folder
    trusted, `needing` something else besides; of `doubtful`, who see the skill now, nobody can say it any more.
    """

    kind: Kind
    what: str
    hosts: tuple[str, ...]
    put: Placement | None = None
    calling: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    needing: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


Before = Mapping[str, Verdict]
"""What each host says now."""


def ranked_fixes(
    sighting: SkillFile, verdicts: Sequence[Verdict], survey: Survey, *, served: Collection[str] = ()
) -> list[Fix]:
    """What to do, the most helpful first; hosts that are `served` in another way need nothing."""
    if sighting.problem:
        # Nobody knows what a file says that cannot be read, and so not who will see it.
        return [Fix("hand", made_readable(sighting, survey.environment), ())]
    before = {verdict.host: verdict for verdict in verdicts}
    unseeing = {host for host, verdict in before.items() if not verdict.visible and host not in served}
    if renamed := _renamed(sighting, before, survey):
        # Its place is another one then, and so is all that may still be needed.
        return [renamed]
    puts = _puts(sighting, before, unseeing, survey)
    reached = {host for put in puts for host in (*put.hosts, *put.calling, *put.asking)}
    left = [verdict for verdict in verdicts if verdict.host in unseeing - reached]
    return sorted([*puts, *_repairs(sighting, left, survey)], key=_rank)


def _rank(remedy: Fix) -> tuple[int, int, int, int, str]:
    """The more hosts see the skill the better, then the fewer lose it, then the more come nearer to it."""
    return (
        *(-len(remedy.hosts), len(remedy.doubtful), -len(remedy.calling)),
        -len(remedy.asking) - len(remedy.needing),
        remedy.what,
    )


# Links and copies ---------------------------------------------------------------------------------


def _puts(sighting: SkillFile, before: Before, unseeing: Collection[str], survey: Survey) -> list[Fix]:
    """The fewest links, and then copies, that reach the hosts which lack nothing else."""
    waiting = {*unseeing}
    possible = list(_possible_puts(sighting, before, unseeing, survey))
    found = []
    while possible := [one for one in possible if waiting.intersection((*one.hosts, *one.calling))]:
        # Links before copies, which fall behind what they were made from.
        best = max(possible, key=lambda one: (_is_link(one), len(waiting.intersection((*one.hosts, *one.calling)))))
        best = best._replace(
            hosts=tuple(host for host in best.hosts if host in waiting),
            calling=tuple(host for host in best.calling if host in waiting),
            asking=tuple(host for host in best.asking if host in waiting),
        )
        found.append(best)
        waiting -= {*best.hosts, *best.calling, *best.asking}
    return found


def _is_link(remedy: Fix) -> bool:
    return remedy.put is not None and remedy.put.how == "link"


def _possible_puts(sighting: SkillFile, before: Before, unseeing: Collection[str], survey: Survey) -> Iterator[Fix]:
    """What `link` would do for each host that lacks just that, with what all hosts will make of it."""
    for_hosts: dict[Placement, list[str]] = {}
    for host in (host for host in before if host in unseeing and wants_put(before[host], sighting)):
        put = put_for(sighting, survey.views[host], survey.environment)
        if put and not is_open_to_all(put, sighting) and _keeps_safeguards(sighting, host, survey):
            for_hosts.setdefault(put, []).append(host)
    for put, hosts in for_hosts.items():
        then = {verdict.host: verdict for verdict in after_link(put, sighting, survey, before)}
        seeing = tuple(host for host in before if then[host].visible and not before[host].visible)
        calling = tuple(host for host in hosts if then[host].verdict == "hidden-from-model")
        # The host that the command names must be one of them: else `link` itself would say that it did not help.
        if named := next((host for host in hosts if host in (*seeing, *calling)), None):
            yield Fix(
                *("put", f"skillshelf link {asked_as(sighting, survey)} --to {named}", seeing, put, calling),
                asking=tuple(host for host in hosts if then[host].verdict == "untrusted"),
                doubtful=tuple(host for host in before if before[host].visible and not then[host].visible),
            )


def _keeps_safeguards(sighting: SkillFile, host: str, survey: Survey) -> bool:
    """Whether a host heeds what the author holds back: nobody is advised to hand a skill to one that does not."""
    profile = survey.views[host].profile
    return not ignored_safeguard(document_of(sighting, profile, survey).fields, profile)


def _renamed(sighting: SkillFile, before: Before, survey: Survey) -> Fix | None:
    """The folder of skills with the name that hosts read, where it has one that is nearly that."""
    rename = rename_for(sighting, survey)
    if rename is None or os.path.dirname(rename.path) == os.path.dirname(sighting.path):
        return None
    root, name = os.path.split(os.path.dirname(rename.path))
    then = {one.host: one for one in after_link(Placement(root, name, "copy", ""), sighting, survey, before)}
    seeing = tuple(host for host in before if then[host].visible and not before[host].visible)
    asking = tuple(host for host in before if then[host].verdict == "untrusted")
    return Fix("hand", rename.command, seeing, asking=asking) if seeing or asking else None


# Changes by hand ----------------------------------------------------------------------------------


def _repairs(sighting: SkillFile, verdicts: Sequence[Verdict], survey: Survey) -> list[Fix]:
    """What else there is to do, with the hosts that it is enough for and those that it is not."""
    found: dict[str, Fix] = {}
    trusting = []
    for verdict in verdicts:
        steps = steps_for(verdict, sighting, survey.views[verdict.host], survey)
        if [step.kind for step in steps] == ["trust"] and _is_enough(steps[0], verdict, sighting, survey):
            trusting.append(verdict.host)
            continue
        for kind, what, whom in _told(steps, verdict, sighting, survey):
            one = found.get(what) or Fix(kind, what, ())
            found[what] = _COUNTED[whom](one, verdict.host)
    trust = [Fix("hand", f"trust this folder in {' and in '.join(trusting)}", tuple(trusting))] if trusting else []
    return [*found.values(), *trust]


Whom = Literal["hosts", "calling", "needing"]
"""Among whom of a remedy a host is counted."""

_COUNTED: Mapping[Whom, Callable[[Fix, str], Fix]] = {
    "hosts": lambda remedy, host: remedy._replace(hosts=(*remedy.hosts, host)),
    "calling": lambda remedy, host: remedy._replace(calling=(*remedy.calling, host)),
    "needing": lambda remedy, host: remedy._replace(needing=(*remedy.needing, host)),
}


def _told(
    steps: Sequence[Step], verdict: Verdict, sighting: SkillFile, survey: Survey
) -> Iterator[tuple[Kind, str, Whom]]:
    """The steps for one host as they are told: a change of the file by itself, since others may want it too."""
    changes = [step for step in steps if step.kind in ("text", "hand")]
    is_enough = len(steps) == 1 and _is_enough(steps[0], verdict, sighting, survey)
    for step in changes:
        yield "text" if step.kind == "text" else "hand", step.what, "hosts" if is_enough else "needing"
    if steps and not changes:
        profile = survey.views[verdict.host].profile
        is_for_people = held_back_by(document_of(sighting, profile, survey).fields, profile) is not None
        yield "hand", ", then: ".join(step.what for step in steps), "calling" if is_for_people else "hosts"


def _is_enough(step: Step, verdict: Verdict, sighting: SkillFile, survey: Survey) -> bool:
    """Whether a host that meets the file will tell its model of it once this is done."""
    profile = survey.views[verdict.host].profile
    mended = _mended(sighting, step)
    changed = survey if mended is sighting else survey._replace(documents={})
    left = refusals(mended, profile, changed, folder=os.path.basename(os.path.dirname(verdict.at)))
    fields = document_of(mended, profile, changed).fields
    if "description-missing" in step.rules:
        fields = {**fields, "description": "x"}
    return all(finding.rule in step.rules for finding in left) and held_back_by(fields, profile) is None


def _mended(sighting: SkillFile, step: Step) -> SkillFile:
    """The file after a repair that changes no meaning; as it is where the step is none."""
    if step.kind != "text":
        return sighting
    text = FixInput(sighting.head, sighting.folder, find_profile(DEFAULT_PROFILE), None)
    data = fix_text(text, only=step.rules).data
    return sighting._replace(head=data, size=sighting.size + len(data) - len(sighting.head))
