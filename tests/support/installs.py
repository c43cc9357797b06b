"""Skills to install, and everything that lies below folders, to see what a command wrote."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from support.trees import Machine

__all__ = ["everything", "lose_store", "skill_text", "trusted", "upstream"]


def skill_text(name: str, body: str = "Do it.", **fields: str) -> str:
    """The text of a skill that `check` has nothing to say about."""
    more = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
    description = f"Does {name} things. Use when {name} is asked for."
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n# {name}\n{body}\n"


def upstream(
    machine: Machine, name: str = "pdf", body: str = "Do it.", files: Mapping[str, str | bytes] | None = None
) -> Path:
    """A skill in a folder that is not the project: `up/NAME`, with an executable script if a file begins with `#!`."""
    folder = machine.base / "up" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(skill_text(name, body))
    for path, data in (files or {}).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        if file.read_bytes().startswith(b"#!"):
            file.chmod(0o755)
    return folder


def trusted(machine: Machine) -> None:
    """Let the user trust the repository."""
    file = machine.home / ".config/skillshelf/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[trust]\nfolders = ["{machine.repo}"]\n')


def lose_store(machine: Machine) -> None:
    """Remove the store of the user, as on the machine of somebody else."""
    store = machine.home / ".local/share/skillshelf/store"
    for path in [store, *store.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(store)


def everything(*folders: Path) -> dict[str, tuple[int, bytes]]:
    """The mode and the bytes of every file below folders, and the text of every link."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path)] = (path.lstat().st_mode, data)
    return found
