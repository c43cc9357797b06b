"""Cgroups: where one can be made, what the kernel then counts, and that nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillshelf.sandbox.cgroup import Cgroup, CgroupPlace, cgroup_places, make_cgroup, prepare_cgroup, sweep_cgroups

WAIT = "import sys; sys.stdin.readline(); "


@pytest.mark.parametrize(
    ("mounts", "own", "places"),
    [
        ("", "", []),
        (
            "30 20 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate",
            "0::/user.slice/user-7.slice/user@7.service/app.slice/shell.scope",
            [
                (2, "/sys/fs/cgroup/user.slice/user-7.slice/user@7.service/app.slice"),
                (2, "/sys/fs/cgroup/user.slice/user-7.slice/user@7.service/app.slice/shell.scope"),
            ],
        ),
        ("30 20 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw", "0::/", [(2, "/sys/fs/cgroup")]),
        ("30 20 0:26 /a/b /sys/fs/cgroup rw - cgroup2 cgroup rw", "0::/a/b", [(2, "/sys/fs/cgroup")]),
        ("30 20 0:26 /a/b /sys/fs/cgroup rw - cgroup2 cgroup rw", "0::/a/c", []),
        ("30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw", "0::/../x", []),
        (
            "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids",
            "8:pids:/\n4:memory:/own:1\n0::/",
            [(1, "/cg/memory/own:1", "/cg/pids")],
        ),
        ("35 31 0:32 / /cg rw - cgroup cgroup rw,memory,pids", "4:memory,pids:/own", [(1, "/cg/own")]),
        ("35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory", "4:memory:/own", []),
    ],
    ids=[
        "nothing mounted",
        "a session",
        "a namespace",
        "a part is mounted",
        "another part is mounted",
        "outside of the namespace",
        "version 1",
        "version 1, both in one",
        "no pids",
    ],
)
def test_a_cgroup_is_made_beside_ours_or_with_version_1_below_it(
    mounts: str, own: str, places: list[tuple[int, str]]
) -> None:
    assert list(cgroup_places(mounts, own)) == [CgroupPlace(version, tuple(rest)) for version, *rest in places]


def _made(process: int, *, memory: int = 10**9, pids: int = 10) -> Cgroup:
    cgroup = make_cgroup([process], memory=memory, pids=pids)
    if cgroup is None:
        pytest.skip("needs a cgroup")
    return cgroup


def _started(text: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", WAIT + text], stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "status"), [(50_000_000, -9), (500_000_000, 0)])
def test_the_kernel_ends_what_takes_more_memory_than_its_cgroup_may(memory: int, status: int) -> None:
    with _started("import mmap; m = mmap.mmap(-1, 100_000_000); m.write(bytes(100_000_000)); m.close()") as process:
        cgroup = _made(process.pid, memory=memory)
        try:
            process.communicate(b"\n")
            assert (process.returncode, cgroup.exceeded_memory()) == (status, status != 0)
        finally:
            process.kill()
            cgroup.remove()


@pytest.mark.slow
def test_a_cgroup_bounds_the_number_of_processes_and_ends_those_that_are_left() -> None:
    text = "import os, time\nfor _ in range(9):\n    if os.fork() == 0: time.sleep(60); os._exit(0)\n"
    with _started(text) as process:
        cgroup = _made(process.pid, pids=4)
        try:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.close()
            assert process.wait() == 1
            left = [int(word) for word in Path(cgroup.folders[-1], "cgroup.procs").read_text().split()]
        finally:
            process.kill()
            cgroup.remove()

        assert len(left) == 3
        assert process.stderr is not None
        assert b"BlockingIOError" in process.stderr.read()
    assert [os.path.exists(folder) for folder in cgroup.folders] == [False] * len(cgroup.folders)


@pytest.mark.slow
def test_cgroups_of_dead_owners_are_swept_and_those_in_use_are_not() -> None:
    with _started("") as process:
        used = _made(process.pid)
        place = CgroupPlace(used.version, tuple(os.path.dirname(folder) for folder in used.folders))
        left = [f"{folder}/skillshelf-run-left" for folder in place.folders]
        try:
            for folder in left:
                os.mkdir(folder)
            sweep_cgroups(place)
            assert all(os.path.exists(folder) for folder in left)

            sweep_cgroups(place, idle=0)

            assert not any(os.path.exists(folder) for folder in left)
            assert all(os.path.exists(folder) for folder in used.folders)
        finally:
            process.kill()
            used.remove()


@pytest.mark.slow
def test_where_no_cgroup_can_be_had_there_is_none() -> None:
    assert make_cgroup([2**22 + 1], memory=10**9, pids=10) is None


def _prepared() -> Cgroup:
    cgroup = prepare_cgroup(memory=10**9, pids=10)
    if cgroup is None:
        pytest.skip("needs a cgroup of version 1")
    return cgroup


@pytest.mark.slow
def test_a_process_moves_itself_to_a_cgroup_that_was_prepared_for_it() -> None:
    cgroup = _prepared()
    enter = "".join(f"open({entrance!r}, 'w').write('0'); " for entrance in cgroup.entrances)
    try:
        with _started("") as stranger, _started(f"{enter}print(flush=True); sys.stdin.readline()") as process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(b"\n")
                process.stdin.flush()
                process.stdout.readline()

                assert cgroup.holds([process.pid])
                assert not cgroup.holds([process.pid, stranger.pid])
            finally:
                process.kill()
                stranger.kill()
    finally:
        cgroup.remove()
    assert not any(os.path.exists(folder) for folder in cgroup.folders)
