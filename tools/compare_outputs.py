"""Compare what two versions print as JSON: `python tools/compare_outputs.py OLD_SOURCE NEW_SOURCE`.

Runs every command that has `--json` on the example shelf of the tests, in every profile, with both versions, and prints
each value that differs. Exit status 1 if anything but a sentence (a value with a blank in it) differs.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
PROFILES = ("standard", "strict", "codelia", "swiftagent", "mycodeagent", "rip", "omp")
BY_PROFILE = (
    ("list",),
    ("list", "--all"),
    ("search", "release notes"),
    ("show", "release-notes"),
    ("show", "nope"),
    ("read", "skill://release-notes/SKILL.md"),
    ("read", "skill://release-notes/none.md"),
    ("prompt", "--trust"),
    ("tools", "--trust"),
    ("check",),
)
ONCE = (
    ("why", "release-notes"),
    ("why", "nope"),
    ("hosts",),
    ("hosts", "--diff", "codex", "opencode"),
    ("profile",),
    *(("profile", name) for name in PROFILES),
    ("trust", "--list"),
    ("new", "example", "--description", "Says hello. Use when a greeting is asked for."),
    ("disable", "release-notes"),
    ("enable", "release-notes"),
    ("trust",),
    ("link", "release-notes", "--to", "codex"),
    ("show", "release-notes", "--journal", "run.jsonl"),
    ("log", "verify", "run.jsonl"),
    ("log", "stats", "run.jsonl"),
    ("log", "replay", "run.jsonl"),
)


def outputs(source: Path, folder: Path) -> dict[str, Any]:
    """Return the exit status and the JSON of every command, run in the same folder by one version."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(REPOSITORY / "tests" / "fixtures" / "shelf", folder / "repo")
    for root in (".agent", ".omp"):
        shutil.copytree(folder / "repo/.agents/skills", folder / "repo" / root / "skills")
    shutil.copytree(folder / "repo/.agents/skills", folder / "repo/skills")
    (folder / "repo/.git").mkdir(exist_ok=True)
    (folder / "home").mkdir()
    for path in sorted(folder.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    commands = [(*words, "--profile", profile) for profile in PROFILES for words in BY_PROFILE]
    found = {}
    for words in (*commands, *ONCE):
        done = subprocess.run(
            [sys.executable, "-m", "skillshelf", *words, "--json", "--home", str(folder / "home")],
            cwd=folder / "repo",
            env={"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        found[" ".join(words)] = [done.returncode, json.loads(done.stdout) if done.stdout else None]
    return found


def differences(old: Any, new: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each place where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key, "(absent)"), new.get(key, "(absent)"), f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif old != new:
        yield where, old, new


def main() -> int:
    """Print the differences; return 1 if one of them is more than a reworded sentence."""
    with tempfile.TemporaryDirectory() as scratch:
        old, new = (outputs(Path(source).resolve(), Path(scratch, "place")) for source in sys.argv[1:3])
    status = 0
    for words in old:
        for where, one, other in differences(old[words], new[words]):
            is_sentence = isinstance(one, str) and isinstance(other, str) and " " in one and " " in other
            # Times, and what is made of them, differ between two runs of one version too.
            if any(part in where for part in ("_ms", "version", ".head", ".session")):
                continue
            status = status if is_sentence else 1
            print(f"{'sentence' if is_sentence else 'VALUE'}  {words}  {where}\n  - {one!r}\n  + {other!r}")
    print(f"{len(old)} outputs compared")
    return status


if __name__ == "__main__":
    sys.exit(main())
