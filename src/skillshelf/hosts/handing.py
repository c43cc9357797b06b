"""A skill and a host to what was done so that the host sees it: the one way that `link` and `why --fix` go."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import PathDisplay, note
from skillshelf.core.environment import Place
from skillshelf.errors import AmbiguousSkill
from skillshelf.hosts.copies import copies_of, sources, standing_of
from skillshelf.hosts.fixes import asked_as, fix_for, wants_put
from skillshelf.hosts.hostfinding import find, verdicts_of
from skillshelf.hosts.linking import Made, claim, make, refusal, renew
from skillshelf.hosts.made import keep_for
from skillshelf.hosts.putting import Put, careless_readers, put_for, real_root
from skillshelf.hosts.simulate import after_put
from skillshelf.hosts.survey import Sighting, Survey
from skillshelf.hosts.verdict import SAFEGUARD, document_of, ignored_safeguard
from skillshelf.hosts.verdicts import Verdict

__all__ = ["Handed", "hand_to", "in_order", "on_copies", "the_one"]


class Handed(NamedTuple):
    """What was done for a host, and who saw the skill before and is in doubt since."""

    made: Made
    doubtful: frozenset[str] = frozenset()


def the_one(wanted: str, found: Sequence[Sighting], survey: Survey) -> Sighting:
    """The one skill that is meant by files of a name; raises where there are several."""
    meant = sources(found, survey)
    if len(meant) > 1:
        raise AmbiguousSkill(wanted, tuple(sighting.path for sighting in meant))
    return meant[0]


def in_order(hosts: Sequence[str]) -> list[str]:
    """Hosts that may want a copy first: it serves those who follow links as well."""
    return sorted(hosts, key=lambda name: not _may_want_copy(name))


def _may_want_copy(host: str) -> bool:
    profile = HOSTS[host]
    return "never" in (profile.user_links, profile.other_links) or "links" in profile.unknown


def hand_to(host: str, sighting: Sighting, place: Place, *, even_so: bool = False) -> Handed:
    """Do for one host what it lacks; `even_so` hands a skill also to a host that does not heed its author."""
    # Looked at again: what was made for one host may be what the next one needs, too.
    survey, (now, *_) = find(sighting.real_path, place, list(HOSTS))
    view = survey.views[host]
    (verdict,) = verdicts_of(now, survey, [host])
    if (made := _by_copy(host, now, verdict, survey)) is not None:
        return Handed(made)
    if verdict.visible:
        keep_for(host, verdict.at)
        return Handed(Made(host, "nothing", verdict.at, ""))
    if not wants_put(verdict, now):
        return Handed(Made(host, "nothing", verdict.at, _no_link(verdict, now, survey)))
    put = put_for(now, view, place)
    if put is None:
        return Handed(make(now, view, place))
    if careless := _careless(put, host, now, survey):
        if not even_so:
            command = f"skillshelf link {asked_as(now, survey)} --to {host} --even-so"
            return Handed(refusal(host, f"{_would_ignore(careless, put.name)}; if you want that: {command}"))
        note(_would_ignore(careless, put.name))
    doubtful = _warn(host, put, now, survey)
    return Handed(make(now, view, place), doubtful)


# Copies that there are ----------------------------------------------------------------------------


def on_copies(sighting: Sighting, survey: Survey, host: str) -> list[tuple[Sighting, Verdict]]:
    """The copies of a skill that lie where a host looks, with what it makes of each."""
    judged = [(copy, verdicts_of(copy, survey, [host])[0]) for copy in copies_of(sighting, survey)]
    return [(copy, verdict) for copy, verdict in judged if not wants_put(verdict, copy)]


def _by_copy(host: str, sighting: Sighting, verdict: Verdict, survey: Survey) -> Made | None:
    """What was done for a host that has a copy: one that fell behind is made anew, one that was edited stays."""
    copies = [(copy, seen, standing_of(copy, sighting)) for copy, seen in on_copies(sighting, survey, host)]
    for copy, _, standing in copies:
        if standing == "behind":
            if not verdict.visible:
                claim(copy, host, sighting)
            return renew(copy, host, sighting)
    if verdict.visible:
        return None
    for copy, seen, standing in sorted(copies, key=lambda one: one[2] == "edited"):
        if standing == "edited":
            source = PathDisplay(survey.place.cwd, survey.place.home).short(os.path.dirname(sighting.path))
            why = f"this copy was edited since it was made: put what you need into {source}, remove the copy, try again"
            return refusal(host, why, os.path.dirname(seen.at))
        claim(copy, host, sighting)
        # What a host will see once it trusts the folder needs nothing else either.
        is_there = seen.visible or seen.verdict == "untrusted"
        return Made(host, "nothing", seen.at, "" if is_there else _no_link(seen, copy, survey))
    return None


def _no_link(verdict: Verdict, sighting: Sighting, survey: Survey) -> str:
    """That a file already lies where a host looks, and what keeps it out there."""
    fix = fix_for(verdict, sighting, survey.views[verdict.host], survey)
    return f"no link would help; {fix}" if fix else "no link would help"


# What is said before ------------------------------------------------------------------------------


def _careless(put: Put, host: str, sighting: Sighting, survey: Survey) -> list[str]:
    """The hosts that would begin to tell their model about a skill which its author keeps from models."""
    profile = survey.views[host].profile
    own = [host] if ignored_safeguard(document_of(sighting, profile, survey).fields, profile) else []
    readers = [reader for reader in careless_readers(put, sighting) if reader != host]
    if not own and not readers:
        return []
    return own + [verdict.host for verdict in verdicts_of(sighting, survey, readers) if not verdict.visible]


_NAMED = 3


def _would_ignore(hosts: Sequence[str], name: str) -> str:
    more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
    one = len(hosts) == 1
    return (
        f"{', '.join(hosts[:_NAMED])}{more} {'ignores' if one else 'ignore'} {SAFEGUARD}: "
        f"{'its model' if one else 'their models'} could call {name} unasked"
    )


def _warn(host: str, put: Put, sighting: Sighting, survey: Survey) -> frozenset[str]:
    """Say beforehand which hosts will not be sure of a skill, and where it really goes; returns these hosts."""
    where = PathDisplay(survey.place.cwd, survey.place.home)
    if real := real_root(put.root, put.label):
        note(f"{where.short(put.root)} is really {real}")
    before = [verdict.host for verdict in verdicts_of(sighting, survey, survey.views) if verdict.visible]
    doubtful = [verdict.host for verdict in after_put(put, sighting, survey, before) if not verdict.visible]
    if doubtful:
        what = f"a {put.how} in {where.short(put.root)}"
        note(f"with {what} these have two skills of that name, and which one wins is open: {', '.join(doubtful)}")
        note(f"to take it back: skillshelf link {put.name} --to {host} --remove")
    return frozenset(doubtful)
