"""Files of the state folder: migrated forward once with a copy beside, never emptied, never written over."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from support.users import ordinary_user

from skillshelf.core.state_file import StateFile, UnusableState
from skillshelf.errors import SkillError


def state_file(path: Path, *, version: int = 3, limit: int = 1000) -> StateFile:
    """A file of the third version, whose first version had one name and whose second had a list of them."""
    steps: dict[int, Any] = {
        1: lambda document: {"names": [document["name"]]},
        2: lambda document: {"names": dict.fromkeys(document["names"], True)},
    }
    return StateFile(str(path), version, limit, "a list of names", "remove some", steps)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of the file, in a folder of the user's own."""
    tmp_path.chmod(0o700)
    return tmp_path / "names.json"


def write(path: Path, value: Any) -> bytes:
    """Write a file as this user's own, and return its bytes."""
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    path.chmod(0o600)
    return path.read_bytes()


def test_an_old_file_is_migrated_once_and_a_copy_stays_beside_it(path: Path) -> None:
    old = write(path, {"version": 1, "name": "a"})

    first = state_file(path).read()
    written = path.stat()
    second = state_file(path).read()

    assert first == second == {"version": 3, "names": {"a": True}}
    assert (path.parent / "names.json.v1").read_bytes() == old
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
    assert json.loads(path.read_text()) == first
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_change_migrates_first(path: Path) -> None:
    write(path, {"version": 2, "names": ["a"]})

    state_file(path).change(lambda document: {**document, "names": {**document["names"], "b": True}})

    assert state_file(path).read() == {"version": 3, "names": {"a": True, "b": True}}
    assert (path.parent / "names.json.v2").exists()


def test_a_migration_that_did_not_come_to_its_end_keeps_the_first_copy(path: Path) -> None:
    write(path, {"version": 1, "name": "later"})
    (path.parent / "names.json.v1").write_text("the first")

    state_file(path).read()

    assert (path.parent / "names.json.v1").read_text() == "the first"


@pytest.mark.parametrize(
    "value",
    [
        *("", "{", "[]", "1", '{"version": 1, "version": 1}', '{"version": true}', '{"names": []}', "[" * 100_000),
        *({"version": 4}, {"version": 0}, {"version": 1}, {"version": 2, "names": 3}, {"version": "3"}),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_stays_as_it_is(path: Path, value: Any) -> None:
    before = write(path, value)
    file = state_file(path, limit=1_000_000)

    with pytest.raises(UnusableState):
        file.read()
    with pytest.raises(SkillError):
        file.change(lambda document: {"names": {}})

    assert path.read_bytes() == before


def test_a_newer_version_is_named_in_one_line(path: Path) -> None:
    write(path, {"version": 4})

    with pytest.raises(UnusableState, match=r"version 4 is of a newer skillshelf \(this one reads 3\)"):
        state_file(path).read()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_does_not_count(path: Path, mode: int) -> None:
    write(path, {"version": 3})
    path.chmod(mode)

    with pytest.raises(UnusableState, match="only you can write"):
        state_file(path).read()


def test_a_link_does_not_count_and_its_target_is_not_written(path: Path) -> None:
    target = path.parent / "target"
    before = write(target, {"version": 1, "name": "a"})
    path.symlink_to(target)

    with pytest.raises(UnusableState):
        state_file(path).change(lambda document: {"names": {}})

    assert target.read_bytes() == before


def test_a_file_grows_up_to_its_limit_and_may_shrink_beyond_it(path: Path) -> None:
    file = state_file(path, limit=200)
    with pytest.raises(SkillError, match="is full; remove some"):
        file.change(lambda document: {"names": {"x" * 200: True}})
    assert not path.exists()

    file.change(lambda document: {"names": {"x": True}})
    assert file.read() == {"version": 3, "names": {"x": True}}


def test_many_at_once_migrate_once_and_lose_no_change(path: Path) -> None:
    write(path, {"version": 1, "name": "a"})

    def add(name: str) -> None:
        state_file(path).change(lambda document: {**document, "names": {**document["names"], name: True}})

    threads = [threading.Thread(target=add, args=(f"n{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = state_file(path).read()
    assert found is not None
    assert set(found["names"]) == {"a", *(f"n{number}" for number in range(12))}
    assert sorted(os.listdir(path.parent)) == ["names.json", "names.json.lock", "names.json.v1"]


def test_where_nothing_can_be_written_the_migrated_content_counts() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        with ordinary_user():
            own = Path(folder, "own")
            own.mkdir(mode=0o700)
            before = write(own / "names.json", {"version": 1, "name": "a"})
            own.chmod(0o500)
            try:
                found = state_file(own / "names.json").read()
            finally:
                own.chmod(0o700)

            assert found == {"version": 3, "names": {"a": True}}
            assert (own / "names.json").read_bytes() == before
