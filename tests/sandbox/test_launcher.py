"""The state that a script's process starts with: made from nothing, and the same with a sandbox and without one."""

from __future__ import annotations

import json
import os
import py_compile
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.needs import needs_sandbox
from support.script_runs import QUICK, processes_with, run_text, said, skill_with
from support.trees import SOURCE, Machine

from skillshelf import ScriptNotRunnable
from skillshelf.core import files
from skillshelf.sandbox import bubblewrap, launcher, usage
from skillshelf.sandbox.cgroup import Cgroup, prepare_cgroup
from skillshelf.sandbox.run import Grants, RunLimits, sandbox_problem

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the state of a process"),
]

UNSANDBOXED = Grants(unsandboxed=True)


@pytest.fixture(params=["sandbox", "none"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The two ways to run."""
    if request.param == "none":
        monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: None)
    elif sandbox_problem() is not None:
        pytest.skip("needs bwrap")
    return str(request.param)


STATE = """
echo "umask $(umask)"
echo "cwd $([ "$(pwd)" = "$HOME" ] && echo home)"
listed=$(ls -l /proc/self/fd | grep -v '/proc/' | sed -n 's/.* \\([0-9]* -> [a-z/]*\\).*/\\1/p' | tr '\\n' ' ')
echo "descriptors $listed"
grep -E '^(SigBlk|SigIgn|SigPnd|ShdPnd)' /proc/self/status
grep -v 'Max processes' /proc/self/limits
echo "variables $(tr '\\0' '\\n' < /proc/$$/environ | sed 's/=.*//' | sort | tr '\\n' ' ')"
echo "niceness $(nice)"
echo "oom $(cat /proc/self/oom_score_adj)"
session=$(cut -d ' ' -f 6 /proc/$$/stat)
echo "leader $( ( [ $session = $$ ] || [ $session = 1 ] ) && echo session)"
"""


@contextmanager
def odd_state() -> Iterator[None]:
    """Let everything that a process inherits be unusual."""
    ignored = (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM, signal.SIGRTMIN + 3, signal.SIGRTMAX)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGCHLD, signal.SIGRTMIN + 5})
    umask = os.umask(0o077)
    core = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, core[1]))
    descriptor = os.open("/", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        yield
    finally:
        os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_CORE, core)
        os.umask(umask)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def test_a_script_starts_with_the_same_state_whatever_its_program_was_started_with(machine: Machine, way: str) -> None:
    limits = RunLimits(seconds=30, open_files=77, memory_bytes=512 << 20, file_bytes=3 << 20)

    plain = said(run_text(machine, STATE, name="it.sh", grants=UNSANDBOXED, limits=limits))
    with odd_state():
        odd = said(run_text(machine, STATE, name="it.sh", grants=UNSANDBOXED, limits=limits))

    assert odd == plain
    lines = plain.splitlines()
    assert lines[:3] == ["umask 0022", "cwd home", "descriptors 0 -> /dev/null 1 -> pipe 2 -> pipe "]
    assert {line.split()[1] for line in lines if line.startswith(("Sig", "Shd"))} == {"0" * 16}
    table = {line[:26].strip(): line[26:].split()[:2] for line in lines if line.startswith("Max ")}
    assert table["Max open files"] == ["77", "77"]
    assert table["Max data size"] == [str(2 * 512 << 20)] * 2
    assert table["Max file size"] == [str(3 << 20)] * 2
    assert table["Max core file size"] == ["0", "0"]
    assert "variables HOME LANG PATH PWD SKILL_DIR TMPDIR " in lines
    assert "leader session" in lines


@needs_sandbox
def test_the_state_with_a_sandbox_and_without_one_is_the_same(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = said(run_text(machine, STATE, name="it.sh", grants=UNSANDBOXED))
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: None)
    outside = said(run_text(machine, STATE, name="it.sh", grants=UNSANDBOXED))

    assert inside == outside


def test_a_pipe_that_nobody_reads_ends_a_program_silently(machine: Machine, way: str) -> None:
    assert said(run_text(machine, "yes | head -1", name="it.sh", grants=UNSANDBOXED)) == "y\n"


def test_a_file_above_the_limit_ends_the_script(machine: Machine, way: str) -> None:
    limits = QUICK._replace(file_bytes=1_000_000)

    run = run_text(
        machine, "exec head -c 2000000 /dev/zero > x", name="it.sh", grants=UNSANDBOXED, limits=limits, keep=True
    )

    assert run.exit_code == 128 + signal.SIGXFSZ
    assert run.work is not None
    assert Path(run.work, "x").stat().st_size == 1_000_000


def test_limits_too_low_for_the_sandbox_itself_apply_to_the_script_alone(machine: Machine, way: str) -> None:
    limits = QUICK._replace(file_bytes=10, open_files=12)

    assert (
        said(run_text(machine, "ulimit -n; ulimit -Hn", name="it.sh", grants=UNSANDBOXED, limits=limits)) == "12\n12\n"
    )


def test_ends_of_children_that_the_program_ignores_do_not_hide_how_a_script_ended(machine: Machine, way: str) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        run = run_text(machine, "exit 3", name="it.sh", grants=UNSANDBOXED)
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert run.exit_code == 3


# The keyring --------------------------------------------------------------------------------------------

KEYS = """
import ctypes, os, platform
number = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
def search():
    key = libc.syscall(number[1], 10, -3, b"user", b"skillshelf-test", 0)
    found = ctypes.create_string_buffer(100)
    return libc.syscall(number[1], 11, key, found, 100) > 0 and found.value.decode()
"""

WITH_A_KEY = (
    KEYS
    + """
import json, sys
from skillshelf.sandbox import bubblewrap
from skillshelf.sandbox.run import Grants, run_script
if sys.argv[2] == "none":
    bubblewrap.find_bubblewrap = lambda: None
libc.syscall(number[1], 1, b"skillshelf-test")
libc.syscall(number[0], b"user", b"skillshelf-test", b"SECRET", 6, -3)
# Without the filter, which refuses the call itself.
run = run_script(sys.argv[1], "it.py", digest=None, grants=Grants(unsandboxed=True, all_calls=True))
print(json.dumps([search(), run.stdout.decode(), run.stderr.decode()]))
"""
)


def test_a_script_does_not_have_the_session_keyring_of_its_user(machine: Machine, way: str) -> None:
    folder = skill_with(machine, {"it.py": KEYS + "print(search())"})

    done = subprocess.run(
        [sys.executable, "-c", WITH_A_KEY, folder, way],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )

    ours, its, errors = json.loads(done.stdout)
    if ours is False:
        pytest.skip("needs a kernel with keyrings")
    assert (ours, its, errors) == ("SECRET", "False\n", "")


# The gate -----------------------------------------------------------------------------------------------

LEAVE = """
import os, sys
from skillshelf.sandbox import bubblewrap, launch
from skillshelf.sandbox.run import Grants, run_script
if sys.argv[2] == "none":
    bubblewrap.find_bubblewrap = lambda: None
launch._GO = b""
run_script(sys.argv[1], "it.sh", digest=None, grants=Grants(unsandboxed=True, write=(sys.argv[3],)),
           on_output=print)
"""


def test_a_script_does_not_start_without_the_word_of_its_program(reachable_machine: Machine, way: str) -> None:
    place = reachable_machine.base / "place"
    place.mkdir()
    place.chmod(0o777)
    folder = skill_with(reachable_machine, {"it.sh": f"touch {place}/ran"})

    with subprocess.Popen(
        [sys.executable, "-c", LEAVE, folder, way, str(place)], env={**os.environ, "PYTHONPATH": SOURCE}
    ) as program:
        try:
            # The gate is waited at by the script's own process, and this one waits for the script.
            with pytest.raises(subprocess.TimeoutExpired):
                program.wait(1)
        finally:
            program.kill()

    assert list(place.iterdir()) == []


@needs_sandbox
def test_a_program_whose_path_looks_like_a_variable_is_started(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = machine.base / "a=b"
    programs.mkdir()
    (programs / "odd").write_bytes(Path("/usr/bin/env").read_bytes())
    (programs / "odd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")

    assert said(run_text(machine, f"#!{programs}/odd /bin/sh\necho ran", name="it")) == "ran\n"


@needs_sandbox
def test_a_program_that_the_sandbox_does_not_show_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program_files", lambda program: [])
    programs = machine.base / "programs"
    programs.mkdir()
    (programs / "odd").write_bytes(Path("/usr/bin/env").read_bytes())
    (programs / "odd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")

    with pytest.raises(ScriptNotRunnable, match="odd cannot be started: it is not visible in the sandbox"):
        run_text(machine, f"#!{programs}/odd /bin/sh\necho ran", name="it")


FORK_AND_DIE = """
import os, sys, time
from skillshelf.sandbox import bubblewrap
from skillshelf.sandbox.run import Grants, run_script
if sys.argv[2] == "none":
    bubblewrap.find_bubblewrap = lambda: None
def fork_and_die(stream, data):
    if os.fork() == 0:
        os.close(1)
        time.sleep(600)
    print("forked", flush=True)
    os.kill(os.getpid(), 9)
run_script(sys.argv[1], "it.sh", [sys.argv[3]], digest=None, grants=Grants(unsandboxed=True), on_output=fork_and_die)
"""


def test_a_script_ends_with_its_program_although_a_fork_of_that_holds_all_its_sockets(
    machine: Machine, way: str
) -> None:
    marker = f"marker-{os.urandom(8).hex()}"
    folder = skill_with(machine, {"it.sh": "echo begun; sleep 600"})
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TMPDIR": str(machine.base)}

    with subprocess.Popen(
        [sys.executable, "-c", FORK_AND_DIE, folder, way, marker], env=environment, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stdout.read() == b"forked\n"
    end = time.monotonic() + 20
    while len(left := processes_with(marker)) > 1 and time.monotonic() < end:
        time.sleep(0.02)
    for process in left:
        os.kill(process, signal.SIGKILL)

    # The fork of the program has the same command line.
    assert len(left) == 1


def test_a_keyring_that_cannot_be_left_is_told_as_a_missing_part(
    machine: Machine, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = machine.base / "launcher.py"
    text = Path(launcher.__file__).read_text()
    path.write_text(text.replace('_KEYCTL = {"x86_64": 250, "aarch64": 219}', "_KEYCTL = {}"))
    assert path.read_text() != text
    before = run_text(machine, "echo ran", name="it.sh", grants=UNSANDBOXED)
    monkeypatch.setattr(launcher, "__file__", str(path))

    run = run_text(machine, "echo ran", name="it.sh", grants=UNSANDBOXED)

    assert (said(run), set(run.missing) - set(before.missing)) == ("ran\n", {"keyring"})


def test_the_launcher_imports_little_and_never_its_own_source(tmp_path: Path) -> None:
    show = "import sys; exec(compile(open(sys.argv[1]).read(), 'launcher', 'exec'), {'__name__': 'it'}); "
    show += "print(*sys.modules)"
    words = [sys.executable, "-I", "-S", "-c", show, launcher.__file__]

    loaded = set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())

    assert not loaded & {"ctypes", "enum", "re", "signal", "skillshelf", "socket", "subprocess", "typing"}


def test_the_launcher_may_be_installed_compiled_only(
    machine: Machine, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = machine.base / "launcher.pyc"
    py_compile.compile(launcher.__file__, str(compiled))
    monkeypatch.setattr(launcher, "__file__", str(compiled))

    assert said(run_text(machine, "echo ran", name="it.sh", grants=UNSANDBOXED)) == "ran\n"


def test_a_sandbox_enters_its_cgroup_by_itself_and_nobody_looks_for_its_processes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_own_cgroup()

    def unneeded(*words: object, **options: object) -> None:
        raise AssertionError("it takes as long as the machine is busy")

    monkeypatch.setattr(usage, "make_cgroup", unneeded)
    monkeypatch.setattr(usage, "descendants", unneeded)
    before = run_text(machine, "cut -d : -f 3 /proc/self/cgroup | sort -u", name="it.sh", without=("cgroup",))

    run = run_text(machine, "cut -d : -f 3 /proc/self/cgroup | sort -u", name="it.sh")

    assert ("cgroup" in before.missing, "cgroup" in run.missing) == (True, False)
    # It sees its own cgroup as the top of all, and no path of ours.
    assert said(run) == "/\n"


def test_a_sandbox_that_does_not_enter_its_cgroup_is_moved_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_own_cgroup()
    left: list[Cgroup] = []

    def gone(*, memory: int, pids: int) -> Cgroup | None:
        cgroup = prepare_cgroup(memory=memory, pids=pids)
        assert cgroup is not None
        cgroup.remove()
        left.append(cgroup)
        return cgroup

    monkeypatch.setattr(usage, "prepare_cgroup", gone)

    run = run_text(machine, "echo ran", name="it.sh")

    assert (said(run), "cgroup" in run.missing, len(left)) == ("ran\n", False, 1)


@pytest.mark.parametrize("processes", [3, 6])
def test_a_script_in_a_cgroup_has_as_many_processes_as_its_limit_says(machine: Machine, processes: int) -> None:
    _needs_own_cgroup()
    text = "import os, time\nmade = 0\ntry:\n    for _ in range(20):\n        if os.fork() == 0: time.sleep(60)\n"
    text += "        made += 1\nexcept OSError:\n    pass\nprint(made, flush=True)\nos._exit(0)\n"

    run = run_text(machine, text, limits=RunLimits(processes=processes, seconds=20))

    assert said(run) == f"{processes - 1}\n"


def _needs_own_cgroup() -> None:
    cgroup = prepare_cgroup(memory=10**9, pids=10)
    if cgroup is None or sandbox_problem() is not None:
        pytest.skip("needs bwrap and a cgroup of version 1")
    cgroup.remove()


FEW_DESCRIPTORS = """
import os, resource, sys
from skillshelf import SkillError
from skillshelf.sandbox import bubblewrap
from skillshelf.sandbox.run import Grants, run_script
if sys.argv[2] == "none":
    bubblewrap.find_bubblewrap = lambda: None
grants = Grants(unsandboxed=True)
run_script(sys.argv[1], "it.sh", digest=None, grants=grants)
for most in range(7, 40):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, 1024))
    try:
        assert run_script(sys.argv[1], "it.sh", digest=None, grants=grants).exit_code == 0
    except SkillError as error:
        print(type(error).__name__)
"""


def test_a_program_with_too_many_open_files_gets_an_error_of_ours(machine: Machine, way: str) -> None:
    folder = skill_with(machine, {"it.sh": "echo ran"})
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TMPDIR": str(machine.base)}
    program = [sys.executable, "-c", FEW_DESCRIPTORS, folder, way]

    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert "ScriptNotRunnable" in done.stdout.split()
    assert not list(machine.base.glob("skillshelf-run-*"))


@pytest.mark.parametrize("path", ["", None])
def test_a_program_that_does_not_know_its_python_is_told_so(
    machine: Machine, way: str, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", path)
    with pytest.raises(ScriptNotRunnable, match=r"does not say where its Python is \(sys\.executable\)"):
        run_text(machine, "echo ran", name="it.sh", grants=UNSANDBOXED)


def test_settings_of_a_java_that_was_removed_stop_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "names_in", lambda folder: ["java-0-openjdk", "passwd"])
    assert list(bubblewrap._java_settings()) == []
