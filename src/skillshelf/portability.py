"""Fields of a frontmatter to findings: which of them only some hosts honour, the dangerous ones first."""

from collections.abc import Iterator, Mapping

from skillshelf.document import Document
from skillshelf.hosts import HOSTS
from skillshelf.values import Finding

__all__ = ["portability"]

_SAFEGUARDS: Mapping[str, str] = {
    "disable-model-invocation": "there the model can still call this skill by itself",
    "disallowed-tools": "there the skill may use those tools",
    "user-invocable": "there people can still call it",
    "hide": "there it is listed",
    "paths": "there it counts everywhere",
}
"""Fields that hold something back, and what happens where they are not honoured."""

_EVERYWHERE = frozenset({"name", "description", "license", "compatibility", "metadata"})
"""Fields that change nothing where they are ignored."""


def portability(document: Document) -> list[Finding]:
    """What some hosts do with the fields of a frontmatter and others do not."""
    fields = document.fields
    honoured = {field for host in HOSTS.values() for field in host.fields} - _EVERYWHERE
    asked = [field for field in fields if field in honoured and fields[field] is not False]
    dangerous = [field for field in _SAFEGUARDS if field in asked]
    others = sorted(field for field in asked if field not in _SAFEGUARDS)
    return [
        *_findings("portability-safeguard", dangerous, document),
        *_findings("portability-field", others, document),
    ]


def _findings(rule: str, fields: list[str], document: Document) -> Iterator[Finding]:
    for field in fields:
        ignoring = [host.name for host in HOSTS.values() if field not in host.fields and "hides_on" not in host.unknown]
        if ignoring:
            what = _SAFEGUARDS.get(field, "there it has no effect")
            yield Finding(rule, f"`{field}` is ignored by {', '.join(ignoring)}; {what}", *document.place(field))
