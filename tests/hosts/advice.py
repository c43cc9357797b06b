"""Does what `why` advises, and asks the real host whether it lists the skill then.

    python tests/hosts/advice.py HOST ... [--bin DIR ...]

The trees are those of `test_host_help`. A host that is not installed is skipped by name, as in `compare.py`.
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
    sys.exit(f"advice.py needs {', '.join(missing)}: pip install -e '.[test]'")

from compare import HOSTS, ask, key_of, own_skills
from support.trees import Machine
from test_host_help import TREES, Build, Seen, stray_path


def advised(machine: Machine, host: str) -> list[str]:
    """The words of the command that makes a host see the one skill there is; none where it takes more than that."""
    (skill_file,) = Seen(machine, stray_path(machine)).skill_files
    (candidate,) = json.loads(machine.run("why", skill_file.path, "--host", host, "--json").stdout)["candidates"]
    words = shlex.split(candidate["hosts"][0]["fix"] or "")
    return words[1:] if words[:2] == ["skillshelf", "link"] else []


def is_listed_then(build: Build, name: str, program: str, own: set[str]) -> bool | None:
    """Whether a host lists the skill of a tree after the command that is advised; None where there is none."""
    host = HOSTS[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(Path(folder).resolve())
        build(machine)
        if not (words := advised(machine, name)):
            return None
        machine.run(*words)
        listed = ask(host, program, machine.repo, machine.home) - own
        keys = {key_of(host, skill_file) for skill_file in Seen(machine, stray_path(machine)).skill_files}
        return not keys.isdisjoint({os.path.realpath(one) for one in listed} if host.by == "path" else listed)


def main() -> int:
    """Ask every host that is named and here."""
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
        asked = [tree for tree, listed in found.items() if listed is not None]
        failed = [tree for tree in asked if not found[tree]]
        print(f"{name}: {len(asked) - len(failed)} of {len(asked)} commands worked", *failed, flush=True)
        status |= bool(failed)
    return status


if __name__ == "__main__":
    sys.exit(main())
