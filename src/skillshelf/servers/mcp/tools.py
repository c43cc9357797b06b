"""A result to one that can be sent: a name of a file that is no text must not end the server."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import mcp_types as types
from pydantic_core import PydanticSerializationError, to_json

from skillshelf.catalog.load import SCHEME, SKILL_FILE
from skillshelf.core.limits import DESCRIPTION_SHOWN, PAGE_ENTRIES
from skillshelf.core.text import cut, fold, visible
from skillshelf.core.values import CatalogSkill
from skillshelf.servers.mcp.publish import WrongCursor, cursor_after, key_in, skills_after
from skillshelf.servers.mcp.skills import PublishedSkills
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import can_run
from skillshelf.session.results import failure
from skillshelf.session.tools import Tool, ToolResult, fixed_tools

__all__ = ["Masks", "call_tool", "held_back_note", "offered_tools", "only_text", "sendable"]


async def only_text(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a method gives, with nothing in it that cannot be written as UTF-8."""
    return sendable(await call_next(ctx))


def sendable(value: Any) -> Any:
    """The value itself where it can be written; else with each text that is none written out."""
    try:
        to_json(value)
    except PydanticSerializationError:
        return _mended(value)
    return value


def _mended(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(inner) for inner in value]
    return visible(value) if isinstance(value, str) and not _is_utf8(value) else value


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


_TITLES = {
    "skill_search": "Find skills",
    "skill_load": "Load a skill",
    "skill_read": "Read a file of a skill",
    "skill_run": "Run a script of a skill",
}
_PATHS = ("path", "dir", "base_dir", "path_resolved", "cwd", "artifact")
_SKILL = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "uri": {"type": "string"},
        "scope": {"type": "string"},
    },
    "required": ["name", "description", "uri", "scope"],
}
_LIST = Tool(
    "skill_list",
    f"List the skills by name, {PAGE_ENTRIES} at a time. To find one for a task, skill_search is better.",
    {
        "type": "object",
        "properties": {"page": {"type": "string", "description": "next_page of the answer before"}},
        "required": [],
        "additionalProperties": False,
    },
)
_OUTPUTS: Mapping[str, Mapping[str, Any]] = {
    "skill_list": {
        "type": "object",
        "properties": {
            "skills": {"type": "array", "items": _SKILL},
            "total": {"type": "integer"},
            "held_back": {"type": "integer"},
            "next_page": {"type": "string"},
        },
        "required": ["skills", "total", "held_back"],
    },
    "skill_search": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "count": {"type": "integer"},
            "truncated": {"type": "boolean"},
            "results": {"type": "array", "items": _SKILL},
        },
        "required": ["query", "count", "truncated", "results"],
    },
}


class Masks:
    """Paths of this machine to words that say no more than a client needs."""

    def __init__(self, library: PublishedSkills, *, show_paths: bool) -> None:
        self._library = library
        self._show = show_paths

    def text(self, text: str) -> str:
        """A text in which a folder of skills reads `skill:/`."""
        for root in () if self._show else self._roots():
            text = text.replace(f"{root}/", "skill://")
        return text

    def message(self, text: str) -> str:
        """A message of ours, in which no folder of the user is named either."""
        text = self.text(text)
        environment = self._library.shelf.environment
        for path, word in () if self._show else ((environment.cwd, "the project"), (environment.home or "", "~")):
            if path.count("/") > 1:
                text = text.replace(path, word)
        return text

    def data(self, value: Any) -> Any:
        """Data without the members that are paths, and with no path in the others."""
        if self._show:
            return value
        if isinstance(value, Mapping):
            return {key: self.data(inner) for key, inner in value.items() if key not in _PATHS}
        if isinstance(value, list | tuple):
            return [self.data(inner) for inner in value]
        return self.message(value) if isinstance(value, str) else value

    def _roots(self) -> list[str]:
        return sorted({root.path for root in self._library.shelf.catalog.roots}, key=len, reverse=True)


def offered_tools(library: PublishedSkills) -> list[types.Tool]:
    """The same tools for everybody and always: those of the profile that the policy can allow, and a listing."""
    with library.lanes.session() as session:
        runs = can_run(session.policy, can_ask=False)
    tools = fixed_tools(library.shelf.profile, without=() if runs else ("skill_run",))
    return [_offered(tool) for tool in (*tools, _LIST)]


def _offered(tool: Tool) -> types.Tool:
    runs = tool.name == "skill_run"
    output = _OUTPUTS.get(tool.name)
    return types.Tool(
        name=tool.name,
        title=_TITLES.get(tool.name, "List skills" if tool is _LIST else "Load a skill"),
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(output) if output else None,
        annotations=types.ToolAnnotations(
            read_only_hint=not runs, destructive_hint=runs, idempotent_hint=not runs, open_world_hint=runs
        ),
    )


def call_tool(library: PublishedSkills, masks: Masks, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
    """What a call gives; a mistake of the model is a result too, in words that it can act on."""
    if name == _LIST.name:
        return _wire(masks, name, _listed(library, arguments))
    given = _by_path(library, arguments) if name == "skill_load" else arguments
    result = library.lanes.call(name, given)
    if NAMES_OF_TOOLS.get(name) == "skill_search" and result.ok:
        result = result._replace(data={**result.data, "results": _hits(library, result.data["results"])})
    return _wire(masks, name, result)


def _hits(library: PublishedSkills, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was found, in the form of a listing, with how well it fits."""
    told = {skill.path: skill for skill in library.told}
    fitting = [(told[hit["skill"]["path"]], hit) for hit in results if hit["skill"]["path"] in told]
    return [{**_row(library, skill), "score": hit["score"], "reason": hit["reason"]} for skill, hit in fitting]


def _by_path(library: PublishedSkills, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with the path of the skill, where a client names it by an address that it was told."""
    for key in ("name", "path"):
        value = arguments.get(key)
        if isinstance(value, str) and value.startswith(SCHEME) and "path" in library.shelf.profile.load_by:
            environment = library.locate(value)
            if environment is not None and environment.path in ("", SKILL_FILE):
                others = {other: given for other, given in arguments.items() if other not in ("name", "path")}
                return {"path": environment.skill.path, **others}
    return arguments


def _listed(library: PublishedSkills, arguments: Mapping[str, Any]) -> ToolResult:
    if unknown := sorted(set(arguments) - {"page"}):
        return failure("invalid_params", f"skill_list has no parameter {', '.join(unknown)}; it has page")
    page = arguments.get("page") or None
    if page is not None and not isinstance(page, str):
        return failure("invalid_params", "`page` must be text")
    with library.lanes.session() as session:
        decision = session.decide("skill_search", {"query": "*"})
    if decision.verdict == "deny":
        return failure("denied", f"skills may not be listed: {decision.reason}")
    told = library.listed()
    try:
        rest = skills_after(told, key_in("skill_list", page, length=2))
    except WrongCursor as error:
        return failure("invalid_params", str(error))
    shown, total = rest[:PAGE_ENTRIES], len(told)
    data: dict[str, Any] = {
        "skills": [_row(library, skill) for skill in shown],
        "total": total,
        "held_back": library.held_back,
    }
    lines = [f"{fold(row['name'])}: {row['description']}" for row in data["skills"]] or ["There are no skills here."]
    if len(rest) > len(shown):
        data["next_page"] = cursor_after("skill_list", shown[-1].name, shown[-1].id)
        lines.append(f"({len(rest) - len(shown)} more; page: {data['next_page']})")
    return ToolResult(True, "\n".join([*lines, *held_back_note(library)]), data)


def _row(library: PublishedSkills, skill: CatalogSkill) -> dict[str, Any]:
    description = cut(fold(skill.description), DESCRIPTION_SHOWN)
    return {"name": skill.name, "description": description, "uri": library.uri_of(skill), "scope": skill.scope}


def held_back_note(library: PublishedSkills) -> Sequence[str]:
    """What to do about skills that nobody has trusted, if there are any."""
    if not (held := library.held_back):
        return ()
    return (
        f"{held} more of this project {'is' if held == 1 else 'are'} held back. The user can allow that with the "
        "command `skillshelf trust` in the project, and start this server again.",
    )


_TOLD = frozenset({"text", "instructions", "results", "skills"})
"""Members of data that hold what the text says. Some clients give their model the data alone, where there is any."""


def _wire(masks: Masks, name: str, result: ToolResult) -> types.CallToolResult:
    """A result in the form of the protocol; no word of a skill is changed, but for where its folder lies."""
    if result.error is not None:
        error = {"code": result.error.code, "message": masks.message(result.error.message)}
        return types.CallToolResult(
            content=[types.TextContent(text=masks.message(result.text))],
            structured_content=None if name in _OUTPUTS else {"error": error},
            is_error=True,
        )
    text, data = masks.text(result.text), masks.data(dict(result.data))
    if not _TOLD.intersection(data):
        data = {**data, "text": text}
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=data)
