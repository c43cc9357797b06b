"""Attack skillshelf: generated machines and messages for a while, or the table of all known attacks.

    python tools/attack.py --minutes 60          generate cases until the time is up; keep what finds a defect
    python tools/attack.py --figures [--scale N] try every row of the table and print tried, held and lost

A case that finds a defect is made smaller and written to tests/attack/found, where the tests play it again. As root the
cases are also played by an ordinary user, who must see the same.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
FOUND = CHECKOUT / "tests" / "attack" / "found"
sys.path[:0] = [str(CHECKOUT / "tests"), str(CHECKOUT / "src")]

from support import floods, kills  # noqa: E402
from support.attack_rows import ROWS, Row, Tally, new_machine  # noqa: E402
from support.hostile import Case, make_case, smaller  # noqa: E402
from support.hostile_messages import attack_mcp, attack_rpc  # noqa: E402
from support.probes import Outcome, play  # noqa: E402
from support.sandbox_rows import SANDBOX_ROWS, as_ordinary_user  # noqa: E402

NOBODY = 65534
MESSAGES_EVERY = 25
"""Cases between two processes that get hostile messages; starting one takes as long as many cases."""

MESSAGES = 200


class Report(NamedTuple):
    """What one worker tried and found."""

    cases: int
    probes: int
    messages: int
    defects: Counter[str]


def main() -> int:
    """Return 1 if anything was lost or found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; by default a new one each time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--figures", action="store_true", help="print the table of all known attacks")
    parser.add_argument("--scale", type=int, default=10, help="the size of the generated rows")
    given = parser.parse_args()
    return figures(given.scale) if given.figures else attack(given.minutes, given.seed, given.jobs)


# Figures ------------------------------------------------------------------------------------------------


def figures(scale: int) -> int:
    """Print the table: what each row tried, what held, what was lost."""
    lost = 0
    print("| area | tried | held | lost |\n|---|---|---|---|")
    for row in (*ROWS, *SANDBOX_ROWS, *_process_rows(), *_test_rows()):
        tally = Tally()
        row.attack(tally, scale)
        lost += _line(row.area, tally.tried, tally.lost)
        if row in SANDBOX_ROWS and (again := as_ordinary_user(SANDBOX_ROWS.index(row))):
            lost += _line(f"{row.area}, ordinary user", again["tried"], again["lost"])
    return 1 if lost else 0


def _line(area: str, tried: int, lost: list[str]) -> int:
    print(f"| {area} | {tried} | {tried - len(lost)} | {len(lost)} |", flush=True)
    for what in lost[:10]:
        print(f"  lost: {what}", file=sys.stderr)
    return len(lost)


def _process_rows() -> list[Row]:
    """Return the rows that start servers and programs of their own."""

    def rpc(tally: Tally, scale: int) -> None:
        with new_machine() as machine:
            tally.tried += 300 * scale
            tally.lost += attack_rpc(machine, random.Random(1), 300 * scale)

    def mcp(tally: Tally, scale: int) -> None:
        with new_machine() as machine:
            tally.tried += 100 * scale
            tally.lost += attack_mcp(machine, random.Random(1), 100 * scale)

    def killed(way: str) -> Callable[[Tally, int], None]:
        def attack(tally: Tally, scale: int) -> None:
            numbers = {"early": 50 * scale, "late": 50 * scale, "signals": 200 * scale, "seed": 1}
            # It takes in all orphans of its process, so it gets one of its own.
            with get_context("spawn").Pool(1) as pool:
                found = pool.apply(kills.attack, (way,), numbers)
            tally.tried += sum(losses.tried for losses in found.values())
            tally.lost += [f"{name}: {losses}" for name, losses in found.items() if losses.lost]

        return attack

    def flooded(name: str) -> Callable[[Tally, int], None]:
        def attack(tally: Tally, scale: int) -> None:
            outcome = floods.run_flood(name, scale / 10)
            tally.tried += outcome.tried
            tally.lost += [f"{outcome.flood}: {outcome.stderr[-300:]}"] * outcome.lost

        return attack

    return [
        Row("RPC: malformed lines", rpc, slow=True),
        Row("MCP: malformed lines", mcp, slow=True),
        *(Row(f"parent killed early and later, signals: {way}", killed(way), slow=True) for way in kills.WAYS),
        *(Row(f"HTTP: good clients during a flood of {name}", flooded(name), slow=True) for name in floods.FLOODS),
    ]


def _test_rows() -> list[Row]:
    """Return the rows whose attacks are tests elsewhere, some of them with more rounds than usual."""

    def tests(*paths: str, rounds: str = "") -> Callable[[Tally, int], None]:
        def attack(tally: Tally, scale: int) -> None:
            words = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *paths]
            environment = os.environ | ({rounds: str(30 * scale)} if rounds else {})
            done = subprocess.run(words, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
            counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
            tally.tried += sum(counts.values())
            tally.lost += [done.stdout[-600:]] * (counts.get("failed", 0) + counts.get("error", 0))
            tally.held("the tests ran", done.returncode == 0)

        return attack

    return [
        Row(
            "journal: writers killed",
            tests("tests/journal/test_journal_kills.py", rounds="SKILLSHELF_KILLS"),
            slow=True,
        ),
        Row("journal: full, grown and remounted disks", tests("tests/journal/test_journal_disks.py"), slow=True),
        Row("cache: damage, other owners, other parsers", tests("tests/catalog/test_cache_damage.py"), slow=True),
        Row("search index: damage", tests("tests/search/test_search_index.py"), slow=True),
        Row("HTTP: Host, Origin, token, sessions", tests("tests/servers/test_mcp_http.py"), slow=True),
        Row("addresses by hand, on every surface", tests("tests/catalog/test_addresses.py"), slow=True),
        Row("policy: rules and spellings by hand", tests("tests/session/test_policy.py"), slow=True),
    ]


# The long run -------------------------------------------------------------------------------------------


def attack(minutes: float, seed: int | None, jobs: int) -> int:
    """Play cases until the time is up; return 1 if a defect was found."""
    first = random.randrange(2**40) if seed is None else seed
    print(f"seeds from {first}, {jobs} at a time, {minutes:g} minutes", flush=True)
    until = time.monotonic() + 60 * minutes
    with get_context("fork").Pool(jobs) as pool:
        reports = pool.starmap(_work, [(first + number, jobs, until) for number in range(jobs)])
    defects = sum((report.defects for report in reports), Counter[str]())
    totals = [sum(values) for values in zip(*(report[:3] for report in reports), strict=True)]
    print(f"{totals[0]} cases, {totals[1]} probes, {totals[2]} messages, {sum(defects.values())} defects")
    for defect, count in defects.most_common():
        print(f"{count:6}  {defect}")
    return 1 if defects else 0


def _work(seed: int, step: int, until: float) -> Report:
    cases = probes = sent = 0
    defects: Counter[str] = Counter()
    # Notes of servers in this process are no findings.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while time.monotonic() < until:
        case = make_case(seed)
        outcome = play(case)
        cases, probes = cases + 1, probes + outcome.probes
        found = list(outcome.defects)
        if os.geteuid() == 0 and cases % 2:
            found += _as_ordinary_user(case, outcome)
        for defect in found:
            kind = _kind(defect)
            if kind not in defects and defect in outcome.defects:
                _keep(case, kind)
            defects[kind] += 1
        if cases % MESSAGES_EVERY == 0:
            sent += 2 * MESSAGES
            dice = random.Random(seed)
            for server, send in (("rpc", attack_rpc), ("mcp", attack_mcp)):
                with new_machine() as machine:
                    wrong = send(machine, dice, MESSAGES)
                defects.update(f"{server} messages of seed {seed}: {what}" for what in wrong)
        seed += step
    return Report(cases, probes, sent, defects)


def _as_ordinary_user(case: Case, seen_by_root: Outcome) -> list[str]:
    """Play a case as somebody without privileges; return what is wrong, also that another thing was seen."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            outcome = play(case, surfaces=False)
            same = outcome.seen == seen_by_root.seen
            wrong = [*outcome.defects, *([] if same else ["user: another catalog than root's"])]
            os.write(writer, "\0".join(wrong).encode("utf-8", "replace")[:60000])
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read().decode()
    if os.waitpid(child, 0)[1]:
        return ["user: the case did not end well"]
    return [f"user: {line}" for line in said.split("\0") if line]


def _kind(defect: str) -> str:
    """Return a defect without what differs from case to case."""
    words = (("/tmp/" in word and "PATH") or word for word in defect[:160].split())
    return " ".join(words)


def _keep(case: Case, kind: str) -> None:
    """Write the smallest case that still shows a defect, once for each kind."""
    deadline = time.monotonic() + 60

    def still(candidate: Case) -> bool:
        return time.monotonic() < deadline and any(_kind(defect) == kind for defect in play(candidate).defects)

    FOUND.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "-" for letter in kind.lower())[:48].strip("-")
    path = FOUND / f"{name}.json"
    if not path.exists():
        path.write_text(smaller(case, still).to_json())


if __name__ == "__main__":
    sys.exit(main())
