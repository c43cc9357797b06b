"""agentskills-fs: skills registered one by one, because `register_all` gives none if one of them fails.

It takes the standard's `allowed-tools`, a text, for an error and drops those skills.
"""

import asyncio
from collections.abc import Sized
from pathlib import Path

from agentskills_core import SkillRegistry
from agentskills_fs import LocalFileSystemSkillProvider
from clock import report


async def register(root: str) -> Sized:
    """The skills that pass its validation."""
    provider, registry = LocalFileSystemSkillProvider(Path(root)), SkillRegistry()
    for skill in await provider.discover():
        try:
            await registry.register(skill, provider)
        except ValueError:
            continue
    return registry.list_skills()


report(lambda root: asyncio.run(register(root)))
