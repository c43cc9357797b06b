"""Write a user's choice into the user's configuration file, keeping comments, order and everything else."""

from collections.abc import Callable, Sequence
from typing import Any

from skillshelf.core import files
from skillshelf.core.disk_writes import locked, replace_file
from skillshelf.core.environment import Environment, user_config_path
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.errors import ConfigurationError, SkillError

__all__ = ["add_rule", "change_list", "listed", "set_flag", "set_list"]


def listed(environment: Environment, table: str, key: str) -> list[str]:
    """Return the texts of a list in the user's file."""
    return [str(item) for item in _list_in(_document(_path(environment)), table, key, make=False)]


def change_list(
    environment: Environment, table: str, key: str, change: Callable[[list[str]], list[str]], *, dry_run: bool = False
) -> tuple[str, bool]:
    """Change one list of texts in the user's file; return the file and whether it changed, or would change."""
    path = _path(environment)
    if dry_run:
        before = listed(environment, table, key)
        return path, change(before) != before
    try:
        with locked(path):
            document = _document(path)
            before = [str(item) for item in _list_in(document, table, key, make=False)]
            after = change(before)
            if after == before:
                return path, False
            current = _list_in(document, table, key, make=True)
            for item in [item for item in current if str(item) not in after]:
                current.remove(item)
            for text in after:
                if text not in before:
                    current.append(text)
            replace_file(path, document.as_string().encode("utf-8"))
    except OSError as error:
        raise _not_written(path, error) from None
    return path, True


def set_list(environment: Environment, key: str, texts: Sequence[str], *, dry_run: bool = False) -> tuple[str, bool]:
    """Set a list of texts at the top of the user's file, or take the key out if there are none.

    Return the file and whether it changed, or would change.
    """
    import tomlkit

    path = _path(environment)
    if dry_run:
        return path, not _is_set(_document(path), key, texts)
    try:
        with locked(path):
            document = _document(path)
            if _is_set(document, key, texts):
                return path, False
            if not texts:
                del document[key]
            else:
                array = tomlkit.array()
                array.extend(texts)
                document[key] = array
            # tomlkit drops the last line end together with a key.
            text = document.as_string().removesuffix("\n")
            replace_file(path, f"{text}\n".encode() if text else b"")
    except OSError as error:
        raise _not_written(path, error) from None
    return path, True


def set_flag(environment: Environment, table: str, key: str, *, value: bool) -> str:
    """Set `table.key` in the user's file to true or false; return the file."""
    import tomlkit

    path = _path(environment)
    try:
        with locked(path):
            document = _document(path)
            if table not in document:
                document[table] = tomlkit.table()
            if not hasattr(document[table], "get"):
                raise ConfigurationError(f"`{table}` in the user's configuration is not a table")
            document[table][key] = value
            replace_file(path, document.as_string().encode("utf-8"))
    except OSError as error:
        raise _not_written(path, error) from None
    return path


def _is_set(document: Any, key: str, texts: Sequence[str]) -> bool:
    before = document.get(key)
    return (list(before) if isinstance(before, list) else before) == (list(texts) or None)


def _path(environment: Environment) -> str:
    path = user_config_path(environment)
    if path is None:
        raise ConfigurationError("there is no home folder for the configuration; name one with --home")
    if path == environment.config and files.kind_at(path) is None:
        # A misspelt path would create a new file that is never read.
        raise ConfigurationError(f"{path}: cannot be read: no such file; create it first")
    return path


def _not_written(path: str, error: OSError) -> SkillError:
    return SkillError(f"{path} cannot be written: {(error.strerror or type(error).__name__).lower()}")


def _document(path: str) -> Any:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    if files.kind_at(path) is None:
        return tomlkit.document()
    data = files.read_file(path, limit=CONFIG_BYTES, links="follow")
    if data is None:
        raise ConfigurationError(f"{path}: not a regular file of at most {CONFIG_BYTES} bytes; fix it first")
    try:
        return tomlkit.parse(data.decode("utf-8"))
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}; fix it first") from None


def _list_in(document: Any, table: str, key: str, *, make: bool) -> Any:
    """Return the list at `table.key`; with `make`, create it if it is missing."""
    import tomlkit

    if table not in document:
        if not make:
            return []
        document[table] = tomlkit.table()
    parent = document[table]
    if not hasattr(parent, "get"):
        raise ConfigurationError(f"`{table}` in the user's configuration is not a table")
    if key not in parent:
        if not make:
            return []
        parent[key] = tomlkit.array()
    if not isinstance(parent[key], list):
        raise ConfigurationError(f"`{table}.{key}` in the user's configuration is not a list")
    return parent[key]


def add_rule(environment: Environment, tool: str, skill_name: str | None) -> bool:
    """Add a rule to `permissions.allow` of the user's file; return whether it is new."""
    import tomlkit

    path = _path(environment)
    wanted = {"tool": tool, **({"skill_name": skill_name} if skill_name else {})}
    try:
        with locked(path):
            document = _document(path)
            if any(dict(rule) == wanted for rule in _list_in(document, "permissions", "allow", make=False)):
                return False
            rules = _list_in(document, "permissions", "allow", make=True)
            rule = tomlkit.table() if isinstance(rules, tomlkit.items.AoT) else tomlkit.inline_table()
            rule.update(wanted)
            rules.append(rule)
            replace_file(path, document.as_string().encode("utf-8"))
    except OSError as error:
        raise _not_written(path, error) from None
    return True
