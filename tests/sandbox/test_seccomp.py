"""The seccomp filter: which system calls a script may not make, on which machine, and which programs still run."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from ctypes.util import find_library
from errno import EAFNOSUPPORT, ENOSYS, EPERM
from pathlib import Path
from typing import get_args

import pytest
import seccomp as compiler
from support.bpf import AARCH64, ALLOW, ARM, I386, KILL, X86_64, answer_of
from support.needs import REQUIRED, needs, needs_sandbox
from support.script_runs import run_text, said, skill_with
from support.trees import Machine

from skillshelf import ConfigurationError, PermissionDenied
from skillshelf.core.values import Wall
from skillshelf.sandbox.run import Grants, Run, RunLimits, run_script, sandbox_problem
from skillshelf.sandbox.seccomp import MACHINES, filter_path, filter_problem
from skillshelf.sandbox.walls import WALLS, check_required

REFUSED: Mapping[str, tuple[int, int | None, int]] = {
    "clone3": (435, 435, ENOSYS),
    "io_uring_setup": (425, 425, ENOSYS),
    "io_uring_enter": (426, 426, ENOSYS),
    "io_uring_register": (427, 427, ENOSYS),
    "memfd_create": (319, 279, ENOSYS),
    "memfd_secret": (447, 447, ENOSYS),
    "add_key": (248, 217, EPERM),
    "keyctl": (250, 219, EPERM),
    "request_key": (249, 218, EPERM),
    "unshare": (272, 97, EPERM),
    "setns": (308, 268, EPERM),
    "chroot": (161, 51, EPERM),
    "pivot_root": (155, 41, EPERM),
    "mount": (165, 40, EPERM),
    "umount2": (166, 39, EPERM),
    "mount_setattr": (442, 442, EPERM),
    "move_mount": (429, 429, EPERM),
    "open_tree": (428, 428, EPERM),
    "fsopen": (430, 430, EPERM),
    "fsconfig": (431, 431, EPERM),
    "fsmount": (432, 432, EPERM),
    "fspick": (433, 433, EPERM),
    "name_to_handle_at": (303, 264, EPERM),
    "open_by_handle_at": (304, 265, EPERM),
    "ptrace": (101, 117, EPERM),
    "process_vm_readv": (310, 270, EPERM),
    "process_vm_writev": (311, 271, EPERM),
    "pidfd_getfd": (438, 438, EPERM),
    "kcmp": (312, 272, EPERM),
    "bpf": (321, 280, EPERM),
    "perf_event_open": (298, 241, EPERM),
    "userfaultfd": (323, 282, EPERM),
    "fanotify_init": (300, 262, EPERM),
    "lookup_dcookie": (212, 18, EPERM),
    "modify_ldt": (154, None, EPERM),
    "init_module": (175, 105, EPERM),
    "finit_module": (313, 273, EPERM),
    "delete_module": (176, 106, EPERM),
    "create_module": (174, None, EPERM),
    "query_module": (178, None, EPERM),
    "get_kernel_syms": (177, None, EPERM),
    "kexec_load": (246, 104, EPERM),
    "kexec_file_load": (320, 294, EPERM),
    "shmget": (29, 194, EPERM),
    "shmat": (30, 196, EPERM),
    "shmctl": (31, 195, EPERM),
    "shmdt": (67, 197, EPERM),
    "msgget": (68, 186, EPERM),
    "msgsnd": (69, 189, EPERM),
    "msgrcv": (70, 188, EPERM),
    "msgctl": (71, 187, EPERM),
    "semget": (64, 190, EPERM),
    "semop": (65, 193, EPERM),
    "semtimedop": (220, 192, EPERM),
    "semctl": (66, 191, EPERM),
    "mbind": (237, 235, EPERM),
    "get_mempolicy": (239, 236, EPERM),
    "set_mempolicy": (238, 237, EPERM),
    "set_mempolicy_home_node": (450, 450, EPERM),
    "migrate_pages": (256, 238, EPERM),
    "move_pages": (279, 239, EPERM),
    "acct": (163, 89, EPERM),
    "quotactl": (179, 60, EPERM),
    "quotactl_fd": (443, 443, EPERM),
    "reboot": (169, 142, EPERM),
    "sethostname": (170, 161, EPERM),
    "setdomainname": (171, 162, EPERM),
    "swapon": (167, 224, EPERM),
    "swapoff": (168, 225, EPERM),
    "syslog": (103, 116, EPERM),
    "settimeofday": (164, 170, EPERM),
    "clock_settime": (227, 112, EPERM),
    "clock_adjtime": (305, 266, EPERM),
    "adjtimex": (159, 171, EPERM),
    "iopl": (172, None, EPERM),
    "ioperm": (173, None, EPERM),
    "vhangup": (153, 58, EPERM),
    "_sysctl": (156, None, EPERM),
    "nfsservctl": (180, 42, EPERM),
    "sysfs": (139, None, EPERM),
    "uselib": (134, None, EPERM),
}
"""Each refused call: its number on x86_64 and on aarch64, and the error."""

ARCHS = {"x86_64": X86_64, "aarch64": AARCH64}
OTHER_ARCHS = {"x86_64": (I386, AARCH64, 0), "aarch64": (ARM, X86_64, 0)}
NUMBERS = {
    "x86_64": {"clone": 56, "ioctl": 16, "personality": 135, "socket": 41, "socketpair": 53},
    "aarch64": {"clone": 220, "ioctl": 29, "personality": 92, "socket": 198, "socketpair": 199},
}
NAMESPACES = (0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000)
THREAD = 0x3D0F00
"""The flags by which the C library starts a thread."""

HIGH = 1 << 32
"""A bit that the kernel does not look at in an argument of 32 bits."""

X32 = 0x4000_0000

CONDITIONS: list[tuple[str, tuple[int, ...], int | str]] = [
    *(("clone", (flag | 17,), EPERM) for flag in NAMESPACES),
    *(("clone", (HIGH | flag | THREAD,), EPERM) for flag in NAMESPACES),
    ("clone", (17,), ALLOW),
    ("clone", (THREAD,), ALLOW),
    ("clone", (0x4111,), ALLOW),
    *(("ioctl", (0, high | code), EPERM) for code in (0x5412, 0x541C) for high in (0, HIGH)),
    *(("ioctl", (1, code), ALLOW) for code in (0x5401, 0x5413, 0x541B, 0x5421)),
    ("personality", (0,), ALLOW),
    ("personality", (0xFFFF_FFFF,), ALLOW),
    *(("personality", (value,), EPERM) for value in (8, 0x4_0000, 0x40_0000, 0x8004_0000, 0xFFFF_FFFE)),
    *(("socket", (family, 1, 0), ALLOW) for family in (1, 2, 10, 16)),
    *(("socket", (16, 3, protocol), EPERM) for protocol in (1, 4, 9, 12, 15, 16, 21)),
    *(("socket", (family, 1, 0), EAFNOSUPPORT) for family in range(64) if family not in (1, 2, 10, 16)),
    *(("socket", (HIGH | family, 1, 0), EAFNOSUPPORT) for family in (3, 16, 17, 38, 40)),
    ("socketpair", (1, 1, 0), ALLOW),
    *(("socketpair", (family, 1, 0), EAFNOSUPPORT) for family in (2, 16, 30, 40, HIGH | 1)),
]


def compiled(machine: str) -> bytes:
    return Path(filter_path(machine)).read_bytes()


# The compiled filters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_is_allowed_but_those_of_the_list_and_newer_ones(machine: str) -> None:
    program, arch = compiled(machine), ARCHS[machine]
    column = MACHINES.index(machine)
    refused = {row[column]: row[2] for row in REFUSED.values() if row[column] is not None}
    # With arguments that are all zero, a socket is of no family.
    refused |= {NUMBERS[machine][name]: EAFNOSUPPORT for name in ("socket", "socketpair")}

    answers = {number: answer_of(program, arch, number) for number in range(1000)}

    newer: dict[int | None, int] = dict.fromkeys(range(451, 1000), ENOSYS)
    assert {number: answer for number, answer in answers.items() if answer != ALLOW} == {**refused, **newer}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "answer"), CONDITIONS)
def test_some_calls_are_refused_for_their_arguments(
    machine: str, name: str, arguments: tuple[int, ...], answer: int | str
) -> None:
    assert answer_of(compiled(machine), ARCHS[machine], NUMBERS[machine][name], arguments) == answer


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_of_another_machine_type_is_ended_at_its_first_call(machine: str) -> None:
    for arch in OTHER_ARCHS[machine]:
        assert {answer_of(compiled(machine), arch, number) for number in range(500)} == {KILL}


def test_no_call_of_the_x32_kind_exists() -> None:
    assert {answer_of(compiled("x86_64"), X86_64, X32 | number) for number in range(600)} == {ENOSYS}
    assert answer_of(compiled("x86_64"), X86_64, -1) == ENOSYS


@pytest.mark.slow
@needs("pyseccomp")
@pytest.mark.parametrize("machine", MACHINES)
def test_the_filters_are_those_that_the_tool_compiles(machine: str) -> None:
    if "pyseccomp" not in REQUIRED and find_library("seccomp") is None:
        pytest.skip("libseccomp is not installed")
    made = compiler.compiled(machine)

    if compiler.libseccomp_version() == compiler.LIBSECCOMP:
        assert made == compiled(machine)
    # Another version may order the instructions differently; the answers are the same.
    calls: list[tuple[int, tuple[int, ...]]] = [(number, ()) for number in range(1000)]
    calls += [(NUMBERS[machine][name], arguments) for name, arguments, _ in CONDITIONS]
    for number, arguments in calls:
        expected = answer_of(compiled(machine), ARCHS[machine], number, arguments)
        assert answer_of(made, ARCHS[machine], number, arguments) == expected


@pytest.mark.parametrize(
    ("platform", "machine", "bits", "problem"),
    [
        ("darwin", "arm64", 64, "seccomp needs Linux, and this is darwin"),
        ("linux", "riscv64", 64, "there is no filter for programs of 64 bits on riscv64"),
        ("linux", "x86_64", 32, "there is no filter for programs of 32 bits on x86_64"),
        ("linux", "aarch64", 32, "there is no filter for programs of 32 bits on aarch64"),
    ],
)
def test_a_machine_without_a_filter_is_told(platform: str, machine: str, bits: int, problem: str) -> None:
    assert filter_problem(platform, machine, bits) == problem


# Parts of the sandbox ---------------------------------------------------------------------------------


def test_every_part_has_a_purpose_and_a_remedy() -> None:
    assert tuple(WALLS) == get_args(Wall)


def test_a_missing_part_that_the_policy_requires_is_named_with_its_purpose_and_remedy() -> None:
    check_required(["cgroup"], ["seccomp"])

    with pytest.raises(PermissionDenied) as caught:
        check_required(["keyring", "cgroup"], ["cgroup", "seccomp", "keyring"])

    assert str(caught.value) == (
        "the policy requires a part of the sandbox that is missing: "
        + "; ".join(f"{name} ({WALLS[name].does}; to get it: {WALLS[name].remedy})" for name in ("cgroup", "keyring"))
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("permissions.run.seccomp = 'no'", "`permissions.run.seccomp` must be one of on, off"),
        ("permissions.run.seccomp = false", "`permissions.run.seccomp` must be one of on, off"),
        ("permissions.run.require = ['magic']", "`permissions.run.require[0]` must be one of bubblewrap, "),
        ("permissions.run.require = 'seccomp'", "`permissions.run.require` must be a list"),
    ],
)
def test_a_misspelt_part_or_switch_is_an_error(machine: Machine, text: str, message: str) -> None:
    machine.configure(text)

    with pytest.raises(ConfigurationError) as caught:
        machine.shelf().session()

    assert message in str(caught.value)


@pytest.mark.parametrize(("trust", "kept"), [("all", ("off", ("cgroup", "keyring"))), ("ask", ("on", ("cgroup",)))])
def test_the_filter_is_switched_off_and_parts_are_required_by_trusted_files_only(
    machine: Machine, trust: str, kept: tuple[str, tuple[str, ...]]
) -> None:
    machine.configure("permissions.run.require = ['cgroup']")
    (machine.repo / "skillshelf.toml").write_text("[permissions.run]\nseccomp = 'off'\nrequire = ['keyring']\n")

    policy = machine.shelf(trust=trust).session().policy

    assert (policy.run_seccomp, policy.run_require) == kept


# From inside ------------------------------------------------------------------------------------------

PROBE = r"""
import ctypes, json, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_ulong(word) for word in words])
    if result == 0 and number == clone:
        os._exit(0)
    return ctypes.get_errno() if result == -1 else 0
asked = json.loads(sys.argv[1])
clone = asked["clone"]
answers = {name: call(number, *words) for name, (number, words) in asked["calls"].items()}
if asked["int80"]:
    # mov eax, 20; int 0x80; ret: getpid of i386.
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    child = os.fork()
    if child == 0:
        ctypes.CFUNCTYPE(ctypes.c_int)(address)()
        os._exit(0)
    answers["int80"] = os.waitpid(child, 0)[1]
print(json.dumps(answers))
"""
MACHINE = platform.machine()
ALL_ONES = (1 << 64) - 1
needs_filter = pytest.mark.skipif(filter_problem() is not None, reason=f"needs seccomp: {filter_problem()}")


def probe() -> tuple[str, dict[str, int]]:
    """What a script is to try, and what it must be told."""
    column, numbers = MACHINES.index(MACHINE), NUMBERS[MACHINE]
    calls: dict[str, tuple[int, tuple[int, ...]]] = {}
    expected = {}
    for name, row in REFUSED.items():
        number = row[column]
        if number is not None:
            # Arguments with which the kernel itself would do nothing.
            calls[name], expected[name] = (number, (ALL_ONES,) * 6), row[2]
    for name, arguments, answer in CONDITIONS:
        if isinstance(answer, int):
            label = f"{name} {arguments}"
            calls[label], expected[label] = (numbers[name], arguments), answer
    calls["new"], expected["new"] = (467, (ALL_ONES,) * 6), ENOSYS
    if MACHINE == "x86_64":
        calls["x32"], expected["x32"] = (X32 | 39, ()), ENOSYS
        expected["int80"] = signal.SIGSYS
    # It would end terminals if it were not refused.
    del calls["vhangup"], expected["vhangup"]
    return json.dumps({"calls": calls, "clone": numbers["clone"], "int80": MACHINE == "x86_64"}), expected


@pytest.fixture(params=["sandbox", "none"])
def grants(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grants:
    """The two ways to run: in the sandbox, or without one."""
    if request.param == "none":
        (tmp_path / "programs").mkdir()
        for name in ("python3", "sh", "node", "git", "java"):
            if found := shutil.which(name):
                (tmp_path / "programs" / name).symlink_to(found)
        monkeypatch.setenv("PATH", str(tmp_path / "programs"))
        return Grants(unsandboxed=True)
    if "bwrap" not in REQUIRED and (why := sandbox_problem()):
        pytest.skip(f"needs bwrap: {why}")
    return Grants()


SLOW = RunLimits(seconds=60)


@pytest.mark.slow
@needs_filter
@pytest.mark.req("K-31")
def test_a_script_is_refused_each_call_of_the_list(machine: Machine, grants: Grants) -> None:
    asked, expected = probe()

    run = run_text(machine, PROBE, asked, grants=grants, limits=SLOW)

    assert json.loads(said(run)) == expected
    assert not {"seccomp", "userns"} & {*run.missing}


AS_SOMEBODY = """
import json, sys
from skillshelf.sandbox.run import Grants, run_script
run = run_script(sys.argv[1], "it.py", sys.argv[2:], digest=None, grants=Grants())
print(json.dumps([run.exit_code, run.stdout.decode(), run.stderr.decode()]))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.slow
@needs_filter
@needs_sandbox
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_a_script_of_an_ordinary_user_is_refused_each_call_of_the_list(open_folder: Path) -> None:
    asked, expected = probe()
    scripts = open_folder / "runs" / "scripts"
    scripts.mkdir(parents=True)
    (open_folder / "runs" / "SKILL.md").write_text("---\nname: runs\ndescription: Runs.\n---\n")
    (scripts / "it.py").write_text(PROBE)
    for path in (open_folder / "runs", *(open_folder / "runs").rglob("*")):
        path.chmod(0o755)
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    package = Path(filter_path("")).parents[2]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(package)}

    def as_nobody(python: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python, "-c", *words]
        return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=60)

    pythons = [sys.executable, "/usr/bin/python3"]
    # It must find its modules, ours, and itself.
    trial = "import subprocess, sys, skillshelf.sandbox.run\nsubprocess.run([sys.executable, '-c', ''], check=True)"
    able = [python for python in pythons if as_nobody(python, trial).returncode == 0]
    if not able:
        pytest.skip("another user can run no Python with this checkout")
    done = as_nobody(able[0], AS_SOMEBODY, str(open_folder / "runs"), asked)

    assert done.stderr == ""
    code, output, errors = json.loads(done.stdout)
    assert (code, errors) == (0, "")
    assert json.loads(output) == expected


@pytest.mark.slow
@needs_filter
def test_with_the_filter_off_a_script_makes_every_call_and_the_run_says_so(machine: Machine, grants: Grants) -> None:
    text = "import os\nos.close(os.memfd_create('x'))\nprint(open('/proc/self/status').read())"

    free = run_text(machine, text, grants=grants._replace(all_calls=True))
    filtered = run_text(machine, "print(open('/proc/self/status').read())", grants=grants)

    assert "Seccomp:\t0\n" in said(free)
    assert "Seccomp:\t2\n" in said(filtered)
    assert "NoNewPrivs:\t1\n" in said(filtered)
    assert "seccomp" in free.missing
    assert "seccomp" not in filtered.missing


@pytest.mark.slow
def test_a_script_does_not_start_without_a_part_that_is_required(reachable_machine: Machine, grants: Grants) -> None:
    left = reachable_machine.home / "left"
    reachable_machine.home.chmod(0o777)
    off = grants._replace(all_calls=True, write=(str(reachable_machine.home),))

    with pytest.raises(PermissionDenied, match=r"requires a part of the sandbox that is missing: seccomp \("):
        run_text(reachable_machine, f"open({str(left)!r}, 'w')", grants=off, require=("seccomp",))

    assert not left.exists()


# Programs ---------------------------------------------------------------------------------------------

PYTHON = r"""
import asyncio, concurrent.futures, multiprocessing, os, socket, sqlite3, ssl, subprocess, sys, tempfile, threading
from multiprocessing import shared_memory
def double(number):
    return 2 * number
async def ask():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
    child = await asyncio.create_subprocess_exec("/bin/echo", "child", stdout=subprocess.PIPE)
    return await reader.read(), (await child.communicate())[0]
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(double, [1, 2]))
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        print(list(threads.map(double, [3, 4])))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as spawned:
        print(spawned.submit(double, 5).result())
    memory = shared_memory.SharedMemory(create=True, size=4096)
    memory.close(); memory.unlink()
    print(asyncio.run(ask()), subprocess.run(["true"], close_fds=False).returncode)
    with sqlite3.connect("it.db") as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table t (x)")
    print(len(socket.if_nameindex()) > 0, os.getrandom(4) != b"", tempfile.TemporaryFile().write(b"x"))
    a, b = socket.socketpair()
    print(ssl.create_default_context().verify_mode, sys.stdin.read() == "")
"""
NODE = """
const { Worker, isMainThread, parentPort } = require("worker_threads");
const { execFileSync, spawn } = require("child_process");
const fs = require("fs"), net = require("net"), os = require("os");
if (!isMainThread) parentPort.postMessage(42);
else new Worker(__filename).on("message", async (number) => {
  fs.writeFileSync("a.txt", "text");
  console.log(number, execFileSync("/bin/echo", ["child"]) + (await fs.promises.readFile("a.txt", "utf8")));
  console.log(Object.keys(os.networkInterfaces()).length >= 0, os.cpus().length > 0);
  const server = net.createServer((socket) => socket.end("over a socket")).listen(0, "127.0.0.1", () =>
    net.connect(server.address().port, "127.0.0.1").on("data", (data) => { console.log(`${data}`); server.close(); }));
});
"""
GIT = """
set -e
git init -q one && cd one
git config user.email a@example.org && git config user.name A
echo text > a.txt && git add . && git commit -q -m first
git gc -q && cd .. && git clone -q one two && git -C two log --format=%s
git clone -q "file://$PWD/one" three && git -C three diff HEAD --stat && cat three/a.txt
"""
JAVA = """
import java.nio.file.*;
import java.util.concurrent.*;
public class Hello {
  public static void main(String[] words) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(4);
    System.out.println(threads.submit(() -> 42).get());
    threads.shutdown();
    Files.writeString(Path.of("a.txt"), "text");
    new ProcessBuilder("/bin/cat", "a.txt").inheritIO().start().waitFor();
    System.out.println(new java.security.SecureRandom().nextInt() == 0);
  }
}
"""
GO = """
package main

import ("fmt"; "net"; "os"; "os/exec"; "sync")

func main() {
	var group sync.WaitGroup
	for n := 0; n < 50; n++ { group.Add(1); go func() { defer group.Done(); os.ReadFile("/proc/self/stat") }() }
	group.Wait()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { panic(err) }
	go func() { c, _ := listener.Accept(); fmt.Fprint(c, "over a socket"); c.Close() }()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil { panic(err) }
	text := make([]byte, 13)
	connection.Read(text)
	out, err := exec.Command("/bin/echo", "child").Output()
	interfaces, _ := net.Interfaces()
	fmt.Println(string(text), string(out), err, len(interfaces) >= 0)
}
"""


def program(machine: Machine, name: str, scripts: Mapping[str, str | bytes], grants: Grants) -> Run:
    folder = skill_with(machine, scripts)
    return run_script(folder, name, digest=None, limits=SLOW, grants=grants)


def needs_program(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"needs {name}: it is not installed")


@pytest.mark.slow
def test_python_programs_run_under_the_filter(machine: Machine, grants: Grants) -> None:
    assert said(program(machine, "it.py", {"it.py": PYTHON}, grants)).splitlines() == [
        "[2, 4]",
        "[6, 8]",
        "10",
        "(b'', b'child\\n') 0",
        "True True 1",
        "2 True",
    ]


@pytest.mark.slow
@needs_program("node")
def test_node_programs_run_under_the_filter(machine: Machine, grants: Grants) -> None:
    lines = said(program(machine, "it.js", {"it.js": NODE}, grants)).splitlines()

    assert lines == ["42 child", "text", "true true", "over a socket"]


@pytest.mark.slow
@needs_program("git")
def test_git_runs_under_the_filter(machine: Machine, grants: Grants) -> None:
    assert said(program(machine, "it.sh", {"it.sh": GIT}, grants)) == "first\ntext\n"


@pytest.mark.slow
@needs_program("javac")
def test_java_programs_run_under_the_filter(machine: Machine, grants: Grants) -> None:
    scripts = {"it.sh": 'exec java -Xmx128m "$SKILL_DIR/scripts/Hello.java"', "Hello.java": JAVA}

    assert said(program(machine, "it.sh", scripts, grants)) == "42\ntextfalse\n"


@pytest.mark.slow
@needs_program("go")
def test_go_programs_run_under_the_filter(machine: Machine, grants: Grants, tmp_path: Path) -> None:
    (tmp_path / "it.go").write_text(GO)
    go = {**os.environ, "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "", "CGO_ENABLED": "0", "PATH": "/usr/bin:/bin"}
    subprocess.run(["/usr/bin/go", "build", "-o", "it", "it.go"], cwd=tmp_path, env=go, check=True, timeout=120)
    scripts: dict[str, str | bytes] = {
        "it.sh": 'cp "$SKILL_DIR/scripts/it" go && chmod +x go && ./go',
        "it": (tmp_path / "it").read_bytes(),
    }

    assert said(program(machine, "it.sh", scripts, grants)) == "over a socket child\n <nil> true\n"
