"""Spans over OTLP: servers and the chat send their calls, no record and no receiver can do harm, nothing leaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from support.loopback import serving
from support.model_server import model_server
from support.needs import needs, require
from support.otlp_receiver import Received, receiver
from support.rpcclient import rpc_process
from support.trees import SOURCE, Machine, write_skill

from skillshelf.errors import ConfigurationError
from skillshelf.journal.file import Journal

pytestmark = needs("opentelemetry.exporter.otlp.proto.http")


def calls(received: Received) -> list[tuple[str, str | None]]:
    """Each call that was sent: its tool and its skill."""
    spans = [span["attributes"] for span in received.spans if span["name"].startswith("execute_tool ")]
    return [(span["gen_ai.tool.name"], span.get("gen_ai.skill.name")) for span in spans]


# Whoever serves -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_calls_of_a_client_of_rpc_are_sent(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    with receiver() as received, rpc_process(machine, "--otlp", received.url) as client:
        name = client.open()
        client.ask("session.call", session=name, tool="skill_search", arguments={"query": "very secret words"})
        client.ask("session.call", session=name, tool="skill_load", arguments={"name": "deploy"})
        client.ask("skills.load", name="deploy")

    assert calls(received)[:2] == [("skill_search", None), ("skill_load", "deploy")]
    assert received.count("skillshelf.skill.used", "gen_ai.skill.name") == {("deploy",): 2}
    assert len(received.named("skill_session")) == 2
    assert "secret" not in str(received.spans)


@pytest.mark.slow
def test_the_calls_of_a_client_of_mcp_are_sent_and_its_first_message_waits_for_no_import(machine: Machine) -> None:
    require("mcp")
    from support.mcps import HELLO, command_of

    write_skill(machine.home / ".agents/skills", "deploy")
    load = {"name": "skill_load", "arguments": {"name": "deploy"}}
    with receiver() as received:
        command = command_of(machine, "--otlp", received.url)
        program = (
            "import sys; from skillshelf.cli.main import main\nmain(); print('mcp' in sys.modules, file=sys.stderr)"
        )
        for messages in ([HELLO], [HELLO, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": load}]):
            words = [sys.executable, "-c", program, *command.args[2:]]
            pipe = subprocess.PIPE
            with subprocess.Popen(words, env=command.env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
                assert process.stdin
                assert process.stdout
                for message in messages:
                    process.stdin.write(json.dumps(message).encode() + b"\n")
                    process.stdin.flush()
                    assert b'"result"' in process.stdout.readline()
                _, err = process.communicate(timeout=60)
            assert process.returncode == 0
            assert len(messages) == 2 or err == b"False\n"

    assert calls(received) == [("skill_load", "deploy")]
    assert received.count("skillshelf.skill.used", "skillshelf.user") == {("test",): 1}


@pytest.mark.slow
def test_the_calls_of_a_chat_are_sent(machine: Machine) -> None:
    require("pydantic_ai")
    require("openai")
    write_skill(machine.home / ".agents/skills", "deploy")
    with receiver() as received, model_server(("skill_load", {"name": "deploy"}), "Done.") as server:
        words = ["chat", "--model", "m", "--once", "Go.", "--home", str(machine.home), "--otlp", received.url]
        done = subprocess.run(
            [sys.executable, "-m", "skillshelf", *words],
            cwd=machine.repo,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **server.env},
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert calls(received) == [("skill_load", "deploy")]


# What is sent -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_tool_that_a_model_made_up_is_sent_without_its_name(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "deploy")
    with receiver() as received, machine.shelf().session(otlp=received.url) as session:
        session.call("rm -rf /secret", {"name": "deploy"})

    assert [name for name, _ in calls(received)] == ["(unknown)"]
    assert "secret" not in str(received.spans)


@pytest.mark.slow
def test_a_journal_with_values_that_no_span_can_hold_is_sent_whole(machine: Machine) -> None:
    path, times = machine.repo / "run.jsonl", iter([10**18, -5, *[1_700_000_000_000] * 20])
    journal = Journal(str(path), session="s", now_ms=lambda: next(times))
    for number, (mode, exit_code) in enumerate([({"a": 1}, 2**63), ("auto", 0), (["x", 1], "no number")]):
        call = {"tool_id": f"t{number}"}
        journal.append("tool_started", {**call, "name": "skill_run", "args": {"name": "deploy"}, "mode": mode})
        about = {"name": "deploy", "path": "/x/deploy/SKILL.md"}
        journal.append("permission_decided", {"tool": "skill_run", **about, "verdict": "allow"})
        journal.append("tool_ended", {**call, "exit_code": exit_code})
    journal.append("skill_catalog_updated", {"count": {"a": []}, "listing": "x", "listed": [7]})
    journal.append("session_ended", {"events": 1})
    with receiver() as received:
        done = machine.run_json("log", "export", "run.jsonl", "--otlp", received.url)

    assert (done["lost"], done["problem"], done["spans"]) == (0, None, 5)
    assert calls(received) == [("skill_run", "deploy")] * 3
    assert received.named("execute_tool skill_run")[0]["attributes"]["process.exit.code"] == str(2**63)


# Receivers ----------------------------------------------------------------------------------------


def exported(machine: Machine, address: str) -> tuple[Any, float]:
    """Export a journal of one event; return the result, and how long it took."""
    Journal(str(machine.repo / "run.jsonl"), session="s").append("session_ended", {"events": 1})
    began = time.monotonic()
    done = machine.run("log", "export", "run.jsonl", "--json", "--otlp", address)
    return json.loads(done.stdout), time.monotonic() - began


@pytest.mark.slow
def test_an_answer_without_end_is_not_read(machine: Machine) -> None:
    sent = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(10**12))
            self.end_headers()
            until = time.monotonic() + 10
            while time.monotonic() < until:
                self.wfile.write(b"x" * 100_000)
                sent.append(100_000)
                time.sleep(0.01)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with serving(Handler) as address:
        done, seconds = exported(machine, address)

    assert (done["spans"], done["lost"]) == (1, 0)
    assert seconds < 9
    assert sum(sent) < 50_000_000


@pytest.mark.slow
def test_spans_go_to_no_other_address_than_the_one_that_was_given(machine: Machine) -> None:
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307 if self.path == "/v1/traces" else 200)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with serving(Handler) as address:
        done, _ = exported(machine, address)

    assert paths == ["/v1/traces"]
    assert (done["spans"], done["lost"]) == (0, 1)


@pytest.mark.slow
def test_a_query_of_the_address_stays_one_and_is_not_printed(machine: Machine) -> None:
    paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with serving(Handler) as address:
        done, _ = exported(machine, f"{address}/team/?token=secret")

    assert paths == ["/team/v1/traces?token=secret"]
    assert done["otlp"] == f"{address}/team/v1/traces"


def test_a_mistaken_address_is_said_without_its_password(machine: Machine) -> None:
    with pytest.raises(ConfigurationError) as raised:
        machine.shelf().session(otlp="htp://ada:secret@receiver")
    assert "secret" not in str(raised.value)
