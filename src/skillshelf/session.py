"""A shelf and what a model does with it: one conversation, which remembers what is in its context."""

import os
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf import envelope as envelopes
from skillshelf import loader, rendering, resources
from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    FileReadError,
    PermissionDenied,
    SkillError,
    SkillNotFound,
)
from skillshelf.limits import DESCRIPTION_SHOWN
from skillshelf.loader import LoadedSkill
from skillshelf.markup import cut
from skillshelf.memory import Memory
from skillshelf.policy import Confirm, Decision, Policy, decide, make_policy
from skillshelf.profile import Profile, scopes_of
from skillshelf.prompt import SYSTEM_RULES, CatalogText, catalog_text, told_to_models
from skillshelf.results import clean, code_of, failure, load_data, reminder
from skillshelf.text import fold
from skillshelf.tools import Tool, ToolResult, check_arguments, tools_of
from skillshelf.values import CatalogSkill, Diagnostic

if TYPE_CHECKING:
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
    """One conversation on a shelf. Safe to use from several threads; one call runs at a time."""

    def __init__(
        self,
        shelf: "Shelf",
        *,
        policy: Policy | Mapping[str, Any] | str | None = None,
        confirm: Confirm | None = None,
        preload: Iterable[str] = (),
    ) -> None:
        self.shelf = shelf
        self.policy = make_policy(policy, shelf.settings)
        self.changes: tuple[str, ...] = ()
        self.warnings: list[Diagnostic] = []
        self._confirm = confirm
        self._lock = threading.RLock()
        self._memory = Memory()
        self._active: dict[str, LoadedSkill] = {}
        self._asked_for: set[str] = set()
        self._cause: Exception | None = None
        self._listed = {skill.name: skill for skill in self.skills}
        self._preloaded = [self._pinned(name) for name in preload]

    # What the model is told -----------------------------------------------------------------------

    @property
    def profile(self) -> Profile:
        """The profile of the shelf."""
        return self.shelf.profile

    @property
    def skills(self) -> Sequence[CatalogSkill]:
        """The skills of the shelf, those a model is not told of included."""
        return self.shelf.catalog.skills

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
        """The tools of the profile, for the skills there are."""
        return tools_of(self.profile, self.skills, prompt=self.catalog_text().text, asked_for=self._asked_for)

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
            if arguments is None or isinstance(arguments, Mapping):
                result = self._called(tool, given)
            else:
                result = failure("invalid_params", "the arguments of a tool are an object")
            if self.profile.load_form != "envelope":
                return result
            return self._in_envelope(given, result, round((time.perf_counter() - started) * 1000))

    def _called(self, tool: str, given: dict[str, Any]) -> ToolResult:
        if tool not in self.profile.tools or tool not in HANDLERS:
            known = ", ".join(name for name in self.profile.tools if name in HANDLERS)
            return failure("unknown_tool", f"no tool {tool!r}; there are: {known}")
        if not self.shelf.settings.enabled:
            return failure("denied", "skills are disabled")
        self._refresh_if_asked()
        wrong = check_arguments(tool, self.profile, given)
        if wrong is not None:
            return failure("invalid_params", wrong)
        try:
            return HANDLERS[tool](self, given)
        except SkillError as error:
            return self._failed(error)

    def command(self, text: str) -> ToolResult | None:
        """Run `/skill:name args`; None for text that is no command of this profile."""
        if self.profile.commands == "none" or not self.shelf.settings.commands or not text.startswith(COMMAND):
            return None
        name, arguments = self._command_words(text[len(COMMAND) :])
        with self._lock:
            try:
                skill = loader.resolve(self.skills, name=name, cwd=self.shelf.place.cwd)
                if not _is_for_users(skill):
                    raise PermissionDenied(f"{skill.name} is not meant to be invoked by a user")
                self._permit("skill_load", skill, by_user=True)
                loaded = loader.load(skill, self.profile)
                if self.profile.arguments == "user-line":
                    rendered = rendering.as_follow_up(loaded, arguments)
                else:
                    rendered = rendering.render(loaded, self.profile, arguments)
                return self._remember(loaded, rendered.text, arguments)
            except SkillError as error:
                return self._failed(error)

    def _command_words(self, text: str) -> tuple[str, str]:
        """The name and the rest of a command; a name of several words is known by the catalog."""
        names = [skill.name for skill in self.skills if " " in skill.name and text.startswith(skill.name)]
        if names:
            name = max(names, key=len)
            return name, text[len(name) :].strip()
        name, arguments = [*text.split(None, 1), "", ""][:2]
        return name, arguments

    def load(self, name: str | None = None, *, path: str | None = None, arguments: str = "") -> Shown:
        """A skill that a person asked for, exactly as a model would get it; a person is shown everything."""
        with self._lock:
            skill = loader.resolve(self.skills, name=name, path=path, cwd=self.shelf.place.cwd)
            loaded = loader.load(skill, self.profile)
            rendered = rendering.render(loaded, self.profile, arguments)
            result = self._remember(loaded, rendered.text, arguments)
            if self.profile.load_form == "envelope":
                given = {"name": skill.name, **({"args": arguments} if arguments else {})}
                result = self._in_envelope(given, result, 0)
            return Shown(loaded, result.text, (*loaded.warnings, *rendered.warnings))

    def resolve_mentions(self, text: str) -> Mentions:
        """The skills that `$name` means in a user's text; what is no skill is no mention."""
        if self.profile.mentions == "none":
            return Mentions(text, (), ())
        known = {skill.name for skill in self.skills if skill.enabled and _is_for_users(skill)}
        named = list(dict.fromkeys(_MENTION.findall(text)))
        meant = tuple(name for name in named if name in known)
        # Only what resembles a skill: `$100` and `$home` are something else.
        strange = [name for name in named if name not in known][:_NEAR_MISSES]
        unknown = tuple(name for name in strange if loader.near_names(name, self.skills))
        with self._lock:
            self._asked_for.update(meant)
        if not meant:
            return Mentions(text, meant, unknown)
        block = "\n".join(["<skill_mentions>", *(f"- {name}" for name in meant), "</skill_mentions>"])
        return Mentions(f"{text}\n\n{block}", meant, unknown)

    # Activation -----------------------------------------------------------------------------------

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the skills that were loaded and not given back."""
        with self._lock:
            return tuple(sorted({loaded.skill.name for loaded in self._active.values()}))

    def activate(self, name: str | None = None, *, path: str | None = None) -> LoadedSkill:
        """Load a skill and keep it active; raises what a load raises."""
        with self._lock:
            skill = loader.resolve(self.skills, name=name, path=path, cwd=self.shelf.place.cwd)
            self._permit("skill_load", skill, by_user=True)
            loaded = loader.load(skill, self.profile)
            self._active[skill.path] = loaded
            return loaded

    def deactivate(self, name: str) -> None:
        """Give a skill back; its text is freed."""
        with self._lock:
            self._active = {path: loaded for path, loaded in self._active.items() if loaded.skill.name != name}

    def decide(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """What the policy says about a call, on the skill that its arguments really mean."""
        given = dict(arguments or {})
        name = given.get("name") or given.get("skillName")
        try:
            skill = loader.resolve(self.skills, name=name, path=given.get("path"), cwd=self.shelf.place.cwd)
        except SkillError as error:
            return Decision("deny", None, str(error))
        return decide(self.policy, tool, skill)

    def child(self, skills: Iterable[str] = ()) -> "Session":
        """A session for a sub-agent that starts with these skills; an unknown name is an error at once."""
        return Session(self.shelf, policy=self.policy, confirm=self._confirm, preload=skills)

    # Memory ---------------------------------------------------------------------------------------

    def recall(self, ref: str) -> str:
        """The whole text behind a reference, until the session ends."""
        with self._lock:
            return self._memory.recall(ref)

    def compact(self) -> None:
        """Say that the model's context was shortened: what was loaded is no longer in it."""
        with self._lock:
            self._memory.compact()

    def snapshot(self) -> dict[str, Any]:
        """The session as a JSON value."""
        with self._lock:
            return {
                "version": 1,
                "profile": self.profile.name,
                "active": sorted(self._active),
                "preloaded": [loaded.skill.name for loaded in self._preloaded],
                "asked_for": sorted(self._asked_for),
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
        session = cls(shelf, **options)
        session._memory = Memory.from_dict(snapshot)
        for name in snapshot["preloaded"]:
            try:
                session._preloaded.append(session._pinned(name))
            except SkillError as error:
                session.changes += (f"no longer preloaded: {name}: {error}",)
        session.changes += tuple(session._differences())
        for path in snapshot["active"]:
            try:
                session.activate(path=path)
            except SkillError as error:
                session.changes += (f"no longer active: {path}: {error}",)
        session._asked_for = set(snapshot["asked_for"])
        return session

    def _differences(self) -> Iterable[str]:
        known = {skill.path: skill for skill in self.skills}
        for path, sent in self._memory.sent.items():
            if path not in known:
                yield f"missing: {sent.name} ({path})"
                continue
            try:
                loaded = loader.load(known[path], self.profile)
            except SkillError as error:
                yield f"broken: {sent.name}: {error}"
                continue
            if loaded.digest != sent.digest:
                yield f"updated: {sent.name} ({path})"

    # One call -------------------------------------------------------------------------------------

    def _load(self, given: Mapping[str, Any]) -> ToolResult:
        name, path = given.get("name") or given.get("skillName"), given.get("path") or None
        if not name and path is None:
            return failure("invalid_params", "name or path is required")
        try:
            skill = loader.resolve(self.skills, name=name, path=path, cwd=self.shelf.place.cwd)
        except SkillNotFound:
            if path is not None or name not in self._listed:
                raise
            # It was listed when the session began: say what became of it.
            skill = self._listed[name]
        self._permit("skill_load", skill, by_user=False)
        loaded = loader.load(skill, self.profile)
        arguments = given.get("args") or ""
        rendered = rendering.render(loaded, self.profile, arguments)
        self.warnings += [*loaded.warnings, *rendered.warnings]
        return self._remember(loaded, rendered.text, arguments)

    def _remember(self, loaded: LoadedSkill, text: str, arguments: str) -> ToolResult:
        """The result of a load; the same version again is only a reminder, while the model has it."""
        self._active[loaded.skill.path] = loaded
        sent = self._memory.reminder_for(loaded, arguments)
        if sent is not None and self.profile.reload == "remind":
            return ToolResult(True, reminder(loaded, sent.ref), load_data(loaded, sent.ref, already_loaded=True))
        ref = self._memory.remember(loaded, arguments, text)
        return ToolResult(True, self._cut(text, ref), self._form_data(loaded, text, ref))

    def _cut(self, text: str, ref: str) -> str:
        data = text.encode()
        if len(data) <= self.profile.result_bytes:
            return text
        return data[: self.profile.result_bytes].decode("utf-8", "ignore") + f"\n[cut; ref={ref}]"

    def _form_data(self, loaded: LoadedSkill, text: str, ref: str) -> Mapping[str, Any]:
        if self.profile.load_form == "skill-activated":
            return {
                "skillName": loaded.skill.name,
                "instructions": loaded.body.strip(),
                "resourcesAvailable": {
                    "hasScripts": loaded.has_scripts,
                    "hasReferences": loaded.has_references,
                    "hasAssets": loaded.has_assets,
                },
            }
        if self.profile.load_form == "envelope":
            base = os.path.relpath(loaded.skill.dir, self.shelf.project_root)
            content = self._cut(text, ref)
            truncated = {"truncated": True, "ref": ref} if content != text else {}
            return {
                "name": loaded.skill.name,
                "base_dir": base,
                "content": content,
                "path": loaded.skill.path,
                **truncated,
            }
        return load_data(loaded, ref, already_loaded=False)

    def _read(self, given: Mapping[str, Any]) -> ToolResult:
        uri = given.get("uri") or given.get("path") or ""
        address = resources.parse_address(uri)
        skill = loader.resolve(self.skills, name=address.name, cwd=self.shelf.place.cwd)
        self._permit("skill_read", skill, by_user=False)
        if not address.segments and self.profile.load_form == "raw":
            return self._load({"name": skill.name})
        _, resource = resources.read_resource(uri, [skill], self.profile)
        data = {key: value for key, value in resource._asdict().items() if key != "content"}
        ref = self._memory.keep_once(f"{uri} {resource.digest}", "read", resource.content)
        note = f"[base64, {resource.size} bytes]\n" if resource.encoding == "base64" else ""
        return ToolResult(True, note + self._cut(resource.content, ref), {**data, "ref": ref})

    def _search(self, given: Mapping[str, Any]) -> ToolResult:
        scopes = scopes_of(self.profile)
        if given.get("scope") not in (None, *scopes):
            return failure("invalid_params", f"no such scope; there are: {', '.join(scopes)}")
        report = self.shelf.search(
            given["query"], limit=given.get("limit"), scope=given.get("scope"), model=True, keep=self._may_be_loaded
        )
        lines = [
            f"{n}. {fold(r.skill.name)} ({r.reason}): {cut(fold(r.skill.description), DESCRIPTION_SHOWN)}"
            for n, r in enumerate(report.results, 1)
        ]
        notes = [f"({note})" for note in report.notes]
        lines = lines or ["No skill fits." + self._held_back()]
        return ToolResult(True, "\n".join([*lines, *notes]), report.to_dict())

    def _may_be_loaded(self, skill: CatalogSkill) -> bool:
        return decide(self.policy, "skill_load", skill).verdict != "deny"

    def _held_back(self) -> str:
        held = sum(skill.hidden == "untrusted" for skill in self.skills)
        return f" {held} of this project are held back; the user can allow them: skillshelf trust" if held else ""

    # Permission and failure -----------------------------------------------------------------------

    def _permit(self, tool: str, skill: CatalogSkill, *, by_user: bool) -> None:
        """Raise unless this skill may be used that way."""
        if by_user:
            self._asked_for.add(skill.name)
        if not skill.enabled:
            raise PermissionDenied(f"{skill.name} is disabled")
        asked = by_user or skill.name in self._asked_for
        if skill.hidden == "disable-model-invocation" and not asked:
            raise PermissionDenied(f"{skill.name} may only be invoked by the user")
        decision = decide(self.policy, tool, skill)
        if decision.verdict != "deny" and decide(self.policy, "skill_load", skill).verdict == "deny":
            # A file of a skill is part of it: who may not load the skill may not read it piece by piece.
            decision = decide(self.policy, "skill_load", skill)
        if decision.verdict == "allow":
            return
        if decision.verdict == "confirm" and self._confirm and self._confirm(tool, skill.name, decision.reason) is True:
            return
        raise PermissionDenied(f"{skill.name} may not be used: {decision.reason}.{self._held_back()}")

    def _pinned(self, name: str) -> LoadedSkill:
        try:
            skill = loader.resolve(self.skills, name=name, cwd=self.shelf.place.cwd)
        except SkillNotFound:
            known = ", ".join(skill.name for skill in told_to_models(self.skills)) or "none"
            raise ConfigurationError(f"Unknown skill: {name}. Available: {known}") from None
        self._permit("skill_load", skill, by_user=True)
        return loader.load(skill, self.profile)

    def _refresh_if_asked(self) -> None:
        variable = self.profile.refresh_env
        word = self.shelf.place.env.get(variable, "true") if variable else "true"
        if self.profile.refresh == "on-call" and word.strip().lower() in _TRUE_WORDS:
            self.shelf.refresh()

    def _failed(self, error: SkillError) -> ToolResult:
        code = code_of(error)
        candidates: tuple[str, ...] = ()
        message = str(error)
        if isinstance(error, AmbiguousSkill):
            candidates = error.paths
            message += "; load one of them by its path"
        elif isinstance(error, SkillNotFound):
            candidates = tuple(loader.near_names(error.name, told_to_models(self.skills)))
            message += f"; did you mean {', '.join(candidates)}?" if candidates else ""
        self._cause = error.underlying if isinstance(error, FileReadError) else None
        return failure(code, message, candidates)

    def _in_envelope(self, given: Mapping[str, Any], result: ToolResult, time_ms: int) -> ToolResult:
        """The result as the response envelope of the profile's tool protocol."""
        root = self.shelf.project_root
        cwd = os.path.relpath(self.shelf.place.cwd, root)
        if result.error is not None:
            code, message = envelopes.code_for(result.error, self._cause), envelopes.acting(result.error.message)
            whole = envelopes.error_envelope(code, message, params=given, cwd=cwd, time_ms=time_ms)
        else:
            path = os.path.relpath(result.data["path"], root)
            data = {key: value for key, value in result.data.items() if key != "path"}
            text = f"Loaded skill '{data['name']}'."
            if data.get("truncated"):
                text += f" It was cut for size; use the reference {data['ref']} to recall the rest."
            whole = envelopes.envelope(data, text, params=given, cwd=cwd, path=path, time_ms=time_ms)
        return result._replace(text=envelopes.to_json(whole), data=whole)


HANDLERS = {
    "skill_load": Session._load,
    "activate_skill": Session._load,
    "Skill": Session._load,
    "skill_read": Session._read,
    "read": Session._read,
    "skill_search": Session._search,
}


def _is_for_users(skill: CatalogSkill) -> bool:
    flag = skill.frontmatter.get("user-invocable")
    return not (flag is False or str(flag).strip().lower() in ("false", "no", "off", "0"))
