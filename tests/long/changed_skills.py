"""Change one file of each of 600 installed skills and ask for every skill in four ways: nothing is handed out.

`python tests/long/changed_skills.py [COUNT]` takes the six kinds of change in turn: a flipped byte, an added, removed,
renamed or linked file, another mode. A flipped byte may hit the name of a skill, so any refusal counts here, and each
is printed by its code. `tests/install/test_load_check.py` asks 100 such skills of the MCP and RPC servers too.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.locked import CHANGES, change, install, locked_entry, write_lock
from support.trees import Machine

from skillshelf.adapters.json_tools import anthropic_result
from skillshelf.cli.main import main as skillshelf
from skillshelf.errors import SkillError

SECRET = "MARK-OF-THE-BODY"


def from_python(machine: Machine, names: list[str]) -> Counter[str]:
    """Load every skill from Python; the name of the error is the code."""
    codes, shelf = Counter[str](), machine.shelf()
    for name in names:
        try:
            shelf.load(name)
        except SkillError as error:
            codes[type(error).__name__] += 1
        else:
            codes["HANDED OUT"] += 1
    return codes


def from_tools(machine: Machine, names: list[str]) -> Counter[str]:
    """Load, read and run every skill through the tools of a session."""
    codes, session = Counter[str](), machine.shelf().session("full-auto")
    for name in names:
        for tool, given in (
            ("skill_load", {"name": name}),
            ("skill_read", {"uri": f"skill://{name}/SKILL.md"}),
            ("skill_run", {"name": name, "script": "run.sh"}),
        ):
            result = session.call(tool, given)
            refused = result.error is not None and SECRET not in result.text
            codes[str(result.error.code) if result.error and refused else "HANDED OUT"] += 1
    return codes


def from_adapter(machine: Machine, names: list[str]) -> Counter[str]:
    """Load every skill as an adapter does for a model."""
    codes, session = Counter[str](), machine.shelf().session()
    for name in names:
        call = {"type": "tool_use", "id": "t", "name": "skill_load", "input": {"name": name}}
        answer = anthropic_result(session, call)
        refused = answer.get("is_error") is True and SECRET not in str(answer["content"])
        codes["is_error" if refused else "HANDED OUT"] += 1
    return codes


def from_command(machine: Machine, names: list[str]) -> Counter[str]:
    """Show every skill by command."""
    codes = Counter[str]()
    for name in names:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = skillshelf(["show", name, "--json", "--cwd", str(machine.repo), "--home", str(machine.home)])
        refused = status != 0 and SECRET not in out.getvalue()
        codes[json.loads(out.getvalue())["error"]["code"] if refused else "HANDED OUT"] += 1
    return codes


def main(count: int) -> int:
    """Install, change, ask, and print the counts; the status is 1 if anything was handed out."""
    random, entries, kinds = Random(21), {}, list(CHANGES)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder).resolve())
        for number in range(count):
            contents: dict[str, str | bytes] = {"scripts/run.sh": "#!/bin/sh\n", "references/a.md": f"{SECRET}\n"}
            skill = install(machine.repo, f"skill-{number}", contents)
            with (skill / "SKILL.md").open("a") as file:
                file.write(f"\n{SECRET}\n")
            entries[skill.name] = locked_entry(skill)
        write_lock(machine.repo / "skillshelf.lock", entries)
        for number in range(count):
            change(machine.repo / f".agents/skills/skill-{number}", kinds[number % len(kinds)], random)
        found = {
            ask.__name__: ask(machine, list(entries)) for ask in (from_python, from_tools, from_adapter, from_command)
        }
    for way, codes in found.items():
        print(f"{way:<13} {sum(codes.values()):5} asked, {codes['HANDED OUT']} handed out: {dict(codes)}")
    return 1 if any(codes["HANDED OUT"] for codes in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 600))
