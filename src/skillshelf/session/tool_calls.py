"""The checked arguments of a tool to what a model gets for them: one function for each tool, on a conversation."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.catalog.load import ResourceAddress, near_names, parse_address
from skillshelf.catalog.prompt import visible_to_model
from skillshelf.config.profile import Profile, scopes_of
from skillshelf.core.limits import DESCRIPTION_SHOWN
from skillshelf.core.text import cut, fold
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError, SkillError, SkillNotFound
from skillshelf.session.conversation import Conversation
from skillshelf.session.recorder import Act
from skillshelf.session.results import cut_result, failure
from skillshelf.session.tools import ToolResult

if TYPE_CHECKING:
    from skillshelf.search.query import SearchReport

__all__ = [
    "CALLS",
    "Mentions",
    "check_snapshot",
    "differences",
    "found",
    "is_for_users",
    "is_load",
    "names_in",
    "resolve_mentions",
    "take_snapshot",
]


Call = Callable[[Conversation, Mapping[str, Any], Act], ToolResult]
"""What a tool does with its arguments; raises what went wrong."""


def _load(conversation: Conversation, given: Mapping[str, Any], act: Act) -> ToolResult:
    name, path = given.get("name") or given.get("skillName"), given.get("path") or None
    if not name and path is None:
        return failure("invalid_params", "name or path is required")
    try:
        skill = conversation.resolve(name, path)
    except SkillNotFound:
        if path is not None or name not in conversation.listed:
            raise
        # It was listed when the session began: say what became of it.
        skill = conversation.listed[name]
    conversation.permissions.require("skill_load", skill)
    return conversation.deliver(skill, given.get("args") or "")


def _read(conversation: Conversation, given: Mapping[str, Any], act: Act) -> ToolResult:
    uri = given.get("uri") or given.get("path") or ""
    address = parse_address(uri)
    skill = conversation.resolve(address.name)
    conversation.permissions.require("skill_read", skill)
    if is_load(address, conversation.profile):
        return conversation.deliver(skill, "")
    resource, ref = conversation.read_file(uri, skill)
    data = {key: value for key, value in resource._asdict().items() if key != "content"}
    note = f"[base64, {resource.size} bytes]\n" if resource.encoding == "base64" else ""
    text = note + cut_result(resource.content, ref, conversation.profile)
    return ToolResult(True, text, {**data, "ref": ref})


def is_load(address: ResourceAddress, profile: Profile) -> bool:
    """Whether a read of that address is how this profile loads a skill."""
    return not address.segments and profile.load_form == "raw"


def _search(conversation: Conversation, given: Mapping[str, Any], act: Act) -> ToolResult:
    limit = given.get("limit")
    report = found(conversation, given["query"], limit if limit is None else int(limit), given.get("scope"))
    lines = [
        f"{n}. {fold(r.skill.name)} ({r.reason}): {cut(fold(r.skill.description), DESCRIPTION_SHOWN)}"
        for n, r in enumerate(report.results, 1)
    ]
    none = "No skill fits." if report.query.strip() else "The query is blank: say in some words what is to be done."
    lines = lines or [none + _held_back(conversation)]
    return ToolResult(True, "\n".join([*lines, *(f"({note})" for note in report.notes)]), report.to_dict())


def found(conversation: Conversation, query: str, limit: int | None, scope: str | None) -> "SearchReport":
    """The skills that fit a query, of those that a model is told of."""
    scopes = scopes_of(conversation.profile)
    if scope not in (None, *scopes):
        raise ConfigurationError(f"no such scope; there are: {', '.join(scopes)}")
    conversation.permissions.require("skill_search", None)
    told = {skill.path for skill in visible_to_model(conversation.skills)}
    return conversation.shelf.search(query, limit=limit, scope=scope, model=True, keep=lambda skill: skill.path in told)


def _held_back(conversation: Conversation) -> str:
    held = sum(skill.hidden == "untrusted" for skill in conversation.skills)
    told = "1 skill of this project is" if held == 1 else f"{held} skills of this project are"
    return f" {told} held back until the user allows it: skillshelf trust" if held else ""


def _run(conversation: Conversation, given: Mapping[str, Any], act: Act) -> ToolResult:
    skill = conversation.resolve(given["name"])
    _, result = conversation.run_script(skill, given["script"], given.get("args") or (), act, by_user=False)
    ref = conversation.memory.keep("run", result.text)
    return result._replace(text=cut_result(result.text, ref, conversation.profile), data={**result.data, "ref": ref})


CALLS: Mapping[str, Call] = {
    "skill_load": _load,
    "activate_skill": _load,
    "Skill": _load,
    "skill_read": _read,
    "read": _read,
    "skill_search": _search,
    "skill_run": _run,
}


_NEAR_MISSES = 10
# ASCII on both sides: in Japanese or Chinese a mention stands between letters.
_MENTION = re.compile(r"(?<![A-Za-z0-9_$\\])\$([a-z0-9]+(?:-[a-z0-9]+)*)(?!-*[A-Za-z0-9_])")


class Mentions(NamedTuple):
    """A user's text with its mentions listed for the model, the skills they mean, and near misses."""

    text: str
    skills: tuple[str, ...]
    unknown: tuple[str, ...]


def names_in(text: str) -> list[str]:
    """What is written as a mention, each once."""
    return list(dict.fromkeys(_MENTION.findall(text)))


def resolve_mentions(text: str, named: Sequence[str], conversation: Conversation) -> Mentions:
    """The skills that these names in a text mean; what is no skill is no mention."""
    known = {skill.name for skill in conversation.skills if skill.enabled and is_for_users(skill)}
    # Only what resembles a skill: `$100` and `$home` are something else.
    strange = [name for name in named if name not in known][:_NEAR_MISSES]
    unknown = tuple(name for name in strange if near_names(name, conversation.skills))
    meant = _mentioned([name for name in named if name in known], unknown, conversation)
    if not meant:
        return Mentions(text, meant, unknown)
    block = "\n".join(["<skill_mentions>", *(f"- {name}" for name in meant), "</skill_mentions>"])
    return Mentions(f"{text}\n\n{block}", meant, unknown)


def is_for_users(skill: CatalogSkill) -> bool:
    """Whether its author lets users ask for a skill."""
    flag = skill.frontmatter.get("user-invocable")
    return not (flag is False or str(flag).strip().lower() in ("false", "no", "off", "0"))


def _mentioned(names: Sequence[str], unknown: Sequence[str], conversation: Conversation) -> tuple[str, ...]:
    """The names that may reach the model; the user asked for them."""
    if not names and not unknown:
        return ()
    conversation.begin()
    conversation.recorder.by_person()
    conversation.recorder.note("skill_mentioned", names=list(names), unknown=list(unknown))
    meant = []
    for name in names:
        allowed = [
            skill for skill in conversation.skills if skill.name == name and conversation.permissions.may_mention(skill)
        ]
        if allowed:
            meant.append(name)
        for skill in allowed:
            tools = conversation.effective(conversation.active.values())
            conversation.recorder.invoked(skill, "", ref=None, repeat=False, tools=tools)
    conversation.permissions.asked_for.update(meant)
    return tuple(meant)


_MEMBERS = frozenset({"version", "profile", "active", "preloaded", "asked_for", "loaded", "texts"})
_VERSION = 1


def take_snapshot(conversation: Conversation) -> dict[str, Any]:
    """What a conversation is made of now."""
    return {
        "version": _VERSION,
        "profile": conversation.profile.name,
        "active": sorted(conversation.active),
        "preloaded": [loaded.skill.name for loaded in conversation.preloaded],
        "asked_for": sorted(conversation.permissions.asked_for),
        **conversation.memory.to_dict(),
    }


def check_snapshot(snapshot: Mapping[str, Any], profile: Profile) -> None:
    """Refuse what cannot be restored with a profile."""
    if not isinstance(snapshot, Mapping) or not set(snapshot) >= _MEMBERS:
        raise ConfigurationError("not a snapshot of a session")
    if snapshot["version"] != _VERSION or snapshot["profile"] != profile.name:
        raise ConfigurationError("not a snapshot of a session with this profile")


def differences(conversation: Conversation) -> Iterator[str]:
    """What the disk holds now in the place of what the model was sent."""
    known = {skill.path: skill for skill in conversation.skills}
    for path, sent in conversation.memory.sent.items():
        if path not in known:
            yield f"missing: {sent.name} ({path})"
            continue
        try:
            loaded = conversation.effects.load(known[path], conversation.profile)
        except SkillError as error:
            yield f"broken: {sent.name}: {error}"
            continue
        if loaded.digest != sent.digest:
            yield f"updated: {sent.name} ({path})"
