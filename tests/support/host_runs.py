"""The commands about hosts, run in this process: what they print, checked against their schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jsonschema import validate
from schemas import SCHEMAS

Run = Callable[..., tuple[int, str, str]]
"""A command to its status, what it printed and what it said on the side."""


def json_output(run: Run, *words: str, schema: str, **options: Any) -> Any:
    """The output of a command with `--json`, checked against its schema."""
    _, out, _ = run(*words, "--json", **options)
    found = json.loads(out)
    validate(found, SCHEMAS[schema])
    return found


def verdicts(run: Run, *words: str, **options: Any) -> dict[str, str]:
    """The verdict of each host on the one file that is meant."""
    (candidate,) = json_output(run, "why", *words, schema="why", **options)["candidates"]
    return {host["host"]: host["verdict"] for host in candidate["hosts"]}
