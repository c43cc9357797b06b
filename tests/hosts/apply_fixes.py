"""Run the commands that `why` suggests, and check that the real host lists the skill afterwards.

    python tests/hosts/apply_fixes.py HOST ... [--bin DIR ...]

The trees are those of `test_host_fixes`. A host that is not installed is skipped by name, as in `compare.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

# The trees are those of a test.
if missing := [name for name in ("skillshelf", "pytest", "jsonschema") if find_spec(name) is None]:
    sys.exit(f"apply_fixes.py needs {', '.join(missing)}: pip install -e '.[test]'")

# `compare` makes the helpers of the tests importable; the schemas are in `tools`.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from compare import HOSTS, ask, key_of, own_skills
from support.trees import Machine
from test_host_fixes import TREES, Build, Seen, stray_path


def suggested(machine: Machine, host: str) -> list[str]:
    """Return the arguments of the command that makes the only skill visible; nothing if it takes more than that."""
    (skill_file,) = Seen(machine, stray_path(machine)).skill_files
    (candidate,) = json.loads(machine.run("why", skill_file.path, "--host", host, "--json").stdout)["candidates"]
    words = shlex.split(candidate["hosts"][0]["fix"] or "")
    return words[1:] if words[:2] == ["skillshelf", "link"] else []


def is_listed_then(build: Build, name: str, program: str, own: set[str]) -> bool | None:
    """Return true if a host lists the skill of a tree after the suggested command; None if there is none."""
    host = HOSTS[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(Path(folder).resolve())
        build(machine)
        if not (words := suggested(machine, name)):
            return None
        machine.run(*words)
        listed = ask(host, program, machine.repo, machine.home) - own
        keys = {key_of(host, skill_file) for skill_file in Seen(machine, stray_path(machine)).skill_files}
        return not keys.isdisjoint({os.path.realpath(one) for one in listed} if host.by == "path" else listed)


def main() -> int:
    """Check every named host that is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="+", choices=HOSTS, metavar="HOST")
    parser.add_argument("--bin", action="append", default=[], help="a folder with programs of hosts")
    given = parser.parse_args()
    path = os.environ["PATH"] = os.pathsep.join([*given.bin, os.environ["PATH"]])
    status = 0
    for name in given.hosts:
        program = shutil.which(HOSTS[name].program, path=path)
        if program is None:
            print(f"{name}: skipped, {HOSTS[name].program} is not installed")
            continue
        own = own_skills(HOSTS[name], program)
        found = {tree: is_listed_then(build, name, program, own) for tree, build in TREES.items()}
        tried = [tree for tree, listed in found.items() if listed is not None]
        failed = [tree for tree in tried if not found[tree]]
        print(f"{name}: {len(tried) - len(failed)} of {len(tried)} commands worked", *failed, flush=True)
        status |= bool(failed)
    return status


if __name__ == "__main__":
    sys.exit(main())
