"""What each host makes of the same folder: all thirty disagreements, host by host."""

from __future__ import annotations

from pathlib import Path

import pytest
from host_cases import COLUMNS, PLACE_CASES, ROOTS, TEXT_CASES, PlaceCase, TextCase, trust
from trees import Machine

from skillshelf.hosts import HOSTS
from skillshelf.place import Place
from skillshelf.survey import Survey, take_survey
from skillshelf.verdicts import Verdict, judge


def survey(machine: Machine, cwd: Path, *hosts: str) -> Survey:
    """What these hosts make of a folder."""
    return take_survey(Place(str(cwd), str(machine.home), {}), hosts or tuple(HOSTS))


def verdict_on(path: Path, host: str, seen: Survey) -> Verdict:
    """The verdict on the file at a path or on the SKILL.md of a folder."""
    paths = (str(path), str(path / "SKILL.md"))
    (sighting,) = [sighting for sighting in seen.sightings if set(paths) & {*sighting.ways, sighting.real_path}]
    return judge(sighting, seen.views[host], seen)


def letter(verdict: Verdict) -> str:
    """A verdict as the tables of cases write it."""
    if verdict.visible is not False:
        return "Y" if verdict.visible else "?"
    if verdict.verdict == "hidden-from-model":
        return "H"
    return "e" if verdict.told else "l" if verdict.detail.endswith("log says so)") else "-"


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
        seen = take_survey(Place(str(cwd), str(machine.home), {}), tuple(HOSTS), path=path)

    verdicts = {place: [verdict_on(machine.base / place, host, seen) for host in COLUMNS] for place in case.expected}

    assert {place: " ".join(map(letter, row)) for place, row in verdicts.items()} == case.expected, "\n".join(
        str(verdict) for row in verdicts.values() for verdict in row
    )
