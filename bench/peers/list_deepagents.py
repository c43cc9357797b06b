"""deepagents: the hook with which its middleware loads skills before an agent runs."""

from collections.abc import Sized

from clock import report
from deepagents.backends import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware


def listing(root: str) -> Sized:
    """The metadata of each skill; the root is the backend's `/`."""
    middleware = SkillsMiddleware(backend=FilesystemBackend(root_dir=root, virtual_mode=True), sources=["/"])
    return middleware.before_agent({}, None, {})["skills_metadata"]


report(listing)
