"""What `link` does: a skill and hosts to links or copies, and whether each host sees it then."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.cli.hostcommands import needed, place_of
from skillshelf.config.hosts import HOSTS
from skillshelf.core.console import PathDisplay, as_json, note, write
from skillshelf.core.environment import Place
from skillshelf.errors import ConfigurationError, SkillNotFound
from skillshelf.hosts.fixes import made_readable
from skillshelf.hosts.handing import hand_to, in_order, on_copies, the_one
from skillshelf.hosts.hostfinding import asked_hosts, find, near, verdicts_of
from skillshelf.hosts.linking import Made, made_line, take_back
from skillshelf.hosts.made import noted
from skillshelf.hosts.putting import link_name
from skillshelf.hosts.survey import Sighting
from skillshelf.hosts.verdicts import Verdict

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
        return _report(wanted, _taken_back(wanted, names, place), {}, place, json=values["json"])
    sighting, before = _meant(wanted, place)
    if sighting.problem:
        made = [Made(host, "nothing", "", made_readable(sighting, place)) for host in names]
        return _report(wanted, made, {}, place, json=values["json"])
    handed = [hand_to(host, sighting, place, even_so=values["even_so"]) for host in in_order(names)]
    warned = frozenset[str]().union(*(one.doubtful for one in handed))
    unwarned = [host for host in before if host not in warned]
    return _verified(wanted, sighting, [one.made for one in handed], unwarned, place, json=values["json"])


def _taken_back(wanted: str, hosts: Sequence[str], place: Place) -> list[Made]:
    """What was made of a skill for these hosts, removed; the skill itself may be gone."""
    survey, found = find(wanted, place, hosts)
    made = []
    for host in hosts:
        view = survey.views[host]
        known = [os.path.basename(wanted.rstrip("/")), *map(link_name, found)]
        ours = [name for name in dict.fromkeys(known) if any(noted(root.path, name) for root in view.roots)]
        made += [one for name in ours or known[:1] for one in take_back(name, view)]
    return made


def _meant(wanted: str, place: Place) -> tuple[Sighting, list[str]]:
    """The one skill that is meant, and the hosts that see it; a copy of our own is the skill it was made from."""
    survey, found = find(wanted, place, list(HOSTS))
    if not found:
        missing = SkillNotFound(wanted)
        missing.near = tuple(near(wanted, survey))
        raise missing
    meant = the_one(wanted, found, survey)
    return meant, [verdict.host for verdict in verdicts_of(meant, survey, survey.views) if verdict.visible]


def _verified(
    wanted: str, sighting: Sighting, made: Sequence[Made], before: Sequence[str], place: Place, *, json: bool
) -> int:
    """Ask every host again, and say what each named one sees now and whom the change hurt."""
    seen: dict[str, Verdict] = {}
    told = list(made)
    for number, one in enumerate(made):
        survey, found = find(one.path or sighting.real_path, place, [one.host])
        verdicts = verdicts_of(found[0], survey, [one.host]) if found else []
        for verdict in verdicts:
            seen[one.host] = verdict
            if one.how != "nothing" or not one.detail:
                is_listed = verdict.visible or verdict.verdict == "hidden-from-model"
                now = verdict.detail if is_listed else f"still {verdict.verdict}: {verdict.detail}"
                told[number] = one._replace(detail="; ".join(said for said in (one.detail, now) if said))
    status = _report(wanted, told, seen, place, json=json)
    survey, (again, *_) = find(sighting.real_path, place, before)
    for verdict in verdicts_of(again, survey, before):
        if not verdict.visible and not any(seen.visible for _, seen in on_copies(again, survey, verdict.host)):
            note(f"{verdict.host} saw {sighting.path} before and now {verdict.verdict}: {verdict.detail}")
    return status


def _report(wanted: str, made: Sequence[Made], seen: Mapping[str, Verdict], place: Place, *, json: bool) -> int:
    visible = {one.host: seen[one.host].visible if one.host in seen else None for one in made}
    if json:
        forms = [
            {
                "host": one.host,
                "how": one.how,
                "path": one.path,
                "detail": one.detail,
                "visible": visible[one.host],
                "on_change": HOSTS[one.host].on_change,
            }
            for one in made
        ]
        write(as_json({"name": wanted, "made": forms}))
    else:
        where = PathDisplay(place.cwd, place.home)
        lines = [made_line(one._replace(path=where.short(one.path)), visible[one.host]) for one in made]
        lines += _running(made)
        write("".join(f"{line}\n" for line in lines))
    return DONE if all(_is_good(one, seen.get(one.host)) for one in made) else NEGATIVE


def _is_good(one: Made, verdict: Verdict | None) -> bool:
    """Whether a host has got what its author allows: where he keeps a skill from models, people can call it."""
    if one.how in ("removed", "kept"):
        return True
    return (
        not one.refused and verdict is not None and (verdict.visible is True or verdict.verdict == "hidden-from-model")
    )


def _running(made: Sequence[Made]) -> list[str]:
    """How sessions that are running come to know of what was made or removed."""
    changed = dict.fromkeys(one.host for one in made if one.how not in ("kept", "nothing"))
    known = [f"{host}: {HOSTS[host].on_change}" for host in changed if HOSTS[host].on_change]
    return [f"If it is running now - {'; '.join(known)}"] if known else []
