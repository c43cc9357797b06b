"""Settings of a host to what they do to one skill: off, kept from the model, or nobody knows."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from skillshelf.catalog.hostsettings import Setting, SettingsPlace, Unreadable, settings_of
from skillshelf.config.profile import Profile, SettingForm, SettingRule
from skillshelf.core import files
from skillshelf.core.values import VerdictName

__all__ = ["Off", "Switch", "switched_off", "switches_of"]


class Off(NamedTuple):
    """What a setting does to a skill, where it stands, and what would undo it."""

    verdict: VerdictName
    detail: str
    fix: str = ""


class Switch(NamedTuple):
    """A setting that some file has, or the reason why nobody knows whether one has."""

    rule: SettingRule
    said: tuple[Setting, ...]
    problem: str = ""


def switches_of(profile: Profile, where: SettingsPlace, *, trusted: bool) -> tuple[Switch, ...]:
    """The settings of a host that its files have."""
    found = []
    for rule in profile.settings:
        try:
            said = settings_of(rule, where, trusted=trusted)
        except Unreadable as error:
            found.append(Switch(rule, (), str(error)))
            continue
        if said:
            found.append(Switch(rule, tuple(said)))
    return tuple(found)


def switched_off(name: str, real_path: str, switches: Sequence[Switch]) -> Off | None:
    """What the settings do to the skill of that name in that file: what is certain comes first."""
    found = [off for switch in switches if (off := _effect(name, real_path, switch))]
    return min(found, key=lambda off: off.verdict == "unknown", default=None)


def _effect(name: str, real_path: str, switch: Switch) -> Off | None:
    if switch.problem:
        return Off("unknown", f"a file of its settings: {switch.problem}")
    return FORMS[switch.rule.form](name, real_path, switch)


def _doubt(setting: Setting, rule: SettingRule) -> Off:
    return Off("unknown", f"a setting of the host names it: {rule.key} in {setting.file}")


# Forms --------------------------------------------------------------------------------------------


def _names(name: str, real_path: str, switch: Switch) -> Off | None:
    """Lists of names that are off, in whatever case; all files count."""
    key = switch.rule.key
    for file, value in switch.said:
        if not isinstance(value, list):
            return Off("unknown", f"{key} in {file} is no list")
        if name.lower() in [str(item).lower() for item in value]:
            return Off("disabled-by-config", f"{key} in {file} names it", f"take {name!r} out of {key} in {file}")
    return None


def _all(name: str, real_path: str, switch: Switch) -> Off | None:
    """A switch of all skills; the strongest file decides."""
    key, (file, value) = switch.rule.key, switch.said[-1]
    if value is True:
        return None
    if value is not False:
        return Off("unknown", f"{key} in {file} is neither true nor false")
    return Off("disabled-by-config", f"{key} is off in {file}", f"set {key} to true in {file}")


def _entries(name: str, real_path: str, switch: Switch) -> Off | None:
    """A list of tables with a name or a path; the last one that means the skill decides."""
    key, last = switch.rule.key, None
    for setting in switch.said:
        entries = setting.value if isinstance(setting.value, list) else [None]
        for entry in entries:
            if not isinstance(entry, Mapping) or not isinstance(entry.get("enabled"), bool):
                return Off("unknown", f"{key} in {setting.file} has an entry that is not understood")
            if _is_meant(entry, name, real_path):
                last = (setting.file, entry["enabled"])
    if last is None or last[1]:
        return None
    return Off("disabled-by-config", f"{key} in {last[0]} turns it off", f"set enabled to true for it in {last[0]}")


def _is_meant(entry: Mapping[str, Any], name: str, real_path: str) -> bool:
    """Whether an entry means a skill: one with both a name and a path means none."""
    given, path = entry.get("name"), entry.get("path")
    if (given is None) == (path is None):
        return False
    return str(given).strip() == name if path is None else files.real_path(str(path)) == real_path


def _states(name: str, real_path: str, switch: Switch) -> Off | None:
    """A state for each name; the strongest file that has the name decides."""
    key = switch.rule.key
    for file, value in reversed(switch.said):
        if not isinstance(value, Mapping):
            return Off("unknown", f"{key} in {file} is no table")
        if name in value:
            effect = _STATES.get(str(value[name]))
            where = f"{key} in {file} says {value[name]!r}"
            if effect is None:
                return Off("unknown", f"{where}, which nobody has tried")
            said = f"{where}{effect[1]}"
            return Off(effect[0], said, f"take {name!r} out of {key} in {file}") if effect[0] != "visible" else None
    return None


_STATES: Mapping[str, tuple[VerdictName, str]] = {
    "on": ("visible", ""),
    "off": ("disabled-by-config", ""),
    "user-invocable-only": ("hidden-from-model", "; people can still call it"),
    "name-only": ("description-cut", "; its model is told the name alone"),
}


def _patterns(name: str, real_path: str, switch: Switch) -> Off | None:
    """Patterns that allow, ask or deny; in one file the last that fits decides, and files must agree."""
    key, found = switch.rule.key, {}
    for file, value in switch.said:
        rules = {"*": value} if isinstance(value, str) else value
        if not isinstance(rules, Mapping):
            return Off("unknown", f"{key} in {file} is no table of patterns")
        if fitting := [action for pattern, action in rules.items() if _fits(name, pattern)]:
            found[file] = fitting[-1]
    denying = [file for file, action in found.items() if action == "deny"]
    if not denying:
        return None
    if len(denying) < len(found):
        return Off("unknown", f"{key} denies it in {denying[0]}, and another file does not")
    return Off("disabled-by-config", f"{key} in {denying[0]} denies it", f"allow {name!r} in {key} of {denying[0]}")


def _fits(name: str, pattern: str) -> bool:
    """Whether a pattern in which only `*` and `?` are special fits the whole name."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _mentions(name: str, real_path: str, switch: Switch) -> Off | None:
    """Words that mean the skill, to an effect that nobody has established."""
    for setting in switch.said:
        for word in _words_in(setting.value):
            match = re.fullmatch(switch.rule.mention, word, re.DOTALL)
            if match and _may_mean(match[1] or "*", name):
                return _doubt(setting, switch.rule)
    return None


def _words_in(value: Any) -> Iterator[str]:
    """The texts of a list, or of a table its keys; a text by itself means everything."""
    if isinstance(value, list | Mapping):
        yield from (str(item) for item in value)
    elif isinstance(value, str):
        yield "*"


def _may_mean(pattern: str, name: str) -> bool:
    """Whether a pattern, which may be one of paths, can mean a name."""
    if "/" in pattern:
        return any(mark in pattern for mark in "*?[{") or name in pattern.split("/")
    return _fits(name, pattern)


def _whole(name: str, real_path: str, switch: Switch) -> Off | None:
    """A setting about all skills that is off, to an effect that nobody has established."""
    setting = switch.said[-1]
    value = setting.value.get("*") if isinstance(setting.value, Mapping) else setting.value
    return _doubt(setting, switch.rule) if value in (False, "deny") else None


def _any(name: str, real_path: str, switch: Switch) -> Off | None:
    """Settings about skills, whatever they are, of which nobody has established what they do together."""
    said = [setting for setting in switch.said if setting.value]
    return Off("unknown", f"the host has settings about skills: {switch.rule.key} in {said[0].file}") if said else None


FORMS: Mapping[SettingForm, Callable[[str, str, Switch], Off | None]] = {
    "names": _names,
    "all": _all,
    "entries": _entries,
    "states": _states,
    "patterns": _patterns,
    "mentions": _mentions,
    "whole": _whole,
    "any": _any,
}
