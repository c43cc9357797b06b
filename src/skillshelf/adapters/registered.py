"""A registry to a shelf: the same engine, on the skills that a program registered."""

from skillshelf.adapters.loaders import Skill
from skillshelf.adapters.registry import SkillRegistry
from skillshelf.catalog.build import vouched_for
from skillshelf.core.values import Catalog, CatalogSkill, Shadowed
from skillshelf.shelf import Shelf

__all__ = ["RegisteredShelf", "found_on"]


class RegisteredShelf(Shelf):
    """A shelf whose catalog is what a registry holds at the moment.

    It is a Shelf because sessions ask for one; only where its skills come from is different.
    """

    def __init__(self, base: Shelf, registry: SkillRegistry, *, discovers: bool) -> None:
        super().__init__(base.place, base.profile, base.settings, base.trust, use_cache=False, scorer=base.scorer)
        self.progress = base.progress
        # The index for searches is brought up to date, not made anew; entries of files are the base's own business.
        self.cache = base.cache if discovers else None
        self._base = base
        self._registry = registry
        self._discovers = discovers
        self._registered: list[Skill] | None = None

    @property
    def catalog(self) -> Catalog:
        """The registered skills, with what is known of those that were found on the shelf below."""
        registered = self._registry.all_skills
        if self._catalog is None or registered != self._registered:
            self._catalog = self.scan()
            self._registered = registered
        return self._catalog

    def scan(self, *, account: bool = False) -> Catalog:
        """The catalog of the registry; `account` means nothing here."""
        below = self._below()
        found = {skill.path: skill for skill in below.skills}
        registered = self._registry.all_skills
        kept = tuple(found.get(skill.skill_file_path) or self._vouched_for(skill) for skill in registered)
        by_name = {skill.name: skill.path for skill in kept}
        replaced = tuple(
            Shadowed(skill.name, skill.path, by_name[skill.name], same_file=False)
            for skill in below.skills
            if by_name.get(skill.name, skill.path) != skill.path
        )
        return below._replace(skills=kept, shadowed=(*below.shadowed, *replaced))

    def refresh(self) -> bool:
        """Look at the registry again, and bring it up to date with the shelf below."""
        before = self.catalog
        if self._discovers:
            self._follow_base()
        self._registered = None
        return before != self.catalog

    def _follow_base(self) -> None:
        """Register what is new below, and take out what is gone: nobody vouched for that but the shelf."""
        known = {skill.path for skill in self._base.catalog.skills}
        self._base.refresh()
        found = {skill.skill_file_path: skill for skill in found_on(self._base)}
        for skill in self._registry.all_skills:
            if skill.skill_file_path in known - set(found):
                self._registry.unregister(skill.id)
        self._registry.register(skill for path, skill in found.items() if path not in known)

    def _vouched_for(self, skill: Skill) -> CatalogSkill:
        return vouched_for(skill.metadata, skill.skill_file_path, self.profile, self.settings)

    def _below(self) -> Catalog:
        if self._discovers:
            return self._base.catalog
        return Catalog(self.profile.name, (), (), (), (), (), (), truncated=False)


def found_on(shelf: Shelf) -> list[Skill]:
    """The skills of a shelf as a registry keeps them, without instructions."""
    return [Skill(skill.metadata, None, skill.dir) for skill in shelf.catalog.skills]
