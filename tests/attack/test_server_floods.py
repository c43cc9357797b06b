"""Floods against the real server over HTTP, with small numbers: good clients are served, and no traceback is printed.

`python tests/support/floods.py` runs them with their full numbers.
"""

from __future__ import annotations

import pytest

pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[mcp]'")
pytest.importorskip("watchfiles", reason="needs the extra: pip install 'skillshelf[mcp]'")

from support.floods import FLOODS, run_flood

pytestmark = [pytest.mark.slow, pytest.mark.heavy]


@pytest.mark.parametrize(
    "name", [name for name in FLOODS if name.endswith(("headers", "bodies", "chunks", "abandoned"))]
)
def test_a_good_client_is_served_during_a_flood(name: str) -> None:
    outcome = run_flood(name, 0.1)

    assert outcome.lost == 0, outcome


@pytest.mark.parametrize("name", ["older-clients", "newer-clients"])
def test_clients_that_come_at_once_are_all_served(name: str) -> None:
    outcome = run_flood(name, 0.06)

    assert outcome.lost == 0, outcome
