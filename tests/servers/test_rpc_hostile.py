"""Hostile messages and concurrent sessions.

`SKILLSHELF_HOSTILE_MESSAGES=10000` sends more messages than the default run.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest
from support.policies import put
from support.rpcclient import RpcClient, rpc_in_process, rpc_process
from support.trees import Machine, write_skill

from skillshelf.core import limits
from skillshelf.servers.rpc.methods import METHODS

MESSAGES = int(os.environ.get("SKILLSHELF_HOSTILE_MESSAGES", "1500"))

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**63, -(2**200), 0.5, "", "x", "\0", "a\0b", "\ud800", "é" * 300, "/", "..", "~"),
    *([], [[]], [None], {}, {"": ""}, {"name": 1}, {"session": "s1"}, ["a", 1], "s1", "default", "standard"),
]
PATHS = [
    *(
        "/",
        "..",
        "../..",
        "/etc/passwd",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/mem",
        "\0",
        "a\0b",
        "x" * 5000,
        "~root",
    ),
    *("skill://alpha/../../etc/passwd", "skill://alpha/%2e%2e/%2e%2e/x", "skill://alpha//etc/passwd", "skill://"),
    *(
        "skill://alpha/" + "a/" * 5000,
        "skill://alpha/\\..\\x",
        "file:///etc/passwd",
        "skill://../x",
        "skill://alpha/\0",
    ),
    *(
        "skill://alpha/link",
        "SKILL.md",
        ".",
        "//",
        "alpha/../alpha",
        "\ud800",
        "/" * 4000,
        "C:\\x",
        "skill://alpha?x#y",
    ),
]


def broken(chance: random.Random) -> bytes:
    """Return the beginning of a valid message."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "skills.load", "params": {"name": "alpha"}}).encode()
    return line[: chance.randrange(1, len(line) - 1)]


def noise(chance: random.Random) -> bytes:
    """Return bytes that are not UTF-8."""
    return b"\xff" + chance.randbytes(chance.randrange(1, 200)).replace(b"\n", b"")


def deep(chance: random.Random) -> bytes:
    """Return a message with too many levels."""
    depth = chance.choice([70, 900, 5000, 50_000])
    return b'{"jsonrpc":"2.0","id":1,"method":"skills.list","params":' + b'{"a":[' * depth + b"]}" * depth + b"}"


def wrong_types(chance: random.Random) -> bytes:
    """Return a request with known parameters of any type, but never a file to write to."""
    method = chance.choice(
        [name for name in METHODS if name not in ("session.open", "session.restore", "session.close")]
    )
    names = [*get_type_hints(METHODS[method].params), "extra"]
    params = {key: chance.choice(VALUES) for key in names if chance.random() < 0.8}
    return request(method, chance.choice([params, params, params, chance.choice(VALUES)]))


def openings(chance: random.Random) -> bytes:
    """Return a request for a session that cannot be opened."""
    members = {key: chance.choice(VALUES) for key in ("profile", "policy", "preload", "snapshot", "cwd")}
    return request(chance.choice(["session.open", "session.restore"]), {**members, "nonsense": 1})


def strange_frames(chance: random.Random) -> bytes:
    """Return JSON that is not a request."""
    frame = {"jsonrpc": chance.choice(["2.0", 2.0, None]), "id": chance.choice([[], {}, True]), "method": "x"}
    return json.dumps(chance.choice([frame, 1, "x", None, [], {"id": 1}, {"jsonrpc": "2.0", "id": 3}])).encode()


def unknown_methods(chance: random.Random) -> bytes:
    """Return a request for a method that does not exist."""
    names = [
        "__init__",
        "session",
        "skills.",
        "rpc.discover",
        "\0",
        "x" * 5000,
        "event",
        "confirm",
        "session.__class__",
    ]
    return request(chance.choice(names), {})


def path_attacks(chance: random.Random) -> bytes:
    """Return a request with a path or address outside of the skill."""
    path = chance.choice(PATHS)
    choices: list[tuple[str, Any]] = [
        ("skills.read", {"uri": path}),
        ("skills.load", {"path": path}),
        ("skills.load", {"name": path}),
        ("skills.read", {"uri": "skill://alpha/x", "cwd": "/nowhere/" + path}),
        ("session.call", {"session": "s1", "tool": "skill_read", "arguments": {"uri": path}}),
        ("session.call", {"session": "s1", "tool": "skill_load", "arguments": {"path": path}}),
        ("session.call", {"session": "s1", "tool": "skill_run", "arguments": {"name": "alpha", "script": path}}),
        ("session.activate", {"session": "s1", "path": path}),
        ("session.decide", {"session": "s1", "tool": "skill_read", "arguments": {"uri": path}}),
        ("session.recall", {"session": "s1", "ref": path}),
    ]
    return request(*chance.choice(choices))


def request(method: str, params: Any) -> bytes:
    """Return a request whose id names the method."""
    return json.dumps({"jsonrpc": "2.0", "id": f"h:{method[:40]}", "method": method, "params": params}).encode()


KINDS: list[Callable[[random.Random], bytes]] = [
    *(broken, noise, deep, wrong_types, wrong_types, openings, strange_frames, unknown_methods, path_attacks),
    path_attacks,
]


@pytest.mark.slow
def test_after_any_number_of_hostile_messages_a_valid_one_is_served(machine: Machine) -> None:
    skill = write_skill(machine.home / ".agents/skills", "alpha").parent
    (skill / "link").symlink_to("/etc/passwd")
    chance = random.Random(8)
    with rpc_process(machine) as client:
        client.confirm = lambda question: False
        assert client.open() == "s1"
        for number in range(MESSAGES):
            client.line(KINDS[number % len(KINDS)](chance))
            if number % (MESSAGES // 2) == 0:
                client.line(b"[" * (limits.RPC_LINE_BYTES + 2))
        client.ask("session.snapshot", session=client.open())
        answers = [client.other() for _ in range(MESSAGES + 2)]
        good = client.ask("skills.load", name="alpha")

    codes = Counter(answer["error"]["code"] for answer in answers if "error" in answer)
    assert -32603 not in codes, [answer for answer in answers if answer.get("error", {}).get("code") == -32603][:5]
    assert set(codes) == {-32700, -32600, -32601, -32602, -32000}
    assert good["skill"]["name"] == "alpha"
    assert "root:" not in json.dumps(answers)
    assert client.others.empty()


# Concurrency ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_concurrent_sessions_do_not_affect_each_other(machine: Machine) -> None:
    for name in ("alpha", "beta"):
        put(machine.home / ".agents/skills", name)

    def conversation(client: RpcClient, session: str, skill: str) -> list[Callable[[], dict[str, Any]]]:
        load = {"session": session, "tool": "skill_load", "arguments": {"name": skill}}
        return [
            client.start("session.call", **load),
            client.start("session.call", **load),
            client.start("session.compact", session=session),
            client.start("session.call", **load),
            client.start("session.snapshot", session=session),
        ]

    with rpc_process(machine, "--journal", str(machine.base / "run.jsonl")) as client:
        sessions = [client.open() for _ in range(6)]
        running = [conversation(client, name, ("alpha", "beta")[n % 2]) for n, name in enumerate(sessions)]
        found = [[wait()["result"] for wait in waits] for waits in running]

    for number, (first, second, _, third, snapshot) in enumerate(found):
        skill = ("alpha", "beta")[number % 2]
        assert [first["data"]["already_loaded"], second["data"]["already_loaded"]] == [False, True]
        assert third["text"] == first["text"]
        assert f"Body of {skill}." in first["text"]
        assert [sent["name"] for sent in snapshot["loaded"]] == [skill]
    received = {name: [event["type"] for event in client.events if event["session"] == name] for name in sessions}
    assert len({tuple(types) for types in received.values()}) == 1
    assert machine.run("log", "verify", str(machine.base / "run.jsonl")).returncode == 0


def test_requests_after_a_close_are_all_answered(machine: Machine) -> None:
    with rpc_in_process(machine) as client:
        for _ in range(30):
            name = client.open()
            waits = [client.start(f"session.{what}", session=name) for what in ("close", "tools", "close", "compact")]
            answers = [wait() for wait in waits]
            assert ["result" in answer for answer in answers] == [True, False, False, False]
