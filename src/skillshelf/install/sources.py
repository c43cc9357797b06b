"""Open the source that a reference means: one class for each kind, imported when it is needed."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from skillshelf.errors import SourceUnreachable

if TYPE_CHECKING:
    from skillshelf.catalog.source import InstallableSource
    from skillshelf.install.reference import SourceContext, SourceReference

__all__ = ["is_local", "open_source"]

_CLASSES: Mapping[str, tuple[str, str]] = {
    "folder": ("folder", "FolderSource"),
    "archive": ("archive", "ArchiveSource"),
    "git": ("git", "GitSource"),
    "plugin": ("plugins", "MarketplaceSource"),
    "site": ("well_known", "SiteSource"),
    "oci": ("oci", "RegistrySource"),
    "mcp": ("mcp_source", "McpSource"),
}
"""The module and the class of each kind. Git, HTTP and MCP are not imported for a folder."""

_LOCAL = frozenset({"folder", "archive"})


def is_local(reference: "SourceReference") -> bool:
    """Return whether a source is read from this disk alone."""
    return reference.kind in _LOCAL


def open_source(reference: "SourceReference", context: "SourceContext") -> "InstallableSource":
    """Return the source of a reference; nothing is fetched before it is asked for something."""
    if context.offline and not is_local(reference):
        raise SourceUnreachable(f"{reference.canonical} needs the network, and --offline forbids it")
    module, name = _CLASSES[reference.kind]
    source: InstallableSource = getattr(import_module(f"skillshelf.install.{module}"), name)(reference, context)
    return source
