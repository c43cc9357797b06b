"""Archives that attack whoever unpacks them are refused by name, and healthy ones beside them are unpacked."""

import time
from contextlib import suppress

import pytest
from hostile_archives import HEALTHY, HOSTILE, Healthy, Hostile

from skillshelf.catalog.source import ExecutableFile, SourceLimits
from skillshelf.errors import SourceRefused
from skillshelf.install.archive import unpack


@pytest.mark.parametrize("row", HOSTILE, ids=[row.name for row in HOSTILE])
def test_a_hostile_archive_is_refused_by_its_rule(row: Hostile) -> None:
    with pytest.raises(SourceRefused) as caught:
        unpack(row.make(), SourceLimits(), kind=row.kind)

    assert caught.value.rule == row.rule
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("row", HEALTHY, ids=[row.name for row in HEALTHY])
def test_a_healthy_archive_is_unpacked(row: Healthy) -> None:
    found = unpack(row.make(), SourceLimits(), kind=row.kind)

    assert found == row.files
    assert tuple(path for path, data in found.items() if isinstance(data, ExecutableFile)) == row.executables


def test_there_are_enough_attacks_and_each_has_its_own_name() -> None:
    names = [row.name for row in HOSTILE]
    assert len(names) == len(set(names)) >= 120


@pytest.mark.parametrize("row", HEALTHY, ids=[row.name for row in HEALTHY])
def test_an_archive_cut_anywhere_or_with_any_byte_changed_breaks_nothing(row: Healthy) -> None:
    whole = row.make()
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :]):
            start = time.process_time()
            with suppress(SourceRefused):
                unpack(data, SourceLimits(), kind=row.kind)
            assert time.process_time() - start < 5


def test_an_archive_that_takes_too_long_is_refused() -> None:
    row = HEALTHY[0]
    with pytest.raises(SourceRefused, match="too-slow"):
        unpack(row.make(), SourceLimits(seconds=-1), kind=row.kind)
