"""Skills that other installers give the same hash have different trees, and a frozen install refuses each."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from support.host_runs import Run
from support.installs import everything, skill_text
from support.trees import Machine

from skillshelf.catalog.source import ExecutableFile
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import tree_digest

A = skill_text("pdf", "Be careful.").encode()
B = b"Ask before you delete anything.\n"
RUN = b"#!/bin/sh\necho done\n"

LOCKED = {"SKILL.md": A, "z/notes.md": B}

VARIANTS: list[dict[str, bytes]] = [
    {"SKILL.md": A + b"z/notes.md" + B},
    {"SKILL.md": A + b"z/notes.m", "d": B},
    {"SKILL.md": A, "z/notes.md" + B[:3].decode(): B[3:]},
    {"SKILL.md": A, "z/notes.m": b"d" + B},
    {"SKILL.md": A, "z/notes": b".md" + B},
    {"SKILL.md": A, "z/n": b"otes.md" + B},
    {"SKILL.md": A + b"z/", "notes.md": B},
    {"SKILL.md": A[:-1], "z/notes.md": A[-1:] + B},
    {"SKILL.md": A + B[:4], "z/notes.md": B[4:]},
    {"SKILL.md": A + B, "z/notes.md": b""},
    {"SKILL.md": A, "z/notes.md": B[:10], "z/notes2.md": B[10:]},
    {"SKILL.md": B + A, "z/notes.md": b""},
    {"SKILL.md": A, "z/notes.md": ExecutableFile(B)},
    {"SKILL.md": ExecutableFile(A), "z/notes.md": B},
    {"SKILL.md": A, "z/notes.md": B, "z/empty.md": b""},
    {"SKILL.md": A, "Z/notes.md": B},
    {"SKILL.md": A, "z/notes.md": B.replace(b"\n", b"\r\n")},
    {"SKILL.md": A.replace(b"\n", b"\r\n"), "z/notes.md": B},
    {"SKILL.md": A, "y/notes.md": B},
    {"SKILL.md": A, "z/notes.md": B[::-1]},
    {"SKILL.md": A, "z/notes.md": B, "scripts/__pycache__/x.pyc": RUN},
]


def ambiguous_hash(contents: dict[str, bytes]) -> str:
    """The hash of two well-known installers: paths and bytes, with nothing between them."""
    return hashlib.sha256(b"".join(path.encode() + contents[path] for path in sorted(contents))).hexdigest()


def test_the_first_variant_is_the_pair_that_others_cannot_tell_apart() -> None:
    assert ambiguous_hash(LOCKED) == ambiguous_hash(VARIANTS[0])
    trees = [tree_digest(listed_files(contents)) for contents in (LOCKED, *VARIANTS)]
    assert len(set(trees)) == len(trees) == 22


def put(folder: Path, contents: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, data in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o755 if isinstance(data, ExecutableFile) else 0o644)


@pytest.mark.parametrize("number", range(len(VARIANTS)))
def test_a_frozen_install_refuses_a_variant_and_writes_nothing(machine: Machine, run: Run, number: int) -> None:
    put(machine.base / "up/pdf", LOCKED)
    assert run("add", "../up/pdf", "--yes")[0] == 0
    put(machine.base / "up/pdf", VARIANTS[number])
    store = machine.home / ".local/share/skillshelf/store"
    for path in [store, *store.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(store)
    shutil.rmtree(machine.repo / ".agents")
    before = everything(machine.repo, machine.home)

    status, out, err = run("install", "--frozen", "--yes")

    assert (status, "pdf" in out) == (1, True), err
    assert everything(machine.repo, machine.home) == before
