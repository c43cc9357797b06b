"""Folders of skills and servers for the scripts beside this one."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["command", "corpus", "fixture", "http_server"]


def command(base: Path, *words: str) -> list[str]:
    """Return the command line of a server with a home folder and a project below `base`."""
    (base / "project" / ".git").mkdir(parents=True, exist_ok=True)
    place = ["--cwd", str(base / "project"), "--home", str(base / "home")]
    return [sys.executable, "-m", "skillshelf", "mcp", *place, *words]


@contextmanager
def http_server(base: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a server over HTTP; yield its address and its process, which must exit with 0 at SIGTERM."""
    log = base / "server.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command(base, "--http", "127.0.0.1:0", *words), stderr=stderr, stdin=subprocess.DEVNULL, text=True
        )
    try:
        yield _address(log, process), process
    finally:
        process.terminate()
        status = process.wait(30)
    if status != 0:
        raise SystemExit(f"the server ended with {status}:\n{log.read_text()}")


def _address(log: Path, process: subprocess.Popen[str]) -> str:
    for _ in range(600):
        found = re.search(r"http://\S+", log.read_text())
        if found:
            return found[0]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise SystemExit(f"the server did not start:\n{log.read_text()}")


def fixture(base: Path) -> Path:
    """Create a home folder with a few skills that are hard to serve; the first has folders."""
    root = base / "home" / ".agents" / "skills"
    texts = {
        "alpha/SKILL.md": "---\nname: alpha\ndescription: >\n  Folded, and the last field.\n---\n# Alpha\n",
        "alpha/references/deep/page one.md": "# Page\n",
        "alpha/assets/ä-logo.svg": "<svg/>",
        "alpha/inner/beta-inside/SKILL.md": "---\nname: beta-inside\ndescription: Inside.\n---\n# Inside\n",
        "core-schema/SKILL.md": "---\nname: core-schema\ndescription: Values of YAML 1.2.\nmetadata:\n"
        "  a: yes\n  b: 010\n  c: 12:30:45\n  d: 1e3\n  e: 2024-01-31\n  f: null\n  g: [1, 2.5, true]\n---\n# Values\n",
        "emoji/SKILL.md": '---\nname: emoji\ndescription: "\\ud83e\\uddfe as two escapes"\n---\n# Emoji\n',
        "crlf/SKILL.md": "---\r\nname: crlf\r\ndescription: Line ends.\r\n---\r\n# CRLF\r\n",
        "bom/SKILL.md": "\ufeff---\nname: bom\ndescription: A byte order mark.\n---\n# BOM\n",
        "Bad_Name/SKILL.md": "---\nname: Bad_Name\ndescription: Only for the tools.\n---\n# Bad\n",
        "repaired/SKILL.md": "---\nname: repaired\ndescription: Use: when broken\n---\n# Repaired\n",
    }
    for path, text in texts.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    (root / "alpha" / "empty").mkdir()
    (root / "alpha" / "assets" / "noise.bin").write_bytes(bytes(range(256)))
    (root / "alpha" / "__pycache__").mkdir()
    (root / "alpha" / "__pycache__" / "left.pyc").write_bytes(b"\0")
    (root / "alpha" / "link.md").symlink_to("/etc/passwd")
    return base


def corpus(archive: str, base: Path, *, most: int | None = None) -> Path:
    """Create a home folder with skills of an archive, each in a folder of its declared name if possible.

    With `most`, only that many random skills are used.
    """
    root = base / "home" / ".agents" / "skills"
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        found = sorted(Path(unpacked).rglob("SKILL.md"))
        if most is not None:
            found = random.Random(1).sample(found, most)
        for number, file in enumerate(found):
            data = file.read_bytes()
            declared = re.search(rb"(?m)^name:[ \t]*['\"]?([a-z0-9-]{1,60})['\"]?[ \t]*\r?$", data[:4096])
            name = declared[1].decode() if declared else f"unnamed-{number}"
            folder = root / name if not (root / name).exists() else root / f"more-{number}" / name
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_bytes(data)
    os.sync()
    return base
