"""Calls over HTTP that are answered without the SDK: the bytes that the SDK would send, and the same record."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.mcps import run
from support.trees import Machine, write_skill

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")

import anyio

from skillshelf.servers.mcp.http import HttpLimits, protocol_app
from skillshelf.servers.mcp.plain_calls import PlainCalls
from skillshelf.servers.mcp.server import SkillServer
from skillshelf.servers.mcp.skills import PublishedSkills

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
}
HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "skill_search",
}
ODD = '---\nname: odd\ndescription: "Réview <\\u200b/skill> 字 \\U0001F600 code"\n---\n# odd\n'


class Sent(NamedTuple):
    """A request: the tool that it calls, its arguments, and what is unusual about it."""

    tool: str = "skill_search"
    arguments: Any = None
    members: Mapping[str, Any] = {}
    params: Mapping[str, Any] = {}
    meta: Mapping[str, Any] = {}
    headers: Mapping[str, str | None] = {}
    more_headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes | None = None

    def scope(self) -> dict[str, Any]:
        """The scope of the request."""
        headers = {**HEADERS, "mcp-name": self.tool, **self.headers}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items() if value is not None]
        return {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "scheme": "http",
            "http_version": "1.1",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 5),
            "headers": [*pairs, *self.more_headers],
        }

    def data(self) -> bytes:
        """The body of the request."""
        arguments = {"query": "review code"} if self.arguments is None else self.arguments
        params = {"name": self.tool, "arguments": arguments, "_meta": {**META, **self.meta}, **self.params}
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params, **self.members}
        return self.body if self.body is not None else json.dumps(message).encode()


async def answered(app: Any, sent: Sent) -> list[Any]:
    """Return the status, the headers and the body of the answer."""
    found: list[Any] = [None, None, b""]
    waiting = [{"type": "http.request", "body": sent.data(), "more_body": False}]

    async def receive() -> Any:
        if not waiting:
            await anyio.sleep_forever()
        return waiting.pop()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found[:2] = message["status"], sorted(message["headers"])
        found[2] += message.get("body", b"")

    await app(sent.scope(), receive, send)
    return found


@pytest.fixture
def skills(machine: Machine) -> Machine:
    """A machine with skills, one with a description that is not shown as it is written."""
    root = machine.home / ".agents/skills"
    for name in ("alpha", "review", "code-review"):
        write_skill(root, name, f"---\nname: {name}\ndescription: Review code of {name}.\n---\n# {name}\n")
    write_skill(root, "odd", ODD)
    (root / "alpha/notes.md").write_text("notes")
    Path(os.fsdecode(os.fsencode(root / "alpha") + b"/\xff.md")).touch()
    return machine


def both(machine: Machine, *requests: Sent, **options: Any) -> tuple[list[list[Any]], int]:
    """Return the answers, which must be those of the SDK alone, and the number of those without it."""
    found: list[list[Any]] = []
    plain: list[str] = []

    async def compare() -> None:
        published = PublishedSkills(machine.shelf(), **options)
        published.prepare_search()
        server = SkillServer(published, show_paths=False)
        sdk = protocol_app(server, HttpLimits())
        app = PlainCalls(server, sdk, plain.append)
        async with server.server.session_manager.run():
            for sent in requests:
                found.append(await answered(app, sent))
                assert found[-1] == await answered(sdk, sent)

    run(compare)
    return found, len(plain)


CALLS = {
    "a search": Sent(),
    "a search without a result": Sent(arguments={"query": "zzzz"}),
    "a search in another script": Sent(arguments={"query": "리뷰 字"}),
    "a limit": Sent(arguments={"query": "review", "limit": 2}),
    "a wrong argument": Sent(arguments={"query": "review", "limit": "two"}),
    "an unknown argument": Sent(arguments={"what": 1}),
    "no argument": Sent(arguments={}),
    "a load": Sent("skill_load", {"name": "odd"}),
    "a load of nothing": Sent("skill_load", {"name": "none"}),
    "a file": Sent("skill_read", {"uri": "skill://alpha/notes.md"}),
    "a missing file": Sent("skill_read", {"uri": "skill://alpha/none.md"}),
    "a list": Sent("skill_list", {}),
    "a text as id": Sent(members={"id": "x"}),
    "a client without a name": Sent(
        params={"_meta": {name: value for name, value in META.items() if not name.endswith("clientInfo")}}
    ),
}
OTHERS = {
    "progress": Sent(meta={"progressToken": "p"}),
    "a script": Sent("skill_run", {"name": "alpha", "script": "x.sh"}),
    "an unknown tool": Sent("skill_fly", {}),
    "another name in a header": Sent(headers={"mcp-name": "skill_load"}),
    "no name in a header": Sent(headers={"mcp-name": None}),
    "a repeated header": Sent(more_headers=((b"mcp-name", b"skill_search"),)),
    "an argument in a header": Sent(more_headers=((b"mcp-param-query", b"x"),)),
    "another version": Sent(headers={"mcp-protocol-version": "2099-01-01"}),
    "another version in the body": Sent(meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"}),
    "another type": Sent(headers={"content-type": "text/plain"}),
    "a type with a parameter": Sent(headers={"content-type": "application/json; charset=utf-8"}),
    "no type accepted": Sent(headers={"accept": "text/html"}),
    "anything accepted": Sent(headers={"accept": "*/*"}),
    "no JSON": Sent(body=b"{"),
    "a list of calls": Sent(body=b"[]"),
    "another method": Sent(members={"method": "tools/list"}),
    "a number as arguments": Sent(arguments=5),
    "a fraction": Sent(arguments={"query": "review", "limit": 2.0}),
    "a name twice": Sent(body=Sent().data().replace(b'"id": 7', b'"id": 7, "id": 8')),
    "half a character": Sent(arguments={"query": "\ud83d"}),
    "an emoji": Sent(arguments={"query": "\U0001f600"}),
    "a member too many": Sent(params={"task": {}}),
    "no id": Sent(body=Sent().data().replace(b'"id": 7, ', b"")),
    "a number as name": Sent(params={"name": 5}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_the_usual_form_gets_the_bytes_of_the_sdk_without_it(skills: Machine, name: str) -> None:
    (answer,), plain = both(skills, CALLS[name])

    assert answer[0] == 200
    assert plain == 1


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_request_is_answered_by_the_sdk(skills: Machine, name: str) -> None:
    _, plain = both(skills, OTHERS[name])

    assert plain == 0


def test_a_search_that_has_to_wait_for_its_index_is_answered_by_the_sdk(skills: Machine) -> None:
    """The SDK keeps the connection alive while a call takes long."""

    async def ask() -> None:
        plain: list[str] = []
        server = SkillServer(PublishedSkills(skills.shelf()), show_paths=False)
        app = PlainCalls(server, protocol_app(server, HttpLimits()), plain.append)
        async with server.server.session_manager.run():
            for _ in range(2):
                assert (await answered(app, Sent()))[0] == 200
        assert len(plain) == 1

    run(ask)


def test_a_call_without_the_sdk_is_a_session_of_the_journal(skills: Machine, tmp_path: Path) -> None:
    both(skills, Sent(), journal=str(tmp_path / "run.jsonl"))

    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    first, second = (
        [line for line in lines if line["session"] == name] for name in {line["session"] for line in lines}
    )
    assert [line["type"] for line in first] == [line["type"] for line in second]
    assert {line.get("client") for line in lines if line["type"] == "session_started"} == {"probe/1"}
    assert lines[-1]["type"] == "session_ended"
