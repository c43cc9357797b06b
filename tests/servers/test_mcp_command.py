"""The real command: invalid messages, how it ends, and invalid options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.mcps import HELLO, command_of
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
    assert answers[-2]["result"]["structuredContent"]["files"] == ["%FF.md"]
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


# The start, while the SDK is not imported yet ------------------------------------------------------

LOADED = """
import atexit, sys
sdk = ("mcp", "mcp_types", "pydantic", "pydantic_core", "anyio", "asyncio")
atexit.register(lambda: print(*sorted(sys.modules.keys() & sdk), file=sys.stderr))
from skillshelf.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""Runs a command line, and prints at its end which parts of the SDK were imported."""

SLOW_IMPORT = """
import sys, time
*words, seconds = sys.argv[1:]
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp_types.methods":
            print("importing", file=sys.stderr, flush=True)
            time.sleep(float(seconds))
sys.meta_path.insert(0, Slow())
from skillshelf.cli.main import main
sys.exit(main(words))
"""
"""Runs a command line without its last word: the seconds that the import of the SDK takes longer."""

READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
LOAD = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "skill_load", "arguments": {"name": "alpha"}},
}


def send(process: Process, *messages: Any) -> None:
    """Write messages to a server."""
    assert process.stdin
    process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    process.stdin.flush()


def answer_of(process: Process) -> Any:
    """Read the next message of a server, which must come within a minute."""
    assert process.stdout
    limit = threading.Timer(60, process.kill)
    limit.start()
    try:
        return json.loads(process.stdout.readline())
    finally:
        limit.cancel()


def last_event(journal: Path) -> str:
    """Return the type of the last event in a journal."""
    kind: str = json.loads(journal.read_text().splitlines()[-1])["type"]
    return kind


@pytest.mark.slow
def test_a_usual_opening_imports_nothing_of_the_sdk(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    lists = [{"jsonrpc": "2.0", "id": name, "method": f"{name}/list"} for name in ("tools", "skills", "resources")]

    with started(machine, program=["-c", LOADED, "mcp"]) as process:
        out, err = process.communicate(b"".join(json.dumps(one).encode() + b"\n" for one in [HELLO, READY, *lists]))

    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, "tools", "skills", "resources"]
    assert (process.returncode, err) == (0, b"\n")


@pytest.mark.slow
def test_a_missing_part_of_the_sdk_is_reported_when_it_is_needed(machine: Machine) -> None:
    program = f"import sys; sys.modules['starlette'] = None\n{LOADED}"
    with started(machine, program=["-c", program, "mcp"]) as process:
        send(process, HELLO, LOAD)
        out, err = process.communicate()

    assert [json.loads(line)["id"] for line in out.splitlines()] == [1]
    assert process.returncode == 2
    assert err.startswith(b"skillshelf: mcp needs the extra mcp: run pip install 'skillshelf[mcp]'\n")


@pytest.mark.slow
def test_where_traces_are_collected_the_sdk_answers_from_the_first_message_on(machine: Machine) -> None:
    with started(machine, program=["-c", f"import opentelemetry.trace\n{LOADED}", "mcp"]) as process:
        send(process, HELLO)
        assert answer_of(process)["id"] == 1
        _, err = process.communicate()

    assert (process.returncode, err) == (0, b"anyio asyncio mcp mcp_types pydantic pydantic_core\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_import_of_the_sdk_ends_the_server_with_status_0(machine: Machine, number: int) -> None:
    journal = machine.base / "run.jsonl"
    with started(machine, "--journal", str(journal), "60", program=["-c", SLOW_IMPORT, "mcp"]) as process:
        send(process, HELLO)
        answer_of(process)
        assert process.stderr
        assert process.stderr.readline() == b"importing\n"
        process.send_signal(number)

        assert process.wait(30) == 0
        assert process.stderr.read() == b""
    assert last_event(journal) == "session_ended"


@pytest.mark.slow
def test_a_client_that_leaves_during_the_import_of_the_sdk_ends_the_server(machine: Machine) -> None:
    journal = machine.base / "run.jsonl"
    with started(machine, "--journal", str(journal), "0.2", program=["-c", SLOW_IMPORT, "mcp"]) as process:
        send(process, HELLO)
        answer_of(process)
        assert process.stderr
        assert process.stderr.readline() == b"importing\n"
        out, err = process.communicate()

    assert (process.returncode, out, err) == (0, b"", b"")
    assert last_event(journal) == "session_ended"


@pytest.mark.slow
def test_messages_that_come_during_the_import_of_the_sdk_are_answered(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    with started(machine, "0.2", program=["-c", SLOW_IMPORT, "mcp"]) as process:
        send(process, HELLO, READY)
        answer_of(process)
        assert process.stderr
        assert process.stderr.readline() == b"importing\n"
        send(process, PING, LOAD, {**PING, "id": 4})

        answers = {answer["id"]: answer["result"] for answer in (answer_of(process) for _ in range(3))}
        assert set(answers) == {2, 3, 4}
        assert answers[3]["structuredContent"]["name"] == "alpha"


@pytest.mark.slow
def test_a_client_that_does_not_read_the_first_answers_can_be_left_by_a_signal(machine: Machine) -> None:
    with started(machine) as process:
        send(process, HELLO)
        answer_of(process)
        assert process.stdin
        os.set_blocking(process.stdin.fileno(), False)
        pings = (json.dumps(PING).encode() + b"\n") * 10_000
        # Until neither side has room: the server waits for us to read.
        while process.poll() is None:
            try:
                os.write(process.stdin.fileno(), pings)
            except BlockingIOError:
                break
        process.terminate()

        assert process.wait(30) == 0


@pytest.mark.slow
def test_a_client_that_closed_its_output_ends_the_server_by_closing_its_input(machine: Machine) -> None:
    with started(machine) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.close()
        send(process, HELLO, READY, PING)
        process.stdin.close()

        assert process.wait(30) == 0
        assert process.stderr
        assert process.stderr.read() == b""


@pytest.mark.slow
def test_a_client_with_an_early_answer_is_told_of_changes_on_disk(machine: Machine) -> None:
    root = machine.home / ".agents/skills"
    write_skill(root, "alpha")
    with started(machine) as process:
        send(process, HELLO, READY, {**PING, "method": "resources/list"})
        assert len([answer_of(process), answer_of(process)][1]["result"]["resources"]) == 1
        write_skill(root, "beta")

        assert answer_of(process)["method"] == "notifications/resources/list_changed"
        assert answer_of(process)["method"] == "notifications/prompts/list_changed"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"http": "0.0.0.0:0"}, "a token is needed"),
        ({"http": "nonsense"}, "--http takes HOST:PORT"),
        ({"http": "127.0.0.1:99999"}, "--http takes HOST:PORT"),
        ({"http": "127.0.0.1:0", "token_file": "/nonexistent"}, "cannot be read"),
        ({"http": "127.0.0.1:0", "token_file": f"{SOURCE}/skillshelf/py.typed"}, "at least 16"),
        ({"http": "192.0.2.1:1", "token_file": __file__}, "is not a regular file of at most"),
        (
            {"http": "127.0.0.1:0", "allow_host": ["https://skills.example/"]},
            "--allow-host takes a host name",
        ),
        ({"paths": True}, "--paths needs --http"),
    ],
    ids=[
        "open to all",
        "no address",
        "no port",
        "no token file",
        "an empty token",
        "no file of a token",
        "no name",
        "no HTTP",
    ],
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
