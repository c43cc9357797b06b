"""Skills of other MCP servers (SEP-2640): healthy servers, hostile ones, and each obligation of a host."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.trees import SOURCE, Machine, write_skill

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")

import anyio
from support.mcps import serving
from support.scripted_mcp import (
    EXTENSION,
    FIELDS,
    FILES,
    INVALID_PARAMS,
    TEXT,
    Refusal,
    ScriptedServer,
    content_of,
    entry_of,
)

from skillshelf import SourceEntry, SourceLimits
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import tree_digest
from skillshelf.config.approvals import add_approval
from skillshelf.core.environment import Environment, make_environment
from skillshelf.errors import (
    ConfigurationError,
    SkillError,
    SourceNotFound,
    SourceRefused,
    SourceUnreachable,
)
from skillshelf.install.mcp_source import McpSource
from skillshelf.install.reference import SourceContext, parse_reference

# They start servers, or connect to one by a client that takes a second to import.
pytestmark = pytest.mark.slow

LIMITS = SourceLimits()
TREE = tree_digest(listed_files(FILES))


def environment_of(machine: Machine, **servers: Mapping[str, Any]) -> Environment:
    """The environment of a user whose configuration names these servers."""
    lines = []
    for label, members in servers.items():
        lines += [f"[mcp.servers.{label}]", *(f"{key} = {json.dumps(value)}" for key, value in members.items())]
    machine.configure("\n".join([*lines, ""]))
    return make_environment(str(machine.repo), str(machine.home), {"HOME": str(machine.home), **machine.env})


def source_of(machine: Machine, server: ScriptedServer, text: str = "mcp:work", **context: Any) -> McpSource:
    environment = environment_of(machine, work={"url": server.url})
    return McpSource(parse_reference(text, environment), SourceContext(environment, **context))


def fetched(source: McpSource) -> dict[str, bytes]:
    (entry,) = source.list()
    return source.fetch(entry, (), LIMITS)


# Healthy servers ----------------------------------------------------------------------------------


def test_a_healthy_server_is_listed_and_every_file_is_fetched_as_it_is(machine: Machine) -> None:
    with ScriptedServer().running() as server:
        source = source_of(machine, server)
        (entry,) = source.list()
        assert (entry.name, entry.description, entry.frontmatter, entry.tree, entry.path) == (
            "brew",
            "Brew a good coffee",
            FIELDS,
            TREE,
            "brew",
        )
        assert server.methods == ["skills/list"]
        assert source.fetch(entry, ("references/water.md",), LIMITS) == {"references/water.md": b"hot\n"}
        assert source.fetch(entry, (), LIMITS) == FILES
        assert source.notes == []
        assert tuple(source.identity(entry)) == ("mcp:work/brew", "", None, None, None, "the MCP server work")


@pytest.mark.parametrize("transport", ["command", "url"])
def test_our_own_server_is_a_healthy_source(machine: Machine, transport: str) -> None:
    folder = write_skill(machine.home / ".agents/skills", "brew", TEXT).parent
    (folder / "references").mkdir()
    (folder / "references" / "water.md").write_bytes(b"hot\n")
    (folder / "references" / "übung.bin").write_bytes(b"\xff\x00")
    write_skill(machine.home / ".agents/skills", "tea")
    (machine.base / "mine").mkdir()
    mine = Machine(machine.base / "mine")
    words = ["--cwd", str(machine.repo), "--home", str(machine.home)]
    command = [sys.executable, "-m", "skillshelf", "mcp", *words]
    mine.env["PYTHONPATH"] = SOURCE

    def check(server: Mapping[str, Any]) -> None:
        environment = environment_of(mine, work=server)
        source = McpSource(parse_reference("mcp:work/brew", environment), SourceContext(environment))
        assert fetched(source) == {
            "SKILL.md": TEXT.encode(),
            "references/water.md": b"hot\n",
            "references/übung.bin": b"\xff\x00",
        }
        assert [entry.name for entry in McpSource.named("work", environment).list()] == ["brew", "tea"]

    async def over_http() -> None:
        async with serving(machine) as port:
            await anyio.to_thread.run_sync(check, {"url": f"http://127.0.0.1:{port}/mcp"})

    if transport == "command":
        check({"command": command, "env": ["PYTHONPATH"]})
    else:
        anyio.run(over_http)


def test_a_server_of_the_older_era_is_read_too(machine: Machine) -> None:
    def hello(_: Any) -> Any:
        capabilities: dict[str, Any] = {"resources": {}, "extensions": {EXTENSION: {}}}
        about = {"name": "old", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}

    def unknown(_: Any) -> Any:
        raise Refusal(-32601, "unknown method")

    answers: dict[str, Any] = {"server__discover": unknown, "initialize": hello}
    with ScriptedServer(**answers).running() as server:
        assert fetched(source_of(machine, server)) == FILES


def test_pages_are_followed_to_their_end(machine: Machine) -> None:
    names = ["ale", "brew", "cocoa"]

    def page(params: Mapping[str, Any]) -> Any:
        number = int(params.get("cursor", 0))
        fields = {**FIELDS, "name": names[number]}
        more = {"nextCursor": str(number + 1)} if number < 2 else {}
        return {"skills": [entry_of(root=f"skill://{names[number]}", frontmatter=fields)], **more}

    with ScriptedServer(skills__list=page).running() as server:
        assert [entry.name for entry in source_of(machine, server).list()] == names


def test_a_skill_that_the_listing_leaves_out_is_confirmed_by_its_address(machine: Machine) -> None:
    with ScriptedServer(skills__list=lambda _: {"skills": []}).running() as server:
        assert source_of(machine, server).list() == []
        source = source_of(machine, server, "mcp:work/brew")
        assert fetched(source) == FILES
        assert ("skills/get", "skill://brew/SKILL.md") in server.log
        with pytest.raises(SourceNotFound, match="mcp:work: skills/get"):
            source_of(machine, server, "mcp:work/tea").list()


# Live ---------------------------------------------------------------------------------------------


def test_live_nothing_is_read_before_a_load_and_then_one_file_at_a_time(machine: Machine) -> None:
    with ScriptedServer().running() as server:
        environment = environment_of(machine, work={"url": server.url})
        add_approval(environment, "skill_load", "brew", None, TREE, origin="mcp:work")
        shelf = machine.shelf(sources=[McpSource.named("work", environment)])
        session = shelf.session()
        assert "Brew a good coffee" in session.system_prompt(base="")
        assert shelf.search("coffee").results[0].skill.source == "mcp:work"
        assert server.methods == ["skills/list"]

        text = session.call("skill_load", {"name": "brew"}).text
        assert 'origin="mcp:work"' in text
        assert [asked for asked in server.log if asked[0] == "resources/read"] == [
            ("resources/read", "skill://brew/SKILL.md")
        ]
        assert session.call("skill_read", {"uri": "skill://brew/references/water.md"}).ok
        assert server.log[-1] == ("resources/read", "skill://brew/references/water.md")


def test_live_a_change_at_the_server_is_refused_until_it_is_listed_and_approved_again(machine: Machine) -> None:
    with ScriptedServer().running() as server:
        environment = environment_of(machine, work={"url": server.url})
        add_approval(environment, "skill_load", "brew", None, TREE, origin="mcp:work")
        shelf = machine.shelf(sources=[McpSource.named("work", environment)])
        session = shelf.session()
        assert session.call("skill_load", {"name": "brew"}).ok
        server.files["references/water.md"] = b"cold"
        refused = session.call("skill_read", {"uri": "skill://brew/references/water.md"}).error
        assert refused is not None
        assert refused.code == "refused"
        assert shelf.refresh() is True
        assert shelf.catalog.skills[0].hidden == "untrusted"


def test_live_an_entry_that_cannot_be_used_is_said_and_others_go_on(machine: Machine) -> None:
    dynamic = entry_of(root="skill://tea", frontmatter={**FIELDS, "name": "tea"}, resources="dynamic")
    with ScriptedServer(skills__list=lambda _: {"skills": [dynamic, entry_of()]}).running() as server:
        environment = environment_of(machine, work={"url": server.url})
        catalog = machine.catalog(sources=[McpSource.named("work", environment)])
        assert [skill.name for skill in catalog.skills] == ["brew"]
        (warning,) = [one for one in catalog.warnings if one.rule == "source-note"]
        assert warning.path == "source://mcp:work"
        assert "skill://tea/SKILL.md: its files have no digests" in warning.message


def test_live_a_server_that_is_away_is_one_error(machine: Machine) -> None:
    environment = environment_of(machine, gone={"url": "http://127.0.0.1:9/mcp"}, none={"command": ["/nonexistent/x"]})
    catalog = machine.catalog(sources=[McpSource.named(label, environment) for label in ("gone", "none")])
    assert [(error.path, error.rule) for error in catalog.errors] == [
        ("source://mcp:gone", "source-failed"),
        ("source://mcp:none", "source-failed"),
    ]


# Hostile servers ----------------------------------------------------------------------------------


def _listing(**changes: Any) -> dict[str, Any]:
    return {"skills__list": lambda _: {"skills": [entry_of(**changes)]}}


def _resources(change: Callable[[list[dict[str, Any]]], Any]) -> dict[str, Any]:
    resources = entry_of()["resources"]
    return _listing(resources=change(resources) or resources)


def _read(answer: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
    return {"resources__read": answer}


def _contents(data: bytes) -> dict[str, Any]:
    return _read(lambda params: {"contents": [content_of(params["uri"], data)]})


def _fields(**changes: Any) -> dict[str, Any]:
    return _listing(frontmatter={**FIELDS, **changes})


def _discover(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "server__discover": lambda _: {
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
        }
    }


def _big(count: int, size: int = 1) -> dict[str, Any]:
    digest = "sha256:" + "0" * 64
    extra = [{"uri": f"skill://brew/{n}.md", "digest": digest, "size": size} for n in range(count)]
    return _resources(lambda resources: [*resources, *extra])


_NUMBERS = itertools.count()
_OTHER = {"uri": "skill://tea/SKILL.md", "digest": "sha256:" + "0" * 64, "size": 1}

HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    # The declaration
    "no-extension": (_discover({"resources": {}}), "capability"),
    "extension-not-an-object": (_discover({"resources": {}, "extensions": {EXTENSION: True}}), ""),
    "extension-only-experimental": (_discover({"resources": {}, "experimental": {EXTENSION: {}}}), "capability"),
    "no-resources": (_discover({"extensions": {EXTENSION: {}}}), "capability"),
    # Pages
    "cursor-loop": ({"skills__list": lambda _: {"skills": [], "nextCursor": "again"}}, "pages"),
    "endless-pages": ({"skills__list": lambda _: {"skills": [], "nextCursor": str(next(_NUMBERS))}}, "pages"),
    "cursor-number": ({"skills__list": lambda _: {"skills": [], "nextCursor": 5}}, "pages"),
    "many-entries": ({"skills__list": lambda _: {"skills": [{}] * 5000}}, "too-many-skills"),
    "skills-missing": ({"skills__list": lambda _: {}}, "type"),
    "skills-object": ({"skills__list": lambda _: {"skills": {"brew": entry_of()}}}, "type"),
    "input-required": ({"skills__list": lambda _: {"resultType": "input_required", "skills": []}}, ""),
    # Entries
    "entry-text": ({"skills__list": lambda _: {"skills": ["brew"]}}, "left out"),
    "uri-missing": (_listing(uri=None), "left out"),
    "uri-of-a-folder": (_listing(uri="skill://brew"), "left out"),
    "uri-dots": (_listing(uri="skill://a/../brew/SKILL.md"), "left out"),
    "uri-encoded-dots": (_listing(uri="skill://a/%2e%2e/brew/SKILL.md"), "left out"),
    "uri-control-character": (_listing(uri="skill://brew/\x1b[2J/SKILL.md"), "left out"),
    "uri-query": (_listing(uri="skill://brew/SKILL.md?x=/SKILL.md"), "left out"),
    "uri-long": (_listing(uri=f"skill://{'a' * 9000}/SKILL.md"), "left out"),
    "uri-not-its-name": (_listing(root="skill://tea"), "left out"),
    "frontmatter-missing": (_listing(frontmatter=None), "left out"),
    "name-missing": (_fields(name=None), "left out"),
    "name-path": (_listing(root="skill://x/..%2Fbrew", frontmatter={**FIELDS, "name": "../brew"}), "left out"),
    "name-list": (_fields(name=["brew"]), "left out"),
    "description-missing": (_fields(description=None), "left out"),
    "description-blank": (_fields(description="  "), "left out"),
    "resources-missing": (_listing(resources=None), "left out"),
    "resources-object": (_listing(resources={}), "left out"),
    "resources-dynamic": (_listing(resources="dynamic"), "left out"),
    "resources-other-word": (_listing(resources="static"), "left out"),
    "resource-text": (_resources(lambda r: [*r, "skill://brew/x"]), "left out"),
    "513-files": (_big(510), "left out"),
    "17-mib": (_big(1, 17 * 1024 * 1024), "left out"),
    "size-negative": (_resources(lambda r: r[1].update(size=-1)), "left out"),
    "size-true": (_resources(lambda r: r[1].update(size=True)), "left out"),
    "size-text": (_resources(lambda r: r[1].update(size="4")), "left out"),
    "digest-capitals": (_resources(lambda r: r[1].update(digest=r[1]["digest"].upper())), "left out"),
    "digest-other-algorithm": (_resources(lambda r: r[1].update(digest="md5:" + "0" * 32)), "left out"),
    "digest-missing": (_resources(lambda r: r[1].pop("digest") and None), "left out"),
    "file-of-another-skill": (_resources(lambda r: [*r, _OTHER]), "left out"),
    "file-of-another-server": (_resources(lambda r: [*r, {**_OTHER, "uri": "https://x/y"}]), "left out"),
    "file-escape": (_resources(lambda r: r[1].update(uri="skill://brew/../x")), "left out"),
    "file-encoded-escape": (_resources(lambda r: r[1].update(uri="skill://brew/..%2F..%2Fx")), "left out"),
    "file-git": (_resources(lambda r: r[1].update(uri="skill://brew/.git/config")), "left out"),
    "file-not-utf-8": (_resources(lambda r: r[1].update(uri="skill://brew/%FF")), "left out"),
    "file-escape-sequence": (_resources(lambda r: r[1].update(uri="skill://brew/%1B%5B2J")), "left out"),
    "file-twice": (_resources(lambda r: [*r, r[1]]), "left out"),
    "file-case-twins": (_resources(lambda r: [*r, {**r[1], "uri": "skill://brew/REFERENCES/water.md"}]), "left out"),
    "no-skill-file": (_resources(lambda r: r[1:]), "left out"),
    "skill-file-too-large": (_resources(lambda r: r[0].update(size=2 * 1024 * 1024)), "left out"),
    # Files
    "other-size": (_contents(TEXT.encode() + b"x"), "size"),
    "other-bytes": (_contents(TEXT.replace("Grind", "Spill").encode()), "digest"),
    "empty-file": (_contents(b""), "size"),
    "entry-frontmatter-other": (_fields(level=4), "frontmatter"),
    "entry-frontmatter-less": (_listing(frontmatter={"name": "brew", "description": "Brew a good coffee"}), "front"),
    "entry-frontmatter-more": (_fields(hooks={"x": "rm"}), "frontmatter"),
    "entry-number-as-text": (_fields(level="3"), "frontmatter"),
    "entry-number-as-true": (_fields(level=True), "frontmatter"),
    "entry-description-other": (_fields(description="Brew a good tea"), "frontmatter"),
    "no-contents": (_read(lambda _: {"contents": []}), "type"),
    "contents-missing": (_read(lambda _: {}), ""),
    "two-contents": (_read(lambda p: {"contents": [content_of(p["uri"], TEXT.encode())] * 2}), "type"),
    "content-of-another-address": (
        _read(lambda _: {"contents": [content_of("skill://tea/SKILL.md", TEXT.encode())]}),
        "address",
    ),
    "content-bad-base64": (_read(lambda p: {"contents": [{"uri": p["uri"], "blob": "***"}]}), "type"),
    "content-text-and-blob": (_read(lambda p: {"contents": [{"uri": p["uri"], "text": TEXT, "blob": ""}]}), ""),
    "content-number": (_read(lambda p: {"contents": [{"uri": p["uri"], "text": 5}]}), ""),
    "content-surrogate": (_read(lambda p: {"contents": [{"uri": p["uri"], "text": "\ud800"}]}), ""),
    "read-refused": (_read(lambda _: (_ for _ in ()).throw(Refusal(INVALID_PARAMS))), ""),
    "read-fails": (_read(lambda _: (_ for _ in ()).throw(Refusal(-32603, "\x1b[2Jboom"))), ""),
    "read-asks-back": (_read(lambda _: {"resultType": "input_required", "inputRequests": {}}), ""),
}


def test_there_are_at_least_forty_hostile_servers() -> None:
    assert len(HOSTILE) >= 40


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_server_gives_nothing_and_the_reason_is_said(machine: Machine, case: str) -> None:
    answers, reason = HOSTILE[case]
    with ScriptedServer(**answers).running() as server:
        source = source_of(machine, server)
        message = ""
        try:
            entries = source.list()
            if reason == "left out":
                assert entries == []
                (message,) = source.notes
            else:
                source.fetch(entries[0], (), LIMITS)
                pytest.fail("its file was accepted")
        except SkillError as error:
            message = str(error)
            assert message.startswith("mcp:work: ")
        assert reason in message
        assert message.isprintable()
        assert not {path for method, path in server.log if method == "resources/read" and "brew" not in path}
        if reason == "left out":
            assert server.methods == ["skills/list"], "an entry that is refused is not read"


@pytest.mark.parametrize("case", [name for name, (_, reason) in HOSTILE.items() if reason != "left out"])
def test_a_shelf_with_a_hostile_server_has_an_error_and_no_exception(machine: Machine, case: str) -> None:
    answers, _ = HOSTILE[case]
    write_skill(machine.repo / ".agents/skills", "local")
    with ScriptedServer(**answers).running() as server:
        environment = environment_of(machine, work={"url": server.url})
        shelf = machine.shelf(sources=[McpSource.named("work", environment)])
        names = [skill.name for skill in shelf.catalog.skills]
        assert "local" in names
        if "brew" in names:
            result = shelf.session(confirm=lambda *_: True).call("skill_load", {"name": "brew"})
            assert result.error is not None
            assert "Grind" not in result.text
        else:
            assert [error.rule for error in shelf.catalog.errors] == ["source-failed"]


def test_a_server_that_changes_between_list_and_read_is_refused(machine: Machine) -> None:
    with ScriptedServer().running() as server:
        source = source_of(machine, server)
        (entry,) = source.list()
        server.files["SKILL.md"] = TEXT.replace("Grind", "Spill").encode()
        with pytest.raises(SourceRefused, match="digest"):
            source.fetch(entry, ("SKILL.md",), LIMITS)
        # A new listing is a new version, and the old entry no longer fits.
        source.list()
        with pytest.raises(SourceRefused, match="changed since it was listed"):
            source.fetch(entry, ("SKILL.md",), LIMITS)


def test_a_file_that_no_entry_names_is_not_asked_for(machine: Machine) -> None:
    with ScriptedServer().running() as server:
        source = source_of(machine, server)
        (entry,) = source.list()
        server.files["added.md"] = b"new"
        for path in ("added.md", "../tea/SKILL.md", "skill://tea/SKILL.md"):
            with pytest.raises(SourceNotFound):
                source.fetch(entry, (path,), LIMITS)
        assert "resources/read" not in server.methods


def test_an_entry_of_another_server_is_not_read_from_this_one(machine: Machine) -> None:
    theirs = {**FILES, "references/water.md": b"theirs"}
    with ScriptedServer().running() as one, ScriptedServer(theirs).running() as two:
        environment = environment_of(machine, one={"url": one.url}, two={"url": two.url})
        first, second = (McpSource.named(label, environment) for label in ("one", "two"))
        (entry,) = first.list()
        second.list()
        with pytest.raises(SourceRefused, match="mcp:two changed since"):
            second.fetch(entry, ("SKILL.md",), LIMITS)
        assert "resources/read" not in two.methods


def test_skills_get_that_confirms_another_address_is_refused(machine: Machine) -> None:
    other = entry_of(root="skill://tea", frontmatter={**FIELDS, "name": "tea"})
    answers: dict[str, Any] = {"skills__list": lambda _: {"skills": []}, "skills__get": lambda _: {"skill": other}}
    with (
        ScriptedServer(**answers).running() as server,
        pytest.raises(SourceRefused, match="another skill than skill://brew"),
    ):
        source_of(machine, server, "mcp:work/brew").list()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("not-json", ""),
        ("huge", "too-large"),
        ("compressed", "compressed"),
        ("redirect", ""),
    ],
)
def test_answers_that_are_no_answers_are_refused(machine: Machine, damage: str, reason: str) -> None:
    with ScriptedServer().running() as server:
        if damage == "not-json":
            server.raw = lambda data: b"<html>" * 100
        elif damage == "huge":
            server.raw = lambda data: data + b" " * (40 * 1024 * 1024)
        elif damage == "compressed":
            server.headers = {"content-encoding": "gzip"}
            server.raw = gzip.compress
        else:
            server.headers = {"content-type": "text/html", "location": "http://127.0.0.1:1/"}
        with pytest.raises(SkillError, match=f"mcp:work: .*{reason}"):
            source_of(machine, server).list()


@pytest.mark.parametrize("method", ["server/discover", "skills/list", "resources/read"])
def test_a_server_that_hangs_is_left_in_time(machine: Machine, method: str) -> None:
    released = threading.Event()
    limits = SourceLimits(seconds=1.0)

    def wait(asked: str) -> None:
        if asked == method:
            released.wait(30)

    try:
        with ScriptedServer().running() as server:
            server.before = wait
            source = source_of(machine, server, limits=limits)
            with pytest.raises(SourceUnreachable, match="mcp:work: the server did not answer in time"):
                fetched(source)
            released.set()
    finally:
        released.set()


def test_a_command_that_says_nothing_or_nonsense_is_left_in_time(machine: Machine) -> None:
    talker = "import sys,time\nprint('hello\\x1b[2J', flush=True)\ntime.sleep(60)\n"
    for code in ("import time\ntime.sleep(60)\n", talker, "raise SystemExit(3)\n"):
        environment = environment_of(machine, work={"command": [sys.executable, "-c", code]})
        source = McpSource(
            parse_reference("mcp:work", environment), SourceContext(environment, limits=SourceLimits(seconds=1.0))
        )
        with pytest.raises(SourceUnreachable):
            source.list()


# Configuration ------------------------------------------------------------------------------------


def test_a_server_is_named_in_the_users_own_file_only(machine: Machine) -> None:
    table = '[mcp.servers.work]\nurl = "https://evil.example"\n'
    (machine.repo / "skillshelf.toml").write_text(table)
    environment = environment_of(machine)
    with pytest.raises(ConfigurationError, match=r"no MCP server 'work': name it in \[mcp.servers.work\] of"):
        McpSource.named("work", environment)
    for trust in ("all", "ask"):
        shelf = machine.shelf(trust=trust)
        assert shelf.settings.mcp_servers == {}
        (warning,) = [one for one in shelf.catalog.warnings if one.rule == "config-untrusted"]
        assert "mcp.servers.work" in warning.message


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://user:secret@host/mcp", "secret"),
        ("https://host/mcp?token=secret", "secret"),
        ("http://host/mcp", "url"),
        ("http://10.0.0.1/mcp", "url"),
        ("file:///etc/passwd", "url"),
        ("ftp://host/", "url"),
        ("nonsense", "url"),
        ("https://[::1", "url"),
    ],
)
def test_an_address_with_a_secret_or_without_protection_is_refused(machine: Machine, url: str, rule: str) -> None:
    environment = environment_of(machine, work={"url": url})
    with pytest.raises(SourceRefused) as caught:
        McpSource.named("work", environment)
    assert caught.value.rule == rule
    assert "secret@" not in str(caught.value)
    assert "token" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("[mcp.servers.work]\n", "either a `url` or a `command`"),
        ('[mcp.servers.work]\nurl = "https://x"\ncommand = ["y"]\n', "either a `url` or a `command`"),
        ('[mcp.servers.work]\ncommand = "y"\n', "must be a list"),
        ('[mcp.servers.work]\nurl = "https://x"\ntoken = "y"\n', "is not a key of a server"),
        ('[mcp.servers."a/b"]\nurl = "https://x"\n', "has a label"),
        ('[mcp.servers.work]\ncommand = ["y"]\nenv = ["A=B"]\n', "names of variables"),
        ("[mcp]\nservers = 3\n", "is not a key"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(machine: Machine, table: str, reason: str) -> None:
    path = machine.configure(table)
    with pytest.raises(ConfigurationError, match=reason) as caught:
        machine.shelf()
    assert str(caught.value).startswith(f"{path}, line ")


def test_a_command_gets_the_variables_that_are_named_and_no_others(machine: Machine) -> None:
    out = machine.base / "seen.json"
    code = f"import json,os\njson.dump(dict(os.environ), open({str(out)!r}, 'w'))\n"
    machine.env |= {"GIVEN": "yes", "OTHER": "no"}
    environment = environment_of(machine, work={"command": [sys.executable, "-c", code], "env": ["GIVEN", "MISSING"]})
    with pytest.raises(SourceUnreachable):
        McpSource.named("work", environment).list()
    seen = json.loads(out.read_text())
    assert seen["GIVEN"] == "yes"
    assert not {"OTHER", "MISSING"} & set(seen)


def test_offline_no_server_is_asked(machine: Machine) -> None:
    with ScriptedServer().running() as server:
        with pytest.raises(SourceUnreachable, match="offline"):
            source_of(machine, server, offline=True).list()
        assert server.log == []


def test_without_the_extra_one_line_says_what_to_install(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    source = McpSource.named("work", environment_of(machine, work={"url": "https://host/mcp"}))
    monkeypatch.setattr("skillshelf.install.mcp_source.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"mcp:work needs the extra: pip install 'skillshelf\[mcp\]'"):
        source.list()


# The conformance suite ----------------------------------------------------------------------------

CLIENT = Path(__file__).with_name("mcp_skills_client.py")
SCENARIOS = ("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter")


def test_the_program_for_the_conformance_suite_loads_from_a_healthy_server(machine: Machine) -> None:
    """A client that does nothing passes the four scenarios, too: this is the control that it does something."""
    with ScriptedServer().running() as server:
        done = run_program([sys.executable, str(CLIENT), server.url], scenario="sep-2640-client-verify-digest")
        assert json.loads(done) == {
            "listed": ["brew"],
            "errors": [],
            "brew": "loaded",
            "brew/assets/bean.bin": "read",
            "brew/references/water.md": "read",
        }
        server.log.clear()
        run_program([sys.executable, str(CLIENT), server.url], scenario="sep-2640-client-no-prefetch")
        assert server.methods == ["skills/list"]


@pytest.mark.skipif(
    "SKILLSHELF_MCP_CONFORMANCE" not in os.environ,
    reason="needs SKILLSHELF_MCP_CONFORMANCE: node and dist/index.js of @modelcontextprotocol/conformance",
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_client_scenarios_of_the_conformance_suite_pass(tmp_path: Path, scenario: str) -> None:
    suite = os.environ["SKILLSHELF_MCP_CONFORMANCE"].split()
    words = ["client", "--command", f"{sys.executable} {CLIENT}", "--scenario", f"sep-2640-client-{scenario}"]
    run_program([*suite, *words, "--spec-version", "2026-07-28", "--force", "-o", str(tmp_path)])
    (checks,) = tmp_path.glob("*/checks.json")
    assert [check["status"] for check in json.loads(checks.read_text())] == ["SUCCESS"]
    (printed,) = tmp_path.glob("*/stdout.txt")
    happened = json.loads(printed.read_text())
    assert happened["listed"] == ["pdf-processing"]
    if scenario != "no-prefetch":
        assert scenario.removeprefix("verify-") in happened["pdf-processing"], "it was refused for this reason"


def run_program(words: list[str], scenario: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "MCP_CONFORMANCE_SCENARIO": scenario}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# The obligations of a host ------------------------------------------------------------------------

_LIVE = "tests/install/test_live_sources.py"
_HERE = "tests/install/test_mcp_source.py"

HOST_OBLIGATIONS: dict[str, tuple[str, str]] = {
    "H1": (_HERE, "test_an_entry_of_another_server_is_not_read_from_this_one"),
    "H2": (_LIVE, "test_a_skill_of_a_source_says_where_it_comes_from"),
    "H3": (_HERE, "test_live_nothing_is_read_before_a_load_and_then_one_file_at_a_time"),
    "H4": ("reason", "an address is a text that goes to its own server; no part of it is ever a host to connect to"),
    "H5": (_HERE, "test_skills_get_that_confirms_another_address_is_refused"),
    "H6": (_HERE, "test_a_hostile_server_gives_nothing_and_the_reason_is_said"),
    "H7": (_HERE, "test_a_skill_that_the_listing_leaves_out_is_confirmed_by_its_address"),
    "H8": (_LIVE, "test_a_local_skill_keeps_its_name_and_stays_unambiguous"),
    "H9": (_HERE, "test_a_hostile_server_gives_nothing_and_the_reason_is_said"),
    "H10": (_HERE, "test_live_an_entry_that_cannot_be_used_is_said_and_others_go_on"),
    "H11": (_HERE, "test_a_hostile_server_gives_nothing_and_the_reason_is_said"),
    "H12": (_HERE, "test_a_hostile_server_gives_nothing_and_the_reason_is_said"),
    "H13": (_HERE, "test_live_a_change_at_the_server_is_refused_until_it_is_listed_and_approved_again"),
    "H14": (_LIVE, "test_a_version_in_use_stays_what_it_was_after_the_source_changed"),
    "H15": (_HERE, "test_a_file_that_no_entry_names_is_not_asked_for"),
    "H16": (_HERE, "test_a_hostile_server_gives_nothing_and_the_reason_is_said"),
    "H17": (_HERE, "test_live_nothing_is_read_before_a_load_and_then_one_file_at_a_time"),
    "H18": (_LIVE, "test_a_file_of_the_store_that_changed_is_never_handed_out"),
    "H19": (_LIVE, "test_an_approved_skill_that_was_fetched_whole_comes_from_the_store"),
    "H20": (_LIVE, "test_no_rule_of_trust_covers_a_skill_of_a_source"),
    "H21": (_LIVE, "test_no_rule_of_trust_covers_a_skill_of_a_source"),
    "H22": (_LIVE, "test_nested_skills_are_files_and_their_frontmatter_is_inert"),
    "H23": ("reason", "directories are listed from the entry; `resources/directory/read` is never called"),
    "H24": (_LIVE, "test_a_source_that_lists_nonsense_is_one_error_and_others_go_on"),
    "H25": (_LIVE, "test_every_profile_says_the_origin_where_the_text_begins"),
    "H26": (_LIVE, "test_a_script_of_a_source_is_denied_unless_the_skill_is_approved"),
    "H27": (_LIVE, "test_only_files_of_the_skill_can_be_read"),
    "H28": (_LIVE, "test_allowed_tools_of_a_source_neither_grant_nor_narrow"),
    "H29": (_LIVE, "test_the_settings_of_the_user_hold_for_skills_of_sources_too"),
    "H30": (_LIVE, "test_nested_skills_are_files_and_their_frontmatter_is_inert"),
    "H31": (_LIVE, "test_an_answer_to_remember_is_an_approval_of_these_files_from_this_source"),
    "H32": (_LIVE, "test_any_change_of_the_files_takes_the_approval_back"),
    "H33": ("reason", "no key of a frontmatter's `metadata` means anything to us"),
}
"""For each obligation of a host in the skills extension the test that shows it, or the reason why there is none."""


def test_every_obligation_of_a_host_has_a_test_or_a_reason() -> None:
    assert list(HOST_OBLIGATIONS) == [f"H{number}" for number in range(1, 34)]
    tests = Path(__file__).resolve().parent
    for obligation, (file, test) in HOST_OBLIGATIONS.items():
        if file == "reason":
            assert test, obligation
        else:
            assert f"def {test}(" in (tests / Path(file).name).read_text(), obligation


def test_the_name_that_a_server_gives_itself_counts_for_nothing(machine: Machine) -> None:
    capabilities: dict[str, Any] = {"resources": {}, "extensions": {EXTENSION: {}}}
    named = _discover(capabilities)
    inner = named["server__discover"]
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "other", "version": "1"}}
    named["server__discover"] = lambda params: {**inner(params), "_meta": meta}
    with ScriptedServer(**named).running() as server:
        (entry,) = source_of(machine, server).list()
        assert isinstance(entry, SourceEntry)
        assert source_of(machine, server).label == "mcp:work"


# Installing ---------------------------------------------------------------------------------------


def test_a_skill_of_a_server_is_installed_locked_and_restored_without_the_server(machine: Machine) -> None:
    with ScriptedServer().running() as server:
        environment_of(machine, work={"url": server.url})
        added = machine.run("add", "mcp:work/brew", "--yes")
        assert added.returncode == 0, added.stdout + added.stderr
        lock = json.loads((machine.repo / "skillshelf.lock").read_text())["skills"]["brew"]
        assert (lock["source"], lock["path"], lock["tree"]) == ("mcp:work/brew", "", TREE)
        installed = machine.repo / ".agents/skills/brew"
        assert {path: (installed / path).read_bytes() for path in FILES} == FILES
        asked = len(server.log)
        (installed / "references/water.md").unlink()
        restored = machine.run("update", "brew", "--restore", "--yes")
        assert restored.returncode == 0, restored.stdout + restored.stderr
        assert (installed / "references/water.md").read_bytes() == b"hot\n"
        assert len(server.log) == asked, "the store has the files"

        server.files["references/water.md"] = b"cold\n"
        outdated = machine.run("outdated")
        assert outdated.returncode == 1, outdated.stdout + outdated.stderr


@pytest.mark.parametrize("case", ["other-bytes", "entry-frontmatter-other", "no-extension", "cursor-loop"])
def test_nothing_is_installed_from_a_hostile_server(machine: Machine, case: str) -> None:
    with ScriptedServer(**HOSTILE[case][0]).running() as server:
        environment_of(machine, work={"url": server.url})
        added = machine.run("add", "mcp:work/brew", "--yes")
        assert added.returncode == 4, added.stdout + added.stderr
        assert "mcp:work" in added.stderr
        assert not (machine.repo / "skillshelf.lock").exists()
        assert not (machine.repo / ".agents").exists()
