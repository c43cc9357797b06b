"""The search index of a tenant is a snapshot in the blob store, which every server maps, whatever its own disk is."""

from __future__ import annotations

import json
import shutil
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.needs import require
from support.postgres import PostgresCluster
from support.published_servers import ServerUnderTest, fetched, packed, running_server, serving, token_for
from support.trees import Machine
from support.waiting import wait_for

from skillshelf.core.disk_writes import locked_within, remove_tree
from skillshelf.core.environment import make_environment
from skillshelf.search.index import FORMAT
from skillshelf.servers.team.blobs import FolderBlobs, open_blobs
from skillshelf.servers.team.catalogs import TeamCatalogs, key_of
from skillshelf.servers.team.database import SqliteDatabase, open_database
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.release_access import Releases
from skillshelf.servers.team.release_source import ReleaseSource
from skillshelf.servers.team.snapshots import SnapshotRecord
from skillshelf.servers.team.tenant_shelf import TenantShelf, digests_of
from skillshelf.servers.team.upload import read_upload
from skillshelf.servers.team.values import FILES_AWAY, BlobsAway, Caller

ADA = Caller("ada", "acme", frozenset({"skills:read", "skills:publish"}))


@pytest.fixture(autouse=True)
def _extras() -> None:
    for package in ("mcp", "starlette", "uvicorn", "jwt"):
        require(package)


def publish(server: ServerUnderTest, name: str, text: str = "Do it.", description: str | None = None) -> int:
    body = packed(name, text, description=description)
    found = server.json(ADA, "POST", "/api/v1/releases", body, 201)
    return int(found["rev"])


def names_for(server: ServerUnderTest, query: str) -> list[str]:
    return [one["name"] for one in server.json(ADA, "GET", "/api/v1/search", q=query)["results"]]


def built(server: ServerUnderTest, rev: int) -> None:
    shelf = server.published.shelf_of("acme")

    def look() -> bool | None:
        shelf.follow()
        return True if shelf.state.snapshot is not None and shelf.state.snapshot.rev >= rev else None

    wait_for(look)


def test_a_snapshot_made_by_one_server_answers_on_another_that_read_no_skill(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "a") as first:
        publish(first, "deploy", "Mention the frobnicator valve here.", "Ship the site.")
        rev = publish(first, "notes", "Write them.", "Make release notes.")
        built(first, rev)
    with running_server(tmp_path, address, home=tmp_path / "b") as second:
        # A word of the text alone: it is in the snapshot, and no tree is on this machine yet.
        assert names_for(second, "frobnicator valve") == ["deploy"]
        assert list(second.published.source.store_of("acme").trees()) == []
        shown = second.json(ADA, "GET", "/api/v1/skills/deploy")
        assert "frobnicator" in shown["text"]
        assert len(list(second.published.source.store_of("acme").trees())) == 1


def test_queries_are_answered_while_a_new_snapshot_is_not_there_yet(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address) as server:
        built(server, publish(server, "deploy", "Mention the frobnicator.", "Ship the site."))
        shelf = server.published.shelf_of("acme")
        before = shelf.state.snapshot
        publish(server, "brew", "Boil water first.", "Make a pot of coffee.")
        assert names_for(server, "pot of coffee") == ["brew"]
        assert names_for(server, "frobnicator") == ["deploy"]
        built(server, shelf.state.rev)
        assert shelf.state.snapshot != before
        # Searches take the new one when it lies on this machine.
        wait_for(lambda: names_for(server, "boil water") == ["brew"] or None)


def test_a_lost_or_damaged_snapshot_costs_nothing_but_time(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "a") as first:
        built(first, publish(first, "deploy", "Mention the frobnicator.", "Ship the site."))
        record = first.published.shelf_of("acme").state.snapshot
    first.published.blobs.remove(record.digest)
    with running_server(tmp_path, address, home=tmp_path / "b") as second:
        assert names_for(second, "ship the site") == ["deploy"]
    shutil.rmtree(tmp_path / "a" / "team" / "snapshots")
    with running_server(tmp_path, address, home=tmp_path / "a") as third:
        assert names_for(third, "frobnicator") == ["deploy"]


def test_what_a_server_left_that_was_killed_while_it_built_is_removed(tmp_path: Path) -> None:
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:
        built(server, publish(server, "deploy"))
        above = tmp_path / "home/team/snapshots/acme"
        for name in (".build-1-killed", ".build-1-running"):
            (above / name / "index").mkdir(parents=True)
        with locked_within(str(above / ".build-1-running.lock"), 0):
            built(server, publish(server, "brew"))
            wait_for(lambda: True if [*above.glob(".build-*.lock")] == [above / ".build-1-running.lock"] else None)
        assert [one.name for one in above.glob(".build-*") if one.is_dir()] == [".build-1-running"]


def test_servers_of_two_versions_keep_a_snapshot_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, ours = f"sqlite:///{tmp_path}/team.sqlite", FORMAT
    found: list[SnapshotRecord] = []
    for version in (ours, ours + 1, ours, ours + 1):
        monkeypatch.setattr("skillshelf.servers.team.snapshots.FORMAT", version)
        with running_server(tmp_path, address, home=tmp_path / str(version)) as server:
            rev = 1 if found else publish(server, "deploy", "Mention the frobnicator.", "Ship the site.")
            built(server, rev)
            found.append(server.published.shelf_of("acme").state.snapshot)
            assert server.published.blobs.has(found[-1].digest)
            assert names_for(server, "frobnicator") == ["deploy"]
    assert found[0] != found[1]
    assert found[:2] == found[2:]
    # With a release each replaces its own.
    with running_server(tmp_path, address, home=tmp_path / str(ours + 1)) as server:
        built(server, publish(server, "brew"))
        assert not server.published.blobs.has(found[1].digest)
        assert server.published.blobs.has(found[0].digest)


def listed(server: ServerUnderTest) -> list[tuple[str, str]]:
    found = server.json(ADA, "GET", "/api/v1/skills")["skills"]
    return [(one["name"], one["description"]) for one in found]


def indexed(server: ServerUnderTest) -> list[str]:
    found = server.json(ADA, "GET", "/.well-known/agent-skills/index.json")["skills"]
    return [one["name"] for one in found]


def test_a_server_follows_what_another_one_changed_name_by_name(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with (
        running_server(tmp_path, address, home=tmp_path / "a") as first,
        running_server(tmp_path, address, home=tmp_path / "b") as second,
    ):
        for name in ("brew", "deploy", "notes"):
            publish(first, name, description=f"{name} one.")
        shelf = second.published.shelf_of("acme")
        shelf.follow()
        before = {skill.name: skill for skill in shelf.catalog.skills}
        publish(first, "deploy", "Other.", "deploy two.")
        first.json(ADA, "POST", "/api/v1/skills/notes/versions/1/yank", {"why": "wrong"})
        publish(first, "audit", description="audit one.")
        shelf.follow()

        assert listed(second) == [("audit", "audit one."), ("brew", "brew one."), ("deploy", "deploy two.")]
        assert next(skill for skill in shelf.catalog.skills if skill.name == "brew") is before["brew"]
        first.json(ADA, "POST", "/api/v1/skills/notes/channel", {"channel": "latest", "version": "1"}, 400)
        publish(first, "notes", "Right.", "notes two.")
        shelf.follow()
        assert ("notes", "notes two.") in listed(second)


def kept_file(server: ServerUnderTest) -> Path:
    shelf = server.published.shelf_of("acme")
    assert shelf.state.snapshot is not None
    return Path(server.published.source.snapshots.beside("acme", shelf.state.snapshot))


def test_a_server_starts_with_the_skills_that_it_kept_and_reads_what_changed_since(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "a") as first:
        publish(first, "deploy", "Mention the frobnicator.", "Ship the site.")
        built(first, publish(first, "notes", description="Écrire <notes>."))
        file = kept_file(first)
        wait_for(lambda: file.exists() or None)
        whole = first.published.shelf_of("acme").catalog.skills
    with closing(open_database(address)) as database:
        # Another server that is stopped before it has built a snapshot.
        releases = Releases(database, open_blobs(str(tmp_path / "blobs"), make_environment(None, None, {})))
        releases.publish(ADA, read_upload(packed("audit", description="Audit it.")))
        releases.yank(ADA, "notes", "1")
        # The row of a release never changes, so it is not read again.
        with database.transaction("acme") as transaction:
            transaction.execute("update release set description = 'Changed behind the back.' where name = 'deploy'")
    with running_server(tmp_path, address, home=tmp_path / "a") as third:
        assert listed(third) == [("audit", "Audit it."), ("deploy", "Ship the site.")]
        assert names_for(third, "frobnicator") == ["deploy"]
        skills = {skill.name: skill for skill in third.published.shelf_of("acme").catalog.skills}
        assert skills["deploy"] == next(skill for skill in whole if skill.name == "deploy")


def test_a_server_that_only_follows_keeps_the_skills_for_its_next_start(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with (
        running_server(tmp_path, address, home=tmp_path / "a", seconds=0.05) as first,
        running_server(tmp_path, address, home=tmp_path / "b", seconds=0.05) as second,
    ):
        assert listed(second) == []
        built(first, publish(first, "deploy", "Mention the frobnicator.", "Ship the site."))
        shelf = second.published.shelf_of("acme")
        wait_for(lambda: shelf.state.snapshot)
        file = kept_file(second)
        assert file.is_relative_to(tmp_path / "b")
        wait_for(lambda: file.exists() or None)


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, None])
def test_kept_skills_that_are_damaged_or_of_another_database_cost_nothing_but_time(
    tmp_path: Path, damage: bytes | None
) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address) as first:
        publish(first, "deploy", "One.", "Ship the site.")
        first.server.services.database.close()
        backup = {file: file.read_bytes() for file in tmp_path.glob("team*.sqlite*")}
        built(first, publish(first, "notes", description="Write notes."))
        file = kept_file(first)
        wait_for(lambda: file.exists() or None)
    if damage is None:
        for other in tmp_path.glob("team*.sqlite*"):
            other.unlink()
        for path, data in backup.items():
            path.write_bytes(data)
    else:
        file.write_bytes(damage)
    with running_server(tmp_path, address) as second:
        names = ["deploy"] if damage is None else ["deploy", "notes"]
        assert [name for name, _ in listed(second)] == names


def test_a_published_name_wins_over_the_disk_of_the_server(tmp_path: Path) -> None:
    ada = ADA._replace(tenant="default")
    folder = tmp_path / "home" / "work" / ".agents" / "skills"
    for name in ("deploy", "local"):
        (folder / name).mkdir(parents=True)
        page = f"---\nname: {name}\ndescription: The one on disk.\n---\n\nFrom the disk, with zanzibar.\n"
        (folder / name / "SKILL.md").write_text(page)
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:
        server.json(ada, "POST", "/api/v1/releases", packed("deploy", "From the release."), 201)
        listed = server.json(ada, "GET", "/api/v1/skills")["skills"]
        assert [one["name"] for one in listed] == ["deploy", "local"]
        assert "From the release." in server.json(ada, "GET", "/api/v1/skills/deploy")["text"]
        found = server.json(ada, "GET", "/api/v1/search", q="zanzibar")["results"]
        assert [one["name"] for one in found] == ["local"]
        index = server.json(ada, "GET", "/.well-known/agent-skills/index.json")["skills"]
        assert [one["name"] for one in index] == ["deploy", "local"]
        assert server.json(ADA, "GET", "/api/v1/skills")["count"] == 0


def test_a_policy_of_approved_releases_alone_holds_back_the_disk_of_the_server(tmp_path: Path) -> None:
    ada = ADA._replace(tenant="default", scopes=frozenset({"admin"}))
    folder = tmp_path / "home" / "work" / ".agents" / "skills" / "local"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: local\ndescription: On disk.\n---\n\nWith zanzibar.\n")
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:

        def served() -> list[str]:
            found = server.json(ada, "GET", "/api/v1/search", q="zanzibar")["results"]
            index = server.json(ada, "GET", "/.well-known/agent-skills/index.json")["skills"]
            listed = server.json(ada, "GET", "/api/v1/skills")["skills"]
            assert [one["name"] for one in found] == [one["name"] for one in index] == [one["name"] for one in listed]
            return [one["name"] for one in listed]

        assert served() == ["local"]
        server.json(ada, "PUT", "/api/v1/policy", {"approved_only": True})
        assert served() == []
        assert server.call(ada, "GET", "/api/v1/skills/local").status == 404
        (skill,) = server.published.shelf_of("default").catalog.skills
        assert (skill.hidden, skill.hidden_by) == ("denied", "policy of the tenant: approved_only")
        server.json(ada, "PUT", "/api/v1/policy", {"approved_only": False})
        assert served() == ["local"]


def test_a_tenant_in_use_follows_its_releases_however_many_tenants_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillshelf.servers.team.published_catalog.TENANTS_OPEN", 2)
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, seconds=0.1) as server:
        publish(server, "deploy")
        assert listed(server) == [("deploy", "Use it for deploy.")]
        for number in range(4):
            server.server.services.database.add_tenant(f"team-{number}")
            assert server.json(ADA._replace(tenant=f"team-{number}"), "GET", "/api/v1/skills")["count"] == 0
            assert server.call(ADA, "GET", "/api/v1/skills").status == 200
        publish_elsewhere(address, tmp_path, "audit", "Do it.", "Audit it.")
        wait_for(lambda: len(listed(server)) == 2 or None)
        answer = server.call(ADA, "GET", "/api/v1/skills", headers={"skillshelf-min-revision": "2"})
        assert answer.status == 200


def test_a_database_that_was_set_back_and_caught_up_is_noticed(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, seconds=600) as server:
        publish(server, "deploy")
        with closing(open_database(address)):
            backup = {file: file.read_bytes() for file in tmp_path.glob("team*.sqlite*")}
        built(server, publish(server, "audit"))
        assert [name for name, _ in listed(server)] == ["audit", "deploy"]
        assert indexed(server) == ["audit", "deploy"]
        server.server.services.database.close()
        for other in tmp_path.glob("team*.sqlite*"):
            other.unlink()
        for path, data in backup.items():
            path.write_bytes(data)
        publish_elsewhere(address, tmp_path, "brew", "Boil it.", "Make coffee.")
        shelf = server.published.shelf_of("acme")
        shelf.follow()
        assert shelf.state.rev == 2
        assert [name for name, _ in listed(server)] == ["brew", "deploy"]
        assert indexed(server) == ["brew", "deploy"]


def test_a_blob_store_without_the_releases_is_said_once_and_keeps_a_server_from_being_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "first"):
        publish_elsewhere(address, tmp_path, "deploy", "Do it.", "Ship the site.")
    shutil.move(tmp_path / "blobs", tmp_path / "elsewhere")
    with running_server(tmp_path, address, seconds=0.05) as server:
        services = server.server.services
        assert [name for name, _ in listed(server)] == ["deploy"]
        wait_for(lambda: server.published.problem())
        wait_for(lambda: services.problems()["blobs"] == "has no files of the releases" or None)
        # As often as it is tried again, it is one line, and the server does not become ready in between.
        for _ in range(20):
            time.sleep(0.05)
            assert services.problems()["blobs"] == "has no files of the releases"
        told = capsys.readouterr().err
        assert told.count("does --blobs name the store that the releases were published to?") == 1
        assert len(told.splitlines()) <= 3
        shutil.rmtree(tmp_path / "blobs")
        shutil.move(tmp_path / "elsewhere", tmp_path / "blobs")
        wait_for(lambda: services.problems()["blobs"] is None or None)


def test_a_database_that_goes_away_is_noted_once_and_once_that_it_is_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite", seconds=0.05) as server:
        built(server, publish(server, "deploy"))
        server.json(ADA._replace(tenant="umbrella"), "GET", "/api/v1/skills")
        away = [file.rename(tmp_path / f"away-{file.name}") for file in tmp_path.glob("team*.sqlite*")]
        wait_for(lambda: server.published.shelf_of("acme").away)
        # Every thread meets it: the one that builds snapshots, too.
        server.published.changed("acme")
        time.sleep(0.5)
        for file in away:
            file.rename(tmp_path / file.name.removeprefix("away-"))
        wait_for(lambda: server.published.shelf_of("acme").away is None or None)
        time.sleep(0.5)
    told = capsys.readouterr().err
    assert told.count("skills are served as they were last read: ") == 1
    assert told.count("the database answers again") == 1
    assert len(told.splitlines()) == 2


def test_without_the_database_reads_go_on_and_say_so(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address) as server:
        built(server, publish(server, "deploy", "Mention the frobnicator.", "Ship the site."))
        assert names_for(server, "frobnicator") == ["deploy"]
        for file in tmp_path.glob("team*.sqlite*"):
            file.rename(tmp_path / f"away-{file.name}")
        server.published.shelf_of("acme").follow()
        found = server.call(ADA, "GET", "/api/v1/search", q="frobnicator")
        assert found.status == 200
        assert ("skillshelf-stale", "true") in found.headers
        assert b"the database does not answer" in found.body
        assert server.call(ADA, "GET", "/api/v1/skills/deploy").status == 200
        index = server.call(ADA, "GET", "/.well-known/agent-skills/index.json")
        assert ("skillshelf-stale", "true") in index.headers
        (entry,) = json.loads(index.body)["skills"]
        artifact = server.call(ADA, "GET", f"/.well-known/agent-skills/{entry['url']}")
        assert f"sha256:{sha256(artifact.body).hexdigest()}" == entry["digest"]
        assert server.call(ADA, "GET", f"/.well-known/agent-skills/deploy/{'0' * 16}/deploy.zip").status == 404
        refused = server.call(ADA, "POST", "/api/v1/releases", packed("new"))
        assert (refused.status, b"the database does not answer" in refused.body) == (503, True)
        for file in tmp_path.glob("away-*"):
            file.rename(tmp_path / file.name.removeprefix("away-"))
        server.published.shelf_of("acme").follow()
        assert ("skillshelf-stale", "true") not in server.call(ADA, "GET", "/api/v1/search", q="frobnicator").headers


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/team.sqlite"
    cluster: PostgresCluster = request.getfixturevalue("cluster")
    return cluster.migrated_database()


@pytest.mark.slow
def test_what_is_published_at_one_server_is_found_at_the_other_without_a_restart(shared: str, tmp_path: Path) -> None:
    token = token_for(shared, "ada", "skills:read", "skills:publish", tenant="acme")
    other = token_for(shared, "eve", "skills:read", tenant="umbrella")
    with (
        serving(tmp_path / "a", shared, tmp_path / "blobs") as first,
        serving(tmp_path / "b", shared, tmp_path / "blobs") as second,
    ):
        assert fetched(f"{second}/api/v1/skills", token)[1]["count"] == 0
        body = packed("deploy", "Mention the frobnicator valve.", description="Ship the site.")
        status, published, _ = fetched(f"{first}/api/v1/releases", token, body=body)
        assert status == 201

        def found() -> list[str] | None:
            results = fetched(f"{second}/api/v1/search?q=frobnicator+valve", token)[1]["results"]
            return [one["name"] for one in results] or None

        assert wait_for(found, 6.0) == ["deploy"]
        demand = {"Skillshelf-Min-Revision": str(published["rev"])}
        assert fetched(f"{second}/api/v1/skills", token, headers=demand)[0] == 200
        assert fetched(f"{second}/api/v1/skills/deploy", token)[1]["tree"] == published["release"]["tree"]
        assert fetched(f"{second}/api/v1/skills/deploy", other)[0] == 404


def test_a_client_loads_and_reads_a_release_that_is_not_on_this_machine_yet(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "a") as first:
        first.json(ADA, "POST", "/api/v1/releases", packed("deploy", "Do it.", references__page=b"More."), 201)
    with running_server(tmp_path, address, home=tmp_path / "b") as second:
        skills = second.server.services.catalogs.of(ADA)
        client = skills.sessions.start("test", subject="ada")
        try:
            assert "Do it." in client.call("skill_load", {"name": "deploy"}).text
            assert client.call("skill_read", {"uri": "skill://deploy/references/page"}).text == "More."
        finally:
            client.end()


def test_files_that_somebody_removed_from_the_machine_of_a_server_are_fetched_again(tmp_path: Path) -> None:
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:
        publish(server, "deploy", "Mention the frobnicator.")
        for _ in range(2):
            assert "frobnicator" in server.json(ADA, "GET", "/api/v1/skills/deploy")["text"]
            remove_tree(server.published.source.store_of("acme").folder)


@pytest.mark.parametrize("how", ["yank", "policy"])
def test_a_session_loads_no_release_that_is_not_served_any_more(tmp_path: Path, how: str) -> None:
    admin = ADA._replace(scopes=frozenset({"admin"}))
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:
        server.json(ADA, "POST", "/api/v1/releases", packed("deploy", "Do it."), 201)
        client = server.server.services.catalogs.of(ADA).sessions.start("test", subject="ada")
        try:
            assert "Do it." in client.call("skill_load", {"name": "deploy"}).text
            server.json(ADA, "POST", "/api/v1/releases", packed("deploy", "Do more."), 201)
            if how == "yank":
                for version in ("2", "1"):
                    server.json(ADA, "POST", f"/api/v1/skills/deploy/versions/{version}/yank", {})
            else:
                server.json(admin, "PUT", "/api/v1/policy", {"approved_only": True})
            for tool, given in (("skill_load", {"name": "deploy"}), ("skill_read", {"uri": "skill://deploy/SKILL.md"})):
                refused = client.call(tool, given)
                assert refused.error is not None
                assert refused.error.code == "not_found"
                assert "Do " not in refused.text
        finally:
            client.end()


def publish_elsewhere(address: str, folder: Path, name: str, text: str, description: str) -> None:
    """Publish as a server does that builds no snapshot."""
    with closing(open_database(address)) as database:
        blobs = open_blobs(str(folder / "blobs"), make_environment(str(folder), str(folder), {}))
        Releases(database, blobs).publish(ADA, read_upload(packed(name, text, description=description)))


def test_the_text_of_a_release_is_found_before_any_snapshot_has_it(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, seconds=600.0) as server:
        built(server, publish(server, "deploy", "Mention the frobnicator.", "Ship the site."))
        shelf = server.published.shelf_of("acme")
        publish_elsewhere(address, tmp_path, "brew", "Mind the zymurgical kettle.", "Make a pot of coffee.")
        shelf.follow()
        assert names_for(server, "pot of coffee") == ["brew"]
        assert shelf.bring_near() == (False, True)
        assert names_for(server, "zymurgical") == ["brew"]
        assert names_for(server, "frobnicator") == ["deploy"]
        assert shelf.state.snapshot is not None
        assert shelf.state.snapshot.rev < shelf.state.rev
        # A newer release of the same name has other words.
        publish_elsewhere(address, tmp_path, "brew", "Mind the quixotic kettle.", "Make a pot of coffee.")
        shelf.follow()
        shelf.bring_near()
        assert names_for(server, "quixotic") == ["brew"]
        assert names_for(server, "zymurgical") == []


def test_many_releases_without_a_snapshot_wait_for_it_and_new_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillshelf.servers.team.tenant_shelf.SNAPSHOT_LAG", 2)
    monkeypatch.setattr("skillshelf.servers.team.snapshots.Snapshots.build", lambda *given: None)
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, seconds=600.0) as server:
        for name in ("audit", "brew", "deploy"):
            publish_elsewhere(address, tmp_path, name, f"Mention the {name}icator.", f"Use it for {name}.")
        shelf = server.published.shelf_of("acme")
        shelf.bring_near()
        assert names_for(server, "brew") == ["brew"]
        assert names_for(server, "brewicator") == []
        publish_elsewhere(address, tmp_path, "notes", "Mind the zymurgical kettle.", "Make release notes.")
        shelf.follow()
        shelf.bring_near()
        assert names_for(server, "zymurgical") == ["notes"]


def test_a_release_whose_files_are_lost_is_unavailable_and_the_others_are_served(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, seconds=600.0) as server:
        archives = {}
        for name in ("deploy", "brew", "notes"):
            body = packed(name, f"Mention the {name}icator.", description=f"Use it for {name}.")
            archives[name] = server.json(ADA, "POST", "/api/v1/releases", body, 201)["release"]["artifact"]
        built(server, 3)
    blobs = {name: tmp_path / "blobs" / digest[7:9] / digest[9:] for name, digest in archives.items()}
    blobs["deploy"].unlink()
    blobs["brew"].chmod(0o600)
    blobs["brew"].write_bytes(b"other bytes")
    with running_server(tmp_path, address, home=tmp_path / "other", seconds=600.0) as server:
        for name in ("deploy", "brew"):
            found = server.call(ADA, "GET", f"/api/v1/skills/{name}")
            assert found.status == 503, found.body
            assert found.body.count(b"\n") == 1
            assert FILES_AWAY.encode() in found.body
            # Why is for the operator: it names folders of the server.
            archive = server.json(ADA, "GET", f"/api/v1/skills/{name}/versions/1/artifact", status=503)
            assert archive == {"error": {"code": "unavailable", "message": FILES_AWAY}}
            assert names_for(server, f"{name}icator") == [name]
        assert server.json(ADA, "GET", "/api/v1/skills")["count"] == 3
        assert "notesicator" in server.json(ADA, "GET", "/api/v1/skills/notes")["text"]
        client = server.server.services.catalogs.of(ADA).sessions.start("test", subject="ada")
        try:
            for tool, given in (
                ("skill_load", {"name": "deploy"}),
                ("skill_load", {"name": "brew"}),
                ("skill_read", {"uri": "skill://brew/SKILL.md"}),
            ):
                assert client.call(tool, given).text == f"Error: {FILES_AWAY}"
            assert "notesicator" in client.call("skill_load", {"name": "notes"}).text
        finally:
            client.end()


def test_a_tenant_of_which_nothing_is_known_is_unavailable_and_not_empty(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address) as server:
        publish(server, "deploy")
    with running_server(tmp_path, address, seconds=600.0) as server:
        for file in tmp_path.glob("team*.sqlite*"):
            file.rename(tmp_path / f"away-{file.name}")
        for path in ("skills", "search", "skills/deploy"):
            found = server.call(ADA, "GET", f"/api/v1/{path}", q="deploy")
            assert found.status == 503, found.body
            assert b"the database does not answer" in found.body
        for file in tmp_path.glob("away-*"):
            file.rename(tmp_path / file.name.removeprefix("away-"))
        wait_for(lambda: True if server.call(ADA, "GET", "/api/v1/skills").status == 200 else None)
        assert names_for(server, "deploy") == ["deploy"]


def test_a_snapshot_that_was_copied_with_other_stamps_is_fetched_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "a") as first:
        built(first, publish(first, "deploy", "Mention the frobnicator.", "Ship the site."))
        record = first.published.shelf_of("acme").state.snapshot
        assert record is not None
    shutil.copytree(tmp_path / "a" / "team" / "snapshots", tmp_path / "b" / "team" / "snapshots")
    with running_server(tmp_path, address, home=tmp_path / "b") as second:
        snapshots = second.published.source.snapshots
        assert snapshots.placed("acme", record) is None
        assert names_for(second, "frobnicator") == ["deploy"]
        assert snapshots.placed("acme", record) is not None
        assert list(second.published.source.store_of("acme").trees()) == []
    assert "do not match its seal, so it is fetched again" in capsys.readouterr().err


def test_files_that_are_not_those_of_a_release_are_never_served(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "a", seconds=600.0) as server:
        artifacts = {}
        for name in ("deploy", "notes"):
            release = server.json(ADA, "POST", "/api/v1/releases", packed(name, f"Text of {name}."), 201)["release"]
            artifacts[name] = release["artifact"]
        built(server, 2)
        assert "Text of notes." in server.json(ADA, "GET", "/api/v1/skills/notes")["text"]
        kept = (tmp_path / "a/team/store").rglob("SKILL.md")
        (stored,) = [path for path in kept if "Text of notes." in path.read_text()]
    # Somebody changed the files on the machine of the server: they are fetched again.
    stored.chmod(0o644)
    stored.write_text("---\nname: notes\ndescription: Use it for notes.\n---\n\nOther text.\n")
    with running_server(tmp_path, address, home=tmp_path / "a", seconds=600.0) as server:
        assert "Text of notes." in server.json(ADA, "GET", "/api/v1/skills/notes")["text"]
    # The database names the archive of another release.
    with closing(open_database(address)) as database, database.transaction("acme") as transaction:
        assert transaction.execute("update tree set artifact = ?", (artifacts["notes"],)) == 2
    with running_server(tmp_path, address, home=tmp_path / "b", seconds=600.0) as server:
        assert "Text of notes." in server.json(ADA, "GET", "/api/v1/skills/notes")["text"]
        found = server.call(ADA, "GET", "/api/v1/skills/deploy")
        assert (found.status, b"Text of notes." in found.body) == (503, False)


def test_a_snapshot_that_is_finished_late_takes_the_place_of_no_newer_one(tmp_path: Path) -> None:
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:
        rev = publish(server, "deploy", "Mention the frobnicator.", "Ship the site.")
        built(server, rev)
        publish(server, "notes")
        shelf = server.published.shelf_of("acme")
        built(server, shelf.state.rev)
        before, snapshots = shelf.state.snapshot, server.published.source.snapshots
        skills = [skill for skill in shelf.catalog.skills if skill.source == "published"]
        newer: list[Any] = []

        def overtake(skill: Any) -> None:
            other = [one for one in skills if one.name == "notes"]
            newer.append(snapshots.build("acme", before.rev + 2, other, digests_of(other), shelf.make_ready))
            shelf.make_ready(skill)

        server.published.blobs.remove(before.digest)
        shutil.rmtree(snapshots.path_of("acme", before.digest))
        late = snapshots.build("acme", before.rev + 1, skills[:1], digests_of(skills[:1]), overtake)

        assert late == newer[0] == server.published.source.recorded("acme")
        assert server.published.blobs.has(late.digest)


def test_a_snapshot_with_the_bytes_of_the_one_before_stays_in_the_blob_store(tmp_path: Path) -> None:
    with running_server(tmp_path, f"sqlite:///{tmp_path}/team.sqlite") as server:
        rev = publish(server, "deploy", "Mention the frobnicator.", "Ship the site.")
        built(server, rev)
        shelf, snapshots = server.published.shelf_of("acme"), server.published.source.snapshots
        before, skills = shelf.state.snapshot, [skill for skill in shelf.catalog.skills if skill.source == "published"]

        after = snapshots.build("acme", rev + 1, skills, digests_of(skills), shelf.make_ready)

        assert (after.digest, after.rev) == (before.digest, rev + 1)
        assert server.published.blobs.has(after.digest)


def test_who_waits_for_the_catalog_of_one_tenant_keeps_no_other_waiting(machine: Machine, tmp_path: Path) -> None:
    asked, answers = threading.Event(), threading.Event()

    class SlowDatabase(SqliteDatabase):
        """A database that answers for one tenant when it may."""

        def transaction(self, tenant: str, *, readonly: bool = False) -> Any:
            if tenant == "acme":
                asked.set()
                assert answers.wait(60)
            return super().transaction(tenant, readonly=readonly)

    database = SlowDatabase(str(tmp_path / "team.sqlite"))
    for tenant in ("acme", "umbrella"):
        database.add_tenant(tenant)
    published = PublishedCatalogs(
        machine.shelf(), database, FolderBlobs(str(tmp_path / "blobs")), str(tmp_path / "own")
    )
    catalogs = TeamCatalogs(published.shelf_of)
    with closing(database), closing(catalogs), ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(catalogs.of, ADA) for _ in range(2)]
        assert asked.wait(60)
        try:
            other = pool.submit(catalogs.of, ADA._replace(tenant="umbrella")).result(timeout=60)
            assert catalogs.opened(key_of(ADA)) is None
        finally:
            answers.set()

        assert other is not waiting[0].result(60) is waiting[1].result(60)


def test_a_release_that_is_replaced_twice_while_it_is_fetched_is_not_called_lost(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class BusyBlobs(FolderBlobs):
        """Blobs of which the first is only got after others have published."""

        def get(self, digest: str) -> bytes | None:
            while texts:
                releases.publish(ADA, read_upload(packed("deploy", texts.pop())))
                shelf.follow()
            return super().get(digest)

    texts: list[str] = []
    blobs = BusyBlobs(str(tmp_path / "blobs"))
    with closing(open_database(f"sqlite:///{tmp_path}/team.sqlite")) as database:
        database.add_tenant("acme")
        releases = Releases(database, blobs)
        shelf = TenantShelf(machine.shelf(), "acme", ReleaseSource(database, blobs, str(tmp_path / "team")))
        for name in ("deploy", "brew"):
            releases.publish(ADA, read_upload(packed(name, "One.")))
            shelf.follow()
        texts += ["Three.", "Two."]

        assert shelf.bring_near() == (False, True)
        assert capsys.readouterr().err == ""


def test_files_that_another_tenant_has_on_this_machine_are_fetched_again(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path / "blobs"), make_environment(str(tmp_path), str(tmp_path), {}))
    upload = read_upload(packed("plan", "A plan."))
    with closing(open_database(f"sqlite:///{tmp_path}/team.sqlite")) as database:
        source = ReleaseSource(database, blobs, str(tmp_path / "team"))
        blobs.put_new(upload.artifact_digest, upload.artifact)
        source.fetch(source.store_of("default"), upload.tree, upload.artifact_digest)
        blobs.remove(upload.artifact_digest)

        # What is there at once would tell by the time that somebody else has it.
        source.fetch(source.store_of("default"), upload.tree, upload.artifact_digest)
        with pytest.raises(BlobsAway):
            source.fetch(source.store_of("acme"), upload.tree, upload.artifact_digest)


def test_a_snapshot_that_the_blob_store_lost_is_built_again(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    with running_server(tmp_path, address, home=tmp_path / "a") as first:
        built(first, publish(first, "deploy", "Mention the frobnicator.", "Ship the site."))
        record = first.published.shelf_of("acme").state.snapshot
        first.published.blobs.remove(record.digest)
    with running_server(tmp_path, address, home=tmp_path / "b") as second:
        shelf = second.published.shelf_of("acme")

        def rebuilt() -> bool | None:
            shelf.follow()
            return True if shelf.state.snapshot not in (None, record) else None

        wait_for(rebuilt)
        assert second.published.source.snapshots.placed("acme", shelf.state.snapshot) is not None
        assert names_for(second, "frobnicator") == ["deploy"]


def answer_at(url: str, token: str, body: bytes | None = None) -> tuple[int, str]:
    """Send a request as a client of the protocol or a browser does; return the status and text of the answer."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream, text/html"}
    request = urllib.request.Request(url, body, {**headers, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status), answer.read().decode() if body is None else ""
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def status_at(url: str, token: str, body: bytes | None = None) -> int:
    """Return the status of the answer to a request."""
    return answer_at(url, token, body)[0]


def text_at(url: str, token: str) -> str:
    """Return the text of a page."""
    return answer_at(url, token)[1]


@pytest.mark.slow
def test_pages_of_skills_go_on_without_the_database_and_say_so(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    token = token_for(address, "ada", "skills:read", "journal:read", tenant="acme")
    publish_elsewhere(address, tmp_path, "deploy", "Do it.", "Ship the site.")
    with serving(tmp_path / "a", address, tmp_path / "blobs") as server:
        pages = [f"{server}{path}" for path in ("/", "/skills", "/skills/deploy", "/search?q=ship", "/problems")]
        assert [status_at(page, token) for page in pages] == [200] * len(pages)
        away = [file.rename(tmp_path / f"away-{file.name}") for file in tmp_path.glob("team*.sqlite*")]
        told = "The database does not answer. These are the skills as they were"
        wait_for(lambda: told in text_at(pages[0], token) or None)
        assert all(told in text_at(page, token) for page in pages)
        assert "Do it." in text_at(f"{server}/skills/deploy", token)
        assert status_at(f"{server}/usage", token) == 503
        for file in away:
            file.rename(tmp_path / file.name.removeprefix("away-"))


@pytest.mark.slow
def test_every_surface_is_unavailable_while_nothing_is_known_of_a_tenant(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/team.sqlite"
    token = token_for(address, "ada", "skills:read", "skills:publish", tenant="acme")
    publish_elsewhere(address, tmp_path, "brew", "Boil it.", "Make coffee.")
    shutil.rmtree(tmp_path / "blobs")
    publish_elsewhere(address, tmp_path, "deploy", "Do it.", "Ship the site.")
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    begin = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).encode()
    with serving(tmp_path / "a", address, tmp_path / "blobs") as server:
        surfaces = ((f"{server}/api/v1/skills", None), (f"{server}/skills", None), (f"{server}/mcp", begin))
        # The token is known now, and the skills of its tenant are not.
        assert status_at(f"{server}/api/v1/me", token) == 200
        away = [file.rename(tmp_path / f"away-{file.name}") for file in tmp_path.glob("team*.sqlite*")]
        assert [status_at(url, token, body) for url, body in surfaces] == [503, 503, 503]
        for file in away:
            file.rename(tmp_path / file.name.removeprefix("away-"))
        for url, body in surfaces:
            wait_for(partial(lambda *asked: True if status_at(*asked) == 200 else None, url, token, body))
        # The page of a release whose files are lost does not look as if it had no text.
        assert [status_at(f"{server}/skills/{name}", token) for name in ("brew", "deploy")] == [503, 200]
