"""Read the files of the system policy: nobody but root can have written them, and every key is understood.

A file that cannot be used is never left out: it has a problem, and no model is served.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from skillshelf.config.hosts import find_host
from skillshelf.config.permission_rules import InvalidRule, PermissionRule, parse_rule
from skillshelf.config.system_policy import PolicyFile, SystemPolicy, policy_of
from skillshelf.core import files
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, is_name
from skillshelf.errors import ConfigurationError

__all__ = ["POLICY_KEYS", "POLICY_VERSION", "PolicyKey", "read_policy"]

POLICY_VERSION = 1
"""The version of a policy file; a file without `version` is of the first."""


def read_policy(stamps: tuple[tuple[str, tuple[int, ...] | None], ...]) -> SystemPolicy:
    """Return the policy in all files that are there; one that was named by the variable has to be."""
    found = [_read(path) for number, (path, state) in enumerate(stamps) if state is not None or number > 0]
    return policy_of(found, stamps)


def _read(path: str) -> PolicyFile:
    try:
        return PolicyFile(path, **_parsed(files.read_of_root(path, limit=CONFIG_BYTES)))
    except files.NotOfRoot as error:
        return PolicyFile(path, problem=str(error).removeprefix(f"{path} "))
    except OSError as error:
        return PolicyFile(path, problem=f"cannot be read: {(error.strerror or str(error)).lower()}")
    except _InvalidPolicy as error:
        return PolicyFile(path, problem=str(error))
    except ValueError as error:
        # A file that is no text, a number of too many digits, a path with a NUL character.
        return PolicyFile(path, problem=f"not valid TOML: {error}")
    except RecursionError:
        return PolicyFile(path, problem="not valid TOML: nested too deeply")


# Keys ---------------------------------------------------------------------------------------------


class _InvalidPolicy(Exception):
    """The reason why a policy file cannot be used, with line and key."""


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidRule("must be true or false")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise InvalidRule("must be a list of texts")
    if any("\0" in item for item in value):
        raise InvalidRule("must not hold a NUL character")
    return tuple(dict.fromkeys(value))


def _skills(value: Any) -> tuple[str, ...]:
    """Return names, absolute paths and trees of skills."""
    for entry in _texts(value):
        if entry.strip().lower().startswith("sha256:"):
            parse_rule({"tool": "skill_load", "tree": entry})
        elif entry.startswith("/") and "*" in entry:
            raise InvalidRule(f"holds {entry!r}; a path has no patterns, it means everything below it")
        elif not (entry.startswith("/") or is_name(entry)):
            raise InvalidRule(f"holds {entry!r}; a skill is a name, an absolute path, or `sha256:` and 64 digits")
    return tuple(_folder_of(entry) for entry in _texts(value))


def _folders(value: Any) -> tuple[str, ...]:
    """Return the real paths of folders."""
    if wrong := [folder for folder in _texts(value) if not folder.startswith("/")]:
        raise InvalidRule(f"holds {wrong[0]!r}; a folder is an absolute path")
    return tuple(files.real_path(folder) for folder in _texts(value))


def _hosts(value: Any) -> tuple[str, ...]:
    try:
        return tuple(find_host(name).name for name in _texts(value))
    except ConfigurationError as error:
        raise InvalidRule(f"names an {error}") from None


def _deny(value: Any) -> tuple[PermissionRule, ...]:
    if not isinstance(value, list):
        raise InvalidRule("must be a list of rules")
    rules = tuple(parse_rule(entry) for entry in value)
    if wrong := [rule.path for rule in rules if rule.path is not None and not rule.path.startswith("/")]:
        raise InvalidRule(f"holds path {wrong[0]!r}; here it must be absolute")
    if wrong := [rule.path for rule in rules if rule.path is not None and "*" in rule.path]:
        raise InvalidRule(f"holds path {wrong[0]!r}; a path has no patterns, it means everything below it")
    return tuple(rule._replace(path=_folder_of(rule.path)) if rule.path else rule for rule in rules)


def _folder_of(path: str) -> str:
    """Return the folder that a path of a skill means."""
    return path.removesuffix("/SKILL.md").rstrip("/") or "/"


class PolicyKey(NamedTuple):
    """A key of a policy file: its member, what reads its value, and both in words."""

    member: str
    read: Callable[[Any], Any]
    value: str
    effect: str


_SKILLS = "names, absolute paths, or trees (`sha256:…`, see `skillshelf digest`)"

POLICY_KEYS: Mapping[str, PolicyKey] = {
    "permissions.deny": PolicyKey(
        "deny", _deny, "rules as in your own `permissions.deny`", "nobody's rule and nobody's answer allows these calls"
    ),
    "skills.required": PolicyKey(
        "required", _skills, _SKILLS, "no model is served where one of them is missing or hidden; nobody can disable it"
    ),
    "skills.forbidden": PolicyKey(
        "forbidden", _skills, _SKILLS, "not searched, loaded, read, run or linked, for a model or for a person"
    ),
    "sources.allow": PolicyKey("sources_allowed", _texts, "patterns", "nothing is installed from any other source"),
    "sources.deny": PolicyKey("sources_denied", _texts, "patterns", "nothing is installed from these sources"),
    "hosts.allow": PolicyKey(
        "hosts_allowed",
        _hosts,
        "names of hosts",
        "`link`, `sync`, `new --for`, `--in` and `--profile host:` reach no other",
    ),
    "run.allow": PolicyKey(
        "run_allowed", _flag, "`true` or `false`", "`false`: no script of a skill runs, sandbox or not"
    ),
    "trust.folders_below": PolicyKey(
        "folders_below",
        _folders,
        "absolute paths of folders",
        "only what lies below them, by its real path, can be trusted",
    ),
    "lock.required": PolicyKey(
        "lock_required", _flag, "`true` or `false`", "`true`: models get no skill that no lock names"
    ),
}
"""Every key of a policy file."""


def _parsed(data: bytes) -> dict[str, Any]:
    """Return the members of a policy file; raise for the first key that is not understood."""
    import tomllib

    text = data.decode("utf-8")
    table = tomllib.loads(text)
    version = table.pop("version", POLICY_VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise _wrong(text, "version", "must be a whole number of at least 1")
    if version > POLICY_VERSION:
        newer = f"{version} is of a newer skillshelf (this one reads {POLICY_VERSION}); update skillshelf"
        raise _wrong(text, "version", newer)
    members = {}
    for key, value in _keys(table):
        if key not in POLICY_KEYS:
            raise _wrong(text, key, f"is not a key of a system policy{did_you_mean(key, POLICY_KEYS)}")
        try:
            members[POLICY_KEYS[key].member] = POLICY_KEYS[key].read(value)
        except InvalidRule as error:
            raise _wrong(text, key, str(error)) from None
    return members


def _keys(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every key with its table; a value where a table should be is a key of its own."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", item) for key, item in value.items())
        else:
            yield name, value


def _wrong(text: str, key: str, what: str) -> _InvalidPolicy:
    """Return the error for a key, with the line that sets it as far as one can be found."""
    table, _, name = key.rpartition(".")
    inside = not table
    for number, line in enumerate(text.split("\n"), 1):
        begin, equals, _ = line.partition("=")
        words = begin.strip().strip("\"'")
        if line.strip().startswith("["):
            inside = line.strip().strip("[] ") == table
        elif equals and words in ((name,) if inside else (key,)):
            return _InvalidPolicy(f"line {number}: `{key}` {what}")
    return _InvalidPolicy(f"`{key}` {what}")
