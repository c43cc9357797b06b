"""Read a host's own settings files: is a folder trusted, is a skill turned off?"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from skillshelf.config.profile import Profile, SettingForm, SettingRule, Syntax
from skillshelf.core import files
from skillshelf.core.console import PathDisplay
from skillshelf.core.environment import Environment, below_home, expand, main_repository
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Diagnostic, VerdictName

__all__ = [
    "HostTrust",
    "Setting",
    "SettingEffect",
    "SettingInFiles",
    "SettingsContext",
    "UnreadableSettings",
    "home_files",
    "host_trust",
    "named_folder",
    "parse_settings",
    "read_settings",
    "setting_effect",
    "settings_of",
    "switches_of",
]


class SettingsContext(NamedTuple):
    """The folders from which settings files are located; `chain` starts at the working directory."""

    environment: Environment
    chain: tuple[str, ...]


class Setting(NamedTuple):
    """The value of a key in one file; `file` is its path in the short form for people."""

    file: str
    value: Any


class UnreadableSettings(Exception):
    """A settings file that exists but cannot be read or parsed."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} cannot be read: {why}")
        self.path = path


def settings_of(rule: SettingRule, where: SettingsContext, moved: Mapping[str, str], *, trusted: bool) -> list[Setting]:
    """Return the values of a rule's key in all its files, the weakest first; dots in a key may be nested tables.

    `moved` says where files of the home folder are instead.
    """
    found = []
    for path in _paths(rule, where, moved, trusted=trusted):
        for value in _under(rule.key.split("."), read_settings(path, rule.syntax, where.environment)):
            found.append(Setting(_shown(path, where.environment), value))
    return found


# Files --------------------------------------------------------------------------------------------


def _paths(rule: SettingRule, where: SettingsContext, moved: Mapping[str, str], *, trusted: bool) -> Iterator[str]:
    """Yield the paths of a rule's files, which may not exist."""
    bases: Mapping[str, tuple[str, ...]] = {
        "cwd": (where.environment.cwd,),
        "chain": where.chain[::-1],
        "repository": where.chain[-1:],
    }
    for file in rule.files:
        base, _, path = file.partition(":")
        if base == "home":
            if where.environment.home:
                yield below_home(path, moved, where.environment)
        elif trusted or rule.project_files != "trusted":
            yield from (os.path.join(folder, path) for folder in bases[base])


def home_files(rule: SettingRule, profile: Profile, environment: Environment) -> list[str]:
    """Return the paths of a rule's files in the home folder, which may not exist."""
    own = rule._replace(files=tuple(file for file in rule.files if file.startswith("home:")))
    return list(_paths(own, SettingsContext(environment, ()), profile.moved, trusted=False))


def parse_settings(text: str, syntax: Syntax) -> Any:
    """Parse the text of a settings file; raise a ValueError if it is not valid."""
    return _SYNTAXES[syntax](text.removeprefix("\ufeff"))


def read_settings(path: str, syntax: Syntax, environment: Environment) -> Any:
    """Parse a file; a missing one is an empty table. Raise UnreadableSettings if it cannot be used."""
    try:
        data = files.read_file(path, limit=CONFIG_BYTES, links="follow")
        if data is None:
            raise UnreadableSettings(
                _shown(path, environment), f"it is not a regular file of at most {CONFIG_BYTES:,} bytes"
            )
        # Most hosts accept a byte order mark here.
        return _SYNTAXES[syntax](data.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UnreadableSettings(_shown(path, environment), (error.strerror or str(error)).lower()) from None
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0] if isinstance(error, ValueError) else "nested too deeply"
        raise UnreadableSettings(_shown(path, environment), reason) from None


def _json(text: str) -> Any:
    import json

    return json.loads(text) if text.strip() else {}


def _toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    from skillshelf.catalog.frontmatter import YamlProblem, load_yaml

    try:
        return load_yaml(text)
    except YamlProblem as problem:
        raise ValueError(problem.message) from None


# An unclosed string or comment ends with the text, so that no input is scanned twice.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_COMMENT = lazy_pattern(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = lazy_pattern(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match[1] or " ", text)


_SYNTAXES: Mapping[Syntax, Callable[[str], Any]] = {
    "json": _json,
    "json-comments": lambda text: _json(_without_comments(text)),
    "jsonc": lambda text: _json(_LAST_COMMA.sub(lambda match: match[1] or "", _without_comments(text))),
    "toml": _toml,
    "yaml": _yaml,
}


def _under(keys: list[str], value: Any) -> Iterator[Any]:
    """Yield the values at a path of keys, in which `*` matches every key."""
    if not keys:
        yield value
    elif isinstance(value, Mapping):
        if (whole := ".".join(keys)) in value:
            yield value[whole]
        elif keys[0] == "*":
            for item in value.values():
                yield from _under(keys[1:], item)
        elif keys[0] in value:
            yield from _under(keys[1:], value[keys[0]])


def _shown(path: str, environment: Environment) -> str:
    return PathDisplay(environment.cwd, environment.home).short(path)


# Trust --------------------------------------------------------------------------------------------


class HostTrust(NamedTuple):
    """The trust of a host in the working directory, and the problem if it is not known."""

    trusted: bool
    problem: Diagnostic | None = None


def host_trust(profile: Profile, where: SettingsContext) -> HostTrust:
    """Decide if a host trusts the working directory: its variables, its switch and its own record, in this order."""
    if any(_is_set(entry, where.environment) for entry in profile.distrust_env):
        return HostTrust(trusted=False)
    if any(_is_set(entry, where.environment) for entry in profile.trust_env):
        return HostTrust(trusted=True)
    try:
        switch = profile.trust_switch
        values = (
            [setting.value for setting in settings_of(switch, where, profile.moved, trusted=False)] if switch else []
        )
        return HostTrust(trusted=values[-1:] == [False] or _is_recorded(profile, where))
    except UnreadableSettings as error:
        return HostTrust(trusted=False, problem=Diagnostic(error.path, "settings-unreadable", str(error)))


def _is_set(entry: str, environment: Environment) -> bool:
    """Return true if a variable has the value in a row such as `NAME=true`."""
    name, _, value = entry.partition("=")
    return environment.env.get(name) == value


def _is_recorded(profile: Profile, where: SettingsContext) -> bool:
    """Return true if the host's own record trusts the project, or its longest path above the working directory."""
    environment = where.environment
    path = environment.env.get(profile.trust_file_env, "") if profile.trust_file_env else ""
    if not path and (environment.home is None or profile.trust_file is None):
        return False
    path = path or below_home(profile.trust_file or "", profile.moved, environment)
    record = read_settings(path, profile.trust_syntax, environment)
    if not isinstance(record, Mapping):
        raise UnreadableSettings(_shown(path, environment), "it is not a table of folders")
    rules, project = [], main_repository(where.chain[-1])
    for folder, value in _recorded(record, profile.trust_key):
        level = profile.trust_levels.get(value if isinstance(value, str) else str(value).lower())
        if level is None:
            raise UnreadableSettings(_shown(path, environment), f"{value!r} for {folder} is not a known trust level")
        top = os.path.dirname(folder) if level == "parent" else folder
        top = files.real_path(top) if profile.trust_paths == "real" else top
        is_meant = top == project if profile.trust_at == "project" else files.is_inside(environment.cwd, top)
        if level != "none" and is_meant:
            rules.append((len(folder), level))
    return bool(rules) and max(rules, key=lambda rule: rule[0])[1] != "refused"


def _recorded(record: Mapping[str, Any], key: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the folders of a record with their values; a key such as `folders.*.trusted` says where they are."""
    if key is None:
        yield from record.items()
        return
    table, _, field = key.partition(".*.")
    folders = record.get(table, {})
    for folder, entry in folders.items() if isinstance(folders, Mapping) else ():
        yield folder, entry.get(field) if isinstance(entry, Mapping) else entry


class SettingEffect(NamedTuple):
    """The effect of a setting on a skill, the file that has it, and the step that undoes it."""

    verdict: VerdictName
    detail: str
    fix: str = ""


class SettingInFiles(NamedTuple):
    """A setting that some file has, or the reason why its files could not be read."""

    rule: SettingRule
    values: tuple[Setting, ...]
    problem: str = ""


def switches_of(profile: Profile, where: SettingsContext, *, trusted: bool) -> tuple[SettingInFiles, ...]:
    """Return the settings of a host that its files have."""
    found = []
    for rule in profile.settings:
        try:
            values = settings_of(rule, where, profile.moved, trusted=trusted)
        except UnreadableSettings as error:
            found.append(SettingInFiles(rule, (), str(error)))
            continue
        if values:
            found.append(SettingInFiles(rule, tuple(values)))
    return tuple(found)


def setting_effect(name: str, real_path: str, switches: Sequence[SettingInFiles]) -> SettingEffect | None:
    """Return the effect of the settings on a skill, or None; a certain effect comes before an unknown one."""
    found = []
    for switch in switches:
        if switch.problem:
            found.append(SettingEffect("unknown", f"its settings file {switch.problem}"))
        elif (effect := FORMS[switch.rule.form](name, real_path, switch)) is not None:
            found.append(effect)
    return min(found, key=lambda effect: effect.verdict == "unknown", default=None)


def _doubt(setting: Setting, rule: SettingRule) -> SettingEffect:
    if rule.known:
        return SettingEffect("visible", f"{rule.known} ({rule.key} in {setting.file})")
    return SettingEffect("unknown", f"a setting of the host mentions it: {rule.key} in {setting.file}")


# Forms --------------------------------------------------------------------------------------------


def _names(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Apply lists of disabled names, in any case; all files count."""
    key = switch.rule.key
    for file, value in switch.values:
        if not isinstance(value, list):
            return SettingEffect("unknown", f"{key} in {file} is not a list")
        if name.lower() in [str(item).lower() for item in value]:
            return SettingEffect(
                "disabled-by-config", f"{key} in {file} lists it", f"remove {name!r} from {key} in {file}"
            )
    return None


def _exact_names(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Apply lists of disabled names, in the same case; all files count."""
    kept = [
        Setting(file, [one for one in value if one == name]) for file, value in switch.values if type(value) is list
    ]
    others = [setting for setting in switch.values if type(setting.value) is not list]
    return _names(name, real_path, switch._replace(values=(*kept, *others)))


def _all(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Apply a switch for all skills; the strongest file decides."""
    key, (file, value) = switch.rule.key, switch.values[-1]
    if value is True:
        return None
    if value is not False:
        return SettingEffect("unknown", f"{key} in {file} is neither true nor false")
    return SettingEffect("disabled-by-config", f"{key} is off in {file}", f"set {key} to true in {file}")


def _entries(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Apply a list of tables with a name or a path; the last one that matches the skill decides."""
    key, last = switch.rule.key, None
    for setting in switch.values:
        entries = setting.value if isinstance(setting.value, list) else [None]
        for entry in entries:
            if not isinstance(entry, Mapping) or not isinstance(entry.get("enabled"), bool):
                return SettingEffect("unknown", f"{key} in {setting.file} has an entry of an unknown form")
            if _matches(entry, name, real_path):
                last = (setting.file, entry["enabled"])
    if last is None or last[1]:
        return None
    return SettingEffect(
        "disabled-by-config", f"{key} in {last[0]} turns it off", f"set enabled to true for it in {last[0]}"
    )


def _matches(entry: Mapping[str, Any], name: str, real_path: str) -> bool:
    """Return true if an entry matches a skill; one with both a name and a path matches none."""
    given, path = entry.get("name"), entry.get("path")
    if (given is None) == (path is None):
        return False
    return str(given).strip() == name if path is None else files.real_path(str(path)) == real_path


def _states(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Apply a state for each name; the strongest file that has the name decides."""
    key = switch.rule.key
    for file, value in reversed(switch.values):
        if not isinstance(value, Mapping):
            return SettingEffect("unknown", f"{key} in {file} is not a table")
        if name in value:
            effect = _STATES.get(str(value[name]))
            where = f"{key} in {file} says {value[name]!r}"
            if effect is None:
                return SettingEffect("unknown", f"{where}, which was not tested")
            if effect[0] == "visible":
                return None
            return SettingEffect(effect[0], f"{where}{effect[1]}", f"remove {name!r} from {key} in {file}")
    return None


_STATES: Mapping[str, tuple[VerdictName, str]] = {
    "on": ("visible", ""),
    "off": ("disabled-by-config", ""),
    "user-invocable-only": ("hidden-from-model", "; users can still invoke it"),
    "name-only": ("description-cut", "; the model sees only the name"),
}


def _patterns(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Apply patterns that allow, ask or deny; in one file the last match decides, and files must agree."""
    key, found = switch.rule.key, {}
    for file, value in switch.values:
        rules = {"*": value} if isinstance(value, str) else value
        if not isinstance(rules, Mapping):
            return SettingEffect("unknown", f"{key} in {file} is not a table of patterns")
        if fitting := [action for pattern, action in rules.items() if _fits(name, pattern)]:
            found[file] = fitting[-1]
    denying = [file for file, action in found.items() if action == "deny"]
    if not denying:
        return None
    if len(denying) < len(found):
        return SettingEffect("unknown", f"{key} denies it in {denying[0]}, but another file does not")
    return SettingEffect(
        "disabled-by-config", f"{key} in {denying[0]} denies it", f"allow {name!r} in {key} of {denying[0]}"
    )


def _fits(name: str, pattern: str) -> bool:
    """Return true if a pattern in which only `*` and `?` are special matches the whole name."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _mentions(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Return `unknown` if a word may mean the skill: the effect was not tested."""
    for setting in switch.values:
        for word in _words_in(setting.value):
            match = re.fullmatch(switch.rule.mention, word, re.DOTALL)
            if match and _may_mean(match[1] or "*", name):
                return _doubt(setting, switch.rule)
    return None


def _words_in(value: Any) -> Iterator[str]:
    """Yield the strings of a list or the keys of a table; a single string means everything."""
    if isinstance(value, list | Mapping):
        yield from (str(item) for item in value)
    elif isinstance(value, str):
        yield "*"


def _may_mean(pattern: str, name: str) -> bool:
    """Return true if a pattern, which may be one of paths, can match a name."""
    if "/" in pattern:
        return any(mark in pattern for mark in "*?[{") or name in pattern.split("/")
    return _fits(name, pattern)


def _folders(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Return None: a setting that names more folders leaves out nothing; `named_folder` says what it adds."""
    return None


def named_folder(path: str, switches: Sequence[SettingInFiles], environment: Environment) -> str:
    """Return the setting of a host that names a folder which contains a path; empty if none does."""
    for switch in switches:
        for setting in switch.values if switch.rule.form == "folders" else ():
            words = (word for word in _words_in(setting.value) if word[:1] not in ("!", "-", "*"))
            folders = (expand(word.lstrip("+"), environment, base=environment.cwd) for word in words)
            if any("\0" not in folder and files.is_inside(path, folder.partition("*")[0]) for folder in folders):
                return f"{switch.rule.key} in {setting.file}"
    return ""


def _whole(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Return `unknown` if a setting about all skills is off: the effect was not tested."""
    setting = switch.values[-1]
    value = setting.value.get("*") if isinstance(setting.value, Mapping) else setting.value
    return _doubt(setting, switch.rule) if value in (False, "deny") else None


def _any(name: str, real_path: str, switch: SettingInFiles) -> SettingEffect | None:
    """Return `unknown` if there is any setting about skills: their combined effect was not tested."""
    for setting in switch.values:
        if setting.value:
            return SettingEffect("unknown", f"the host has settings about skills: {switch.rule.key} in {setting.file}")
    return None


FORMS: Mapping[SettingForm, Callable[[str, str, SettingInFiles], SettingEffect | None]] = {
    "names": _names,
    "exact-names": _exact_names,
    "all": _all,
    "entries": _entries,
    "states": _states,
    "patterns": _patterns,
    "mentions": _mentions,
    "folders": _folders,
    "whole": _whole,
    "any": _any,
}
