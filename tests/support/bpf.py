"""Run a compiled seccomp filter on a system call without a kernel, as the kernel would."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

ALLOW = "allow"
KILL = "kill"

X86_64 = 0xC000003E
AARCH64 = 0xC00000B7
I386 = 0x40000003
ARM = 0x40000028

_JUMPS: Mapping[int, Callable[[int, int], bool]] = {
    0x15: lambda value, operand: value == operand,
    0x25: lambda value, operand: value > operand,
    0x35: lambda value, operand: value >= operand,
    0x45: lambda value, operand: bool(value & operand),
}


def answer_of(program: bytes, arch: int, number: int, arguments: Sequence[int] = ()) -> int | str:
    """The answer of a filter: `ALLOW`, `KILL`, or the number of an error."""
    words = [*arguments, *[0] * 6][:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFF_FFFF, arch, 0, *(word & (1 << 64) - 1 for word in words))
    value = at = 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("<HBBI", program, 8 * at)
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:
            value &= operand
        elif code == 0x05:
            at += operand
        elif code in _JUMPS:
            at += if_true if _JUMPS[code](value, operand) else if_false
        elif code == 0x06:
            return _action(operand)
        else:
            raise AssertionError(f"an unknown instruction {code:#x}")


def _action(value: int) -> int | str:
    kind, detail = value & 0xFFFF_0000, value & 0xFFFF
    if kind == 0x0005_0000:
        return detail
    return {0x7FFF_0000: ALLOW, 0x8000_0000: KILL}[kind]
