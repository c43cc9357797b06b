"""Install every skill below a folder, and compare the tree that each lock records with what the shell line computes.

`python tests/long/shell_digest.py FOLDER [--show N]` takes each folder with a `SKILL.md` below FOLDER (skills of other
people: give a checkout, it is not part of this repository). Each is added to a project of its own, a hundred with one
home folder; everything is thrown away. A skill that is refused is counted with its reason; one that only the security
rules refuse is added again with `--accept-rule`, because its digest counts too. The line is the one of
docs/reference/files.md. `TMPDIR=/dev/shm` makes it several times as fast.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from skillshelf.cli.main import main as skillshelf

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/files.md"


class Added(NamedTuple):
    """What `add` answered: the recorded tree, or the reason of a refusal and the security rules behind it."""

    name: str
    tree: str | None
    reason: str
    rules: tuple[str, ...]


def shell_line() -> str:
    """Return the command that the documentation gives, so that it is what is checked."""
    found = re.search(
        r"^\{ echo skill-tree-v1;.*?sha256sum$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found, f"{PAGE} does not give the line"
    return found[0]


def add(skill: Path, project: Path, home: Path, *more: str) -> Added:
    """Add one skill to a project as the command does."""
    (project / ".git").mkdir(parents=True, exist_ok=True)
    words = ["add", str(skill), "--yes", "--json", *more, "--cwd", str(project), "--home", str(home)]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = skillshelf(words)
    answer: dict[str, Any] = json.loads(out.getvalue())
    if status == 0 and answer["actions"]:
        (action,) = answer["actions"]
        return Added(action["name"], action["tree"], "", ())
    rules = {finding["rule"] for finding in answer.get("findings", ()) if finding["severity"] == "error"}
    return Added("", None, reason_of(answer, err.getvalue()), tuple(sorted(rules)))


def reason_of(answer: dict[str, Any], said: str) -> str:
    """Return why nothing was added, short enough to be counted."""
    refused = answer.get("refused") or [{}]
    text = str(refused[0].get("reason") or answer.get("error", {}).get("message") or said)
    return re.sub(r"\s+", " ", text)[:120]


def skills_below(folder: Path) -> Iterator[Path]:
    """Yield every folder with the text of a skill."""
    return (path.parent for path in sorted(folder.rglob("SKILL.md")) if path.is_file())


def shell_digest(line: str, folder: Path) -> str:
    """Return what the shell computes in a folder."""
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=True)
    return f"sha256:{done.stdout.split()[0]}"


def main() -> int:
    """Install, compare, and print the counts; the status is 1 if a digest differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=10, help="how many reasons and differences are printed")
    options = parser.parse_args()
    line, reasons, differ, equal, files = shell_line(), Counter[str](), [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        for number, skill in enumerate(skills_below(options.folder.resolve())):
            project, home = base / f"projects/{number}", base / f"homes/{number // 100}"
            added = add(skill, project, home)
            if added.rules:
                reasons[f"security rules, added with --accept-rule: {', '.join(added.rules)}"] += 1
                added = add(skill, project, home, "--accept-rule", ",".join(added.rules))
            if added.tree is None:
                reasons[f"refused: {added.reason}"] += 1
                continue
            installed = project / ".agents/skills" / added.name
            locked = json.loads((project / "skillshelf.lock").read_text())["skills"][added.name]
            files += locked["files"]
            if locked["tree"] == added.tree == shell_digest(line, installed):
                equal += 1
            else:
                differ.append(str(skill))
            if number % 500 == 499:
                print(f"{number + 1} skills asked for", file=sys.stderr, flush=True)
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    print(f"{equal + len(differ)} skills installed, {files} files: {equal} trees equal, {len(differ)} different")
    for reason, count in reasons.most_common(options.show):
        print(f"{count:6}  {reason}")
    for path in differ[: options.show]:
        print(f"differs  {path}")
    return 1 if differ or not equal else 0


if __name__ == "__main__":
    sys.exit(main())
