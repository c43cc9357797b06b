"""Running a script: what it prints, what it may take, how it ends, and that only approved bytes run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from support.needs import needs_sandbox
from support.script_runs import QUICK, processes_with, run_text, said, skill_with
from support.trees import Machine

from skillshelf import ConfigurationError, LimitExceeded, PermissionDenied
from skillshelf.core.limits import RUN_ARGUMENT_BYTES, RUN_ARGUMENTS
from skillshelf.sandbox import launch
from skillshelf.sandbox import run as runner
from skillshelf.sandbox.reaper import descendants
from skillshelf.sandbox.run import Grants, find_script, run_script, sandbox_problem
from skillshelf.sandbox.scripts import find_program

SECONDS = float(os.environ.get("SKILLSHELF_RACE_SECONDS", "0.5"))
UNSANDBOXED = Grants(unsandboxed=True)


@pytest.fixture
def no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which bubblewrap is not installed."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    (programs / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(programs))


@pytest.fixture(params=["sandbox", "none"])
def grants(request: pytest.FixtureRequest) -> Grants:
    """The two ways to run: in the sandbox, or without one."""
    if request.param == "none":
        request.getfixturevalue("no_sandbox")
    elif sandbox_problem() is not None:
        pytest.skip("needs bwrap")
    return UNSANDBOXED


# How it is called -------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_sandbox
def test_a_run_tells_how_the_script_ended(machine: Machine) -> None:
    text = "import sys\nprint(sys.argv[1:])\nprint('oh', file=sys.stderr)\nopen('made.txt', 'w')\nsys.exit(3)"
    folder = skill_with(machine, {"it.py": text})
    digest = find_script(folder, "it.py").digest

    run = run_script(folder, "it.py", ["a b", "", "$HOME;", "-x"], digest=digest)

    assert run._replace(duration_ms=0, missing=())._asdict() == {
        "exit_code": 3,
        "stdout": b"['a b', '', '$HOME;', '-x']\n",
        "stderr": b"oh\n",
        "stdout_bytes": 28,
        "stderr_bytes": 3,
        "truncated": False,
        "timed_out": False,
        "duration_ms": 0,
        "artifact": None,
        "artifact_truncated": False,
        "sandbox": "bubblewrap",
        "missing": (),
        "reason": None,
        "digest": digest,
        "files": ("made.txt",),
        "files_truncated": False,
        "work": None,
    }


@pytest.mark.slow
def test_a_signal_is_told_as_a_shell_does(machine: Machine, grants: Grants) -> None:
    assert run_text(machine, "kill -TERM $$", name="it.sh", grants=grants).exit_code == 143


@pytest.mark.slow
def test_a_script_has_nothing_to_read(machine: Machine, grants: Grants) -> None:
    assert said(run_text(machine, "cat; echo end", name="it.sh", grants=grants)) == "end\n"


@pytest.mark.parametrize(
    ("args", "kind", "words"),
    [
        (["a\0b"], ConfigurationError, "NUL"),
        (["\udcff"], ConfigurationError, "UTF-8"),
        ("text", ConfigurationError, "list of texts"),
        ([1], ConfigurationError, "list of texts"),
        (["x"] * (RUN_ARGUMENTS + 1), LimitExceeded, "at most 256 arguments"),
        (["x" * (RUN_ARGUMENT_BYTES + 1)], LimitExceeded, "bytes together"),
    ],
)
def test_arguments_that_cannot_be_passed_on_are_refused(
    machine: Machine, args: list[str], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        run_script(skill_with(machine, {"it.sh": "echo ran"}), "it.sh", args, digest=None)


@pytest.mark.slow
def test_the_work_folder_is_removed_unless_it_is_to_be_kept(machine: Machine, grants: Grants) -> None:
    text = (
        "import os\n"
        "print(os.getcwd())\n"
        "os.makedirs('closed/inside'); open('closed/inside/x', 'w'); os.chmod('closed', 0)\n"
        "os.symlink('/etc', 'link'); open('made.txt', 'w')\n"
        "for _ in range(200): os.mkdir('deep-deep'); os.chdir('deep-deep')\n"
    )
    before = set(os.listdir(os.environ.get("TMPDIR", "/tmp")))

    gone = run_text(machine, text, grants=grants)
    kept = run_text(machine, "open('made.txt', 'w').write('made')", grants=grants, keep=True)

    assert (gone.exit_code, gone.work) == (0, None)
    assert kept.work is not None
    assert Path(kept.work, "made.txt").read_text() == "made"
    assert os.listdir(os.path.dirname(kept.work)) == ["work"]
    assert os.stat(os.path.dirname(kept.work)).st_mode & 0o777 == 0o700
    shutil.rmtree(os.path.dirname(kept.work))
    left = set(os.listdir(os.environ.get("TMPDIR", "/tmp"))) - before
    assert gone.stdout.decode().split("/")[2] not in left


# Only approved bytes ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["it.sh", "helper.sh"])
@pytest.mark.parametrize("has_tree", [True, False], ids=["with a tree", "without a tree"])
def test_a_script_that_changed_since_it_was_approved_does_not_run(
    machine: Machine, changed: str, has_tree: bool
) -> None:
    folder = skill_with(machine, {"it.sh": "echo approved", "helper.sh": "echo approved"})
    if not has_tree:
        Path(folder, "link").symlink_to("nowhere")
    approved = find_script(folder, "it.sh", env={"PATH": "/bin"})
    Path(folder, "scripts", changed).write_text("echo changed!")
    heard: list[bytes] = []

    with pytest.raises(PermissionDenied, match="changed since it was approved; review "):
        run_script(
            folder,
            "it.sh",
            digest=approved.digest,
            version=approved.tree.version,
            grants=UNSANDBOXED,
            on_output=lambda stream, data: heard.append(data),
        )

    assert heard == []


SWAP = """
import os, sys
place, spare, *texts = sys.argv[1:]
parent = os.getppid()
print("ready", flush=True)
while os.getppid() == parent:
    for text in texts:
        with open(spare, "w") as file:
            file.write(text)
        os.replace(spare, place)
"""


@pytest.mark.slow
def test_while_a_script_is_swapped_only_the_approved_bytes_run(machine: Machine, grants: Grants) -> None:
    folder = skill_with(machine, {"it.sh": "echo approved"})
    digest = find_script(folder, "it.sh").digest
    place = f"{folder}/scripts/it.sh"
    met: Counter[str] = Counter()

    words = [sys.executable, "-c", SWAP, place, str(machine.base / "spare"), "echo approved", "echo different"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        try:
            assert swapper.stdout.readline() == b"ready\n"
            end = time.monotonic() + SECONDS
            # The count only ends a run on a stuck machine.
            for _ in range(10_000):
                try:
                    met[said(run_script(folder, "it.sh", digest=digest, grants=grants))] += 1
                except PermissionDenied:
                    met["refused"] += 1
                if time.monotonic() > end and len(met) > 1:
                    break
            assert swapper.poll() is None, "the other process ended early: there was no race"
        finally:
            swapper.kill()

    assert set(met) == {"approved\n", "refused"}


@pytest.mark.slow
def test_what_happens_to_the_skill_while_a_script_runs_changes_nothing(
    reachable_machine: Machine, grants: Grants
) -> None:
    signals = reachable_machine.base / "signals"
    signals.mkdir()
    signals.chmod(0o755)
    text = (
        "import os, sys, time\n"
        "print('begun', flush=True)\n"
        "while not os.path.exists(sys.argv[1] + '/go'): time.sleep(0.01)\n"
        "import helper\n"
    )
    folder = skill_with(reachable_machine, {"it.py": text, "helper.py": "print('approved')"})

    def swap(stream: str, data: bytes) -> None:
        Path(folder, "scripts", "helper.py").write_text("print('different')")
        (signals / "go").touch()

    run = run_script(
        folder,
        "it.py",
        [str(signals)],
        digest=None,
        grants=grants._replace(read=(str(signals),)),
        limits=QUICK,
        on_output=swap,
    )

    assert said(run) == "begun\napproved\n"


# Output -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_output_is_handed_on_as_it_comes_and_never_within_a_character(machine: Machine, grants: Grants) -> None:
    text = (
        "import os, time\n"
        "for piece in ('é'.encode()[:1], 'é'.encode()[1:], '€'.encode()[:2], '€'.encode()[2:], b'\\xff', b'\\xe2'):\n"
        "    os.write(1, piece); time.sleep(0.02)\n"
        "os.write(2, b'done')\n"
    )
    pieces: list[tuple[str, bytes]] = []

    run = run_text(machine, text, grants=grants, on_output=lambda stream, data: pieces.append((stream, data)))

    assert run.stdout == "é€".encode() + b"\xff\xe2"
    assert b"".join(data for stream, data in pieces if stream == "stdout") == run.stdout
    assert ("stderr", b"done") in pieces
    whole = [data for stream, data in pieces if stream == "stdout" and not data.startswith((b"\xff", b"\xe2\xff"))]
    assert all(data.decode("utf-8", "ignore").encode() == data.rstrip(b"\xff\xe2") for data in whole)


@pytest.mark.slow
def test_output_beyond_the_limit_is_cut_said_and_kept_whole(machine: Machine, grants: Grants) -> None:
    artifacts = machine.base / "artifacts"
    text = "for _ in range(2000): print('é' * 49)\nimport sys\nprint('last words', file=sys.stderr)"
    handed: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def hear(stream: str, data: bytes) -> None:
        handed[stream] += data

    run = run_text(
        machine,
        text,
        grants=grants,
        limits=QUICK._replace(output_bytes=1000),
        artifacts=str(artifacts),
        on_output=hear,
    )

    assert (run.exit_code, run.truncated, run.stdout_bytes, run.stderr) == (0, True, 198_000, b"last words\n")
    assert run.stdout.decode() == ("é" * 49 + "\n") * 10 + "é" * 5
    assert handed == {"stdout": run.stdout, "stderr": run.stderr}
    assert run.artifact is not None
    # Two streams are two pipes: which of two pieces came first is not always known.
    whole = Path(run.artifact).read_bytes()
    assert whole.replace(b"last words\n", b"").decode() == ("é" * 49 + "\n") * 2000
    assert b"last words\n" in whole
    assert os.stat(run.artifact).st_mode & 0o777 == 0o600
    assert [str(path) for path in artifacts.iterdir()] == [run.artifact]


@pytest.mark.slow
def test_output_that_never_ends_fills_neither_memory_nor_disk(machine: Machine, grants: Grants) -> None:
    limits = QUICK._replace(seconds=1.5, output_bytes=100, artifact_bytes=1000)

    run = run_text(
        machine, "while :; do echo yes; done", name="it.sh", grants=grants, limits=limits, artifacts=str(machine.base)
    )

    assert (run.timed_out, run.truncated, run.artifact_truncated, len(run.stdout)) == (True, True, True, 100)
    assert run.artifact is not None
    assert Path(run.artifact).read_bytes() == b"yes\n" * 250 + b"\n[the rest is not kept]\n"


@pytest.mark.slow
def test_a_place_for_artifacts_that_cannot_be_written_does_not_end_the_script(machine: Machine, grants: Grants) -> None:
    (machine.base / "file").write_text("")

    run = run_text(
        machine,
        "echo 12345",
        name="it.sh",
        grants=grants,
        limits=QUICK._replace(output_bytes=3),
        artifacts=str(machine.base / "file"),
    )

    assert (run.exit_code, run.stdout, run.artifact, run.artifact_truncated) == (0, b"123", None, True)


@pytest.mark.slow
def test_a_listener_that_fails_ends_the_script_with_its_own_failure(machine: Machine, grants: Grants) -> None:
    marker = f"marker-{os.urandom(8).hex()}"

    def fail(stream: str, data: bytes) -> None:
        raise BrokenPipeError(marker)

    with pytest.raises(BrokenPipeError, match=marker):
        run_text(machine, "echo begun; sleep 60", marker, name="it.sh", grants=grants, on_output=fail)

    assert processes_with(marker) == []


# Limits -----------------------------------------------------------------------------------------------

GET_AWAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("away", flush=True)
        time.sleep(600)
    os._exit(0)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["0.3", "600"], ids=["ends by itself", "must be ended"])
def test_no_child_outlives_its_script(machine: Machine, grants: Grants, seconds: str) -> None:
    marker = f"marker-{os.urandom(8).hex()}"

    run = run_text(machine, GET_AWAY, marker, seconds, grants=grants, limits=QUICK._replace(seconds=2))

    assert run.stdout == b"away\n"
    assert processes_with(marker) == []
    assert run.timed_out == (seconds == "600")
    assert run.exit_code == (137 if run.timed_out else 0)
    assert run.reason == ("it was stopped after 2 seconds" if run.timed_out else None)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what processes take")
@pytest.mark.parametrize(
    ("limit", "text", "answers"),
    [
        ("memory_bytes", "x = bytearray(400_000_000)", ("MemoryError",)),
        (
            "memory_bytes",
            "import mmap, time\nm = mmap.mmap(-1, 300_000_000)\nm.write(bytes(200_000_000))\ntime.sleep(60)",
            ("it took more than 100000000 bytes of memory", "MemoryError", "the shared memory of this machine grew"),
        ),
        ("file_bytes", "open('x', 'wb').write(bytes(2_000_000))", ("File too large",)),
        (
            "work_bytes",
            "import os, time\nfor n in range(9):\n    folder = os.environ['TMPDIR' if n % 2 else 'HOME']\n"
            "    open(f'{folder}/{n}', 'wb').write(bytes(900_000))\ntime.sleep(60)",
            ("it wrote more than 3000000 bytes to disk", "No space left on device"),
        ),
        (
            "work_bytes",
            "import os, time\nos.mkdir('shut')\nos.chmod('shut', 0o300)\n"
            "for n in range(40): open(f'shut/{n}', 'wb').write(bytes(900_000))\ntime.sleep(60)",
            ("it wrote more than 3000000 bytes to disk", "it hid its files", "No space left on device"),
        ),
        (
            "work_bytes",
            "import os, time\nkept = []\nfor n in range(9):\n    kept.append(open('x', 'wb', 0)); os.remove('x')\n"
            "    kept[-1].write(bytes(900_000))\ntime.sleep(60)",
            ("it held more than 3000000 bytes in unnamed or deleted files", "No space left on device"),
        ),
        (
            "work_bytes",
            "import os, time\nfor n in range(9): os.write(os.memfd_create('x'), bytes(900_000))\ntime.sleep(60)",
            ("it held more than 3000000 bytes in unnamed or deleted files", "Function not implemented"),
        ),
        (
            "work_files",
            "import os, time\nfor n in range(200): os.mkdir(f'{n}')\ntime.sleep(60)",
            ("it made more than 100 files",),
        ),
        ("open_files", "kept = [open('/dev/null') for n in range(100)]", ("Too many open files",)),
        (
            "processes",
            "import os, time\nfor n in range(100):\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(60)",
            ("it had more than 20 processes at one time", "Resource temporarily unavailable"),
        ),
    ],
    ids=[
        "memory",
        "shared-memory",
        "file",
        "disk",
        "shut-folder",
        "removed-files",
        "memory-files",
        "files",
        "open-files",
        "processes",
    ],
)
def test_a_script_cannot_take_more_than_its_limits(
    machine: Machine, grants: Grants, limit: str, text: str, answers: tuple[str, ...]
) -> None:
    low = {"memory_bytes": 100_000_000, "file_bytes": 1_000_000, "work_bytes": 3_000_000}
    low |= {"work_files": 100, "open_files": 30, "processes": 20}
    marker = f"marker-{os.urandom(8).hex()}"

    # Without the filter, which refuses files in memory, and without a cgroup, which counts them as memory.
    grants, limits = grants._replace(all_calls=True), QUICK._replace(**{limit: low[limit]})
    run = run_text(machine, text, marker, grants=grants, limits=limits, without=("cgroup",))

    assert run.exit_code != 0
    assert any(answer in f"{run.reason} {run.stderr.decode()}" for answer in answers)
    assert not run.timed_out
    assert processes_with(marker) == []


@pytest.mark.slow
@needs_sandbox
def test_a_fork_bomb_ends_with_its_script(machine: Machine) -> None:
    marker = f"marker-{os.urandom(8).hex()}"
    text = "bomb() { bomb $1 | bomb $1 & }\nbomb $1\nsleep 60"

    run = run_text(machine, text, marker, name="it.sh", limits=QUICK._replace(seconds=1, processes=40))

    assert run.reason is not None
    assert processes_with(marker) == []


# Without a sandbox ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_sandbox")
def test_where_there_is_no_sandbox_nothing_runs_and_the_reason_is_said(machine: Machine) -> None:
    with pytest.raises(
        PermissionDenied, match=r"no sandbox is available: bubblewrap .* the policy allows `unsandboxed`"
    ):
        run_text(machine, "touch $SKILL_DIR/ran", name="it.sh")


@pytest.mark.parametrize("entry", [".", "", "tools", "../project"])
def test_no_program_of_the_working_directory_is_taken_for_a_part_of_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    folder = tmp_path / "project"
    started = tmp_path / "started"
    for name in ("bwrap", "busctl"):
        program = folder / entry / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\ntouch '{started}'\n")
        program.chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{entry}:/nonesuch")
    assert sandbox_problem() == "bubblewrap (bwrap) is not installed"
    assert find_program("busctl") is None
    assert not started.exists()


def test_off_linux_the_refusal_is_one_sentence_that_names_the_system() -> None:
    reason = sandbox_problem("darwin")

    assert reason == "bubblewrap needs Linux, and this is darwin"
    assert str(launch.no_sandbox(reason)) == (
        "no sandbox is available: bubblewrap needs Linux, and this is darwin; "
        "a script runs without one only if the policy allows `unsandboxed`"
    )


@pytest.mark.slow
def test_where_bubblewrap_may_not_make_a_sandbox_its_own_words_are_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = machine.base / "programs"
    programs.mkdir()
    (programs / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    with pytest.raises(PermissionDenied, match=r"may not make one \(bwrap: No permissions to create new namespace\)"):
        run_text(machine, "echo ran", name="it.sh")
    assert said(run_text(machine, "echo ran", name="it.sh", grants=UNSANDBOXED)) == "ran\n"


@pytest.mark.slow
@pytest.mark.usefixtures("no_sandbox")
def test_without_a_sandbox_a_script_still_gets_a_copy_and_none_of_our_variables(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "ours")
    text = "echo ${SECRET_TOKEN-none}; rm -f $SKILL_DIR/SKILL.md; [ $PWD = $HOME ] && echo home"

    run = run_text(machine, text, name="it.sh", grants=UNSANDBOXED)

    assert (said(run), run.sandbox) == ("none\nhome\n", "none")
    assert (machine.home / ".agents" / "skills" / "runs" / "SKILL.md").exists()


KEPT = """
import os, sys
from skillshelf.sandbox.reaper import descendants
from skillshelf.sandbox.run import Grants, run_script
run_script(sys.argv[1], "it.py", [sys.argv[2], "600"], digest=None, grants=Grants(unsandboxed=True),
           on_output=lambda stream, data: os.kill(os.getpid(), 9))
"""


@pytest.mark.slow
def test_a_script_does_not_outlive_the_program_that_started_it(machine: Machine, grants: Grants) -> None:
    marker = f"marker-{os.urandom(8).hex()}"
    folder = skill_with(machine, {"it.py": GET_AWAY})

    # Who is killed cannot tidy up: what is left is left in the folder of this test.
    environment = {**os.environ, "TMPDIR": str(machine.base)}
    done = subprocess.run([sys.executable, "-c", KEPT, folder, marker], env=environment, timeout=60)

    assert done.returncode == -9
    end = time.monotonic() + 20
    while processes_with(marker) and time.monotonic() < end:
        time.sleep(0.02)
    assert processes_with(marker) == []


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize(
    ("module", "step"),
    [(launch, "_until_ready"), (launch, "_limit"), (runner, "_follow")],
    ids=["before it waits to start", "before it may go on", "just after"],
)
def test_a_script_that_is_interrupted_as_it_starts_is_not_left_behind(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str
) -> None:
    monkeypatch.setattr(module, step, _interrupt)
    marker = f"mark-{uuid.uuid4()}"

    with pytest.raises(KeyboardInterrupt):
        run_text(machine, "exec sleep 600", marker, name="it.sh")

    assert processes_with(marker) == []
    assert descendants(os.getpid()) == []
