"""The indexed text of skills is the same from one process and from two, whatever happens to the second."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf import CatalogSkill
from skillshelf.core import worker_process
from skillshelf.sandbox.reaper import descendants
from skillshelf.search.index import IndexedTerms, gather
from skillshelf.search.rank import WEIGHTS

FEW, MANY = 40, 200


@pytest.fixture
def skills(machine: Machine) -> Sequence[CatalogSkill]:
    """Write enough skills for a second process."""
    for number in range(MANY):
        text = f"---\nname: skill-{number:03}\ndescription: Number {number}.\n---\n{'word ' * number}转换 GitHub\n"
        write_skill(machine.home / ".agents" / "skills", f"skill-{number:03}", text)
    return machine.shelf().catalog.skills


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the number of skills in each request to the second process, which is started even on one core."""
    questions: list[int] = []
    ask = worker_process.WorkerProcess.ask

    def noted(self: worker_process.WorkerProcess, question: Any) -> Any:
        questions.append(len(question))
        return ask(self, question)

    monkeypatch.setattr(worker_process, "can_start_worker", lambda: True)
    monkeypatch.setattr(worker_process.WorkerProcess, "ask", noted)
    return questions


def by_one(skills: Sequence[CatalogSkill]) -> dict[int, IndexedTerms]:
    """Return the indexed texts that one process gathers."""
    return dict(gather(skills, WEIGHTS, worker_from=len(skills) + 1))


@pytest.mark.slow
def test_two_processes_gather_the_same_as_one(skills: Sequence[CatalogSkill], requests: list[int]) -> None:
    found = list(gather(skills, WEIGHTS, worker_from=FEW))

    assert (len(found), dict(found)) == (MANY, by_one(skills))
    assert requests


def test_a_few_skills_are_not_worth_a_second_process(skills: Sequence[CatalogSkill], requests: list[int]) -> None:
    few = skills[: FEW - 1]

    assert (dict(gather(few, WEIGHTS, worker_from=FEW)), requests) == (by_one(few), [])


@pytest.mark.slow
@pytest.mark.parametrize("does", ["exit 3", "echo cmodule; echo name; exec cat > /dev/null", "echo; exec sleep 0.1"])
def test_a_second_process_that_does_something_else_costs_nothing(
    skills: Sequence[CatalogSkill], requests: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    found = list(gather(skills, WEIGHTS, worker_from=FEW))

    assert (len(found), dict(found), len(requests)) == (MANY, by_one(skills), 1)


def test_where_no_thread_is_to_be_had_one_process_does_it_all(
    skills: Sequence[CatalogSkill], requests: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refused)

    assert (dict(gather(skills, WEIGHTS, worker_from=FEW)), requests) == (by_one(skills), [])


@pytest.mark.slow
def test_the_second_process_is_the_same_program_and_takes_nothing_else_from_its_surroundings(
    skills: Sequence[CatalogSkill], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w'); print('cmodule\\nname')")
    (tmp_path / "skillshelf").mkdir()
    (tmp_path / "skillshelf" / "__init__.py").write_text("raise SystemExit")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    second = worker_process.WorkerProcess("skillshelf.search.index", WEIGHTS)
    try:
        few = [skill._replace(frontmatter={}) for skill in skills[:3]]
        assert dict(enumerate(second.ask(few))) == by_one(few)
    finally:
        second.close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_what_a_second_process_leaves_undone_is_done_by_the_first(
    skills: Sequence[CatalogSkill], requests: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = worker_process.WorkerProcess.ask

    def killed_before_the_third(self: worker_process.WorkerProcess, question: Any) -> Any:
        if len(requests) == 2:
            assert self._process is not None
            self._process.kill()
        return ask(self, question)

    monkeypatch.setattr(worker_process.WorkerProcess, "ask", killed_before_the_third)

    found = list(gather(skills, WEIGHTS, worker_from=FEW))

    assert (len(found), dict(found)) == (MANY, by_one(skills))
    assert len(requests) <= 3


@pytest.mark.slow
def test_who_stops_in_the_middle_leaves_no_process(skills: Sequence[CatalogSkill], requests: list[int]) -> None:
    gathered = gather(skills, WEIGHTS, worker_from=FEW)
    next(gathered)
    gathered.close()

    assert descendants(os.getpid()) == []


@pytest.mark.parametrize(
    ("program", "frozen", "can"),
    [
        ("/usr/bin/python3.11", False, True),
        ("/opt/app/server", False, False),
        ("", False, False),
        ("python", True, False),
    ],
)
def test_only_a_python_is_started_a_second_time(
    monkeypatch: pytest.MonkeyPatch, program: str, frozen: bool, can: bool
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    assert worker_process.can_start_worker() is can
