"""No damaged byte, odd path or other user makes a cached listing wrong, and a damaged cache is rebuilt."""

from __future__ import annotations

import marshal
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

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
def rewrite_row(machine: Machine, change: Callable[[Any], Any]) -> None:
    """Change what a row says, and write the checksum that fits."""
    with sqlite3.connect(cache_file(machine)) as connection:
        for root, reading, row in connection.execute("SELECT root, reading, data FROM roots").fetchall():
            data = marshal.dumps(change(marshal.loads(row[4:])))
            new = crc32(data).to_bytes(4, "big") + data
            connection.execute("UPDATE roots SET data = ? WHERE root = ? AND reading = ?", (new, root, reading))
    connection.close()


def each(change: Callable[[tuple[Any, ...]], Any]) -> Callable[[Any], Any]:
    return lambda entries: {path: change(entry) for path, entry in entries.items()}


SHAPES: dict[str, Callable[[Any], Any]] = {
    "no map": lambda entries: [*entries],
    "a number": lambda entries: 7,
    "nothing": lambda entries: None,
    "a member less": each(lambda entry: entry[:5]),
    "a member more": each(lambda entry: (*entry, 1)),
    "entries that are texts": each(lambda entry: "text"),
    "entries of six letters": each(lambda entry: "abcdef"),
    "a stamp that is text": each(lambda entry: ("text", *entry[1:])),
    "a short stamp": each(lambda entry: (entry[0][:2], *entry[1:])),
    "a name that is a number": each(lambda entry: (*entry[:2], 7, *entry[3:])),
    "fields that are a list": each(lambda entry: (*entry[:4], [1], entry[5])),
    "keys that are numbers": each(lambda entry: (*entry[:4], {1: 2, "a": 3}, entry[5])),
    "warnings that are numbers": each(lambda entry: (*entry[:5], (1, 2))),
    "warnings without a message": each(lambda entry: (*entry[:5], (("rule",),))),
    "paths that are numbers": lambda entries: dict(enumerate(entries.values())),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_with_a_right_checksum_and_a_wrong_shape_is_made_anew(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    fill(machine.home / ".agents/skills")
    right = machine.catalog()
    rewrite_row(machine, SHAPES[shape])

    assert [machine.catalog() for _ in range(3)] == [right] * 3
    assert reads(machine, monkeypatch) == 0


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
