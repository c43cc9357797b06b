"""Run the command `policy`: show the rules in force, where each comes from, and what it takes the place of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.cli.commands import Values, shelf_for
from skillshelf.config.permission_rules import PermissionRule, rule_to_dict
from skillshelf.config.settings import Settings, load_settings
from skillshelf.config.system_policy import PolicyFile, SystemPolicy, host_refusal, trust_refusal
from skillshelf.core import files
from skillshelf.core.console import PathDisplay, Screen, as_json, note, screen, write
from skillshelf.core.environment import SYSTEM_POLICY, Environment, user_config_path
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import holds_back
from skillshelf.errors import DONE, NEGATIVE

if TYPE_CHECKING:
    from skillshelf.shelf import Shelf

__all__ = ["policy", "required_errors"]

Origin = Literal["system", "added", "user", "project", "default"]


class RuleInForce(NamedTuple):
    """One rule: its key and value, who set it in which file, and what has no effect because of it."""

    key: str
    value: str
    origin: Origin
    file: str | None = None
    overrides: tuple[str, ...] = ()


def policy(values: Values) -> int:
    """Print the rules in force, each with its origin; the status is 1 if no model is served."""
    shelf = shelf_for(values, trust="ask", person=False)
    system = shelf.settings.system
    refusal = _refusal(shelf)
    rules = [*_from_above(shelf), *_own_rules(shelf), *_DEFAULTS]
    if values["json"]:
        write(
            as_json(
                {"files": _files(system), "serves_models": refusal is None, "refusal": refusal, "rules": _json(rules)}
            )
        )
    else:
        display = PathDisplay(shelf.environment.cwd, shelf.environment.home)
        write(_view(system, rules, display, screen(shelf.environment.env)))
    if refusal is not None:
        note(refusal)
    return DONE if refusal is None else NEGATIVE


def _refusal(shelf: "Shelf") -> str | None:
    from skillshelf.errors import PermissionDenied
    from skillshelf.session.system_rules import require_served

    try:
        require_served(shelf)
    except PermissionDenied as error:
        return str(error)
    return None


def _json(rules: Sequence[RuleInForce]) -> list[dict[str, Any]]:
    return [{**rule._asdict(), "overrides": list(rule.overrides)} for rule in rules]


def _files(system: SystemPolicy) -> list[dict[str, Any]]:
    """Return every file of the policy, also one that is not there, and whether it can be used."""
    known = {file.path: file for file in system.files}
    paths = list(dict.fromkeys([SYSTEM_POLICY, *known]))
    return [
        {
            "path": path,
            "origin": _origin_of(path),
            "state": "missing" if path not in known else "refused" if known[path].problem else "ok",
            "problem": known[path].problem or None if path in known else None,
        }
        for path in paths
    ]


def required_errors(environment: Environment) -> list[str]:
    """Return a sentence about each skill that the system policy requires and models are not told of here."""
    from skillshelf.shelf import open_shelf

    moved = environment.home if environment.home_moved else None
    shelf = open_shelf(environment.cwd, home=moved, env=environment.env, config=environment.config, trust="ask")
    return [error.message for error in shelf.catalog.errors if error.rule == "policy-required"]


# The system policy --------------------------------------------------------------------------------


def _from_above(shelf: "Shelf") -> Iterator[RuleInForce]:
    for file in shelf.settings.system.files:
        for key, value, overrides in _said(file, shelf.settings):
            yield RuleInForce(key, value, _origin_of(file.path), file.path, tuple(overrides))


def _said(file: PolicyFile, settings: Settings) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield what a file says, one entry at a time, with the choices of others that do not count because of it."""
    for rule in file.deny:
        yield "permissions.deny", _rule_text(rule), _allowed_below(rule.tool, rule.skill_name, settings)
    for entry in file.forbidden:
        yield "skills.forbidden", entry, _allowed_below("skill_load", entry, settings)
    for entry in file.required:
        yield (
            "skills.required",
            entry,
            [f"skills.disabled: {one}" for one in settings.disabled if holds_back(entry, one)],
        )
    if not file.run_allowed:
        yield "run.allow", "false", _allowed_below("skill_run", None, settings)
    yield from (("sources.deny", pattern, ()) for pattern in file.sources_denied)
    if file.sources_allowed is not None:
        yield "sources.allow", _listed(file.sources_allowed), ()
    if file.hosts_allowed is not None:
        closed = [f"hosts: {host}" for host in settings.hosts if host_refusal(settings.system, host)]
        yield "hosts.allow", _listed(file.hosts_allowed), closed
    if file.folders_below is not None:
        lost = [f"trust.folders: {one}" for one in settings.trusted_folders if trust_refusal(settings.system, one)]
        yield "trust.folders_below", _listed(file.folders_below), lost
    if file.lock_required:
        yield "lock.required", "true", ()


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or "none"


def _allowed_below(tool: str, name: str | None, settings: Settings) -> list[str]:
    """Return the rules that would allow what a rule from above denies."""
    return [
        f"permissions.allow: {_rule_text(rule)}"
        for rule in settings.allow
        if rule.tool == tool and (name is None or rule.skill_name is None or holds_back(name, rule.skill_name))
    ]


def _rule_text(rule: PermissionRule) -> str:
    return " ".join(str(value) for value in rule_to_dict(rule._replace(system=None, within=None)).values())


# Other rules --------------------------------------------------------------------------------------

_LISTS: Mapping[str, str] = {
    "permissions.deny": "deny",
    "permissions.allow": "allow",
    "permissions.grant_from_skills": "grant_from_skills",
    "permissions.run.read": "run_read",
    "permissions.run.write": "run_write",
    "permissions.run.require": "run_require",
    "skills.disabled": "disabled",
    "skills.ignored": "ignored",
    "skills.include": "include",
    "trust.folders": "trusted_folders",
    "hosts": "hosts",
}
_VALUES: Mapping[str, str] = {
    "skills.enabled": "enabled",
    "permissions.run.network": "run_network",
    "permissions.run.unsandboxed": "run_unsandboxed",
    "permissions.run.seccomp": "run_seccomp",
}
_DEFAULTS = (
    RuleInForce("search, load, read", "allowed for trusted skills, else confirmed", "default"),
    RuleInForce("run", "confirmed each time, and run in a sandbox", "default"),
)


def _own_rules(shelf: "Shelf") -> Iterator[RuleInForce]:
    """Yield the rules of the user's file, then those of the project's."""
    settings, environment = shelf.settings, shelf.environment
    path = user_config_path(environment)
    own = Settings(system=settings.system, deny=settings.system.rules)
    if isinstance(environment.config, Mapping):
        own, path = settings, None
    elif path is not None and files.kind_at(path) is not None:
        own = load_settings(environment._replace(config=path), system=settings.system)
    project = settings.project_file.path if settings.project_file else None
    for key, member in _LISTS.items():
        for value in getattr(settings, member):
            if not (isinstance(value, PermissionRule) and value.system):
                is_own = value in getattr(own, member)
                text = _rule_text(value) if isinstance(value, PermissionRule) else str(value)
                yield RuleInForce(key, text, "user" if is_own else "project", path if is_own else project)
    for key, member in _VALUES.items():
        value = getattr(settings, member)
        if value != Settings._field_defaults[member]:
            is_own = value == getattr(own, member)
            text = str(value).lower()
            yield RuleInForce(key, text, "user" if is_own else "project", path if is_own else project)


# The table ----------------------------------------------------------------------------------------


def _view(system: SystemPolicy, rules: Sequence[RuleInForce], display: PathDisplay, view: Screen) -> str:
    lines = [*_headlines(system, rules, display, view), ""]
    rows = [("RULE", "FROM", "VALUE"), *((rule.key, rule.origin, _value(rule)) for rule in rules)]
    lines += view.table(rows, ("bold", None, None), wrap=True)
    return "".join(f"{line}\n" for line in lines)


def _headlines(system: SystemPolicy, rules: Sequence[RuleInForce], display: PathDisplay, view: Screen) -> Iterator[str]:
    """Yield whether there is a system policy, then every file that a rule comes from."""
    if not system.files:
        yield f"No system policy ({SYSTEM_POLICY} does not exist): your rules and those of projects count."
    else:
        yield "The system policy counts; nothing below it allows more."
    said = {file.path: f"not used: {file.problem}" if file.problem else "in force" for file in system.files}
    rows = [(_origin_of(path), f"{display.short(path)}: {state}") for path, state in said.items()]
    others = dict.fromkeys((rule.origin, rule.file) for rule in rules if rule.file and rule.file not in said)
    rows += [(origin, display.short(path)) for origin, path in others if path]
    yield from view.table(rows, ("bold", None), indent=2, wrap=True)


def _origin_of(path: str) -> Origin:
    return "system" if path == SYSTEM_POLICY else "added"


def _value(rule: RuleInForce) -> str:
    without = f" (without effect now: {'; '.join(rule.overrides)})" if rule.overrides else ""
    return f"{rule.value}{without}"
