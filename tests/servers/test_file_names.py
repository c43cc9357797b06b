"""A file whose name is not UTF-8 has one address on every surface, and an address with a slash at its end none."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.mcps import INVALID_PARAMS, ask, client_of, code_of, run, text_of
from support.rpcclient import rpc_in_process
from support.trees import Machine, write_skill

import skillshelf

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that stores any bytes")

FOREIGN, LOOKALIKE = "skill://alpha/not-%FF.txt", "skill://alpha/not-%25FF.txt"
"""The addresses of a file whose name is not UTF-8, and of one whose name looks like that address."""


@pytest.fixture
def folder(machine: Machine) -> Path:
    """The folder of a skill with both files."""
    folder = write_skill(machine.home / ".agents/skills", "alpha").parent
    (folder / os.fsdecode(b"not-\xff.txt")).write_text("foreign\n")
    (folder / "not-%FF.txt").write_text("lookalike\n")
    return folder


def test_python_tools_and_commands_read_both_files_by_their_addresses(machine: Machine, folder: Path) -> None:
    shelf = machine.shelf()
    session = shelf.session()

    for uri, text in ((FOREIGN, "foreign\n"), (LOOKALIKE, "lookalike\n")):
        assert shelf.read(uri).content == text
        assert session.call("skill_read", {"uri": uri}).text == text
        assert machine.run("read", uri).stdout == text
        assert machine.run_json("read", uri)["content"] == text


def test_a_load_lists_both_files_so_that_they_can_be_told_apart(machine: Machine, folder: Path) -> None:
    loaded = machine.shelf().load("alpha")

    assert loaded.files == ("not-%25FF.txt", "not-%FF.txt")
    shown = machine.shelf().session().call("skill_load", {"name": "alpha"}).text
    assert "not-%FF.txt" in shown
    assert "not-%25FF.txt" in shown
    assert machine.run_json("show", "alpha")["files"] == ["not-%25FF.txt", "not-%FF.txt"]
    assert machine.shelf().read("skill://alpha").content == (folder / "SKILL.md").read_text()


def test_rpc_reads_both_files(machine: Machine, folder: Path) -> None:
    with rpc_in_process(machine) as client:
        assert client.ask("skills.read", uri=FOREIGN)["content"] == "foreign\n"
        assert client.ask("skills.read", uri=LOOKALIKE)["content"] == "lookalike\n"


def test_mcp_publishes_both_files_with_digests_and_reads_them(machine: Machine, folder: Path) -> None:
    (folder / os.fsdecode(b"sub-\xfe")).mkdir()
    (folder / os.fsdecode(b"sub-\xfe/deep.md")).write_text("deep\n")

    async def check() -> None:
        async with client_of(machine) as client:
            entry = (await ask(client, "skills/get", uri="skill://alpha/SKILL.md"))["skill"]
            children = (await ask(client, "resources/directory/read", uri="skill://alpha"))["resources"]
            below = (await ask(client, "resources/directory/read", uri="skill://alpha/sub-%FE"))["resources"]
            texts = [await _content(client, uri) for uri in (FOREIGN, LOOKALIKE, "skill://alpha/sub-%FE/deep.md")]
            by_tool = await text_of(client, "skill_read", uri=FOREIGN)
            paths: Any = await client.complete(_template(), {"name": "path", "value": "not"}, {"name": "alpha"})

        assert {FOREIGN, LOOKALIKE, "skill://alpha/sub-%FE/deep.md"} < {file["uri"] for file in entry["resources"]}
        assert {child["name"] for child in children} == {"SKILL.md", "not-%25FF.txt", "not-%FF.txt", "sub-%FE"}
        assert [child["uri"] for child in below] == ["skill://alpha/sub-%FE/deep.md"]
        assert (texts, by_tool) == (["foreign\n", "lookalike\n", "deep\n"], "foreign\n")
        assert paths.completion.values == ["not-%25FF.txt", "not-%FF.txt"]

    run(check)


async def _content(client: Any, uri: str) -> str:
    return str((await ask(client, "resources/read", uri=uri))["contents"][0]["text"])


def _template() -> Any:
    import mcp_types as types

    return types.ResourceTemplateReference(uri="skill://{name}/{+path}")


def test_check_names_files_whose_names_are_not_utf_8_or_have_no_address(machine: Machine, folder: Path) -> None:
    (folder / "scripts").mkdir()
    (folder / os.fsdecode(b"scripts/run-\xff.sh")).write_text("echo\n")
    (folder / "back\\slash.md").write_text("x\n")

    found = json.loads(machine.run("check", str(folder), "--json").stdout)["findings"]

    named = {
        (one["path"].removeprefix(f"{folder}/"), one["severity"])
        for one in found
        if one["rule"] == "file-name-encoding"
    }
    assert named == {
        ("back\\slash.md", "warning"),
        ("not-%FF.txt", "warning"),
        ("scripts/run-%FF.sh", "warning"),
    }


def test_check_follows_links_to_files_whose_names_are_not_utf_8(machine: Machine, folder: Path) -> None:
    page = folder / os.fsdecode(b"page-\xfe.md")
    page.write_text("[gone](gone-%FD.txt) [back](not-%FF.txt)\n")
    with (folder / "SKILL.md").open("a") as skill:
        skill.write("[a](not-%FF.txt) [b](not-%25FF.txt) [c](page-%FE.md) [d](lost-%FF.txt)\n")

    done = machine.run("check", str(folder), "--json")
    found = [one for one in json.loads(done.stdout)["findings"] if one["rule"] == "reference-missing"]

    assert [(one["path"].removeprefix(f"{folder}/"), one["message"]) for one in found] == [
        ("SKILL.md", "lost-%FF.txt does not exist"),
        ("page-%FE.md", "gone-%FD.txt does not exist"),
    ]
    assert machine.run("check", str(folder)).stderr == ""


@pytest.mark.parametrize("path", ["SKILL.md/", "not-%FF.txt/", "inner/SKILL.md/", "other.md/"])
def test_a_file_address_with_a_slash_at_its_end_is_refused_alike_everywhere(
    machine: Machine, folder: Path, path: str
) -> None:
    write_skill(folder, "inner")
    (folder / "other.md").symlink_to("SKILL.md")
    uri = f"skill://alpha/{path}"

    with pytest.raises(skillshelf.PathEscape):
        machine.shelf().read(uri)
    result = machine.shelf().session().call("skill_read", {"uri": uri})
    assert result.error is not None
    assert result.error.code == "invalid_params"
    done = machine.run("read", uri)
    assert (done.returncode, done.stdout) == (2, "")
    with rpc_in_process(machine) as client:
        assert client.start("skills.read", uri=uri)()["error"]["data"]["code"] == "invalid_params"

    async def check() -> None:
        async with client_of(machine) as client:
            assert await code_of(client, "resources/read", uri=uri) == INVALID_PARAMS
            called = await client.call_tool("skill_read", {"uri": uri})
            assert called.is_error

    run(check)
