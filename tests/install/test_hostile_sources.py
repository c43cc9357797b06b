"""All hostile sources together: how many there are, and that a refusal by the command changes nothing on the disk."""

from __future__ import annotations

from collections.abc import Sized

import hostile_archives
import pytest
import test_hostile_repositories
import test_live_sources
import test_mcp_source
from hostile_sites import HOSTILE_REGISTRIES, HOSTILE_SITES
from support.host_runs import Run
from support.installs import everything, upstream
from support.trees import Machine

TABLES: dict[str, Sized] = {
    "archives": hostile_archives.HOSTILE,
    "sites": HOSTILE_SITES,
    "registries": HOSTILE_REGISTRIES,
    "files in git repositories": test_hostile_repositories.FILES,
    "objects of git repositories": test_hostile_repositories.COMMITS,
    "servers that do not speak git": test_hostile_repositories.SERVERS,
    "folders": test_hostile_repositories.FOLDERS,
    "MCP servers": test_mcp_source.HOSTILE,
    "lists of sources of others": test_live_sources.HOSTILE_LISTS,
    "answers of sources of others": test_live_sources.HOSTILE_FETCHES,
}


def test_there_are_at_least_120_hostile_sources_of_every_kind_together() -> None:
    counts = {kind: len(table) for kind, table in TABLES.items()}
    print(sum(counts.values()), counts)

    assert min(counts.values()) > 0
    assert sum(counts.values()) >= 120


@pytest.mark.slow
def test_a_hostile_archive_that_is_added_changes_nothing_on_the_disk(machine: Machine, run: Run) -> None:
    upstream(machine, "docx")
    assert run("add", "../up/docx", "--yes")[0] == 0
    wrong = []
    for row in hostile_archives.HOSTILE:
        file = machine.base / f"up/hostile.{'tar.gz' if row.kind == 'tar.gz' else row.kind}"
        file.write_bytes(row.make())
        before = everything(machine.base)
        status, _, err = run("add", f"../up/{file.name}", "--skill", "*", "--yes")
        if status != 4 or everything(machine.base) != before or "\x1b" in err:
            wrong.append((row.name, status, err[:200]))
        file.unlink()

    assert wrong == []
