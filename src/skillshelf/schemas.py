"""Types to JSON Schema. `python -m skillshelf.schemas DIR` writes the files that ship with the package."""

import json
import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from skillshelf import wire

__all__ = ["SCHEMAS", "schema_of", "write_schemas"]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
}


def schema_of(form: Any) -> dict[str, Any]:
    """The schema of a type made of typed dictionaries, lists, maps, literals and plain values."""
    if form in _PLAIN:
        return dict(_PLAIN[form])
    if is_typeddict(form):
        members = {name: schema_of(kind) for name, kind in get_type_hints(form).items()}
        head = {"description": form.__doc__} if form.__doc__ else {}
        return {
            **head,
            "type": "object",
            "properties": members,
            "required": list(members),
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


SCHEMAS: dict[str, dict[str, Any]] = {
    name: {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"skillshelf {name}", **schema_of(form)}
    for name, form in {
        "scope": str,
        "skill": wire.SkillForm,
        "metadata": wire.MetadataForm,
        "load-error": wire.LoadErrorForm,
        "catalog": wire.CatalogForm,
        "search-result": wire.SearchResultForm,
        "search": wire.SearchForm,
        "show": wire.ShownForm,
        "read": wire.ResourceForm,
        "prompt": wire.PromptForm,
        "tools": list[wire.ToolForm],
        "check": wire.CheckForm,
        "new": wire.NewForm,
        "why": wire.WhyForm,
        "hosts": wire.HostsForm,
        "link": wire.LinkForm,
        "failure": wire.FailureForm,
    }.items()
}


def write_schemas(folder: Path) -> None:
    """One file for each schema."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in SCHEMAS.items():
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
