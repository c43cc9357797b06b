"""agent-framework-core: its source of skills from files."""

import asyncio
from collections.abc import Sized

from agent_framework import FileSkillsSource, SkillsSourceContext
from clock import report


def listing(root: str) -> Sized:
    """The skills below the folder, with the files beside them."""
    return asyncio.run(FileSkillsSource(root).get_skills(SkillsSourceContext(agent=None)))


report(listing)
