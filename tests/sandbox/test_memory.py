"""Memory and disk space: a script cannot take more by giving it no name, with a cgroup and without one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.needs import needs_sandbox
from support.script_runs import QUICK, processes_with, run_text, said, skill_with
from support.trees import SOURCE, Machine

from skillshelf import PermissionDenied
from skillshelf.core.values import Wall
from skillshelf.sandbox.run import Grants, Run, run_script
from skillshelf.sandbox.storage import StorageUnavailable, open_storage

pytestmark = [pytest.mark.slow, needs_sandbox]

LIMITS = QUICK._replace(memory_bytes=100_000_000, work_bytes=30_000_000)

COMMON = """
import array, ctypes, mmap, os, socket, sys, time
MB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p
"""

ESCAPES = {
    "segments": """
for _ in range(60):
    number = libc.shmget(0, 10 * MB, 0o1600)
    if number < 0: sys.exit("refused")
    place = libc.shmat(number, None, 0)
    ctypes.memset(place, 1, 10 * MB)
    libc.shmdt(ctypes.c_void_p(place))
""",
    "memory files in flight": """
kept = []
for _ in range(60):
    number = os.memfd_create("x")
    os.write(number, bytes(10 * MB))
    kept.append(socket.socketpair())
    kept[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [number]))])
    os.close(number)
""",
    "removed mapped files": """
kept = []
for n in range(60):
    number = os.open(f"{(os.environ['TMPDIR'], '/dev/shm', '.')[n % 3]}/x", os.O_RDWR | os.O_CREAT)
    os.ftruncate(number, 10 * MB)
    kept.append(mmap.mmap(number, 10 * MB))
    os.remove(os.readlink(f"/proc/self/fd/{number}"))
    os.close(number)
    kept[-1].write(bytes(10 * MB))
""",
    "one page of shared mappings": """
for _ in range(60):
    place = libc.mmap(None, 10 * MB, 3, 0x21, -1, 0)
    ctypes.memset(place, 1, 10 * MB)
    libc.munmap(ctypes.c_void_p(place + 4096), 10 * MB - 4096)
""",
    "page tables": """
place = libc.mmap(None, ctypes.c_size_t(300 << 30), 1, 0x4022, -1, 0)
assert place != 2**64 - 1
for offset in range(0, 300 << 30, 2 * MB): ctypes.c_char.from_address(place + offset).value
""",
    "data in sockets": """
for _ in range(20):
    if os.fork() == 0:
        kept = [socket.socketpair() for _ in range(100)]
        for pair in kept:
            for end in pair:
                end.setblocking(False)
                try:
                    while True: end.send(bytes(60_000))
                except BlockingIOError:
                    pass
        time.sleep(60)
time.sleep(10)
""",
    "many processes": """
for _ in range(20):
    if os.fork() == 0:
        kept = bytearray(os.urandom(1)) * (30 * MB)
        time.sleep(60)
time.sleep(10)
""",
}

AS_USER = """
import json, os, sys, tempfile
from skillshelf.sandbox.run import RunLimits, run_script
with tempfile.TemporaryDirectory() as folder:
    os.mkdir(f"{folder}/scripts")
    with open(f"{folder}/scripts/it.py", "w") as file:
        file.write(sys.argv[1])
    run = run_script(folder, "it.py", digest=None, limits=RunLimits(*json.loads(sys.argv[2])))
    print(json.dumps([run.exit_code, run.reason, run.stderr.decode(), run.missing]))
"""


def _run_as_user(text: str) -> Run:
    """Run a script as somebody who may not do everything, with the system's Python, which everybody may read."""
    python = "/usr/bin/python3"
    if os.geteuid() != 0 or not os.path.exists(python):
        pytest.skip("needs root, which can become somebody else, and a Python of the system")
    done = subprocess.run(
        [python, "-c", AS_USER, text, json.dumps(LIMITS)],
        user=65534,
        group=65534,
        extra_groups=[],
        env={"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=60,
    )
    if b"ModuleNotFoundError" in done.stderr or b"PermissionError" in done.stderr:
        pytest.skip("needs a checkout that everybody may read")
    code, reason, stderr, missing = json.loads(done.stdout)
    return Run(code, b"", stderr.encode(), 0, 0, truncated=False, reason=reason, missing=tuple(missing))


@pytest.mark.parametrize("way", ["all walls", "no cgroup", "neither cgroup nor filter", "ordinary user"])
@pytest.mark.parametrize("escape", ESCAPES)
def test_memory_without_a_name_is_refused_or_counted(machine: Machine, escape: str, way: str) -> None:
    text = COMMON + ESCAPES[escape] + "\ntime.sleep(2)\n"
    if way == "ordinary user":
        run = _run_as_user(text)
    else:
        without = () if way == "all walls" else ("cgroup",)
        grants = Grants(all_calls="filter" in way)
        run = run_text(machine, text, limits=LIMITS, without=without, grants=grants)

    assert run.exit_code != 0, (run.reason, run.stderr)
    assert not run.timed_out


SHARED = (
    COMMON
    + """
kept = bytearray(os.urandom(1)) * (350 * MB)
with open("/dev/shm/x", "wb+") as file:
    file.truncate(20 * MB)
    shared = mmap.mmap(file.fileno(), 20 * MB)
shared.write(bytes(20 * MB))
children = []
for _ in range(6):
    children.append(os.fork())
    if children[-1] == 0:
        sum(shared[::4096]), sum(kept[::4096])
        time.sleep(0.5)
        os._exit(0)
print(sum(os.waitpid(child, 0)[1] for child in children))
"""
)


@pytest.mark.parametrize("without", [(), ("cgroup",)], ids=["all walls", "no cgroup"])
def test_memory_that_processes_share_counts_once(machine: Machine, without: tuple[Wall, ...]) -> None:
    # Large enough that what other tests take at the same time does not count.
    limits = LIMITS._replace(memory_bytes=600_000_000)

    assert said(run_text(machine, SHARED, limits=limits, without=without)) == "0\n"


def test_the_files_of_other_scripts_do_not_count_as_memory_of_the_machine(machine: Machine) -> None:
    limits = LIMITS._replace(memory_bytes=600_000_000, work_bytes=400_000_000, file_bytes=400_000_000)
    writes = "open('x', 'wb').write(bytes(350_000_000))\nimport time\ntime.sleep(1)"
    folder = skill_with(machine, {"it.py": writes})

    without: tuple[Wall, ...] = ("cgroup",)

    def run(_: int) -> Run:
        return run_script(folder, "it.py", digest=None, limits=limits, without=without)

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(run, range(2)))

    assert [(run.exit_code, run.reason) for run in runs] == [(0, None)] * 2


def test_a_script_that_the_kernel_ends_for_its_memory_is_told_the_reason(machine: Machine) -> None:
    text = COMMON + "m = mmap.mmap(-1, 400 * MB)\nfor n in range(400): m.write(bytes(MB))\n"

    run = run_text(machine, text, limits=LIMITS)

    if "cgroup" in run.missing:
        pytest.skip("needs a cgroup")
    assert (run.exit_code, run.reason) == (137, "it took more than 100000000 bytes of memory")


def test_a_script_does_not_succeed_if_the_kernel_ended_one_of_its_processes(machine: Machine) -> None:
    child = "m = mmap.mmap(-1, 400 * MB)\n    for n in range(400): m.write(bytes(MB))"
    text = f"{COMMON}if os.fork() == 0:\n    {child}\nos.wait()\n"

    run = run_text(machine, text, limits=LIMITS)

    if "cgroup" in run.missing:
        pytest.skip("needs a cgroup")
    assert (run.exit_code, run.reason) == (137, "it took more than 100000000 bytes of memory")


@pytest.mark.parametrize("without", [(), ("cgroup",)], ids=["all walls", "no cgroup"])
def test_a_fork_bomb_is_bounded_and_ends(machine: Machine, without: tuple[Wall, ...]) -> None:
    marker = f"marker-{os.urandom(8).hex()}"
    text = "bomb() { bomb $1 | bomb $1 & }\nbomb $1\nsleep 60"

    run = run_text(machine, text, marker, name="it.sh", limits=QUICK._replace(seconds=1, processes=40), without=without)

    assert run.reason is not None
    assert processes_with(marker) == []


def test_a_policy_can_require_a_wall_that_is_missing_and_nothing_runs(machine: Machine) -> None:
    seen: list[bytes] = []
    for wall in ("cgroup", "tmpfs"):
        with pytest.raises(PermissionDenied, match=f"requires a part of the sandbox that is missing: {wall}"):
            run_text(
                machine,
                "print('ran')",
                require=(wall,),
                without=(wall,),
                on_output=lambda stream, data: seen.append(data),
            )
    assert seen == []


def test_a_script_is_the_first_that_the_kernel_ends_when_the_machine_has_no_memory_left(machine: Machine) -> None:
    assert said(run_text(machine, "cat /proc/self/oom_score_adj", name="it.sh")) == "1000\n"


# Files ------------------------------------------------------------------------------------------------

LEAVE = """
import os
os.makedirs("deep/er"); os.chmod('deep', 0o755)
open("deep/er/x.txt", "w").write("deep")
open(b"not-\\xff", "w").write("bytes")
open("line\\nbreak", "w").write("break")
open("run.sh", "w").write("#!"); os.chmod("run.sh", 0o755)
os.symlink("/etc/passwd", "link"); os.symlink("deep", "link-to-folder")
os.mkfifo("pipe")
os.link("run.sh", "second-name")
open("removed", "w").close(); os.remove("removed")
for n in range(3):
    with open(f"z-sparse-{n}", "wb") as file: file.truncate(12_000_000)
"""


@pytest.mark.parametrize("without", [(), ("tmpfs",)], ids=["in memory", "on disk"])
def test_the_files_of_a_script_are_listed_whatever_their_names(machine: Machine, without: tuple[Wall, ...]) -> None:
    run = run_text(machine, LEAVE, limits=LIMITS, without=without)

    assert (run.exit_code, run.stderr, run.work) == (0, b"", None)
    names = ["deep/er/x.txt", "line\nbreak", "not-\udcff", "run.sh", "second-name"]
    assert run.files == (*names, "z-sparse-0", "z-sparse-1", "z-sparse-2")


@pytest.fixture
def kept(machine: Machine) -> Iterator[Run]:
    run = run_text(machine, LEAVE, limits=LIMITS, keep=True)
    yield run
    assert run.work is not None
    shutil.rmtree(os.path.dirname(run.work))


def test_only_regular_files_are_kept_up_to_the_limit_that_their_sizes_show(kept: Run) -> None:
    assert (kept.exit_code, kept.stderr) == (0, b"")
    assert kept.work is not None
    names = ("deep/er/x.txt", "line\nbreak", "not-\udcff", "run.sh", "second-name", "z-sparse-0", "z-sparse-1")
    assert (kept.files, kept.files_truncated) == (names, True)
    found = {os.path.relpath(path, kept.work) for path in map(str, Path(kept.work).rglob("*")) if os.path.isfile(path)}
    assert found == set(names)
    assert Path(kept.work, "deep/er/x.txt").read_text() == "deep"
    assert os.access(f"{kept.work}/run.sh", os.X_OK)
    assert not os.access(f"{kept.work}/deep/er/x.txt", os.X_OK)
    assert {os.stat(f"{kept.work}/{name}").st_uid for name in names} == {os.geteuid()}


def test_files_that_a_script_writes_never_reach_the_disk(machine: Machine) -> None:
    text = (
        "import os\nfor path in ('.', '/tmp', '/dev/shm'): print(os.statvfs(path).f_blocks * os.statvfs(path).f_frsize)"
    )

    run = run_text(machine, text, limits=LIMITS)
    if "tmpfs" in run.missing:
        pytest.skip("needs a bubblewrap with --size")
    sizes = [int(word) for word in said(run).split()]

    assert [size - size % 1_000_000 for size in sizes] == [30_000_000] * 3


def test_a_file_system_that_is_not_the_sandboxs_own_is_not_taken_for_it() -> None:
    with pytest.raises(StorageUnavailable, match="larger than 4096 bytes"):
        open_storage(os.getpid(), ["/usr"], size=4096, user=None)
