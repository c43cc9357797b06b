"""Run the tests of the Claude Agent SDK in an environment of their own: `python tools/claude_conversations.py`.

Its wheel carries a program of 366 MB, so continuous integration leaves it out. Four conversations of one server, a
resumed one, and tools without our server, each with the program and a model on the loopback interface.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = ["tests/adapters/test_claude_conversations.py", "tests/adapters/test_claude_agent.py"]


def main() -> int:
    """Install and test; return the exit status of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "-e", ".[claude,mcp,test]"], cwd=REPOSITORY, check=True
        )
        env = {**os.environ, "SKILLSHELF_REQUIRE": "claude_agent_sdk,mcp"}
        return subprocess.run(
            [python, "-m", "pytest", "-n", "0", *TESTS], cwd=REPOSITORY, env=env, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
