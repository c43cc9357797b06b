"""The store of installed skills, and the lock that names them."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skillshelf.catalog.lock import LockedSkill, UnusableLock, parse_lock
from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.store import Store
from skillshelf.catalog.tree import skill_tree
from skillshelf.errors import SkillChanged, SourceRefused

SKILL = {"SKILL.md": b"---\nname: deploy\n---\n", "scripts/deep/run.sh": ExecutableFile(b"#!/bin/sh\n")}


def test_a_stored_skill_is_read_only_and_has_the_digest_of_its_files(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    tree = store.put(SKILL)
    path = Path(store.path_of(tree))

    assert skill_tree(str(path)).digest == tree == store.tree_at(str(path))
    assert {one.relative_to(path).as_posix(): oct(one.stat().st_mode & 0o777) for one in sorted(path.rglob("*"))} == {
        "SKILL.md": "0o444",
        "scripts": "0o555",
        "scripts/deep": "0o555",
        "scripts/deep/run.sh": "0o555",
    }
    assert store.read(tree) == SKILL
    assert isinstance(store.read(tree)["scripts/deep/run.sh"], ExecutableFile)
    assert list(store.trees()) == [tree]


def test_a_damaged_tree_is_refused_and_stored_again(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    tree = store.put(SKILL)
    file = Path(store.path_of(tree)) / "SKILL.md"
    file.chmod(0o644)
    file.write_bytes(b"other")
    with pytest.raises(SkillChanged):
        store.read(tree)

    assert store.put(SKILL) == tree
    assert store.read(tree) == SKILL
    assert [name for name in os.listdir(store.folder) if name.startswith(".")] == []


def test_many_that_store_one_tree_at_once_leave_it_whole_and_nothing_else(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    with ThreadPoolExecutor(8) as pool:
        trees = set(pool.map(lambda _: store.put(SKILL), range(40)))

    (tree,) = trees
    assert store.read(tree) == SKILL
    assert [name for name in os.listdir(store.folder) if name.startswith(".")] == []


def test_a_removed_tree_leaves_nothing(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    store.remove(store.put(SKILL))
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("path", ["../x", "a\\b", ".git/config", "con.txt", "a/./b", "a\x1b[2J", "x. "])
def test_a_path_that_no_tree_may_have_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(SourceRefused, match="name"):
        Store(str(tmp_path / "store")).put({"SKILL.md": b"", path: b""})
    assert not (tmp_path / "store").exists()


# The lock ----------------------------------------------------------------------------------------

LOCKED: dict[str, Any] = LockedSkill("./pdf", "", None, None, None, f"sha256:{'0' * 64}", 1, 2, ["codex"])._asdict()


def lock(**skills: Any) -> bytes:
    return json.dumps({"lock": 1, "skills": skills}, indent=2, sort_keys=True).encode()


def test_a_lock_is_read_as_it_is_written() -> None:
    assert parse_lock(lock(pdf=LOCKED), "x") == {"pdf": LockedSkill(**LOCKED)}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"lock": 1, "skills": {}, "skills": {}}', "line 1: 'skills' occurs twice"),
        (b'{"lock": 1,\n<<<<<<< ours\n"skills": {}}', "line 2: a merge conflict is not resolved"),
        (b'{"lock": 2, "skills": {}}', "lock 2 is of another version"),
        (b'{"lock": true, "skills": {}}', "the member lock is missing"),
        (b'{"lock": 1, "skills": {}, "more": 1}', "and no other"),
        (b"[]", "not a lock"),
        (b"\xff", "line 1: not UTF-8"),
        (b"[" * 100_000, "not a lock"),
        (lock(**{"../x": LOCKED}), "not a name that a skill can be installed as"),
        (lock(**{"-x": LOCKED}), "not a name that a skill can be installed as"),
        (lock(pdf={**LOCKED, "tree": "sha256:" + "A" * 64}), "tree is not sha256: and 64 hex digits"),
        (lock(pdf={**LOCKED, "files": "1"}), "files must be a whole number"),
        (lock(pdf={key: LOCKED[key] for key in LOCKED if key != "ref"}), "needs exactly the members"),
        (lock(pdf=LOCKED, PDF=LOCKED), "another skill has nearly the same name"),
    ],
)
def test_a_lock_that_is_not_one_is_refused_with_its_line(data: bytes, said: str) -> None:
    with pytest.raises(UnusableLock, match=r"skillshelf\.lock") as caught:
        parse_lock(data, "skillshelf.lock")
    assert said in str(caught.value)
