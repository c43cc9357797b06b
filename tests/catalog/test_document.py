"""The bytes of a SKILL.md become fields, the text they were read from, and findings with a line."""

from __future__ import annotations

from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf.catalog.document import ParsedFrontmatter, body, has_frontmatter_end, parse
from skillshelf.core.limits import FRONTMATTER_BYTES
from skillshelf.core.values import Finding


def shown(finding: Finding) -> str:
    """The line that a repair shows."""
    return finding.message.partition("; read as: ")[2]


def read(text: str | bytes) -> ParsedFrontmatter:
    """The document of a whole file."""
    return parse(text.encode() if isinstance(text, str) else text, whole=True)


def rules_and_lines(document: ParsedFrontmatter) -> list[tuple[str, int | None]]:
    """Rule and line of each finding."""
    return [(finding.rule, finding.line) for finding in document.findings]


# Fences -------------------------------------------------------------------------------------------


@pytest.mark.req("S-49", "M-05", "M-66", "K-16")
def test_the_frontmatter_is_what_stands_between_two_lines_of_three_hyphens() -> None:
    text = "---\nname: a\ndescription: b\n---\n# Body\n\nname: c\n---\n"
    assert read(text) == ParsedFrontmatter({"name": "a", "description": "b"}, "name: a\ndescription: b\n", ())
    assert body(text.encode()) == b"# Body\n\nname: c\n---\n"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param("---\nname: a --- b\n---\n", {"name": "a --- b"}, id="inside a value"),
        pytest.param("---\nname: a---\n---\n", {"name": "a---"}, id="at the end of a value"),
        pytest.param("---\nname: |\n  a\n  ---\n  b\n---\n", {"name": "a\n---\nb\n"}, id="indented, in a block"),
        pytest.param('---\nname: "a\n  ---\n  b"\n---\n', {"name": "a --- b"}, id="indented, in quotes"),
        pytest.param("---\nname: a\n# ---\nb: c\n---\n", {"name": "a", "b": "c"}, id="in a comment"),
    ],
)
def test_hyphens_that_are_not_a_whole_line_close_nothing(text: str, fields: dict[str, Any]) -> None:
    assert read(text) == ParsedFrontmatter(fields, text[4:-4], ())


@pytest.mark.parametrize("fence", ["----", "---x", "--- x", "--"])
def test_a_line_that_only_begins_like_a_fence_closes_nothing(fence: str) -> None:
    document = read(f"---\nname: a\n{fence}\nb: c\n---\n")
    assert document.text == f"name: a\n{fence}\nb: c\n"
    assert [rule for rule, _ in rules_and_lines(document)] == ["yaml"]


@pytest.mark.parametrize("fence", ["---", "--- ", "---\t", "--- \t  ", "---\r"])
@pytest.mark.parametrize("end", ["", "\n", "\nbody"])
def test_the_closing_fence_may_have_blanks_and_may_end_the_file(fence: str, end: str) -> None:
    document = read(f"---\nname: a\n{fence}{end}")
    assert (document.fields, document.findings) == ({"name": "a"}, ())


def test_blanks_after_the_opening_fence_are_a_finding() -> None:
    document = read("--- \t\nname: a\n---\n")
    assert document.fields == {"name": "a"}
    assert document.findings == (Finding("fence-blanks", "blanks follow the opening `---`", 1, 4),)


@pytest.mark.parametrize("text", ["---\n---\nbody", "---\n\n---\n", "---\n# only a comment\n---\n", "---\n---"])
def test_an_empty_frontmatter_has_no_fields_and_no_finding(text: str) -> None:
    assert (read(text).fields, read(text).findings) == ({}, ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("---\nname: |\n  a\n---\n", "a\n"),
        ("---\nname: |\n  a\n---", "a\n"),
        ("---\nname: |-\n  a\n---\n", "a"),
        ("---\nname: |+\n  a\n\n---\n", "a\n\n"),
        ("---\nname: >\n  a\n  b\n---\n", "a b\n"),
        ("---\r\nname: |\r\n  a\r\n---\r\n", "a\n"),
    ],
)
def test_a_block_scalar_that_ends_at_the_closing_fence_keeps_its_line_end(text: str, value: str) -> None:
    assert read(text).fields == {"name": value}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("\n \n", "the file is empty", id="blank"),
        pytest.param("# Title\n", "does not begin with a line `---`", id="markdown"),
        pytest.param("<!-- x -->\n---\nname: a\n---\n", "does not begin with a line `---`", id="a comment before it"),
        pytest.param("\n---\nname: a\n---\n", "must be line 1", id="an empty line before it"),
        pytest.param(" ---\nname: a\n---\n", "must be line 1", id="a blank before it"),
        pytest.param("---\rname: a\r---\r", "CR alone", id="line ends of old Macs"),
        pytest.param("----\nname: a\n---\n", "does not begin with a line `---`", id="four hyphens"),
        pytest.param("+++\nname = 'a'\n+++\n", "does not begin with a line `---`", id="TOML"),
    ],
)
def test_a_file_without_an_opening_fence_says_what_is_there_instead(text: str, reason: str) -> None:
    document = read(text)
    assert (document.fields, rules_and_lines(document)) == ({}, [("frontmatter-missing", 1)])
    assert reason in document.findings[0].message


@pytest.mark.parametrize("text", ["---", "---\n", "---\nname: a", "---\nname: a\n", "---\nname: a\n...\nbody\n"])
def test_a_frontmatter_without_a_closing_fence_is_unclosed(text: str) -> None:
    assert read(text).findings == (Finding("frontmatter-unclosed", "the frontmatter has no closing line `---`", 1, 1),)


@pytest.mark.parametrize("text", ["---\nhello\n---\n", "---\n- a\n- b\n---\n", "---\n42\n---\n"])
def test_a_frontmatter_that_is_not_a_map_is_refused(text: str) -> None:
    document = read(text)
    assert (document.fields, rules_and_lines(document)) == ({}, [("frontmatter-type", 2)])


@pytest.mark.req("S-18")
@pytest.mark.parametrize(
    ("data", "rest"),
    [
        (b"---\na: 1\n---\n\n# Title\n", b"\n# Title\n"),
        (b"---\r\na: 1\r\n---\r\nhi\r\n", b"hi\r\n"),
        (b"\xef\xbb\xbf---\na: 1\n---\nhi", b"hi"),
        (b"---\na: 1\n--- \t\nhi\n---\nho", b"hi\n---\nho"),
        (b"---\na: 1\n---", b""),
        (b"---\na: 1\n---\n\xff\x00", b"\xff\x00"),
        (b"# no frontmatter\n", b"# no frontmatter\n"),
        (b"---\nunclosed", b"---\nunclosed"),
    ],
)
def test_the_body_is_everything_after_the_closing_fence_byte_for_byte(data: bytes, rest: bytes) -> None:
    assert body(data) == rest


# Bytes --------------------------------------------------------------------------------------------


def test_crlf_reads_like_lf_and_is_a_finding() -> None:
    text = "---\nname: a\ndescription: |\n  b\n  c\n---\nbody\n"
    document = read(text.replace("\n", "\r\n"))
    assert document == read(text)._replace(findings=(Finding("crlf", "the line ends are CRLF", 1, None),))


def test_a_byte_order_mark_is_a_finding_and_no_more() -> None:
    text = b"---\nname: a\n---\nbody\n"
    (finding,) = read(b"\xef\xbb\xbf" + text).findings
    assert (finding.rule, finding.line, finding.column) == ("bom", 1, 1)
    assert read(b"\xef\xbb\xbf" + text) == read(text)._replace(findings=(finding,))


def test_a_second_byte_order_mark_hides_the_fence() -> None:
    assert rules_and_lines(read(b"\xef\xbb\xbf\xef\xbb\xbf---\nname: a\n---\n")) == [("frontmatter-missing", 1)]


def test_line_ends_of_the_body_say_nothing_about_the_frontmatter() -> None:
    assert read(b"---\nname: a\n---\nbody\r\n").findings == ()
    assert rules_and_lines(read(b"\xef\xbb\xbf---\nname: a\n---\nbody\r\n")) == [("bom", 1)]
    assert rules_and_lines(read(b"--- \nname: a\n---\nbody\r\n")) == [("fence-blanks", 1)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_recognised_by_its_mark(encoding: str) -> None:
    mark = {"utf-16": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[encoding]
    document = read(mark + "---\nname: a\n---\n".encode(encoding))
    assert document.findings == (Finding("encoding", "the file is UTF-16; save it as UTF-8", 1, 1),)


@pytest.mark.parametrize(
    ("value", "message", "column"),
    [
        pytest.param(b"caf\xe9", "not UTF-8: byte 0xe9 at offset 24", 13, id="Latin-1"),
        pytest.param("é".encode() + b"\xe9", "not UTF-8: byte 0xe9 at offset 23", 11, id="after a letter of two bytes"),
        pytest.param(b"\xc0\xaf", "not UTF-8: byte 0xc0 at offset 21", 10, id="overlong"),
        pytest.param(b"\xed\xa0\x80", "not UTF-8: byte 0xed at offset 21", 10, id="half a surrogate pair"),
        pytest.param(b"\xf4\x90\x80\x80", "not UTF-8: byte 0xf4 at offset 21", 10, id="beyond Unicode"),
    ],
)
def test_bytes_that_are_no_utf8_are_refused_with_their_place(value: bytes, message: str, column: int) -> None:
    document = read(b"---\nname: a\nlicense: " + value + b"\n---\n")
    assert document == ParsedFrontmatter({}, "", (Finding("encoding", message, 3, column),))


def test_the_body_need_not_be_utf8() -> None:
    assert read(b"---\nname: a\n---\n\xff\xfe\x00") == ParsedFrontmatter({"name": "a"}, "name: a\n", ())


def test_nul_in_the_frontmatter_is_refused_with_its_place() -> None:
    document = read(b"---\nname: a\nlicense: b\x00c\n---\n")
    assert document.fields == {}
    assert document.findings == (Finding("control-character", "a control character in the frontmatter", 3, 11),)


# Size ---------------------------------------------------------------------------------------------


def sized(block: int) -> str:
    """Return a file whose frontmatter has that size in bytes."""
    start = "name: big\ndescription: "
    return f"---\n{start}{'x' * (block - len(start) - 1)}\n---\nbody\n"


def test_a_frontmatter_of_64_kib_is_read_and_one_byte_more_is_not(machine: Machine) -> None:
    assert FRONTMATTER_BYTES == 64 * 1024
    write_skill(machine.repo / ".agents/skills", "big", sized(FRONTMATTER_BYTES))
    over = write_skill(machine.repo / ".agents/skills", "bigger", sized(FRONTMATTER_BYTES + 1))
    far_over = write_skill(machine.repo / ".agents/skills", "biggest", sized(FRONTMATTER_BYTES * 3))

    catalog = machine.catalog()

    assert [skill.name for skill in catalog.skills] == ["big"]
    assert [(error.path, error.rule, error.line) for error in catalog.errors] == [
        (str(over), "frontmatter-size", 1),
        (str(far_over), "frontmatter-size", 1),
    ]


def test_a_large_file_without_a_closing_fence_is_too_large_and_not_just_unclosed() -> None:
    assert rules_and_lines(read("---\n" + "a: b\n" * 20_000)) == [("frontmatter-size", 1)]


@pytest.mark.parametrize(
    ("head", "enough"),
    [
        (b"---\nname: a\n", False),
        (b"---\nname: a\n---", False),
        (b"---\nname: a\n--- ", False),
        (b"---\nname: a\n---\n", True),
        (b"---\r\nname: a\r\n---\r\n", True),
        (b"\xef\xbb\xbf---\nname: a\n---\n", True),
        (b"# Title\n", True),
        (b"---" + b" " * 5000, False),
    ],
)
def test_a_head_is_enough_when_more_bytes_could_not_move_the_closing_fence(head: bytes, enough: bool) -> None:
    assert has_frontmatter_end(head) is enough


# Repairs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "rule", "repaired", "value"),
    [
        ("key: Use when: x", "yaml-colon", "key: 'Use when: x'", "Use when: x"),
        ("key: Use when:", "yaml-colon", "key: 'Use when:'", "Use when:"),
        ("key: it's for: x", "yaml-colon", "key: 'it''s for: x'", "it's for: x"),
        ('key: say "a": b', "yaml-colon", "key: 'say \"a\": b'", 'say "a": b'),
        ("key: see http://a.b: c", "yaml-colon", "key: 'see http://a.b: c'", "see http://a.b: c"),
        ("key: a: b: c   ", "yaml-colon", "key: 'a: b: c'", "a: b: c"),
        ("key: a: #1 choice", "yaml-colon", "key: 'a: #1 choice'", "a: #1 choice"),
        ("key: [x] [y]", "yaml-brackets", "key: '[x] [y]'", "[x] [y]"),
        ("key: [file] - a file", "yaml-brackets", "key: '[file] - a file'", "[file] - a file"),
        ("key: {x} {y}", "yaml-brackets", "key: '{x} {y}'", "{x} {y}"),
        ("key: @handle", "yaml-brackets", "key: '@handle'", "@handle"),
        ("key: `code` here", "yaml-brackets", "key: '`code` here'", "`code` here"),
    ],
)
def test_a_value_that_lacks_its_quotes_is_read_as_if_it_had_them(
    line: str, rule: str, repaired: str, value: str
) -> None:
    document = read(f"---\nname: a\n{line}\nlicense: MIT\n---\n")
    assert document.fields == {"name": "a", "key": value, "license": "MIT"}
    assert [(f.rule, shown(f), f.line, f.column) for f in document.findings] == [(rule, repaired, 3, 1)]


def test_an_argument_hint_that_looks_like_lists_is_text() -> None:
    document = read("---\nname: a\nargument-hint: [issue] [branch]\n---\n")
    assert document.fields == {"name": "a", "argument-hint": "[issue] [branch]"}
    assert document.findings == (
        Finding(
            "yaml-brackets",
            "a value that begins like a list or a reserved mark needs quotes; "
            "read as: argument-hint: '[issue] [branch]'",
            3,
            1,
        ),
    )


def test_tabs_before_a_key_are_read_as_blanks() -> None:
    document = read("---\nname: a\nmetadata:\n\tauthor: me\n\tteam: us\nglobs:\n\t- b\n---\n")
    assert document.fields == {"name": "a", "metadata": {"author": "me", "team": "us"}, "globs": ["b"]}
    assert document.findings == (
        Finding("yaml-tab", "tabs cannot indent YAML; read as: author: me", 4, 2),
        Finding("yaml-tab", "tabs cannot indent YAML; read as: team: us", 5, 2),
        Finding("yaml-tab", "tabs cannot indent YAML; read as: - b", 7, 2),
    )


def test_a_nested_value_keeps_its_indent_when_it_is_repaired() -> None:
    document = read("---\nmetadata:\n  note: a: b\n  list:\n    - do: c: d\n---\n")
    assert document.fields == {"metadata": {"note": "a: b", "list": [{"do": "c: d"}]}}
    assert document.findings == (
        Finding("yaml-colon", "a value with `: ` in it needs quotes; read as: note: 'a: b'", 3, 3),
        Finding("yaml-colon", "a value with `: ` in it needs quotes; read as: - do: 'c: d'", 5, 5),
    )


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        pytest.param("key: |\n  a: b: c\n  [x] [y]\n", "a: b: c\n[x] [y]\n", id="a block"),
        pytest.param("key: >-\n  a: b: c\n\n  d: e: f\n", "a: b: c\nd: e: f", id="a folded block with an empty line"),
        pytest.param("key: |2 # two\n   a: b: c\n", " a: b: c\n", id="a block with an indent and a comment"),
        pytest.param("key: 'a: b'\n", "a: b", id="single quotes"),
        pytest.param('key: "a: b"\n', "a: b", id="double quotes"),
        pytest.param('key: "a\n  b: c: d\n  e"\n', "a b: c: d e", id="double quotes over lines"),
        pytest.param("key: 'a\n  b: c: d\n  e'\n", "a b: c: d e", id="single quotes over lines"),
        pytest.param("key: [x, y]\n", ["x", "y"], id="a list"),
        pytest.param("key: {x: y}\n", {"x": "y"}, id="a map"),
        pytest.param("key: a # note: b\n", "a", id="a comment"),
        pytest.param("key: 12:30\n", "12:30", id="a colon without a blank"),
    ],
)
def test_what_is_right_is_left_alone_when_another_line_is_repaired(lines: str, value: object) -> None:
    document = read(f"---\n{lines}hint: b: c\n---\n")
    assert document.fields == {"key": value, "hint": "b: c"}
    assert [shown(finding) for finding in document.findings] == ["hint: 'b: c'"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("---\nname: a\nname: b\nhint: b: c\n---\n", "yaml-duplicate-key"),
        ("---\na: &a [1]\nb: *a\nhint: b: c\n---\n", "yaml-alias"),
        ("---\nname: a\nhint: 'b: c\n---\n", "yaml"),
        ("---\nname: a\nhint: b\n  more: c\n---\n", "yaml"),
    ],
)
def test_nothing_but_the_usual_mistakes_is_repaired(text: str, rule: str) -> None:
    document = read(text)
    assert (document.fields, [rule for rule, _ in rules_and_lines(document)]) == ({}, [rule])


def test_a_repaired_document_keeps_the_text_its_author_wrote() -> None:
    assert read("---\nhint: b: c\n---\n").text == "hint: b: c\n"


def test_a_long_run_of_blanks_in_a_line_to_repair_is_read_like_any_other() -> None:
    value = "b: c" + " " * 60_000 + "d"
    assert read(f"---\nhint: {value}\n---\n").fields == {"hint": value}


# Places -------------------------------------------------------------------------------------------


def test_the_line_of_a_problem_counts_from_the_first_line_of_the_file() -> None:
    assert rules_and_lines(read("---\nname: a\nlicense: b\nname: c\n---\n")) == [("yaml-duplicate-key", 4)]


def test_a_field_is_found_at_its_line() -> None:
    document = read("---\nname: a\ndescription: |\n  license: no\nlicense : MIT\n---\n")
    assert [document.place(field) for field in ("name", "description", "license", "version")] == [
        (2, 1),
        (3, 1),
        (5, 1),
        (None, None),
    ]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
def test_only_line_feeds_count_as_lines(character: str) -> None:
    document = read(f"---\nname: a\ndescription: 'b{character}c'\nlicense: MIT\n---\n")
    assert document.place("license") == (4, 1)
