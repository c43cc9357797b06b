"""A method of `skillshelf rpc` and its parameters to its result: shelves and sessions behind the protocol.

No threads and no streams here; `rpcserver` says when a method runs and carries what the session asks and tells.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from skillshelf import __version__
from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Trust, load_settings
from skillshelf.config.systems import SYSTEMS
from skillshelf.core.environment import make_environment
from skillshelf.core.limits import RPC_SHELVES
from skillshelf.core.text import plural
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import (
    ConfigurationError,
    SkillDirectoryNotFound,
    SkillError,
    SkillNotFound,
    SkillsDisabled,
    kind_of,
)
from skillshelf.journal.events import SkillLoaded, payload_of, type_of
from skillshelf.session.effects import real_effects
from skillshelf.session.recorder import Recording
from skillshelf.session.results import message_text
from skillshelf.session.session import Session
from skillshelf.session.tools import ToolError, ToolResult
from skillshelf.shelf import Shelf, open_shelf

if TYPE_CHECKING:
    from skillshelf.journal.events import Event

__all__ = ["HANDLERS", "Client", "Options", "Refused", "Runtime"]

Params = Mapping[str, Any]


class Options(NamedTuple):
    """How the server was started; paths are absolute."""

    cwd: str
    profile: str | None = None
    home: str | None = None
    config: str | None = None
    use_cache: bool = True
    trust: Trust = "ask"
    journal: str | None = None
    keep: bool = False


class Client(NamedTuple):
    """The other side: who is asked, who is told of events, and where remarks for people go."""

    ask: Callable[[str, str, str, str], bool | Literal["remember"]]
    tell: Callable[[dict[str, Any]], None]
    note: Callable[[str], None]


class Refused(Exception):
    """A request that cannot be done, and why."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


class _Slot:
    """The shelf of one folder and profile; the lock is held while somebody looks at the disk for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shelf: Shelf | None = None


class Runtime:
    """What lasts between requests: the catalogs by folder, the open sessions, the versions that were loaded."""

    def __init__(self, options: Options, client: Client) -> None:
        self.options = options
        self.sessions: dict[str, Session] = {}
        self.loaded_versions: dict[str, int] = {}
        self._client = client
        self._requests = 0
        self._lock = threading.Lock()
        self._slots: dict[tuple[str, str | None], _Slot] = {}

    def run(self, method: str, params: Params, name: str | None) -> Any:
        """What a method gives; `name` is that of the session it opens or works on. Raises `Refused`."""
        try:
            return HANDLERS[method](self, params, name)
        except SkillError as error:
            session = self.sessions.get(name or "")
            raise Refused(session.explain(error) if session else _explained(error)) from error

    # Shelves --------------------------------------------------------------------------------------

    def shelf(
        self, cwd: str | None, profile: str | None = None, *, look: Literal["kept", "disk", "anew"] = "kept"
    ) -> Shelf:
        """The shelf of a folder: as it was kept, with the disk as it is now, or with its configuration read anew."""
        key = (self._absolute(cwd or "", "cwd"), profile or self.options.profile)
        with self._lock:
            slot = self._slots.pop(key, None) or _Slot()
            self._slots[key] = slot
        with slot.lock:
            if slot.shelf is not None and look == "disk":
                slot.shelf.refresh()
            elif slot.shelf is None or look == "anew":
                try:
                    slot.shelf = self._opened(*key)
                except SkillError:
                    self._forget(key)
                    raise
            shelf = slot.shelf
        with self._lock:
            while len(self._slots) > RPC_SHELVES:
                del self._slots[next(iter(self._slots))]
        return shelf

    def _absolute(self, path: str, member: str) -> str:
        """A path that a client gave, from the folder of the server."""
        if "\0" in path:
            raise ConfigurationError(f"{member} is no path: it holds a NUL character")
        return os.path.abspath(os.path.join(self.options.cwd, path))

    def _forget(self, key: tuple[str, str | None]) -> None:
        with self._lock:
            self._slots.pop(key, None)

    def _opened(self, cwd: str, profile: str | None) -> Shelf:
        options = self.options
        try:
            shelf = open_shelf(
                cwd,
                profile,
                home=options.home,
                config=options.config,
                use_cache=options.use_cache,
                trust=options.trust,
            )
        except SkillDirectoryNotFound as error:
            raise ConfigurationError(f"cwd must be a folder that exists: {error.path}") from None
        if held := sum(skill.hidden == "untrusted" for skill in shelf.catalog.skills):
            self._client.note(
                f"{plural(held, 'skill')} of {shelf.project_root} held back; to allow it once: --trust, "
                f"always: skillshelf trust {shelf.project_root}"
            )
        return shelf

    def refresh_sessions(self, cwd: str) -> None:
        """Let the open sessions of a folder see the disk as it is now."""
        shelves = {id(session.shelf): session.shelf for session in list(self.sessions.values())}
        for shelf in shelves.values():
            if shelf.environment.cwd == cwd:
                shelf.refresh()

    # Sessions -------------------------------------------------------------------------------------

    def session_options(self, name: str, params: Params) -> dict[str, Any]:
        """What a session of this server is made with."""
        given = params.get("journal")
        journal = self._absolute(given, "journal") if given else self.options.journal

        def confirm(tool: str, skill: str, reason: str) -> bool | Literal["remember"]:
            return self._client.ask(name, tool, skill, reason)

        times: dict[str, int] = {}

        def load(skill: CatalogSkill, profile: Profile) -> LoadedSkill:
            loaded = effects.load(skill, profile)
            times[skill.path] = loaded.mtime_ms
            return loaded

        def on_event(event: "Event") -> None:
            if isinstance(event, SkillLoaded):
                self.loaded_versions[event.path] = times[event.path]
            self._client.tell({"session": name, "type": type_of(event), **payload_of(event)})

        effects = real_effects()
        recording = Recording(journal, self.options.keep and journal is not None, "never", on_event)
        policy = params.get("policy")
        return {"policy": policy, "confirm": confirm, "recording": recording, "effects": effects._replace(load=load)}

    @contextmanager
    def short_session(self, cwd: str | None) -> Iterator[Session]:
        """A session for one request: it has the policy and the events of any other, and remembers nothing."""
        shelf = self.shelf(cwd)
        if not shelf.settings.enabled:
            raise SkillsDisabled
        with self._lock:
            self._requests += 1
            name = f"r{self._requests}"
        with Session(shelf, **self.session_options(name, {})) as session:
            try:
                yield session
            except SkillError as error:
                raise Refused(session.explain(error)) from error
        self._lost(session)

    def session(self, name: str) -> Session:
        """An open session."""
        if name not in self.sessions:
            raise Refused(ToolError("not_found", f"no session {message_text(name)!r}; it was closed or never opened"))
        return self.sessions[name]

    def keep(self, name: str, session: Session) -> None:
        """Hold a session open under a name; what is wrong with its journal is said at once."""
        self.sessions[name] = session
        self._lost(session)

    def close(self, name: str) -> str | None:
        """End a session; returns what its journal does not hold, in words."""
        session = self.session(name)
        session.close()
        del self.sessions[name]
        return self._lost(session)

    def _lost(self, session: Session) -> str | None:
        if problem := session.journal_problem:
            self._client.note(problem)
        return problem


def _explained(error: SkillError) -> ToolError:
    """An error from outside of any session."""
    return ToolError(kind_of(error).code, message_text(str(error)))


# The methods --------------------------------------------------------------------------------------

Handler = Callable[[Runtime, Params, str | None], Any]


def _initialize(runtime: Runtime, params: Params, name: str | None) -> Any:
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


def _list(runtime: Runtime, params: Params, name: str | None) -> Any:
    if not params.get("force_reload"):
        return runtime.shelf(params.get("cwd")).catalog.to_dict()
    shelf = runtime.shelf(params.get("cwd"), look="anew")
    runtime.refresh_sessions(shelf.environment.cwd)
    return shelf.catalog.to_dict()


def _inspect(runtime: Runtime, params: Params, name: str | None) -> Any:
    if not params.get("include_skills", True):
        return {}
    shelf = runtime.shelf(None)
    versions = sorted(runtime.loaded_versions.copy().items())
    state = {
        "enabled": shelf.settings.enabled,
        "root_dir": shelf.project_root,
        "working_dir": shelf.environment.cwd,
        "catalog": shelf.catalog.to_dict(),
        "loaded_versions": [{"path": path, "mtime_ms": mtime_ms} for path, mtime_ms in versions],
    }
    return {"skills": state}


def _search(runtime: Runtime, params: Params, name: str | None) -> Any:
    limit = params.get("limit")
    if limit is not None and limit < 1:
        raise ConfigurationError("limit must be a whole number of at least 1")
    with runtime.short_session(params.get("cwd")) as session:
        return session.search(params["query"], limit=limit, scope=params.get("scope")).to_dict()


def _load(runtime: Runtime, params: Params, name: str | None) -> Any:
    skill, path = _name_or_path(params)
    with runtime.short_session(params.get("cwd")) as session:
        return session.load(skill, path=path, for_model=True).to_dict()


def _read(runtime: Runtime, params: Params, name: str | None) -> Any:
    with runtime.short_session(params.get("cwd")) as session:
        return session.read(params["uri"], for_model=True)._asdict()


def _open(runtime: Runtime, params: Params, name: str | None) -> Any:
    assert name is not None
    shelf = runtime.shelf(params.get("cwd"), params.get("profile"), look="disk")
    options = runtime.session_options(name, params)
    runtime.keep(name, Session(shelf, preload=params.get("preload", ()), **options))
    return {"session": name}


def _restore(runtime: Runtime, params: Params, name: str | None) -> Any:
    assert name is not None
    snapshot = params["snapshot"]
    shelf = runtime.shelf(params.get("cwd"), snapshot["profile"], look="disk")
    session = Session.restore(snapshot, shelf, **runtime.session_options(name, params))
    runtime.keep(name, session)
    return {"session": name, "changes": [message_text(change) for change in session.changes]}


def _activate(session: Session, params: Params) -> Any:
    name, path = _name_or_path(params)
    loaded = session.activate(name, path=path)
    return {"skill": loaded.skill.to_dict(), "digest": loaded.digest, "active": list(session.active)}


def _deactivate(session: Session, params: Params) -> Any:
    if params["name"] not in session.active:
        raise SkillNotFound(params["name"])
    session.deactivate(params["name"])
    return {"active": list(session.active)}


def _compact(session: Session, params: Params) -> Any:
    session.compact()
    return {}


def _prompt(session: Session, params: Params) -> Any:
    given = {key: value for key, value in params.items() if key != "session"}
    return {"text": session.system_prompt(**given)}


def _command(session: Session, params: Params) -> Any:
    result = session.command(params["text"])
    return None if result is None else _tool_result(result)


def _close(runtime: Runtime, params: Params, name: str | None) -> Any:
    return {"journal_problem": runtime.close(params["session"])}


def _in_session(act: Callable[[Session, Params], Any]) -> Handler:
    return lambda runtime, params, name: act(runtime.session(params["session"]), params)


def _tool_result(result: ToolResult) -> dict[str, Any]:
    return {**result._asdict(), "error": result.error._asdict() if result.error else None}


def _name_or_path(params: Params) -> tuple[str | None, str | None]:
    name, path = params.get("name") or None, params.get("path") or None
    if name is None and path is None:
        raise ConfigurationError("name or path is required")
    return name, path


HANDLERS: Mapping[str, Handler] = {
    "initialize": _initialize,
    "skills.list": _list,
    "context.inspect": _inspect,
    "skills.search": _search,
    "skills.load": _load,
    "skills.read": _read,
    "session.open": _open,
    "session.system_prompt": _in_session(_prompt),
    "session.tools": _in_session(lambda session, params: {"tools": [tool.to_dict() for tool in session.tools()]}),
    "session.call": _in_session(
        lambda session, params: _tool_result(session.call(params["tool"], params.get("arguments")))
    ),
    "session.command": _in_session(_command),
    "session.mentions": _in_session(lambda session, params: session.resolve_mentions(params["text"])._asdict()),
    "session.activate": _in_session(_activate),
    "session.deactivate": _in_session(_deactivate),
    "session.compact": _in_session(_compact),
    "session.recall": _in_session(lambda session, params: {"text": session.recall(params["ref"])}),
    "session.decide": _in_session(
        lambda session, params: session.decide(params["tool"], params.get("arguments"))._asdict()
    ),
    "session.snapshot": _in_session(lambda session, params: session.snapshot()),
    "session.restore": _restore,
    "session.close": _close,
}
"""What each method does; `rpcforms` has what it takes and gives."""
