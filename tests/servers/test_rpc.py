"""The methods of `skillshelf rpc` and their results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pytest
from schemas import RPC_SCHEMA, SCHEMAS
from support.policies import put
from support.rpcclient import RpcClient, rpc_in_process, rpc_process
from support.trees import SOURCE, Machine, write_skill

import skillshelf
from skillshelf import __version__
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.servers.rpc.methods import METHODS, PARAMETERS, TO_CLIENT

PAGE = Path(__file__).parents[2] / "docs" / "rpc.md"


# The schema itself is checked once, below.
REQUESTS = jsonschema.Draft202012Validator(RPC_SCHEMA)


def request(client: RpcClient, method: str, **params: Any) -> Any:
    """Return the result of a request; request and result are validated against the schema."""
    REQUESTS.validate({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    result = client.ask(method, **params)
    jsonschema.Draft202012Validator(RPC_SCHEMA["$defs"][f"{method} result"]).validate(result)
    return result


# What there is ------------------------------------------------------------------------------------


def test_initialize_returns_name_version_profiles_and_capabilities(machine: Machine) -> None:
    machine.configure("[profiles.lab]\nextends = 'standard'\n")
    with rpc_in_process(machine) as client:
        result = request(client, "initialize")

    assert result == {
        "name": "skillshelf",
        "version": __version__,
        "profiles": [*SYSTEMS, "lab"],
        "capabilities": {
            "supports_skills_list": True,
            "supports_context_inspect": True,
            "supports_sessions": True,
        },
    }


@pytest.mark.req("C-101", "C-103")
def test_the_list_is_what_the_command_prints(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    write_skill(machine.repo / ".agents/skills", "stranger")
    write_skill(machine.repo / ".agents/skills", "broken", "no frontmatter")
    with rpc_in_process(machine) as client:
        listed = request(client, "skills.list")

    assert listed == machine.run_json("list")
    assert [skill["name"] for skill in listed["skills"]] == ["alpha", "stranger"]
    assert [error["path"] for error in listed["errors"]] == [str(machine.repo / ".agents/skills/broken/SKILL.md")]


@pytest.mark.req("C-102", "C-105")
def test_the_catalog_of_each_folder_is_kept_until_a_reload_is_requested(machine: Machine) -> None:
    inner = machine.repo / "inner"
    write_skill(inner / ".agents/skills", "inside")
    write_skill(machine.repo / ".agents/skills", "outside")

    def names(**params: Any) -> list[str]:
        return [skill["name"] for skill in request(client, "skills.list", **params)["skills"]]

    with rpc_in_process(machine) as client:
        assert names() == ["outside"]
        assert names(cwd="inner") == names(cwd=str(inner)) == ["inside", "outside"]
        write_skill(inner / ".agents/skills", "later")
        write_skill(machine.repo / ".agents/skills", "much-later")

        assert names(cwd="inner") == names(cwd="inner", force_reload=False) == ["inside", "outside"]
        assert names(cwd="inner", force_reload=True) == ["inside", "later", "much-later", "outside"]
        assert names(cwd="inner") == ["inside", "later", "much-later", "outside"]
        assert names() == ["outside"]


def test_a_reload_reads_the_configuration_too_and_refreshes_open_sessions(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    with rpc_in_process(machine) as client:
        session = client.open()
        write_skill(machine.home / ".agents/skills", "beta")
        before = client.ask("session.call", session=session, tool="skill_load", arguments={"name": "beta"})
        machine.configure("skills.disabled = ['alpha']\n")

        listed = request(client, "skills.list", force_reload=True)
        after = client.ask("session.call", session=session, tool="skill_load", arguments={"name": "beta"})

    assert [(skill["name"], skill["hidden"]) for skill in listed["skills"]] == [("alpha", "disabled"), ("beta", None)]
    assert (before["error"]["code"], after["ok"]) == ("not_found", True)


@pytest.mark.req("C-104", "C-106", "C-117")
def test_the_state_has_the_catalog_and_the_versions_in_the_context_of_a_session(machine: Machine) -> None:
    paths = {name: write_skill(machine.home / ".agents/skills", name) for name in ("alpha", "beta", "gamma", "delta")}
    for number, path in enumerate(paths.values()):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    def versions(client: RpcClient, **given: Any) -> list[tuple[str, int]]:
        found = request(client, "context.inspect", include_skills=True, **given)["skills"]["loaded_versions"]
        return [(Path(entry["path"]).parent.name, entry["mtime_ms"]) for entry in found]

    with rpc_in_process(machine) as client:
        nothing = [request(client, "context.inspect"), request(client, "context.inspect", include_skills=False)]
        before = request(client, "context.inspect", include_skills=True)["skills"]
        # Outside of any session: it is in no context that this server knows.
        client.ask("skills.load", name="alpha")
        session, other = client.open(), client.open()
        client.ask("session.call", session=session, tool="skill_load", arguments={"name": "beta"})
        os.utime(paths["beta"], (1_700_000_500, 1_700_000_500))
        client.ask("session.call", session=session, tool="skill_load", arguments={"name": "beta"})
        client.ask("session.call", session=session, tool="skill_load", arguments={"name": "nonsense"})
        client.ask("session.call", session=other, tool="skill_load", arguments={"name": "gamma"})
        loaded = [versions(client, session=session), versions(client, session=other), versions(client)]
        client.ask("session.compact", session=session)
        compacted = [versions(client, session=session), versions(client, session=other), versions(client)]
        catalog = client.ask("skills.list")

    beta, gamma = ("beta", 1_700_000_500_000), ("gamma", 1_700_000_002_000)
    assert loaded == [[beta], [gamma], [beta, gamma]]
    assert compacted == [[], [gamma], [gamma]]
    assert nothing == [{}, {}]
    assert before == {
        "enabled": True,
        "root_dir": str(machine.repo),
        "working_dir": str(machine.repo),
        "catalog": catalog,
        "loaded_versions": [],
    }


@pytest.mark.req("C-104")
def test_the_state_is_that_of_a_folder_or_of_a_session_with_its_own_folder(machine: Machine) -> None:
    write_skill(machine.repo / "sub/.agents/skills", "inner")
    with rpc_in_process(machine) as client:
        session = client.open(cwd="sub")
        by_cwd = request(client, "context.inspect", include_skills=True, cwd="sub")["skills"]
        by_session = request(client, "context.inspect", include_skills=True, session=session)["skills"]
        both = client.fail("context.inspect", session=session, cwd="sub")
        unknown = client.fail("context.inspect", session="nonsense")

    assert [both[1], unknown[1]] == ["invalid_params", "not_found"]
    assert by_cwd == by_session
    assert by_cwd["working_dir"] == str(machine.repo / "sub")
    assert [skill["name"] for skill in by_cwd["catalog"]["skills"]] == ["inner"]


def test_without_a_session_skills_are_searched_loaded_and_read_as_the_commands_do(machine: Machine) -> None:
    skill = write_skill(machine.home / ".agents/skills", "release-notes").parent
    (skill / "style.md").write_text("Be brief.\n")
    with rpc_in_process(machine) as client:
        found = request(client, "skills.search", query="release", limit=3, scope="user")
        loaded = request(client, "skills.load", name="release-notes")
        again = request(client, "skills.load", path=str(skill))
        read = request(client, "skills.read", uri="skill://release-notes/style.md")

    assert [result["skill"]["name"] for result in found["results"]] == ["release-notes"]
    assert loaded == again == machine.run_json("show", "release-notes")
    assert read == machine.run_json("read", "skill://release-notes/style.md")


@pytest.mark.parametrize("method", ["skills.search", "skills.load", "skills.read"])
def test_a_rule_denies_requests_without_a_session_too(machine: Machine, method: str) -> None:
    write_skill(machine.home / ".agents/skills", "alpha")
    machine.configure("permissions.deny = [{ tool = 'skill_load' }, { tool = 'skill_search' }]\n")
    params = {"skills.search": {"query": "alpha"}, "skills.load": {"name": "alpha"}}
    with rpc_in_process(machine) as client:
        code = client.fail(method, **params.get(method, {"uri": "skill://alpha/SKILL.md"}))

    assert code == (-32000, "denied")


@pytest.mark.slow
def test_untrusted_skills_are_listed_and_hidden_unless_the_run_trusts_them(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "stranger")
    with rpc_in_process(machine) as client:
        assert client.ask("skills.list")["skills"][0]["hidden"] == "untrusted"
        assert client.ask("skills.search", query="stranger")["results"] == []
        assert client.ask("session.system_prompt", session=client.open())["text"] == ""
        client.confirm = lambda question: False
        assert client.fail("skills.load", name="stranger") == (-32000, "denied")
    with rpc_process(machine, "--trust") as client:
        assert [result["skill"]["name"] for result in client.ask("skills.search", query="stranger")["results"]] == [
            "stranger"
        ]
        assert client.ask("skills.load", name="stranger")["skill"]["name"] == "stranger"


@pytest.mark.slow
def test_standard_error_says_how_many_skills_are_hidden(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "stranger")

    done = machine.run("rpc", input='{"jsonrpc":"2.0","id":1,"method":"skills.list"}\n')

    assert done.stderr == (
        "skillshelf: 1 skill of this project is hidden from models because the folder is not trusted; "
        f"allow once: --trust, always: skillshelf trust {machine.repo}\n"
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]


# A session ----------------------------------------------------------------------------------------


@pytest.mark.req("K-13")
def test_a_session_does_what_one_in_python_does(machine: Machine) -> None:
    skill = put(machine.home / ".agents/skills", "deploy", "allowed-tools: Read\n")
    put(machine.home / ".agents/skills", "review")
    here = machine.shelf(trust="ask").session(confirm=lambda *question: False)
    with rpc_in_process(machine) as client:
        name = client.open()

        def same(method: str, expected: Any, **params: Any) -> None:
            assert request(client, method, session=name, **params) == json.loads(json.dumps(expected))

        same("session.system_prompt", {"text": here.system_prompt("Base.", "Ctx.", ["x"])}, base="Base.",
             agents_context="Ctx.", tools=["x"])  # fmt: skip
        same("session.tools", {"tools": [tool.to_dict() for tool in here.tools()]})
        result = here.call("skill_load", {"name": "deploy"})
        same("session.call", result._asdict(), tool="skill_load", arguments={"name": "deploy"})
        wrong = here.call("skill_load", {"nam": 1})
        same("session.call", {**wrong._asdict(), "error": wrong.error and wrong.error._asdict()}, tool="skill_load",
             arguments={"nam": 1})  # fmt: skip
        same("session.command", here.command("/skill:review v2")._asdict(), text="/skill:review v2")  # type: ignore[union-attr]
        same("session.command", None, text="hello")
        same("session.mentions", here.resolve_mentions("use $deploy, not $deplo")._asdict(), text="use $deploy, not $deplo")  # fmt: skip  # noqa: E501
        same("session.decide", here.decide("Bash", {"command": "ls"})._asdict(), tool="Bash", arguments={"command": "ls"})  # fmt: skip  # noqa: E501
        same("session.recall", {"text": here.recall(result.data["ref"])}, ref=result.data["ref"])
        here.deactivate("deploy")
        same("session.deactivate", {"active": ["review"]}, name="deploy")
        loaded = here.activate("deploy")
        same("session.activate", {"skill": loaded.skill.to_dict(), "digest": loaded.digest,
             "active": ["deploy", "review"]}, path=str(skill))  # fmt: skip
        here.compact()
        same("session.compact", {})
        same("session.snapshot", here.snapshot())
        same("session.close", {"journal_problem": None})
        assert client.fail("session.tools", session=name) == (-32000, "not_found")


def test_a_snapshot_is_restored_and_says_what_changed(machine: Machine) -> None:
    path = write_skill(machine.repo / "skills", "deploy")
    with rpc_in_process(machine, started={"trust": "all"}) as client:
        name = client.open(profile="mycodeagent")
        client.ask("session.call", session=name, tool="Skill", arguments={"name": "deploy"})
        snapshot = client.ask("session.snapshot", session=name)
        same = request(client, "session.restore", snapshot=snapshot)
        path.write_text(path.read_text() + "More.\n")
        other = request(client, "session.restore", snapshot=snapshot)
        again = client.ask("session.snapshot", session=same["session"])
        refused = client.fail("session.restore", snapshot={**snapshot, "loaded": [{"path": 1}]})
        elsewhere = client.fail("session.restore", snapshot={**snapshot, "profile": "nonsense"})

    assert same == {"session": "s2", "changes": []}
    assert other == {"session": "s3", "changes": [f"updated: deploy ({path})"]}
    assert again == snapshot
    assert refused == elsewhere == (-32602, "invalid_params")


def test_a_policy_and_preloaded_skills_are_those_of_the_session(machine: Machine) -> None:
    put(machine.home / ".agents/skills", "deploy")
    with rpc_in_process(machine) as client:
        name = client.open(policy={"deny": [{"tool": "skill_run"}]}, preload=["deploy"])
        verdict = client.ask("session.decide", session=name, tool="skill_run", arguments={"name": "deploy"})["verdict"]
        text = client.ask("session.system_prompt", session=name)["text"]
        wrong_policy = client.fail("session.open", policy={"allow": 5})
        wrong_name = client.start("session.open", preload=["nonsense"])()["error"]

    assert verdict == "deny"
    assert "Body of deploy." in text
    assert wrong_policy == (-32602, "invalid_params")
    assert wrong_name["message"] == "Unknown skill: nonsense. Available: deploy"


@pytest.mark.slow
def test_events_come_before_the_answer_and_are_those_of_the_journal(machine: Machine) -> None:
    put(machine.home / ".agents/skills", "deploy")
    own = machine.base / "own.jsonl"
    with rpc_process(machine, "--journal", str(machine.base / "all.jsonl")) as client:
        name = client.open(journal=str(own))
        client.ask("session.call", session=name, tool="skill_load", arguments={"name": "deploy"})
        seen = [event["type"] for event in client.events]
        client.ask("session.close", session=name)
        client.ask("skills.load", name="deploy")
        left_open = client.open()

    received = {key: [event for event in client.events if event["session"] == key] for key in (name, "r1", left_open)}
    assert seen[-1] == "tool_ended"
    assert received[name] == without_frame(own, name)
    assert received["r1"] + received[left_open] == [
        *without_frame(machine.base / "all.jsonl", "r1")[: len(received["r1"])],
        *without_frame(machine.base / "all.jsonl", left_open)[len(received["r1"]) :],
    ]
    for words in (["replay", str(own)], ["replay", str(machine.base / "all.jsonl")], ["verify", str(own)]):
        assert machine.run("log", *words).returncode == 0


@pytest.mark.parametrize("profile", ["standard", "codelia", "swiftagent", "rip", "omp"])
def test_requests_without_a_session_can_be_replayed_in_every_profile(machine: Machine, profile: str) -> None:
    root = {"swiftagent": ".agent/skills", "omp": ".omp/agent/skills"}.get(profile, ".agents/skills")
    path = write_skill(machine.home / root, "alpha")
    journal = machine.base / "run.jsonl"
    with rpc_in_process(machine, started={"profile": profile, "journal": str(journal)}) as client:
        for method, params in (
            ("skills.search", {"query": "alpha", "limit": 2}),
            ("skills.load", {"name": "alpha"}),
            ("skills.load", {"path": str(path)}),
            ("skills.read", {"uri": "skill://alpha/SKILL.md"}),
            ("skills.read", {"uri": "skill://alpha/../x"}),
            ("skills.load", {"name": "nonsense"}),
        ):
            client.start(method, **params)()
        session = client.open()
        client.ask("session.call", session=session, tool="skill_read", arguments={"uri": "skill://alpha/SKILL.md"})
        client.ask("session.call", session=session, tool="skill_load", arguments={"path": str(path)})

    done = machine.run("log", "replay", str(journal))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def without_frame(journal: Path, session: str) -> list[dict[str, Any]]:
    """Return the events of a journal as a client receives them."""
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    # The list of a catalog is in the journal only.
    frame = ("seq", "ts_ms", "prev", "sum", "listed")
    return [{**{k: v for k, v in record.items() if k not in frame}, "session": session} for record in records]


@pytest.mark.slow
def test_events_missing_from_a_journal_are_reported_at_the_start_and_at_the_end(machine: Machine) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "session.open", "params": {"journal": "."}},
        {"jsonrpc": "2.0", "id": 2, "method": "session.close", "params": {"session": "s1"}},
    ]

    done = machine.run("rpc", input="\n".join(map(json.dumps, lines)))

    answers = [json.loads(line) for line in done.stdout.splitlines() if '"id"' in line]
    problem = f"events are not in the journal: {machine.repo}: it is a folder, not a file"
    assert answers[1]["result"] == {"journal_problem": f"3 {problem}"}
    assert done.stderr == f"skillshelf: 2 {problem}\nskillshelf: 3 {problem}\n"


# The tables ---------------------------------------------------------------------------------------


def test_every_method_has_a_handler_a_schema_and_a_section_in_the_documentation() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert all(method.handler for method in METHODS.values())
    assert re.findall(r"^### `([\w.]+)`$", page, re.MULTILINE) == [*METHODS, *TO_CLIENT]
    assert [request["title"] for request in RPC_SCHEMA["anyOf"]] == list(METHODS)
    for name, method in {**METHODS, **TO_CLIENT}.items():
        assert len(method.help.split()) > 3, name
    members = {key for method in METHODS.values() for key in get_type_hints(method.params)}
    assert members | set(get_type_hints(TO_CLIENT["confirm"].params)) == set(PARAMETERS)


def test_the_shipped_schema_matches_the_method_table() -> None:
    shipped = Path(skillshelf.__file__).parent / "json_schemas/rpc.json"

    assert json.loads(shipped.read_text(encoding="utf-8")) == RPC_SCHEMA
    jsonschema.Draft202012Validator.check_schema(RPC_SCHEMA)
    assert SCHEMAS["catalog"]["properties"] == RPC_SCHEMA["$defs"]["skills.list result"]["properties"]


# Nothing remote -----------------------------------------------------------------------------------

WATCHED = """
import os, sys
def hook(event, arguments):
    if event.partition(".")[0] in ("socket", "urllib", "http", "ftplib", "subprocess"):
        os.write(2, f"{event} {arguments}\\n".encode())
sys.addaudithook(hook)
from skillshelf.cli.main import main
code = main(sys.argv[1:])
network = {"socket", "ssl", "http.client", "urllib.request", "asyncio"} & set(sys.modules)
sys.exit(f"imported {network}" if network else code)
"""


@pytest.mark.slow
@pytest.mark.req("C-08", "C-110", "S-07", "S-127")
def test_nothing_is_searched_for_or_fetched_from_a_remote_place(machine: Machine) -> None:
    write_skill(machine.home / ".agents/skills", "alpha", "---\nname: alpha\ndescription: https://a.example/x\n---\nB")
    address = "https://skills.example/alpha/SKILL.md"
    call = {"session": "s1", "tool": "skill_load"}
    requests = [
        ("skills.list", {"force_reload": True}),
        ("skills.list", {"cwd": address}),
        ("skills.search", {"query": address}),
        ("skills.load", {"name": address}),
        ("skills.load", {"path": address}),
        ("skills.read", {"uri": address}),
        ("skills.load", {"name": "alpha"}),
        ("session.open", {}),
        ("session.call", {**call, "arguments": {"name": "nobody-has-this"}}),
        ("session.call", {**call, "arguments": {"path": address}}),
        ("session.command", {"session": "s1", "text": f"/skill:{address}"}),
        ("session.mentions", {"session": "s1", "text": "$nobody-has-this"}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params})
        for n, (method, params) in enumerate(requests)
    ]

    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "rpc", "--home", str(machine.home)],
        cwd=machine.repo,
        env={"PYTHONPATH": SOURCE, "HOME": "/nonexistent"},
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=60,
    )

    messages = [json.loads(line) for line in done.stdout.splitlines()]
    answers = {message["id"]: "result" in message for message in messages if "id" in message}
    assert (done.returncode, done.stderr) == (0, "")
    assert [answers[n] for n in range(12)] == [True, False, True, False, False, False, *[True] * 6]
