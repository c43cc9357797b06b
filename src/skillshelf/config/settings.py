"""Read configuration files into Settings, and decide which keys of an untrusted project count."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, SYSTEMS
from skillshelf.config.permission_rules import InvalidRule, PermissionRule, expanded, is_kebab_case, parse_rule
from skillshelf.config.profile import Count, Profile, Switch
from skillshelf.config.rules import RULES, rules_like, unknown_rule
from skillshelf.config.system_policy import SystemPolicy, trust_refusal
from skillshelf.core import files
from skillshelf.core.environment import Environment, expand, find_repository, policy_stamps, user_config_path
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, fold, near, shorten, trust_command
from skillshelf.core.values import Diagnostic, Wall
from skillshelf.errors import ConfigurationError, SourceRefused

__all__ = [
    "CONFIG_VERSION",
    "KEYS",
    "SWITCHES",
    "CheckLevel",
    "CheckSeverity",
    "JournalContent",
    "McpServer",
    "OnOff",
    "Settings",
    "SettingsFile",
    "Trust",
    "Wish",
    "is_trusted",
    "load_settings",
    "load_system_policy",
    "parse_wishes",
    "with_system_policy",
]

Trust = Literal["all", "ask", "user"]
OnOff = Literal["on", "off"]
JournalContent = Literal["full", "digest"]
CheckLevel = Literal["error", "warning", "info"]
CheckSeverity = Literal["error", "warning", "info", "off"]
SWITCHES = tuple(switch for switch in get_args(Switch) if switch != "any")


class SettingsFile(NamedTuple):
    """One configuration file: whose it is, and what it says that takes skills away.

    The file of an untrusted project reaches only untrusted skills below `within`; everything else that it says is here
    because it would count if the folder were trusted. `narrows` are keys that leave less for a model without naming
    skills; `problem` is why such a file cannot be used.
    """

    path: str
    owner: Literal["user", "project", "untrusted"]
    within: str = ""
    profile: str | None = None
    enabled: bool = True
    disabled: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    sources: Mapping[str, bool] = {}
    deny: tuple[PermissionRule, ...] = ()
    narrows: tuple[str, ...] = ()
    problem: str = ""


class McpServer(NamedTuple):
    """An MCP server that the user names: an address, or a command and the variables that it gets."""

    url: str | None = None
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


class Wish(NamedTuple):
    """A skill that a configuration file asks for, by one table `[[install]]`.

    `path` is the folder inside the source, empty at its root; `name` is that of the skill, `hosts` are those that
    shall see it. No setting depends on it: `skillshelf.install` reads and writes these tables.
    """

    source: str
    path: str = ""
    ref: str | None = None
    name: str | None = None
    hosts: tuple[str, ...] = ()


class Settings(NamedTuple):
    """The settings of all configuration files together."""

    profile: str | None = None
    enabled: bool = True
    switched_off_by: str = ""
    disabled: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    custom_directories: tuple[str, ...] = ()
    commands: bool = True
    sources: Mapping[str, bool] = {}
    max_entries: int = 200
    max_bytes: int = 32768
    max_tokens: int = 2000
    max_chars: int = 12000
    default_limit: int = 8
    max_limit: int = 50
    learn: bool | None = None
    allow: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    grant_from_skills: tuple[str, ...] = ()
    run_network: bool = False
    run_read: tuple[str, ...] = ()
    run_write: tuple[str, ...] = ()
    run_unsandboxed: bool = False
    run_seccomp: OnOff = "on"
    run_require: tuple[Wall, ...] = ()
    trusted_folders: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    scorer_url: str | None = None
    scorer_model: str | None = None
    scorer_key_variable: str | None = None
    scorer_english_only: bool = False
    journal_max_bytes: int | None = None
    journal_max_age_days: int | None = None
    journal_keep: int | None = None
    journal_push: str | None = None
    journal_content: JournalContent = "full"
    journal_token_file: str | None = None
    profiles: Mapping[str, Profile] = {}
    mcp_servers: Mapping[str, McpServer] = {}
    warnings: tuple[Diagnostic, ...] = ()
    odd_allow: tuple[str, ...] = ()
    """A sentence on each `permissions.allow` with a name that is not kebab-case, for profiles that refuse it."""
    files: tuple[SettingsFile, ...] = ()
    system: SystemPolicy = SystemPolicy()
    check_select: tuple[str, ...] = ()
    check_ignore: tuple[str, ...] = ()
    check_severity: CheckLevel | None = None
    check_baseline: str | None = None
    check_exclude: tuple[tuple[str, str], ...] = ()
    """Patterns of paths that `check` leaves out, each with the folder of its file."""
    check_rules: Mapping[str, CheckSeverity] = {}
    check_problem: str = ""
    """Why `[check]` of an untrusted project cannot be used; elsewhere that is an exception."""
    own_check_ignore: tuple[str, ...] = ()
    own_check_rules: Mapping[str, CheckSeverity] = {}
    """The choices of rules in the user's own file, for checks in which a project has no say."""

    @property
    def project_file(self) -> SettingsFile | None:
        """The file of the project, trusted or not."""
        return self.files[-1] if self.files and self.files[-1].owner != "user" else None

    @property
    def stranger(self) -> SettingsFile | None:
        """The file of a project that is not trusted."""
        return self.files[-1] if self.files and self.files[-1].owner == "untrusted" else None

    def said_by(self, key: str, says: Callable[[SettingsFile], bool]) -> str:
        """Return the file behind a setting that counts for every skill, with its key.

        Of several it is the first for lists that are added up, and the last for values that replace each other.
        """
        found = [file for file in self.files if file.owner != "untrusted" and says(file)]
        if not found:
            return f"rule: {key}"
        return f"{found[0 if KEYS[key][0] in _ADDED else -1].path}: {key}"

    def source_enabled(self, switch: str | None) -> bool:
        """Return whether roots behind a switch are searched; `any` means that one switch is on."""
        if switch is None:
            return True
        if switch == "any":
            return any(self.sources.get(name, True) for name in SWITCHES)
        return self.sources.get(switch, True)


def load_settings(environment: Environment, *, trust: Trust = "all", system: SystemPolicy | None = None) -> Settings:
    """Return the settings of an environment: the user's file, then the project's, or their replacement.

    What the system policy denies comes first. Only replay gives a `system` policy, that of the recorded session.
    """
    above = load_system_policy(environment) if system is None else system
    return _load_files(with_system_policy(Settings(), above), environment, trust)


def load_system_policy(environment: Environment) -> SystemPolicy:
    """Return the policy of the machine; where there is none, all it takes is one look for its file."""
    stamps = policy_stamps(environment)
    if not stamps:
        return SystemPolicy()
    from skillshelf.config.policy_file import read_policy

    return read_policy(stamps)


def with_system_policy(settings: Settings, system: SystemPolicy) -> Settings:
    """Return settings under a policy of the machine, with a warning for each file that cannot be used."""
    others = [warning for warning in settings.warnings if warning.rule != "policy-unusable"]
    unusable = [Diagnostic(file.path, "policy-unusable", file.problem) for file in system.files if file.problem]
    own = [rule for rule in settings.deny if rule.system is None]
    return settings._replace(system=system, deny=(*system.rules, *own), warnings=(*others, *unusable))


def _load_files(settings: Settings, environment: Environment, trust: Trust) -> Settings:
    if isinstance(environment.config, Mapping):
        return _apply(
            settings,
            _File(f"{environment.cwd}/<config>", "", environment.config),
            owner="user",
            environment=environment,
        )
    if environment.config is not None:
        return _apply(settings, _read_toml(environment.config, links="follow"), owner="user", environment=environment)
    if (user_file := user_config_path(environment)) and (found := _read_if_there(user_file)):
        settings = _apply(settings, found, owner="user", environment=environment)
    found_in_project = _project_file(environment, settings, trust)
    if found_in_project is None:
        return settings
    project, trusted = found_in_project
    if trusted:
        return _apply(settings, project, owner="project", environment=environment)
    return _apply_untrusted(settings, project, environment)


def is_trusted(folder: str, trusted_folders: Sequence[str]) -> bool:
    """Return whether the real path of a folder is a trusted folder, named by its real path, or lies below one."""
    real = files.real_path(folder)
    return any(files.is_inside(real, trusted) for trusted in trusted_folders)


# Files --------------------------------------------------------------------------------------------


class _File(NamedTuple):
    path: str
    text: str
    table: Mapping[str, Any]
    problem: str = ""


def _project_file(environment: Environment, settings: Settings, trust: Trust) -> tuple[_File, bool] | None:
    """Return the file of the project, and whether its folder is trusted.

    One in a trusted folder comes before one of a stranger: what it denies must not vanish. A stranger's file that
    cannot be read is no error, since that would take the user's own skills away.
    """
    stranger: _File | None = None
    for path in _project_paths(_project_chain(environment.cwd)):
        folder = os.path.dirname(path)
        trusted = trust == "all" or (trust == "ask" and is_trusted(folder, settings.trusted_folders))
        trusted = trusted and (not settings.system.files or not trust_refusal(settings.system, files.real_path(folder)))
        if stranger and not trusted:
            continue
        is_own = os.path.basename(path) == "skillshelf.toml"
        try:
            found = _read_toml(path, links="never") if is_own else _read_pyproject(path)
        except ConfigurationError as error:
            if trusted:
                raise
            found = _File(path, "", {}, str(error).removeprefix(path).lstrip(":, "))
        if found and set(found.table) == {_INSTALL}:
            # A list of wishes sets nothing, so it hides no file of settings.
            if trusted:
                _wishes(found, found.table[_INSTALL])
        elif found and trusted:
            return found, True
        else:
            stranger = stranger or found
    return (stranger, False) if stranger else None


def _project_chain(cwd: str) -> list[str]:
    """Return the folders from the working directory up to the repository."""
    boundary = _repository(cwd)
    chain = [cwd]
    while chain[-1] != boundary:
        chain.append(os.path.dirname(chain[-1]))
    return chain


def _repository(cwd: str) -> str:
    return find_repository(cwd, (".git", ".jj", ".hg")) or cwd


def _project_paths(chain: Sequence[str]) -> Iterator[str]:
    """Yield every `skillshelf.toml`, then every `pyproject.toml`, nearest first; the first with settings counts."""
    for folder in chain:
        if files.kind_at(f"{folder}/skillshelf.toml"):
            yield f"{folder}/skillshelf.toml"
    for folder in chain:
        if files.kind_at(f"{folder}/pyproject.toml"):
            yield f"{folder}/pyproject.toml"


def _read_pyproject(path: str) -> _File | None:
    """Return the table `tool.skillshelf`; parsing TOML takes longer than a whole listing, so search the bytes first."""
    try:
        data = files.read_file(path, limit=CONFIG_BYTES, links="never")
    except OSError:
        return None
    if not data or b"skillshelf" not in data:
        return None
    whole = _parse_toml(path, data)
    tool = whole.table.get("tool")
    if not isinstance(tool, dict) or "skillshelf" not in tool:
        return None
    if not isinstance(tool["skillshelf"], dict):
        raise _wrong(whole, "tool.skillshelf", "must be a table")
    return _without_version(whole._replace(table=tool["skillshelf"]))


def _read_if_there(path: str) -> _File | None:
    """Return the user's file, or None only if it does not exist: an unreadable one may hold a denial."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    return _read_toml(path, links="follow")


def _read_toml(path: str, *, links: Literal["follow", "never"]) -> _File:
    try:
        data = files.read_file(path, limit=CONFIG_BYTES, links=links)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    if data is None:
        raise ConfigurationError(f"{path}: not a regular file of at most {CONFIG_BYTES} bytes")
    return _without_version(_parse_toml(path, data))


CONFIG_VERSION = 1
"""The version of configuration files; a file without `version` is of the first."""


def _without_version(file: _File) -> _File:
    """Return a file without its `version`; raise ConfigurationError for one of a newer skillshelf."""
    if "version" not in file.table:
        return file
    version = _checked(file, "version", file.table["version"], _COUNT)
    if version > CONFIG_VERSION:
        newer = f"version {version} is of a newer skillshelf (this one reads {CONFIG_VERSION})"
        raise ConfigurationError(f"{file.path}: {newer}; update skillshelf, or name another file with --config")
    return file._replace(table={key: value for key, value in file.table.items() if key != "version"})


# It begins only where a part begins: from every character of a long word it would take quadratic time.
_LONG_KEY = lazy_pattern(rb"(?<![\w\"'-])(?:[\w\"'-]+[ \t]*\.[ \t]*){100}")


def _parse_toml(path: str, data: bytes) -> _File:
    import tomllib

    # The parser takes time quadratic in the parts of a key.
    if _LONG_KEY.search(data):
        raise ConfigurationError(f"{path}: a key of more than 100 parts")
    try:
        text = data.decode("utf-8")
        return _File(path, text, tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        # Not only the parser's own: a number of too many digits is one, too.
        raise ConfigurationError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: nested too deeply") from None


# Keys ---------------------------------------------------------------------------------------------

_TEXT, _FLAG, _COUNT, _TEXTS, _RULES, _ON_OFF, _WALLS, _LEVEL, _CONTENT = (
    "text",
    "true or false",
    "a whole number of at least 1",
    "a list of texts",
    "a list of rules",
    "on or off",
    "a list of parts of the sandbox",
    "error, warning or info",
    "full or digest",
)
_TYPES: Mapping[str, Any] = {
    _TEXT: str,
    _FLAG: bool,
    _COUNT: Count,
    _TEXTS: list[str],
    _ON_OFF: OnOff,
    _WALLS: list[Wall],
    _LEVEL: CheckLevel,
    _CONTENT: JournalContent,
}
_LISTS = (_TEXTS, _RULES, _WALLS)

KEYS: Mapping[str, tuple[str, str]] = {
    "profile": ("profile", _TEXT),
    "skills.enabled": ("enabled", _FLAG),
    "skills.disabled": ("disabled", _TEXTS),
    "skills.ignored": ("ignored", _TEXTS),
    "skills.include": ("include", _TEXTS),
    "skills.custom_directories": ("custom_directories", _TEXTS),
    "skills.commands": ("commands", _FLAG),
    "skills.initial.max_entries": ("max_entries", _COUNT),
    "skills.initial.max_bytes": ("max_bytes", _COUNT),
    "skills.initial.max_tokens": ("max_tokens", _COUNT),
    "skills.initial.max_chars": ("max_chars", _COUNT),
    "skills.search.default_limit": ("default_limit", _COUNT),
    "skills.search.max_limit": ("max_limit", _COUNT),
    "search.learn": ("learn", _FLAG),
    **{f"skills.sources.{switch}": (switch, _FLAG) for switch in SWITCHES},
    "permissions.allow": ("allow", _RULES),
    "permissions.deny": ("deny", _RULES),
    "permissions.grant_from_skills": ("grant_from_skills", _TEXTS),
    "permissions.run.network": ("run_network", _FLAG),
    "permissions.run.read": ("run_read", _TEXTS),
    "permissions.run.write": ("run_write", _TEXTS),
    "permissions.run.unsandboxed": ("run_unsandboxed", _FLAG),
    "permissions.run.seccomp": ("run_seccomp", _ON_OFF),
    "permissions.run.require": ("run_require", _WALLS),
    "trust.folders": ("trusted_folders", _TEXTS),
    "hosts": ("hosts", _TEXTS),
    "search.scorer.url": ("scorer_url", _TEXT),
    "search.scorer.model": ("scorer_model", _TEXT),
    "search.scorer.key_variable": ("scorer_key_variable", _TEXT),
    "search.scorer.english_only": ("scorer_english_only", _FLAG),
    "journal.max_bytes": ("journal_max_bytes", _COUNT),
    "journal.max_age_days": ("journal_max_age_days", _COUNT),
    "journal.keep": ("journal_keep", _COUNT),
    "journal.push": ("journal_push", _TEXT),
    "journal.content": ("journal_content", _CONTENT),
    "journal.token_file": ("journal_token_file", _TEXT),
    "check.select": ("check_select", _TEXTS),
    "check.ignore": ("check_ignore", _TEXTS),
    "check.severity": ("check_severity", _LEVEL),
    "check.baseline": ("check_baseline", _TEXT),
    "check.exclude": ("check_exclude", _TEXTS),
}
"""Every key of a configuration file, with its setting and its type.

`check.rules.RULE`, `mcp.servers.LABEL`, `profiles.NAME` and the tables `[[install]]` come besides.
"""

_MCP_SERVERS = "mcp.servers."
_WHOLE_TABLES = ("profiles.", _MCP_SERVERS)
_CHECK = "check."
_CHECK_RULES = "check.rules."

_SPELLINGS = {
    "skills.ignored_skills": "skills.ignored",
    "skills.include_skills": "skills.include",
    "skills.enable_skill_commands": "skills.commands",
    **{f"skills.{switch}": f"skills.sources.{switch}" for switch in SWITCHES},
}

_OF_A_STRANGER = ("permissions.deny", "skills.ignored", "skills.disabled")
"""The keys that count in the file of an untrusted project, for its own skills."""

_USER_ONLY = ("trust", "hosts", "search", "journal", "mcp")
"""The keys and tables that count in the user's own file only."""

_INSTALL = "install"
"""The key of the tables of wishes, which are no settings."""

_ADDED = (
    *("disabled", "ignored", "allow", "deny", "grant_from_skills", "custom_directories"),
    *("run_read", "run_write", "run_require", "check_ignore", "check_exclude"),
)


def _apply(settings: Settings, file: _File, *, owner: Literal["user", "project"], environment: Environment) -> Settings:
    """Return the settings with a file of the user or of a trusted project applied."""
    changes: dict[str, Any] = {}
    warnings = list(settings.warnings)
    sources: dict[str, bool] = {}
    custom: dict[str, Any] = {}
    servers: dict[str, McpServer] = {}
    said: dict[str, Any] = {}
    rules: dict[str, CheckSeverity] = {}
    for key, value in _flatten(file.table):
        if key == _INSTALL:
            _wishes(file, value)
        elif owner == "project" and _is_below(key, _USER_ONLY):
            message = f"`{key}` counts in the user's own file only"
            warnings.append(Diagnostic(file.path, "config-untrusted", message, _line_of(file, key)))
        elif key.startswith("profiles."):
            custom[key.removeprefix("profiles.")] = value
        elif key.startswith(_MCP_SERVERS):
            servers[key.removeprefix(_MCP_SERVERS)] = _mcp_server(file, key, value)
        elif key.startswith(_CHECK_RULES):
            rules[key.removeprefix(_CHECK_RULES)] = _rule_severity(file, key, value)
        else:
            setting, checked = _said(file, key, value, environment)
            if setting in SWITCHES:
                sources[setting] = checked
                continue
            said[setting] = (*said.get(setting, ()), *checked) if setting in _ADDED else checked
            changes[setting] = (*getattr(settings, setting), *said[setting]) if setting in _ADDED else checked
    if not changes.get("enabled", True) and settings.enabled:
        changes["switched_off_by"] = file.path
    profiles = _custom_profiles(file, custom, settings.profiles)
    if (name := changes.get("profile")) and name not in profiles and name not in SYSTEMS:
        known = [*SYSTEMS, *profiles]
        hint = f"{did_you_mean(name, known)} (known: {', '.join(known)})"
        raise _wrong(file, "profile", f"names an unknown profile {name!r}{hint}")
    warnings += _settle_rules(changes, said, settings, file, owner)
    warnings += _settle_folders(changes, file, environment)
    _require_whole_scorer(changes, file)
    if owner == "user":
        changes |= {"own_check_ignore": said.get("check_ignore", ()), "own_check_rules": rules}
    return settings._replace(
        **changes,
        check_rules={**settings.check_rules, **rules},
        sources={**settings.sources, **sources},
        profiles=profiles,
        mcp_servers={**settings.mcp_servers, **servers},
        warnings=tuple(warnings),
        files=(*settings.files, _settings_file(file, owner, {**said, "sources": sources}, settings, custom)),
    )


def _apply_untrusted(settings: Settings, file: _File, environment: Environment) -> Settings:
    """Return the settings with the file of an untrusted project, which restricts that project's own skills only.

    If what it restricts cannot be understood, its skills cannot be loaded at all; the user's are not affected.
    """
    problem = file.problem
    said: dict[str, Any] = {"sources": {}}
    without_effect: list[str] = []
    custom: list[str] = []
    for key, value in _flatten(file.table):
        if key.startswith(_CHECK) or key == _INSTALL:
            continue
        counts = key in _OF_A_STRANGER
        if not counts:
            without_effect.append(key)
        if key.startswith("profiles."):
            custom.append(key.removeprefix("profiles."))
        if key not in KEYS:
            continue
        try:
            setting, checked = _said(file, key, value, environment)
        except ConfigurationError as error:
            problem = problem or (str(error).removeprefix(file.path).lstrip(":, ") if counts else "")
            continue
        if setting in SWITCHES:
            said["sources"][setting] = checked
        else:
            said[setting] = (*said.get(setting, ()), *checked) if setting in _ADDED else checked
    within = files.real_path(_repository(environment.cwd))
    denied = said.get("deny", ())
    # Rules about a place or files would not count in a trusted folder either.
    said["deny"] = tuple(rule for rule in denied if not rule.names_thing)
    stranger = _settings_file(file, "untrusted", said, settings, custom)._replace(within=within, problem=problem)
    rules = [*stranger.deny, *([PermissionRule("skill_load")] if problem else [])]
    placed = [_user_only(file, "deny", rule) for rule in denied if rule.names_thing]
    return _checked_by_stranger(settings, file, environment)._replace(
        deny=(*settings.deny, *(rule._replace(within=within) for rule in rules)),
        warnings=(*settings.warnings, *_about_stranger(file, without_effect, problem), *placed),
        files=(*settings.files, stranger),
    )


def _checked_by_stranger(settings: Settings, file: _File, environment: Environment) -> Settings:
    """Return the settings with what the file of an untrusted project says about `check`.

    That counts: `check` serves whoever runs it in the repository, and only reports. A mistake in it must not keep
    other commands from working.
    """
    if file.problem:
        return settings._replace(check_problem=f"{file.path}: {file.problem}")
    table = {"check": file.table["check"]} if "check" in file.table else {}
    try:
        said = _apply(Settings(), file._replace(table=table), owner="project", environment=environment)
    except ConfigurationError as error:
        return settings._replace(check_problem=str(error))
    return settings._replace(
        check_select=said.check_select or settings.check_select,
        check_ignore=(*settings.check_ignore, *said.check_ignore),
        check_severity=said.check_severity or settings.check_severity,
        check_baseline=said.check_baseline or settings.check_baseline,
        check_exclude=(*settings.check_exclude, *said.check_exclude),
        check_rules={**settings.check_rules, **said.check_rules},
    )


def _rule_severity(file: _File, key: str, value: Any) -> CheckSeverity:
    from skillshelf.core.validation import validate

    rule = key.removeprefix(_CHECK_RULES)
    if rule not in RULES:
        raise _wrong(file, key, f"is not a rule: {unknown_rule(rule)}")
    if wrong := validate(value, CheckSeverity, key):
        raise _wrong(file, key, wrong.problem)
    severity: CheckSeverity = value
    return severity


def _said(file: _File, key: str, value: Any, environment: Environment) -> tuple[str, Any]:
    """Return the setting of a key and its checked value."""
    if key not in KEYS:
        raise _wrong(file, key, "is not a key of skillshelf" + _did_you_mean(key))
    setting, kind = KEYS[key]
    checked = _checked(file, key, value, kind)
    if setting.startswith("scorer_") and isinstance(checked, str):
        _require_scorer_text(file, key, setting, checked)
    if setting == "journal_push":
        _require_server(file, key, checked)
    if setting in ("check_baseline", "journal_token_file"):
        if not checked or "\0" in checked:
            raise _wrong(file, key, "must be the path of a file")
        return setting, expand(checked, environment, base=os.path.dirname(file.path))
    return setting, _from_file(setting, checked, file.path, environment) if kind in _LISTS else checked


def _settings_file(
    file: _File,
    owner: Literal["user", "project", "untrusted"],
    said: Mapping[str, Any],
    before: Settings,
    profiles: Iterable[str],
) -> SettingsFile:
    """Return what a file says that takes skills away, compared with the settings before it.

    `profiles` are those that it defines: one may take the place of a profile of the user's.
    """
    counts = [key for key, (_, kind) in KEYS.items() if kind == _COUNT and not _is_below(key, _USER_ONLY)]
    narrows = [
        key
        for key, (setting, kind) in KEYS.items()
        if (key in counts and said.get(setting, getattr(before, setting, 0)) < getattr(before, setting, 0))
        or (setting in SWITCHES and not said["sources"].get(setting, True) and before.source_enabled(setting))
        or (kind == _WALLS and not set(said.get(setting, ())).issubset(getattr(before, setting)))
        or (setting == "commands" and before.commands and not said.get(setting, True))
    ]
    narrows += [f"profiles.{name}" for name in profiles if name in before.profiles]
    if said.get("profile", chosen := before.profile or DEFAULT_PROFILE) != chosen:
        narrows.insert(0, "profile")
    told = {name: said[name] for name in SettingsFile._fields if name in said}
    return SettingsFile(file.path, owner, **told, narrows=tuple(narrows))


def _is_below(key: str, tables: tuple[str, ...]) -> bool:
    return any(key == table or key.startswith(table + ".") for table in tables)


def _settle_rules(
    changes: dict[str, Any], said: dict[str, Any], settings: Settings, file: _File, owner: str
) -> list[Diagnostic]:
    """Take rules that name a place or files out of the changes by a project, and note odd names; return warnings."""
    warnings = []
    for setting in ("allow", "deny"):
        rules = said.get(setting, ())
        if owner != "user" and any(rule.names_thing for rule in rules):
            warnings += [_user_only(file, setting, rule) for rule in rules if rule.names_thing]
            rules = said[setting] = tuple(rule for rule in rules if not rule.names_thing)
            changes[setting] = (*getattr(settings, setting), *rules)
        if setting == "allow":
            changes["odd_allow"] = (*settings.odd_allow, *_odd_names(file, rules))
    return warnings


def _settle_folders(changes: dict[str, Any], file: _File, environment: Environment) -> Iterator[Diagnostic]:
    """Take the real paths of trusted folders; yield a warning for each that is now a link out of its repository.

    Whoever writes in a repository can turn a folder of it into a link. If the home folder is a repository, its links
    are the user's own.
    """
    real_folders = []
    for folder in changes.get("trusted_folders", ()):
        real = files.real_path(folder)
        repository = find_repository(os.path.dirname(folder), (".git", ".jj", ".hg")) if real != folder else None
        if repository in (None, environment.home) or files.is_inside(real, files.real_path(repository or "")):
            real_folders.append(real)
            continue
        message = f"`trust.folders`: {fold(folder)} is a link out of its repository, and does not count"
        yield Diagnostic(file.path, "config-untrusted", message, _line_of(file, "trust.folders"))
    if real_folders or "trusted_folders" in changes:
        changes["trusted_folders"] = tuple(real_folders)


def _require_scorer_text(file: _File, key: str, setting: str, text: str) -> None:
    """Raise ConfigurationError for an address or a name that no server of embeddings can have."""
    if setting == "scorer_key_variable" and not _VARIABLE.match(text):
        raise _wrong(file, key, "must be the name of an environment variable, not the key itself")
    if setting != "scorer_url":
        if not text or not text.isprintable():
            raise _wrong(file, key, "must be the name of a model")
        return
    _require_server(file, key, text)


def _require_server(file: _File, key: str, text: str) -> None:
    """Raise ConfigurationError for an address that no request is sent to."""
    from skillshelf.core.http_client import is_loopback_name, origin_of

    try:
        origin = origin_of(text)
    except SourceRefused as error:
        raise _wrong(file, key, f"cannot be used: {error.reason}") from None
    if origin.scheme == "http" and not is_loopback_name(origin.host):
        raise _wrong(file, key, "must begin with https: plain http goes to this machine alone")


def _require_whole_scorer(changes: Mapping[str, Any], file: _File) -> None:
    named = [setting for setting in changes if setting.startswith("scorer_")]
    if named and not {"scorer_url", "scorer_model"} <= set(named):
        raise _wrong(file, "search.scorer", "must have both a `url` and a `model`")


def _odd_names(file: _File, rules: Sequence[PermissionRule]) -> Iterator[str]:
    """Yield a sentence for each rule that names a skill otherwise than in kebab-case."""
    for rule in rules:
        if rule.skill_name is not None and not is_kebab_case(rule.skill_name):
            what = f"holds skill_name {rule.skill_name!r}; it must be a kebab-case name in this profile"
            yield str(_wrong(file, "permissions.allow", what))


def _from_file(setting: str, values: tuple[Any, ...], path: str, environment: Environment) -> tuple[Any, ...]:
    """Return the values with relative paths resolved from the folder of the file."""
    if setting == "disabled":
        listed = [expand(value, environment, base=os.path.dirname(path)) if "/" in value else value for value in values]
        # A path through a link means the same skill.
        real = (files.real_path(value) for value in listed if "/" in value)
        return tuple(dict.fromkeys([*listed, *real]))
    if setting == "check_exclude":
        return tuple((os.path.dirname(path), value) for value in values)
    if setting in ("allow", "deny"):
        return tuple(expanded(rule, environment, base=os.path.dirname(path)) for rule in values)
    if setting not in ("custom_directories", "trusted_folders", "run_read", "run_write"):
        return values
    return tuple(expand(value, environment, base=os.path.dirname(path)) for value in values)


def _flatten(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return a table as dotted snake_case keys; a custom profile and a server stay one value each."""
    flat: list[tuple[str, Any]] = []
    for key, value in table.items():
        dotted = prefix + key if prefix in _WHOLE_TABLES else prefix + _snake_case(key)
        if isinstance(value, dict) and prefix not in _WHOLE_TABLES:
            flat.extend(_flatten(value, dotted + "."))
        else:
            flat.append((_SPELLINGS.get(dotted, dotted), value))
    return flat


def _snake_case(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), key)


def _checked(file: _File, key: str, value: Any, kind: str) -> Any:
    if kind == _RULES:
        if not isinstance(value, list):
            raise _wrong(file, key, f"must be {kind}")
        return tuple(_permission_rule(file, key, entry) for entry in value)
    from skillshelf.core.validation import validate

    if wrong := validate(value, _TYPES[kind], key):
        raise _wrong(file, wrong.path, wrong.problem)
    if kind == _TEXTS and any("\0" in item for item in value):
        raise _wrong(file, key, "must not hold a NUL character")
    if key == "hosts":
        return _host_names(file, value)
    if key in ("check.select", "check.ignore") and (unknown := [word for word in value if not rules_like(word)]):
        raise _wrong(file, key, f"names an {unknown_rule(unknown[0])}")
    return tuple(value) if kind in _LISTS else value


def _host_names(file: _File, names: Sequence[str], key: str = "hosts") -> tuple[str, ...]:
    from skillshelf.config.hosts import find_host

    try:
        return tuple(find_host(name).name for name in dict.fromkeys(names))
    except ConfigurationError as error:
        raise _wrong(file, key, f"names an {error}") from None


def parse_wishes(data: bytes, path: str) -> tuple[Wish, ...]:
    """Return the tables `[[install]]` of a configuration file; raise ConfigurationError with the line."""
    file = _without_version(_parse_toml(path, data))
    return _wishes(file, file.table.get(_INSTALL, []))


def _wishes(file: _File, value: Any) -> tuple[Wish, ...]:
    from skillshelf.core.validation import validate

    if wrong := validate(value, list[Wish], _INSTALL):
        raise _wrong(file, wrong.path, wrong.problem)
    made: list[Wish] = []
    for table in value:
        texts = [text for text in table.values() if isinstance(text, str)]
        if not all(texts) or any("\0" in text for text in texts):
            raise _wrong(file, _INSTALL, "must not hold an empty text or a NUL character; leave the member out")
        hosts = _host_names(file, table.get("hosts", ()), f"{_INSTALL}.hosts")
        made.append(Wish(**{**table, "hosts": hosts}))
    named = [wish.name for wish in made if wish.name is not None]
    if len({*named}) != len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise _wrong(file, _INSTALL, f"names {twice!r} twice")
    return tuple(made)


def _permission_rule(file: _File, key: str, entry: Any) -> PermissionRule:
    try:
        return parse_rule(entry)
    except InvalidRule as error:
        raise _wrong(file, key, str(error)) from None


_SERVER_LABEL = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_VARIABLE = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")


def _mcp_server(file: _File, key: str, value: Any) -> McpServer:
    """Return a server that the user names; it has an address or a command."""
    from skillshelf.core.validation import validate

    if not _SERVER_LABEL.match(key.removeprefix(_MCP_SERVERS)):
        raise _wrong(file, key, "has a label that is not up to 64 letters, digits, `.`, `_` and `-`")
    if not isinstance(value, dict):
        raise _wrong(file, key, "must be a table")
    kinds: dict[str, Any] = {"url": str, "command": list[str], "env": list[str]}
    if unknown := [member for member in value if member not in kinds]:
        raise _wrong(file, f"{key}.{unknown[0]}", f"is not a key of a server (known: {', '.join(kinds)})")
    for member, given in value.items():
        if wrong := validate(given, kinds[member], f"{key}.{member}"):
            raise _wrong(file, wrong.path, wrong.problem)
    url, command, env = value.get("url"), value.get("command", []), value.get("env", [])
    if (url is None) == (not command):
        raise _wrong(file, key, "must have either a `url` or a `command`")
    if any("\0" in text for text in (url or "", *command)) or not all(map(_VARIABLE.match, env)):
        raise _wrong(file, key, "must not hold a NUL character, and `env` holds names of variables")
    return McpServer(url, tuple(command), tuple(env))


def _custom_profiles(file: _File, tables: Mapping[str, Any], known: Mapping[str, Profile]) -> dict[str, Profile]:
    """Return the profiles of a file; one may extend another that follows it."""
    done = dict(known)
    waiting = dict(tables)
    if taken := [name for name in tables if name in SYSTEMS]:
        raise _wrong(file, f"profiles.{taken[0]}", "is the name of a system; choose another name, with `extends`")
    while waiting:
        names = list(waiting)
        # A profile waits for the one it extends; in a circle the first one is refused.
        ready = [n for n, table in waiting.items() if not isinstance(table, dict) or table.get("extends") not in names]
        name = ready[0] if ready else next(iter(waiting))
        done[name] = _custom_profile(file, f"profiles.{name}", waiting.pop(name), done)
    return done


def _custom_profile(file: _File, key: str, table: Any, known: Mapping[str, Profile]) -> Profile:
    if not isinstance(table, dict):
        raise _wrong(file, key, "must be a table")
    from skillshelf.config.custom_profiles import InvalidField, derive

    try:
        overrides = {_snake_case(field): value for field, value in table.items()}
        return derive(key.removeprefix("profiles."), overrides, known, evidence=file.path)
    except InvalidField as error:
        raise _wrong(file, f"{key}.{error.field}", error.problem) from None


# Messages -----------------------------------------------------------------------------------------


def _wrong(file: _File, key: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{file.path}, line {_line_of(file, key)}: `{key}` {what}")


# Both take linear time: a stranger may write lines of any length.
_HEADER = lazy_pattern(r"\[{1,2}([^\]]*)\]")
_SETTING = lazy_pattern(r"[\w.\"' -]+")


def _line_of(file: _File, key: str) -> int:
    """Return the line that sets a key, or of the nearest table around it: a key inside braces has no line."""
    # An item of a list has no line of its own.
    wanted = key.partition("[")[0]
    places: dict[str, int] = {}
    for number, dotted in _places(file.text):
        places.setdefault(dotted, number)
        places.setdefault(_SPELLINGS.get(dotted, dotted), number)
    while wanted:
        if wanted in places:
            return places[wanted]
        wanted = wanted.rpartition(".")[0]
    return 1


def _places(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that names a table or sets a key, with the whole dotted key."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        key, equals, _ = line.partition("=")
        if header := _HEADER.match(line.strip()):
            table = _parts(header[1])
            yield number, _known_as(table)
        elif equals and _SETTING.fullmatch(key.strip()):
            yield number, _known_as((*table, *_parts(key)))


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _known_as(parts: tuple[str, ...]) -> str:
    if parts[:2] == ("tool", "skillshelf"):
        parts = parts[2:]
    # The name of a profile is kept as it is; everything else is a key.
    return ".".join(part if parts[0] == "profiles" and n == 1 else _snake_case(part) for n, part in enumerate(parts))


def _did_you_mean(key: str) -> str:
    close = near(key, KEYS)
    return f"; did you mean `{close[0]}`?" if close else ""


_KEYS_NAMED = 40
_KEY_SHOWN = 60


def _about_stranger(file: _File, without_effect: Sequence[str], problem: str) -> Iterator[Diagnostic]:
    """Yield one warning about the file of an untrusted project: the keys without effect, and what is wrong with it."""
    keys = list(dict.fromkeys(without_effect))
    parts = []
    if problem:
        what = f"cannot be used ({shorten(fold(problem), 200)})"
        parts.append(f"this file of an untrusted project {what}: no skill of the project can be loaded")
    if keys:
        named = ", ".join(f"`{shorten(fold(key), _KEY_SHOWN)}`" for key in keys[:_KEYS_NAMED])
        more = f" and {len(keys) - _KEYS_NAMED} more" if len(keys) > _KEYS_NAMED else ""
        verb = "does" if len(keys) == 1 else "do"
        folder = os.path.dirname(file.path)
        parts.append(f"{named}{more} {verb} not count until you trust the folder: {trust_command(folder)}")
    if parts:
        line = _line_of(file, keys[0]) if keys else None
        yield Diagnostic(file.path, "config-untrusted", "; ".join(parts), line)


def _user_only(file: _File, setting: str, rule: PermissionRule) -> Diagnostic:
    key = f"permissions.{setting}"
    named = " and ".join(member for member in ("path", "tree") if getattr(rule, member) is not None)
    message = f"`{key}`: a rule with {named} counts in the user's own file only"
    return Diagnostic(file.path, "config-untrusted", message, _line_of(file, key))
