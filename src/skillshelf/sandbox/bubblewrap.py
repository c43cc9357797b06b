"""What a script may see and reach, to a command line of bubblewrap."""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from skillshelf.core import files
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError
from skillshelf.sandbox.scripts import SYSTEM, StagedPaths, in_system

__all__ = [
    "SKILL",
    "WORK",
    "Grants",
    "check_grants",
    "command_line",
    "entry_of",
    "environment",
    "find_bubblewrap",
    "in_memory",
    "sandbox_available",
    "why_not",
]

SKILL = "/skillshelf/skill"
WORK = "/skillshelf/work"
"""Where a script finds its skill and its work folder."""

_USER = 1000
_USERS_FOR_ROOT = range(61184, 65520)
"""Numbers that systems keep for users who exist only while something runs."""

_NEVER = ("/proc", "/sys", "/dev")

# Of /etc only what programs need to start; no accounts, keys or configuration of services.
_ETC = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
_ETC_FOR_NETWORK = ("/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf")
_ACCOUNTS = {
    "passwd": f"root:x:0:0::/:/bin/false\nscript:x:{{0}}:{{0}}::{WORK}:/bin/sh\n",
    "group": "root:x:0:\nscript:x:{0}:\n",
}

# What of an interpreter's prefix is shown, and which folder in it tells that it is one.
_OF_A_PREFIX = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg")
_LIBRARIES = {"node": "node_modules", "perl": "perl5", "python": "python", "ruby": "ruby", "Rscript": "R", "lua": "lua"}


class Grants(NamedTuple):
    """What the policy allows a script beyond nothing: `read` and `write` are folders.

    `unsandboxed` means that it may run where there is no sandbox, with all rights of the user.
    """

    network: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    unsandboxed: bool = False


# Is there one ------------------------------------------------------------------------------------------


def find_bubblewrap() -> str | None:
    """The path of bubblewrap, where it is installed."""
    from shutil import which

    return which("bwrap")


def sandbox_available() -> str | None:
    """Why no sandbox can be made here, in words, or None where one can."""
    import subprocess
    from shutil import which

    if sys.platform != "linux":
        return f"bubblewrap needs Linux, and this is {sys.platform}"
    bubblewrap = find_bubblewrap()
    if bubblewrap is None:
        return "bubblewrap (bwrap) is not installed"
    if bubblewrap in _PROVEN:
        return None
    try:
        user = user_for_root()
        if user is not None and which(_SETPRIV[0]) is None:
            return f"root needs {_SETPRIV[0]} (of util-linux) to give up its rights"
        words = [*_walls(bubblewrap, network=False, user=user), *_system(), "--proc", "/proc", "--dev", "/dev"]
        done = subprocess.run(
            [bubblewrap, *words, "--", *as_user(user), "/bin/sh", "-c", ":"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if done.returncode != 0:
        return why_not(done.stderr)
    _PROVEN.add(bubblewrap)
    return None


_PROVEN: set[str] = set()
"""Where bubblewrap was found to work; where it did not, it is asked again."""


def user_for_root() -> int | None:
    """The user as whom a script of root's runs, of whom nothing else is; None for everybody else."""
    # To many parts of the kernel root is root by its number, with or without privileges.
    return random.choice(_USERS_FOR_ROOT) if os.geteuid() == 0 else None


def as_user(user: int | None) -> list[str]:
    """What stands before a command so that root becomes that user first, for good."""
    return [] if user is None else [*_SETPRIV, "--reuid", str(user), "--regid", str(user)]


_SETPRIV = (
    *("/usr/bin/setpriv", "--clear-groups", "--no-new-privs"),
    *("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"),
)


def why_not(stderr: bytes) -> str:
    """What bubblewrap said when it could not make a sandbox."""
    said = visible(stderr.decode("utf-8", "replace").strip()[:300]) or "it did not say why"
    return f"bubblewrap may not make one ({said})"


@lru_cache
def _options(bubblewrap: str) -> str:
    """The options that this version knows, as it lists them."""
    import subprocess

    done = subprocess.run([bubblewrap, "--help"], stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=20)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


# Grants ------------------------------------------------------------------------------------------------


def check_grants(grants: Grants) -> None:
    """ConfigurationError for a folder that may not or cannot be granted."""
    for path in (*grants.read, *grants.write):
        shown = visible(path)
        if not path.startswith("/") or "\0" in path or os.path.normpath(path) != path:
            raise ConfigurationError(f"a granted folder is named by its whole path, without `.`, `..` or `//`: {shown}")
        if any(files.is_inside(path, never) for never in _NEVER):
            raise ConfigurationError(
                f"{shown} cannot be granted: a script gets its own {'/'.join(path.split('/')[:2])}"
            )
        if any(files.is_inside(path, own) for own in ("/skillshelf", *(SYSTEM if path in grants.write else ()))):
            raise ConfigurationError(f"{shown} cannot be granted: it belongs to the sandbox itself")
        if files.real_path(path) != path:
            raise ConfigurationError(f"{shown} is or contains a link; grant {visible(files.real_path(path))} itself")
        if files.kind_at(path) != "folder":
            raise ConfigurationError(f"{shown} cannot be granted: there is no such folder")


def _granted(grants: Grants) -> Iterator[tuple[str, str]]:
    """Folders with the option that shows them, a folder before what lies in it."""
    ways = dict.fromkeys(grants.read, "--ro-bind") | dict.fromkeys(grants.write, "--bind")
    for path in sorted(ways):
        if path != "/":
            yield path, ways[path]
            continue
        # Not as one piece: /proc, /sys and /dev are in it, and our own folders must have room.
        with files.Folder("/") as root:
            names = [name.rstrip("/") for name in root.children(()) if name.endswith("/")]
        yield from ((f"/{name}", ways[path]) for name in names if f"/{name}" not in (*_NEVER, *SYSTEM))


# The command line ----------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """Arguments for bubblewrap, and the descriptors in them, which it must inherit and we must close."""

    arguments: list[str]
    descriptors: list[int]


def command_line(bubblewrap: str, place: StagedPaths, program: str, grants: Grants) -> Prepared:
    """The arguments that put up the walls and what is seen between them; the command is not in it."""
    made = Prepared([*_walls(bubblewrap, network=grants.network, user=place.user), *_system()], [])
    arguments = made.arguments
    for path in (*_ETC, *(_ETC_FOR_NETWORK if grants.network else ())):
        if os.path.exists(path):
            arguments += [*_folders_to(path), "--ro-bind", path, path]
    for name, text in _ACCOUNTS.items():
        made.descriptors.append(in_memory(text.format(_USER if place.user is None else place.user).encode()))
        readable = () if place.user is None else ("--perms", "0644")
        arguments += [*readable, "--ro-bind-data", str(made.descriptors[-1]), f"/etc/{name}"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--bind", place.temporary, "/tmp", "--bind", place.shared_memory, "/dev/shm"]
    for path in shown_of(program):
        arguments += [*_folders_to(path), "--ro-bind", path, path]
    by_descriptor = "--bind-fd" in _options(bubblewrap)
    for path, option in _granted(grants):
        arguments += _folders_to(path)
        if by_descriptor:
            # Opened without following a link, and bound as what was opened, whatever the path leads to by then.
            made.descriptors.append(_opened(path))
            arguments += [f"{option}-fd", str(made.descriptors[-1]), path]
        else:
            arguments += [option, path, path]
    arguments += [*_folders_to(SKILL), "--ro-bind", place.skill, SKILL, "--bind", place.work, WORK]
    for path in ("/proc", "/dev", "/"):
        arguments += ["--remount-ro", path]
    arguments += ["--chdir", WORK]
    return made


def _folders_to(path: str) -> Iterator[str]:
    """Make the folders on the way to a path, for everybody to pass; one that is there stays as it is."""
    names = path.split("/")[1:-1]
    for count in range(len(names)):
        yield from ("--dir", "/" + "/".join(names[: count + 1]))


def _opened(path: str) -> int:
    try:
        return files.open_folder(path)
    except OSError as error:
        raise ConfigurationError(f"{visible(path)} cannot be granted: {error.strerror}") from None


def in_memory(text: bytes) -> int:
    """A descriptor from which these bytes can be read."""
    descriptor = os.memfd_create("skillshelf")
    os.write(descriptor, text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _walls(bubblewrap: str, *, network: bool, user: int | None) -> list[str]:
    """Every namespace new, every privilege dropped, no terminal, and all of it gone when we are gone.

    Root keeps the privileges that becoming another user takes; they are gone when it has become that.
    """
    if user is None:
        account = ["--unshare-user", "--uid", str(_USER), "--gid", str(_USER), "--cap-drop", "ALL"]
        account += ["--disable-userns"] if "--disable-userns" in _options(bubblewrap) else []
    else:
        kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
        account = ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]
    return [
        *account,
        *("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if network else ("--unshare-net",)),
        *("--hostname", "sandbox", "--new-session", "--die-with-parent", "--clearenv"),
    ]


def _system() -> Iterator[str]:
    """The folders of the system, read-only; one that is a link here is a link there."""
    for path in SYSTEM:
        if files.kind_at(path) == "link":
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind-try", path, path)


def environment(place: StagedPaths | None, program: str) -> dict[str, str]:
    """All variables a script gets; without a place they are those of the sandbox."""
    own = [] if in_system(program) else [os.path.dirname(program)]
    return {
        "HOME": place.work if place else WORK,
        "LANG": "C.UTF-8",
        "PATH": ":".join([*own, "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]),
        "SKILL_DIR": place.skill if place else SKILL,
        "TMPDIR": place.temporary if place else "/tmp",
    }


# The interpreter's own prefix --------------------------------------------------------------------------


def entry_of(program: str) -> str:
    """The path by which a program is started: a virtual environment's by its own, others by where they really are."""
    return _steps(program)[0]


def shown_of(program: str) -> list[str]:
    """What must be seen of a program that lies outside the system's folders: it and its libraries, nothing else."""
    shown: dict[str, None] = {}
    for step in _steps(program):
        if not in_system(step):
            shown.update(dict.fromkeys(_prefix(step) or [step]))
    return list(shown)


def _steps(program: str) -> Sequence[str]:
    """A program and what it links to, from where it is started."""
    if in_system(program):
        return [program]
    steps = [program]
    while os.path.islink(steps[-1]) and len(steps) < 40:
        steps.append(os.path.normpath(os.path.join(os.path.dirname(steps[-1]), os.readlink(steps[-1]))))
    for number, step in enumerate(steps):
        if files.kind_at(os.path.join(os.path.dirname(os.path.dirname(step)), "pyvenv.cfg")) == "file":
            return [*steps[number:], files.real_path(program)]
    return [files.real_path(program)]


def _prefix(program: str) -> list[str]:
    folder = os.path.dirname(program)
    prefix = os.path.dirname(folder)
    name = os.path.basename(program)
    library = next((inside for start, inside in _LIBRARIES.items() if name.startswith(start)), None)
    if os.path.basename(folder) != "bin" or library is None:
        return []
    try:
        with files.Folder(files.real_path(f"{prefix}/lib")) as libraries:
            if not any(entry.startswith(library) for entry in libraries.children(())):
                return []
    except OSError:
        return []
    return [f"{prefix}/{part}" for part in _OF_A_PREFIX if os.path.exists(f"{prefix}/{part}")]
