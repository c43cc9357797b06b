"""A frontmatter to the overrides it proposes: another model, other tools, another context.

They are told to the host and recorded. Nothing here, or anywhere else in the package, follows them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from skillshelf.session.policy import Verdict

__all__ = ["PROPOSALS", "Proposal", "proposed"]

Kind = Literal["model", "tools", "context"]

PROPOSALS: Mapping[str, Kind] = {
    "model": "model",
    "provider": "model",
    "effort": "model",
    "tool-defaults": "tools",
    "tool-aliases": "tools",
    "disallowed-tools": "tools",
    "context": "context",
    "agent": "context",
    "globs": "context",
    "alwaysApply": "context",
    "paths": "context",
}
"""The fields of a frontmatter that ask a host to do something differently, and what they are about."""


class Proposal(NamedTuple):
    """One wish of a skill, and what the policy says about it; `confirm` leaves it to the host."""

    name: str
    path: str
    kind: Kind
    key: str
    value: Any
    verdict: Verdict
    rule: str | None


def proposed(frontmatter: Mapping[str, Any]) -> Iterator[tuple[Kind, str, Any]]:
    """What a frontmatter asks for, in the order of the table."""
    for key, kind in PROPOSALS.items():
        if frontmatter.get(key) is not None:
            yield kind, key, frontmatter[key]
