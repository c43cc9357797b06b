"""What a check costs: how often it opens, reads and parses, and that it decides about what it opened."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ryaml
from support.trees import Machine, write_skill

from skillshelf import Shelf
from skillshelf.core import files
from skillshelf.lint import run as lint
from skillshelf.lint.run import Report, Targets, check_targets, in_paths, in_roots

BODY = "# It\n\nSee [a](assets/a.png), `scripts/run.py` and the `other` skill.\n" + "More of it.\n" * 600


def _skills(root: Path, first: int, count: int) -> None:
    for number in range(first, first + count):
        name = f"skill-{number}"
        text = f"---\nname: {name}\ndescription: Does it. Use when asked for it, please.\n---\n{BODY}"
        write_skill(root, name, text)


def _checked(machine: Machine, find: Callable[[Shelf], Targets]) -> Report:
    shelf = machine.shelf(use_cache=False)
    return check_targets(find(shelf), shelf.profile)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls of the system and of the parser."""
    counted: Counter[str] = Counter()

    def counting(module: Any, name: str) -> None:
        function = getattr(module, name)

        def call(*words: Any, **options: Any) -> Any:
            counted[name] += 1
            return function(*words, **options)

        monkeypatch.setattr(module, name, call)

    counting(os, "open")
    counting(os, "read")
    counting(ryaml, "loads")
    return counted


@pytest.mark.parametrize("where", ["roots", "path"])
def test_each_file_is_read_once_and_parsed_once_however_deep_it_lies(
    machine: Machine, calls: Counter[str], where: str
) -> None:
    root = machine.repo / ".agents" / "skills" if where == "roots" else machine.base / "deep" / "er" / "skills"

    def find(shelf: Shelf) -> Targets:
        return in_roots(shelf) if where == "roots" else in_paths([str(root)], shelf)

    _skills(root, 0, 5)
    _checked(machine, find)
    calls.clear()
    assert _checked(machine, find).checked == 5
    few = Counter(calls)
    _skills(root, 5, 10)
    calls.clear()
    assert _checked(machine, find).checked == 15
    more = Counter(calls)

    assert (more["read"] - few["read"], more["loads"] - few["loads"]) == (10, 10)
    # The folder and the file for the search, and the folder as it is listed; the same for the check but for the file.
    assert (more["open"] - few["open"]) / 10 <= 6


def test_files_beyond_those_that_are_kept_are_read_again_and_the_report_is_the_same(
    machine: Machine, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _skills(machine.repo / ".agents" / "skills", 0, 6)
    kept = _checked(machine, in_roots)
    reads = calls["read"]
    calls.clear()
    monkeypatch.setattr(lint, "CHECKED_BYTES", 1)

    assert _checked(machine, in_roots) == kept
    assert calls["read"] > reads


def test_a_folder_that_became_a_link_after_it_was_found_is_not_entered(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    _skills(root, 0, 2)
    shelf = machine.shelf(use_cache=False)
    targets = in_roots(shelf)
    other = machine.base / "other"
    (root / "skill-1").rename(other)
    (root / "skill-1").symlink_to(other)

    report = check_targets(targets, shelf.profile)

    found = [finding for finding in report.findings if finding.path == str(root / "skill-1" / "SKILL.md")]
    assert [(finding.rule, finding.severity) for finding in found] == [("unreadable", "error")]


def test_a_file_that_grew_while_it_was_read_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "SKILL.md"
    path.write_bytes(b"one\n")
    status = os.fstat

    def late(descriptor: int) -> os.stat_result:
        before = status(descriptor)
        monkeypatch.setattr(os, "fstat", status)
        path.write_bytes(b"one\n" + b"two\n" * 50_000)
        return before

    monkeypatch.setattr(os, "fstat", late)
    folder = files.open_folder(os.path.realpath(tmp_path))
    try:
        head = files.read_whole(folder, "SKILL.md", limit=1_000_000)
        monkeypatch.setattr(os, "fstat", status)
        assert (head.data, head.size) == (path.read_bytes(), 200_004)
        assert files.read_whole(folder, "SKILL.md", limit=1000).data is None
    finally:
        files.close(folder)
