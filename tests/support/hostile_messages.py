"""Hostile messages to the servers: after any number of them a sound one is answered, and nothing is printed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from support.hostile import OUTSIDE, messages
from support.mcps import HELLO
from support.rpcclient import start
from support.trees import SOURCE, Machine, write_skill

__all__ = ["attack_mcp", "attack_rpc"]

SECONDS = 120.0
"""Longer than a server may take for all messages; then it is killed."""

RPC = [
    {"method": "skills.list", "params": {}},
    {"method": "skills.load", "params": {"name": "guard"}},
    {"method": "skills.read", "params": {"uri": "skill://guard/references/a.md"}},
    {"method": "skills.search", "params": {"query": "watch", "limit": 3}},
    {"method": "session.open", "params": {"profile": "standard"}},
    {"method": "session.call", "params": {"session": "s1", "tool": "skill_load", "arguments": {"name": "guard"}}},
    {"method": "session.decide", "params": {"session": "s1", "tool": "Bash", "arguments": {"command": "git log"}}},
    {"method": "session.snapshot", "params": {"session": "s1"}},
    {"method": "context.inspect", "params": {"include_skills": True}},
]
MCP = [
    {"method": "tools/list", "params": {}},
    {"method": "tools/call", "params": {"name": "skill_load", "arguments": {"name": "guard"}}},
    {"method": "tools/call", "params": {"name": "skill_read", "arguments": {"uri": "skill://guard/SKILL.md"}}},
    {"method": "resources/list", "params": {}},
    {"method": "resources/read", "params": {"uri": "skill://guard/references/a.md"}},
    {"method": "prompts/list", "params": {}},
    {"method": "ping", "params": {}},
    {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {}}},
]


def attack_rpc(machine: Machine, dice: random.Random, count: int) -> list[str]:
    """Return what is wrong after hostile lines to `skillshelf rpc`."""
    _prepare(machine)
    last = {"jsonrpc": "2.0", "id": "last", "method": "skills.load", "params": {"name": "guard"}}
    process = start(machine)
    return _attack(process, [*_lines(dice, RPC, count), json.dumps(last).encode()])


def attack_mcp(machine: Machine, dice: random.Random, count: int) -> list[str]:
    """Return what is wrong after hostile lines to `skillshelf mcp`."""
    _prepare(machine)
    command = [sys.executable, "-P", "-m", "skillshelf", "mcp", "--home", str(machine.home)]
    process = subprocess.Popen(
        command,
        cwd=machine.repo,
        env={"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "PYTHONPATH": SOURCE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    hello = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    load = {"name": "skill_load", "arguments": {"name": "guard"}}
    last = {"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": load}
    first = [json.dumps(message).encode() for message in hello]
    return _attack(process, [*first, *_lines(dice, MCP, count), json.dumps(last).encode()])


def _prepare(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents/skills", "guard").parent
    (folder / "references").mkdir()
    (folder / "references" / "a.md").write_text("inside\n")
    (folder.parent / "secret.md").write_text(OUTSIDE)


def _lines(dice: random.Random, sound: Sequence[dict[str, Any]], count: int) -> list[bytes]:
    whole = [{"jsonrpc": "2.0", "id": number, **message} for number, message in enumerate(sound)]
    return [line for line in messages(dice, whole, count) if b"notifications/cancelled" not in line]


def _send(stream: IO[bytes], lines: Sequence[bytes]) -> None:
    with suppress(BrokenPipeError):
        stream.write(b"\n".join(lines) + b"\n")
        stream.flush()


def _attack(process: subprocess.Popen[bytes], lines: Sequence[bytes]) -> list[str]:
    """Send the lines, end the input after the last answer, and judge the answers."""
    assert process.stdin
    assert process.stdout
    assert process.stderr
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    said: list[bytes] = []
    with ThreadPoolExecutor(2) as threads:
        errors = threads.submit(process.stderr.read)
        sent = threads.submit(_send, process.stdin, lines)
        for line in process.stdout:
            said.append(line)
            if b'"last"' in line:
                sent.result()
                process.stdin.close()
        out, err = b"".join(said), errors.result()
    process.wait()
    timer.cancel()
    process.stdout.close()
    process.stderr.close()
    wrong = []
    # The answer to a batch is a list.
    parsed = [json.loads(line) for line in out.splitlines()]
    answers = [answer for one in parsed for answer in (one if isinstance(one, list) else [one])]
    good = [answer for answer in answers if answer.get("id") == "last" and "result" in answer]
    if len(good) != 1 or "# guard" not in json.dumps(good):
        wrong.append(f"the last message was not answered: {answers[-1:]}"[:400])
    if any(answer.get("error", {}).get("code") == -32603 for answer in answers):
        internal = [answer for answer in answers if answer.get("error", {}).get("code") == -32603]
        wrong.append(f"an internal error: {internal[0]}"[:400])
    if b"Traceback" in err or b"internal error" in err:
        wrong.append(f"stderr: {err[-400:]!r}")
    if OUTSIDE.encode() in out + err:
        wrong.append("a file outside of the skill was read")
    if process.returncode != 0:
        wrong.append(f"it ended with status {process.returncode}")
    return wrong
