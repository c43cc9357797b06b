"""Frontmatter text becomes plain values, or one problem with a position."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from skillshelf.catalog.frontmatter import YamlProblem, load_lines, load_yaml
from skillshelf.core.limits import FRONTMATTER_BYTES, FRONTMATTER_DEPTH, FRONTMATTER_KEYS


def problem_of(text: str) -> YamlProblem:
    """The problem that reading the text raises."""
    with pytest.raises(YamlProblem) as caught:
        load_yaml(text)
    return caught.value


def rule_of(text: str) -> str:
    """The rule under which the text is refused."""
    return problem_of(text).rule


# Values -------------------------------------------------------------------------------------------


@pytest.mark.req("S-50")
def test_block_scalars_lists_maps_and_quotes_are_read_as_yaml() -> None:
    text = (
        "name: code-review\n"
        "description: >-\n  Reviews code.\n  Use it: often.\n"
        "script: |\n  a: b\n  - c\n"
        "globs:\n  - '*.py'\n  - \"*.md\"\n"
        "metadata: {author: me, 'version': \"1.0\"}  # a comment\n"
        "nothing: ~\n"
    )
    assert load_yaml(text) == {
        "name": "code-review",
        "description": "Reviews code. Use it: often.",
        "script": "a: b\n- c\n",
        "globs": ["*.py", "*.md"],
        "metadata": {"author": "me", "version": "1.0"},
        "nothing": None,
    }


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("010", 10),
        ("-010", -10),
        ("+010", 10),
        ("'010'", "010"),
        ('"010"', "010"),
        ("0o17", 15),
        ("0x1F", 31),
        ("0", 0),
        ("1_000", "1_000"),
        ("1.10", 1.1),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("null", None),
        ("2024-01-02", "2024-01-02"),
        ("2024-13-45", "2024-13-45"),
        ("12:30:45", "12:30:45"),
        ("nan", "nan"),
        ("1.2.3", "1.2.3"),
        ("12345678901234567890", 12345678901234567890),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("'" + "7" * 60 + "'", "7" * 60),
    ],
)
def test_plain_scalars_follow_the_core_schema_and_quoted_ones_stay_text(written: str, read: object) -> None:
    value = load_yaml(f"version: {written}\n")["version"]
    assert value == read
    assert type(value) is type(read)


@pytest.mark.parametrize("block", ["|-\n  010", ">-\n  010", '"\\x3010"'])
def test_a_leading_zero_makes_no_number_of_text_that_is_not_plain(block: str) -> None:
    assert load_yaml(f"version: {block}\n") == {"version": "010"}


def test_a_quoted_number_elsewhere_does_not_change_what_a_plain_one_is() -> None:
    assert load_yaml("build: 010\nversion: '010'\nlist: [010, \"010\"]\n") == {
        "build": 10,
        "version": "010",
        "list": [10, "010"],
    }


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("~: a\n", {"null": "a"}),
        ("true: a\n", {"true": "a"}),
        ("1: a\n", {"1": "a"}),
        ("1.5: a\n", {"1.5": "a"}),
        ("'a b': a\n", {"a b": "a"}),
    ],
)
def test_keys_become_text(text: str, fields: dict[str, str]) -> None:
    assert load_yaml(text) == fields


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"\uD83E\uDDFE"', "\U0001f9fe"),
        (r'"a \ud83d\ude00\uD83D\uDE00 b"', "a \U0001f600\U0001f600 b"),
        (r"'\uD83E\uDDFE'", r"\uD83E\uDDFE"),
    ],
)
def test_a_pair_of_surrogate_escapes_is_one_character(written: str, read: str) -> None:
    assert load_yaml(f"icon: {written}\n") == {"icon": read}


@pytest.mark.parametrize("written", [r'"\uD83E"', r'"\uDDFE\uD83E"', r'"\ud83e x"', r'"\U00110000"'])
def test_half_a_surrogate_pair_is_refused(written: str) -> None:
    problem = problem_of(f"a: b\nicon: {written}\n")
    assert (problem.rule, problem.line) == ("yaml", 2)


@pytest.mark.parametrize("text", ["", "\n", "# nothing but a comment\n", "~\n"])
def test_a_text_without_values_is_none(text: str) -> None:
    assert load_yaml(text) is None


# Aliases, tags, merge keys ------------------------------------------------------------------------

CHAIN = "a: &a [x, x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n"
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)
WIDE = "a: &a [" + "x," * 7000 + "x]\nb: [" + "*a," * 5000 + "*a]\n"
LONG = 'a: &a "' + "x" * 15_000 + '"\nb: [' + ",".join(["*a"] * 5000) + "]\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(CHAIN, 2, id="a chain of two"),
        pytest.param(LAUGHS, 2, id="a billion laughs"),
        pytest.param(WIDE, 2, id="one level, 7,000 by 5,000"),
        pytest.param(LONG, 2, id="one long text, 5,000 times"),
        pytest.param("a: &a\n  - x\nb:\n  - *a\n", 4, id="in a block list"),
        pytest.param("base: &b {x: 1}\nskill:\n  <<: *b\n", 3, id="in a merge key"),
        pytest.param("a: *nobody\n", 1, id="without its anchor"),
    ],
)
def test_an_alias_is_refused_before_it_is_expanded(text: str, line: int) -> None:
    problem = problem_of(text)
    assert (problem.rule, problem.line) == ("yaml-alias", line)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a: R&D and *more*\n", {"a": "R&D and *more*"}),
        ("a: '&x *x'\n", {"a": "&x *x"}),
        ("a: Tom & Jerry *\n", {"a": "Tom & Jerry *"}),
        ("a: |\n  &nbsp; is a blank\n  **bold** is bold\n", {"a": "&nbsp; is a blank\n**bold** is bold\n"}),
        ("a: >-\n  &foo *foo\n  bar\n", {"a": "&foo *foo bar"}),
        ('{"&a": 1, "&b": "*"}\n', {"&a": 1, "&b": "*"}),
        ("a: &unused hello\n", {"a": "hello"}),
    ],
)
def test_ampersands_and_stars_in_text_are_text(text: str, fields: dict[str, Any]) -> None:
    assert load_yaml(text) == fields


@pytest.mark.parametrize(
    "text",
    [
        "a: !!str 5\n",
        "a: !!str hello\n",
        "a: !own hello\n",
        "a: ! hello\n",
        'a: !!python/object/apply:os.system ["id"]\n',
        "a: [!!int '5']\n",
        "a: !<tag:yaml.org,2002:str> 5\n",
        "- !!binary aGVsbG8=\n",
        "metadata: !!map\n  author: me\n",
        "globs: !own\n  - a\n",
        "!!map\nname: a\n",
    ],
)
def test_a_tag_is_refused(text: str) -> None:
    assert rule_of(text) == "yaml-tag"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a: Stop! Wait!\n", {"a": "Stop! Wait!"}),
        ("a: 'note: !important'\n", {"a": "note: !important"}),
        ("a: |\n  - !x\n  !y\n", {"a": "- !x\n!y\n"}),
        ("a: '\uf5a1 and - !x'\n", {"a": "\uf5a1 and - !x"}),
    ],
)
def test_exclamation_marks_in_text_are_text(text: str, fields: dict[str, str]) -> None:
    assert load_yaml(text) == fields


def test_text_that_is_not_a_number_is_not_taken_for_a_tag() -> None:
    assert rule_of("a: 'note: !important'\nb: .nan\n") == "yaml-value"


@pytest.mark.parametrize(("text", "line"), [("a:\n  <<: {b: 1}\n", 2), ("<<: [{a: 1}]\n", 1), ("'<<': a\n", 1)])
def test_a_merge_key_is_refused(text: str, line: int) -> None:
    problem = problem_of(text)
    assert (problem.rule, problem.line) == ("yaml-merge", line)


# Keys and values that have no place in JSON -------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: a\nlicense: b\nname: c\n", 3),
        ("name: a\n'name': b\n", 2),
        ("1: a\n'1': b\n", 2),
        ("1: a\n1: b\n", 2),
        ("true: a\ntrue: b\n", 2),
        ("1.5: a\n1.5: b\n", 2),
        ("metadata:\n  a: x\n  b: y\n  a: z\n", 4),
        ("metadata: {a: x, a: y}\n", 1),
        ("metadata:\n  version: a\nversion: b\nversion: c\n", 4),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_the_line_of_the_second(text: str, line: int) -> None:
    problem = problem_of(text)
    assert (problem.rule, problem.line) == ("yaml-duplicate-key", line)


@pytest.mark.parametrize("key", ["''", "~", "[a]", "{a: b}"])
def test_a_key_without_a_text_that_stands_twice_is_refused_too(key: str) -> None:
    assert rule_of(f"{key}: a\n{key}: b\n") in ("yaml-duplicate-key", "yaml-key")


def test_a_key_may_stand_in_several_maps() -> None:
    assert load_yaml("name: a\nmetadata:\n  name: b\n") == {"name": "a", "metadata": {"name": "b"}}


@pytest.mark.parametrize("text", ["[a]: b\n", "{a: b}: c\n", "? [a, b]\n: c\n", "m: {[a]: b}\n"])
def test_a_list_or_map_as_key_is_refused(text: str) -> None:
    assert rule_of(text) == "yaml-key"


@pytest.mark.parametrize(
    "written",
    [
        "18446744073709551616",
        "-9223372036854775809",
        "9" * 30,
        "9" * 39,
        "9" * 60,
        "-" + "9" * 60,
        "9" * 5000,
        "0x" + "F" * 30,
        ".nan",
        ".NaN",
        ".inf",
        "-.inf",
        "[1, .inf]",
    ],
)
def test_a_number_without_an_exact_json_form_is_refused(written: str) -> None:
    problem = problem_of(f"name: a\nversion: {written}\n")
    assert (problem.rule, problem.line) == ("yaml-value", 2)


@pytest.mark.parametrize("character", ["\0", "\x01", "\x08", "\x0b", "\x1b", "\x7f", "\x9b", "\ufffe"])
def test_a_raw_control_character_is_refused_with_its_place(character: str) -> None:
    problem = problem_of(f"name: a\nlicense: b{character}c\n")
    assert (problem.rule, problem.line, problem.column) == ("control-character", 2, 11)


@pytest.mark.parametrize("text", ["a: 1\n--- # again\nb: 2\n", "a: 1\n...\nb: 2\n"])
def test_a_second_document_is_refused_where_it_begins(text: str) -> None:
    problem = problem_of(text)
    assert problem.rule == "yaml"
    assert "second YAML document" in problem.message
    assert problem.line in (2, 3)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: b\nc: d: e\n", 2, 5),
        ("a: b\nc: [d\n", 3, 1),
        ("a: b\n\tc: d\n", 2, 1),
        ("a: b\nc: @d\n", 2, 4),
    ],
)
def test_a_text_that_is_not_yaml_has_the_position_of_the_mistake(text: str, line: int, column: int) -> None:
    problem = problem_of(text)
    assert (problem.rule, problem.line, problem.column) == ("yaml", line, column)


# Limits -------------------------------------------------------------------------------------------


def nested_lists(levels: int) -> str:
    """Return a map with nested lists, with that number of levels in all."""
    return "a: " + "[" * (levels - 1) + "x" + "]" * (levels - 1) + "\n"


def nested_maps(levels: int) -> str:
    """A map in a map in a map."""
    return "".join(" " * level + "a:\n" for level in range(levels - 1)) + " " * levels + "a: x\n"


@pytest.mark.parametrize("nested", [nested_lists, nested_maps])
def test_eight_levels_are_read_and_nine_are_not(nested: Callable[[int], str]) -> None:
    assert FRONTMATTER_DEPTH == 8
    written = json.dumps(load_yaml(nested(8)))
    assert written.count("[") + written.count("{") == 8
    assert rule_of(nested(9)) == "frontmatter-depth"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: " + "[" * 5000 + "]" * 5000, id="5,000 brackets"),
        pytest.param("a: " + "[" * 5000, id="5,000 brackets left open"),
        pytest.param("a: " + "[" * (FRONTMATTER_BYTES - 4), id="brackets up to the size limit"),
        pytest.param("a: " + "{a: " * 5000, id="5,000 braces"),
        pytest.param("- " * 5000 + "a", id="5,000 dashes"),
        pytest.param("? " * 5000 + "a", id="5,000 question marks"),
        pytest.param("".join(" " * n + "a:\n" for n in range(300)), id="300 indents"),
    ],
)
def test_deep_nesting_is_one_problem_and_no_recursion_error(text: str) -> None:
    assert rule_of(text) == "frontmatter-depth"


@pytest.mark.parametrize("value", ["text", "7", "[a]"])
def test_256_keys_are_read_and_257_are_not(value: str) -> None:
    assert FRONTMATTER_KEYS == 256
    assert len(load_yaml("".join(f"k{n}: {value}\n" for n in range(256)))) == 256
    assert rule_of("".join(f"k{n}: {value}\n" for n in range(257))) == "frontmatter-keys"


def test_keys_of_inner_maps_count_too() -> None:
    inner = "".join(f"  k{n}: x\n" for n in range(255))
    assert len(load_yaml("m:\n" + inner)["m"]) == 255
    assert rule_of("m:\n" + inner + "n: x\n") == "frontmatter-keys"


# Lines of `key: value` ----------------------------------------------------------------------------


@pytest.mark.req("M-25")
def test_simple_lines_are_read_the_same_by_both_readings() -> None:
    text = "name: code-review\n\n# a comment\ndescription: 'Reviews code'\nlicense: \"MIT\"\n"
    fields = {"name": "code-review", "description": "Reviews code", "license": "MIT"}
    assert (load_lines(text), load_yaml(text)) == (fields, fields)


def test_simple_lines_keep_everything_after_the_first_colon_as_text() -> None:
    assert load_lines("a: b: c # d\nb: [x] [y]\nc: 'it''s\nd:\n") == {
        "a": "b: c # d",
        "b": "[x] [y]",
        "c": "'it''s",
        "d": "",
    }


def test_a_simple_line_without_a_colon_is_a_problem_with_its_line() -> None:
    with pytest.raises(YamlProblem) as caught:
        load_lines("name: a\ndescription: >\n  folded text\n")
    assert (caught.value.rule, caught.value.line) == ("yaml", 3)
