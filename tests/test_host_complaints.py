"""What people complain about most, and the answer a verdict gives them.

Budgets, near misses, links and repairs are in `test_host_commands`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from host_cases import linked_folder, skill, trust
from trees import Machine, write_skill

from skillshelf.document import Document
from skillshelf.hosts import HOSTS
from skillshelf.place import Place
from skillshelf.portability import portability
from skillshelf.remedies import fix_for, remedies
from skillshelf.survey import take_survey
from skillshelf.verdicts import Verdict, judge


class Answers:
    """What every host says about one file, and what helps."""

    def __init__(self, machine: Machine, path: Path, cwd: Path | None = None) -> None:
        place = Place(str(cwd or machine.repo), str(machine.home), {})
        self.survey = take_survey(place, tuple(HOSTS), path=str(path))
        ways = {str(path), str(path.resolve())}
        (self.sighting,) = [s for s in self.survey.sightings if ways & {s.real_path, *s.ways}]
        views = self.survey.views
        self.verdicts = {host: judge(self.sighting, views[host], self.survey) for host in HOSTS}

    def __getitem__(self, host: str) -> Verdict:
        return self.verdicts[host]

    def fix(self, host: str) -> str | None:
        """What to do for one host."""
        return fix_for(self[host], self.sighting, self.survey.views[host], self.survey.place)

    @property
    def first_help(self) -> tuple[str, int]:
        """The most helpful thing to do, and how many hosts it helps."""
        best = remedies(self.sighting, list(self.verdicts.values()), self.survey)[0]
        return best.what, len(best.hosts)


@pytest.fixture
def agents(machine: Machine) -> Path:
    """The root most hosts read, in a folder that all of them trust."""
    trust(machine, machine.repo)
    return machine.repo / ".agents/skills"


def test_1_a_colon_without_quotes_is_shown_with_its_line_and_the_repair(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x", skill("name: x\ndescription: Use when: asked\n")))

    assert (got["goose"].verdict, got["goose"].line, got["goose"].told) == ("yaml-error", 3, False)
    assert got.fix("pi") == "put quotes around the value in line 3"


def test_2_a_category_folder_is_too_deep_for_some(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x", folder="ops/x"))

    assert got["gemini-cli"].detail == "ops/x is 2 levels down; it goes one level"
    assert got.fix("gemini-cli") == "skillshelf link x --to gemini-cli"


def test_3_a_folder_that_one_host_does_not_read(machine: Machine, agents: Path) -> None:
    got = Answers(machine, write_skill(agents, "x"))

    assert (got["claude-code"].verdict, got["claude-code"].detail) == ("root-not-read", "reads .claude/skills")
    assert got.first_help == ("skillshelf link x --to claude-code", 2)


def test_4_links_are_followed_by_some(machine: Machine, agents: Path) -> None:
    linked_folder(".agents/skills", "elsewhere")(machine)
    got = Answers(machine, agents / "probe-x/SKILL.md")

    assert [host for host, verdict in got.verdicts.items() if verdict.verdict == "dir-link-skipped"] == ["codelia"]


def test_6_copies_that_say_the_same_are_told_from_those_that_do_not(machine: Machine, agents: Path) -> None:
    mine = write_skill(machine.home / ".agents/skills", "x")
    write_skill(agents, "x")
    assert "the same text" in Answers(machine, mine)["goose"].detail

    write_skill(agents, "x", skill("name: x\ndescription: Other.\n"))
    assert "another text" in Answers(machine, mine)["goose"].detail


def test_7_a_boundary_is_named(machine: Machine, agents: Path) -> None:
    cwd = machine.repo / "packages/api"
    cwd.mkdir(parents=True)
    got = Answers(machine, write_skill(agents, "x"), cwd)

    assert got["goose"].verdict == "outside-boundary"
    assert "working directory only" in got["goose"].detail


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
        "put quotes around the value that is not text",
    )


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
    assert got.fix("codelia") == "give the folder and the name the same words"
    assert [finding.rule for finding in portability(Document({"name": "pdf", "context": "fork"}, "", ()))] == [
        "portability-field"
    ]
