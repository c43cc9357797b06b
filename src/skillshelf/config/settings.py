"""Read configuration files into Settings, and decide which keys of an untrusted project count."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.profile import Count, Profile, Switch
from skillshelf.core import files
from skillshelf.core.environment import Environment, expand, find_repository, user_config_path
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.values import Diagnostic
from skillshelf.errors import ConfigurationError

__all__ = [
    "KEYS",
    "SWITCHES",
    "InvalidRule",
    "PermissionRule",
    "Settings",
    "Trust",
    "is_trusted",
    "load_settings",
    "parse_rule",
]

Trust = Literal["all", "ask", "user"]
SWITCHES = tuple(switch for switch in get_args(Switch) if switch != "any")


class PermissionRule(NamedTuple):
    """One entry of `permissions.allow` or `permissions.deny`."""

    tool: str
    skill_name: str | None = None


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
    allow: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    grant_from_skills: tuple[str, ...] = ()
    run_network: bool = False
    run_read: tuple[str, ...] = ()
    run_write: tuple[str, ...] = ()
    run_unsandboxed: bool = False
    trusted_folders: tuple[str, ...] = ()
    profiles: Mapping[str, Profile] = {}
    warnings: tuple[Diagnostic, ...] = ()

    def source_enabled(self, switch: str | None) -> bool:
        """Return whether roots behind a switch are searched; `any` means that one switch is on."""
        if switch is None:
            return True
        if switch == "any":
            return any(self.sources.get(name, True) for name in SWITCHES)
        return self.sources.get(switch, True)


def load_settings(environment: Environment, *, trust: Trust = "all") -> Settings:
    """Return the settings of an environment: the user's file, then the project's, or their replacement."""
    settings = Settings()
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
    project = _project_file(environment.cwd)
    if project is None:
        return settings
    trusted = trust == "all" or (trust == "ask" and is_trusted(os.path.dirname(project.path), settings.trusted_folders))
    return _apply(settings, project, owner="project" if trusted else "untrusted", environment=environment)


def is_trusted(folder: str, trusted_folders: Sequence[str]) -> bool:
    """Return whether the real path of a folder is a trusted folder or lies below one."""
    real = files.real_path(folder)
    return any(files.is_inside(real, files.real_path(trusted)) for trusted in trusted_folders)


# Files --------------------------------------------------------------------------------------------


class _File(NamedTuple):
    path: str
    text: str
    table: Mapping[str, Any]


def _project_file(cwd: str) -> _File | None:
    boundary = find_repository(cwd, (".git", ".jj", ".hg")) or cwd
    chain = [cwd]
    while chain[-1] != boundary:
        chain.append(os.path.dirname(chain[-1]))
    for folder in chain:
        if files.kind_at(f"{folder}/skillshelf.toml"):
            return _read_toml(f"{folder}/skillshelf.toml", links="never")
    for folder in chain:
        path = f"{folder}/pyproject.toml"
        if files.kind_at(path) and (found := _read_pyproject(path)):
            return found
    return None


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
    return whole._replace(table=tool["skillshelf"])


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
    return _parse_toml(path, data)


_LONG_KEY = re.compile(rb"(?:[\w\"'-]+[ \t]*\.[ \t]*){100}")


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
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: nested too deeply") from None


# Keys ---------------------------------------------------------------------------------------------

_TEXT, _FLAG, _COUNT, _TEXTS, _RULES = (
    "text",
    "true or false",
    "a whole number of at least 1",
    "a list of texts",
    "a list of rules",
)
_TYPES: Mapping[str, Any] = {_TEXT: str, _FLAG: bool, _COUNT: Count, _TEXTS: list[str]}

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
    **{f"skills.sources.{switch}": (switch, _FLAG) for switch in SWITCHES},
    "permissions.allow": ("allow", _RULES),
    "permissions.deny": ("deny", _RULES),
    "permissions.grant_from_skills": ("grant_from_skills", _TEXTS),
    "permissions.run.network": ("run_network", _FLAG),
    "permissions.run.read": ("run_read", _TEXTS),
    "permissions.run.write": ("run_write", _TEXTS),
    "permissions.run.unsandboxed": ("run_unsandboxed", _FLAG),
    "trust.folders": ("trusted_folders", _TEXTS),
}
"""Every key of a configuration file, with its setting and its type."""

_SPELLINGS = {
    "skills.ignored_skills": "skills.ignored",
    "skills.include_skills": "skills.include",
    "skills.enable_skill_commands": "skills.commands",
    **{f"skills.{switch}": f"skills.sources.{switch}" for switch in SWITCHES},
}

_NEEDS_TRUST = (
    "permissions.allow",
    "permissions.grant_from_skills",
    "permissions.run",
    "skills.custom_directories",
    "profiles",
    "trust",
)
_ADDED = (
    *("disabled", "ignored", "allow", "deny", "grant_from_skills", "custom_directories"),
    *("run_read", "run_write"),
)


def _apply(
    settings: Settings, file: _File, *, owner: Literal["user", "project", "untrusted"], environment: Environment
) -> Settings:
    """Return the settings with a file applied, as far as its owner may change them."""
    changes: dict[str, Any] = {}
    warnings = list(settings.warnings)
    sources = dict(settings.sources)
    custom: dict[str, Any] = {}
    for key, value in _flatten(file.table):
        if owner == "untrusted" and _is_below(key, _NEEDS_TRUST):
            warnings.append(_not_trusted(file, key))
        elif owner == "project" and _is_below(key, ("trust",)):
            message = f"`{key}` counts in the user's own file only"
            warnings.append(Diagnostic(file.path, "config-untrusted", message, _line_of(file, key)))
        elif key.startswith("profiles."):
            custom[key.removeprefix("profiles.")] = value
        elif key not in KEYS:
            raise _wrong(file, key, "is not a key of skillshelf" + _did_you_mean(key))
        else:
            setting, kind = KEYS[key]
            checked = _checked(file, key, value, kind)
            if kind in (_TEXTS, _RULES):
                checked = _from_file(setting, checked, file.path, environment)
            if setting in _ADDED:
                changes[setting] = (*changes.get(setting, getattr(settings, setting)), *checked)
                continue
            current = settings.sources.get(setting, True) if setting in SWITCHES else getattr(settings, setting)
            combined = _combined(current, checked, owner)
            if combined != checked:
                warnings.append(_not_trusted(file, key))
            (sources if setting in SWITCHES else changes)[setting] = combined
            if setting == "enabled" and not combined and current:
                changes["switched_off_by"] = file.path
    profiles = _custom_profiles(file, custom, settings.profiles)
    if (name := changes.get("profile")) and name not in profiles and name not in SYSTEMS:
        if owner != "untrusted":
            known = ", ".join([*SYSTEMS, *profiles])
            raise _wrong(file, "profile", f"names an unknown profile {name!r} (known: {known})")
        # The profiles of an untrusted project do not count; the folder must stay usable without them.
        changes["profile"] = settings.profile
        warnings.append(_not_trusted(file, "profile"))
    return settings._replace(**changes, sources=sources, profiles=profiles, warnings=tuple(warnings))


def _is_below(key: str, tables: tuple[str, ...]) -> bool:
    return any(key == table or key.startswith(table + ".") for table in tables)


def _combined(current: Any, value: Any, owner: str) -> Any:
    """Return the later value; an untrusted project may narrow what the user set, never widen it."""
    if owner != "untrusted":
        return value
    if isinstance(current, bool):
        return current and value
    if isinstance(current, int):
        return min(current, value)
    return current if current and isinstance(current, tuple) else value


def _from_file(setting: str, values: tuple[Any, ...], path: str, environment: Environment) -> tuple[Any, ...]:
    """Return the values with relative paths resolved from the folder of the file."""
    if setting == "disabled":
        return tuple(
            expand(value, environment, base=os.path.dirname(path)) if "/" in value else value for value in values
        )
    if setting not in ("custom_directories", "trusted_folders", "run_read", "run_write"):
        return values
    return tuple(expand(value, environment, base=os.path.dirname(path)) for value in values)


def _flatten(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return a table as dotted snake_case keys; a custom profile stays one value."""
    flat: list[tuple[str, Any]] = []
    for key, value in table.items():
        dotted = prefix + _snake_case(key) if prefix != "profiles." else prefix + key
        if isinstance(value, dict) and prefix != "profiles.":
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
    return tuple(value) if kind == _TEXTS else value


def _permission_rule(file: _File, key: str, entry: Any) -> PermissionRule:
    try:
        return parse_rule(entry)
    except InvalidRule as error:
        raise _wrong(file, key, str(error)) from None


class InvalidRule(ValueError):
    """An invalid permission rule; the message ends a sentence about the list that holds it."""


_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL = re.compile(r"[A-Za-z_][\w.:-]*")
_RULE = '{ tool = "...", skill_name = "..." }'
_OWN_TOOLS = ("skill_search", "skill_load", "skill_read", "skill_run", "skill_override", "Skill")


def parse_rule(entry: Any) -> PermissionRule:
    """Return the permission rule in a mapping; a rule that is half understood could allow everything, so it raises."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("tool"), str) or not entry["tool"]:
        raise InvalidRule(f"holds {entry!r}; a rule is {_RULE}")
    if extra := sorted(str(member) for member in entry if member not in PermissionRule._fields):
        raise InvalidRule(f"holds a rule with {', '.join(extra)}; a rule has tool and skill_name only")
    tool, name = entry["tool"], entry.get("skill_name")
    if not _TOOL.fullmatch(tool):
        raise InvalidRule(f"holds tool {tool!r}; a rule names one tool, without patterns")
    # A rule with a misspelt tool would never apply.
    if tool.lower().startswith("skill") and tool not in _OWN_TOOLS:
        raise InvalidRule(f"holds tool {tool!r}; those for skills are {', '.join(_OWN_TOOLS)}")
    # Dropping an invalid name would turn the rule into one for every skill.
    if name is not None and not (isinstance(name, str) and _KEBAB.fullmatch(name)):
        raise InvalidRule(f"holds skill_name {name!r}; it must be a kebab-case name")
    return PermissionRule(tool, name)


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


_HEADER = re.compile(r"\s*\[+([^\]]*)\]")
_SETTING = re.compile(r"\s*([\w.\"' -]+?)\s*=")


def _line_of(file: _File, key: str) -> int:
    """Return the line that sets a key, or of the nearest table around it: a key inside braces has no line."""
    # An item of a list has no line of its own.
    wanted = key.partition("[")[0]
    places = list(_places(file.text))
    while wanted:
        for number, dotted in places:
            if dotted == wanted or _SPELLINGS.get(dotted, dotted) == wanted:
                return number
        wanted = wanted.rpartition(".")[0]
    return 1


def _places(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that names a table or sets a key, with the whole dotted key."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            table = _parts(header[1])
            yield number, _known_as(table)
        elif setting := _SETTING.match(line):
            yield number, _known_as((*table, *_parts(setting[1])))


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _known_as(parts: tuple[str, ...]) -> str:
    if parts[:2] == ("tool", "skillshelf"):
        parts = parts[2:]
    # The name of a profile is kept as it is; everything else is a key.
    return ".".join(part if parts[0] == "profiles" and n == 1 else _snake_case(part) for n, part in enumerate(parts))


def _did_you_mean(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, list(KEYS), 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _not_trusted(file: _File, key: str) -> Diagnostic:
    folder = os.path.dirname(file.path)
    message = f"`{key}` does not count until you trust the folder: skillshelf trust {folder}"
    return Diagnostic(file.path, "config-untrusted", message, _line_of(file, key))
