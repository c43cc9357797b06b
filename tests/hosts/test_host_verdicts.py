"""The verdicts of each host on the same folder: all thirty disagreements, host by host."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.host_cases import COLUMNS, PLACE_CASES, ROOTS, TEXT_CASES, PlaceCase, TextCase, skill, trust
from support.trees import Machine, write_skill

from skillshelf.config.hosts import HOSTS
from skillshelf.core.environment import Environment
from skillshelf.hosts.stages import Verdict, judge
from skillshelf.hosts.survey import Survey, take_survey


def survey(machine: Machine, cwd: Path, *hosts: str) -> Survey:
    """Take a survey of a folder for these hosts."""
    return take_survey(Environment(str(cwd), str(machine.home), {}), hosts or tuple(HOSTS))


def verdict_on(path: Path, host: str, seen: Survey) -> Verdict:
    """The verdict on the file at a path or on the SKILL.md of a folder."""
    paths = (str(path), str(path / "SKILL.md"))
    (skill_file,) = [
        skill_file for skill_file in seen.skill_files if set(paths) & {*skill_file.paths, skill_file.real_path}
    ]
    return judge(skill_file, seen.states[host], seen)


def letter(verdict: Verdict) -> str:
    """A verdict as the tables of cases write it."""
    if verdict.visible is not False:
        return "Y" if verdict.visible else "?"
    if verdict.verdict == "hidden-from-model":
        return "H"
    return "e" if verdict.warns else "l" if verdict.detail.endswith("only in its log)") else "-"


def roots_of(host: str) -> list[str]:
    """The roots a text is tried in."""
    if host == "oh-my-pi":
        return [".omp/skills", ".claude/skills", ".agents/skills"]
    return [ROOTS.get(host, ".agents/skills")]


@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda case: f"{case.number} {case.title}")
def test_one_text_in_a_root_that_each_host_reads(case: TextCase, machine: Machine) -> None:
    verdicts: dict[tuple[str, str], Verdict] = {}
    for root in (".agents/skills", ".claude/skills", ".kiro/skills", ".omp/skills"):
        cwd = machine.base / root.split("/")[0]
        (cwd / ".git").mkdir(parents=True)
        trust(machine, cwd)
        path = cwd / root / case.folder / case.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
        seen = survey(machine, cwd)
        verdicts |= {(root, host): verdict_on(path, host, seen) for host in HOSTS}

    found = []
    for host in COLUMNS:
        letters = [letter(verdicts[root, host]) for root in roots_of(host)]
        found.append(letters[0] if len(set(letters)) == 1 else "/".join(letters))
    assert " ".join(found) == case.expected, "\n".join(
        f"{host}: {verdicts[roots_of(host)[-1], host]}" for host in COLUMNS
    )


@pytest.mark.parametrize("case", PLACE_CASES, ids=lambda case: f"{case.number} {case.title}")
def test_one_skill_in_different_places(case: PlaceCase, machine: Machine) -> None:
    case.build(machine)
    cwd = machine.base / case.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    if case.trusted:
        trust(machine, cwd)
    seen = survey(machine, cwd)
    if "03n" in case.number:
        path = str(machine.base / next(iter(case.expected)) / "SKILL.md")
        seen = take_survey(Environment(str(cwd), str(machine.home), {}), tuple(HOSTS), path=path)

    verdicts = {place: [verdict_on(machine.base / place, host, seen) for host in COLUMNS] for place in case.expected}

    assert {place: " ".join(map(letter, row)) for place, row in verdicts.items()} == case.expected, "\n".join(
        str(verdict) for row in verdicts.values() for verdict in row
    )


@pytest.mark.parametrize("host", ["gemini-cli", "pi"])
def test_a_folder_that_a_host_does_not_trust_takes_no_name_and_breaks_no_rule(machine: Machine, host: str) -> None:
    mine = write_skill(machine.home / ".agents/skills", "review")
    theirs = write_skill(machine.repo / ".agents/skills", "review", skill("name: review\ndescription: a: b\n"))

    seen = survey(machine, machine.repo, host)

    assert verdict_on(mine, host, seen).verdict == "visible"
    assert (verdict_on(theirs, host, seen).verdict, verdict_on(theirs, host, seen).warns) == ("untrusted", False)


def test_what_an_author_holds_back_is_told_where_a_host_ignores_it(machine: Machine) -> None:
    text = skill("name: deploy\ndescription: D.\ndisable-model-invocation: true\n")
    path = write_skill(machine.repo / ".claude/skills", "deploy", text)
    seen = survey(machine, machine.repo)

    told = {host: verdict_on(path, host, seen).detail for host in ("goose", "opencode", "openskills")}

    assert set(told.values()) == {"ignores disable-model-invocation: its model may call it"}


def test_what_nobody_tried_is_said_once(machine: Machine) -> None:
    path = write_skill(machine.repo / ".agents/skills", "deploy", b"\xef\xbb\xbf" + skill().encode())

    verdict = verdict_on(path, "vscode", survey(machine, machine.repo, "vscode"))

    assert (verdict.visible, verdict.detail.count("not tested")) == (None, 1)
