"""A race for an installed skill: one thread changes its files all the time, another loads it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import skillshelf
from skillshelf.errors import FileReadError, SkillChanged, SkillNotFound
from support.locked import install, locked_entry, write_lock
from support.trees import Machine

__all__ = ["race"]

_SAFE = {"references/a.md": "safe a", "references/b.md": "safe b", "scripts/run.sh": "#!/bin/sh\necho safe\n"}


def race(machine: Machine, loads: int) -> tuple[int, int]:
    """Load an installed skill so often while its files are changed; return how often it came and how often not.

    Fail if anything else than the locked bytes, or a refusal, comes out.
    """
    folder = install(machine.repo, "deploy", _SAFE)
    write_lock(machine.repo / "skillshelf.lock", {"deploy": locked_entry(folder)})
    shelf = machine.shelf()
    whole = shelf.load("deploy")
    stop = threading.Event()
    writer = threading.Thread(target=_change_files, args=(folder, stop), daemon=True)
    writer.start()
    came = refused = 0
    try:
        while came + refused < loads:
            try:
                _require_safe(shelf, whole)
                came += 1
            except (SkillChanged, SkillNotFound, FileReadError):
                refused += 1
    finally:
        stop.set()
        writer.join()
    return came, refused


def _require_safe(shelf: skillshelf.Shelf, whole: skillshelf.LoadedSkill) -> None:
    loaded = shelf.load("deploy")
    assert (loaded.data, loaded.files, loaded.tree) == (whole.data, whole.files, whole.tree)
    for path, text in _SAFE.items():
        assert shelf.read(f"skill://deploy/{path}").content == text


def _change_files(folder: Path, stop: threading.Event) -> None:
    """Plant other files one after the other, each by one rename, and take all of them back."""
    texts = {"SKILL.md": (folder / "SKILL.md").read_text(), **_SAFE}
    number = 0
    while not stop.is_set():
        for kind in ("evil", "safe"):
            for path, text in texts.items():
                number += 1
                new = folder.parent.parent / f"new-{number % 2}"
                new.write_text(text if kind == "safe" else text.replace("safe", "evil").replace("deploy", "DEPLOY"))
                new.chmod(0o755 if path.endswith(".sh") else 0o644)
                os.replace(new, folder / path)
            # Most of the time all files are safe, so that loads succeed too.
            if kind == "safe":
                stop.wait(0.002)
