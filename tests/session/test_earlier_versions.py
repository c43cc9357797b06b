"""Journals, kept contents and snapshots that version 0.1 wrote are read by this version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.trees import Machine

import skillshelf
from skillshelf.journal.file import verify

FIXTURES = Path(__file__).parents[1] / "fixtures"
WRITTEN = FIXTURES / "version-0.1"


@pytest.fixture
def journal(machine: Machine) -> Path:
    """A journal of 0.1 with its kept contents, in a repository with the same skills."""
    for folder in (".agents", ".claude"):
        shutil.copytree(FIXTURES / "shelf" / folder, machine.repo / folder)
    shutil.copytree(WRITTEN, machine.base / "written")
    return machine.base / "written" / "run.jsonl"


def test_a_journal_of_an_earlier_version_verifies(journal: Path) -> None:
    found = verify(str(journal))

    assert (found.ok, found.lines) == (True, 139)


@pytest.mark.parametrize("kept", [True, False], ids=["kept contents", "the disk"])
def test_a_journal_of_an_earlier_version_replays_without_a_difference(
    machine: Machine, journal: Path, kept: bool
) -> None:
    replayed = skillshelf.replay(journal, cwd=machine.repo, home=machine.home, env={}, kept=kept)

    assert (replayed.differences, replayed.skipped, len(replayed.sessions)) == ((), (), 4)


def test_a_changed_skill_is_still_a_difference_for_a_journal_of_an_earlier_version(
    machine: Machine, journal: Path
) -> None:
    path = machine.repo / ".agents/skills/release-notes/SKILL.md"
    path.write_text(path.read_text() + "One more line.\n")

    replayed = skillshelf.replay(journal, cwd=machine.repo, home=machine.home, env={}, kept=False)

    assert replayed.differences


def test_a_snapshot_of_an_earlier_version_is_restored(machine: Machine, journal: Path) -> None:
    text = (journal.parent / "snapshot.json").read_text().replace("/srv/example/repo", str(machine.repo))
    snapshot = json.loads(text)

    restored = skillshelf.Session.restore(snapshot, machine.shelf(), policy="full-auto")

    assert restored.snapshot()["version"] == snapshot["version"]
    assert {ref: restored.recall(ref) for ref in snapshot["texts"]} == {
        ref: restored.recall(ref) for ref in restored.snapshot()["texts"]
    }
    assert set(restored.active) == {"colon", "release-notes"}
