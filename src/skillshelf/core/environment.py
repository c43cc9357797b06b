"""Describe where a shelf is opened: working directory, home folder, environment variables, configuration and cache."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.core import files
from skillshelf.core.limits import CONFIG_BYTES, SECRET_FILE_BYTES
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import near
from skillshelf.errors import ConfigurationError

__all__ = [
    "SYSTEM_POLICY",
    "SYSTEM_POLICY_VARIABLE",
    "VARIABLES",
    "Environment",
    "account_home",
    "expand",
    "find_repository",
    "main_repository",
    "make_environment",
    "policy_stamps",
    "secret_in",
    "unread_variables",
    "user_cache_folder",
    "user_config_path",
    "user_data_folder",
    "user_state_folder",
]

_LINUX = str(sys.platform) == "linux"


class Environment(NamedTuple):
    """The working directory, home folder and variables that decide what a shelf finds, besides the configuration."""

    cwd: str
    home: str | None
    env: Mapping[str, str]
    home_moved: bool = False
    config: str | Mapping[str, Any] | None = None
    """The path or the content of a configuration that replaces the user's and the project's file."""
    ceiling: str | None = None
    """A folder at or above the working directory: no host is taken to read skills in a folder above it.

    What a list costs a model is measured as if this folder lay at the top of the disk.
    """


def make_environment(
    cwd: str | None,
    home: str | None,
    env: Mapping[str, str] | None,
    *,
    config: str | Mapping[str, Any] | None = None,
) -> Environment:
    """Return an environment from the given values; missing ones come from the process."""
    environment = {name: files.from_system(value) for name, value in os.environ.items()} if env is None else dict(env)
    # The real path, so that links on the way do not decide which repository this is.
    base = files.real_path(files.from_system(os.path.abspath(cwd or ".")))
    if isinstance(config, str):
        config = os.path.abspath(os.path.join(base, files.from_system(config)))
    if home is not None:
        return Environment(base, files.from_system(os.path.abspath(home)), environment, home_moved=True, config=config)
    found = environment.get("HOME") or account_home()
    # A home that is not absolute would mean another folder in every working directory.
    return Environment(base, os.path.normpath(found) if os.path.isabs(found) else None, environment, config=config)


def account_home() -> str:
    """Return the home folder of the account, whatever the environment says; empty if it has none."""
    import pwd

    try:
        return files.from_system(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return ""


def find_repository(cwd: str, markers: Sequence[str]) -> str | None:
    """Return the nearest folder from here upward that holds one of the markers, or None."""
    folder = cwd
    while True:
        if any(files.kind_at(f"{folder}/{marker}") for marker in markers):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


SYSTEM_POLICY = (
    "/Library/Application Support/skillshelf/policy.toml"
    if str(sys.platform) == "darwin"
    else "/etc/skillshelf/policy.toml"
)
"""The rules of the machine's administrator; no option, variable or argument names another place."""

SYSTEM_POLICY_VARIABLE = "SKILLSHELF_SYSTEM_POLICY"
"""The variable that adds a second file of such rules."""

VARIABLES = (
    "SKILLSHELF_DATABASE",
    "SKILLSHELF_MCP_TOKEN",
    "SKILLSHELF_NATIVE",
    "SKILLSHELF_PAGER",
    "SKILLSHELF_SERVER",
    "SKILLSHELF_SYSTEM_POLICY",
    "SKILLSHELF_TOKEN",
)
"""Every variable of our own that something reads."""


def policy_stamps(environment: Environment) -> tuple[tuple[str, tuple[int, ...] | None], ...]:
    """Return the path of every system policy with what tells two states of it apart; none where there is no policy.

    The variable counts in the process and in the environment that a program gave: another file only forbids more.
    """
    added = (os.environ.get(SYSTEM_POLICY_VARIABLE), environment.env.get(SYSTEM_POLICY_VARIABLE))
    named = dict.fromkeys((SYSTEM_POLICY, *(files.from_system(path) for path in added if path)))
    found = tuple((path, files.state_at(path)) for path in named)
    return () if found == ((SYSTEM_POLICY, None),) else found


def main_repository(repository: str) -> str:
    """Return the repository that a linked worktree belongs to; any other folder is returned as it is."""
    mark = f"{repository}/.git"
    try:
        data = files.read_file(mark, limit=CONFIG_BYTES, links="follow") if files.kind_at(mark) == "file" else None
    except OSError:
        return repository
    said = (data or b"").decode("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
    common, is_worktree, _ = os.path.join(repository, said).rpartition("/worktrees/")
    is_plain = is_worktree and os.path.basename(common) == ".git" and "\0" not in common
    return files.real_path(os.path.dirname(common)) if is_plain else repository


def user_config_path(environment: Environment) -> str | None:
    """Return the path of the user's configuration file or of its replacement, whether or not it exists."""
    if isinstance(environment.config, str):
        return environment.config
    given = environment.env.get("XDG_CONFIG_HOME", "")
    if _LINUX and not environment.home_moved and os.path.isabs(given):
        return f"{given}/skillshelf/config.toml"
    if environment.home is None:
        return None
    if environment.home_moved or _LINUX:
        return f"{environment.home}/.config/skillshelf/config.toml"
    from platformdirs import user_config_dir

    return os.path.join(user_config_dir("skillshelf"), "config.toml")


def user_cache_folder(environment: Environment) -> str | None:
    """Return the cache folder, whether or not it exists; None without a home folder."""
    given = environment.env.get("XDG_CACHE_HOME", "")
    if _LINUX and not environment.home_moved and os.path.isabs(given):
        return f"{given}/skillshelf"
    if environment.home is None or files.kind_at(environment.home) is None:
        return None
    if environment.home_moved or _LINUX:
        return f"{environment.home}/.cache/skillshelf"
    from platformdirs import user_cache_dir

    return str(user_cache_dir("skillshelf"))


def user_data_folder(environment: Environment) -> str | None:
    """Return the folder of installed skills, whether or not it exists; None without a home."""
    return _own_folder(environment, "XDG_DATA_HOME", ".local/share", "user_data_dir")


def user_state_folder(environment: Environment) -> str | None:
    """Return the folder of what the program keeps about its use, whether or not it exists; None without a home."""
    return _own_folder(environment, "XDG_STATE_HOME", ".local/state", "user_state_dir")


def _own_folder(environment: Environment, variable: str, folder: str, platform: str) -> str | None:
    """Return a folder of our own: where the variable says, below the home folder, or as `platformdirs` names it."""
    given = environment.env.get(variable, "")
    if _LINUX and not environment.home_moved and os.path.isabs(given):
        return f"{given}/skillshelf"
    if environment.home is None:
        return None
    if environment.home_moved or _LINUX:
        return f"{environment.home}/{folder}/skillshelf"
    import platformdirs

    return str(getattr(platformdirs, platform)("skillshelf"))


def expand(path: str, environment: Environment, *, base: str) -> str:
    """Return an absolute path: `~` is the home folder, a relative path starts from the base."""
    if path == "~" or path.startswith("~/"):
        path = (environment.home or "/nonexistent") + path[1:]
    return os.path.normpath(os.path.join(base, path))


_SECRET = lazy_pattern(r"(?<![A-Za-z0-9])(sk[sl]_)[A-Za-z0-9_-]+|(:/+).*(?=@)")
"""A token of a team server, or the login in an address."""


def secret_in(path: str, *, what: str) -> str:
    """Return the text of a file with a token, a password or an address, without the blanks around it.

    Raise ConfigurationError if there is no such file. It does not repeat a secret that was given in place of its file.
    """
    shown = _SECRET.sub(lambda secret: f"{secret[1] or secret[2]}...", path)
    try:
        data = files.read_file(os.path.abspath(path), limit=SECRET_FILE_BYTES, links="follow")
    except OSError as error:
        raise ConfigurationError(f"{what} {shown} cannot be read: {error.strerror}") from None
    if data is None:
        raise ConfigurationError(f"{what} {shown} is not a regular file of at most {SECRET_FILE_BYTES} bytes")
    return data.decode("utf-8", "replace").strip()


def below_home(path: str, moved: Mapping[str, str], environment: Environment) -> str:
    """Return an absolute path below the home folder, or where a variable of the environment moves it.

    `moved` has the beginnings of paths and what stands for each: a variable, such as `$XDG_CONFIG_HOME/name`.
    """
    for beginning in sorted(moved, key=len, reverse=True):
        variable, _, below = moved[beginning].removeprefix("$").partition("/")
        given = environment.env.get(variable, "")
        if os.path.isabs(given) and files.is_inside(f"/{path}", f"/{beginning}".rstrip("/") or "/"):
            return os.path.normpath(os.path.join(given, below, path[len(beginning) :].lstrip("/")))
    return os.path.join(environment.home or "/nonexistent", path)


def unread_variables(env: Mapping[str, str]) -> list[str]:
    """Return the names that look like variables of ours and that nothing reads, each with the one that may be meant."""
    prefix = "SKILLSHELF_"
    known = [name.removeprefix(prefix) for name in VARIABLES]
    found = []
    for name in sorted(env):
        if name.startswith(prefix) and name not in VARIABLES:
            # Without the beginning that all of them share, so that only the rest must look alike.
            close = near(name.removeprefix(prefix), known)
            found.append(f"{name} (did you mean {prefix}{close[0]}?)" if close else name)
    return found
