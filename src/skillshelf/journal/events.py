"""What happened in a session, as values: one type for each kind of event, and their JSON form.

Members with a default are left out of the JSON form where they have it. `MEMBERS` says what each member means; a
name means the same in every event.
"""
# ruff: noqa: RUF012 - defaults of a NamedTuple, which nobody changes.

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

__all__ = ["EVENTS", "MEMBERS", "Event", "NotAnEvent", "parse_event", "payload_of", "plain", "type_of"]

Mode = Literal["auto", "manual"]
By = Literal["default", "rule", "user", "remembered", "nobody", "person", "author", "disabled"]


class SessionStarted(NamedTuple):
    """A session began; the first event of every session."""

    profile: str
    cwd: str
    roots: list[str]
    policy: dict[str, Any]
    trust: Literal["all", "ask", "user"]
    version: str
    preload: list[str] = []
    restored: bool = False


class SessionEnded(NamedTuple):
    """A session was closed; the last event of every session that ended well."""

    events: int


class SkillCatalogUpdated(NamedTuple):
    """The catalog was made, or made anew and is another one now."""

    count: int  # type: ignore[assignment]  # The contract's name; nobody counts the members of an event.
    roots: list[dict[str, Any]]
    digest: str
    collisions: list[dict[str, Any]] = []


ANSWER_CUT = "answer-cut"
"""The kind of warning that a host gives of an answer that is not whole."""


class SkillWarning(NamedTuple):
    """Something that somebody should know: a collision of names with both candidates, a skill that is not valid."""

    kind: str
    detail: str
    name: str | None = None
    path: str | None = None


class PolicyWidened(NamedTuple):
    """More is allowed than by default: a policy that asks nobody, or a skill that may allow tools."""

    rule: str
    detail: str
    name: str | None = None
    tools: list[str] = []


class ToolStarted(NamedTuple):
    """A tool was called, or a person did by a command what that tool does."""

    tool_id: str
    name: str
    args: Any
    mode: Mode
    timeout_ms: int | None = None
    command: str | None = None


class PermissionDecided(NamedTuple):
    """The policy was asked about a skill, after it was known which one is meant."""

    tool: str
    name: str | None
    path: str | None
    verdict: Literal["allow", "deny"]
    rule: str | None
    by: By
    script: str | None = None
    digest: str | None = None
    folder_digest: str | None = None


class SkillLoaded(NamedTuple):
    """A SKILL.md was read to be given to the model."""

    name: str
    path: str
    dir: str
    digest: str
    frontmatter: dict[str, Any]
    warnings: list[dict[str, Any]] = []


class SkillRead(NamedTuple):
    """A file of a skill was read to be given to the model; for a folder, the names in it."""

    name: str
    path: str
    uri: str
    digest: str
    size: int
    ref: str


class SkillInvoked(NamedTuple):
    """A skill was put to use; a repeat is one that the model has already, so that only a reminder was sent."""

    name: str
    path: str
    mode: Mode
    args: str | None = None
    ref: str | None = None
    repeat: bool = False
    effective_allowed_tools: list[str] | None = None


class OverrideProposed(NamedTuple):
    """A loaded skill wishes for another model, other tools or another context; a host may follow, we never do."""

    name: str
    path: str
    kind: Literal["model", "tools", "context"]
    key: str
    value: Any
    verdict: Literal["allow", "deny", "confirm"]
    rule: str | None


class ToolStdout(NamedTuple):
    """What a script wrote to its standard output, in blocks."""

    tool_id: str
    chunk: str


class ToolStderr(NamedTuple):
    """What a script wrote to its standard error, in blocks."""

    tool_id: str
    chunk: str


class ToolEnded(NamedTuple):
    """A tool gave its result; a script that ran has one, however it ended."""

    tool_id: str
    exit_code: int
    artifacts: list[dict[str, Any]] = []
    truncated: bool = False
    reason: str | None = None


class ToolFailed(NamedTuple):
    """A tool gave an error instead."""

    tool_id: str
    code: str
    error: str


class SkillMentioned(NamedTuple):
    """A user's text named skills with `$name`; the text itself is not kept."""

    names: list[str]
    unknown: list[str] = []


class SkillActivated(NamedTuple):
    """The host keeps a skill active."""

    name: str
    path: str


class SkillDeactivated(NamedTuple):
    """A skill was given back."""

    name: str
    path: str


class ContextCompacted(NamedTuple):
    """The model's context was shortened; what was loaded is no longer in it."""

    skills: list[str]


Event = (
    SessionStarted
    | SkillCatalogUpdated
    | SkillWarning
    | PolicyWidened
    | ToolStarted
    | PermissionDecided
    | SkillLoaded
    | SkillRead
    | OverrideProposed
    | SkillInvoked
    | ToolStdout
    | ToolStderr
    | ToolEnded
    | ToolFailed
    | SkillMentioned
    | SkillActivated
    | SkillDeactivated
    | ContextCompacted
    | SessionEnded
)
"""Everything that can happen in a session."""


def _type_name(kind: type) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower()


EVENTS: Mapping[str, type[Any]] = {_type_name(kind): kind for kind in get_args(Event)}
"""Every kind of event by the `type` it has in a journal, in the order in which they come."""

MEMBERS: Mapping[str, str] = {
    "args": "the arguments as they were given; of `skill_invoked` the text for the skill",
    "artifacts": "files that hold an output whole: `path`, `bytes`, `digest`",
    "by": "who decided: `default` (no rule speaks of it), `rule`, `user` (asked, and answered), `remembered` (answered "
    "for ever), `nobody` (nobody could be asked), `person` (who typed the command is shown everything), `author` (the "
    "skill is closed to models), `disabled`",
    "chunk": "a part of the output, as text",
    "code": "the code of the error, as in a tool result",
    "collisions": "names that several skills have: `name`, `path` of the one that lost it, and `by`, the path that won",
    "command": "the whole `/skill:` command, where it was one",
    "count": "how many skills the catalog has",
    "cwd": "the working directory",
    "detail": "what there is to say, in words",
    "digest": "SHA-256 of the file; of `skill_catalog_updated`, of the catalog as a model is told of it; of "
    "`permission_decided`, of the script",
    "dir": "the folder of the skill, as found",
    "effective_allowed_tools": "what `allowed-tools` of the active skills leave of the host's tools; missing if they "
    "narrow nothing",
    "error": "what went wrong, in words",
    "events": "how many events the session has, this one included",
    "exit_code": "of a script its status, of any other tool 0",
    "folder_digest": "SHA-256 over all files below `scripts/`, which a script may use",
    "frontmatter": "every field of the frontmatter, the unknown ones too",
    "key": "the field of the frontmatter",
    "kind": "of a warning its rule; of a proposal what it is about",
    "mode": "`auto` for a call by a model, `manual` for what a person did",
    "name": "the name of the skill; of `tool_started` the tool",
    "names": "the skills that were named",
    "path": "the `SKILL.md` as found; of `skill_read` the file",
    "policy": "the policy with all its rules",
    "preload": "the skills that the session began with",
    "profile": "the profile",
    "reason": "why the script was ended, if it did not end by itself",
    "ref": "the reference under which the session keeps the text",
    "repeat": "true if the model has this version already",
    "restored": "true if the session goes on from a snapshot, which replay cannot repeat",
    "roots": "the folders that were looked into; of `skill_catalog_updated` with `scope`, `exists` and `skills`",
    "rule": "the rule that decided, or null",
    "script": "the script, relative to its skill",
    "size": "bytes of the file",
    "skills": "the paths of the skills that the model had",
    "timeout_ms": "how long a script may take",
    "tool": "the tool that the policy was asked about, by the name that rules use",
    "tool_id": "counts the calls of a session: `t1`, `t2`, …",
    "tools": "the patterns that the skill may allow",
    "truncated": "true if the output was cut",
    "trust": "whose skills the model is told of",
    "unknown": "names that resemble a skill and are none",
    "uri": "the address",
    "value": "the wish, as the frontmatter has it",
    "verdict": "what was decided; of a proposal `confirm` where no rule speaks of it",
    "version": "the version of skillshelf",
    "warnings": "what had to be said about the load: `path`, `rule`, `message`, `line`",
}
"""What each member means."""


def type_of(event: Event) -> str:
    """The `type` of an event in a journal."""
    return _type_name(type(event))


def payload_of(event: Event) -> dict[str, Any]:
    """The members of an event as a JSON value."""
    defaults = event._field_defaults
    return {
        key: plain(value) for key, value in event._asdict().items() if key not in defaults or value != defaults[key]
    }


_DEPTH = 32


def plain(value: Any, depth: int = _DEPTH) -> Any:
    """The value as JSON can hold it and every reader takes it; what cannot be written is described."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if depth == 0:
        return "nested too deeply"
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]
    return f"<{type(value).__name__}>"


class NotAnEvent(ValueError):
    """A record is no event of this version; says what is wrong with it."""


def parse_event(record: Mapping[str, Any]) -> Event:
    """The event that a record of a journal is; every member is checked, since anybody can write a file."""
    from skillshelf.core.validation import validate

    kind = EVENTS.get(str(record.get("type")))
    if kind is None:
        raise NotAnEvent(f"no event has the type {str(record.get('type'))[:50]!r}")
    members = {
        key: value for key, value in record.items() if key not in ("seq", "session", "ts_ms", "type", "prev", "sum")
    }
    if wrong := validate(members, kind, record["type"]):
        raise NotAnEvent(str(wrong))
    event: Event = kind(**members)
    return event
