"""Another process swaps parts of a skill for links while they are read: what lies outside never comes in.

Each race runs for a fraction of a second, or as long as SKILLSHELF_RACE_SECONDS says.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.races import swapping
from support.trees import Machine, write_skill

from skillshelf import Shelf, SkillError
from skillshelf.catalog.load import list_files

pytestmark = pytest.mark.slow

TOKEN = "token-that-must-stay-outside"
INSIDE = "what the author wrote"
SECONDS = float(os.environ.get("SKILLSHELF_RACE_SECONDS", "0.2"))


def lay_out(machine: Machine) -> tuple[Path, Path]:
    """The skill `inside`, and a folder outside that looks the same but holds the token in every text and name."""
    folders = []
    for root, text in ((machine.home / ".agents" / "skills", INSIDE), (machine.base / "outside", TOKEN)):
        folder = write_skill(root, "inside", f"---\nname: inside\ndescription: d\n---\n{text}\n").parent
        for path in ("references/style.md", f"references/{text}.md", "references/deep/more.md", f"{text}.md"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        folders.append(folder)
    return folders[0], folders[1]


READERS: dict[str, Callable[[Shelf], object]] = {
    "read a file": lambda shelf: shelf.read("skill://inside/references/style.md"),
    "read below a folder": lambda shelf: shelf.read("skill://inside/references/deep/more.md"),
    "read the skill": lambda shelf: shelf.read("skill://inside"),
    "list a folder": lambda shelf: shelf.read("skill://inside/references"),
    "load": lambda shelf: shelf.load("inside"),
    "load by path": lambda shelf: shelf.load(path=shelf.catalog.skills[0].path),
    "list files": lambda shelf: list_files(shelf.catalog.skills[0], most=512, most_bytes=None),
    "a tool call": lambda shelf: shelf.session().call("skill_load", {"name": "inside"}),
}

AFFECTED = {
    "references/style.md": {"read a file"},
    "references": {"read a file", "read below a folder", "list a folder"},
    "references/deep": {"read below a folder"},
    "SKILL.md": {"read the skill", "load", "load by path"},
    ".": {"read a file", "read below a folder", "read the skill", "list a folder", "load"},
}
"""The file that is swapped, and the readers that must have seen both states for the test to count."""


@pytest.mark.req("O-55")
@pytest.mark.parametrize("swapped", AFFECTED)
def test_nothing_from_outside_is_read_while_links_come_and_go(machine: Machine, swapped: str) -> None:
    inside, outside = lay_out(machine)
    shelf = machine.shelf()
    # The catalog is built before the race: only later reads may meet a swapped file.
    assert [skill.name for skill in shelf.catalog.skills] == ["inside"]
    met: Counter[tuple[str, str]] = Counter()
    needed = {(reader, state) for reader in AFFECTED[swapped] for state in ("served", "refused")}

    place, parked = inside / swapped, machine.base / "parked" / "copy"
    parked.parent.mkdir()
    if place.is_file():
        # A copy: putting a hard link in the place of its own file does nothing.
        parked.write_bytes(place.read_bytes())
    how = "replace" if place.is_file() else "rename"
    with swapping(place, inside=parked, outside=outside / swapped, how=how):
        end = time.monotonic() + SECONDS
        # The count only ends a run on a stuck machine.
        for _ in range(100_000):
            missing = {reader for reader, state in needed - met.keys()} if time.monotonic() > end else READERS.keys()
            if not missing:
                break
            for reader in missing:
                try:
                    output, state = repr(READERS[reader](shelf)), "served"
                except SkillError as refusal:
                    output, state = repr(refusal), "refused"
                assert TOKEN not in output
                met[reader, state] += 1

    assert needed <= met.keys()
