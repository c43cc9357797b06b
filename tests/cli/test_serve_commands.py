"""The command `serve` besides serving: tokens, tenants, members, migration."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from schemas import SCHEMAS
from support.trees import Machine


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


def test_a_sqlite_database_is_migrated_when_it_is_opened(machine: Machine) -> None:
    found = checked("serve-migrate", machine.run_json("serve", "migrate"))

    assert found["address"] == f"sqlite:///{machine.home}/.local/share/skillshelf/team/team.sqlite"
    assert (machine.home / ".local/share/skillshelf/team/team.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonsense",), "no action 'nonsense'"),
        (("token",), "no action 'token'"),
        (("token", "create"), "missing argument SUBJECT"),
        (("token", "create", "a", "b"), "one SUBJECT only"),
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
    ],
)
def test_a_wrong_word_is_one_line(machine: Machine, words: tuple[str, ...], message: str) -> None:
    done = machine.run("serve", *words)

    assert done.returncode != 0
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


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


def test_the_address_of_the_database_comes_from_a_file_or_the_environment(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = machine.home / "address"
    file.write_text(f"sqlite:///{machine.home}/one/team.sqlite\n")
    machine.run_json("serve", "token", "create", "ada", "--database-file", str(file))
    monkeypatch.setenv("SKILLSHELF_DATABASE", f"sqlite:///{machine.home}/two/team.sqlite")
    machine.run_json("serve", "token", "create", "bob")

    def subjects(*words: str) -> list[str]:
        return [one["subject"] for one in machine.run_json("serve", "token", "list", *words)["tokens"]]

    assert subjects() == ["bob"]
    assert subjects("--database-file", str(file)) == ["ada"]
    assert subjects("--database", file.read_text().strip()) == ["ada"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--database-file", "HOME/missing"), "/missing cannot be read: No such file or directory"),
        (("--database-file", "HOME/empty"), "/empty does not hold one address"),
        (
            ("--database-file", "HOME/empty", "--database", "sqlite:///x"),
            "--database and --database-file name one address",
        ),
    ],
)
def test_a_file_without_an_address_is_one_line(words: tuple[str, ...], told: str, machine: Machine) -> None:
    (machine.home / "empty").touch()

    done = machine.run("serve", "token", "list", *(word.replace("HOME", str(machine.home)) for word in words))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told in done.stderr
