"""A search finds skills in classes and in order, also for odd queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf import CatalogSkill, ConfigurationError, SearchReport
from skillshelf.core.limits import QUERY_CHARS
from skillshelf.search.rank import analyzer


def put(machine: Machine, name: str, description: str, body: str = "", *, where: str = "repo", more: str = "") -> Path:
    """A skill of the repository, or of the user."""
    root = (machine.repo if where == "repo" else machine.home) / ".agents" / "skills"
    return write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}\n")


def found(report: SearchReport) -> list[tuple[str, str]]:
    """The names and classes of the results."""
    return [(result.skill.name, result.reason) for result in report.results]


def names(report: SearchReport) -> list[str]:
    """The names of the results."""
    return [result.skill.name for result in report.results]


# Classes and ties ---------------------------------------------------------------------------------


@pytest.mark.req("C-33", "C-51", "C-52")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_a_path_comes_before_a_name_before_a_prefix_before_shared_words(machine: Machine, profile: str) -> None:
    put(machine, "release", "Nothing to see.")
    put(machine, "release-notes", "Nothing to see either.")
    put(machine, "changelog", "Writes what a release changed.")
    put(machine, "releasx", "Shares all letters but the last.")
    elsewhere = machine.repo / ".agents" / "skills"
    shelf = machine.shelf(profile, cwd=elsewhere)

    report = shelf.search("release")

    assert found(report) == [
        ("release", "exact_path"),
        ("release-notes", "prefix"),
        ("changelog", "token_overlap"),
    ]
    assert found(machine.shelf(profile).search("Release")) == [
        ("release", "exact_name"),
        ("release-notes", "prefix"),
        ("changelog", "token_overlap"),
    ]
    assert [result.score for result in report.results][:2] == [1000, 700]


@pytest.mark.req("C-53")
def test_a_system_that_counts_words_gets_a_hundred_and_one_for_each(machine: Machine) -> None:
    put(machine, "notes", "Draft release notes from merged pull requests.", "Body words do not count: zebra.")
    put(machine, "changelog", "Lists what is new.")
    shelf = machine.shelf("codelia")

    assert [r.score for r in shelf.search("draft the release-notes, draft them").results] == [103]
    assert [(r.skill.name, r.score) for r in shelf.search("the changelog, what else").results] == [("changelog", 102)]
    assert shelf.search("zebra").results == ()
    assert shelf.search("пример").results == ()


@pytest.mark.req("C-54", "C-55", "C-56")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_equal_scores_are_ordered_by_scope_and_then_by_path(machine: Machine, profile: str) -> None:
    for name in ("beta", "alpha"):
        put(machine, f"user-{name}", "Paints fences.", where="home")
        put(machine, f"repo-{name}", "Paints fences.")
    put(machine, "fence-painting", "Paints fences and does nothing else.", where="home")
    # Its name comes last, its path first.
    text = "---\nname: repo-omega\ndescription: Paints fences.\n---\n\n"
    write_skill(machine.repo / ".agents/skills", "repo-omega", text, folder="above/repo-omega")

    order = names(machine.shelf(profile).search("paints fences, fence painting", every=True))

    assert order == ["fence-painting", "repo-omega", "repo-alpha", "repo-beta", "user-alpha", "user-beta"]


@pytest.mark.req("C-114")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_a_word_finds_names_and_descriptions(machine: Machine, profile: str) -> None:
    put(machine, "release-notes", "Writes what changed.")
    put(machine, "publishing", "Everything about a release.")
    put(machine, "unrelated", "Paints fences.")

    result = machine.shelf(profile).session().call("skill_search", {"query": "release"})

    assert [entry["skill"]["name"] for entry in result.data["results"]] == ["release-notes", "publishing"]


# Relevance ----------------------------------------------------------------------------------------


def test_a_body_is_searched_and_never_sent(machine: Machine) -> None:
    put(machine, "alpha", "Does things.", "Use the frobnicator to calibrate the telescope.")
    put(machine, "beta", "Does other things.")

    result = machine.shelf().session().call("skill_search", {"query": "calibrating a telescope"})

    assert [entry["skill"]["name"] for entry in result.data["results"]] == ["alpha"]
    assert "frobnicator" not in repr(result)


def test_words_in_a_description_count_more_than_words_in_a_body(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.", "You may also deploy it. " + "Then mix the colour and wait. " * 99)
    put(machine, "beta", "Helps to deploy services.")

    assert names(machine.shelf().search("deploy it")) == ["beta", "alpha"]


def test_a_query_that_covers_a_name_prefers_it(machine: Machine) -> None:
    put(machine, "pdf-forms-signing-service", "Handles PDF forms.")
    put(machine, "pdf-forms", "Handles PDF forms.", "# Forms")

    assert names(machine.shelf().search("fill my pdf forms")) == ["pdf-forms", "pdf-forms-signing-service"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Deploys to GitHub Pages.", "github"),
        ("Deploys to GitHub Pages.", "hub"),
        ("Calls parseHTTPResponse.", "http response"),
        ("Keeps snake_case_names apart.", "names"),
        ("Draws ｆｕｌｌｗｉｄｔｈ letters.", "fullwidth"),
        ("Handles caf\u00e9 menus.", "cafe\u0301"),
        ("Schedules meetings.", "schedule a meeting"),
        ("将任意代码库转换为主题。", "代码转换"),
        ("画图工具。", "图"),
        ("請求書を作成する。", "請求書の作成"),
        ("회의록을 요약합니다.", "회의록 요약"),
        ("Übersetzt Verträge.", "verträge"),
        ("Uses the who and the what.", "what"),
    ],
)
def test_words_are_found_in_the_forms_people_write_them(machine: Machine, text: str, query: str) -> None:
    put(machine, "alpha", "Nothing of that.")
    put(machine, "beta", text)

    assert names(machine.shelf().search(query)) == ["beta"]


def test_stop_words_do_not_find_everything(machine: Machine) -> None:
    put(machine, "alpha", "What you use when you want to be with them.")
    put(machine, "beta", "Paints fences.")

    assert names(machine.shelf().search("what should I use to paint")) == ["beta"]


@pytest.mark.parametrize("typo", ["deplpyment", "deplyment", "deploymment", "delpoyment", "xeployment"])
def test_one_wrong_letter_in_a_word_that_no_skill_has_is_corrected_with_a_note(machine: Machine, typo: str) -> None:
    put(machine, "alpha", "Runs a deployment.")
    put(machine, "beta", "Paints fences.")

    report = machine.shelf().search(f"start {typo}")

    assert names(report) == ["alpha"]
    assert len(report.notes) == 1
    assert report.notes[0].endswith("searched for 'deployment'")


@pytest.mark.parametrize(
    ("typo", "said"),
    [("kuberntes", "kubernetes"), ("securty", "security"), ("tets", "tests"), ("Relase", "release")],
)
def test_a_correction_is_a_word_that_stands_in_a_skill(machine: Machine, typo: str, said: str) -> None:
    put(machine, "alpha", "Gets security tests for a Kubernetes release, with the real relations.")
    put(machine, "beta", "Gets what is related.")

    assert machine.shelf().search(typo).notes == (f"no skill has {typo.lower()!r}; searched for {said!r}",)


@pytest.mark.parametrize("words", ["realese", "FenceActions", "thsi", "usign"])
def test_what_has_no_word_of_a_skill_near_it_is_not_corrected(machine: Machine, words: str) -> None:
    put(machine, "alpha", "Use this for the real fence in actions.")

    assert machine.shelf().search(words).notes == ()


def test_stop_words_are_known_in_curly_quotes_too(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences, and I\u2019d say the \u201cwalls\u201d.")
    put(machine, "beta", "What I\u2019d like the most.")

    assert names(machine.shelf().search("I\u2019d like \u201cthe\u201d fences")) == ["alpha"]


def test_a_word_that_some_skill_has_is_never_corrected(machine: Machine) -> None:
    put(machine, "alpha", "Reads a form.")
    put(machine, "beta", "Makes foam.")
    put(machine, "gamma", "Makes more foam.")

    report = machine.shelf().search("form")

    assert (names(report), report.notes) == (["alpha"], ())


# Queries and limits -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["standard", "codelia"])
@pytest.mark.parametrize("query", ["", "  \n\t", "\u3000"])
def test_a_blank_query_is_an_empty_answer(machine: Machine, profile: str, query: str) -> None:
    put(machine, "alpha", "Does things.")
    shelf = machine.shelf(profile)

    result = shelf.session().call("skill_search", {"query": query})

    assert shelf.search(query) == SearchReport(query, 0, False, (), weak=True)
    empty = {"query": query, "count": 0, "truncated": False, "confidence": 0.0, "weak": True, "notes": []}
    assert (result.ok, result.data) == (True, {**empty, "results": []})


@pytest.mark.parametrize("query", ["paint " + "x" * 1_000_000, "x" * 1_000_000 + " paint"])
def test_of_a_query_of_a_megabyte_beginning_and_end_are_searched_for(machine: Machine, query: str) -> None:
    put(machine, "alpha", "Paints fences.")

    report = machine.shelf().search(query)
    result = machine.shelf().session().call("skill_search", {"query": query})

    assert names(report) == ["alpha"]
    assert report.query == query[:QUERY_CHARS] + "…"
    said = "the query has 1,000,006 characters; its first and last 4,096 were searched for"
    assert report.notes[0] == said
    assert f"({said})" in result.text


@pytest.mark.parametrize("query", ["\0", "\ud800", "🧾", "([{", "/", "..", "~", "a\nb", '"', "AND OR NOT", "*"])
def test_any_text_can_be_looked_for(machine: Machine, query: str) -> None:
    put(machine, "alpha", "Paints fences.")

    assert machine.shelf().search(query).results == ()


@pytest.mark.req("C-99", "C-100")
def test_eight_are_given_unless_asked_and_never_more_than_fifty(machine: Machine) -> None:
    for number in range(60):
        put(machine, f"paint-{number:02d}", "Paints fences.", f"# {number}")
    shelf = machine.shelf()

    assert [shelf.search("paint", limit=limit).count for limit in (None, 3, 50, 60, 10**9)] == [8, 3, 50, 50, 50]
    assert [shelf.search("paint", limit=limit).truncated for limit in (None, 50)] == [True, True]
    machine.configure("[skills.search]\ndefault_limit = 2\nmax_limit = 4\n")
    assert [machine.shelf().search("paint", limit=limit).count for limit in (None, 50)] == [2, 4]


@pytest.mark.parametrize("count", [3, 4])
def test_an_answer_says_whether_there_were_more(machine: Machine, count: int) -> None:
    for number in range(count):
        put(machine, f"paint-{number}", "Paints fences.", f"# {number}")

    report = machine.shelf().search("paint", limit=3)

    assert (report.count, report.truncated) == (3, count > 3)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "8"])
def test_a_limit_below_one_is_refused(machine: Machine, limit: Any) -> None:
    put(machine, "alpha", "Paints fences.")

    with pytest.raises(ConfigurationError, match="a limit must be a whole number of at least 1, not"):
        machine.shelf().search("paint", limit=limit)


@pytest.mark.req("C-24", "C-78")
def test_a_scope_narrows_a_search(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.")
    put(machine, "beta", "Paints fences.", where="home")
    shelf = machine.shelf("codelia")
    session = shelf.session()

    def ask(**arguments: Any) -> list[str]:
        return [entry["skill"]["name"] for entry in session.call("skill_search", arguments).data["results"]]

    assert ask(query="paints") == ["alpha", "beta"]
    assert ask(query="paints", scope="repo") == ["alpha"]
    assert ask(query="paints", scope="user") == ["beta"]
    assert ask(query="paints", limit=1) == ["alpha"]
    assert session.call("skill_search", {"query": "paints", "scope": "moon"}).error is not None
    assert session.call("skill_search", {}).error is not None
    with pytest.raises(ConfigurationError, match=r"unknown scope 'moon' in profile codelia \(known: repo, user"):
        shelf.search("paints", scope="moon")


@pytest.mark.req("C-32", "C-79", "C-80")
@pytest.mark.parametrize("profile", ["standard", "codelia"])
def test_a_tool_call_gives_candidates_with_score_reason_and_skill(machine: Machine, profile: str) -> None:
    path = put(machine, "alpha", "Paints fences.")
    put(machine, "beta", "Paints fences.", where="home")

    # Some programs have no other kind of number.
    data = machine.shelf(profile).session().call("skill_search", {"query": "alpha", "limit": 1.0}).data

    assert (data["query"], data["count"], data["truncated"]) == ("alpha", 1, False)
    (entry,) = data["results"]
    assert (entry["score"], entry["reason"]) == (900, "exact_name")
    summary = {key: entry["skill"][key] for key in ("name", "description", "path", "scope")}
    scope = "repo" if profile == "codelia" else "project"
    assert summary == {"name": "alpha", "description": "Paints fences.", "path": str(path), "scope": scope}


# Who sees what ------------------------------------------------------------------------------------


@pytest.mark.req("C-19")
def test_skills_hidden_from_models_are_missing_and_the_others_keep_their_scores(machine: Machine) -> None:
    for name in ("alpha", "beta", "gamma", "delta"):
        more = "disable-model-invocation: true\n" if name == "gamma" else ""
        put(machine, name, f"Paints fences, {name} first.", where="home", more=more)
    put(machine, "epsilon", "Paints fences.")
    before = {result.skill.name: result.score for result in machine.shelf().search("paint fences", every=True).results}

    config = {
        "skills": {"disabled": ["alpha"]},
        "permissions": {"deny": [{"tool": "skill_load", "skill_name": "beta"}]},
    }
    shelf = machine.shelf(config=config, trust="ask")
    seen = shelf.search("paint fences", model=True, every=True)
    person = shelf.search("paint fences", every=True)

    assert {result.skill.name: result.score for result in seen.results} == {"delta": before["delta"]}
    assert {result.skill.name: result.score for result in person.results} == before
    text = shelf.session().call("skill_search", {"query": "epsilon"}).text
    assert "hidden until the user trusts the folder" in text


def test_a_policy_of_the_session_hides_what_it_denies(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.")
    put(machine, "beta", "Paints fences.")
    session = machine.shelf().session(policy={"deny": [{"tool": "skill_load", "skill_name": "alpha"}]})

    data = session.call("skill_search", {"query": "paint"}).data

    assert [entry["skill"]["name"] for entry in data["results"]] == ["beta"]


# A second opinion ---------------------------------------------------------------------------------


class Likes:
    """A scorer that gives fixed numbers by name."""

    def __init__(self, numbers: dict[str, float]) -> None:
        self.numbers = numbers

    def score(self, query: str, skills: Sequence[CatalogSkill]) -> list[float]:
        return [self.numbers.get(skill.name, 0.0) for skill in skills]


def test_a_second_scorer_can_lift_what_words_do_not_find(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.")
    put(machine, "beta", "Colours wooden things.")
    put(machine, "gamma", "Bakes bread.")
    likes = Likes({"alpha": 0.1, "beta": 0.6, "gamma": math.nan})

    assert names(machine.shelf().search("paint")) == ["alpha"]
    assert names(machine.shelf().search("paint", scorer=likes)) == ["alpha", "beta"]
    assert names(machine.shelf(scorer=Likes({"beta": 2.0})).search("paint")) == ["beta", "alpha"]
    # An exact name is not rescored.
    assert names(machine.shelf(scorer=Likes({"beta": 2.0})).search("alpha")) == ["alpha", "beta"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (list, "ConfigurationError: it gave 0 numbers for 2 skills"),
        (lambda: [math.inf, 1.0], "ConfigurationError: it gave an infinite number"),
        (lambda: ["x", 1.0], "ValueError: could not convert string to float: 'x'"),
        (lambda: [][0], "IndexError: list index out of range"),
    ],
    ids=["too few", "endless", "no number", "an error"],
)
def test_a_scorer_that_fails_costs_its_opinion_and_not_the_answer(
    machine: Machine, given: Callable[[], Any], said: str
) -> None:
    put(machine, "alpha", "Paints fences.")
    put(machine, "beta", "Paints and paints.")

    class Failing:
        def score(self, query: str, skills: Sequence[CatalogSkill]) -> Any:
            return given()

    report = machine.shelf().search("paint", scorer=Failing())

    assert report.notes == (f"ranked by words alone, since the second scorer failed: {said}",)
    assert report.results == machine.shelf().search("paint").results
    assert machine.shelf(scorer=Failing()).session().call("skill_search", {"query": "paint"}).ok


def test_the_error_of_a_scorer_is_one_short_line_of_text(machine: Machine) -> None:
    put(machine, "alpha", "Paints fences.")

    class Failing:
        def score(self, query: str, skills: Sequence[CatalogSkill]) -> Any:
            raise RuntimeError("first\nsecond\x1b[31m" + "x" * 100_000)

    (note,) = machine.shelf().search("paint", scorer=Failing()).notes

    assert "RuntimeError: first second [31mxxx" in note
    assert note.isprintable()
    assert len(note) < 400


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("deploy Deploys, DEPLOYED!", {"deploy": 3}),
        ("GitHub GitHub git_hub", {"github": 2, "git": 3, "hub": 3}),
        ("東京都へ 東京都へ Ｇｉｔ", {"東京": 2, "京都": 2, "都へ": 2, "へ": 2, "git": 1}),
        ("使用Git工具", {"使用": 1, "用": 1, "git": 1, "工具": 1, "具": 1}),
        ("→ ── " + "x" * 65, {}),
        ("2024 v2 GPT4O", {"2024": 1, "v2": 1, "gpt4o": 1}),
    ],
)
def test_the_terms_of_a_text_are_counted_each(text: str, counts: dict[str, int]) -> None:
    assert analyzer().count(text) == counts
