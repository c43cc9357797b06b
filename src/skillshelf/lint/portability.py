"""Find fields of a skill that only some agent hosts honour."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from skillshelf.catalog.document import ParsedFrontmatter, kind_of_value
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import FieldType, Profile
from skillshelf.core.text import is_false, is_true
from skillshelf.core.values import Finding

__all__ = ["portability"]

_SAFEGUARDS: Mapping[str, str] = {
    "disable-model-invocation": "dangerous: the model may still call this skill on its own in {hosts}",
    "disallowed-tools": "dangerous: the skill may still use those tools in {hosts}",
    "hooks": "dangerous where they check or stop something: its hooks do not run in {hosts}",
    "hide": "the model still sees this skill in {hosts}",
    "user-invocable": "users can still call this skill by its name in {hosts}",
    "paths": "this skill is not limited to those files in {hosts}",
    "globs": "this skill is not limited to those files in {hosts}",
}
"""Fields that restrict a skill, the most dangerous first, with the effect of ignoring them."""

_EVERYWHERE = frozenset({"name", "description", "license", "compatibility", "metadata"})
"""Fields that can be ignored without an effect."""

_DEFAULTS: Mapping[str, bool] = {"user-invocable": True}
"""The value of a switch that has no effect, if it is not `false`."""


def portability(document: ParsedFrontmatter) -> list[Finding]:
    """Return findings about fields that only some hosts honour, the most dangerous first."""
    fields = document.fields
    if fields.keys() <= _EVERYWHERE:
        return []
    honoured = _honoured()
    used = [field for field in fields if field in honoured and _has_effect(field, fields[field])]
    dangerous = [field for field in _SAFEGUARDS if field in used]
    others = sorted(field for field in used if field not in _SAFEGUARDS)
    return [
        *_text_types(document),
        *_ignored_fields("portability-safeguard", dangerous, document),
        *_ignored_fields("portability-field", others, document),
    ]


@cache
def _honoured() -> frozenset[str]:
    """Return the fields that some host honours, without those that can be ignored."""
    return frozenset(field for host in HOSTS.values() for field in host.fields) - _EVERYWHERE


def _text_types(document: ParsedFrontmatter) -> Iterator[Finding]:
    """Yield findings about fields outside the specification for which some hosts skip the whole skill."""
    for field, value in document.fields.items():
        if field in _EVERYWHERE:
            continue
        typed = _strict_types().get(field, ())
        strict = [(host, one) for host, one in typed if kind_of_value(value) not in one.accepts]
        if strict:
            hosts = ", ".join(host for host, _ in strict)
            wrong = "is not text; quote the value" if "text" in strict[0][1].accepts else "has another type there"
            message = f"the whole skill is skipped by {hosts}: `{field}` {wrong}"
            yield Finding("field-type", message, *document.place(field))


@cache
def _strict_types() -> dict[str, list[tuple[str, FieldType]]]:
    """Return for each field the hosts that skip a skill if its value is of another type."""
    found: dict[str, list[tuple[str, FieldType]]] = {}
    for host in HOSTS.values():
        for one in host.types:
            if one.otherwise == "reject":
                found.setdefault(one.field, []).append((host.name, one))
    return found


def _has_effect(field: str, value: Any) -> bool:
    """Return whether a field requests anything but the default."""
    is_idle = is_true if _DEFAULTS.get(field, False) else is_false
    return value is not None and not is_idle(value)


def _ignored_fields(rule: str, fields: list[str], document: ParsedFrontmatter) -> Iterator[Finding]:
    for field in fields:
        if hosts := _hosts_ignoring(field):
            effect = _SAFEGUARDS.get(field, "no effect in {hosts}").format(hosts=hosts)
            yield Finding(rule, f"{effect}: `{field}` is not known there", *document.place(field))


@cache
def _hosts_ignoring(field: str) -> str:
    """Return the names of the hosts that ignore a field that another honours; empty if there are none."""
    return _host_names([host for host in HOSTS.values() if field not in host.fields and _is_tried(field, host)])


def _is_tried(field: str, host: Profile) -> bool:
    """Return true if it is known what a host does with a field."""
    if field == "disable-model-invocation":
        return "hides_on" not in host.unknown
    return not {"hides_on", "other-fields"} & {*host.unknown}


def _host_names(hosts: list[Profile]) -> str:
    """Return the names of hosts; those that are known only from documentation come last."""
    confirmed = [host.name for host in hosts if "fields" not in host.unknown]
    documented = [host.name for host in hosts if "fields" in host.unknown]
    last = f"{', '.join(documented)} (by their documentation)" if documented else ""
    return " and ".join(names for names in (", ".join(confirmed), last) if names)
