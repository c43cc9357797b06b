"""The methods of `skillshelf rpc` in one table: parameters, result, description and handler.

The keyword-only arguments of a handler are the parameters of its method; those with a default are optional. Its
docstring is the description. Requests are checked against this table, and the schema and docs/rpc.md are made from it.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import NoneType
from typing import Any, Literal, NotRequired, TypedDict, get_args

from skillshelf import __version__
from skillshelf.config.builtin_profiles import SYSTEMS
from skillshelf.config.settings import load_settings
from skillshelf.core.environment import make_environment
from skillshelf.core.json_types import CatalogForm, ResourceForm, SearchForm, ShownForm, SkillForm, ToolForm
from skillshelf.core.records import NamedTuple
from skillshelf.errors import ConfigurationError, SkillError, SkillNotFound, kind_of
from skillshelf.servers.rpc.runtime import Refused, Runtime
from skillshelf.session.results import message_text
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolError, ToolResult

__all__ = ["METHODS", "PARAMETERS", "TO_CLIENT", "Method", "run_method"]

Queue = Literal["shared", "confirming", "new-session", "session"]
"""The threads that run a request: those of requests that ask nothing, those of requests that may ask the user, the one
of the session that is opened, or the one of the session that is named."""


class Method(NamedTuple):
    """One method: a TypedDict of its parameters, the type of its result, its description, its queue and its handler."""

    params: Any
    result: Any
    help: str
    queue: Queue = "shared"
    handler: Callable[..., Any] | None = None


class _LoadedVersion(TypedDict):
    path: str
    mtime_ms: int


class _SkillsState(TypedDict):
    enabled: bool
    root_dir: str
    working_dir: str
    catalog: CatalogForm
    loaded_versions: list[_LoadedVersion]


class _Capabilities(TypedDict):
    supports_skills_list: bool
    supports_context_inspect: bool
    supports_sessions: bool


class _ToolError(TypedDict):
    code: str
    message: str
    candidates: list[str]


class ToolResultForm(TypedDict):
    """The result of a tool call: the text for the model, the same as data, or an error."""

    ok: bool
    text: str
    data: dict[str, Any]
    error: _ToolError | None


class _SentForm(TypedDict):
    name: str
    path: str
    mtime_ms: int
    digest: str
    arguments: str
    ref: str
    in_context: bool
    whole: NotRequired[bool]


class SnapshotForm(TypedDict):
    """A session as a JSON value."""

    version: int
    profile: str
    active: list[str]
    preloaded: list[str]
    asked_for: list[str]
    loaded: list[_SentForm]
    texts: dict[str, str]


# Methods ------------------------------------------------------------------------------------------

METHODS: dict[str, Method] = {}
"""The methods that a client may call."""


def _method(name: str, result: Any, queue: Queue = "session") -> Callable[[Any], Any]:
    """Add a handler to the table; a result is a type, or the members of an object."""

    def add(handler: Any) -> Any:
        code, defaults = handler.__code__, handler.__kwdefaults__ or {}
        params: dict[str, Any] = {}
        for key in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]:
            hint = handler.__annotations__[key]
            if key in defaults and defaults[key] is None:
                # It may be left out, but null is a mistake.
                hint = reduce(or_, (one for one in get_args(hint) if one is not NoneType))
            params[key] = NotRequired[hint] if key in defaults else hint
        returned = _typed_dict(result) if isinstance(result, dict) else result
        METHODS[name] = Method(_typed_dict(params), returned, " ".join((handler.__doc__ or "").split()), queue, handler)
        return handler

    return add


def _typed_dict(members: dict[str, Any]) -> Any:
    return TypedDict("Members", members)  # type: ignore[operator]  # the members are known only at run time


@_method("initialize", {"name": str, "version": str, "profiles": list[str], "capabilities": _Capabilities}, "shared")
def _initialize(runtime: Runtime) -> Any:
    """Return the name, the version and the capabilities of this server; it need not be called first."""
    options = runtime.options
    environment = make_environment(options.cwd, options.home, None, config=options.config)
    settings = load_settings(environment, trust=options.trust)
    features = ("supports_skills_list", "supports_context_inspect", "supports_sessions")
    return {
        "name": "skillshelf",
        "version": __version__,
        "profiles": [*SYSTEMS, *settings.profiles],
        "capabilities": dict.fromkeys(features, True),
    }


@_method("skills.list", CatalogForm, "shared")
def _list(runtime: Runtime, *, cwd: str = "", force_reload: bool = False) -> Any:
    """Return the catalog of a folder, with the skills that are missing from it and why. It is kept until
    `force_reload` reads configuration and disk again; the open sessions of that folder then see the disk as it is too.
    """
    shelf = runtime.shelf(cwd, reread="everything" if force_reload else "nothing")
    if force_reload:
        shelves = {id(session.shelf): session.shelf for session in list(runtime.sessions.values())}
        for other in shelves.values():
            if other.environment.cwd == shelf.environment.cwd:
                other.refresh()
    return runtime.listing(shelf.catalog)


@_method("context.inspect", {"skills": NotRequired[_SkillsState]}, "shared")
def _inspect(runtime: Runtime, *, session: str = "", include_skills: bool = False, cwd: str = "") -> Any:
    """Return the state of a session, or of a folder: the kept catalog, and the versions of skills whose text is still
    in the context of that session, or of any open session of that folder.
    """
    if session and cwd:
        raise ConfigurationError("name a session or cwd, not both: a session has its own folder")
    inspected = [runtime.session(session)] if session else list(runtime.sessions.values())
    if not include_skills:
        return {}
    shelf = inspected[0].shelf if session else runtime.shelf(cwd)
    folder = shelf.environment.cwd
    inspected = [one for one in inspected if one.shelf.environment.cwd == folder]
    versions = sorted({version for one in inspected for version in one.loaded_versions.items()})
    state = {
        "enabled": shelf.settings.enabled,
        "root_dir": shelf.project_root,
        "working_dir": folder,
        "catalog": shelf.catalog.to_dict(),
        "loaded_versions": [{"path": path, "mtime_ms": mtime_ms} for path, mtime_ms in versions],
    }
    return {"skills": state}


@_method("skills.search", SearchForm, "shared")
def _search(runtime: Runtime, *, query: str, limit: int | None = None, scope: str | None = None, cwd: str = "") -> Any:
    """Find the skills that match a query, among those visible to a model."""
    if limit is not None and limit < 1:
        raise ConfigurationError("limit must be a whole number of at least 1")
    with runtime.short_session(cwd) as session:
        return session.search(query, limit=limit, scope=scope).to_dict()


@_method("skills.load", ShownForm, "confirming")
def _load(runtime: Runtime, *, name: str = "", path: str = "", cwd: str = "") -> Any:
    """Return a skill as a model gets it, outside of any session; a path takes precedence over a name."""
    _require_one(name, path)
    with runtime.short_session(cwd) as session:
        return session.load(name or None, path=path or None, for_model=True).to_dict()


@_method("skills.read", ResourceForm, "confirming")
def _read(runtime: Runtime, *, uri: str, cwd: str = "") -> Any:
    """Return one file of a skill, outside of any session."""
    with runtime.short_session(cwd) as session:
        return session.read(uri, for_model=True)._asdict()


@_method("session.open", {"session": str, "held_back": NotRequired[str]}, "new-session")
def _open(
    runtime: Runtime,
    new: str,
    *,
    cwd: str = "",
    profile: str = "",
    policy: str | dict[str, Any] | None = None,
    journal: str = "",
    preload: list[str] | None = None,
) -> Any:
    """Open a session for one conversation; the disk is read again for it. If anything is kept from models, `held_back`
    is a line about it for the user: skills of a folder that is not trusted, and what the project's own file takes away.
    """
    shelf = runtime.shelf(cwd, profile, reread="disk")
    options = runtime.session_options(new, policy, journal)
    runtime.keep(new, Session(shelf, preload=preload or (), **options))
    line = shelf.held_back.for_user()
    return {"session": new, **({"held_back": line} if line else {})}


@_method("session.system_prompt", {"text": str})
def _prompt(
    runtime: Runtime, *, session: str, base: str = "", agents_context: str = "", tools: list[str] | None = None
) -> Any:
    """Return the base text, the standing context, then the skills."""
    return {"text": runtime.session(session).system_prompt(base, agents_context, tools)}


@_method("session.tools", {"tools": list[ToolForm]})
def _tools(runtime: Runtime, *, session: str) -> Any:
    """Return the tools to offer to the model, with their schemas."""
    return {"tools": [tool.to_dict() for tool in runtime.session(session).tools()]}


@_method("session.call", ToolResultForm)
def _call(runtime: Runtime, *, session: str, tool: str, arguments: dict[str, Any] | None = None) -> Any:
    """Run a tool for the model. A mistake of the model is an `error` in the result, never an error of the protocol."""
    return _tool_result(runtime.session(session).call(tool, arguments))


@_method("session.command", ToolResultForm | None)
def _command(runtime: Runtime, *, session: str, text: str) -> Any:
    """Run a command that a user typed, such as `/skill:name words`; null if the profile has no such command."""
    result = runtime.session(session).command(text)
    return None if result is None else _tool_result(result)


@_method("session.mentions", {"text": str, "skills": list[str], "unknown": list[str], "ambiguous": list[str]})
def _mentions(runtime: Runtime, *, session: str, text: str) -> Any:
    """Find the skills that a user's text mentions as `$name`."""
    return runtime.session(session).resolve_mentions(text)._asdict()


@_method("session.activate", {"skill": SkillForm, "digest": str, "active": list[str]})
def _activate(runtime: Runtime, *, session: str, name: str = "", path: str = "") -> Any:
    """Load a skill that the user chose and keep it active."""
    _require_one(name, path)
    conversation = runtime.session(session)
    loaded = conversation.activate(name or None, path=path or None)
    return {"skill": loaded.skill.to_dict(), "digest": loaded.digest, "active": list(conversation.active)}


@_method("session.deactivate", {"active": list[str]})
def _deactivate(runtime: Runtime, *, session: str, name: str) -> Any:
    """Deactivate a skill; its `allowed-tools` no longer apply."""
    conversation = runtime.session(session)
    if name not in conversation.active:
        raise SkillNotFound(name)
    conversation.deactivate(name)
    return {"active": list(conversation.active)}


@_method("session.compact", {})
def _compact(runtime: Runtime, *, session: str) -> Any:
    """Record that the model's context was compacted: the loaded texts are no longer in it."""
    runtime.session(session).compact()
    return {}


@_method("session.recall", {"text": str})
def _recall(runtime: Runtime, *, session: str, ref: str) -> Any:
    """Return the whole text behind a reference, until the session ends."""
    return {"text": runtime.session(session).recall(ref)}


@_method("session.decide", {"verdict": Literal["allow", "deny", "confirm"], "rule": str | None, "reason": str})
def _decide(runtime: Runtime, *, session: str, tool: str, arguments: dict[str, Any] | None = None) -> Any:
    """Return the decision of the policy about a call of any tool; nothing is run."""
    return runtime.session(session).decide(tool, arguments)._asdict()


@_method("session.snapshot", SnapshotForm)
def _snapshot(runtime: Runtime, *, session: str) -> Any:
    """Return the session as a JSON value."""
    return runtime.session(session).snapshot()


@_method("session.restore", {"session": str, "changes": list[str]}, "new-session")
def _restore(
    runtime: Runtime,
    new: str,
    *,
    snapshot: SnapshotForm,
    cwd: str = "",
    policy: str | dict[str, Any] | None = None,
    journal: str = "",
) -> Any:
    """Open the session of a snapshot again, under a new name."""
    shelf = runtime.shelf(cwd, snapshot["profile"], reread="disk")
    session = Session.restore(snapshot, shelf, **runtime.session_options(new, policy, journal))
    runtime.keep(new, session)
    return {"session": new, "changes": [message_text(change) for change in session.changes]}


@_method("session.close", {"journal_problem": str | None})
def _close(runtime: Runtime, *, session: str) -> Any:
    """Close a session and its journal."""
    return {"journal_problem": runtime.close(session)}


def _tool_result(result: ToolResult) -> dict[str, Any]:
    return {**result._asdict(), "error": result.error._asdict() if result.error else None}


def _require_one(name: str, path: str) -> None:
    if not name and not path:
        raise ConfigurationError("name or path is required")


def run_method(name: str, params: Mapping[str, Any], runtime: Runtime, session: str | None) -> Any:
    """Return the result of a method, or raise `Refused`; `session` is the one that it opens or works on."""
    method = METHODS[name]
    assert method.handler is not None
    try:
        if method.queue == "new-session":
            return method.handler(runtime, session, **params)
        return method.handler(runtime, **params)
    except SkillError as error:
        opened = runtime.sessions.get(session or "")
        explained = opened.explain(error) if opened else ToolError(kind_of(error).code, message_text(str(error)))
        raise Refused(explained) from error


# Messages from the server, and the meanings of parameters -----------------------------------------

TO_CLIENT: Mapping[str, Method] = {
    "confirm": Method(
        _typed_dict({"session": str, "tool": str, "name": str, "reason": str}),
        bool | Literal["remember"],
        'Ask the user. `true` allows it once, `"remember"` for good, as long as the files of this skill are the same; '
        "anything else, an error, or no answer in time denies it.",
    ),
    "event": Method(
        dict[str, Any],
        None,
        "Notify the client of an event: `session`, `type` and the members that this type has in a journal. "
        "A request outside of any session gets a session name of its own, `r1`, `r2`, …",
    ),
}
"""The messages that the server sends on its own."""

PARAMETERS: Mapping[str, str] = {
    "agents_context": "standing context of the host, placed between the base text and the skills",
    "arguments": "the arguments of the tool call",
    "base": "the text that the system prompt begins with",
    "cwd": "the folder to search from; a relative path starts at the server's folder (default: the server's folder)",
    "force_reload": "read configuration and disk again (default: false)",
    "include_skills": "include the skills (default: false)",
    "journal": "append events to this file (default: the file of `--journal`)",
    "limit": "the maximum number of results, at least 1",
    "name": "the name of a skill",
    "path": "the path of a skill's folder or SKILL.md",
    "policy": "`default`, `read-only`, `full-auto`, or an object of rules",
    "preload": "skills that are in the model's context from the start",
    "profile": "the profile to use (default: that of `--profile`)",
    "query": "words of the task, a name, or a path",
    "reason": "the reason for the question",
    "ref": "a reference from an earlier result",
    "scope": "only skills of this scope",
    "session": "the name of the session",
    "snapshot": "the result of `session.snapshot`",
    "text": "the text that the user typed",
    "tool": "the name of a tool",
    "tools": "the names of the host's own tools; without it, `read` is assumed",
    "uri": "`skill://NAME` or `skill://NAME/PATH`",
}
"""The meaning of each parameter; a name means the same in every method."""
