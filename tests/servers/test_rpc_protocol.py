"""JSON-RPC 2.0 by its specification: errors, ids, batches, confirmations, limits and shutdown."""

from __future__ import annotations

import json
import os
import select
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from support.policies import put
from support.rpcclient import WAIT, rpc_in_process, start
from support.trees import Machine, write_skill

from skillshelf.core import limits
from skillshelf.servers.rpc.messages import parse_message
from skillshelf.servers.rpc.runtime import Options
from skillshelf.servers.rpc.server import Server


def call(method: str, **params: Any) -> bytes:
    """Return a request with the id 2."""
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).encode()


ERRORS: dict[str, tuple[bytes, int, Any]] = {
    "not JSON": (b"{bad", -32700, None),
    "half a message": (b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', -32700, None),
    "half a batch": (b'[{"jsonrpc":"2.0","method":"initialize","id":"1"},{"jsonrpc":"2.0","method"', -32700, None),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
    "another encoding": ('{"jsonrpc":"2.0","id":1,"method":"initialize"}'.encode("utf-16"), -32700, None),
    "not a number": (b'{"jsonrpc":"2.0","id":NaN,"method":"initialize"}', -32700, None),
    "an infinite number": (b'{"jsonrpc":"2.0","id":1e999,"method":"initialize"}', -32700, None),
    "a number without end": (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"initialize"}', -32700, None),
    "very deep": (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + b"[" * 100_000, -32700, None),
    "too deep": (b'{"jsonrpc":"2.0","id":1,"params":' + b"[" * 65 + b"]" * 65 + b"}", -32600, None),
    "a plain value": (b"1", -32600, None),
    "nothing": (b"null", -32600, None),
    "an empty batch": (b"[]", -32600, None),
    "an empty object": (b"{}", -32600, None),
    "no version": (b'{"id":1,"method":"initialize"}', -32600, 1),
    "another version": (b'{"jsonrpc":"1.0","id":1,"method":"initialize"}', -32600, 1),
    "no method": (b'{"jsonrpc":"2.0","id":"x"}', -32600, "x"),
    "a method that is not text": (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', -32600, None),
    "an id that is a list": (b'{"jsonrpc":"2.0","id":[1],"method":"initialize"}', -32600, None),
    "an id that is true": (b'{"jsonrpc":"2.0","id":true,"method":"initialize"}', -32600, None),
    "parameters that are text": (b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":"x"}', -32600, 2),
    "an unknown method": (call("nonsense"), -32601, 2),
    "a method of the client": (call("confirm"), -32601, 2),
    "an unknown parameter": (call("skills.list", x=1), -32602, 2),
    "a parameter of a wrong type": (call("skills.list", cwd=1), -32602, 2),
    "null for a parameter": (call("skills.list", cwd=None), -32602, 2),
    "true for a number": (call("skills.search", query="a", limit=True), -32602, 2),
    "zero results": (call("skills.search", query="a", limit=0), -32602, 2),
    "an unknown scope": (call("skills.search", query="a", scope="x"), -32602, 2),
    "a missing parameter": (call("skills.search"), -32602, 2),
    "neither name nor path": (call("skills.load"), -32602, 2),
    "parameters by position": (b'{"jsonrpc":"2.0","id":2,"method":"skills.load","params":["alpha"]}', -32602, 2),
    "a folder that is not there": (call("skills.list", cwd="/nowhere"), -32602, 2),
    "an unknown profile": (call("session.open", profile="x"), -32602, 2),
    "an address that climbs": (call("skills.read", uri="skill://alpha/../x"), -32602, 2),
    "an unknown skill": (call("skills.load", name="alph"), -32000, 2),
    "an unknown session": (call("session.tools", session="x"), -32000, 2),
}


def test_every_error_has_the_code_of_the_specification(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    found = {}
    with rpc_in_process(machine) as client:
        for name, (line, _, _) in ERRORS.items():
            client.line(line)
            answer = client.other()
            found[name] = (line, answer["error"]["code"], answer["id"])
            assert list(answer) == ["jsonrpc", "id", "error"]

    assert found == ERRORS


def test_an_error_names_candidates(machine: Machine) -> None:
    for root in (machine.home / ".agents/skills", machine.repo / ".agents/skills"):
        write_skill(root, "release-notes")
    paths = [str(base / ".agents/skills/release-notes/SKILL.md") for base in (machine.repo, machine.home)]
    with rpc_in_process(machine, started={"profile": "codelia", "trust": "all"}) as client:
        unknown = client.start("skills.load", name="release-note")()["error"]
        ambiguous = client.start("skills.load", name="release-notes")()["error"]
        misspelt = client.start("skills.load", nam="x")()["error"]

    assert unknown["data"] == {"code": "not_found", "candidates": ["release-notes"]}
    assert (ambiguous["data"]["code"], sorted(ambiguous["data"]["candidates"])) == ("ambiguous", sorted(paths))
    assert misspelt["message"] == "nam is not a known member (known: name, path, cwd)"


@pytest.mark.parametrize("given", [0, -1, 1.5, 2**53, 2**70, "", "x", "ü", "\ud800", None], ids=ascii)
def test_a_response_has_the_id_of_its_request(machine: Machine, given: Any) -> None:
    with rpc_in_process(machine) as client:
        client.send({"id": given, "method": "context.inspect", "params": {"include_skills": False}})

        assert client.other() == {"jsonrpc": "2.0", "id": given, "result": {}}


def test_a_lone_surrogate_in_parameters_is_replaced(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    with rpc_in_process(machine) as client:
        answer = client.ask("session.call", session=client.open(), tool="skill_load", arguments={"name": "a\ud800"})

    assert answer["error"]["message"].startswith("Skill not found: a?")


def test_a_notification_is_run_without_a_response(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    with rpc_in_process(machine) as client:
        session = client.open()
        client.send({"method": "session.call", "params": {"session": session, "tool": "nonsense"}})
        client.send({"method": "nonsense"})
        client.send({"method": "skills.list", "params": {"cwd": 1}})
        client.send({"method": "session.compact", "params": {"session": session}})
        client.ask("session.snapshot", session=session)

    assert [event["type"] for event in client.events if event["session"] == session][-4:] == [
        "tool_started",
        "tool_failed",
        "context_compacted",
        "session_ended",
    ]
    assert client.others.empty()


def test_the_responses_to_a_batch_are_sent_together_and_notifications_get_none(machine: Machine) -> None:
    inspect = {"jsonrpc": "2.0", "method": "context.inspect", "params": {"include_skills": False}}
    batch: list[Any] = [
        {**inspect, "id": "1"},
        inspect,
        1,
        {"jsonrpc": "2.0", "id": "5", "method": "foo.get"},
        {"foo": "boo"},
        {**inspect, "id": "9"},
    ]
    with rpc_in_process(machine) as client:
        client.line(json.dumps(batch).encode())
        answers = client.other()
        client.line(json.dumps([inspect, inspect]).encode())
        client.line(json.dumps([{**inspect, "id": n} for n in range(limits.RPC_BATCH + 1)]).encode())
        after = client.other()

    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
        ("1", None),
        (None, -32600),
        ("5", -32601),
        (None, -32600),
        ("9", None),
    ]
    assert (after["id"], after["error"]["code"]) == (None, -32600)
    assert client.others.empty()


@pytest.mark.slow
def test_empty_lines_are_ignored_and_the_last_line_needs_no_newline(machine: Machine) -> None:
    done = machine.run("rpc", input='\n \r\n{"jsonrpc":"2.0","id":1,"method":"session.open"}')

    answers = [json.loads(line) for line in done.stdout.splitlines() if '"id"' in line]
    assert answers == [{"jsonrpc": "2.0", "id": 1, "result": {"session": "s1"}}]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_served(machine: Machine) -> None:
    with rpc_in_process(machine) as client:
        client.line(b'"' + b"x" * limits.RPC_LINE_BYTES + b'"')

        assert client.other()["error"]["code"] == -32700
        assert client.ask("context.inspect", include_skills=False) == {}


def test_the_depth_of_messages_is_limited() -> None:
    def levels(count: int) -> bytes:
        return b'{"jsonrpc":"2.0","method":"x","params":' + b"[" * (count - 1) + b"]" * (count - 1) + b"}"

    assert [type(parse_message(levels(n)).messages[0]).__name__ for n in (limits.RPC_DEPTH, limits.RPC_DEPTH + 2)] == [
        "Request",
        "InvalidMessage",
    ]


# Confirmations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "is_yes"),
    [(True, True), ("remember", True), (False, False), (None, False), ("yes", False), (1, False), ({}, False)],
)
def test_only_yes_means_yes(machine: Machine, answer: Any, is_yes: bool) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    with rpc_in_process(machine) as client:
        client.confirm = lambda question: answer
        session = client.open()
        result = client.ask("session.call", session=session, tool="skill_load", arguments={"name": "stranger"})
        question = client.questions.get(timeout=WAIT)

    assert result["ok"] is is_yes
    assert question == {
        "jsonrpc": "2.0",
        "id": "confirm-1",
        "method": "confirm",
        "params": {
            "session": session,
            "tool": "skill_load",
            "name": "stranger",
            "reason": "the skill belongs to a project that is not trusted",
        },
    }
    approvals = machine.home / ".local/state/skillshelf/approvals.json"
    assert (approvals.exists() and "stranger" in approvals.read_text()) is (answer == "remember")


def test_an_error_instead_of_an_answer_means_no_and_an_answer_to_nothing_is_dropped(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    with rpc_in_process(machine) as client:
        client.send({"id": "confirm-1", "result": True})
        client.send({"id": 7, "result": True})
        waiting = client.start("skills.load", name="stranger")
        question = client.questions.get(timeout=WAIT)
        client.send({"id": question["id"], "error": {"code": -32601, "message": "?"}})

        assert waiting()["error"]["data"]["code"] == "denied"
        assert question["params"]["session"] == "r1"


def test_no_answer_in_time_means_no_and_a_late_one_changes_nothing(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    with rpc_in_process(machine, confirm_seconds=0.05) as client:
        session = client.open()
        result = client.ask("session.call", session=session, tool="skill_load", arguments={"name": "stranger"})
        client.send({"id": client.questions.get(timeout=WAIT)["id"], "result": True})
        again = client.ask("session.call", session=session, tool="skill_load", arguments={"name": "stranger"})

    assert (result["error"]["code"], again["error"]["code"]) == ("denied", "denied")
    assert limits.RPC_CONFIRM_SECONDS == 60


def test_other_requests_are_answered_while_a_confirmation_is_open(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    put(machine.home / ".agents/skills", "deploy")
    with rpc_in_process(machine) as client:
        first, second = client.open(), client.open()
        waiting = client.start("session.call", session=first, tool="skill_load", arguments={"name": "stranger"})
        behind = client.start("session.snapshot", session=first)
        loads = [client.start("skills.load", name="stranger") for _ in range(5)]
        questions = [client.questions.get(timeout=WAIT) for _ in range(6)]

        other = client.ask("session.call", session=second, tool="skill_load", arguments={"name": "deploy"})
        assert (other["ok"], client.ask("skills.load", name="deploy")["skill"]["name"]) == (True, "deploy")
        assert client.ask("skills.search", query="deploy")["count"] == 1
        assert client.ask("skills.list")["skills"]
        assert client.open() == "s3"

        for question in questions:
            client.send({"id": question["id"], "result": question["params"]["session"] == first})
        assert waiting()["result"]["ok"]
        assert [sent["name"] for sent in behind()["result"]["loaded"]] == ["stranger"]
        assert [load()["error"]["data"]["code"] for load in loads] == ["denied"] * 5


def test_opening_a_session_may_ask_for_confirmation_while_other_requests_go_on(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    with rpc_in_process(machine) as client:
        opening = client.start("session.open", preload=["stranger"])
        question = client.questions.get(timeout=WAIT)
        assert client.open() == "s2"
        client.send({"id": question["id"], "result": True})

        opened = opening()["result"]
        assert opened["session"] == question["params"]["session"]
        assert "1 skill of this project is hidden from models" in opened["held_back"]


# Limits -------------------------------------------------------------------------------------------


def test_the_number_of_sessions_is_limited_and_closing_one_makes_room(machine: Machine) -> None:
    most = 16
    write_skill(machine.home / ".agents/skills", "alpha")
    with rpc_in_process(machine, most_sessions=most) as client:
        sessions = [client.open() for _ in range(most)]
        refused = client.fail("session.open")
        client.ask("session.close", session=sessions[7])
        loaded = [
            client.start("session.call", session=name, tool="skill_load", arguments={"name": "alpha"})
            for name in (*sessions[:7], *sessions[8:], client.open())
        ]

        assert all(wait()["result"]["ok"] for wait in loaded)
    assert refused == (-32000, "too_large")


def test_the_size_of_waiting_requests_is_limited_and_room_comes_back(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    # Room for three long lines and the call before them.
    with rpc_in_process(machine, most_waiting_bytes=400_000) as client:
        session = client.open()
        first = client.start("session.call", session=session, tool="skill_load", arguments={"name": "stranger"})
        question = client.questions.get(timeout=WAIT)
        long = "x" * 100_000
        waiting = [client.start("session.mentions", session=session, text=long) for _ in range(4)]
        client.send({"id": question["id"], "result": True})
        answers = [wait() for wait in (first, *waiting)]

        assert ["result" in answer for answer in answers] == [True, True, True, True, False]
        assert answers[-1]["error"]["data"]["code"] == "too_large"
        assert client.ask("session.mentions", session=session, text="$stranger")["skills"] == ["stranger"]


def test_a_client_that_sends_faster_than_it_is_served_waits_instead_of_being_refused(machine: Machine) -> None:
    # Room for two long lines.
    with rpc_in_process(machine, most_waiting_bytes=250_000) as client:
        session = client.open()
        waiting = [client.start("session.mentions", session=session, text="x" * 100_000) for _ in range(20)]

        assert all("result" in wait() for wait in waiting)
        assert client.fail("session.mentions", session=session, text="x" * 300_000) == (-32000, "too_large")


# The end ------------------------------------------------------------------------------------------


def types_in(journal: Path) -> list[str]:
    """Return the types of the events in a journal."""
    return [json.loads(line)["type"] for line in journal.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_at_the_end_of_the_input_every_request_is_answered_without_confirmations(machine: Machine) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    journal = machine.base / "run.jsonl"
    call = {"session": "s1", "tool": "skill_load", "arguments": {"name": "stranger"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params})
        for n, (method, params) in enumerate([("session.open", {}), *([("session.call", call)] * 20)])
    ]

    done = machine.run("rpc", "--journal", str(journal), input="\n".join(lines))

    messages = [json.loads(line) for line in done.stdout.splitlines()]
    answers = {message["id"]: message for message in messages if "result" in message}
    assert sorted(answers) == list(range(21))
    assert {answer["result"]["error"]["code"] for id_, answer in answers.items() if id_} == {"denied"}
    assert (done.returncode, types_in(journal)[-1]) == (0, "session_ended")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_sessions_and_journals(machine: Machine, number: int) -> None:
    put(machine.repo / ".agents/skills", "stranger")
    journal = machine.base / "run.jsonl"
    process = start(machine, "--journal", str(journal))
    assert process.stdin
    assert process.stdout
    for method, params in (
        ("session.open", {}),
        ("session.call", {"session": "s1", "tool": "skill_load", "arguments": {"name": "stranger"}}),
    ):
        line = json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
    while b'"confirm"' not in process.stdout.readline():
        pass
    process.send_signal(number)
    _, errors = process.communicate(timeout=WAIT)

    assert process.returncode == 0, errors
    assert types_in(journal)[-2:] == ["tool_failed", "session_ended"]
    assert b"Traceback" not in errors


def test_a_client_that_stops_reading_does_not_keep_the_server_from_ending(machine: Machine) -> None:
    for number in range(200):
        write_skill(machine.home / ".agents/skills", f"skill-{number}")
    (read, to_server), (from_server, write), (wake, waker) = os.pipe(), os.pipe(), os.pipe()
    options = Options(str(machine.repo), home=str(machine.home))
    server = Server(options, read=read, write=write, wake=wake, end_seconds=0.1)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    os.write(to_server, b'{"jsonrpc":"2.0","id":1,"method":"skills.list"}\n' * 20)
    assert select.select([from_server], [], [], WAIT)[0], "the first answer is longer than a pipe holds"
    os.write(waker, b"x")
    thread.join(WAIT)

    assert not thread.is_alive()
    for fd in (read, to_server, from_server, write, wake, waker):
        os.close(fd)


@pytest.mark.slow
def test_the_server_ends_when_the_client_is_gone(machine: Machine) -> None:
    journal = machine.base / "run.jsonl"
    process = start(machine, "--journal", str(journal))
    assert process.stdin
    assert process.stdout
    process.stdout.close()
    line = b'{"jsonrpc":"2.0","id":1,"method":"session.open"}\n'
    process.stdin.write(line)
    process.stdin.flush()
    process.stdin.close()

    assert process.wait(WAIT) == 0
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert types_in(journal)[-1] == "session_ended"


@pytest.mark.slow
def test_errors_at_the_start_are_reported_before_the_first_request(machine: Machine) -> None:
    wrong = [machine.run("rpc", "--profile", "x", input=""), machine.run("rpc", "--cwd", "/nowhere", input="")]
    machine.configure("nonsense = 1\n")
    wrong.append(machine.run("rpc", input=""))

    assert [(done.returncode, done.stdout, done.stderr.count("\n")) for done in wrong] == [(2, "", 1)] * 3
