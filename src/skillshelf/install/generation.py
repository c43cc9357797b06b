"""Keep the generations of a scope: what was installed after each change, and which one counts now.

A generation is a file that is never changed. The link `current` names the one that counts; turning it is one rename.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from skillshelf.catalog.lock import LockedSkill, parse_lock
from skillshelf.config.settings import Wish
from skillshelf.core import files
from skillshelf.core.disk_writes import make_own_folder, remove, replace_file, switch_link, sync_folder
from skillshelf.core.limits import CONFIG_BYTES, GENERATIONS_KEPT, LOCK_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.validation import validate
from skillshelf.errors import ConfigurationError
from skillshelf.install.scope import InstallScope

__all__ = [
    "GENERATION_VERSION",
    "Generation",
    "UnusableGeneration",
    "current_generation",
    "generation_numbers",
    "generations",
    "make_current",
    "new_generation",
    "read_generation",
    "remove_generation",
    "remove_old_generations",
    "sweep_history",
    "write_generation",
]

GENERATION_VERSION = 1

_FOLDER = "generations"
_CURRENT = "current"
_UNFINISHED = re.compile(r"\.([0-9]+)-[0-9a-f]{8}\.new$")
_NAME = re.compile(r"(0|[1-9][0-9]{0,8})\.json")
# A lock and a file of wishes are texts in it, which JSON makes up to six times as long.
_BYTES = 6 * (LOCK_BYTES + CONFIG_BYTES)


class Generation(NamedTuple):
    """The skills that were installed after one change, and its label; the first one is the state before any.

    `lock` is the text of the lock, None if there was none. `wishes_text` is the file of wishes of a project; the
    user's has settings besides, which are nobody's to bring back. `before` is the generation that counted until then.
    """

    number: int
    label: str
    at: str
    root: str
    lock: str | None
    wishes: tuple[Wish, ...]
    wishes_text: str | None
    before: int | None

    @property
    def skills(self) -> Mapping[str, LockedSkill]:
        """The installed skills by name."""
        if self.lock is None:
            return {}
        return parse_lock(self.lock.encode(), f"generation {self.number}")


class UnusableGeneration(ConfigurationError):
    """A generation that is damaged or of a newer version: nothing in it counts, and it is never written over."""


def new_generation(
    number: int, label: str, scope: InstallScope, lock: bytes | None, wishes: bytes | None, *, before: int | None
) -> Generation:
    """Return the generation of a scope with this lock and this file of wishes."""
    from skillshelf.install.wishes import wishes_in

    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    listed = wishes_in(wishes, scope.wishes_path) if wishes is not None else ()
    text = wishes.decode() if wishes is not None and scope.kind == "project" else None
    lock_text = lock.decode() if lock is not None else None
    return Generation(number, label, at, scope.root, lock_text, listed, text, before)


def generation_numbers(history: str) -> list[int]:
    """Return the numbers of the generations in a folder, sorted."""
    try:
        names = files.stamps_in(f"{history}/{_FOLDER}")
    except FileNotFoundError:
        return []
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def generations(scope: InstallScope) -> list[Generation]:
    """Return the generations of a scope, the oldest first; raise UnusableGeneration."""
    return [read_generation(scope.history, number) for number in generation_numbers(scope.history)]


def current_generation(history: str) -> int | None:
    """Return the number of the generation that counts, or None if there is none."""
    path = f"{history}/{_CURRENT}"
    if files.kind_at(path) != "link":
        return None
    found = _NAME.fullmatch(files.link_target(path).removeprefix(f"{_FOLDER}/"))
    return int(found[1]) if found else None


def make_current(history: str, number: int) -> None:
    """Let a generation count from now on: this rename is the moment at which a change is done."""
    switch_link(f"{history}/{_CURRENT}", f"{_FOLDER}/{number}.json")


def read_generation(history: str, number: int) -> Generation:
    """Return one generation; raise UnusableGeneration."""
    path = f"{history}/{_FOLDER}/{number}.json"
    try:
        data = files.read_file(path, limit=_BYTES, links="never")
        value = json.loads(data or b"")
    except OSError as error:
        raise UnusableGeneration(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UnusableGeneration(f"{path}: not a generation") from None
    version = value.get("version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > GENERATION_VERSION:
        raise UnusableGeneration(
            f"{path}: version {version} is of a newer skillshelf (this one reads {GENERATION_VERSION})"
        )
    members = {key: member for key, member in value.items() if key != "version"} if isinstance(value, dict) else {}
    if version != GENERATION_VERSION or validate(members, Generation) or members["number"] != number:
        raise UnusableGeneration(f"{path}: not a generation")
    wishes = tuple(Wish(**{**wish, "hosts": tuple(wish.get("hosts", ()))}) for wish in members["wishes"])
    return Generation(**{**members, "wishes": wishes})


def write_generation(history: str, generation: Generation) -> None:
    """Write a generation to the disk; it counts only once it is made the current one."""
    folder = f"{history}/{_FOLDER}"
    make_own_folder(folder)
    members: dict[str, Any] = {**generation._asdict(), "wishes": [wish._asdict() for wish in generation.wishes]}
    text = json.dumps({"version": GENERATION_VERSION, **members}, indent=1)
    replace_file(f"{folder}/{generation.number}.json", f"{text}\n".encode())
    sync_folder(folder)


def sweep_history(history: str) -> None:
    """Remove what killed processes had begun to write in the folder of a scope."""
    for folder in (history, f"{history}/{_FOLDER}"):
        with suppress(OSError):
            for name in files.stamps_in(folder):
                found = _UNFINISHED.search(name)
                if found and files.kind_at(f"/proc/{found[1]}") is None:
                    remove(f"{folder}/{name}")


def remove_generation(history: str, number: int) -> None:
    """Remove a generation that does not count."""
    remove(f"{history}/{_FOLDER}/{number}.json")


def remove_old_generations(history: str) -> None:
    """Remove all but the last generations, and never the one that counts."""
    current = current_generation(history)
    for number in generation_numbers(history)[:-GENERATIONS_KEPT]:
        if number != current:
            remove_generation(history, number)
