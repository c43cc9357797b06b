"""What an adapter adds to the import of its framework: `python bench/imports.py [--rounds N]`.

Each round is a fresh process that imports the framework and then ours, with the CPU time of each. The least of the
rounds is told, because whatever else a machine does can only add to it.
"""

import argparse
import subprocess
import sys
from importlib.util import find_spec

__all__ = ["main"]

ADAPTERS = {
    "agent": (
        "import asyncio; from pydantic_ai import Agent; from pydantic_ai.toolsets import FunctionToolset",
        "import skillshelf.agent, skillshelf.adapters.pydantic_ai",
    ),
    "pydantic-ai": (
        "from pydantic_ai import Agent; from pydantic_ai.toolsets import FunctionToolset",
        "import skillshelf.adapters.pydantic_ai",
    ),
    "langchain": ("from langchain_core.tools import BaseTool", "import skillshelf.adapters.langchain"),
    "openai-agents": ("from agents import Agent, FunctionTool", "import skillshelf.adapters.openai_agents"),
}
"""Each extra, the import of its framework alone, and what is imported besides."""

PACKAGES = {
    "agent": "pydantic_ai",
    "pydantic-ai": "pydantic_ai",
    "langchain": "langchain_core",
    "openai-agents": "agents",
}
GOAL_MS = 50
_TIMED = """
from time import process_time
start = process_time()
{framework}
between = process_time()
{ours}
print((between - start) * 1000, (process_time() - between) * 1000)
"""


def cpu_ms(framework: str, ours: str) -> tuple[float, float]:
    """The milliseconds of CPU that the framework, and then ours, take to import in a fresh process."""
    code = _TIMED.format(framework=framework, ours=ours)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    alone, added = done.stdout.split()
    return float(alone), float(added)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print("| extra | framework alone, ms | ours, ms | goal |")
    print("|---|--:|--:|---|")
    for extra, (framework, ours) in ADAPTERS.items():
        if find_spec(PACKAGES[extra]) is None:
            print(f"| {extra} | not installed | – | – |")
            continue
        alone, added = (min(times) for times in zip(*(cpu_ms(framework, ours) for _ in range(rounds)), strict=True))
        print(f"| {extra} | {alone:.0f} | {added:.0f} | {'met' if added <= GOAL_MS else 'missed'} |")


if __name__ == "__main__":
    main()
