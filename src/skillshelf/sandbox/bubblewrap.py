"""Build the bubblewrap command line for a script from the grants of a policy."""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from skillshelf.core import files
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError
from skillshelf.sandbox.scripts import SYSTEM, RunFolder, find_program, in_system

__all__ = [
    "SKILL",
    "WORK",
    "WRITABLE",
    "Grants",
    "bubblewrap_error",
    "can_disable_userns",
    "check_access",
    "check_grants",
    "command_line",
    "find_bubblewrap",
    "has_sized_storage",
    "memory_file",
    "program_path",
    "sandbox_problem",
    "script_variables",
    "writable_places",
]

SKILL = "/skillshelf/skill"
WORK = "/skillshelf/work"
"""The paths of the skill and of the work folder inside the sandbox."""

WRITABLE = (WORK, "/tmp", "/dev/shm")
"""The folders inside the sandbox that a script writes to, in the order of `RunFolder.writable`."""

_USER = 1000
_USERS_FOR_ROOT = range(61184, 65520)
"""User ids that systems reserve for users who exist only while a service runs."""

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

# The parts of an interpreter's prefix that are mounted, and the library folder that identifies a prefix.
_OF_A_PREFIX = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg")
_LIBRARIES = {"node": "node_modules", "perl": "perl5", "python": "python", "ruby": "ruby", "Rscript": "R", "lua": "lua"}


class Grants(NamedTuple):
    """The rights that a policy grants a script; `read` and `write` are folders.

    `unsandboxed` lets it run without a sandbox, with all rights of the user, where none is available.
    `all_calls` lets it make every system call: it gets no seccomp filter.
    """

    network: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    unsandboxed: bool = False
    all_calls: bool = False


# Availability ------------------------------------------------------------------------------------------


def find_bubblewrap() -> str | None:
    """Return the path of bubblewrap, or None if it is not installed."""
    return find_program("bwrap")


def sandbox_problem(platform: str = sys.platform) -> str | None:
    """Return the reason why no sandbox is available, or None if one is."""
    import subprocess
    from shutil import which

    if platform != "linux":
        return f"bubblewrap needs Linux, and this is {platform}"
    bubblewrap = find_bubblewrap()
    if bubblewrap is None:
        return "bubblewrap (bwrap) is not installed"
    if bubblewrap in _WORKING:
        return None
    try:
        user = user_for_root()
        if user is not None and which(_SETPRIV[0]) is None:
            return f"root needs {_SETPRIV[0]} (of util-linux) to give up its rights"
        words = [*_sandbox(bubblewrap, network=False, user=user), *_system(), "--proc", "/proc", "--dev", "/dev"]
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
        return bubblewrap_error(done.stderr)
    _WORKING.add(bubblewrap)
    return None


_WORKING: set[str] = set()
"""Paths of bubblewrap that worked; one that failed is tried again."""


def user_for_root() -> int | None:
    """Return an unprivileged uid to use when we run as root; None otherwise."""
    # Many parts of the kernel treat uid 0 as root even without privileges.
    return random.choice(_USERS_FOR_ROOT) if os.geteuid() == 0 else None


def as_user(user: int | None) -> list[str]:
    """Return the command prefix by which root becomes that user permanently."""
    return [] if user is None else [*_SETPRIV, "--reuid", str(user), "--regid", str(user)]


_SETPRIV = (
    *("/usr/bin/setpriv", "--clear-groups", "--no-new-privs"),
    *("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"),
)


def bubblewrap_error(stderr: bytes) -> str:
    """Return a reason from the error output of bubblewrap."""
    message = visible(stderr.decode("utf-8", "replace").strip()[:300]) or "it gave no reason"
    return f"bubblewrap may not make one ({message})"


@lru_cache
def _options(bubblewrap: str) -> str:
    """Return the help text of this version, which lists its options."""
    import subprocess

    done = subprocess.run([bubblewrap, "--help"], stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=20)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def can_disable_userns(bubblewrap: str) -> bool:
    """Return whether this version can forbid nested user namespaces to an ordinary user."""
    return "--disable-userns" in _options(bubblewrap)


# Grants ------------------------------------------------------------------------------------------------


def check_grants(grants: Grants) -> None:
    """Raise ConfigurationError for a folder that may not or cannot be granted."""
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


def check_access(grants: Grants) -> None:
    """Raise ConfigurationError for a folder that a script of root, which runs as another user, could not use."""
    needed = dict.fromkeys(grants.read, 0o5) | dict.fromkeys(grants.write, 0o7)
    for path, others in needed.items():
        mode = os.stat(path).st_mode & 0o777
        if mode & others != others:
            verb, letters = ("write", "rwx") if path in grants.write else ("read", "rx")
            raise ConfigurationError(
                f"{visible(path)} is granted, but a script of root runs as an unprivileged user, who may not {verb} "
                f"there (its mode is {mode:04o}): `chmod o+{letters}` it, or do not run skillshelf as root"
            )


def _granted(grants: Grants) -> Iterator[tuple[str, str]]:
    """Yield the granted folders with the option that mounts them, parents first."""
    options = dict.fromkeys(grants.read, "--ro-bind") | dict.fromkeys(grants.write, "--bind")
    for path in sorted(options):
        if path != "/":
            yield path, options[path]
            continue
        # Mounted folder by folder: /proc, /sys and /dev are excluded, and our own folders need a place.
        with files.Folder("/") as root:
            names = [name.rstrip("/") for name in root.children(()) if name.endswith("/")]
        yield from ((f"/{name}", options[path]) for name in names if f"/{name}" not in (*_NEVER, *SYSTEM))


# The command line ----------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """Arguments for bubblewrap, with the descriptors in them that it inherits and we close."""

    arguments: list[str]
    descriptors: list[int]


def command_line(bubblewrap: str, paths: RunFolder, program: str, grants: Grants, seccomp: bytes | None) -> Prepared:
    """Return the arguments that create the sandbox and its mounts, without the command."""
    prepared = Prepared([*_sandbox(bubblewrap, network=grants.network, user=paths.user), *_system()], [])
    arguments = prepared.arguments
    for path in (*_ETC, *_java_settings(), *(_ETC_FOR_NETWORK if grants.network else ())):
        if os.path.exists(path):
            arguments += [*_folders_to(path), "--ro-bind", path, path]
    for name, text in _ACCOUNTS.items():
        prepared.descriptors.append(memory_file(text.format(_USER if paths.user is None else paths.user).encode()))
        readable = () if paths.user is None else ("--perms", "0644")
        arguments += [*readable, "--ro-bind-data", str(prepared.descriptors[-1]), f"/etc/{name}"]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += _writable(paths, WRITABLE[1:])
    for path in program_files(program):
        arguments += [*_folders_to(path), "--ro-bind", path, path]
    by_descriptor = "--bind-fd" in _options(bubblewrap)
    for path, option in _granted(grants):
        arguments += _folders_to(path)
        if by_descriptor:
            # Mounted by descriptor, opened without following links: the path may lead elsewhere by then.
            prepared.descriptors.append(_opened(path))
            arguments += [f"{option}-fd", str(prepared.descriptors[-1]), path]
        else:
            arguments += [option, path, path]
    arguments += [*_folders_to(SKILL), "--ro-bind", paths.skill, SKILL, *_writable(paths, WRITABLE[:1])]
    for path in ("/proc", "/dev", "/"):
        arguments += ["--remount-ro", path]
    if seccomp is not None:
        prepared.descriptors.append(memory_file(seccomp))
        arguments += ["--seccomp", str(prepared.descriptors[-1])]
    arguments += ["--chdir", WORK]
    return prepared


def _java_settings() -> Iterator[str]:
    """Yield the settings of the system's Java versions, which do not start without them; none of services."""
    descriptor = files.open_folder("/etc")
    try:
        names = files.names_in(descriptor)
    finally:
        files.close(descriptor)
    for name in sorted(names):
        if name.startswith("java-") and name.endswith("-openjdk"):
            # What a removed version left behind may be a link to nowhere.
            with suppress(OSError), files.Folder(f"/etc/{name}") as settings:
                parts = settings.children(())
                yield from (f"/etc/{name}/{part.rstrip('/')}" for part in parts if part != "management/")


def _writable(paths: RunFolder, places: Sequence[str]) -> Iterator[str]:
    """Yield options that mount what a script writes to: file systems of a fixed size, or folders on the disk."""
    folders = dict(zip(WRITABLE, paths.writable, strict=False))
    for place in places:
        yield from _folders_to(place)
        if paths.size is not None:
            yield from ("--perms", "0755", "--size", str(paths.size), "--tmpfs", place)
        else:
            yield from ("--bind", folders[place], place)


def writable_places(grants: Grants) -> tuple[str, ...]:
    """Return the folders inside the sandbox that a script writes to and that no granted folder hides."""
    hidden = {"/tmp"} if {"/", "/tmp"} & {*grants.read, *grants.write} else set()
    return tuple(place for place in WRITABLE if place not in hidden)


def has_sized_storage(bubblewrap: str) -> bool:
    """Return True if this version can make file systems of a fixed size."""
    return "--size" in _options(bubblewrap)


def _folders_to(path: str) -> Iterator[str]:
    """Yield options that create the parent folders of a path, readable by all; existing ones stay as they are."""
    names = path.split("/")[1:-1]
    for count in range(len(names)):
        yield from ("--dir", "/" + "/".join(names[: count + 1]))


def _opened(path: str) -> int:
    try:
        return files.open_folder(path)
    except OSError as error:
        raise ConfigurationError(f"{visible(path)} cannot be granted: {error.strerror}") from None


def memory_file(text: bytes) -> int:
    """Return a descriptor from which these bytes can be read."""
    descriptor = os.memfd_create("skillshelf")
    os.write(descriptor, text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _sandbox(bubblewrap: str, *, network: bool, user: int | None) -> list[str]:
    """Return the options for new namespaces, no privileges, no terminal, and an end together with our process.

    Root keeps the privileges that becoming another user requires, until it has become that user.
    """
    if user is None:
        account = ["--unshare-user", "--uid", str(_USER), "--gid", str(_USER), "--cap-drop", "ALL"]
        account += ["--disable-userns"] if can_disable_userns(bubblewrap) else []
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
    """Yield options that mount the system folders read-only; a link stays a link."""
    for path in SYSTEM:
        if files.kind_at(path) == "link":
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind-try", path, path)


def script_variables(paths: RunFolder | None, program: str) -> dict[str, str]:
    """Return all variables of a script; without `paths` those inside the sandbox."""
    own = [] if in_system(program) else [os.path.dirname(program)]
    return {
        "HOME": paths.work if paths else WORK,
        "LANG": "C.UTF-8",
        "PWD": paths.work if paths else WORK,
        "PATH": ":".join([*own, "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]),
        "SKILL_DIR": paths.skill if paths else SKILL,
        "TMPDIR": paths.temporary if paths else "/tmp",
    }


# The interpreter's own prefix --------------------------------------------------------------------------


def program_path(program: str) -> str:
    """Return the path by which a program is started: its real path, except in a virtual environment."""
    return _link_targets(program)[0]


def program_files(program: str) -> list[str]:
    """Return the paths to mount for a program outside the system folders: itself and its libraries."""
    mounted: dict[str, None] = {}
    for step in _link_targets(program):
        if not in_system(step):
            mounted.update(dict.fromkeys(_prefix(step) or [step]))
    return list(mounted)


def _link_targets(program: str) -> Sequence[str]:
    """Return a program and the targets of its links, from the path by which it is started."""
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
