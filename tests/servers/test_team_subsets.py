"""A token for some names learns nothing of other skills: not by scores, confidence, notes or the order of results."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.mcps import run
from support.published_servers import packed, running_server
from support.teams import RunningTeam, running_team
from support.trees import Machine, write_skill

from skillshelf import SearchReport, Shelf
from skillshelf.servers.team.catalogs import PartOfShelf, key_of
from skillshelf.servers.team.database import SqliteDatabase
from skillshelf.servers.team.values import Caller

_WORDS_TEXT = (
    "review deploy colour zebra kafka invoice frontend database Datenbank Rechnung prüfen und der die mit für"
    " 数据库 审查代码 データベース 領収書 e-mail front end C# GitHub"
)
WORDS = _WORDS_TEXT.split()
QUERIES = (
    "zebra",
    "zebrra",
    "reveiw",
    "invoicce kafka",
    "frontend review zebra",
    "front end",
    "web-3",
    "web",
    "审查代码",
    "请帮我审查数据库的代码",
    "データベースの領収書",
    "数",
    "die Rechnung mit der Datenbank prüfen",
    "colour or color of the e-mail",
    "unheard-of words alone",
    "Please review this. "
    + "The invoice of the database was not deployed with kafka. " * 8
    + "Deploy the frontend now.",
)
SUBSET = "skills:read:web-*"


def text_of(name: str, words: random.Random, vocabulary: list[str]) -> str:
    about = " ".join(words.choices(vocabulary, k=words.randrange(2, 6)))
    body = " ".join(words.choices(vocabulary, k=words.randrange(0, 30)))
    return f"---\nname: {name}\ndescription: Use it for {about}.\n---\n{body}\n"


def put_visible(machine: Machine, seed: int, count: int) -> None:
    words = random.Random(seed)
    known = words.sample(WORDS, len(WORDS) * 2 // 3)
    for number in range(count):
        write_skill(machine.home / ".agents/skills", f"web-{number}", text_of(f"web-{number}", words, known))


def put_hidden(machine: Machine, seed: int, count: int) -> None:
    words = random.Random(-seed)
    for number in range(count):
        # Before, between and after the others.
        name = f"{words.choice(('api', 'web.x', 'zzz', 'web'))}x{number}"
        write_skill(machine.home / ".agents/skills", name, text_of(name, words, WORDS))


def shown(report: SearchReport) -> dict[str, Any]:
    results = [(one.skill.name, one.score, one.reason, one.why, len(one.copies)) for one in report.results]
    return {**report.to_dict(), "results": results, "terms": report.terms}


def both(machine: Machine, tmp_path: Path, seed: int, *, visible: int, hidden: int) -> tuple[Shelf, Shelf]:
    """The part of a shelf with other skills, and a shelf that has never had others."""
    (tmp_path / "other").mkdir()
    other = Machine(tmp_path / "other")
    for one in (machine, other):
        put_visible(one, seed, visible)
    put_hidden(machine, seed, hidden)
    whole = machine.shelf()
    assert len(whole.catalog.skills) == visible + hidden
    return PartOfShelf(whole, lambda skill: skill.name.startswith("web-")), other.shelf()


@pytest.mark.parametrize("seed", range(6))
def test_a_part_is_searched_as_if_there_were_nothing_else(machine: Machine, tmp_path: Path, seed: int) -> None:
    part, alone = both(machine, tmp_path, seed, visible=12 * (seed + 1), hidden=90)

    for query in QUERIES:
        for limit in (1, 8, 50):
            assert shown(part.search(query, limit=limit)) == shown(alone.search(query, limit=limit)), query


def test_many_equal_skills_beyond_the_first_results_are_ranked_as_if_there_were_nothing_else(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Machine(tmp_path / "other")
    for one in (machine, other):
        for number in range(150):
            about = "Use it for zebra." if number % 5 else f"Use it for zebra number {number}."
            text = f"---\nname: web-{number:03}\ndescription: {about}\n---\nzebra\n"
            write_skill(one.home / ".agents/skills", f"web-{number:03}", text)
    for number in range(120):
        text = f"---\nname: z{number:03}\ndescription: Zebra, zebra and zebra.\n---\nzebra zebra\n"
        write_skill(machine.home / ".agents/skills", f"z{number:03}", text)
    part = PartOfShelf(machine.shelf(), lambda skill: skill.name.startswith("web-"))
    alone = other.shelf()

    for query in ("zebra", "zebra number 45", "zebrra"):
        for limit in (1, 8, 50):
            assert shown(part.search(query, limit=limit)) == shown(alone.search(query, limit=limit)), query


def test_a_part_of_a_part_and_an_empty_part_are_searched(machine: Machine, tmp_path: Path) -> None:
    part, _ = both(machine, tmp_path, 3, visible=20, hidden=20)

    inner = PartOfShelf(part, lambda skill: skill.name.endswith("1"))
    assert {one.skill.name for one in inner.search("review zebra frontend kafka").results} == {"web-1", "web-11"}
    assert PartOfShelf(part, lambda skill: False).search("review zebra").to_dict()["confidence"] == 0.0


def test_a_part_follows_what_changes_in_the_whole(machine: Machine, tmp_path: Path) -> None:
    part, _ = both(machine, tmp_path, 1, visible=3, hidden=3)
    assert part.search("pelican").results == ()

    write_skill(machine.home / ".agents/skills", "web-new", "---\nname: web-new\ndescription: A pelican.\n---\n")
    part.refresh()

    assert [one.skill.name for one in part.search("pelican").results] == ["web-new"]


# The whole server ---------------------------------------------------------------------------------


def answers(machine: Machine, folder: Path) -> list[Any]:
    """What a holder of the subset is told for every query, by the API, by pages and by the protocol of models."""
    from test_team_mcp import connected, texts

    found: list[Any] = []

    async def use(team: RunningTeam, token: str) -> None:
        async with connected(team.url, token, "newer") as client:
            for query in QUERIES:
                result = await client.call_tool("skill_search", {"query": query})
                found.append((texts(result), result.structured_content))

    with running_team(machine, SqliteDatabase(str(folder / "team.sqlite"))) as team:
        team.wait_until_ready()
        token = team.token("bob", SUBSET)
        for query in QUERIES:
            found.append(team.get(f"/api/v1/search?limit=20&q={quote(query)}", token).body)
            found.append(team.get(f"/search?q={quote(query)}", token).body)
        run(use, team, token)
    return found


def test_the_api_and_models_are_told_the_same_whatever_else_there_is(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Machine(tmp_path / "other")
    for one in (machine, other):
        put_visible(one, 4, 30)
    put_hidden(machine, 4, 60)

    with_others = answers(machine, machine.base)

    assert with_others == answers(other, tmp_path)
    assert any(b"searched for" in one for one in with_others if isinstance(one, bytes))


def test_releases_of_hidden_names_change_no_answer_to_a_subset(tmp_path: Path) -> None:
    words = random.Random(5)
    visible = {f"web-{number}": " ".join(words.choices(WORDS, k=12)) for number in range(12)}
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:
        bobs = [Caller("bob", tenant, frozenset({SUBSET})) for tenant in ("acme", "umbrella")]
        for number, (name, text) in enumerate(visible.items()):
            for tenant in ("acme", "umbrella"):
                admin = Caller("root", tenant, frozenset({"admin"}))
                server.json(admin, "POST", "/api/v1/releases", packed(name, text), 201)
            hidden = packed(f"hidden-{number}", " ".join(words.choices(WORDS, k=20)))
            server.json(admin, "POST", "/api/v1/releases", hidden, 201)
        for tenant in ("acme", "umbrella"):
            while server.published.shelf_of(tenant).bring_near()[0]:
                pass
        for query in QUERIES:
            first, second = (server.json(bob, "GET", "/api/v1/search", q=query) for bob in bobs)
            assert first == second, query
        assert [len(server.server.services.catalogs.skills(key_of(bob)).visible) for bob in bobs] == [12, 12]
        assert json.dumps(first)
