"""Files of a name to what `why` says about each: the verdicts, the copies that `link` made of it, and what helps."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from skillshelf.copies import Standing, copies_of, source_of, standing_of
from skillshelf.fixes import asked_as, fix_for
from skillshelf.hostfinding import verdicts_of
from skillshelf.hostviews import Asked
from skillshelf.made import is_own_copy
from skillshelf.remedies import Remedy, remedies
from skillshelf.survey import Sighting, Survey
from skillshelf.verdicts import Verdict
from skillshelf.views import Where

__all__ = ["asked_about", "fixes_of"]

Judged = Mapping[str, Sequence[Verdict]]
"""What each host makes of a file, by its real path."""


class _Copy(NamedTuple):
    """A copy of a skill, how it stands to that, and the hosts that see it."""

    sighting: Sighting
    standing: Standing
    hosts: tuple[str, ...]


def asked_about(found: Sequence[Sighting], survey: Survey, hosts: Sequence[str]) -> list[Asked]:
    """What there is to say about each file."""
    copies = [copy for sighting in found for copy in copies_of(sighting, survey)]
    everything = {one.real_path: one for one in (*found, *copies)}
    judged = {path: verdicts_of(one, survey, hosts) for path, one in everything.items()}
    return [_asked(sighting, list(everything.values()), judged, survey) for sighting in found]


def _asked(sighting: Sighting, everything: Sequence[Sighting], judged: Judged, survey: Survey) -> Asked:
    verdicts = judged[sighting.real_path]
    text = (sighting.head, sighting.size)
    if is_own_copy(os.path.dirname(sighting.path)) and (source := source_of(sighting, survey)) is not None:
        # What helps is told of the skill itself, which a copy follows.
        words = "a copy that skillshelf made" + _STANDS[standing_of(sighting, source)]
        return Asked(sighting.path, verdicts, (), text, words, is_copy=True)
    where = Where(survey.place.cwd, survey.place.home)
    copies = [_copy(copy, sighting, judged) for copy in copies_of(sighting, survey)]
    having = {host: copy for copy in copies for host in copy.hosts}
    told = [
        verdict
        if verdict.visible or verdict.host not in having
        else verdict._replace(detail=_has(having[verdict.host], where))
        for verdict in verdicts
    ]
    helping = [remedy for copy in copies if (remedy := _remedy(copy, sighting, survey, where))]
    helping += remedies(sighting, verdicts, survey, served=_served(sighting, everything, judged))
    return Asked(sighting.path, told, helping, text, by_copy=tuple(having))


def _copy(copy: Sighting, sighting: Sighting, judged: Judged) -> _Copy:
    hosts = tuple(verdict.host for verdict in judged[copy.real_path] if verdict.visible)
    return _Copy(copy, standing_of(copy, sighting), hosts)


_STANDS: Mapping[Standing, str] = {"same": "", "behind": ", which fell behind", "edited": ", which was edited since"}


def _has(copy: _Copy, where: Where) -> str:
    return f"it has the copy {where.short(os.path.dirname(copy.sighting.path))}{_STANDS[copy.standing]}"


def _remedy(copy: _Copy, sighting: Sighting, survey: Survey, where: Where) -> Remedy | None:
    """What to do about a copy that no longer says what the skill says; None where it does, or nobody asked sees it."""
    if copy.standing == "same" or not copy.hosts:
        return None
    shown = where.short(os.path.dirname(copy.sighting.path))
    command = _renewing(sighting, copy.hosts[0], survey)
    if copy.standing == "behind":
        return Remedy("hand", f"{command}  ({shown} fell behind)", copy.hosts)
    source = where.short(os.path.dirname(sighting.path))
    what = f"{shown} was edited since: put what you need into {source}, remove the copy, then: {command}"
    return Remedy("hand", what, copy.hosts)


def _renewing(sighting: Sighting, host: str, survey: Survey) -> str:
    return f"skillshelf link {asked_as(sighting, survey)} --to {host}"


def _served(sighting: Sighting, everything: Sequence[Sighting], judged: Judged) -> set[str]:
    """The hosts that see another file of the name, or would if they trusted the folder.

    Not those that see another text instead of this one, which of the two is meant has to be settled; a copy of ours
    is meant to be the same.
    """
    mine = {verdict.host: verdict.verdict for verdict in judged[sighting.real_path]}
    served, misled = set(), set()
    for other in (other for other in everything if other is not sighting):
        seeing = {verdict.host for verdict in judged[other.real_path] if verdict.visible}
        asking = {verdict.host for verdict in judged[other.real_path] if verdict.verdict == "untrusted"}
        served |= seeing | {host for host in asking if mine[host] != "untrusted"}
        if (other.head, other.size) != (sighting.head, sighting.size) and not is_own_copy(os.path.dirname(other.path)):
            misled |= seeing
    return served - {host for host in misled if mine[host] == "shadowed-by"}


def fixes_of(asked: Asked, survey: Survey) -> dict[str, str | None]:
    """What to do for each host so that it sees the file, or the text that this has now."""
    sighting = survey.by_path[asked.path]
    if asked.is_copy:
        return dict.fromkeys(verdict.host for verdict in asked.verdicts)
    fixes = {
        verdict.host: None
        if verdict.host in asked.by_copy
        else fix_for(verdict, sighting, survey.views[verdict.host], survey)
        for verdict in asked.verdicts
    }
    for copy in copies_of(sighting, survey):
        if standing_of(copy, sighting) == "behind":
            seeing = [one.host for one in verdicts_of(copy, survey, asked.by_copy) if one.visible]
            fixes |= {host: _renewing(sighting, host, survey) for host in seeing}
    return fixes
