"""Change installed skills in a process of its own, which tests kill: `install_driver.py FOLDER SCOPE WHAT [THROUGH]`.

FOLDER holds `home` and `repo`, and for commands `src` with the skills to install. THROUGH is `functions` or `commands`.
WHAT is `add`, `many`, `update`, `remove`, `rollback` or `recover`; `many` are so many skills that they share a flush.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from skillshelf.catalog.lock import LockedSkill
from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.store import listed_files, store_of
from skillshelf.catalog.tree import tree_digest
from skillshelf.core.environment import make_environment
from skillshelf.install.scope import scope_of
from skillshelf.install.transaction import SkillChange, commit, recover, rollback
from skillshelf.install.wishes import Wish

HOSTS = ("claude-code", "codex")
NAMES = ("pdf", "notes")
MANY = tuple(f"skill-{number}" for number in range(9))


def contents(name: str, version: str) -> dict[str, bytes]:
    """Return the files of a version of a skill."""
    head = f"---\nname: {name}\ndescription: Works on {name} files, {version}.\n---\n"
    return {
        "SKILL.md": f"{head}{version}\n".encode(),
        f"references/{version}.md": version.encode() * 100,
        "scripts/run.sh": ExecutableFile(f"#!/bin/sh\necho {version}\n".encode()),
    }


def locked(name: str, version: str, hosts: Sequence[str] = HOSTS) -> LockedSkill:
    """Return the entry of a version in the lock."""
    listed = listed_files(contents(name, version))
    size = sum(file.size for file in listed.values())
    return LockedSkill(f"./{name}", "", None, None, None, tree_digest(listed), len(listed), size, list(hosts))


def changes(version: str) -> list[SkillChange]:
    """Return the changes that install a version of every skill."""
    return [SkillChange(name, locked(name, version), Wish(f"./{name}", name=name, hosts=HOSTS)) for name in NAMES]


def write_sources(folder: str, version: str) -> None:
    """Write the folders that commands install skills from."""
    for name in (*NAMES, *MANY):
        for path, data in contents(name, version).items():
            file = Path(folder, "src" if name in NAMES else "many", name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o755 if isinstance(data, ExecutableFile) else 0o644)


def command(folder: str, kind: str, what: str) -> list[str]:
    """Return the words of the command that does one thing."""
    words = {
        "add": ["add", f"{folder}/src", "--skill", ",".join(NAMES), "--host", ",".join(HOSTS)],
        "many": ["add", f"{folder}/many", "--skill", "*"],
        "update": ["update"],
        "remove": ["remove", *NAMES],
        "rollback": ["rollback"],
        "recover": ["verify"],
    }[what]
    places = ["--cwd", f"{folder}/repo", "--home", f"{folder}/home"]
    return [*words, *places, *(["--user"] if kind == "user" else []), *(["--yes"] if what != "recover" else [])]


def main(folder: str, kind: str, what: str, through: str = "functions") -> None:
    """Do one thing; a command that fails ends the process with its status."""
    if through == "commands":
        from skillshelf.cli.main import main as run_command

        if status := run_command(command(folder, kind, what)):
            raise SystemExit(status)
        return
    environment = make_environment(f"{folder}/repo", f"{folder}/home", {})
    scope = scope_of(environment, user=kind == "user")
    recover(scope, environment)
    if what in ("add", "update"):
        version = "one" if what == "add" else "two"
        for name in NAMES:
            store_of(environment).put(contents(name, version))
        commit(scope, environment, changes(version), label=what)
    elif what == "many":
        for name in MANY:
            store_of(environment).put(contents(name, "one"))
        commit(scope, environment, [SkillChange(name, locked(name, "one", ())) for name in MANY], label=what)
    elif what == "remove":
        commit(scope, environment, [SkillChange(name, None) for name in NAMES], label="remove")
    elif what == "rollback":
        rollback(scope, environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
