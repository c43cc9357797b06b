"""Run the commands `why` and `hosts`."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from skillshelf.cli.host_views import (
    HostTableNotes,
    SkillHostsRow,
    best_of,
    choice_line,
    diff_view,
    hosts_view,
    why_view,
)
from skillshelf.cli.outside import is_on_terminal, note_outside
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings, load_settings, load_system_policy
from skillshelf.config.settings_edit import set_list
from skillshelf.config.system_policy import require_host
from skillshelf.core import console, files
from skillshelf.core.console import PathDisplay, as_json, note, write
from skillshelf.core.disk_writes import replace_file, why_not_replaced
from skillshelf.core.environment import Environment, make_environment, user_cache_folder
from skillshelf.core.limits import SKILL_FILE_BYTES, UNSEEN_SHOWN
from skillshelf.core.text import visible
from skillshelf.errors import (
    DONE,
    NEGATIVE,
    NOT_FOUND,
    ConfigurationError,
    PermissionDenied,
    SkillDirectoryNotFound,
    SkillError,
)
from skillshelf.hosts.detection import chosen_by, chosen_hosts
from skillshelf.hosts.explain import (
    absolute_path,
    explain,
    find,
    hidden_files,
    is_path,
    requested_hosts,
    similar_names,
    verdicts_of,
    why_candidates,
)
from skillshelf.hosts.fixes import needs_placement
from skillshelf.hosts.link import link_to, only_skill, result_line
from skillshelf.hosts.link_changes import finish_pending
from skillshelf.hosts.link_records import links_settled
from skillshelf.hosts.near_misses import broken_roots, near_misses
from skillshelf.hosts.overview import HostCount, Overview, SkillText, host_count, overview_of
from skillshelf.hosts.placement import is_own_copy, link_name, policy_refusal, project_of, sources
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import SkillFile, Survey, take_survey
from skillshelf.lint.fix import FixInput, fix_text, unified_diff

__all__ = ["cache_folder_of", "environment_of", "hosts", "listed_names", "own_settings", "require_linkable", "why"]

Values = Mapping[str, Any]


def environment_of(values: Values) -> Environment:
    """Return the environment that the options of a command name; raise if its folder does not exist."""
    environment = make_environment(values["cwd"], values["home"], None, config=values["config"])
    if files.kind_at(environment.cwd) != "folder":
        raise SkillDirectoryNotFound(environment.cwd)
    return environment


def own_settings(environment: Environment) -> Settings:
    """Return the settings; what hosts see does not depend on them, so a file that cannot be used is only named."""
    try:
        return load_settings(environment, trust="ask")
    except ConfigurationError as error:
        note(str(error))
        return Settings()


def _spoken_of(values: Values, environment: Environment, named: Sequence[str]) -> tuple[list[str], str]:
    """Return the hosts that a command is about, and a line that says why these; those that it names win."""
    if named or values["all_hosts"]:
        return requested_hosts(named), ""
    settings = own_settings(environment)
    names = chosen_hosts(environment, settings)
    return list(names), choice_line(chosen_by(environment, settings), names)


def listed_names(names: Iterable[str]) -> list[str]:
    """Return names that were given one by one or separated by commas."""
    return [name.strip() for given in names for name in given.split(",") if name.strip()]


def cache_folder_of(values: Values, environment: Environment) -> str | None:
    """Return the folder of the cache, or None if the command shall not use it."""
    return None if values["no_cache"] else user_cache_folder(environment)


def _name_or_path(values: Values) -> str:
    if not values["name_or_path"]:
        raise ConfigurationError("missing argument NAME-or-PATH")
    return str(values["name_or_path"])


def _note_unseen(survey: Survey) -> None:
    for problem in survey.unseen[:UNSEEN_SHOWN]:
        note(f"not everything was scanned: {problem.path}: {problem.message}")
    if len(survey.unseen) > UNSEEN_SHOWN:
        note(f"not everything was scanned: {len(survey.unseen) - UNSEEN_SHOWN} more places; see skillshelf inventory")


# Why ----------------------------------------------------------------------------------------------


def why(values: Values) -> int:
    """Show which hosts see a skill, and why the others do not."""
    wanted = _name_or_path(values)
    environment = environment_of(values)
    names, choice = _spoken_of(values, environment, listed_names(values["host"]))
    cache_folder = cache_folder_of(values, environment)
    writes = values["fix"] and not values["dry_run"]
    with links_settled(environment) if writes else nullcontext():
        if writes:
            finish_pending(environment)
        settings = own_settings(environment)
        survey, found = find(wanted, environment, names, cache_folder=cache_folder, settings=settings)
        if not found:
            return _not_found(wanted, survey, wants_json=values["json"])
        if values["fix"]:
            _apply_fixes(wanted, found, survey, listed_names(values["host"]), dry_run=values["dry_run"])
            survey, found = find(wanted, environment, names, settings=settings)
    explanations = explain(found, survey, names, ranked=not values["json"])
    hidden = _hidden_here(values, found, survey)
    if values["json"]:
        candidates = why_candidates(explanations, survey, hidden)
        write(as_json({"name": wanted, "candidates": candidates, "near": []}))
    else:
        display = PathDisplay(environment.cwd, environment.home)
        write(why_view(wanted, explanations, display, console.screen(environment.env), choice=choice))
    for explanation in explanations:
        path = explanation.path
        state = survey.lock_state(os.path.dirname(files.real_path(path)), os.path.dirname(path))
        if state is not None:
            source = visible(state.locked.source or "a source that no lock names")
            note(f"{explanation.path}: installed from {source}, version {visible(state.locked.version or 'unknown')}")
        reason, by = hidden.get(files.real_path(explanation.path), (None, None))
        # That a folder is not trusted is no choice against a skill.
        if reason and reason != "untrusted":
            note(f"{explanation.path}: skillshelf does not tell models about it: {reason} ({by or 'by the profile'})")
    broken = {*broken_roots(survey)}
    for miss in near_misses(survey):
        if miss in broken or any(skill_file.path.startswith(f"{miss.path}/") for skill_file in found):
            note(f"{miss.path} {miss.message}")
    _note_unseen(survey)
    if cache_folder is not None:
        survey.keep(cache_folder)
    is_seen = any(one.by_copy or any(verdict.visible for verdict in one.verdicts) for one in explanations)
    return DONE if is_seen else NEGATIVE


def _hidden_here(values: Values, found: Sequence[SkillFile], survey: Survey) -> Mapping[str, tuple[str, str | None]]:
    """Return why skillshelf itself hides files from models or leaves them out, and who said so, by real path."""
    from skillshelf.cli.commands import shelf_for

    try:
        return hidden_files(shelf_for(values, trust="ask").catalog, found, survey)
    except SkillError as error:
        # What hosts see does not depend on our configuration.
        note(str(error))
        return {}


def _not_found(wanted: str, survey: Survey, *, wants_json: bool) -> int:
    close = similar_names(wanted, survey)
    if wants_json:
        write(as_json({"name": wanted, "candidates": [], "near": close}))
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    if not is_path(wanted):
        note(f"skill {wanted!r} not found here or in any folder that a host reads{hint}")
    elif files.kind_at(files.real_path(absolute_path(wanted, survey.environment))) == "folder":
        note(f"no SKILL.md in the folder {wanted}{hint}")
    else:
        note(f"no such file or folder: {wanted}{hint}")
    for miss in near_misses(survey):
        note(f"{survey.short(miss.path)} {miss.message}")
    _note_unseen(survey)
    if not close:
        note("run `skillshelf inventory` to see every skill, or `skillshelf new NAME` to create one")
    return NOT_FOUND


def _apply_fixes(
    wanted: str, found: Sequence[SkillFile], survey: Survey, hosts: Sequence[str], *, dry_run: bool
) -> None:
    """Apply safe fixes, each shown before it is done; a link is made only for a host that was named."""
    skill_files = sources(found, survey)
    names = requested_hosts(hosts) if hosts else []
    require_host(load_system_policy(survey.environment), names)
    require_linkable(skill_files if names else (), survey.environment)
    if any(_lacks_link(host, found, survey) for host in names):
        # An ambiguous name must be refused before anything is changed.
        only_skill(wanted, found, survey)
    changes = [_fix_text(skill_file, survey.environment, dry_run=dry_run) for skill_file in skill_files]
    is_changed = any(changes)
    if names and len(skill_files) == 1 and not skill_files[0].problem:
        survey, _ = find(skill_files[0].real_path, survey.environment, list(HOSTS))
        for result in link_to(names, skill_files, survey, dry_run=dry_run)[0][0]:
            if result.how != "nothing" or result.refused:
                note(result_line(result._replace(path=survey.short(result.path)), planned=dry_run))
                is_changed = True
    if not is_changed and names:
        note(f"nothing to fix automatically for {', '.join(names)}")
    elif not is_changed:
        note("nothing to fix automatically; to link the skill, name a host: --fix --host H")


def require_linkable(skill_files: Sequence[SkillFile], environment: Environment) -> None:
    """Raise PermissionDenied for a skill that was named and that the system policy lets nobody link."""
    system = load_system_policy(environment)
    for skill_file in skill_files if system.files else ():
        if reason := policy_refusal(skill_file, None, system):
            raise PermissionDenied(f"{skill_file.path} is not linked: {reason}")


def _lacks_link(host: str, found: Sequence[SkillFile], survey: Survey) -> bool:
    """Return true if a host sees none of these files because of their place."""
    judged = [(skill_file, verdicts_of(skill_file, survey, [host])[0]) for skill_file in found]
    if any(verdict.visible or verdict.verdict == "untrusted" for _, verdict in judged):
        return False
    return any(needs_placement(verdict, skill_file) for skill_file, verdict in judged)


def _fix_text(skill_file: SkillFile, environment: Environment, *, dry_run: bool) -> bool:
    """Apply safe fixes to a file after a diff was shown; return true if anything was reported."""
    real_path = skill_file.real_path
    data = files.read_file(real_path, limit=SKILL_FILE_BYTES, links="never")
    if data is None:
        return False
    fixed = fix_text(FixInput(data, skill_file.folder, find_profile(DEFAULT_PROFILE), None)).data
    if fixed == data:
        return False
    reason = why_not_replaced(real_path)
    if real_path not in skill_file.paths and not files.is_inside(real_path, project_of(environment)):
        reason = f"it is behind a link out of this project, to {real_path}"
    if reason is not None:
        note(f"{skill_file.path} was not changed: {reason}")
        return True
    for line in unified_diff(data, fixed, skill_file.path.lstrip("/")):
        note(line)
    if not dry_run:
        replace_file(real_path, fixed)
    note(f"{'would fix' if dry_run else 'fixed'} {skill_file.path}")
    return True


# Hosts --------------------------------------------------------------------------------------------

JudgedFile = tuple[SkillFile, list[Verdict]]


def hosts(values: Values) -> int:
    """Show every skill and which hosts see it."""
    environment = environment_of(values)
    if values["dry_run"] and values["set"] is None:
        raise ConfigurationError("--dry-run is for --set, which is the only option that writes something")
    if values["set"] is not None:
        return _set_hosts(values, environment)
    names, choice = _spoken_of(values, environment, _pair(values))
    cache_folder = cache_folder_of(values, environment)
    survey = take_survey(environment, names, progress=sys.stderr, cache_folder=cache_folder)
    overview = overview_of(survey)
    texts = [(link_name(skill_file), skill_file.text) for skill_file in survey.skill_files]
    counts = [host_count(host, texts) for host in overview.hosts]
    different = _differences(survey, texts, overview) if values["diff"] else []
    rows = [
        SkillHostsRow(link_name(skill_file), skill_file.path, {verdict.host: verdict.visible for verdict in both})
        for skill_file, both in different
    ]
    if not values["diff"]:
        columns = zip(*(host.visible for host in overview.hosts), strict=True)
        rows = [
            SkillHostsRow(name, skill_file.path, dict(zip(names, visible, strict=True)))
            for (name, _), skill_file, visible in zip(texts, survey.skill_files, columns, strict=True)
        ]
    display, screen = PathDisplay(environment.cwd, environment.home), console.screen(environment.env)
    misses = near_misses(survey)
    if values["json"]:
        write(as_json(_hosts_json(survey, counts, rows)))
        for miss in misses:
            note(f"{miss.path} {miss.message}")
    elif values["diff"]:
        sides = [(row, both[0], both[1]) for row, (_, both) in zip(rows, different, strict=True)]
        write(diff_view(names[0], names[1], sides, display, screen))
    else:
        warnings = [f"{display.short(miss.path)} {miss.message}" for miss in misses]
        warnings += [f"{display.short(path)} was changed: {message}" for path, message in _changed(survey)]
        longest = [(name, length) for name, length in overview.longest if length > 200]
        write(hosts_view(counts, rows, HostTableNotes(longest, warnings, choice), display, screen))
    _note_unseen(survey)
    if cache_folder is not None:
        survey.keep(cache_folder)
    if not values["json"] and is_on_terminal():
        custom = own_settings(environment).custom_directories
        note_outside(values, environment, custom, lambda: survey.by_path.keys())
    return DONE


def _changed(survey: Survey) -> Iterable[tuple[str, str]]:
    """Yield the path of every installed skill whose files are not those of its lock, and what to say of it."""
    for skill_file in survey.skill_files:
        state = survey.lock_state(os.path.dirname(skill_file.real_path), os.path.dirname(skill_file.path))
        if state is not None and state.changed:
            yield skill_file.path, state.message


def _set_hosts(values: Values, environment: Environment) -> int:
    """Write the user's hosts into the user's file; `auto` goes back to those that are found on the machine."""
    names = [] if values["set"] == "auto" else requested_hosts(listed_names([values["set"]]) or [values["set"]])
    path, changed = set_list(environment, "hosts", names, dry_run=values["dry_run"])
    settings = load_settings(environment, trust="ask")._replace(hosts=tuple(names))
    chosen, by = chosen_hosts(environment, settings), chosen_by(environment, settings)
    if values["json"]:
        write(as_json({"hosts": list(chosen), "by": by, "file": path, "changed": changed}))
    else:
        short = PathDisplay(environment.cwd, environment.home).short(path)
        done = "would be written to" if values["dry_run"] else "written to"
        write(f"{choice_line(by, chosen)}\n{done if changed else 'no change in'} {short}\n")
    return DONE


def _pair(values: Values) -> list[str]:
    first, second = values["diff"], values["b"]
    if bool(first) != bool(second) or (first and first == second):
        raise ConfigurationError("--diff requires two different hosts: skillshelf hosts --diff A B")
    return [first, second] if first else []


def _differences(survey: Survey, texts: Sequence[SkillText], overview: Overview) -> list[JudgedFile]:
    """Return the skills that one of two hosts sees and the other does not; files with the same text are one skill."""
    alike: dict[SkillText, list[int]] = {}
    for position, text in enumerate(texts):
        alike.setdefault(text, []).append(position)
    different = []
    for positions in alike.values():
        if len({host.visible[position] for host in overview.hosts for position in positions}) == 1:
            continue
        skill_files = [survey.skill_files[position] for position in positions]
        both = best_of([verdicts_of(skill_file, survey, survey.hosts) for skill_file in skill_files])
        if both[0].visible != both[1].visible:
            own = [skill_file for skill_file in skill_files if not is_own_copy(skill_file, survey.environment)]
            different.append(((own or skill_files)[0], both))
    return different


def _hosts_json(survey: Survey, counts: Sequence[HostCount], rows: Sequence[SkillHostsRow]) -> dict[str, Any]:
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
        numbers = {"seen": count.visible, "missing": count.missing, "silent": count.silent}
        listed.append({"host": count.host, **numbers, "as_of": host.as_of, "grade": host.grade, "catalog": catalog})
    real = {one.path: os.path.dirname(one.real_path) for one in survey.skill_files}
    skills = [
        {
            "name": row.name,
            "path": row.path,
            "hosts": dict(row.hosts),
            **survey.lock_members(real[row.path], os.path.dirname(row.path)),
        }
        for row in rows
    ]
    return {"cwd": survey.environment.cwd, "hosts": listed, "skills": skills}
