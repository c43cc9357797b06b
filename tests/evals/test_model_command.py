"""`skillshelf eval --model`, in this process and with a server that has the OpenAI API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.model_loopback import ModelLoopback, model_loopback
from support.model_server import model_server
from support.needs import needs
from support.trees import Machine, write_skill

import skillshelf
from skillshelf.cli.main import main

QUERIES = [{"query": "Brew me a tea.", "should_trigger": True}, {"query": "Ship it.", "should_trigger": False}]
TASKS = [{"id": 7, "prompt": "use coffee", "expected_output": "", "assertions": ["exists: cup.txt"]}]


@pytest.fixture
def place(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that point the command at a machine with two skills, of which one has queries and a task."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    root = machine.home / ".agents" / "skills"
    for name in ("tea", "coffee"):
        write_skill(root, name)
    (root / "tea" / "evals").mkdir()
    (root / "tea" / "evals" / "eval_queries.json").write_text(json.dumps(QUERIES))
    (root / "tea" / "evals" / "evals.json").write_text(json.dumps({"skill_name": "tea", "evals": TASKS}))
    return ["--cwd", str(machine.repo), "--home", str(machine.home)]


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelLoopback]:
    """A model that loads `tea` if the user names it."""
    with model_loopback() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123")
        yield model


def results(out: str) -> dict[str, Any]:
    """The results of the skill `tea` in the JSON of the command, which fits its schema."""
    schema = Path(skillshelf.__file__).parent / "json_schemas" / "eval.json"
    jsonschema.validate(json.loads(out), json.loads(schema.read_text()))
    found: dict[str, Any] = next(skill for skill in json.loads(out)["skills"] if skill["name"] == "tea")
    return found


@needs("pydantic_ai")
@needs("openai")
def test_a_model_at_any_address_with_the_openai_api_is_asked(
    place: list[str], loopback: ModelLoopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journals = tmp_path / "journals"

    main(["eval", "tea", "--model", "m", "--runs", "2", "--journals", str(journals), "--json", *place])

    out, err = capsys.readouterr()
    brew, ship = (
        query["model"] for query in results(out)["queries"] if query["query"] in ("Brew me a tea.", "Ship it.")
    )
    assert (brew["triggered"], brew["errors"], brew["outcome"]) == (2, 0, "pass")
    assert (ship["triggered"], ship["errors"], ship["outcome"]) == (0, 0, "pass")
    assert len(brew["journals"]) == 2
    assert "asking openai-chat:m: at most" in err
    assert {"skill_search", "skill_load", "Bash"} <= set(loopback.tools[0])
    assert not [path for path in journals.iterdir() if b"very-secret" in path.read_bytes()]


@needs("pydantic_ai")
@needs("openai")
def test_a_server_that_refuses_gives_errors_and_repeats_no_key(
    place: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with model_server(*[401] * 40) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123")
        status = main(["eval", "tea", "--model", "m", "--runs", "1", "--json", *place])

    out, err = capsys.readouterr()
    assert status == 1
    assert {query["outcome"] for query in results(out)["queries"]} == {"error"}
    assert "401" in results(out)["queries"][0]["model"]["details"][0]
    assert "very-secret" not in out + err


@needs("pydantic_ai")
@needs("openai")
def test_tasks_are_done_and_written_for_other_viewers(
    place: list[str], loopback: ModelLoopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"

    status = main(["eval", "tea", "--model", "m", "--runs", "1", "--output", str(output), "--json", *place])

    out, err = capsys.readouterr()
    assert status == 1
    [task] = results(out)["outputs"]
    assert (task["id"], task["outcome"], task["with_skill"]["failed"]) == ("7", "fail", 1)
    assert "doing tasks with openai-chat:m: at most 32 requests" in err
    benchmark = json.loads((output / "tea" / "iteration-1" / "benchmark.json").read_text())
    assert [run["eval_id"] for run in benchmark["runs"]] == [7, 7]
    assert (output / "tea/iteration-1/eval-7/with_skill/run-1/grading.json").is_file()


@needs("pydantic_ai")
@needs("openai")
def test_a_folder_for_results_that_holds_something_else_is_refused_before_the_first_request(
    place: list[str], loopback: ModelLoopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("Dear")

    status = main(["eval", "tea", "--model", "m", "--output", str(tmp_path / "mine"), *place])

    assert (status, loopback.turns) == (2, [])
    assert "holds something else" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@needs("pydantic_ai")
@needs("openai")
def test_a_skill_that_is_hidden_from_the_model_is_named(
    place: list[str], machine: Machine, loopback: ModelLoopback, capsys: pytest.CaptureFixture[str]
) -> None:
    written = write_skill(machine.repo / ".agents" / "skills", "juice")
    (written.parent / "eval_queries.json").write_text(json.dumps([{"query": "Press fruit.", "should_trigger": True}]))

    main(["eval", "juice", "--model", "m", "--runs", "1", *place])

    assert "juice is hidden from the model: untrusted (--trust shows it)" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["journals", "judge", "output"])
def test_options_of_runs_need_a_model(option: str, place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["eval", "tea", f"--{option}", "x", *place])

    assert status == 2
    assert f"--{option} is for runs with a model; add --model M" in capsys.readouterr().err
