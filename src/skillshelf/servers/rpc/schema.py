"""The methods of `skillshelf rpc` as data: what each takes, what it gives, and what it is for.

The server checks parameters against these types, and the schema and the page in docs/ are made from them.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from skillshelf.core.json_types import CatalogForm, ResourceForm, SearchForm, ShownForm, SkillForm, ToolForm

__all__ = ["MEMBERS", "METHODS", "TO_CLIENT", "Method", "Turn"]

Turn = Literal["at-once", "asking", "opening", "in-session"]
"""When a request runs: without asking anybody; beside others, since it may ask; first or next in a session."""


class Method(NamedTuple):
    """One method: the types of its parameters and its result, when it runs, and what it does."""

    params: Any
    result: Any
    turn: Turn
    help: str


# Parameters ---------------------------------------------------------------------------------------


class _NoParams(TypedDict):
    pass


class _ListParams(TypedDict):
    cwd: NotRequired[str]
    force_reload: NotRequired[bool]


class _InspectParams(TypedDict):
    include_skills: NotRequired[bool]


class _SearchParams(TypedDict):
    query: str
    limit: NotRequired[int]
    scope: NotRequired[str]
    cwd: NotRequired[str]


class _LoadParams(TypedDict):
    name: NotRequired[str]
    path: NotRequired[str]
    cwd: NotRequired[str]


class _ReadParams(TypedDict):
    uri: str
    cwd: NotRequired[str]


class _OpenParams(TypedDict):
    cwd: NotRequired[str]
    profile: NotRequired[str]
    policy: NotRequired[str | dict[str, Any]]
    journal: NotRequired[str]
    preload: NotRequired[list[str]]


class _SessionParams(TypedDict):
    session: str


class _PromptParams(TypedDict):
    session: str
    base: NotRequired[str]
    agents_context: NotRequired[str]
    tools: NotRequired[list[str]]


class _CallParams(TypedDict):
    session: str
    tool: str
    arguments: NotRequired[dict[str, Any]]


class _TextParams(TypedDict):
    session: str
    text: str


class _ActivateParams(TypedDict):
    session: str
    name: NotRequired[str]
    path: NotRequired[str]


class _DeactivateParams(TypedDict):
    session: str
    name: str


class _RecallParams(TypedDict):
    session: str
    ref: str


class _SentForm(TypedDict):
    name: str
    path: str
    mtime_ms: int
    digest: str
    arguments: str
    ref: str
    in_context: bool


class SnapshotForm(TypedDict):
    """A session as a JSON value."""

    version: int
    profile: str
    active: list[str]
    preloaded: list[str]
    asked_for: list[str]
    loaded: list[_SentForm]
    texts: dict[str, str]


class _RestoreParams(TypedDict):
    snapshot: SnapshotForm
    cwd: NotRequired[str]
    policy: NotRequired[str | dict[str, Any]]
    journal: NotRequired[str]


# Results ------------------------------------------------------------------------------------------


class _Capabilities(TypedDict):
    supports_skills_list: bool
    supports_context_inspect: bool
    supports_sessions: bool


class InitializeForm(TypedDict):
    """What this server is and can do."""

    name: str
    version: str
    profiles: list[str]
    capabilities: _Capabilities


class _Version(TypedDict):
    path: str
    mtime_ms: int


class _SkillsState(TypedDict):
    enabled: bool
    root_dir: str
    working_dir: str
    catalog: CatalogForm
    loaded_versions: list[_Version]


class InspectForm(TypedDict):
    """What a model of this server can know at this moment."""

    skills: NotRequired[_SkillsState]


class SessionForm(TypedDict):
    """A session that was opened."""

    session: str


class RestoredForm(TypedDict):
    """A session that was opened again, and what is different on disk since its snapshot."""

    session: str
    changes: list[str]


class TextForm(TypedDict):
    """A text."""

    text: str


class ToolsForm(TypedDict):
    """The tools of a session."""

    tools: list[ToolForm]


class _ToolError(TypedDict):
    code: str
    message: str
    candidates: list[str]


class ToolResultForm(TypedDict):
    """What a call gave: the text for the model, the same as data, or an error."""

    ok: bool
    text: str
    data: dict[str, Any]
    error: _ToolError | None


class MentionsForm(TypedDict):
    """A user's text with its mentions listed for the model, the skills they mean, and near misses."""

    text: str
    skills: list[str]
    unknown: list[str]


class ActivatedForm(TypedDict):
    """A skill that is active now, and all that are."""

    skill: SkillForm
    digest: str
    active: list[str]


class ActiveForm(TypedDict):
    """The skills that are active."""

    active: list[str]


class DecisionForm(TypedDict):
    """What may happen, the rule that says so, and why."""

    verdict: Literal["allow", "deny", "confirm"]
    rule: str | None
    reason: str


class ClosedForm(TypedDict):
    """A session that ended; `journal_problem` says what its journal does not hold."""

    journal_problem: str | None


class ConfirmForm(TypedDict):
    """A question to the user."""

    session: str
    tool: str
    name: str
    reason: str


# The tables ---------------------------------------------------------------------------------------

METHODS: Mapping[str, Method] = {
    "initialize": Method(
        _NoParams, InitializeForm, "at-once", "says what this server is and can do; it need not come first"
    ),
    "skills.list": Method(
        _ListParams,
        CatalogForm,
        "at-once",
        "gives the catalog of a folder with what is not in it, and why. It is kept until `force_reload` asks for the "
        "configuration and the disk to be read again; the open sessions of that folder then see the disk anew too",
    ),
    "context.inspect": Method(
        _InspectParams,
        InspectForm,
        "at-once",
        "gives the catalog of the server's own folder as it is kept, and the versions of skills that were loaded since "
        "the server started, in whatever session",
    ),
    "skills.search": Method(
        _SearchParams, SearchForm, "at-once", "finds the skills that fit a query, of those that a model is told of"
    ),
    "skills.load": Method(
        _LoadParams,
        ShownForm,
        "asking",
        "gives a skill as a model gets it, outside of any session; a path wins over a name",
    ),
    "skills.read": Method(_ReadParams, ResourceForm, "asking", "gives one file of a skill, outside of any session"),
    "session.open": Method(
        _OpenParams, SessionForm, "opening", "begins a conversation; the disk is looked at anew for it"
    ),
    "session.system_prompt": Method(
        _PromptParams, TextForm, "in-session", "gives the base text, the standing context, then the skills"
    ),
    "session.tools": Method(
        _SessionParams, ToolsForm, "in-session", "gives the tools that the model is to be offered, with their schemas"
    ),
    "session.call": Method(
        _CallParams,
        ToolResultForm,
        "in-session",
        "runs a tool for the model. A mistake of the model is an `error` in the result, never an error of the protocol",
    ),
    "session.command": Method(
        _TextParams,
        ToolResultForm | None,
        "in-session",
        "runs what a user typed, such as `/skill:name words`; null for text that is no command of the profile",
    ),
    "session.mentions": Method(
        _TextParams, MentionsForm, "in-session", "finds the skills that `$name` means in a user's text"
    ),
    "session.activate": Method(
        _ActivateParams, ActivatedForm, "in-session", "loads a skill that the user chose and keeps it active"
    ),
    "session.deactivate": Method(
        _DeactivateParams, ActiveForm, "in-session", "gives a skill back; its `allowed-tools` count no longer"
    ),
    "session.compact": Method(
        _SessionParams,
        _NoParams,
        "in-session",
        "says that the model's context was shortened: what was loaded is no longer in it",
    ),
    "session.recall": Method(
        _RecallParams, TextForm, "in-session", "gives the whole text behind a reference, until the session ends"
    ),
    "session.decide": Method(
        _CallParams, DecisionForm, "in-session", "says what the policy makes of a call of any tool; nothing is run"
    ),
    "session.snapshot": Method(_SessionParams, SnapshotForm, "in-session", "gives the session as a JSON value"),
    "session.restore": Method(
        _RestoreParams, RestoredForm, "opening", "opens the session that a snapshot was taken of, under a new name"
    ),
    "session.close": Method(_SessionParams, ClosedForm, "in-session", "ends a session and its journal"),
}
"""What a client may ask for."""

TO_CLIENT: Mapping[str, Method] = {
    "confirm": Method(
        ConfirmForm,
        bool | Literal["remember"],
        "asking",
        'asks the user. `true` is yes, once; `"remember"` is yes, and for loads and reads the exact rule goes to the '
        "user's configuration; anything else, an error, or no answer in time, means no",
    ),
    "event": Method(
        dict[str, Any],
        None,
        "at-once",
        "is a notification: what happened, with `session` and `type` and the members that this type has in a journal. "
        "What is done outside of any session has a name of its own, `r1`, `r2`, …",
    ),
}
"""What the server sends by itself."""

MEMBERS: Mapping[str, str] = {
    "agents_context": "standing context of the host, put between the base text and the skills",
    "arguments": "what the tool is called with",
    "base": "the text that a system prompt begins with",
    "cwd": "the folder to look from; a relative one from the server's own (default: the server's own)",
    "force_reload": "read configuration and disk again (default: false)",
    "include_skills": "tell of the skills (default: true)",
    "journal": "add what happens to this file (default: the file of `--journal`)",
    "limit": "how many results at most, from 1",
    "name": "the name of a skill",
    "path": "the path of a skill's folder or SKILL.md",
    "policy": "`default`, `read-only`, `full-auto`, or an object of rules",
    "preload": "skills that are in the model's context from the start",
    "profile": "the system whose rules apply (default: that of `--profile`)",
    "query": "words of the task, a name, or a path",
    "reason": "why somebody is asked",
    "ref": "a reference that a result gave",
    "scope": "only skills of this scope",
    "session": "which session",
    "snapshot": "what `session.snapshot` gave",
    "text": "what the user typed",
    "tool": "the name of a tool",
    "tools": "the names of the host's own tools; without it, `read` is one",
    "uri": "`skill://NAME` or `skill://NAME/PATH`",
}
"""What each parameter means; a name means the same in every method."""
