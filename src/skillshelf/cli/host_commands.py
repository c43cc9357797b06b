"""What the commands about agent hosts do: `why` and `hosts`.

Imports stand inside the functions: a command loads what it needs and nothing else.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.config.hosts import HOSTS
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, as_json, note, write
from skillshelf.core.environment import Environment, make_environment
from skillshelf.errors import ConfigurationError, SkillDirectoryNotFound, SkillNotFound
from skillshelf.hosts.explain import Explanation, asked_hosts, find, near, verdicts_of
from skillshelf.hosts.fixes import made_readable
from skillshelf.hosts.link import LinkAction, hand_to, in_order, made_line, on_copies, take_back, the_one
from skillshelf.hosts.placement import link_name, manifest_entry
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import SkillFile

if TYPE_CHECKING:
    from skillshelf.cli.host_views import HostCount, HostRow
    from skillshelf.hosts.survey import HostState, Survey

__all__ = ["hosts", "link", "why"]


DONE, NEGATIVE, NOT_FOUND = 0, 1, 3

Values = Mapping[str, Any]


# Why ----------------------------------------------------------------------------------------------


def why(values: Values) -> int:
    """Which hosts see a skill, and what keeps it from the others."""
    from skillshelf.cli.host_views import why_view
    from skillshelf.core.console import screen, write
    from skillshelf.hosts.explain import asked_about, asked_hosts, find
    from skillshelf.hosts.near_misses import broken_roots, near_misses

    wanted = needed(values, "skillshelf why NAME-or-PATH [--host H]")
    environment = environment_of(values)
    names = asked_hosts(values["host"])
    survey, found = find(wanted, environment, names)
    if not found:
        return _not_found(wanted, survey, wants_json=values["json"])
    if values["fix"]:
        _fix(wanted, found, survey, values["host"])
        survey, found = find(wanted, environment, names)
    asked = asked_about(found, survey, names)
    if values["json"]:
        write(as_json(_why_form(wanted, asked, survey)))
    else:
        where = PathDisplay(environment.cwd, environment.home)
        write(why_view(wanted, asked, where, screen(environment.env)))
    broken = {*broken_roots(survey)}
    for miss in near_misses(survey):
        if miss in broken or any(sighting.path.startswith(f"{miss.path}/") for sighting in found):
            note(f"{miss.path} {miss.message}")
    _say_unseen(survey)
    return DONE if any(file.by_copy or any(one.visible for one in file.verdicts) for file in asked) else NEGATIVE


def _why_form(wanted: str, asked: "Sequence[Explanation]", survey: "Survey") -> dict[str, Any]:
    from skillshelf.config.hosts import HOSTS
    from skillshelf.hosts.explain import fixes_of

    def form(verdict: "Verdict", fix: str | None) -> dict[str, Any]:
        host = HOSTS[verdict.host]
        return {
            "host": verdict.host,
            "visible": verdict.visible,
            "verdict": verdict.verdict,
            "detail": verdict.detail,
            "told": verdict.told,
            "fix": fix,
            "as_of": host.as_of,
            "grade": host.grade,
        }

    candidates = []
    for file in asked:
        fixes = fixes_of(file, survey)
        candidates.append({"path": file.path, "hosts": [form(one, fixes[one.host]) for one in file.verdicts]})
    return {"name": wanted, "candidates": candidates, "near": []}


def _not_found(wanted: str, survey: "Survey", *, wants_json: bool) -> int:
    from skillshelf.core import files
    from skillshelf.core.console import write
    from skillshelf.hosts.explain import is_path, near, near_miss_lines, path_of

    close = near(wanted, survey)
    if wants_json:
        write(as_json({"name": wanted, "candidates": [], "near": close}))
    where = PathDisplay(survey.environment.cwd, survey.environment.home)
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    if not is_path(wanted):
        note(f"no host has a skill {wanted!r} in any of its folders, here or at home{hint}")
    elif files.kind_at(files.real_path(path_of(wanted, survey.environment))) == "folder":
        note(f"there is no SKILL.md in the folder {wanted}{hint}")
    else:
        note(f"there is nothing at {wanted}{hint}")
    for miss in near_miss_lines(survey, where):
        note(miss)
    _say_unseen(survey)
    if not close:
        note("every skill that any host sees: skillshelf hosts; a new one: skillshelf new NAME")
    return NOT_FOUND


# Repairs ------------------------------------------------------------------------------------------


def _fix(wanted: str, found: "Sequence[SkillFile]", survey: "Survey", hosts: Sequence[str]) -> None:
    """Do what needs no guessing, each shown before it is done; a link is made only for a host that was named."""
    from skillshelf.core.console import PathDisplay
    from skillshelf.hosts.explain import asked_hosts
    from skillshelf.hosts.link import hand_to, in_order, made_line, the_one
    from skillshelf.hosts.placement import sources

    meant = sources(found, survey)
    names = in_order(asked_hosts(hosts)) if hosts else []
    if any(_lacks(host, found, survey) for host in names):
        # Explanation before anything is changed: it refuses where it is not clear which one is to be linked.
        the_one(wanted, found, survey)
    # Not `any`, which would stop at the first.
    told = sum([_mend(sighting, survey.environment) for sighting in meant]) > 0
    where = PathDisplay(survey.environment.cwd, survey.environment.home)
    for host in names if len(meant) == 1 and not meant[0].problem else ():
        made = hand_to(host, meant[0], survey.environment).made
        if made.how != "nothing" or made.refused:
            note(made_line(made._replace(path=where.short(made.path))))
            told = True
    if not told and names:
        note(f"nothing to do for {', '.join(names)} that needs no guessing")
    elif not told:
        note("nothing to repair that needs no guessing; to link a skill, name the host: --fix --host H")


def _lacks(host: str, found: "Sequence[SkillFile]", survey: "Survey") -> bool:
    """Whether a host sees none of these files, because of where they lie."""
    from skillshelf.hosts.explain import verdicts_of
    from skillshelf.hosts.fixes import wants_put

    judged = [(sighting, verdicts_of(sighting, survey, [host])[0]) for sighting in found]
    if any(verdict.visible or verdict.verdict == "untrusted" for _, verdict in judged):
        return False
    return any(wants_put(verdict, sighting) for sighting, verdict in judged)


def _mend(sighting: "SkillFile", environment: "Environment") -> bool:
    """Repair the text of a file after each changed line was shown; says whether there was anything to say."""
    from skillshelf.config.systems import DEFAULT_PROFILE, find_profile
    from skillshelf.core import files
    from skillshelf.core.atomic_write import replace_file, why_not_replaced
    from skillshelf.core.limits import SKILL_FILE_BYTES
    from skillshelf.hosts.placement import project_of
    from skillshelf.lint.fix import FixInput, fix_text, unified_diff

    profile = find_profile(DEFAULT_PROFILE)
    data = files.read_file(sighting.real_path, limit=SKILL_FILE_BYTES, links="never")
    if data is None:
        return False
    repaired = fix_text(FixInput(data, sighting.folder, profile, None))
    if repaired.data == data:
        return False
    if sighting.real_path not in sighting.ways and not files.is_inside(sighting.real_path, project_of(environment)):
        note(f"{sighting.path} was left as it is: a link leads out of this project, to {sighting.real_path}")
        return True
    if (reason := why_not_replaced(sighting.real_path)) is not None:
        note(f"{sighting.path} was left as it is: {reason}")
        return True
    for line in unified_diff(data, repaired.data, sighting.path.lstrip("/")):
        note(line)
    replace_file(sighting.real_path, repaired.data)
    note(f"repaired {sighting.path}")
    return True


# Hosts --------------------------------------------------------------------------------------------


def hosts(values: Values) -> int:
    """Every skill here and every host."""
    from skillshelf.cli.host_views import Beside, diff_view, hosts_view
    from skillshelf.core.console import screen, write
    from skillshelf.hosts.explain import asked_hosts, near_miss_lines, verdicts_of
    from skillshelf.hosts.survey import take_survey

    environment = environment_of(values)
    names = asked_hosts(_pair(values))
    survey = take_survey(environment, names, progress=sys.stderr)
    judged = [(sighting, verdicts_of(sighting, survey, names)) for sighting in survey.sightings]
    where = PathDisplay(environment.cwd, environment.home)
    rows = [_row(sighting, verdicts) for sighting, verdicts in judged]
    texts = [(row.name, sighting.head, sighting.size) for row, (sighting, _) in zip(rows, judged, strict=True)]
    counts = [
        _count(survey.views[host], [verdicts[n] for _, verdicts in judged], texts) for n, host in enumerate(names)
    ]
    if values["diff"]:
        judged = _different(judged, texts)
        rows = [_row(sighting, verdicts) for sighting, verdicts in judged]
    if values["json"]:
        write(as_json(_hosts_form(environment, counts, rows)))
        for miss in near_miss_lines(survey):
            note(miss)
    elif values["diff"]:
        sides = [(row, both[0], both[1]) for row, (_, both) in zip(rows, judged, strict=True)]
        write(diff_view(names[0], names[1], sides, where, screen(environment.env)))
    else:
        beside = Beside(_expensive(survey), near_miss_lines(survey, where))
        write(hosts_view(counts, rows, beside, where, screen(environment.env)))
    _say_unseen(survey)
    return DONE


def _pair(values: Values) -> list[str]:
    first, second = values["diff"], values["b"]
    if bool(first) != bool(second) or (first and first == second):
        raise ConfigurationError("--diff takes two hosts; usage: skillshelf hosts --diff A B")
    return [first, second] if first else []


SkillText = tuple[str, bytes, int]
"""What tells a skill from others: its name, how it begins and how long it is."""


def _different(
    judged: "Sequence[tuple[SkillFile, list[Verdict]]]", texts: Sequence[SkillText]
) -> "list[tuple[SkillFile, list[Verdict]]]":
    """The skills that one of two hosts sees and the other does not; files with the same text are one skill."""
    from skillshelf.cli.host_views import best_of
    from skillshelf.hosts.placement import is_own_copy

    alike: dict[SkillText, list[tuple[SkillFile, list[Verdict]]]] = {}
    for text, one in zip(texts, judged, strict=True):
        alike.setdefault(text, []).append(one)
    different = []
    for files_of_it in alike.values():
        both = best_of([verdicts for _, verdicts in files_of_it])
        if both[0].visible != both[1].visible:
            sightings = [sighting for sighting, _ in files_of_it]
            own = [one for one in sightings if not is_own_copy(os.path.dirname(one.path))]
            different.append(((own or sightings)[0], both))
    return different


def _row(sighting: "SkillFile", verdicts: "Sequence[Verdict]") -> "HostRow":
    from skillshelf.cli.host_views import HostRow
    from skillshelf.hosts.placement import link_name

    return HostRow(link_name(sighting), sighting.path, {verdict.host: verdict.visible for verdict in verdicts})


def _count(view: "HostState", verdicts: "Sequence[Verdict]", texts: Sequence[SkillText]) -> "HostCount":
    """What one host sees and misses; a file of which it sees a copy with the same text is not missing."""
    from skillshelf.cli.host_views import HostCount
    from skillshelf.config.settings import Settings

    text = view.text
    told = {one for one, verdict in zip(texts, verdicts, strict=True) if verdict.visible}
    unseen = [(one, verdict) for one, verdict in zip(texts, verdicts, strict=True) if verdict.visible is False]
    missing = [verdict for one, verdict in unseen if one not in told]
    kinds = view.profile.catalog_budget
    budget = view.profile.budget_chars if "chars" in kinds else Settings().max_bytes if "bytes" in kinds else None
    in_order = [skill for skill in view.catalog.skills if skill.path in view.cut or skill.path in view.dropped]
    return HostCount(
        view.profile.name,
        sum(verdict.visible is True for verdict in verdicts),
        len(missing),
        sum(verdict.told is False for verdict in missing),
        sum(verdict.visible is None for verdict in verdicts),
        text.chars,
        text.tokens,
        budget,
        [skill.name for skill in in_order if skill.path in view.cut],
        [skill.name for skill in in_order if skill.path in view.dropped],
    )


def _hosts_form(environment: "Environment", counts: "Sequence[HostCount]", rows: "Sequence[HostRow]") -> dict[str, Any]:
    from skillshelf.config.hosts import HOSTS

    listed = []
    for count in counts:
        host = HOSTS[count.host]
        catalog = {
            "chars": count.chars,
            "tokens": count.tokens,
            "budget": count.budget,
            "cut": len(count.cut),
            "dropped": len(count.dropped),
            "cut_skills": list(count.cut),
            "dropped_skills": list(count.dropped),
            "least_used_first": host.overflow == "drop-least-used",
        }
        numbers = {"seen": count.seen, "missing": count.missing, "silent": count.silent}
        listed.append({"host": count.host, **numbers, "as_of": host.as_of, "grade": host.grade, "catalog": catalog})
    skills = [{"name": row.name, "path": row.path, "hosts": dict(row.hosts)} for row in rows]
    return {"cwd": environment.cwd, "hosts": listed, "skills": skills}


def _expensive(survey: "Survey") -> list[tuple[str, int]]:
    """The three skills with the longest descriptions, if they are long at all."""
    lengths = {skill.name: len(skill.description) for view in survey.views.values() for skill in view.catalog.skills}
    longest = sorted(lengths.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    return [(name, length) for name, length in longest if length > 200]


def _say_unseen(survey: "Survey") -> None:

    for problem in survey.unseen:
        note(f"not everything was looked at: {problem.path}: {problem.message}")


def environment_of(values: Mapping[str, Any]) -> "Environment":
    """The place a command is about."""
    environment = make_environment(values["cwd"], values["home"], None)
    if files.kind_at(environment.cwd) != "folder":
        raise SkillDirectoryNotFound(environment.cwd)
    return environment


def needed(values: Mapping[str, Any], usage: str) -> str:
    """What a command is asked about."""
    if not values["name_or_path"]:
        raise ConfigurationError(f"something is missing; usage: {usage}")
    return str(values["name_or_path"])


def link(values: Mapping[str, Any]) -> int:
    """Make a skill visible to other hosts, or take that back."""
    usage = "skillshelf link NAME --to HOST"
    wanted = needed(values, usage)
    if not values["to"]:
        raise ConfigurationError(f"say for which host; usage: {usage}")
    environment = environment_of(values)
    names = asked_hosts(values["to"])
    if values["remove"]:
        return _report(wanted, _taken_back(wanted, names, environment), {}, environment, json=values["json"])
    sighting, before = _meant(wanted, environment)
    if sighting.problem:
        made = [LinkAction(host, "nothing", "", made_readable(sighting, environment)) for host in names]
        return _report(wanted, made, {}, environment, json=values["json"])
    handed = [hand_to(host, sighting, environment, even_so=values["even_so"]) for host in in_order(names)]
    warned = frozenset[str]().union(*(one.doubtful for one in handed))
    unwarned = [host for host in before if host not in warned]
    return _verified(wanted, sighting, [one.made for one in handed], unwarned, environment, json=values["json"])


def _taken_back(wanted: str, hosts: Sequence[str], environment: Environment) -> list[LinkAction]:
    """What was made of a skill for these hosts, removed; the skill itself may be gone."""
    survey, found = find(wanted, environment, hosts)
    made = []
    for host in hosts:
        view = survey.views[host]
        known = [os.path.basename(wanted.rstrip("/")), *map(link_name, found)]
        ours = [name for name in dict.fromkeys(known) if any(manifest_entry(root.path, name) for root in view.roots)]
        made += [one for name in ours or known[:1] for one in take_back(name, view)]
    return made


def _meant(wanted: str, environment: Environment) -> tuple[SkillFile, list[str]]:
    """The one skill that is meant, and the hosts that see it; a copy of our own is the skill it was made from."""
    survey, found = find(wanted, environment, list(HOSTS))
    if not found:
        missing = SkillNotFound(wanted)
        missing.near = tuple(near(wanted, survey))
        raise missing
    meant = the_one(wanted, found, survey)
    return meant, [verdict.host for verdict in verdicts_of(meant, survey, survey.views) if verdict.visible]


def _verified(
    wanted: str,
    sighting: SkillFile,
    made: Sequence[LinkAction],
    before: Sequence[str],
    environment: Environment,
    *,
    json: bool,
) -> int:
    """Ask every host again, and say what each named one sees now and whom the change hurt."""
    seen: dict[str, Verdict] = {}
    told = list(made)
    for number, one in enumerate(made):
        survey, found = find(one.path or sighting.real_path, environment, [one.host])
        verdicts = verdicts_of(found[0], survey, [one.host]) if found else []
        for verdict in verdicts:
            seen[one.host] = verdict
            if one.how != "nothing" or not one.detail:
                is_listed = verdict.visible or verdict.verdict == "hidden-from-model"
                now = verdict.detail if is_listed else f"still {verdict.verdict}: {verdict.detail}"
                told[number] = one._replace(detail="; ".join(said for said in (one.detail, now) if said))
    status = _report(wanted, told, seen, environment, json=json)
    survey, (again, *_) = find(sighting.real_path, environment, before)
    for verdict in verdicts_of(again, survey, before):
        if not verdict.visible and not any(seen.visible for _, seen in on_copies(again, survey, verdict.host)):
            note(f"{verdict.host} saw {sighting.path} before and now {verdict.verdict}: {verdict.detail}")
    return status


def _report(
    wanted: str, made: Sequence[LinkAction], seen: Mapping[str, Verdict], environment: Environment, *, json: bool
) -> int:
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
        where = PathDisplay(environment.cwd, environment.home)
        lines = [made_line(one._replace(path=where.short(one.path)), visible[one.host]) for one in made]
        lines += _running(made)
        write("".join(f"{line}\n" for line in lines))
    return DONE if all(_is_good(one, seen.get(one.host)) for one in made) else NEGATIVE


def _is_good(one: LinkAction, verdict: Verdict | None) -> bool:
    """Whether a host has got what its author allows: where he keeps a skill from models, people can call it."""
    if one.how in ("removed", "kept"):
        return True
    return (
        not one.refused and verdict is not None and (verdict.visible is True or verdict.verdict == "hidden-from-model")
    )


def _running(made: Sequence[LinkAction]) -> list[str]:
    """How sessions that are running come to know of what was made or removed."""
    changed = dict.fromkeys(one.host for one in made if one.how not in ("kept", "nothing"))
    known = [f"{host}: {HOSTS[host].on_change}" for host in changed if HOSTS[host].on_change]
    return [f"If it is running now - {'; '.join(known)}"] if known else []
