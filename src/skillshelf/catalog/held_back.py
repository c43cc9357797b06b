"""Count what models are not told: skills of an untrusted project, and what the project's own file takes away."""

from skillshelf.catalog.build_context import denial_of_load, is_listed
from skillshelf.config.permission_rules import denies_name
from skillshelf.config.settings import Settings, SettingsFile
from skillshelf.config.system_policy import is_kept_untrusted
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import hidden_skills_note, matches_folded_glob, matches_glob, plural, visible
from skillshelf.core.values import Catalog, CatalogSkill

__all__ = ["HeldBack", "held_back"]

_NAMED = 5
_TOOLS_BESIDES_LOADS = ("skill_search", "skill_read", "read", "skill_run")


class HeldBack(NamedTuple):
    """The skills of an untrusted project, and what the project's file took away, or would have if it were trusted."""

    untrusted: int
    folder: str
    file: SettingsFile | None = None
    taken: tuple[str, ...] = ()
    everything: bool = False
    narrows: tuple[str, ...] = ()
    from_above: tuple[str, ...] = ()
    """For each skill that the system policy lets nobody trust, the file and key that say so."""

    def for_user(self) -> str:
        """Return one line for a person, empty if nothing is held back: how much, by whom, and how to allow it."""
        parts = [hidden_skills_note(self.untrusted, visible(self.folder))] if self.untrusted else []
        if self.from_above:
            count = plural(len(self.from_above), "skill")
            parts.append(f"{count} hidden: the system policy trusts no folder here ({visible(self.from_above[0])})")
        if self.file is not None and self.file.problem:
            parts.append(f"{visible(self.file.path)} cannot be used, so no skill of this project can be loaded")
        if self.file is not None and (effects := self._effects(self._named())):
            parts.append(f"{visible(self.file.path)} {effects}")
        return "; ".join(parts)

    def for_model(self) -> list[str]:
        """Return sentences for a model about the project's file, without a name or path: a stranger chose those."""
        whose = "The configuration file of this project"
        sentences = []
        if self.file is not None and self.file.problem:
            sentences.append(f"{whose} cannot be used, so none of its skills can be loaded.")
        if effects := self._effects(""):
            sentences.append(f"{whose} {effects}.")
        return sentences

    def _named(self) -> str:
        names = ", ".join(visible(name) for name in self.taken[:_NAMED])
        return f" ({names}{f' and {len(self.taken) - _NAMED} more' if len(self.taken) > _NAMED else ''})"

    def _effects(self, named: str) -> str:
        """Return what the file does, or would do if it were trusted; empty if that is nothing."""
        would = self.file is not None and self.file.owner == "untrusted"
        effects = []
        if self.everything:
            effects.append(f"{'would turn' if would else 'turns'} all skills off")
        if self.taken:
            skills = plural(len(self.taken), "skill")
            effects.append(f"would hide {skills} of yours{named}" if would else f"hides {skills}{named}")
        if self.narrows:
            keys = ", ".join(f"`{key}`" for key in self.narrows)
            effects.append(f"{'would narrow' if would else 'narrows'} what models see by {keys}")
        return " and ".join(effects) + (" if the folder were trusted" if would and effects else "")


def held_back(catalog: Catalog, settings: Settings, folder: str) -> HeldBack:
    """Return what is held back from models in a catalog of these settings; `folder` is the one to trust."""
    # To trust the folder changes nothing for skills of live sources.
    untrusted = [skill for skill in catalog.skills if skill.hidden == "untrusted" and skill.scope != "remote"]
    hidden = [skill.hidden_by for skill in untrusted]
    above = tuple(by for by in hidden if by is not None and is_kept_untrusted(by))
    return _held_back(catalog, settings, folder, len(hidden) - len(above))._replace(from_above=above)


def _held_back(catalog: Catalog, settings: Settings, folder: str, untrusted: int) -> HeldBack:
    file = settings.project_file
    if file is None:
        return HeldBack(untrusted, folder)
    # Another choice of the profile, such as one on the command line, may have made the file's one idle.
    idle = (file.profile == catalog.profile) == (file.owner == "untrusted")
    unused = {"profile"} if idle else set()
    narrows = tuple(
        key
        for key in (*file.narrows, *(["permissions.deny"] if _denies_more_than_loads(file, catalog) else []))
        if key not in unused and (not key.startswith("profiles.") or key == f"profiles.{catalog.profile}")
    )
    if file.owner == "project":
        everything = not settings.enabled and settings.switched_off_by == file.path
        return HeldBack(untrusted, folder, file, _taken_by(file, catalog), everything, narrows)
    everything = settings.enabled and not file.enabled
    told = [skill for skill in catalog.skills if skill.hidden is None]
    taken = tuple(skill.name for skill in told if everything or _would_take(file, skill))
    return HeldBack(untrusted, folder, file, taken, everything, narrows)


def _denies_more_than_loads(file: SettingsFile, catalog: Catalog) -> bool:
    """Return whether the file denies searches, reads or scripts: of all skills, or of one that models are told of."""
    rules = [rule for rule in file.deny if rule.tool in _TOOLS_BESIDES_LOADS]
    told = [skill.name for skill in catalog.skills if skill.hidden is None]
    return any(rule.skill_name is None or any(denies_name(rule.skill_name, name) for name in told) for rule in rules)


def _taken_by(file: SettingsFile, catalog: Catalog) -> tuple[str, ...]:
    """Return the skills that the file of a trusted project hides or leaves out."""
    said = f"{file.path}: "
    hidden = [skill.name for skill in catalog.skills if skill.hidden_by and skill.hidden_by.startswith(said)]
    return (*hidden, *(entry.name for entry in catalog.filtered if entry.by and entry.by.startswith(said)))


def _would_take(file: SettingsFile, skill: CatalogSkill) -> bool:
    """Return whether the file of an untrusted project would take a skill away if the folder were trusted."""
    return (
        is_listed(file.disabled, skill.name, skill.path, skill.real_path)
        or any(matches_folded_glob(skill.name, pattern) for pattern in file.ignored)
        or (bool(file.include) and not any(matches_glob(skill.name, pattern) for pattern in file.include))
        or bool(denial_of_load(file.deny, skill.name, skill.path, skill.real_path, skill.real_dir))
    )
