"""What the pages of a team server say of the hosts of its clients: what each makes of a skill once it is installed."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.teams import RunningTeam, running_team
from support.trees import Machine, write_skill
from support.waiting import wait_for

from skillshelf.cli.main import main
from skillshelf.config.hosts import HOSTS
from skillshelf.core.environment import make_environment
from skillshelf.core.values import CatalogSkill
from skillshelf.hosts.survey import roots_of_hosts
from skillshelf.servers.team.host_verdicts import HostVerdicts
from skillshelf.servers.team.sqlite_database import SqliteDatabase
from skillshelf.servers.team.values import BlobsAway
from skillshelf.servers.web.catalogue import Preparation

TEXTS = {
    "plain": "---\nname: plain\ndescription: Does it. Use when asked.\n---\nDo it.\n",
    "colon": "---\nname: colon\ndescription: Does it. Use when asked to: ship, roll back.\n---\nDo it.\n",
    "long": f"---\nname: long\ndescription: {'x ' * 1500}\n---\nDo it.\n",
    "marked": "\ufeff---\nname: marked\ndescription: Does it.\n---\nDo it.\n",
    "Wrong_Name": "---\nname: Wrong_Name\ndescription: Does it.\n---\nDo it.\n",
    "withheld": "---\nname: withheld\ndescription: Does it.\ndisable-model-invocation: true\n---\nDo it.\n",
    "typed": "---\nname: typed\ndescription: Does it.\nallowed-tools: {a: 1}\nmetadata: 7\n---\nDo it.\n",
    "empty": "---\nname: empty\ndescription: Does it.\n---\n",
}


def text_of(skill: CatalogSkill) -> bytes:
    return TEXTS[skill.name].encode()


def known(
    verdicts: HostVerdicts, skills: Sequence[CatalogSkill], read: Callable[[CatalogSkill], bytes]
) -> dict[str, int]:
    """Return for how many hosts there is a verdict on each skill, once that is found out."""

    def look() -> dict[str, int] | None:
        found = verdicts.of_all(skills, read)
        return None if isinstance(found, Preparation) else {skill.name: len(found[skill.path]) for skill in skills}

    return wait_for(look)


def skill_named(machine: Machine, name: str) -> CatalogSkill:
    return next(skill for skill in machine.shelf().catalog.skills if skill.name == name)


@pytest.mark.parametrize("name", TEXTS)
def test_a_host_makes_of_a_published_skill_what_why_says_once_it_is_installed(
    machine: Machine, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(machine.home / ".agents/skills", name, TEXTS[name])
    found = HostVerdicts().of(skill_named(machine, name), text_of)

    assert [answer.host for answer in found] == list(HOSTS)
    for answer in found:
        home, cwd = tmp_path / answer.host, tmp_path / "work"
        cwd.mkdir(exist_ok=True)
        roots = roots_of_hosts(make_environment(str(cwd), str(home), {}))[answer.host].roots
        write_skill(Path(next(root.path for root in roots if root.path.startswith(f"{home}/"))), name, TEXTS[name])
        words = ["why", name, "--host", answer.host, "--json", "--home", str(home), "--cwd", str(cwd)]
        main([*words, "--no-cache"])
        (candidate,) = json.loads(capsys.readouterr().out)["candidates"]
        (expected,) = candidate["hosts"]
        assert (answer.visible, answer.verdict, answer.told) == (
            expected["visible"],
            expected["verdict"],
            expected["told"],
        ), answer.host
        assert "/dev/null" not in answer.detail


def test_a_skill_of_the_servers_machine_does_not_stand_in_the_way(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many hosts read folders from the working directory up to the root of the disk, where the server may have some."""
    write_skill(machine.home / ".agents/skills", "plain", TEXTS["plain"])
    alone = HostVerdicts().of(skill_named(machine, "plain"), text_of)
    server = machine.base / "server"
    places = roots_of_hosts(make_environment(str(server), "/dev/null/home", {})).values()
    for root in {root.path for place in places for root in place.roots if root.path.startswith(f"{server}/")}:
        write_skill(Path(root), "plain", TEXTS["plain"].replace("Does it", "Another"))

    monkeypatch.setattr("skillshelf.servers.team.host_verdicts._CWD", str(server))

    assert HostVerdicts().of(skill_named(machine, "plain"), text_of) == alone


def test_skills_of_which_the_files_are_away_are_asked_for_again_later(machine: Machine) -> None:
    for name in ("plain", "colon"):
        write_skill(machine.home / ".agents/skills", name, TEXTS[name])
    skills, now, away = machine.shelf().catalog.skills, [0.0], [True]
    verdicts = HostVerdicts(clock=lambda: now[0])

    def read(skill: CatalogSkill) -> bytes:
        if away[0] and skill.name == "colon":
            raise BlobsAway("the files of this skill cannot be had now")
        return text_of(skill)

    assert known(verdicts, skills, read) == {"colon": 0, "plain": len(HOSTS)}
    away[0], now[0] = False, 150.0
    assert known(verdicts, skills, read) == {"colon": len(HOSTS), "plain": len(HOSTS)}


def test_a_skill_that_cannot_be_read_is_read_again_later(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "plain", TEXTS["plain"])
    skill, now, data = skill_named(machine, "plain"), [0.0], list[bytes | None]([None])
    verdicts = HostVerdicts(clock=lambda: now[0])

    assert verdicts.of(skill, lambda _: data[0]) == ()
    data[0], now[0] = TEXTS["plain"].encode(), 150.0
    assert len(verdicts.of(skill, lambda _: data[0])) == len(HOSTS)


def test_a_blob_store_that_is_away_is_asked_a_few_times_and_then_left_alone_for_a_while(machine: Machine) -> None:
    for name in TEXTS:
        write_skill(machine.home / ".agents/skills", name, TEXTS[name])
    skills, now, asked = machine.shelf().catalog.skills, [0.0], list[str]()
    verdicts = HostVerdicts(clock=lambda: now[0])

    def read(skill: CatalogSkill) -> bytes:
        asked.append(skill.name)
        raise BlobsAway("the files of this skill cannot be had now")

    assert known(verdicts, skills, read) == dict.fromkeys(TEXTS, 0)
    assert len(asked) == 3
    now[0] = 40.0
    assert known(verdicts, skills, read) == dict.fromkeys(TEXTS, 0)
    assert len(asked) == len(set(asked)) == 6


def test_a_skill_that_fails_to_be_judged_keeps_no_other_from_it_and_is_named(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("plain", "colon"):
        write_skill(machine.home / ".agents/skills", name, TEXTS[name])
    skills, verdicts = machine.shelf().catalog.skills, HostVerdicts()

    def read(skill: CatalogSkill) -> bytes:
        if skill.name == "colon":
            raise ZeroDivisionError("odd")
        return text_of(skill)

    assert known(verdicts, skills, read) == {"colon": 0, "plain": len(HOSTS)}
    assert "what hosts make of a skill is not known: colon: ZeroDivisionError: odd" in capsys.readouterr().err


def test_the_last_skills_that_were_asked_for_are_kept(machine: Machine) -> None:
    for name in ("plain", "colon", "empty"):
        write_skill(machine.home / ".agents/skills", name, TEXTS[name])
    verdicts, asked = HostVerdicts(most=2), []

    def read(skill: CatalogSkill) -> bytes:
        asked.append(skill.name)
        return text_of(skill)

    for name in ("plain", "colon", "colon", "empty", "plain"):
        verdicts.of(skill_named(machine, name), read)
    assert asked == ["plain", "colon", "empty", "plain"]


@pytest.fixture
def team(machine: Machine, tmp_path: Path) -> Iterator[RunningTeam]:
    for name in ("plain", "colon"):
        write_skill(machine.home / ".agents/skills", name, TEXTS[name])
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as running:
        running.wait_until_ready()
        yield running
        wait_for(lambda: None if any(one.name == "skillshelf-hosts" for one in threading.enumerate()) else True)


def matrix(team: RunningTeam, token: str) -> Callable[[], str | None]:
    def look() -> str | None:
        answer = team.get("/hosts", token)
        assert answer.status == 200
        return None if b"data-waiting" in answer.body else answer.body.decode()

    return look


def test_the_page_of_hosts_shows_every_skill_that_the_caller_may_read_and_no_other(team: RunningTeam) -> None:
    everything = wait_for(matrix(team, team.token("ada", "skills:read")))
    part = wait_for(matrix(team, team.token("bob", "skills:read:pl*")))

    assert re.findall(r'<a href="/skills/([^/]+)/hosts">', everything) == ["colon", "plain"]
    assert re.findall(r'<a href="/skills/([^/]+)/hosts">', part) == ["plain"]
    row = everything[everything.index("/skills/colon/hosts") : everything.index("/skills/plain/hosts")]
    assert re.findall(r'class="(\w+)" data-label="(pi|claude-code)"', row) == [("yes", "claude-code"), ("no", "pi")]


def test_what_hosts_make_of_a_skill_is_found_out_for_each_group_of_callers_anew(team: RunningTeam) -> None:
    """An answer that is there at once would tell that somebody else has the same files."""
    wait_for(matrix(team, team.token("ada", "skills:read")))
    assert matrix(team, team.token("bob", "skills:read:pl*"))() is None


def test_the_page_of_a_skill_says_who_sees_it_once_it_is_installed_and_why_not(team: RunningTeam) -> None:
    token = team.token("ada", "skills:read")
    page, why = (team.get(f"/skills/colon{part}", token).body.decode() for part in ("", "/hosts"))

    assert "Who sees it once it is installed" in page
    assert '<a href="/skills/colon/hosts">Why, host by host</a>' in page
    assert "judged as if it were installed for each host" in why
    assert "needs quotes" in why[why.index('data-host="pi"') :]
    assert "/dev/null" not in why
    assert team.get("/skills/colon/hosts", team.token("bob", "skills:read:pl*")).status == 404
