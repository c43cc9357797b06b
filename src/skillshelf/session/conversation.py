"""What a session sent to its model: which version of which skill, whether the model still has it, and the texts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from skillshelf.catalog import load as loader
from skillshelf.catalog.load import LoadedSkill, parse_address
from skillshelf.catalog.prompt import CatalogText, catalog_text, visible_to_model
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, Trust
from skillshelf.core.environment import Environment
from skillshelf.core.limits import RESOURCE_BYTES
from skillshelf.core.text import fold
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic
from skillshelf.errors import (
    AmbiguousSkill,
    ConfigurationError,
    ResourceNotFound,
    SkillError,
    SkillNotFound,
    SkillsDisabled,
    kind_of,
)
from skillshelf.session.effects import Effects, real_effects
from skillshelf.session.permissions import NAMES_OF_TOOLS, Permissions
from skillshelf.session.policy import (
    Confirm,
    Decision,
    Policy,
    Verdict,
    Window,
    decide_tool,
    effective_tools,
    is_granted,
    parse_patterns,
)
from skillshelf.session.recorder import Act, Recording, open_recorder
from skillshelf.session.render import Rendered, as_follow_up, render
from skillshelf.session.results import load_data, load_result, reminder, run_skill, told_message
from skillshelf.session.tools import ToolError, ToolResult

if TYPE_CHECKING:
    from skillshelf.catalog.load import Resource
    from skillshelf.sandbox.run import OnOutput, Run
    from skillshelf.search.query import SearchReport

__all__ = ["PROPOSALS", "Conversation", "Proposal", "SentSkill", "SentTexts", "ShelfProtocol", "proposed"]


class SentSkill(NamedTuple):
    """One version of a skill that was sent, and whether the model still has it."""

    name: str
    path: str
    mtime_ms: int
    digest: str
    arguments: str
    ref: str
    in_context: bool

    def is_version(self, loaded: LoadedSkill, arguments: str) -> bool:
        """Whether this is what was sent; a new time counts as much as a new text."""
        return (self.mtime_ms, self.digest, self.arguments) == (loaded.mtime_ms, loaded.digest, arguments)


class SentTexts:
    """The versions by path, and every text behind its reference."""

    def __init__(self) -> None:
        self.sent: dict[str, SentSkill] = {}
        self._texts: dict[str, str] = {}
        self._kept: dict[str, str] = {}

    def reminder_for(self, loaded: LoadedSkill, arguments: str) -> SentSkill | None:
        """What was sent, if it is this version and the model still has it."""
        sent = self.sent.get(loaded.skill.path)
        return sent if sent and sent.in_context and sent.is_version(loaded, arguments) else None

    def remember(self, loaded: LoadedSkill, arguments: str, text: str) -> str:
        """Note that a version was sent; returns its reference, which stays the same for the same version."""
        path = loaded.skill.path
        sent = self.sent.get(path)
        if sent is not None and sent.is_version(loaded, arguments):
            ref = sent.ref
            self._texts[ref] = text
        else:
            ref = self.keep("load", text)
        self.sent[path] = SentSkill(
            loaded.skill.name, path, loaded.mtime_ms, loaded.digest, arguments, ref, in_context=True
        )
        return ref

    def keep(self, kind: str, text: str) -> str:
        """Keep a text until the session ends; returns its reference."""
        ref = f"{kind}-{len(self._texts) + 1}"
        self._texts[ref] = text
        return ref

    def keep_once(self, key: str, kind: str, text: str) -> str:
        """The same for a text that may come again under the same key."""
        if key not in self._kept:
            self._kept[key] = self.keep(kind, text)
        return self._kept[key]

    def recall(self, ref: str) -> str:
        """The whole text behind a reference."""
        if ref not in self._texts:
            raise ResourceNotFound(f"reference {ref}")
        return self._texts[ref]

    def compact(self) -> None:
        """Nothing that was sent is in the model's context any more; references still resolve."""
        self.sent = {path: sent._replace(in_context=False) for path, sent in self.sent.items()}

    def to_dict(self) -> dict[str, Any]:
        """A JSON value that `from_dict` turns back."""
        return {"loaded": [sent._asdict() for sent in self.sent.values()], "texts": dict(self._texts)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "SentTexts":
        """The memory that `to_dict` wrote."""
        memory = cls()
        memory.sent = {entry["path"]: SentSkill(**entry) for entry in value["loaded"]}
        memory._texts = dict(value["texts"])
        return memory


Kind = Literal["model", "tools", "context"]

PROPOSALS: Mapping[str, Kind] = {
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
"""The fields of a frontmatter that ask a host to do something differently, and what they are about."""


class Proposal(NamedTuple):
    """One wish of a skill, and what the policy says about it; `confirm` leaves it to the host."""

    name: str
    path: str
    kind: Kind
    key: str
    value: Any
    verdict: Verdict
    rule: str | None


def proposed(frontmatter: Mapping[str, Any]) -> Iterator[tuple[Kind, str, Any]]:
    """What a frontmatter asks for, in the order of the table."""
    for key, kind in PROPOSALS.items():
        if frontmatter.get(key) is not None:
            yield kind, key, frontmatter[key]


class ShelfProtocol(Protocol):
    """The part of a shelf that a conversation uses; `skillshelf.Shelf` has it."""

    @property
    def profile(self) -> Profile:
        """The rules of the system."""

    @property
    def environment(self) -> Environment:
        """The folders and variables that count."""

    @property
    def settings(self) -> Settings:
        """The configuration."""

    @property
    def settings_in_force(self) -> Settings:
        """The configuration with what the environment says about budgets."""

    @property
    def trust(self) -> Trust:
        """Whose skills a model is told of."""

    @property
    def catalog(self) -> Catalog:
        """The skills, and what became of the others."""

    @property
    def project_root(self) -> str:
        """The repository, or the working directory."""

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        scope: str | None = None,
        model: bool = False,
        keep: Callable[[CatalogSkill], bool] | None = None,
    ) -> "SearchReport":
        """Return the skills that match a query."""

    def load(self, name: str | None = None, *, path: str | None = None) -> LoadedSkill:
        """Return one skill with its text."""

    def prompt(self) -> str:
        """Return the catalog as the profile writes it for a model."""

    def refresh(self) -> bool:
        """Scan again; True if anything changed."""


class Conversation:
    """The state of one conversation, and the steps that its acts are made of."""

    def __init__(
        self,
        shelf: ShelfProtocol,
        policy: Policy,
        confirm: Confirm | None,
        recording: Recording,
        effects: Effects | None,
    ) -> None:
        self.shelf = shelf
        self.profile = shelf.profile
        self.memory = SentTexts()
        self.active: dict[str, LoadedSkill] = {}
        self.preloaded: list[LoadedSkill] = []
        self.warnings: list[Diagnostic] = []
        self.proposals: tuple[Proposal, ...] = ()
        self.effects = effects or real_effects()
        self.recorder = open_recorder(recording, self.explained)
        self.permissions = Permissions(
            policy,
            confirm,
            profile=shelf.profile,
            environment=shelf.environment,
            recorder=self.recorder,
            effects=self.effects,
            has_taken=self._has_taken_a_name,
        )
        # As they were when the session began: what became of one of them can be said later.
        self.listed = {skill.name: skill for skill in self.skills}

    def _has_taken_a_name(self, skill: CatalogSkill) -> bool:
        """Whether another skill would have the name if this one were not there."""
        return any(loser.by == skill.path and not loser.same_file for loser in self.shelf.catalog.shadowed)

    @property
    def skills(self) -> Sequence[CatalogSkill]:
        """The skills of the shelf, those a model is not told of included."""
        found = self.shelf.catalog.skills
        if set(self.permissions.policy.deny) <= set(self.shelf.settings.deny):
            return found
        return tuple(
            skill._replace(hidden="denied")
            if skill.hidden is None and self.permissions.decide("skill_load", skill).verdict == "deny"
            else skill
            for skill in found
        )

    def catalog_text(self) -> CatalogText:
        """The catalog as the profile writes it, with the fields that the policy opened."""
        return catalog_text(
            self.skills, self.profile, self.shelf.settings_in_force, extra_fields=self.permissions.policy.catalog_fields
        )

    def begin(self) -> None:
        """Raise if the session is over; otherwise note what the catalog is now."""
        if self.recorder.closed:
            raise SkillError("this session was closed")
        self.look()

    def look(self) -> None:
        """Record the catalog if it is another one than the last that was recorded."""
        self.recorder.catalog_seen(self.shelf.catalog, lambda: self.catalog_text().text)

    def resolve(self, name: str | None, path: str | None = None) -> CatalogSkill:
        """The one skill that a path, or else a name, means."""
        if not self.shelf.settings.enabled:
            raise SkillsDisabled
        return loader.resolve(self.skills, name=name, path=path, cwd=self.shelf.environment.cwd)

    def deliver(self, skill: CatalogSkill, arguments: str, *, follow_up: bool = False) -> ToolResult:
        """Load a skill for the model; the same version again is only a reminder, while the model has it."""
        loaded = self.effects.load(skill, self.profile)
        rendered = as_follow_up(loaded, arguments) if follow_up else render(loaded, self.profile, arguments)
        self.warnings += [*loaded.warnings, *rendered.warnings]
        sent = self.memory.reminder_for(loaded, arguments)
        if sent is not None and self.profile.reload == "remind":
            self.use(loaded, arguments, sent.ref, repeat=True)
            return ToolResult(True, reminder(loaded, sent.ref), load_data(loaded, sent.ref, already_loaded=True))
        self.reached_model(loaded, (*loaded.warnings, *rendered.warnings))
        ref = self.memory.remember(loaded, arguments, rendered.text)
        self.use(loaded, arguments, ref, repeat=False)
        return load_result(loaded, rendered.text, ref, self.profile, root=self.shelf.project_root)

    def look_into(self, skill: CatalogSkill, arguments: str) -> tuple[LoadedSkill, Rendered, str]:
        """Load a skill for a person, as the model would get it; it is neither active nor sent by that."""
        loaded = self.effects.load(skill, self.profile)
        rendered = render(loaded, self.profile, arguments)
        self.reached_model(loaded, (*loaded.warnings, *rendered.warnings))
        ref = self.memory.keep_once(f"{skill.path} {loaded.digest} {arguments}", "load", rendered.text)
        effective = self.effective([*self.active.values(), loaded])
        self.recorder.invoked(skill, arguments, ref=ref, repeat=False, tools=effective)
        return loaded, rendered, ref

    def use(self, loaded: LoadedSkill, arguments: str, ref: str, *, repeat: bool) -> None:
        """Record that a skill was put to use, and make it active."""
        effective = self.effective([*self.active.values(), loaded])
        self.recorder.invoked(loaded.skill, arguments, ref=ref, repeat=repeat, tools=effective)
        self.activate(loaded)

    def reached_model(self, loaded: LoadedSkill, warnings: Sequence[Diagnostic]) -> None:
        """Record a load, and what the skill proposes to the host."""
        skill = loaded.skill
        strange = _not_understood(loaded) if self.profile.allowed_tools == "narrow" else ()
        if strange:
            told = f"not understood in allowed-tools, so it allows nothing: {', '.join(map(fold, strange))}"
            self.warnings.append(Diagnostic(skill.path, "allowed-tools-pattern", told, None))
            warnings = (*warnings, self.warnings[-1])
        self.recorder.loaded(loaded, warnings)
        known = [proposal for proposal in self.proposals if proposal.path != skill.path]
        for kind, key, value in proposed(loaded.frontmatter):
            decision = self.permissions.decide("skill_override", skill)
            proposal = Proposal(skill.name, skill.path, kind, key, value, decision.verdict, decision.rule)
            self.recorder.note("override_proposed", **proposal._asdict())
            if decision.verdict != "deny":
                known.append(proposal)
        self.proposals = tuple(known)

    def read_file(self, uri: str, skill: CatalogSkill, *, limit: int = RESOURCE_BYTES) -> "tuple[Resource, str]":
        """A file of a skill, and the reference under which its text is kept."""
        resource = self.effects.read(uri, skill, self.profile, limit)
        ref = self.memory.keep_once(f"{uri} {resource.digest}", "read", resource.content)
        self.recorder.read(skill, resource, ref)
        return resource, ref

    def run_script(
        self,
        skill: CatalogSkill,
        script: str,
        args: Sequence[str],
        act: Act,
        *,
        by_user: bool,
        on_output: "OnOutput | None" = None,
    ) -> "tuple[Run, ToolResult]":
        """Run a script of a skill, if somebody allows it."""
        return run_skill(
            skill,
            script,
            args,
            permissions=self.permissions,
            effects=self.effects,
            recorder=self.recorder,
            act=act,
            by_user=by_user,
            on_output=on_output,
        )

    def preload(self, name: str) -> None:
        """Load a skill that is in the model's context from the start."""
        with self.recorder.act("skill_load", {"name": name}, mode="manual"):
            try:
                skill = self.resolve(name)
            except SkillNotFound:
                known = ", ".join(skill.name for skill in visible_to_model(self.skills)) or "none"
                raise ConfigurationError(f"Unknown skill: {name}. Available: {known}") from None
            self.permissions.asked_for.add(skill.name)
            self.permissions.require("skill_load", skill, by_user=True)
            loaded = self.effects.load(skill, self.profile)
            self.reached_model(loaded, loaded.warnings)
            self.recorder.invoked(skill, "", ref=None, repeat=False, tools=self.effective(self.active.values()))
            self.preloaded.append(loaded)

    # Activation -----------------------------------------------------------------------------------

    def activate(self, loaded: LoadedSkill) -> None:
        """Let a skill's `allowed-tools` count from now on."""
        is_new = loaded.skill.path not in self.active
        self.active[loaded.skill.path] = loaded
        window = _window(loaded)
        if is_new and self.profile.allowed_tools == "narrow" and is_granted(self.permissions.policy, window):
            self.recorder.note(
                "policy_widened",
                rule="permissions.grant_from_skills",
                detail="while it is active this skill may allow the tools that it names",
                name=window.name,
                tools=[str(pattern) for pattern in window.patterns or ()],
            )

    def effective(self, active: Iterable[LoadedSkill]) -> tuple[str, ...] | None:
        """What these skills leave of the host's tools; None if they narrow nothing."""
        if self.profile.allowed_tools == "ignore":
            return None
        return effective_tools(self.permissions.policy, [_window(loaded) for loaded in active])

    def decide(self, tool: str, given: Mapping[str, Any]) -> Decision:
        """What the policy says about a call of any tool."""
        if tool not in (*self.profile.tools, "skill_load", "skill_read", "skill_run", "skill_search"):
            windows = [_window(loaded) for loaded in self.active.values()]
            if self.profile.allowed_tools != "narrow":
                windows = [window._replace(patterns=None) for window in windows]
            return decide_tool(self.permissions.policy, tool, given, windows)
        what = NAMES_OF_TOOLS[tool]
        if what == "skill_search":
            return self.permissions.decide(what, None)
        try:
            skill = self._meant_by(what, given)
        except SkillError as error:
            return Decision("deny", None, str(error))
        return self.permissions.preview(what, skill)

    def _meant_by(self, what: str, given: Mapping[str, Any]) -> CatalogSkill:
        if what == "skill_read":
            return self.resolve(parse_address(str(given.get("uri") or given.get("path"))).name)
        return self.resolve(given.get("name") or given.get("skillName"), given.get("path"))

    def explained(self, error: SkillError) -> ToolError:
        """The error in words that a model can act on."""
        candidates: tuple[str, ...] = ()
        message = str(error)
        if isinstance(error, AmbiguousSkill):
            candidates = error.paths
            message += "; load one of them by its path"
        elif isinstance(error, SkillNotFound):
            candidates = tuple(loader.near_names(error.name, visible_to_model(self.skills)))
            message += f"; did you mean {', '.join(candidates)}?" if candidates else ""
        return ToolError(kind_of(error).code, told_message(message), candidates)


def _window(loaded: LoadedSkill) -> Window:
    patterns = parse_patterns(loaded.frontmatter.get("allowed-tools"))
    return Window(loaded.skill.name, loaded.skill.trusted, patterns[0] if patterns is not None else None)


def _not_understood(loaded: LoadedSkill) -> tuple[str, ...]:
    patterns = parse_patterns(loaded.frontmatter.get("allowed-tools"))
    return patterns[1] if patterns is not None else ()
