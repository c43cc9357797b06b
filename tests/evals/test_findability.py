"""`skillshelf eval`: whether skills are found by their queries, and which descriptions are nearly the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf.core.json_types import EvalForm
from skillshelf.core.validation import validate
from skillshelf.evals.findability import SkillResult
from skillshelf.evals.reports import junit_report

TEXTS = {
    "release-notes": "Writes release notes from merged pull requests. Use when the user asks for a changelog.",
    "pdf-forms": "Fills in PDF forms and extracts their fields. Use when the user has a form to complete.",
    "sql-tuning": "Speeds up slow SQL queries with indexes and plans. Use when a database query is slow.",
}
QUERIES = {
    "release-notes": [("write the changelog for this release", True), ("fill in this PDF form", False)],
    "pdf-forms": [("complete the fields of this PDF form", True), ("why is this SQL query slow", False)],
    "sql-tuning": [("make this slow database query faster", True), ("write release notes", False)],
}


def skill_text(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n# Steps\n"


def put_skills(root: Path, texts: dict[str, str] = TEXTS) -> None:
    for name, description in texts.items():
        write_skill(root, name, skill_text(name, description))
        rows = [{"query": query, "should_trigger": yes} for query, yes in QUERIES.get(name, ())]
        if rows:
            path = root / name / "evals" / "eval_queries.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(rows), encoding="utf-8")


def run(machine: Machine, *words: str) -> tuple[int, str, str]:
    done = machine.run(*words)
    return done.returncode, done.stdout, done.stderr


def results(machine: Machine, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    status, out, _ = run(machine, "eval", "--json", *words)
    assert validate(json.loads(out), EvalForm) is None
    return status, {skill["name"]: skill for skill in json.loads(out)["skills"]}


@pytest.fixture
def skills(machine: Machine) -> Path:
    root = machine.repo / ".agents" / "skills"
    put_skills(root)
    return root


def test_every_query_has_a_rank_a_winner_and_an_outcome(machine: Machine, skills: Path) -> None:
    status, found = results(machine)

    assert status == 0
    assert [query["outcome"] for skill in found.values() for query in skill["queries"]] == ["pass"] * 6
    yes, no = found["release-notes"]["queries"]
    assert (yes["rank"], yes["winner"], yes["in_catalog"]) == (1, "release-notes", True)
    assert (no["should_trigger"], no["winner"]) == (False, "pdf-forms")
    assert found["release-notes"]["recall"] == {"1": 1.0, "3": 1.0, "8": 1.0}
    assert found["release-notes"]["false_wins"] == 0


def test_swapped_descriptions_fail_the_tests_of_both_skills(machine: Machine, skills: Path) -> None:
    swapped = {**TEXTS, "pdf-forms": TEXTS["sql-tuning"], "sql-tuning": TEXTS["pdf-forms"]}
    # Names say what a skill does, too.
    put_skills(skills, swapped)

    status, found = results(machine)

    failed = {name for name, skill in found.items() if any(query["outcome"] == "fail" for query in skill["queries"])}
    assert status == 1
    assert failed == {"pdf-forms", "sql-tuning"}


def test_a_blank_description_leaves_no_recall(machine: Machine, skills: Path) -> None:
    write_skill(skills, "pdf-forms", skill_text("pdf-forms", ""))

    status, found = results(machine)

    assert status == 1
    assert found["pdf-forms"]["recall"] == {"1": 0.0, "3": 0.0, "8": 0.0}
    assert found["pdf-forms"]["problem"].startswith("rejected: ")
    assert [query["rank"] for query in found["pdf-forms"]["queries"]] == [None, None]


def test_a_negative_query_that_the_skill_wins_is_a_false_win(machine: Machine, skills: Path) -> None:
    queries = skills / "sql-tuning" / "eval_queries.json"
    queries.write_text(
        json.dumps([{"query": "explain this SQL query plan", "should_trigger": False}]), encoding="utf-8"
    )

    status, found = results(machine, "sql-tuning")

    assert (status, list(found), found["sql-tuning"]["false_wins"]) == (1, ["sql-tuning"], 1)


def test_a_skill_beyond_the_budget_of_the_catalog_text_fails(machine: Machine, skills: Path) -> None:
    machine.configure("[skills.initial]\nmax_tokens = 110\n")

    status, found = results(machine)

    outcomes = {
        name: (skill["queries"][0]["in_catalog"], skill["queries"][0]["outcome"]) for name, skill in found.items()
    }
    assert status == 1
    assert (False, "fail") in outcomes.values()
    assert found["sql-tuning"]["recall"]["1"] == 1.0


def test_skills_of_an_untrusted_folder_are_judged_like_others(machine: Machine, skills: Path) -> None:
    assert machine.shelf(trust="ask").catalog.skills[0].hidden == "untrusted"

    assert results(machine)[1]["pdf-forms"]["queries"][0]["in_catalog"] is True


def test_a_copy_that_wins_counts_as_the_skill(machine: Machine, skills: Path) -> None:
    for number in range(4):
        write_skill(skills, f"a-{number}", skill_text(f"a-{number}", TEXTS["pdf-forms"]))

    status, found = results(machine)

    query = found["pdf-forms"]["queries"][0]
    assert (status, query["rank"], query["winner"]) == (0, 1, "pdf-forms")


def test_descriptions_that_say_nearly_the_same_are_named_with_the_words_that_differ(
    machine: Machine, skills: Path
) -> None:
    other = "Writes release notes from merged pull requests of a milestone. Use when the user asks for a changelog."
    write_skill(skills, "milestone-log", skill_text("milestone-log", other))

    _, found = results(machine)

    (collision,) = found["release-notes"]["collisions"]
    assert collision["with"] == "milestone-log"
    assert {"release", "notes", "changelog"} <= {*collision["shared"]}
    assert (collision["own"], collision["other"]) == ([], ["milestone"])
    assert [one["with"] for one in found["milestone-log"]["collisions"]] == ["release-notes"]
    assert found["sql-tuning"]["collisions"] == []


def test_identical_texts_are_one_neighbour(machine: Machine, skills: Path) -> None:
    for number in range(3):
        write_skill(skills, f"copy-{number}", skill_text(f"copy-{number}", TEXTS["pdf-forms"]))

    _, found = results(machine)

    pairs = {frozenset((name, one["with"])) for name, skill in found.items() for one in skill["collisions"]}
    assert pairs == {frozenset(("copy-0", other)) for other in ("copy-1", "copy-2", "pdf-forms")}


def test_another_root_is_the_rest_of_the_catalog(machine: Machine, skills: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / "market", "changelogs", skill_text("changelogs", "Writes the changelog for a release."))

    _, found = results(machine, "release-notes", "--against", str(tmp_path / "market"))

    first, second = found["release-notes"]["queries"]
    assert (first["rank"], first["winner"]) == (2, "changelogs")
    # The other skills of this catalog do not take part.
    assert second["winner"] != "pdf-forms"


def test_queries_of_a_file_are_tried_for_the_named_skill(machine: Machine, skills: Path, tmp_path: Path) -> None:
    path = tmp_path / "more.json"
    path.write_text(json.dumps({"should_trigger": ["list merged pull requests"]}), encoding="utf-8")

    _, found = results(machine, "release-notes", "--queries", str(path))

    assert found["release-notes"]["queries"][-1]["query"] == "list merged pull requests"
    status, _, error = run(machine, "eval", "--queries", str(path))
    assert (status, "needs the NAME" in error) == (2, True)


def test_an_unknown_name_is_not_found(machine: Machine, skills: Path) -> None:
    assert run(machine, "eval", "release-note")[0] == 3


def test_a_host_is_tested_on_the_text_that_it_shows(machine: Machine) -> None:
    root = machine.repo / ".claude" / "skills"
    put_skills(root)
    assert results(machine, "--host", "claude-code", "sql-tuning")[1]["sql-tuning"]["queries"][0]["outcome"] == "pass"

    # The list has no room for the last descriptions, and the names of these say nothing.
    padding = "Handles a chapter of the handbook. " + "Words of padding. " * 40
    put_skills(root, {f"a-{n:03}": f"{padding} Number {n}." for n in range(80)})
    os.rename(root / "sql-tuning", root / "z9")
    write_skill(root, "z9", skill_text("z9", TEXTS["sql-tuning"]))
    status, found = results(machine, "--host", "claude-code", "z9")

    assert (status, found["z9"]["host"], found["z9"]["queries"][0]["rank"]) == (1, "claude-code", None)


def test_a_skill_that_a_host_does_not_list_cannot_trigger_there(machine: Machine, skills: Path) -> None:
    status, found = results(machine, "--host", "claude-code", "sql-tuning")

    query = found["sql-tuning"]["queries"][0]
    assert (status, query["rank"], query["in_catalog"], query["outcome"]) == (1, None, False, "fail")
    assert found["sql-tuning"]["problem"] == "claude-code does not list it; run `skillshelf why sql-tuning`"


def test_a_baseline_fails_only_on_what_is_worse(machine: Machine, skills: Path, tmp_path: Path) -> None:
    known = skills / "pdf-forms" / "eval_queries.json"
    known.write_text(json.dumps([{"query": "translate this novel", "should_trigger": True}]), encoding="utf-8")
    status, out, _ = run(machine, "eval", "--json")
    baseline = tmp_path / "eval.json"
    baseline.write_text(out, encoding="utf-8")
    assert status == 1

    assert run(machine, "eval", "--baseline", str(baseline))[0] == 0
    new = skills / "sql-tuning" / "eval_queries.json"
    new.write_text(json.dumps([{"query": "translate this poem", "should_trigger": True}]), encoding="utf-8")
    assert run(machine, "eval", "--baseline", str(baseline))[0] == 0
    write_skill(skills, "sql-tuning", skill_text("sql-tuning", "Paints walls. Use for a painter."))
    status, out, _ = run(machine, "eval", "--baseline", str(baseline))
    assert (status, "1 result worse than in the baseline" in out) == (1, True)


def test_a_file_of_queries_that_could_be_read_before_is_worse_than_the_baseline(
    machine: Machine, skills: Path, tmp_path: Path
) -> None:
    baseline = tmp_path / "eval.json"
    baseline.write_text(run(machine, "eval", "--json")[1], encoding="utf-8")
    (skills / "pdf-forms" / "evals" / "eval_queries.json").write_text("{", encoding="utf-8")

    status, out, _ = run(machine, "eval", "--baseline", str(baseline))

    assert (status, "evals/eval_queries.json: not valid JSON" in out) == (1, True)
    baseline.write_text(run(machine, "eval", "--json")[1], encoding="utf-8")
    assert run(machine, "eval", "--baseline", str(baseline))[0] == 0


def test_a_failed_query_names_the_words_that_the_description_lacks_or_should_not_have(
    machine: Machine, skills: Path
) -> None:
    rows = [
        {"query": "translate the release notes", "should_trigger": False},
        {"query": "translate this poem", "should_trigger": True},
    ]
    (skills / "release-notes" / "evals" / "eval_queries.json").write_text(json.dumps(rows), encoding="utf-8")

    _, found = results(machine, "release-notes")
    _, out, _ = run(machine, "eval", "release-notes")

    assert [query["words"] for query in found["release-notes"]["queries"]] == [
        ["release", "notes"],
        ["translate", "poem"],
    ]
    assert "but it is first, by release, notes" in out
    assert "not found; description lacks translate, poem" in out


def test_a_folder_that_is_no_root_is_tested_among_the_skills_of_the_catalog(
    machine: Machine, skills: Path, tmp_path: Path
) -> None:
    other = tmp_path / "collection" / "skills"
    for name in ("tea", "coffee"):
        write_skill(other, name, skill_text(name, f"Makes {name} for guests. Use when somebody is thirsty."))
    rows = [{"query": "make tea for my guests", "should_trigger": True}]
    (other / "tea" / "eval_queries.json").write_text(json.dumps(rows), encoding="utf-8")

    for path in (other / "tea", other / "tea" / "SKILL.md"):
        status, found = results(machine, str(path))
        assert (status, list(found)) == (0, ["tea"])
    assert list(results(machine, str(other))[1]) == ["coffee", "tea"]
    assert "tested among 5" in run(machine, "eval", str(other / "tea"))[1]
    assert run(machine, "eval", str(tmp_path / "nothing"))[0] == 3
    assert run(machine, "eval", str(tmp_path), "--model", "test")[0] == 2


def test_a_repository_in_the_format_of_waza_is_tested_from_the_command_line(machine: Machine) -> None:
    fixture = Path(__file__).parents[1] / "fixtures" / "waza-format" / "skills"

    _, found = results(machine, str(fixture))

    assert len(found["unit-converter"]["queries"]) == 6
    assert found["unit-converter"]["recall"]["3"] == 1.0
    assert found["unit-converter"]["notes"] == []


def test_what_the_catalog_shadows_is_tested_where_a_host_lists_it(machine: Machine, skills: Path) -> None:
    write_skill(machine.home / ".agents" / "skills", "pdf-forms", skill_text("pdf-forms", "Prints forms for a fair."))
    path = str(skills / "pdf-forms" / "SKILL.md")

    _, out, _ = run(machine, "eval", "--json", path, "--host", "codex")
    assert [(skill["problem"], skill["recall"]["3"]) for skill in json.loads(out)["skills"]] == [(None, 1.0)]
    _, out, _ = run(machine, "eval", "--json", path)
    assert json.loads(out)["skills"][0]["problem"].startswith("shadowed by ")


def test_a_hidden_skill_says_why_no_model_is_told_of_it(machine: Machine, skills: Path) -> None:
    text = skill_text("pdf-forms", TEXTS["pdf-forms"]).replace("---\n#", "disable-model-invocation: true\n---\n#")
    write_skill(skills, "pdf-forms", text)

    status, found = results(machine, "pdf-forms")

    assert status == 1
    assert found["pdf-forms"]["problem"] == "hidden from models: disable-model-invocation"
    assert [query["in_catalog"] for query in found["pdf-forms"]["queries"]] == [False, False]


def test_a_query_is_never_cut(machine: Machine, skills: Path) -> None:
    long = "a line of a log\n" * 1_000 + "complete the fields of this PDF form"
    rows = [{"query": long, "should_trigger": True}]
    (skills / "pdf-forms" / "evals" / "eval_queries.json").write_text(json.dumps(rows), encoding="utf-8")

    _, found = results(machine, "pdf-forms")

    assert [(query["query"], query["rank"]) for query in found["pdf-forms"]["queries"]] == [(long, 1)]


def test_a_folder_to_test_against_that_is_not_there_is_an_error(machine: Machine, skills: Path) -> None:
    status, _, error = run(machine, "eval", "pdf-forms", "--against", "nowhere")

    assert (status, "nowhere: no such folder" in error) == (2, True)


def test_without_skills_it_says_how_to_make_one(machine: Machine) -> None:
    status, out, _ = run(machine, "eval")

    assert (status, "skillshelf new NAME" in out) == (0, True)


_NO_OUTCOME = '{"skills": [{"name": "x", "queries": [{"query": "a", "should_trigger": true, "outcome": 5}]}]}'


@pytest.mark.parametrize("content", ["{", "[]", '{"skills": 7}', '{"skills": [{}]}', "[" * 100_000, _NO_OUTCOME])
def test_a_baseline_that_is_no_result_is_an_error(machine: Machine, skills: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "eval.json"
    path.write_text(content, encoding="utf-8")

    status, _, error = run(machine, "eval", "--baseline", str(path))

    assert (status, "is not a result of" in error) == (2, True)


def test_junit_is_valid_whatever_queries_contain(machine: Machine, skills: Path) -> None:
    hostile = ['a\x00b\x1b[31m <tag attr="\'"> ]]> & \ud800 \ufffe', "plain"]
    rows = [{"query": query, "should_trigger": True} for query in hostile]
    (skills / "pdf-forms" / "eval_queries.json").write_text(json.dumps(rows), encoding="utf-8")

    status, out, _ = run(machine, "eval", "--format", "junit")

    suites = ElementTree.fromstring(out)
    assert status == 1
    assert [suite.get("name") for suite in suites] == ["pdf-forms", "release-notes", "sql-tuning"]
    assert suites.get("failures") == str(len(suites.findall(".//failure")))


def test_without_queries_it_says_what_to_write(machine: Machine) -> None:
    write_skill(machine.repo / ".agents" / "skills", "notes")

    status, out, _ = run(machine, "eval")

    assert status == 0
    assert "Write some, as .agents/skills/notes/evals/eval_queries.json:" in out
    assert "test of findability, without a model" in out


def test_a_file_of_queries_that_cannot_be_read_is_named_and_fails(machine: Machine, skills: Path) -> None:
    (skills / "pdf-forms" / "eval_queries.json").write_text("{", encoding="utf-8")

    status, _, error = run(machine, "eval")

    assert status == 1
    assert "eval_queries.json: not valid JSON" in error


@pytest.mark.slow
def test_the_output_is_the_same_for_twenty_hash_seeds(machine: Machine, skills: Path) -> None:
    write_skill(skills, "twin", skill_text("twin", TEXTS["pdf-forms"] + " Keeps a log of filled forms."))
    command = [sys.executable, "-m", "skillshelf", "eval", "--home", str(machine.home)]
    outputs = {
        subprocess.run(
            [*command, *words],
            cwd=machine.repo,
            env={**os.environ, "PYTHONHASHSEED": str(seed), "HOME": str(machine.home)},
            capture_output=True,
            check=False,
        ).stdout
        for seed in range(20)
        for words in ([["--json"]] if seed % 2 else [["--json", "--no-cache"]])
    }

    assert len(outputs) == 1


def test_a_copy_for_another_agent_is_the_same_skill(machine: Machine, skills: Path) -> None:
    shutil.copytree(skills, machine.repo / ".claude" / "skills")

    status, out, _ = run(machine, "eval", "--json", "--host", "claude-code", "--host", "codex")
    found = [(skill["host"], skill["name"], skill["recall"]["3"]) for skill in json.loads(out)["skills"]]
    assert (status, found) == (0, [(host, name, 1.0) for host in ("claude-code", "codex") for name in sorted(TEXTS)])
    status, out, _ = run(machine, "eval", "--json")
    assert (status, len(json.loads(out)["skills"])) == (0, len(TEXTS))


def test_a_copy_is_tested_with_queries_that_the_skill_does_not_have(machine: Machine, skills: Path) -> None:
    # The skill of the user's own folder shadows that of the project.
    shutil.copytree(skills, machine.home / ".agents" / "skills")
    shutil.rmtree(machine.home / ".agents" / "skills" / "pdf-forms" / "evals")

    _, out, _ = run(machine, "eval", "--json")

    rows = [
        (skill["path"], skill["recall"]["3"]) for skill in json.loads(out)["skills"] if skill["name"] == "pdf-forms"
    ]
    assert sorted(recall is not None for _, recall in rows) == [False, True]
    assert [recall for _, recall in rows if recall is not None] == [1.0]


def test_what_the_baseline_has_and_nobody_tests_now_is_named(machine: Machine, skills: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(run(machine, "eval", "--json")[1], encoding="utf-8")
    shutil.rmtree(skills / "sql-tuning")

    status, _, error = run(machine, "eval", "--baseline", str(baseline))
    assert (status, error) == (0, "skillshelf: 2 results of the baseline not tested now: sql-tuning\n")
    status, _, error = run(machine, "eval", "pdf-forms", "--baseline", str(baseline))
    assert (status, error) == (0, "")


def test_junit_has_a_case_for_a_file_that_cannot_be_read(machine: Machine, skills: Path) -> None:
    (skills / "pdf-forms" / "evals" / "eval_queries.json").write_text("[", encoding="utf-8")

    status, out, _ = run(machine, "eval", "pdf-forms", "--format", "junit")

    (case,) = ElementTree.fromstring(out).iter("testcase")
    (error,) = case
    assert (status, case.get("name"), error.tag) == (1, "evals/eval_queries.json", "error")
    assert "not valid JSON" in (error.get("message") or "")


def test_queries_that_cannot_be_read_are_not_asked_for_again(machine: Machine, skills: Path) -> None:
    (skills / "pdf-forms" / "evals" / "eval_queries.json").write_text("[", encoding="utf-8")

    _, out, _ = run(machine, "eval", "pdf-forms")

    assert "pdf-forms/SKILL.md: evals/eval_queries.json: not valid JSON" in out
    assert "Write some" not in out


def test_a_host_that_cuts_a_description_is_named_with_the_words_it_does_not_show(
    machine: Machine, skills: Path
) -> None:
    root = machine.repo / ".claude" / "skills"
    long = " ".join(f"part{n}" for n in range(400))
    write_skill(root, "late", skill_text("late", f"{long} zebras"))
    (root / "late" / "eval_queries.json").write_text('[{"query": "feed zebras", "should_trigger": true}]')

    _, out, _ = run(machine, "eval", "late", "--host", "claude-code")

    assert "not found; what claude-code shows lacks feed, zebras" in " ".join(out.split())


def test_junit_has_a_case_for_each_task() -> None:
    rate: Any = {"pass_rate": None, "runs": 1, "errors": 1}
    tasks: list[Any] = [
        {"id": name, "prompt": "Do it.", "outcome": name, "with_skill": rate, "without_skill": rate}
        for name in ("pass", "fail", "error")
    ]
    result = SkillResult("a", "/a/SKILL.md", None, None, (), (), outputs=tuple(tasks))

    suite = ElementTree.fromstring(junit_report([result]))[0]

    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("task pass", []),
        ("task fail", ["failure"]),
        ("task error", ["error"]),
    ]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
