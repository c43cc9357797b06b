"""Words that mean yes and no, text that is cut to a length, and when two names are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcwidth

from skillshelf.core.console import Screen
from skillshelf.core.text import (
    _NOT_ONE_CELL,
    cut,
    field,
    folded_name,
    for_model,
    is_false,
    is_name,
    is_true,
    is_true_variable,
    shorten,
    width,
)


@pytest.mark.parametrize("word", ["1", "true", "yes", "on"])
def test_a_truth_word_counts_in_any_case_and_with_blanks_around_it(word: str) -> None:
    assert all(is_true(spelling) and not is_false(spelling) for spelling in (word, word.upper(), f" {word} "))


@pytest.mark.parametrize("word", ["0", "false", "no", "off"])
def test_a_word_for_no_is_not_a_truth_word(word: str) -> None:
    assert is_false(word)
    assert not is_true(word)


def test_y_counts_in_an_environment_variable_and_not_in_frontmatter() -> None:
    assert [is_true_variable(word) for word in ("y", " Y ", "on", "n", "")] == [True, True, True, False, False]
    assert not is_true("y")


def test_plain_values_mean_what_their_text_means_and_nothing_means_neither() -> None:
    assert [is_true(value) for value in (True, False, 1, 0, None, "", "maybe")] == [True, False, True] + [False] * 4
    assert [is_false(value) for value in (True, False, 1, 0, None, "", "maybe")] == [False, True, False, True] + [
        False
    ] * 3


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("ab cd", 4, "ab…"), ("abcd", 1, "…"), ("", 0, "")],
)
def test_a_text_is_cut_to_characters_without_a_blank_before_the_ellipsis(text: str, length: int, expected: str) -> None:
    assert cut(text, length) == expected


@pytest.mark.parametrize(
    "text", ["plain text", "翻译成中文", "e\u0301" * 9, "👨\u200d👩\u200d👧" * 9, "x\u200dy" * 9, "— “a” →"]
)
def test_a_shortened_text_never_takes_more_cells_than_there_are(text: str) -> None:
    assert [cells for cells in range(12) if width(shorten(text, cells)) > cells] == []


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("plain", 5),
        ("café — “ja” …", 13),
        ("发布说明", 8),
        ("e\u0301", 1),
        ("👨\u200d👩\u200d👧", 2),
        ("🇩🇪", 2),
        ("❤\ufe0f", 2),
        ("👍🏽", 2),
        ("x\u200dy", 2),
        ("각", 2),
        ("נ\u05b8", 1),
    ],
)
def test_the_width_of_a_text_is_the_number_of_cells_that_a_terminal_gives_it(text: str, cells: int) -> None:
    assert width(text) == cells


def test_the_characters_that_are_counted_without_the_tables_take_one_cell_each() -> None:
    counted = [chr(point) for point in range(0x80, 0x3000) if not _NOT_ONE_CELL.search(chr(point))]

    assert len(counted) > 1000
    assert [character for character in counted if wcwidth(character) != 1] == []


def test_a_shortened_text_has_no_half_of_a_joined_emoji_and_no_thousand_marks() -> None:
    family = "👨\u200d👩\u200d👧"

    assert shorten(family * 5, 6) == f"{family}{family}…"
    assert len(shorten("z" + "\u0301" * 5000 + "tail" * 9, 20)) < 200


@pytest.mark.parametrize(
    "text", ["日本語の名前がとても長い" * 4 + " lives in a folder", "👨\u200d👩\u200d👧 " * 40, "word " * 40]
)
def test_a_wrapped_text_keeps_to_the_cells_of_the_screen(text: str) -> None:
    screen = Screen(columns=60)

    for indent, head in ((2, "name"), (2, "n" * 40)):
        lines = screen.table([(head, text)], (None, None), indent=indent, wrap=True)
        assert len(lines) > 1
        assert max(map(width, lines)) <= 60
        assert "".join("".join(lines).split()) == head + "".join(text.split())


def test_a_text_alone_on_a_narrow_screen_has_no_empty_line_above_it() -> None:
    lines = Screen(columns=20).table([("what there is here, and what to do next",)], (None,), indent=6, wrap=True)

    assert lines == ["      what there is here, and what", "      to do next"]


# Names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("deploy", "DEPLOY"),
        ("deploy", "ｄｅｐｌｏｙ"),
        ("deploy", "dep\u200bloy"),
        ("deploy", "\u202edeploy\u2069"),
        ("deploy", "de\u00adploy\ufe0f"),
        ("caf\u00e9", "CAFE\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("\ufb01le", "FILE"),
        ("v²", "v2"),
        ("ΣΑΣ", "σας"),
    ],
)
def test_names_that_differ_in_case_form_or_invisible_letters_are_one_name(one: str, other: str) -> None:
    assert folded_name(one) == folded_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("deploy", "d\u0435ploy"),
        ("a-b", "a_b"),
        ("a b", "ab"),
        ("cafe", "caf\u00e9"),
        ("\u200b", "\u200c"),
    ],
)
def test_names_with_other_letters_are_two_names(one: str, other: str) -> None:
    assert folded_name(one) != folded_name(other)


@given(st.text(max_size=12))
def test_folding_a_folded_name_changes_nothing(name: str) -> None:
    folded = folded_name(name)
    assert folded_name(folded) == folded
    assert not name or folded


@pytest.mark.parametrize("point", [0x20, 0xA0, 0x1680, 0x2800, 0x3000, 0xDCFF, 0xFFF9, 0xFFFE, 0x13430, 0x1D159])
def test_a_character_that_a_model_does_not_see_makes_no_other_name(point: int) -> None:
    name = f"guard{chr(point)}"
    assert field(for_model(name)) == "guard"
    assert folded_name(name) == "guard"


def test_names_that_differ_in_their_number_of_blanks_are_one_name() -> None:
    assert folded_name("my  Skill ") == folded_name("my\u00a0\u2003skill") == "my skill"


def test_every_character_folds_to_something_that_stays() -> None:
    for point in [*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE1000)]:
        folded = folded_name(f"a{chr(point)}\u0301b")
        assert folded_name(folded) == folded, hex(point)


@pytest.mark.parametrize("name", ["a", "*", "A B", "デプロイ", "-", "...", "a\u200b"])
def test_a_text_on_one_line_without_slashes_is_a_name(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("text", ["", " ", ".", "..", "a/b", "a\\b", "a\nb", "a\0", "a\x85b", "a\u2029", "\x1b"])
def test_what_cannot_be_an_address_is_no_name(text: str) -> None:
    assert not is_name(text)
