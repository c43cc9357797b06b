"""The real command: a client that starts it, messages that are none, changes on disk, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcps import ERAS, ask, command_of, run, text_of
from trees import SOURCE, Machine, write_skill

import anyio  # isort: skip
from mcp import Client  # isort: skip
from skillshelf.errors import ConfigurationError
from skillshelf.mcp_server.command import serve


def started(machine: Machine, *words: str) -> subprocess.Popen[bytes]:
    """The command as a process whose messages a test writes by hand."""
    parameters = command_of(machine, *words)
    return subprocess.Popen(
        [parameters.command, *parameters.args],
        env=parameters.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("era", ERAS)
def test_a_client_sees_a_skill_that_comes_while_the_server_runs_and_is_told_of_it(machine: Machine, era: str) -> None:
    root = machine.home / ".agents/skills"
    write_skill(root, "alpha")
    heard = anyio.Event()

    async def on_message(message: Any) -> None:
        if "resources/list_changed" in getattr(message, "method", ""):
            heard.set()

    async def listen(client: Client) -> None:
        async with client.listen(resources_list_changed=True) as events:
            async for _ in events:
                heard.set()

    async def check() -> None:
        async with (
            Client(command_of(machine), mode=ERAS[era], message_handler=on_message) as client,
            anyio.create_task_group() as group,
        ):
            before = (await ask(client, "skills/list"))["skills"]
            if era == "newer":
                group.start_soon(listen, client)
            while not heard.is_set():
                # Again and again: the folder may not be watched yet.
                write_skill(root, "beta").touch()
                with anyio.move_on_after(1):
                    await heard.wait()
            after = (await ask(client, "skills/list"))["skills"]
            loaded = await text_of(client, "skill_load", name="beta")
            group.cancel_scope.cancel()

        assert [skill["uri"] for skill in before] == ["skill://alpha/SKILL.md"]
        assert [skill["uri"] for skill in after] == ["skill://alpha/SKILL.md", "skill://beta/SKILL.md"]
        assert str(machine.home) in loaded

    run(check)


def test_what_is_no_message_is_answered_and_the_next_message_is_served(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents/skills", "alpha").parent
    # A name that is no text cannot be written as JSON, and must not end the server.
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.md")).touch()
    lines = {
        b"nonsense": (-32700, None),
        b"[" * 100_000: (-32700, None),
        b"\xff\xfe": (-32700, None),
        b"[]": (-32600, None),
        b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}': (-32600, 7),
        b"x" * 1_100_000: (-32600, None),
    }
    process = started(machine, "--journal", str(machine.base / "run.jsonl"))
    assert process.stdin
    assert process.stdout
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    good = {"jsonrpc": "2.0", "id": 9, "method": "skills/list", "params": {"_meta": meta}}
    unknown = {"jsonrpc": "2.0", "id": 8, "method": "nonsense", "params": {"_meta": meta}}
    odd = {"name": "skill_load", "arguments": {"name": "alpha"}, "_meta": meta}
    load = {"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": odd}

    answers = []
    for line in (*lines, json.dumps(unknown).encode(), b"", json.dumps(load).encode(), json.dumps(good).encode()):
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        if line:
            answers.append(json.loads(process.stdout.readline()))
    process.stdin.close()

    assert process.wait(30) == 0
    assert [(answer["error"]["code"], answer["id"]) for answer in answers[:-2]] == [*lines.values(), (-32601, 8)]
    assert answers[-2]["result"]["structuredContent"]["files"] == ["\\xff.md"]
    assert answers[-1]["result"]["skills"][0]["uri"] == "skill://alpha/SKILL.md"
    events = [json.loads(line)["type"] for line in (machine.base / "run.jsonl").read_text().splitlines()]
    assert (events[0], events[-1]) == ("session_started", "session_ended")
    process.stdout.close()
    assert process.stderr
    process.stderr.close()


def test_a_signal_ends_the_server_well_though_its_client_stays(machine: Machine) -> None:
    journal = machine.base / "run.jsonl"
    with started(machine, "--journal", str(journal)) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"nonsense\n")
        process.stdin.flush()
        process.stdout.readline()
        process.terminate()
        assert process.wait(30) == 0
        assert process.stderr
        assert b"Traceback" not in process.stderr.read()

    assert json.loads(journal.read_text().splitlines()[-1])["type"] == "session_ended"


def test_without_the_extra_the_command_says_what_to_install(machine: Machine) -> None:
    program = "import sys; sys.modules['mcp'] = None\nfrom skillshelf.cli import main\nsys.exit(main(['mcp']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home)},
        cwd=machine.repo,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert "pip install 'skillshelf[mcp]'" in done.stderr
    assert done.stdout == ""


@pytest.mark.req("C-08", "C-110", "S-07")
def test_the_server_answers_and_never_reaches_for_the_network(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    program = """
import os, sys
def heard(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        os._exit(99)
sys.addaudithook(heard)
from skillshelf.cli import main
sys.exit(main(["mcp"]))
"""
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}) + "\n",
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home)},
        cwd=machine.repo,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"http": "0.0.0.0:0"}, "a token is needed"),
        ({"http": "nonsense"}, "--http takes HOST:PORT"),
        ({"http": "127.0.0.1:99999"}, "--http takes HOST:PORT"),
        ({"http": "127.0.0.1:0", "token_file": "/nonexistent"}, "cannot be read"),
        ({"http": "127.0.0.1:0", "token_file": "/dev/null"}, "at least 16"),
        ({"http": "192.0.2.1:1", "token_file": __file__}, "ASCII|cannot listen"),
        ({"paths": True}, "--paths is for --http"),
    ],
    ids=["open to all", "no address", "no port", "no token file", "an empty token", "no token", "no HTTP"],
)
def test_words_that_cannot_be_followed_are_wrong_usage(machine: Machine, words: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {
        "http": None,
        "token_file": None,
        "allow_host": [],
        "paths": False,
        "journal": None,
        "keep": False,
    }

    with pytest.raises(ConfigurationError, match=message):
        serve(machine.shelf(), {**values, **words})
