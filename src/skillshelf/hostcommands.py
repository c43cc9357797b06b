"""What the commands about agent hosts do: `why`, `hosts` and `link`.

Imports stand inside the functions: a command loads what it needs and nothing else.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.errors import AmbiguousSkill, ConfigurationError, SkillDirectoryNotFound, SkillNotFound

if TYPE_CHECKING:
    from skillshelf.hostviews import HostCount, Row
    from skillshelf.linking import Made
    from skillshelf.place import Place
    from skillshelf.survey import HostView, Sighting, Survey
    from skillshelf.verdicts import Verdict
    from skillshelf.views import Where

__all__ = ["hosts", "link", "why"]

DONE, NEGATIVE, NOT_FOUND = 0, 1, 3

Values = Mapping[str, Any]


# Why ----------------------------------------------------------------------------------------------


def why(values: Values) -> int:
    """Which hosts see a skill, and what keeps it from the others."""
    from skillshelf import hostviews, views
    from skillshelf.remedies import remedies
    from skillshelf.terminal import screen, write

    wanted = _needed(values, "skillshelf why NAME-or-PATH [--host H]")
    place = _place(values)
    names = _asked_hosts(values["host"])
    survey, found = _find(wanted, place, names)
    if not found:
        return _not_found(wanted, survey, as_json=values["json"])
    if values["fix"]:
        for line in _fixed(found, survey, values["host"]):
            _note(line)
        survey, found = _find(wanted, place, names)
    judged = {sighting.real_path: _verdicts(sighting, survey, names) for sighting in found}
    if values["json"]:
        write(views.as_json(_why_form(wanted, found, judged, survey)))
    else:
        where = views.Where(place.cwd, place.home)
        asked = []
        for sighting in found:
            verdicts = judged[sighting.real_path]
            helping = [(one.hosts, _how(one.what, one.root, where)) for one in remedies(sighting, verdicts, survey)]
            asked.append(hostviews.Asked(sighting.path, verdicts, helping))
        write(hostviews.why_view(wanted, asked, where, screen(place.env)))
    _say_unseen(survey)
    return DONE if any(verdict.visible for verdicts in judged.values() for verdict in verdicts) else NEGATIVE


def _how(what: str, root: str, where: "Where") -> str:
    return f"{what}  (into {where.short(root)})" if root else what


def _why_form(
    wanted: str, found: "Sequence[Sighting]", judged: "Mapping[str, Sequence[Verdict]]", survey: "Survey"
) -> dict[str, Any]:
    from skillshelf.hosts import HOSTS
    from skillshelf.remedies import fix_for

    def form(sighting: "Sighting", verdict: "Verdict") -> dict[str, Any]:
        host = HOSTS[verdict.host]
        return {
            "host": verdict.host,
            "visible": verdict.visible,
            "verdict": verdict.verdict,
            "detail": verdict.detail,
            "told": verdict.told,
            "fix": fix_for(verdict, sighting, survey.views[verdict.host], survey.place),
            "as_of": host.as_of,
            "grade": host.grade,
        }

    candidates = [
        {"path": sighting.path, "hosts": [form(sighting, verdict) for verdict in judged[sighting.real_path]]}
        for sighting in found
    ]
    return {"name": wanted, "candidates": candidates, "near": []}


def _not_found(wanted: str, survey: "Survey", *, as_json: bool) -> int:
    from skillshelf import views
    from skillshelf.terminal import write

    near = _near(wanted, survey)
    if as_json:
        write(views.as_json({"name": wanted, "candidates": [], "near": near}))
    hint = f"; did you mean {', '.join(near)}?" if near else "; skillshelf hosts shows every skill that any host sees"
    _note(f"no host has a skill {wanted!r} in any of its folders, here or at home{hint}")
    for miss in _near_misses(survey):
        _note(miss)
    return NOT_FOUND


def _near(wanted: str, survey: "Survey") -> list[str]:
    """Names that look like the one asked for."""
    from difflib import get_close_matches

    known = {name.lower(): name for sighting in survey.sightings for name in _names_of(sighting, survey)}
    word = os.path.basename(wanted.rstrip("/"))[:200].lower()
    close = get_close_matches(word, list(known), 3, 0.6)
    close += [name for name in sorted(known) if word in name and name not in close]
    return [known[name] for name in close[:5]]


# Finding ------------------------------------------------------------------------------------------


def _find(wanted: str, place: "Place", hosts: Sequence[str]) -> "tuple[Survey, list[Sighting]]":
    """A survey, and the files in it that are meant by a name or a path."""
    from skillshelf.survey import sight, take_survey

    if "/" in wanted or wanted in (".", "..", "SKILL.md"):
        path = os.path.normpath(os.path.join(place.cwd, os.path.expanduser(wanted)))
        survey = take_survey(place, hosts, path=path, progress=sys.stderr)
        meant = sight(path)
        return survey, [s for s in survey.sightings if meant is not None and s.real_path == meant.real_path]
    survey = take_survey(place, hosts, progress=sys.stderr)
    return survey, [sighting for sighting in survey.sightings if wanted in _names_of(sighting, survey)]


def _names_of(sighting: "Sighting", survey: "Survey") -> set[str]:
    """Every name a file goes by: its folder's, what it declares, and what hosts make of that."""
    from skillshelf.remedies import link_name

    found = {
        view.by_file[sighting.real_path].name for view in survey.views.values() if sighting.real_path in view.by_file
    }
    return {sighting.folder, link_name(sighting), *found}


def _verdicts(sighting: "Sighting", survey: "Survey", hosts: Sequence[str]) -> "list[Verdict]":
    from skillshelf.verdicts import judge

    return [judge(sighting, survey.views[host], survey) for host in hosts]


def _asked_hosts(given: Sequence[str]) -> list[str]:
    from skillshelf.hosts import HOSTS, find_host

    return [find_host(name).name for name in dict.fromkeys(given)] or list(HOSTS)


# Repairs ------------------------------------------------------------------------------------------


def _fixed(found: "Sequence[Sighting]", survey: "Survey", hosts: Sequence[str]) -> list[str]:
    """Do what needs no guessing, and tell what was done; a link is made only for a host that was named."""
    from skillshelf.hosts import find_host
    from skillshelf.linking import make

    told = []
    for sighting in found:
        told += _mended(sighting)
        for verdict in _verdicts(sighting, survey, [find_host(name).name for name in dict.fromkeys(hosts)]):
            view = survey.views[verdict.host]
            if verdict.visible is False and _wants_link(sighting, verdict, view, survey.place):
                told.append(_made_line(make(sighting, view, survey.place)))
    return told or ["nothing to repair that needs no guessing; to link a skill, name the host: --fix --host H"]


def _wants_link(sighting: "Sighting", verdict: "Verdict", view: "HostView", place: "Place") -> bool:
    from skillshelf.remedies import fix_for

    return (fix_for(verdict, sighting, view, place) or "").startswith("skillshelf link ")


def _mended(sighting: "Sighting") -> list[str]:
    """Repair the text of a file, and show each changed line."""
    from skillshelf import files, writing
    from skillshelf.fixing import Text, repair, unified_diff
    from skillshelf.limits import SKILL_FILE_BYTES
    from skillshelf.profiles import DEFAULT_PROFILE, find_profile

    data = files.read_file(sighting.real_path, limit=SKILL_FILE_BYTES, links="never")
    if data is None:
        return []
    repaired = repair(Text(data, sighting.folder, find_profile(DEFAULT_PROFILE), None))
    if repaired.data == data:
        return []
    if (reason := writing.why_not_replaced(sighting.real_path)) is not None:
        return [f"{sighting.path} was left as it is: {reason}"]
    writing.replace_file(sighting.real_path, repaired.data)
    return [f"repaired {sighting.path}:", *unified_diff(data, repaired.data, sighting.path.lstrip("/"))]


# Hosts --------------------------------------------------------------------------------------------


def hosts(values: Values) -> int:
    """Every skill here and every host."""
    from skillshelf import hostviews, views
    from skillshelf.survey import take_survey
    from skillshelf.terminal import screen, write

    place = _place(values)
    names = _asked_hosts(_pair(values))
    survey = take_survey(place, names, progress=sys.stderr)
    judged = [(sighting, _verdicts(sighting, survey, names)) for sighting in survey.sightings]
    if values["diff"]:
        judged = [(sighting, both) for sighting, both in judged if both[0].visible != both[1].visible]
    rows = [_row(sighting, verdicts, survey) for sighting, verdicts in judged]
    counts = [_count(survey.views[host], [verdicts[n] for _, verdicts in judged]) for n, host in enumerate(names)]
    if values["json"]:
        write(views.as_json(_hosts_form(place, counts, rows)))
        for miss in _near_misses(survey):
            _note(miss)
    elif values["diff"]:
        sides = [(row.name, both[0], both[1]) for row, (_, both) in zip(rows, judged, strict=True)]
        write(hostviews.diff_view(names[0], names[1], sides, screen(place.env)))
    else:
        expensive = _expensive(survey)
        warnings = _near_misses(survey, views.Where(place.cwd, place.home))
        write(hostviews.hosts_view(counts, rows, expensive=expensive, warnings=warnings, screen=screen(place.env)))
    _say_unseen(survey)
    return DONE


def _pair(values: Values) -> list[str]:
    first, second = values["diff"], values["b"]
    if bool(first) != bool(second) or (first and first == second):
        raise ConfigurationError("--diff takes two hosts; usage: skillshelf hosts --diff A B")
    return [first, second] if first else []


def _row(sighting: "Sighting", verdicts: "Sequence[Verdict]", survey: "Survey") -> "Row":
    from skillshelf.hostviews import Row
    from skillshelf.remedies import link_name

    return Row(link_name(sighting), sighting.path, {verdict.host: verdict.visible for verdict in verdicts})


def _count(view: "HostView", verdicts: "Sequence[Verdict]") -> "HostCount":
    from skillshelf.config import Settings
    from skillshelf.hostviews import HostCount

    text = view.text
    missing = [verdict for verdict in verdicts if verdict.visible is False]
    kinds = view.profile.catalog_budget
    budget = view.profile.budget_chars if "chars" in kinds else Settings().max_bytes if "bytes" in kinds else None
    return HostCount(
        view.profile.name,
        sum(verdict.visible is True for verdict in verdicts),
        len(missing),
        sum(verdict.told is False for verdict in missing),
        text.chars,
        text.tokens,
        budget,
        text.cut,
        text.omitted,
    )


def _hosts_form(place: "Place", counts: "Sequence[HostCount]", rows: "Sequence[Row]") -> dict[str, Any]:
    from skillshelf.hosts import HOSTS

    listed = []
    for count in counts:
        form = count._asdict()
        catalog = {key: form.pop(key) for key in ("chars", "tokens", "budget", "cut", "dropped")}
        host = HOSTS[count.host]
        listed.append({**form, "as_of": host.as_of, "grade": host.grade, "catalog": catalog})
    skills = [{"name": row.name, "path": row.path, "hosts": dict(row.hosts)} for row in rows]
    return {"cwd": place.cwd, "hosts": listed, "skills": skills}


def _expensive(survey: "Survey") -> list[tuple[str, int]]:
    """The three skills with the longest descriptions, if they are long at all."""
    lengths = {skill.name: len(skill.description) for view in survey.views.values() for skill in view.catalog.skills}
    longest = sorted(lengths.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    return [(name, length) for name, length in longest if length > 200]


def _near_misses(survey: "Survey", where: "Where | None" = None) -> list[str]:
    from skillshelf.nearmisses import near_misses

    return [f"{where.short(path) if where else path} {message}" for path, message in near_misses(survey)]


# Link ---------------------------------------------------------------------------------------------


def link(values: Values) -> int:
    """Make a skill visible to other hosts, or take that back."""
    from skillshelf.linking import make, take_back
    from skillshelf.survey import take_survey

    usage = "skillshelf link NAME --to HOST"
    wanted = _needed(values, usage)
    if not values["to"]:
        raise ConfigurationError(f"say for which host; usage: {usage}")
    place = _place(values)
    names = _asked_hosts(values["to"])
    if values["remove"]:
        survey = take_survey(place, names, progress=sys.stderr)
        made = [one for host in names for one in take_back(os.path.basename(wanted), survey.views[host])]
        return _report(wanted, made, {one.host: None for one in made}, place, as_json=values["json"])
    survey, found = _find(wanted, place, _asked_hosts(()))
    if not found:
        missing = SkillNotFound(wanted)
        missing.near = tuple(_near(wanted, survey))
        raise missing
    if len(found) > 1:
        raise AmbiguousSkill(wanted, tuple(sighting.path for sighting in found))
    (sighting,) = found
    before = {verdict.host: verdict for verdict in _verdicts(sighting, survey, list(survey.views))}
    made = []
    # Copies first: they serve those who follow links as well, and a link in their place would not.
    for host in sorted(names, key=lambda name: not _wants_copy(sighting, survey.views[name], place)):
        if before[host].visible:
            made.append(_seen_already(host, before[host]))
            continue
        # A link for one host may be what the next one needs, too.
        now, again = _find(sighting.real_path, place, [host])
        verdict = _verdicts(again[0], now, [host])[0]
        if _wants_link(again[0], verdict, now.views[host], place):
            made.append(make(again[0], now.views[host], place))
        else:
            made.append(_seen_already(host, verdict))
    return _verified(wanted, sighting, made, before, place, as_json=values["json"])


def _wants_copy(sighting: "Sighting", view: "HostView", place: "Place") -> bool:
    from skillshelf.remedies import link_roots

    return any(root.links == "never" for root in link_roots(sighting, view, place))


def _seen_already(host: str, verdict: "Verdict") -> "Made":
    from skillshelf.linking import Made

    return Made(host, "nothing", verdict.at, "this host sees it" if verdict.visible else "no link would help")


def _verified(
    wanted: str,
    sighting: "Sighting",
    made: "Sequence[Made]",
    before: "Mapping[str, Verdict]",
    place: "Place",
    *,
    as_json: bool,
) -> int:
    """Ask every host again, and say what each named one sees now and whom the change hurt."""
    survey, _ = _find(sighting.real_path, place, list(before))
    seen: dict[str, bool | None] = {}
    told = list(made)
    for number, one in enumerate(made):
        after, found = _find(one.path or sighting.real_path, place, [one.host])
        verdict = _verdicts(found[0], after, [one.host])[0]
        seen[one.host] = verdict.visible
        if not verdict.visible:
            told[number] = one._replace(detail=f"{one.detail}; still {verdict.verdict}: {verdict.detail}")
    status = _report(wanted, told, seen, place, as_json=as_json)
    (again,) = [s for s in survey.sightings if s.real_path == sighting.real_path]
    for verdict in _verdicts(again, survey, list(before)):
        if before[verdict.host].visible and not verdict.visible:
            _note(f"{verdict.host} saw {sighting.path} before and now {verdict.verdict}: {verdict.detail}")
    return status


def _report(
    wanted: str, made: "Sequence[Made]", seen: Mapping[str, bool | None], place: "Place", *, as_json: bool
) -> int:
    from skillshelf import views
    from skillshelf.terminal import write

    if as_json:
        forms = [{**one._asdict(), "visible": seen[one.host]} for one in made]
        write(views.as_json({"name": wanted, "made": forms}))
    else:
        where = views.Where(place.cwd, place.home)
        shown = [one._replace(path=where.short(one.path)) for one in made]
        write("".join(_made_line(one, seen[one.host]) + "\n" for one in shown))
    good = all(one.how == "removed" or seen[one.host] for one in made)
    return DONE if good else NEGATIVE


def _made_line(one: "Made", seen: bool | None = None) -> str:
    from skillshelf.text import visible

    words = {"link": "linked", "copy": "copied", "removed": "removed", "nothing": "nothing done"}
    now = {True: " - it sees the skill", False: " - it does not see the skill", None: ""}[seen]
    detail = f" ({one.detail})" if one.detail else ""
    return visible(f"{one.host}: {words[one.how]}{' ' + one.path if one.path else ''}{detail}{now}")


# What all of them need ----------------------------------------------------------------------------


def _place(values: Values) -> "Place":
    from skillshelf import files
    from skillshelf.place import locate

    place = locate(values["cwd"], values["home"], None)
    if files.kind_at(place.cwd) != "folder":
        raise SkillDirectoryNotFound(place.cwd)
    return place


def _needed(values: Values, usage: str) -> str:
    if not values["name_or_path"]:
        raise ConfigurationError(f"something is missing; usage: {usage}")
    return os.fspath(values["name_or_path"])


def _say_unseen(survey: "Survey") -> None:
    for problem in survey.unseen:
        _note(f"{problem.path}: {problem.message}")


def _note(message: str) -> None:
    from skillshelf.text import visible

    if sys.stderr is not None:
        print(f"skillshelf: {visible(message)}", file=sys.stderr)
