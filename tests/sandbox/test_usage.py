"""What a script takes, from the numbers of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from skillshelf.sandbox import usage
from skillshelf.sandbox.cgroup import Cgroup
from skillshelf.sandbox.scripts import RunFolder
from skillshelf.sandbox.usage import RunLimits, ScriptUsage

MEBIBYTE = 1024 * 1024
LIMITS = RunLimits(memory_bytes=100 * MEBIBYTE)


def _excess(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process: Mapping[str, Mapping[str, int]]) -> str | None:
    """The excess of a script without a cgroup, with two processes that have these numbers, in mebibytes."""

    def numbers(path: str) -> Iterator[tuple[str, int]]:
        found = process.get(path.rpartition("/")[2], {})
        yield from ((f"{name}:", 1024 * number) for name, number in found.items())

    def no_cgroup(processes: object, *, memory: int, pids: int) -> Cgroup | None:
        return None

    monkeypatch.setattr(usage, "_numbers", numbers)
    monkeypatch.setattr(usage, "descendants", lambda process: [-1, -2])
    monkeypatch.setattr(usage, "make_cgroup", no_cgroup)
    with ScriptUsage(LIMITS, RunFolder(str(tmp_path)), ()) as script:
        script.attach(-1)
        return script.excess()


def test_memory_that_a_script_sent_to_the_swap_space_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"status": {"RssAnon": 1, "VmSwap": 60}, "smaps_rollup": {"Pss_Anon": 1, "SwapPss": 60}}
    assert _excess(tmp_path, monkeypatch, numbers) == f"it took more than {LIMITS.memory_bytes} bytes of memory"


@pytest.mark.parametrize(
    ("status", "shares"),
    [
        pytest.param({"RssAnon": 1, "VmSwap": 60}, {"Pss_Anon": 1, "SwapPss": 30}, id="shared by both"),
        pytest.param({"RssAnon": 51}, {"Pss_Anon": 40, "SwapPss": 60}, id="of files, which count as disk space"),
    ],
)
def test_a_page_in_the_swap_space_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: dict[str, int], shares: dict[str, int]
) -> None:
    assert _excess(tmp_path, monkeypatch, {"status": status, "smaps_rollup": shares}) is None
