"""A skill is published to a team server and installed from it by the commands, with a token, over real HTTP."""

from __future__ import annotations

import json
import shutil
import socket
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.host_runs import Run, json_output
from support.http_sites import Request, Site, answer, redirect
from support.installs import lose_store, skill_text, trusted
from support.needs import require
from support.published_servers import fetched, serving, token_for
from support.trees import Machine, write_skill

from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import tree_digest
from skillshelf.core.environment import make_environment
from skillshelf.errors import SourceRefused
from skillshelf.install.pack import zip_of
from skillshelf.install.server_account import ServerAccount
from skillshelf.install.team_server import ReleaseClient
from skillshelf.install.well_known import INDEX_PATH, INDEX_SCHEMA

pytestmark = pytest.mark.slow


class TeamUnderTest(NamedTuple):
    url: str
    database: str
    token: Path


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamUnderTest]:
    for package in ("mcp", "starlette", "uvicorn", "jwt"):
        require(package)
    folder = tmp_path_factory.mktemp("team")
    database = f"sqlite:///{folder}/team.sqlite"
    token = folder / "token"
    token.write_text(token_for(database, "ada", "skills:read", "skills:publish"))
    with serving(folder / "home", database, folder / "blobs") as url:
        yield TeamUnderTest(url, database, token)


def draft(machine: Machine, name: str, body: str) -> None:
    write_skill(machine.repo / "drafts", name, skill_text(name, body))


def test_a_skill_is_published_installed_updated_and_verified(machine: Machine, run: Run, team: TeamUnderTest) -> None:
    access = ["--allow-http", "--token-file", str(team.token)]
    draft(machine, "deploy", "First.")
    sent = ["publish", "./drafts/deploy", "--to", team.url, *access, "--yes"]
    first = json_output(run, *sent, schema="publish")
    assert first["actions"][0]["path"] == f"{team.url}/api/v1/skills/deploy/versions/1"
    assert json_output(run, *sent, schema="publish")["actions"] == []
    added = json_output(run, "add", team.url, "--skill", "deploy", *access, "--yes", schema="install")
    assert added["actions"][0]["tree"] == first["actions"][0]["tree"]
    assert run("outdated", *access)[0] == 0
    draft(machine, "deploy", "Second.")
    json_output(run, *sent, schema="publish")
    assert run("outdated", *access)[0] == 1
    assert run("update", *access, "--yes")[0] == 0
    assert "Second." in (machine.repo / ".agents/skills/deploy/SKILL.md").read_text()
    assert run("verify")[0] == 0


def test_a_version_never_changes_and_says_so(machine: Machine, run: Run, team: TeamUnderTest) -> None:
    access = ["--allow-http", "--token-file", str(team.token), "--yes"]
    draft(machine, "notes", "First.")
    run("publish", "./drafts/notes", "--to", team.url, "--version", "1.0", *access)
    draft(machine, "notes", "Second.")
    refused = run("publish", "./drafts/notes", "--to", team.url, "--version", "1.0", *access)
    assert refused[0] == 4
    assert "never changes" in refused[2]


def test_without_a_token_nothing_is_sent_and_with_a_reader_s_nothing_is_published(
    machine: Machine, run: Run, team: TeamUnderTest, tmp_path: Path
) -> None:
    draft(machine, "deploy", "First.")
    missing = run("publish", "./drafts/deploy", "--to", team.url, "--allow-http", "--yes")
    assert missing[0] == 2
    assert "SKILLSHELF_TOKEN" in missing[2]
    reader = tmp_path / "reader"
    reader.write_text(token_for(team.database, "ray", "skills:read"))
    denied = run("publish", "./drafts/deploy", "--to", team.url, "--allow-http", "--token-file", str(reader), "--yes")
    assert denied[0] == 4
    assert fetched(f"{team.url}/api/v1/me", reader.read_text())[1]["subject"] == "ray"


def token_of_acme(folder: Path) -> Path:
    """Return a file with a token of the tenant `acme`, as a client reads it."""
    file = folder / "token"
    file.write_text("sks_acme_not-a-real-token-but-long-enough-0123456789")
    return file


def test_an_older_catalog_than_was_seen_is_refused(machine: Machine, run: Run, tmp_path: Path) -> None:
    token = token_of_acme(tmp_path)
    with Site() as site:
        access = ["--allow-http", "--token-file", str(token), "--yes"]
        for rev in ("7", "7", "6"):
            body = json.dumps({"$schema": INDEX_SCHEMA, "skills": []}).encode()
            site.routes[INDEX_PATH] = answer(body, Skillshelf_Revision=rev, Skillshelf_Tenant="acme")
            refused = run("add", site.url, *access)
            assert refused[0] == (3 if rev == "7" else 4), refused
    asked = [one.headers.get("skillshelf-min-revision") for one in site.requests]
    assert refused[0] == 4
    assert "revision 6" in refused[2]
    assert asked == [None, "7", "7"]


def test_a_revision_is_remembered_from_an_answer_that_succeeded_alone(
    machine: Machine, run: Run, tmp_path: Path
) -> None:
    token = token_of_acme(tmp_path)
    kept = machine.home / ".local/state/skillshelf/servers.json"
    with Site() as site:
        for status, rev in ((404, 9), (503, 9), (200, 5), (200, 6)):
            site.routes[INDEX_PATH] = _of_revision(rev, "acme", status)
            run("add", site.url, "--allow-http", "--token-file", str(token), "--yes")

        assert json.loads(kept.read_text())["servers"] == {f"{site.url} acme": 6}


def test_files_that_are_not_those_of_the_tree_are_never_shown_to_who_approves_it(machine: Machine) -> None:
    contents = {"SKILL.md": skill_text("deploy", "Do it.").encode()}
    release: Any = {"name": "deploy", "version": "1", "tree": tree_digest(listed_files(contents))}
    with Site() as site:
        account = ServerAccount("sks_acme_x", site.url, make_environment(str(machine.repo), str(machine.home), {}))
        client = ReleaseClient(site.url, account, allow_http=True)
        place = "/api/v1/skills/deploy/versions/1/artifact"
        site.routes[place] = answer(zip_of(contents))
        assert client.files(release) == contents
        for other in ({**contents, "more.md": b"x"}, {"more.md": b"x"}, {"SKILL.md": b"---\nname: deploy\n---\n"}):
            site.routes[place] = answer(zip_of(other))
            with pytest.raises(SourceRefused, match="sends other files of deploy 1 than those of its tree"):
                client.files(release)


def _of_revision(rev: int, tenant: str, status: int = 200) -> bytes:
    body = json.dumps({"$schema": INDEX_SCHEMA, "skills": []}).encode()
    return answer(body, status, Skillshelf_Revision=str(rev), Skillshelf_Tenant=tenant)


def test_a_token_of_an_issuer_demands_the_revision_of_its_tenant_and_of_no_other(
    machine: Machine, run: Run, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(f"e30.{urlsafe_b64encode(b'{}').decode().rstrip('=')}.c2ln")
    with Site() as site:

        def other_tenant(request: Request, connection: socket.socket) -> None:
            demanded = "skillshelf-min-revision" in request.headers
            connection.sendall(_of_revision(3, "acme", 503 if demanded else 200))

        for route in (_of_revision(7, "default"), other_tenant):
            site.routes[INDEX_PATH] = route
            assert run("add", site.url, "--allow-http", "--token-file", str(token), "--yes")[0] == 3
    asked = [one.headers.get("skillshelf-min-revision") for one in site.requests]
    assert asked == [None, "7", None]


def test_an_answer_is_not_old_because_another_command_saw_a_newer_one_meanwhile(
    machine: Machine, run: Run, tmp_path: Path
) -> None:
    token = token_of_acme(tmp_path)
    kept = machine.home / ".local/state/skillshelf/servers.json"
    with Site() as site:
        words = ["add", site.url, "--allow-http", "--token-file", str(token), "--yes"]

        def overtaken(request: Request, connection: socket.socket) -> None:
            known = json.loads(kept.read_text())
            kept.write_text(json.dumps({**known, "servers": dict.fromkeys(known["servers"], 9)}))
            connection.sendall(_of_revision(8, "acme"))

        site.routes[INDEX_PATH] = _of_revision(7, "acme")
        assert run(*words)[0] == 3
        site.routes[INDEX_PATH] = overtaken
        assert run(*words)[0] == 3
        assert set(json.loads(kept.read_text())["servers"].values()) == {9}
        # Asked for now, it is an older one.
        site.routes[INDEX_PATH] = _of_revision(8, "acme")
        assert run(*words)[0] == 4


def test_where_a_redirect_leads_says_nothing_about_the_newest_revision(
    machine: Machine, run: Run, tmp_path: Path
) -> None:
    token = token_of_acme(tmp_path)
    kept = machine.home / ".local/state/skillshelf/servers.json"
    with Site() as site, Site() as other:
        words = ["add", site.url, "--allow-http", "--token-file", str(token), "--yes"]
        site.routes[INDEX_PATH] = _of_revision(7, "acme")
        assert run(*words)[0] == 3
        site.routes[INDEX_PATH] = redirect(f"{other.url}{INDEX_PATH}")
        for rev, status in ((99, 3), (6, 4)):
            other.routes[INDEX_PATH] = _of_revision(rev, "acme")
            assert run(*words)[0] == status
        assert json.loads(kept.read_text())["servers"] == {f"{site.url} acme": 7}
        assert {one.headers.get("authorization") for one in other.requests} == {None}


def test_a_server_that_was_set_back_is_refused_with_the_file_that_remembers_its_revision(
    machine: Machine, run: Run, team: TeamUnderTest
) -> None:
    access = ["--allow-http", "--token-file", str(team.token)]
    draft(machine, "restored", "First.")
    run("publish", "./drafts/restored", "--to", team.url, *access, "--yes")
    kept = machine.home / ".local/state/skillshelf/servers.json"
    known = json.loads(kept.read_text())
    kept.write_text(json.dumps({**known, "servers": dict.fromkeys(known["servers"], 1_000_000)}))
    for words in (["release", "list", team.url], ["add", team.url, "--skill", "restored", "--yes"]):
        refused = run(*words, *access)
        assert refused[0] == 4, refused
        assert "1000000 was seen before" in refused[2]
        assert "servers.json" in refused[2]


def test_the_revision_of_one_tenant_is_not_demanded_of_another(
    machine: Machine, run: Run, team: TeamUnderTest, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text(token_for(team.database, "eve", "skills:read", "skills:publish", tenant="acme"))
    for number, token in enumerate((team.token, other, team.token, other)):
        draft(machine, "two-tenants", f"Number {number}.")
        sent = ["publish", "./drafts/two-tenants", "--to", team.url, "--allow-http", "--token-file", str(token)]
        assert run(*sent, "--yes")[0] == 0


@pytest.mark.parametrize("name", ["two words", "日本語", "a#b", "50% off"])
def test_a_release_of_any_name_can_be_installed_and_hinders_no_other(
    machine: Machine, run: Run, team: TeamUnderTest, name: str
) -> None:
    access = ["--allow-http", "--token-file", str(team.token), "--yes"]
    for one in (name, "beside"):
        text = f"---\nname: {json.dumps(one, ensure_ascii=False)}\ndescription: Does things.\n---\n{name}\n"
        write_skill(machine.repo / "drafts", one, text)
        assert run("publish", f"./drafts/{one}", "--to", team.url, *access)[0] == 0
        added = run("add", team.url, "--skill", one, *access)
        assert added[0] == 0, added


def test_a_refused_act_says_which_scope_is_missing(
    machine: Machine, run: Run, team: TeamUnderTest, tmp_path: Path
) -> None:
    reader = tmp_path / "reader"
    reader.write_text(token_for(team.database, "ray", "skills:read"))
    draft(machine, "denied", "First.")
    access = ["--allow-http", "--token-file", str(reader), "--yes"]
    refused = run("publish", "./drafts/denied", "--to", team.url, *access)
    assert refused[0] == 4
    assert "skills:publish" in refused[2]


def test_what_was_yanked_is_not_published_again_under_its_version_but_as_the_next_one(
    machine: Machine, run: Run, team: TeamUnderTest
) -> None:
    access = ["--allow-http", "--token-file", str(team.token), "--yes"]
    draft(machine, "mistaken", "First.")
    sent = ["publish", "./drafts/mistaken", "--to", team.url, *access]
    assert run(*sent)[0] == 0
    assert run("release", "yank", team.url, "mistaken", "1", *access)[0] == 0
    refused = run(*sent, "--version", "1")
    assert refused[0] == 4
    assert "yanked" in refused[2]
    assert json_output(run, *sent, schema="publish")["actions"][0]["path"].endswith("/mistaken/versions/2")


@pytest.mark.parametrize("yanked", ["none", "locked", "all"])
def test_a_lock_is_installed_as_it_is_also_after_newer_releases(
    machine: Machine, run: Run, team: TeamUnderTest, yanked: str
) -> None:
    """On the machine of somebody else, whose store has nothing: releases never change, and each can be had."""
    access = ["--allow-http", "--token-file", str(team.token), "--yes"]
    name = f"pinned-{yanked}"
    for body in ("First.", "Second.", "Third."):
        draft(machine, name, body)
        assert run("publish", f"./drafts/{name}", "--to", team.url, *access)[0] == 0
        if body == "Second.":
            assert run("add", team.url, "--skill", name, *access)[0] == 0
    for version in {"none": (), "locked": ("2",), "all": ("1", "2", "3")}[yanked]:
        assert run("release", "yank", team.url, name, version, *access)[0] == 0
    lock = (machine.repo / "skillshelf.lock").read_bytes()
    shutil.rmtree(machine.repo / ".agents")
    lose_store(machine)

    assert run("install", "--frozen", *access)[0] == 0

    assert "Second." in (machine.repo / f".agents/skills/{name}/SKILL.md").read_text()
    assert (machine.repo / "skillshelf.lock").read_bytes() == lock


def test_a_lock_is_installed_from_a_site_that_still_has_the_former_artifact(machine: Machine, run: Run) -> None:
    """And other bytes at its address are not taken: then the lock cannot be installed, as before."""
    access = ["--allow-http", "--yes"]
    public = machine.base / "public"

    def publish(body: str) -> None:
        draft(machine, "leaflet", body)
        assert run("publish", "./drafts/leaflet", "--site", str(public), "--yes")[0] == 0
        for path in public.rglob("*"):
            if path.is_file():
                site.routes[f"/{path.relative_to(public)}"] = answer(path.read_bytes())

    with Site() as site:
        publish("First.")
        assert run("add", site.url, "--skill", "leaflet", *access)[0] == 0
        publish("Second.")
        for is_whole in (True, False):
            shutil.rmtree(machine.repo / ".agents")
            lose_store(machine)
            if not is_whole:
                former = json.loads((machine.repo / "skillshelf.lock").read_text())["skills"]["leaflet"]["artifact"]
                place = f"{INDEX_PATH.rpartition('/')[0]}/leaflet/{former[7:23]}/SKILL.md"
                site.routes[place] = answer((public / place[1:]).read_bytes().replace(b"First.", b"Other."))
            status, out, _ = run("install", "--frozen", *access)
            assert (status, "other bytes than the lock" in out) == ((0, False) if is_whole else (1, True))


def test_a_server_that_wants_a_token_is_answered_with_what_to_do(
    machine: Machine, run: Run, team: TeamUnderTest, tmp_path: Path
) -> None:
    stranger = tmp_path / "stranger"
    stranger.write_text("sks_default_" + "A" * 43)
    add = ["add", team.url, "--skill", "any", "--user", "--yes", "--allow-http"]
    without, wrong = run(*add), run(*add, "--token-file", str(stranger))
    assert (without[0], wrong[0]) == (4, 4)
    assert "needs a token: set SKILLSHELF_TOKEN, or name a file with --token-file" in without[2]
    assert "the token is not valid here, or no longer" in wrong[2]

    (machine.repo / "skillshelf.toml").write_text(f'[[install]]\nsource = "{team.url}"\nname = "any"\n')
    trusted(machine)
    unnamed = run("install", "--allow-http", "--yes", "--token-file", str(stranger))
    assert unnamed[0] == 4
    assert f"if this is your team's, set SKILLSHELF_SERVER={team.url}" in unnamed[2]


def test_a_token_of_the_environment_goes_only_to_the_server_that_is_named_with_it(
    machine: Machine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLSHELF_TOKEN", "sks_acme_not-a-real-token-but-long-enough-0123456789")
    with Site() as site:
        site.routes[INDEX_PATH] = _of_revision(7, "acme")
        monkeypatch.setenv("SKILLSHELF_SERVER", "https://skills.example")
        assert run("add", site.url, "--allow-http", "--yes")[0] == 3
        status, _, told = run("release", "list", site.url, "--allow-http")
        assert (status, f"SKILLSHELF_SERVER={site.url}" in told) == (2, True)
        assert {one.headers.get("authorization") for one in site.requests} == {None}
        monkeypatch.setenv("SKILLSHELF_SERVER", site.url)
        assert run("add", site.url, "--allow-http", "--yes")[0] == 3
        assert site.requests[-1].headers["authorization"].startswith("Bearer sks_acme_")


@pytest.mark.parametrize("named", [None, "https://team.example"])
def test_a_token_goes_to_no_server_that_only_a_lock_names(
    machine: Machine, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None
) -> None:
    if named is not None:
        monkeypatch.setenv("SKILLSHELF_SERVER", named)
    with Site() as site:
        entry = {
            "artifact": "sha256:" + "0" * 64,
            "bytes": 1,
            "commit": None,
            "files": 1,
            "hosts": [],
            "path": "x",
            "ref": None,
            "source": site.url,
            "tree": "sha256:" + "0" * 64,
        }
        (machine.repo / "skillshelf.lock").write_text(json.dumps({"lock": 1, "skills": {"x": entry}}))
        token = tmp_path / "token"
        token.write_text("sks_not-a-real-token-but-long-enough-0123456789")
        trusted(machine)
        run("outdated", "--allow-http", "--token-file", str(token))
    assert site.requests
    assert {one.headers.get("authorization") for one in site.requests} == {None}
