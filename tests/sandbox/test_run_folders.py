"""The temporary folder of a run: who removes it, and what a sweep leaves alone."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from skillshelf.core.disk_writes import make_owned_folder, remove_owned_folder, sweep_owned_folders
from skillshelf.sandbox.scripts import make_staged_paths, remove_staged_paths

PREFIX = "skillshelf-run-"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for everything temporary."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def die(owner: int) -> None:
    """Do what the system does with the locks of a process that ends."""
    os.close(owner)


def test_the_next_run_removes_the_folders_of_dead_owners_and_no_others(place: Path) -> None:
    dead, living, kept, removed = (make_staged_paths(None) for _ in range(4))
    for paths in (dead, living, kept):
        Path(paths.work, "made").mkdir()
        Path(paths.work, "made", "file").write_text("")
        Path(paths.work, "made").chmod(0)
    die(dead.owner)
    work = remove_staged_paths(kept, keep_work=True)
    remove_staged_paths(removed, keep_work=False)

    now = make_staged_paths(None)

    assert work is not None
    assert {str(path) for path in place.iterdir()} == {living.path, os.path.dirname(work), now.path}
    assert os.listdir(os.path.dirname(work)) == ["work"]
    for paths in (living, now):
        remove_staged_paths(paths, keep_work=False)
    assert [str(path) for path in place.iterdir()] == [os.path.dirname(work)]


def test_a_sweep_touches_only_folders_of_our_own_making(place: Path) -> None:
    target = place / "target"
    (target / "skill").mkdir(parents=True)
    (target / "owner").write_text("")
    (place / f"{PREFIX}link").symlink_to(target)
    (place / f"{PREFIX}file").write_text("")
    (place / f"{PREFIX}0.1" / "work").mkdir(parents=True)
    (place / f"{PREFIX}odd" / "owner").mkdir(parents=True)
    (place / f"{PREFIX}empty").mkdir()
    before = {path.name for path in place.iterdir()}

    sweep_owned_folders(PREFIX, seconds=5)

    assert before - {path.name for path in place.iterdir()} == {f"{PREFIX}empty"}
    assert (target / "skill").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_swept(place: Path) -> None:
    folder = make_owned_folder(PREFIX)
    die(folder.owner)
    os.chown(folder.path, 12345, 12345)

    sweep_owned_folders(PREFIX, seconds=5)

    assert os.listdir(folder.path) == ["owner"]


def test_a_removal_that_was_cut_short_is_finished_by_a_sweep(place: Path) -> None:
    paths = make_staged_paths(None)
    os.rmdir(paths.skill)
    os.rmdir(paths.temporary)
    die(paths.owner)

    sweep_owned_folders(PREFIX, seconds=5)

    assert list(place.iterdir()) == []


def test_a_sweep_never_takes_the_folder_of_a_run_that_just_starts(place: Path) -> None:
    over = threading.Event()

    def sweep() -> None:
        while not over.is_set():
            sweep_owned_folders(PREFIX, seconds=5)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for _ in range(300):
            folder = make_owned_folder(PREFIX)
            assert os.listdir(folder.path) == ["owner"]
            remove_owned_folder(folder)
    finally:
        over.set()
        sweeper.join()

    assert list(place.iterdir()) == []
