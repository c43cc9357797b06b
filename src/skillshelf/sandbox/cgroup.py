"""Put the processes of a script into a cgroup of their own: the kernel then counts all the memory that they take,
whether it has a name or not."""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal

from skillshelf.core import files
from skillshelf.core.disk_writes import append
from skillshelf.core.records import NamedTuple
from skillshelf.sandbox.scripts import find_program

__all__ = ["Cgroup", "CgroupPlace", "cgroup_places", "make_cgroup", "prepare_cgroup", "sweep_cgroups"]

_CONTROLLERS = ("memory", "pids")
_PREFIX = "skillshelf-run-"
_READ_BYTES = 1024 * 1024

_IDLE_SECONDS = 5
"""The age at which an empty cgroup belongs to nobody: that of a run is empty for a moment only, before and after it."""

_REMOVE_SECONDS = 1.0
_SYSTEMD_SECONDS = 2.0

_SYSTEMD_REFUSED: list[bool] = []
"""Not empty if systemd made no scope for us once; it is not asked again, since every run would wait for the answer."""


class _Names(NamedTuple):
    """The file names of a cgroup version. Version 1 limits memory and swap by their sum, version 2 each by itself."""

    memory: str
    swap: str
    swap_of: Literal["memory", "zero"]
    events: str


_NAMES: Mapping[int, _Names] = {
    1: _Names("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory", "memory.oom_control"),
    2: _Names("memory.max", "memory.swap.max", "zero", "memory.events"),
}


class CgroupPlace(NamedTuple):
    """The folders in which the cgroup of a script can be made: one per hierarchy, of which version 2 has one."""

    version: int
    folders: tuple[str, ...]


class Cgroup(NamedTuple):
    """The cgroup of one script; `folders` has the one with the memory limit first."""

    version: int
    folders: tuple[str, ...]

    @property
    def entrances(self) -> tuple[str, ...]:
        """The files to which a process with one thread writes `0` to move itself here."""
        return tuple(f"{folder}/tasks" for folder in self.folders) if self.version == 1 else ()

    def holds(self, processes: Iterable[int]) -> bool:
        """Return True if all these processes are in the cgroup."""
        return all(set(processes) <= set(_processes(folder)) for folder in self.folders)

    def exceeded_memory(self) -> bool:
        """Return True if the kernel ended a process because the memory of the cgroup was used up."""
        fields = _read(f"{self.folders[0]}/{_NAMES[self.version].events}").split()
        return any(name == "oom_kill" and number != "0" for name, number in pairwise(fields))

    def remove(self) -> None:
        """Kill what is left in the cgroup and remove it; one that cannot be removed now is swept later."""
        end = time.monotonic() + _REMOVE_SECONDS
        for folder in self.folders:
            while not _removed(folder) and time.monotonic() < end:
                for process in _processes(folder):
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(process, signal.SIGKILL)
                time.sleep(0.005)


def make_cgroup(processes: Sequence[int], *, memory: int, pids: int) -> Cgroup | None:
    """Put some processes into a new cgroup with these limits; return None where none can be had."""
    if not _SYSTEMD_REFUSED and files.kind_at("/run/systemd/system") == "folder":
        if cgroup := _systemd_scope(processes, memory=memory, pids=pids):
            return cgroup
        _SYSTEMD_REFUSED.append(True)
    for place in cgroup_places(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup")):
        cgroup = _make_empty(place, memory=memory, pids=pids)
        if cgroup is None:
            continue
        try:
            _fill(cgroup, processes)
        except OSError:
            cgroup.remove()
        else:
            return cgroup
    return None


def prepare_cgroup(*, memory: int, pids: int) -> Cgroup | None:
    """Make a cgroup with these limits for processes that move themselves into it; return None where none can.

    A process that is moved by another waits until every processor has passed a quiet moment, which takes 10 to 30
    milliseconds. With version 1 one that moves itself does not. Where version 1 counts memory, version 2 cannot.
    """
    for place in cgroup_places(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup")):
        if place.version == 1 and (cgroup := _make_empty(place, memory=memory, pids=pids)):
            return cgroup
    return None


def _make_empty(place: CgroupPlace, *, memory: int, pids: int) -> Cgroup | None:
    """Make a cgroup with these limits; return None if it is not ours to make, or has not these controllers."""
    sweep_cgroups(place)
    name = f"{_PREFIX}{os.urandom(8).hex()}"
    cgroup = Cgroup(place.version, tuple(f"{folder}/{name}" for folder in place.folders))
    try:
        _limit(cgroup, place, memory=memory, pids=pids)
    except OSError:
        cgroup.remove()
        return None
    return cgroup


def sweep_cgroups(place: CgroupPlace, *, idle: float = _IDLE_SECONDS) -> None:
    """Remove the empty cgroups of runs whose owner was killed."""
    for parent in place.folders:
        for name in _children(parent):
            folder = f"{parent}/{name}"
            with suppress(OSError):
                if name.startswith(_PREFIX) and time.time() - os.stat(folder).st_mtime >= idle:
                    # One with processes in it cannot be removed.
                    os.rmdir(folder)


# Places ------------------------------------------------------------------------------------------------


def cgroup_places(mounts: str, own: str) -> Iterator[CgroupPlace]:
    """Yield where a cgroup may be made, from the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`.

    With version 2 a cgroup that limits memory holds either processes or other cgroups. We are in ours, so that of the
    script is made beside it.
    """
    paths = dict(_own_paths(own))
    hierarchies = list(_hierarchies(mounts))
    for kind, _, point, root in hierarchies:
        if kind == "cgroup2" and (folder := _mounted(point, root, paths.get(""))):
            for parent in (os.path.dirname(folder), folder):
                if files.is_inside(parent, point):
                    yield CgroupPlace(2, (parent,))
    first = {
        name: folder
        for kind, options, point, root in hierarchies
        for name in _CONTROLLERS
        if kind == "cgroup" and name in options and (folder := _mounted(point, root, paths.get(name)))
    }
    if len(first) == len(_CONTROLLERS):
        yield CgroupPlace(1, tuple(dict.fromkeys(first[name] for name in _CONTROLLERS)))


def _own_paths(text: str) -> Iterator[tuple[str, str]]:
    """Yield each controller with our path in its hierarchy; that of version 2 is named by an empty text."""
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        yield from ((name, path) for name in names.split(","))


def _hierarchies(mounts: str) -> Iterator[tuple[str, list[str], str, str]]:
    """Yield the kind of each mounted hierarchy, its options, its mount point, and its root there."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, point = before.split(" ")[3:5]
            yield kind, options.split(","), point, root


def _mounted(point: str, root: str, path: str | None) -> str | None:
    """Return the folder of a cgroup below a mount point, or None if it lies outside of what is mounted."""
    if path is None or not files.is_inside(path, root) or ".." in path.split("/"):
        return None
    return os.path.normpath(f"{point}/{os.path.relpath(path, root)}")


# A new cgroup ------------------------------------------------------------------------------------------


def _limit(cgroup: Cgroup, place: CgroupPlace, *, memory: int, pids: int) -> None:
    """Make the folders of a cgroup and set its limits; raise OSError if a step fails."""
    if cgroup.version == 2:
        _enable(place.folders[0])
    for folder in cgroup.folders:
        os.mkdir(folder)
    names = _NAMES[cgroup.version]
    append(f"{cgroup.folders[0]}/{names.memory}", b"%d" % memory)
    for name, value in ((names.swap, memory if names.swap_of == "memory" else 0), ("memory.oom.group", 1)):
        # A kernel without swap accounting has no such file, nor has version 1 the second.
        with suppress(FileNotFoundError):
            append(f"{cgroup.folders[0]}/{name}", b"%d" % value)
    append(f"{cgroup.folders[-1]}/pids.max", b"%d" % pids)


def _fill(cgroup: Cgroup, processes: Sequence[int]) -> None:
    """Move the processes into a cgroup; raise OSError if one cannot be moved."""
    for folder in cgroup.folders:
        for process in processes:
            append(f"{folder}/cgroup.procs", b"%d" % process)
    if not cgroup.holds(processes):
        raise ProcessLookupError


def _enable(parent: str) -> None:
    """Let the cgroups below a folder have limits."""
    if not set(_CONTROLLERS) <= set(_read(f"{parent}/cgroup.subtree_control").split()):
        append(f"{parent}/cgroup.subtree_control", " ".join(f"+{name}" for name in _CONTROLLERS).encode())


def _processes(folder: str) -> list[int]:
    """Return the processes of a cgroup; those of another process namespace have the number 0 and are left out."""
    return [int(number) for number in _read(f"{folder}/cgroup.procs").split() if number != "0"]


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _children(folder: str) -> list[str]:
    try:
        descriptor = files.open_folder(folder)
    except OSError:
        return []
    try:
        return [name for name, is_folder in files.entries_in(descriptor) if is_folder]
    finally:
        files.close(descriptor)


def _read(path: str) -> str:
    """Return the text of a file of the kernel; empty if it is not there."""
    try:
        return (files.read_file(path, limit=_READ_BYTES, links="never") or b"").decode("utf-8", "surrogateescape")
    except OSError:
        return ""


# systemd -----------------------------------------------------------------------------------------------


def _systemd_scope(processes: Sequence[int], *, memory: int, pids: int) -> Cgroup | None:
    """Let systemd move the processes into a scope: the only way where our cgroup was not delegated to us."""
    import subprocess

    busctl = find_program("busctl")
    if busctl is None:
        return None
    name = f"{_PREFIX}{os.urandom(8).hex()}.scope"
    service = "org.freedesktop.systemd1"
    command = [busctl, "--system" if os.geteuid() == 0 else "--user", "--no-pager", "call", service]
    command += [f"/{service.replace('.', '/')}", f"{service}.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))"]
    properties = [("PIDs", "au", str(len(processes)), *map(str, processes)), ("CollectMode", "s", "inactive-or-failed")]
    properties += [("MemoryMax", "t", str(memory)), ("MemorySwapMax", "t", "0"), ("TasksMax", "t", str(pids))]
    command += [name, "fail", str(len(properties)), *(word for item in properties for word in item), "0"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SYSTEMD_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # The call returns before the processes have been moved.
    end = time.monotonic() + _SYSTEMD_SECONDS
    while done.returncode == 0 and time.monotonic() < end:
        if cgroup := _scope_of(processes, name):
            return cgroup if _limit_of(cgroup) <= memory else None
        time.sleep(0.005)
    return None


def _scope_of(processes: Sequence[int], name: str) -> Cgroup | None:
    """Return the cgroup of a scope if all these processes are in it."""
    path = dict(_own_paths(_read(f"/proc/{processes[0]}/cgroup"))).get("", "")
    for kind, _, point, root in _hierarchies(_read("/proc/self/mountinfo")):
        folder = _mounted(point, root, path)
        if kind == "cgroup2" and os.path.basename(path) == name and folder is not None:
            cgroup = Cgroup(2, (folder,))
            return cgroup if cgroup.holds(processes) else None
    return None


def _limit_of(cgroup: Cgroup) -> float:
    text = _read(f"{cgroup.folders[0]}/{_NAMES[2].memory}").strip()
    return int(text) if text.isdecimal() else float("inf")
