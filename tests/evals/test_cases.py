"""The files of test cases: the formats of several programs, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.trees import write_skill

from skillshelf.core.limits import EVAL_FILE_BYTES, EVAL_OUTPUTS, EVAL_QUERIES, EVAL_TASK_FILES
from skillshelf.errors import ConfigurationError
from skillshelf.evals.cases import CaseProblem, OutputCase, SkillCases, TriggerQuery, read_cases, read_queries

YES, NO = "make a release", "cook pasta"
WAZA = Path(__file__).parents[1] / "fixtures" / "waza-format"
"""A repository in the layout and the formats of waza, written for these tests."""


def put(skill: Path, name: str, value: Any) -> Path:
    path = skill / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return write_skill(tmp_path / "skills", "notes").parent


def verdicts(cases: SkillCases) -> list[tuple[str, bool]]:
    return [(query.query, query.should_trigger) for query in cases.queries]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eval_queries.json", [{"query": YES, "should_trigger": True}, {"query": NO, "should_trigger": False}]),
        ("evals/eval_queries.json", [{"query": YES, "should_trigger": True}, {"query": NO, "should_trigger": False}]),
        (
            "evals/trigger-eval.json",
            [{"id": 1, "prompt": YES, "should_trigger": True}, {"query": NO, "type": "should_not_trigger"}],
        ),
        (
            "evals/trigger_evals.json",
            {"evals": [{"prompt": YES, "should_trigger": True}, {"prompt": NO, "should_trigger": False}]},
        ),
        ("evals/trigger_cases.json", {"skill": "notes", "should_trigger": [YES], "should_not_trigger": [NO]}),
        (
            "test-triggers.json",
            {"should_trigger": [{"request": YES, "reason": "r"}], "should_not_trigger": [{"request": NO}]},
        ),
        (
            "evals/trigger-cases.json",
            {"cases": [{"skill": "notes", "should_trigger": [YES], "should_not_trigger": [NO]}]},
        ),
        (
            "evals/trigger_tests.yaml",
            f"skill: notes\nshouldTriggerPrompts:\n  - {YES}\nshouldNotTriggerPrompts:\n  - {NO}\n",
        ),
        (
            "evals/trigger_tests.yaml",
            f"skill: notes\nshould_trigger_prompts:\n  - prompt: {YES}\n    confidence: high\n"
            f"should_not_trigger_prompts:\n  - prompt: {NO}\n    reason: food\n",
        ),
        (
            "evals/trigger-queries.yml",
            f"- prompt: {YES}\n  expected: trigger\n- prompt: {NO}\n  expected: no-trigger\n",
        ),
    ],
)
def test_lists_of_queries_are_read_in_the_shapes_that_are_in_use(skill: Path, name: str, value: Any) -> None:
    put(skill, name, value)

    cases = read_cases(str(skill))

    assert verdicts(cases) == [(YES, True), (NO, False)]
    assert {query.origin for query in cases.queries} == {name}
    assert cases.problems == ()


def test_evals_json_has_tasks_whose_prompts_should_find_the_skill(skill: Path) -> None:
    put(
        skill,
        "evals/evals.json",
        {
            "skill_name": "notes",
            "evals": [
                {
                    "id": 1,
                    "prompt": YES,
                    "expected_output": "a file",
                    "files": ["evals/files/log.txt"],
                    "assertions": ["exists: NOTES.md", {"text": "has a date"}],
                },
                {"prompt": "tag it", "expectations": ["has a tag"]},
            ],
        },
    )

    cases = read_cases(str(skill))

    assert verdicts(cases) == [(YES, True), ("tag it", True)]
    assert cases.outputs == (
        OutputCase("1", YES, "a file", ("evals/files/log.txt",), ("exists: NOTES.md", "has a date")),
        OutputCase("2", "tag it", "", (), ("has a tag",)),
    )


def test_a_repository_in_the_format_of_waza_is_read_without_edits() -> None:
    cases = read_cases(str(WAZA / "skills" / "unit-converter"))

    assert verdicts(cases) == [
        ("How many kilometres are 26.2 miles?", True),
        ("Convert this recipe from cups to grams", True),
        ("Write a unit test for the parser", False),
        ("Turn 350 Fahrenheit into Celsius for my oven", True),
        ("What is the capital of Peru?", False),
        ("Convert this Word document to PDF", False),
    ]
    assert cases.problems == ()


def test_a_skill_without_test_cases_has_none(skill: Path) -> None:
    assert read_cases(str(skill)) == SkillCases()
    assert read_cases(str(skill / "missing")) == SkillCases()


def test_a_query_in_two_files_counts_once_and_a_contradiction_is_named(skill: Path) -> None:
    put(skill, "eval_queries.json", [{"query": YES, "should_trigger": True}])
    put(
        skill,
        "evals/eval_queries.json",
        [{"query": YES, "should_trigger": False}, {"query": NO, "should_trigger": False}],
    )

    cases = read_cases(str(skill))

    assert verdicts(cases) == [(YES, True), (NO, False)]
    assert cases.problems == (
        CaseProblem("evals/eval_queries.json", "'make a release' both should and should not find the skill"),
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[" * 100_000, "nested too deep"),
        ('[{"query": "a", "query": "b", "should_trigger": true}]', "not valid JSON: a member is there twice"),
        ("{", "not valid JSON"),
        ("\0", "not valid JSON"),
        ("7", "must be a list of queries"),
        ('{"queries": "no list"}', "must be a list of queries"),
        ("[" + '"x",' * (EVAL_FILE_BYTES // 4) + '"x"]', "bytes (EVAL_FILE_BYTES)"),
        ('[7, null, {"query": 7}, {"query": " "}]', "[0] has no text (as a member `query`), and 3 more"),
        ('[{"query": "a"}]', "[0] does not say whether the skill should be found"),
        ('[{"query": "a", "should_trigger": "maybe"}]', "[0] does not say"),
    ],
)
def test_a_broken_file_costs_one_problem(skill: Path, content: str, problem: str) -> None:
    put(skill, "evals/eval_queries.json", content)
    put(skill, "eval_queries.json", [{"query": YES, "should_trigger": True}])

    cases = read_cases(str(skill))

    assert verdicts(cases) == [(YES, True)]
    assert [one.file for one in cases.problems] == ["evals/eval_queries.json"]
    assert problem in cases.problems[0].message


def test_a_hundred_thousand_queries_are_cut_to_a_named_limit(skill: Path) -> None:
    put(skill, "eval_queries.json", [{"query": f"q{n}", "should_trigger": True} for n in range(100_000)])

    cases = read_cases(str(skill))

    assert len(cases.queries) == EVAL_QUERIES
    assert [str(one) for one in cases.problems] == [
        "eval_queries.json: more than 1,000 queries (EVAL_QUERIES); the others do not count"
    ]


def test_too_many_tasks_are_cut_to_a_named_limit(skill: Path) -> None:
    put(skill, "evals/evals.json", {"evals": [{"prompt": f"p{n}"} for n in range(EVAL_OUTPUTS + 5)]})
    put(skill, "evals/eval.yaml", "name: x\n")
    for n in range(EVAL_TASK_FILES + 3):
        put(skill, f"evals/tasks/t{n:04}.yaml", f"inputs:\n  prompt: task {n}\n")

    cases = read_cases(str(skill))

    assert len(cases.outputs) == EVAL_OUTPUTS
    assert [one.message.partition("(")[2].partition(")")[0] for one in cases.problems] == [
        "EVAL_OUTPUTS",
        "EVAL_TASK_FILES",
    ]


def test_a_link_is_followed_inside_the_skill_only(skill: Path, tmp_path: Path) -> None:
    outside = put(tmp_path, "secret.json", [{"query": YES, "should_trigger": True}])
    inside = put(skill, "assets/queries.json", [{"query": NO, "should_trigger": False}])
    (skill / "evals").mkdir()
    (skill / "evals" / "eval_queries.json").symlink_to(outside)
    (skill / "trigger-eval.json").symlink_to(inside)

    cases = read_cases(str(skill))

    assert verdicts(cases) == [(NO, False)]
    assert cases.problems == (CaseProblem("evals/eval_queries.json", "not a regular file inside the skill"),)


def test_a_folder_with_the_name_of_a_file_of_queries_is_named(skill: Path) -> None:
    (skill / "eval_queries.json").mkdir()

    assert [str(problem) for problem in read_cases(str(skill)).problems] == [
        "eval_queries.json: not a regular file inside the skill"
    ]


def test_a_folder_of_evals_that_is_a_link_elsewhere_does_not_count(skill: Path, tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/eval_queries.json", [{"query": YES, "should_trigger": True}])
    (skill / "evals").symlink_to(tmp_path / "elsewhere")

    cases = read_cases(str(skill))

    assert cases.queries == ()
    assert [one.file for one in cases.problems] == ["evals"]


def test_a_file_of_queries_that_the_user_names_is_read_or_an_error(tmp_path: Path) -> None:
    path = put(tmp_path, "mine.json", {"should_trigger": [YES], "should_not_trigger": [NO]})

    assert read_queries(str(path)).queries == (TriggerQuery(YES, True, str(path)), TriggerQuery(NO, False, str(path)))
    with pytest.raises(ConfigurationError, match=r"none\.json cannot be read: no such file"):
        read_queries(str(tmp_path / "none.json"))
    with pytest.raises(ConfigurationError, match="not valid JSON"):
        read_queries(str(put(tmp_path, "bad.json", "{")))
