"""Name the parts of the sandbox, and refuse a run that lacks a part which the policy requires."""

from collections.abc import Iterable, Mapping

from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Wall
from skillshelf.errors import PermissionDenied

__all__ = ["WALLS", "WallPurpose", "check_required", "described", "in_order"]


class WallPurpose(NamedTuple):
    """The description of a part of the sandbox: what it does, and how to get it where it is missing."""

    does: str
    remedy: str


WALLS: Mapping[Wall, WallPurpose] = {
    "bubblewrap": WallPurpose(
        "separate files, processes and network", "install bubblewrap and allow it to create namespaces"
    ),
    "seccomp": WallPurpose(
        "system calls that a script does not need are refused",
        "use Linux on x86_64 or aarch64, and leave `permissions.run.seccomp` on",
    ),
    "userns": WallPurpose(
        "a script cannot create a user namespace, in which it would have all privileges",
        "leave `permissions.run.seccomp` on, or install bubblewrap 0.8 or later",
    ),
    "cgroup": WallPurpose(
        "the kernel counts memory and processes of the whole run", "run in a systemd session or a delegated cgroup"
    ),
    "tmpfs": WallPurpose("the folders that a script can write to have a fixed size", "install bubblewrap 0.7 or later"),
    "keyring": WallPurpose(
        "a script has a kernel keyring of its own, not that of the user", "use a kernel with keyrings (CONFIG_KEYS)"
    ),
}
"""Every part, in the order in which they are shown."""


def in_order(missing: Iterable[Wall]) -> tuple[Wall, ...]:
    """Return each missing part once, in the order of the table."""
    names = set(missing)
    return tuple(name for name in WALLS if name in names)


def described(missing: Iterable[str]) -> str:
    """Return the missing parts and what each would do, in one line."""
    names = set(missing)
    return ", ".join(f"{name} ({purpose.does})" for name, purpose in WALLS.items() if name in names)


def check_required(missing: Iterable[Wall], required: Iterable[Wall]) -> None:
    """Raise PermissionDenied if a required part is missing; called before the script starts."""
    names = set(required)
    if absent := [name for name in in_order(missing) if name in names]:
        reasons = "; ".join(f"{name} ({WALLS[name].does}; to get it: {WALLS[name].remedy})" for name in absent)
        raise PermissionDenied(f"the policy requires a part of the sandbox that is missing: {reasons}")
