"""One root with every hostile thing at once: good skills are listed, the rest is reported, nothing else is touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.trees import SOURCE, Machine, put_socket, write_skill
from test_hostile_cases import GOOD, LISTED, REFUSED, front

TOKEN = "token-that-must-stay-outside"

HOSTILE_FOLDERS = [b"new\nline", b"esc\x1b[31m", b"del\x7f", b"csi\xc2\x9b"]
if sys.platform == "linux":
    HOSTILE_FOLDERS += [b"not-utf-8-\xff\xfe", b"overlong-\xc0\xaf", b"surrogate-\xed\xa0\x80"]


class HostileRoot(NamedTuple):
    """A root, the folder outside it that holds the token, and the expected diagnostics for the files below the root."""

    path: Path
    outside: Path
    errors: Counter[tuple[bytes, str]]
    warnings: Counter[tuple[bytes, str]]


def build_hostile_root(machine: Machine) -> HostileRoot:
    """Two good skills, and beside them every refused file, odd file, special file, hostile name and bad link."""
    root = machine.repo / ".agents" / "skills"
    outside = write_skill(machine.base / "outside", "secret", front(f"name: secret\ndescription: {TOKEN}")).parent
    write_skill(root, "a-good-one")
    write_skill(root, "z-good-one")
    errors = {f"refused-{case}/SKILL.md": rule for case, (_, rule) in REFUSED.items()}
    for case, (content, _) in REFUSED.items():
        write_skill(root, "x", content, folder=f"refused-{case}")
    for case, (content, _) in LISTED.items():
        write_skill(root, "x", content, folder=f"listed-{case}")
    write_skill(root, "long", front(GOOD), folder="n" * 255)
    errors |= put_special_files(root)
    link_errors, warnings = put_links(root, outside)
    errors |= link_errors
    for name in HOSTILE_FOLDERS:
        folder = os.path.join(os.fsencode(root), name)
        os.mkdir(folder)
        Path(os.fsdecode(folder), "SKILL.md").write_bytes(front(GOOD))
    hostile = {os.path.join(name, b"SKILL.md"): "path-encoding" for name in HOSTILE_FOLDERS}
    return HostileRoot(
        root,
        outside,
        Counter([(os.fsencode(path), rule) for path, rule in errors.items()] + [*hostile.items()]),
        Counter((os.fsencode(path), rule) for path, rule in warnings.items()),
    )


def put_special_files(root: Path) -> dict[str, str]:
    """Files that are not regular or too large: the path of each and the rule it breaks."""
    for name in ("pipe", "socket", "folder", "sparse-100m", "sparse-1g"):
        (root / name).mkdir()
    os.mkfifo(root / "pipe" / "SKILL.md")
    put_socket(root / "socket" / "SKILL.md")
    (root / "folder" / "SKILL.md").mkdir()
    for name, size in (("sparse-100m", 100 << 20), ("sparse-1g", 1 << 30)):
        with open(root / name / "SKILL.md", "wb") as file:
            file.write(front(GOOD))
            file.truncate(size)
    return {
        "pipe/SKILL.md": "not-a-file",
        "socket/SKILL.md": "not-a-file",
        "folder/SKILL.md": "not-a-file",
        "sparse-100m/SKILL.md": "file-size",
        "sparse-1g/SKILL.md": "file-size",
    }


def put_links(root: Path, outside: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Links that must not be followed: those reported as errors, and those reported as warnings."""
    for name in ("file-outside", "file-device", "file-passwd"):
        (root / name).mkdir()
    (root / "file-outside" / "SKILL.md").symlink_to(outside / "SKILL.md")
    (root / "file-device" / "SKILL.md").symlink_to("/dev/zero")
    (root / "file-passwd" / "SKILL.md").symlink_to("/etc/passwd")
    (root / "folder-outside").symlink_to(outside)
    (root / "folder-root").symlink_to("/etc")
    (root / "folder-proc").symlink_to("/proc/self")
    (root / "loop-self").symlink_to("loop-self")
    (root / "loop-a").symlink_to("loop-b")
    (root / "loop-b").symlink_to("loop-a")
    (root / "loop-up").symlink_to("..")
    (root / "dangling").symlink_to("nothing")
    errors = [f"{name}/SKILL.md" for name in ("file-outside", "file-device", "file-passwd")]
    errors += ["folder-outside", "folder-root", "folder-proc"]
    loops = ("loop-self", "loop-a", "loop-b", "loop-up")
    return dict.fromkeys(errors, "link-outside"), {**dict.fromkeys(loops, "link-loop"), "dangling": "link-broken"}


def rules_by_path(entries: list[dict[str, Any]], root: Path) -> Counter[tuple[bytes, str]]:
    """Path below the root and rule of each error or warning that the command printed."""
    return Counter((raw(os.path.relpath(entry["path"], root)), entry["rule"]) for entry in entries)


def raw(path: str) -> bytes:
    """Return the bytes of a path in which bytes that are not UTF-8 are written as escapes."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes([int(byte[1], 16)]), path.encode())


class Ran(NamedTuple):
    """Exit status and output of a command, and its peak memory in bytes."""

    status: int
    output: Any
    stderr: bytes
    memory: int


MEASURE = """
import os, resource, sys
seconds, report, *command = sys.argv[1:]
child = os.fork()
if child == 0:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    os.execv(command[0], command)
_, status, usage = os.wait4(child, 0)
open(report, "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""
"""Runs a command from a small process: the most memory of a child is never below what its parent had."""


def run_limited(machine: Machine, *words: str, seconds: int) -> Ran:
    """Run the real command with a limit of processor time in seconds, after which the system ends it."""
    command = [sys.executable, "-m", "skillshelf", *words, "--home", str(machine.home), "--cwd", str(machine.repo)]
    report = machine.base / "memory"
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, str(seconds), str(report), *command],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": SOURCE},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    unit = 1 if sys.platform == "darwin" else 1024
    output = json.loads(done.stdout) if done.stdout else None
    return Ran(done.returncode, output, done.stderr, int(report.read_text()) * unit)


@pytest.mark.slow
def test_good_skills_are_listed_and_each_bad_one_has_one_error(machine: Machine) -> None:
    hostile = build_hostile_root(machine)

    ran = run_limited(machine, "list", "--json", seconds=10)

    assert (ran.status, ran.stderr) == (0, b"")
    assert {"a-good-one", "z-good-one"} < {skill["name"] for skill in ran.output["skills"]}
    assert rules_by_path(ran.output["errors"], hostile.path) == hostile.errors
    assert all(error["message"] for error in ran.output["errors"])
    assert ran.memory < 200 << 20


def test_the_odd_ones_are_listed_or_shadowed_and_every_loop_is_reported(machine: Machine) -> None:
    hostile = build_hostile_root(machine)

    catalog = machine.catalog()

    paths = [skill.path for skill in catalog.skills] + [loser.path for loser in catalog.shadowed]
    in_or_behind = {os.path.relpath(path, hostile.path) for path in paths}
    odd = {f"listed-{case}/SKILL.md" for case in LISTED} | {"n" * 255 + "/SKILL.md"}
    assert in_or_behind == odd | {"a-good-one/SKILL.md", "z-good-one/SKILL.md"}
    links = [warning._asdict() for warning in catalog.warnings if warning.rule.startswith("link-")]
    assert rules_by_path(links, hostile.path) == hostile.warnings
    assert TOKEN not in repr(catalog)
    assert not catalog.truncated


@pytest.mark.parametrize("words", [(), ("list",), ("list", "--all"), ("list", "--json", "--all")], ids=" ".join)
def test_nothing_hostile_reaches_the_terminal(machine: Machine, words: tuple[str, ...]) -> None:
    build_hostile_root(machine)

    done = machine.run(*words)

    assert done.returncode == 0
    assert TOKEN not in done.stdout
    raw = {c for c in done.stdout + done.stderr if c < " " or "\x7f" <= c < "\xa0" or c in "\u202e\u2028\u2029\ufeff"}
    assert raw <= {"\n"}


@pytest.mark.parametrize("profile", ["strict", "codelia", "rip", "omp"])
def test_no_profile_loses_the_good_skills(machine: Machine, profile: str) -> None:
    build_hostile_root(machine)

    catalog = machine.catalog(profile)

    assert {"a-good-one", "z-good-one"} <= {skill.name for skill in catalog.skills}
    assert not any(error.rule == "internal" for error in catalog.errors)
    assert TOKEN not in repr(catalog)


def test_folders_nested_until_their_path_is_too_long_cost_no_neighbour(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "good")
    folder = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("n" * 250, dir_fd=folder)
        below = os.open("n" * 250, os.O_RDONLY, dir_fd=folder)
        os.symlink("SKILL.md", "loop", dir_fd=below)
        os.close(folder)
        folder = below
    os.close(folder)

    assert [skill.name for skill in machine.catalog().skills] == ["good"]
    assert [skill.name for skill in machine.catalog("codelia").skills] == ["good"]


COSTLY = {
    "blanks": "name: x\ndescription: a: b" + " " * 60_000 + "c",
    "tabs": "name: x\ndescription: a: b" + "\t" * 60_000 + "c",
    "zeros": GOOD + "a: [" + "010, " * 12_000 + "1]",
    "digits": GOOD + "a: [" + "1" * 19 + (", " + "1" * 19) * 2900 + "]",
    "joiners": 'name: x\ndescription: "' + "\u200d" * 20_000 + '"',
    "selectors": 'name: x\ndescription: "' + "a\ufe0f" * 15_000 + '"',
    "tag-text": 'name: x\ndescription: "' + "\U000e0041" * 15_000 + '"',
    "colons": "name: x\ndescription: d\n" + "a: b: c\n" * 8000,
    "brackets": "name: x\n" + "".join(f"k{number}: [a] b\n" for number in range(4500)),
    "exclamations": GOOD + 'a: ["! ' + '", "! ' * 9000 + '"]',
    "anchors": GOOD + "a: [" + "&a b, " * 10_000 + "'*']",
    "quotes": GOOD + "a: " + "'" * 60_000,
    "dashes": GOOD + "a:\n" + "-\n" * 30_000,
    "fences": GOOD + "--- x\n" * 10_000,
    "tools": GOOD + "allowed-tools: " + "Bash((" * 10_000,
    "name": "name: " + "a-" * 30_000 + "\ndescription: d",
}
"""Frontmatters just below the largest allowed, in shapes on which a careless reader spends minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("shape", COSTLY)
def test_eight_of_the_largest_frontmatters_cost_little_time(machine: Machine, shape: str) -> None:
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "good")
    for number in range(8):
        content = front(COSTLY[shape])
        assert len(content) < 64 * 1024
        write_skill(root, f"costly-{number}", content)

    ran = run_limited(machine, "list", "--json", seconds=5)

    assert (ran.status, ran.stderr) == (0, b"")
    assert "good" in [skill["name"] for skill in ran.output["skills"]]
    assert ran.memory < 200 << 20


@pytest.mark.slow
def test_a_chain_of_links_longer_than_any_system_follows_costs_little_time(machine: Machine) -> None:
    root = machine.repo / ".agents" / "skills"
    write_skill(root, "good")
    for number in range(1500):
        (root / f"hop{number:04}").symlink_to(f"hop{number + 1:04}" if number < 1499 else "good")

    ran = run_limited(machine, "list", "--json", seconds=5)

    assert (ran.status, ran.stderr) == (0, b"")
    assert [skill["name"] for skill in ran.output["skills"]] == ["good"]
    told_of = {
        entry["path"].removesuffix("/SKILL.md") for part in ("warnings", "shadowed") for entry in ran.output[part]
    }
    assert len(told_of) == 1500


# What is opened and run ---------------------------------------------------------------------------

RECORD = """
import os, sys

import skillshelf.cli.main

events = []
RUNS = {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"}


def hook(event, args):
    if event == "open":
        events.append(("open", os.fsdecode(args[0]) if isinstance(args[0], (str, bytes)) else "", args[2]))
    elif event in ("os.listdir", "os.scandir"):
        # The identity of a descriptor shows which folder it is.
        status = os.fstat(args[0]) if isinstance(args[0], int) else None
        events.append(("list", f"{status.st_dev}:{status.st_ino}" if status else os.path.realpath(args[0] or "."), 0))
    elif event in RUNS:
        events.append(("run", event, 0))


sys.addaudithook(hook)
status = skillshelf.cli.main.main(sys.argv[1:])
import json
import_paths = [os.path.realpath(path) for path in [*sys.path, sys.prefix, sys.base_prefix] if path]
sys.stderr.write(json.dumps({"events": events, "imports": import_paths, "status": status}))
"""


def record(machine: Machine, *words: str) -> dict[str, Any]:
    """Return the files that Python reports to have opened, listed and run during the command."""
    options = ["--home", str(machine.home), "--cwd", str(machine.repo)]
    done = subprocess.run(
        # `-B`: Python itself would write compiled modules where there are none yet.
        [sys.executable, "-B", "-c", RECORD, *words, *options],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": SOURCE},
        capture_output=True,
        check=True,
        timeout=60,
    )
    recorded: dict[str, Any] = json.loads(done.stderr)
    assert recorded["status"] == 0
    return recorded


@pytest.mark.slow
def test_every_component_is_opened_separately_and_without_following_a_link(machine: Machine) -> None:
    hostile = build_hostile_root(machine)

    recorded = record(machine, "list", "--json", "--all")

    opened = [(name, flags) for kind, name, flags in recorded["events"] if kind == "open"]
    ours = [(name, flags) for name, flags in opened if not os.path.isabs(name) or name == "/"]
    imports = tuple(f"{path}/" for path in recorded["imports"])
    others = [name for name, _ in opened if os.path.isabs(name) and name != "/"]
    # What the system says of its file systems and of our rights, not of any skill.
    of_system = {"/proc/self/mountinfo", "/proc/self/status"}
    assert [n for n in others if n not in of_system and not os.path.realpath(n).startswith(imports)] == []
    # A name without a slash, no way up, and no link followed: from the top folder down this cannot leave the tree.
    below = {name for _, folders, files in os.walk(hostile.path) for name in (*folders, *files)}
    known = {"/", ".", *hostile.path.parts, *below}
    assert {name for name, _ in ours} <= known
    assert {name for name, flags in ours if not flags & os.O_NOFOLLOW} == set()
    assert {"a-good-one", "SKILL.md"} <= {name for name, _ in ours}


@pytest.mark.slow
def test_only_folders_below_the_root_are_listed(machine: Machine) -> None:
    hostile = build_hostile_root(machine)

    recorded = record(machine, "list", "--json", "--all")

    listed = {which for kind, which, _ in recorded["events"] if kind == "list"}
    by_path = {which for which in listed if os.path.isabs(which)}
    assert {path for path in by_path if not f"{path}/".startswith(tuple(f"{p}/" for p in recorded["imports"]))} == set()
    inside = [os.stat(folder) for folder, _, _ in os.walk(hostile.path)]
    assert listed - by_path <= {f"{status.st_dev}:{status.st_ino}" for status in inside}
    assert f"{os.stat(hostile.path).st_dev}:{os.stat(hostile.path).st_ino}" in listed


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_system_saw_no_file_opened_outside_the_tree(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hostile = build_hostile_root(machine)
    # A harmless machine shows which files Python itself needs for such a listing.
    harmless = Machine(tmp_path_factory.mktemp("harmless"))
    write_skill(harmless.repo / ".agents" / "skills", "x", LISTED["bidi"][0])

    opened, of_python = trace(machine), trace(harmless)

    prefixes = (str(hostile.path) + "/", *(f"{path}/" for path in (sys.prefix, sys.base_prefix, SOURCE)))
    above = {str(hostile.path), *map(str, hostile.path.parents)}
    strange = {path for path in opened - of_python - above if not path.startswith(prefixes)}
    assert strange == set()
    assert str(hostile.path / "a-good-one" / "SKILL.md") in opened
    assert not any(path.startswith(str(machine.base / "outside")) for path in opened)


def trace(machine: Machine) -> set[str]:
    """The paths of every descriptor that the system gave the command."""
    log = machine.base / "trace"
    place = ["--home", str(machine.home), "--cwd", str(machine.repo)]
    command = [sys.executable, "-m", "skillshelf", "list", "--json", "--all", *place]
    done = subprocess.run(
        ["strace", "-f", "-y", "-e", "trace=open,openat,openat2", "-o", str(log), *command],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": SOURCE},
        capture_output=True,
        timeout=120,
    )
    if b"ptrace" in done.stderr or b"PTRACE" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    results = (line.rpartition(" = ")[2] for line in log.read_text("utf-8", "surrogateescape").splitlines())
    paths = {result.partition("<")[2].rpartition(">")[0] for result in results if "<" in result}
    # Newer versions of Python look at their own memory, under a number that differs from run to run.
    return {re.sub(r"^/proc/\d+/", "/proc/self/", path) for path in paths}


@pytest.mark.slow
@pytest.mark.req("K-15", "K-24")
def test_nothing_of_a_skill_is_run_by_finding_it(machine: Machine) -> None:
    marker = machine.base / "was-run"
    touch = f"#!/bin/sh\ntouch {marker}\n"
    write_python = f"open({str(marker)!r}, 'w')\n"
    fields = (
        f'name: x\ndescription: "Runs !`touch {marker}` and $(touch {marker})."\n'
        f'hooks:\n  SessionStart: touch {marker}\ninstall: scripts/install.sh\nversion: "!`touch {marker}`"\n'
    )
    folder = write_skill(machine.repo / ".agents" / "skills", "x", front(fields, f"!`touch {marker}`\n")).parent
    (folder / "scripts").mkdir()
    for name in ("install.sh", "run.sh", "setup"):
        (folder / "scripts" / name).write_text(touch)
        (folder / "scripts" / name).chmod(0o755)
    for name in ("__init__.py", "conftest.py", "sitecustomize.py", "skillshelf.py", "ryaml.py", "setup.py"):
        for place in (folder, folder / "scripts", machine.repo):
            (place / name).write_text(write_python)

    recorded = [record(machine, *words) for words in (("list", "--json"), ("list", "--all"), ())]

    assert [event for one in recorded for event in one["events"] if event[0] == "run"] == []
    assert not marker.exists()
    assert machine.names() == ["x"]
    assert not marker.exists()
