"""A link put in the place of a file or folder while it is read: what lies outside never comes in.

Each race runs for a fraction of a second, or as long as SKILLSHELF_RACE_SECONDS says.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.races import swapping
from support.trees import Machine, write_skill

pytestmark = pytest.mark.slow

TOKEN = "token-that-must-stay-outside"
SECONDS = float(os.environ.get("SKILLSHELF_RACE_SECONDS", "0.2"))

RACES = ["file", "folder", "folder above", "root", "target of a link"]


def race_at(machine: Machine, race: str) -> dict[str, Path | str]:
    """Lay out the skill `inside`, and what is swapped for a link to the folder `outside`."""
    root = machine.repo / ".agents" / "skills"
    outside = write_skill(machine.base / "outside", "inside", f"---\nname: inside\ndescription: {TOKEN}\n---\n")
    parked = machine.base / "parked"
    parked.mkdir()
    if race == "file":
        place = write_skill(root, "inside")
        inside = Path(f"{parked}/SKILL.md")
        inside.write_bytes(place.read_bytes())
        return {"place": place, "inside": inside, "outside": outside, "how": "replace"}
    if race == "target of a link":
        root.mkdir(parents=True)
        real = write_skill(machine.repo / "tools", "inside").parent
        (root / "inside").symlink_to(real)
        (parked / "x").symlink_to(real)
        return {"place": root / "inside", "inside": real, "outside": outside.parent, "how": "relink"}
    if race == "folder above":
        place, target = write_skill(root / "group", "inside").parent.parent, outside.parent.parent
    elif race == "root":
        place, target = write_skill(root, "inside").parent.parent, outside.parent.parent
    else:
        place, target = write_skill(root, "inside").parent, outside.parent
    return {"place": place, "inside": parked / "inside", "outside": target, "how": "rename"}


@pytest.mark.parametrize("race", RACES)
def test_what_lies_outside_never_comes_into_the_catalog(machine: Machine, race: str) -> None:
    layout = race_at(machine, race)
    write_skill(machine.home / ".agents" / "skills", "good")
    shelf = machine.shelf()
    seen: set[tuple[str, ...]] = set()

    with swapping(**layout):  # type: ignore[arg-type]
        end = time.monotonic() + SECONDS
        # Both states must have been met, or nothing was shown; the count only ends a run on a stuck machine.
        for _ in range(200_000):
            catalog = shelf.scan()
            assert TOKEN not in repr(catalog)
            names = tuple(skill.name for skill in catalog.skills)
            assert names in (("good",), ("good", "inside"))
            seen.add(names)
            if time.monotonic() > end and len(seen) == 2:
                break

    assert seen == {("good",), ("good", "inside")}
