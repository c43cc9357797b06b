"""What `link` does: a skill and hosts to links or copies, and whether each host sees it then."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.errors import AmbiguousSkill, ConfigurationError, SkillNotFound
from skillshelf.hostfinding import asked_hosts, find, near, needed, note, place_of, verdicts_of
from skillshelf.hosts import HOSTS
from skillshelf.linking import Made, keep_for, made_line, make, take_back
from skillshelf.place import Place
from skillshelf.remedies import fix_for, link_roots, wants_link
from skillshelf.survey import HostView, Sighting, take_survey
from skillshelf.terminal import write
from skillshelf.verdicts import Verdict
from skillshelf.views import Where, as_json

__all__ = ["link"]

DONE, NEGATIVE = 0, 1


def link(values: Mapping[str, Any]) -> int:
    """Make a skill visible to other hosts, or take that back."""
    usage = "skillshelf link NAME --to HOST"
    wanted = needed(values, usage)
    if not values["to"]:
        raise ConfigurationError(f"say for which host; usage: {usage}")
    place = place_of(values)
    names = asked_hosts(values["to"])
    if values["remove"]:
        survey = take_survey(place, names, progress=sys.stderr)
        made = [one for host in names for one in take_back(os.path.basename(wanted), survey.views[host])]
        return _report(wanted, made, {one.host: None for one in made}, place, json=values["json"])
    survey, found = find(wanted, place, list(HOSTS))
    if not found:
        missing = SkillNotFound(wanted)
        missing.near = tuple(near(wanted, survey))
        raise missing
    if len(found) > 1:
        raise AmbiguousSkill(wanted, tuple(sighting.path for sighting in found))
    (sighting,) = found
    before = {verdict.host: verdict for verdict in verdicts_of(sighting, survey, survey.views)}
    # Copies first: they serve those who follow links as well, and a link in their place would not.
    ordered = sorted(names, key=lambda name: not _wants_copy(sighting, survey.views[name], place))
    made = [_made(host, sighting, before[host], place) for host in ordered]
    return _verified(wanted, sighting, made, before, place, json=values["json"])


def _made(host: str, sighting: Sighting, before: Verdict, place: Place) -> Made:
    """What is done for one host, if anything has to be."""
    if before.visible:
        keep_for(host, before.at)
        return Made(host, "nothing", before.at, "")
    # A link for one host may be what the next one needs, too.
    survey, (now, *_) = find(sighting.real_path, place, [host])
    view = survey.views[host]
    (verdict,) = verdicts_of(now, survey, [host])
    if wants_link(now, verdict, view, survey):
        return make(now, view, place)
    if verdict.visible:
        keep_for(host, verdict.at)
        return Made(host, "nothing", verdict.at, "")
    fix = fix_for(verdict, now, view, survey)
    return Made(host, "nothing", verdict.at, f"no link would help; {fix}" if fix else "no link would help")


def _wants_copy(sighting: Sighting, view: HostView, place: Place) -> bool:
    return any(root.links == "never" for root in link_roots(sighting, view, place))


def _verified(
    wanted: str, sighting: Sighting, made: Sequence[Made], before: Mapping[str, Verdict], place: Place, *, json: bool
) -> int:
    """Ask every host again, and say what each named one sees now and whom the change hurt."""
    seen: dict[str, bool | None] = {}
    told = list(made)
    for number, one in enumerate(made):
        survey, found = find(one.path or sighting.real_path, place, [one.host])
        verdicts = verdicts_of(found[0], survey, [one.host]) if found else []
        seen[one.host] = verdicts[0].visible if verdicts else False
        for verdict in verdicts if one.how != "nothing" or not one.detail else ():
            is_listed = verdict.visible or verdict.verdict == "hidden-from-model"
            now = verdict.detail if is_listed else f"still {verdict.verdict}: {verdict.detail}"
            told[number] = one._replace(detail="; ".join(said for said in (one.detail, now) if said))
    status = _report(wanted, told, seen, place, json=json)
    survey, (again, *_) = find(sighting.real_path, place, list(before))
    for verdict in verdicts_of(again, survey, before):
        if before[verdict.host].visible and not verdict.visible:
            note(f"{verdict.host} saw {sighting.path} before and now {verdict.verdict}: {verdict.detail}")
    return status


def _report(wanted: str, made: Sequence[Made], seen: Mapping[str, bool | None], place: Place, *, json: bool) -> int:
    if json:
        forms = [{**one._asdict(), "visible": seen[one.host], "on_change": HOSTS[one.host].on_change} for one in made]
        write(as_json({"name": wanted, "made": forms}))
    else:
        where = Where(place.cwd, place.home)
        lines = [made_line(one._replace(path=where.short(one.path)), seen[one.host]) for one in made]
        lines += _running(made)
        write("".join(f"{line}\n" for line in lines))
    good = all(one.how == "removed" or seen[one.host] for one in made)
    return DONE if good else NEGATIVE


def _running(made: Sequence[Made]) -> list[str]:
    """How sessions that are running come to know of what was made or removed."""
    changed = dict.fromkeys(one.host for one in made if one.how != "nothing")
    known = [f"{host}: {HOSTS[host].on_change}" for host in changed if HOSTS[host].on_change]
    return [f"If it is running now - {'; '.join(known)}"] if known else []
