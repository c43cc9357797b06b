"""Every rule about fields always runs; a profile gives each finding its severity."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf.catalog.document import parse
from skillshelf.catalog.rules import check, description_of, name_of, placed, split_tools
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.profile import RULES
from skillshelf.core.values import Finding

LETTER = ("strict", "codelia", "swiftagent", "rip")
"""The profiles that take name and description as the specification writes them."""

NOTHING: dict[str, list[str]] = {"reject": [], "warn": []}
"""No rule counts against the file."""


def findings(text: str, folder: str = "a", profile: str = "standard") -> list[Finding]:
    """Return the findings for a file in a folder, each with its line."""
    document = parse(text.encode(), whole=True)
    return [placed(finding, document) for finding in check(document, folder, SYSTEMS[profile])]


def by_severity(text: str, folder: str = "a", profile: str = "standard") -> dict[str, list[str]]:
    """Return the rules that a file breaks under the profile, by severity."""
    rules = [finding.rule for finding in findings(text, folder, profile)]
    severities = SYSTEMS[profile].rules
    return {severity: [rule for rule in rules if severities[rule] == severity] for severity in ("reject", "warn")}


def rejected(text: str, folder: str = "a", profile: str = "standard") -> list[str]:
    """Return the rules for which the profile rejects the file."""
    return by_severity(text, folder, profile)["reject"]


def skill(name: str = "a", description: str = "b", more: str = "") -> str:
    """Return the text of a SKILL.md with these fields."""
    return f"---\nname: {name}\ndescription: {description}\n{more}---\nbody\n"


# The rule book ------------------------------------------------------------------------------------


def test_every_profile_gives_every_rule_a_severity() -> None:
    assert [name for name, profile in SYSTEMS.items() if set(profile.rules) != set(RULES)] == []


def test_no_profile_loosens_a_rule_that_is_fixed() -> None:
    fixed = [rule for rule, entry in RULES.items() if entry.fixed]
    loosened = [(name, rule) for name, profile in SYSTEMS.items() for rule in fixed if profile.rules[rule] != "reject"]
    assert loosened == []


def test_every_rule_has_an_id_of_words_and_a_sentence() -> None:
    assert [rule for rule in RULES if not re.fullmatch(r"[a-z]+(-[a-z]+)*", rule)] == []
    assert [rule for rule, entry in RULES.items() if not entry.summary.endswith(".")] == []


@pytest.mark.req("S-01", "K-02", "K-21", "M-67", "S-132")
def test_a_skill_with_all_fields_of_the_standard_is_accepted_everywhere() -> None:
    text = skill(
        "pdf-tools",
        "Reads PDF files. Use it when a PDF is mentioned.",
        "license: Apache-2.0\ncompatibility: Needs poppler\n"
        'metadata:\n  author: me\n  version: "1.0"\nallowed-tools: Bash(git:*) Read\n',
    )
    assert [profile for profile in SYSTEMS if by_severity(text, "pdf-tools", profile) != NOTHING] == []


# Names --------------------------------------------------------------------------------------------


@pytest.mark.req("C-40", "C-41", "S-12", "S-29", "S-30", "M-20", "K-02")
@pytest.mark.parametrize("name", ["a", "7", "a1", "pdf-tools", "a-b-c-1", "a" * 64])
def test_lower_case_words_with_single_hyphens_are_names(name: str) -> None:
    assert [profile for profile in SYSTEMS if by_severity(skill(f"'{name}'"), name, profile) != NOTHING] == []


@pytest.mark.req("C-41", "C-45", "S-12", "S-30", "M-20", "K-02", "K-21")
@pytest.mark.parametrize("name", ["A", "Pdf", "a_b", "a b", "a.b", "é", "日本", "-a", "a-", "a--b", "-", "a\u200b"])
def test_any_other_name_is_rejected_by_the_systems_that_give_a_pattern(name: str) -> None:
    for profile in (*LETTER, "mycodeagent"):
        assert "name-pattern" in rejected(skill(f"'{name}'"), name, profile)


@pytest.mark.req("C-40", "S-12", "S-29")
@pytest.mark.parametrize("profile", LETTER)
def test_a_name_has_at_most_64_characters(profile: str) -> None:
    assert rejected(skill("a" * 65), "a" * 65, profile) == ["name-length"]


@pytest.mark.req("M-20")
@pytest.mark.parametrize("profile", ["mycodeagent", "omp"])
def test_a_system_that_states_no_length_accepts_a_long_name(profile: str) -> None:
    assert by_severity(skill("a" * 200), "a" * 200, profile) == NOTHING


@pytest.mark.req("C-44", "S-31", "K-21")
@pytest.mark.parametrize("profile", LETTER)
def test_a_name_is_the_name_of_its_folder(profile: str) -> None:
    assert rejected(skill("a"), "b", profile) == ["name-directory"]
    assert rejected(skill("a"), "A", profile) == ["name-directory"]


@pytest.mark.req("M-22", "O-11")
@pytest.mark.parametrize("profile", ["mycodeagent", "omp"])
def test_a_system_that_reads_the_frontmatter_takes_a_name_that_differs(profile: str) -> None:
    assert by_severity(skill("declared"), "folder", profile) == NOTHING
    assert name_of({"name": "declared"}, "folder", SYSTEMS[profile]) == "declared"


def test_the_standard_profile_only_warns_of_an_odd_name() -> None:
    assert by_severity(skill("Bad_Name"), "folder") == {"reject": [], "warn": ["name-pattern", "name-directory"]}
    assert by_severity(skill("a" * 65), "a" * 65) == {"reject": [], "warn": ["name-length"]}


@pytest.mark.parametrize(
    "name",
    [
        *("''", "' '", ".", "..", "a/b", "'../../x'", "/x", "'a\\b'", "|\n  a", "[a]", "{a: b}"),
        *('"a\\tb"', '"a\\nb"', '"a\\0b"', '"\\e[31m"', '"a\\x7f"', '"a\\x85b"', '"a\\u2028b"'),
    ],
)
def test_a_name_that_is_not_an_address_is_rejected_in_every_profile(name: str) -> None:
    assert [profile for profile in SYSTEMS if "name-address" not in rejected(skill(name), "a", profile)] == []


@pytest.mark.req("C-13", "C-40", "S-12", "M-06", "M-67", "K-21")
@pytest.mark.parametrize("profile", [*LETTER, "mycodeagent"])
def test_a_name_is_required(profile: str) -> None:
    assert rejected("---\ndescription: b\n---\n", "a", profile) == ["name-missing"]
    assert rejected("---\nname:\ndescription: b\n---\n", "a", profile) == ["name-missing"]


def test_the_standard_profile_takes_the_folder_for_a_missing_name_and_warns() -> None:
    assert by_severity("---\ndescription: b\n---\n") == {"reject": [], "warn": ["name-missing"]}
    assert name_of({}, "folder", SYSTEMS["standard"]) == "folder"


@pytest.mark.parametrize(("written", "name"), [("5", "5"), ("true", "true"), ("1.5", "1.5")])
def test_a_name_that_yaml_reads_as_something_else_is_the_text_of_it(written: str, name: str) -> None:
    text = skill(written)
    assert "name-type" in by_severity(text, name)["warn"]
    assert name_of(parse(text.encode(), whole=True).fields, "folder", SYSTEMS["standard"]) == name


# Descriptions -------------------------------------------------------------------------------------


@pytest.mark.req("C-13", "C-42", "S-13", "S-32", "M-06", "M-21", "M-67", "K-21")
@pytest.mark.parametrize("line", ["", "description:\n", "description: ''\n", "description: '  '\n", "description: ~\n"])
def test_a_description_is_required(line: str) -> None:
    for profile in (*LETTER, "standard", "mycodeagent"):
        assert rejected(f"---\nname: a\n{line}---\n", "a", profile) == ["description-missing"]


@pytest.mark.req("C-42", "S-13", "S-32", "K-21")
@pytest.mark.parametrize("character", ["x", "é", "\U0001f600"])
def test_a_description_has_at_most_1024_characters(character: str) -> None:
    for profile in LETTER:
        assert rejected(skill(description=character * 1024), "a", profile) == []
        assert rejected(skill(description=character * 1025), "a", profile) == ["description-length"]


@pytest.mark.req("M-21")
@pytest.mark.parametrize("profile", ["mycodeagent", "omp"])
def test_a_system_that_states_no_maximum_accepts_a_long_description(profile: str) -> None:
    assert by_severity(skill(description="x" * 5000), "a", profile) == NOTHING


def test_the_standard_profile_only_warns_of_a_long_description() -> None:
    assert by_severity(skill(description="x" * 1025)) == {"reject": [], "warn": ["description-length"]}


@pytest.mark.parametrize(
    ("value", "text"),
    [(" b \n", "b"), (5, "5"), (True, "true"), (None, ""), (["b"], ""), ({"b": "c"}, "")],
)
def test_a_description_is_its_text_without_blanks_around_it(value: object, text: str) -> None:
    assert description_of({"description": value}) == text


def test_hidden_text_is_a_warning_in_name_and_description() -> None:
    assert by_severity(skill("'a\u200b'", "'b\u202ec'"), "a\u200b")["warn"] == [
        "name-pattern",
        "hidden-text",
        "hidden-text",
    ]


# The other fields ---------------------------------------------------------------------------------


@pytest.mark.req("S-14", "S-15", "S-16", "S-17", "C-43")
def test_every_other_field_is_optional() -> None:
    assert [profile for profile in SYSTEMS if by_severity(skill(), "a", profile) != NOTHING] == []


@pytest.mark.req("C-43")
@pytest.mark.parametrize(
    "more",
    ['version: "1.0"\n', "license: MIT\n", "metadata:\n  author: me\n", "version: a\nlicense: b\nmetadata: {}\n"],
)
def test_codelia_accepts_version_license_and_metadata(more: str) -> None:
    assert findings(skill(more=more), "a", "codelia") == []


@pytest.mark.req("C-43", "S-16")
@pytest.mark.parametrize("profile", LETTER)
def test_metadata_is_a_map(profile: str) -> None:
    assert rejected(skill(more="metadata: text\n"), "a", profile) == ["metadata-type"]
    assert rejected(skill(more="metadata: [a]\n"), "a", profile) == ["metadata-type"]


@pytest.mark.req("S-15", "S-33", "K-21")
@pytest.mark.parametrize("profile", ["strict", "swiftagent", "rip"])
def test_compatibility_has_1_to_500_characters_when_it_is_there(profile: str) -> None:
    lengths = {n: rejected(skill(more=f"compatibility: '{'x' * n}'\n"), "a", profile) for n in (0, 1, 500, 501)}
    assert lengths == {0: ["compatibility-length"], 1: [], 500: [], 501: ["compatibility-length"]}


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("license: 5", Finding("license-type", "`license` is a number, not text", 4, 1)),
        ("version: 1.0", Finding("version-type", "`version` is a number, not text; put quotes around it", 4, 1)),
        ("compatibility: [a]", Finding("compatibility-type", "`compatibility` is a list, not text", 4, 1)),
        ("metadata: a", Finding("metadata-type", "`metadata` is text, not a map", 4, 1)),
        (
            "metadata: {a: 1, b: c, d: ~}",
            Finding("metadata-values", "not text in `metadata`: a, d; put quotes around the values", 4, 1),
        ),
        (
            "allowed-tools: [Read, Bash]",
            Finding(
                "allowed-tools-list", "`allowed-tools` is a list; the standard asks for one text with blanks", 4, 1
            ),
        ),
        (
            "allowed-tools: [1]",
            Finding("allowed-tools-type", "`allowed-tools` is a list, neither text nor a list of texts", 4, 1),
        ),
        ("own: a\nother: b", Finding("unknown-field", "not a field of this profile: other, own", 5, 1)),
    ],
)
def test_a_field_of_the_wrong_kind_is_reported_with_its_line(line: str, finding: Finding) -> None:
    assert findings(skill(more=f"{line}\n")) == [finding]


@pytest.mark.req("O-13", "O-14")
@pytest.mark.parametrize(
    ("line", "warnings"),
    [
        ("globs: ['*.py', '*.md']", []),
        ("globs: []", []),
        ("globs: '*.py'", ["globs-type"]),
        ("globs: [1]", ["globs-type"]),
        ("alwaysApply: true", []),
        ("alwaysApply: false", []),
        ("alwaysApply: 'true'", ["always-apply-type"]),
        ("alwaysApply: 1", ["always-apply-type"]),
    ],
)
def test_globs_are_a_list_of_texts_and_always_apply_is_a_boolean(line: str, warnings: list[str]) -> None:
    assert by_severity(skill(more=f"{line}\n"), "a", "omp") == {"reject": [], "warn": warnings}


@pytest.mark.parametrize("field", ["license", "version", "compatibility", "metadata", "allowed-tools", "globs"])
def test_a_field_without_a_value_is_as_good_as_absent(field: str) -> None:
    assert by_severity(skill(more=f"{field}:\n"), "a", "strict")["reject"] == []


@pytest.mark.req("S-17", "S-34")
@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("Bash(git log:*) Bash(gh pr view:*)  Read", ("Bash(git log:*)", "Bash(gh pr view:*)", "Read")),
        ("Read, Write,  Bash(a, b)", ("Read", "Write", "Bash(a, b)")),
        ("  Read\n", ("Read",)),
        ("mcp__server__tool *", ("mcp__server__tool", "*")),
        ("", ()),
        ("Bash(echo (a b) c) Read", ("Bash(echo (a b) c)", "Read")),
    ],
)
def test_allowed_tools_are_split_at_blanks_outside_parentheses(text: str, tools: tuple[str, ...]) -> None:
    assert split_tools(text) == tools


@pytest.mark.parametrize("text", ["Bash(git add", "Bash(git", "Read Bash(rm", "Bash(a (b) Read"])
def test_a_parenthesis_left_open_does_not_ask_for_the_whole_tool(text: str) -> None:
    assert "Bash" not in split_tools(text)


# In the catalog -----------------------------------------------------------------------------------


@pytest.mark.req("K-56", "O-15")
@pytest.mark.parametrize(
    ("profile", "root"), [("standard", ".agents/skills"), ("rip", ".agents/skills"), ("omp", ".omp/skills")]
)
def test_unknown_fields_are_kept_as_they_were_written(machine: Machine, profile: str, root: str) -> None:
    own: dict[str, Any] = {"x-list": [1, "two", {"three": None}], "x-map": {"a": {"b": True}}, "émoji": "\U0001f600"}
    more = "x-list: [1, two, {three: ~}]\nx-map:\n  a:\n    b: true\némoji: \U0001f600\n"
    write_skill(machine.repo / root, "a", skill(more=more))
    (found,) = machine.catalog(profile).skills
    assert found.frontmatter == {"name": "a", "description": "b", **own}


@pytest.mark.req("O-06", "O-11", "O-12")
@pytest.mark.parametrize("text", ["---\nglobs: ['*.py']\n---\nbody\n", "---\n---\n", "# No frontmatter\n"])
def test_omp_needs_no_more_than_a_path_that_gives_a_name(machine: Machine, text: str) -> None:
    path = write_skill(machine.home / ".claude/skills", "nameless", text)
    catalog = machine.catalog("omp")
    assert [(skill.name, skill.description, skill.path) for skill in catalog.skills] == [("nameless", "", str(path))]
    assert (catalog.errors, catalog.warnings) == ((), ())


@pytest.mark.req("O-12")
def test_omp_takes_a_description_where_there_is_one(machine: Machine) -> None:
    write_skill(machine.home / ".claude/skills", "a", skill(description="Does a."))
    assert [skill.description for skill in machine.catalog("omp").skills] == ["Does a."]


@pytest.mark.req("C-13", "C-30", "C-44", "C-45", "C-42")
def test_codelia_lists_one_error_for_each_skill_that_fails(machine: Machine) -> None:
    root = machine.repo / ".agents/skills"
    write_skill(root, "good")
    write_skill(root, "no-description", "---\nname: no-description\n---\n")
    write_skill(root, "no-name", "---\ndescription: b\n---\n")
    write_skill(root, "wrong", skill("right"))
    write_skill(root, "a--b", skill("a--b"))
    write_skill(root, "long", skill("long", "x" * 1025))

    catalog = machine.catalog("codelia")

    assert [skill.name for skill in catalog.skills] == ["good"]
    assert [(error.path, error.rule, error.line) for error in catalog.errors] == [
        (str(root / "a--b/SKILL.md"), "name-pattern", 2),
        (str(root / "long/SKILL.md"), "description-length", 3),
        (str(root / "no-description/SKILL.md"), "description-missing", 1),
        (str(root / "no-name/SKILL.md"), "name-missing", 1),
        (str(root / "wrong/SKILL.md"), "name-directory", 2),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\nlicense: MIT\nname: 'a\u200b'\ndescription: b\n---\n", 3),
        ("---\nlicense: MIT\nname: a\ndescription: 'b\u200b'\n---\n", 4),
    ],
)
def test_hidden_text_is_reported_at_its_field(text: str, line: int) -> None:
    assert [f.line for f in findings(text, "a") if f.rule == "hidden-text"] == [line]
