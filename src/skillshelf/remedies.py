"""Verdicts to remedies: what makes a skill visible to a host, and which of them helps the most hosts."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from skillshelf import files
from skillshelf.discovery import SKILL_FILE
from skillshelf.document import parse
from skillshelf.hosts import HOSTS
from skillshelf.place import Place
from skillshelf.questions import document_of, ignored_safeguard
from skillshelf.survey import HostView, Sighting, Survey, base_of
from skillshelf.values import Root, VerdictName
from skillshelf.verdicts import Verdict, refusals

__all__ = ["Remedy", "fix_for", "link_name", "link_roots", "remedies", "wants_link"]

Kind = Literal["link", "text", "hand"]
"""`link` is done by `link`, `text` changes bytes of the file that mean nothing, `hand` needs a person."""


class Remedy(NamedTuple):
    """One thing to do, who would see the skill then, and for a link the root it goes to."""

    kind: Kind
    what: str
    hosts: tuple[str, ...]
    root: str = ""


_PLACES: frozenset[VerdictName] = frozenset(
    {"root-not-read", "outside-boundary", "too-deep", "hidden-dir", "ignored", "limit-hit", "dir-link-skipped"}
)

_TEXT_RULES: Mapping[str, str] = {
    "bom": "remove the byte order mark",
    "fence-blanks": "remove the blanks after the opening ---",
    "yaml-colon": "put quotes around the value in line {line}",
    "yaml-brackets": "put quotes around the value in line {line}",
    "yaml-tab": "indent line {line} with blanks instead of tabs",
}
"""Repairs that change no meaning, by the rule they satisfy."""

_BY_HAND: Mapping[str, str] = {
    "frontmatter-missing": "begin the file with a line ---, with nothing above it",
    "frontmatter-unclosed": "end the frontmatter with a line ---",
    "frontmatter-type": "write the frontmatter as `key: value` lines",
    "yaml": "make line {line} valid YAML",
    "name-missing": "add `name: {folder}`",
    "name-type": "put quotes around the name",
    "name-length": "shorten the name to 64 characters",
    "name-pattern": "use lower-case letters, digits and single hyphens in the name",
    "name-directory": "give the folder and the name the same words",
    "description-missing": "add a description",
    "description-type": "write the description as one text in quotes",
    "description-length": "shorten the description to 1,024 characters",
    "field-type": "put quotes around the value that is not text",
    "body-encoding": "save the file as UTF-8",
    "encoding": "save the file as UTF-8",
    "file-name": "rename the file to SKILL.md",
    "root-file": "give SKILL.md a folder of its own",
    "link-skipped": "put a real SKILL.md in place of the link",
    "not-a-file": "put a real file in its place",
}


_READABLE = "make the file readable for yourself"
_NOWHERE = "the link leads to nothing: remove it, or put back what it led to"


def fix_for(verdict: Verdict, sighting: Sighting, view: HostView, survey: Survey) -> str | None:
    """What to do so that this host sees the file; None where there is nothing to do, or nobody knows."""
    if verdict.visible or verdict.verdict == "unknown":
        return None
    if verdict.verdict in _FIXES:
        return _FIXES[verdict.verdict](verdict, view)
    if sighting.problem:
        return _READABLE
    if sighting.file_name != SKILL_FILE:
        return _BY_HAND["file-name"]
    if verdict.verdict in _PLACES and verdict.rule != "root-file" and link_roots(sighting, view, survey.place):
        return f"skillshelf link {asked_as(sighting, survey)} --to {view.profile.name}"
    return _in_words(verdict.rule, verdict.line, sighting)


def wants_link(sighting: Sighting, verdict: Verdict, view: HostView, survey: Survey) -> bool:
    """Whether a link is what this host lacks."""
    return (fix_for(verdict, sighting, view, survey) or "").startswith("skillshelf link ")


def _in_words(rule: str, line: int | None, sighting: Sighting) -> str | None:
    """What to change in the file so that a rule is kept."""
    if rule.startswith("yaml") and (lines := _lines_to_quote(sighting)):
        return f"put quotes around the value in line {' and '.join(map(str, lines))}"
    sentence = _TEXT_RULES.get(rule) or _BY_HAND.get(rule)
    return sentence.format(line=line, folder=sighting.folder) if sentence else None


def _lines_to_quote(sighting: Sighting) -> list[int]:
    """The lines whose values only lack quotes; none where more than that is wrong."""
    findings = parse(sighting.head, whole=len(sighting.head) >= sighting.size).findings
    return [f.line for f in findings if f.line and f.rule in ("yaml-colon", "yaml-brackets")]


def _setting(verdict: Verdict, view: HostView) -> str:
    switches = [
        rule.host_switch for rule in view.profile.roots if rule.host_switch and rule.host_switch in verdict.detail
    ]
    return f"turn {switches[0]} on in {view.profile.name}" if switches else f"turn it on in {view.profile.name}"


_FIXES: Mapping[VerdictName, Callable[[Verdict, HostView], str | None]] = {
    "shadowed-by": lambda verdict, view: "rename or remove one of the two",
    "disabled-by-config": _setting,
    "untrusted": lambda verdict, view: f"trust this folder in {view.profile.name}",
    "hidden-from-model": lambda verdict, view: "add a description" if "no description" in verdict.detail else None,
    "over-budget": lambda verdict, view: "shorten descriptions, here or of other skills",
}


# Ranking ------------------------------------------------------------------------------------------


def remedies(sighting: Sighting, verdicts: Sequence[Verdict], survey: Survey) -> list[Remedy]:
    """What to do, the most helpful first; a host counts where nothing else would keep the skill from it."""
    if sighting.problem:
        what = _NOWHERE if "no such file" in sighting.problem else f"{_READABLE} ({sighting.problem})"
        return [Remedy("hand", what, tuple(verdict.host for verdict in verdicts))]
    by_what: dict[tuple[Kind, str], list[str]] = {}
    to_link = []
    for verdict in verdicts:
        view = survey.views[verdict.host]
        fix = fix_for(verdict, sighting, view, survey)
        if fix is None:
            continue
        if fix.startswith("skillshelf link "):
            to_link.append(verdict.host)
        else:
            kind: Kind = "text" if verdict.rule in _TEXT_RULES or fix.startswith("put quotes around") else "hand"
            by_what.setdefault((kind, fix), []).append(verdict.host)
    found = [Remedy(kind, what, tuple(hosts)) for (kind, what), hosts in by_what.items()]
    found += _links(sighting, [host for host in to_link if _keeps_safeguards(sighting, host, survey)], survey)
    untrusted = [verdict.host for verdict in verdicts if verdict.verdict == "untrusted"]
    found += _hidden_behind(sighting, [*to_link, *untrusted], survey, found)
    return sorted(found, key=lambda remedy: (-len(remedy.hosts), remedy.what))


def _keeps_safeguards(sighting: Sighting, host: str, survey: Survey) -> bool:
    """Whether a host heeds what the author holds back: nobody is advised to hand a skill to one that does not."""
    profile = survey.views[host].profile
    return not ignored_safeguard(document_of(sighting, profile, survey).fields, profile)


def _links(sighting: Sighting, hosts: Iterable[str], survey: Survey) -> list[Remedy]:
    """The fewest links that reach the hosts a link alone would satisfy, each with the hosts it serves."""
    name, open_to_all = asked_as(sighting, survey), _careless_folders(sighting)
    waiting: dict[str, list[_Way]] = {}
    for host in hosts:
        if _passes(sighting, host, survey):
            roots = link_roots(sighting, survey.views[host], survey.place)
            waiting[host] = [_Way(root.path, root.links == "never") for root in roots if root.label not in open_to_all]
    found = []
    while ways := list(dict.fromkeys(way for mine in waiting.values() for way in mine)):
        served = {way: tuple(host for host, mine in waiting.items() if way in mine) for way in ways}
        best = max(ways, key=lambda way: (len(served[way]), -ways.index(way)))
        what = f"skillshelf link {name} --to {served[best][0]}" + ("  (a copy)" if best.copy else "")
        found.append(Remedy("link", what, served[best], best.root))
        waiting = {host: mine for host, mine in waiting.items() if host not in served[best]}
    return found


class _Way(NamedTuple):
    """A root where a skill could be put, and whether the host wants a copy there."""

    root: str
    copy: bool


def _passes(sighting: Sighting, host: str, survey: Survey) -> bool:
    return not refusals(sighting, survey.views[host].profile, survey, folder=link_name(sighting))


def _hidden_behind(sighting: Sighting, hosts: Iterable[str], survey: Survey, known: Sequence[Remedy]) -> list[Remedy]:
    """Repairs of the text that hosts would ask for once they look where the file lies."""
    said = {remedy.what for remedy in known}
    wanted: dict[tuple[Kind, str], list[str]] = {}
    for host in hosts:
        for finding in refusals(sighting, survey.views[host].profile, survey, folder=link_name(sighting))[:1]:
            if (what := _in_words(finding.rule, finding.line, sighting)) is not None:
                kind: Kind = "text" if finding.rule in _TEXT_RULES else "hand"
                wanted.setdefault((kind, what), []).append(host)
    return [Remedy(kind, what, tuple(hosts)) for (kind, what), hosts in wanted.items() if what not in said]


def link_name(sighting: Sighting) -> str:
    """The folder name a link gets: what the skill calls itself if that can be a folder, else its folder's."""
    declared = sighting.declared
    plain = declared.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return declared if plain and not declared.startswith(".") else sighting.folder


def asked_as(sighting: Sighting, survey: Survey) -> str:
    """What a command must call a skill by: its name, or the path of its folder where others have that name too."""
    from shlex import quote

    name = link_name(sighting)
    alike = [other for other in survey.sightings if name in (other.folder, link_name(other))]
    return name if len(alike) < 2 else quote(shown_from(os.path.dirname(sighting.path), survey.place.cwd))


def shown_from(path: str, folder: str) -> str:
    """A path as it is typed in a folder."""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else path


def link_roots(sighting: Sighting, view: HostView, place: Place) -> list[Root]:
    """The roots of a host where a link to the file would fit, the best first: beside the file, then here."""
    name = link_name(sighting)
    bases = {"user": (sighting.base, place.home), "project": (sighting.base, place.cwd)}[sighting.kind]
    roots = [
        root
        for root in view.roots
        if root.kind == sighting.kind and not root.switched_off and base_of(root) in bases
        if files.kind_at(f"{root.path}/{name}") is None
    ]
    open_to_all = _careless_folders(sighting)
    return sorted(
        roots, key=lambda root: (base_of(root) != sighting.base, root.label in open_to_all, -_READERS[root.label])
    )


def _careless_folders(sighting: Sighting) -> frozenset[str]:
    """The folders read by a host that would hand the skill to its model although the author holds it back."""
    fields = parse(sighting.head, whole=len(sighting.head) >= sighting.size).fields
    careless = [host for host in HOSTS.values() if ignored_safeguard(fields, host)]
    return frozenset(path for host in careless for rule in host.roots for path in rule.paths)


_READERS = Counter(path for host in HOSTS.values() for rule in host.roots for path in dict.fromkeys(rule.paths))
"""How many rules of all hosts read a folder: a link goes where it serves the most of them."""
