"""Descriptions that say nearly the same: found by search in `eval`, by their words alone in `check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.trees import Machine, write_skill

from skillshelf.search.collisions import margin_to, near_duplicates

OTHERS = {
    "invoices": "Sorts scanned invoices by supplier and due date. Use when a bill arrives.",
    "beehives": "Plans the inspection of beehives in spring. Use for questions about bees.",
    "speeches": "Drafts wedding speeches in three lengths. Use when somebody has to give a toast.",
    "timetables": "Compares bus timetables of two cities. Use when the user asks how to commute.",
    "soil": "Reads laboratory reports of soil samples. Use when a farmer wants to know what to plant.",
    "x-rays": "Labels x-ray images for training. Use when radiologists hand over a batch.",
}


def put(root: Path, name: str, description: str, body: str = "# Steps") -> None:
    write_skill(root, name, f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n{body}\n")


@pytest.fixture
def root(machine: Machine) -> Path:
    root = machine.repo / ".agents" / "skills"
    for name, description in OTHERS.items():
        put(root, name, description, f"# {name}")
    return root


PLANTED = {
    "same words under another name": "Drafts grant proposals for marine biology labs. Use when a funding call opens.",
    "words swapped": "Drafts proposals grant for biology marine labs. Use when a call funding opens.",
    "a sentence more": "Drafts grant proposals for marine biology labs. Use when a funding call opens. Keeps a log.",
    "reworded": "Writes grant proposals for labs in marine biology. Use whenever a funding call has opened.",
}


@pytest.mark.parametrize("way", PLANTED)
def test_a_planted_near_duplicate_is_the_only_pair(machine: Machine, root: Path, way: str) -> None:
    put(root, "grant-writer", PLANTED["same words under another name"])
    put(root, "zz-planted", PLANTED[way])

    found = {skill["name"]: skill["collisions"] for skill in machine.run_json("eval")["skills"]}

    assert [one["with"] for one in found["grant-writer"]] == ["zz-planted"]
    assert {name for name, collisions in found.items() if collisions} == {"grant-writer", "zz-planted"}


def test_a_description_that_is_a_part_of_another_collides_with_it(machine: Machine, root: Path) -> None:
    part = "Drafts grant proposals for marine biology labs."
    put(
        root,
        "grant-writer",
        f"{part} Estimates budgets, gathers letters of reference and tracks deadlines of sponsors.",
    )
    put(root, "zz-planted", part)

    found = {skill["name"]: skill["collisions"] for skill in machine.run_json("eval")["skills"]}

    assert {name for name, collisions in found.items() if collisions} == {"grant-writer", "zz-planted"}


def test_check_warns_about_both_skills_of_a_pair(machine: Machine, root: Path) -> None:
    put(root, "grant-writer", PLANTED["same words under another name"])
    put(root, "zz-planted", PLANTED["a sentence more"])

    done = machine.run("check", "--json", "--select", "description-collision")

    found = json.loads(done.stdout)["findings"]
    assert (done.returncode, [(Path(one["path"]).parent.name, one["severity"]) for one in found]) == (
        1,
        [("grant-writer", "warning"), ("zz-planted", "warning")],
    )
    assert found[0]["message"] == "nearly the description of 'zz-planted'; say what only this skill does"


def test_check_does_not_warn_about_a_copy_for_another_agent(machine: Machine, root: Path) -> None:
    for folder in (root, machine.repo / ".claude" / "skills"):
        put(folder, "grant-writer", PLANTED["same words under another name"])

    assert machine.run_json("check", "--select", "description-collision")["findings"] == []


def test_near_duplicates_are_found_by_their_rarest_words() -> None:
    texts = [*OTHERS.values(), *PLANTED.values(), "", "the a of"]

    found = near_duplicates(texts)

    first = len(OTHERS)
    assert {*found} >= {(first, first + 1), (first, first + 2)}
    assert all(first <= one < other < first + len(PLANTED) for one, other in found)


@pytest.mark.parametrize(
    ("own", "other", "margin"),
    [(None, 300.0, None), (300.0, None, 1.0), (400.0, 400.0, 0.0), (400.0, 250.0, 0.6667), (100.0, 400.0, -1.0)],
)
def test_a_margin_is_the_share_by_which_another_score_is_lower(
    own: float | None, other: float | None, margin: float | None
) -> None:
    assert margin_to(own, other) == margin
