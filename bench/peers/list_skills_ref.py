"""skills-ref reads one skill a call and finds none itself, so the folder is listed here."""

from pathlib import Path

from clock import report
from skills_ref.errors import SkillError
from skills_ref.models import SkillProperties
from skills_ref.parser import read_properties


def listing(root: str) -> list[SkillProperties]:
    """The properties of each skill it can read."""
    skills = []
    for folder in sorted(Path(root).iterdir()):
        try:
            skills.append(read_properties(folder))
        except SkillError:
            continue
    return skills


report(listing)
