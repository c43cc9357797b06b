"""Change installed skills in a process of its own, which tests kill: `install_driver.py FOLDER SCOPE WHAT`.

FOLDER holds `home` and `repo`. WHAT is `add`, `update`, `remove`,
`rollback` or `recover`.
"""

import sys

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


def contents(name: str, version: str) -> dict[str, bytes]:
    """Return the files of a version of a skill."""
    head = f"---\nname: {name}\ndescription: Works on {name} files, {version}.\n---\n"
    return {
        "SKILL.md": f"{head}{version}\n".encode(),
        f"references/{version}.md": version.encode() * 100,
        "scripts/run.sh": ExecutableFile(f"#!/bin/sh\necho {version}\n".encode()),
    }


def locked(name: str, version: str) -> LockedSkill:
    """Return the entry of a version in the lock."""
    listed = listed_files(contents(name, version))
    size = sum(file.size for file in listed.values())
    return LockedSkill(f"./{name}", "", None, None, None, tree_digest(listed), len(listed), size, list(HOSTS))


def changes(version: str) -> list[SkillChange]:
    """Return the changes that install a version of every skill."""
    return [SkillChange(name, locked(name, version), Wish(f"./{name}", name=name, hosts=HOSTS)) for name in NAMES]


def main(folder: str, kind: str, what: str) -> None:
    """Do one thing."""
    environment = make_environment(f"{folder}/repo", f"{folder}/home", {})
    scope = scope_of(environment, user=kind == "user")
    recover(scope, environment)
    if what in ("add", "update"):
        version = "one" if what == "add" else "two"
        for name in NAMES:
            store_of(environment).put(contents(name, version))
        commit(scope, environment, changes(version), label=what)
    elif what == "remove":
        commit(scope, environment, [SkillChange(name, None) for name in NAMES], label="remove")
    elif what == "rollback":
        rollback(scope, environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
