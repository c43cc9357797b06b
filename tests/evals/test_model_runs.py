"""Runs of trigger queries with scripted models: what counts as triggered, as missed and as an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs
from support.trees import Machine, write_skill

from skillshelf import ConfigurationError, Shelf, replay
from skillshelf.core.values import CatalogSkill
from skillshelf.evals.cases import TriggerQuery
from skillshelf.evals.model_runs import ModelLimits, ModelOptions, QueryRuns, most_requests, run_model
from skillshelf.evals.trigger_grades import RunGrade, grade_journal, regrade

pytestmark = needs("pydantic_ai")

Step = tuple[str, Any]
YES = TriggerQuery("Brew me a tea.", True, "test")
NO = TriggerQuery("Ship it.", False, "test")


def scripted(step: Callable[[int, list[Any], Any], Step | str | Exception]) -> Any:
    """A model that does what a function says; it gets the number of the request, from 0."""
    from pydantic_ai import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: list[Any], info: Any) -> Any:
        done = sum(isinstance(message, ModelResponse) for message in messages)
        now = step(done, messages, info)
        if isinstance(now, Exception):
            raise now
        return ModelResponse(parts=[TextPart(now) if isinstance(now, str) else ToolCallPart(*now)])

    return FunctionModel(answer)


def steps(*given: Step | str | Exception) -> Any:
    """A model that makes these steps in every run, and then says that it is done."""
    return scripted(lambda n, messages, info: given[n] if n < len(given) else "done")


def load(name: str) -> Step:
    """A call that loads a skill."""
    return "skill_load", {"name": name}


@pytest.fixture
def shelf(machine: Machine) -> Shelf:
    """A shelf with two skills."""
    for name in ("tea", "coffee"):
        write_skill(machine.repo / ".agents" / "skills", name)
    return machine.shelf()


def skill_of(shelf: Shelf, name: str = "tea") -> CatalogSkill:
    """A skill of the shelf."""
    return next(skill for skill in shelf.catalog.skills if skill.name == name)


def played(shelf: Shelf, model: Any, query: TriggerQuery = YES, **options: Any) -> QueryRuns:
    """The runs of one query for the skill `tea`; one run unless told otherwise."""
    [[found]] = run_model(shelf, [(skill_of(shelf), [query])], ModelOptions(model, **{"runs": 1, **options}))
    return found


# Outcomes -----------------------------------------------------------------------------------------


def test_another_tool_first_another_skill_second_and_the_right_skill_third_is_triggered(shelf: Shelf) -> None:
    model = steps(("Bash", {"command": "ls"}), load("coffee"), load("tea"))

    found = played(shelf, model, runs=3)

    assert [run.grade for run in found.runs] == [RunGrade("triggered", "", ("coffee", "tea"), 3)] * 3
    assert (found.rate, found.outcome) == (1.0, "pass")


def test_a_model_that_calls_nothing_has_missed_the_skill(shelf: Shelf) -> None:
    found = played(shelf, steps("Water, leaves, five minutes."))

    assert found.runs[0].grade == RunGrade("missed")
    assert found.outcome == "fail"


def test_a_model_that_fails_has_neither_found_nor_missed_the_skill(shelf: Shelf) -> None:
    for query in (YES, NO):
        found = played(shelf, steps(RuntimeError("the server is on fire")), query, runs=2)

        assert [run.grade.outcome for run in found.runs] == ["error", "error"]
        assert found.to_dict() == {
            "runs": 2,
            "triggered": 0,
            "errors": 2,
            "rate": None,
            "outcome": "error",
            "loaded": {},
            "details": ["RuntimeError: the server is on fire"],
            "journals": [],
        }


def test_the_rate_is_of_the_completed_runs(shelf: Shelf) -> None:
    begun: list[int] = []

    def first_fails(n: int, messages: list[Any], info: Any) -> Step | str | Exception:
        if n == 0:
            begun.append(n)
        if len(begun) == 1:
            return RuntimeError("no")
        return load("tea") if n == 0 else "done"

    found = played(shelf, scripted(first_fails), runs=3, concurrent=1)

    assert (found.triggered, found.errors, found.rate, found.outcome) == (2, 1, 1.0, "pass")


def test_half_of_the_runs_is_enough_for_a_skill_to_count_as_triggered(shelf: Shelf) -> None:
    begun: list[int] = []

    def every_second(n: int, messages: list[Any], info: Any) -> Step | str:
        if n == 0:
            begun.append(n)
        return load("tea") if n == 0 and len(begun) % 2 else "done"

    assert played(shelf, scripted(every_second), YES, runs=2, concurrent=1).outcome == "pass"
    assert played(shelf, scripted(every_second), NO, runs=2, concurrent=1).outcome == "fail"


def test_a_query_that_should_not_trigger_passes_if_another_skill_is_loaded(shelf: Shelf) -> None:
    found = played(shelf, steps(load("coffee")), NO)

    assert found.outcome == "pass"
    assert found.to_dict()["loaded"] == {"coffee": 1}


def test_unknown_tools_unknown_skills_and_wrong_arguments_are_answered_and_the_run_goes_on(shelf: Shelf) -> None:
    wrong: list[Step] = [("frobnicate", {}), load("beer"), ("skill_load", {"nmae": 3}), ("Bash", {"command": 7})]
    wrong += [("skill_load", "[not json"), ("frobnicate", {})]
    wrong += [("skill_load", "null"), ("Bash", "[1]"), ("skill_load", "5"), ("Bash", {"ctx": "x"})]

    assert played(shelf, steps(*wrong, load("tea"))).runs[0].grade.outcome == "triggered"
    assert played(shelf, steps(*wrong)).runs[0].grade.outcome == "missed"


@pytest.mark.parametrize("call", [("frobnicate", {}), ("Bash", {"command": "ls"}), load("coffee")])
def test_a_model_that_never_stops_calling_ends_in_an_error(shelf: Shelf, call: Step) -> None:
    found = played(shelf, scripted(lambda n, messages, info: call), limits=ModelLimits(requests=5))

    assert found.runs[0].grade.outcome == "error"
    assert "request_limit of 5" in found.runs[0].grade.detail


def test_a_run_that_takes_too_long_is_an_error(shelf: Shelf) -> None:
    from pydantic_ai.models.function import FunctionModel

    async def never(messages: list[Any], info: Any) -> Any:
        await asyncio.Event().wait()

    found = played(shelf, FunctionModel(never), limits=ModelLimits(seconds=0.2))

    assert found.runs[0].grade == RunGrade("error", "there was no answer within 0.2 seconds")


def test_a_model_that_cancels_itself_ends_its_own_run_alone(shelf: Shelf) -> None:
    from pydantic_ai.models.function import FunctionModel

    async def cancelled(messages: list[Any], info: Any) -> Any:
        raise asyncio.CancelledError

    found = played(shelf, FunctionModel(cancelled), runs=2)

    assert [run.grade.outcome for run in found.runs] == ["error", "error"]


def test_a_model_is_asked_no_more_once_it_has_loaded_the_skill(shelf: Shelf) -> None:
    asked: list[int] = []

    def count(n: int, messages: list[Any], info: Any) -> Step | str:
        asked.append(n)
        return load("tea")

    played(shelf, scripted(count), runs=2, concurrent=1)

    assert asked == [0, 0]


def test_a_model_sees_the_catalog_and_the_tools_of_a_session_and_those_of_a_host(shelf: Shelf) -> None:
    seen: list[tuple[str, set[str]]] = []

    def look(n: int, messages: list[Any], info: Any) -> str:
        seen.append((info.instructions, {tool.name for tool in info.function_tools}))
        return "done"

    played(shelf, scripted(look))

    with shelf.session() as session:
        assert seen[0][0].endswith(session.system_prompt())
        assert seen[0][1] == {tool.name for tool in session.tools()} | {"Bash", "Read", "Write"}


@pytest.mark.parametrize(
    ("profile", "call"),
    [("standard", ("skill_read", {"uri": "skill://tea"})), ("omp", ("read", {"path": "skill://tea"}))],
)
def test_a_load_by_any_tool_of_a_profile_counts(machine: Machine, profile: str, call: Step) -> None:
    write_skill(machine.repo / ".claude" / "skills", "tea")
    shelf = machine.shelf(profile)

    assert played(shelf, steps(call)).runs[0].grade.outcome == "triggered"


# Journals -----------------------------------------------------------------------------------------


def test_each_run_leaves_a_journal_that_verifies_replays_and_repeats_the_grade(shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "journals"
    model = steps(("Bash", {"command": "ls"}), load("coffee"), load("tea"))

    found = played(shelf, model, runs=2, journals=str(folder))

    assert sorted(path.name for path in folder.iterdir()) == [
        "query-0001-run-1.jsonl",
        "query-0001-run-2.jsonl",
        "runs.json",
    ]
    for run in found.runs:
        assert run.journal is not None
        assert grade_journal(run.journal, skill_of(shelf).path) == run.grade
        again = replay(run.journal, home=shelf.environment.home, env=shelf.environment.env)
        assert (again.differences, again.skipped) == ((), ())
        assert [loaded["name"] for loaded in again.state.loaded] == ["coffee", "tea"]
    assert [(entry["query"], grade) for entry, grade in regrade(folder)] == [
        (YES.query, run.grade) for run in found.runs
    ]


def test_a_failed_run_says_so_in_its_journal(shelf: Shelf, tmp_path: Path) -> None:
    found = played(shelf, steps(load("coffee"), RuntimeError("gone")), journals=str(tmp_path / "j"))

    assert found.runs[0].grade == RunGrade("error", "RuntimeError: gone", ("coffee",), 1)
    assert found.runs[0].journal is not None
    again = replay(found.runs[0].journal, home=shelf.environment.home, env=shelf.environment.env)
    assert again.differences == ()


def test_a_journal_that_was_edited_or_cut_off_is_no_evidence(shelf: Shelf, tmp_path: Path) -> None:
    [run] = played(shelf, steps(load("tea")), journals=str(tmp_path / "j")).runs
    assert run.journal is not None
    path = Path(run.journal)
    whole = path.read_bytes()

    path.write_bytes(whole.replace(b'"mode":"auto"', b'"mode":"manual"', 1))
    edited = grade_journal(path, skill_of(shelf).path)
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    unfinished = grade_journal(path, skill_of(shelf).path)
    path.unlink()
    missing = grade_journal(path, skill_of(shelf).path)

    assert [grade.outcome for grade in (edited, unfinished, missing)] == ["error"] * 3
    assert "does not verify" in edited.detail
    assert unfinished.detail == "the session has no end"


def test_what_a_person_loads_is_not_the_choice_of_a_model(shelf: Shelf, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    with shelf.session(journal=journal, preload=["coffee"]) as session:
        session.load("tea")

    assert grade_journal(journal, skill_of(shelf).path).outcome == "missed"
    assert grade_journal(journal, skill_of(shelf, "coffee").path).outcome == "missed"


def test_journals_are_written_to_an_empty_folder_only(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(ConfigurationError, match="is not empty"):
        played(shelf, steps("done"), journals=str(tmp_path))
    with pytest.raises(ConfigurationError, match="cannot be used"):
        played(shelf, steps("done"), journals=str(tmp_path / "mine.txt"))
    (tmp_path / "runs.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="is no index"):
        regrade(tmp_path)


def test_a_key_that_an_error_repeats_is_nowhere(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123")
    model = steps(RuntimeError("Incorrect API key provided: sk-very-secret-0123"))

    found = played(shelf, model, journals=str(tmp_path / "j"))

    assert found.runs[0].grade.detail == "RuntimeError: Incorrect API key provided: ***"
    assert not [path for path in (tmp_path / "j").rglob("*") if b"very-secret" in path.read_bytes()]


# The plan -----------------------------------------------------------------------------------------


def test_the_number_of_requests_is_known_before(shelf: Shelf) -> None:
    work = [(skill_of(shelf), [YES, NO]), (skill_of(shelf, "coffee"), [YES])]

    assert most_requests(work, ModelOptions("test", runs=4, limits=ModelLimits(requests=5))) == 3 * 4 * 5
    with pytest.raises(ConfigurationError, match="1 to 100 times"):
        run_model(shelf, work, ModelOptions(steps("done"), runs=0))


def test_the_runs_of_several_skills_and_queries_come_in_their_order(shelf: Shelf) -> None:
    work = [(skill_of(shelf), [NO, YES]), (skill_of(shelf, "coffee"), [YES])]

    def named(n: int, messages: list[Any], info: Any) -> Step | str:
        is_tea = "tea" in str(messages[0].parts[-1].content)
        return load("tea") if n == 0 and is_tea else "done"

    found = run_model(shelf, work, ModelOptions(scripted(named), runs=2))

    assert [[(one.query, one.triggered) for one in skill] for skill in found] == [
        [(NO.query, 0), (YES.query, 2)],
        [(YES.query, 0)],
    ]
    assert json.loads(json.dumps(found[0][0].to_dict()))["outcome"] == "pass"
