"""Perform the tool calls of a model, resolve mentions in a user's text, and take and check snapshots."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.build import COLLISION_KEYS
from skillshelf.catalog.held_back import held_back
from skillshelf.catalog.load import ResourceAddress, near_names, parse_address
from skillshelf.catalog.packed import skills_at
from skillshelf.catalog.source import SOURCE_SCHEME, is_remote
from skillshelf.config.profile import Profile, scopes_of
from skillshelf.config.system_policy import is_kept_untrusted
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import TRUST_FOR_MODELS, path_text, visible_for_model
from skillshelf.errors import AmbiguousSkill, ConfigurationError, SkillError
from skillshelf.session.conversation import Conversation, is_for_users
from skillshelf.session.entries import ENTRIES
from skillshelf.session.recorder import RunningCall
from skillshelf.session.results import cut_result, failure, search_result
from skillshelf.session.tools import ToolResult

if TYPE_CHECKING:
    from skillshelf.catalog.load import Resource
    from skillshelf.search.query import SearchReport

__all__ = [
    "CALLS",
    "Mentions",
    "check_snapshot",
    "differences",
    "found_skills",
    "is_load",
    "mentioned_names",
    "resolve_mentions",
    "resource_text",
    "search_skills",
    "take_snapshot",
]


Call = Callable[[Conversation, Mapping[str, Any], RunningCall], ToolResult]
"""Perform a tool call with checked arguments; errors are raised."""


def _load(conversation: Conversation, given: Mapping[str, Any], act: RunningCall) -> ToolResult:
    name, path = given.get("name") or given.get("skillName"), given.get("path") or None
    if not name and path is None:
        return failure("invalid_params", "name or path is required")
    offset = given.get("offset")
    whole = offset if offset is None else int(offset)
    return conversation.use_one("tool_load", name, path, given.get("args") or "", whole).result


def _read(conversation: Conversation, given: Mapping[str, Any], act: RunningCall) -> ToolResult:
    uri = given.get("uri") or given.get("path") or ""
    address = parse_address(uri)
    if is_load(address, conversation.profile):
        return conversation.use_one("tool_read", address.name).result
    resource, ref = conversation.read_file("tool_read", uri)
    data = {key: value for key, value in resource._asdict().items() if key != "content"}
    return ToolResult(True, resource_text(conversation, resource, ref), {**data, "ref": ref})


def resource_text(conversation: Conversation, resource: "Resource", ref: str) -> str:
    """Return a file as a model gets it."""
    note = f"[base64, {resource.size} bytes]\n" if resource.encoding == "base64" else ""
    if is_remote(resource.path):
        # Imported here: it takes as long as starting Python.
        from urllib.parse import unquote

        label = resource.path.removeprefix(SOURCE_SCHEME).partition("/")[0]
        note = f"[origin: {visible_for_model(unquote(label))}]\n{note}"
    is_skill = bool(skills_at(conversation.skills, resource.path))
    rest = "; the whole text: skill_load with offset=0" if is_skill else ""
    return note + cut_result(resource.content, ref, conversation.profile, rest)


def is_load(address: ResourceAddress, profile: Profile) -> bool:
    """Return True if reading this address is how the profile loads a skill."""
    return not address.segments and profile.load_form == "raw"


def _search(conversation: Conversation, given: Mapping[str, Any], act: RunningCall) -> ToolResult:
    limit = given.get("limit")
    report = search_skills(
        conversation, act, given["query"], limit if limit is None else int(limit), given.get("scope")
    )
    return found_skills(conversation, report)


def found_skills(conversation: Conversation, report: "SearchReport") -> ToolResult:
    """Return a search report as a model gets it."""
    if report.results:
        return search_result(report, conversation.profile, nothing="")
    nothing = "No skill fits." if report.query.strip() else "The query is blank: describe the task in a few words."
    return search_result(report, conversation.profile, nothing=nothing + _hidden_sentence(conversation))


def search_skills(
    conversation: Conversation, act: RunningCall, query: str, limit: int | None, scope: str | None
) -> "SearchReport":
    """Return the skills visible to the model that match a query; the end of the call names what earlier use added."""
    scopes = list(getattr(conversation.shelf, "scopes", scopes_of(conversation.profile)))
    if scope not in (None, *scopes):
        raise ConfigurationError(f"unknown scope (known: {', '.join(scopes)})")
    conversation.permissions.require("skill_search", None)
    visible = conversation.visible_paths()
    report = conversation.effects.search(
        conversation.shelf, query, limit=limit, scope=scope, model=True, keep=lambda skill: skill.path in visible
    )
    if report.prior is not None:
        act.ended = {"prior": report.prior.digest}
    return report


def _hidden_sentence(conversation: Conversation) -> str:
    untrusted = [s for s in conversation.skills if s.hidden == "untrusted" and s.scope != "remote"]
    count = sum(not is_kept_untrusted(skill.hidden_by) for skill in untrusted)
    subject = "1 skill of this project is" if count == 1 else f"{count} skills of this project are"
    hidden = [f"{subject} hidden until the user trusts the folder: {TRUST_FOR_MODELS}"] if count else []
    held = held_back(conversation.catalog, conversation.shelf.settings, "")
    return "".join(f" {sentence}" for sentence in (*held.for_model(), *hidden))


def _run(conversation: Conversation, given: Mapping[str, Any], act: RunningCall) -> ToolResult:
    _, result = conversation.run_script(given["name"], given["script"], given.get("args") or (), act, by_user=False)
    ref = conversation.sent.add_text("run", result.text)
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
# ASCII on both sides: in Japanese or Chinese a mention may be between letters.
_MENTION = lazy_pattern(r"(?<![A-Za-z0-9_$\\])\$([a-z0-9]+(?:-[a-z0-9]+)*)(?!-*[A-Za-z0-9_])")


class Mentions(NamedTuple):
    """A user's text with its mentions listed for the model, the mentioned skills, and near misses.

    `ambiguous` are the names that several skills have: the text lists their paths, and none of them counts as used.
    """

    text: str
    skills: tuple[str, ...]
    unknown: tuple[str, ...]
    ambiguous: tuple[str, ...] = ()


def mentioned_names(text: str) -> list[str]:
    """Return every name written as `$name`, each once."""
    return list(dict.fromkeys(_MENTION.findall(text)))


def resolve_mentions(text: str, names: Sequence[str], conversation: Conversation) -> Mentions:
    """Use the skills of these names and list them below the text; a name that is not a skill is not a mention."""
    key = COLLISION_KEYS[conversation.profile.collision_key]
    available = {key(skill.name) for skill in conversation.skills if skill.enabled and is_for_users(skill)}
    known = [name for name in names if key(name) in available]
    # Only names that resemble a skill: `$100` and `$home` are something else.
    others = [name for name in names if name not in known][:_NEAR_MISSES]
    unknown = tuple(name for name in others if near_names(name, conversation.skills))
    if not known and not unknown:
        return Mentions(text, (), ())
    conversation.require_open()
    conversation.recorder.mode = ENTRIES["mention"].mode
    conversation.recorder.record("skill_mentioned", names=known, unknown=list(unknown))
    lines, permitted, ambiguous = [], [], []
    for name in known:
        try:
            for used in conversation.use("mention", name):
                permitted.append(used.skill.name)
                lines.append(f"- {used.skill.name}")
        except AmbiguousSkill as error:
            candidates = conversation.explain(error).candidates
            if candidates:
                ambiguous.append(name)
                lines += _ambiguous_lines(name, candidates, conversation.profile)
    if not lines:
        return Mentions(text, (), unknown)
    block = "\n".join(["<skill_mentions>", *lines, "</skill_mentions>"])
    return Mentions(f"{text}\n\n{block}", tuple(permitted), unknown, tuple(ambiguous))


def _ambiguous_lines(name: str, paths: Sequence[str], profile: Profile) -> list[str]:
    """Return what a model is told of a name that several skills have."""
    how = "load one of them by its path" if "path" in profile.load_by else "ask the user which one is meant"
    return [
        f"- {name} is ambiguous: {len(paths)} skills have this name; {how}:",
        *(f"  - {path_text(p)}" for p in paths),
    ]


_MEMBERS = frozenset({"version", "profile", "active", "preloaded", "asked_for", "loaded", "texts"})
_VERSION = 1


def take_snapshot(conversation: Conversation) -> dict[str, Any]:
    """Return the state of a conversation as a JSON value."""
    return {
        "version": _VERSION,
        "profile": conversation.profile.name,
        "active": sorted(conversation.active),
        "preloaded": [loaded.skill.name for loaded in conversation.preloaded],
        "asked_for": sorted(set(conversation.permissions.requested.values())),
        **conversation.sent.to_dict(),
    }


def check_snapshot(snapshot: Mapping[str, Any], profile: Profile) -> None:
    """Raise ConfigurationError if a snapshot cannot be restored with a profile."""
    if not isinstance(snapshot, Mapping) or not set(snapshot) >= _MEMBERS:
        raise ConfigurationError("not a snapshot of a session")
    if snapshot["version"] != _VERSION or snapshot["profile"] != profile.name:
        raise ConfigurationError("not a snapshot of a session with this profile")


def differences(conversation: Conversation) -> Iterator[str]:
    """Yield a sentence for each sent skill that is missing, broken or changed on disk."""
    known = {skill.path: skill for skill in conversation.skills}
    for path, sent in conversation.sent.skills.items():
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
