"""The difference of two trees: nothing is left out, and nothing in it is obeyed by a terminal."""

from __future__ import annotations

from skillshelf.catalog.source import ExecutableFile
from skillshelf.core.limits import DIFF_LINES
from skillshelf.install.difference import difference_of, is_script

HEAD = b"---\nname: x\ndescription: y\n"


def lines_of(before: bytes | None, after: bytes | None) -> list[str]:
    sides = [{} if data is None else {"a": data} for data in (before, after)]
    return [line for file in difference_of(sides[0], sides[1]).files for line in file.lines]


def test_equal_trees_have_no_difference() -> None:
    assert difference_of({"a": b"1"}, {"a": b"1"}) == ((), ())


def test_texts_are_compared_by_lines() -> None:
    assert lines_of(b"1\n2\n3\n", b"1\n2x\n3\n") == ["--- a/a", "+++ b/a", "@@ -1,3 +1,3 @@", " 1", "-2", "+2x", " 3"]


def test_an_added_and_a_removed_file_are_shown_whole() -> None:
    assert lines_of(None, b"1\n") == ["--- /dev/null", "+++ b/a", "@@ -0,0 +1 @@", "+1"]
    assert lines_of(b"1\n", None) == ["--- a/a", "+++ /dev/null", "@@ -1 +0,0 @@", "-1"]
    assert lines_of(None, ExecutableFile(b"")) == ["--- /dev/null", "+++ b/a", "# executable"]


def test_a_line_end_at_the_end_of_a_file_is_a_difference() -> None:
    assert lines_of(b"1\n", b"1")[-2:] == ["-1", "+1  (no line end)"]


def test_line_ends_and_hidden_characters_are_visible() -> None:
    assert lines_of(b"1\n", b"1\r\n")[-1] == "+1\\r"
    assert lines_of(b"", "\x1b[8m\u202e\u200b\U000e0041\n".encode())[-1] == "+\\x1b[8m\\u202e\\u200b\\U000e0041"
    assert lines_of(b"", b"a\tb\n")[-1] == "+a\tb"


def test_a_name_that_a_terminal_would_obey_is_escaped() -> None:
    (file,) = difference_of({}, {"\x1b]0;x\x07": b"1\n"}).files
    assert file.lines[1] == "+++ b/\\x1b]0;x\\x07"


def test_a_file_that_is_no_text_is_told_by_size_and_digest() -> None:
    shown = lines_of(b"\0", b"\xff")
    assert [line[:33] for line in shown[2:]] == [
        "- 1 bytes that are not text, sha2",
        "+ 1 bytes that are not text, sha2",
    ]
    assert shown[2] != shown[3].replace("+", "-")


def test_a_text_that_is_too_long_to_compare_is_shown_from_its_first_to_its_last_change() -> None:
    many = [f"{n}\n" for n in range(DIFF_LINES + 10)]
    changed = [*many[:5], "new\n", *many[6:]]
    shown = lines_of("".join(many).encode(), "".join(changed).encode())
    assert shown[2:] == ["@@ -6,1 +6,1 @@", "-5", "+new"]


def test_more_power_is_said_first() -> None:
    before = {"SKILL.md": HEAD + b"---\n", "run.sh": b"#!/bin/sh\n", "a.md": b"1"}
    after = {
        "SKILL.md": HEAD + b"allowed-tools: Bash(*)\ndisable-model-invocation: true\n---\n",
        "run.sh": ExecutableFile(b"#!/bin/sh\n"),
        "a.md": ExecutableFile(b"1"),
        "scripts/new.py": b"print()\n",
    }
    assert difference_of(before, after).remarks == (
        "allowed-tools: nothing becomes Bash(*)",
        "disable-model-invocation: nothing becomes True",
        "script a.md is executable now",
        "script run.sh is executable now",
        "script scripts/new.py is added",
    )


def test_a_script_that_changes_and_becomes_executable_is_said_to_do_both() -> None:
    off, on = {"run.sh": b"#!/bin/sh\n"}, {"run.sh": ExecutableFile(b"#!/bin/sh\nrm x\n")}

    assert difference_of(off, on).remarks == ("script run.sh is changed and is executable now",)
    assert difference_of(on, off).remarks == ("script run.sh is changed and is no longer executable",)


def test_scripts_are_known_by_mode_first_line_folder_or_name() -> None:
    assert [is_script(path, data) for path, data in (("a", ExecutableFile(b"")), ("a", b"#!x"), ("a.PY", b""))] == [
        True,
        True,
        True,
    ]
    assert is_script("scripts/x.bin", b"")
    assert not is_script("scripts/README.md", b"")
    assert not is_script("SKILL.md", b"")
