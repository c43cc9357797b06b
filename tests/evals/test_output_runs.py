"""Tasks done by scripted models with and without a skill: grades, judges, and the files that viewers read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs
from support.trees import Machine, write_skill

from skillshelf import ConfigurationError, Shelf
from skillshelf.core.values import CatalogSkill
from skillshelf.evals.assertions import AssertionVerdict, Product, checked, is_by_code, judge_verdict
from skillshelf.evals.cases import OutputCase

PRODUCT = Product('{"total": 3}', {"out/a.json": b'{"rows": [1, {"x": null}], "name": "tea"}', "b.txt": b"one\ntwo\n"})


# Assertions by code -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ("exists: b.txt", True),
        ("exists: ./out/a.json", True),
        ("exists: out/*.json", True),
        ("exists: c.txt", False),
        ("exists: /etc/passwd", False),
        ("json: out/a.json", True),
        ("json: b.txt", False),
        ("json: c.json", False),
        ("json: out/a.json /rows/1/x", True),
        ("json: out/a.json /rows/2", False),
        ("json: out/a.json /rows/-1", False),
        ("json: out/a.json /rows/0 = 1", True),
        ("json: out/a.json /rows/0 = 2", False),
        ("json: out/a.json /name = tea", True),
        ('json: out/a.json /name = "tea"', True),
        ("json: - /total = 3", True),
    ],
)
def test_code_decides_about_files_and_json(assertion: str, passed: bool) -> None:
    verdict = checked(assertion, PRODUCT)

    assert (verdict.text, verdict.passed) == (assertion, passed)
    assert verdict.evidence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ("regex: total.*3", True),
        ("regex: ^tea", False),
        ("regex b.txt: ^two$", True),
        ("regex c.txt: two", False),
        ("regex: (", None),
    ],
)
def test_code_decides_about_patterns(assertion: str, passed: bool | None) -> None:
    assert checked(assertion, PRODUCT).passed is passed


@pytest.mark.slow
def test_a_pattern_that_takes_forever_decides_nothing() -> None:
    verdict = checked(r"regex: (a|a)*b", Product("a" * 60, {}))

    assert verdict.passed is None
    assert "EVAL_PATTERN_SECONDS" in verdict.evidence


@pytest.mark.parametrize(
    "sentence", ["The file exists: yes", "It is valid JSON", "exists:", "Regex: a", "regex a b: c"]
)
def test_every_other_sentence_is_for_a_judge(sentence: str) -> None:
    assert not is_by_code(sentence)


# Verdicts of a judge ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "passed"),
    [
        ('{"passed": true, "evidence": "line 1"}', True),
        ('```json\n{"passed": false, "evidence": "none"}\n```', False),
        ("Yes, it passed.", None),
        ('{"passed": "true", "evidence": "line 1"}', None),
        ('{"passed": 1, "evidence": "line 1"}', None),
        ('{"passed": true}', None),
        ('{"passed": true, "evidence": " "}', None),
        ('{"passed": true, "evidence": "x"} {"passed": false, "evidence": "y"}', None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_a_judge_decides_by_one_json_object_and_nothing_else(answer: str, passed: bool | None) -> None:
    assert judge_verdict("It is hot.", answer).passed is passed


# Runs ---------------------------------------------------------------------------------------------

HOT = '{"passed": true, "evidence": "it says hot"}'
CASE = OutputCase("1", "Write tea.txt.", "A file", ("evals/files/leaf.txt",), ("exists: tea.txt", "It is hot."))


@pytest.fixture
def shelf(machine: Machine) -> Shelf:
    """A shelf with two skills; `tea` brings a file for a task."""
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "coffee")
    write_skill(root, "tea")
    (root / "tea" / "evals" / "files").mkdir(parents=True)
    (root / "tea" / "evals" / "files" / "leaf.txt").write_text("green")
    return machine.shelf()


def skill_of(shelf: Shelf, name: str = "tea") -> CatalogSkill:
    """A skill of the shelf."""
    return next(skill for skill in shelf.catalog.skills if skill.name == name)


def worker(judge: Callable[[dict[str, Any]], str | Exception] = lambda asked: HOT) -> Any:
    """A model that writes `tea.txt` with what it reads if it knows the skill, and judges as a function says."""
    from pydantic_ai import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: list[Any], info: Any) -> Any:
        if not info.function_tools:
            judged = judge(json.loads(messages[0].parts[-1].content))
            if isinstance(judged, Exception):
                raise judged
            return ModelResponse(parts=[TextPart(judged)])
        done = sum(isinstance(message, ModelResponse) for message in messages)
        if done == 0:
            return ModelResponse(parts=[ToolCallPart("Read", {"file_path": "leaf.txt"})])
        if done == 1 and "Does tea things" in (info.instructions or ""):
            read = messages[-1].parts[0].content
            return ModelResponse(parts=[ToolCallPart("Write", {"file_path": "tea.txt", "content": f"{read} tea"})])
        return ModelResponse(parts=[TextPart("Here is hot tea.")])

    return FunctionModel(answer)


def done(shelf: Shelf, tmp_path: Path, model: Any, case: OutputCase = CASE, **options: Any) -> Any:
    """The runs of one task of the skill `tea`, and the folder with the results."""
    from skillshelf.evals.model_runs import ModelOptions
    from skillshelf.evals.output_runs import run_outputs

    judge = options.pop("judge", None)
    chosen = ModelOptions(model, **{"runs": 1, **options})
    [[found]] = run_outputs(shelf, [(skill_of(shelf), [case])], chosen, judge=judge, output=str(tmp_path / "out"))
    return found, tmp_path / "out" / "tea" / "iteration-1"


@needs("pydantic_ai")
def test_a_task_is_done_with_and_without_the_skill(shelf: Shelf, tmp_path: Path) -> None:
    found, folder = done(shelf, tmp_path, worker(), runs=2)

    form = found.to_dict()
    assert (found.outcome, form["with_skill"]["pass_rate"], form["without_skill"]["pass_rate"]) == ("pass", 1.0, 0.5)
    made = folder / "eval-1" / "with_skill" / "run-2" / "outputs"
    assert (made / "tea.txt").read_text() == "green tea"
    assert (made / "answer.md").read_text() == "Here is hot tea."
    assert not (folder / "eval-1" / "without_skill" / "run-2" / "outputs" / "tea.txt").exists()
    first = json.loads((folder / "eval-1/without_skill/run-1/journal.jsonl").read_text().splitlines()[1])
    assert first["count"] == 1


@needs("pydantic_ai")
def test_a_judge_does_not_learn_whether_the_skill_was_there_and_sees_the_files(shelf: Shelf, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def judge(question: dict[str, Any]) -> str:
        asked.append(question)
        return HOT

    done(shelf, tmp_path, worker(judge), concurrent=1)

    assert asked[0] == {
        "task": "Write tea.txt.",
        "expected_output": "A file",
        "statement": "It is hot.",
        "answer": "Here is hot tea.",
        "files": {"leaf.txt": "green", "tea.txt": "green tea"},
    }
    assert asked[1] == {**asked[0], "files": {"leaf.txt": "green"}}


@needs("pydantic_ai")
@pytest.mark.parametrize("judgement", ["I think so", RuntimeError("down")], ids=["babble", "failure"])
def test_a_judge_that_gives_no_verdict_is_an_error_and_no_pass(
    shelf: Shelf, tmp_path: Path, judgement: str | Exception
) -> None:
    found, folder = done(shelf, tmp_path, worker(lambda asked: judgement))

    assert found.outcome == "error"
    grading = json.loads((folder / "eval-1/with_skill/run-1/grading.json").read_text())
    assert [result["text"] for result in grading["assertion_results"]] == ["exists: tea.txt"]
    assert grading["summary"] == {"passed": 1, "failed": 0, "total": 1, "pass_rate": 1.0, "errors": 1}
    assert "was not decided" in json.loads((folder / "benchmark.json").read_text())["notes"][0]


@needs("pydantic_ai")
def test_a_run_that_fails_has_no_grades_and_counts_nowhere(shelf: Shelf, tmp_path: Path) -> None:
    from pydantic_ai.models.function import FunctionModel

    def fail(messages: list[Any], info: Any) -> Any:
        raise RuntimeError("gone")

    found, folder = done(shelf, tmp_path, FunctionModel(fail))

    assert found.outcome == "error"
    assert sorted(path.name for path in (folder / "eval-1/with_skill/run-1").iterdir()) == [
        "error.json",
        "eval_metadata.json",
        "journal.jsonl",
        "outputs",
    ]
    assert json.loads((folder / "benchmark.json").read_text())["runs"] == []


@needs("pydantic_ai")
@pytest.mark.parametrize("path", ["evals/files/none.txt", "../coffee/SKILL.md", "/etc/hostname", "evals/files", ""])
def test_a_task_whose_file_is_not_in_the_skill_is_an_error(shelf: Shelf, tmp_path: Path, path: str) -> None:
    found, _ = done(shelf, tmp_path, worker(), CASE._replace(files=(path,)))

    assert found.outcome == "error"
    assert found.to_dict()["with_skill"]["errors"] == 1


@needs("pydantic_ai")
def test_an_expected_output_without_assertions_is_judged(shelf: Shelf, tmp_path: Path) -> None:
    found, _ = done(shelf, tmp_path, worker(), CASE._replace(assertions=()))

    assert found.runs[0].verdicts == (AssertionVerdict("The result is as expected: A file", True, "it says hot"),)


@needs("pydantic_ai")
def test_results_go_to_an_empty_folder_or_beside_earlier_ones(shelf: Shelf, tmp_path: Path) -> None:
    done(shelf, tmp_path, worker())
    done(shelf, tmp_path, worker())
    assert sorted(path.name for path in (tmp_path / "out" / "tea").iterdir()) == ["iteration-1", "iteration-2"]

    (tmp_path / "other" / "out").mkdir(parents=True)
    (tmp_path / "other" / "out" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="holds something else"):
        done(shelf, tmp_path / "other", worker())


@needs("pydantic_ai")
@pytest.mark.parametrize(
    ("text", "assertion", "passed"),
    [
        ('{"a": true}', "json: - /a = 1", False),
        ('{"a": 1}', "json: - /a = true", False),
        ('{"a": [1, {"b": 2}]}', 'json: - /a = [1.0, {"b": 2}]', True),
        ('{"a": [true]}', "json: - /a = [1]", False),
        ('{"a": NaN}', "json: -", False),
        ("[5]", "json: - /00", False),
        ("[]", "json: - = " + "[" * 100_000, False),
    ],
)
def test_json_is_compared_by_the_rules_of_json(text: str, assertion: str, passed: bool) -> None:
    assert checked(assertion, Product(text, {})).passed is passed


@pytest.mark.parametrize(
    "path", ["a" * 300, "d/" * 600 + "x", "\ud800.txt", "a\nb.txt", "nul", ".git/config", "a\\b", "../x", "/x", "a\0b"]
)
def test_the_working_folder_takes_no_name_that_a_disk_does_not_take(path: str) -> None:
    from skillshelf.evals.output_runs import WorkingFolder

    folder = WorkingFolder({})

    assert folder.call("Write", {"file_path": path, "content": "x"}).startswith("Error: ")
    assert folder.files == {}


@needs("pydantic_ai")
def test_files_with_the_names_of_the_answer_stay_beside_it(shelf: Shelf, tmp_path: Path) -> None:
    from pydantic_ai import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: list[Any], info: Any) -> Any:
        if len(messages) == 1:
            names = ("answer.md/x.txt", "Final-Answer.md")
            calls = [ToolCallPart("Write", {"file_path": name, "content": "mine"}) for name in names]
            return ModelResponse(parts=calls)
        return ModelResponse(parts=[TextPart("the answer")])

    case = OutputCase("1", "Write.", "", (), ("exists: answer.md/x.txt",))
    _, folder = done(shelf, tmp_path, FunctionModel(answer), case, runs=1)

    outputs = folder / "eval-1" / "with_skill" / "run-1" / "outputs"
    assert (outputs / "answer.md" / "x.txt").read_text() == "mine"
    assert (outputs / "Final-Answer.md").read_text() == "mine"
    assert (outputs / "final-answer-2.md").read_text() == "the answer"


@needs("pydantic_ai")
def test_a_disk_that_takes_no_results_is_one_line(shelf: Shelf, tmp_path: Path) -> None:
    from pydantic_ai import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: list[Any], info: Any) -> Any:
        for outputs in (tmp_path / "out").rglob("outputs"):
            if outputs.is_dir():
                outputs.rmdir()
                outputs.write_text("in the way")
        return ModelResponse(parts=[TextPart("the answer")])

    with pytest.raises(ConfigurationError, match="cannot be written"):
        done(
            shelf, tmp_path, FunctionModel(answer), OutputCase("1", "Go.", "", (), ("exists: x",)), runs=1, concurrent=1
        )


def test_the_working_folder_takes_no_path_outside_it() -> None:
    from skillshelf.evals.output_runs import WorkingFolder

    folder = WorkingFolder({"a.txt": b"a"})
    for path in ("/etc/passwd", "../x", "a/../../x", "a.txt/b", ".", ""):
        assert folder.call("Write", {"file_path": path, "content": "x"}).startswith("Error")
    assert folder.files == {"a.txt": b"a"}
    assert folder.call("Read", {"file_path": "."}) == "a.txt"
    assert "not available" in folder.call("Bash", {"command": "ls"})


# A fixture of the format of skill-creator ------------------------------------------------------------
#
# What its viewer and its aggregation read, written down from its documentation and behaviour in November 2026.

SPREAD = {"mean": float, "stddev": float, "min": float, "max": float}
STATISTICS = {"pass_rate": SPREAD, "time_seconds": SPREAD, "tokens": SPREAD}
EXPECTATION = {"text": str, "passed": bool, "evidence": str}
COUNTS = {"passed": int, "failed": int, "total": int, "pass_rate": float}
BENCHMARK = {
    "metadata": {
        "skill_name": str,
        "skill_path": str,
        "executor_model": str,
        "analyzer_model": str,
        "timestamp": str,
        "evals_run": [int],
        "runs_per_configuration": int,
    },
    "runs": [
        {
            "eval_id": int,
            "eval_name": str,
            "configuration": str,
            "run_number": int,
            "result": {**COUNTS, "time_seconds": float, "tokens": int, "tool_calls": int, "errors": int},
            "expectations": [EXPECTATION],
            "notes": [str],
        }
    ],
    "run_summary": {
        "with_skill": STATISTICS,
        "without_skill": STATISTICS,
        "delta": {"pass_rate": str, "time_seconds": str, "tokens": str},
    },
    "notes": [str],
}
GRADING = {
    "expectations": [EXPECTATION],
    "assertion_results": [EXPECTATION],
    "summary": COUNTS,
    "execution_metrics": {"tool_calls": {}, "total_tool_calls": int, "errors_encountered": int, "output_chars": int},
}
TIMING = {"total_tokens": int, "duration_ms": int, "total_duration_seconds": float}
METADATA = {"eval_id": int, "prompt": str}


def misfits(value: Any, form: Any, path: str = "") -> list[str]:
    """Where a value has not the members and types of the format; it may have more members."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return [path]
        return [at for key, inner in form.items() for at in misfits(value.get(key), inner, f"{path}.{key}")]
    if isinstance(form, list):
        items = value if isinstance(value, list) else [None]
        return [at for n, item in enumerate(items) for at in misfits(item, form[0], f"{path}[{n}]")]
    fits = isinstance(value, int | float if form is float else form) and isinstance(value, bool) == (form is bool)
    return [] if fits else [path]


@needs("pydantic_ai")
def test_the_results_have_the_format_that_the_viewer_of_skill_creator_reads(shelf: Shelf, tmp_path: Path) -> None:
    _, folder = done(shelf, tmp_path, worker(), runs=2)

    benchmark = json.loads((folder / "benchmark.json").read_text())
    assert misfits(benchmark, BENCHMARK) == []
    # The viewer takes the first two members for the two configurations.
    assert list(benchmark["run_summary"]) == ["with_skill", "without_skill", "delta"]
    assert benchmark["run_summary"]["delta"]["pass_rate"] == "+0.50"
    assert [(run["configuration"], run["run_number"]) for run in benchmark["runs"]] == [
        ("with_skill", 1),
        ("with_skill", 2),
        ("without_skill", 1),
        ("without_skill", 2),
    ]
    # It finds runs by their folder `outputs`, and their prompt beside it.
    runs = sorted(path.parent for path in folder.rglob("outputs"))
    assert [str(run.relative_to(folder)) for run in runs] == [
        f"eval-1/{one}/run-{n}" for one in ("with_skill", "without_skill") for n in (1, 2)
    ]
    for run in runs:
        grading = json.loads((run / "grading.json").read_text())
        assert misfits(grading, GRADING) == []
        # With a time here the aggregation would not read the tokens of `timing.json`.
        assert "timing" not in grading
        assert misfits(json.loads((run / "timing.json").read_text()), TIMING) == []
        assert misfits(json.loads((run / "eval_metadata.json").read_text()), METADATA) == []
    assert misfits(json.loads((folder / "eval-1" / "eval_metadata.json").read_text()), METADATA) == []
