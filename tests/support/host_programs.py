"""The released programs of hosts: their packages, and how each is asked what it lists and what its model is told.

Every question gets an environment made from nothing, no network but loopback, and a limited time; whatever a program
leaves behind is ended by the home folder that only it was given.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from support.prompt_server import QUESTION, PromptServer

__all__ = ["NODE", "PROGRAMS", "Answer", "Entry", "Program", "Question", "end_on_signal", "find_program", "install"]

SECONDS = 90
NODE = "node@22.23.3"
"""Some programs need a newer Node than the one that is installed; this package carries it."""

BUN = "bun@1.4.4"


class Entry(NamedTuple):
    """One skill in the list of a host; a program may tell less about it."""

    name: str
    path: str | None = None
    description: str | None = None
    hidden: bool | None = None


class Answer(NamedTuple):
    """What a host lists, and all that it tells its model; None if it cannot be asked for that or gave no answer."""

    entries: list[Entry] | None
    prompt: str | None = None
    failed: str = ""


class Question(NamedTuple):
    """A program, the place where it is asked, and the server that stands for its model."""

    program: str
    bins: Path
    cwd: Path
    home: Path
    env: Mapping[str, str]
    model: PromptServer

    def run(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        say: str = "",
        until: Callable[[str], bool] = lambda _: False,
    ) -> str:
        """Return what the program prints, first on standard output; it is ended after the expected output."""
        given = {"HOME": str(self.home), "PATH": path_of(self.bins), "NO_COLOR": "1", **(env or {}), **self.env}
        with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
            with subprocess.Popen(
                words,
                cwd=self.cwd,
                env=given,
                stdin=subprocess.PIPE if say else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            ) as process:
                if process.stdin is not None:
                    process.stdin.write(say.encode())
                    process.stdin.flush()
                try:
                    _wait(process, out.fileno(), until)
                finally:
                    _end(process, self.home)
            return _read(out.fileno()) + _read(err.fileno())

    def prompt(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """Return what the model is told when the program is asked something."""
        self.model.requests.clear()
        self.run(*words, env=env, until=lambda _: self.model.prompt() is not None)
        return self.told()

    def told(self) -> str:
        """Return what the model was told; raise a LookupError if no request came to it."""
        prompt = self.model.prompt()
        if prompt is None:
            raise LookupError("no request came to the model")
        return prompt


def end_on_signal() -> None:
    """Let a signal that ends this process also end the program that is being asked."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def path_of(bins: Path) -> str:
    """The PATH of a program: the Node of the folder before that of the machine."""
    return os.pathsep.join([str(bins / "node/node_modules/node/bin"), "/usr/local/bin", "/usr/bin", "/bin"])


def _wait(process: subprocess.Popen[bytes], out: int, until: Callable[[str], bool]) -> None:
    end = time.monotonic() + SECONDS
    while process.poll() is None:
        if until(_read(out)):
            return
        if time.monotonic() > end:
            raise TimeoutError(f"no answer in {SECONDS} s")
        time.sleep(0.05)


def _read(descriptor: int) -> str:
    return os.pread(descriptor, 50_000_000, 0).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes], home: Path) -> None:
    """End a program with its group, and whatever it left behind: that has the home folder which only it was given."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    mark = f"HOME={home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue


# How each host is asked ---------------------------------------------------------------------------


def _json_list(out: str) -> Any:
    """Return the first JSON list in the output that is one of tables."""
    return json.JSONDecoder().raw_decode(out, re.search(r"\[\s*(?=[\]{])", out).start())[0]  # type: ignore[union-attr]


def _claude(question: Question) -> Answer:
    words = (question.program, "-p", QUESTION, "--output-format", "stream-json", "--verbose")
    env = {
        "ANTHROPIC_API_KEY": "placeholder",
        "ANTHROPIC_BASE_URL": question.model.url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    question.model.requests.clear()
    out = question.run(*words, env=env, until=lambda out: '"init"' in out and question.model.prompt() is not None)
    start = next(line for line in out.splitlines() if line.startswith('{"type":"system","subtype":"init"'))
    # Its list `skills` lacks those without a description, its commands those that people cannot call.
    told, prompt = json.loads(start), question.told()
    catalog = prompt.partition("for use with the Skill tool:")[2].lstrip("\n").partition("\n\n")[0]
    listed = {*told["slash_commands"], *re.findall(r"(?m)^- ([^:\n]+?)(?: \([^()\n]*\))?(?::|$)", catalog)}
    return Answer([Entry(name) for name in listed], prompt)


def _codex(question: Question) -> Answer:
    say = (
        '{"id":1,"method":"initialize","params":{"clientInfo":{"name":"compare","version":"1"}}}\n'
        '{"method":"initialized"}\n'
        f'{{"id":2,"method":"skills/list","params":{{"cwds":[{json.dumps(str(question.cwd))}],"forceReload":true}}}}\n'
    )
    out = question.run(question.program, "app-server", say=say, until=lambda out: '{"id":2' in out and out[-1] == "\n")
    (answer,) = [json.loads(line)["result"] for line in out.splitlines() if line.startswith('{"id":2')]
    skills = [skill for place in answer["data"] for skill in place["skills"] if skill["enabled"]]
    entries = [Entry(one["name"], one["path"], one["description"]) for one in skills]
    provider = f'model_providers.stub={{name="stub",base_url="{question.model.url}/v1",wire_api="responses"}}'
    words = ("exec", "--skip-git-repo-check", "-c", "model_provider=stub", "-c", provider, QUESTION)
    return Answer(
        [entry for entry in entries if "/.system/" not in str(entry.path)],
        question.prompt(question.program, *words, env={"OPENAI_API_KEY": "placeholder"}),
    )


def _opencode_like(prefix: str) -> Callable[[Question], Answer]:
    """Return how opencode and its fork are asked."""

    def ask(question: Question) -> Answer:
        quiet = {f"{prefix}_DISABLE_AUTOUPDATE": "1", f"{prefix}_DISABLE_MODELS_FETCH": "1"}
        skills = _json_list(question.run(question.program, "debug", "skill", env=quiet))
        entries = [Entry(one["name"], one["location"], one.get("description")) for one in skills]
        options = {"baseURL": f"{question.model.url}/v1", "apiKey": "x"}
        stub = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {"name": "m"}}}
        config = json.dumps({"provider": {"stub": stub}, "model": "stub/m", "small_model": "stub/m"})
        env = {**quiet, f"{prefix}_CONFIG_CONTENT": config}
        return Answer(entries, question.prompt(question.program, "run", QUESTION, env=env))

    return ask


def _gemini(question: Question) -> Answer:
    env = {"GEMINI_API_KEY": "placeholder", "GOOGLE_GEMINI_BASE_URL": question.model.url}
    out = question.run(question.program, "skills", "list", env=env)
    found = re.findall(
        r"(?m)^(.*?) \[(Enabled|Disabled)\].*\n +Description: *(.*(?:\n(?! +Location:).*)*)\n +Location: +(\S.*)", out
    )
    entries = [Entry(name, path, says) for name, state, says, path in found if state == "Enabled"]
    home = Path(question.env.get("GEMINI_CLI_HOME", str(question.home)))
    settings = home / ".gemini/settings.json"
    try:
        value = json.loads(settings.read_text()) if settings.exists() else {}
    except ValueError:
        return Answer(entries)
    value.setdefault("security", {}).setdefault("auth", {})["selectedType"] = "gemini-api-key"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(value))
    try:
        return Answer(entries, question.prompt(question.program, "-p", QUESTION, env=env))
    except LookupError:
        # With some records of trust it does not start.
        return Answer(entries)


def _goose(question: Question) -> Answer:
    out = question.run(question.program, "skills", "list")
    rows = [[cell.strip() for cell in line.split(" | ")] for line in out.splitlines() if line.count(" | ") >= 4]
    # A long description is shortened there; the prompt has it whole.
    entries = [Entry(row[0], f"{row[-1]}/SKILL.md") for row in rows[1:] if not row[-1].startswith("builtin:")]
    env = {
        "OPENAI_API_KEY": "placeholder",
        "OPENAI_HOST": question.model.url,
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "gpt-4o",
        "GOOSE_DISABLE_KEYRING": "1",
    }
    return Answer(entries, question.prompt(question.program, "run", "--no-session", "-t", QUESTION, env=env))


def _pi(question: Question) -> Answer:
    folder = Path(question.env.get("PI_CODING_AGENT_DIR", f"{question.home}/.pi/agent"))
    folder.mkdir(parents=True, exist_ok=True)
    provider = {
        "baseUrl": f"{question.model.url}/v1",
        "api": "openai-completions",
        "apiKey": "x",
        "models": [{"id": "m"}],
    }
    (folder / "models.json").write_text(json.dumps({"providers": {"stub": provider}}))
    words = ("node", question.program, "--mode", "rpc", "--provider", "stub", "--model", "m")
    say = (
        json.dumps({"id": "2", "type": "get_commands"})
        + "\n"
        + json.dumps({"type": "prompt", "message": QUESTION})
        + "\n"
    )
    question.model.requests.clear()
    out = question.run(
        *words,
        env={"PI_OFFLINE": "1"},
        say=say,
        until=lambda out: '{"id":"2"' in out and question.model.prompt() is not None,
    )
    (line,) = [line for line in out.splitlines() if line.startswith('{"id":"2"')]
    commands = [command for command in json.loads(line)["data"]["commands"] if command["source"] == "skill"]
    entries = [
        Entry(one["name"].removeprefix("skill:"), one["sourceInfo"]["path"], one.get("description")) for one in commands
    ]
    return Answer(entries, question.told())


_OH_MY_PI = """
import { pathToFileURL } from "node:url";
const at = (path) => import(pathToFileURL(`${process.argv[2]}/src/${path}`).href);
const { Settings } = await at("config/settings.ts");
const { loadSkills } = await at("extensibility/skills.ts");
await at("discovery/index.ts");
const cwd = process.cwd();
const settings = await Settings.init({ cwd });
const disabledExtensions = settings.get("disabledExtensions") ?? [];
const { skills } = await loadSkills({ ...settings.getGroup("skills"), disabledExtensions, cwd });
console.log("SKILLS " + JSON.stringify(skills.map(
  (one) => ({ name: one.name, description: one.description, path: one.filePath, hidden: one.hide === true }))));
process.exit(0);
"""
"""Loads skills as the program does when a session starts; it has no command that lists them."""


def _oh_my_pi(question: Question) -> Answer:
    script = question.home.parent / "list-skills.ts"
    script.write_text(_OH_MY_PI)
    bun = question.bins / "bun/node_modules/.bin/bun"
    out = question.run(str(bun), "run", str(script), question.program)
    line = next(line for line in out.splitlines() if line.startswith("SKILLS "))
    return Answer([Entry(**one) for one in json.loads(line[7:])])


_CODELIA = """
import { pathToFileURL } from "node:url";
const { SkillsResolver } = await import(pathToFileURL(process.argv[2]).href);
const config = { enabled: true, initial: { maxEntries: 200, maxBytes: 32 * 1024 } };
const resolver = await SkillsResolver.create({ workingDir: process.cwd(), config });
const { skills } = await resolver.getCatalog();
console.log("SKILLS " + JSON.stringify({ skills, prompt: await resolver.buildInitialContext() }));
"""
"""Loads skills as the program does when a session starts, with its own limits; it is not in the npm registry."""


def _codelia(question: Question) -> Answer:
    script = question.home.parent / "list-skills.ts"
    script.write_text(_CODELIA)
    bun = question.bins / "bun/node_modules/.bin/bun"
    out = question.run(str(bun), "run", str(script), question.program)
    found = json.loads(next(line for line in out.splitlines() if line.startswith("SKILLS "))[7:])
    entries = [Entry(one["name"], one["path"], one["description"]) for one in found["skills"]]
    return Answer(entries, found["prompt"] or "")


def _copilot(question: Question) -> Answer:
    quiet = {"COPILOT_AUTO_UPDATE": "false", "COPILOT_OFFLINE": "true"}
    skills = _json_list(question.run(question.program, "skill", "list", "--json", env=quiet))
    entries = [
        Entry(one["name"], f"{one['path']}/SKILL.md", one.get("description"))
        for one in skills
        if one["source"] != "builtin" and one.get("enabled", True)
    ]
    env = {
        **quiet,
        "COPILOT_PROVIDER_BASE_URL": f"{question.model.url}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_MODEL": "m",
    }
    return Answer(entries, question.prompt(question.program, "-p", QUESTION, env=env))


def _openskills(question: Question) -> Answer:
    out = question.run(question.program, "list")
    return Answer([Entry(name, None, says) for name, says in re.findall(r"(?m)^  (\S.*?) +\(\w+\)\n    (.*)$", out)])


def _amp(question: Question) -> Answer:
    env = {"AMP_API_KEY": "sgamp_user_placeholder", "AMP_URL": question.model.url}
    out = question.run(question.program, "skill", "list", env=env).partition("Skipped skills with errors")[0]
    found = re.findall(r"(?m)^  • (.*)\n    (.*)\n(?:    .*\n)*?    file://(\S.*)$", out)
    return Answer([Entry(name, f"{path}/SKILL.md") for name, _, path in found])


def _grok(question: Question) -> Answer:
    out = question.run(question.program, "inspect", "--json")
    skills = json.JSONDecoder().raw_decode(out, out.index("{"))[0]["skills"]
    return Answer([Entry(one["name"], one["source"].get("path"), one.get("description")) for one in skills])


def _qoder(question: Question) -> Answer:
    out = question.run(question.program, "skills", "list")
    found = re.findall(r"(?m)^(\S.*?) \[(\w+)\].*\n  Description: ?(.*)\n(?:  .*\n)*?  Location: +(\S.*)", out)
    return Answer([Entry(name, path, says) for name, state, says, path in found if state == "Enabled"])


def _qwen(question: Question) -> Answer:
    env = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{question.model.url}/v1", "OPENAI_MODEL": "m"}
    return Answer(None, question.prompt(question.program, "--auth-type", "openai", "-p", QUESTION, env=env))


def _kimi(question: Question) -> Answer:
    env = {
        "KIMI_MODEL_NAME": "m",
        "KIMI_MODEL_API_KEY": "x",
        "KIMI_MODEL_PROVIDER_TYPE": "openai",
        "KIMI_MODEL_BASE_URL": f"{question.model.url}/v1",
        "KIMI_CODE_NO_AUTO_UPDATE": "1",
    }
    return Answer(None, question.prompt(question.program, "-p", QUESTION, env=env))


def _cline(question: Question) -> Answer:
    question.run(question.program, "auth", "openai", "-k", "x", "-m", "m", "-b", f"{question.model.url}/v1")
    prompt = question.prompt(question.program, "--json", "-P", "openai", QUESTION)
    found = re.search(r"Available skills: (.*?)\.(?:\n|$)", prompt)
    names = found[1].split(", ") if found else []
    return Answer([Entry(name) for name in names if name])


# Programs -----------------------------------------------------------------------------------------


class Program(NamedTuple):
    """A package of the npm registry, the program in it, and how that is asked.

    `lists_all`: its list also has what its settings turn off. `is_source`: there is no package, but a checkout of this
    commit.
    """

    package: str
    entry: str
    ask: Callable[[Question], Answer]
    lists_all: bool = False
    is_unpacked: bool = False
    is_source: bool = False

    @property
    def version(self) -> str:
        """The version that is compared."""
        return self.package.rpartition("@")[2]


def _bin(name: str) -> str:
    return f"node_modules/.bin/{name}"


PROGRAMS: Mapping[str, Program] = {
    "claude-code": Program("@anthropic-ai/claude-code@2.1.325", _bin("claude"), _claude),
    "codex": Program("@openai/codex@0.166.0", _bin("codex"), _codex),
    "opencode": Program("opencode-ai@1.18.33", _bin("opencode"), _opencode_like("OPENCODE"), lists_all=True),
    "gemini-cli": Program("@google/gemini-cli@0.61.0", _bin("gemini"), _gemini),
    "goose": Program(
        "@aaif/goose-binary-linux-x64@1.52.0", "node_modules/@aaif/goose-binary-linux-x64/bin/goose", _goose
    ),
    # Some packages on which it says it depends are not published: its bundle needs none of them.
    "pi": Program("@earendil-works/pi-coding-agent@1.5.0", "package/dist/bundle/cli.js", _pi, is_unpacked=True),
    "oh-my-pi": Program("@oh-my-pi/pi-coding-agent@18.2.3", "node_modules/@oh-my-pi/pi-coding-agent", _oh_my_pi),
    "codelia": Program("codelia@3fe5dc9", "packages/runtime/src/skills/resolver.ts", _codelia, is_source=True),
    "copilot-cli": Program("@github/copilot@1.0.102", _bin("copilot"), _copilot),
    "openskills": Program("openskills@1.5.0", _bin("openskills"), _openskills),
    "amp": Program("@sourcegraph/amp@0.0.1790142911-g7618fb", _bin("amp"), _amp),
    "kilo": Program("@kilocode/cli@7.7.7", _bin("kilo"), _opencode_like("KILO"), lists_all=True),
    "grok": Program("@xai-official/grok@1.0.41", _bin("grok"), _grok),
    "qoder": Program("@qoder-ai/qodercli@1.1.52", _bin("qodercli"), _qoder),
    "qwen-code": Program("@qwen-code/qwen-code@0.24.4", _bin("qwen"), _qwen),
    "kimi-code": Program("@moonshot-ai/kimi-code@2.1.0", _bin("kimi"), _kimi),
    "cline": Program("cline@3.0.65", _bin("cline"), _cline),
}


def find_program(host: str, bins: Path) -> str | None:
    """Return the path of a host's program below a folder of packages; None if it is not there."""
    path = bins / host / PROGRAMS[host].entry
    return str(path) if path.exists() else None


def install(hosts: Sequence[str], bins: Path) -> Iterator[str]:
    """Install what is missing from the npm registry, each package in a folder of its own; yield what failed."""
    helpers = {"node": NODE, "bun": BUN} if "oh-my-pi" in hosts else {"node": NODE}
    for folder, package in helpers.items():
        if not (bins / folder / "node_modules").exists() and not _npm_install(package, bins / folder):
            yield f"{folder}: {package} could not be installed"
    for host in hosts:
        program = PROGRAMS[host]
        if find_program(host, bins) is None and not program.is_source:
            get = _npm_unpack if program.is_unpacked else _npm_install
            if not get(program.package, bins / host):
                yield f"{host}: {program.package} could not be installed"


def _npm_install(package: str, folder: Path) -> bool:
    # Without a version, npm takes an older one that fits the Node it runs on.
    words = ["npm", "install", "--prefix", str(folder), "--no-save", "--no-audit", "--no-fund", package]
    return _npm(words, folder, folder.parent)


def _npm_unpack(package: str, folder: Path) -> bool:
    if not _npm(["npm", "pack", "--silent", package], folder, folder.parent):
        return False
    (archive,) = folder.glob("*.tgz")
    shutil.unpack_archive(archive, folder)
    return True


def _npm(words: list[str], folder: Path, bins: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "PATH": os.pathsep.join([path_of(bins), os.environ.get("PATH", "")])}
    try:
        done = subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
