"""Measure what a running script takes, and tell which limit it exceeds.

The kernel holds the limits of a cgroup and the size of a file system. What neither covers is measured ten times a
second: the memory of each process, the files on the disk, and the memory that belongs to no process.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from skillshelf.core import files
from skillshelf.core.disk_writes import DiskUse, append, disk_use, free_bytes, unlinked_files
from skillshelf.core.limits import (
    RUN_ARTIFACT_BYTES,
    RUN_FILE_BYTES,
    RUN_MEMORY_BYTES,
    RUN_OPEN_FILES,
    RUN_OUTPUT_BYTES,
    RUN_PROCESSES,
    RUN_SECONDS,
    RUN_WORK_BYTES,
    RUN_WORK_FILES,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Wall
from skillshelf.sandbox.cgroup import Cgroup, make_cgroup, prepare_cgroup
from skillshelf.sandbox.reaper import descendants
from skillshelf.sandbox.scripts import RunFolder
from skillshelf.sandbox.storage import Storage, close_storage, open_storage, size_of_open_storage, storage_use

__all__ = ["RunLimits", "ScriptUsage"]

_OWN_PROCESSES = 1
"""Processes in the cgroup besides those of the script: the first of the sandbox, or the reaper."""

_OUTER_PROCESSES = 1
"""Processes that are also there if they moved themselves: the one that made the sandbox."""

_KERNEL_FACTOR = 2
"""The kernel's own memory may grow by this many times the limit: other programs take some of it, too."""

_OOM_FIRST = b"1000"
"""Where the machine runs out of memory, the kernel ends a script before any other program."""

_PROC_FILE_BYTES = 8 * 1024 * 1024


class RunLimits(NamedTuple):
    """The limits of a script: `output_bytes` of each stream, `memory_bytes` of each process and of all together."""

    seconds: float = RUN_SECONDS
    output_bytes: int = RUN_OUTPUT_BYTES
    artifact_bytes: int = RUN_ARTIFACT_BYTES
    memory_bytes: int = RUN_MEMORY_BYTES
    file_bytes: int = RUN_FILE_BYTES
    work_bytes: int = RUN_WORK_BYTES
    work_files: int = RUN_WORK_FILES
    processes: int = RUN_PROCESSES
    open_files: int = RUN_OPEN_FILES


class ScriptUsage:
    """The use of resources by one script, which writes to `places` in its sandbox.

    `prepare` comes before its processes are made, `attach` before it starts, and the end of `with` after its files were
    taken.
    """

    storage: Storage | None = None

    def __init__(
        self, limits: RunLimits, paths: RunFolder, places: Sequence[str], *, without: Collection[Wall] = ()
    ) -> None:
        self._limits = limits
        self._paths = paths
        self._places = places
        self._without = without
        self._cgroup: Cgroup | None = None
        self._root = 0
        self._free = free_bytes(paths.path)
        self._before = MachineMemory(0, 0)

    def prepare(self) -> tuple[str, ...]:
        """Make a cgroup for a sandbox; return the files to which its first process writes `0` to move itself there."""
        if "cgroup" not in self._without:
            pids = self._limits.processes + _OWN_PROCESSES + _OUTER_PROCESSES
            self._cgroup = prepare_cgroup(memory=self._memory, pids=pids)
        return () if self._cgroup is None else self._cgroup.entrances

    @property
    def _memory(self) -> int:
        # What is in the file systems counts as memory.
        return self._limits.memory_bytes + (0 if self._paths.size is None else self._limits.work_bytes)

    def attach(self, root: int, waiting: int | None = None) -> tuple[Wall, ...]:
        """Put a process and its descendants behind the walls, before it runs the script; return those it lacks.

        `waiting` is its only descendant, if that is known: to look for it takes as long as the machine has processes.
        """
        self._root = root
        processes = [root, *(descendants(root) if waiting is None else [waiting])]
        for process in processes:
            # Not on every system, and then without.
            with suppress(OSError):
                append(f"/proc/{process}/oom_score_adj", _OOM_FIRST)
        if self._paths.size is not None:
            self.storage = open_storage(root, self._places, size=self._paths.size, user=self._paths.user)
        if self._cgroup is not None and not self._cgroup.holds(processes):
            self._cgroup.remove()
            self._cgroup = None
        if self._cgroup is None and "cgroup" not in self._without:
            self._cgroup = make_cgroup(processes, memory=self._memory, pids=self._limits.processes + _OWN_PROCESSES)
        if self._cgroup is None:
            self._before = machine_memory()
        return (*(() if self._cgroup else ("cgroup",)), *(() if self.storage else ("tmpfs",)))

    def __enter__(self) -> "ScriptUsage":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._cgroup is not None:
            self._cgroup.remove()
        if self.storage is not None:
            close_storage(self.storage)

    def excess(self) -> str | None:
        """Return the limit that the script exceeds, or None."""
        limits = self._limits
        if self._cgroup is not None and self.storage is not None:
            # The kernel holds both limits.
            return self.ended() or self._disk_excess(0)
        processes = descendants(self._root)
        usage = usage_of(processes)
        if self._cgroup is None and (reason := self._memory_excess(processes, usage)):
            return reason
        if usage.nameless > limits.work_bytes:
            return f"it held more than {limits.work_bytes} bytes in unnamed or deleted files"
        return self.ended() or self._disk_excess(0 if self.storage else usage.nameless)

    def ended(self) -> str | None:
        """Return the limit for which the kernel ended a process, or None."""
        exceeded = self._cgroup is not None and self._cgroup.exceeded_memory()
        return f"it took more than {self._limits.memory_bytes} bytes of memory" if exceeded else None

    def _memory_excess(self, processes: Sequence[int], usage: "ProcessUsage") -> str | None:
        limits = self._limits
        if usage.threads > limits.processes:
            return f"it had more than {limits.processes} processes at one time"
        in_files = 0 if self.storage is None else storage_use(self.storage).size
        # Pages that several processes share are counted for each of them at first, which is quicker.
        if usage.memory > limits.memory_bytes and _shares_of(processes, in_files) > limits.memory_bytes:
            return f"it took more than {limits.memory_bytes} bytes of memory"
        return self._machine_excess()

    def _machine_excess(self) -> str | None:
        """Return the reason if memory that belongs to no process grew too much since the start."""
        now, limit = machine_memory(), self._limits.memory_bytes
        # What others took before is given back slowly, so the lowest number is the one to compare with.
        self._before = MachineMemory(*map(min, self._before, now))
        for grown, most, name in (
            (now.shared - self._before.shared, limit, "shared memory"),
            (now.kernel - self._before.kernel, _KERNEL_FACTOR * limit, "kernel memory"),
        ):
            if grown > most:
                return (
                    f"the {name} of this machine grew by {grown} bytes while it ran, more than its limit of {most}; "
                    "without a cgroup nobody can tell whether another program took it"
                )
        return None

    def _disk_excess(self, nameless: int) -> str | None:
        limits = self._limits
        if self.storage is not None:
            use = storage_use(self.storage)
        else:
            uses = [disk_use(path, limits.work_files) for path in self._paths.writable]
            use = DiskUse(sum(use.size for use in uses), sum(use.entries for use in uses), all(u.whole for u in uses))
        if not use.whole and self._free - free_bytes(self._paths.path) > limits.work_bytes:
            return f"it hid its files, and more than {limits.work_bytes} bytes of disk space are used"
        if use.size + nameless > limits.work_bytes:
            return f"it wrote more than {limits.work_bytes} bytes to disk"
        if use.entries > limits.work_files:
            return f"it made more than {limits.work_files} files"
        return None


# Processes ---------------------------------------------------------------------------------------------


class ProcessUsage(NamedTuple):
    """The number of threads, bytes of memory, and bytes in open files without a name: removed files and files in
    memory."""

    threads: int
    memory: int
    nameless: int


_MEMORY_LINES = ("RssAnon:", "RssShmem:", "VmPTE:", "VmSwap:", "HugetlbPages:")
"""The memory that a process takes for itself, its page tables included: a program can make these large without any
page. It can also send its pages to the swap space by itself."""


def usage_of(processes: Iterable[int]) -> ProcessUsage:
    """Return the total usage of some processes."""
    threads = memory = 0
    nameless: dict[tuple[int, int], int] = {}
    for process in processes:
        nameless |= unlinked_files(process)
        for name, number in _numbers(f"/proc/{process}/status"):
            if name == "Threads:":
                threads += number
            elif name in _MEMORY_LINES:
                memory += 1024 * number
    return ProcessUsage(threads, memory, sum(nameless.values()))


def _shares_of(processes: Iterable[int], in_files: int) -> int:
    """Return the memory of some processes, each page counted once; `in_files` is counted as disk space already."""
    own = shared = 0
    for process in processes:
        shares = dict(_numbers(f"/proc/{process}/smaps_rollup"))
        status = dict(_numbers(f"/proc/{process}/status"))
        # The share of swap space also covers mapped files in memory, the other number does not.
        swapped = min(status.get("VmSwap:", 0), shares.get("SwapPss:", 0))
        own += 1024 * (shares.get("Pss_Anon:", 0) + swapped + status.get("VmPTE:", 0) + status.get("HugetlbPages:", 0))
        shared += 1024 * shares.get("Pss_Shmem:", 0)
    return own + max(0, shared - in_files)


def _numbers(path: str) -> Iterator[tuple[str, int]]:
    """Yield the lines of a file of the kernel that are a name and a number; none if the process has ended."""
    try:
        text = files.read_file(path, limit=_PROC_FILE_BYTES, links="never") or b""
    except OSError:
        return
    for line in text.decode("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) in (2, 3) and words[1].isdecimal():
            yield words[0], int(words[1])


# The machine -------------------------------------------------------------------------------------------


class MachineMemory(NamedTuple):
    """Bytes that belong to no process: shared memory outside of any file system that we see, and the kernel's own."""

    shared: int
    kernel: int


def machine_memory() -> MachineMemory:
    """Measure the memory that a script could hold where neither its processes nor its files show it.

    That is, for example, a shared mapping of which one page is still mapped, or data in sockets that nobody reads.
    """
    kibibytes = dict(_numbers("/proc/meminfo"))
    if "Shmem:" not in kibibytes:
        return MachineMemory(0, 0)
    mounts = files.read_file("/proc/self/mountinfo", limit=_PROC_FILE_BYTES, links="never") or b""
    named = sum(_tmpfs_uses(mounts)) + size_of_open_storage()
    processes_and_files = ("MemFree:", "AnonPages:", "Buffers:", "Cached:", "SwapCached:", "SReclaimable:")
    kernel = kibibytes["MemTotal:"] - sum(kibibytes.get(name, 0) for name in processes_and_files)
    # Each processor keeps a supply of free pages, which can be hundreds of megabytes. Where a container has numbers of
    # its own mounted there, they do not include it.
    zones = () if b" /proc/meminfo " in mounts else _numbers("/proc/zoneinfo")
    kept = sum(number for name, number in zones if name == "count:")
    return MachineMemory(1024 * kibibytes["Shmem:"] - named, 1024 * kernel - kept * os.sysconf("SC_PAGE_SIZE"))


def _tmpfs_uses(mounts: bytes) -> Iterator[int]:
    """Yield the use of every file system in memory that other programs write to."""
    seen = set()
    for line in mounts.splitlines():
        before, _, after = line.partition(b" - ")
        fields = before.split(b" ")
        if after.startswith(b"tmpfs ") and fields[2] not in seen:
            seen.add(fields[2])
            # Not one that a name with a blank hides, or another mount.
            with suppress(OSError):
                about = os.statvfs(fields[4])
                yield (about.f_blocks - about.f_bfree) * about.f_frsize
