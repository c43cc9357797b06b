"""Say what the rules of `check` find in the skills that a team server serves, each by itself."""

import threading

from skillshelf.catalog.load import SKILL_FILE
from skillshelf.config.profile import Profile
from skillshelf.core.limits import SKILL_FINDINGS_KEPT
from skillshelf.core.values import CatalogSkill
from skillshelf.lint.run import CheckFinding, Target, file_problems

__all__ = ["SkillFindings"]


class SkillFindings:
    """The errors and warnings of skills; those of the last releases that were checked are kept."""

    def __init__(self) -> None:
        self._checking = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[CheckFinding, ...]] = {}

    def of(self, skill: CatalogSkill, profile: Profile) -> tuple[CheckFinding, ...]:
        """Return the findings in a skill whose files are on this machine; their paths start at its folder."""
        if skill.tree is None:
            # On the disk of the server, where it may change at any time.
            return _findings(skill, profile)
        key = skill.name, skill.tree
        found = self._kept.get(key)
        return found if found is not None else self._checked(key, skill, profile)

    def _checked(self, key: tuple[str, str], skill: CatalogSkill, profile: Profile) -> tuple[CheckFinding, ...]:
        # One at a time: those of a large release take seconds. Nobody waits for what is known.
        with self._checking:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = _findings(skill, profile)
                while len(self._kept) > SKILL_FINDINGS_KEPT:
                    del self._kept[next(iter(self._kept))]
            return found


def _findings(skill: CatalogSkill, profile: Profile) -> tuple[CheckFinding, ...]:
    path = f"{skill.real_dir}/{SKILL_FILE}"
    (found,) = file_problems([Target(path, path, skill.name)], profile)
    return tuple(one._replace(path=one.path.removeprefix(f"{skill.real_dir}/")) for one in found)
