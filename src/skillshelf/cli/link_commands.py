"""Run the commands `new`, `link` and `sync`: create skills, make them visible to hosts, and undo that."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from shlex import quote
from typing import TYPE_CHECKING, Any

from skillshelf.cli.commands import shelf_for
from skillshelf.cli.consent_view import refusal, require_consent, show_findings
from skillshelf.cli.host_commands import cache_folder_of, environment_of, listed_names, own_settings, require_linkable
from skillshelf.config.hosts import HOSTS
from skillshelf.config.settings import Settings, is_trusted, load_system_policy
from skillshelf.config.system_policy import require_host
from skillshelf.core import console, files
from skillshelf.core.console import PathDisplay, as_json, ask, can_ask, note, write
from skillshelf.core.environment import Environment
from skillshelf.core.text import near, plural, visible
from skillshelf.errors import (
    DENIED,
    DONE,
    NEGATIVE,
    AmbiguousSkill,
    ConfigurationError,
    PermissionDenied,
    SkillError,
    SkillNotFound,
)
from skillshelf.hosts.detection import chosen_by, chosen_hosts
from skillshelf.hosts.explain import find, named_in, requested_hosts, similar_names, survey_of_names, verdicts_of
from skillshelf.hosts.fixes import how_to_make_readable, link_command
from skillshelf.hosts.link import HostLinkResult, apply_plan, link_to, only_skill, remove, result_line, verdict_on
from skillshelf.hosts.link_changes import LinksChanged, finish_pending
from skillshelf.hosts.link_plan import (
    LinkPlan,
    LinkRefusal,
    copies_for,
    plan_links,
    plan_removal,
    removable_names,
    skills_to_link,
)
from skillshelf.hosts.link_records import links_settled, records_path
from skillshelf.hosts.placement import link_name
from skillshelf.hosts.stages import Verdict
from skillshelf.hosts.survey import SkillFile, Survey
from skillshelf.lint.scaffold import NewSkillOptions, create_skill, summary_of

if TYPE_CHECKING:
    from skillshelf.core.json_types import SecurityFindingForm
    from skillshelf.lint.consent import Consent

__all__ = ["link", "new", "sync"]

Values = Mapping[str, Any]


def _hosts_for(values: Values, environment: Environment) -> list[str]:
    """Return the hosts that a command is for: those that are named, else the user's own, if they are known."""
    if named := listed_names(values["to"]):
        return _allowed(requested_hosts(named), environment)
    wants_all = values.get("all_hosts", False)
    settings = Settings() if wants_all else own_settings(environment)
    if not wants_all and chosen_by(environment, settings) == "all":
        raise ConfigurationError(
            "missing option --to HOST,... (no host is set or found here; to set yours: skillshelf hosts --set HOST,...)"
        )
    return list(chosen_hosts(environment, settings, all_hosts=wants_all))


def _allowed(hosts: list[str], environment: Environment) -> list[str]:
    """Return hosts that were named; raise PermissionDenied for one that the system policy does not allow."""
    require_host(load_system_policy(environment), hosts)
    return hosts


def _not_found(wanted: str, survey: Survey, made: Sequence[str] = ()) -> SkillNotFound:
    """Return the error for a name that no skill has, and nothing in `made`, with the names near to it."""
    missing = SkillNotFound(wanted)
    names = [*near(os.path.basename(wanted.rstrip("/")), made, 3), *similar_names(wanted, survey)]
    missing.near = tuple(dict.fromkeys(names))[:5]
    return missing


# Link ---------------------------------------------------------------------------------------------


def link(values: Values) -> int:
    """Make skills visible to other hosts, or undo that."""
    environment = environment_of(values)
    hosts = _hosts_to_leave(values) if values["remove"] else _hosts_for(values, environment)
    with _settled(values, environment):
        return (_unlink if values["remove"] else _link)(values, hosts, environment)


@contextmanager
def _settled(values: Values, environment: Environment) -> Iterator[None]:
    """Keep other processes from changing links, and finish what one that was killed has begun; not for a dry run."""
    if values["dry_run"]:
        yield
        return
    with links_settled(environment):
        finish_pending(environment)
        yield


def _unlink(values: Values, hosts: Sequence[str], environment: Environment) -> int:
    wanted = values["name_or_path"]
    made = [_remove(one, hosts, environment, dry_run=values["dry_run"]) for one in wanted]
    if not values["to"]:
        # Of all hosts, only those for which something was made are worth a line.
        made = [[result for result in results if result.path] or results[:1] for results in made]
    return max(_report(values, one, results, {}, environment) for one, results in zip(wanted, made, strict=True))


def _link(values: Values, hosts: Sequence[str], environment: Environment) -> int:
    wanted = values["name_or_path"]
    survey, skill_files = _skills_of(wanted, environment, cache_folder_of(values, environment))
    require_linkable(skill_files, environment)
    for one, skill_file in zip(wanted, skill_files, strict=True):
        if skill_file.problem:
            results = [HostLinkResult(host, "nothing", "", how_to_make_readable(skill_file, survey)) for host in hosts]
            return _report(values, one, results, {}, environment)
    consent = _consent_to_link(values, skill_files, environment)
    if consent is not None:
        show_findings(consent, environment.cwd)
        if consent.errors and not values["dry_run"]:
            _require_consent_to_link(values, consent, f"skillshelf link {' '.join(map(quote, wanted))}", asks=True)
    before = {one: [v.host for v in verdicts_of(one, survey, HOSTS) if v.visible] for one in skill_files}
    force = values["force"] or values["even_so"]
    made, survey = link_to(hosts, skill_files, survey, force=force, dry_run=values["dry_run"])
    status = DONE
    for one, skill_file, results in zip(wanted, skill_files, made, strict=False):
        now = survey.by_path.get(skill_file.real_path, skill_file)
        verdicts = {result.host: verdict for result in results if (verdict := _verdict_on(result, now, survey))}
        shown = [_with_verdict(result, verdicts.get(result.host)) for result in results]
        found = [row for row in consent.rows() if row["skill"] == skill_file.path] if consent is not None else []
        status = max(status, _report(values, one, shown, verdicts, environment, found))
        _note_lost(now, [host for host in before[skill_file] if not values["dry_run"]], results, survey)
    return status


def _consent_to_link(values: Values, skill_files: Sequence[SkillFile], environment: Environment) -> "Consent | None":
    """Return what the security rules find in those skills that belong to a folder that is not trusted.

    Their links make them visible to models, so their author is a stranger until somebody says otherwise.
    """
    from skillshelf.lint.consent import accepted_rules, consent_needed
    from skillshelf.lint.run import Target, security_findings_of

    accepted = accepted_rules(values["accept_rule"])
    trusted = own_settings(environment).trusted_folders
    strangers = [
        one
        for one in skill_files
        if one.kind == "project" and not one.problem and not is_trusted(os.path.dirname(one.real_path), trusted)
    ]
    if not strangers:
        return None
    return consent_needed(
        {one.path: security_findings_of(Target(one.path, one.real_path, one.folder)) for one in strangers}, accepted
    )


def _require_consent_to_link(values: Values, consent: "Consent", command: str, *, asks: bool) -> None:
    """Raise PermissionDenied unless somebody agrees to link skills with findings of severity error."""
    command += f" --to {','.join(listed_names(values['to']))}" if values["to"] else ""
    refused = refusal(consent, "nothing was linked: skills of a folder that is not trusted", command, consent.errors)
    no = PermissionDenied("nothing was linked")
    require_consent(consent, "Link them", refused, asks=asks and not values["json"], no=no)


def _hosts_to_leave(values: Values) -> list[str]:
    """Return the hosts from which something is removed, which no policy forbids."""
    return requested_hosts(listed_names(values["to"]))


def _skills_of(wanted: Sequence[str], environment: Environment, cache: str | None) -> tuple[Survey, list[SkillFile]]:
    """Return a survey of all hosts and the one skill that each name or path means; raise if there is none."""
    settings = own_settings(environment)
    if len(wanted) == 1:
        survey, found = find(wanted[0], environment, list(HOSTS), cache_folder=cache, settings=settings)
        meant = [found]
    else:
        survey = survey_of_names(wanted, environment, list(HOSTS), cache_folder=cache, settings=settings)
        meant = [named_in(one, survey) for one in wanted]
    for one, found in zip(wanted, meant, strict=True):
        if not found:
            raise _not_found(one, survey)
    return survey, [only_skill(one, found, survey) for one, found in zip(wanted, meant, strict=True)]


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
    made = removable_names(hosts, survey)
    if not found and not set(names) & set(made):
        raise _not_found(wanted, survey, made)
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
    findings: "Sequence[SecurityFindingForm]" = (),
) -> int:
    """Print the results for one skill; return whether every host has what it should."""
    visible_to = {one.host: verdicts[one.host].visible if one.host in verdicts else None for one in results}
    planned = values["dry_run"]
    if values["json"]:
        made = [_json_of(one, visible_to[one.host]) for one in results]
        write(as_json({"name": wanted, "made": made, "findings": [*findings]}))
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
        return _allowed(requested_hosts(named), environment)
    return list(chosen_hosts(environment, own_settings(environment), all_hosts=values["all_hosts"]))


def _show_hosts_of_new(
    path: str, hosts: Sequence[str], values: Values, environment: Environment
) -> dict[str, bool | None]:
    """Say which hosts see a new skill, and link it for those that were named, or that a person agrees to.

    Return whether each host sees it then.
    """
    with _settled(values, environment):
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
            with _settled(values, environment):
                survey, found = find(path, environment, list(HOSTS))
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
    hosts = _hosts_to_leave(values) if values["remove"] else _hosts_for(values, environment)
    # Nobody else has to wait for a person's answer.
    asks = not values["yes"] or values["dry_run"]
    with nullcontext() if asks else _settled(values, environment):
        plan, survey = _settled_plan(values, hosts, environment)
        consent = _consent_to_plan(values, plan, survey)
        if not values["json"]:
            write(_plan_view(plan, survey, environment))
        if consent is not None:
            show_findings(consent, environment.cwd)
        if values["dry_run"] or (plan.actions and not _may_apply(values, plan, consent)):
            if values["json"]:
                write(as_json(_plan_json(plan, consent)))
            return DENIED if plan.actions and not values["dry_run"] else NEGATIVE if plan.refused else DONE
        plan = _applied(plan, values, hosts, survey)
    if values["json"]:
        write(as_json(_plan_json(plan, consent)))
    return NEGATIVE if plan.refused else DONE


def _consent_to_plan(values: Values, plan: LinkPlan, survey: Survey) -> "Consent | None":
    """Return what the security rules find in the skills of strangers that a plan would link."""
    if values["remove"] or not plan.actions:
        return None
    sources = dict.fromkeys(files.real_path(f"{one.source}/SKILL.md") for one in plan.actions if one.source)
    skill_files = [survey.by_path[path] for path in sources if path in survey.by_path]
    return _consent_to_link(values, skill_files, survey.environment)


_TRIES = 5


def _settled_plan(values: Values, hosts: Sequence[str], environment: Environment) -> tuple[LinkPlan, Survey]:
    """Plan from a tree that no other process changed meanwhile: its links are not known as ours before it is done."""
    path = records_path(environment)
    for tries_left in reversed(range(_TRIES)):
        before = files.stamp_at(path) if path is not None else None
        if not values["dry_run"]:
            finish_pending(environment)
        survey = _survey_for(values, environment, cache_folder_of(values, environment))
        plan = _plan(values, hosts, survey)
        if not tries_left or path is None or files.stamp_at(path) == before:
            break
    return plan, survey


def _survey_for(values: Values, environment: Environment, cache_folder: str | None) -> Survey:
    """Take a survey with every skill that is named, also one that no host reads."""
    names = () if values["remove"] else values["name"]
    settings = own_settings(environment) if names else None
    return survey_of_names(names, environment, list(HOSTS), cache_folder=cache_folder, settings=settings)


def _plan(values: Values, hosts: Sequence[str], survey: Survey) -> LinkPlan:
    if not values["remove"]:
        return plan_links(_chosen_skills(values["name"], survey), hosts, survey, one_of_a_name=True)
    names, made = [], removable_names(hosts, survey)
    for wanted in values["name"]:
        name = os.path.basename(wanted.rstrip("/"))
        if name not in made and not named_in(wanted, survey):
            raise _not_found(wanted, survey, made)
        names.append(name)
    return plan_removal(names or None, hosts, survey)


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
        require_linkable(meant[0], survey.environment)
        chosen += [one for one in meant if one not in chosen]
    return chosen


def _may_apply(values: Values, plan: LinkPlan, consent: "Consent | None") -> bool:
    """Return whether the plan may be carried out: because of `--yes`, or because a person says so.

    No `--yes` accepts findings of severity error: raise PermissionDenied for those.
    """
    if values["yes"]:
        if consent is not None and consent.errors:
            names = "".join(f" {quote(name)}" for name in values["name"])
            _require_consent_to_link(values, consent, f"skillshelf sync{names} --yes", asks=False)
        return True
    if values["json"] or not can_ask():
        note("nothing was done; to carry out this plan: --yes")
        return False
    spite = f" in spite of these findings{consent.warning}" if consent is not None and consent.rules else ""
    if ask(f"Carry out {plural(len(plan.actions), 'action')}{spite}? [y/N] "):
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


def _carried_out(plan: LinkPlan, values: Values, hosts: Sequence[str], survey: Survey) -> LinkPlan:
    """Carry out a plan; if another process did a part of it meanwhile, what is left of it."""
    shown = {(one.kind, one.path) for one in plan.actions}
    with _settled(values, survey.environment):
        try:
            return apply_plan(plan, survey)[0]
        except LinksChanged:
            survey = _survey_for(values, survey.environment, None)
            plan = _plan(values, hosts, survey)
            # Nothing is done that was not shown.
            if not {(one.kind, one.path) for one in plan.actions} <= shown:
                raise
            return apply_plan(plan, survey)[0]


def _plan_json(plan: LinkPlan, consent: "Consent | None") -> dict[str, Any]:
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
        "findings": consent.rows() if consent is not None else [],
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
