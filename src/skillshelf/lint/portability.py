"""Fields of a frontmatter to findings: which of them only some hosts honour, the dangerous ones first."""

from collections.abc import Iterator, Mapping
from typing import Any

from skillshelf.catalog.document import Document
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core.values import Finding

__all__ = ["portability"]

_SAFEGUARDS: Mapping[str, str] = {
    "disable-model-invocation": "dangerous: the model may still call this skill by itself in {hosts}",
    "disallowed-tools": "dangerous: the skill may still use those tools in {hosts}",
    "hooks": "dangerous where they check or stop something: its hooks do not run in {hosts}",
    "hide": "the model is still told of this skill in {hosts}",
    "user-invocable": "people can still call this skill by its name in {hosts}",
    "paths": "this skill is not limited to those files in {hosts}",
    "globs": "this skill is not limited to those files in {hosts}",
}
"""Fields that hold something back, the most dangerous first, and what happens where they are not honoured."""

_EVERYWHERE = frozenset({"name", "description", "license", "compatibility", "metadata"})
"""Fields that change nothing where they are ignored."""

_DEFAULTS: Mapping[str, bool] = {"user-invocable": True}
"""What a switch says that changes nothing; for any other field that is `false`."""

_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


def portability(document: Document) -> list[Finding]:
    """What some hosts do with the fields of a frontmatter and others do not, the dangerous first."""
    fields = document.fields
    honoured = {field for host in HOSTS.values() for field in host.fields} - _EVERYWHERE
    asked = [field for field in fields if field in honoured and _says_something(field, fields[field])]
    dangerous = [field for field in _SAFEGUARDS if field in asked]
    others = sorted(field for field in asked if field not in _SAFEGUARDS)
    return [
        *_types(document),
        *_findings("portability-safeguard", dangerous, document),
        *_findings("portability-field", others, document),
    ]


def _types(document: Document) -> Iterator[Finding]:
    """Fields of which the specification says nothing, and for which some hosts leave the whole skill out."""
    for field, value in document.fields.items():
        strict = [host for host in HOSTS.values() if field in host.text_fields and host.rules["field-type"] == "reject"]
        if strict and field not in _EVERYWHERE and not isinstance(value, str):
            hosts = ", ".join(host.name for host in strict)
            message = f"the whole skill is left out by {hosts}: `{field}` is not text; put quotes around it"
            yield Finding("field-type", message, *document.place(field))


def _says_something(field: str, value: Any) -> bool:
    """Whether a field asks for anything else than what happens without it."""
    idle = _TRUE if _DEFAULTS.get(field, False) else _FALSE
    return value is not None and str(value).strip().lower() not in idle


def _findings(rule: str, fields: list[str], document: Document) -> Iterator[Finding]:
    for field in fields:
        strangers = [host for host in HOSTS.values() if field not in host.fields and "hides_on" not in host.unknown]
        if strangers:
            what = _SAFEGUARDS.get(field, "no effect in {hosts}").format(hosts=_names(strangers))
            yield Finding(rule, f"{what}: `{field}` is not known there", *document.place(field))


def _names(hosts: list[Profile]) -> str:
    """The hosts, those last whose documentation is all that is known about their fields."""
    sure = [host.name for host in hosts if "fields" not in host.unknown]
    documented = [host.name for host in hosts if "fields" in host.unknown]
    said = f"{', '.join(documented)} (by their documentation)" if documented else ""
    return " and ".join(words for words in (", ".join(sure), said) if words)
