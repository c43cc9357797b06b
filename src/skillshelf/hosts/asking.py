"""Files of a name to what `why` says about each: the verdicts, the copies that `link` made of it, and what helps."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from skillshelf.core.console import PathDisplay
from skillshelf.hosts.copies import Standing, copies_of, source_of, standing_of
from skillshelf.hosts.fixes import asked_as, fix_for, wants_put
from skillshelf.hosts.hostfinding import verdicts_of
from skillshelf.hosts.made import hosts_of, is_own_copy, noted
from skillshelf.hosts.remedies import Remedy, remedies
from skillshelf.hosts.survey import Sighting, Survey
from skillshelf.hosts.verdicts import Verdict

__all__ = ["asked_about", "fixes_of"]


class Explanation(NamedTuple):
    """One file, the verdict of every host asked, what helps, its text, and what there is to say about its place.

    `is_copy` if it is one that `link` made; `by_copy` are the hosts that have such a copy of it.
    """

    path: str
    verdicts: Sequence[Verdict]
    help: Sequence[Remedy]
    text: tuple[bytes, int]
    note: str = ""
    is_copy: bool = False
    by_copy: Sequence[str] = ()


Judged = Mapping[str, Sequence[Verdict]]
"""What each host makes of a file, by its real path."""


class _Copy(NamedTuple):
    """A copy of a skill, how it stands to that, and what the hosts make of it that look where it lies."""

    sighting: Sighting
    standing: Standing
    verdicts: Sequence[Verdict]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that see it."""
        return tuple(verdict.host for verdict in self.verdicts if verdict.visible)

    @property
    def folder(self) -> str:
        """Where it lies."""
        return os.path.dirname(self.sighting.path)


def asked_about(found: Sequence[Sighting], survey: Survey, hosts: Sequence[str]) -> list[Explanation]:
    """What there is to say about each file."""
    copies = [copy for sighting in found for copy in copies_of(sighting, survey)]
    everything = {one.real_path: one for one in (*found, *copies)}
    judged = {path: verdicts_of(one, survey, hosts) for path, one in everything.items()}
    return [_asked(sighting, list(everything.values()), judged, survey) for sighting in found]


def _asked(sighting: Sighting, everything: Sequence[Sighting], judged: Judged, survey: Survey) -> Explanation:
    verdicts = judged[sighting.real_path]
    text = (sighting.head, sighting.size)
    if is_own_copy(os.path.dirname(sighting.path)) and (source := source_of(sighting, survey)) is not None:
        # What helps is told of the skill itself, which a copy follows.
        words = "a copy that skillshelf made" + _STANDS[standing_of(sighting, source)]
        return Explanation(sighting.path, verdicts, (), text, words, is_copy=True)
    copies = [_copy(copy, sighting, judged) for copy in copies_of(sighting, survey)]
    helping = [remedy for copy in copies if (remedy := _remedy(copy, sighting, survey))]
    reached = {verdict.host for copy in copies for verdict in copy.verdicts}
    served = _served(sighting, everything, judged) | reached
    helping += remedies(sighting, verdicts, survey, served=served)
    seeing = {host for copy in copies for host in copy.hosts} | {one.host for one in verdicts if one.visible}
    for copy in copies:
        left = [verdict for verdict in copy.verdicts if verdict.host not in seeing]
        helping += remedies(copy.sighting, left, survey) if left and copy.standing == "same" else []
    told = [_told(verdict, sighting, copies, survey) for verdict in verdicts]
    by_copy = tuple(host for copy in copies for host in copy.hosts)
    return Explanation(sighting.path, told, _together(helping), text, by_copy=by_copy)


def _copy(copy: Sighting, sighting: Sighting, judged: Judged) -> _Copy:
    there = [verdict for verdict in judged[copy.real_path] if not wants_put(verdict, copy)]
    return _Copy(copy, standing_of(copy, sighting), there)


_STANDS: Mapping[Standing, str] = {"same": "", "behind": ", which fell behind", "edited": ", which was edited since"}


_SEES: Mapping[Standing, str] = {
    "same": "sees the copy",
    "behind": "sees an old copy,",
    "edited": "sees an edited copy,",
}


def _told(verdict: Verdict, sighting: Sighting, copies: Sequence[_Copy], survey: Survey) -> Verdict:
    """A verdict as it is told: of a host that does not look where the file lies, with the copy that it has."""
    having = [(copy, one) for copy in copies for one in copy.verdicts if one.host == verdict.host]
    if verdict.visible or not having:
        return verdict
    copy, seen = max(having, key=lambda pair: pair[1].visible is True)
    shown = PathDisplay(survey.place.cwd, survey.place.home).short(copy.folder)
    if seen.visible:
        return verdict._replace(detail=f"{_SEES[copy.standing]} {shown}")
    return verdict._replace(detail=f"{seen.verdict}: the copy {shown}") if wants_put(verdict, sighting) else verdict


def _together(helping: Iterable[Remedy]) -> list[Remedy]:
    """The same advice for a skill and its copies as one."""
    found: dict[str, Remedy] = {}
    for one in helping:
        known = found.get(one.what)
        more = known and known._replace(hosts=known.hosts + one.hosts, needing=known.needing + one.needing)
        found[one.what] = more or one
    return list(found.values())


def _remedy(copy: _Copy, sighting: Sighting, survey: Survey) -> Remedy | None:
    """What to do about a copy that no longer says what the skill says; None where it does, or nobody asked has it."""
    if copy.standing == "same" or not copy.verdicts:
        return None
    where = PathDisplay(survey.place.cwd, survey.place.home)
    having = tuple(verdict.host for verdict in copy.verdicts)
    hosts = copy.hosts or having
    made_for = hosts_of(noted(*os.path.split(copy.folder)) or {})
    command = _renewing(sighting, next((host for host in made_for if host in having), having[0]), survey)
    if copy.standing == "behind":
        return Remedy("hand", f"{command}  ({where.short(copy.folder)} fell behind)", hosts)
    source = where.short(os.path.dirname(sighting.path))
    edited = f"{where.short(copy.folder)} was edited since"
    return Remedy("hand", f"{edited}: put what you need into {source}, remove the copy, then: {command}", hosts)


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


def fixes_of(asked: Explanation, survey: Survey) -> dict[str, str | None]:
    """What to do for each host so that it sees the file, or the text that this has now."""
    sighting = survey.by_path[asked.path]
    hosts = [verdict.host for verdict in asked.verdicts]
    if asked.is_copy:
        return dict.fromkeys(hosts)
    fixes = {one.host: fix_for(one, sighting, survey.views[one.host], survey) for one in asked.verdicts}
    for copy in copies_of(sighting, survey):
        behind = standing_of(copy, sighting) == "behind"
        for one in verdicts_of(copy, survey, hosts):
            if fixes[one.host] is not None and not wants_put(one, copy):
                fix = fix_for(one, copy, survey.views[one.host], survey)
                fixes[one.host] = _renewing(sighting, one.host, survey) if behind else fix
    return fixes
