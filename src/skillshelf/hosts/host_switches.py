"""Turn a skill off or on in a host's own settings, where that switch is known from a run of the host.

The file keeps its comments and its order. What is written is compared with what was meant, and the host is asked again
afterwards: if the skill is not off (or on) then, the file gets its old bytes back. Where the text that turns a skill on
again would not be the old one to the byte, `switches.json` in the state folder remembers the difference.
"""

import copy
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from skillshelf.catalog.host_settings import UnreadableSettings, home_files, parse_settings, read_settings
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import SettingForm, SettingRule
from skillshelf.core import files
from skillshelf.core.disk_writes import make_parents, remove, remove_empty, replace_file, why_not_replaced
from skillshelf.core.environment import Environment, user_state_folder
from skillshelf.core.limits import CONFIG_BYTES, RECORDS_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.state_file import StateFile
from skillshelf.core.validation import validate
from skillshelf.errors import SkillError
from skillshelf.hosts.explain import find, verdicts_of
from skillshelf.hosts.json_text import add_item, add_member, comments_in, remove_item, remove_member
from skillshelf.hosts.survey import SkillFile, Survey

__all__ = ["SwitchRecord", "SwitchResult", "switch_in_host"]


class SwitchResult(NamedTuple):
    """The result of a switch: the key and the file, or the reason why it was refused.

    `before` and `after` are the bytes of the file, where it was changed or would be.
    """

    host: str
    file: str = ""
    key: str = ""
    changed: bool = False
    detail: str = ""
    refused: str = ""
    before: bytes = b""
    after: bytes = b""


class _SwitchRefused(Exception):
    """The switch cannot be set."""


def switch_in_host(
    skill_file: SkillFile, host: str, survey: Survey, *, on: bool, by_path: bool = False, dry_run: bool = False
) -> SwitchResult:
    """Turn a skill on or off in a host; with `by_path` only this file, if the host can tell it from its namesakes."""
    rule = _rule_of(host)
    if rule is None:
        reason = f"{host} has no switch for one skill that is known from a run; see docs/hosts.md"
        return SwitchResult(host, refused=reason)
    (verdict,) = verdicts_of(skill_file, survey, [host])
    is_off = verdict.verdict == "disabled-by-config"
    if is_off is not on:
        if on and verdict.verdict == "unknown" and (problem := _why_unreadable(rule, host, survey.environment)):
            return SwitchResult(host, refused=f"it is not known whether it is off there: {problem}")
        return SwitchResult(host, detail=verdict.detail if is_off else "it is not turned off there")
    if not on and not verdict.visible:
        return SwitchResult(host, refused=f"{host} does not see it: {verdict.verdict}, {verdict.detail}")
    state = survey.state_about(host, skill_file)
    known = state.by_file.get(skill_file.real_path)
    change = _Change(rule, known.name if known else skill_file.folder, skill_file.real_path, by_path, on)
    try:
        return _switched(change, host, skill_file, survey.environment, dry_run=dry_run)
    except (_SwitchRefused, UnreadableSettings, ValueError, RecursionError, IndexError) as error:
        return SwitchResult(host, refused=str(error) or "its settings file has a form that is not known")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return SwitchResult(host, refused=f"its settings file cannot be written: {reason}")


def _rule_of(host: str) -> SettingRule | None:
    """Return the setting by which a host turns single skills off in a file of the user."""
    profile = HOSTS[host]
    rules = [rule for rule in profile.settings if rule.form in _FORMS and _FORMS[rule.form][0] == _language(rule)]
    in_home = [rule for rule in rules if any(file.startswith("home:") for file in rule.files)]
    return in_home[0] if in_home and profile.grade == "R" else None


def _why_unreadable(rule: SettingRule, host: str, environment: Environment) -> str | None:
    """Return why a settings file of a host cannot be read; None if all that exist can."""
    for path in home_files(rule, HOSTS[host], environment):
        try:
            if files.kind_at(path) is not None:
                read_settings(path, rule.syntax, environment)
        except (UnreadableSettings, ValueError, RecursionError) as error:
            return str(error) or f"{path} cannot be read"
    return None


def _language(rule: SettingRule) -> str:
    return "json" if rule.syntax.startswith("json") else rule.syntax


class _Change(NamedTuple):
    """One skill to be turned on or off by one setting."""

    rule: SettingRule
    name: str
    real_path: str
    by_path: bool
    on: bool


def _switched(
    change: _Change, host: str, skill_file: SkillFile, environment: Environment, *, dry_run: bool
) -> SwitchResult:
    paths = home_files(change.rule, HOSTS[host], environment)
    path = next((path for path in paths if files.kind_at(path) is not None), paths[0])
    was_missing = files.kind_at(path) is None
    stamp = files.stamp_at(files.real_path(path))
    data = read_settings(path, change.rule.syntax, environment)
    before = _bytes_at(path)
    edited = _edited(before.decode("utf-8"), data, change)
    memory = _SwitchMemory(path, change, environment)
    after = memory.restored(before, edited) if change.on else edited
    written = b"" if after is None else after.encode("utf-8")
    result = SwitchResult(host, path, change.rule.key, True, before=before, after=written)
    if dry_run:
        return result
    if not was_missing and (reason := why_not_replaced(files.real_path(path))) is not None:
        raise _SwitchRefused(f"{path} was not changed: {reason}")
    if files.stamp_at(files.real_path(path)) != stamp:
        raise _SwitchRefused(f"{path} changed meanwhile; run the command again")
    made = make_parents(os.path.dirname(path))
    if after is None:
        remove(path)
    else:
        replace_file(path, written, mode=0o600)
    survey, found = find(skill_file.real_path, environment, [host])
    (verdict,) = verdicts_of(found[0] if found else skill_file, survey, [host])
    if (verdict.verdict == "disabled-by-config") == change.on:
        if stamp is not None:
            replace_file(path, before)
        else:
            remove(path)
            remove_empty(os.path.dirname(path), len(made))
        raise _SwitchRefused(f"{path} has its old text again: {host} still says {verdict.verdict} ({verdict.detail})")
    if change.on:
        memory.forget(before, is_empty=memory.is_empty(edited))
        if after is None:
            remove_empty(os.path.dirname(path), memory.folders)
    else:
        memory.remember(None if was_missing else before.decode("utf-8"), edited, folders=len(made))
    return result


class SwitchRecord(NamedTuple):
    """How a settings file was before a skill was turned off in it.

    `after` is the digest of the file then. The text that turns the skill on again has `text` from `start` to `end` to
    be the old one; a file that was `missing` goes, with as many of the `folders` above it. One that was `empty` is
    restored whenever nothing is left in it.
    """

    file: str
    after: str
    start: int
    end: int
    text: str
    missing: bool = False
    empty: bool = False
    folders: int = 0


_MOST_RECORDS = 200
_LONGEST_TEXT = 4096


class _SwitchMemory:
    """The memory of one settings file, so that a skill that is turned on again leaves no trace in it."""

    def __init__(self, path: str, change: _Change, environment: Environment) -> None:
        self.path = path
        self.change = change
        self.folders = 0
        folder = user_state_folder(environment)
        limit, full = RECORDS_BYTES, "turn some skills on again"
        self._file = StateFile(f"{folder}/switches.json", 1, limit, "a list of switches", full) if folder else None

    def is_empty(self, text: str) -> bool:
        """Return whether a text says nothing at all."""
        comments = _toml_comments if self.change.rule.syntax == "toml" else comments_in
        return not comments(text) and (not text.strip() or parse_settings(text, self.change.rule.syntax) == {})

    def remember(self, before: str | None, after: str, *, folders: int) -> None:
        """Remember what the way back would not restore of the text before; None if there was no file."""
        values = parse_settings(after, self.change.rule.syntax)
        back, old = _edited(after, values, self.change._replace(on=True)), before or ""
        if self._file is None or (before is not None and back == old):
            return
        is_empty = self.is_empty(old)
        start = 0 if is_empty else _same_start(back, old)
        common = 0 if is_empty else _same_start(back[start:][::-1], old[start:][::-1])
        text = old[start : len(old) - common]
        digest = sha256(after.encode("utf-8")).hexdigest()
        record = SwitchRecord(self.path, digest, start, len(back) - common, text, before is None, is_empty, folders)
        if len(text) <= _LONGEST_TEXT:
            self._change(lambda records: [*records, record][-_MOST_RECORDS:])

    def restored(self, before: bytes, edited: str) -> str | None:
        """Return an edited text as it was before the skill was turned off; None if there was no file."""
        digest = sha256(before).hexdigest()
        known = [one for one in self._records() if one.file == self.path]
        exact = next((one for one in reversed(known) if one.after == digest), None)
        if exact is None and self.is_empty(edited):
            exact = next((one for one in known if one.empty), None)
        if exact is None:
            return edited
        if exact.missing and files.kind_at(self.path) == "file":
            self.folders = exact.folders
            return None
        return exact.text if exact.empty else edited[: exact.start] + exact.text + edited[exact.end :]

    def forget(self, before: bytes, *, is_empty: bool) -> None:
        """Forget what was just restored: all of a file in which nothing is left."""
        digest = sha256(before).hexdigest()

        def is_kept(one: SwitchRecord) -> bool:
            return one.file != self.path or not (is_empty or one.after == digest)

        if not all(map(is_kept, self._records())):
            self._change(lambda records: list(filter(is_kept, records)))

    def _records(self) -> list[SwitchRecord]:
        """Return all records; none if the file cannot be used: it only helps to restore what has no meaning."""
        with suppress(SkillError):
            return _switch_records((self._file.read() if self._file is not None else None) or {})
        return []

    def _change(self, change: Callable[[list[SwitchRecord]], list[SwitchRecord]]) -> None:
        if self._file is not None:
            with suppress(SkillError):
                self._file.change(
                    lambda found: {**found, "switches": [one._asdict() for one in change(_switch_records(found))]}
                )


def _switch_records(document: Mapping[str, Any]) -> list[SwitchRecord]:
    """Return the records in a document; those of another form do not count."""
    switches = document.get("switches")
    if validate({"switches": switches}, _Switches):
        return []
    return [_made(one) for one in switches or ()]


class _Switches(NamedTuple):
    """The content of the file of records."""

    switches: tuple[SwitchRecord, ...]


def _made(members: Mapping[str, Any]) -> SwitchRecord:
    return SwitchRecord(**members)


def _same_start(one: str, other: str) -> int:
    """Return the number of characters with which both texts begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, pair in pairs if pair[0] != pair[1]), min(len(one), len(other)))


def _bytes_at(path: str) -> bytes:
    try:
        return files.read_file(path, limit=CONFIG_BYTES, links="follow") or b""
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _edited(text: str, data: Any, change: _Change) -> str:
    """Return the new text of a settings file; raise if its values would not be those that are meant."""
    keys = change.rule.key.split(".")
    if isinstance(data, Mapping) and change.rule.key in data:
        keys = [change.rule.key]
    meant = copy.deepcopy(data)
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    has_returns = "\r\n" in text and text.count("\r\n") == text.count("\n")
    plain = text.removeprefix(mark).replace("\r\n", "\n") if has_returns else text.removeprefix(mark)
    edited = _FORMS[change.rule.form][1](plain, meant, keys, change)
    edited = mark + (edited.replace("\n", "\r\n") if has_returns else edited)
    if parse_settings(edited, change.rule.syntax) != meant:
        raise _SwitchRefused("its settings file has a form that is not known; nothing was written")
    comments = _toml_comments if change.rule.syntax == "toml" else comments_in
    if comments(edited) != comments(text):
        raise _SwitchRefused("a comment in its settings file would be lost; nothing was written")
    return edited


def _toml_comments(text: str) -> list[str]:
    """Return what may be a comment of each line, in order: all from its first number sign."""
    return [line[line.index("#") :].strip() for line in text.splitlines() if "#" in line]


def _parent(data: Any, keys: list[str], make: Any) -> Any:
    """Return the value at a path of keys, made if it is missing."""
    for number, key in enumerate(keys):
        if not isinstance(data, dict):
            raise _SwitchRefused(f"`{'.'.join(keys[:number])}` in its settings file is not a table")
        data = data.setdefault(key, make if number == len(keys) - 1 else {})
    if not isinstance(data, type(make)):
        raise _SwitchRefused(f"`{'.'.join(keys)}` in its settings file has another form")
    return data


def _prune(data: Any, keys: list[str]) -> None:
    """Remove what is empty at the end of a path of keys."""
    for count in range(len(keys), 0, -1):
        parent = data
        for key in keys[: count - 1]:
            parent = parent[key]
        if parent[keys[count - 1]]:
            return
        del parent[keys[count - 1]]


def _elsewhere(change: _Change) -> _SwitchRefused:
    return _SwitchRefused(f"`{change.rule.key}` in your own settings file does not turn it off; another file does")


# Forms of settings --------------------------------------------------------------------------------


def _names(text: str, data: Any, keys: list[str], change: _Change) -> str:
    """Change a list of names that are turned off."""
    listed = _parent(data, keys, [])
    if not change.on:
        listed.append(change.name)
        return add_item(text, keys, change.name)
    folded: Callable[[str], str] = str.lower if change.rule.form == "names" else str
    known = [folded(str(item)) for item in listed]
    if folded(change.name) not in known:
        raise _elsewhere(change)
    position = known.index(folded(change.name))
    del listed[position]
    text = remove_item(text, keys, position)
    _prune_as(text, data, keys, change)
    return text


def _states(text: str, data: Any, keys: list[str], change: _Change) -> str:
    """Change a table with a state for each name."""
    states = _parent(data, keys, {})
    if not change.on:
        if (state := states.get(change.name, "on")) not in ("on", "off"):
            # To turn it on again would not bring this back.
            raise _SwitchRefused(f"`{'.'.join(keys)}` has `{state}` for it, which would be lost; change it by hand")
        states[change.name] = "off"
        return add_member(text, keys, change.name, "off")
    if change.name not in states:
        raise _elsewhere(change)
    del states[change.name]
    text = remove_member(text, keys, change.name)
    _prune_as(text, data, keys, change)
    return text


def _prune_as(text: str, data: Any, keys: list[str], change: _Change) -> None:
    """Remove from the values what the edit removed from the text: containers that became empty."""
    if parse_settings(text, change.rule.syntax) != data:
        _prune(data, keys)


def _entries(text: str, data: Any, keys: list[str], change: _Change) -> str:
    """Change a list of tables with a name or a path, in TOML."""
    import tomlkit

    document = tomlkit.parse(text if text.endswith("\n") or not text else f"{text}\n")
    entries = _parent(data, keys, [])
    entry = {"path": change.real_path} if change.by_path else {"name": change.name}
    if change.on:
        return _without_entries(document, entries, data, keys, change)
    entries.append({**entry, "enabled": False})
    listed = _toml_list(document, keys)
    table = tomlkit.table() if isinstance(listed, tomlkit.items.AoT) else tomlkit.inline_table()
    table.update({**entry, "enabled": False})
    listed.append(table)
    return tomlkit.dumps(document)


def _toml_list(document: Any, keys: list[str]) -> Any:
    import tomlkit

    parent = document
    for key in keys[:-1]:
        if key not in parent:
            parent[key] = tomlkit.table(is_super_table=True)
        parent = parent[key]
    if keys[-1] not in parent:
        parent[keys[-1]] = tomlkit.aot()
    return parent[keys[-1]]


def _without_entries(document: Any, entries: list[Any], data: Any, keys: list[str], change: _Change) -> str:
    import tomlkit

    def is_meant(entry: Any) -> bool:
        if entry.get("enabled") is not False or ("name" in entry) == ("path" in entry):
            return False
        if "name" in entry:
            return bool(str(entry["name"]).strip() == change.name)
        return files.real_path(str(entry["path"])) == change.real_path

    listed = _toml_list(document, keys)
    meant = [n for n, entry in enumerate(entries) if is_meant(entry)]
    if not meant:
        raise _elsewhere(change)
    for position in reversed(meant):
        del entries[position]
        del listed[position]
    if not entries:
        _prune(data, keys)
        parent = document
        for key in keys[:-1]:
            parent = parent[key]
        del parent[keys[-1]]
        if len(keys) > 1 and keys[0] not in data:
            del document[keys[0]]
    text = tomlkit.dumps(document)
    # The blank line above a table that is gone.
    return text.rstrip("\n") + "\n" if text.endswith("\n\n") else text


_FORMS: Mapping[SettingForm, tuple[str, Callable[[str, Any, list[str], _Change], str]]] = {
    "names": ("json", _names),
    "exact-names": ("json", _names),
    "states": ("json", _states),
    "entries": ("toml", _entries),
}
"""Forms of settings that turn off single skills: the language that can be written, and the function that does it.

It changes a text, and in the same way the values that the text stands for.
"""
