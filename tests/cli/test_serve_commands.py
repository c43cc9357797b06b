"""The command `serve` besides serving: tokens, tenants, members, migration."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from schemas import SCHEMAS
from support.needs import needs, require
from support.published_servers import served_process
from support.trees import Machine
from support.waiting import wait_for

import skillshelf
from skillshelf.core.environment import VARIABLES
from skillshelf.servers.team.database_address import DatabaseAddress
from skillshelf.servers.team.migrations import VERSION


def checked(schema: str, value: Any) -> Any:
    """Return a value that is as its schema says."""
    jsonschema.validate(value, SCHEMAS[schema])
    return value


def test_a_token_is_made_and_shown_once(machine: Machine) -> None:
    made = checked("serve-token", machine.run_json("serve", "token", "create", "ada", "--scope", "skills:read,admin"))
    plain = machine.run("serve", "token", "create", "bob", "--expires", "90d")

    assert made["scopes"] == ["admin", "skills:read"]
    assert (made["subject"], made["tenant"]) == ("ada", "default")
    assert re.fullmatch(r"sks_default_[A-Za-z0-9_-]{43}\n", plain.stdout)
    assert "it is shown this once" in plain.stderr
    listed = machine.run("serve", "token", "list")
    assert "ada" in listed.stdout
    assert made["token"] not in listed.stdout + json.dumps(machine.run_json("serve", "token", "list"))
    found = checked("serve-tokens", machine.run_json("serve", "token", "list"))
    assert [one["subject"] for one in found["tokens"]] == ["ada", "bob"]
    assert found["tokens"][1]["expires"] > found["tokens"][1]["created"]


def test_a_token_is_revoked_by_its_id_or_its_subject(machine: Machine) -> None:
    made = machine.run_json("serve", "token", "create", "ada")

    assert checked("serve-revoked", machine.run_json("serve", "token", "revoke", made["id"]))["revoked"] == 1
    again = machine.run("serve", "token", "revoke", "ada")
    assert (again.returncode, again.stdout) == (1, "")
    assert "no valid token or login has the id or subject 'ada'" in again.stderr


def test_a_tenant_has_its_own_tokens_and_members(machine: Machine) -> None:
    assert checked("serve-tenant", machine.run_json("serve", "tenant", "create", "acme")) == {
        "tenant": "acme",
        "created": True,
    }
    assert machine.run("serve", "tenant", "create", "acme").returncode == 1
    machine.run_json("serve", "token", "create", "eve", "--tenant", "acme")

    assert machine.run_json("serve", "token", "list")["tokens"] == []
    assert [one["subject"] for one in machine.run_json("serve", "token", "list", "--tenant", "acme")["tokens"]] == [
        "eve"
    ]
    member = checked("serve-member", machine.run_json("serve", "member", "set", "eve", "publisher", "--tenant", "acme"))
    assert member == {"tenant": "acme", "subject": "eve", "role": "publisher"}
    assert machine.run_json("serve", "member", "remove", "eve", "--tenant", "acme")["role"] is None


def test_members_and_tenants_are_listed_and_a_token_names_the_role_that_it_has(machine: Machine) -> None:
    machine.run_json("serve", "tenant", "create", "acme")
    for subject, role in (("eve", "publisher"), ("bob", "reader")):
        machine.run_json("serve", "member", "set", subject, role, "--tenant", "acme")
    machine.run_json("serve", "token", "create", "bob", "--tenant", "acme")

    members = checked("serve-members", machine.run_json("serve", "member", "list", "--tenant", "acme"))
    tenants = checked("serve-tenants", machine.run_json("serve", "tenant", "list"))
    tokens = checked("serve-tokens", machine.run_json("serve", "token", "list", "--tenant", "acme"))

    assert members["members"] == [{"subject": "bob", "role": "reader"}, {"subject": "eve", "role": "publisher"}]
    assert [one["tenant"] for one in tenants["tenants"]] == ["acme", "default"]
    assert [one["role"] for one in tokens["tokens"]] == ["reader"]
    assert machine.run("serve", "member", "list", "--tenant", "acme").stdout.split() == [
        *("SUBJECT", "ROLE"),
        *("bob", "reader"),
        *("eve", "publisher"),
    ]
    assert machine.run("serve", "member", "list").stdout.split() == ["SUBJECT", "ROLE"]
    assert re.match(r"TENANT +CREATED\nacme +20\S+\ndefault +20\S+\n$", machine.run("serve", "tenant", "list").stdout)
    assert "  of the role reader  " in machine.run("serve", "token", "list", "--tenant", "acme").stdout
    machine.run("serve", "member", "remove", "bob", "--tenant", "acme")
    assert "  none, without a role  " in machine.run("serve", "token", "list", "--tenant", "acme").stdout


def test_taking_a_role_away_from_nobody_is_a_negative_answer(machine: Machine) -> None:
    done = machine.run("serve", "member", "remove", "nosuch")

    assert (done.returncode, done.stdout) == (1, "")
    assert "'nosuch' has no role in default" in done.stderr


@pytest.mark.slow
def test_tenants_of_postgresql_are_listed_by_a_role_that_reads_all_rows_and_by_no_other(machine: Machine) -> None:
    from support.postgres import postgres_cluster

    with postgres_cluster() as cluster:
        import psycopg

        superuser = cluster.new_database()
        assert "has no tables yet" in machine.run("serve", "tenant", "list", "--database", superuser).stderr
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("create role plain_owner login createrole")
            connection.execute("grant create on database team1 to plain_owner")
            connection.execute("create role skillshelf_backup login bypassrls")
            connection.execute("grant pg_read_all_data to skillshelf_backup")
        owner, backup = (cluster.address("team1", user=role) for role in ("plain_owner", "skillshelf_backup"))
        address = machine.run_json("serve", "migrate", "--database", owner)["address"]
        machine.run_json("serve", "tenant", "create", "acme", "--database", address)
        machine.run_json("serve", "member", "set", "ada", "reader", "--database", address)
        machine.run_json("serve", "token", "create", "ada", "--database", address)

        found = machine.run_json("serve", "tenant", "list", "--database", backup)

        assert [one["tenant"] for one in found["tenants"]] == ["acme", "default"]
        for role in (owner, address):
            refused = machine.run("serve", "tenant", "list", "--database", role)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert "this role sees one tenant at a time" in refused.stderr
        assert machine.run_json("serve", "member", "list", "--database", address)["members"][0]["role"] == "reader"
        assert "of the role reader" in machine.run("serve", "token", "list", "--database", address).stdout


def test_a_sqlite_database_is_migrated_when_it_is_opened(machine: Machine) -> None:
    found = checked("serve-migrate", machine.run_json("serve", "migrate"))

    assert found["address"] == f"sqlite:///{machine.home}/.local/share/skillshelf/team/team.sqlite"
    assert (found["before"], found["version"]) == (0, VERSION)
    assert machine.run_json("serve", "migrate")["before"] == VERSION
    assert (machine.home / ".local/share/skillshelf/team/team.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonsense",), "no action 'nonsense'"),
        (("token",), "no action 'token'"),
        (("token", "create"), "missing argument SUBJECT"),
        (("token", "create", "a", "b"), "unexpected argument 'b' after SUBJECT"),
        (("token", "create", "ada", "--scope", "all"), "no scope 'all'"),
        (("token", "create", "ada", "--expires", "soon"), "--expires takes a time"),
        (("token", "create", "ada", "--expires", "2001-01-01"), "--expires is in the past"),
        (("token", "create", "ada", "--tenant", "nobody"), "no tenant nobody"),
        (("token", "create", "ada", "--tenant", "../x"), "a tenant is named with"),
        (("token", "create", "ada", "--tenant", "nobody"), "make it with `skillshelf serve tenant create`"),
        (("token", "create", "a\nb"), "a subject has"),
        (("token", "create", " "), "a subject has"),
        (("member", "set", " ", "reader"), "a subject has"),
        (("token", "list", "x"), "takes no argument"),
        (("tenant", "create", "A B"), "a tenant is named with"),
        (("member", "set", "ada"), "takes a SUBJECT and a ROLE"),
        (("member", "set", "ada", "king"), "no role 'king'"),
        (("migrate", "--database", "mysql://x"), "--database takes"),
        (("migrate", "--database", "sqlite:////etc"), "the database /etc is a folder; name a file in it"),
        (("migrate", "--password-file", "x"), "--password-file is for PostgreSQL; the database is SQLite"),
        (("member", "set", "ada", "reader", "--scope", "admin"), "--scope is an option of `serve token create` alone"),
        (("token", "list", "--expires", "90d"), "--expires is an option of `serve token create` alone"),
        (("--password-file", "x"), "--password-file is an option of `serve migrate` alone"),
        (("--tenant", "acme"), "--tenant is an option of `serve token` and `serve member` and"),
        (("tenant", "list", "--tenant", "acme"), "--tenant is an option of"),
        (("token", "list", "--listen", "127.0.0.1:0"), "--listen is an option of `serve` alone"),
        (("token", "list", "--blobs", "x"), "--blobs is an option of `serve` alone"),
        (("migrate", "--trust"), "--trust is an option of `serve` alone"),
        (("token", "list", "--keep-lines", "1d"), "--keep-lines is an option of `serve` and `serve retention` alone"),
        (("token", "create", "ada", "--tenant", ""), "--tenant is empty; give it a value, or leave it out"),
        (("token", "create", "ada", "--scope", ""), "--scope is empty; give it a value, or leave it out"),
        (("token", "create", "ada", "--scope", "admin", "--scope", " , "), "--scope is empty"),
        (("--keep-lines", ""), "--keep-lines is empty"),
        (("--issuer", "https://login.example", "--audience", ""), "--audience is empty"),
    ],
)
def test_a_wrong_word_is_one_line(machine: Machine, words: tuple[str, ...], message: str) -> None:
    done = machine.run("serve", *words)

    assert done.returncode == (3 if "no tenant" in message or "tenant create" in message else 2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@needs("mcp")
@needs("watchfiles")
@needs("jwt")
@needs("starlette")
@pytest.mark.parametrize("url", ["ftp://login.example", "login.example", "https://login.example?a=1"])
def test_an_issuer_that_is_no_https_address_is_one_line(machine: Machine, url: str) -> None:
    done = machine.run("serve", "--issuer", url, "--audience", "a")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("skillshelf: --issuer takes an https address, such as https://login.example, not ")
    assert done.stderr.count("\n") == 1


def test_a_tenant_that_nobody_made_is_not_found(machine: Machine) -> None:
    for words in (("token", "list"), ("member", "list"), ("token", "revoke", "ada"), ("member", "set", "a", "reader")):
        done = machine.run("serve", *words, "--tenant", "nope")
        assert (done.returncode, done.stdout) == (3, "")
        assert "no tenant nope (make it with `skillshelf serve tenant create`)" in done.stderr


@pytest.mark.slow
def test_postgresql_is_migrated_by_its_owner_and_served_by_another_role(machine: Machine) -> None:
    from support.postgres import postgres_cluster

    with postgres_cluster() as cluster:
        owner = cluster.new_database()
        found = checked("serve-migrate", machine.run_json("serve", "migrate", "--database", owner))
        assert (found["role"], found["password"]) == ("skillshelf_app", True)
        address = found["address"]
        refused = machine.run("serve", "token", "create", "ada", "--database", owner)
        assert "is a superuser" in refused.stderr
        made = machine.run_json("serve", "token", "create", "ada", "--database", address)
        assert made["token"].startswith("sks_default_")
        (machine.base / "password").write_text("a longer password\n")
        again = machine.run("serve", "migrate", "--database", owner, "--password-file", str(machine.base / "password"))
        assert "skillshelf_app:a%20longer%20password@" in again.stdout


@pytest.mark.slow
def test_a_migration_writes_the_address_into_a_file_and_a_second_one_keeps_its_password(machine: Machine) -> None:
    from support.postgres import postgres_cluster

    with postgres_cluster() as cluster:
        owner, file = cluster.new_database(), machine.base / "database"
        file.touch(mode=0o644)
        words = ("serve", "migrate", "--database", owner, "--write-address", str(file))

        first = machine.run(*words)
        address = file.read_text()
        again = machine.run(*words)
        failed = machine.run(*words[:3], owner.replace("/team1?", "/nothing?"), *words[4:])

        assert (first.returncode, first.stdout, file.stat().st_mode & 0o777) == (0, "", 0o600)
        assert re.match(r"postgresql://skillshelf_app:[\w-]{32}@/team1\?", address)
        assert (again.returncode, again.stdout) == (0, "")
        assert "running servers keep their address" in again.stderr
        assert "for every server of the PostgreSQL cluster" in again.stderr
        assert f"{file} keeps its address, which has a password\n" in again.stderr
        assert failed.returncode != 0
        assert file.read_text() == address
        found = checked("serve-migrate", machine.run_json(*words))
        assert (found["address"], found["password"]) == (
            f"postgresql://skillshelf_app@{address.strip().split('@')[1]}",
            False,
        )
        assert machine.run("serve", "token", "list", "--database-file", str(file)).returncode == 0

        beside = cluster.new_database()
        other = machine.run("serve", "migrate", "--database", beside, "--write-address", str(file))
        assert "keeps its address, which has a password (it names PostgreSQL, team1 at " in other.stderr
        assert file.read_text() == address
        (machine.base / "owner").write_text(f"{owner}\n")
        own = machine.run("serve", "migrate", "--database", owner, "--write-address", str(machine.base / "owner"))
        assert (own.returncode, (machine.base / "owner").read_text()) == (2, f"{owner}\n")
        assert "owner has the address of another role" in own.stderr


@pytest.mark.slow
def test_a_migration_that_waited_for_another_keeps_the_password_that_the_other_wrote(machine: Machine) -> None:
    require("psycopg")
    import psycopg
    from support.postgres import postgres_cluster

    lock, waiting = (
        "select pg_advisory_lock(hashtext('skillshelf.migrate'))",
        "select 1 from pg_locks where not granted",
    )
    with postgres_cluster() as cluster, ThreadPoolExecutor() as others:
        owner, file = cluster.new_database(), machine.base / "database"
        address = machine.run("serve", "migrate", "--database", owner).stdout
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute(lock)
            late = others.submit(machine.run, "serve", "migrate", "--database", owner, "--write-address", str(file))
            wait_for(lambda: connection.execute(waiting).fetchone())
            file.write_text(address)

        assert f"{file} keeps its address, which has a password\n" in late.result().stderr
        assert file.read_text() == address


def test_the_address_of_a_sqlite_database_is_written_only_where_an_address_may_be(machine: Machine) -> None:
    def written(name: str) -> int:
        return machine.run("serve", "migrate", "--write-address", str(machine.base / name)).returncode

    (machine.base / "token").write_text("sks_default_x\n")
    (machine.base / "database").write_text("postgresql://skillshelf_app:secret@db.example/skills\n")

    assert [written(name) for name in ("address", "address", "token", "database", "missing/address", ".")] == [
        *(0, 0),
        *(2, 2, 2, 2),
    ]
    assert (machine.base / "address").read_text().startswith("sqlite:////")
    assert (machine.base / "address").stat().st_mode & 0o777 == 0o600
    assert (machine.base / "token").read_text() == "sks_default_x\n"
    assert "secret" in (machine.base / "database").read_text()


def test_the_address_of_the_database_comes_from_a_file_or_the_environment(machine: Machine) -> None:
    file = machine.home / "address"
    file.write_text(f"sqlite:///{machine.home}/one/team.sqlite\n")
    machine.run_json("serve", "token", "create", "ada", "--database-file", str(file))
    machine.env["SKILLSHELF_DATABASE"] = f"sqlite:///{machine.home}/two/team.sqlite"
    machine.run_json("serve", "token", "create", "bob")

    def subjects(*words: str) -> list[str]:
        return [one["subject"] for one in machine.run_json("serve", "token", "list", *words)["tokens"]]

    assert subjects() == ["bob"]
    assert (machine.home / "two/team.sqlite").exists()
    assert subjects("--database-file", str(file)) == ["ada"]
    assert subjects("--database", file.read_text().strip()) == ["ada"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--database-file", "HOME/missing"), "/missing cannot be read: No such file or directory"),
        (("--database-file", "HOME/empty"), "/empty does not hold one address"),
        (
            ("--database-file", "postgresql://ada:secret@db/x"),
            "database file postgresql://...@db/x cannot be read: No such file or directory",
        ),
        (("--database-file", "HOME/token"), "/token takes sqlite:///FILE or postgresql://..."),
        (("--database", "host=db password=secret"), "--database takes sqlite:///FILE or postgresql://..."),
        (("--database", "sqlite://secret"), "--database takes sqlite:///FILE or postgresql://..., not sqlite://..."),
        (("--database-file", ""), "--database-file is empty; name a file"),
        (("--database", ""), "--database is empty; give it an address, or leave it out for a SQLite file"),
        (
            ("--database-file", "HOME/empty", "--database", "sqlite:///x"),
            "--database and --database-file name one address",
        ),
    ],
)
def test_a_file_without_an_address_is_one_line(words: tuple[str, ...], told: str, machine: Machine) -> None:
    (machine.home / "empty").touch()
    (machine.home / "token").write_text("sks_default_secret\n")

    done = machine.run("serve", "token", "list", *(word.replace("HOME", str(machine.home)) for word in words))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("words", [(), ("token", "create", "ada"), ("migrate",)], ids=["serve", "token", "migrate"])
def test_an_empty_variable_is_no_other_database(words: tuple[str, ...], machine: Machine) -> None:
    machine.env["SKILLSHELF_DATABASE"] = " "

    done = machine.run("serve", *words)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "$SKILLSHELF_DATABASE is empty; give it an address" in done.stderr
    assert not (machine.home / ".local/share/skillshelf/team").exists()


def test_an_action_names_the_database_that_nobody_named(machine: Machine) -> None:
    words = ("serve", "member", "set", "ada", "reader")
    path = f"{machine.home}/.local/share/skillshelf/team/team.sqlite"

    assert f"database: SQLite, {path} (--database-file or $SKILLSHELF_DATABASE names" in machine.run(*words).stderr
    assert machine.run(*words, "--database", f"sqlite:///{path}").stderr == ""


def test_a_variable_that_nothing_reads_is_named_with_the_one_that_may_be_meant(machine: Machine) -> None:
    machine.env |= {"SKILLSHELF_DATABSE": "postgresql://db", "SKILLSHELF_PORT_8000_TCP": "", "SKILLSHELF_SERVER": ""}

    (line, *_) = machine.run("serve", "token", "list").stderr.splitlines()

    meant = "SKILLSHELF_DATABSE (did you mean SKILLSHELF_DATABASE?)"
    assert line.endswith(f"nothing reads {meant}, SKILLSHELF_PORT_8000_TCP")


def test_every_variable_that_the_package_reads_is_known() -> None:
    package = Path(skillshelf.__file__).parent
    sources = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))

    assert {*re.findall(r'"(SKILLSHELF_[A-Z_]+)"', sources)} == {*VARIABLES}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--listen", "nowhere"), "--listen takes HOST:PORT"),
        (("--listen", ""), "--listen is empty"),
        (("--issuer", "https://login.example"), "--issuer and --audience need each other"),
        (("--access-log", "/"), "the access log / cannot be written: Is a directory"),
        (("--access-log", "/dev/null"), "is a device, not a file (without --access-log it goes to standard error"),
    ],
)
def test_options_are_checked_before_a_database_is_made(words: tuple[str, ...], told: str, machine: Machine) -> None:
    require("mcp")
    done = machine.run("serve", *words)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert told in done.stderr
    assert not (machine.home / ".local/share/skillshelf/team/team.sqlite").exists()


@pytest.mark.slow
def test_the_start_says_which_database_and_which_files_are_served(tmp_path: Path) -> None:
    require("mcp")
    with served_process(tmp_path, f"sqlite:///{tmp_path}/team.sqlite", tmp_path / "blobs"):
        log = (tmp_path / "log").read_text()

    assert f"database: SQLite, {tmp_path}/team.sqlite; published files: {tmp_path}/blobs\n" in log


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://app:secret@db.example:5433/skills", "PostgreSQL, skills at db.example:5433 as app"),
        ("postgresql://app@/skills?host=/run/pg&password=secret", "PostgreSQL, skills at /run/pg as app"),
        ("postgres://%zz:secret@db/x", "PostgreSQL,  at the local socket as "),
        ("sqlite:////srv/team.sqlite", "SQLite, /srv/team.sqlite"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, place: str) -> None:
    require("psycopg")

    assert DatabaseAddress(url).place == place
