"""The findings of `check`: each rule fires at the right position, and nowhere else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.trees import Machine, write_skill

from skillshelf.config.rules import RULES
from skillshelf.core.limits import CHECKED_MENTIONS, CHECKED_PAGES, CHECKED_SCRIPTS
from skillshelf.lint.run import CheckFinding, Report, check_targets, in_paths, in_roots

GOOD = "Drafts release notes from merged pull requests. Use when the user asks for a changelog."
ADVICE = {"description-when", "description-vague", "description-long", "portability-field"}
"""Rules that may fire beside the mistake that a text is about."""


def skill(body: str = "", *, heading: str = "# Do it\n", name: str = "demo", description: str = GOOD) -> str:
    """Return the text of a valid skill, except for what a test changes; the body follows the heading, on line 6."""
    return f"---\nname: {name}\ndescription: {description}\n---\n{heading}{body}"


def report_on(machine: Machine, *paths: Path) -> Report:
    """Return the report about some paths, or about the roots."""
    shelf = machine.shelf()
    targets = in_paths([str(path) for path in paths], shelf) if paths else in_roots(shelf)
    return check_targets(targets, shelf.profile)


def findings_in(
    machine: Machine, text: str | bytes, *, folder: str = "demo"
) -> list[tuple[str, str, int | None, int | None]]:
    """Return rule, severity, line and column of every finding about one file."""
    path = write_skill(machine.repo / "skills", folder, text)
    return [(f.rule, f.severity, f.line, f.column) for f in report_on(machine, path).findings]


def test_a_good_skill_gives_nothing_to_report(machine: Machine) -> None:
    assert findings_in(machine, skill()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (skill(name="other"), ("name-directory", "error", 2, 1)),
        (f"---\ndescription: {GOOD}\n---\n# x\n", ("name-missing", "error", 1, 1)),
        ("---\nname: demo\n---\n# x\n", ("description-missing", "error", 1, 1)),
        (
            skill(description="x" * 1025 + " use it when asked so that all is well"),
            ("description-length", "error", 3, 1),
        ),
        (skill(description="Does it: use when asked for such a thing"), ("yaml-colon", "error", 3, 1)),
        (skill().replace("---\n#", "argument-hint: [a] [b]\n---\n#"), ("yaml-brackets", "error", 4, 1)),
        (skill().replace("---\n#", "metadata:\n\tx: 'y'\n---\n#"), ("yaml-tab", "error", 5, 2)),
        (skill().replace("---\n#", "metadata:\n  x: 1\n---\n#"), ("metadata-values", "warning", 4, 1)),
        (skill().replace("---\n#", "allowed-tools: [Read]\n---\n#"), ("allowed-tools-list", "warning", 4, 1)),
        (skill().replace("---\n#", "author: me\n---\n#"), ("unknown-field", "info", 4, 1)),
        ("\ufeff" + skill(), ("bom", "warning", 1, 1)),
        (skill().replace("---\n", "--- \n", 1), ("fence-blanks", "info", 1, 4)),
        (skill().replace("\n", "\r\n"), ("crlf", "info", 1, 1)),
        (skill(description='"Never closed'), ("yaml", "error", 4, 1)),
        ("# no frontmatter\n", ("frontmatter-missing", "error", 1, 1)),
        (
            skill(description="The world's #1 registrar for domains: buys, moves and renews"),
            ("description-cut", "warning", 3, 26),
        ),
        (skill(description="Runbook generator"), ("description-vague", "warning", 3, 1)),
        (skill(description="Demo!"), ("description-vague", "warning", 3, 1)),
        (skill(description="Manages documents, photos, tags and their owners"), ("description-when", "info", 3, 1)),
        (skill(description="Use when asked. " + "word " * 120), ("description-long", "info", 3, 1)),
        (skill("\n\n", heading=""), ("body-empty", "warning", 5, 1)),
        (skill("x\n" * 500), ("body-lines", "info", 5, 1)),
        (skill("word " * 4001), ("body-tokens", "info", 5, 1)),
        (skill("\nä\x1b[0m\n"), ("body-control-character", "warning", 7, 2)),
        (skill().encode() + b"\xc3\xa4 \xff", ("body-encoding", "error", 6, 3)),
        (skill('See [it](references/gone.md#part "title").\n'), ("reference-missing", "warning", 6, 10)),
        (skill("![it](<img/a%20b.png>)\n"), ("reference-missing", "warning", 6, 8)),
        (skill("[it]: ./gone.md\n"), ("reference-missing", "warning", 6, 7)),
        (skill("Read `references/gone.md` first.\n"), ("reference-missing", "warning", 6, 7)),
        (skill("See [it](../other/SKILL.md).\n"), ("reference-outside", "info", 6, 10)),
        (skill("Use the `gone-skill` skill.\n"), ("skill-unknown", "info", 6, 10)),
        (skill("Type `/skill:gone now`.\n"), ("skill-unknown", "info", 6, 14)),
        (skill("Read skill://gone/a.md\n"), ("skill-unknown", "info", 6, 14)),
        (skill("Ask $gone-skill for it.\n"), ("skill-unknown", "info", 6, 6)),
        (skill("then use the skill `gone`.\n"), ("skill-unknown", "info", 6, 21)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_rule_fires_at_the_place_it_is_about(
    machine: Machine, text: str | bytes, expected: tuple[str, str, int, int]
) -> None:
    found = findings_in(machine, text)

    assert expected in found
    # One mistake is reported once: no rule of the fields complains about a frontmatter that could not be read.
    assert {rule for rule, *_ in found} - {expected[0]} <= ADVICE


@pytest.mark.parametrize(
    "body",
    [
        "```md\n[it](gone.md) and `references/gone.md`\n```\n",
        "~~~\n[it](gone.md)\n~~~\n",
        "1. do\n   ```sh\n   cat [x](gone.md)\n   ```\n",
        "````md\n```\n[it](gone.md)\n```\n[it](gone.md)\n````\n",
        "```markdown\n```sh\nls\n```\n[it](gone.md)\n```\n",
        "<!-- [it](gone.md)\n[it](gone.md) -->\n",
        "Write `[it](gone.md)` there.\n",
        "[it](https://example.org/gone.md) [it](mailto:a@b.c) [it](#part) [it](/site/page.md)\n",
        "[it](example.org/gone.md) [it](url) [it](path/to/file.md) [it]({name}.md) [it]($DIR/x.md) [it](…/x.md)\n",
        "[^1]: gone.md\n",
        "Put it into `scripts/build.sh` or `assets/logo.png` of your project.\n",
        "[`references/a.md`](https://example.org/references/a.md)\n",
        "Make a `gone-skill` skill, costs $20-30, $HOME and `$gone-skill`; the `name` skill.\n",
        "skill://NAME/x, /skill:<name>, docs/skill:gone, a `Gone` skill\n",
        "The `demo` skill is this one.\n",
    ],
)
def test_what_only_looks_like_a_file_or_a_skill_is_no_finding(machine: Machine, body: str) -> None:
    assert findings_in(machine, skill(body)) == []


@pytest.mark.parametrize(
    "text",
    [
        skill(description="リリースノートを作成します。変更履歴を求められたときに使います。"),
        skill(description="Reads and sorts mail for the team # see above"),
        skill(description="'The #1 thing to use when asked for things'"),
        skill(description=">\n  Reads the #1 mail of the team. Use when asked."),
        skill("x\n" * 499),
        skill("x" * 19_990),
    ],
    ids=["unspaced script", "a comment that was meant", "quoted", "folded", "500 lines", "5,000 tokens"],
)
def test_what_is_just_right_is_no_finding(machine: Machine, text: str) -> None:
    assert findings_in(machine, text) == []


def test_a_name_that_is_no_text_is_reported(machine: Machine) -> None:
    assert findings_in(machine, skill(name="7"), folder="7") == [("name-type", "error", 2, 1)]


def test_a_file_that_exists_is_no_finding_and_one_in_a_folder_of_the_skill_is_looked_for(machine: Machine) -> None:
    path = write_skill(
        machine.repo / "skills",
        "demo",
        skill(
            "[a](references/a.md) `references/a.md` [d](references/) `scripts/run.sh`\n`python scripts/gone.py -x`\n"
        ),
    )
    (path.parent / "references").mkdir()
    (path.parent / "references" / "a.md").write_text("# a\n")
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    (path.parent / "scripts" / "run.sh").chmod(0o755)

    assert [(f.rule, f.message, f.line, f.column) for f in report_on(machine, path).findings] == [
        ("reference-missing", "scripts/gone.py does not exist", 7, 9)
    ]


def test_the_links_of_references_are_followed_one_level(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", skill("[a](references/a.md) [b](references/b.md)\n"))
    pages = path.parent / "references"
    pages.mkdir()
    (pages / "a.md").write_text(
        "# a\n[b](b.md) [c](c.md)\n[root](references/c.md) [gone](gone.md) [home](../SKILL.md)\n"
    )
    (pages / "b.md").write_text("# b\n")
    (pages / "c.md").write_text("[never](read.md)\n")

    found = [
        (os.path.relpath(f.path, path.parent), f.rule, f.line, f.column) for f in report_on(machine, path).findings
    ]

    assert found == [
        ("references/a.md", "reference-deep", 2, 15),
        ("references/a.md", "reference-deep", 3, 8),
        ("references/a.md", "reference-missing", 3, 32),
    ]


@pytest.mark.parametrize(
    ("name", "text", "mode", "rules"),
    [
        ("run.py", "#!/usr/bin/env python3\n", 0o755, []),
        ("run.py", "#!/usr/bin/env python3\n", 0o644, ["script-run-bit"]),
        ("run.py", "if __name__ == '__main__':\n    pass\n", 0o644, ["script-shebang"]),
        ("run.py", "pass\n", 0o755, ["script-shebang"]),
        ("module.py", "def helper(): ...\n", 0o644, []),
        ("named.sh", "echo\n", 0o644, ["script-shebang"]),
        ("library.sh", "echo\n", 0o644, []),
        ("data.json", "{}\n", 0o755, []),
    ],
)
def test_a_script_that_is_run_says_by_what_and_may_be(
    machine: Machine, name: str, text: str, mode: int, rules: list[str]
) -> None:
    path = write_skill(machine.repo / "skills", "demo", skill("Run scripts/named.sh\n"))
    script = path.parent / "scripts" / name
    script.parent.mkdir()
    script.write_text(text)
    script.chmod(mode)

    assert [(f.path, f.rule, f.severity) for f in report_on(machine, path).findings] == [
        (str(script), rule, "info") for rule in rules
    ]


def test_more_pages_and_scripts_than_are_looked_at_are_reported(machine: Machine) -> None:
    links = "".join(f"[x](references/{number}.md)\n" for number in range(CHECKED_PAGES + 1))
    path = write_skill(machine.repo / "skills", "demo", skill(links))
    for folder, count, end in (("references", CHECKED_PAGES + 1, "md"), ("scripts", CHECKED_SCRIPTS + 1, "txt")):
        (path.parent / folder).mkdir()
        for number in range(count):
            (path.parent / folder / f"{number}.{end}").touch()

    assert [f.rule for f in report_on(machine, path).findings] == ["check-limit", "check-limit"]


def test_a_page_with_more_links_than_are_looked_for_says_so(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", skill("[x](page.md)\n"))
    (path.parent / "page.md").write_text("[x](gone.md)\n" * (CHECKED_MENTIONS + 5))

    found = [(f.rule, f.line) for f in report_on(machine, path).findings]

    assert found[:2] == [("check-limit", 1), ("reference-missing", 1)]
    assert len(found) == CHECKED_MENTIONS + 1


def test_a_link_that_no_path_can_be_is_missing(machine: Machine) -> None:
    assert findings_in(machine, skill("See [x](a%00b.md).\n")) == [("reference-missing", "warning", 6, 9)]


def test_a_page_with_other_line_ends_is_read_alike(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", skill("[x](page.md)\n"))
    (path.parent / "page.md").write_bytes(b"See [it].\r\n\r\n[it]: gone.md\r\n")

    assert [(f.rule, f.line, f.column) for f in report_on(machine, path).findings] == [("reference-missing", 3, 7)]


# Names of other skills ----------------------------------------------------------------------------


def test_a_skill_beside_it_or_in_the_catalog_is_known(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "demo", skill("The `beside` skill and the `mine` skill.\n"))
    write_skill(machine.repo / "skills", "beside")
    write_skill(machine.home / ".agents" / "skills", "mine")

    assert report_on(machine, path).findings == ()


def test_a_cycle_of_names_is_reported_once_at_its_first_skill(machine: Machine) -> None:
    root = machine.repo / "skills"
    for name, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "e")):
        write_skill(root, name, skill(f"Use the `{other}` skill.\n", name=name))

    # All of them have one description.
    found = [one for one in report_on(machine, root).findings if one.rule != "description-collision"]
    assert tuple(found) == (
        CheckFinding(
            str(root / "a" / "SKILL.md"),
            6,
            10,
            "skill-cycle",
            "info",
            "skills refer to each other in a cycle: a -> b -> c -> a",
        ),
    )


# What is checked ----------------------------------------------------------------------------------


def test_without_a_path_everything_below_the_roots_is_checked_also_what_no_catalog_has(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "twice")
    write_skill(machine.home / ".agents" / "skills", "twice")
    write_skill(root, "broken", "---\nname: broken\n---\n# x\n")
    write_skill(root / "1" / "2" / "3" / "4" / "5" / "6", "deep", skill(name="Deep"))
    write_skill(root / "twice" / "examples", "inner")
    (root / "near").mkdir()
    (root / "near" / "skill.md").touch()

    report = report_on(machine)

    assert report.checked == 4
    assert sorted({(f.rule, f.severity) for f in report.findings}) == [
        ("description-missing", "error"),
        ("file-name", "warning"),
        ("inside-skill", "info"),
        ("name-collision", "warning"),
        ("name-directory", "error"),
        ("name-pattern", "error"),
        ("too-deep", "warning"),
    ]


def test_a_path_may_be_a_skill_its_file_or_a_folder_of_skills_at_any_depth(machine: Machine) -> None:
    path = write_skill(machine.repo / "a" / "b" / "c" / "d" / "e" / "f" / "g", "deep")

    assert [report_on(machine, where).checked for where in (path, path.parent, machine.repo)] == [1, 1, 1]
    assert report_on(machine, path, path.parent, machine.repo).checked == 1


def test_a_profile_of_ones_own_weighs_rules(machine: Machine) -> None:
    machine.configure('[profiles.lab]\nextends = "standard"\nrules = { "description-vague" = "off" }\n')
    path = write_skill(machine.repo / "skills", "demo", skill(description="Runbook"))
    shelf = machine.shelf("lab")

    assert check_targets(in_paths([str(path)], shelf), shelf.profile).findings == ()


def test_every_rule_says_why_it_exists_and_how_to_fix_what_it_finds() -> None:
    assert [rule for rule, row in RULES.items() if not (row.summary and row.why and row.how_to_fix)] == []


def test_a_field_that_only_some_hosts_honour_is_reported_with_its_line_the_dangerous_first(machine: Machine) -> None:
    write_skill(
        machine.repo / ".agents" / "skills",
        "deploy",
        "---\nname: deploy\ncontext: fork\nuser-invocable: false\ndescription: Deploys.\n"
        "disable-model-invocation: true\n---\n# Deploy\n",
    )

    found = json.loads(machine.run("check", "--json").stdout)["findings"]
    shown = machine.run("check").stdout

    assert [(finding["rule"], finding["line"], finding["severity"]) for finding in found] == [
        ("portability-safeguard", 6, "info"),
        ("portability-safeguard", 4, "info"),
        ("description-vague", 5, "warning"),
        ("portability-field", 3, "info"),
    ]
    assert shown.index("dangerous: the model may still call") < shown.index("users can still call this skill")
