"""The parts of a rotated journal: when a new one begins, what they are called, and which there are.

A journal that is rotated takes the name `FILE.part-000001`, the next one `FILE.part-000002`; events go to a new `FILE`
that continues the chain. No part is renamed again.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from skillshelf.core import files
from skillshelf.core.limits import JOURNAL_PART_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError

__all__ = ["CONTINUED", "Rotation", "base_of", "is_part", "part_path", "parts_of", "rotation_of"]

CONTINUED = "journal_continued"
"""The type of the first line of every part but the first; it belongs to no session."""

_PART = r"\.part-([0-9]{6,12})"
_SIZE = r"([0-9]{1,15})(B|KB|MB|GB|KiB|MiB|GiB)"
_AGE = r"([0-9]{1,6})(h|d|w)"
_KEEP = r"keep=([0-9]{1,6})"
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_DAYS = {"h": 1 / 24, "d": 1, "w": 7}
_DAY_MS = 24 * 60 * 60 * 1000


class Rotation(NamedTuple):
    """When a journal begins a new part: at this size or age; and how many old parts are kept (default: all)."""

    max_bytes: int | None = None
    max_age_days: float | None = None
    keep: int | None = None

    @property
    def max_age_ms(self) -> float | None:
        """The age in milliseconds."""
        return None if self.max_age_days is None else self.max_age_days * _DAY_MS


def rotation_of(value: str | Mapping[str, Any] | Rotation | None) -> Rotation | None:
    """Return a rotation from a text such as `10MB,7d,keep=8` or from the keys of the configuration; None for none."""
    if value is None or isinstance(value, Rotation):
        return value
    members = _members(value) if isinstance(value, str) else dict(value)
    if unknown := sorted(members.keys() - set(Rotation._fields)):
        raise ConfigurationError(f"rotation has no {unknown[0]!r} (known: {', '.join(Rotation._fields)})")
    found = Rotation(**members)
    if found.max_bytes is None and found.max_age_days is None:
        raise ConfigurationError("a journal is rotated by size or age; name one, such as 10MB or 7d")
    if any(not _is_positive(number) for number in found if number is not None):
        raise ConfigurationError("max_bytes, max_age_days and keep are numbers above 0")
    if found.max_bytes is not None and found.max_bytes < JOURNAL_PART_BYTES:
        raise ConfigurationError(f"a part of a journal has at least JOURNAL_PART_BYTES ({JOURNAL_PART_BYTES:,}) bytes")
    return found


def _is_positive(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and number > 0


def _members(text: str) -> dict[str, Any]:
    """Return the members of a rotation in a text."""
    members: dict[str, Any] = {}
    for word in text.split(","):
        if size := re.fullmatch(_SIZE, word.strip()):
            members["max_bytes"] = int(size[1]) * _UNITS[size[2]]
        elif age := re.fullmatch(_AGE, word.strip()):
            members["max_age_days"] = int(age[1]) * _DAYS[age[2]]
        elif keep := re.fullmatch(_KEEP, word.strip()):
            members["keep"] = int(keep[1])
        else:
            raise ConfigurationError(
                f"{word.strip()[:50]!r} is no rotation; write a size, an age and keep=N: 10MB,7d,keep=8"
            )
    return members


def part_path(path: str, number: int) -> str:
    """Return the name of a part."""
    return f"{path}.part-{number:06d}"


def is_part(path: str) -> bool:
    """Return whether a path has the name of a part."""
    return re.search(_PART + "$", path) is not None


def base_of(path: str) -> str:
    """Return the journal that a part belongs to."""
    return re.sub(_PART + "$", "", path)


def parts_of(path: str) -> list[tuple[int, str]]:
    """Return the number and path of each part of a journal beside the journal itself, oldest first."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        descriptor = files.open_folder(folder)
    except OSError:
        return []
    try:
        names = files.names_in(descriptor)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    found = ((re.fullmatch(re.escape(name) + _PART, other), other) for other in names if other.startswith(name))
    return sorted((int(match[1]), f"{path}{other[len(name) :]}") for match, other in found if match)
