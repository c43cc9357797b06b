"""Write `skillshelf.lock`: sorted, without times, one object a skill, so that git can merge it."""

import json
from collections.abc import Mapping

from skillshelf.catalog.lock import LOCK_VERSION, LockedSkill, parse_lock
from skillshelf.core.limits import LOCK_BYTES
from skillshelf.errors import SkillError

__all__ = ["encode_lock"]


def encode_lock(skills: Mapping[str, LockedSkill], path: str) -> bytes:
    """Return the bytes of a lock; raise a SkillError if no lock may say that. `path` is named in errors."""
    entries = {name: {**skill._asdict(), "hosts": sorted(skill.hosts)} for name, skill in skills.items()}
    text = json.dumps({"lock": LOCK_VERSION, "skills": entries}, indent=2, sort_keys=True, ensure_ascii=False)
    data = f"{text}\n".encode("utf-8", "surrogatepass")
    if len(data) > LOCK_BYTES:
        raise SkillError(f"{path} would have more than {LOCK_BYTES} bytes (LOCK_BYTES)")
    # What is written is read by the same rules, so no command writes a lock that the next one refuses.
    parse_lock(data, path)
    return data
