"""The registry of skills by name, the tool that activates one, and a shelf over a registry."""

import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillshelf.adapters.loaders import Skill, SkillDiscovery, SkillLoader
from skillshelf.catalog.build_context import registered_skill
from skillshelf.catalog.prompt import available_skills_with_location
from skillshelf.config.builtin_profiles import LOADER_PROFILES
from skillshelf.config.profile import ToolName
from skillshelf.config.settings import load_system_policy
from skillshelf.core.environment import make_environment
from skillshelf.core.text import attribute, escape_closing_tags, for_model
from skillshelf.core.values import Catalog, CatalogSkill, Shadowed
from skillshelf.errors import PermissionDenied, SkillNotFound
from skillshelf.session.render import activated
from skillshelf.session.session import Session
from skillshelf.session.system_rules import require_served
from skillshelf.session.tools import fixed_tools
from skillshelf.shelf import Shelf, open_shelf

__all__ = [
    "LoaderBackedShelf",
    "RegistryBackedShelf",
    "SkillEnvelope",
    "SkillRegistry",
    "SkillResources",
    "SkillTool",
    "SkillToolOutput",
    "active_skills_prompt",
    "skills_of",
]


class SkillRegistry:
    """Skills by name; registering a name again replaces its skill. Safe to use from several threads."""

    def __init__(self, *, discover_from_standard_paths: bool = False) -> None:
        self._lock = threading.RLock()
        self._skills: dict[str, Skill] = {}
        self._active: set[str] = set()
        self._acts: dict[str, tuple[int, bool]] = {}
        self._act_count = 0
        if discover_from_standard_paths:
            self.register(SkillDiscovery.discover_all())

    def register(self, skills: Skill | Iterable[Skill]) -> None:
        """Register one skill or several under their names."""
        with self._lock:
            for skill in [skills] if isinstance(skills, Skill) else skills:
                self._skills[skill.id] = skill
                self._set_active(skill.id, active=False)

    def unregister(self, name: str) -> Skill | None:
        """Remove a skill; return it, or None if there was none."""
        with self._lock:
            self._set_active(name, active=False)
            return self._skills.pop(name, None)

    def get(self, name: str) -> Skill | None:
        """Return the skill of that name, or None."""
        with self._lock:
            return self._skills.get(name)

    def contains(self, name: str) -> bool:
        """Return True if there is a skill of that name."""
        with self._lock:
            return name in self._skills

    @property
    def count(self) -> int:
        """The number of skills."""
        with self._lock:
            return len(self._skills)

    @property
    def registered_names(self) -> list[str]:
        """All names, sorted."""
        with self._lock:
            return sorted(self._skills)

    @property
    def all_skills(self) -> list[Skill]:
        """All skills, sorted by name."""
        with self._lock:
            return [self._skills[name] for name in sorted(self._skills)]

    def activate(self, name: str) -> Skill:
        """Read the instructions of a skill from disk and mark it active."""
        with self._lock:
            known = self._skills.get(name)
            if known is None:
                raise SkillNotFound(name)
            self._require_served(known)
            skill = SkillLoader.load_full(known.directory_path)
            self._skills[name] = skill
            self._set_active(name, active=True)
            return skill

    def _set_active(self, name: str, *, active: bool) -> None:
        """Mark a skill, and note the act for the conversations that follow this registry."""
        if not active and name not in self._active:
            return
        self._active = self._active | {name} if active else self._active - {name}
        self._act_count += 1
        self._acts.pop(name, None)
        self._acts[name] = self._act_count, active

    def acts_since(self, number: int) -> tuple[int, list[tuple[str, bool]]]:
        """Return the number of the last act and what the program activated or deactivated since act `number`."""
        with self._lock:
            return self._act_count, [(name, active) for name, (n, active) in self._acts.items() if n > number]

    def is_same_active(self, skill: Skill) -> bool:
        """Return True if this skill, of this folder, is registered and active."""
        with self._lock:
            known = self._skills.get(skill.id)
            return skill.id in self._active and known is not None and known.directory_path == skill.directory_path

    def register_active(self, skill: Skill) -> None:
        """Register a skill that a conversation loaded, and mark it active; other conversations do not follow."""
        with self._lock:
            self._skills[skill.id] = skill
            self._active.add(skill.id)

    def deactivate(self, name: str) -> None:
        """Discard the instructions of a skill, and mark it inactive."""
        with self._lock:
            self._set_active(name, active=False)
            self.release(name)

    def release(self, name: str) -> None:
        """Mark a skill inactive that a conversation deactivated; other conversations do not follow."""
        with self._lock:
            self._active.discard(name)
            if name in self._skills:
                self._skills[name] = self._skills[name]._replace(instructions=None)

    def is_active(self, name: str) -> bool:
        """Return True if a skill is active."""
        with self._lock:
            return name in self._active

    @property
    def active_skill_names(self) -> list[str]:
        """The names of the active skills, sorted."""
        with self._lock:
            return sorted(self._active)

    def generate_available_skills_prompt(self) -> str:
        """Return the listing for a system prompt; empty if there is no skill."""
        skills = self._served(self.all_skills)
        return available_skills_with_location(
            (for_model(skill.id), for_model(skill.metadata.description), skill.skill_file_path) for skill in skills
        )

    def generate_active_skills_prompt(self, names: Container[str] | None = None) -> str:
        """Return the full instructions of the active skills, or of those among `names`."""
        with self._lock:
            active = [self._skills[name] for name in sorted(self._active) if names is None or name in names]
        return active_skills_prompt(self._served(active))

    def _served(self, skills: Sequence[Skill]) -> Sequence[Skill]:
        """Return those of these skills that the system policy lets a model have; raise if it lets none be served."""
        entries = _policy_entries(self) if skills else None
        if entries is None:
            return skills
        return [skill for skill in skills if _denial(entries.get(skill.skill_file_path)) is None]

    def _require_served(self, skill: Skill) -> None:
        """Raise PermissionDenied for a skill that the system policy keeps from models."""
        entries = _policy_entries(self)
        if entries is not None and (by := _denial(entries.get(skill.skill_file_path))):
            raise PermissionDenied(f"{skill.id} may not be used: the system policy denies it ({by})")


def _policy_entries(registry: SkillRegistry) -> Mapping[str, CatalogSkill] | None:
    """Return the skills of a registry by path as the system policy alone sees them; None where there is none."""
    if not load_system_policy(make_environment("/", None, {})).files:
        return None
    base = open_shelf(profile=LOADER_PROFILES["registry"].name, config={})
    shelf = RegistryBackedShelf(base, registry, discovers=False)
    require_served(shelf)
    return {skill.path: skill for skill in shelf.catalog.skills}


def _denial(entry: CatalogSkill | None) -> str | None:
    """Return who keeps a skill from models; None if they may have it, or if its author alone hides it."""
    return entry.hidden_by if entry is not None and entry.hidden in ("denied", "untrusted") else None


def active_skills_prompt(skills: Iterable[Skill]) -> str:
    """Return the full instructions of these skills for a system prompt."""
    return "\n\n".join(
        f'<active_skill name="{attribute(skill.id)}">\n'
        f"{escape_closing_tags(skill.instructions or '', 'active_skill')[0]}\n</active_skill>"
        for skill in skills
    )


@dataclass(frozen=True, slots=True)
class SkillResources:
    """The folders that a skill has besides its instructions."""

    has_scripts: bool
    has_references: bool
    has_assets: bool


@dataclass(frozen=True, slots=True)
class SkillToolOutput:
    """The result of activating a skill; `str()` is the text for a model."""

    skill_name: str
    instructions: str
    resources_available: SkillResources

    def __str__(self) -> str:
        has = self.resources_available
        return activated(self.skill_name, self.instructions, has.has_scripts, has.has_references, has.has_assets)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "skillName": self.skill_name,
            "instructions": self.instructions,
            "resourcesAvailable": {
                "hasScripts": self.resources_available.has_scripts,
                "hasReferences": self.resources_available.has_references,
                "hasAssets": self.resources_available.has_assets,
            },
        }


class SkillEnvelope(dict[str, Any]):
    """The response envelope of the tool of a project's loader; `str()` is the JSON text for a model."""

    def __str__(self) -> str:
        from json import dumps

        return dumps(self, ensure_ascii=False)


class SkillTool:
    """The tool for a model that activates a skill of a registry, or loads one of a project's loader.

    Over a registry it is called `activate_skill` and its result is a `SkillToolOutput`; over a `SkillLoader` it is
    called `Skill` and its result is the response envelope. Adapters take it like a shelf.
    """

    name: str = "activate_skill"
    description: str = (
        "Activate a skill to load its full instructions. "
        "Use this when a skill from <available_skills> is relevant to the current task."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"skillName": {"type": "string", "description": "The name of the skill to activate"}},
        "required": ["skillName"],
        "additionalProperties": False,
    }

    def __init__(self, source: SkillRegistry | SkillLoader) -> None:
        self._source = source
        self._shelf: Shelf | None = None
        self._session: Session | None = None
        if isinstance(source, SkillLoader):
            (tool,) = fixed_tools(LOADER_PROFILES["project"])
            self.name, self.description, self.parameters = tool

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments; the same as `parameters`."""
        return self.parameters

    @property
    def shelf(self) -> Shelf:
        """The shelf with the skills of this tool, which adapters use."""
        if self._shelf is None:
            if isinstance(self._source, SkillLoader):
                self._shelf = LoaderBackedShelf(self._source)
            else:
                base = open_shelf(profile=LOADER_PROFILES["registry"].name)
                self._shelf = RegistryBackedShelf(base, self._source, discovers=False)
        return self._shelf

    @property
    def session(self) -> Session:
        """One session on that shelf, for one conversation."""
        if self._session is None:
            self._session = self.shelf.session()
        return self._session

    def call(self, arguments: Mapping[str, Any] | str | None = None, /, **named: Any) -> Any:
        """Perform a call with the arguments that `parameters` describes: a mapping, keywords, or the name alone.

        Over a registry this raises what the registry raises; over a loader an error is in the envelope.
        """
        (key,) = self.parameters["required"]
        given = dict(arguments) if isinstance(arguments, Mapping) else {} if arguments is None else {key: arguments}
        given |= {"skillName" if name == "skill_name" else name: value for name, value in named.items()}
        if isinstance(self._source, SkillLoader):
            return SkillEnvelope(self.session.call(self.name, given).data)
        if set(given) != {key} or not isinstance(given[key], str):
            raise TypeError(f"{self.name} takes one argument, the text `{key}`, not {given!r}")
        skill = self._source.activate(given[key])
        has = SkillResources(skill.has_scripts, skill.has_references, skill.has_assets)
        return SkillToolOutput(skill.id, skill.instructions or "", has)

    def run(self, params: Mapping[str, Any]) -> Any:
        """Perform a call with a mapping of arguments."""
        return self.call(params)


class LoaderBackedShelf(Shelf):
    """A shelf whose catalog is that of a project's loader: refreshing one refreshes the other."""

    def __init__(self, loader: SkillLoader) -> None:
        base = open_shelf(loader.project_root, LOADER_PROFILES["project"].name, config={}, use_cache=False)
        super().__init__(base.environment, base.profile, base.settings, base.trust, use_cache=False)
        self._loader = loader

    @property
    def catalog(self) -> Catalog:
        """The catalog of the loader."""
        return self._loader.catalog

    def renew_policy(self) -> bool:
        """Follow the system policy if it changed since; then the loader scans again."""
        has_changed = super().renew_policy()
        if has_changed:
            self._loader.scan()
        return has_changed

    def refresh(self, *, sources_after: float = 0.0) -> bool:
        """Let the loader scan again; return True if anything changed."""
        return self._loader.refresh_if_stale()


class RegistryBackedShelf(Shelf):
    """A shelf whose catalog is the current content of a registry; with `discovers`, it follows the shelf below."""

    def __init__(
        self, base: Shelf, registry: SkillRegistry, *, discovers: bool, tools: Iterable[ToolName] = ()
    ) -> None:
        more = [tool for tool in tools if tool not in base.profile.tools]
        profile = base.profile._replace(tools=(*base.profile.tools, *more)) if more else base.profile
        super().__init__(base.environment, profile, base.settings, base.trust, use_cache=False, scorer=base.scorer)
        self.progress = base.progress
        # The search index is shared with the shelf below; the cache of files is not used here.
        self.cache = base.cache if discovers else None
        self._base = base
        self._registry = registry
        self._discovers = discovers
        self._registered: list[Skill] | None = None

    @property
    def catalog(self) -> Catalog:
        """The registered skills, with the catalog entries of those found on the shelf below."""
        registered = self._registry.all_skills
        if self._catalog is None or registered != self._registered:
            self._catalog = self.scan()
            self._registered = registered
        return self._catalog

    def scan(self, *, account: bool = False) -> Catalog:
        """Return the catalog of the registry; `account` has no effect here."""
        if self._discovers:
            below = self._base.catalog
        else:
            below = Catalog(self.profile.name, (), (), (), (), (), (), truncated=False)
        # Which roots are the user's own, whatever a policy trusts, the shelf below knows.
        asks_below = any(file.folders_below is not None for file in self.settings.system.files)
        found = {skill.path: skill for skill in (self._base.catalog if asks_below else below).skills}
        kept = tuple(
            found.get(skill.skill_file_path)
            or registered_skill(skill.metadata, skill.skill_file_path, self.profile, self.settings)
            for skill in self._registry.all_skills
        )
        by_name = {skill.name: skill.path for skill in kept}
        replaced = tuple(
            Shadowed(skill.name, skill.path, by_name[skill.name], same_file=False)
            for skill in below.skills
            if by_name.get(skill.name, skill.path) != skill.path
        )
        return below._replace(skills=kept, shadowed=(*below.shadowed, *replaced))

    def renew_policy(self) -> bool:
        """Follow the system policy if it changed since, as the shelf below does."""
        self._base.renew_policy()
        return super().renew_policy()

    def refresh(self, *, sources_after: float = 0.0) -> bool:
        """Update the registry from the shelf below; return True if the catalog has changed."""
        before = self.catalog
        if self._discovers:
            known = {skill.path for skill in self._base.catalog.skills}
            self._base.refresh(sources_after=sources_after)
            found = {skill.skill_file_path: skill for skill in skills_of(self._base)}
            # Only skills that came from the shelf below are removed; others were registered by the program.
            for skill in self._registry.all_skills:
                if skill.skill_file_path in known - set(found):
                    self._registry.unregister(skill.id)
            self._registry.register(skill for path, skill in found.items() if path not in known)
        self._registered = None
        return before != self.catalog


def skills_of(shelf: Shelf) -> list[Skill]:
    """Return the skills of a shelf for a registry, without instructions."""
    return [Skill(skill.metadata, None, skill.dir) for skill in shelf.catalog.skills]
