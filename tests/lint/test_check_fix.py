"""The effect of `check --fix` on a file: the fix and nothing else, completely or not at all."""

from __future__ import annotations

import os
import string
import time
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.trees import Machine, write_skill

from skillshelf.catalog.document import body, parse
from skillshelf.catalog.frontmatter import load_yaml
from skillshelf.catalog.rules import check
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.lint.fix import FIXERS, FixInput, fix_text, yaml_word
from skillshelf.lint.run import CheckOptions, Report, check_targets, in_paths, in_roots

STANDARD = SYSTEMS["standard"]
FIXABLE = {rule for rules, _ in FIXERS for rule in rules}
REST = "description: Does it. Use when asked for it.\n---\n# Body\r\nline\r\n"

NAMES = CheckOptions(renames=True)


def fix(machine: Machine, *paths: Path, mode: Literal["diff", "fix"] = "fix") -> Report:
    """Return the report of a run with fixes."""
    shelf = machine.shelf()
    return check_targets(in_paths([str(path) for path in paths], shelf), shelf.profile, mode=mode, options=NAMES)


def repaired(data: bytes, directory: str = "demo") -> bytes:
    """Return the bytes after every fix."""
    return fix_text(FixInput(data, directory, STANDARD, directory)).data


LONG_LINES = [
    start + part * (40_000 // len(part)) + end
    for start in ("name:", 'name: "', "name : a", "argument-hint: [", "~~~", " > - ```")
    for part in (" ", "a  b", '"', "[", "# ", "~", "`", "> ", "\\")
    for end in ("", '`"', ": x")
]


def test_a_long_line_is_checked_and_fixed_in_time_that_grows_with_its_length(machine: Machine) -> None:
    path = machine.repo / "skills/demo/SKILL.md"
    path.parent.mkdir(parents=True)
    times = []
    for line in LONG_LINES:
        path.write_text(f"---\ndescription: d\n{line}\n---\n{line}\n", encoding="utf-8")
        started = time.thread_time()
        fix(machine, path, mode="diff")
        times.append((line[:20], line[-20:], time.thread_time() - started))

    # Tried in more than one way, one of these lines takes minutes.
    assert [found for found in times if found[-1] > 2] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\nname: demo\ndescription: a: b\n---\nx", "---\nname: demo\ndescription: 'a: b'\n---\nx"),
        ("---\nname: demo\ndescription:   it's: b  \n---\n", "---\nname: demo\ndescription:   'it''s: b'  \n---\n"),
        (
            "---\nname: demo\nargument-hint: [a] [b]\ndescription: a: b # c\n---\n",
            "---\nname: demo\nargument-hint: '[a] [b]'\ndescription: 'a: b # c'\n---\n",
        ),
        (
            "---\nname: demo\nargument-hint:  [it's, b] \ndescription: d\n---\n",
            "---\nname: demo\nargument-hint:  '[it''s, b]'\ndescription: d\n---\n",
        ),
        (
            "---\nname: demo\ndescription: d\nmetadata:\n\ta: b\n---\n\tx\n",
            "---\nname: demo\ndescription: d\nmetadata:\n  a: b\n---\n\tx\n",
        ),
        ("\ufeff---\nname: demo\ndescription: d\n---\n", "---\nname: demo\ndescription: d\n---\n"),
        ("--- \t\nname: demo\ndescription: d\n--- \n", "---\nname: demo\ndescription: d\n--- \n"),
        (
            "---\r\nname: demo\r\ndescription: d\r\n---\r\na\rb\r\n",
            "---\nname: demo\ndescription: d\n---\na\rb\n",
        ),
        ("---\ndescription: d\n---\n", "---\nname: demo\ndescription: d\n---\n"),
        ("---\n---\n", "---\nname: demo\n---\n"),
        ("---\nname:\ndescription: d\n---\n", "---\nname: demo\ndescription: d\n---\n"),
        ("---\nname: ~ # todo\ndescription: d\n---\n", "---\nname: demo # todo\ndescription: d\n---\n"),
        ("---\nname:  # todo\ndescription: d\n---\n", "---\nname: demo  # todo\ndescription: d\n---\n"),
        ("---\nname :  De Mo\t# x\ndescription: d\n---\n", "---\nname :  demo\t# x\ndescription: d\n---\n"),
        ('---\ndescription: d\nname:  "De Mo"\n---\n', "---\ndescription: d\nname:  demo\n---\n"),
        ("---\nname: a/b\ndescription: d\n---\n", "---\nname: demo\ndescription: d\n---\n"),
        (
            "\ufeff--- \r\nname: Demo\r\ndescription: a: b\r\n---\r\nx",
            "---\nname: demo\ndescription: 'a: b'\n---\nx",
        ),
    ],
)
def test_a_mistake_is_put_right_and_every_other_byte_stays(before: str, after: str) -> None:
    assert repaired(before.encode()) == after.encode()


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: >\n  other\ndescription: d\n---\n",
        "---\nname: other\n  name\ndescription: d\n---\n",
        "---\n{name: other, description: d}\n---\n",
        "---\n{description: d}\n---\n",
        "---\nname: 'it''s'\ndescription: d\n---\n",
        "---\nname: [a]\n  # b\n  \ndescription: d\n---\n: x",
        "---\nname: demo\ndescription: a: b\n  more: c\n---\n",
        '---\nname: demo\ndescription: "open\n---\n',
        "---\nname: demo\nname: other\ndescription: d\n---\n",
        "no frontmatter: at all\r\n",
        "",
    ],
)
def test_what_would_need_a_guess_or_change_its_meaning_is_left_alone(text: str) -> None:
    data = text.encode()
    after = repaired(data)

    assert after == data or parse(after, whole=True).fields["name"] == "demo"
    fields = {**parse(data, whole=True).fields, "name": ""}
    assert {**parse(after, whole=True).fields, "name": ""} == fields


@pytest.mark.parametrize("line", ["metadata:\n  a:\n    b: c\n\td: e", "license: |\n  d\n\te"])
def test_a_tab_that_says_something_else_where_it_is_wider_is_left_alone(line: str) -> None:
    data = f"---\nname: demo\ndescription: d\n{line}\n---\n".encode()

    assert repaired(data) == data


@pytest.mark.parametrize(
    ("name", "written"), [("deploy", "deploy"), ("2024", '"2024"'), ("no", '"no"'), ("1e5", '"1e5"'), ("a-1", "a-1")]
)
def test_a_name_is_written_so_that_every_parser_reads_it_as_text(name: str, written: str) -> None:
    assert (yaml_word(name), load_yaml(written)) == (written, name)


# Any frontmatter ----------------------------------------------------------------------------------

WORDS = st.text(string.ascii_letters + string.digits + " :#'\"[]{}-,&*!|>%@`\t\\ä", max_size=24)
KEYS = st.sampled_from(["name", "description", "license", "metadata", "argument-hint", "x", "- a", ""])
LINES = st.builds(
    lambda indent, key, gap, value: f"{indent}{key}:{gap}{value}" if key else f"{indent}{value}",
    st.sampled_from(["", "", "", "  ", "\t", " \t"]),
    KEYS,
    st.sampled_from([" ", " ", "  ", ""]),
    WORDS,
)
FILES = st.builds(
    lambda bom, blanks, lines, ending, text: bom + ending.join([f"---{blanks}", *lines, "---", text]).encode("utf-8"),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    st.sampled_from(["", "", " "]),
    st.lists(LINES, max_size=5),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.text(string.printable, max_size=30),
)


@settings(max_examples=examples(80), deadline=None)
@given(FILES, st.sampled_from(["demo", "42", "Not Valid"]))
def test_a_repair_keeps_fields_and_body_and_leaves_nothing_for_a_second_one(data: bytes, directory: str) -> None:
    source = directory if directory != "Not Valid" else None
    before = parse(data, whole=True)

    done = fix_text(FixInput(data, directory, STANDARD, source))
    after = parse(done.data, whole=True)
    again = fix_text(FixInput(done.data, directory, STANDARD, source))

    assert (again.data, again.lines) == (done.data, {})
    assert {**after.fields, "name": ""} == {**before.fields, "name": ""}
    assert after.fields.get("name") in (before.fields.get("name"), source)
    assert body(done.data).replace(b"\r\n", b"\n") == body(data).replace(b"\r\n", b"\n")
    left = {finding.rule for finding in check(after, directory, STANDARD)}
    assert not left & {rule for rule, _ in done.lines}
    assert (done.data == data) == (not done.lines)


# On disk ------------------------------------------------------------------------------------------


def test_a_repaired_file_keeps_its_mode_and_its_finding_is_gone(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", "---\nname: Demo\n" + REST)
    path.chmod(0o664)

    report = fix(machine, path)

    assert (report.findings, report.fixed, path.stat().st_mode & 0o777) == ((), 2, 0o664)
    assert path.read_bytes() == ("---\nname: demo\n" + REST).encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["SKILL.md"]
    assert fix(machine, path).changes == ()


def test_a_diff_shows_the_repair_and_writes_nothing(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", "---\nname: Demo\n" + REST)
    before = path.read_bytes()

    report = fix(machine, path, mode="diff")

    assert (report.fixed, path.read_bytes()) == (0, before)
    assert [line for line in report.changes[0].diff if line[:1] in "+-"][2:] == ["-name: Demo", "+name: demo"]


def test_line_ends_are_counted_in_a_diff_and_not_shown_one_by_one(machine: Machine) -> None:
    path = write_skill(
        machine.repo / "skills", "demo", ("---\nname: demo\n" + REST).replace("\r", "").replace("\n", "\r\n")
    )

    assert list(fix(machine, path).changes[0].diff[2:]) == ["# 6 line ends: CRLF to LF"]


def test_a_read_only_file_and_one_with_several_names_are_left_alone(machine: Machine) -> None:
    root = machine.repo / "skills"
    text = "---\nname: Other\n" + REST
    read_only = write_skill(root, "read-only", text)
    read_only.chmod(0o444)
    two_names = write_skill(root, "two-names", text)
    os.link(two_names, machine.repo / "second-name")

    report = fix(machine, root)

    assert [change.refusal for change in report.changes] == [
        "it is read-only",
        "it has 2 names (hard links), and only this one would get the new text",
    ]
    assert (report.fixed, read_only.read_bytes(), two_names.read_bytes()) == (0, text.encode(), text.encode())
    assert {finding.rule for finding in report.findings} == {"name-directory", "name-pattern"}


def test_two_carriage_returns_before_a_line_feed_are_not_guessed_about_but_reported(machine: Machine) -> None:
    text = (
        b"---\r\nname: demo\r\ndescription: Does demo things. Use when asked for.\r\n---\r\n# Demo\r\r\nOne\rtwo.\r\n"
    )
    path = write_skill(machine.repo / "skills", "demo", text)
    lone = write_skill(machine.repo / "skills", "lone", text.replace(b"demo\r", b"lone\r").replace(b"\r\r", b"\r"))

    report = fix(machine, machine.repo / "skills")

    assert path.read_bytes() == text
    assert b"\r\n" not in lone.read_bytes()
    assert b"One\rtwo." in lone.read_bytes()
    assert [(finding.path, finding.message, finding.fix) for finding in report.findings] == [
        (str(path), "the line ends are CRLF; 1 line end of CR CR LF may mean one line or two: fix those first", None)
    ]


def test_a_link_out_of_the_checked_tree_is_not_written_through(machine: Machine) -> None:
    outside = write_skill(machine.repo / "outside", "linked", "\ufeff---\nname: linked\n" + REST)
    (machine.repo / "skills" / "linked").mkdir(parents=True)
    (machine.repo / "skills" / "linked" / "SKILL.md").symlink_to(outside)
    before = outside.read_bytes()

    report = fix(machine, machine.repo / "skills")

    assert [change.refusal for change in report.changes] == [
        f"it is a link to {outside}, outside the checked folders; check that path itself"
    ]
    assert outside.read_bytes() == before
    assert fix(machine, machine.repo).fixed == 1


def test_the_name_of_a_link_or_of_a_whole_repository_is_no_name_for_a_skill(machine: Machine) -> None:
    text = "---\nname: other\n" + REST
    root = machine.repo / ".agents" / "skills"
    real = write_skill(machine.repo / "lib", "real", text)
    root.mkdir(parents=True)
    (root / "alias").symlink_to(real.parent)
    clone = write_skill(machine.base, "clone", text)
    (clone.parent / ".git").mkdir()
    shelf = machine.shelf()

    reports = [check_targets(in_roots(shelf), shelf.profile, mode="fix", options=NAMES), fix(machine, clone.parent)]

    assert [(report.fixed, [f.rule for f in report.findings]) for report in reports] == [(0, ["name-directory"])] * 2
    assert real.read_bytes() == clone.read_bytes() == text.encode()
