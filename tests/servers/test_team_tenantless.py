"""Every query of the application loses its tenant, over all routes and actions: another tenant still sees nothing.

In PostgreSQL row-level security holds, in SQLite the file of each tenant. With a role for which row-level security does
not count the same requests show everything, so the statements are really without their tenant.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.journal_streams import chain, events
from support.postgres import PASSWORD, PostgresCluster
from support.published_servers import packed
from support.team_routes import SECRET, STREAM, WORD, asked, reads_of, team_with_releases
from support.teams import RunningTeam
from support.tenantless import TenantlessPostgres, TenantlessSqlite, conditions_in_source, without_tenant
from support.trees import Machine

from skillshelf.servers.team.database import Database, PostgresDatabase, SqliteDatabase, migrate_postgres
from skillshelf.servers.team.journal_intake import SERVER, set_content, take
from skillshelf.servers.team.journal_removal import forget, remove_days
from skillshelf.servers.team.migrations import SHARED_TABLES, TENANT_TABLES
from skillshelf.servers.team.tokens import create_token, end_login, list_members, list_tokens, revoke_tokens, set_member
from skillshelf.servers.team.values import Caller

if TYPE_CHECKING:
    from _pytest.fixtures import SubRequest

OWN_STREAM = "cd" * 16


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def tenantless(request: SubRequest, tmp_path: Path) -> Iterator[tuple[Any, Database]]:
    """A database without tenants in its statements, and the same database as it is."""
    if request.param == "postgresql":
        cluster: PostgresCluster = request.getfixturevalue("cluster")
        address = migrate_postgres(cluster.new_database(), PASSWORD).address
        with closing(TenantlessPostgres(address)) as stripped, closing(PostgresDatabase(address)) as whole:
            stripped.require_application_role()
            yield stripped, whole
        return
    path = str(tmp_path / "team.sqlite")
    with closing(TenantlessSqlite(path)) as stripped, closing(SqliteDatabase(path)) as whole:
        yield stripped, whole


def contents(database: Database, tenant: str) -> dict[str, list[Any]]:
    """All rows that a tenant has."""
    with database.transaction(tenant, readonly=True) as transaction:
        return {
            table: sorted(map(repr, transaction.rows(f"select * from {table}")))
            for table in (*TENANT_TABLES, *SHARED_TABLES)
        }


def fill(team: RunningTeam, tenant: str, subject: str, name: str, stream: str) -> None:
    """Let a tenant have some of everything: people, a release with an approval, a login, a journal and an alarm."""
    token = team.token(subject, "admin", tenant=tenant)
    set_member(team.database, tenant, subject, "publisher")
    done = team.ask("POST", "/api/v1/releases?version=1", token, body=packed(name, f"The {name} text."))
    assert done.status == 201, done.body
    for path, body in {
        f"/api/v1/skills/{name}/versions/1/approve": b"{}",
        f"/api/v1/journal?stream={stream}&machine={name}-box": b"".join(
            line + b"\n" for line in chain(events(7, session=f"{name}-session", subject=f"{name}-person"))
        ),
    }.items():
        done = team.ask("POST", path, token, body=body)
        assert done.status == 200, done.body
    form = {"content-type": "application/x-www-form-urlencoded"}
    entered = team.ask("POST", "/login", body=f"token={token}".encode(), headers=form)
    cookie = entered.headers["set-cookie"].partition(";")[0]
    assert team.get("/api/v1/me", headers={"cookie": cookie}).json["tenant"] == tenant
    of_role = team.token(subject, tenant=tenant)
    assert "skills:publish" in team.get("/api/v1/me", of_role).json["scopes"]


def change_name_of_others(team: RunningTeam, token: str) -> None:
    """Publish and yank releases of a name that the first tenant has, too: its versions do not count."""
    for body, version in (("One.", "1"), ("Two.", "2"), ("Two.", "2")):
        done = team.ask("POST", "/api/v1/releases", token, body=packed(SECRET, body))
        assert done.json["release"]["version"] == version
    for version in ("2", "1"):
        done = team.ask("POST", f"/api/v1/skills/{SECRET}/versions/{version}/yank", token, body=b"{}")
        assert done.json["changed"] is True


@contextmanager
def two_tenants(machine: Machine, database: Any, folder: Path) -> Iterator[RunningTeam]:
    with team_with_releases(machine, database, folder) as team:
        fill(team, "default", "ada", SECRET, STREAM)
        fill(team, "acme", "eve", "own-notes", OWN_STREAM)
        yield team


def leaks_of(team: RunningTeam, token: str, methods: Container[str] = ("GET", "POST", "PUT", "*")) -> list[str]:
    """The addresses whose answers say something about the first tenant that the request did not say itself."""
    found = []
    for route in [route for route in reads_of(team) if route.method in methods]:
        for address, answer in asked(team, route, token):
            said = answer.body
            for known in (SECRET, STREAM, address.partition("?")[0].rpartition("/")[2]):
                said = said.replace(known.encode(), b"")
            if WORD.encode() in said or re.search(rb"\bada\b", said):
                found.append(f"{route.method} {address}")
    return found


def act_as(database: Database, tenant: str) -> None:
    """Do what the commands of the server do, for one tenant, with the names of the other one."""
    made = create_token(database, tenant, "mallory", ["admin"])
    assert {one.tenant for one in list_tokens(database, tenant)} == {tenant}
    assert "ada" not in {one.subject for one in list_tokens(database, tenant)}
    assert "ada" not in {one.subject for one in list_members(database, tenant)}
    assert revoke_tokens(database, tenant, "ada") == (0, 0)
    assert revoke_tokens(database, tenant, made.id).tokens == 1
    set_member(database, tenant, "ada", "admin")
    set_member(database, tenant, "ada", None)
    set_content(database, tenant, "digest")
    end_login(database, f"skl_{tenant}_{'A' * 43}")
    caller = Caller("mallory", tenant, frozenset({"admin"}))
    served = chain(events(3, session="served", subject="mallory"))
    set_content(database, tenant, "full")
    for _ in range(2):
        take(database, caller, "ef" * 16, served, origin=SERVER)
    take(database, caller, "cc" * 16, chain(events(2, session="named", subject="zoe")))
    assert forget(database, tenant, "ada").lines == 0
    assert forget(database, tenant, "zoe").lines == 2
    assert forget(database, tenant, "mallory").lines == 3
    # What a batch begins with is compared with what its session stored before.
    take(database, caller, "ba" * 16, chain(events(4, session="read")[2:3]))
    remove_days(database, tenant, 1, now=2 * 10**12)


def test_no_route_and_no_action_shows_or_changes_another_tenant_if_no_query_names_its_tenant(
    machine: Machine, tenantless: tuple[Any, Database], tmp_path: Path
) -> None:
    stripped, whole = tenantless
    with two_tenants(machine, stripped, tmp_path) as team:
        own, other = team.token("ada", "admin"), team.token("eve", "admin", tenant="acme")
        before, rows = len(stripped.stripped), contents(whole, "default")

        leaks = leaks_of(team, other)
        act_as(stripped, "acme")
        change_name_of_others(team, other)

        assert leaks == []
        assert len(stripped.stripped) - before > 100
        after = contents(whole, "default")
        # The first tenant itself gets new tokens by `asked`, and a snapshot of its index once that is built.
        own_changes = ("token", "catalog_rev")
        changed = [table for table in rows if rows[table] != after[table] and table not in own_changes]
        assert changed == []
        assert set(rows["token"]) <= set(after["token"])
        assert leaks_of(team, own, {"GET"}), "the requests of this test show a tenant its own things"
    seen = {re.sub(r"\s+", " ", sql) for sql in stripped.stripped}
    unseen = [part for part in conditions_in_source() if not any(part in sql for sql in seen)]
    assert not unseen, "the application has statements that this test does not run: " + "; ".join(unseen)


@pytest.mark.slow
def test_the_same_requests_show_everything_where_row_level_security_does_not_count(
    machine: Machine, cluster: PostgresCluster, tmp_path: Path
) -> None:
    owner = cluster.new_database()
    migrate_postgres(owner, PASSWORD)
    # The user of the cluster is a superuser; `serve` would refuse to start as such.
    with closing(TenantlessPostgres(owner)) as stripped, two_tenants(machine, stripped, tmp_path) as team:
        leaks = leaks_of(team, team.token("eve", "admin", tenant="acme"), {"GET"})

    assert {"/api/v1/releases", "/api/v1/journal/streams", "/api/v1/journal/sessions"} <= {
        one.split()[1].partition("?")[0] for one in leaks
    }


@pytest.mark.parametrize(
    ("sql", "stripped"),
    [
        ("select a from t where tenant = ? and b = ?", "select a from t where (? is not null) and b = ?"),
        (
            "select 1 from c join r on r.tenant = c.tenant and r.n = c.n where c.tenant = ?",
            "select 1 from c join r on 1 = 1 and r.n = c.n where (? is not null)",
        ),
        ("select id from tenant where id = ?", "select id from tenant where (? is not null)"),
        ("update t set tenant_name = ? where id = ?", "update t set tenant_name = ? where id = ?"),
    ],
)
def test_a_statement_loses_its_tenant_and_nothing_else(sql: str, stripped: str) -> None:
    assert without_tenant(sql, "sqlite") == stripped
