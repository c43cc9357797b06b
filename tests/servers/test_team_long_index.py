"""A team with more skills than an index may hold: the index says where it ends, and every skill can be installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.host_runs import Run, json_output
from support.published_servers import packed
from support.team_routes import team_with_releases
from support.teams import RunningTeam
from support.trees import Machine

from skillshelf.core.limits import SOURCE_ENTRIES
from skillshelf.install.well_known import INDEX_PATH
from skillshelf.servers.team.database import Database, SqliteDatabase

MORE = SOURCE_ENTRIES + 300


def fill(database: Database, tree: str) -> None:
    """Add releases as rows: publishing thousands one by one takes minutes."""
    names = [f"skill-{number:05}" for number in range(MORE)]
    with database.transaction("default") as transaction:
        transaction.execute_many(
            "insert into release (tenant, name, version, tree, publisher, published, rev, description) "
            "values ('default', ?, '1', ?, 'ada', 1, 1, ?)",
            [(name, tree, f"Use it for {name}.") for name in names],
        )
        transaction.execute_many(
            "insert into channel (tenant, name, channel, version, rev) values ('default', ?, 'latest', '1', 1)",
            [(name,) for name in names],
        )


@pytest.fixture
def team(machine: Machine, tmp_path: Path) -> Iterator[RunningTeam]:
    database = SqliteDatabase(str(tmp_path / "team.sqlite"))
    with team_with_releases(machine, database, tmp_path) as running:
        own = running.token("ada", "admin")
        last = running.ask("POST", "/api/v1/releases?version=1", own, body=packed("zz-last", "The last one.")).json
        fill(database, last["release"]["tree"])
        yield running


def test_a_long_index_ends_with_its_total_and_the_address_of_the_rest(team: RunningTeam) -> None:
    own = team.token("ada", "skills:read")

    first = team.get(INDEX_PATH, own).json
    rest = team.get(f"{INDEX_PATH.rpartition('/')[0]}/{first['next']}", own).json
    by_name = team.get(f"{INDEX_PATH}?name=zz-last,skill-04200,nobody", own).json

    assert len(first["skills"]) == SOURCE_ENTRIES
    assert first["total"] == rest["total"] == len(first["skills"]) + len(rest["skills"])
    assert "next" not in rest
    assert len({one["name"] for one in first["skills"] + rest["skills"]}) == first["total"]
    assert [one["name"] for one in by_name["skills"]] == ["skill-04200", "zz-last"]


@pytest.mark.slow
def test_a_skill_beyond_the_end_of_the_index_is_installed_and_updated_by_its_name(
    machine: Machine, run: Run, team: RunningTeam, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(own := team.token("ada", "admin"))
    access = ["--allow-http", "--token-file", str(token)]

    added = json_output(run, "add", team.url, "--skill", "zz-last", *access, "--yes", schema="install")
    assert [one["name"] for one in added["actions"]] == ["zz-last"]
    assert "of its" in json.dumps(added["reviews"])
    assert run("outdated", *access)[0] == 0
    assert team.ask("POST", "/api/v1/releases?version=2", own, body=packed("zz-last", "A newer one.")).status == 201
    assert run("outdated", *access)[0] == 1
    assert run("update", *access, "--yes")[0] == 0
    assert "A newer one." in (machine.repo / ".agents/skills/zz-last/SKILL.md").read_text()
    missing = run("add", team.url, "--skill", "zz-lost", *access, "--yes")
    assert missing[0] == 3
