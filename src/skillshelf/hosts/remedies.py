"""Verdicts to remedies: what makes a skill visible to hosts, and which of them helps the most.

A host counts for a remedy if it will see the skill after that alone, and that is found out by judging the skill
again as it will be then.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from skillshelf.catalog.build import held_back
from skillshelf.config.systems import DEFAULT_PROFILE, find_profile
from skillshelf.hosts.fixes import Step, asked_as, made_readable, steps_for, wants_put
from skillshelf.hosts.near_misses import rename_for
from skillshelf.hosts.putting import Put, is_open_to_all, put_for
from skillshelf.hosts.simulate import after_put
from skillshelf.hosts.survey import Sighting, Survey
from skillshelf.hosts.verdict import document_of, ignored_safeguard
from skillshelf.hosts.verdicts import Verdict, refusals
from skillshelf.lint.fix import Text, repair

__all__ = ["Remedy", "remedies"]

Kind = Literal["put", "text", "hand"]
"""`put` is done by `link`, `text` changes bytes of the file that mean nothing, `hand` needs a person."""


class Remedy(NamedTuple):
    """One thing to do, who will see the skill after it alone, and for a link or a copy where it goes.

    In `calling` people can then call it, but its author keeps it from models. `asking` will then want the folder
    trusted, `needing` something else besides; of `doubtful`, who see the skill now, nobody can say it any more.
    """

    kind: Kind
    what: str
    hosts: tuple[str, ...]
    put: Put | None = None
    calling: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    needing: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()


Before = Mapping[str, Verdict]
"""What each host says now."""


def remedies(
    sighting: Sighting, verdicts: Sequence[Verdict], survey: Survey, *, served: Collection[str] = ()
) -> list[Remedy]:
    """What to do, the most helpful first; hosts that are `served` in another way need nothing."""
    if sighting.problem:
        # Nobody knows what a file says that cannot be read, and so not who will see it.
        return [Remedy("hand", made_readable(sighting, survey.place), ())]
    before = {verdict.host: verdict for verdict in verdicts}
    unseeing = {host for host, verdict in before.items() if not verdict.visible and host not in served}
    if renamed := _renamed(sighting, before, survey):
        # Its place is another one then, and so is all that may still be needed.
        return [renamed]
    puts = _puts(sighting, before, unseeing, survey)
    reached = {host for put in puts for host in (*put.hosts, *put.calling, *put.asking)}
    left = [verdict for verdict in verdicts if verdict.host in unseeing - reached]
    return sorted([*puts, *_repairs(sighting, left, survey)], key=_rank)


def _rank(remedy: Remedy) -> tuple[int, int, int, int, str]:
    """The more hosts see the skill the better, then the fewer lose it, then the more come nearer to it."""
    return (
        *(-len(remedy.hosts), len(remedy.doubtful), -len(remedy.calling)),
        -len(remedy.asking) - len(remedy.needing),
        remedy.what,
    )


# Links and copies ---------------------------------------------------------------------------------


def _puts(sighting: Sighting, before: Before, unseeing: Collection[str], survey: Survey) -> list[Remedy]:
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


def _is_link(remedy: Remedy) -> bool:
    return remedy.put is not None and remedy.put.how == "link"


def _possible_puts(sighting: Sighting, before: Before, unseeing: Collection[str], survey: Survey) -> Iterator[Remedy]:
    """What `link` would do for each host that lacks just that, with what all hosts will make of it."""
    for_hosts: dict[Put, list[str]] = {}
    for host in (host for host in before if host in unseeing and wants_put(before[host], sighting)):
        put = put_for(sighting, survey.views[host], survey.place)
        if put and not is_open_to_all(put, sighting) and _keeps_safeguards(sighting, host, survey):
            for_hosts.setdefault(put, []).append(host)
    for put, hosts in for_hosts.items():
        then = {verdict.host: verdict for verdict in after_put(put, sighting, survey, before)}
        seeing = tuple(host for host in before if then[host].visible and not before[host].visible)
        calling = tuple(host for host in hosts if then[host].verdict == "hidden-from-model")
        # The host that the command names must be one of them: else `link` itself would say that it did not help.
        if named := next((host for host in hosts if host in (*seeing, *calling)), None):
            yield Remedy(
                *("put", f"skillshelf link {asked_as(sighting, survey)} --to {named}", seeing, put, calling),
                asking=tuple(host for host in hosts if then[host].verdict == "untrusted"),
                doubtful=tuple(host for host in before if before[host].visible and not then[host].visible),
            )


def _keeps_safeguards(sighting: Sighting, host: str, survey: Survey) -> bool:
    """Whether a host heeds what the author holds back: nobody is advised to hand a skill to one that does not."""
    profile = survey.views[host].profile
    return not ignored_safeguard(document_of(sighting, profile, survey).fields, profile)


def _renamed(sighting: Sighting, before: Before, survey: Survey) -> Remedy | None:
    """The folder of skills with the name that hosts read, where it has one that is nearly that."""
    rename = rename_for(sighting, survey)
    if rename is None or os.path.dirname(rename.path) == os.path.dirname(sighting.path):
        return None
    root, name = os.path.split(os.path.dirname(rename.path))
    then = {one.host: one for one in after_put(Put(root, name, "copy", ""), sighting, survey, before)}
    seeing = tuple(host for host in before if then[host].visible and not before[host].visible)
    asking = tuple(host for host in before if then[host].verdict == "untrusted")
    return Remedy("hand", rename.command, seeing, asking=asking) if seeing or asking else None


# Changes by hand ----------------------------------------------------------------------------------


def _repairs(sighting: Sighting, verdicts: Sequence[Verdict], survey: Survey) -> list[Remedy]:
    """What else there is to do, with the hosts that it is enough for and those that it is not."""
    found: dict[str, Remedy] = {}
    trusting = []
    for verdict in verdicts:
        steps = steps_for(verdict, sighting, survey.views[verdict.host], survey)
        if [step.kind for step in steps] == ["trust"] and _is_enough(steps[0], verdict, sighting, survey):
            trusting.append(verdict.host)
            continue
        for kind, what, whom in _told(steps, verdict, sighting, survey):
            one = found.get(what) or Remedy(kind, what, ())
            found[what] = _COUNTED[whom](one, verdict.host)
    trust = [Remedy("hand", f"trust this folder in {' and in '.join(trusting)}", tuple(trusting))] if trusting else []
    return [*found.values(), *trust]


Whom = Literal["hosts", "calling", "needing"]
"""Among whom of a remedy a host is counted."""

_COUNTED: Mapping[Whom, Callable[[Remedy, str], Remedy]] = {
    "hosts": lambda remedy, host: remedy._replace(hosts=(*remedy.hosts, host)),
    "calling": lambda remedy, host: remedy._replace(calling=(*remedy.calling, host)),
    "needing": lambda remedy, host: remedy._replace(needing=(*remedy.needing, host)),
}


def _told(
    steps: Sequence[Step], verdict: Verdict, sighting: Sighting, survey: Survey
) -> Iterator[tuple[Kind, str, Whom]]:
    """The steps for one host as they are told: a change of the file by itself, since others may want it too."""
    changes = [step for step in steps if step.kind in ("text", "hand")]
    is_enough = len(steps) == 1 and _is_enough(steps[0], verdict, sighting, survey)
    for step in changes:
        yield "text" if step.kind == "text" else "hand", step.what, "hosts" if is_enough else "needing"
    if steps and not changes:
        profile = survey.views[verdict.host].profile
        is_for_people = held_back(document_of(sighting, profile, survey).fields, profile) is not None
        yield "hand", ", then: ".join(step.what for step in steps), "calling" if is_for_people else "hosts"


def _is_enough(step: Step, verdict: Verdict, sighting: Sighting, survey: Survey) -> bool:
    """Whether a host that meets the file will tell its model of it once this is done."""
    profile = survey.views[verdict.host].profile
    mended = _mended(sighting, step)
    changed = survey if mended is sighting else survey._replace(documents={})
    left = refusals(mended, profile, changed, folder=os.path.basename(os.path.dirname(verdict.at)))
    fields = document_of(mended, profile, changed).fields
    if "description-missing" in step.rules:
        fields = {**fields, "description": "x"}
    return all(finding.rule in step.rules for finding in left) and held_back(fields, profile) is None


def _mended(sighting: Sighting, step: Step) -> Sighting:
    """The file after a repair that changes no meaning; as it is where the step is none."""
    if step.kind != "text":
        return sighting
    text = Text(sighting.head, sighting.folder, find_profile(DEFAULT_PROFILE), None)
    data = repair(text, only=step.rules).data
    return sighting._replace(head=data, size=sighting.size + len(data) - len(sighting.head))
