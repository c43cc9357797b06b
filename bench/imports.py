"""What an extra adds to the import of its framework: `python bench/imports.py [--rounds N] [--environments DIR]`.

Each round is a fresh process that imports the framework and then ours, with the CPU time of each. The least of the
rounds is told, because whatever else a machine does can only add to it. With `--environments` each extra is installed
in an empty environment of its own below DIR, and measured there.
"""

import argparse
import subprocess
import sys
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
        "import skillshelf.servers.mcp.command, skillshelf.servers.mcp.server, skillshelf.servers.mcp.command",
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


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--environments", type=Path, metavar="DIR")
    wanted = parser.parse_args()
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
