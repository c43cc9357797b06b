"""Types to JSON Schema. `python tools/schemas.py DIR` writes the files that ship with the package."""

import json
import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from skillshelf.core.json_types import (
    CatalogForm,
    ChatForm,
    CheckForm,
    FailureForm,
    HostsForm,
    LinkForm,
    LoadErrorForm,
    LogStatsForm,
    LogVerifyForm,
    MetadataForm,
    NewForm,
    PromptForm,
    ReplayForm,
    ResourceForm,
    RunForm,
    SearchForm,
    SearchResultForm,
    ShownForm,
    SkillForm,
    ToolForm,
    WhyForm,
)
from skillshelf.journal.events import EVENTS, MEMBERS
from skillshelf.servers.rpc.schema import METHODS, TO_CLIENT

__all__ = ["RPC_SCHEMA", "SCHEMAS", "schema_of", "write_schemas"]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
}


_HEAD = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def schema_of(form: Any) -> dict[str, Any]:
    """The schema of a type made of typed dictionaries, lists, maps, literals and plain values."""
    if form is None:
        form = NoneType
    if form in _PLAIN:
        return dict(_PLAIN[form])
    if is_typeddict(form):
        members = {name: schema_of(kind) for name, kind in get_type_hints(form).items()}
        head = {"description": form.__doc__} if form.__doc__ else {}
        return {
            **head,
            "type": "object",
            "properties": members,
            "required": [name for name in members if name in form.__required_keys__],
            "additionalProperties": False,
        }
    origin, arguments = get_origin(form), get_args(form)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is UnionType or (origin is not None and str(origin) == "typing.Union"):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    raise TypeError(f"no schema for {form!r}")


def event_schema() -> dict[str, Any]:
    """The schema of a line of a journal: any event, with the members that the journal adds."""
    digits = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
    common = {
        "seq": {"type": "integer", "minimum": 0},
        "session": {"type": "string"},
        "ts_ms": {"type": "integer"},
        "prev": digits,
        "sum": digits,
    }
    kinds = []
    for name, kind in EVENTS.items():
        hints = get_type_hints(kind)
        members = {key: {"description": MEMBERS[key], **schema_of(hint)} for key, hint in hints.items()}
        needed = [key for key in hints if key not in kind._field_defaults]
        kinds.append(
            {
                "title": name,
                "description": kind.__doc__,
                "type": "object",
                "properties": {"type": {"const": name}, **members, **common},
                "required": ["type", *needed, *common],
                "additionalProperties": False,
            }
        )
    return {"description": "One line of a journal.", "anyOf": kinds}


def rpc_schema() -> dict[str, Any]:
    """Return the schema of a message to `skillshelf rpc`; results and server messages are definitions in it."""
    requests = [
        {
            "title": name,
            "description": method.help,
            "type": "object",
            "properties": {
                "jsonrpc": {"const": "2.0"},
                "id": {"type": ["string", "number", "null"]},
                "method": {"const": name},
                "params": schema_of(method.params),
            },
            "required": ["jsonrpc", "method", *(["params"] if method.params.__required_keys__ else [])],
        }
        for name, method in METHODS.items()
    ]
    results = {f"{name} result": schema_of(method.result) for name, method in {**METHODS, **TO_CLIENT}.items()}
    params = {f"{name} params": schema_of(method.params) for name, method in TO_CLIENT.items()}
    return {"description": "A request or notification of a client.", "anyOf": requests, "$defs": {**results, **params}}


FORMS: dict[str, Any] = {
    "scope": str,
    "skill": SkillForm,
    "metadata": MetadataForm,
    "load-error": LoadErrorForm,
    "catalog": CatalogForm,
    "search-result": SearchResultForm,
    "search": SearchForm,
    "show": ShownForm,
    "read": ResourceForm,
    "prompt": PromptForm,
    "tools": list[ToolForm],
    "check": CheckForm,
    "chat": ChatForm,
    "new": NewForm,
    "log-show": list[dict[str, Any]],
    "log-verify": LogVerifyForm,
    "log-stats": LogStatsForm,
    "why": WhyForm,
    "hosts": HostsForm,
    "link": LinkForm,
    "failure": FailureForm,
    "run": RunForm,
    "log-replay": ReplayForm,
}
"""The type of each `--json` output, by the name of its schema."""

SCHEMAS: dict[str, dict[str, Any]] = {
    name: {**_HEAD, "title": f"skillshelf {name}", **schema_of(form)} for name, form in FORMS.items()
} | {"event": {**_HEAD, "title": "skillshelf event", **event_schema()}}

RPC_SCHEMA = {**_HEAD, "title": "skillshelf rpc", **rpc_schema()}


def write_schemas(folder: Path) -> None:
    """Write one file for each schema."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in {**SCHEMAS, "rpc": RPC_SCHEMA}.items():
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
