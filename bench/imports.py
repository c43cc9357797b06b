"""What an adapter adds to the import of its framework: `python bench/imports.py [--rounds N]`.

Each import happens in a fresh process; the two are taken in turns, and the least CPU time of each is compared,
because whatever else a machine does can only add to it.
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
_TIMED = "import time; t = time.process_time(); {code}; print((time.process_time() - t) * 1000)"


def cpu_ms(code: str) -> float:
    """The milliseconds of CPU that a fresh process takes to run the code."""
    done = subprocess.run([sys.executable, "-c", _TIMED.format(code=code)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print("| extra | framework alone, ms | with ours, ms | added, ms | goal |")
    print("|---|--:|--:|--:|---|")
    for extra, (framework, ours) in ADAPTERS.items():
        if find_spec(PACKAGES[extra]) is None:
            print(f"| {extra} | not installed | – | – | – |")
            continue
        pairs = [(cpu_ms(framework), cpu_ms(f"{framework}; {ours}")) for _ in range(rounds)]
        alone, both = (min(times) for times in zip(*pairs, strict=True))
        added = both - alone
        print(f"| {extra} | {alone:.0f} | {both:.0f} | {added:.0f} | {'met' if added <= GOAL_MS else 'missed'} |")


if __name__ == "__main__":
    main()
