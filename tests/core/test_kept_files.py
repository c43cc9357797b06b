"""Every file that skillshelf writes is in the table of kept files, with the version that the code writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from support.mcps import HELLO
from support.needs import needs_sandbox, require
from support.published_servers import fetched, packed, served_process, token_for
from support.trees import SOURCE, Machine, write_skill
from support.waiting import wait_for

from skillshelf.catalog.cache import CACHE_FORMAT
from skillshelf.catalog.lock import LOCK_VERSION
from skillshelf.catalog.packed_file import PACKED_FORMAT
from skillshelf.catalog.store import STORE_VERSION
from skillshelf.cli.chat_input import HISTORY_VERSION, ChatHistory
from skillshelf.config.approvals import APPROVALS_VERSION
from skillshelf.config.settings import CONFIG_VERSION
from skillshelf.core.environment import Environment, make_environment
from skillshelf.core.kept_files import KEPT_FILES, KeptPlace, kept_folders, known_file
from skillshelf.hosts.link_records import RECORDS_VERSION
from skillshelf.install.generation import GENERATION_VERSION
from skillshelf.install.server_account import SERVERS_VERSION
from skillshelf.install.staged_change import PENDING_VERSION
from skillshelf.journal.push import STREAM_VERSION
from skillshelf.search.index import FORMAT
from skillshelf.search.vector_cache import VECTOR_FORMAT
from skillshelf.servers.team.migrations import VERSION

VERSIONS = {row.name: row.version for row in KEPT_FILES}


def test_the_versions_of_the_table_are_those_that_the_code_writes() -> None:
    assert VERSIONS["configuration"] == CONFIG_VERSION
    assert VERSIONS["approvals"] == APPROVALS_VERSION
    assert VERSIONS["record of links"] == RECORDS_VERSION
    assert VERSIONS["chat history"] == HISTORY_VERSION
    assert VERSIONS["cache"] == CACHE_FORMAT
    assert VERSIONS["embeddings"] == VECTOR_FORMAT
    assert VERSIONS["packed catalogs"] == PACKED_FORMAT
    assert VERSIONS["search index"] == FORMAT
    assert VERSIONS["store"] == STORE_VERSION
    assert VERSIONS["generations"] == GENERATION_VERSION
    assert VERSIONS["pending change"] == PENDING_VERSION
    assert VERSIONS["team database"] == VERSION
    assert VERSIONS["servers"] == SERVERS_VERSION
    assert VERSIONS["stream of a journal"] == STREAM_VERSION
    assert VERSIONS["lock of installed skills"] == VERSIONS["wishes and lock of a project"] == LOCK_VERSION


def test_the_version_of_a_site_is_that_of_the_table() -> None:
    require("starlette")
    from skillshelf.servers.web.site import SITE_VERSION

    assert VERSIONS["record of a site"] == SITE_VERSION


def test_a_file_that_cannot_be_made_again_is_migrated_and_never_only_made_again() -> None:
    assert {row.name for row in KEPT_FILES if row.when_older == "made again"} == {
        *("cache", "embeddings", "packed catalogs", "search index")
    }


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("cache", "packed/notes.txt"),
        ("cache", "search/x/seal"),
        ("cache", "skills.sqlite3.bak"),
        ("cache", "embeddings.sqlite3.bak"),
        ("cache", f"search/{'a' * 24}/index/deep/file"),
        ("state", "notes"),
        ("config", "config.toml.orig"),
        ("config", "config.toml\n"),
    ],
)
def test_other_names_are_not_ours(place: KeptPlace, path: str) -> None:
    assert known_file(place, path) is None


def test_the_folders_of_a_home_that_is_not_there_are_missing(machine: Machine) -> None:
    environment = make_environment(str(machine.repo), str(machine.home), {})

    assert [(folder.place, folder.exists) for folder in kept_folders(environment)] == [
        *(("cache", False), ("data", False), ("state", False), ("config", False))
    ]


def test_the_history_of_a_chat_is_known(machine: Machine) -> None:
    environment = make_environment(str(machine.repo), str(machine.home), {})
    ChatHistory(environment).add("hello")

    (state,) = (folder for folder in kept_folders(environment) if folder.place == "state")
    assert [(found.relative, found.problem) for found in state.removable] == [
        ("chat-history.json", ""),
        ("chat-history.json.lock", ""),
    ]


COMMANDS = (
    "",
    "list --all",
    "search deploy",
    "search things",
    "pick --plain",
    "show deploy --journal JOURNAL --keep",
    "show deploy --journal JOURNAL --keep",
    "read skill://deploy/SKILL.md",
    "digest .agents/skills/deploy",
    "why deploy",
    "why deploy --host claude-code --fix",
    "hosts",
    "link deploy --to goose",
    "link deploy --to kiro",
    "sync --to claude-code,kiro --yes",
    "sync --to claude-code,kiro --yes --remove",
    "hosts --set claude-code",
    "prompt --trust",
    "tools --trust",
    "check",
    "check --fix",
    "new fresh --scripts --references --assets",
    "disable deploy",
    "enable deploy",
    "trust .",
    "trust --list",
    "add SOURCE --yes",
    "add SOURCE --user --yes --host claude-code,kiro",
    "verify",
    "update --yes",
    "remove fetched --yes",
    "rollback --yes",
    "gc",
    "profile standard",
    "log show JOURNAL",
    "log verify JOURNAL",
    "log replay JOURNAL",
    "log stats JOURNAL",
    "mcp",
    "rpc",
    "doctor folders cache packed index",
    "link deploy --to kiro --remove",
    "link deploy --to claude-code",
    "inventory",
    "completion bash",
    "help",
)
"""Commands that between them write every kind of file but the folders of a run."""


@pytest.mark.slow
def test_no_command_writes_a_file_that_the_table_does_not_know(machine: Machine) -> None:
    environment = _filled(machine)
    for line in COMMANDS:
        _run(machine, *line.split())
        assert _unknown(machine) == [], f"skillshelf {line}"

    kinds = {
        (folder.place, found.row.name) for folder in kept_folders(environment) for found in folder.files if found.row
    }
    assert kinds >= {("cache", "search index"), ("config", "configuration"), ("config", "configuration lock")}
    assert ("state", "record of links") in kinds
    assert kinds >= {("data", "store"), ("data", "generations"), ("data", "current generation")}
    assert ("config", "lock of installed skills") in kinds


@pytest.mark.slow
def test_no_file_of_a_team_server_is_unknown_to_the_table_also_after_a_kill(machine: Machine) -> None:
    for package in ("mcp", "starlette", "uvicorn", "jwt"):
        require(package)
    home, data = machine.home, machine.home / ".local/share/skillshelf"
    (machine.base / "tmp").mkdir()
    database = f"sqlite:///{data}/team/team.sqlite"
    with served_process(home, database, data / "team/blobs", "--access-log", "none") as (process, url):
        token = token_for(database, "ada", "admin")
        assert fetched(f"{url}/api/v1/releases", token, body=packed("deploy"))[0] == 201
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        request = urllib.request.Request(
            f"{url}/mcp", json.dumps(HELLO).encode(), {**headers, "Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200
        wait_for(lambda: list(data.glob("team/journals/*/default.jsonl")) or None)
        process.kill()
        process.wait(timeout=20)

    below = [path for path in _unknown(machine) if "/.local/" in path]
    left = {
        row["kind"]: row["reason"] for row in json.loads(_run(machine, "uninstall", "--yes", "--json").stdout)["left"]
    }

    assert below == []
    assert {"team blobs", "team sessions", "team database"} <= {*left}
    assert "other file" not in left
    assert list(data.glob("team/journals/*/default.jsonl"))


@pytest.mark.slow
@needs_sandbox
def test_a_run_leaves_nothing_that_the_table_does_not_know(machine: Machine) -> None:
    _filled(machine)
    script = machine.repo / ".agents/skills/deploy/scripts/hello.py"
    script.parent.mkdir()
    script.write_text("#!/usr/bin/env python3\nprint('hello' * 100_000)\nopen('made', 'w').write('x')\n")
    (machine.home / ".config/skillshelf").mkdir(parents=True)
    (machine.home / ".config/skillshelf/config.toml").write_text(
        f'[trust]\nfolders = ["{machine.repo}"]\n[permissions]\nallow = [{{ tool = "skill_run" }}]\n'
    )

    for words in (("run", "deploy", "hello.py"), ("run", "deploy", "hello.py", "--journal", "JOURNAL")):
        done = _run(machine, *words)
        assert done.returncode == 0, done.stderr
        assert _unknown(machine) == []


def _filled(machine: Machine) -> Environment:
    (machine.base / "tmp").mkdir()
    for number in range(70):
        write_skill(machine.home / ".agents/skills", f"skill-{number}")
    write_skill(machine.repo / ".agents/skills", "deploy")
    write_skill(machine.base / "skills", "fetched")
    return make_environment(str(machine.repo), None, {"HOME": str(machine.home)})


def _run(machine: Machine, *words: str) -> subprocess.CompletedProcess[bytes]:
    variables = {"HOME": str(machine.home), "TMPDIR": str(machine.base / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "skillshelf",
            *(_places(machine).get(word, word) for word in words),
        ],
        cwd=machine.repo,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )


def _places(machine: Machine) -> dict[str, str]:
    """What stands for words of the commands."""
    return {"JOURNAL": str(machine.base / "journals/run.jsonl"), "SOURCE": str(machine.base / "skills/fetched")}


def _unknown(machine: Machine) -> list[str]:
    """The files that no row knows; skills that a person made are not ours."""
    places: dict[Path, KeptPlace] = {
        machine.home / ".cache/skillshelf": "cache",
        machine.home / ".local/share/skillshelf": "data",
        machine.home / ".local/state/skillshelf": "state",
        machine.home / ".config/skillshelf": "config",
        machine.base / "tmp": "temporary",
        machine.base / "journals": "chosen",
    }
    found = []
    for path in machine.base.rglob("*"):
        folder = next((folder for folder in places if path.is_relative_to(folder)), None)
        if path.is_dir() and not path.is_symlink():
            continue
        if folder is not None:
            relative = path.relative_to(folder)
            # A folder of the store is one thing, with everything in it.
            is_known = any(known_file(places[folder], str(one)) is not None for one in (relative, *relative.parents))
        elif path.parent == machine.repo:
            is_known = path.name in ("skillshelf.toml", "skillshelf.lock", ".gitattributes")
        else:
            is_known = path.name == ".skillshelf-made.json" or "skills" in path.relative_to(machine.base).parts
        found += [] if is_known else [str(path)]
    return found
