"""Run the commands `new`, `link` and `sync`: create skills, make them visible to hosts, and undo that."""

import os
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from skillshelf.cli.commands import shelf_for
from skillshelf.cli.host_commands import cache_folder_of, environment_of, listed_names, own_settings
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings
from skillshelf.core import console, files
from skillshelf.core.console import PathDisplay, as_json, ask, can_ask, note, write
from skillshelf.core.environment import Environment
from skillshelf.core.text import plural, visible
from skillshelf.errors import DENIED, DONE, NEGATIVE, AmbiguousSkill, ConfigurationError, SkillError, SkillNotFound
from skillshelf.hosts.detection import chosen_by, chosen_hosts
from skillshelf.hosts.explain import find, named_in, requested_hosts, similar_names, verdicts_of
from skillshelf.hosts.fixes import how_to_make_readable, link_command
from skillshelf.hosts.link import HostLinkResult, apply_plan, link_to, only_skill, remove, result_line, verdict_on
from skillshelf.hosts.link_changes import LinksChanged, finish_pending
from skillshelf.hosts.link_plan import LinkPlan, LinkRefusal, copies_for, plan_links, plan_removal, skills_to_link
from skillshelf.hosts.link_records import records_path
from skillshelf.hosts.placement import link_name
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import SkillFile, Survey, take_survey
from skillshelf.lint.scaffold import NewSkillOptions, create_skill, summary_of

__all__ = ["link", "new", "sync"]

Values = Mapping[str, Any]


def _hosts_for(values: Values, environment: Environment) -> list[str]:
    """Return the hosts that a command is for: those that are named, else the user's own, if they are known."""
    if named := listed_names(values["to"]):
        return requested_hosts(named)
    wants_all = values.get("all_hosts", False)
    settings = Settings() if wants_all else own_settings(environment)
    if not wants_all and chosen_by(environment, settings) == "all":
        raise ConfigurationError(
            "missing option --to HOST,... (no host is set or found here; to set yours: skillshelf hosts --set HOST,...)"
        )
    return list(chosen_hosts(environment, settings, all_hosts=wants_all))


def _not_found(wanted: str, survey: Survey) -> SkillNotFound:
    missing = SkillNotFound(wanted)
    missing.near = tuple(similar_names(wanted, survey))
    return missing


# Link ---------------------------------------------------------------------------------------------


def link(values: Values) -> int:
    """Make skills visible to other hosts, or undo that."""
    wanted = values["name_or_path"]
    environment = environment_of(values)
    hosts = list(HOSTS) if values["remove"] and not values["to"] else _hosts_for(values, environment)
    if not values["dry_run"]:
        finish_pending(environment)
    if values["remove"]:
        made = [_remove(one, hosts, environment, dry_run=values["dry_run"]) for one in wanted]
        if not values["to"]:
            # Of all hosts, only those for which something was made are worth a line.
            made = [[result for result in results if result.path] or results[:1] for results in made]
        return max(_report(values, one, results, {}, environment) for one, results in zip(wanted, made, strict=True))
    survey, skill_files = _skills_of(wanted, environment, cache_folder_of(values, environment))
    for one, skill_file in zip(wanted, skill_files, strict=True):
        if skill_file.problem:
            results = [HostLinkResult(host, "nothing", "", how_to_make_readable(skill_file, survey)) for host in hosts]
            return _report(values, one, results, {}, environment)
    before = {one: [v.host for v in verdicts_of(one, survey, HOSTS) if v.visible] for one in skill_files}
    force = values["force"] or values["even_so"]
    made, survey = link_to(hosts, skill_files, survey, force=force, dry_run=values["dry_run"])
    status = DONE
    for one, skill_file, results in zip(wanted, skill_files, made, strict=False):
        now = survey.by_path.get(skill_file.real_path, skill_file)
        verdicts = {result.host: verdict for result in results if (verdict := _verdict_on(result, now, survey))}
        shown = [_with_verdict(result, verdicts.get(result.host)) for result in results]
        status = max(status, _report(values, one, shown, verdicts, environment))
        _note_lost(now, [host for host in before[skill_file] if not values["dry_run"]], results, survey)
    return status


def _skills_of(wanted: Sequence[str], environment: Environment, cache: str | None) -> tuple[Survey, list[SkillFile]]:
    """Return a survey of all hosts and the one skill that each name or path means; raise if there is none."""
    survey, found = find(wanted[0], environment, list(HOSTS), cache_folder=cache)
    skill_files = []
    for one in wanted:
        found = found if one == wanted[0] else named_in(one, survey)
        if not found:
            raise _not_found(one, survey)
        skill_files.append(only_skill(one, found, survey))
    return survey, skill_files


def _note_lost(skill_file: SkillFile, before: Sequence[str], results: Sequence[HostLinkResult], survey: Survey) -> None:
    """Say which hosts no longer see a skill, of which nobody was warned."""
    warned = {host for result in results for host in result.in_doubt}
    for verdict in verdicts_of(skill_file, survey, [host for host in before if host not in warned]):
        if not verdict.visible and not any(seen.visible for _, seen in copies_for(verdict.host, skill_file, survey)):
            note(f"{verdict.host} no longer sees {skill_file.path}: {verdict.verdict}, {verdict.detail}")


def _remove(wanted: str, hosts: Sequence[str], environment: Environment, *, dry_run: bool) -> list[HostLinkResult]:
    """Remove what was made of a skill for these hosts; the skill itself may be gone."""
    survey, found = find(wanted, environment, hosts)
    names = list(dict.fromkeys([os.path.basename(wanted.rstrip("/")), *map(link_name, found)]))
    return remove(names, hosts, survey, dry_run=dry_run)


def _verdict_on(result: HostLinkResult, skill_file: SkillFile, survey: Survey) -> Verdict | None:
    """Judge what a host has now: the link or copy, or the skill itself."""
    if not result.path:
        return verdicts_of(skill_file, survey, [result.host])[0]
    return verdict_on(result.path, result.host, survey)


def _with_verdict(result: HostLinkResult, verdict: Verdict | None) -> HostLinkResult:
    """Add to a result what the host says now, unless it already has a reason."""
    if verdict is None or (result.how == "nothing" and result.detail):
        return result
    now = verdict.detail
    if verdict.visible is None:
        now = f"visibility unknown, {verdict.detail}"
    elif not verdict.visible and verdict.verdict != "hidden-from-model":
        now = f"still {verdict.verdict}: {verdict.detail}"
    return result._replace(detail="; ".join(text for text in (result.detail, now) if text))


def _report(
    values: Values,
    wanted: str,
    results: Sequence[HostLinkResult],
    verdicts: Mapping[str, Verdict],
    environment: Environment,
) -> int:
    """Print the results for one skill; return whether every host has what it should."""
    visible_to = {one.host: verdicts[one.host].visible if one.host in verdicts else None for one in results}
    planned = values["dry_run"]
    if values["json"]:
        write(as_json({"name": wanted, "made": [_json_of(one, visible_to[one.host]) for one in results]}))
    else:
        display = PathDisplay(environment.cwd, environment.home)
        start = f"{visible(wanted)}  " if len(values["name_or_path"]) > 1 else ""
        for one in results:
            short = one._replace(path=display.short(one.path))
            write(f"{start}{result_line(short, is_visible=visible_to[one.host], planned=planned)}\n")
        changed = dict.fromkeys(one.host for one in results if one.how not in ("kept", "nothing"))
        if not planned and (known := [f"{host} {HOSTS[host].on_change}" for host in changed if HOSTS[host].on_change]):
            write(f"Running sessions: {'; '.join(known)}\n")
    if planned:
        return NEGATIVE if any(one.refused for one in results) else DONE
    return DONE if all(_is_done(one, verdicts.get(one.host)) for one in results) else NEGATIVE


def _json_of(result: HostLinkResult, is_visible: bool | None) -> dict[str, Any]:
    points_to = f"points to {result.target}" if result.target else ""
    return {
        "host": result.host,
        "how": result.how,
        "path": result.path,
        "detail": "; ".join(text for text in (points_to, result.detail) if text),
        "visible": is_visible,
        "on_change": HOSTS[result.host].on_change,
    }


def _is_done(result: HostLinkResult, verdict: Verdict | None) -> bool:
    """Return true if a host has what it should; if the author keeps a skill from models, users can invoke it."""
    if result.how in ("removed", "kept"):
        return True
    if result.refused or verdict is None:
        return False
    return verdict.visible is True or verdict.verdict == "hidden-from-model"


# A new skill --------------------------------------------------------------------------------------


def new(values: Values) -> int:
    """Create a skill, say which hosts see it, and link it for those that do not."""
    shelf, dry_run = shelf_for(values), values["dry_run"]
    options = NewSkillOptions(*(values[name] for name in ("name", "description", "scripts", "references", "assets")))
    hosts = _hosts_of_new(values, shelf.environment)
    made = create_skill(options, shelf, root=values["root"], user=values["user"], dry_run=dry_run)
    for message in made.notes:
        note(message)
    if not values["json"]:
        display = PathDisplay(shelf.environment.cwd, shelf.environment.home)
        write(summary_of(made, display, dry_run=dry_run))
    seen = {} if dry_run else _show_hosts_of_new(made.path, hosts, values, shelf.environment)
    if values["json"]:
        write(as_json({**made.to_dict(), "hosts": seen}))
    return DONE if all(seen.values()) or not values["for"] else NEGATIVE


def _hosts_of_new(values: Values, environment: Environment) -> list[str]:
    """Return the hosts that are told about for a new skill; raise for an unknown one, before anything is made."""
    if named := listed_names(values["for"]):
        return requested_hosts(named)
    return list(chosen_hosts(environment, own_settings(environment), all_hosts=values["all_hosts"]))


def _show_hosts_of_new(
    path: str, hosts: Sequence[str], values: Values, environment: Environment
) -> dict[str, bool | None]:
    """Say which hosts see a new skill, and link it for those that were named, or that a person agrees to.

    Return whether each host sees it then.
    """
    finish_pending(environment)
    survey, found = find(path, environment, list(HOSTS))
    if not found:
        return dict.fromkeys(hosts)
    if values["for"]:
        survey = _linked_new(hosts, found, survey)
    verdicts = _verdicts_on_new(path, hosts, survey)
    unseen = [verdict.host for verdict in verdicts if not verdict.visible]
    linkable = {action.host for action in plan_links([found], unseen, survey).actions} if not values["for"] else set()
    if not values["json"]:
        write(_new_view(verdicts))
    if linkable and not values["json"]:
        asked = [host for host in hosts if host in linkable]
        if _wants_links(asked, found[0], survey):
            survey = _linked_new(asked, found, survey)
            verdicts = _verdicts_on_new(path, hosts, survey)
    return {verdict.host: verdict.visible for verdict in verdicts}


def _linked_new(hosts: Sequence[str], found: Sequence[SkillFile], survey: Survey) -> Survey:
    made, survey = link_to(hosts, found, survey)
    for result in made[0]:
        if result.how != "nothing" or result.refused:
            verdict = verdict_on(result.path, result.host, survey) if result.path else None
            is_visible = verdict.visible if verdict is not None else None
            note(result_line(result._replace(path=survey.short(result.path)), is_visible=is_visible))
    return survey


def _verdicts_on_new(path: str, hosts: Sequence[str], survey: Survey) -> list[Verdict]:
    """Return the verdict of each host on a new skill, or on its copy if the host sees that."""
    skill_file = survey.by_path[files.real_path(path)]
    seen = {host: [one for _, one in copies_for(host, skill_file, survey) if one.visible] for host in hosts}
    return [seen[one.host][0] if seen[one.host] else one for one in verdicts_of(skill_file, survey, hosts)]


def _new_view(verdicts: Sequence[Verdict]) -> str:
    """Render who sees a new skill, and who does not."""
    seeing = [verdict.host for verdict in verdicts if verdict.visible]
    others = [f"{verdict.host} ({verdict.verdict})" for verdict in verdicts if not verdict.visible]
    lines = ["", f"Visible to {', '.join(seeing) if seeing else 'no host'}"]
    lines += [f"Not visible to {', '.join(others)}"] if others else []
    return "".join(f"{line}\n" for line in lines)


def _wants_links(hosts: Sequence[str], skill_file: SkillFile, survey: Survey) -> bool:
    """Ask whether a new skill shall be linked; print the command where nobody can be asked."""
    if can_ask():
        return ask(f"Make it visible to {', '.join(hosts)}? [y/N] ")
    write(f"To make it visible: {link_command(skill_file, ','.join(hosts), survey)}\n")
    return False


# Sync ---------------------------------------------------------------------------------------------


def sync(values: Values) -> int:
    """Make skills visible to hosts in one plan, which is shown first and carried out whole or not at all."""
    environment = environment_of(values)
    hosts = list(HOSTS) if values["remove"] and not values["to"] else _hosts_for(values, environment)
    plan, survey = _settled_plan(values, hosts, environment)
    if not values["json"]:
        write(_plan_view(plan, survey, environment))
    if values["dry_run"] or (plan.actions and not _may_apply(values, plan)):
        if values["json"]:
            write(as_json(_plan_json(plan)))
        return DENIED if plan.actions and not values["dry_run"] else NEGATIVE if plan.refused else DONE
    plan = _applied(plan, values, hosts, survey)
    if values["json"]:
        write(as_json(_plan_json(plan)))
    return NEGATIVE if plan.refused else DONE


def _settled_plan(values: Values, hosts: Sequence[str], environment: Environment) -> tuple[LinkPlan, Survey]:
    """Plan from a tree that no other process changed meanwhile: its links are not known as ours before it is done."""
    path = records_path(environment)
    for tries_left in reversed(range(_TRIES)):
        before = files.stamp_at(path) if path is not None else None
        if not values["dry_run"]:
            finish_pending(environment)
        survey = take_survey(environment, list(HOSTS), cache_folder=cache_folder_of(values, environment))
        plan = _plan(values, hosts, survey)
        if not tries_left or path is None or files.stamp_at(path) == before:
            break
    return plan, survey


def _plan(values: Values, hosts: Sequence[str], survey: Survey) -> LinkPlan:
    if not values["remove"]:
        return plan_links(_chosen_skills(values["name"], survey), hosts, survey, one_of_a_name=True)
    names = [os.path.basename(name.rstrip("/")) for name in values["name"]] or None
    return plan_removal(names, hosts, survey)


def _chosen_skills(names: Sequence[str], survey: Survey) -> list[list[SkillFile]]:
    """Return the skills of these names, or all; raise if a name means none or several."""
    if not names:
        return skills_to_link(survey)
    skills, chosen = skills_to_link(survey, hidden=True), []
    for name in dict.fromkeys(names):
        found = {one.real_path for one in named_in(name, survey)}
        meant = [skill_files for skill_files in skills if found & {one.real_path for one in skill_files}]
        if not meant:
            raise _not_found(name, survey)
        if len(meant) > 1:
            raise AmbiguousSkill(name, tuple(skill_files[0].path for skill_files in meant))
        chosen += [one for one in meant if one not in chosen]
    return chosen


def _may_apply(values: Values, plan: LinkPlan) -> bool:
    """Return whether the plan may be carried out: because of `--yes`, or because a person says so."""
    if values["yes"]:
        return True
    if values["json"] or not can_ask():
        note("nothing was done; to carry out this plan: --yes")
        return False
    if ask(f"Carry out {plural(len(plan.actions), 'action')}? [y/N] "):
        return True
    note("nothing was done")
    return False


def _undo_command(values: Values) -> str:
    """Return the command that undoes a run; it is made of what the run was given."""
    if values["remove"]:
        return ""
    names = "".join(f" {quote(name)}" for name in values["name"])
    to = f" --to {','.join(listed_names(values['to']))}" if values["to"] else ""
    places = "".join(f" --{option} {quote(values[option])}" for option in ("cwd", "home") if values[option])
    return f"skillshelf sync{names}{to} --remove{places}"


def _applied(plan: LinkPlan, values: Values, hosts: Sequence[str], survey: Survey) -> LinkPlan:
    """Carry out a plan and say what is true then."""
    try:
        done = _carried_out(plan, values, hosts, survey)
    except OSError as error:
        reason = error.strerror.lower() if error.strerror else str(error)
        # Of a link, the first name is what it leads to.
        where = error.filename2 or error.filename or "a step"
        raise SkillError(f"nothing was done: {where}: {reason}") from None
    for one in done.refused:
        if one not in plan.refused:
            note(f"{one.skill}, {one.host}: {one.reason}")
    if plan.actions:
        undo = _undo_command(values)
        note(f"done: {plural(len(done.actions), 'action')}" + (f"; to undo: {undo}" if undo else ""))
    return done


_TRIES = 5


def _carried_out(plan: LinkPlan, values: Values, hosts: Sequence[str], survey: Survey) -> LinkPlan:
    """Carry out a plan; if another process did a part of it meanwhile, what is left of it."""
    shown = {(one.kind, one.path) for one in plan.actions}
    for tries_left in reversed(range(_TRIES)):
        try:
            return apply_plan(plan, survey)[0]
        except LinksChanged:
            survey = take_survey(survey.environment, list(HOSTS))
            plan = _plan(values, hosts, survey)
            # Nothing is done that was not shown.
            if not tries_left or not {(one.kind, one.path) for one in plan.actions} <= shown:
                raise
    return plan


def _plan_json(plan: LinkPlan) -> dict[str, Any]:
    return {
        "actions": [
            {
                "kind": one.kind,
                "skill": one.skill,
                "host": one.host,
                "from": one.source,
                "to": one.path,
                "reason": one.reason,
            }
            for one in plan.actions
        ],
        "unchanged": [{"skill": one.skill, "host": one.host, "path": one.path} for one in plan.unchanged],
        "refused": [{"skill": one.skill, "host": one.host, "reason": one.reason} for one in plan.refused],
    }


def _plan_view(plan: LinkPlan, survey: Survey, environment: Environment) -> str:
    """Render the actions of a plan, then what is refused, then the numbers."""
    rows: list[tuple[str, ...]] = [
        (one.kind, one.skill, one.host, survey.short(one.path) + (f"  ({one.reason})" if one.reason else ""))
        for one in plan.actions
    ]
    rows += [("refused", *row) for row in _refused_rows(plan.refused)]
    lines = console.screen(environment.env).table(rows, ("green", "bold", None, None), wrap=True) if rows else []
    numbers = [plural(len(plan.actions), "action"), f"{len(plan.unchanged)} unchanged", f"{len(plan.refused)} refused"]
    return "\n".join([*lines, ", ".join(numbers)]) + "\n"


_ALIKE_SHOWN = 3


def _refused_rows(refused: Sequence[LinkRefusal]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each refusal, or for all of them that have one host and one reason."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in refused:
        alike.setdefault((one.host, one.reason), []).append(one.skill)
    for (host, reason), names in alike.items():
        if len(names) > _ALIKE_SHOWN:
            yield f"{len(names)} skills", host, f"{reason}  ({', '.join(names[:_ALIKE_SHOWN])}, …)"
        else:
            yield from ((name, host, reason) for name in names)
