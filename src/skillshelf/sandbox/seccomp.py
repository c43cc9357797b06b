"""Give a script the seccomp filter of its machine type: system calls that it does not need are refused.

`tools/seccomp.py` holds the list of calls and compiles the filters.
"""

import os
import struct
import sys

from skillshelf.core import files

__all__ = ["MACHINES", "filter_path", "filter_problem", "load_filter"]

MACHINES = ("x86_64", "aarch64")
"""The machine types that have a filter."""

_INSTRUCTION = 8
_MOST_INSTRUCTIONS = 4096
"""The kernel takes no longer programs."""

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_EFAULT = 14


def filter_path(machine: str) -> str:
    """Return the path of the compiled filter for a machine type."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), f"seccomp-{machine}.bpf")


def filter_problem(
    platform: str = sys.platform, machine: str = os.uname().machine, bits: int = 8 * struct.calcsize("P")
) -> str | None:
    """Return the reason why scripts cannot be filtered on this machine, or None if they can."""
    if platform != "linux":
        return f"seccomp needs Linux, and this is {platform}"
    # Programs of 32 bits make other calls, even on a kernel of 64 bits.
    if machine not in MACHINES or bits != 64:
        return f"there is no filter for programs of {bits} bits on {machine}"
    if not os.path.isfile(filter_path(machine)):
        return "the filter is missing in this installation"
    if not _kernel_takes_filters():
        return "the kernel takes no seccomp filters"
    return None


def load_filter() -> bytes:
    """Return the filter for this machine, as the kernel takes it; raise OSError if it cannot be read."""
    path = filter_path(os.uname().machine)
    data = files.read_file(path, limit=_INSTRUCTION * _MOST_INSTRUCTIONS, links="follow")
    if not data or len(data) % _INSTRUCTION:
        raise OSError(f"{path} is no seccomp filter")
    return data


def _kernel_takes_filters() -> bool:
    try:
        import ctypes
    except ImportError:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    # A kernel that knows filters looks for one at this address; nothing is set.
    libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_void_p(None), 0, 0)
    return ctypes.get_errno() == _EFAULT
