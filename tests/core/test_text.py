"""Words that mean yes and no, and text that is cut to a length."""

from __future__ import annotations

import pytest

from skillshelf.core.text import cut, is_false, is_true, is_true_variable, shorten, width


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


@pytest.mark.parametrize("text", ["plain text", "翻译成中文", "e\u0301" * 9])
def test_a_shortened_text_never_takes_more_cells_than_there_are(text: str) -> None:
    assert [cells for cells in range(12) if width(shorten(text, cells)) > cells] == []
