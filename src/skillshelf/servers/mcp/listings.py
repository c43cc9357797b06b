"""Build the listings of the MCP server as plain JSON: tools, skills, resources, templates and prompts.

The SDK is not imported here: a client gets its first listing before that is done. The members of an object stand in
the order in which the SDK writes them.
"""

from collections.abc import Sequence
from typing import Any, Literal

from skillshelf import __version__
from skillshelf.core.console import note
from skillshelf.core.limits import PAGE_BYTES, PAGE_ENTRIES, PROMPTS_LISTED
from skillshelf.core.text import fold, for_model, visible
from skillshelf.core.values import CatalogSkill
from skillshelf.servers.mcp.client_sessions import ClientSession
from skillshelf.servers.mcp.skill_entries import (
    OmittedSkill,
    PublishableSkill,
    SkillEntry,
    cursor_after,
    cursor_key,
    skills_after,
)
from skillshelf.servers.mcp.skills import PublishedSkills
from skillshelf.servers.mcp.tools import PathRedaction, offered_tools, untrusted_note
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.session import COMMAND

__all__ = ["CACHE_SCOPE", "CACHE_TTL_MS", "EXTENSIONS", "LEFT_OUT", "SERVER_INFO", "TEMPLATE", "Listings"]

EXTENSIONS: dict[str, dict[str, Any]] = {"io.modelcontextprotocol/skills": {"directoryRead": True}}
"""The extensions that the server declares, with their settings."""

SERVER_INFO = {
    "name": "skillshelf",
    "title": "skillshelf",
    "version": __version__,
    "description": "Agent Skills, found and loaded when they are needed.",
}
"""The description that the server gives of itself."""

CACHE_TTL_MS = 2_000
CACHE_SCOPE: Literal["private"] = "private"
"""How long a client may keep a listing, and for whom."""

LEFT_OUT = "skillshelf.server/left-out"
"""The key of a page of `skills/list` with the skills that are not published, and the reasons."""

TEMPLATE = "skill://{name}/{+path}"
_USABLE = (None, "disable-model-invocation")
_MOST_NOTES = 20

Listing = dict[str, Any]
"""The result of a listing method without what only one era of the protocol has."""


class Listings:
    """The listings of the published skills; a cursor that is not of a listing raises `InvalidCursor`."""

    def __init__(self, skills: PublishedSkills, *, show_paths: bool, page_entries: int = PAGE_ENTRIES) -> None:
        self._skills = skills
        self._page_entries = page_entries
        self.redaction = PathRedaction(skills, show_paths=show_paths)
        self._noted_omissions: set[OmittedSkill] = set()

    def instructions(self) -> str:
        """Return the text that tells a model what the server is for."""
        tools = {NAMES_OF_TOOLS[tool]: tool for tool in self._skills.shelf.profile.tools}
        find, read = tools.get("skill_search", "skill_list"), tools.get("skill_read")
        load = tools.get("skill_load", read)
        words = [
            f"{len(self._skills.visible)} Agent Skills: instructions for tasks, with files that belong to them.",
            f"Before you start a task, look with {find} for a skill that fits, load it with {load} and follow it.",
            *([f"Read a file that it names with {read}, by its address skill://<name>/<path>."] if read else ()),
            *untrusted_note(self._skills),
        ]
        return self.redaction.message(" ".join(words))

    def tools(self) -> Listing:
        """Return the tools, which have one page."""
        return {"tools": offered_tools(self._skills)}

    def skills(self, client: ClientSession, cursor: str | None) -> Listing:
        """Return a page of the entries of skills, with those that are left out."""
        page: list[dict[str, Any]] = []
        left_out: list[dict[str, str]] = []
        size = 0
        rest = self._rest("skills/list", client, cursor)
        for number, skill in enumerate(rest, 1):
            for found in self._skills.entries(skill):
                if isinstance(found, OmittedSkill):
                    left_out.append({"uri": found.uri, "reason": visible(found.reason)})
                    self._note_omission(found)
                else:
                    page.append(found.to_dict())
                    size += _size(found)
            if (len(page) >= self._page_entries or size >= PAGE_BYTES) and number < len(rest):
                return _page_of_skills(page, left_out, cursor_after("skills/list", skill.name, skill.id))
        return _page_of_skills(page, left_out, None)

    def _note_omission(self, found: OmittedSkill) -> None:
        if found in self._noted_omissions or len(self._noted_omissions) > _MOST_NOTES:
            return
        self._noted_omissions.add(found)
        if len(self._noted_omissions) > _MOST_NOTES:
            note(f"more skills are not in skills/list; each page names them with the reason in _meta[{LEFT_OUT!r}]")
        else:
            note(f"not in skills/list, but available to the tools: {found.uri}: {found.reason}")

    def resources(self, client: ClientSession, cursor: str | None) -> Listing:
        """Return a page of the SKILL.md files as resources."""
        resources: list[dict[str, Any]] = []
        rest = self._rest("resources/list", client, cursor)
        for number, skill in enumerate(rest, 1):
            published = self._skills.published(skill)
            resources += [_as_resource(found) for found in published if isinstance(found, PublishableSkill)]
            if len(resources) >= self._page_entries and number < len(rest):
                more = cursor_after("resources/list", skill.name, skill.id)
                return {"nextCursor": more, "resources": resources}
        return {"resources": resources}

    def _rest(self, listing: str, client: ClientSession, cursor: str | None) -> Sequence[CatalogSkill]:
        listed = self._skills.listed(client)
        return skills_after(listed, cursor_key(listing, cursor, length=2))

    def templates(self) -> Listing:
        """Return the template of addresses, which has one page."""
        template = {
            "description": "A file by the name of its skill and its path in there; SKILL.md holds the instructions.",
            "name": "file-of-a-skill",
            "title": "A file of a skill",
            "uriTemplate": TEMPLATE,
        }
        return {"resourceTemplates": [template]}

    def prompts(self) -> Listing:
        """Return a prompt for each skill that a user may invoke, all on one page."""
        words = {"description": "what the skill should work on", "name": "args", "required": False}
        described = {skill.name: fold(for_model(skill.description)) for skill in self.for_users()}
        return {
            "prompts": [{"arguments": [words], "description": text, "name": name} for name, text in described.items()]
        }

    def for_users(self) -> list[CatalogSkill]:
        """Return the skills that a user may invoke, or none if they are too many to choose from."""
        session = self._skills.queries
        names = {command.removeprefix(COMMAND) for command in session.commands()}
        usable = [skill for skill in session.skills if skill.name in names and skill.hidden in _USABLE]
        return usable if len(usable) <= PROMPTS_LISTED else []


def _page_of_skills(found: list[dict[str, Any]], left_out: list[dict[str, str]], more: str | None) -> Listing:
    page: dict[str, Any] = {"skills": found}
    if more is not None:
        page["nextCursor"] = more
    if left_out:
        page["_meta"] = {LEFT_OUT: left_out}
    return page


def _size(entry: SkillEntry) -> int:
    """Return the approximate size of an entry on the wire in bytes."""
    return len(str(entry.frontmatter)) + sum(len(file["uri"]) + 120 for file in entry.resources)


def _as_resource(found: PublishableSkill) -> dict[str, Any]:
    """Return the SKILL.md of a published skill as a resource."""
    return {
        "description": for_model(str(found.frontmatter["description"])),
        "mimeType": "text/markdown",
        "name": str(found.frontmatter["name"]),
        "size": len(found.data),
        "uri": found.uri,
    }
