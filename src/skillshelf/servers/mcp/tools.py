"""Offer and call tools over MCP, and hide local paths from remote clients."""

from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.catalog.load import SCHEME, SKILL_FILE
from skillshelf.catalog.prompt import as_shown
from skillshelf.core.limits import DESCRIPTION_SHOWN, PAGE_ENTRIES
from skillshelf.core.text import cut, fold, plural
from skillshelf.core.values import CatalogSkill, RootReport
from skillshelf.servers.mcp.client_sessions import ClientSession
from skillshelf.servers.mcp.skill_entries import InvalidCursor, cursor_after, cursor_key, skills_after
from skillshelf.servers.mcp.skills import PublishedSkills, ServedSkills
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import can_run
from skillshelf.session.results import failure
from skillshelf.session.tools import Tool, ToolResult, fixed_tools

__all__ = ["PathRedaction", "call_tool", "offered_tools", "untrusted_note"]


_TITLES = {
    "skill_search": "Find skills",
    "skill_load": "Load a skill",
    "skill_read": "Read a file of a skill",
    "skill_run": "Run a script of a skill",
}
_PATHS = ("path", "dir", "base_dir", "path_resolved", "cwd", "artifact")
_SKILL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "uri": {"type": "string"},
        "scope": {"type": "string"},
    },
    "required": ["name", "description", "uri", "scope"],
}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_FOUND = {
    **_SKILL,
    "properties": {
        **_SKILL["properties"],
        "score": {"type": "number"},
        "reason": {"type": "string"},
        "why": _TEXTS,
        "copies": _TEXTS,
    },
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
            "confidence": {"type": "number"},
            "weak": {"type": "boolean"},
            "notes": _TEXTS,
            "results": {"type": "array", "items": _FOUND},
        },
        "required": ["query", "count", "truncated", "confidence", "weak", "notes", "results"],
    },
}


class PathRedaction:
    """Replaces local paths in results, unless paths are shown."""

    def __init__(self, skills: PublishedSkills, *, show_paths: bool) -> None:
        self._skills = skills
        self._show = show_paths
        self._roots: tuple[Sequence[RootReport], tuple[str, ...]] = (), ()
        environment = skills.shelf.environment
        places = ((environment.cwd, "the project"), (environment.home or "", "~"))
        self._places = tuple(place for place in places if place[0].count("/") > 1)

    def text(self, text: str) -> str:
        """Return a text in which roots of skills are replaced by `skill:/`."""
        if self._show or "/" not in text:
            return text
        roots = self._skills.shelf.catalog.roots
        if self._roots[0] is not roots:
            self._roots = roots, tuple(sorted({f"{root.path}/" for root in roots}, key=len, reverse=True))
        for begin in self._roots[1]:
            text = text.replace(begin, "skill://")
        return text

    def message(self, text: str) -> str:
        """Return a message of skillshelf in which the project and the home folder are replaced too."""
        if self._show or "/" not in text:
            return text
        text = self.text(text)
        for path, word in self._places:
            text = text.replace(path, word)
        return text

    def data(self, value: Any) -> Any:
        """Return data without members that are paths, and with paths replaced in the others."""
        if self._show:
            return value
        if isinstance(value, Mapping):
            return {key: self.data(inner) for key, inner in value.items() if key not in _PATHS}
        if isinstance(value, list | tuple):
            return [self.data(inner) for inner in value]
        return self.message(value) if isinstance(value, str) else value


def offered_tools(skills: PublishedSkills) -> list[dict[str, Any]]:
    """Return the tools, which never change: those of the profile that the policy can allow, and `skill_list`."""
    runs = can_run(skills.queries.policy, can_ask=False)
    tools = fixed_tools(skills.shelf.profile, without=() if runs else ("skill_run",))
    return [_offered(tool) for tool in (*tools, _LIST)]


def _offered(tool: Tool) -> dict[str, Any]:
    runs = tool.name == "skill_run"
    output = _OUTPUTS.get(tool.name)
    return {
        "annotations": {
            "destructiveHint": runs,
            "idempotentHint": not runs,
            "openWorldHint": runs,
            "readOnlyHint": not runs,
        },
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
        "name": tool.name,
        **({"outputSchema": dict(output)} if output else {}),
        "title": _TITLES.get(tool.name, "List skills" if tool is _LIST else "Load a skill"),
    }


def call_tool(
    client: ClientSession,
    skills: PublishedSkills,
    redaction: PathRedaction,
    name: str,
    arguments: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the result of a call; a mistake of the model is a result too, with a message that it can act on."""
    if name == _LIST.name:
        return _wire(redaction, name, _listed(client, skills, arguments))
    given = _by_path(skills, arguments) if name == "skill_load" else arguments
    result = client.call(name, given)
    if NAMES_OF_TOOLS.get(name) == "skill_search" and result.ok:
        result = result._replace(data={**result.data, "results": _hits(skills, result.data["results"])})
    return _wire(redaction, name, result)


def _hits(skills: PublishedSkills, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return search results as rows of a listing with score and reason; copies are told by their addresses."""
    served = skills.served
    by_path = served.by_path
    return [
        {
            **_row(skills, served, by_path[path]),
            "score": hit["score"],
            "reason": hit["reason"],
            "why": hit["why"],
            "copies": [served.uri_of(by_path[copy]) for copy in hit["copies"] if copy in by_path],
        }
        for hit in results
        if (path := hit["skill"]["path"]) in by_path
    ]


def _by_path(skills: PublishedSkills, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with the path of the skill if they name it by its address."""
    for key in ("name", "path"):
        value = arguments.get(key)
        if isinstance(value, str) and value.startswith(SCHEME) and "path" in skills.shelf.profile.load_by:
            target = skills.locate(value)
            if target is not None and target.path in ("", SKILL_FILE):
                others = {other: given for other, given in arguments.items() if other not in ("name", "path")}
                return {"path": target.skill.path, **others}
    return arguments


def _listed(client: ClientSession, skills: PublishedSkills, arguments: Mapping[str, Any]) -> ToolResult:
    if unknown := sorted(set(arguments) - {"page"}):
        return failure("invalid_params", f"skill_list has no parameter {', '.join(unknown)}; it has page")
    page = arguments.get("page") or None
    if page is not None and not isinstance(page, str):
        return failure("invalid_params", "`page` must be text")
    decision = skills.queries.decide("skill_search", {"query": "*"})
    if decision.verdict == "deny":
        return failure("denied", f"skills may not be listed: {decision.reason}")
    listed = skills.listed(client)
    try:
        rest = skills_after(listed, cursor_key("skill_list", page, length=2))
    except InvalidCursor as error:
        return failure("invalid_params", str(error))
    shown, total, served = rest[:PAGE_ENTRIES], len(listed), skills.served
    data: dict[str, Any] = {
        "skills": [_row(skills, served, skill) for skill in shown],
        "total": total,
        "held_back": skills.held_back.untrusted,
    }
    lines = [f"{fold(row['name'])}: {row['description']}" for row in data["skills"]] or ["There are no skills here."]
    if len(rest) > len(shown):
        data["next_page"] = cursor_after("skill_list", shown[-1].name, shown[-1].id)
        lines.append(f"({len(rest) - len(shown)} more; page: {data['next_page']})")
    return ToolResult(True, "\n".join([*lines, *untrusted_note(skills)]), data)


def _row(skills: PublishedSkills, served: ServedSkills, skill: CatalogSkill) -> dict[str, Any]:
    (shown,) = as_shown([skill], skills.shelf.profile)
    description = cut(fold(shown.description), DESCRIPTION_SHOWN)
    return {"name": shown.name, "description": description, "uri": served.uri_of(skill), "scope": skill.scope}


def untrusted_note(skills: PublishedSkills) -> Sequence[str]:
    """Return sentences about skills of an untrusted project, and about what the project's file takes away."""
    held = skills.held_back
    if not (hidden := held.untrusted):
        return held.for_model()
    return (
        f"{plural(hidden, 'more skill')} of this project {'is' if hidden == 1 else 'are'} hidden because the project "
        "is not trusted. The user can trust it with the command `skillshelf trust` in the project, and start this "
        "server again.",
        *held.for_model(),
    )


_TEXT_MEMBERS = frozenset({"text", "instructions", "results", "skills"})
"""Members of data that hold the text of a result. Some clients give their model only the data if there is any."""


def _wire(redaction: PathRedaction, name: str, result: ToolResult) -> dict[str, Any]:
    """Return a result in the form of the protocol; the text of a skill is unchanged except for paths of its folder."""
    if result.error is not None:
        error = {"code": result.error.code, "message": redaction.message(result.error.message)}
        content = [{"type": "text", "text": redaction.message(result.text)}]
        return {
            "content": content,
            "isError": True,
            **({} if name in _OUTPUTS else {"structuredContent": {"error": error}}),
        }
    text, data = redaction.text(result.text), redaction.data(dict(result.data))
    if not _TEXT_MEMBERS.intersection(data):
        data = {**data, "text": text}
    return {"content": [{"type": "text", "text": text}], "isError": False, "structuredContent": data}
