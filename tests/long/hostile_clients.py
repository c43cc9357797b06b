"""Attack a team server with slow, vanishing, silent and malformed clients, and serve an honest one meanwhile.

PYTHONPATH=src:tests:bench python tests/long/hostile_clients.py [--database postgresql] [--share 1.0] [NAME ...]

For each attack it prints the 95th percentile of an honest client (a search and a page, on new connections) before and
during it, and what the server has open afterwards. An honest request that is not answered, files or threads that stay
open, an odd request with a wrong answer, and a line of the server that is not one of ours are problems.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serve_fixtures import TeamCluster, TeamProcess, page, token_of
from support.team_attacks import HELD, LEAVING, ODD, WAYS, Target, WrongTokens, answer_to, held, honest, leave, usage_of

from skillshelf.install.pack import zip_of

HONEST = 40
REST_SECONDS = 75.0
POOLED = 24
"""Open files of eight connections to a database, which stay."""
LARGE_BYTES = 15_000_000


class Trial:
    """A server under attack, and what was wrong."""

    def __init__(self, server: TeamProcess, target: Target, friend: Target, share: float) -> None:
        self.server = server
        self.target = target
        self.friend = friend
        self.share = share
        self.wrong: list[str] = []
        self.before = 0.0

    def settle(self) -> None:
        """Note the state before the attacks, after the server has done everything once."""
        asyncio.run(honest(self.friend, 40))
        self.before = _p95(asyncio.run(honest(self.friend, HONEST)))
        self.rest = usage_of(self.server.process.pid)
        say(f"before: p95 {self.before * 1e3:.0f} ms, {self.rest}")

    def hold(self, name: str) -> None:
        """Hold connections, and serve the honest client twice meanwhile."""

        async def run() -> list[float]:
            async with held(self.target, HELD[name], self.share):
                first = await honest(self.friend, HONEST)
                await asyncio.sleep(3)
                return sorted(first + await honest(self.friend, HONEST))

        self._judge(f"{int(HELD[name].clients * self.share)} {name}", run)

    def try_tokens(self, clients: int = 200) -> None:
        """Try wrong tokens with many clients."""
        attack = WrongTokens(self.target, int(clients * self.share))

        async def run() -> list[float]:
            async with attack.running():
                await asyncio.sleep(2)
                return await honest(self.friend, HONEST)

        before = self.server.cpu
        self._judge(f"{int(clients * self.share)} clients with wrong tokens", run)
        tried = max(1, sum(attack.tried.values()))
        say(f"  {attack.tried}, {(self.server.cpu - before) / tried * 1e3:.2f} ms of CPU each with the honest ones")

    def _judge(self, what: str, run: object) -> None:
        try:
            times = asyncio.run(run())  # type: ignore[operator]
        except (AssertionError, OSError, TimeoutError) as error:
            self.wrong.append(f"{what}: the honest client was not served: {error!r}")
            times = [float("inf")]
        peak = usage_of(self.server.process.pid)
        rest = self.wait_until_back(what)
        say(f"{what:45} p95 {_p95(times) * 1e3:6.0f} ms, slowest {times[-1] * 1e3:6.0f} ms, {peak} then {rest}")

    def wait_until_back(self, what: str) -> object:
        """Return what the server uses once it is back, or after a while."""
        end = time.perf_counter() + REST_SECONDS
        while True:
            now = usage_of(self.server.process.pid)
            if now.files <= self.rest.files + POOLED and now.threads <= self.rest.threads + 24:
                return now
            if time.perf_counter() > end:
                self.wrong.append(f"{what}: {now} is left of {self.rest}")
                return now
            time.sleep(0.2)

    def leave(self) -> None:
        """Leave at every phase in every way."""
        for sent in LEAVING.values():
            for way in WAYS:
                for _ in range(max(1, int(20 * self.share))):
                    leave(self.target, sent(self.target), way)

        async def run() -> list[float]:
            return await honest(self.friend, HONEST)

        self._judge("clients that leave", run)

    def odd(self) -> None:
        """Send every odd request."""
        for name, one in ODD.items():
            try:
                status, data = answer_to(self.target, one.sent(self.target))
            except TimeoutError:
                status, data = -1, b""
            if status not in one.statuses:
                self.wrong.append(f"{name}: {status} {data[:200]!r}")
        self.wait_until_back("odd requests")


def _p95(times: list[float]) -> float:
    return times[len(times) * 95 // 100]


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Yield the address of a new database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/team.sqlite"
        return
    with TeamCluster(folder / "pg") as cluster:
        yield cluster.new_database()


def publish(server: TeamProcess, token: str) -> None:
    """Publish skills, one of them with a large file."""
    large = random.Random(1).randbytes(LARGE_BYTES)
    skills = {f"skill-{n}": {"SKILL.md": page(f"skill-{n}", "Review the code. " * 50, "Reviews.")} for n in range(200)}
    skills["large"] = {"SKILL.md": page("large", "A page.", "Has a large file."), "large.bin": large}
    for name, contents in skills.items():
        done = server.ask("POST", "/api/v1/releases?version=1", token, zip_of(contents, wrapper=name))
        assert done.status == 201, done.body[:300]


def say(text: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run all attacks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--share", type=float, default=1.0, help="the part of the full numbers")
    parser.add_argument("names", nargs="*", default=[*HELD, "wrong tokens", "leave", "odd"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hostile") as made, database(given.database, Path(made)) as address:
        token = token_of(address, "ada", "admin")
        with TeamProcess(Path(made) / "home", address, Path(made) / "blobs") as server:
            server.wait_until_ready()
            publish(server, token)
            friend = Target(server.port, token_of(address, "ben", "skills:read"))
            trial = Trial(server, Target(server.port, token), friend, given.share)
            trial.settle()
            acts = {"wrong tokens": trial.try_tokens, "leave": trial.leave, "odd": trial.odd}
            for name in given.names:
                acts[name]() if name in acts else trial.hold(name)
            began = time.perf_counter()
            status = server.stop()
            say(f"stopped with status {status} after {time.perf_counter() - began:.1f} s; it said:\n{server.log}")
            trial.wrong += [line for line in server.log.splitlines() if not line.startswith("skillshelf: ")]
    for line in trial.wrong:
        say(line)
    say(f"{len(trial.wrong)} problems")
    return int(bool(trial.wrong))


if __name__ == "__main__":
    sys.exit(main())
