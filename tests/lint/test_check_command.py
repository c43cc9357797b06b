"""The command `skillshelf check`: complete outputs, exit statuses, and hostile folders."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import Machine, run_command, write_skill

from skillshelf.core.limits import SKILL_FILE_BYTES

DESCRIPTION = "Does it. Use when asked for it, please."


def messy(machine: Machine) -> Path:
    """A repository with one skill of each severity, and one that can be fixed."""
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "deploy", "---\nname: deploy\ndescription: Deploys it: use when asked to.\n---\n# Deploy\n")
    write_skill(
        root,
        "notes",
        f"---\nname: Notes\ndescription: {DESCRIPTION}\nauthor: me, 100%\n---\n# Notes\nSee [a](gone,1.md).\n",
    )
    return root


TEXT = """\
.agents/skills/deploy/SKILL.md
  3:1  error  yaml-colon  a value with `: ` in it needs quotes; read as: description: 'Deploys it: use when asked to.'

.agents/skills/notes/SKILL.md
  2:1  error    name-directory     'Notes' lives in the folder 'notes'
       would become: name: notes
  2:1  error    name-pattern       'Notes' is not lower-case letters, digits and single hyphens
       would become: name: notes
  4:1  info     unknown-field      not a field of this profile: author
  7:9  warning  reference-missing  gone,1.md does not exist

2 skills checked: 3 errors, 1 warning, 1 note
checked the repository REPO (--user adds your home folder)
1 can be fixed automatically: skillshelf check --home HOME --fix
2 by giving a skill the name of its folder: skillshelf check --home HOME --fix=names
"""

GITHUB = """\
::error file=.agents/skills/deploy/SKILL.md,line=3,col=1,title=yaml-colon::a value with `: ` in it needs quotes; \
read as: description: 'Deploys it: use when asked to.'
::error file=.agents/skills/notes/SKILL.md,line=2,col=1,title=name-directory::'Notes' lives in the folder 'notes'; \
would become: name: notes
::error file=.agents/skills/notes/SKILL.md,line=2,col=1,title=name-pattern::'Notes' is not lower-case letters, \
digits and single hyphens; would become: name: notes
::notice file=.agents/skills/notes/SKILL.md,line=4,col=1,title=unknown-field::not a field of this profile: author
::warning file=.agents/skills/notes/SKILL.md,line=7,col=9,title=reference-missing::gone,1.md does not exist
2 skills checked: 3 errors, 1 warning, 1 note
checked the repository REPO (--user adds your home folder)
1 can be fixed automatically: skillshelf check --home HOME --fix
2 by giving a skill the name of its folder: skillshelf check --home HOME --fix=names
"""


@pytest.mark.parametrize(("form", "expected"), [("text", TEXT), ("github", GITHUB)])
def test_a_format_is_written_like_this(machine: Machine, form: str, expected: str) -> None:
    messy(machine)

    done = machine.run("check", "--format", form)

    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == expected.replace("HOME", str(machine.home)).replace("REPO", str(machine.repo))


def test_json_has_the_promised_form_and_both_ways_to_ask_give_it(machine: Machine) -> None:
    root = messy(machine)

    done = machine.run("check", "--json")

    assert machine.run("check", "--format=json").stdout == done.stdout
    report = json.loads(done.stdout)
    jsonschema.validate(report, SCHEMAS["check"])
    assert (report["checked"], report["fixed"], len(report["findings"])) == (2, 0, 5)
    assert report["findings"][1] == {
        "path": str(root / "notes" / "SKILL.md"),
        "line": 2,
        "column": 1,
        "rule": "name-directory",
        "severity": "error",
        "message": "'Notes' lives in the folder 'notes'",
        "fix": "name: notes",
        "renames": True,
        "relative": ".agents/skills/notes/SKILL.md",
    }
    assert report["ignored"] == {"comments": 0, "rules": 0, "severity": 0}
    assert (report["excluded"], report["baseline"]) == (0, None)


def test_sarif_has_rules_with_help_and_results_with_relative_places(machine: Machine) -> None:
    messy(machine)

    log: Any = json.loads(machine.run("check", "--format", "sarif", cwd=machine.repo / ".agents").stdout)

    jsonschema.validate(log, SARIF)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": f"file://{machine.repo}/"}}
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert run["results"][0] == {
        "ruleId": "yaml-colon",
        "ruleIndex": 4,
        "level": "error",
        "message": {
            "text": "a value with `: ` in it needs quotes; read as: description: 'Deploys it: use when asked to.'"
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": ".agents/skills/deploy/SKILL.md", "uriBaseId": "SRCROOT"},
                    "region": {"startLine": 3, "startColumn": 1},
                }
            }
        ],
        "fixes": [
            {
                "description": {"text": "Write the line as it is read."},
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": ".agents/skills/deploy/SKILL.md", "uriBaseId": "SRCROOT"},
                        "replacements": [
                            {
                                "deletedRegion": {"startLine": 3, "startColumn": 1},
                                "insertedContent": {"text": "description: 'Deploys it: use when asked to.'"},
                            }
                        ],
                    }
                ],
            }
        ],
    }


_MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
_RULE = {
    "type": "object",
    "required": ["id", "shortDescription", "fullDescription", "help", "defaultConfiguration"],
    "properties": {
        "shortDescription": _MESSAGE,
        "fullDescription": _MESSAGE,
        "help": _MESSAGE,
        "defaultConfiguration": {"properties": {"level": {"enum": ["none", "note", "warning", "error"]}}},
    },
}
_REGION = {
    "properties": {"startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}}
}
_RESULT = {
    "type": "object",
    "required": ["ruleId", "level", "message", "locations"],
    "properties": {
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _MESSAGE,
        "locations": {"items": {"properties": {"physicalLocation": {"properties": {"region": _REGION}}}}},
    },
}
_RUN = {
    "type": "object",
    "required": ["tool", "results"],
    "properties": {
        "tool": {"properties": {"driver": {"required": ["name"], "properties": {"rules": {"items": _RULE}}}}},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": _RESULT},
    },
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {"version": {"const": "2.1.0"}, "runs": {"type": "array", "minItems": 1, "items": _RUN}},
}
"""The part of the SARIF 2.1.0 schema that applies to our output."""


def test_sarif_of_a_place_that_is_no_utf_8_and_of_a_machine_without_a_home_is_sarif(machine: Machine) -> None:
    odd = Path(os.fsdecode(os.fsencode(machine.repo) + b"/\xff"))
    (odd / ".git").mkdir(parents=True)
    write_skill(odd / ".agents/skills", "deploy")
    words = ("check", "--user", "--format", "sarif")

    outputs = [machine.run(*words, cwd=odd), run_command(*words, cwd=machine.repo, env={"HOME": "nowhere"})]

    runs = []
    for done in outputs:
        jsonschema.validate(log := json.loads(done.stdout), SARIF)
        runs.append(log["runs"][0])
    assert runs[0]["originalUriBaseIds"]["SRCROOT"]["uri"] == f"file://{machine.repo}/%FF/"
    found = {result["ruleId"]: result["locations"] for result in runs[1]["results"]}
    assert (list(found), found["home-missing"]) == (["home-missing", "path-encoding"], [])


def test_what_github_would_take_for_a_command_is_escaped(machine: Machine) -> None:
    text = f"---\nname: x\ndescription: {DESCRIPTION}\n'a%\\': b\n---\n# x\n"
    write_skill(machine.repo / "skills", "x", text, folder="a,b:c%")

    out = machine.run("check", "skills", "--format", "github").stdout

    assert out == (
        "::notice file=skills/a%2Cb%3Ac%25/SKILL.md,line=1,col=1,title=unknown-field::"
        "not a field of this profile: a%25\\\n"
        "::error file=skills/a%2Cb%3Ac%25/SKILL.md,line=2,col=1,title=name-directory::"
        "'x' lives in the folder 'a,b:c%25'\n"
        "1 skill checked: 1 error, 1 note\n"
    )


# Exit status --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["check", "nothing"], 3, "nothing' not found"),
        (["check", "empty"], 3, "SKILL.md not found: "),
        (["check", "a.txt"], 2, "is not a SKILL.md"),
        (["check", "--format", "xml"], 2, "unknown format 'xml' (known: text, json, sarif, github)"),
        (["check", "--json", "--format", "text"], 2, "exclude each other"),
        (["check", "good", "advice"], 0, ""),
        (["check", "warned"], 1, ""),
        (["check", "wrong/SKILL.md"], 1, ""),
        (["check", "near/skill.md"], 1, ""),
        (["check"], 1, ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_exit_status_says_what_came_of_it(machine: Machine, words: list[str], status: int, message: str) -> None:
    write_skill(machine.repo, "good")
    write_skill(machine.repo, "advice", f"---\nname: advice\ndescription: {DESCRIPTION}\nx: y\n---\n# x\n")
    write_skill(machine.repo, "warned", "---\nname: warned\ndescription: Short.\n---\n# x\n")
    write_skill(machine.repo, "wrong", "---\n")
    for path in ("empty/x", "near/skill.md", "a.txt"):
        (machine.repo / path).parent.mkdir(exist_ok=True)
        (machine.repo / path).touch()

    done = machine.run(*words)

    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == (1 if message else 0)


def test_a_failure_is_json_for_whoever_asked_for_json(machine: Machine) -> None:
    done = machine.run("check", "nothing", "--format", "json")

    jsonschema.validate(json.loads(done.stdout), SCHEMAS["failure"])


def test_where_there_is_no_skill_the_next_step_is_named(machine: Machine) -> None:
    assert machine.run("check").stdout == (
        "0 skills checked: no findings\n"
        f"checked the repository {machine.repo} (--user adds your home folder)\n"
        "there are no skills here yet; create one with: skillshelf new NAME\n"
    )


# Repairs ------------------------------------------------------------------------------------------


def test_fix_shows_what_changed_and_what_is_left_decides_the_status(machine: Machine) -> None:
    root = messy(machine)
    (root / "notes" / "SKILL.md").unlink()

    done = machine.run("check", "--fix")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "--- .agents/skills/deploy/SKILL.md\n"
        "+++ .agents/skills/deploy/SKILL.md\n"
        "@@ -1,5 +1,5 @@\n"
        " ---\n"
        " name: deploy\n"
        "-description: Deploys it: use when asked to.\n"
        "+description: 'Deploys it: use when asked to.'\n"
        " ---\n"
        " # Deploy\n"
        "\n"
        "1 skill checked: no findings\n"
        f"checked the repository {machine.repo} (--user adds your home folder)\n"
        "1 finding fixed, 1 file changed\n"
    )


def test_a_file_that_cannot_be_written_is_one_line_and_json_stays_json(machine: Machine) -> None:
    root = messy(machine)
    (root / "deploy" / "SKILL.md").chmod(0o400)

    done = machine.run("check", "--fix=names", "--json")

    assert done.stderr == f"skillshelf: {root}/deploy/SKILL.md was not changed: it is read-only\n"
    report = json.loads(done.stdout)
    assert (done.returncode, report["fixed"]) == (1, 2)
    assert [finding["rule"] for finding in report["findings"]] == ["yaml-colon", "unknown-field", "reference-missing"]


@pytest.mark.parametrize("words", [(), ("--diff",), ("--dry-run",), ("--fix", "--dry-run")])
def test_only_what_fix_would_write_is_offered_and_the_rest_is_reported_with_its_reason(
    machine: Machine, words: tuple[str, ...]
) -> None:
    root = messy(machine)
    before = machine.run("check", *words)
    os.link(root / "deploy" / "SKILL.md", machine.base / "second-name")

    done = machine.run("check", *words)
    fixed = machine.run("check", "--fix=names")

    reason = "it has 2 names (hard links), and only this one would get the new text"
    fix = f"skillshelf check --home {machine.home} --fix"
    assert f"1 can be fixed automatically: {fix}\n" in before.stdout
    assert "can be fixed automatically" not in done.stdout
    assert f"2 by giving a skill the name of its folder: {fix}=names\n" in done.stdout
    assert (before.stderr, done.stderr) == (
        "",
        f"skillshelf: {root}/deploy/SKILL.md would not be changed: {reason}\n",
    )
    assert "2 findings fixed" in fixed.stdout
    assert fixed.stderr == f"skillshelf: {root}/deploy/SKILL.md was not changed: {reason}\n"
    assert "can be fixed" not in fixed.stdout


# Hostile folders ----------------------------------------------------------------------------------


def test_a_hostile_tree_is_reported_whole_and_nothing_outside_is_read_or_written(machine: Machine) -> None:
    root = machine.repo / "skills"
    secret = write_skill(machine.base / "outside", "secret", "---\nname: Wrong\ndescription: x\n---\n# x\nTOP-SECRET\n")
    for name in ("fifo", "large", "linked"):
        (root / name).mkdir(parents=True)
    os.mkfifo(root / "fifo" / "SKILL.md")
    with (root / "large" / "SKILL.md").open("wb") as stream:
        stream.truncate(100 * SKILL_FILE_BYTES)
    (root / "linked" / "SKILL.md").symlink_to(secret)
    (root / "folder-link").symlink_to(secret.parent)
    (root / "loop").symlink_to(root)
    write_skill(root, "nul", b"---\nname: nul\ndescription: a\0b\n---\n# x\n")
    write_skill(root, "esc", f"---\nname: esc\ndescription: {DESCRIPTION}\n---\n# x\n[a](gone\x1b.md) \x1b]0;x\x07\n")
    write_skill(root, "pages", f"---\nname: pages\ndescription: {DESCRIPTION}\n---\n# x\n[a](references/a.md)\n")
    (root / "pages" / "references").mkdir()
    os.mkfifo(root / "pages" / "references" / "a.md")
    os.mkfifo(root / "pages" / "scripts")
    before = secret.read_bytes()

    outputs = [
        machine.run("check", "skills", "--fix", "--format", form) for form in ("json", "text", "github", "sarif")
    ]

    found = [(os.path.relpath(f["path"], root), f["rule"]) for f in json.loads(outputs[0].stdout)["findings"]]
    assert found == [
        ("esc/SKILL.md", "reference-missing"),
        ("esc/SKILL.md", "body-control-character"),
        ("fifo/SKILL.md", "not-a-file"),
        ("folder-link", "link-outside"),
        ("large/SKILL.md", "file-size"),
        ("linked/SKILL.md", "link-outside"),
        ("loop", "link-loop"),
        ("nul/SKILL.md", "control-character"),
        ("pages/references/a.md", "security-unchecked"),
        ("pages/scripts", "security-unchecked"),
    ]
    assert [done.returncode for done in outputs] == [1] * 4
    assert not any(re.search(r"[\x00-\x09\x0b-\x1f\x7f]|TOP-SECRET", done.stdout + done.stderr) for done in outputs)
    assert secret.read_bytes() == before


@pytest.mark.parametrize(
    "body",
    [
        "[" * 200_000,
        "](" * 100_000,
        "`" * 200_000,
        "<!--" * 100_000,
        "[a]: " * 60_000,
        "```\n" * 100_000,
        "$a-" * 100_000,
        " " * 500_000 + "x```",
        "~" * 500_000 + "`",
    ],
    ids=["brackets", "links", "ticks", "comments", "definitions", "fences", "dollars", "blanks", "tildes"],
)
def test_a_text_made_to_hold_up_a_scanner_does_not(machine: Machine, body: str) -> None:
    write_skill(machine.repo, "x", f"---\nname: x\ndescription: {DESCRIPTION}\n---\n# x\n{body}\n")

    # A scanner that goes back and forth would need minutes; the command is given one.
    assert machine.run("check", "x").returncode == 0


def test_a_name_made_to_hold_up_a_repair_does_not(machine: Machine) -> None:
    write_skill(machine.repo, "x", f"---\nname: a{' ' * 60_000}a\ndescription: {DESCRIPTION}\n---\n# Hi\n")

    assert machine.run("check", "x", "--fix=names").returncode == 0
    assert (machine.repo / "x/SKILL.md").read_text().splitlines()[1] == "name: x"
