"""The real command: invalid messages, how it ends, and invalid options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.mcps import command_of
from support.trees import SOURCE, Machine, write_skill

from skillshelf.errors import ConfigurationError
from skillshelf.servers.mcp.command import serve

Process = subprocess.Popen[bytes]


def started(machine: Machine, *words: str, program: Sequence[str] = ("-m", "skillshelf", "mcp")) -> Process:
    """Start the command in a process; the test writes its messages."""
    parameters = command_of(machine, *words)
    return subprocess.Popen(
        [parameters.command, *program, *parameters.args[3:]],
        env=parameters.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_an_invalid_message_gets_an_error_and_the_next_message_is_served(machine: Machine) -> None:
    folder = write_skill(machine.home / ".agents/skills", "alpha").parent
    # A name that is not UTF-8 cannot be encoded as JSON, and must not end the server.
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


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["mcp", "mcp_types", "anyio", "watchfiles"])
def test_without_the_extra_the_command_says_what_to_install(machine: Machine, missing: str) -> None:
    program = (
        f"import sys; sys.modules['{missing}'] = None\nfrom skillshelf.cli.main import main\nsys.exit(main(['mcp']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": SOURCE, "HOME": str(machine.home)},
        cwd=machine.repo,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert done.stderr == "skillshelf: mcp needs the extra mcp: run pip install 'skillshelf[mcp]'\n"
    assert done.stdout == ""


WATCHED = """
import os, sys
def refuse_network(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        os._exit(99)
sys.addaudithook(refuse_network)
from skillshelf.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.req("C-08", "C-110", "S-07")
def test_a_server_without_network_access_ends_with_status_0_at_a_signal_while_its_client_stays(
    machine: Machine,
) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    journal = machine.base / "run.jsonl"
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    with started(machine, "--journal", str(journal), program=["-c", WATCHED, "mcp"]) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        process.terminate()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""

    assert answer["result"]["serverInfo"]["name"] == "skillshelf"
    assert json.loads(journal.read_text().splitlines()[-1])["type"] == "session_ended"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"http": "0.0.0.0:0"}, "a token is needed"),
        ({"http": "nonsense"}, "--http takes HOST:PORT"),
        ({"http": "127.0.0.1:99999"}, "--http takes HOST:PORT"),
        ({"http": "127.0.0.1:0", "token_file": "/nonexistent"}, "cannot be read"),
        ({"http": "127.0.0.1:0", "token_file": "/dev/null"}, "at least 16"),
        ({"http": "192.0.2.1:1", "token_file": __file__}, "ASCII|cannot listen"),
        (
            {"http": "127.0.0.1:0", "allow_host": ["https://skills.example/"]},
            "--allow-host takes a host name",
        ),
        ({"paths": True}, "--paths needs --http"),
    ],
    ids=["open to all", "no address", "no port", "no token file", "an empty token", "no token", "no name", "no HTTP"],
)
def test_invalid_options_are_configuration_errors(machine: Machine, words: dict[str, Any], message: str) -> None:
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
