"""Find the Agent Skills on a machine and explain each one that is missing.

Importing this package loads nothing else: each public name is imported when it is first used.
"""

import sys

# Not from `typing`: `python -m skillshelf` runs this before the working directory is taken off the import path.
TYPE_CHECKING = False

if sys.platform == "win32":
    raise ImportError("skillshelf does not support Windows; install and run it inside WSL")

__version__ = "0.2.0"

_MODULES = {
    "skillshelf.shelf": ("Shelf", "open_shelf", "replay"),
    "skillshelf.adapters.agent": ("AgentConfiguration", "AgentSession"),
    "skillshelf.session.render": ("agents_context", "find_agents_md"),
    "skillshelf.journal.events": ("Event",),
    "skillshelf.session.policy": ("Decision", "Policy"),
    "skillshelf.session.conversation": ("Proposal",),
    "skillshelf.session.replay": ("Difference", "Replay"),
    "skillshelf.journal.state": ("SessionState",),
    "skillshelf.adapters.registry": ("SkillRegistry", "SkillTool", "SkillToolOutput"),
    "skillshelf.catalog.load": ("LoadedSkill", "Resource"),
    "skillshelf.catalog.source": ("ExecutableFile", "Source", "SourceEntry", "SourceLimits"),
    "skillshelf.install.live_sources": ("live_source",),
    "skillshelf.install.memory": ("MemorySource",),
    "skillshelf.search.embeddings": ("Embedder", "EmbeddingEndpoint", "EmbeddingScorer"),
    "skillshelf.search.query": ("Scorer", "SearchReport", "SearchResult"),
    "skillshelf.session.tool_calls": ("Mentions",),
    "skillshelf.session.session": ("Session",),
    "skillshelf.session.tools": ("Tool", "ToolError", "ToolResult"),
    "skillshelf.core.values": ("Catalog", "CatalogSkill", "Diagnostic", "Filtered", "Shadowed", "SkillMetadata"),
    "skillshelf.config.profile": ("Profile", "RootRule"),
    "skillshelf.adapters.loaders": (
        "Skill",
        "SkillDiscovery",
        "SkillLoader",
        "SkillMeta",
        "discover_skills",
        "discover_skills_from_dir",
    ),
    "skillshelf.errors": (
        "AmbiguousSkill",
        "ConfigurationError",
        "FileReadError",
        "InvalidFormat",
        "LimitExceeded",
        "PathEscape",
        "PermissionDenied",
        "ResourceNotFound",
        "ScriptNotRunnable",
        "SkillAlreadyExists",
        "SkillChanged",
        "SkillDirectoryNotFound",
        "SkillError",
        "SkillFileNotFound",
        "SkillNotFound",
        "SkillsDisabled",
        "SourceNotFound",
        "SourceRefused",
        "SourceUnreachable",
        "ValidationFailed",
        "YamlParsingError",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]

if TYPE_CHECKING:
    from typing import Any

    from skillshelf.adapters.agent import AgentConfiguration as AgentConfiguration
    from skillshelf.adapters.agent import AgentSession as AgentSession
    from skillshelf.adapters.loaders import *  # noqa: F403  # its __all__ is the names of the seeds
    from skillshelf.adapters.registry import *  # noqa: F403
    from skillshelf.catalog.load import LoadedSkill as LoadedSkill
    from skillshelf.catalog.load import Resource as Resource
    from skillshelf.catalog.source import ExecutableFile as ExecutableFile
    from skillshelf.catalog.source import Source as Source
    from skillshelf.catalog.source import SourceEntry as SourceEntry
    from skillshelf.catalog.source import SourceLimits as SourceLimits
    from skillshelf.config.profile import Profile as Profile
    from skillshelf.config.profile import RootRule as RootRule
    from skillshelf.core.values import Catalog as Catalog
    from skillshelf.core.values import CatalogSkill as CatalogSkill
    from skillshelf.core.values import Diagnostic as Diagnostic
    from skillshelf.core.values import Filtered as Filtered
    from skillshelf.core.values import Shadowed as Shadowed
    from skillshelf.core.values import SkillMetadata as SkillMetadata
    from skillshelf.errors import *  # noqa: F403  # its __all__ is the tree of errors
    from skillshelf.install.live_sources import live_source as live_source
    from skillshelf.install.memory import MemorySource as MemorySource
    from skillshelf.journal.events import Event as Event
    from skillshelf.journal.state import SessionState as SessionState
    from skillshelf.search.embeddings import Embedder as Embedder
    from skillshelf.search.embeddings import EmbeddingEndpoint as EmbeddingEndpoint
    from skillshelf.search.embeddings import EmbeddingScorer as EmbeddingScorer
    from skillshelf.search.query import Scorer as Scorer
    from skillshelf.search.query import SearchReport as SearchReport
    from skillshelf.search.query import SearchResult as SearchResult
    from skillshelf.session.conversation import Proposal as Proposal
    from skillshelf.session.policy import Decision as Decision
    from skillshelf.session.policy import Policy as Policy
    from skillshelf.session.render import *  # noqa: F403
    from skillshelf.session.replay import Difference as Difference
    from skillshelf.session.replay import Replay as Replay
    from skillshelf.session.session import Session as Session
    from skillshelf.session.tool_calls import Mentions as Mentions
    from skillshelf.session.tools import Tool as Tool
    from skillshelf.session.tools import ToolError as ToolError
    from skillshelf.session.tools import ToolResult as ToolResult
    from skillshelf.shelf import Shelf as Shelf
    from skillshelf.shelf import open_shelf as open_shelf
    from skillshelf.shelf import replay as replay


def __getattr__(name: str) -> "Any":
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'skillshelf' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
