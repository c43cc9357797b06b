"""Installed skills for tests: folders with a lock that names them, and every way to change a file of one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random

from skillshelf.catalog.lock import LockedSkill
from skillshelf.catalog.tree import skill_tree

__all__ = ["CHANGES", "change", "install", "locked_entry", "write_lock"]


def install(root: Path, name: str, contents: Mapping[str, str | bytes] | None = None) -> Path:
    """Put a skill into the folder of installed skills of a project, and return its folder; no lock is written."""
    folder = root / ".agents/skills" / name
    text = f"---\nname: {name}\ndescription: Does {name} things. Use when {name} is asked for.\n---\n# {name}\n"
    for path, data in {"SKILL.md": text, **(contents or {})}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        file.chmod(0o755 if path.endswith(".sh") else 0o644)
    return folder


def locked_entry(folder: Path, *, hosts: Iterable[str] = ()) -> LockedSkill:
    """What a lock says about a folder as it is now."""
    tree = skill_tree(str(folder.resolve()), without_git=False)
    assert tree.digest is not None
    return LockedSkill("./source", "", "v1", None, None, tree.digest, tree.files, tree.size, list(hosts))


def write_lock(path: Path, skills: Mapping[str, LockedSkill]) -> Path:
    """Write a lock by hand."""
    entries = {name: skill._asdict() for name, skill in skills.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"lock": 1, "skills": entries}, indent=2, sort_keys=True) + "\n")
    return path


def _flip(file: Path, random: Random) -> None:
    data = bytearray(file.read_bytes())
    at = random.randrange(len(data))
    data[at] ^= 1 << random.randrange(8)
    file.write_bytes(data)


def _add(file: Path, random: Random) -> None:
    (file.parent / random.choice(["new.md", ".hidden", "a b.txt", "z.pyc", "__pycache__.py"])).write_bytes(b"")


def _rename(file: Path, random: Random) -> None:
    file.rename(file.with_name(f"{file.name}{random.choice(['x', '~', '.orig'])}"))


def _change_mode(file: Path, random: Random) -> None:
    file.chmod(file.stat().st_mode ^ 0o100)


def _link(file: Path, random: Random) -> None:
    """Put a link to an equal file in its place: outside the skill, or beside it under another name."""
    other = file.parents[4] / f"outside-{random.randrange(1 << 30)}"
    other.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(other if random.random() < 0.5 else os.path.relpath(other, file.parent))


CHANGES: Mapping[str, Callable[[Path, Random], None]] = {
    "flipped byte": _flip,
    "added file": _add,
    "removed file": lambda file, random: file.unlink(),
    "renamed file": _rename,
    "other mode": _change_mode,
    "linked file": _link,
}


def change(folder: Path, kind: str, random: Random) -> None:
    """Change one file of a skill, which may be its SKILL.md."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    CHANGES[kind](random.choice(files), random)
