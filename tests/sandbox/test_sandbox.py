"""The sandbox: what a script cannot see, reach or change, each tried by a script in the real sandbox."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.needs import needs_sandbox
from support.script_runs import run_text, said, skill_with
from support.trees import SOURCE, Machine

from skillshelf import ConfigurationError
from skillshelf.sandbox.run import Grants, find_script, run_script

pytestmark = needs_sandbox

REACH = """
import os, sys
for path in sys.argv[1:]:
    print(path, os.path.lexists(path))
"""


# Files ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_script_sees_nothing_of_home_accounts_or_the_machine(machine: Machine) -> None:
    (machine.home / "secret.txt").write_text("secret")
    hidden = [str(machine.home), str(machine.home / "secret.txt"), str(machine.repo), "/etc/shadow", "/etc/gshadow"]
    hidden += ["/etc/ssh", "/etc/ssl/private", "/var", "/run", "/sys", "/home/someone", "/dev/sda", "/dev/mem"]

    run = run_text(machine, REACH, *hidden)

    assert said(run).splitlines() == [f"{path} False" for path in hidden]


@pytest.mark.slow
def test_of_the_real_home_a_script_sees_the_way_to_its_interpreter_and_no_more(machine: Machine) -> None:
    home = os.path.expanduser("~")
    look = f"import os\nif os.path.isdir({home!r}):\n    print(*os.listdir({home!r}))"
    folder = skill_with(machine, {"it.py": look})
    program = find_script(folder, "it.py").interpreter.program
    ways = {os.path.relpath(path, home).split("/")[0] for path in (program, os.path.realpath(program))}

    seen = set(said(run_script(folder, "it.py", digest=None)).split())

    assert seen <= ways


WRITE = """
import sys
for path in sys.argv[1:]:
    try:
        open(path, "w").close()
        print(path, "written")
    except OSError as error:
        print(path, "refused")
"""


@pytest.mark.slow
def test_a_script_writes_only_in_folders_of_its_own(machine: Machine) -> None:
    folder = skill_with(machine, {"it.py": WRITE})
    before = sorted(str(path) for path in Path(folder).rglob("*"))
    refused = ["/x", "/etc/x", "/usr/x", "/usr/bin/x", "/dev/x", "/skillshelf/x", "/skillshelf/skill/x"]
    refused += ["/skillshelf/skill/scripts/it.py", "/skillshelf/skill/SKILL.md", "/etc/passwd", str(machine.home / "x")]
    refused += ["/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
    own = ["x", "/skillshelf/work/y", "/tmp/skillshelf-test-x", "/dev/shm/skillshelf-test-x"]

    run = run_script(folder, "it.py", [*refused, *own], digest=None)

    assert said(run).splitlines() == [f"{path} refused" for path in refused] + [f"{path} written" for path in own]
    assert run.files == ("x", "y")
    assert sorted(str(path) for path in Path(folder).rglob("*")) == before
    assert not os.path.exists("/tmp/skillshelf-test-x")
    assert not os.path.exists("/dev/shm/skillshelf-test-x")


@pytest.mark.slow
def test_a_script_finds_the_other_files_of_its_skill(machine: Machine) -> None:
    text = "import helper, os\nprint(helper.WORD, open(os.environ['SKILL_DIR'] + '/SKILL.md').readline().strip())"
    folder = skill_with(machine, {"it.py": text, "helper.py": "WORD = 'helped'", "deep/more.txt": ""})

    assert said(run_script(folder, "it.py", digest=None)) == "helped ---\n"


@pytest.mark.slow
def test_links_of_a_skill_lead_nowhere_in_its_copy(machine: Machine) -> None:
    (machine.home / "secret.txt").write_text("secret")
    folder = skill_with(machine, {"it.py": REACH})
    os.symlink(machine.home / "secret.txt", f"{folder}/scripts/link.txt")
    os.symlink(machine.home, f"{folder}/home")

    run = run_script(folder, "it.py", ["/skillshelf/skill/scripts/link.txt", "/skillshelf/skill/home"], digest=None)

    assert "True" not in said(run)


@pytest.mark.slow
def test_ordinary_programs_work_in_the_sandbox(machine: Machine) -> None:
    text = (
        "import multiprocessing, os, pwd, ssl, subprocess, tempfile\n"
        "ssl.create_default_context()\n"
        "multiprocessing.Lock()\n"
        "tempfile.mkstemp()\n"
        "print(pwd.getpwuid(os.getuid()).pw_name, [entry.pw_name for entry in pwd.getpwall()])\n"
        "print(subprocess.run(['sh', '-c', 'echo $((6 * 7))'], capture_output=True, text=True).stdout)\n"
    )

    assert said(run_text(machine, text)) == "script ['root', 'script']\n42\n\n"


@pytest.mark.slow
def test_of_an_interpreter_in_the_home_folder_only_its_own_prefix_is_seen(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = machine.home / "project" / "env"
    # Readable by all, as root's scripts run as another user.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, umask=0o022)
    for secret in (machine.home / "secret", machine.home / "project" / "secret", venv / "secret"):
        secret.write_text("secret")
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")
    look = "import os, sys\nprint(sys.prefix)\nfor path in sys.argv[1:]: print(sorted(os.listdir(path)))"

    lines = said(run_text(machine, look, str(machine.home), str(machine.home / "project"), str(venv))).splitlines()

    assert lines[:3] == [str(venv), "['project']", "['env']"]
    assert "secret" not in lines[3]


# Network ----------------------------------------------------------------------------------------------

CONNECT = """
import socket, sys
address = "\\0" + sys.argv[2] if sys.argv[1] == "abstract" else ("127.0.0.1", int(sys.argv[2]))
with socket.socket(socket.AF_UNIX if sys.argv[1] == "abstract" else socket.AF_INET) as connection:
    connection.settimeout(5)
    try:
        connection.connect(address)
        print("connected")
    except OSError:
        print("refused")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("network", "answer"), [(False, "refused\n"), (True, "connected\n")])
@pytest.mark.parametrize("kind", ["loopback", "abstract"])
def test_sockets_of_the_machine_are_reached_only_by_a_grant(
    machine: Machine, kind: str, network: bool, answer: str
) -> None:
    name = f"skillshelf-test-{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX if kind == "abstract" else socket.AF_INET) as listener:
        listener.bind(f"\0{name}" if kind == "abstract" else ("127.0.0.1", 0))
        listener.listen()
        address = name if kind == "abstract" else str(listener.getsockname()[1])

        run = run_text(machine, CONNECT, kind, address, grants=Grants(network=network))

    assert said(run) == answer


# Processes --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_script_gets_a_few_variables_and_none_of_ours(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_TOKEN", "LD_PRELOAD_NOT", "PYTHONSTARTUP", "BASH_ENV"):
        monkeypatch.setenv(name, "ours")
    text = "import json, os\nprint(json.dumps(dict(os.environ)))"

    seen = json.loads(said(run_text(machine, text)))

    assert "/usr/bin" in seen.pop("PATH").split(":")
    assert seen == {
        "HOME": "/skillshelf/work",
        "LANG": "C.UTF-8",
        "PWD": "/skillshelf/work",
        "SKILL_DIR": "/skillshelf/skill",
        "TMPDIR": "/tmp",
    }


ATTACK = """
import ctypes, os, sys
victim = int(sys.argv[1])
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[-1] < 50)
print(os.path.exists(f"/proc/{victim}"))
for attack in (lambda: os.kill(victim, 9), lambda: os.killpg(victim, 9), lambda: os.kill(-1, 9)):
    try:
        attack()
        print("done")
    except OSError as error:
        print(type(error).__name__)
print(ctypes.CDLL(None).ptrace(16, victim, 0, 0))
"""


@pytest.mark.slow
def test_a_script_neither_sees_nor_touches_other_processes(machine: Machine) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as victim:
        # Process ids start again in the sandbox; a small one of ours could be one of the script's.
        assert victim.pid > 50
        try:
            run = run_text(machine, ATTACK, str(victim.pid))
            alive = victim.poll() is None
        finally:
            victim.kill()

    assert alive
    assert said(run).split() == ["True", "False", *["ProcessLookupError"] * 3, "-1"]


@pytest.mark.slow
def test_a_script_has_no_privileges_and_can_get_none(machine: Machine) -> None:
    text = (
        "import os\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(os.getuid() >= 1000 <= os.getgid())\n"
        "print(*(status[key].strip() for key in ('CapEff', 'CapBnd', 'NoNewPrivs')))\n"
        "print(os.listdir('/proc/self/fd')[:3], os.path.realpath('/proc/self/fd/0'), os.uname().nodename)\n"
    )

    assert said(run_text(machine, text)).splitlines() == [
        "True",
        "0000000000000000 0000000000000000 1",
        "['0', '1', '2'] /dev/null sandbox",
    ]


@pytest.mark.slow
def test_a_script_cannot_change_the_devices_it_may_use(machine: Machine) -> None:
    text = (
        "import os\n"
        "for name in ('null', 'zero', 'full', 'random', 'urandom', 'tty'):\n"
        "    try:\n"
        "        os.chmod(f'/dev/{name}', 0o666)\n"
        "        print(name, 'changed')\n"
        "    except OSError: pass\n"
        "print(open('/dev/null', 'w').write('x'), len(open('/dev/urandom', 'rb').read(8)))\n"
    )

    assert said(run_text(machine, text)) == "1 8\n"


@pytest.mark.slow
def test_a_script_inherits_nothing_that_we_have_open(reachable_machine: Machine) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    text = "import os\nown = os.open('.', os.O_RDONLY)\nprint(sorted(map(int, os.listdir(f'/proc/self/fd'))), own)"

    reachable_machine.repo.chmod(0o755)

    run = run_text(reachable_machine, text, grants=Grants(read=(str(reachable_machine.repo),)))
    os.close(reader)
    os.close(writer)

    assert said(run) == "[0, 1, 2, 3, 4] 3\n"


@pytest.mark.slow
def test_the_command_line_of_the_sandbox_is_hidden_from_the_script(machine: Machine) -> None:
    run = run_text(machine, "print(open('/proc/1/cmdline').read())")

    assert str(machine.base) not in said(run)
    assert "skillshelf-run" not in said(run)


IN_A_TERMINAL = """
import os, sys
from skillshelf.sandbox.run import run_script
os.close(os.open(os.ttyname(0), os.O_RDWR))
open("/dev/tty").close()
run = run_script(sys.argv[1], "it.py", digest=None)
print("said:", run.stdout.decode(), run.stderr.decode())
"""

INJECT = """
import fcntl, os, termios
for path in ("/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/1/fd/0"):
    try:
        terminal = os.open(path, os.O_RDWR)
        fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
        print("injected")
    except OSError:
        print("refused")
"""


@pytest.mark.slow
def test_a_script_cannot_type_into_the_terminal_it_was_started_from(machine: Machine) -> None:
    folder = skill_with(machine, {"it.py": INJECT})
    child, terminal = pty.fork()
    if child == 0:
        words = [sys.executable, "-c", IN_A_TERMINAL, folder]
        os.execve(sys.executable, words, {"PYTHONPATH": SOURCE, "PATH": os.environ["PATH"]})

    shown = b""
    while part := read_terminal(terminal):
        shown += part
    os.close(terminal)
    _, status = os.waitpid(child, 0)

    assert (status, shown.split()) == (0, [b"said:", *[b"refused"] * 4])


def read_terminal(terminal: int) -> bytes:
    """Return what a terminal shows next; nothing when its last program is gone."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


# Grants -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_granted_folders_can_be_read_or_written_as_the_grant_says(reachable_machine: Machine) -> None:
    for name in ("read", "write", "neither"):
        (reachable_machine.base / name).mkdir()
        (reachable_machine.base / name / "there.txt").write_text("")
        # Root's scripts run as another user, to whom a grant gives no rights of root's.
        (reachable_machine.base / name).chmod(0o777)
    text = WRITE + "import os\nfor path in sys.argv[1:]: print(os.path.exists(os.path.dirname(path) + '/there.txt'))"
    paths = [str(reachable_machine.base / name / "new.txt") for name in ("read", "write", "neither")]
    grants = Grants(read=(str(reachable_machine.base / "read"),), write=(str(reachable_machine.base / "write"),))

    run = run_text(reachable_machine, text, *paths, grants=grants)

    words = [line.rpartition(" ")[2] for line in said(run).splitlines()]
    assert words == ["refused", "written", "refused", "True", "True", "False"]
    assert [os.path.exists(path) for path in paths] == [False, True, False]


@pytest.mark.slow
def test_the_whole_disk_is_granted_only_by_its_name_and_without_what_is_alive_in_it(machine: Machine) -> None:
    look = 'for path in "$@"; do [ -e "$path" ] && echo "$path"; done; touch /etc/x || echo refused; ls -d /proc/[0-9]*'

    run = run_text(machine, look, "/var", "/etc/group", "/sys/kernel", name="it.sh", grants=Grants(read=("/",)))

    words = run.stdout.decode().split()
    assert words[:4] == ["/var", "/etc/group", "refused", "/proc/1"]
    assert len(words) < 10


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("relative", "whole path"),
        ("", "whole path"),
        ("~", "whole path"),
        ("/tmp/../root", "whole path"),
        ("/tmp/", "whole path"),
        ("/tmp\0", "whole path"),
        ("/proc", "its own /proc"),
        ("/proc/1", "its own /proc"),
        ("/sys/fs", "its own /sys"),
        ("/dev", "its own /dev"),
        ("/skillshelf", "belongs to the sandbox"),
        ("/nonexistent/folder", "no such folder"),
        ("/etc/passwd", "no such folder"),
        ("LINK", "is or contains a link"),
        ("LINK/inside", "is or contains a link"),
    ],
)
@pytest.mark.parametrize("way", ["read", "write"])
def test_what_cannot_be_granted_is_said_before_anything_runs(
    reachable_machine: Machine, way: str, path: str, words: str
) -> None:
    (reachable_machine.home / "inside").mkdir()
    os.symlink(reachable_machine.home, reachable_machine.base / "link")
    path = path.replace("LINK", str(reachable_machine.base / "link"))

    grants = Grants(read=(path,)) if way == "read" else Grants(write=(path,))
    with pytest.raises(ConfigurationError, match=words):
        run_text(reachable_machine, "print('ran')", grants=grants)


def test_system_folders_cannot_be_granted_for_writing(machine: Machine) -> None:
    with pytest.raises(ConfigurationError, match="belongs to the sandbox"):
        run_text(machine, "", grants=Grants(write=("/usr",)))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose scripts run as another user")
@pytest.mark.parametrize(
    ("way", "mode", "words"),
    [
        ("read", 0o700, r"who may not read there \(its mode is 0700\): `chmod o\+rx` it"),
        ("read", 0o744, r"its mode is 0744"),
        ("write", 0o755, r"who may not write there \(its mode is 0755\): `chmod o\+rwx` it"),
    ],
)
def test_a_granted_folder_that_roots_scripts_cannot_use_is_named_before_anything_runs(
    machine: Machine, way: str, mode: int, words: str
) -> None:
    folder = machine.base / "granted"
    folder.mkdir()
    folder.chmod(mode)
    grants = Grants(read=(str(folder),)) if way == "read" else Grants(write=(str(folder),))

    with pytest.raises(ConfigurationError, match=f"{folder} is granted, but .*{words}"):
        run_text(machine, "print('ran')", grants=grants)
