"""Play a new user's first ten minutes with real agents, and print what was typed and what each agent listed.

`python tests/long/ten_minutes.py [--bin DIR]` installs Claude Code and Codex from the npm registry into DIR (kept for
the next run if it is named) and adds two skills for both: one from a git server, one from a site that `publish` made,
both on loopback. Then the sources change: a second machine refuses them with `install --frozen`, the first reviews and
takes them with `update`, the second installs what is locked now, and the first rolls back. After each step both agents
are asked which skills they have and what their model is told of them. No key is needed: a server on loopback stands for
the model.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.git_server import GitRepository, serving_git
from support.host_programs import PROGRAMS, Question, end_on_signal, find_program, install
from support.loopback import serving
from support.prompt_server import PromptServer, prompt_server

REPOSITORY = Path(__file__).resolve().parents[2]
AGENTS = ("claude-code", "codex")
SKILLS = ("pdf", "review")
SENTENCES = {
    ("pdf", 1): "Reads PDF files page by page. Use when somebody sends a PDF.",
    ("pdf", 2): "Reads PDF files and their forms. Use when somebody sends a PDF.",
    ("review", 1): "Reviews a change before it is merged. Use when somebody asks for a review.",
    ("review", 2): "Reviews a change and its tests. Use when somebody asks for a review.",
}


def text_of(name: str, version: int) -> str:
    """Return the text of a skill in its first or second version."""
    return f"---\nname: {name}\ndescription: {SENTENCES[name, version]}\n---\n# {name}\n\nVersion {version}.\n"


class Site(SimpleHTTPRequestHandler):
    """Serve files without a word about each request."""

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Computer(NamedTuple):
    """A home folder and a project of one person, and the programs of the agents."""

    title: str
    home: Path
    project: Path
    bins: Path

    def run(self, *words: str, expect: int = 0) -> str:
        """Run the command, print what a person sees, and fail if the exit status is another one."""
        env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY / "src"),
            "COLUMNS": "110",
        }
        command = [sys.executable, "-P", "-m", "skillshelf", *words]
        done = subprocess.run(
            command, cwd=self.project, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        base = str(self.home.parent)
        shown = (done.stdout + done.stderr).replace(base, "")
        print(
            f"\n[{self.title}] $ skillshelf {' '.join(words).replace(base, '')}\n{shown}exit {done.returncode}",
            flush=True,
        )
        assert done.returncode == expect, f"expected exit {expect}"
        return done.stdout

    def ask(self, model: PromptServer, versions: dict[str, int]) -> None:
        """Ask each agent what it has, print it, and fail if that is not what is installed."""
        for agent in AGENTS:
            path = find_program(agent, self.bins)
            assert path, f"{agent} is not installed"
            answer = PROGRAMS[agent].ask(Question(path, self.bins, self.project, self.home, {}, model))
            listed = sorted(entry.name for entry in answer.entries or () if entry.name in SKILLS)
            told = {key for key, sentence in SENTENCES.items() if sentence in (answer.prompt or "")}
            print(f"\n[{self.title}] {agent} {PROGRAMS[agent].version} lists {listed}", flush=True)
            for name, version in sorted(told):
                print(f"    its model is told: {name}: {SENTENCES[name, version]}", flush=True)
            assert (listed, told) == (sorted(versions), set(versions.items())), answer


def computer(base: Path, title: str, bins: Path) -> Computer:
    """Return a machine with an empty home folder and an empty project."""
    home, project = base / title / "home", base / title / "shop"
    for folder in (home, project / ".git"):
        folder.mkdir(parents=True)
    return Computer(title, home, project, bins)


def publish(author: Computer, version: int, repository: GitRepository, public: Path) -> None:
    """Let both authors publish a version of their skill."""
    repository.commit({"skills/pdf/SKILL.md": text_of("pdf", version).encode()})
    folder = author.project / "review"
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(text_of("review", version))
    author.run("publish", "./review", "--site", str(public), "--yes")


def clone(mine: Computer, other: Computer) -> None:
    """Bring the two committed files to another machine; the copies of skills are not committed here."""
    for name in ("skillshelf.toml", "skillshelf.lock"):
        shutil.copyfile(mine.project / name, other.project / name)


def play(base: Path, bins: Path, model: PromptServer) -> None:
    """Play the whole story; the first step that goes another way ends it."""
    author, mine, other = (computer(base, title, bins) for title in ("author", "laptop", "ci"))
    server, public = base / "server", base / "public"
    server.mkdir()
    public.mkdir()
    repository = GitRepository(server / "skills.git")
    publish(author, 1, repository, public)
    with serving_git(server) as git, serving(partial(Site, directory=str(public))) as site:  # type: ignore[arg-type]
        hosts = ("--host", ",".join(AGENTS), "--allow-http", "--yes")
        mine.ask(model, {})
        mine.run("add", f"git+{git}/skills.git", "--skill", "pdf", *hosts)
        mine.run("add", site, "--skill", "review", *hosts)
        mine.run("verify")
        mine.ask(model, {"pdf": 1, "review": 1})
        publish(author, 2, repository, public)
        clone(mine, other)
        other.run("trust", ".")
        other.run("install", "--frozen", "--allow-http", "--yes", expect=1)
        assert not (other.project / ".agents").exists()
        other.ask(model, {})
        mine.run("outdated", "--allow-http", expect=1)
        mine.run("update", "--allow-http", expect=4)
        mine.run("update", "--allow-http", "--yes")
        mine.ask(model, {"pdf": 2, "review": 2})
        clone(mine, other)
        other.run("install", "--frozen", "--allow-http", "--yes")
        other.ask(model, {"pdf": 2, "review": 2})
        mine.run("rollback", "--yes")
        mine.run("verify")
        mine.ask(model, {"pdf": 1, "review": 1})


def main() -> int:
    """Install the agents, play, and print how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, help="a folder for the programs of the agents")
    options = parser.parse_args()
    end_on_signal()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        base = Path(folder).resolve()
        bins = options.bin.resolve() if options.bin else base / "bin"
        for failure in install(AGENTS, bins):
            print(failure, file=sys.stderr)
        start = time.monotonic()
        with prompt_server() as model:
            play(base, bins, model)
        print(f"\nAll as expected, in {time.monotonic() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
