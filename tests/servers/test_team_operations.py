"""Operators see what a team server does and what is wrong with it: metrics, the blob store, and a full disk."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support.journal_streams import chain, events
from support.mcps import HELLO
from support.published_servers import fetched, packed, served_process, token_for
from support.teams import RunningTeam, running_team
from support.trees import SOURCE, Machine, write_skill
from support.waiting import wait_for

from skillshelf.core.limits import FILE_THREADS
from skillshelf.servers.mcp.http import HttpLimits
from skillshelf.servers.team.blobs import FolderBlobs
from skillshelf.servers.team.database import Database, SqliteDatabase
from skillshelf.servers.team.metrics import METRICS
from skillshelf.servers.team.tokens import revoke_tokens

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def values_of(team: RunningTeam) -> dict[str, float]:
    """The sum of the samples of every metric; a histogram has the number of its durations."""
    found: dict[str, float] = {}
    for line in team.get("/metrics").body.decode().splitlines():
        if not line.startswith("#"):
            name, value = line.partition("{")[0].partition(" ")[0], line.rpartition(" ")[2]
            name = name.removesuffix("_count")
            found[name] = found.get(name, 0) + float(value)
    return found


def use_everything(team: RunningTeam) -> None:
    """Do what each metric counts at least once."""
    admin = team.token("root", "admin")
    team.get("/api/v1/search?q=alpha", admin)
    team.get("/api/v1/skills")
    team.ask("POST", "/mcp", admin, headers=JSON, body=json.dumps(HELLO).encode())
    team.ask("POST", "/login", body=f"token={admin}".encode())
    assert team.ask("POST", "/api/v1/releases", admin, body=packed("beta")).status == 201
    assert team.ask("POST", "/api/v1/releases", admin, body=packed("beta")).status == 200
    lines = chain(events(3))
    path = "/api/v1/journal?stream=" + "a" * 32
    assert team.ask("POST", path, admin, body=b"".join(line + b"\n" for line in lines)).status == 200
    edited = [line.replace(b"probe/1.0", b"probe/2.0") for line in lines]
    team.ask("POST", path, admin, body=b"".join(line + b"\n" for line in edited))


def test_every_metric_is_moved_by_what_it_counts(machine: Machine, database: Database) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    with running_team(machine, database, blobs=FolderBlobs(str(machine.base / "blobs"))) as team:
        team.wait_until_ready()
        use_everything(team)
        found = values_of(team)

    assert {name: found.get(name) for name in METRICS if not found.get(name)} == {}
    assert found["skillshelf_releases_total"] == 1
    assert found["skillshelf_journal_lines_total"] == 3


def test_the_first_event_is_an_increase_of_its_counter(machine: Machine, database: Database) -> None:
    with running_team(machine, database) as team:
        lines = team.get("/metrics").body.decode().splitlines()

    # A counter that appears with its first event has increased by nothing, and no alarm sees it.
    assert {
        "skillshelf_refused_tokens_total 0",
        "skillshelf_releases_total 0",
        'skillshelf_logins_total{outcome="refused"} 0',
        'skillshelf_journal_refused_total{kind="fork"} 0',
        'skillshelf_journal_refused_total{kind="cut"} 0',
    } <= set(lines)


def test_the_metrics_say_that_the_database_is_away_also_if_nobody_asks_whether_the_server_is_ready(
    machine: Machine, tmp_path: Path
) -> None:
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as team:
        assert values_of(team)["skillshelf_database_up"] == 1
        (tmp_path / "team.sqlite").rename(tmp_path / "elsewhere")
        assert values_of(team)["skillshelf_database_up"] == 0


# The blob store -----------------------------------------------------------------------------------


def test_a_blob_store_that_cannot_be_written_makes_a_server_not_ready(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    blobs = FolderBlobs(str(tmp_path / "file"))
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), blobs=blobs) as team:
        found = wait_for(lambda: team.get("/ready").json if b"cannot be used" in team.get("/ready").body else None)

        assert (found["status"], found["checks"]["blobs"]) == ("not ready", "cannot be used")
        assert str(tmp_path) not in json.dumps(found)


def test_a_data_folder_that_cannot_be_written_makes_a_server_with_releases_not_ready(
    machine: Machine, tmp_path: Path
) -> None:
    # Where the files of releases are kept that somebody uses.
    (machine.base / "team").write_text("not a folder")
    blobs = FolderBlobs(str(tmp_path / "blobs"))
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), blobs=blobs) as team:
        team.wait_until_ready()
        bob = team.token("bob", "admin")
        assert team.ask("POST", "/api/v1/releases", bob, body=packed("deploy")).status == 201

        found = wait_for(lambda: team.get("/ready").json if team.get("/ready").status == 503 else None)

        assert found["checks"]["blobs"] == "cannot be used"
        assert str(machine.base) not in json.dumps(found)


class HangingBlobs(FolderBlobs):
    """A store that does not answer those who write."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.asked: list[str] = []
        self.answers = threading.Event()

    def put_new(self, digest: str, data: bytes) -> None:
        self.asked.append(digest)
        self.answers.wait(60)
        super().put_new(digest, data)


def test_a_blob_store_that_hangs_keeps_nobody_waiting_who_does_not_need_it(machine: Machine, tmp_path: Path) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    blobs = HangingBlobs(str(tmp_path / "blobs"))
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), blobs=blobs) as team:
        team.wait_until_ready()
        ada, bob = team.token("ada", "skills:read"), team.token("bob", "admin")
        with ThreadPoolExecutor(40) as pool:
            sent = [
                pool.submit(team.ask, "POST", "/api/v1/releases", bob, body=packed(f"skill-{number}"))
                for number in range(40)
            ]
            wait_for(lambda: len(blobs.asked) >= FILE_THREADS)
            answers = [team.get(path, ada).status for path in ("/health", "/ready", "/api/v1/skills", "/skills")]
            found = team.get("/api/v1/search?q=alpha", ada).json
            blobs.answers.set()
            assert {one.result().status for one in sent} == {201}

    assert answers == [200, 200, 200, 200]
    assert [one["name"] for one in found["results"]] == ["alpha"]


def test_a_stream_ends_when_its_token_is_revoked(machine: Machine, tmp_path: Path) -> None:
    limits = HttpLimits(authorized_seconds=0.05)
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite")), limits=limits) as team:
        token = team.token("vic", "skills:read")
        opened = team.ask("POST", "/mcp", token, headers=JSON, body=json.dumps(HELLO).encode())
        stream = HTTPConnection("127.0.0.1", team.port, timeout=30)
        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        stream.request("GET", "/mcp", headers={**headers, "mcp-session-id": opened.headers["mcp-session-id"]})
        answer = stream.getresponse()
        assert answer.status == 200

        revoke_tokens(team.database, "default", "vic")
        # What was known of it would count for a minute.
        team.server.services.authenticator.forget(token)

        assert answer.read() is not None
        stream.close()


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["{}/file", "{}/file/below", "/proc/nope/x"])
def test_a_server_does_not_start_with_a_folder_of_blobs_that_cannot_be_written(
    machine: Machine, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = machine.run("serve", "--listen", "127.0.0.1:0", "--blobs", folder.format(tmp_path))

    assert done.returncode != 0
    assert "cannot be used" in done.stderr
    assert "--blobs" in done.stderr
    assert done.stderr.count("\n") == 1


# A full disk --------------------------------------------------------------------------------------

FULL = """
import json, sys
from pathlib import Path
from support.journal_streams import chain, events
from support.published_servers import packed, running_server, token_for
from skillshelf.servers.team.values import Caller

disk = Path(sys.argv[1])
ada = Caller("ada", "acme", frozenset({"admin"}))
database = f"sqlite:///{disk}/team.sqlite"
token = token_for(database, "ada", "admin", tenant="acme")
with running_server(disk, database) as server:
    server.json(ada, "POST", "/api/v1/releases", packed("alpha"), 201)
    filler = open(disk / "filler", "wb", buffering=0)
    for size in (65536, 4096, 512, 1):
        try:
            while True:
                filler.write(bytes(size))
        except OSError:
            pass
    lines = b"".join(line + b"\\n" for line in chain(events(400)))
    answers = [
        server.call(ada, "POST", "/api/v1/releases", packed("beta", "text " * 2000)),
        server.call(ada, "POST", "/api/v1/journal", lines, stream="a" * 32),
    ]
    told = [[one.status, json.loads(one.body)["error"]["message"]] for one in answers]
    told.append(server.server.services.problems()["database"])
    while (page := server.call(ada, "POST", "/login", f"token={token}".encode())).status == 303:
        pass
    told.append("Nobody can log in now: no space left on the server" in page.body.decode())
    filler.truncate(0)
    again = server.call(ada, "POST", "/api/v1/releases", packed("beta", "text " * 2000))
    print(json.dumps([*told, again.status, server.server.services.problems()["database"]]))
"""


@pytest.mark.slow
def test_a_full_disk_is_named_by_publishing_pushing_logging_in_and_readiness(tmp_path: Path) -> None:
    # A disk of a few megabytes, in a space of its own: nobody else sees it.
    mounted = f"mount -t tmpfs -o size=6m none {tmp_path} && exec {sys.executable} - {tmp_path}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mounted],
        input=FULL,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{SOURCE}:{Path(__file__).parent.parent}"},
        timeout=300,
        check=False,
    )
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip("a test that mounts a small disk needs namespaces of users")
    assert done.returncode == 0, done.stderr

    full = "no space left on the server's disk"
    assert json.loads(done.stdout) == [[503, full], [503, full], full, True, 201, None]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_access_log_goes_on_in_a_new_file_when_a_signal_says_that_it_was_moved_away(tmp_path: Path) -> None:
    log, old = tmp_path / "access.log", tmp_path / "access.log.1"
    database = f"sqlite:///{tmp_path}/team.sqlite"
    token = token_for(database, "ada", "skills:read")
    options = ("--access-log", str(log))

    def count(path: Path) -> int:
        """The number of lines of searches; a probe comes at any time."""
        return path.read_text().count("/api/v1/search") if path.exists() else 0

    with served_process(tmp_path / "home", database, tmp_path / "blobs", *options) as (process, address):
        search = f"{address}/api/v1/search?q=x"
        assert fetched(search, token)[0] == 200
        wait_for(lambda: count(log) == 2)
        log.rename(old)
        assert fetched(search, token)[0] == 200
        wait_for(lambda: count(old) == 4)
        process.send_signal(signal.SIGUSR1)
        wait_for(log.exists)
        assert fetched(search, token)[0] == 200
        wait_for(lambda: count(log) == 2)
        # A place where no file can be: the server goes on with the one that it has.
        log.rename(tmp_path / "access.log.2")
        log.mkdir()
        process.send_signal(signal.SIGUSR1)
        wait_for(lambda: "cannot be written: Is a directory" in (tmp_path / "home/log").read_text())
        assert fetched(search, token)[0] == 200
        wait_for(lambda: count(tmp_path / "access.log.2") == 4)
    assert count(old) == 4
