"""Replay a journal: rebuild the state of its sessions, repeat them, and report where the events differ.

A journal is untrusted text. Replay asks nothing, runs no script, writes nothing, and reads only below the roots of
the profile: answers and outputs are taken from the journal.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from skillshelf import __version__
from skillshelf.catalog.load import SKILL_FILE, LoadedSkill, Resource, loaded_from, parse_address, resource_of
from skillshelf.catalog.tree import SkillTree
from skillshelf.config.approvals import Approval
from skillshelf.config.builtin_profiles import find_profile
from skillshelf.config.permission_rules import PermissionRule
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, Trust, load_settings
from skillshelf.config.system_policy import SystemPolicy
from skillshelf.core import files
from skillshelf.core.disk_writes import kept_content
from skillshelf.core.environment import Environment, make_environment
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError, FileReadError, SkillError
from skillshelf.journal import file as journal
from skillshelf.journal.events import (
    MORE_WARNINGS,
    ContextCompacted,
    Event,
    NotAnEvent,
    OverrideProposed,
    PermissionDecided,
    PolicyWidened,
    PromptComposed,
    ResultDropped,
    SessionEnded,
    SessionStarted,
    SkillCatalogUpdated,
    SkillDeactivated,
    SkillInvoked,
    SkillLoaded,
    SkillMentioned,
    SkillRead,
    SkillWarning,
    ToolAnswered,
    ToolDecided,
    ToolEnded,
    ToolFailed,
    ToolStarted,
    ToolStderr,
    ToolStdout,
    parse_event,
    payload_of,
    type_of,
)
from skillshelf.journal.parts import CONTINUED
from skillshelf.journal.state import SessionState, state_of
from skillshelf.session.conversation import ShelfProtocol
from skillshelf.session.effects import (
    Effects,
    RuleNotWritten,
    find_script,
    load_now,
    read_now,
    real_effects,
    tree_now,
)
from skillshelf.session.inputs import (
    KeptContents,
    KeptEffects,
    KeptInputError,
    KeptShelf,
    recorded_policy,
    recorded_prior,
)
from skillshelf.session.permissions import (
    APPROVALS_UNREADABLE,
    NAMES_OF_TOOLS,
    NO_RULE,
    NOT_ASKED,
    NOT_REMEMBERED,
    SESSION_ONLY,
    AnswerFailed,
)
from skillshelf.session.policy import Policy, make_policy
from skillshelf.session.recorder import RecordingOptions
from skillshelf.session.session import Session
from skillshelf.session.tools import check_arguments

if TYPE_CHECKING:
    from skillshelf.sandbox.run import Run, Script
    from skillshelf.search.query import SearchReport

__all__ = ["Difference", "OpenShelf", "Replay", "replay_journal"]

OpenShelf = Callable[[Environment, Profile, Settings, Trust], ShelfProtocol]
"""Open the shelf on which a journal is repeated; `skillshelf.Shelf` is one."""


class Difference(NamedTuple):
    """A line of a session that is not repeated, with the recorded event and the one that came instead."""

    line: int
    session: str
    detail: str
    recorded: dict[str, Any] | None = None
    repeated: dict[str, Any] | None = None
    kind: Literal["event", "prior-missing"] = "event"
    """An event that differs, or a search whose prior was not kept, so that its result cannot be compared."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self._asdict()


class Replay(NamedTuple):
    """The state of the last session of a journal, the differences found, and the state of every session.

    `skipped` lists the sessions that could not be repeated, with the reason.
    """

    state: SessionState
    differences: tuple[Difference, ...]
    sessions: tuple[SessionState, ...] = ()
    skipped: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "state": self.state.to_dict(),
            "differences": [difference.to_dict() for difference in self.differences],
            "sessions": [state.to_dict() for state in self.sessions],
            "skipped": list(self.skipped),
        }


class _RecordedEvent(NamedTuple):
    line: int
    event: Event


class _ReplayOptions(NamedTuple):
    """The options of a replay; `store` is the folder of kept inputs, None if they do not count.

    `beside` is that folder in any case: what earlier use added to a search is of that day, and not on today's disk.
    """

    open_shelf: OpenShelf
    cwd: str | None
    home: str | None
    env: Mapping[str, str] | None
    config: str | Mapping[str, Any] | None
    trust: Literal["all", "ask"]
    store: str | None
    beside: str


def replay_journal(
    path: str | os.PathLike[str],
    open_shelf: OpenShelf,
    *,
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    config: str | Mapping[str, Any] | None = None,
    trust: Literal["all", "ask"] = "ask",
    against: Literal["kept", "disk"] | None = None,
) -> Replay:
    """Rebuild the sessions of a journal and repeat them; `skillshelf.replay` documents the parameters."""
    file = os.fspath(path)
    sessions, broken, is_shortened = _sessions(file)
    store = f"{file}.d"
    if files.kind_at(f"{store}/sha256") != "folder":
        if against == "kept":
            raise ConfigurationError(f"nothing was kept by this journal: there is no folder {store}/sha256")
        against = "disk"
    options = _ReplayOptions(
        open_shelf, _text(cwd), _text(home), env, config, trust, None if against == "disk" else store, store
    )
    differences = list(broken)
    skipped: list[str] = []
    for name, events in sessions.items():
        first = events[0].event
        if not isinstance(first, SessionStarted) and is_shortened:
            skipped.append(f"session {name}: its beginning was in a part of the journal that rotation removed")
        elif not isinstance(first, SessionStarted):
            differences.append(Difference(events[0].line, name, "the session has no beginning in this journal"))
        elif first.restored:
            skipped.append(f"session {name}: it goes on from a snapshot, which is not in the journal")
        elif options.store and not any(isinstance(entry.event, SkillCatalogUpdated) for entry in events):
            skipped.append(f"session {name}: it was cut off before its inputs were kept")
        else:
            known: Sequence[_RecordedEvent] = events
            if options.store and _first_inputs([entry.event for entry in events]) is not None:
                known = _without_open_call(events)
            if len(known) < len(events):
                skipped.append(f"session {name}: its last call did not end, so its inputs were not kept")
            missing = _missing_priors(name, known, options.beside)
            difference = _repeat(name, known, options, [one.line for one in missing])
            is_before = [one for one in missing if difference is None or one.line < difference.line]
            differences += [*is_before, *([difference] if difference is not None else [])]
    states = tuple(state_of(name, [entry.event for entry in events]) for name, events in sessions.items())
    differences.sort(key=lambda difference: difference.line)
    return Replay(states[-1] if states else SessionState(), tuple(differences), states, tuple(skipped))


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _sessions(file: str) -> tuple[dict[str, list[_RecordedEvent]], list[Difference], bool]:
    """Return the events of each session in order, a difference for each line that is not a valid event, and whether
    rotation removed parts."""
    is_shortened = False
    sessions: dict[str, list[_RecordedEvent]] = {}
    broken: list[Difference] = []
    try:
        for line in journal.read(file):
            if line.record is None or line.problem is not None:
                broken.append(Difference(line.number, "", f"the line cannot be trusted: {line.problem}"))
                continue
            if line.record["type"] == CONTINUED:
                is_shortened = is_shortened or "removed_part" in line.record
                continue
            name = str(line.record["session"])
            try:
                event = parse_event(line.record)
            except NotAnEvent as error:
                broken.append(Difference(line.number, name, str(error)))
                continue
            sessions.setdefault(name, []).append(_RecordedEvent(line.number, event))
    except FileNotFoundError:
        raise ConfigurationError(f"no such journal: {file}") from None
    except OSError as error:
        raise FileReadError(file, OSError(journal.in_words(error))) from None
    return sessions, broken, is_shortened


def _first_inputs(events: Sequence[Event]) -> str | None:
    """Return the document with the inputs of a session; None if it kept none."""
    return next((event.inputs for event in events if isinstance(event, SkillCatalogUpdated)), None)


def _without_open_call(events: Sequence[_RecordedEvent]) -> Sequence[_RecordedEvent]:
    """Return the events up to the start of a last call that did not end; its inputs would stand at its end."""
    starts = [number for number, entry in enumerate(events) if isinstance(entry.event, ToolStarted)]
    if not starts or any(isinstance(entry.event, ToolEnded | ToolFailed) for entry in events[starts[-1] :]):
        return events
    return events[: starts[-1] + 1]


def _missing_priors(name: str, events: Sequence[_RecordedEvent], folder: str) -> list[Difference]:
    """Return a difference for each search that earlier use changed, if what it added was not kept."""
    ends = [(entry.line, entry.event) for entry in events if isinstance(entry.event, ToolEnded) and entry.event.prior]
    detail = "prior-missing: what earlier use added to this search was not kept, so its result cannot be compared"
    return [
        Difference(line, name, detail, _to_dict(end), kind="prior-missing")
        for line, end in ends
        if recorded_prior(folder, end.prior or "") is None
    ]


# Repetition --------------------------------------------------------------------------------------


def _repeat(
    name: str, recorded: Sequence[_RecordedEvent], options: _ReplayOptions, without_prior: Sequence[int]
) -> Difference | None:
    """Repeat the acts of a session and return the first difference, or None.

    The texts of searches at the lines `without_prior` are not compared.
    """
    started = recorded[0].event
    assert isinstance(started, SessionStarted)
    produced: list[Event] = []
    effects = _RecordedEffects([entry.event for entry in recorded], produced, options)
    is_kept = options.store is not None and _first_inputs(effects.events) is not None
    paths = effects.paths = _PathMapping.between(None if is_kept else options.cwd, started.cwd)
    try:
        session = _begin(started, effects, options, paths)
    except (SkillError, OSError, ValueError) as error:
        if not produced:
            return Difference(recorded[0].line, name, f"the session cannot begin here: {error}")
        session = None
    compared = 0
    while True:
        for found in produced[compared : len(recorded)]:
            entry = recorded[compared]
            ignored = _TEXTS if entry.line in without_prior else ()
            is_same = started.version == __version__
            if detail := _difference(entry.event, found, paths, same_version=is_same, ignored=ignored):
                return Difference(entry.line, name, detail, _to_dict(entry.event), paths.to_recorded(_to_dict(found)))
            compared += 1
        if compared >= len(recorded):
            return None
        entry = recorded[compared]
        before = len(produced)
        if session is not None:
            try:
                _act(session, entry.event, [later.event for later in recorded[compared:]], paths)
            except KeptInputError as error:
                return Difference(entry.line, name, str(error), _to_dict(entry.event))
        if len(produced) == before:
            detail = f"{type_of(entry.event)} is in the journal, but the repetition gave no event"
            return Difference(entry.line, name, detail, _to_dict(entry.event))


def _begin(
    started: SessionStarted, effects: "_RecordedEffects", options: _ReplayOptions, paths: "_PathMapping"
) -> Session:
    """Open a session as the journal describes it, with its kept inputs or on today's disk."""
    policy = make_policy(paths.to_local(started.policy), Settings())
    system = recorded_policy(paths.to_local(started.system))
    shelf: ShelfProtocol
    if options.store is not None and (first := _first_inputs(effects.events)) is not None:
        shelf = kept = effects.use_kept(KeptContents(options.store), started, first)
        kept.settings = kept.settings._replace(deny=_common(kept.settings, policy), system=system)
    else:
        shelf = _open_on_disk(started, policy, system, options)
    recording = RecordingOptions(
        on_event=effects.take if started.version == __version__ else effects.take_earlier,
        client=started.client,
        subject=started.subject,
        per_request=started.per_request,
        as_recorded=paths.to_recorded,
    )
    return Session(
        shelf,
        policy=policy,
        confirm=effects.answer if effects.can_ask else None,
        preload=started.preload,
        recording=recording,
        effects=effects.as_effects(shelf.environment),
        memory=started.memory,
    )


def _open_on_disk(
    started: SessionStarted, policy: Policy, system: SystemPolicy, options: _ReplayOptions
) -> ShelfProtocol:
    cwd = options.cwd or started.cwd
    environment = make_environment(cwd, options.home, options.env, config=options.config)
    if not os.path.isabs(cwd) or files.kind_at(files.real_path(environment.cwd)) != "folder":
        raise ConfigurationError(f"no such folder: {cwd}; name one with --cwd")
    settings = load_settings(environment, trust=options.trust, system=system)
    # Only the journal's own rules count: today's permissions say nothing about that day.
    settings = settings._replace(allow=(), deny=_common(settings, policy), grant_from_skills=())
    # No replay asks a server.
    settings = settings._replace(scorer_url=None)
    profile = find_profile(started.profile, settings.profiles)
    added: list[Any] = [tool for tool in started.tools if tool in NAMES_OF_TOOLS and tool not in profile.tools]
    profile = profile._replace(tools=(*profile.tools, *added)) if added else profile
    return options.open_shelf(environment, profile, settings, started.trust)


def _common(settings: Settings, policy: Policy) -> tuple[PermissionRule, ...]:
    return tuple(rule for rule in settings.deny if rule in policy.deny)


def _act(session: Session, event: Event, later: Sequence[Event], paths: "_PathMapping") -> None:
    """Repeat the act of an event; errors are events too, and are compared as such."""
    try:
        if isinstance(event, ToolStarted):
            _call(session, event._replace(args=paths.to_local(event.args)), _until_end(later))
        elif isinstance(event, SkillDeactivated):
            # Of several skills of one name the others may stay active.
            session.deactivate(event.name, path=paths.to_local(event.path))
        elif (repeat := _ACTS.get(type(event))) is not None:
            repeat(session, event)
    except KeptInputError:
        raise
    except SkillError:
        return


def _mention(session: Session, event: SkillMentioned) -> None:
    session.resolve_mentions(" ".join(f"${name}" for name in (*event.names, *event.unknown)))


def _refresh(session: Session, event: SkillCatalogUpdated) -> None:
    session.shelf.refresh()
    session.record_catalog()


def _warn(session: Session, event: SkillWarning) -> None:
    # A host is not here to warn again. Warnings about skills have a path, and those of the catalog come with it.
    if event.path is None and event.kind != MORE_WARNINGS:
        session.record_event(event)


def _decide(session: Session, event: ToolDecided) -> None:
    if event.args_digest is None:
        session.decide(event.tool, event.args if isinstance(event.args, dict) else {})
    else:
        # The arguments were too long for the journal, so the decision about them cannot be made again.
        session.record_event(event)


_ACTS: Mapping[type, Callable[[Session, Any], object]] = {
    SkillMentioned: _mention,
    ContextCompacted: lambda session, event: session.compact(),
    ResultDropped: lambda session, event: session.drop_result(event.tool_id, event.skills),
    # A person is not asked again.
    ToolAnswered: lambda session, event: session.record_event(event),
    SkillCatalogUpdated: _refresh,
    PromptComposed: lambda session, event: session.compose_prompt(event.base_digest, event.read_tool),
    ToolDecided: _decide,
    SkillWarning: _warn,
    SessionEnded: lambda session, event: session.close(),
}
"""The act behind the first event of each type; every other event belongs to the act before it."""


def _until_end(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events up to the end of the first call, that end included."""
    end = next((n for n, one in enumerate(events) if isinstance(one, ToolEnded | ToolFailed)), len(events))
    return events[: end + 1]


class _EveryText:
    """The visible texts of a call whose model still had the text; a session reminds only of what it sent itself."""

    def __contains__(self, digest: object) -> bool:
        return True


def _call(session: Session, event: ToolStarted, later: Sequence[Event]) -> None:
    for_model = event.mode == "auto"
    ended = next((one for one in later if isinstance(one, ToolEnded | ToolFailed)), None)
    is_cut = len(later) == 1
    if for_model and not event.host and (is_cut or _is_of_model(session.profile, event, ended)):
        # What the model still saw is not in the journal; that it was reminded is.
        reminded = any(isinstance(one, SkillInvoked) and one.repeat for one in later)
        session.call(event.name, event.args, visible=_EveryText() if reminded else ())
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
    elif event.name == "resume" and path is not None:
        session.resume(path)
    elif what == "skill_load":
        session.load(name, path=path, arguments=texts.get("args", ""), for_model=for_model)
    elif what == "skill_read":
        session.read(texts.get("uri") or path or "", path=texts.get("skill_path"), for_model=for_model)
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
    """Return True if a model made this call, False if a host made it for the model.

    A host may use tools and parameters that the profile does not offer; a model that does so gets an error.
    """
    code = ended.code if isinstance(ended, ToolFailed) else None
    if event.name not in profile.tools:
        return code == "unknown_tool" or event.name not in NAMES_OF_TOOLS
    given = event.args if isinstance(event.args, dict) else {}
    return code == "invalid_params" or check_arguments(event.name, profile, given) is None


_LATER_EVENTS = (SkillLoaded, SkillInvoked, OverrideProposed, PolicyWidened)
"""The events of an activation, or of a read of SKILL.md, that version 0.1 did not leave."""


class _RecordedEffects:
    """The effects of a replayed session: answers, contents and outputs from the journal."""

    def __init__(self, events: Sequence[Event], produced: list[Event], options: _ReplayOptions) -> None:
        self.produced = produced
        self.events = events
        self._store = options.store
        self._beside = options.beside
        self.paths = _PathMapping()
        self._digests: dict[str, str] = {}
        self._kept: KeptEffects | None = None
        self._environment = Environment("/", None, {})
        # A refusal is worded differently if there was no way to ask the user.
        self.can_ask = not any(isinstance(event, PermissionDecided) and event.by == "nobody" for event in events)

    def take(self, event: Event) -> None:
        """Keep an event of the repetition, to be compared."""
        self.produced.append(event)

    def take_earlier(self, event: Event) -> None:
        """Do so for a journal of an earlier version, in which activating or reading a SKILL.md left fewer events."""
        position = len(self.produced)
        recorded = self.events[position] if position < len(self.events) else None
        started = next((one for one in reversed(self.produced) if isinstance(one, ToolStarted)), None)
        is_later = isinstance(event, _LATER_EVENTS) and type(event) is not type(recorded)
        if not (is_later and started is not None and NAMES_OF_TOOLS.get(started.name) in (None, "skill_read")):
            self.produced.append(event)

    def use_kept(self, kept: KeptContents, started: SessionStarted, first: str) -> KeptShelf:
        """Take everything that was kept from there, and return the shelf as it was kept."""
        shelf = KeptShelf(
            kept, first, self._next_catalog, cwd=started.cwd, profile=started.profile, trust=started.trust
        )
        self._kept = KeptEffects(kept, self._inputs_now, lambda: shelf.catalog)
        return shelf

    def _next_catalog(self) -> str | None:
        event = next(iter(self.events[len(self.produced) :]), None)
        return event.inputs or "(none)" if isinstance(event, SkillCatalogUpdated) else None

    def _inputs_now(self) -> tuple[str, str | None]:
        """Return the call that runs now, and the document with its inputs."""
        end = next(iter(reversed(self._now())), None)
        return (end.tool_id, end.inputs) if isinstance(end, ToolEnded | ToolFailed) else ("", None)

    def as_effects(self, environment: Environment) -> Effects:
        """Return effects that run nothing and write nothing."""
        self._environment = environment
        effects = real_effects(environment)._replace(
            load=self.load,
            read=self.read,
            find_script=self.find_script,
            run=self.run,
            artifact=self.artifact,
            tree=self.tree,
            approvals=self.approvals,
            remember=self.remember,
            search=self.search,
        )
        return effects if self._kept is None else self._kept.over(effects)

    def _now(self) -> Sequence[Event]:
        """Return the recorded events from here to the end of the act."""
        return _until_end(self.events[len(self.produced) :])

    def answer(self, tool: str, name: str, reason: str) -> "bool | Literal['remember']":
        """Return the recorded answer; False if there was none."""
        event = self._decision()
        if event is not None and event.by == "failed":
            raise AnswerFailed(self._warning(NOT_ASKED) or "")
        if event is None or event.verdict != "allow":
            return False
        return "remember" if event.by == "remembered" else event.by == "user"

    def _decision(self) -> PermissionDecided | None:
        event = next(iter(self._now()), None)
        return event if isinstance(event, PermissionDecided) else None

    def _warning(self, kind: str) -> str | None:
        return next((e.detail for e in self._now() if isinstance(e, SkillWarning) and e.kind == kind), None)

    def search(self, shelf: ShelfProtocol, query: str, **options: Any) -> "SearchReport":
        """Search the disk with what earlier use added then; that of today says nothing about that day."""
        end = next(iter(reversed(self._now())), None)
        digest = end.prior if isinstance(end, ToolEnded) else None
        prior = recorded_prior(self._beside, digest) if digest is not None else None
        if prior is None:
            return shelf.search(query, **options)
        bonuses = {self.paths.to_local(path): bonus for path, bonus in prior.bonuses.items()}
        return shelf.search(query, prior=prior._replace(bonuses=bonuses), **options)

    def tree(self, skill: CatalogSkill) -> SkillTree:
        """Return the recorded tree where contents were kept, or else that of the disk."""
        return self._kept_tree() or tree_now(skill, self._environment)

    def _kept_tree(self) -> SkillTree | None:
        event = self._decision()
        is_kept = self._store is not None and files.kind_at(f"{self._store}/sha256") is not None
        if not is_kept or event is None or event.tree is None:
            return None
        return SkillTree(event.tree, None, 0, 0, event.tree)

    def find_script(self, skill_dir: str, script: str) -> "Script":
        """Find the script on disk, with the recorded tree where contents were kept."""
        found = find_script(skill_dir, script, self._environment)
        return found._replace(tree=self._kept_tree() or found.tree)

    def approvals(self, environment: Environment, tool: str, skills: Sequence[CatalogSkill]) -> Sequence[Approval]:
        """Return the approval that the recorded decision rests on; those of today say nothing about that day."""
        if detail := self._warning(APPROVALS_UNREADABLE):
            raise SkillError(detail)
        event = self._decision()
        if event is None or (event.tool, event.by) != (tool, "remembered") or not event.tree:
            return ()
        if self._warning(NOT_REMEMBERED) or self._warning(NO_RULE):
            # There was none yet: the answer to this question was to become one.
            return ()
        about = (skill for skill in skills if skill.path == event.path)
        return [Approval(tool, skill.name, skill.real_path, event.tree, None, "") for skill in about]

    def remember(self, environment: Environment, answer: object) -> None:
        """Write nothing; fail as it failed then."""
        if detail := self._warning(NOT_REMEMBERED):
            raise SkillError(detail.removeprefix(SESSION_ONLY))
        if detail := self._warning(NO_RULE):
            raise RuleNotWritten(detail)

    def load(self, skill: CatalogSkill, profile: Profile) -> LoadedSkill:
        """Load the skill from its kept content, or else from disk."""
        recorded = [e for e in self._now() if isinstance(e, SkillLoaded | SkillRead) and e.path == skill.path]
        digest = recorded[0].digest if recorded else None
        digest = self._digests[skill.path] = digest or self._digests.get(skill.path, "")
        data = kept_content(self._store, digest, limit=SKILL_FILE_BYTES) if self._store else None
        if data is None:
            return load_now(skill, profile, self._environment)
        tree = next((e.tree for e in recorded if isinstance(e, SkillLoaded)), None)
        return loaded_from(skill, data, skill.mtime_ns, profile)._replace(warnings=(), tree=tree)

    def read(self, uri: str, skill: CatalogSkill, profile: Profile, limit: int) -> Resource:
        """Read the file from its kept content, or else from disk."""
        event = next((event for event in self._now() if isinstance(event, SkillRead) and event.uri == uri), None)
        data = None
        # A file that was read then may be read now, whatever limit the caller had.
        limit = max(limit, event.size) if event is not None else limit
        if event is not None and self._store:
            data = kept_content(self._store, event.digest, limit=limit)
        if event is None or data is None:
            return read_now(uri, skill, profile, limit, self._environment)
        segments = parse_address(uri).segments
        path = os.path.join(skill.dir, *segments) if segments else skill.path
        return resource_of(uri, path, "/".join(segments) or SKILL_FILE, data, profile)

    def run(self, *positional: object, **named: object) -> "Run":
        """Return the recorded output; the script itself is never started."""
        from skillshelf.sandbox.run import Run

        frames = self._now()
        output = "".join(event.chunk for event in frames if isinstance(event, ToolStdout)).encode()
        errors = "".join(event.chunk for event in frames if isinstance(event, ToolStderr)).encode()
        last = frames[-1] if frames else None
        ended = last if isinstance(last, ToolEnded) else ToolEnded("", 1)
        artifact = ended.artifacts[0].get("path") if ended.artifacts else None
        sizes = ended.output_bytes if len(ended.output_bytes) == 2 else [len(output), len(errors)]
        return Run(
            exit_code=ended.exit_code,
            stdout=output,
            stderr=errors,
            stdout_bytes=sizes[0],
            stderr_bytes=sizes[1],
            truncated=ended.truncated,
            artifact=str(artifact) if artifact else None,
            reason=ended.reason,
            missing=tuple(ended.missing),
        )

    def artifact(self, path: str) -> dict[str, Any]:
        """Return the recorded entry of an output that was kept whole."""
        last = next(iter(reversed(self._now())), None)
        return dict(last.artifacts[0]) if isinstance(last, ToolEnded) and last.artifacts else {}


# Comparison ---------------------------------------------------------------------------------------


class _PathMapping(NamedTuple):
    """A mapping from local to recorded paths, for a journal that is repeated in another folder."""

    local: str = ""
    recorded: str = ""

    @classmethod
    def between(cls, local: str | None, recorded: str) -> "_PathMapping":
        """Return the mapping between two folders, without the names that are equal at their ends."""
        if local is None:
            return cls()
        mine, theirs = files.real_path(local).split("/"), recorded.split("/")
        while len(mine) > 2 and len(theirs) > 2 and mine[-1] == theirs[-1]:
            mine.pop()
            theirs.pop()
        return cls("/".join(mine), "/".join(theirs))

    def to_recorded(self, value: Any) -> Any:
        """Return the value with every local path replaced by the recorded one."""
        if isinstance(value, str):
            whole = value == self.local
            return self.recorded if whole and self.local else value.replace(f"{self.local}/", f"{self.recorded}/")
        if isinstance(value, dict):
            return {key: self.to_recorded(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.to_recorded(item) for item in value]
        return value

    def to_local(self, value: Any) -> Any:
        """Return the value with every recorded path replaced by the local one."""
        return _PathMapping(self.recorded, self.local).to_recorded(value)


def _to_dict(event: Event) -> dict[str, Any]:
    return {"type": type_of(event), **payload_of(event)}


_NOT_COMPARED = ("version", "inputs", "listed", "listing", "prior")
_OF_VERSION = ("detail", "error", "reason", "warnings", "effective_allowed_tools", "events")
"""Members that are compared only if the journal was written by this version: sentences for people, in its wording,
patterns of `allowed-tools` as far as it understands them, and the number of its events."""

_TEXTS = ("text_digest", "text_bytes", "output_bytes")
"""Members that a journal of 0.1 does not have: another version is compared only where it recorded them."""


def _difference(
    recorded: Event, found: Event, paths: _PathMapping, *, same_version: bool, ignored: Sequence[str] = ()
) -> str | None:
    """Return a sentence about the difference of two events, or None."""
    old, new = _to_dict(recorded), paths.to_recorded(_to_dict(found))
    if old["type"] != new["type"]:
        more = new.get("error") or new.get("detail") or ""
        return f"the journal has {old['type']}, here it is {new['type']}" + (f": {more}" if more else "")
    ignored = (*ignored, *_NOT_COMPARED, *(() if same_version else _OF_VERSION))
    if not same_version:
        ignored = (*ignored, *(key for key in _TEXTS if key not in old))
    if "folder_digest" in old or not (same_version or "tree" in old):
        # Version 0.1 recorded no tree.
        ignored = (*ignored, "folder_digest", "tree")
    keys = [key for key in dict.fromkeys([*old, *new]) if key not in ignored and old.get(key) != new.get(key)]
    if not keys:
        return None
    about = f" of {old['name']}" if "name" in old and old.get("name") == new.get("name") else ""
    return f"{old['type']}{about}: {', '.join(keys)} differ" + ("s" if len(keys) == 1 else "")
