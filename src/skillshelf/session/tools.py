"""Describe the tools that a profile offers a model, with JSON schemas, and check the arguments of calls."""

from collections.abc import Container, Mapping, Sequence
from typing import Annotated, Any, Literal

from skillshelf.catalog.prompt import shown_text, visible_to_model
from skillshelf.config.profile import Count, Profile, ToolName, scopes_of
from skillshelf.core.limits import NAMES_IN_SCHEMA
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ErrorCode

__all__ = ["Tool", "ToolError", "ToolResult", "check_arguments", "fixed_tools", "tools_of"]


class ToolError(NamedTuple):
    """The error of a call: a code for programs and a message for a model."""

    code: ErrorCode
    message: str
    candidates: tuple[str, ...] = ()


class ToolResult(NamedTuple):
    """The result of a call: the text for the model and the same as data, or an error."""

    ok: bool
    text: str
    data: Mapping[str, Any]
    error: ToolError | None = None


class Tool(NamedTuple):
    """A tool as a model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self._asdict()


class _Parameter(NamedTuple):
    kind: Literal["string", "integer", "position", "strings"]
    description: str
    required: bool = False
    may_be_blank: bool = False


_QUERY = (
    "the task as a short phrase: what is to be done, not the whole message; if it is not in English, with English "
    "keywords besides; or a name or a path"
)

_PARAMETERS: Mapping[ToolName, Mapping[str, _Parameter]] = {
    "skill_search": {
        "query": _Parameter("string", _QUERY, required=True, may_be_blank=True),
        "limit": _Parameter("integer", "how many results at most"),
        "scope": _Parameter("string", "only skills of this scope"),
    },
    "skill_load": {
        "name": _Parameter("string", "the name of the skill"),
        "path": _Parameter("string", "the path of its SKILL.md, if the name is ambiguous; it wins over the name"),
        "args": _Parameter("string", "text for the skill: what the user asked it to work on"),
        "offset": _Parameter(
            "position", "where a text that was cut goes on; 0 gives the text again even if it is already loaded"
        ),
    },
    "skill_read": {
        "uri": _Parameter("string", "skill://<name>/<path of a file in the skill>", required=True),
    },
    "skill_run": {
        "name": _Parameter("string", "the name of the skill", required=True),
        "script": _Parameter("string", "the script, a file below the skill's scripts folder", required=True),
        "args": _Parameter("strings", "the arguments of the script, one item each; there is no shell"),
    },
    "activate_skill": {
        "skillName": _Parameter("string", "The name of the skill to activate", required=True),
    },
    "Skill": {
        "name": _Parameter("string", "the skill to load, exactly as listed", required=True),
        "args": _Parameter("string", "text for the skill"),
    },
    "read": {
        "path": _Parameter("string", "skill://<name> or skill://<name>/<path of a file in the skill>", required=True),
    },
}

_DESCRIPTIONS: Mapping[ToolName, str] = {
    "skill_search": "Find skills on this machine that fit a task. Returns names and descriptions, never instructions.",
    "skill_load": "Load the instructions of a skill into the conversation. Do this before you start a task it fits.",
    "skill_read": "Read one file of a skill, such as a reference that its instructions name. A folder lists its files.",
    "skill_run": "Run a script of a skill in a sandbox, after the user allowed it. Returns its output.",
    "activate_skill": "Activate a skill to load its full instructions. "
    "Use this when a skill from <available_skills> is relevant to the current task.",
    "Skill": "Load the instructions of a skill by its name.",
    "read": "Read a skill's instructions or one of its files by its skill:// address.",
}


def tools_of(
    profile: Profile,
    skills: Sequence[CatalogSkill],
    *,
    prompt: str = "",
    requested: Container[str] = (),
    without: Container[str] = (),
) -> list[Tool]:
    """Return the tools of the profile; none if no skill is visible to the model or requested by the user."""
    usable = [*visible_to_model(skills), *(skill for skill in skills if skill.hidden and skill.real_path in requested)]
    if not usable:
        return []
    catalog = prompt if profile.catalog_place == "tool" else ""
    return [
        Tool(name, catalog or _DESCRIPTIONS[name], _schema(name, profile, usable))
        for name in profile.tools
        if name not in without
    ]


def fixed_tools(profile: Profile, *, without: Container[str] = ()) -> list[Tool]:
    """Return the tools of the profile independent of the catalog, for clients that read the list of tools only once."""
    return [
        Tool(name, _DESCRIPTIONS[name], _schema(name, profile, None)) for name in profile.tools if name not in without
    ]


def _parameters(name: ToolName, profile: Profile) -> dict[str, _Parameter]:
    """Return the parameters of a tool in a profile: no `args` or `path` where the profile has no use for them."""
    known = dict(_PARAMETERS[name])
    if name == "skill_load" and profile.arguments == "none":
        del known["args"]
    if name == "skill_load" and "path" not in profile.load_by:
        del known["path"]
        known["name"] = known["name"]._replace(required=True)
    return known


_VALUES: Mapping[str, Any] = {
    "string": str,
    "integer": Count,
    "position": Annotated[int, 0],
    "strings": list[str],
}
_TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "minimum": 1},
    "position": {"type": "integer", "minimum": 0},
    "strings": {"type": "array", "items": {"type": "string"}},
}


def _schema(name: ToolName, profile: Profile, usable: Sequence[CatalogSkill] | None) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    parameters = _parameters(name, profile)
    for key, parameter in parameters.items():
        properties[key] = {**_TYPES[parameter.kind], "description": parameter.description}
        if key == "scope":
            remote = ["remote"] if any(skill.scope == "remote" for skill in usable or ()) else []
            properties[key]["enum"] = [*scopes_of(profile), *remote]
    names = sorted({shown_text(skill.name, profile) for skill in usable or ()})
    for key in ("name", "skillName"):
        if usable is not None and key in properties and len(names) <= NAMES_IN_SCHEMA:
            properties[key]["enum"] = names
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key, parameter in parameters.items() if parameter.required],
        "additionalProperties": False,
    }


def check_arguments(name: ToolName, profile: Profile, given: Mapping[str, Any]) -> str | None:
    """Return a message that a model can act on if the arguments of a call are not valid, else None."""
    from skillshelf.core.validation import validate

    parameters = _parameters(name, profile)
    if unknown := sorted(str(key) for key in given if key not in parameters):
        return f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(parameters)}"
    for key, parameter in parameters.items():
        value = given.get(key)
        if value is None:
            if parameter.required:
                return f"{name} needs the parameter `{key}`: {parameter.description}"
        elif wrong := validate(_whole(value), _VALUES[parameter.kind], f"`{key}`"):
            return str(wrong)
        elif parameter.required and not parameter.may_be_blank and isinstance(value, str) and not value.strip():
            return f"`{key}` must not be empty"
    return None


def _whole(value: Any) -> Any:
    """Return a float without a fraction as an integer: some programs have no other number than 8.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
