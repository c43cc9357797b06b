"""Define one type for each event of a session, and its JSON form.

The JSON form leaves out members that have their default value. `MEMBERS` explains each member; a name means the
same in every event.
"""
# ruff: noqa: RUF012 - defaults of a NamedTuple, which are never changed.

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from skillshelf.core.records import NamedTuple

__all__ = ["EVENTS", "MEMBERS", "Event", "NotAnEvent", "PlainList", "parse_event", "payload_of", "plain", "type_of"]

Mode = Literal["auto", "manual"]
By = Literal["default", "rule", "user", "remembered", "nobody", "person", "author", "disabled", "failed", "system"]


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
    client: str | None = None
    subject: str | None = None
    per_request: bool = False
    memory: Literal["session", "messages", "none"] = "session"
    tools: list[str] = []
    system: list[dict[str, Any]] = []


class SessionEnded(NamedTuple):
    """A session was closed; the last event of every session that ended well."""

    events: int


class SkillCatalogUpdated(NamedTuple):
    """The catalog was built, or rebuilt with another result."""

    count: int  # type: ignore[assignment]  # The contract's name hides a method of tuples.
    roots: list[dict[str, Any]]
    digest: str
    collisions: list[dict[str, Any]] = []
    inputs: str | None = None
    listing: str | None = None
    listed: list[dict[str, Any]] = []


ANSWER_CUT = "answer-cut"
"""The kind of a warning about an incomplete answer."""

MORE_WARNINGS = "more-warnings"
"""The kind of a warning that stands for those of a catalog that are not listed."""


class SkillWarning(NamedTuple):
    """A warning for the user: a name collision with both candidates, an invalid skill, or (`lock-changed`) an installed
    skill that was not handed out since its files are not those of its lock."""

    kind: str
    detail: str
    name: str | None = None
    path: str | None = None


class PolicyWidened(NamedTuple):
    """More is allowed than by default: a policy without questions, or a skill that may allow tools."""

    rule: str
    detail: str
    name: str | None = None
    tools: list[str] = []


class ToolStarted(NamedTuple):
    """A model called a tool, or a person ran the matching command."""

    tool_id: str
    name: str
    args: Any
    mode: Mode
    timeout_ms: int | None = None
    command: str | None = None
    host: bool = False


class PermissionDecided(NamedTuple):
    """The policy decided about a resolved skill."""

    tool: str
    name: str | None
    path: str | None
    verdict: Literal["allow", "deny"]
    rule: str | None
    by: By
    script: str | None = None
    digest: str | None = None
    folder_digest: str | None = None
    tree: str | None = None


class SkillLoaded(NamedTuple):
    """A SKILL.md was read for the model."""

    name: str
    path: str
    dir: str
    digest: str
    frontmatter: dict[str, Any]
    warnings: list[dict[str, Any]] = []
    tree: str | None = None
    """The tree of an installed skill, which its lock names; None for any other."""


class SkillRead(NamedTuple):
    """A file of a skill, or the names in a folder, were read for the model."""

    name: str
    path: str
    uri: str
    digest: str
    size: int
    ref: str


class SkillInvoked(NamedTuple):
    """A skill was invoked; a repeat is one that the model already has, so only a reminder was sent."""

    name: str
    path: str
    mode: Mode
    args: str | None = None
    ref: str | None = None
    repeat: bool = False
    effective_allowed_tools: list[str] | None = None


class OverrideProposed(NamedTuple):
    """A loaded skill requests another model, tools or context; a host may apply it, we never do."""

    name: str
    path: str
    kind: Literal["model", "tools", "context"]
    key: str
    value: Any
    verdict: Literal["allow", "deny", "confirm"]
    rule: str | None


class ToolStdout(NamedTuple):
    """A block of a script's standard output."""

    tool_id: str
    chunk: str


class ToolStderr(NamedTuple):
    """A block of a script's standard error."""

    tool_id: str
    chunk: str


class ToolEnded(NamedTuple):
    """A tool returned a result; a script that ran always has one."""

    tool_id: str
    exit_code: int
    artifacts: list[dict[str, Any]] = []
    truncated: bool = False
    reason: str | None = None
    output_bytes: list[int] = []
    text_digest: str | None = None
    text_bytes: int | None = None
    inputs: str | None = None
    missing: list[str] = []
    prior: str | None = None


class ToolFailed(NamedTuple):
    """A tool returned an error."""

    tool_id: str
    code: str
    error: str
    text_digest: str | None = None
    text_bytes: int | None = None
    inputs: str | None = None


class PromptComposed(NamedTuple):
    """A system prompt was composed; one that is equal to the last one is not recorded again."""

    digest: str
    bytes: int
    entries: int
    omitted: int
    base_digest: str
    read_tool: bool = True


class ToolDecided(NamedTuple):
    """The policy decided about a tool of the host, which the host asked for."""

    tool: str
    verdict: Literal["allow", "deny", "confirm"]
    rule: str | None
    reason: str = ""
    args: Any = None
    args_digest: str | None = None


class ResultDropped(NamedTuple):
    """The caller of a tool was cancelled: the model did not get the result, and what it loaded is not active."""

    tool_id: str
    skills: list[str] = []


class ToolAnswered(NamedTuple):
    """A person was asked about a tool of the host that the policy left to confirm."""

    tool: str
    verdict: Literal["allow", "deny"]
    by: By


class SkillMentioned(NamedTuple):
    """A user's text named skills with `$name`; the text itself is not kept."""

    names: list[str]
    unknown: list[str] = []


class SkillActivated(NamedTuple):
    """The host keeps a skill active."""

    name: str
    path: str


class SkillDeactivated(NamedTuple):
    """The host deactivated a skill."""

    name: str
    path: str


class ContextCompacted(NamedTuple):
    """The model's context was compacted; loaded texts are no longer in it."""

    skills: list[str]


class JournalContinued(NamedTuple):
    """The journal was rotated: the first line of a new part. It belongs to no session."""

    part: int
    before: str
    head: str | None = None
    removed_part: int = 0
    removed_seq: int | None = None
    gap: bool = False


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
    | PromptComposed
    | ToolDecided
    | ResultDropped
    | ToolAnswered
    | SkillMentioned
    | SkillActivated
    | SkillDeactivated
    | ContextCompacted
    | SessionEnded
    | JournalContinued
)
"""Any event of a session."""


def _type_name(kind: type) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower()


EVENTS: Mapping[str, type[Any]] = {_type_name(kind): kind for kind in get_args(Event)}
"""Every event type by its `type` in a journal, in the usual order."""

_NAMES: Mapping[type, str] = {kind: name for name, kind in EVENTS.items()}

MEMBERS: Mapping[str, str] = {
    "args": "the arguments as they were given; of `skill_invoked` the text for the skill; of `tool_decided` missing if "
    "there are none or they are long",
    "args_digest": "SHA-256 of the arguments as JSON, where they are too long to be recorded; replay then takes the "
    "decision from the journal",
    "artifacts": "files that hold an output whole: `path`, `bytes`, `digest`",
    "before": "the file with the part before this one",
    "base_digest": "SHA-256 of what the host gave: its own prompt and the agents context; not compared by replay",
    "by": "the source of the decision: `default` (no rule applies), `rule`, `user` (answered a question), "
    "`remembered` (an earlier answer), `nobody` (no user to ask), `person` (a person ran the command), `author` (the "
    "skill is closed to models), `disabled`, `failed` (the host could not ask), `system` (the system policy)",
    "bytes": "the size of our part of the system prompt",
    "chunk": "a part of the output, as text",
    "client": "the client program, where a server knows it: its name and version",
    "code": "the code of the error, as in a tool result",
    "collisions": "names of several skills: `name`, `path` of the shadowed skill, and `by`, the path of the winner",
    "command": "the whole `/skill:` command, if it was one",
    "count": "the number of skills in the catalog",
    "cwd": "the working directory",
    "detail": "the message",
    "digest": "SHA-256 of the file; of `skill_catalog_updated`, of the catalog text for the model; of "
    "`permission_decided`, of the script; of `prompt_composed`, of our part: rules, catalog and preloaded skills",
    "dir": "the folder of the skill, as found",
    "effective_allowed_tools": "the host's tools that `allowed-tools` of the active skills leave; missing if they "
    "narrow nothing",
    "entries": "the number of skills that the catalog in the prompt lists",
    "error": "the error message",
    "events": "the number of events of the session, this one included",
    "exit_code": "the exit status of a script; 0 for any other tool",
    "folder_digest": "in journals of 0.1: SHA-256 over all files below `scripts/`; `tree` replaces it",
    "frontmatter": "every field of the frontmatter, unknown ones included",
    "gap": "true if, when rotation removed the oldest parts, others were already missing without a record",
    "head": "the `sum` of the last line of the part before",
    "host": "true if a host made the call and passes the text on to its model",
    "inputs": "SHA-256 of the document with the inputs, in the folder by the journal, if they are kept: the catalog "
    "and the configuration, or the results of reads and searches of a call",
    "key": "the field of the frontmatter",
    "kind": "the rule of a warning; the subject of a proposal",
    "listed": "the skills of the catalog by folder: `folder`, and `skills` as lists of a name, a mark of the "
    "description and, unless it is `NAME/SKILL.md`, the file; only in a journal, where a process writes the same list "
    "once into a file",
    "listing": "the digest of `listed`, by which a later event of the same file refers to that list",
    "memory": "what decides that a text is still in the context: the `session` (also if the member is missing), the "
    "`messages` of each call, or nothing (`none`: every load is whole)",
    "mode": "`auto` for a call by a model, `manual` for an action of a person",
    "name": "the name of the skill; of `tool_started` the tool",
    "names": "the skills that the text names",
    "omitted": "the number of skills that the budget left out of the catalog in the prompt",
    "missing": "parts of the sandbox that a script ran without",
    "output_bytes": "if the output was cut: the sizes of the whole standard output and standard error",
    "part": "the number of this part of the journal, from 1",
    "path": "the `SKILL.md` as found; of `skill_read` the file",
    "per_request": "true if the session is one request, because the transport has no sessions",
    "policy": "the policy with all its rules",
    "preload": "the skills that were loaded at the start",
    "prior": "of a search: SHA-256 of what earlier use added to the scores, if it added anything; the document itself "
    "is in the folder by the journal, if inputs are kept",
    "profile": "the profile",
    "read_tool": "false if the host has no tool `read`, without which some profiles list no skills",
    "reason": "the reason why the script was stopped, if it was; of `tool_decided` the reason for the decision",
    "ref": "the reference under which the session keeps the text",
    "removed_part": "the number of the last part that rotation removed",
    "removed_seq": "the `seq` of the last line that was removed with it",
    "repeat": "true if the model already has this version",
    "restored": "true if the session continues a snapshot, which replay cannot repeat",
    "roots": "the folders that were searched; of `skill_catalog_updated` with `scope`, `exists` and `skills`",
    "rule": "the rule that decided, or null",
    "script": "the path of the script, relative to its skill",
    "size": "the size of the file in bytes",
    "subject": "the person or service that a server authenticated",
    "system": "the files of the system policy, each with what it says",
    "text_bytes": "the size of the text that a model gets for this call",
    "text_digest": "SHA-256 of the text that a model gets for this call (for a person, of the same text); in an "
    "envelope `time_ms` counts as 0. Of `tool_failed`, of the message with its candidates",
    "skills": "the paths of the skills that the model had; of `result_dropped` those that it did not get",
    "timeout_ms": "the time limit of a script",
    "tool": "the tool in question, by the name that rules use; of `tool_decided` as the host calls it",
    "tool_id": "counts the calls of a session: `t1`, `t2`, …",
    "tools": "the patterns that the skill may allow; of `session_started` the skill tools that the host added to those "
    "of the profile",
    "truncated": "true if the output was cut",
    "tree": "the digest of all files of the skill (`skill-tree-v1`), if the decision is about them; of `skill_loaded`, "
    "the one that its lock names",
    "trust": "the skills that are visible to the model: `all`, `ask` or `user`",
    "unknown": "names that resemble a skill but are not one",
    "uri": "the `skill://` address",
    "value": "the requested value, as in the frontmatter",
    "verdict": "the decision; of a proposal `confirm` if no rule applies",
    "version": "the version of skillshelf",
    "warnings": "warnings about the load: `path`, `rule`, `message`, `line`",
}
"""The meaning of each member."""


def type_of(event: Event) -> str:
    """Return the `type` of an event in a journal."""
    return _NAMES[type(event)]


def payload_of(event: Event) -> dict[str, Any]:
    """Return the members of an event as a JSON value."""
    defaults = event._field_defaults
    return {
        key: plain(value) for key, value in event._asdict().items() if key not in defaults or value != defaults[key]
    }


_DEPTH = 32


class PlainList(list[Any]):
    """A list that is portable JSON already: a long one that many events have is converted once."""


def plain(value: Any, depth: int = _DEPTH) -> Any:
    """Return the value in portable JSON; describe what JSON cannot hold."""
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
    if isinstance(value, PlainList):
        return value
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]
    return f"<{type(value).__name__}>"


class NotAnEvent(ValueError):
    """A record that is not a valid event of this version."""


def parse_event(record: Mapping[str, Any]) -> Event:
    """Return the event in a record; check every member, since a journal is an untrusted file."""
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
