"""The checked arguments of a tool to what a model gets for them: one function for each tool, on a desk."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.load import Address, parse_address
from skillshelf.catalog.prompt import told_to_models
from skillshelf.config.profile import Profile, scopes_of
from skillshelf.core.limits import DESCRIPTION_SHOWN
from skillshelf.core.text import cut, fold
from skillshelf.errors import ConfigurationError, SkillNotFound
from skillshelf.session.delivery import cut_result
from skillshelf.session.desk import Desk
from skillshelf.session.recorder import Act
from skillshelf.session.results import failure
from skillshelf.session.tools import ToolResult

if TYPE_CHECKING:
    from skillshelf.search.query import SearchReport

__all__ = ["CALLS", "found", "is_load"]

Call = Callable[[Desk, Mapping[str, Any], Act], ToolResult]
"""What a tool does with its arguments; raises what went wrong."""


def _load(desk: Desk, given: Mapping[str, Any], act: Act) -> ToolResult:
    name, path = given.get("name") or given.get("skillName"), given.get("path") or None
    if not name and path is None:
        return failure("invalid_params", "name or path is required")
    try:
        skill = desk.resolve(name, path)
    except SkillNotFound:
        if path is not None or name not in desk.listed:
            raise
        # It was listed when the session began: say what became of it.
        skill = desk.listed[name]
    desk.guard.permit("skill_load", skill)
    return desk.deliver(skill, given.get("args") or "")


def _read(desk: Desk, given: Mapping[str, Any], act: Act) -> ToolResult:
    uri = given.get("uri") or given.get("path") or ""
    address = parse_address(uri)
    skill = desk.resolve(address.name)
    desk.guard.permit("skill_read", skill)
    if is_load(address, desk.profile):
        return desk.deliver(skill, "")
    resource, ref = desk.read_file(uri, skill)
    data = {key: value for key, value in resource._asdict().items() if key != "content"}
    note = f"[base64, {resource.size} bytes]\n" if resource.encoding == "base64" else ""
    text = note + cut_result(resource.content, ref, desk.profile)
    return ToolResult(True, text, {**data, "ref": ref})


def is_load(address: Address, profile: Profile) -> bool:
    """Whether a read of that address is how this profile loads a skill."""
    return not address.segments and profile.load_form == "raw"


def _search(desk: Desk, given: Mapping[str, Any], act: Act) -> ToolResult:
    limit = given.get("limit")
    report = found(desk, given["query"], limit if limit is None else int(limit), given.get("scope"))
    lines = [
        f"{n}. {fold(r.skill.name)} ({r.reason}): {cut(fold(r.skill.description), DESCRIPTION_SHOWN)}"
        for n, r in enumerate(report.results, 1)
    ]
    none = "No skill fits." if report.query.strip() else "The query is blank: say in some words what is to be done."
    lines = lines or [none + _held_back(desk)]
    return ToolResult(True, "\n".join([*lines, *(f"({note})" for note in report.notes)]), report.to_dict())


def found(desk: Desk, query: str, limit: int | None, scope: str | None) -> "SearchReport":
    """The skills that fit a query, of those that a model is told of."""
    scopes = scopes_of(desk.profile)
    if scope not in (None, *scopes):
        raise ConfigurationError(f"no such scope; there are: {', '.join(scopes)}")
    desk.guard.permit("skill_search", None)
    told = {skill.path for skill in told_to_models(desk.skills)}
    return desk.shelf.search(query, limit=limit, scope=scope, model=True, keep=lambda skill: skill.path in told)


def _held_back(desk: Desk) -> str:
    held = sum(skill.hidden == "untrusted" for skill in desk.skills)
    told = "1 skill of this project is" if held == 1 else f"{held} skills of this project are"
    return f" {told} held back until the user allows it: skillshelf trust" if held else ""


def _run(desk: Desk, given: Mapping[str, Any], act: Act) -> ToolResult:
    skill = desk.resolve(given["name"])
    _, result = desk.run_script(skill, given["script"], given.get("args") or (), act, by_user=False)
    ref = desk.memory.keep("run", result.text)
    return result._replace(text=cut_result(result.text, ref, desk.profile), data={**result.data, "ref": ref})


CALLS: Mapping[str, Call] = {
    "skill_load": _load,
    "activate_skill": _load,
    "Skill": _load,
    "skill_read": _read,
    "read": _read,
    "skill_search": _search,
    "skill_run": _run,
}
