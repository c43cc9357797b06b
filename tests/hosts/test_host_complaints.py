"""The most frequent complaints of users, by number, and the answers of `why`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.host_cases import linked_folder, skill, trust
from support.trees import Machine, write_skill

from skillshelf.catalog.document import ParsedFrontmatter
from skillshelf.cli.main import main
from skillshelf.config.hosts import HOSTS
from skillshelf.core.environment import Environment
from skillshelf.hosts.fixes import fix_for, ranked_fixes
from skillshelf.hosts.near_misses import NearMiss, near_misses
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import take_survey
from skillshelf.lint.portability import portability


class Answers:
    """The verdicts of all hosts on one file, and the fixes."""

    def __init__(
        self, machine: Machine, path: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        place = Environment(str(cwd or machine.repo), str(machine.home), dict(env or {}))
        self.survey = take_survey(place, tuple(HOSTS), path=str(path))
        paths = {str(path), str(path.resolve())}
        (self.skill_file,) = [s for s in self.survey.skill_files if paths & {s.real_path, *s.paths}]
        states = self.survey.states
        self.verdicts = {host: judge(self.skill_file, states[host], self.survey) for host in HOSTS}

    def __getitem__(self, host: str) -> Verdict:
        return self.verdicts[host]

    def fix(self, host: str) -> str | None:
        """Return the fix for one host."""
        return fix_for(self[host], self.skill_file, self.survey)

    @property
    def first_help(self) -> tuple[str, int]:
        """Return the most helpful fix, and how many hosts it helps."""
        best = ranked_fixes(self.skill_file, list(self.verdicts.values()), self.survey)[0]
        return best.what, len(best.hosts)


@pytest.fixture
def agents(machine: Machine) -> Path:
    """The root most hosts read, in a folder that all of them trust."""
    trust(machine, machine.repo)
    return machine.repo / ".agents/skills"


def test_1_a_colon_without_quotes_is_shown_with_its_line_and_the_repair(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x", skill("name: x\ndescription: Use when: asked\n")))

    assert (got["goose"].verdict, got["goose"].line, got["goose"].warns) == ("yaml-error", 3, False)
    assert got.fix("pi") == "put quotes around the value in line 3"


def test_2_a_category_folder_is_too_deep_for_some(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x", folder="ops/x"))

    assert got["gemini-cli"].detail == "ops/x is 2 levels deep; the limit is 1"
    assert got.fix("gemini-cli") == "skillshelf link x --to gemini-cli"


def test_3_a_folder_that_one_host_does_not_read(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x"))

    assert (got["claude-code"].verdict, got["claude-code"].detail) == ("root-not-read", "reads .claude/skills")
    assert got.first_help == ("skillshelf link x --to claude-code", 2)


def test_4_links_are_followed_by_some(machine: Machine, agents: Path) -> None:
    linked_folder(".agents/skills", "elsewhere")(machine)
    got = Answers(machine, agents / "probe-x/SKILL.md")

    assert [host for host, verdict in got.verdicts.items() if verdict.verdict == "dir-link-skipped"] == ["codelia"]


def test_5_too_many_skills_cost_descriptions_and_entries_that_are_named(machine: Machine, agents: Path) -> None:
    for number in range(80):
        text = skill(f"name: probe-{number:02}\ndescription: {'d' * 400}\n")
        for root in (agents, machine.repo / ".claude/skills"):
            write_skill(root, f"probe-{number:02}", text)
    first = Answers(machine, agents / "probe-00/SKILL.md")
    last = Answers(machine, agents / "probe-79/SKILL.md")
    theirs = Answers(machine, machine.repo / ".claude/skills/probe-00/SKILL.md")

    assert (first["codex"].verdict, first["codex"].detail) == (
        "description-cut",
        "its list has room for 8,000 to 21,760 characters, by the model's context window: the description is shortened",
    )
    assert first["copilot-cli"].verdict == "shadows"
    assert last["copilot-cli"].detail == "its list is full at 15,000 characters: the description is dropped"
    assert (last["codelia"].verdict, last.fix("codelia")) == (
        "over-budget",
        "shorten this description or those of other skills",
    )
    assert theirs["claude-code"].detail == (
        "its list has room for 8,000 to 30,000 characters, by the model's context window: 23 to 78 of 80 descriptions "
        "are dropped, the least used first, perhaps this one"
    )


def test_6_copies_that_say_the_same_are_told_from_those_that_do_not(machine: Machine, agents: Path) -> None:
    mine = write_skill(machine.home / ".agents/skills", "x")
    write_skill(agents, "x")
    assert "(same text)" in Answers(machine, mine)["goose"].detail

    write_skill(agents, "x", skill("name: x\ndescription: Other.\n"))
    assert "(different text)" in Answers(machine, mine)["goose"].detail


def test_7_a_boundary_is_named(machine: Machine, agents: Path) -> None:
    cwd = machine.repo / "packages/api"
    cwd.mkdir(parents=True)
    got = Answers(machine, write_skill(agents, "x"), cwd)

    assert got["goose"].verdict == "outside-boundary"
    assert "working directory only" in got["goose"].detail


def test_8_a_host_that_is_running_is_told_what_makes_it_see_a_new_skill(
    machine: Machine, agents: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_skill(machine.repo / ".claude/skills", "deploy")
    hosts = [word for host in ("gemini-cli", "pi", "codex") for word in ("--to", host)]

    status = main(["link", "deploy", *hosts, "--cwd", str(machine.repo), "--home", str(machine.home)])

    assert (status, capfd.readouterr().out.splitlines()) == (
        0,
        [
            "gemini-cli: linked .agents/skills/deploy -> ../../.claude/skills/deploy (now visible)",
            "pi: already visible as .agents/skills/deploy/SKILL.md",
            "codex: already visible as .agents/skills/deploy/SKILL.md",
            "Running sessions: gemini-cli needs /skills reload",
        ],
    )
    assert [name for name, host in HOSTS.items() if not host.on_change] == [
        *("kiro", "amp", "kilo", "grok", "qoder", "qwen-code", "kimi-code", "cline"),
    ]


def test_9_a_byte_order_mark_is_seen_before_anything_else(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x", b"\xef\xbb\xbf" + skill().encode()))

    assert {host for host, verdict in got.verdicts.items() if verdict.verdict == "bom"} == {
        *("codex", "gemini-cli", "codelia"),
    }
    assert got.fix("codex") == "remove the byte order mark"


def test_10_an_argument_hint_that_is_a_list_is_a_matter_of_type(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x", skill("name: x\ndescription: D.\nargument-hint: [x]\n")))

    assert (got["copilot-cli"].verdict, got.fix("copilot-cli")) == (
        "wrong-type",
        "put quotes around the value in line 4",
    )


def test_11_a_folder_at_home_is_ignored_for_its_spelling_or_for_a_variable(machine: Machine) -> None:
    path = write_skill(machine.home / ".config/opencode/skills", "x")
    write_skill(machine.home / ".claude/Skills", "y")

    got = Answers(machine, path)
    assert (got["opencode"].verdict, got["codex"].verdict) == ("visible", "root-not-read")
    assert got["codex"].detail == "reads ~/.codex/skills, ~/.agents/skills"
    assert near_misses(got.survey) == [
        NearMiss(
            f"{machine.home}/.claude/Skills",
            "is not read by any host: the folder must be named skills; to fix it: mv ~/.claude/Skills ~/.claude/skills",
            f"{machine.home}/.claude/skills",
        )
    ]

    moved = Answers(machine, path, env={"XDG_CONFIG_HOME": str(machine.home / "elsewhere")})
    assert moved["opencode"].verdict == "root-not-read"


def test_12_a_skill_outside_the_workspace_folder_or_kept_from_git(machine: Machine, agents: Path) -> None:
    path = write_skill(agents, "x")
    mine = write_skill(machine.home / ".copilot/skills", "y")
    (machine.repo / ".gitignore").write_text(".agents/\n")
    below = machine.repo / "packages/api"
    below.mkdir(parents=True)

    outside = Answers(machine, path, below)["vscode"]
    assert (outside.verdict, outside.warns, outside.detail) == (
        "outside-boundary",
        False,
        f"not in {machine.repo}: .agents/skills is read in the working directory only",
    )
    assert Answers(machine, mine, below)["vscode"].verdict == "visible"
    assert Answers(machine, path)["vscode"].visible is True


def test_13_every_host_that_misses_a_skill_says_what_to_do(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "x", folder=".drafts/x")
    got = Answers(machine, path)

    unhelped = [host for host, verdict in got.verdicts.items() if verdict.visible is False and not got.fix(host)]
    assert unhelped == []


def test_14_listed_and_told_to_the_model_are_two_answers(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x", skill("name: x\n")))

    assert (got["opencode"].visible, got["opencode"].verdict) == (False, "hidden-from-model")
    assert got["goose"].visible is True


def test_15_another_name_than_the_folder_is_another_skill_for_half_the_team(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "pdf", folder="pdf-tools"))

    assert (got["vscode"].verdict, got["vscode"].detail) == ("name-from-folder", "called 'pdf-tools' here, not 'pdf'")
    assert (got["codex"].verdict, got["codelia"].verdict) == ("visible", "name-rejected")
    assert got.fix("codelia") == "give the folder and the skill the same name"
    assert [finding.rule for finding in portability(ParsedFrontmatter({"name": "pdf", "context": "fork"}, "", ()))] == [
        "portability-field"
    ]
