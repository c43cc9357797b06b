"""Run real agent hosts on the trees of our cases and compare their lists with the predictions of their profiles.

    python tests/hosts/compare.py [HOST ...] [--bin DIR ...]

A host that is not installed is skipped by name. Each question gets a fresh home folder, an environment made from
nothing and two minutes. No model is asked and no key is needed: only lists are read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.host_cases import PLACE_CASES, ROOTS, TEXT_CASES, PlaceCase, TextCase, trust
from support.host_setting_cases import SWITCH_CASES, TRUST_CASES, build_switch, build_trust
from support.trees import Machine

from skillshelf.core.environment import Environment
from skillshelf.hosts.stages import judge
from skillshelf.hosts.survey import SkillFile, take_survey

SECONDS = 120
ENVIRONMENT = {
    "NO_COLOR": "1",
    "GEMINI_API_KEY": "placeholder",
    "ANTHROPIC_API_KEY": "placeholder",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "PI_OFFLINE": "1",
}


NOTHING: Mapping[str, str] = MappingProxyType({})


class Host(NamedTuple):
    """The program of a host, its arguments, and the parser of its list: real paths of SKILL.md files, or names.

    A host that goes on after its answer is told `say`, and its answer is the line that begins with `answer`. What its
    settings turn off is not in its list, or `lists_all`.
    """

    program: str
    words: tuple[str, ...]
    read: Callable[[str], set[str]]
    say: str = ""
    by: str = "path"
    answer: str = ""
    lists_all: bool = False


def _codex(out: str) -> set[str]:
    answers = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    (answer,) = [answer["result"] for answer in answers if answer.get("id") == 2]
    paths = {skill["path"] for place in answer["data"] for skill in place["skills"] if skill["enabled"]}
    return {path for path in paths if "/skills/.system/" not in path}


def _opencode(out: str) -> set[str]:
    return {skill["location"] for skill in json.JSONDecoder().raw_decode(out, out.index("["))[0]}


def _gemini(out: str) -> set[str]:
    return set(re.findall(r"\[Enabled\].*\n(?:.*\n)*?.*Location: +(\S.*)", out))


def _copilot(out: str) -> set[str]:
    skills = json.JSONDecoder().raw_decode(out, out.index("["))[0]
    return {f"{skill['path']}/SKILL.md" for skill in skills if skill["source"] != "builtin"}


def _pi(out: str) -> set[str]:
    commands = json.loads(out.splitlines()[-1])["data"]["commands"]
    return {command["sourceInfo"]["path"] for command in commands if command["source"] == "skill"}


def _claude(out: str) -> set[str]:
    # Its list `skills` lacks those without a description, of which its model is told all the same.
    return set(json.loads(out.splitlines()[-1])["slash_commands"])


HOSTS = {
    "claude-code": Host(
        *("claude", ("-p", "hi", "--output-format", "stream-json", "--verbose"), _claude),
        by="name",
        answer='{"type":"system","subtype":"init"',
    ),
    "codex": Host(
        *("codex", ("app-server",), _codex),
        say='{"id":1,"method":"initialize","params":{"clientInfo":{"name":"compare","version":"1"}}}\n'
        '{"method":"initialized"}\n{"id":2,"method":"skills/list","params":{"cwds":[CWD],"forceReload":true}}\n',
        answer='{"id":2',
    ),
    "opencode": Host("opencode", ("debug", "skill"), _opencode, lists_all=True),
    "gemini-cli": Host("gemini", ("skills", "list"), _gemini),
    "pi": Host(
        *("pi", ("--mode", "rpc"), _pi),
        say='{"id":"2","type":"get_commands"}\n',
        answer='{"id":"2"',
    ),
    "copilot-cli": Host("copilot", ("skill", "list", "--json"), _copilot),
    "openskills": Host("openskills", ("list",), lambda out: set(re.findall(r"^  (\S+) +\(", out, re.M)), by="name"),
}


def ask(host: Host, program: str, cwd: Path, home: Path, env: Mapping[str, str] = NOTHING) -> set[str]:
    """Return what the real program lists."""
    environment = {**ENVIRONMENT, **env, "PATH": os.environ["PATH"], "HOME": str(home)}
    words = [program, *host.words]
    if host.answer:
        return host.read(_conversation(words, host, cwd, environment))
    return host.read(_output(words, cwd, environment))


def _output(words: list[str], cwd: Path, environment: dict[str, str]) -> str:
    """Return what a program prints; errors come last."""
    done = subprocess.run(
        words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
    )
    return done.stdout + done.stderr


def _conversation(words: list[str], host: Host, cwd: Path, environment: dict[str, str]) -> str:
    """Return the lines that a program answers, up to the expected answer."""
    with subprocess.Popen(
        words,
        cwd=cwd,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(host.say.replace("CWD", json.dumps(str(cwd))))
        process.stdin.flush()
        if not host.say:
            process.stdin.close()
        watch = threading.Timer(SECONDS, process.kill)
        watch.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(host.answer):
                break
        watch.cancel()
        process.kill()
    return "".join(lines)


class Tree(NamedTuple):
    """A function that writes a case to disk and returns the working directory, and its environment variables."""

    title: str
    build: Callable[[Machine], Path]
    env: Mapping[str, str] = NOTHING


def trees(host: str) -> Iterator[Tree]:
    """Yield every case that a host can be tested on."""
    for text in TEXT_CASES:
        yield Tree(f"{text.number} {text.title}", partial(_put_text, text, ROOTS.get(host, ".agents/skills")))
    for place in PLACE_CASES:
        yield Tree(f"{place.number} {place.title}", partial(_put_place, place))
    for record in (case for case in TRUST_CASES if case.host == host):
        yield Tree(f"trust: {record.title}", partial(_put_setting, partial(build_trust, record)), record.env)
    for switch in (case for case in SWITCH_CASES if case.host == host and not HOSTS[host].lists_all):
        yield Tree(f"setting: {switch.title}", partial(_put_setting, partial(build_switch, switch)))


def _put_setting(build: Callable[[Machine], Path], machine: Machine) -> Path:
    build(machine)
    return Path(machine.repo)


def _put_text(case: TextCase, root: str, machine: Machine) -> Path:
    path: Path = machine.repo / root / case.folder / case.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case.text if isinstance(case.text, bytes) else case.text.encode())
    trust(machine, machine.repo)
    return Path(machine.repo)


def _put_place(case: PlaceCase, machine: Machine) -> Path:
    case.build(machine)
    cwd = Path(machine.base) / case.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    if case.trusted:
        trust(machine, cwd)
    return cwd


def compare(name: str, program: str) -> list[str]:
    """Return the cases in which the program and our profile list different files."""
    host = HOSTS[name]
    differences = []
    own = own_skills(host, program)
    for title, build, env in trees(name):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            machine = Machine(Path(folder).resolve())
            cwd = build(machine)
            seen = take_survey(Environment(str(cwd), str(machine.home), env), [name])
            verdicts = [
                (key_of(host, skill_file), judge(skill_file, seen.states[name], seen))
                for skill_file in seen.skill_files
            ]
            if all(verdict.verdict == "unknown" for _, verdict in verdicts):
                continue
            try:
                listed = ask(host, program, cwd, machine.home, env) - own
            except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
                differences.append(f"{title}: no answer ({type(error).__name__})")
                continue
            if host.by == "path":
                listed = {os.path.realpath(path) for path in listed if path.startswith(str(machine.base))}
        predicted = {key for key, verdict in verdicts if verdict.visible or verdict.verdict == "hidden-from-model"}
        unknown = {key for key, verdict in verdicts if verdict.visible is None}
        if listed - unknown != predicted - unknown:
            differences.append(f"{title}: listed {sorted(listed)}, predicted {sorted(predicted)}")
    return differences


def own_skills(host: Host, program: str) -> set[str]:
    """Return the skills that come with a host."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(Path(folder).resolve())
        return ask(host, program, machine.repo, machine.home)


def key_of(host: Host, skill_file: SkillFile) -> str:
    """Return the path or name by which a host lists a skill."""
    return skill_file.real_path if host.by == "path" else skill_file.folder


def main() -> int:
    """Compare every installed host."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="*", choices=[*HOSTS, []], metavar="HOST")
    parser.add_argument("--bin", action="append", default=[], help="a folder with programs of hosts")
    given = parser.parse_args()
    path = os.environ["PATH"] = os.pathsep.join([*given.bin, os.environ["PATH"]])
    status = 0
    for name in given.hosts or HOSTS:
        program = shutil.which(HOSTS[name].program, path=path)
        if program is None:
            print(f"{name}: skipped, {HOSTS[name].program} is not installed")
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            version = _output([program, "--version"], Path(home), {"PATH": path, "HOME": home}).strip().split("\n")[0]
        differences = compare(name, program)
        cases = sum(1 for _ in trees(name))
        print(f"{name} {version}: {cases - len(differences)} of {cases} cases as predicted", flush=True)
        for difference in differences:
            print(f"  {difference}")
        status |= bool(differences)
    return status


if __name__ == "__main__":
    sys.exit(main())
