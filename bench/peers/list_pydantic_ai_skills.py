"""pydantic-ai-skills: its capability as a run resolves it, which is when it reads the skills."""

import asyncio

from clock import report
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_skills import SkillsCapability


def listing(root: str) -> list[str]:
    """The names of the skills a run would offer."""
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    return asyncio.run(SkillsCapability(root).for_run(context)).skill_names


report(listing)
