"""Run the commands that `why` suggests, and check that the real host lists the skill or tells its model of it then.

    python tests/hosts/apply_fixes.py --bin DIR [--seed N] [--trees N] [HOST ...]

The trees are those of `test_host_fixes`, and drawn ones as in `compare.py`, in each the first skill for which `link` is
advised. A host that is not installed is skipped by name.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

# The trees are those of a test.
if missing := [name for name in ("skillshelf", "pytest", "jsonschema") if find_spec(name) is None]:
    sys.exit(f"apply_fixes.py needs {', '.join(missing)}: pip install -e '.[test]'")

# `compare` makes the helpers of the tests importable; the schemas are in `tools`.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from compare import Asker, Tree, asker, drawn_trees, filled, predict
from support.host_programs import PROGRAMS, Answer, end_on_signal
from support.prompt_server import prompt_server
from support.trees import Machine
from test_host_fixes import TREES, Build


class Advised(NamedTuple):
    """A skill that a host does not see, and the words of the command that is to change that."""

    path: str
    mark: str
    words: list[str]


def trees_of_tests() -> Iterator[Tree]:
    """Yield the trees of the tests."""
    for title, build in TREES.items():
        yield Tree(title, partial(_built, build), has_marks=False)


def _built(build: Build, machine: Machine) -> Path:
    build(machine)
    return Path(machine.repo)


def advised(host: str, cwd: Path, machine: Machine) -> Advised | None:
    """Return the first skill of a tree that the command makes visible to a host; None if there is none."""
    for prediction in predict(host, cwd, machine, machine.env):
        if prediction.listed is not False:
            continue
        done = machine.run("why", prediction.path, "--host", host, "--json", cwd=cwd)
        candidates = json.loads(done.stdout)["candidates"] if done.stdout else []
        words = shlex.split(candidates[0]["hosts"][0]["fix"] or "") if candidates else []
        if words[:2] == ["skillshelf", "link"]:
            return Advised(prediction.path, prediction.mark, words[1:])
    return None


def is_seen(skill: Advised, answer: Answer, host: str, cwd: Path, machine: Machine) -> bool:
    """Return true if a host lists a skill, or a copy of it, or tells its model of it."""
    shown = (answer.prompt or "") + " ".join(entry.description or "" for entry in answer.entries or ())
    if skill.mark and skill.mark in shown:
        return True
    text = Path(skill.path).read_bytes()
    copies = [one for one in predict(host, cwd, machine, machine.env) if Path(one.path).read_bytes() == text]
    paths = {str(Path(entry.path).resolve()) for entry in answer.entries or () if entry.path}
    names = {entry.name for entry in answer.entries or () if not entry.path}
    told = " ".join((answer.prompt or "").split()) if answer.entries is None else ""
    says = [" ".join(one.description.split())[:100] or one.path for one in copies]
    return any(one.path in paths or one.name in names for one in copies) or any(text in told for text in says)


def outcome(asked: Asker, tree: Tree) -> str:
    """Return what became of the advice in one tree: `seen`, `not seen`, `not claimed`, `no answer` or `no advice`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(Path(folder).resolve())
        cwd = tree.build(machine)
        machine.env = filled(tree.env, machine)
        skill = advised(asked.host, cwd, machine)
        if skill is None:
            return "no advice"
        done = machine.run(*skill.words, cwd=cwd)
        answer = asked.ask(cwd, machine.home, machine.env)
        if answer.failed:
            return "no answer"
        if is_seen(skill, answer, asked.host, cwd, machine):
            return "seen"
        # A prompt does not show what its author keeps from models, as the command says then.
        is_kept = answer.entries is None and "users can still invoke it" in done.stdout
        is_claimed = done.returncode == 0 and not is_kept
        return "not seen" if is_claimed else "not claimed"


def main() -> int:
    """Check every named host that is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="*", choices=[*PROGRAMS, []], metavar="HOST")
    parser.add_argument("--bin", type=Path, required=True, help="the folder with a package of each host")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trees", type=int, default=15, help="how many trees are drawn for a host")
    given = parser.parse_args()
    end_on_signal()
    status = 0
    with prompt_server() as model:
        for host in given.hosts or [*PROGRAMS]:
            asked = asker(host, given.bin.resolve(), model)
            if asked is None:
                print(f"{host}: skipped, {PROGRAMS[host].package} is not in {given.bin}")
                continue
            trees = [*trees_of_tests(), *drawn_trees(host, given.seed, given.trees)]
            found = {tree.title: outcome(asked, tree) for tree in trees}
            counts = {kind: [*found.values()].count(kind) for kind in ("seen", "not seen", "not claimed", "no answer")}
            print(f"{host}:", ", ".join(f"{count} {kind}" for kind, count in counts.items()), flush=True)
            for title, kind in found.items():
                if kind in ("not seen", "no answer"):
                    print(f"  {kind}: {title}", flush=True)
            status |= "not seen" in found.values()
    return status


if __name__ == "__main__":
    sys.exit(main())
