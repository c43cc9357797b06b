"""A journal to the state it tells of, and to the differences when its acts are repeated on a disk.

A journal is a stranger's text. Repeating it asks nobody, runs no script, writes nothing, and reads only what
the roots of the profile hold here: answers and outputs are those that stand in it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from skillshelf.catalog.load import SKILL_FILE, LoadedSkill, Resource, load, loaded_from, parse_address, resource_of
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, Trust, load_settings
from skillshelf.config.systems import find_profile
from skillshelf.core import files
from skillshelf.core.atomic_write import kept_content
from skillshelf.core.environment import Environment, make_environment
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError, FileReadError, SkillError
from skillshelf.journal import file as journal
from skillshelf.journal.events import (
    ANSWER_CUT,
    ContextCompacted,
    Event,
    NotAnEvent,
    PermissionDecided,
    SessionEnded,
    SessionStarted,
    SkillCatalogUpdated,
    SkillDeactivated,
    SkillLoaded,
    SkillMentioned,
    SkillRead,
    SkillWarning,
    ToolEnded,
    ToolFailed,
    ToolStarted,
    ToolStderr,
    ToolStdout,
    parse_event,
    payload_of,
    type_of,
)
from skillshelf.journal.state import SessionState, state_of
from skillshelf.session.conversation import ShelfProtocol
from skillshelf.session.effects import Effects, find_script, read_now
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import make_policy
from skillshelf.session.recorder import Recording
from skillshelf.session.session import Session
from skillshelf.session.tools import check_arguments

if TYPE_CHECKING:
    from skillshelf.sandbox.run import Run

__all__ = ["Difference", "OpenShelf", "Replay", "replay_journal"]

OpenShelf = Callable[[Environment, Profile, Settings, Trust], ShelfProtocol]
"""Makes the shelf on which a journal is repeated; `skillshelf.Shelf` is one."""


class Difference(NamedTuple):
    """Where a repetition first departs from a journal: the line, and what stands there and what came instead."""

    line: int
    session: str
    detail: str
    recorded: dict[str, Any] | None = None
    repeated: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return self._asdict()


class Replay(NamedTuple):
    """What a journal tells: the state of its last session, what is different here, and the state of every session.

    `skipped` says which sessions could not be repeated, and why.
    """

    state: SessionState
    differences: tuple[Difference, ...]
    sessions: tuple[SessionState, ...] = ()
    skipped: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "state": self.state.to_dict(),
            "differences": [difference.to_dict() for difference in self.differences],
            "sessions": [state.to_dict() for state in self.sessions],
            "skipped": list(self.skipped),
        }


class _Recorded(NamedTuple):
    line: int
    event: Event


class _Here(NamedTuple):
    """Where a journal is repeated; `store` is the folder of kept contents."""

    open_shelf: OpenShelf
    cwd: str | None
    home: str | None
    env: Mapping[str, str] | None
    config: str | Mapping[str, Any] | None
    trust: Literal["all", "ask"]
    store: str | None


def replay_journal(
    path: str | os.PathLike[str],
    open_shelf: OpenShelf,
    *,
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    config: str | Mapping[str, Any] | None = None,
    trust: Literal["all", "ask"] = "ask",
    kept: bool = True,
) -> Replay:
    """Rebuild the sessions of a journal and repeat them; `skillshelf.replay` documents the parameters."""
    file = os.fspath(path)
    sessions, broken = _sessions(file)
    here = _Here(open_shelf, _text(cwd), _text(home), env, config, trust, f"{file}.d" if kept else None)
    differences = list(broken)
    skipped: list[str] = []
    for name, events in sessions.items():
        first = events[0].event
        if not isinstance(first, SessionStarted):
            differences.append(Difference(events[0].line, name, "the session has no beginning in this journal"))
        elif first.restored:
            skipped.append(f"session {name}: it goes on from a snapshot, which is not in the journal")
        elif (difference := _repeat(name, events, here)) is not None:
            differences.append(difference)
    states = tuple(state_of(name, [entry.event for entry in events]) for name, events in sessions.items())
    differences.sort(key=lambda difference: difference.line)
    return Replay(states[-1] if states else SessionState(), tuple(differences), states, tuple(skipped))


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _sessions(file: str) -> tuple[dict[str, list[_Recorded]], list[Difference]]:
    """The events of each session in their order, and the lines that are none."""
    sessions: dict[str, list[_Recorded]] = {}
    broken: list[Difference] = []
    try:
        for line in journal.read(file):
            if line.record is None or line.problem is not None:
                broken.append(Difference(line.number, "", f"the line cannot be trusted: {line.problem}"))
                continue
            name = str(line.record["session"])
            try:
                event = parse_event(line.record)
            except NotAnEvent as error:
                broken.append(Difference(line.number, name, str(error)))
                continue
            sessions.setdefault(name, []).append(_Recorded(line.number, event))
    except FileNotFoundError:
        raise ConfigurationError(f"no such journal: {file}") from None
    except OSError as error:
        raise FileReadError(file, OSError(journal.in_words(error))) from None
    return sessions, broken


# Repeating ----------------------------------------------------------------------------------------


def _repeat(name: str, recorded: Sequence[_Recorded], here: _Here) -> Difference | None:
    """The first place where the acts of a session give something else here; None if there is none."""
    started = recorded[0].event
    assert isinstance(started, SessionStarted)
    heard: list[Event] = []
    past = _Past([entry.event for entry in recorded], heard, here.store)
    there = _Translation.between(here.cwd, started.cwd)
    try:
        session = _begin(started, past, here)
    except (SkillError, OSError, ValueError) as error:
        if not heard:
            return Difference(recorded[0].line, name, f"the session cannot begin here: {error}")
        session = None
    compared = 0
    while True:
        for found in heard[compared : len(recorded)]:
            entry = recorded[compared]
            if detail := _differing(entry.event, found, there):
                return Difference(entry.line, name, detail, _form(entry.event), there.back(_form(found)))
            compared += 1
        if compared >= len(recorded):
            return None
        entry = recorded[compared]
        before = len(heard)
        if session is not None:
            _act(session, entry.event, [later.event for later in recorded[compared:]])
        if len(heard) == before:
            detail = f"{type_of(entry.event)} is in the journal, and here nothing of that kind happens"
            return Difference(entry.line, name, detail, _form(entry.event))


def _begin(started: SessionStarted, past: "_Past", here: _Here) -> Session:
    """A session as the journal says, on the disk that is here."""
    cwd = here.cwd or started.cwd
    environment = make_environment(cwd, here.home, here.env, config=here.config)
    if not os.path.isabs(cwd) or files.kind_at(files.real_path(environment.cwd)) != "folder":
        raise ConfigurationError(f"no such folder: {cwd}; name one with --cwd")
    settings = load_settings(environment, trust=here.trust)
    # Only the journal's own rules count: what the user allows today says nothing about that day.
    policy = make_policy(started.policy, Settings())
    settings = settings._replace(
        allow=(), deny=tuple(rule for rule in settings.deny if rule in policy.deny), grant_from_skills=()
    )
    shelf = here.open_shelf(environment, find_profile(started.profile, settings.profiles), settings, started.trust)
    recording = Recording(on_event=past.heard.append)
    return Session(
        shelf,
        policy=policy,
        confirm=past.answer if past.asked else None,
        preload=started.preload,
        recording=recording,
        effects=past.effects(),
    )


def _act(session: Session, event: Event, later: Sequence[Event]) -> None:
    """Do what the event says somebody did; errors are events too, and are compared as such."""
    try:
        if isinstance(event, ToolStarted):
            ended = next((one for one in later if isinstance(one, ToolEnded | ToolFailed)), None)
            _call(session, event, ended)
        elif isinstance(event, SkillMentioned):
            session.resolve_mentions(" ".join(f"${name}" for name in (*event.names, *event.unknown)))
        elif isinstance(event, SkillDeactivated):
            session.deactivate(event.name)
        elif isinstance(event, ContextCompacted):
            session.compact()
        elif isinstance(event, SkillCatalogUpdated):
            session.shelf.refresh()
            session.record_catalog()
        elif isinstance(event, SkillWarning) and event.kind == ANSWER_CUT:
            # What the model did is not repeated: the journal stands for it.
            session.warn(event.kind, event.detail)
        elif isinstance(event, SessionEnded):
            session.close()
    except SkillError:
        return


def _call(session: Session, event: ToolStarted, ended: ToolEnded | ToolFailed | None) -> None:
    for_model = event.mode == "auto"
    if for_model and _is_of_model(session.profile, event, ended):
        session.call(event.name, event.args)
        return
    if event.command is not None:
        session.command(event.command)
        return
    given = event.args if isinstance(event.args, dict) else {}
    texts = {key: value for key, value in given.items() if isinstance(value, str)}
    name, path = texts.get("name") or texts.get("skillName"), texts.get("path")
    what = NAMES_OF_TOOLS.get(event.name)
    if event.name == "activate":
        session.activate(name, path=path)
    elif what == "skill_load":
        session.load(name, path=path, arguments=texts.get("args", ""), for_model=for_model)
    elif what == "skill_read":
        session.read(texts.get("uri") or path or "", for_model=for_model)
    elif what == "skill_search":
        limit = given.get("limit")
        session.search(
            texts.get("query", ""), limit=limit if isinstance(limit, int) else None, scope=texts.get("scope")
        )
    elif what == "skill_run":
        listed = given.get("args")
        words = [word for word in listed if isinstance(word, str)] if isinstance(listed, list) else []
        session.run(name or "", texts.get("script", ""), words)


def _is_of_model(profile: Profile, event: ToolStarted, ended: ToolEnded | ToolFailed | None) -> bool:
    """Whether a model made this call. A host may do for it what no tool of the profile takes; a model that tries so
    is told that there is no such tool or parameter."""
    code = ended.code if isinstance(ended, ToolFailed) else None
    if event.name not in profile.tools:
        return code == "unknown_tool" or event.name not in NAMES_OF_TOOLS
    given = event.args if isinstance(event.args, dict) else {}
    return code == "invalid_params" or check_arguments(event.name, profile, given) is None


class _Past:
    """What a journal holds for a session that repeats it: answers, contents, outputs."""

    def __init__(self, events: Sequence[Event], heard: list[Event], store: str | None) -> None:
        self.heard = heard
        self._events = events
        self._store = store
        self._digests: dict[str, str] = {}
        # Whether there was somebody to ask decides between two ways of saying no.
        self.asked = not any(isinstance(event, PermissionDecided) and event.by == "nobody" for event in events)

    def effects(self) -> Effects:
        """A world in which nothing is run and nothing is written."""
        return Effects(self.load, self.read, find_script, self.run, self.artifact, lambda environment, rule: None)

    def _now(self) -> Sequence[Event]:
        """What the journal has from here to the end of the act."""
        rest: list[Event] = []
        for event in self._events[len(self.heard) :]:
            rest.append(event)
            if isinstance(event, ToolEnded | ToolFailed):
                break
        return rest

    def answer(self, tool: str, name: str, reason: str) -> "bool | Literal['remember']":
        """What was answered then; no, if nobody was asked."""
        event = next(iter(self._now()), None)
        if not isinstance(event, PermissionDecided) or event.verdict != "allow":
            return False
        return "remember" if event.by == "remembered" else event.by == "user"

    def load(self, skill: CatalogSkill, profile: Profile) -> LoadedSkill:
        """The skill as it was then, if that was kept, or else as it is now."""
        digest = next((e.digest for e in self._now() if isinstance(e, SkillLoaded) and e.path == skill.path), None)
        digest = self._digests[skill.path] = digest or self._digests.get(skill.path, "")
        data = kept_content(self._store, digest, limit=SKILL_FILE_BYTES) if self._store else None
        if data is None:
            return load(skill, profile)
        return loaded_from(skill, data, skill.mtime_ns, profile)._replace(warnings=())

    def read(self, uri: str, skill: CatalogSkill, profile: Profile, limit: int) -> Resource:
        """The file as it was then, if that was kept, or else as it is now."""
        event = next((event for event in self._now() if isinstance(event, SkillRead) and event.uri == uri), None)
        data = None
        # What was read then may be read now, whoever asked for it.
        limit = max(limit, event.size) if event is not None else limit
        if event is not None and self._store:
            data = kept_content(self._store, event.digest, limit=limit)
        if event is None or data is None:
            return read_now(uri, skill, profile, limit)
        segments = parse_address(uri).segments
        path = os.path.join(skill.dir, *segments) if segments else skill.path
        return resource_of(uri, path, "/".join(segments) or SKILL_FILE, data, profile)

    def run(self, *positional: object, **named: object) -> "Run":
        """What the journal says came out; the script itself is never started."""
        from skillshelf.sandbox.run import Run

        frames = self._now()
        output = "".join(event.chunk for event in frames if isinstance(event, ToolStdout)).encode()
        errors = "".join(event.chunk for event in frames if isinstance(event, ToolStderr)).encode()
        last = frames[-1] if frames else None
        ended = last if isinstance(last, ToolEnded) else ToolEnded("", 1)
        artifact = ended.artifacts[0].get("path") if ended.artifacts else None
        return Run(
            exit_code=ended.exit_code,
            stdout=output,
            stderr=errors,
            stdout_bytes=len(output),
            stderr_bytes=len(errors),
            truncated=ended.truncated,
            timed_out=False,
            duration_ms=0,
            artifact=str(artifact) if artifact else None,
            artifact_truncated=False,
            sandbox="none",
            reason=ended.reason,
            digest="",
            files=(),
            files_truncated=False,
            work=None,
        )

    def artifact(self, path: str) -> dict[str, Any]:
        """What the journal says of an output that was kept whole."""
        last = next(iter(reversed(self._now())), None)
        return dict(last.artifacts[0]) if isinstance(last, ToolEnded) and last.artifacts else {}


# Comparing ----------------------------------------------------------------------------------------


class _Translation(NamedTuple):
    """Paths here to paths there, for a journal that is repeated in another folder than it was made in."""

    here: str = ""
    there: str = ""

    @classmethod
    def between(cls, here: str | None, there: str) -> "_Translation":
        """The two folders without the names at their ends that are the same."""
        if here is None:
            return cls()
        mine, theirs = files.real_path(here).split("/"), there.split("/")
        while len(mine) > 2 and len(theirs) > 2 and mine[-1] == theirs[-1]:
            mine.pop()
            theirs.pop()
        return cls("/".join(mine), "/".join(theirs))

    def back(self, value: Any) -> Any:
        """The value with every path as it would be there."""
        if isinstance(value, str):
            whole = value == self.here
            return self.there if whole and self.here else value.replace(f"{self.here}/", f"{self.there}/")
        if isinstance(value, dict):
            return {key: self.back(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.back(item) for item in value]
        return value


def _form(event: Event) -> dict[str, Any]:
    return {"type": type_of(event), **payload_of(event)}


_NOT_COMPARED = ("version",)


def _differing(recorded: Event, found: Event, there: _Translation) -> str | None:
    """What is different, in words; None if nothing is."""
    old, new = _form(recorded), there.back(_form(found))
    if old["type"] != new["type"]:
        more = new.get("error") or new.get("detail") or ""
        return f"the journal has {old['type']}, here it is {new['type']}" + (f": {more}" if more else "")
    keys = [key for key in dict.fromkeys([*old, *new]) if key not in _NOT_COMPARED and old.get(key) != new.get(key)]
    if not keys:
        return None
    about = f" of {old['name']}" if "name" in old and old.get("name") == new.get("name") else ""
    return f"{old['type']}{about}: {', '.join(keys)} differ" + ("s" if len(keys) == 1 else "")
