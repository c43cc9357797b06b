"""Values checked against types, and types as JSON Schema."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import pytest

from skillshelf.core.validation import schema_of, validate

UNKNOWN = "pair.more is not a known member (known: size, words, levels)"


class Inner(TypedDict):
    """A part."""

    size: int


class Pair(NamedTuple):
    """A named tuple with a default."""

    size: Annotated[int, 1]
    words: tuple[str, ...] = ()
    levels: Mapping[str, bool] | None = None


class Outer(TypedDict):
    """A whole."""

    name: str
    kind: NotRequired[Literal["a", "b"]]
    parts: NotRequired[list[Inner]]
    texts: NotRequired[dict[str, str]]
    either: NotRequired[str | dict[str, Any]]
    pair: NotRequired[Pair]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "x"}, None),
        ({"name": "x", "kind": "a", "parts": [{"size": 1}], "texts": {"a": "b"}, "either": {"x": 1}}, None),
        ([], "it must be an object"),
        ({}, "name is missing"),
        ({"name": 1}, "name must be text"),
        ({"name": "x", "nam": 1}, "nam is not a known member (known: name, kind, parts, texts, either, pair)"),
        ({"name": "x", "kind": "c"}, "kind must be one of a, b"),
        ({"name": "x", "kind": ["a"]}, "kind must be one of a, b"),
        ({"name": "x", "parts": {}}, "parts must be a list"),
        ({"name": "x", "parts": [{"size": 1}, {"size": True}]}, "parts[1].size must be a whole number"),
        ({"name": "x", "parts": [{"size": 1.0}]}, "parts[0].size must be a whole number"),
        ({"name": "x", "parts": [{}]}, "parts[0].size is missing"),
        ({"name": "x", "texts": {"a": None}}, "texts.a must be text"),
        ({"name": "x", "either": 1}, "either must be text or an object"),
        ({"name": "x", "pair": {"size": 1, "words": ["a"], "levels": {"b": True}}}, None),
        ({"name": "x", "pair": {"words": []}}, "pair.size is missing"),
        ({"name": "x", "pair": {"size": 0}}, "pair.size must be a whole number of at least 1"),
        ({"name": "x", "pair": {"size": 1, "words": "a"}}, "pair.words must be a list of texts"),
        ({"name": "x", "pair": {"size": 1, "words": ["a", 2]}}, "pair.words[1] must be text"),
        ({"name": "x", "pair": {"size": 1, "levels": 1}}, "pair.levels must be an object"),
        (
            {"name": "x", "pair": {"size": 1, "more": 1}},
            "pair.more is not a known member (known: size, words, levels)",
        ),
    ],
)
def test_a_value_of_another_type_is_reported_with_its_path(value: Any, problem: str | None) -> None:
    found = validate(value, Outer)

    assert (found and str(found)) == problem


def test_a_type_is_written_as_json_schema() -> None:
    assert schema_of(Pair) == {
        "description": "A named tuple with a default.",
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "words": {"type": "array", "items": {"type": "string"}},
            "levels": {
                "anyOf": [{"type": "object", "additionalProperties": {"type": "boolean"}}, {"type": "null"}],
            },
        },
        "required": ["size"],
        "additionalProperties": False,
    }
    with pytest.raises(TypeError, match="no schema for"):
        schema_of(set[str])
