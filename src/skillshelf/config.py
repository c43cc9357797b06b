"""Configuration files to settings, with the rule about which of a project's wishes count."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from skillshelf import files
from skillshelf.errors import ConfigurationError
from skillshelf.limits import CONFIG_BYTES
from skillshelf.profile import Profile, RootRule
from skillshelf.profiles import find_profile, severities
from skillshelf.rulebook import RULES
from skillshelf.values import Diagnostic

__all__ = ["Place", "Settings", "Trust", "find_repository", "load_settings", "locate", "user_config_path"]

Trust = Literal["all", "ask", "user"]
SWITCHES = (
    "enable_codex_user",
    "enable_claude_user",
    "enable_claude_project",
    "enable_pi_user",
    "enable_pi_project",
)


class Place(NamedTuple):
    """Where a shelf is opened: everything outside the configuration that decides what it finds."""

    cwd: str
    home: str | None
    env: Mapping[str, str]
    home_moved: bool = False


class PermissionRule(NamedTuple):
    """One entry of `permissions.allow` or `permissions.deny`."""

    tool: str
    skill_name: str | None = None


class Settings(NamedTuple):
    """What the configuration says, all files taken together."""

    profile: str | None = None
    enabled: bool = True
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
    trusted_folders: tuple[str, ...] = ()
    profiles: Mapping[str, Profile] = {}
    warnings: tuple[Diagnostic, ...] = ()

    def source_enabled(self, switch: str | None) -> bool:
        """Whether roots behind that switch are looked into; `any` means that one switch is on."""
        if switch is None:
            return True
        if switch == "any":
            return any(self.sources.get(name, True) for name in SWITCHES)
        return self.sources.get(switch, True)


def locate(cwd: str | None, home: str | None, env: Mapping[str, str] | None) -> Place:
    """The place for what a caller gave; what is missing comes from the process."""
    environment = {name: files.from_system(value) for name, value in os.environ.items()} if env is None else dict(env)
    base = files.from_system(os.path.abspath(cwd or "."))
    if home is not None:
        return Place(base, files.from_system(os.path.abspath(home)), environment, home_moved=True)
    found = environment.get("HOME") or files.from_system(os.path.expanduser("~"))
    # A home that is not absolute would mean another folder in every working directory.
    return Place(base, os.path.normpath(found) if os.path.isabs(found) else None, environment)


def find_repository(cwd: str, markers: Sequence[str]) -> str | None:
    """The nearest folder from here upward that holds one of the markers."""
    folder = cwd
    while True:
        if any(files.kind_at(f"{folder}/{marker}") for marker in markers):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def user_config_path(place: Place) -> str | None:
    """The user's own configuration file, whether or not it exists."""
    if place.home is not None and (place.home_moved or sys.platform == "linux"):
        given = None if place.home_moved else place.env.get("XDG_CONFIG_HOME")
        base = given if given and os.path.isabs(given) else f"{place.home}/.config"
        return f"{base}/skillshelf/config.toml"
    if place.home is None:
        return None
    from platformdirs import user_config_dir

    return os.path.join(user_config_dir("skillshelf"), "config.toml")


def load_settings(place: Place, *, file: str | Mapping[str, Any] | None = None, trust: Trust = "all") -> Settings:
    """The settings that hold at a place: the user's file, then the project's; `file` replaces both."""
    settings = Settings()
    if isinstance(file, Mapping):
        return _apply(settings, _File(f"{place.cwd}/<config>", "", file), owner="user", place=place)
    if file is not None:
        path = os.path.abspath(os.path.join(place.cwd, file))
        return _apply(settings, _read_toml(path, links="follow"), owner="user", place=place)
    user_file = user_config_path(place)
    if user_file and files.kind_at(user_file):
        settings = _apply(settings, _read_toml(user_file, links="follow"), owner="user", place=place)
    project = _project_file(place.cwd)
    if project is None:
        return settings
    trusted = trust == "all" or (trust == "ask" and is_trusted(os.path.dirname(project.path), settings.trusted_folders))
    return _apply(settings, project, owner="project" if trusted else "stranger", place=place)


def is_trusted(folder: str, trusted_folders: Sequence[str]) -> bool:
    """Whether a folder, by its real path, is one the user trusts or lies below one."""
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
    """The file if it speaks of us; most do not, and reading TOML takes longer than a whole listing."""
    try:
        data = files.read_file(path, limit=CONFIG_BYTES, links="never")
    except OSError:
        return None
    if not data or b"tool.skillshelf" not in data:
        return None
    whole = _parse_toml(path, data)
    table = whole.table.get("tool", {}).get("skillshelf")
    return whole._replace(table=table) if isinstance(table, dict) else None


def _read_toml(path: str, *, links: Literal["follow", "never"]) -> _File:
    try:
        data = files.read_file(path, limit=CONFIG_BYTES, links=links)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None
    if data is None:
        raise ConfigurationError(f"{path}: not a regular file of at most {CONFIG_BYTES} bytes")
    return _parse_toml(path, data)


def _parse_toml(path: str, data: bytes) -> _File:
    import tomllib

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
    "a positive whole number",
    "a list of texts",
    "a list of rules",
)

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
    "trust.folders": ("trusted_folders", _TEXTS),
}
"""Every key of a configuration file, the setting it becomes, and the type it must have."""

_SPELLINGS = {
    "skills.ignored_skills": "skills.ignored",
    "skills.include_skills": "skills.include",
    "skills.enable_skill_commands": "skills.commands",
    **{f"skills.{switch}": f"skills.sources.{switch}" for switch in SWITCHES},
}

_NEEDS_TRUST = (
    "permissions.allow",
    "permissions.grant_from_skills",
    "skills.custom_directories",
    "profiles",
    "trust",
)
_ADDED = ("disabled", "ignored", "allow", "deny", "grant_from_skills", "custom_directories")


def _apply(settings: Settings, file: _File, *, owner: Literal["user", "project", "stranger"], place: Place) -> Settings:
    """The settings with a file's wishes on top, as far as its owner may have them."""
    changes: dict[str, Any] = {}
    warnings = list(settings.warnings)
    sources = dict(settings.sources)
    profiles = dict(settings.profiles)
    for key, value in _flatten(file.table):
        if owner == "stranger" and key.startswith(_NEEDS_TRUST):
            warnings.append(_not_trusted(file, key))
        elif owner == "project" and key.startswith("trust"):
            warnings.append(_user_only(file, key))
        elif key.startswith("profiles."):
            profiles[key.removeprefix("profiles.")] = _own_profile(file, key, value, profiles)
        elif key not in KEYS:
            raise _wrong(file, key, "is not a key of skillshelf" + _did_you_mean(key))
        else:
            setting, kind = KEYS[key]
            checked = _checked(file, key, value, kind)
            if kind in (_TEXTS, _RULES):
                checked = _from_file(setting, checked, file.path, place)
            if setting in SWITCHES:
                sources[setting] = _combined(settings.sources.get(setting, True), checked, owner)
            elif setting in _ADDED:
                changes[setting] = (*getattr(settings, setting), *checked)
            else:
                changes[setting] = _combined(getattr(settings, setting), checked, owner)
    return settings._replace(**changes, sources=sources, profiles=profiles, warnings=tuple(warnings))


def _combined(current: Any, wish: Any, owner: str) -> Any:
    """The later file's wish; a stranger may narrow what the user set, and never widen it."""
    if owner != "stranger":
        return wish
    if isinstance(current, bool):
        return current and wish
    if isinstance(current, int):
        return min(current, wish)
    return current if current and isinstance(current, tuple) else wish


def _from_file(setting: str, values: tuple[Any, ...], path: str, place: Place) -> tuple[Any, ...]:
    """Paths of a configuration file are meant from the folder of that file."""
    if setting == "disabled":
        return tuple(expand(value, place, base=os.path.dirname(path)) if "/" in value else value for value in values)
    if setting not in ("custom_directories", "trusted_folders"):
        return values
    return tuple(expand(value, place, base=os.path.dirname(path)) for value in values)


def expand(path: str, place: Place, *, base: str) -> str:
    """An absolute path: `~` is the home folder, anything relative starts from the base."""
    if path == "~" or path.startswith("~/"):
        path = (place.home or "/nonexistent") + path[1:]
    return os.path.normpath(os.path.join(base, path))


def _flatten(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """The table as dotted snake_case keys; a user's profile stays one value."""
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
    fits = {
        _TEXT: isinstance(value, str),
        _FLAG: isinstance(value, bool),
        _COUNT: isinstance(value, int) and not isinstance(value, bool) and value > 0,
        _TEXTS: isinstance(value, list) and all(isinstance(item, str) for item in value),
    }
    if not fits[kind]:
        raise _wrong(file, key, f"must be {kind}")
    return tuple(value) if kind == _TEXTS else value


def _permission_rule(file: _File, key: str, entry: Any) -> PermissionRule:
    if not isinstance(entry, dict) or not isinstance(entry.get("tool"), str) or not entry["tool"]:
        raise _wrong(file, key, f'holds {entry!r}; a rule is {{ tool = "...", skill_name = "..." }}')
    if extra := sorted(set(entry) - {"tool", "skill_name"}):
        raise _wrong(file, key, f"holds a rule with {', '.join(extra)}; a rule has tool and skill_name only")
    name = entry.get("skill_name")
    # Dropping a name that cannot be understood would turn the rule into one for every skill.
    if name is not None and not (isinstance(name, str) and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)):
        raise _wrong(file, key, f"holds skill_name {name!r}; it must be a kebab-case name")
    return PermissionRule(entry["tool"], name)


# A user's own profiles ----------------------------------------------------------------------------

_CLOSED: Mapping[str, tuple[Any, ...]] = {
    "chain_order": ("nearest-first", "farthest-first"),
    "home_in_chain": ("user", "project", "skip"),
    "hidden": ("enter", "skip"),
    "below_skill": ("skip", "enter"),
    "root_file": ("report", "skill"),
    "user_links": ("never", "contained", "follow"),
    "other_links": ("never", "contained", "follow"),
    "yaml_mode": ("full", "simple"),
    "name_source": ("frontmatter", "directory"),
    "collision": ("first", "last", "keep-all"),
    "collision_key": ("exact", "folded"),
    "filter_order": ("before-collisions", "after-collisions"),
}


def _own_profile(file: _File, key: str, table: Any, known: Mapping[str, Profile]) -> Profile:
    if not isinstance(table, dict):
        raise _wrong(file, key, "must be a table")
    wishes = {_snake_case(field): value for field, value in table.items()}
    try:
        base = find_profile(wishes.pop("extends", "standard"), known)
    except ConfigurationError as error:
        raise _wrong(file, f"{key}.extends", str(error)) from None
    changes = {field: _profile_field(file, f"{key}.{field}", field, value, base) for field, value in wishes.items()}
    return base._replace(**{**changes, "name": key.removeprefix("profiles."), "evidence": file.path})


def _profile_field(file: _File, key: str, field: str, value: Any, base: Profile) -> Any:
    if field not in Profile._fields or field in ("name", "evidence"):
        raise _wrong(file, key, "is not a field of a profile; `skillshelf profile standard` lists them")
    if field in _CLOSED:
        if value not in _CLOSED[field]:
            raise _wrong(file, key, f"must be one of {', '.join(_CLOSED[field])}")
        return value
    if field == "rules":
        return severities(_rule_weights(file, key, value), base.rules)
    if field == "roots":
        return _root_rules(file, key, value)
    current = getattr(base, field)
    if field == "max_depth" and isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(current, tuple) and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(current, Mapping) and isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return value
    if isinstance(current, int) and isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if (current is None or isinstance(current, str)) and isinstance(value, str):
        return _pattern(file, key, value) if field == "name_pattern" else value
    raise _wrong(file, key, "has the wrong type; `skillshelf profile standard` shows an example")


def _pattern(file: _File, key: str, value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise _wrong(file, key, f"is no regular expression: {error}") from None
    return value


def _rule_weights(file: _File, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(file, key, "must be a table of rule ids")
    for rule, weight in value.items():
        if rule not in RULES:
            raise _wrong(file, f"{key}.{rule}", "is not a rule")
        if weight not in ("off", "info", "warn", "reject"):
            raise _wrong(file, f"{key}.{rule}", "must be off, info, warn or reject")
        if RULES[rule].fixed and weight != RULES[rule].severity:
            raise _wrong(file, f"{key}.{rule}", "cannot be changed: what it refuses is unsafe or unreadable")
    return value


def _root_rules(file: _File, key: str, value: Any) -> tuple[RootRule, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise _wrong(file, key, "must be a list of tables")
    rules = []
    for entry in value:
        if extra := sorted(set(entry) - set(RootRule._fields)):
            raise _wrong(file, key, f"has an entry with {', '.join(extra)}; known are {', '.join(RootRule._fields)}")
        if entry.get("kind") not in ("env", "project", "custom", "user"):
            raise _wrong(file, key, "needs kind = env, project, custom or user in each entry")
        if entry.get("base") not in ("env", "chain", "cwd", "repository", "custom", "home", "claude-plugins"):
            raise _wrong(file, key, "needs base = env, chain, cwd, repository, custom, home or claude-plugins")
        paths = entry.get("paths", [])
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise _wrong(file, key, "needs paths = a list of texts in each entry")
        rules.append(RootRule(**{**entry, "paths": tuple(paths)}))
    return tuple(rules)


# What is said -------------------------------------------------------------------------------------


def _wrong(file: _File, key: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{file.path}, line {_line_of(file, key)}: `{key}` {what}")


def _line_of(file: _File, key: str) -> int:
    """The line that most likely sets a key: the last part of its name at the start of a line."""
    last = key.rpartition(".")[2]
    for number, line in enumerate(file.text.splitlines(), 1):
        if re.match(rf"\s*[\w.\"'-]*?{re.escape(last)}[\"']?\s*=", _snake_case(line)):
            return number
        if re.match(rf"\s*\[+[\w.\"' -]*{re.escape(last)}[\"']?\s*\]", _snake_case(line)):
            return number
    return 1


def _did_you_mean(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, list(KEYS), 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _not_trusted(file: _File, key: str) -> Diagnostic:
    folder = os.path.dirname(file.path)
    message = f"`{key}` does not count until {folder} is in `trust.folders` of your own configuration file"
    return Diagnostic(file.path, "config-untrusted", message, _line_of(file, key))


def _user_only(file: _File, key: str) -> Diagnostic:
    message = f"`{key}` counts in the user's own file only"
    return Diagnostic(file.path, "config-untrusted", message, _line_of(file, key))
