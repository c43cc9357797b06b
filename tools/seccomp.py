"""Compile the seccomp filters of scripts: `python tools/seccomp.py` writes one for each machine type.

The list of Flatpak (`setup_seccomp` in common/flatpak-run.c) is the model. What is refused here and not there: every
namespace flag of `clone`, memory that has no name (`memfd_create`, System V), `io_uring`, calls that a script without
privileges has no use for, families of sockets beyond local, IP and routing, and calls newer than this list.
Needs `pip install 'skillshelf[lint]'` and libseccomp.
"""

import ctypes
import errno
import struct
import sys
import tempfile
from collections.abc import Iterable, Mapping
from ctypes.util import find_library
from pathlib import Path
from typing import Any, NamedTuple

from skillshelf.sandbox.seccomp import MACHINES, filter_path

__all__ = ["LIBSECCOMP", "NEWEST", "compiled", "libseccomp_version"]

LIBSECCOMP = (2, 5, 4)
"""The version whose output is in the repository; another one may order the instructions differently."""

NEWEST = 450
"""The highest number of a call that this list has judged (Linux 5.17); newer ones answer ENOSYS, as an older kernel
would, and programs fall back."""

_NO_SUCH_CALL = (
    # Programs use the older calls instead, whose arguments a filter can see.
    *("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    # Memory without a name, which counts for nobody while its descriptor is in a socket.
    *("memfd_create", "memfd_secret"),
)
_REFUSED = (
    # Keys of the user.
    *("add_key", "keyctl", "request_key"),
    # Namespaces and mounts.
    *("unshare", "setns", "chroot", "pivot_root", "mount", "umount2", "mount_setattr", "move_mount"),
    *("open_tree", "fsopen", "fsconfig", "fsmount", "fspick"),
    # Files by something else than their path.
    *("name_to_handle_at", "open_by_handle_at"),
    # Other processes.
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"),
    # Parts of the kernel with many flaws so far, and code inside the kernel.
    *("bpf", "perf_event_open", "userfaultfd", "fanotify_init", "lookup_dcookie", "modify_ldt"),
    *("init_module", "finit_module", "delete_module", "create_module", "query_module", "get_kernel_syms"),
    *("kexec_load", "kexec_file_load"),
    # System V memory, messages and semaphores outlive the process that made them, and count for nobody.
    *("shmget", "shmat", "shmctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("semget", "semop", "semtimedop", "semctl"),
    # Placement of memory on nodes.
    *("mbind", "get_mempolicy", "set_mempolicy", "set_mempolicy_home_node", "migrate_pages", "move_pages"),
    # Administration of the machine.
    *("acct", "quotactl", "quotactl_fd", "reboot", "sethostname", "setdomainname", "swapon", "swapoff", "syslog"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "iopl", "ioperm", "vhangup"),
    # Calls that no program makes any more.
    *("_sysctl", "nfsservctl", "sysfs", "uselib"),
)


class Condition(NamedTuple):
    """A comparison of one argument; with a `mask`, of these of its bits only."""

    argument: int
    operator: str
    value: int
    mask: int = 0


_NAMESPACES = (0x0002_0000, *(0x0200_0000 << bit for bit in range(6)))
_TERMINAL_INPUT = (0x5412, 0x541C)
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_ROUTE = 0

_CONDITIONAL: tuple[tuple[str, int, tuple[Condition, ...]], ...] = (
    *(("clone", errno.EPERM, (Condition(0, "MASKED_EQ", flag, flag),)) for flag in _NAMESPACES),
    # TIOCSTI and TIOCLINUX type into the terminal. The kernel looks at 32 bits of the number.
    *(("ioctl", errno.EPERM, (Condition(1, "MASKED_EQ", code, 0xFFFF_FFFF),)) for code in _TERMINAL_INPUT),
    # Families are compared as 64 bits: a value with more than 32 is above all of them and refused.
    *(
        ("socket", errno.EAFNOSUPPORT, (Condition(0, "EQ", family),))
        for family in range(_NETLINK)
        if family not in (_UNIX, _INET, _INET6)
    ),
    ("socket", errno.EAFNOSUPPORT, (Condition(0, "GT", _NETLINK),)),
    # A program asks the routing family for its own addresses; the others configure the kernel.
    ("socket", errno.EPERM, (Condition(0, "EQ", _NETLINK), Condition(2, "NE", _ROUTE))),
    ("socketpair", errno.EAFNOSUPPORT, (Condition(0, "NE", _UNIX),)),
)


def compiled(machine: str) -> bytes:
    """Return the filter for a machine type."""
    import pyseccomp

    arch = getattr(pyseccomp.Arch, machine.upper())
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    if not rules.exist_arch(arch):
        rules.add_arch(arch)
        rules.remove_arch(pyseccomp.system_arch())
    # A process of another machine type (i386, 32-bit ARM) cannot do anything, so it ends.
    rules.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.KILL_PROCESS)
    plain: Mapping[int, Iterable[str]] = {errno.ENOSYS: _NO_SUCH_CALL, errno.EPERM: _REFUSED}
    found = [(name, number, ()) for number, names in plain.items() for name in names]
    for name, number, conditions in (*found, *_CONDITIONAL):
        # A call may not exist on this machine type.
        if pyseccomp.resolve_syscall(arch, name) >= 0:
            compared = [_argument(pyseccomp, condition) for condition in conditions]
            rules.add_rule(pyseccomp.ERRNO(number), name, *compared)
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return _prologue(arch, pyseccomp.resolve_syscall(arch, "personality")) + file.read()


def _argument(pyseccomp: Any, condition: Condition) -> Any:
    operator = getattr(pyseccomp, condition.operator)
    values = (condition.mask, condition.value) if condition.mask else (condition.value,)
    return pyseccomp.Arg(condition.argument, operator, *values)


_LOAD, _EQUAL, _GREATER, _RETURN = 0x20, 0x15, 0x25, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
_ERRNO, _ALLOW = 0x0005_0000, 0x7FFF_0000


def _prologue(arch: int, personality: int) -> bytes:
    """Return instructions for what libseccomp cannot express; those of libseccomp follow.

    Only the ordinary personality can be chosen, and the current one asked for. Calls above `NEWEST` do not exist;
    these are also all calls of the x32 kind, which have a bit of their own.
    """
    instructions = (
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 0, 9, arch),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, NEWEST),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_EQUAL, 0, 5, personality),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 2, 0, 0),
        (_EQUAL, 1, 0, 0xFFFF_FFFF),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in instructions)


class _Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint), ("minor", ctypes.c_uint), ("micro", ctypes.c_uint))


def libseccomp_version() -> tuple[int, int, int]:
    """Return the version of the library that compiles here."""
    library = ctypes.CDLL(find_library("seccomp"))
    library.seccomp_version.restype = ctypes.POINTER(_Version)
    version = library.seccomp_version().contents
    return version.major, version.minor, version.micro


def main() -> int:
    """Write all filters; return the exit status."""
    if libseccomp_version() != LIBSECCOMP:
        print(f"this is libseccomp {libseccomp_version()}, not {LIBSECCOMP}", file=sys.stderr)
        return 1
    for machine in MACHINES:
        Path(filter_path(machine)).write_bytes(compiled(machine))
    return 0


if __name__ == "__main__":
    sys.exit(main())
