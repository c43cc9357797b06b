"""The examples of docs/adapters.md that need a model run as written, from an empty folder, with the real packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.model_loopback import model_loopback
from support.needs import require
from support.trees import SOURCE

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
BLOCKS = re.findall(r"^<!-- model -->\n```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
[START] = re.findall(r"^<!-- model: start -->\n```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
CONVERSATIONS = [block for block in BLOCKS if "And more tea?" in block]


def packages(block: str) -> list[str]:
    """Return the packages that an example imports."""
    return re.findall(r"^(?:from|import) (\w+)", block, re.MULTILINE)


def run(block: str, folder: Path, url: str) -> str:
    """Run an example in a folder with a model at an address, and return what it prints."""
    for package in packages(block):
        require(package)
    keys = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_API_KEY": "none"}
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": SOURCE, "ANTHROPIC_BASE_URL": url, **keys},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_a_loop_for_every_client() -> None:
    assert len(CONVERSATIONS) == 6
    assert {name for block in BLOCKS for name in packages(block)} >= {"anthropic", "openai", "pydantic_ai", "agents"}


@pytest.mark.req("C-74", "C-75")
@pytest.mark.parametrize("block", CONVERSATIONS, ids=lambda block: packages(block)[1])
def test_a_loop_holds_two_conversations(block: str, tmp_path: Path) -> None:
    with model_loopback() as model:
        run(START, tmp_path, model.url)
        said = run(block, tmp_path, model.url)

    assert said.split() == ["done", "done", "done"]
    assert "You are helpful." in model.turns[0].system
    assert "<name>tea</name>" in model.turns[0].system
    first, more, second = [turn.since for turn in model.turns if turn.since]
    assert "Warm the pot." in first[0]
    assert more[0].startswith("<skill_context_reminder")
    assert second == first


@pytest.mark.parametrize("block", [block for block in BLOCKS if block not in CONVERSATIONS], ids=["join"])
def test_a_tool_of_the_same_name_can_be_joined(block: str, tmp_path: Path) -> None:
    with model_loopback() as model:
        run(START, tmp_path, model.url)
        assert run(block, tmp_path, model.url).split() == ["done"]

    assert model.tools[0] == ["read"]
    assert "Warm the pot." in model.turns[-1].since[0]
