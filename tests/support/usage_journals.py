"""Journals of three users over four weeks: real sessions, written again with times of those weeks.

PYTHONPATH=src:tests python tests/support/usage_journals.py FOLDER
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import skillshelf
from skillshelf.journal.file import Journal, read
from skillshelf.journal.parts import Rotation
from support.trees import write_skill

USERS = ("ada", "ben", "cem")
WEEKS = ("2026-W42", "2026-W43", "2026-W44", "2026-W45")
FIRST_MONDAY_MS = 1_791_763_200_000
"""Monday, 12 October 2026, midnight in UTC."""

SKILLS = ("code-review", "deploy", "invoices", "migrations", "release-notes", "triage")
NEVER_USED = ["invoices", "migrations"]
_DAY_MS = 24 * 60 * 60 * 1000

Session = skillshelf.Session


def _ada(session: Session, week: int) -> None:
    session.call("skill_search", {"query": "write release notes"})
    session.call("skill_load", {"name": "release-notes"})
    session.call("skill_load", {"name": "release-notes"})
    if week == 3:
        session.call("skill_load", {"name": "code-review"})


def _ben(session: Session, week: int) -> None:
    session.call("skill_run", {"name": "deploy", "script": "go.sh"})
    if week % 2:
        session.call("skill_search", {"query": "review my change"})
        session.call("skill_load", {"name": "code-review"})
    session.call("skill_load", {"name": "no-such-skill"})


def _cem(session: Session, week: int) -> None:
    if week < 2:
        session.call("skill_load", {"name": "triage"})
    session.call("skill_load", {"name": "deploy"})
    session.call("skill_read", {"uri": "skill://code-review/SKILL.md"})


ACTS: dict[str, Callable[[Session, int], None]] = {"ada": _ada, "ben": _ben, "cem": _cem}


def make_home(home: Path) -> None:
    """Put the skills into a home folder; two have warnings, which are not usage."""
    root = home / ".agents" / "skills"
    for name in SKILLS:
        write_skill(root, name)
    scripts = root / "deploy" / "scripts"
    scripts.mkdir()
    (scripts / "go.sh").write_text("echo gone\n")
    write_skill(root, "invoices", "---\nname: invoices\ndescription: Writes: invoices. Use for bills.\n---\nBody\n")


def make_journals(folder: Path, *, rotation: Rotation | None = None, subjects: bool = True) -> list[Path]:
    """Write one journal for each user; each has its own machine, with the same skills."""
    made = []
    for user in USERS:
        path = folder / f"{user}.jsonl"
        with tempfile.TemporaryDirectory() as base:
            home, cwd = Path(base) / user, Path(base) / user / "work"
            cwd.mkdir(parents=True)
            make_home(home)
            for week in range(len(WEEKS)):
                _write_week(path, user, week, home, cwd, rotation, subject=user if subjects else None)
        made.append(path)
    return made


def _write_week(
    path: Path, user: str, week: int, home: Path, cwd: Path, rotation: Rotation | None, *, subject: str | None
) -> None:
    """Open a session, act, and write its events with the times of a week, a second apart."""
    shelf = skillshelf.open_shelf(cwd, home=home, env={"HOME": str(home)})
    recorded = home / f"week-{week}.jsonl"
    policy: dict[str, Any] = {"deny": [{"tool": "skill_run", "skill_name": "deploy"}]}
    with shelf.session(policy, journal=recorded, subject=subject, client="probe/1.0") as session:
        ACTS[user](session, week)
    now = FIRST_MONDAY_MS + (7 * week + USERS.index(user)) * _DAY_MS
    lines = [line.record for line in read(str(recorded)) if line.record]
    journal = Journal(str(path), session=lines[0]["session"], rotation=rotation, now_ms=lambda: now)
    for record in lines:
        now += 1000
        payload = {name: value for name, value in record.items() if name not in _OF_THE_LINE}
        assert journal.append(record["type"], payload), journal.problem
    journal.close()


_OF_THE_LINE = ("seq", "session", "ts_ms", "type", "prev", "sum")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for journal_path in make_journals(target, rotation=Rotation(max_bytes=8192)):
        print(journal_path)
