"""Hold the state of one conversation and perform its operations.

`Conversation.use` is the one sequence that brings a skill into a conversation: it resolves the skill, checks
permission, loads it, records what happened and returns the result. `ENTRIES` says which steps each entry takes.
"""

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog import load as loader
from skillshelf.catalog.build_context import required_first
from skillshelf.catalog.load import SKILL_FILE, LoadedSkill, digest_of, parse_address, resource_of
from skillshelf.catalog.lock_places import CHANGED
from skillshelf.catalog.packed import skills_named
from skillshelf.catalog.prompt import CatalogText, as_shown, catalog_text, visible_to_model
from skillshelf.catalog.source import PUBLISHED_SCHEME
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.limits import OUTPUT_BLOCK, RESOURCE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, folded_name, is_false
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic
from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    LimitExceeded,
    PermissionDenied,
    SkillChanged,
    SkillError,
    SkillNotFound,
    SkillNotUsable,
    SkillsDisabled,
    kind_of,
)
from skillshelf.session.effects import Effects, ShelfProtocol, effects_of
from skillshelf.session.entries import ENTRIES, EntryName, EntrySteps, PermissionStep
from skillshelf.session.permissions import NAMES_OF_TOOLS, Permissions
from skillshelf.session.policy import (
    Confirm,
    Decision,
    Policy,
    SkillToolLimits,
    Verdict,
    covers_run,
    decide_tool,
    effective_tools,
    is_granted,
    parse_patterns,
)
from skillshelf.session.recorder import RecordingOptions, RunningCall, open_recorder
from skillshelf.session.render import Rendered, as_follow_up, page, render
from skillshelf.session.results import load_result, message_text, reminder_result, run_result, with_warnings
from skillshelf.session.sent_texts import ConversationMark, Memory, SentSkill, SentTexts
from skillshelf.session.tools import ToolError, ToolResult

if TYPE_CHECKING:
    from skillshelf.catalog.load import Resource
    from skillshelf.journal.events import Mode
    from skillshelf.sandbox.run import OnOutput, Run, Script

__all__ = [
    "Conversation",
    "Proposal",
    "ShelfProtocol",
    "UsedSkill",
    "is_for_users",
]


ProposalKind = Literal["model", "tools", "context"]

_PROPOSAL_FIELDS: Mapping[str, ProposalKind] = {
    "model": "model",
    "provider": "model",
    "effort": "model",
    "tool-defaults": "tools",
    "tool-aliases": "tools",
    "disallowed-tools": "tools",
    "context": "context",
    "agent": "context",
    "globs": "context",
    "alwaysApply": "context",
    "paths": "context",
}
"""The frontmatter fields that ask a host to change its behaviour, in the order in which they are reported."""


class Proposal(NamedTuple):
    """A change that a skill proposes to its host, with the policy's verdict; `confirm` leaves it to the host."""

    name: str
    path: str
    kind: ProposalKind
    key: str
    value: Any
    verdict: Verdict
    rule: str | None


class UsedSkill(NamedTuple):
    """A skill that was used; a mention has no loaded skill, and an entry without text has an empty result."""

    skill: CatalogSkill
    loaded: LoadedSkill | None = None
    warnings: tuple[Diagnostic, ...] = ()
    result: ToolResult = ToolResult(True, "", {})


_RECORDED_TEXT = "recorded text of the catalog"
_VISIBLE_PATHS = "paths of the visible skills"


class _RecordedText(NamedTuple):
    """The text of a catalog that models are told under some rules."""

    catalog: Catalog
    settings: Settings
    policy: Policy
    text: str


def is_for_users(skill: CatalogSkill) -> bool:
    """Return False if the author sets `user-invocable: false`."""
    return not is_false(skill.frontmatter.get("user-invocable"))


class Conversation:
    """State of one conversation. Each operation resolves a skill, checks permission, performs the effect and records
    an event."""

    def __init__(
        self,
        shelf: ShelfProtocol,
        policy: Policy,
        confirm: Confirm | None,
        recording: RecordingOptions,
        effects: Effects | None,
        memory: Memory = "session",
    ) -> None:
        self.shelf = shelf
        self.memory = memory
        self.visible: Container[str] = ()
        self._catalog: Catalog | None = None
        self.profile = shelf.profile
        self.sent = SentTexts()
        self.active: dict[str, LoadedSkill] = {}
        self.preloaded: list[LoadedSkill] = []
        self.warnings: list[Diagnostic] = []
        self.proposals: tuple[Proposal, ...] = ()
        self.recorder = open_recorder(recording, self.explain, shelf.settings)
        self.effects = self.recorder.taped(effects or effects_of(shelf))
        self.permissions = Permissions(
            policy,
            confirm,
            profile=shelf.profile,
            environment=shelf.environment,
            project_root=lambda: shelf.project_root,
            recorder=self.recorder,
            effects=self.effects,
        )
        self._at_start = self.skills

    @property
    def catalog(self) -> Catalog:
        """The catalog of the shelf; within `one_catalog` the one that was last recorded."""
        return self.shelf.catalog if self._catalog is None else self._catalog

    @contextmanager
    def one_catalog(self) -> Iterator[None]:
        """Use one catalog in the `with` block, since other sessions may refresh the shelf meanwhile."""
        before, self._catalog = self._catalog, self.shelf.catalog
        try:
            yield
        finally:
            self._catalog = before

    @property
    def skills(self) -> Sequence[CatalogSkill]:
        """The skills of the shelf, hidden ones included."""
        found = self.catalog.skills
        if set(self.permissions.policy.deny) <= set(self.shelf.settings.deny):
            return found
        return tuple(self._as_decided(skill) for skill in found)

    def _as_decided(self, skill: CatalogSkill) -> CatalogSkill:
        if skill.hidden is not None:
            return skill
        decision = self.permissions.listing(skill)
        if decision.verdict != "deny":
            return skill
        return skill._replace(hidden="denied", hidden_by=f"rule: {decision.rule or decision.reason}")

    def _listed_at_start(self, name: str) -> CatalogSkill | None:
        """Return the skill that had a name when the session began; of several the one that models are told of.

        Not one that was published: a server still has the files of a release that it does not serve any more.
        """
        alike = [skill for skill in skills_named(self._at_start, folded_name(name)) if skill.name == name]
        own = [skill for skill in alike if not skill.path.startswith(PUBLISHED_SCHEME)]
        return sorted(own, key=lambda skill: skill.hidden is None)[-1] if own else None

    def visible_paths(self) -> Container[str]:
        """Return the paths of the skills that models are told of; sessions with the rules of the shelf share them."""
        skills = self.skills
        if skills is not self.catalog.skills:
            return {skill.path for skill in visible_to_model(skills)}
        kept = self.shelf.attachments.get(_VISIBLE_PATHS)
        if not isinstance(kept, tuple) or kept[0] is not skills:
            paths = frozenset(skill.path for skill in visible_to_model(skills))
            kept = self.shelf.attachments[_VISIBLE_PATHS] = skills, paths
        found: Container[str] = kept[1]
        return found

    def catalog_text(self) -> CatalogText:
        """Return the catalog text of the profile, with the extra fields that the policy allows."""
        skills = required_first(self.skills, self.shelf.settings.system)[0]
        return catalog_text(
            skills, self.profile, self.shelf.settings_in_force, extra_fields=self.permissions.policy.catalog_fields
        )

    def record_catalog(self) -> None:
        """Record the catalog if it changed since it was last recorded."""
        if self._catalog is not None:
            self._catalog = self.shelf.catalog
            self.recorder.catalog_updated(self.shelf, self._catalog, self._recorded_text)
            return
        with self.one_catalog():
            self.record_catalog()

    def _recorded_text(self) -> str:
        """Return the catalog text, made once for all sessions of the shelf with the same rules.

        A server may open a session for each request, and the text of a long catalog takes longer than a search.
        """
        made_of = self.catalog, self.shelf.settings_in_force, self.permissions.policy
        kept = self.shelf.attachments.get(_RECORDED_TEXT)
        # The catalog is the very same object as long as nothing changed; to compare others takes too long.
        if not isinstance(kept, _RecordedText) or kept.catalog is not made_of[0] or kept[:-1] != made_of:
            kept = self.shelf.attachments[_RECORDED_TEXT] = _RecordedText(*made_of, self.catalog_text().text)
        return kept.text

    def require_open(self) -> None:
        """Raise if the session is closed; otherwise record the catalog if it changed."""
        if self.recorder.closed:
            raise SkillError("this session was closed")
        self.record_catalog()

    @contextmanager
    def act(
        self, tool: str, given: Mapping[str, Any], *, mode: "Mode", command: str | None = None, host: bool = False
    ) -> Iterator[RunningCall]:
        """Record everything in the `with` block as one call of a tool."""
        with self.one_catalog():
            self.require_open()
            with self.recorder.act(tool, given, mode=mode, command=command, host=host) as act:
                yield act

    def resolve(
        self, name: str | None, path: str | None = None, *, permission: PermissionStep = "model"
    ) -> CatalogSkill:
        """Return the one skill of a path, or else of a name: among the skills that this caller may have."""
        if not self.shelf.settings.enabled:
            raise SkillsDisabled
        is_shown = permission == "show"
        return loader.resolve(
            self.skills,
            name=name,
            path=path,
            cwd=self.shelf.environment.cwd,
            may_have=None if is_shown else lambda skill: self._may_have(skill, permission),
            catalog=self.catalog,
            real_path=self.effects.real_path,
            withheld=(lambda path: False) if is_shown else self._is_withheld,
            names=self.profile.collision_key,
        )

    def _may_have(self, skill: CatalogSkill, permission: PermissionStep) -> bool:
        """Return True if a skill is not hidden from a caller; a user may invoke what its author hides from models."""
        if permission in ("command", "mention") and not is_for_users(skill):
            return False
        by_author = skill.hidden == "disable-model-invocation"
        return skill.hidden is None or (
            by_author and (permission != "model" or skill.real_path in self.permissions.requested)
        )

    def _is_withheld(self, path: str) -> bool:
        """Return True if a file lies in a folder of skills that the user has not trusted."""
        if self.shelf.trust == "all":
            return False
        return any(files.is_inside(path, root) for root in self.effects.untrusted_roots(self.shelf))

    # One sequence for every entry -----------------------------------------------------------------

    def use(
        self,
        entry: EntryName,
        name: str | None = None,
        path: str | None = None,
        arguments: str = "",
        offset: int | None = None,
    ) -> list[UsedSkill]:
        """Resolve, permit, load, record and deliver a skill, as the entry's row in `ENTRIES` says.

        There is one skill in the result, except for a mention that is not permitted. An `offset` is where a text that
        was cut goes on; with any, 0 included, the text comes even if the model has it.
        """
        steps = ENTRIES[entry]
        permitted = [skill for skill in self._resolve(steps, name, path) if self._permit(steps, skill)]
        return [self._load_and_record(steps, skill, arguments, offset) for skill in permitted]

    def use_one(
        self,
        entry: EntryName,
        name: str | None = None,
        path: str | None = None,
        arguments: str = "",
        offset: int | None = None,
    ) -> UsedSkill:
        """Use a skill by an entry that resolves exactly one."""
        return self.use(entry, name, path, arguments, offset)[0]

    def _resolve(self, steps: EntrySteps, name: str | None, path: str | None) -> Sequence[CatalogSkill]:
        try:
            return [self.resolve(name, path, permission=steps.permission)]
        except SkillNotFound as error:
            self._require_not_changed(error)
            listed = self._listed_at_start(name) if steps.resolve == "listed" and path is None and name else None
            if listed is None:
                raise
            return [listed]

    def _permit(self, steps: EntrySteps, skill: CatalogSkill) -> bool:
        """Record the decision; raise PermissionDenied unless the skill may be used."""
        self._require_settled(skill)
        if steps.permission == "command" and not is_for_users(skill):
            raise PermissionDenied(f"{skill.name} is not meant to be invoked by a user")
        if steps.request == "before":
            self.permissions.requested[skill.real_path] = skill.name
        if steps.permission == "none":
            return True
        if steps.permission == "show":
            self.permissions.show(steps.rule, skill)
        elif steps.permission == "mention":
            if not self.permissions.may_mention(skill):
                return False
        else:
            self.permissions.require(steps.rule, skill, by_user=steps.permission != "model")
        if steps.request == "permitted":
            self.permissions.requested[skill.real_path] = skill.name
        return True

    def _require_not_changed(self, missing: SkillNotFound) -> None:
        """Raise SkillChanged if the skill that is not found is an installed one whose files are others now."""
        try:
            self.effects.require_not_changed(missing.name)
        except SkillChanged as error:
            self.recorder.record("skill_warning", kind=CHANGED, detail=str(error), name=error.name, path=None)
            raise

    def _require_settled(self, skill: CatalogSkill) -> None:
        """Raise SkillChanged for an installed skill that the catalog knows as changed, unless it was settled since."""
        if skill.hidden == "changed":
            with self._told_change(skill):
                self.effects.tree(skill)

    @contextmanager
    def _told_change(self, skill: CatalogSkill) -> Iterator[None]:
        """Record a warning if the files of an installed skill turn out to be others."""
        try:
            yield
        except SkillChanged as error:
            self.recorder.record("skill_warning", kind=CHANGED, detail=str(error), name=skill.name, path=skill.path)
            raise

    def _load_and_record(
        self, steps: EntrySteps, skill: CatalogSkill, arguments: str, offset: int | None = None
    ) -> UsedSkill:
        if steps.render == "unloaded":
            self._record_use(steps, skill, None, arguments, None, repeat=False)
            return UsedSkill(skill)
        loaded = self._load(skill)
        rendered = self._render(steps, loaded, arguments)
        warnings = (*loaded.warnings, *rendered.warnings)
        self.warn(warnings if steps.text == "sent" else loaded.warnings)
        sent = None
        if offset and self.sent.has_other_text(loaded):
            raise ConfigurationError(f"{skill.name} changed since its beginning was sent; load it again with offset=0")
        if steps.text == "sent" and offset is None:
            sent = self._in_context(loaded, arguments, rendered.text)
        ref = sent.ref if sent else self._keep_text(steps, loaded, arguments, rendered.text)
        part = page(rendered, loaded, ref or "", self.profile, offset or 0, with_arguments=bool(arguments))
        if sent is None:
            self._record_load(loaded, warnings)
        if steps.text == "sent" and sent is None:
            self.sent.add_version(loaded, arguments, ref or "", whole=part.whole)
        self._record_use(steps, skill, loaded, arguments, ref, repeat=sent is not None)
        if ref is None:
            return UsedSkill(skill, loaded, warnings)
        if sent is not None:
            result = reminder_result(loaded, ref, self.profile, with_arguments=bool(arguments))
        else:
            result = load_result(loaded, part, ref, self.profile, root=self.shelf.project_root)
        return UsedSkill(skill, loaded, warnings, with_warnings(result, warnings))

    def _load(self, skill: CatalogSkill) -> LoadedSkill:
        """Load a skill; entries of its `allowed-tools` that are not understood are among its warnings."""
        with self._told_change(skill):
            loaded = self.effects.load(skill, self.profile)
        self.permissions.verify(skill, os.path.basename(skill.real_path), loaded.digest, loaded.tree)
        patterns = parse_patterns(loaded.frontmatter.get("allowed-tools"))
        if self.profile.allowed_tools != "narrow" or patterns is None or not patterns[1]:
            return loaded
        message = f"not understood in allowed-tools, so it allows nothing: {', '.join(map(fold, patterns[1]))}"
        warning = Diagnostic(skill.path, "allowed-tools-pattern", message, None)
        return loaded._replace(warnings=(*loaded.warnings, warning))

    def warn(self, warnings: Iterable[Diagnostic]) -> None:
        """Add warnings to those of the session, each once."""
        self.warnings += [warning for warning in warnings if warning not in self.warnings]

    def _in_context(self, loaded: LoadedSkill, arguments: str, text: str) -> SentSkill | None:
        """Return the entry of this version if the model still has its whole text."""
        if self.profile.reload != "remind" or self.memory == "none":
            return None
        if self.memory == "messages" and digest_of(text.encode()) not in self.visible:
            return None
        return self.sent.in_context(loaded, arguments)

    def _render(self, steps: EntrySteps, loaded: LoadedSkill, arguments: str) -> Rendered:
        if steps.render == "none":
            return Rendered("")
        if steps.render == "command" and self.profile.arguments == "user-line":
            return as_follow_up(loaded, arguments)
        return render(loaded, self.profile, arguments, root=self.shelf.project_root)

    def _keep_text(self, steps: EntrySteps, loaded: LoadedSkill, arguments: str, text: str) -> str | None:
        """Keep a rendered text and return its reference."""
        if steps.text == "sent":
            return self.sent.keep(loaded, arguments, text)
        if steps.text == "kept":
            return self.sent.add_text("load", text, key=f"{loaded.skill.path} {loaded.digest} {arguments}")
        return None

    def _record_load(self, loaded: LoadedSkill, warnings: Sequence[Diagnostic]) -> None:
        """Record a load and the changes that the skill proposes to the host."""
        skill = loaded.skill
        self.recorder.loaded(loaded, warnings)
        known = [proposal for proposal in self.proposals if proposal.path != skill.path]
        for key, kind in _PROPOSAL_FIELDS.items():
            if (value := loaded.frontmatter.get(key)) is None:
                continue
            decision = self.permissions.decide("skill_override", skill)
            proposal = Proposal(skill.name, skill.path, kind, key, value, decision.verdict, decision.rule)
            self.recorder.record("override_proposed", **proposal._asdict())
            if decision.verdict != "deny":
                known.append(proposal)
        self.proposals = tuple(known)

    def _record_use(
        self,
        steps: EntrySteps,
        skill: CatalogSkill,
        loaded: LoadedSkill | None,
        arguments: str,
        ref: str | None,
        *,
        repeat: bool,
    ) -> None:
        """Record that a skill was used; activate or preload it if the entry does so."""
        itself = [loaded] if loaded and steps.counts_itself else []
        tools = self.effective_tools([*self.active.values(), *itself])
        self.recorder.invoked(skill, arguments, ref=ref, repeat=repeat, tools=tools)
        if steps.event == "skill_activated":
            self.recorder.record("skill_activated", name=skill.name, path=skill.path)
        if loaded and steps.activates:
            self._activate(loaded)
        if loaded and steps.preloads:
            self.preloaded.append(loaded)
        elif loaded and not repeat and steps.permission != "none":
            # What a host brings in by itself says nothing about a search.
            self.effects.learn_load(skill)

    def _activate(self, loaded: LoadedSkill) -> None:
        is_new = loaded.skill.path not in self.active
        self.active[loaded.skill.path] = loaded
        window = self._window(loaded)
        if is_new and self.profile.allowed_tools == "narrow" and is_granted(self.permissions.policy, window):
            self.recorder.record(
                "policy_widened",
                rule="permissions.grant_from_skills",
                detail="while it is active this skill may allow the tools that it names",
                name=window.name,
                tools=[str(pattern) for pattern in window.patterns or ()],
            )

    def preload(self, name: str) -> None:
        """Load a skill into the system prompt; raise ConfigurationError if there is none of that name."""
        steps = ENTRIES["preload"]
        with self.recorder.act(steps.event_tool or steps.rule, {"name": name}, mode=steps.mode):
            try:
                self.use("preload", name)
            except SkillNotUsable as error:
                raise ConfigurationError(str(error)) from None
            except SkillNotFound:
                known = ", ".join(skill.name for skill in visible_to_model(self.skills)) or "none"
                raise ConfigurationError(f"Unknown skill: {name}. Available: {known}") from None

    def restore_requests(self, names: Iterable[str]) -> None:
        """Take these names as those of the skills that the user asked for; one that several skills have is nobody's."""
        wanted = set(names)
        known = [skill for skill in self.skills if skill.name in wanted]
        taken = Counter(skill.name for skill in known)
        self.permissions.requested = {skill.real_path: skill.name for skill in known if taken[skill.name] == 1}

    def mark(self) -> ConversationMark:
        """Return what is sent and active now, for `drop_since`."""
        return ConversationMark(dict(self.sent.skills), frozenset(self.active))

    def drop_since(self, mark: ConversationMark) -> None:
        """Take back what the last call brought into the conversation: the model did not get its result."""
        sent = sorted(path for path, version in self.sent.skills.items() if mark.sent.get(path) != version)
        self.drop(self.recorder.last_tool_id, sent)
        for path in sorted(self.active.keys() - mark.active):
            name = self.active.pop(path).skill.name
            self.recorder.record("skill_deactivated", name=name, path=path)

    def drop(self, tool_id: str, skills: Iterable[str]) -> None:
        """Record that the model did not get a result, and mark the skills in it as not in the context."""
        paths = list(skills)
        self.sent.drop(paths)
        self.recorder.record("result_dropped", tool_id=tool_id, skills=paths)

    # Files and scripts ----------------------------------------------------------------------------

    def read_file(
        self, entry: EntryName, uri: str, *, path: str | None = None, limit: int = RESOURCE_BYTES
    ) -> "tuple[Resource, str]":
        """Resolve, permit, read and record a file of a skill; return it with the reference of its text.

        `entry` is a row of `ENTRIES` for reads: resolving and permission are the same for a file as for the skill. A
        SKILL.md that is read for a model is a load of its skill, in the form of a file.
        """
        steps = ENTRIES[entry]
        address = parse_address(uri)
        (skill,) = self._resolve(steps, address.name, path)
        self._permit(steps, skill)
        # A slash after the path asks for a folder, which is no SKILL.md.
        owner = self._owner_of(skill, address.segments) if steps.activates and not address.is_folder else None
        if owner is not None:
            if owner.path != skill.path:
                self._permit(steps, owner)
            return self._read_instructions(steps, owner, uri, limit)
        with self._told_change(skill):
            resource = self.effects.read(uri, skill, self.profile, limit)
        segments = address.segments or (os.path.basename(skill.real_path),)
        self.permissions.verify(skill, "/".join(segments), resource.digest)
        ref = self.sent.add_text("read", resource.content, key=f"{uri} {resource.digest}")
        self.recorder.read(skill, resource, ref)
        return resource, ref

    def _owner_of(self, skill: CatalogSkill, segments: Sequence[str]) -> CatalogSkill | None:
        """Return the skill whose SKILL.md a path in a skill leads to: itself, one inside it, or None."""
        if not segments or tuple(segments) == (SKILL_FILE,):
            return skill
        real = self.effects.real_path(os.path.join(skill.real_dir, *segments))
        if not files.is_inside(real, skill.real_dir):
            # A link that leads out of the skill, to another one too, is refused where the file is read.
            return None
        return next((other for other in (skill, *self.skills) if other.real_path == real), None)

    def _read_instructions(
        self, steps: EntrySteps, skill: CatalogSkill, uri: str, limit: int
    ) -> "tuple[Resource, str]":
        """Load a skill whose SKILL.md was asked for as a file, and record it as every other load."""
        loaded = self._load(skill)
        if len(loaded.data) > limit:
            raise LimitExceeded(f"{SKILL_FILE} has {len(loaded.data)} bytes; at most {limit} are read")
        resource = resource_of(uri, skill.path, SKILL_FILE, loaded.data, self.profile)
        ref = self.sent.add_text("read", resource.content, key=f"{uri} {resource.digest}")
        self.warn(loaded.warnings)
        if steps.text == "sent":
            self.sent.add_file(loaded, ref)
        self._record_load(loaded, loaded.warnings)
        self.recorder.read(skill, resource, ref)
        self._record_use(steps, skill, loaded, "", ref, repeat=False)
        return resource, ref

    def run_script(
        self,
        name: str,
        script: str,
        args: Sequence[str],
        act: RunningCall,
        *,
        by_user: bool,
        on_output: "OnOutput | None" = None,
    ) -> "tuple[Run, ToolResult]":
        """Run a script after the policy allowed this skill, script and digest."""
        try:
            skill = self.resolve(name, permission="show" if by_user else "model")
        except SkillNotFound as error:
            self._require_not_changed(error)
            raise
        self._require_settled(skill)
        with self._told_change(skill):
            found = self._installed_script(skill, script)
        narrowed = None if by_user else self._narrowed_run(skill.name, found.path, args)
        self.permissions.require("skill_run", skill, by_user=by_user, script=found, narrowed=narrowed)
        policy = self.permissions.policy
        run = self.effects.run(
            skill.real_dir,
            found.path,
            list(args),
            digest=found.digest,
            version=found.tree.version,
            grants=(
                *(policy.run_network, policy.run_read, policy.run_write, policy.run_unsandboxed),
                policy.run_seccomp == "off",
            ),
            require=policy.run_require,
            on_output=on_output,
            artifacts=self.recorder.artifacts_folder(),
        )
        act.ended = {
            "exit_code": run.exit_code,
            "artifacts": [self.effects.artifact(run.artifact)] if run.artifact else [],
            "truncated": run.truncated,
            "reason": run.reason,
            "output_bytes": [run.stdout_bytes, run.stderr_bytes] if run.truncated else [],
            "missing": list(run.missing),
        }
        self.effects.learn_load(skill)
        # One stream after the other in blocks of one size, so that equal outputs leave equal events.
        for event, data in (("tool_stdout", run.stdout), ("tool_stderr", run.stderr)):
            text = data.decode("utf-8", "replace")
            for start in range(0, len(text), OUTPUT_BLOCK):
                self.recorder.record(event, tool_id=act.tool_id, chunk=text[start : start + OUTPUT_BLOCK])
        return run, run_result(skill, found.path, run)

    def _installed_script(self, skill: CatalogSkill, script: str) -> "Script":
        """Return a script; of an installed skill only if it is one of the files that the place of the skill must have.

        A link at that place may lead to a folder of which no lock speaks.
        """
        found = self.effects.find_script(skill.real_dir, script)
        if skill.tree is not None and self.effects.tree(skill).version != found.tree.version:
            raise SkillChanged(skill.name, (found.path,))
        return found

    # Decisions and errors -------------------------------------------------------------------------

    def effective_tools(self, active: Iterable[LoadedSkill]) -> tuple[str, ...] | None:
        """Return the patterns that these skills leave of the host's tools; None if they narrow nothing."""
        if self.profile.allowed_tools == "ignore":
            return None
        return effective_tools(self.permissions.policy, [self._window(loaded) for loaded in active])

    def is_skill_tool(self, tool: str, given: Mapping[str, Any]) -> bool:
        """Return True for a call of a tool of ours, False for one of the host; many hosts have a `read` too."""
        if tool == "read" and not any(str(value).startswith("skill://") for value in given.values()):
            return False
        return tool in (*self.profile.tools, "skill_load", "skill_read", "skill_run", "skill_search")

    def decide(self, tool: str, given: Mapping[str, Any]) -> Decision:
        """Return the policy's decision on a call of any tool."""
        if not self.is_skill_tool(tool, given):
            return decide_tool(self.permissions.policy, tool, given, self._windows())
        rule = NAMES_OF_TOOLS[tool]
        if rule == "skill_search":
            return self.permissions.decide(rule, None)
        try:
            if rule == "skill_read":
                skill = self.resolve(parse_address(str(given.get("uri") or given.get("path"))).name)
            else:
                # Arguments come from a model, and nothing has checked them before a decision.
                named, path = given.get("name") or given.get("skillName"), given.get("path") or None
                if not all(value is None or isinstance(value, str) for value in (named, path)):
                    return Decision("deny", None, "the name and the path of a skill are texts")
                skill = self.resolve(named, path)
        except SkillError as error:
            return Decision("deny", None, str(error))
        decision = self.permissions.preview(rule, skill)
        if rule == "skill_run" and decision.verdict == "allow":
            words = given.get("args")
            listed = [str(word) for word in words] if isinstance(words, list | tuple) else []
            decision = self._narrowed_run(skill.name, str(given.get("script") or ""), listed) or decision
        return decision

    def _windows(self) -> list[SkillToolLimits]:
        """Return the limits of the active skills, which narrow nothing where the profile takes them as advice."""
        windows = [self._window(loaded) for loaded in self.active.values()]
        if self.profile.allowed_tools != "narrow":
            windows = [window._replace(patterns=None) for window in windows]
        return windows

    def _narrowed_run(self, name: str, script: str, args: Sequence[str]) -> Decision | None:
        """Return the decision on a script that an active skill does not allow; None if all of them do.

        Loads, reads and searches bring only text and are the policy's matter alone. A script is covered by a pattern
        for `skill_run`, or by one for the shell as if its path were the command.
        """
        for window in self._windows():
            if window.patterns is not None and not covers_run(window.patterns, name, script, args):
                reason = f"skill_run is not among the allowed-tools of {window.name}, which is active"
                return Decision("confirm", f"allowed-tools: {window.name}", reason)
        return None

    def explain(self, error: SkillError) -> ToolError:
        """Return the error with a message that a model can act on."""
        candidates: tuple[str, ...] = ()
        message = str(error)
        if isinstance(error, AmbiguousSkill):
            # A model is not told where the skills are that it may not have.
            told = {skill.path for skill in self.skills if skill.hidden in (None, "disable-model-invocation")}
            candidates = tuple(path for path in error.paths if path in told)
            message += "; load one of them by its path" if candidates else "; all of them are hidden from models"
        elif isinstance(error, SkillNotFound) and not isinstance(error, SkillNotUsable):
            told_names = as_shown(visible_to_model(self.skills), self.profile)
            candidates = tuple(loader.near_names(error.name, told_names))
            message += f"; did you mean {', '.join(candidates)}?" if candidates else ""
        return ToolError(kind_of(error).code, message_text(message), candidates)

    def _window(self, loaded: LoadedSkill) -> SkillToolLimits:
        patterns = parse_patterns(loaded.frontmatter.get("allowed-tools"))
        return SkillToolLimits(self.permissions.subject(loaded.skill), patterns[0] if patterns is not None else None)
