"""The rows of the picker, what fits a look, and what is said about a row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pytest
from support.trees import Machine, write_skill

from skillshelf.cli.picker.model import PickerModel
from skillshelf.cli.picker.rows import (
    RowFilter,
    ScreenLine,
    SkillRow,
    cells_of,
    columns_for,
    details,
    host_lines,
    preview,
    rows_of,
    select_rows,
    wrapped,
)
from skillshelf.core.console import PathDisplay
from skillshelf.core.text import width
from skillshelf.hosts.stages import Verdict


def rows(machine: Machine, **options: str) -> list[SkillRow]:
    """The rows of a place."""
    return rows_of(machine.catalog(**options), PathDisplay(str(machine.repo), str(machine.home)))


def spines(found: Sequence[SkillRow]) -> list[tuple[str, str, str, str]]:
    """The text of the columns of rows."""
    return [(row.name, row.scope, row.root, row.state) for row in found]


@pytest.mark.req("C-121")
def test_every_skill_and_everything_that_is_not_in_the_catalog_has_a_row(machine: Machine) -> None:
    project, user = machine.repo / ".agents/skills", machine.home / ".claude/skills"
    write_skill(project, "deploy")
    write_skill(project, "broken", "---\nname: broken\n---\n")
    write_skill(project, "draft")
    write_skill(project, "lower").rename(project / "lower/skill.md")
    write_skill(user, "deploy")
    write_skill(user, "secret", "---\nname: secret\ndescription: S.\ndisable-model-invocation: true\n---\n")
    write_skill(user, "old")
    machine.configure('[skills]\ndisabled = ["old"]\nignored = ["draft"]\n')

    found = rows(machine)

    assert spines(found) == [
        ("deploy", "project", ".agents/skills", "on"),
        ("old", "user", "~/.claude/skills", "off"),
        ("secret", "user", "~/.claude/skills", "hidden"),
        ("deploy", "user", "~/.claude/skills", "shadowed"),
        ("broken", "project", ".agents/skills", "error"),
        ("draft", "project", ".agents/skills", "filtered"),
        ("lower", "project", ".agents/skills", "filtered"),
    ]
    assert [row.text.partition(" (")[0] for row in found[3:]] == [
        "behind .agents/skills/deploy/SKILL.md",
        "description-missing: no `description`; say what the skill does and when to use it",
        "ignored by configuration",
        "file-name: 'skill.md' is not read; rename it to SKILL.md",
    ]


def test_a_skill_of_an_untrusted_folder_is_shown_as_such(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")

    assert [row.state for row in rows(machine, trust="ask")] == ["untrusted"]


SHELF = (
    ("release-notes", "Drafts what is new from commits. Use before shipping."),
    ("code-review", "Reviews a change. Use before merging."),
    ("changelog", "Writes release notes into a file. Use when asked."),
)


@pytest.mark.req("C-121")
@pytest.mark.parametrize(
    ("look", "names"),
    [
        (RowFilter(), ["changelog", "code-review", "release-notes"]),
        (RowFilter("release notes"), ["release-notes", "changelog"]),
        (RowFilter("  "), ["changelog", "code-review", "release-notes"]),
        (RowFilter("view"), ["code-review"]),
        (RowFilter("merging"), ["code-review"]),
        (RowFilter("zebra"), []),
        (RowFilter(scope="user"), []),
        (RowFilter(shown="all"), ["changelog", "code-review", "release-notes", "broken"]),
        (RowFilter(shown="problems"), ["code-review", "broken"]),
        (RowFilter("description-missing", shown="problems"), ["broken"]),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, RowFilter) else None,
)
def test_a_look_gives_what_the_search_ranks_then_names_that_hold_the_text(
    machine: Machine, look: RowFilter, names: list[str]
) -> None:
    project = machine.repo / ".agents/skills"
    for name, description in SHELF:
        folder = "review" if name == "code-review" else name
        text = f"---\nname: {name}\ndescription: {description}\n---\n"
        write_skill(project, name, text, folder=folder)
    write_skill(project, "broken", "---\nname: broken\n---\n")
    shelf = machine.shelf()

    assert [row.name for row in select_rows(shelf, rows(machine), look).rows] == names


def test_what_a_search_cannot_show_for_its_limit_is_said(machine: Machine) -> None:
    for n in range(4):
        write_skill(machine.repo / ".agents/skills", f"tool-{n}")
    machine.configure("[skills.search]\ndefault_limit = 2\nmax_limit = 2\n")
    shelf = machine.shelf()

    found = select_rows(shelf, rows(machine), RowFilter("tool"))

    assert (len(found.rows), found.total, found.more) == (4, 4, True)


@pytest.mark.parametrize("cells", [1, 9, 20, 40, 46, 60, 79, 100, 300])
def test_columns_fill_a_list_of_any_width_and_cut_what_is_longer(cells: int) -> None:
    row = SkillRow("翻译" * 40, "project", "a/very/long/root" * 4, "untrusted", "x" * 400, "/p/SKILL.md")
    columns = columns_for(cells)

    assert sum(column.cells + 1 for column in columns) == max(
        cells, sum(column.cells + 1 for column in columns[1:]) + 2
    )
    assert all(width(text) <= column.cells for text, column in zip(cells_of(row, columns), columns, strict=True))


@pytest.mark.parametrize(
    ("text", "hang", "lines"),
    [
        ("one two three", 0, ["one two", "three"]),
        ("exactly8 x", 0, ["exactly8", "x"]),
        ("abcdefghijkl", 0, ["abcdefgh", "ijkl"]),
        ("        deep text", 0, ["        ", "deep", "text"]),
        ("a b c d e f", 2, ["a b c d", "  e f"]),
        ("翻译翻译翻译", 0, ["翻译翻译", "翻译"]),
        ("", 0, [""]),
    ],
)
def test_lines_are_broken_at_blanks_and_nothing_is_lost(text: str, hang: int, lines: list[str]) -> None:
    found = [line.text for line in wrapped([ScreenLine(text, hang=hang)], 8)]

    assert [line.rstrip() for line in found] == [line.rstrip() for line in lines]
    assert "".join(found).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("profile", ["standard", "codelia", "rip", "omp"])
def test_a_preview_is_what_show_prints(machine: Machine, profile: str) -> None:
    root = ".omp/skills" if profile == "omp" else ".agents/skills"
    write_skill(machine.repo / root, "deploy")
    shelf = machine.shelf(profile)
    found = rows_of(shelf.catalog, PathDisplay(str(machine.repo), None))

    head, *lines = preview(shelf, found[0])

    printed = machine.run("show", "deploy", "--profile", profile).stdout
    assert "\n".join(line.text for line in lines) == printed.removesuffix("\n")
    assert head.text == f"The model would get {len(printed)} characters:"


def test_a_preview_of_a_skill_that_is_gone_says_so(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "deploy")
    shelf = machine.shelf()
    found = rows_of(shelf.catalog, PathDisplay(str(machine.repo), None))
    path.unlink()

    assert [line.tone for line in preview(shelf, found[0])] == ["bad"]


def test_nothing_from_a_skill_reaches_the_screen_as_a_control_character(machine: Machine) -> None:
    text = '---\nname: loud\ndescription: "a\\u001b[31mb"\n---\nbody \x1b]0;title\x07 \u202e end\n'
    write_skill(machine.repo / ".agents/skills", "loud", text)
    model = PickerModel(machine.shelf)
    row = model.rows()[0]

    lines = [line.text for line in model.describe(row)] + cells_of(row, columns_for(120))

    assert [line for line in lines if not line.isprintable()] == []


def test_hosts_are_grouped_by_what_they_make_of_a_skill() -> None:
    def verdict(host: str, visible: bool | None, name: str) -> Verdict:
        return Verdict(host, visible, name, "", None, "")  # type: ignore[arg-type]

    said = host_lines(
        [
            verdict("a", True, "visible"),
            verdict("b", False, "too-deep"),
            verdict("c", None, "unknown"),
            verdict("d", False, "bom"),
            verdict("e", False, "too-deep"),
        ]
    )

    assert [line.text for line in said] == ["seen by  a", "not by   b, e: too-deep; d: bom", "unknown  c"]


def test_an_untrusted_skill_is_shown_with_the_command_that_trusts_its_project(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    below = machine.repo / "packages"
    below.mkdir()

    with closing(PickerModel(lambda: machine.shelf(cwd=below, trust="ask"))) as model:
        said = [line.text for line in model.describe(model.rows()[0])]

    told = f"state    untrusted: models do not see it; to allow it, run: skillshelf trust {machine.repo}"
    assert told in said


def test_details_say_what_is_the_matter(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy", folder="other")

    said = details(rows(machine)[0], PathDisplay(str(machine.repo), None))

    assert [line.text for line in said] == [
        "about    Does deploy things. Use when deploy is asked for.",
        "path     .agents/skills/other/SKILL.md",
        "warning  name-directory: 'deploy' lives in the folder 'other' (line 2)",
    ]
