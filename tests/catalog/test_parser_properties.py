"""Every text gives a document, the same one each time, and never an exception."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.trees import write_skill

from skillshelf.catalog.document import ParsedFrontmatter, ParseOptions, body, has_frontmatter_end, parse
from skillshelf.catalog.rules import check, placed, split_tools
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.profile import RULES
from skillshelf.core import files
from skillshelf.core.hidden_text import hidden_text
from skillshelf.core.limits import SKILL_FILE_BYTES

same_every_time = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)

# Texts --------------------------------------------------------------------------------------------

WORDS = ["name", "description", "a", "b-c", "metadata", "x y", "caf\u00e9", "\U0001f600", "", " ", "\u200b", "\u2028"]
MARKS = [
    ": ",
    ":",
    "- ",
    "? ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "'",
    '"',
    "|",
    ">",
    "|-",
    "#",
    " #",
    "&a",
    "*a",
    "!!str ",
    "!",
]
MARKS += ["%", "@", "`", "---", "...", "<<: ", "\\", "\\uD83E\\uDDFE", "\t", "\0", "\x1b", "~"]
VALUES = ["010", "'010'", ".nan", "-.inf", "1e999", "9" * 20, "9" * 60, "true", "null", "1.5", "2024-13-45", "0x1f"]

plain_lines = st.lists(st.sampled_from(WORDS + MARKS + VALUES), max_size=6).map("".join)
field_lines = st.tuples(st.sampled_from(["name", "description", "license", "k"]), plain_lines).map(": ".join)
indented = st.tuples(st.sampled_from(["", "  ", "    ", "\t"]), plain_lines | field_lines).map("".join)
frontmatters = st.lists(indented, max_size=6).map(lambda lines: "".join(line + "\n" for line in lines))
fences = st.sampled_from(["---", "--- ", "---\t"])
bodies = st.sampled_from(["", "\n# Body\n", "---\n", "a\r\nb\r\n", "\x00"])


@st.composite
def skill_files(draw: st.DrawFn) -> bytes:
    """A file with both fences and anything between and after them."""
    return f"{draw(fences)}\n{draw(frontmatters)}{draw(fences)}\n{draw(bodies)}".encode()


any_files = (
    st.binary(max_size=200)
    | skill_files()
    | skill_files().flatmap(lambda data: st.integers(0, len(data)).map(lambda end: data[:end]))
)


def read(data: bytes) -> ParsedFrontmatter:
    """The document of a whole file."""
    return parse(data, whole=True)


def places(document: ParsedFrontmatter) -> list[tuple[str, int | None, int | None]]:
    """Return rule and position of each finding."""
    return [(finding.rule, finding.line, finding.column) for finding in document.findings]


# Any bytes ----------------------------------------------------------------------------------------


@same_every_time
@given(any_files)
@example(b"---\n1: a\n1: b\n---\n")
@example(b"---\n? ? \n? ? \n---\n")
@example(b"---\n'': a\n'': b\n---\n")
def test_any_bytes_give_a_document_and_the_same_one_twice(data: bytes) -> None:
    document = read(data)
    assert isinstance(document, ParsedFrontmatter)
    assert document == read(bytes(bytearray(data)))


@same_every_time
@given(any_files)
def test_a_document_has_fields_or_a_finding_that_says_why_not(data: bytes) -> None:
    document = read(data)
    rules = {finding.rule for finding in document.findings}
    assert rules <= set(RULES)
    if any(RULES[rule].severity == "reject" for rule in rules):
        assert document.fields == {}


@same_every_time
@given(any_files, st.sampled_from(sorted(SYSTEMS)))
def test_every_finding_has_a_line_counted_from_one(data: bytes, profile: str) -> None:
    document = read(data)
    for finding in check(document, "folder", SYSTEMS[profile]):
        at = placed(finding, document)
        assert finding.rule in RULES
        assert at.line is not None
        assert at.line >= 1
        assert at.column is None or at.column >= 1


@same_every_time
@given(any_files)
@example(b'---\na: "\\uD83E"\n---\n')
@example(b'---\na: "\\0"\n---\n')
@example(b"---\n.nan: a\n---\n")
@example(b"---\na: 1e999\n---\n")
def test_the_fields_are_json(data: bytes) -> None:
    fields = read(data).fields
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    json.dumps(fields, ensure_ascii=False).encode()


@same_every_time
@given(any_files)
def test_simple_reading_gives_a_document_too(data: bytes) -> None:
    document = parse(data, whole=True, options=ParseOptions("simple"))
    assert all(type(value) is str for value in document.fields.values())


@same_every_time
@given(skill_files())
def test_the_body_is_the_end_of_the_file(data: bytes) -> None:
    rest = body(data)
    assert data.endswith(rest)
    assert data[: len(data) - len(rest)].decode().rstrip(" \t\n").endswith("\n---")


# One document, written in several ways ------------------------------------------------------------


@same_every_time
@given(skill_files())
def test_crlf_gives_what_lf_gives_and_one_finding_more(data: bytes) -> None:
    lf = data.replace(b"\r\n", b"\n")
    crlf = lf.replace(b"\n", b"\r\n")
    assert read(crlf)[:2] == read(lf)[:2]
    assert [place for place in places(read(crlf)) if place[0] != "crlf"] == places(read(lf))
    assert ("crlf", 1, None) in places(read(crlf))


@same_every_time
@given(skill_files())
@example(b"---\nname: a\n---\nbody\r\n")
def test_a_byte_order_mark_changes_nothing_but_one_finding(data: bytes) -> None:
    marked = read(b"\xef\xbb\xbf" + data)
    assert marked[:2] == read(data)[:2]
    assert places(marked) == [("bom", 1, 1), *places(read(data))]


@same_every_time
@given(any_files, st.integers(6, 400))
@example(b"\xef\xbb\xbf---\nname: a\n---\nbody\r\n", 22)
def test_a_head_that_is_enough_gives_the_document_of_the_whole_file(data: bytes, length: int) -> None:
    head = data[:length]
    if has_frontmatter_end(head):
        document = parse(head, whole=len(head) == len(data))
        assert (document[:2], places(document)) == (read(data)[:2], places(read(data)))


@pytest.mark.parametrize("padding", [0, 1000, 4040, 4090, 4096, 5000, 60_000])
@pytest.mark.parametrize("place", ["name", "body"])
def test_a_file_read_by_its_head_gives_the_document_of_the_whole_file(padding: int, place: str) -> None:
    more = "x" * padding
    text = f"---\nname: a\n# {more}\n---\nbody\n" if place == "name" else f"---\nname: a\n---\n{more}\n"
    with TemporaryDirectory() as folder:
        path = write_skill(Path(folder), "a", text)
        descriptor = files.open_folder(os.path.realpath(path.parent))
        try:
            head = files.read_head(descriptor, "SKILL.md", limit=SKILL_FILE_BYTES, enough=has_frontmatter_end)
        finally:
            files.close(descriptor)
    assert head.data is not None
    assert parse(head.data, whole=len(head.data) >= head.size) == read(text.encode())


# What we write, we read ---------------------------------------------------------------------------

NOT_RAW = re.compile("[\x80-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that YAML refuses or takes for a line end unless escaped, and that JSON does not escape."""

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), max_size=12)
keys = texts.filter(lambda key: key != "<<")
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from(["010", "yes", "null", "~", "- a", "a: b", "[x] [y]", "&a *a", "!!str x", "#", "---", "...", ""])
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)


def depth(value: Any) -> int:
    """Return the number of lists and maps around the innermost value."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@same_every_time
@given(st.dictionaries(keys, trees, max_size=5).filter(lambda fields: depth(fields) <= 8), st.booleans(), st.booleans())
@example({"icon": "\U0001f9fe", "text": "\\uD83E\\uDDFE"}, True, False)
@example({"a": "010", "b": ["010"]}, True, False)
@example({"&a": "*", "&b": "!"}, True, False)
@example({"a": "\uf5a1", "b": "- !x"}, False, False)
@example({"a": 1e300, "b": 10**19, "c": "10" + "0" * 30}, True, False)
def test_fields_written_as_json_are_read_back(fields: dict[str, Any], ascii_only: bool, indent: bool) -> None:
    text = json.dumps(fields, ensure_ascii=ascii_only, indent=2 if indent else None)
    if not ascii_only:
        text = NOT_RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    document = read(f"---\n{text}\n---\nbody\n".encode())
    assert (document.fields, document.findings) == (fields, ())


words = st.text("abcXYZ019.,()/'\"-_ ", min_size=1, max_size=12).map(str.strip).filter(lambda word: word[:1].isalpha())


@same_every_time
@given(st.lists(words, min_size=2, max_size=4))
def test_the_line_that_a_repair_shows_reads_without_a_repair(parts: list[str]) -> None:
    value = ": ".join(parts)
    repaired = read(f"---\nname: a\ndescription: {value}\n---\n".encode())
    (finding,) = repaired.findings
    shown = finding.message.partition("; read as: ")[2]
    assert repaired.fields == {"name": "a", "description": value}
    assert read(f"---\nname: a\n{shown}\n---\n".encode()) == ParsedFrontmatter(
        repaired.fields, f"name: a\n{shown}\n", ()
    )


# Text ---------------------------------------------------------------------------------------------


@same_every_time
@given(
    st.text(
        st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.sampled_from("\n\t\u00e9\u00df\u4e2d\u6587\u05d0")
    )
)
def test_text_without_invisible_characters_is_never_accused(text: str) -> None:
    assert hidden_text(text) is None


@same_every_time
@given(
    st.text(max_size=20), st.sampled_from("\u200b\u2060\u202e\u2066\u3164\u00ad\U000e0041\x1b"), st.text(max_size=20)
)
def test_text_with_a_character_that_is_never_needed_is_always_accused(left: str, mark: str, right: str) -> None:
    message = hidden_text(left.replace("\U0001f3f4", "") + mark + right)
    assert message is not None
    assert message.isprintable()


@same_every_time
@given(st.text("ab(),:* \n", max_size=30))
def test_splitting_tools_loses_nothing_but_blanks_and_commas(text: str) -> None:
    def bare(parts: str) -> str:
        return "".join(parts.split()).replace(",", "")

    assert bare("".join(split_tools(text))) == bare(text)
