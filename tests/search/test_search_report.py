"""A report says whether a skill clearly fits, why each result is one, and which copies it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.trees import Machine, write_skill

from skillshelf import CatalogSkill, SearchReport
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.core.limits import COPIES_BYTES
from skillshelf.search.confidence import WEAK_BELOW

TOPICS = {
    "release-notes": "Draft release notes and changelogs from merged pull requests.",
    "pdf-forms": "Fill in PDF forms and extract tables from PDF files.",
    "sql-review": "Review SQL queries for slow joins and missing indexes.",
    "pr-review": "Review a pull request and comment on risky changes.",
    "prisma-orm": "Write Prisma schemas and database migrations.",
    "prompt-library": "Keep prompts for language models in one place.",
    "git-hooks": "Set up git hooks that run before a commit.",
    "github-actions": "Write workflows for GitHub Actions.",
    "invoice-mail": "Send invoices to customers by mail.",
    "travel-plan": "Plan trips with trains, hotels and museums.",
}
DOCUMENTS = ["codelia", "swiftagent", "mycodeagent", "rip", "omp"]


def put(machine: Machine, name: str, description: str, body: str = "", *, where: str = "home") -> Path:
    """Write a skill of the user, or of the repository."""
    root = (machine.repo if where == "repo" else machine.home) / ".agents/skills"
    return write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")


def fill(machine: Machine) -> None:
    """Write ten skills about different things."""
    for name, description in TOPICS.items():
        put(machine, name, description, f"# {name}\n\nText about {description.lower()}")


def names(report: SearchReport) -> list[str]:
    """Return the names of the results."""
    return [result.skill.name for result in report.results]


# Confidence ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["draft release notes for the new version", "extract the tables from a pdf", "review my slow sql query"]
)
def test_a_skill_that_fits_is_reported_with_confidence(machine: Machine, query: str) -> None:
    fill(machine)

    report = machine.shelf().search(query)

    assert report.confidence >= WEAK_BELOW
    assert not report.weak


@pytest.mark.parametrize(
    "query",
    [
        "thanks, that worked",
        "do it",
        "yes",
        "ok",
        "asdf qwer",
        "can dogs eat grapes",
        "lorem ipsum dolor",
        "谢谢",
        "네",
    ],
)
def test_a_request_for_which_there_is_no_skill_is_weak(machine: Machine, query: str) -> None:
    fill(machine)
    put(machine, "yes-md", "Says yes to every document, and that it worked. Thanks are in colour.")

    report = machine.shelf().search(query)

    assert report.weak
    assert report.count <= 3


@pytest.mark.parametrize("query", ["release-notes", "yes"])
def test_the_name_of_a_skill_is_certain(machine: Machine, query: str) -> None:
    fill(machine)
    put(machine, "yes", "Confirms things.")

    report = machine.shelf().search(query)

    assert (names(report)[0], report.confidence, report.weak) == (query, 1.0, False)


def test_a_word_that_every_skill_has_says_nothing_and_is_answered(machine: Machine) -> None:
    for number in range(300):
        put(machine, f"tool-{number}", "Works with azure.", f"# {number}")
    shelf = machine.shelf()

    class Likes:
        def score(self, query: str, skills: Sequence[CatalogSkill]) -> list[float]:
            return [float(skill.name == "tool-7") for skill in skills]

    assert (shelf.search("azure").weak, shelf.search("azure").count) == (True, 3)
    assert names(shelf.search("azure", scorer=Likes(), every=True))[0] == "tool-7"


def test_nothing_found_is_weak_too(machine: Machine) -> None:
    fill(machine)

    report = machine.shelf().search("xylophone")

    assert (report.count, report.confidence, report.weak) == (0, 0.0, True)


@pytest.mark.parametrize("profile", ["standard", "strict", "codelia"])
def test_a_weak_report_is_short_only_where_the_profile_says_so(machine: Machine, profile: str) -> None:
    for number in range(9):
        put(machine, f"skill-{number}", f"Waters plants on day {number} and much else besides.", where="repo")

    report = machine.shelf(profile).search("what day is it, and may dogs eat grapes, or is it much too late for that")

    assert report.weak
    assert report.count == (8 if profile == "codelia" else 3)
    assert report.truncated


@pytest.mark.parametrize("profile", DOCUMENTS)
def test_the_profiles_of_the_documents_cut_and_collapse_nothing(profile: str) -> None:
    row = SYSTEMS[profile]

    assert (row.search_prefix, row.search_copies, row.search_weak) == ("flat", "keep", "keep")


def test_every_gives_what_a_weak_report_leaves_out(machine: Machine) -> None:
    for number in range(6):
        put(machine, f"skill-{number}", f"Waters plants on day {number}.")
    shelf = machine.shelf()

    weak, every = (shelf.search("yes, plants, ok then, but not now, thanks", every=one) for one in (False, True))

    assert (weak.weak, weak.count, every.weak, every.count) == (True, 3, True, 6)


def test_the_text_for_a_model_says_that_nothing_fits(machine: Machine) -> None:
    fill(machine)
    put(machine, "yes-md", "Says thanks, and that it worked.", where="repo")
    result = machine.shelf().session().call("skill_search", {"query": "thanks, that worked"})

    assert result.text.splitlines()[0] == "No skill clearly fits; the closest are:"
    assert result.data["weak"] is True
    other = machine.shelf("codelia").session().call("skill_search", {"query": "thanks, that worked"})
    assert "<note>No skill clearly fits; the closest are these.</note>" in other.text


# Why ----------------------------------------------------------------------------------------------


def test_why_has_the_words_of_the_query_that_matched(machine: Machine) -> None:
    put(machine, "alpha", "Paints old fences. 将代码库转换为主题。", "Also calibrates telescopes.")
    shelf = machine.shelf()

    assert shelf.search("Painting the fence, 转换").results[0].why == ("matched: Painting, fence, 转换",)
    assert shelf.search("a Telescope").results[0].why == ("matched: Telescope",)
    assert shelf.search("alpha").results[0].why == ("its name is the query",)


def test_why_is_bounded(machine: Machine) -> None:
    words = [f"word{number}" + "x" * 40 for number in range(20)]
    put(machine, "alpha", f"Has {' '.join(words)}.")

    (why,) = machine.shelf().search(" ".join(words)).results[0].why

    assert why.endswith(" and 12 more")
    assert len(why) < 400


# Short queries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first", "absent"),
    [("pr", "pr-review", "prisma-orm"), ("git", "git-hooks", "github-actions")],
)
def test_a_prefix_ends_with_a_word_of_the_name(machine: Machine, query: str, first: str, absent: str) -> None:
    fill(machine)

    found = machine.shelf().search(query)

    assert (found.results[0].skill.name, found.results[0].reason, found.weak) == (first, "prefix", False)
    assert absent not in [result.skill.name for result in found.results if result.reason == "prefix"]


@pytest.mark.parametrize(
    ("name", "query", "begins"),
    [
        ("python3-tools", "python", True),
        ("k8s-debug", "k", False),
        ("s3-upload", "s3", True),
        ("git-hooks", "git-", True),
        ("git-hooks", "git-hoo", False),
        ("prisma", "pr", False),
    ],
)
def test_words_of_names_end_at_hyphens_and_digits(machine: Machine, name: str, query: str, begins: bool) -> None:
    put(machine, name, "Does something else.")

    assert ("prefix" in [result.reason for result in machine.shelf().search(query).results]) is begins


def test_prefixes_are_ordered_by_relevance_and_take_half_of_the_places(machine: Machine) -> None:
    for number in range(9):
        put(machine, f"test-{number}", "Does something.", f"# {number}")
    put(machine, "test-writer", "Write tests: a test for each test that a test needs.")
    for number in range(9):
        put(machine, f"other-{number}", f"Run a test of kind {number}.")

    report = machine.shelf().search("test")

    assert [result.reason for result in report.results] == ["prefix"] * 4 + ["token_overlap"] * 4
    assert names(report)[0] == "test-writer"
    flat = machine.shelf("rip").search("test")
    assert names(flat) == [f"test-{number}" for number in range(8)]


def test_prefixes_beyond_half_of_the_places_compete_by_their_words(machine: Machine) -> None:
    for number in range(6):
        put(machine, f"test-{number}", f"Write a test of a test, kind {number}.", f"# {number}")
    for number in range(9):
        put(machine, f"other-{number}", f"Prepare a long journey {number}, with a word about the test of it.")

    report = machine.shelf().search("test")

    assert {f"test-{number}" for number in range(6)} == set(names(report)[:6])
    assert [result.reason for result in report.results] == ["prefix"] * 4 + ["token_overlap"] * 4


def test_prefixes_take_the_places_that_nothing_else_needs(machine: Machine) -> None:
    for number in range(9):
        put(machine, f"test-{number}", "Does something.", f"# {number}")

    assert machine.shelf().search("test").count == 8


# Copies -------------------------------------------------------------------------------------------


def test_copies_of_one_text_are_one_result(machine: Machine) -> None:
    fill(machine)
    text = "Paint wooden fences in two coats."
    paths = [str(put(machine, f"fence-{letter}", text, "# Fences\n\nUse  a brush.\n")) for letter in "abc"]
    put(machine, "fence-d", text, "# Fences\n\nUse a roller.\n")

    report = machine.shelf().search("paint wooden fences")
    shown = machine.shelf().session().call("skill_search", {"query": "paint wooden fences"}).text

    assert [(result.skill.path, result.copies) for result in report.results if result.copies] == [
        (paths[0], tuple(paths[1:]))
    ]
    assert sorted(names(report)) == ["fence-a", "fence-d"]
    assert f"   path: {paths[0]} (and 2 copies)" in shown.splitlines()
    assert len(names(machine.shelf("rip").search("paint wooden fences"))) == 4


def test_blanks_and_the_name_make_no_other_text_but_other_fields_do(machine: Machine) -> None:
    root = machine.home / ".agents/skills"
    for name, more, body in (("one", "", "a  b"), ("two", "", "a\n\nb"), ("three", "license: MIT\n", "a b")):
        write_skill(root, name, f"---\nname: {name}\ndescription: Paint fences.\n{more}---\n{body}\n")

    found = machine.shelf().search("paint fences").results

    assert sorted((result.skill.name, len(result.copies)) for result in found) == [("one", 1), ("three", 0)]


def test_an_untrusted_copy_never_stands_for_a_trusted_skill_nor_outranks_it(machine: Machine) -> None:
    original = put(machine, "brush-work", "Paint wooden fences in two coats.", "# Text")
    copy = put(machine, "paint-wooden-fences-now", "Paint wooden fences in two coats.", "# Text", where="repo")
    fill(machine)
    shelf = machine.shelf(trust="ask")

    person = shelf.search("paint wooden fences today").results[0]
    model = shelf.search("paint wooden fences today", model=True).results[0]

    assert (person.skill.path, person.copies) == (str(original), (str(copy),))
    assert (model.skill.path, model.copies, model.score) == (str(original), (), person.score)


def test_two_hundred_copies_leave_the_places_to_others(machine: Machine) -> None:
    for number in range(200):
        put(machine, f"spam-{number:03}", "Paint wooden fences in two coats.", "# Text")
    for number in range(10):
        put(machine, f"fence-{number}", f"Paint fences of kind {number}.", f"# {number}")

    report = machine.shelf().search("paint wooden fences", limit=5)

    assert len([name for name in names(report) if name.startswith("spam")]) == 1
    assert max(len(result.copies) for result in report.results) == 199
    assert report.truncated == (not report.weak or report.count == 3)


def test_more_text_than_is_compared_is_reported(machine: Machine) -> None:
    body = "x " * 250_000
    for number in range(COPIES_BYTES // len(body) + 2):
        put(machine, f"spam-{number:03}", "Paint wooden fences.", body)

    report = machine.shelf().search("paint wooden fences")

    assert "there are too many copies to compare all of them" in report.notes


def test_what_was_searched_for_before_changes_no_answer(machine: Machine) -> None:
    body = "x " * 250_000
    for number in range(COPIES_BYTES // len(body) + 4):
        put(machine, f"spam-{number:03}", "Paint wooden fences.", body)
    shelf = machine.shelf()

    assert shelf.search("paint wooden fences") == shelf.search("paint wooden fences")


def test_a_skill_that_the_query_names_stands_for_its_copies(machine: Machine) -> None:
    original = put(machine, "brush-work", "Paint wooden fences.", "# Text")
    copies = [str(put(machine, name, "Paint wooden fences.", "# Text")) for name in ("brush-work-two", "work-brush")]

    (result,) = machine.shelf().search("brush-work").results

    assert (result.skill.path, result.reason, result.copies) == (str(original), "exact_name", tuple(copies))


def test_an_untrusted_skill_that_the_query_names_does_not_stand_for_a_trusted_one(machine: Machine) -> None:
    original = put(machine, "brush-work", "Paint wooden fences.", "# Text")
    named = put(machine, "fence-work", "Paint wooden fences.", "# Text", where="repo")

    found = machine.shelf(trust="ask").search("fence-work").results

    assert [(result.skill.path, result.copies) for result in found] == [(str(named), ()), (str(original), ())]


def test_why_tells_of_the_use_of_a_copy_that_raised_its_text(machine: Machine) -> None:
    fill(machine)
    put(machine, "fence-a", "Paint wooden fences.", "# Text")
    shelf = machine.shelf(learn=True)
    shelf.search("paint wooden fences")
    shelf.load("fence-a")
    put(machine, "fence-b", "Paint wooden fences.", "# Text", where="repo")
    shelf.refresh()

    result = shelf.search("paint wooden fences").results[0]

    assert (result.skill.name, len(result.copies)) == ("fence-b", 1)
    assert result.why[-1] == "loaded 1 time after similar searches"
