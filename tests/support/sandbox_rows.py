"""Attacks of a script on its sandbox, as rows of the table of `support.attack_rows`.

They are tried as the user who runs the tests, and as an ordinary user where that is root.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skillshelf.sandbox.run import Run, RunLimits, run_script
from support.attack_rows import Row, Tally, new_machine
from support.trees import SOURCE, Machine, write_skill

__all__ = ["SANDBOX_ROWS", "main"]

MEBIBYTE = 1024 * 1024

PRELUDE = """
import ctypes, errno, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
held = {}


def refused(name, act):
    try:
        held[name] = bool(act() is False)
    except Exception as error:
        held[name] = True


def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(part) for part in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result
"""

WALLS = (
    PRELUDE
    + """
port, host_file, abstract, socket_path = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]


def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(address)


refused("TCP listener", lambda: connects(socket.AF_INET, ("127.0.0.1", port)))
refused("abstract socket", lambda: connects(socket.AF_UNIX, "\\0" + abstract))
refused("socket in /tmp", lambda: connects(socket.AF_UNIX, socket_path))
refused("host file", lambda: open(host_file).read())
refused("host file by link", lambda: (os.symlink(host_file, "x"), open("x").read()))
# Of a home folder only the way to an interpreter in it is there.
way = set(sys.prefix.split("/") + sys.base_prefix.split("/") + os.path.realpath(sys.executable).split("/"))
for home in ("/root", "/home"):
    refused("home folder " + home, lambda home=home: bool(set(os.listdir(home)) - way))
refused("accounts", lambda: open("/etc/shadow").read())
refused("environment", lambda: os.environ["SKILLSHELF_ATTACK_SECRET"])
refused("environment of the first process", lambda: "SECRET" in open("/proc/1/environ").read() or False)
refused("ptrace of the first process", lambda: call(101 if os.uname().machine == "x86_64" else 117, 16, 1, 0, 0))
refused("signals to others", lambda: len([n for n in os.listdir("/proc") if n.isdecimal()]) > 12)
for path in ("/usr/x", "/etc/x", "/bin/x", "/x", "/dev/x", "/proc/sys/kernel/hostname", os.environ["SKILL_DIR"] + "/x"):
    refused("write " + path, lambda path=path: open(path, "w").write("x"))
refused("chmod of the skill", lambda: os.chmod(os.environ["SKILL_DIR"], 0o777))
refused("terminal", lambda: os.open("/dev/tty", os.O_RDWR))
refused("type into a terminal", lambda: __import__("fcntl").ioctl(2, 0x5412, b"x"))
held["no new privileges"] = "NoNewPrivs:\\t1" in open("/proc/self/status").read()
held["no capabilities"] = "CapEff:\\t0000000000000000" in open("/proc/self/status").read()
held["a filter"] = "Seccomp:\\t2" in open("/proc/self/status").read()
refused("/sys", lambda: os.listdir("/sys/kernel"))
refused("mount", lambda: held.get("x") if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 else False)
refused("chroot", lambda: os.chroot("/tmp"))
refused("device", lambda: os.mknod("d", 0o060600, os.makedev(8, 0)))
refused("set user", lambda: os.setuid(0))
refused("host name", lambda: socket.sethostname("x"))
refused("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
refused("packet socket", lambda: socket.socket(17, socket.SOCK_RAW))
refused("netfilter", lambda: socket.socket(16, socket.SOCK_RAW, 12))
print(json.dumps(held))
"""
)

KEYRING = (
    PRELUDE
    + """
numbers = {"x86_64": (250, 248), "aarch64": (219, 217)}[os.uname().machine]
SEARCH, READ, SESSION = 10, 11, -3


def read():
    key = libc.syscall(numbers[0], SEARCH, SESSION, b"user", b"skillshelf-attack", 0)
    if key < 0:
        raise OSError(ctypes.get_errno(), "not found")


refused("search", read)
refused("add", lambda: call(numbers[1], 0, 0, 0, 0, SESSION))
print(json.dumps(held))
"""
)

NAMESPACES = (
    PRELUDE
    + """
FLAGS = {"user": 0x10000000, "net": 0x40000000, "mount": 0x20000, "pid": 0x20000000, "ipc": 0x8000000}
CLONE = 56 if os.uname().machine == "x86_64" else 220
for name, flag in FLAGS.items():
    refused("unshare " + name, lambda flag=flag: None if libc.unshare(flag) == 0 else False)
    refused("clone " + name, lambda flag=flag: call(CLONE, flag | 17, 0, 0, 0, 0))
refused("unshare all", lambda: None if libc.unshare(0x10000000 | 0x40000000 | 0x20000) == 0 else False)
refused("setns", lambda: None if libc.setns(os.open("/proc/self/ns/net", 0), 0) == 0 else False)
print(json.dumps(held))
"""
)

MEMORY = {
    "SysV segments": PRELUDE
    + """
libc.shmat.restype = ctypes.c_void_p
for _ in range(36):
    segment = libc.shmget(0, 50 << 20, 0o1600)
    assert segment >= 0, os.strerror(ctypes.get_errno())
    place = libc.shmat(segment, None, 0)
    ctypes.memset(place, 1, 50 << 20)
    libc.shmdt(ctypes.c_void_p(place))
""",
    "memory files in flight": PRELUDE
    + """
ends = []
for _ in range(36):
    file = os.memfd_create("x")
    for _ in range(50):
        os.write(file, b"x" * (1 << 20))
    one, other = socket.socketpair()
    socket.send_fds(one, [b"."], [file])
    os.close(file)
    ends += [one, other]
""",
    "deleted mapped files": PRELUDE
    + """
import mmap, tempfile
kept = []
for number in range(60):
    with tempfile.TemporaryFile(dir=["/tmp", "/dev/shm", "."][number % 3]) as file:
        file.truncate(30 << 20)
        kept.append(mmap.mmap(file.fileno(), 30 << 20))
    for place in range(0, 30 << 20, 4096):
        kept[-1][place] = 1
""",
    "shared mappings of one page": PRELUDE
    + """
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
import time
for _ in range(18):
    size = 100 << 20
    place = libc.mmap(None, size, 3, 0x21, -1, 0)
    assert place not in (None, 2**64 - 1)
    ctypes.memset(place, 1, size)
    libc.munmap(place + 4096, size - 4096)
time.sleep(1)
""",
    "many processes": PRELUDE
    + """
import time
children = []
for _ in range(36):
    child = os.fork()
    if not child:
        kept = bytearray(50 << 20)
        kept[::4096] = b"x" * len(kept[::4096])
        time.sleep(3)
        os._exit(0)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
assert not any(statuses)
""",
}
"""Scripts that take 1.8 GiB; each must be refused, or ended."""

LOADS = {
    "fork bomb": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
    "memory": "kept = []\nwhile True:\n    kept.append(bytearray(10 << 20))\n",
    "flood": "import sys\nwhile True:\n    sys.stdout.write('x' * 65536)\n",
    "daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(600)\n"
        "    os._exit(0)\nprint('done')\n"
    ),
}


def _run(machine: Machine, text: str, *args: str, limits: RunLimits | None = None) -> Run:
    folder = write_skill(machine.home / ".agents/skills", "attacks").parent
    (folder / "scripts").mkdir(exist_ok=True)
    (folder / "scripts" / "it.py").write_text(text)
    return run_script(str(folder), "it.py", args, digest=None, limits=limits or RunLimits(seconds=60))


def _said(run: Run) -> dict[str, bool]:
    """Return what a script said of each wall; a script that did not end well lost them all."""
    try:
        found: dict[str, bool] = json.loads(run.stdout)
    except ValueError:
        return {f"the script failed: {run.stderr[-300:]!r}": False}
    return found


def walls(tally: Tally, scale: int) -> None:
    """A script reaches nothing of the machine."""
    with (
        new_machine() as machine,
        closing(socket.socket()) as listener,
        closing(socket.socket(socket.AF_UNIX)) as abstract,
    ):
        secret = machine.base / "secret"
        secret.write_text("secret")
        os.environ["SKILLSHELF_ATTACK_SECRET"] = "SECRET"
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        name = f"skillshelf-attack-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        path = f"/tmp/{name}"
        with closing(socket.socket(socket.AF_UNIX)) as named:
            named.bind(path)
            named.listen()
            try:
                run = _run(machine, WALLS, str(listener.getsockname()[1]), str(secret), name, path)
            finally:
                os.unlink(path)
                del os.environ["SKILLSHELF_ATTACK_SECRET"]
        for wall, holds in _said(run).items():
            tally.held(wall, holds)


def keyring(tally: Tally, scale: int) -> None:
    """A key in the session keyring of our process stays out of reach."""
    code = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "join, add = {'x86_64': (250, 248), 'aarch64': (219, 217)}[os.uname().machine]\n"
        "libc.syscall(join, 1, None)\n"
        "key = libc.syscall(add, b'user', b'skillshelf-attack', b'KEYRING-SECRET', 14, -3)\n"
        "assert key > 0, ctypes.get_errno()\n"
    )
    # In a thread of its own a process cannot change its keyring, so this one gets the key for good.
    exec(code, {})
    with new_machine() as machine:
        for wall, holds in _said(_run(machine, KEYRING)).items():
            tally.held(wall, holds)


def namespaces(tally: Tally, scale: int) -> None:
    """A script makes no namespace of its own."""
    with new_machine() as machine:
        for wall, holds in _said(_run(machine, NAMESPACES)).items():
            tally.held(wall, holds)


def memory(tally: Tally, scale: int) -> None:
    """1.8 GiB by ways that no process shows are refused or ended."""
    for name, text in MEMORY.items():
        with new_machine() as machine:
            run = _run(machine, text)
            tally.held(f"{name}: exit {run.exit_code}, {run.reason}", run.exit_code != 0)


def loads(tally: Tally, scale: int) -> None:
    """Scripts that never end are ended, and nothing is left of them."""
    limits = RunLimits(seconds=6, memory_bytes=200 * MEBIBYTE)
    for name, text in LOADS.items():
        with new_machine() as machine:
            run = _run(machine, text, limits=limits)
            tally.held(name, run.exit_code != 0 or name == "daemon")


SANDBOX_ROWS: tuple[Row, ...] = (
    Row("sandbox: walls", walls, slow=True),
    Row("sandbox: fork bomb, memory, output flood, daemon", loads, slow=True),
    Row("sandbox: memory that no process shows", memory, slow=True),
    Row("sandbox: kernel keyring", keyring, slow=True),
    Row("sandbox: namespaces of its own", namespaces, slow=True),
)


def as_ordinary_user(row: int) -> dict[str, Any] | None:
    """Return the tally of a row that an ordinary user's process tried; None where root has none to start."""
    if os.geteuid() != 0 or (python := public_python()) is None:
        return None
    with TemporaryDirectory(prefix="attack-code-") as folder:
        publish(Path(folder))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [python, "-P", "-m", "support.sandbox_rows", str(row)],
            cwd="/",
            env=environment,
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            timeout=300,
        )
    with suppress(ValueError):
        tally: dict[str, Any] = json.loads(done.stdout)
        return tally
    return {"tried": 1, "lost": [f"no answer: {done.stderr[-500:]!r}"]}


def public_python() -> str | None:
    """Return a Python of this version that every user may start, or None."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (os.path.realpath(sys.executable), shutil.which(name, path="/usr/local/bin:/usr/bin")):
        folders = [*Path(path).parents] if path else []
        if path and all(os.stat(folder).st_mode & 0o001 for folder in folders):
            return path
    return None


def publish(folder: Path) -> None:
    """Copy our code and what it needs to a folder that every user may read."""
    os.chmod(folder, 0o755)
    shutil.copytree(
        os.path.join(SOURCE, "skillshelf"), folder / "skillshelf", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(Path(__file__).parent, folder / "support", ignore=shutil.ignore_patterns("__pycache__"))
    for package in ("ryaml", "tantivy", "tomlkit"):
        found = find_spec(package)
        if found is not None and found.submodule_search_locations:
            shutil.copytree(found.submodule_search_locations[0], folder / package)
    for path in folder.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)


def main(row: int) -> None:
    """Try a row and print its tally."""
    tally = Tally()
    # Threads would share a keyring; a row runs in the main one.
    assert threading.current_thread() is threading.main_thread()
    SANDBOX_ROWS[row].attack(tally, 1)
    print(json.dumps({"tried": tally.tried, "lost": tally.lost}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
