"""Measure start-up: what each extra adds to the import of its framework, or what whole commands cost.

`python bench/imports.py [--rounds N] [--environments DIR]` imports each framework, then ours, in a fresh process. With
`--environments` each extra is installed in an empty environment of its own below DIR, and measured there.
`python bench/imports.py --startup SOURCE ...` runs `list`, `show` and `why` from each source folder in turn and prints
their CPU time in bare Python starts. The minimum of the rounds counts: other work on the machine can only add to it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

__all__ = ["main"]

ADAPTERS = {
    "agent": (
        "import asyncio; from pydantic_ai import Agent; from pydantic_ai.toolsets import FunctionToolset",
        "import skillshelf.adapters.agent, skillshelf.adapters.pydantic_ai",
    ),
    "pydantic-ai": (
        "from pydantic_ai import Agent; from pydantic_ai.toolsets import FunctionToolset",
        "import skillshelf.adapters.pydantic_ai",
    ),
    "langchain": ("from langchain_core.tools import BaseTool", "import skillshelf.adapters.langchain"),
    "openai-agents": ("from agents import Agent, FunctionTool", "import skillshelf.adapters.openai_agents"),
    "mcp": (
        "import mcp, mcp_types, anyio, watchfiles; from mcp.server.lowlevel import Server; import mcp.server.stdio",
        "import skillshelf.servers.mcp.command, skillshelf.servers.mcp.server, skillshelf.servers.mcp.event_loop",
    ),
    "tui": (
        "import asyncio; from rich.segment import Segment; from textual.app import App; from textual.screen import "
        "ModalScreen; from textual.containers import Horizontal; from textual.strip import Strip; "
        "from textual.widgets import Input",
        "import skillshelf.cli.picker.app, skillshelf.cli.picker.command",
    ),
}
"""Each extra, the import of its framework alone, and what is imported besides."""

REPOSITORY = Path(__file__).resolve().parent.parent
GOAL_MS = 50
_TIMED = """
from time import process_time
start = process_time()
{framework}
between = process_time()
{ours}
print((between - start) * 1000, (process_time() - between) * 1000)
"""


def installed(extra: str, folder: Path) -> str:
    """The Python of an environment that holds nothing but this extra."""
    home = folder / extra
    venv.create(home, with_pip=True, clear=True)
    python = str(home / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{REPOSITORY}[{extra}]"], check=True)
    return python


def cpu_ms(python: str, framework: str, ours: str) -> tuple[float, float]:
    """The milliseconds of CPU that the framework, and then ours, take to import in a fresh process."""
    code = _TIMED.format(framework=framework, ours=ours)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    alone, added = done.stdout.split()
    return float(alone), float(added)


COMMANDS = (("list",), ("show", "s0001"), ("why", "s0001"), ("search", "things"))
SKILLS = 100


def process_cpu_ms(words: list[str], environment: dict[str, str]) -> float:
    """Return the CPU time of a whole process in milliseconds."""
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1000


def startup(sources: list[Path], rounds: int) -> None:
    """Print the CPU time of each command from each source, in bare Python starts."""
    with tempfile.TemporaryDirectory() as home:
        for number in range(SKILLS):
            folder = Path(home, ".agents/skills", f"s{number:04}")
            folder.mkdir(parents=True)
            text = f"---\nname: s{number:04}\ndescription: Does things. Use when {number} is asked for.\n---\n# Steps\n"
            (folder / "SKILL.md").write_text(text)
        least: dict[tuple[str, ...], float] = {}
        for _ in range(rounds):
            for words in ((), *((str(source), *command) for source in sources for command in COMMANDS)):
                source, *command = words or ("",)
                environment = {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": source}
                program = ["-m", "skillshelf", *command, "--home", home, "--cwd", home] if words else ["-c", "pass"]
                taken = process_cpu_ms([sys.executable, *program], environment)
                least[words] = min(taken, least.get(words, taken))
    print(f"| command, {SKILLS} skills | " + " | ".join(map(str, sources)) + " |")
    print("|---|" + "--:|" * len(sources))
    for command in COMMANDS:
        cells = (f"{least[str(source), *command] / least[()]:.2f}" for source in sources)
        print(f"| {' '.join(command)} | {' | '.join(cells)} |")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--environments", type=Path, metavar="DIR")
    parser.add_argument("--startup", type=Path, nargs="+", metavar="SOURCE")
    wanted = parser.parse_args()
    if wanted.startup:
        startup(wanted.startup, wanted.rounds)
        return
    print("| extra | framework alone, ms | ours, ms | goal |")
    print("|---|--:|--:|---|")
    for extra, (framework, ours) in ADAPTERS.items():
        python = installed(extra, wanted.environments) if wanted.environments else sys.executable
        if subprocess.run([python, "-c", framework], capture_output=True).returncode:
            print(f"| {extra} | not installed | – | – |", flush=True)
            continue
        times = [cpu_ms(python, framework, ours) for _ in range(wanted.rounds)]
        alone, added = map(min, zip(*times, strict=True))
        print(f"| {extra} | {alone:.0f} | {added:.0f} | {'met' if added <= GOAL_MS else 'missed'} |", flush=True)


if __name__ == "__main__":
    main()
