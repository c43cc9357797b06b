"""No damaged byte, odd path or other user makes a cached listing wrong, and a damaged cache is rebuilt."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf.core import files
from skillshelf.core.limits import CACHE_FROM

MANY = CACHE_FROM + 6


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillshelf.catalog.cache.SETTLED_NS", 0)


def fill(root: Path) -> None:
    for number in range(MANY):
        write_skill(root, f"s{number:03}")


def cache_file(machine: Machine) -> Path:
    return machine.home / ".cache" / "skillshelf" / "skills.sqlite3"


def reads(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of files that a listing reads."""
    read: list[str] = []
    original = files.read_head

    def counted(folder: int, name: str, **options: Any) -> files.Head:
        read.append(name)
        return original(folder, name, **options)

    with monkeypatch.context() as patch:
        patch.setattr(files, "read_head", counted)
        machine.catalog()
    return len(read)


def replace(before: bytes, after: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(before, after)


@pytest.mark.parametrize(
    "damage",
    [
        # The schema: not text any more, another table, another column.
        replace(b"CREATE TABLE roots", b"CREATE TABLE \xccoots"),
        replace(b"CREATE TABLE roots (root", b"CREATE TABLE roots (rOOt\xcc"),
        replace(b"data BLOB", b"dat! BLOB"),
        replace(b"data BLOB", b"dato BLOB"),
        # The number of the format, which is then a future one.
        lambda data: data[:47] + b"\x7f" + data[48:],
    ],
)
def test_a_cache_with_a_damaged_format_gives_a_right_listing_and_is_rebuilt(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    fill(machine.home / ".agents/skills")
    right = machine.catalog()
    before = cache_file(machine).read_bytes()
    cache_file(machine).write_bytes(damage(before))
    assert cache_file(machine).read_bytes() != before

    assert [machine.catalog() for _ in range(3)] == [right] * 3
    assert reads(machine, monkeypatch) == 0


@pytest.mark.slow
def test_no_flipped_byte_makes_a_listing_wrong(machine: Machine) -> None:
    fill(machine.home / ".agents/skills")
    right = machine.catalog()
    before = cache_file(machine).read_bytes()
    last = before.index(b"CREATE TABLE") + 150
    for place in [*range(110), *range(last - 160, last, 3), *range(4096, len(before), 997)]:
        damaged = bytearray(before)
        damaged[place] ^= 0xC4
        cache_file(machine).write_bytes(damaged)
        assert machine.catalog() == right, place


def test_a_root_whose_path_is_not_utf_8_is_listed_with_a_cache_as_without(machine: Machine) -> None:
    fill(machine.home / ".agents/skills")
    machine.catalog()
    odd = os.fsdecode(os.fsencode(machine.repo) + b"/\xff")
    fill(Path(odd) / ".agents/skills")

    found = [machine.shelf(cwd=Path(odd), use_cache=use_cache).catalog for use_cache in (True, True, False)]

    assert found[0] == found[1] == found[2]
    assert {error.rule for error in found[0].errors} == {"path-encoding"}


def test_a_reader_in_other_groups_reads_for_itself(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(machine.home / ".agents/skills")
    machine.catalog()
    assert reads(machine, monkeypatch) == 0

    monkeypatch.setattr(os, "getgroups", lambda: [4711])

    assert reads(machine, monkeypatch) == MANY


def test_another_yaml_parser_reads_for_itself(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill(machine.home / ".agents/skills")
    machine.catalog()
    (tmp_path / "ryaml").mkdir()
    (tmp_path / "ryaml" / "__init__.py").touch()

    monkeypatch.syspath_prepend(tmp_path)

    assert reads(machine, monkeypatch) == MANY
