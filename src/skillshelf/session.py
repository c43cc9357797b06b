"""A shelf and what a model does with it: one conversation, which remembers what is in its context."""

import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf import loader, rendering, resources
from skillshelf.delivery import cut_result, in_envelope, load_result
from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    FileReadError,
    PermissionDenied,
    SkillError,
    SkillNotFound,
)
from skillshelf.guard import NAMES_OF_TOOLS, Guard
from skillshelf.limits import DESCRIPTION_SHOWN
from skillshelf.loader import LoadedSkill
from skillshelf.markup import cut
from skillshelf.memory import Memory
from skillshelf.patterns import parse_patterns
from skillshelf.policy import (
    Confirm,
    Decision,
    Policy,
    Window,
    decide_tool,
    effective_tools,
    is_granted,
    make_policy,
)
from skillshelf.profile import Profile, scopes_of
from skillshelf.prompt import SYSTEM_RULES, CatalogText, catalog_text, told_to_models
from skillshelf.proposals import Proposal, proposed
from skillshelf.recorder import Act, Recording, open_recorder
from skillshelf.results import clean, code_of, failure, load_data, reminder, told_message
from skillshelf.running import can_run, run_skill
from skillshelf.text import fold
from skillshelf.tools import Tool, ToolError, ToolResult, check_arguments, tools_of
from skillshelf.values import CatalogSkill, Diagnostic
from skillshelf.world import World, real_world

if TYPE_CHECKING:
    from skillshelf.resources import Resource
    from skillshelf.runner import OnOutput, Run
    from skillshelf.shelf import Shelf

__all__ = ["Mentions", "Session"]

COMMAND = "/skill:"
_NEAR_MISSES = 10
# ASCII on both sides: in Japanese or Chinese a mention stands between letters.
_MENTION = re.compile(r"(?<![A-Za-z0-9_$\\])\$([a-z0-9]+(?:-[a-z0-9]+)*)(?!-*[A-Za-z0-9_])")
_TRUE_WORDS = ("1", "true", "yes", "y", "on")


class Mentions(NamedTuple):
    """A user's text with its mentions listed for the model, the skills they mean, and near misses."""

    text: str
    skills: tuple[str, ...]
    unknown: tuple[str, ...]


class Shown(NamedTuple):
    """A skill as a model would get it, for a person who asked for it."""

    loaded: LoadedSkill
    text: str
    warnings: tuple[Diagnostic, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "skill": self.loaded.skill.to_dict(),
            "text": self.text,
            "files": list(self.loaded.files),
            "files_truncated": self.loaded.files_truncated,
            "digest": self.loaded.digest,
            "warnings": [warning.to_dict() for warning in self.warnings],
        }


class Session:
    """One conversation on a shelf. Safe to use from several threads; one call runs at a time.

    What happens in it is told to `recording`; close it, or use it in a `with` statement, to end that well. `world`
    is what it does outside itself, which only replay replaces.
    """

    def __init__(
        self,
        shelf: "Shelf",
        *,
        policy: Policy | Mapping[str, Any] | str | None = None,
        confirm: Confirm | None = None,
        preload: Iterable[str] = (),
        recording: Recording = Recording(),  # noqa: B008 - a value that never changes.
        world: World | None = None,
        restored: bool = False,
    ) -> None:
        self.shelf = shelf
        self.changes: tuple[str, ...] = ()
        self.warnings: list[Diagnostic] = []
        self.proposals: tuple[Proposal, ...] = ()
        self._recording = recording
        self._lock = threading.RLock()
        self._memory = Memory()
        self._active: dict[str, LoadedSkill] = {}
        self._preloaded: list[LoadedSkill] = []
        self._cause: Exception | None = None
        rules = make_policy(policy, shelf.settings)
        self._world = world or real_world()
        self._recorder = open_recorder(recording, self._explained)
        self._guard = Guard(
            rules, confirm, profile=shelf.profile, place=shelf.place, recorder=self._recorder, world=self._world
        )
        self._listed = {skill.name: skill for skill in self.skills}
        wanted = list(preload)
        self._recorder.started(
            shelf.catalog,
            rules,
            profile=shelf.profile.name,
            cwd=shelf.place.cwd,
            trust=shelf.trust,
            preload=wanted,
            restored=restored,
        )
        self.look()
        try:
            for name in wanted:
                self._preload(name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the session; what was recorded of it is complete then."""
        with self._lock:
            self._recorder.ended()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def journal_problem(self) -> str | None:
        """What could not be written to the journal, in words; None if all of it was."""
        return self._recorder.lost()

    # What the model is told -----------------------------------------------------------------------

    @property
    def profile(self) -> Profile:
        """The profile of the shelf."""
        return self.shelf.profile

    @property
    def policy(self) -> Policy:
        """The policy, with the rules of the configuration in it."""
        return self._guard.policy

    @property
    def skills(self) -> Sequence[CatalogSkill]:
        """The skills of the shelf, those a model is not told of included."""
        found = self.shelf.catalog.skills
        if set(self.policy.deny) <= set(self.shelf.settings.deny):
            return found
        return tuple(
            skill._replace(hidden="denied")
            if skill.hidden is None and self._guard.decide("skill_load", skill).verdict == "deny"
            else skill
            for skill in found
        )

    def catalog_text(self) -> CatalogText:
        """The catalog as the profile writes it, with the fields that the policy opened."""
        return catalog_text(
            self.skills, self.profile, self.shelf.settings_in_force, extra_fields=self.policy.catalog_fields
        )

    def system_prompt(self, base: str = "", agents_context: str = "", tools: Sequence[str] | None = None) -> str:
        """Base text, standing context, then skills; `tools` are the host's own, None means that `read` is one."""
        parts = [base, agents_context]
        if self._lists_skills(tools) and (catalog := self.catalog_text().text):
            parts += [SYSTEM_RULES.get(self.profile.catalog_form, ""), catalog]
        if self._preloaded:
            parts.append(rendering.render_preloaded(self._preloaded).text)
        return "\n\n".join(part for part in parts if part)

    def _lists_skills(self, tools: Sequence[str] | None) -> bool:
        if self.profile.catalog_condition == "always":
            return True
        return not self._preloaded and (tools is None or "read" in tools)

    def tools(self) -> list[Tool]:
        """The tools of the profile, for the skills there are and as far as the policy can ever allow them."""
        runs = can_run(self.policy, asked=self._guard.confirm is not None)
        return tools_of(
            self.profile,
            self.skills,
            prompt=self.catalog_text().text,
            asked_for=self._guard.asked_for,
            without=() if runs else ("skill_run",),
        )

    def commands(self) -> list[str]:
        """One slash command for each skill that a user may invoke, for completion."""
        if self.profile.commands == "none" or not self.shelf.settings.commands:
            return []
        return [COMMAND + skill.name for skill in self.skills if skill.enabled and _is_for_users(skill)]

    # What the model does --------------------------------------------------------------------------

    def call(self, tool: str, arguments: Any = None) -> ToolResult:
        """Run a tool of the profile. A mistake of the model is an error in the result, never an exception."""
        given = {key: clean(value) for key, value in arguments.items()} if isinstance(arguments, Mapping) else {}
        started = time.perf_counter()
        with self._lock:
            if self._recorder.closed:
                return failure("failed", "this session was closed")
            self.look()
            with self._recorder.act(tool, arguments or {}, mode="auto") as act:
                if arguments is None or isinstance(arguments, Mapping):
                    act.result = self._called(tool, given, act)
                else:
                    act.result = failure("invalid_params", "the arguments of a tool are an object")
            return self._enveloped(given, act.result, round((time.perf_counter() - started) * 1000))

    def _called(self, tool: str, given: dict[str, Any], act: Act) -> ToolResult:
        if tool not in self.profile.tools:
            return failure("unknown_tool", f"no tool {tool!r}; there are: {', '.join(self.profile.tools)}")
        if not self.shelf.settings.enabled:
            return failure("denied", "skills are disabled")
        self._refresh_if_asked()
        wrong = check_arguments(tool, self.profile, given)
        if wrong is not None:
            return failure("invalid_params", wrong)
        try:
            return HANDLERS[tool](self, given, act)
        except SkillError as error:
            return self._failed(error)

    def _load(self, given: Mapping[str, Any], act: Act) -> ToolResult:
        name, path = given.get("name") or given.get("skillName"), given.get("path") or None
        if not name and path is None:
            return failure("invalid_params", "name or path is required")
        try:
            skill = self._resolve(name, path)
        except SkillNotFound:
            if path is not None or name not in self._listed:
                raise
            # It was listed when the session began: say what became of it.
            skill = self._listed[name]
        self._guard.permit("skill_load", skill)
        return self._deliver(skill, given.get("args") or "")

    def _read(self, given: Mapping[str, Any], act: Act) -> ToolResult:
        uri = given.get("uri") or given.get("path") or ""
        address = resources.parse_address(uri)
        skill = self._resolve(address.name)
        self._guard.permit("skill_read", skill)
        if not address.segments and self.profile.load_form == "raw":
            return self._deliver(skill, "")
        resource, ref = self._read_file(uri, skill)
        data = {key: value for key, value in resource._asdict().items() if key != "content"}
        note = f"[base64, {resource.size} bytes]\n" if resource.encoding == "base64" else ""
        text = note + cut_result(resource.content, ref, self.profile)
        return ToolResult(True, text, {**data, "ref": ref})

    def _search(self, given: Mapping[str, Any], act: Act) -> ToolResult:
        scopes = scopes_of(self.profile)
        if given.get("scope") not in (None, *scopes):
            return failure("invalid_params", f"no such scope; there are: {', '.join(scopes)}")
        self._guard.permit("skill_search", None)
        report = self.shelf.search(given["query"], limit=given.get("limit"), scope=given.get("scope"), model=True)
        told = {skill.path for skill in told_to_models(self.skills)}
        results = tuple(result for result in report.results if result.skill.path in told)
        report = report._replace(results=results, count=len(results))
        lines = [
            f"{n}. {fold(r.skill.name)} ({r.reason}): {cut(fold(r.skill.description), DESCRIPTION_SHOWN)}"
            for n, r in enumerate(report.results, 1)
        ]
        return ToolResult(True, "\n".join(lines) or "No skill fits." + self._held_back(), report.to_dict())

    def _held_back(self) -> str:
        held = sum(skill.hidden == "untrusted" for skill in self.skills)
        return f" {held} of this project are held back; the user can allow them: skillshelf trust" if held else ""

    def _run(self, given: Mapping[str, Any], act: Act) -> ToolResult:
        skill = self._resolve(given["name"])
        _, result = self._run_script(skill, given["script"], given.get("args") or (), act, by_user=False)
        ref = self._memory.keep("run", result.text)
        return result._replace(text=cut_result(result.text, ref, self.profile), data={**result.data, "ref": ref})

    # What a user does -----------------------------------------------------------------------------

    def command(self, text: str) -> ToolResult | None:
        """Run `/skill:name args`; None for text that is no command of this profile."""
        if self.profile.commands == "none" or not self.shelf.settings.commands or not text.startswith(COMMAND):
            return None
        name, arguments = self._command_words(text[len(COMMAND) :])
        given = {"name": name, **({"args": arguments} if arguments else {})}
        with self._lock:
            self._begin()
            with self._recorder.act("skill_load", given, mode="manual", command=text) as act:
                try:
                    act.result = self._commanded(name, arguments)
                except SkillError as error:
                    act.result = self._failed(error)
            return act.result

    def _commanded(self, name: str, arguments: str) -> ToolResult:
        skill = self._resolve(name)
        if not _is_for_users(skill):
            raise PermissionDenied(f"{skill.name} is not meant to be invoked by a user")
        self._guard.asked_for.add(skill.name)
        self._guard.permit("skill_load", skill, by_user=True)
        return self._deliver(skill, arguments, follow_up=self.profile.arguments == "user-line")

    def _command_words(self, text: str) -> tuple[str, str]:
        """The name and the rest of a command; a name of several words is known by the catalog."""
        names = [skill.name for skill in self.skills if " " in skill.name and text.startswith(skill.name)]
        if names:
            name = max(names, key=len)
            return name, text[len(name) :].strip()
        name, arguments = [*text.split(None, 1), "", ""][:2]
        return name, arguments

    def load(self, name: str | None = None, *, path: str | None = None, arguments: str = "") -> Shown:
        """A skill that a person asked for, exactly as a model would get it; a person is shown everything.

        The model of this session did not get it: a load by the model sends the whole text all the same.
        """
        tool = next((tool for tool in self.profile.tools if NAMES_OF_TOOLS[tool] == "skill_load"), "skill_load")
        key = "skillName" if tool == "activate_skill" else "name"
        asked = {key: name} if path is None else {"path": path}
        given = {**asked, **({"args": arguments} if arguments else {})}
        with self._lock:
            self._begin()
            with self._recorder.act(tool, given, mode="manual"):
                skill = self._resolve(name, path)
                self._guard.show("skill_load", skill)
                loaded = self._world.load(skill, self.profile)
                rendered = rendering.render(loaded, self.profile, arguments)
                warnings = (*loaded.warnings, *rendered.warnings)
                self._reached_model(loaded, warnings)
                ref = self._memory.keep_once(f"{skill.path} {loaded.digest} {arguments}", "load", rendered.text)
                effective = self._effective([*self._active.values(), loaded])
                self._recorder.invoked(skill, arguments, ref=ref, repeat=False, tools=effective)
                result = load_result(loaded, rendered.text, ref, self.profile, root=self.shelf.project_root)
            named = {"name": skill.name, **({"args": arguments} if arguments else {})}
            return Shown(loaded, self._enveloped(named, result, 0).text, warnings)

    def read(self, uri: str) -> "Resource":
        """A file of a skill that a person asked for; a person is shown everything."""
        tool, key = ("read", "path") if "read" in self.profile.tools else ("skill_read", "uri")
        with self._lock:
            self._begin()
            with self._recorder.act(tool, {key: uri}, mode="manual"):
                skill = self._resolve(resources.parse_address(uri).name)
                self._guard.show("skill_read", skill)
                return self._read_file(uri, skill)[0]

    def run(
        self, name: str, script: str, args: Sequence[str] = (), *, on_output: "OnOutput | None" = None
    ) -> "tuple[Run, ToolResult]":
        """Run a script that a person asked for; somebody is asked all the same, unless a rule allows it."""
        given = {"name": name, "script": script, **({"args": list(args)} if args else {})}
        with self._lock:
            self._begin()
            with self._recorder.act("skill_run", given, mode="manual") as act:
                skill = self._resolve(name)
                run, act.result = self._run_script(skill, script, args, act, by_user=True, on_output=on_output)
            return run, act.result

    def resolve_mentions(self, text: str) -> Mentions:
        """The skills that `$name` means in a user's text; what is no skill is no mention."""
        named = list(dict.fromkeys(_MENTION.findall(text)))
        if self.profile.mentions == "none" or not named:
            return Mentions(text, (), ())
        with self._lock:
            known = {skill.name for skill in self.skills if skill.enabled and _is_for_users(skill)}
            # Only what resembles a skill: `$100` and `$home` are something else.
            strange = [name for name in named if name not in known][:_NEAR_MISSES]
            unknown = tuple(name for name in strange if loader.near_names(name, self.skills))
            meant = self._mentioned([name for name in named if name in known], unknown)
        if not meant:
            return Mentions(text, meant, unknown)
        block = "\n".join(["<skill_mentions>", *(f"- {name}" for name in meant), "</skill_mentions>"])
        return Mentions(f"{text}\n\n{block}", meant, unknown)

    def _mentioned(self, names: Sequence[str], unknown: Sequence[str]) -> tuple[str, ...]:
        """The names that may reach the model; the user asked for them."""
        if not names and not unknown:
            return ()
        self._begin()
        self._recorder.by_person()
        self._recorder.note("skill_mentioned", names=list(names), unknown=list(unknown))
        meant = []
        for name in names:
            named = [skill for skill in self.skills if skill.name == name]
            allowed = [skill for skill in named if self._guard.may_mention(skill)]
            if allowed:
                meant.append(name)
            for skill in allowed:
                self._recorder.invoked(skill, "", ref=None, repeat=False, tools=self.effective_allowed_tools)
        self._guard.asked_for.update(meant)
        return tuple(meant)

    # Activation -----------------------------------------------------------------------------------

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the skills that were loaded and not given back."""
        with self._lock:
            return tuple(sorted({loaded.skill.name for loaded in self._active.values()}))

    def activate(self, name: str | None = None, *, path: str | None = None) -> LoadedSkill:
        """Load a skill and keep it active; raises what a load raises."""
        with self._lock:
            self._begin()
            with self._recorder.act("activate", {"name": name} if path is None else {"path": path}, mode="manual"):
                skill = self._resolve(name, path)
                self._guard.asked_for.add(skill.name)
                self._guard.permit("skill_load", skill, by_user=True)
                loaded = self._world.load(skill, self.profile)
                self._reached_model(loaded, loaded.warnings)
                self._recorder.note("skill_activated", name=skill.name, path=skill.path)
                self._activate(loaded)
                return loaded

    def _activate(self, loaded: LoadedSkill) -> None:
        """Let a skill's `allowed-tools` count from now on."""
        is_new = loaded.skill.path not in self._active
        self._active[loaded.skill.path] = loaded
        window = _window(loaded)
        if is_new and is_granted(self.policy, window):
            self._recorder.note(
                "policy_widened",
                rule="permissions.grant_from_skills",
                detail="while it is active this skill may allow the tools that it names",
                name=window.name,
                tools=[str(pattern) for pattern in window.patterns or ()],
            )

    def deactivate(self, name: str) -> None:
        """Give a skill back; its text is freed and its `allowed-tools` count no longer."""
        with self._lock:
            for path, loaded in list(self._active.items()):
                if loaded.skill.name == name:
                    del self._active[path]
                    self._recorder.note("skill_deactivated", name=name, path=path)

    @property
    def effective_allowed_tools(self) -> tuple[str, ...] | None:
        """What the active skills leave of the host's tools, as patterns; None if they narrow nothing."""
        with self._lock:
            return self._effective(self._active.values())

    def _effective(self, active: Iterable[LoadedSkill]) -> tuple[str, ...] | None:
        if self.profile.allowed_tools == "ignore":
            return None
        return effective_tools(self.policy, [_window(loaded) for loaded in active])

    def decide(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """What the policy says about a call: of a skill tool on the skill that its arguments really mean, of any
        other on the `allowed-tools` of the active skills too."""
        given = dict(arguments or {})
        with self._lock:
            if tool not in (*self.profile.tools, "skill_load", "skill_read", "skill_run", "skill_search"):
                windows = [_window(loaded) for loaded in self._active.values()]
                if self.profile.allowed_tools != "narrow":
                    windows = [window._replace(patterns=None) for window in windows]
                return decide_tool(self.policy, tool, given, windows)
            what = NAMES_OF_TOOLS[tool]
            if what == "skill_search":
                return self._guard.decide(what, None)
            try:
                skill = self._meant_by(what, given)
            except SkillError as error:
                return Decision("deny", None, str(error))
            return self._guard.decide(what, skill)

    def _meant_by(self, what: str, given: Mapping[str, Any]) -> CatalogSkill:
        if what == "skill_read":
            return self._resolve(resources.parse_address(str(given.get("uri") or given.get("path"))).name)
        return self._resolve(given.get("name") or given.get("skillName"), given.get("path"))

    def child(self, skills: Iterable[str] = ()) -> "Session":
        """A session for a sub-agent that starts with these skills; an unknown name is an error at once."""
        return Session(
            self.shelf,
            policy=self.policy,
            confirm=self._guard.confirm,
            preload=skills,
            recording=self._recording,
            world=self._world,
        )

    # Memory ---------------------------------------------------------------------------------------

    def recall(self, ref: str) -> str:
        """The whole text behind a reference, until the session ends."""
        with self._lock:
            return self._memory.recall(ref)

    def compact(self) -> None:
        """Say that the model's context was shortened: what was loaded is no longer in it."""
        with self._lock:
            held = sorted(path for path, sent in self._memory.sent.items() if sent.in_context)
            self._memory.compact()
            self._recorder.note("context_compacted", skills=held)

    def snapshot(self) -> dict[str, Any]:
        """The session as a JSON value."""
        with self._lock:
            return {
                "version": 1,
                "profile": self.profile.name,
                "active": sorted(self._active),
                "preloaded": [loaded.skill.name for loaded in self._preloaded],
                "asked_for": sorted(self._guard.asked_for),
                **self._memory.to_dict(),
            }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any], shelf: "Shelf", **options: Any) -> "Session":
        """The session a snapshot was taken of; `changes` says what is different on disk since then."""
        members = {"version", "profile", "active", "preloaded", "asked_for", "loaded", "texts"}
        if not isinstance(snapshot, Mapping) or not members <= set(snapshot):
            raise ConfigurationError("not a snapshot of a session")
        if snapshot["version"] != 1 or snapshot["profile"] != shelf.profile.name:
            raise ConfigurationError("not a snapshot of a session with this profile")
        session = cls(shelf, restored=True, **options)
        session._memory = Memory.from_dict(snapshot)
        for name in snapshot["preloaded"]:
            try:
                session._preload(name)
            except SkillError as error:
                session.changes += (f"no longer preloaded: {name}: {error}",)
        session.changes += tuple(session._differences())
        for path in snapshot["active"]:
            try:
                session.activate(path=path)
            except SkillError as error:
                session.changes += (f"no longer active: {path}: {error}",)
        session._guard.asked_for = set(snapshot["asked_for"])
        return session

    def _differences(self) -> Iterable[str]:
        known = {skill.path: skill for skill in self.skills}
        for path, sent in self._memory.sent.items():
            if path not in known:
                yield f"missing: {sent.name} ({path})"
                continue
            try:
                loaded = self._world.load(known[path], self.profile)
            except SkillError as error:
                yield f"broken: {sent.name}: {error}"
                continue
            if loaded.digest != sent.digest:
                yield f"updated: {sent.name} ({path})"

    # One act --------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._recorder.closed:
            raise SkillError("this session was closed")
        self.look()

    def look(self) -> None:
        """Record the catalog if it is another one than the last that was recorded."""
        self._recorder.catalog_seen(self.shelf.catalog, lambda: self.catalog_text().text)

    def _resolve(self, name: str | None, path: str | None = None) -> CatalogSkill:
        return loader.resolve(self.skills, name=name, path=path, cwd=self.shelf.place.cwd)

    def _deliver(self, skill: CatalogSkill, arguments: str, *, follow_up: bool = False) -> ToolResult:
        """Load a skill for the model; the same version again is only a reminder, while the model has it."""
        loaded = self._world.load(skill, self.profile)
        if follow_up:
            rendered = rendering.as_follow_up(loaded, arguments)
        else:
            rendered = rendering.render(loaded, self.profile, arguments)
        self.warnings += [*loaded.warnings, *rendered.warnings]
        sent = self._memory.reminder_for(loaded, arguments)
        if sent is not None and self.profile.reload == "remind":
            self._use(loaded, arguments, sent.ref, repeat=True)
            return ToolResult(True, reminder(loaded, sent.ref), load_data(loaded, sent.ref, already_loaded=True))
        self._reached_model(loaded, (*loaded.warnings, *rendered.warnings))
        ref = self._memory.remember(loaded, arguments, rendered.text)
        self._use(loaded, arguments, ref, repeat=False)
        return load_result(loaded, rendered.text, ref, self.profile, root=self.shelf.project_root)

    def _use(self, loaded: LoadedSkill, arguments: str, ref: str, *, repeat: bool) -> None:
        effective = self._effective([*self._active.values(), loaded])
        self._recorder.invoked(loaded.skill, arguments, ref=ref, repeat=repeat, tools=effective)
        self._activate(loaded)

    def _reached_model(self, loaded: LoadedSkill, warnings: Sequence[Diagnostic]) -> None:
        """Record a load, and what the skill proposes to the host."""
        self._recorder.loaded(loaded, warnings)
        skill = loaded.skill
        known = [proposal for proposal in self.proposals if proposal.path != skill.path]
        for kind, key, value in proposed(loaded.frontmatter):
            decision = self._guard.decide("skill_override", skill)
            proposal = Proposal(skill.name, skill.path, kind, key, value, decision.verdict, decision.rule)
            self._recorder.note("override_proposed", **proposal._asdict())
            if decision.verdict != "deny":
                known.append(proposal)
        self.proposals = tuple(known)

    def _read_file(self, uri: str, skill: CatalogSkill) -> "tuple[Resource, str]":
        resource = self._world.read(uri, skill, self.profile)
        ref = self._memory.keep_once(f"{uri} {resource.digest}", "read", resource.content)
        self._recorder.read(skill, resource, ref)
        return resource, ref

    def _run_script(
        self,
        skill: CatalogSkill,
        script: str,
        args: Sequence[str],
        act: Act,
        *,
        by_user: bool,
        on_output: "OnOutput | None" = None,
    ) -> "tuple[Run, ToolResult]":
        return run_skill(
            skill,
            script,
            args,
            guard=self._guard,
            world=self._world,
            recorder=self._recorder,
            act=act,
            by_user=by_user,
            on_output=on_output,
        )

    def _preload(self, name: str) -> None:
        with self._lock, self._recorder.act("skill_load", {"name": name}, mode="manual"):
            try:
                skill = self._resolve(name)
            except SkillNotFound:
                known = ", ".join(skill.name for skill in told_to_models(self.skills)) or "none"
                raise ConfigurationError(f"Unknown skill: {name}. Available: {known}") from None
            self._guard.asked_for.add(skill.name)
            self._guard.permit("skill_load", skill, by_user=True)
            loaded = self._world.load(skill, self.profile)
            self._reached_model(loaded, loaded.warnings)
            self._recorder.invoked(skill, "", ref=None, repeat=False, tools=self.effective_allowed_tools)
            self._preloaded.append(loaded)

    def _refresh_if_asked(self) -> None:
        variable = self.profile.refresh_env
        word = self.shelf.place.env.get(variable, "true") if variable else "true"
        if self.profile.refresh == "on-call" and word.strip().lower() in _TRUE_WORDS:
            self.shelf.refresh()
            self.look()

    def _failed(self, error: SkillError) -> ToolResult:
        self._cause = error.underlying if isinstance(error, FileReadError) else None
        told = self._explained(error)
        return failure(told.code, told.message, told.candidates)

    def _explained(self, error: SkillError) -> ToolError:
        """The error in words that a model can act on."""
        candidates: tuple[str, ...] = ()
        message = str(error)
        if isinstance(error, AmbiguousSkill):
            candidates = error.paths
            message += "; load one of them by its path"
        elif isinstance(error, SkillNotFound):
            candidates = tuple(loader.near_names(error.name, told_to_models(self.skills)))
            message += f"; did you mean {', '.join(candidates)}?" if candidates else ""
        return ToolError(code_of(error), told_message(message), candidates)

    def _enveloped(self, given: Mapping[str, Any], result: ToolResult, time_ms: int) -> ToolResult:
        if self.profile.load_form != "envelope":
            return result
        root, cwd = self.shelf.project_root, self.shelf.place.cwd
        return in_envelope(given, result, root=root, cwd=cwd, time_ms=time_ms, cause=self._cause)


HANDLERS = {
    "skill_load": Session._load,
    "activate_skill": Session._load,
    "Skill": Session._load,
    "skill_read": Session._read,
    "read": Session._read,
    "skill_search": Session._search,
    "skill_run": Session._run,
}


def _window(loaded: LoadedSkill) -> Window:
    patterns = parse_patterns(loaded.frontmatter.get("allowed-tools"))
    return Window(loaded.skill.name, loaded.skill.trusted, patterns[0] if patterns is not None else None)


def _is_for_users(skill: CatalogSkill) -> bool:
    flag = skill.frontmatter.get("user-invocable")
    return not (flag is False or str(flag).strip().lower() in ("false", "no", "off", "0"))
