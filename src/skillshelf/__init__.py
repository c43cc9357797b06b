"""skillshelf finds the Agent Skills on a machine and explains each one that is missing.

Importing it does nothing: every name below is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "skillshelf.shelf": ("Shelf", "open_shelf"),
    "skillshelf.agent": ("AgentConfiguration", "AgentSession"),
    "skillshelf.agentsmd": ("agents_context", "find_agents_md"),
    "skillshelf.loader": ("LoadedSkill",),
    "skillshelf.events": ("Event",),
    "skillshelf.policy": ("Decision", "Policy"),
    "skillshelf.proposals": ("Proposal",),
    "skillshelf.replaying": ("Difference", "Replay", "replay"),
    "skillshelf.state": ("SessionState",),
    "skillshelf.registry": ("SkillRegistry", "SkillTool", "SkillToolOutput"),
    "skillshelf.resources": ("Resource",),
    "skillshelf.search": ("Scorer", "SearchReport", "SearchResult"),
    "skillshelf.mentioning": ("Mentions",),
    "skillshelf.session": ("Session",),
    "skillshelf.tools": ("Tool", "ToolError", "ToolResult"),
    "skillshelf.values": ("Catalog", "CatalogSkill", "Diagnostic", "Filtered", "Shadowed", "SkillMetadata"),
    "skillshelf.profile": ("Profile", "RootRule"),
    "skillshelf.seeds": (
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
        "SkillDirectoryNotFound",
        "SkillError",
        "SkillFileNotFound",
        "SkillNotFound",
        "SkillsDisabled",
        "ValidationFailed",
        "YamlParsingError",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]

if TYPE_CHECKING:
    from skillshelf.agent import AgentConfiguration as AgentConfiguration
    from skillshelf.agent import AgentSession as AgentSession
    from skillshelf.agentsmd import *  # noqa: F403
    from skillshelf.errors import *  # noqa: F403  # its __all__ is the tree of errors
    from skillshelf.events import Event as Event
    from skillshelf.loader import LoadedSkill as LoadedSkill
    from skillshelf.mentioning import Mentions as Mentions
    from skillshelf.policy import Decision as Decision
    from skillshelf.policy import Policy as Policy
    from skillshelf.profile import Profile as Profile
    from skillshelf.profile import RootRule as RootRule
    from skillshelf.proposals import Proposal as Proposal
    from skillshelf.registry import *  # noqa: F403
    from skillshelf.replaying import Difference as Difference
    from skillshelf.replaying import Replay as Replay
    from skillshelf.replaying import replay as replay
    from skillshelf.resources import Resource as Resource
    from skillshelf.search import Scorer as Scorer
    from skillshelf.search import SearchReport as SearchReport
    from skillshelf.search import SearchResult as SearchResult
    from skillshelf.seeds import *  # noqa: F403  # its __all__ is the names of the seeds
    from skillshelf.session import Session as Session
    from skillshelf.shelf import Shelf as Shelf
    from skillshelf.shelf import open_shelf as open_shelf
    from skillshelf.state import SessionState as SessionState
    from skillshelf.tools import Tool as Tool
    from skillshelf.tools import ToolError as ToolError
    from skillshelf.tools import ToolResult as ToolResult
    from skillshelf.values import Catalog as Catalog
    from skillshelf.values import CatalogSkill as CatalogSkill
    from skillshelf.values import Diagnostic as Diagnostic
    from skillshelf.values import Filtered as Filtered
    from skillshelf.values import Shadowed as Shadowed
    from skillshelf.values import SkillMetadata as SkillMetadata


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'skillshelf' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
