"""A host's own settings files to what they say: the values under a key, and whether the host trusts a folder."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from skillshelf.config.profile import Profile, SettingRule, Syntax
from skillshelf.core import files
from skillshelf.core.environment import Place
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.values import Diagnostic

__all__ = ["HostTrust", "Setting", "SettingsPlace", "Unreadable", "host_trust", "settings_of"]


class SettingsPlace(NamedTuple):
    """What the files of a host's settings are looked for from: `chain` begins at the working directory."""

    place: Place
    chain: tuple[str, ...]


class Setting(NamedTuple):
    """What one file says under a key; `file` is its path as people are shown it."""

    file: str
    value: Any


class Unreadable(Exception):
    """A settings file that is there and says nothing that can be understood."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} cannot be read: {why}")
        self.path = path


def settings_of(rule: SettingRule, where: SettingsPlace, *, trusted: bool) -> list[Setting]:
    """What the files of a rule say, the weakest first; a key may be written with dots or as nested tables."""
    found = []
    for path in _paths(rule, where, trusted=trusted):
        for value in _under(rule.key.split("."), _read(path, rule.syntax, where.place)):
            found.append(Setting(_shown(path, where.place), value))
    return found


# Files --------------------------------------------------------------------------------------------


def _paths(rule: SettingRule, where: SettingsPlace, *, trusted: bool) -> Iterator[str]:
    """The files of a rule that there may be."""
    bases: Mapping[str, tuple[str, ...]] = {
        "home": (where.place.home,) if where.place.home else (),
        "cwd": (where.place.cwd,),
        "chain": where.chain[::-1],
        "repository": where.chain[-1:],
    }
    moved = where.place.env.get(rule.moved_by, "") if rule.moved_by else ""
    for file in rule.files:
        base, _, path = file.partition(":")
        if base != "home" and rule.project_files == "trusted" and not trusted:
            continue
        if base == "home" and os.path.isabs(moved):
            yield os.path.join(moved, path.partition("/")[2])
        else:
            yield from (os.path.join(folder, path) for folder in bases[base])


def _read(path: str, syntax: Syntax, place: Place) -> Any:
    """What a file holds; an empty table where there is none."""
    try:
        data = files.read_file(path, limit=CONFIG_BYTES, links="follow")
        if data is None:
            raise Unreadable(_shown(path, place), f"no file of at most {CONFIG_BYTES:,} bytes")
        # Most hosts pass over a byte order mark here.
        return _SYNTAXES[syntax](data.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Unreadable(_shown(path, place), (error.strerror or str(error)).lower()) from None
    except (ValueError, RecursionError) as error:
        said = str(error).split("\n")[0] if isinstance(error, ValueError) else "too deep"
        raise Unreadable(_shown(path, place), said) from None


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


# A string or a comment that nothing closes ends with the text, so that nothing is gone through twice.
_STRING = r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


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
    """The values at a path of keys, of which `*` means every one; nothing where there is none."""
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


def _shown(path: str, place: Place) -> str:
    if path.startswith(f"{place.cwd}/"):
        return path[len(place.cwd) + 1 :]
    return "~" + path[len(place.home) :] if place.home and path.startswith(f"{place.home}/") else path


# Trust --------------------------------------------------------------------------------------------


class HostTrust(NamedTuple):
    """Whether a host trusts the working directory, and what kept anybody from knowing it."""

    trusted: bool
    problem: Diagnostic | None = None


def host_trust(profile: Profile, where: SettingsPlace) -> HostTrust:
    """What a host's variables, its switch and its own record, in this order, say about the working directory."""
    if any(_is_set(entry, where.place) for entry in profile.distrust_env):
        return HostTrust(trusted=False)
    if any(_is_set(entry, where.place) for entry in profile.trust_env):
        return HostTrust(trusted=True)
    try:
        switch = profile.trust_switch
        said = [setting.value for setting in settings_of(switch, where, trusted=False)] if switch else []
        return HostTrust(trusted=said[-1:] == [False] or _is_recorded(profile, where.place))
    except Unreadable as error:
        return HostTrust(trusted=False, problem=Diagnostic(error.path, "settings-unreadable", str(error)))


def _is_set(entry: str, place: Place) -> bool:
    """Whether a variable has the value that a row like `NAME=true` names."""
    name, _, value = entry.partition("=")
    return place.env.get(name) == value


def _is_recorded(profile: Profile, place: Place) -> bool:
    """Whether the host's own record trusts the working directory: the longest path in it that is about it decides."""
    path = place.env.get(profile.trust_file_env, "") if profile.trust_file_env else ""
    if not path and (place.home is None or profile.trust_file is None):
        return False
    path = path or os.path.join(place.home or "", profile.trust_file or "")
    record = _read(path, profile.trust_syntax, place)
    if not isinstance(record, Mapping):
        raise Unreadable(_shown(path, place), "it is no table of folders")
    rules = []
    for folder, value in record.items():
        level = profile.trust_levels.get(value if isinstance(value, str) else str(value).lower())
        if level is None:
            raise Unreadable(_shown(path, place), f"{value!r} for {folder} is no level of trust")
        if level != "none" and files.is_inside(place.cwd, _meant(folder, level, profile)):
            rules.append((len(folder), level))
    return bool(rules) and max(rules, key=lambda rule: rule[0])[1] != "refused"


def _meant(folder: str, level: str, profile: Profile) -> str:
    """The folder that a record is about."""
    if level == "parent":
        folder = os.path.dirname(folder)
    return files.real_path(folder) if profile.trust_paths == "real" else folder
