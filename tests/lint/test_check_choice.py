"""What `check` checks and reports: the place, the rules by options, configuration and comments, and the severity."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.needs import needs_program
from support.trees import Machine, write_skill

from skillshelf.core.limits import IGNORE_COMMENTS
from skillshelf.lint.run import check_paths

GOOD = "Drafts release notes from merged pull requests. Use when the user asks for a changelog."


def skill(body: str = "", *, name: str = "demo", description: str = GOOD, fields: str = "") -> str:
    """Return the text of a valid skill, except for what a test changes."""
    return f"---\nname: {name}\ndescription: {description}\n{fields}---\n# Do it\n{body}"


def rules_in(machine: Machine, *words: str, **options: Any) -> list[str]:
    """Return the rules of the findings that `check` shows."""
    return [finding["rule"] for finding in report_of(machine, *words, **options)["findings"]]


def report_of(machine: Machine, *words: str, **options: Any) -> dict[str, Any]:
    """Return the report of `check`."""
    done = machine.run("check", *words, "--json", **options)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


# What is checked ----------------------------------------------------------------------------------


def monorepo(machine: Machine) -> None:
    """Write one skill to each kind of place: five in the repository, one in the home folder."""
    write_skill(machine.repo / ".agents/skills", "a")
    write_skill(machine.repo / ".github/skills", "b")
    write_skill(machine.repo / "packages/api/.claude/skills", "c")
    write_skill(machine.repo / "packages/web/skills", "d")
    write_skill(machine.repo / ".agents/skills/a/examples", "inner")
    write_skill(machine.home / ".agents/skills", "mine")


def test_no_path_means_the_whole_repository_from_anywhere_in_it(machine: Machine) -> None:
    monorepo(machine)

    below = machine.repo / "packages/api"
    assert [report_of(machine, cwd=folder)["checked"] for folder in (machine.repo, below)] == [5, 5]
    assert report_of(machine, ".")["checked"] == 5


def test_the_home_folder_is_checked_only_when_asked_for(machine: Machine) -> None:
    monorepo(machine)
    machine.env["AGENT_SKILLS_PATH"] = str(machine.base / "nowhere")

    assert (report_of(machine)["checked"], rules_in(machine)) == (5, ["inside-skill"])
    assert (report_of(machine, "--user")["checked"], rules_in(machine, "--user")) == (
        6,
        ["root-missing", "inside-skill"],
    )


def test_outside_a_repository_the_working_directory_is_checked(machine: Machine) -> None:
    folder = machine.base / "plain"
    write_skill(folder / "x/skills", "a")

    done = machine.run("check", cwd=folder)

    assert done.stdout == (
        f"1 skill checked: no findings\nchecked the folder {folder} (--user adds your home folder)\n"
    )


def test_a_home_folder_in_the_repository_is_not_walked(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "mine")
    write_skill(machine.home / "src/deep/skills", "deep")
    (machine.home / ".git").mkdir()

    done = machine.run("check", cwd=machine.home)

    assert done.stdout.startswith("1 skill checked: no findings\nchecked the folders of skills that the profile names")


def test_links_that_have_nothing_to_do_with_skills_are_not_reported(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "a")
    write_skill(machine.repo / "tools", "b")
    (machine.repo / "out").symlink_to("/etc")
    (machine.repo / "current").symlink_to("nowhere")
    (machine.repo / "docs").mkdir()
    (machine.repo / "docs/self").symlink_to("..")
    assert rules_in(machine) == []

    (machine.repo / "tools/c").symlink_to("/etc")
    (machine.repo / "pack/skills").mkdir(parents=True)
    (machine.repo / "pack/skills/d").symlink_to("nowhere")
    found = report_of(machine)["findings"]
    assert [(finding["relative"], finding["rule"]) for finding in found] == [
        ("pack/skills/d", "link-broken"),
        ("tools/c", "link-outside"),
    ]


@pytest.mark.slow
@needs_program("git")
def test_another_working_tree_in_the_repository_is_not_checked_again(machine: Machine) -> None:
    repository = machine.base / "real"
    write_skill(repository / "skills", "a")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"], ["worktree", "add", "-q", "trees/b"]):
        subprocess.run([*git, *words], cwd=repository, check=True, env={"PATH": os.environ["PATH"], "HOME": "/"})

    assert (repository / "trees/b/skills/a/SKILL.md").exists()
    assert report_of(machine, cwd=repository)["checked"] == 1
    assert report_of(machine, cwd=repository / "trees/b")["checked"] == 1
    # The list of trees may be anything.
    (repository / ".git/worktrees/odd").mkdir()
    (repository / ".git/worktrees/odd/gitdir").write_bytes(b"\xff\0" * 9)
    assert report_of(machine, cwd=repository)["checked"] == 1


def test_two_skills_of_one_name_in_the_roots_are_still_found(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "a")
    write_skill(machine.repo / ".claude/skills", "a")

    assert rules_in(machine) == ["name-collision"]


@pytest.mark.parametrize("form", ["text", "github"])
def test_the_name_of_a_repository_is_printed_on_one_line(machine: Machine, form: str) -> None:
    repository = machine.base / "odd\n::error::\x1b[31m"
    (repository / ".git").mkdir(parents=True)

    lines = machine.run("check", "--format", form, cwd=repository).stdout.splitlines()
    assert not [line for line in lines if line.startswith("::") or "\x1b" in line]
    assert "odd\\n::error::\\x1b[31m" in lines[1]


def test_paths_are_relative_to_the_repository_whatever_the_folder(machine: Machine) -> None:
    write_skill(machine.repo / "skills", "demo", skill(description="Short."))
    write_skill(machine.home / ".agents/skills", "mine", skill(name="mine", description="Short."))
    below = machine.repo / "skills"

    text = machine.run("check", "--user", cwd=below).stdout
    github = machine.run("check", "--user", "--format", "github", cwd=below).stdout
    found = report_of(machine, "--user", cwd=below)["findings"]

    assert "\nskills/demo/SKILL.md\n" in text
    assert "~/.agents/skills/mine/SKILL.md\n" in text
    assert "::warning file=skills/demo/SKILL.md,line=3," in github
    assert [finding["relative"] for finding in found] == [None, "skills/demo/SKILL.md"]
    assert all(finding["path"].startswith("/") for finding in found)


# Options ------------------------------------------------------------------------------------------


def messy(machine: Machine) -> Path:
    """Write a skill with an error, two warnings and a note."""
    text = skill("[a](a.md)\n", name="other", description="Short.", fields="author: me\n")
    return write_skill(machine.repo / "skills", "demo", text)


ALL = ["name-directory", "description-vague", "unknown-field", "reference-missing"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ALL),
        (("--select", "name-directory,unknown-field"), ["name-directory", "unknown-field"]),
        (("--select", "name", "--select=ref*"), ["name-directory", "reference-missing"]),
        (("--ignore", "description"), ["name-directory", "unknown-field", "reference-missing"]),
        (("--select=*", "--ignore", "name-*, unknown-field"), ["description-vague", "reference-missing"]),
    ],
)
def test_rules_are_chosen_by_id_group_and_beginning(
    machine: Machine, words: tuple[str, ...], expected: list[str]
) -> None:
    messy(machine)

    report = report_of(machine, *words)

    assert [finding["rule"] for finding in report["findings"]] == expected
    assert report["ignored"] == {"comments": 0, "rules": 4 - len(expected), "severity": 0}


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_rule_is_refused_with_the_nearest_one(machine: Machine, option: str) -> None:
    done = machine.run("check", option, "descripton-vague")

    assert done.returncode == 2
    assert done.stderr == f"skillshelf: {option}: unknown rule 'descripton-vague'; did you mean description-vague?\n"


@pytest.mark.parametrize(
    ("level", "expected", "status"),
    [("error", ALL[:1], 1), ("warning", [ALL[0], ALL[1], ALL[3]], 1), ("info", ALL, 1)],
)
def test_severity_is_what_is_shown_and_what_fails(
    machine: Machine, level: str, expected: list[str], status: int
) -> None:
    messy(machine)

    report = report_of(machine, "--severity", level)

    assert [finding["rule"] for finding in report["findings"]] == expected
    assert report["ignored"]["severity"] == 4 - len(expected)
    assert machine.run("check", "--severity", level).returncode == status


def test_notes_fail_only_where_that_is_asked_for_and_warnings_not_below_error(machine: Machine) -> None:
    write_skill(machine.repo / "skills", "demo", skill(fields="author: me\n"))
    statuses = [machine.run("check", *words).returncode for words in ((), ("--severity=info",), ("--severity=error",))]
    write_skill(machine.repo / "skills", "demo", skill(description="Short."))
    statuses += [machine.run("check", *words).returncode for words in ((), ("--severity=error",))]

    assert statuses == [0, 1, 0, 1, 0]


def test_an_unknown_severity_is_refused(machine: Machine) -> None:
    done = machine.run("check", "--severity", "warn")

    assert done.returncode == 2
    assert done.stderr == ("skillshelf: unknown severity 'warn'; did you mean warning? (known: error, warning, info)\n")


def test_what_is_left_out_is_counted_in_the_summary(machine: Machine) -> None:
    messy(machine)

    out = machine.run("check", "--ignore", "name", "--severity", "warning").stdout

    assert "not shown: 1 finding of rules that are switched off, 1 finding of a lower severity\n" in out


# Fixes --------------------------------------------------------------------------------------------


def test_fix_alone_never_renames_and_says_how(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", "\ufeff" + skill(name="other"))

    done = machine.run("check", "--fix")

    assert path.read_text() == skill(name="other")
    assert "would become: name: demo\n" in done.stdout
    assert "1 finding fixed, 1 file changed\n" in done.stdout
    assert f"1 by giving a skill the name of its folder: skillshelf check --home {machine.home} --fix=names\n" in (
        done.stdout
    )
    assert done.returncode == 1


def test_fix_names_renames(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", "\ufeff" + skill(name="other"))

    dry = machine.run("check", "--fix=names", "--dry-run")
    assert "-name: other\n" in dry.stdout
    assert "+name: demo\n" in dry.stdout
    assert path.read_text().startswith("\ufeff")
    assert machine.run("check", "--fix=names").returncode == 0
    assert path.read_text() == skill()


def test_a_missing_name_is_no_rename(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", skill().replace("name: demo\n", ""))

    assert machine.run("check", "--fix").returncode == 0
    assert path.read_text() == skill()


@pytest.mark.parametrize("off", [("--ignore", "bom"), ("--select", "crlf"), None])
def test_what_is_left_out_is_not_fixed(machine: Machine, off: tuple[str, str] | None) -> None:
    text = "\ufeff" + skill("" if off else "<!-- skillshelf: ignore bom -->\n")
    path = write_skill(machine.repo / "skills", "demo", text)

    assert machine.run("check", "--fix", *(off or ())).returncode == 0
    assert path.read_text() == text


# Configuration ------------------------------------------------------------------------------------


def configure(machine: Machine, text: str) -> None:
    """Write the configuration of the project, which is not trusted."""
    (machine.repo / "skillshelf.toml").write_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[check]\nselect = ["name", "yaml*"]\n', ["name-directory"]),
        ('[check]\nignore = ["name-directory", "description"]\n', ["unknown-field", "reference-missing"]),
        ('[check]\nseverity = "error"\n', ["name-directory"]),
        ('[check.rules]\ndescription-vague = "off"\nname-directory = "off"\n', ["unknown-field", "reference-missing"]),
        ('[check]\nexclude = ["skills/demo"]\n', []),
        ('[check]\nexclude = ["d?mo/"]\n', []),
    ],
)
def test_a_project_chooses_rules_by_its_file_trusted_or_not(machine: Machine, text: str, expected: list[str]) -> None:
    messy(machine)
    configure(machine, text)

    untrusted = rules_in(machine)
    machine.run("trust", str(machine.repo))

    assert (untrusted, rules_in(machine)) == (expected, expected)


def test_a_severity_by_configuration_is_reported_and_decides_the_status(machine: Machine) -> None:
    write_skill(machine.repo / "skills", "demo", skill(description="Short."))
    configure(machine, '[check.rules]\ndescription-vague = "info"\n')

    assert [finding["severity"] for finding in report_of(machine)["findings"]] == ["info"]
    assert machine.run("check").returncode == 0


def test_the_command_line_selects_instead_of_the_file_and_ignores_besides_it(machine: Machine) -> None:
    messy(machine)
    configure(machine, '[check]\nselect = ["name"]\nignore = ["unknown-field"]\nseverity = "error"\n')

    words = ("--select", "description,unknown-field,ref*", "--severity=info", "--ignore", "ref*")
    assert rules_in(machine, *words) == ["description-vague"]


def test_what_is_excluded_is_counted_also_where_it_is_named(machine: Machine) -> None:
    messy(machine)
    configure(machine, '[check]\nexclude = ["skills/*"]\n')

    done = machine.run("check", "skills/demo/SKILL.md")

    assert done.returncode == 0
    assert "not checked: 1 skill that the configuration excludes\n" in done.stdout
    assert report_of(machine)["excluded"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[check]\nselekt = []\n", "line 2: `check.selekt` is not a key of skillshelf; did you mean `check.select`?"),
        (
            "[check]\nignore = ['nam-directory']\n",
            "line 2: `check.ignore` names an unknown rule 'nam-directory'; did you",
        ),
        ("[check]\nseverity = 'warn'\n", "line 2: `check.severity` must be one of error, warning, info"),
        (
            "[check.rules]\n\nname-dir = 'off'\n",
            "line 3: `check.rules.name-dir` is not a rule: unknown rule 'name-dir'",
        ),
        ("[check.rules]\nbom = 'warn'\n", "line 2: `check.rules.bom` must be one of error, warning, info, off"),
        ("[check]\nbaseline = ''\n", "line 2: `check.baseline` must be the path of a file"),
        ("check = 3\n[x", "skillshelf.toml: "),
    ],
)
@pytest.mark.parametrize("owner", ["user", "trusted", "untrusted"])
def test_a_mistake_in_the_file_is_an_error_with_file_line_and_key(
    machine: Machine, text: str, message: str, owner: str
) -> None:
    if owner == "user":
        machine.configure(text)
        message = message.replace("skillshelf.toml", "config.toml")
    else:
        machine.configure(f'[trust]\nfolders = ["{machine.repo}"]\n' if owner == "trusted" else "")
        configure(machine, text)

    done = machine.run("check")

    assert done.returncode == 2
    assert message in done.stderr
    assert "skillshelf.toml" in done.stderr or "config.toml" in done.stderr


def test_a_mistake_about_checks_in_an_untrusted_file_keeps_no_other_command_from_working(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "demo")
    configure(machine, "[check]\nselekt = []\n")

    done = machine.run("list")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_check_that_nobody_vouches_for_takes_nothing_from_the_project(machine: Machine) -> None:
    path = write_skill(
        machine.repo / "skills", "demo", skill("<!-- skillshelf: ignore description-vague -->\n", description="Short.")
    )
    configure(machine, '[check]\nexclude = ["skills"]\nignore = ["*"]\n[check.rules]\ndescription-vague = "off"\n')
    shelf = machine.shelf(trust="all")

    vouched, not_vouched = (check_paths([str(path)], shelf, vouched=vouched) for vouched in (True, False))

    assert (vouched.checked, [finding.rule for finding in not_vouched.findings]) == (0, ["description-vague"])


def test_a_check_that_nobody_vouches_for_keeps_what_the_user_switched_off(machine: Machine) -> None:
    path = messy(machine)
    machine.configure('[check]\nselect = ["yaml"]\nignore = ["name"]\n[check.rules]\ndescription-vague = "off"\n')

    found = check_paths([str(path)], machine.shelf(), vouched=False).findings

    assert [finding.rule for finding in found] == ["unknown-field", "reference-missing"]


# Comments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ("", "<!-- skillshelf: ignore description-vague -->\n"),
        ("", "text <!--skillshelf: ignore reference-missing,description-vague--> [a](a.md)\n"),
        ("", "<!--\nskillshelf: ignore\n  description-vague\n-->\n"),
        ("# skillshelf: ignore description-vague\n", ""),
        ("license: MIT # skillshelf: ignore description-vague\n", ""),
        ("license: 'MIT'  # skillshelf: ignore description-vague\n", ""),
    ],
)
def test_a_comment_ignores_a_rule_in_its_file(machine: Machine, fields: str, body: str) -> None:
    text = skill(body, description="Short.", fields=fields)
    write_skill(machine.repo / "skills", "demo", text)
    write_skill(machine.repo / "skills", "demo2", skill(name="demo2", description="Short."))

    report = report_of(machine)

    assert [(finding["rule"], finding["relative"]) for finding in report["findings"]] == [
        ("description-vague", "skills/demo2/SKILL.md")
    ]
    assert report["ignored"]["comments"] == 1 + ("a.md" in body)
    assert "ignored by comments in the files\n" in machine.run("check").stdout


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ("", "```\n<!-- skillshelf: ignore description-vague -->\n```\n"),
        ("", "`<!-- skillshelf: ignore description-vague -->`\n"),
        ("", "Write `a <!-- skillshelf: ignore description-vague -->` there.\n"),
        ("", "``b <!-- skillshelf: ignore description-vague -->``\n"),
        ("", "<!-- skillshelf: ignore description-vague\n"),
        ("", "<!-- skillshelf: note description-vague -->\n"),
        ("license: 'MIT # skillshelf: ignore description-vague'\n", ""),
        ("license: |\n  # skillshelf: ignore description-vague\n", ""),
        ("license: MIT# skillshelf: ignore description-vague\n", ""),
    ],
)
def test_what_only_looks_like_a_comment_ignores_nothing(machine: Machine, fields: str, body: str) -> None:
    write_skill(machine.repo / "skills", "demo", skill(body, description="Short.", fields=fields))

    assert "description-vague" in rules_in(machine)


def test_unknown_unused_and_empty_comments_are_findings(machine: Machine) -> None:
    body = "<!-- skillshelf: ignore body-line, reference-missing -->\n<!-- skillshelf: ignore -->\n"
    write_skill(machine.repo / "skills", "demo", skill(body))

    found = [
        (finding["rule"], finding["severity"], finding["line"], finding["column"], finding["message"])
        for finding in report_of(machine)["findings"]
    ]

    assert found == [
        ("ignore-unknown", "warning", 6, 25, "unknown rule 'body-line'; did you mean body-lines?"),
        ("ignore-unused", "info", 6, 36, "reference-missing finds nothing here"),
        ("ignore-unknown", "warning", 7, 1, "the comment names no rule; write `skillshelf: ignore RULE`"),
    ]


@pytest.mark.parametrize("rule", ["description-missing", "encoding", "ignore-unused", "security-"])
def test_no_comment_ignores_a_rule_that_rejects_or_is_about_security(machine: Machine, rule: str) -> None:
    from skillshelf.config.rules import RULES

    rule = next((one for one in RULES if one.startswith(rule)), "internal")
    text = skill(f"<!-- skillshelf: ignore {rule} -->\n").replace(f"description: {GOOD}\n", "")
    write_skill(machine.repo / "skills", "demo", text)

    found = {finding["rule"]: finding["message"] for finding in report_of(machine)["findings"]}

    assert "description-missing" in found
    assert found["ignore-refused"] == f"no comment can ignore {rule}; a baseline, --ignore or the configuration can"


def test_configuration_and_options_switch_off_what_no_comment_can(machine: Machine) -> None:
    write_skill(machine.repo / "skills", "demo", skill().replace(f"description: {GOOD}\n", ""))

    assert rules_in(machine, "--ignore", "description-missing") == []
    configure(machine, '[check.rules]\ndescription-missing = "off"\n')
    assert rules_in(machine) == []


def test_a_rule_that_rejects_in_one_profile_is_refused_there_alone(machine: Machine) -> None:
    write_skill(machine.repo / "skills", "demo", skill("<!-- skillshelf: ignore name-directory -->\n", name="other"))

    assert rules_in(machine) == []
    assert rules_in(machine, "--profile", "strict") == ["name-directory", "ignore-refused"]


def test_sarif_keeps_what_a_comment_ignores_as_suppressed(machine: Machine) -> None:
    body = "<!-- skillshelf: ignore description-vague -->\n"
    write_skill(machine.repo / "skills", "demo", skill(body, description="Short."))

    done = machine.run("check", "--format", "sarif")

    (result,) = json.loads(done.stdout)["runs"][0]["results"]
    assert (done.returncode, result["ruleId"], result["suppressions"]) == (
        *(0, "description-vague"),
        [{"kind": "inSource"}],
    )


@pytest.mark.parametrize(
    "text",
    [
        skill("<!-- skillshelf: ignore x -->" * 30_000),
        skill("<!-- skillshelf: ignore " + "x, " * 200_000 + "-->\n"),
        skill(fields=f"license: {'# skillshelf: ignore ' * 2_000}\n"),
        skill(fields=f"license: {'#' * 50_000} skillshelf: ignore bom\n"),
    ],
    ids=["comments", "words", "marks", "hashes"],
)
def test_comments_without_end_cost_a_few_lines(machine: Machine, text: str) -> None:
    write_skill(machine.repo / "skills", "demo", text)

    found = rules_in(machine)

    assert found.count("ignore-unknown") <= IGNORE_COMMENTS
