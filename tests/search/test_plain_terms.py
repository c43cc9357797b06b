"""The profiles of the documents rank words as they are written: order, number, scores and reasons never change."""

from __future__ import annotations

import pytest
from support.trees import Machine, write_skill

from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.core.limits import QUERY_CHARS

SKILLS = {
    "release-notes": "Draft release notes and changelogs from merged pull requests.",
    "pdf-forms": "Fill in PDF forms and extract tables from PDF files.",
    "pr-review": "Review a pull request and comment on risky changes.",
    "prisma-orm": "Write Prisma schemas and database migrations.",
    "color-themes": "Optimize the colors and behavior of a front-end theme.",
    "colour-tokens": "Name the colours of a frontend in C# and C++.",
    "lebenslauf": "Schreibt einen Lebenslauf und ist für Bewerbungen mit Zeugnissen, die nicht auf Englisch sind.",
    "resume-writer": "Write a résumé or resume for a job.",
    "database-backup": "Back up a database and restore it.",
    "fan-yi": "翻译文件，把英文改成中文。",
}
BODY = "# Steps\n\n1. Read what the user has.\n2. Compare it with the data base.\n3. Write {}.\n"
ROOTS = {"swiftagent": ".agent/skills", "mycodeagent": "skills", "rip": ".agents/skills", "omp": ".omp/skills"}
MESSAGE = (
    "Hi all, hope you had a great weekend! The review of the office lunch menu went well, thanks for that. Could you"
    " please back up the database before the release? Traceback (most recent call last):"
    ' File "app.py", line 3, in main, ValueError: bad color'
)
ANSWERS: dict[str, list[tuple[str, float, str]]] = {
    "pr": [("pr-review", 700, "prefix"), ("prisma-orm", 700, "prefix")],
    "optimise colour behaviour": [
        ("colour-tokens", 132.5036, "token_overlap"),
        ("color-themes", 122.9902, "token_overlap"),
    ],
    "front end theme": [("color-themes", 156.0762, "token_overlap")],
    "c#": [("colour-tokens", 117.4094, "token_overlap")],
    "resume": [("resume-writer", 700, "prefix")],
    "bewerbung": [],
    "translate a file": [("pdf-forms", 111.7196, "token_overlap")],
    "翻译文件": [("fan-yi", 133.8371, "token_overlap")],
    "数据库备份": [],
    "datbase migrations": [
        ("database-backup", 124.5079, "token_overlap"),
        ("prisma-orm", 120.1367, "token_overlap"),
    ],
    MESSAGE: [
        ("database-backup", 137.2379, "token_overlap"),
        ("color-themes", 132.865, "token_overlap"),
        ("pr-review", 132.865, "token_overlap"),
        ("release-notes", 132.865, "token_overlap"),
        ("pdf-forms", 112.0574, "token_overlap"),
        ("prisma-orm", 109.0944, "token_overlap"),
        ("colour-tokens", 100.3514, "token_overlap"),
        ("fan-yi", 100.3514, "token_overlap"),
    ],
}
"""What the first version of the ranking by relevance answers."""


def fill(machine: Machine, root: str) -> None:
    """Write the skills into a folder of the repository."""
    for name, description in SKILLS.items():
        text = f"---\nname: {name}\ndescription: {description}\n---\n{BODY.format(name)}\n"
        write_skill(machine.repo / root, name, text)


@pytest.mark.parametrize("profile", ROOTS)
def test_order_number_scores_and_reasons_are_those_of_the_first_version(machine: Machine, profile: str) -> None:
    fill(machine, ROOTS[profile])
    shelf = machine.shelf(profile)

    reports = {query: shelf.search(query) for query in ANSWERS}

    assert {
        query: [(result.skill.name, result.score, result.reason) for result in report.results]
        for query, report in reports.items()
    } == ANSWERS


def test_every_profile_of_a_document_has_plain_terms_and_the_others_have_not() -> None:
    plain = {name for name, profile in SYSTEMS.items() if profile.search_terms == "plain"}

    assert plain == {*ROOTS, "codelia"}


@pytest.mark.parametrize("profile", ["codelia", "rip"])
def test_a_long_query_is_cut_to_its_beginning(machine: Machine, profile: str) -> None:
    fill(machine, ".agents/skills")

    report = machine.shelf(profile).search("database " + "x" * QUERY_CHARS + " migrations")

    assert report.notes == (f"the query was cut to its first {QUERY_CHARS} characters",)
    assert "release-notes" not in [result.skill.name for result in report.results]
    assert {result.why for result in report.results} == {("matched: database",)}


def test_why_names_the_words_of_the_query_as_they_are_written(machine: Machine) -> None:
    fill(machine, ".agents/skills")

    first = machine.shelf("rip").search("optimise colour behaviour").results[0]

    assert (first.skill.name, first.why) == ("colour-tokens", ("matched: colour",))


def test_a_profile_that_changes_its_terms_gets_an_index_of_its_own(machine: Machine) -> None:
    fill(machine, ".agents/skills")

    def found(terms: str) -> list[str]:
        config = {"profiles": {"mine": {"extends": "standard", "search_terms": terms}}}
        return [result.skill.name for result in machine.shelf("mine", config=config).search("colour").results]

    assert (found("plain"), sorted(found("extended"))) == (["colour-tokens"], ["color-themes", "colour-tokens"])
