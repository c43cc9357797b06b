"""Names that look the same and are not: a warning, and nothing more."""

from __future__ import annotations

import json
from unicodedata import normalize

import pytest
from support.trees import Machine, write_skill

from skillshelf.catalog.confusables import TABLE
from skillshelf.catalog.look_alikes import skeleton

ROOT = ".agents/skills"


def put(machine: Machine, name: str, folder: str, *, home: bool = False) -> str:
    """A skill of any name; returns its path."""
    text = f"---\nname: {json.dumps(name)}\ndescription: Does things.\n---\n"
    return str(write_skill((machine.home if home else machine.repo) / ROOT, name, text, folder=folder))


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("deploy", "d\u0435ploy"),
        ("deploy", "dep1oy"),
        ("deploy", "D\u0415PLOY"),
        ("bank", "\u0412ank"),
        ("commit", "cornrnit"),
        ("modern", "modem"),
        ("go0d", "good"),
        ("ai", "\u0430i"),
        ("Al", "AI"),
        ("scope", "\u0455\u0441\u043e\u0440\u0435"),
        ("omega", "\u03bfmega"),
    ],
)
def test_two_names_that_look_the_same_are_a_warning_about_the_other(machine: Machine, mine: str, theirs: str) -> None:
    own = put(machine, mine, "one", home=True)
    other = put(machine, theirs, "two")
    catalog = machine.catalog(trust="ask")

    (warning,) = [warning for warning in catalog.warnings if warning.rule == "name-confusable"]
    assert warning.path == other
    assert own in warning.message
    assert [skill.name for skill in catalog.skills if skill.hidden is None] == [mine]
    assert "name-confusable" in machine.run("list", "--all").stdout
    assert "name-confusable" in machine.run("check", "--user").stdout


@pytest.mark.parametrize(
    "names",
    [
        ("deploy", "deploys", "deploy-2"),
        ("a-b", "a_b", "ab"),
        ("deploy", "DEPLOY"),
        ("cafe", "caf\u00e9"),
        ("デプロイ", "デプロイメント"),
        ("\u0434\u0435\u043f\u043b\u043e\u0439",),
        ("rust", "trust"),
    ],
)
def test_other_names_are_none(machine: Machine, names: tuple[str, ...]) -> None:
    for number, name in enumerate(names):
        put(machine, name, f"folder-{number}")

    assert [warning for warning in machine.catalog().warnings if warning.rule == "name-confusable"] == []


def test_every_one_but_the_first_of_several_is_named_once(machine: Machine) -> None:
    first = put(machine, "scope", "a", home=True)
    names = ("\u0455cope", "sc\u043epe", "s\u0441ope")
    others = [put(machine, name, folder) for name, folder in zip(names, "bcd", strict=True)]

    found = [warning for warning in machine.catalog().warnings if warning.rule == "name-confusable"]

    assert [warning.path for warning in found] == others
    assert all(first in warning.message for warning in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("paypal", "paypal"),
        ("\u0440\u0430\u0443\u0440\u0430\u04c0", "paypal"),
        ("rn1", "rnl"),
        ("m|", "rnl"),
        ("\u2010", "-"),
    ],
)
def test_a_skeleton_is_that_of_the_standard(text: str, expected: str) -> None:
    assert skeleton(text) == expected


def test_a_profile_may_turn_the_warning_off(machine: Machine) -> None:
    put(machine, "modern", "a")
    put(machine, "modem", "b")
    machine.configure('[profiles.lab]\nextends = "standard"\nrules = { "name-confusable" = "off" }\n')

    assert "name-confusable" in {warning.rule for warning in machine.catalog().warnings}
    assert "name-confusable" not in {warning.rule for warning in machine.catalog("lab").warnings}


def test_the_table_maps_single_letters_to_texts_that_look_like_nothing_else() -> None:
    rows = [line.split("\t") for line in TABLE.split("\n") if line]
    characters = "".join(found for _, found in rows)

    assert len(set(characters)) == len(characters) > 1000
    assert not any(c.isascii() or normalize("NFKD", c) != c for c in characters)
    assert [(text, skeleton(text)) for text, _ in rows if skeleton(text) != text] == []
