"""From the name of a script to its bytes and the program that runs them; nothing is run here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.script_runs import skill_with
from support.trees import Machine

from skillshelf import LimitExceeded, PathEscape, ResourceNotFound, ScriptNotRunnable, SkillError
from skillshelf.catalog.tree import skill_tree
from skillshelf.core.limits import SCRIPT_BYTES
from skillshelf.sandbox.run import find_script
from skillshelf.sandbox.scripts import Interpreter, interpreter_of, script_segments


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment in which a few programs are installed, and nothing else."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("bash", "node", "python3", "ruby"):
        (folder / name).write_bytes(b"\x7fELF")
        (folder / name).chmod(0o755)
    (folder / "shim").write_bytes(b"#!/bin/sh\n")
    (folder / "shim").chmod(0o755)
    (folder / "perl").write_bytes(b"\x7fELF without the right to run")
    return {"PATH": f"relative:{folder}:/nonexistent"}


# Names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("it.py", "scripts/it.py"),
        ("scripts/it.py", "scripts/it.py"),
        ("deep/er/it.py", "scripts/deep/er/it.py"),
        ("scripts/scripts/it.py", "scripts/scripts/it.py"),
        ("with blank.py", "scripts/with blank.py"),
        ("-c", "scripts/-c"),
        ("ünï.py", "scripts/ünï.py"),
        ("$(id);x.py", "scripts/$(id);x.py"),
    ],
)
def test_a_script_is_named_by_its_path_below_scripts(name: str, path: str) -> None:
    assert "/".join(script_segments(name)) == path


HOSTILE = [
    *("", "/", "/etc/passwd", "..", "../SKILL.md", "scripts/../SKILL.md", "scripts/../../x", "a/../b.py", "./it.py"),
    *("scripts/", "scripts//it.py", "a//b", "a/", "scripts/.", "it.py\0", "it\n.py", "..\\SKILL.md", "a\\b", "\x1b[2J"),
    *("\x85", "\udcff.py", "x" * 5000, "x" * 256, "/".join("x" * 40)),
]


@pytest.mark.parametrize("name", HOSTILE, ids=[repr(name)[:20] for name in HOSTILE])
def test_a_name_that_could_mean_something_else_is_refused(machine: Machine, name: str) -> None:
    with pytest.raises(PathEscape):
        find_script(skill_with(machine, {"it.py": ""}), name)


@given(st.text(alphabet="./\\\0~ a-\nx%", max_size=12))
def test_no_name_leaves_the_folder_of_scripts(name: str) -> None:
    try:
        segments = script_segments(name)
    except PathEscape:
        return
    assert segments[0] == "scripts"
    assert os.path.normpath("/".join(segments)) == "/".join(segments)
    assert len(segments) > 1


def test_what_is_no_file_of_the_skill_is_no_script(machine: Machine) -> None:
    folder = Path(skill_with(machine, {"deep/it.py": "", "large.py": b"#" * (SCRIPT_BYTES + 1)}))
    (folder / "outside.py").write_text("")
    (folder / "scripts" / "link.py").symlink_to(folder / "scripts" / "deep" / "it.py")
    (folder / "scripts" / "linked").symlink_to(folder / "scripts" / "deep")
    os.mkfifo(folder / "scripts" / "pipe.py")
    refusals: dict[str, type[SkillError]] = {
        "link.py": PathEscape,
        "linked/it.py": PathEscape,
        "pipe.py": PathEscape,
        "deep": ScriptNotRunnable,
        "outside.py": ResourceNotFound,
        "deep/it.py/x": ResourceNotFound,
        "large.py": LimitExceeded,
    }

    for name, kind in refusals.items():
        with pytest.raises(kind, match=name.split("/")[0]):
            find_script(str(folder), name)


def test_a_folder_of_scripts_that_is_a_link_holds_no_scripts(machine: Machine) -> None:
    folder = Path(skill_with(machine, {"it.py": "print()"}))
    (folder / "scripts").rename(machine.base / "elsewhere")
    (folder / "scripts").symlink_to(machine.base / "elsewhere")

    with pytest.raises(PathEscape):
        find_script(str(folder), "it.py")


# Digests ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_digest_of_a_script_is_what_sha256sum_says_and_the_tree_that_of_the_skill(machine: Machine) -> None:
    folder = skill_with(machine, {"it.py": "print(1)", "Z.txt": "z", "deep/a b.txt": "a", "é.txt": b"\xff"})

    script = find_script(folder, "it.py")

    one = subprocess.run(["sha256sum", f"{folder}/scripts/it.py"], capture_output=True, check=True, text=True)
    assert script.digest == f"sha256:{one.stdout[:64]}"
    assert script.tree == skill_tree(folder)


@pytest.mark.parametrize("change", ["edit", "add", "remove", "rename", "mode", "elsewhere"])
def test_the_tree_of_a_script_tells_of_every_change_in_its_skill(machine: Machine, change: str) -> None:
    folder = Path(skill_with(machine, {"it.py": "import helper", "helper.py": "x = 1"}))
    before = find_script(str(folder), "it.py")
    helper = folder / "scripts" / "helper.py"
    changes: dict[str, Callable[[], object]] = {
        "edit": lambda: helper.write_text("x = 2"),
        "add": lambda: (helper.parent / "more.py").write_text(""),
        "remove": helper.unlink,
        "rename": lambda: helper.rename(helper.parent / "other.py"),
        "mode": lambda: helper.chmod(0o755),
        "elsewhere": lambda: (folder / "notes.md").write_text("more"),
    }
    changes[change]()

    after = find_script(str(folder), "it.py")

    assert after.digest == before.digest
    assert after.tree.digest not in (None, before.tree.digest)


# Interpreters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("#!/usr/bin/env python3", "python3"),
        ("#! /usr/bin/env   python3  ", "python3"),
        ("#!\t/usr/bin/env\tpython3", "python3"),
        ("#!/usr/bin/env python3\r", "python3"),
        ("#!/bin/env bash", "bash"),
        ("#!/usr/bin/env -S python3 -u -X dev", "python3 -u -X dev"),
        ("#!/usr/bin/env -Spython3 -u", "python3 -u"),
        ("#!/usr/bin/env --split-string=node --no-warnings", "node --no-warnings"),
    ],
)
def test_env_in_the_first_line_names_a_program_of_the_path(programs: dict[str, str], line: str, words: str) -> None:
    folder = programs["PATH"].split(":")[1]
    name, *arguments = words.split()

    assert interpreter_of("scripts/x", f"{line}\nrest".encode(), programs) == Interpreter(
        f"{folder}/{name}", tuple(arguments)
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#!/bin/sh", Interpreter("/bin/sh")),
        ("#!/bin/sh -e", Interpreter("/bin/sh", ("-e",))),
        ("#!/bin/sh -e -u  ", Interpreter("/bin/sh", ("-e -u",))),
        ("#!  /bin/sh\t-e", Interpreter("/bin/sh", ("-e",))),
    ],
)
def test_as_in_the_kernel_all_after_the_program_is_one_argument(line: str, expected: Interpreter) -> None:
    assert interpreter_of("scripts/x.py", f"{line}\n".encode(), {}) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"#!", "whole path"),
        (b"#!\n", "whole path"),
        (b"#!python3\n", "whole path"),
        (b"#!/usr/bin/env\n", "name of one program"),
        (b"#!/usr/bin/env python3 -u\n", "name of one program"),
        (b"#!/usr/bin/env -i python3\n", "name of one program"),
        (b"#!/usr/bin/env X=1\n", "name of one program"),
        (b"#!/usr/bin/env ../python3\n", "name of one program"),
        (b"#!/usr/bin/env -S\n", "name of one program"),
        (b"#!/usr/bin/env -S X=1 python3\n", "name of one program"),
        (b"#!/usr/bin/env -S 'python3\n", "cannot be read"),
        (b"#!/usr/bin/env nonesuch\n", "asks for nonesuch, which is not on this machine; install nonesuch"),
        (b"#!/usr/bin/env perl\n", "asks for perl, which is not"),
        (b"#!/usr/bin/env shim\n", "asks for shim, which is not"),
        (b"#!/usr/bin/nonesuch\n", "asks for /usr/bin/nonesuch, which is not"),
        (b"#!/usr/bin\n", "asks for /usr/bin, which is not"),
        (b"#!/opt/\xff\n", "not UTF-8"),
        (b"#!/bin/sh\0\n", "NUL"),
        (b"#!/" + b"x" * 400, "more than 256 bytes"),
        (b"\x7fELF\x02", "compiled program"),
        (b"print()", "no interpreter is known for scripts/x: begin it with a line like `#!/usr/bin/env python3`"),
        (b"", "no interpreter is known for scripts/x"),
        (b"\xef\xbb\xbf#!/bin/sh\n", "no interpreter is known for scripts/x"),
    ],
)
def test_a_script_that_nobody_runs_is_refused_with_what_to_do(
    programs: dict[str, str], data: bytes, words: str
) -> None:
    with pytest.raises(ScriptNotRunnable, match=words):
        interpreter_of("scripts/x", data, programs)


def test_a_skill_cannot_choose_a_program_that_the_user_does_not_use(programs: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "secret" / "bin" / "python3"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"\x7fELF")
    own.chmod(0o755)
    line = f"#!{own}\n".encode()

    with pytest.raises(ScriptNotRunnable, match="not on this machine"):
        interpreter_of("scripts/x", line, programs)
    assert interpreter_of("scripts/x", line, {"PATH": str(own.parent)}) == Interpreter(str(own))


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("x.py", "python3"),
        ("x.PY", "python3"),
        ("x.sh", "bash"),
        ("x.bash", "bash"),
        ("x.mjs", "node"),
        ("x.rb", "ruby"),
    ],
)
def test_without_a_first_line_the_end_of_the_name_decides(programs: dict[str, str], name: str, program: str) -> None:
    folder = programs["PATH"].split(":")[1]

    assert interpreter_of(f"scripts/{name}", b"", programs) == Interpreter(f"{folder}/{program}")


def test_a_missing_program_is_named(programs: dict[str, str]) -> None:
    with pytest.raises(ScriptNotRunnable, match=r"scripts/x\.php: a name like this is run by php, which is not on"):
        interpreter_of("scripts/x.php", b"", programs)
