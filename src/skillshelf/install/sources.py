"""Open the source that a reference means, choose skills of it, and fetch them whole and checked."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from skillshelf.catalog.lock import LockedSkill
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import tree_digest
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, visible
from skillshelf.errors import ConfigurationError, SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.reference import parse_reference

if TYPE_CHECKING:
    from skillshelf.catalog.source import InstallableSource, SourceEntry, SourceIdentity
    from skillshelf.core.environment import Environment
    from skillshelf.install.reference import SourceContext, SourceReference
    from skillshelf.install.scope import InstallScope
    from skillshelf.install.wishes import Wish

__all__ = [
    "FetchedSkill",
    "SourceReader",
    "SourceSkill",
    "fetch_skill",
    "is_local",
    "listed_entries",
    "locked_reference",
    "named_entries",
    "open_source",
    "pinned_reference",
    "scoped_reference",
    "with_named",
]

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
_SHOWN = 12


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


# References ---------------------------------------------------------------------------------------


def scoped_reference(
    text: str,
    environment: "Environment",
    scope: "InstallScope",
    *,
    path: str | None = None,
    ref: str | None = None,
    base: str | None = None,
) -> "SourceReference":
    """Return what a text means in a scope: folders of a project are relative to it; a relative text starts at `base`.

    The base is the root of the scope for what a lock or a wish says, and the working directory for what is typed.
    """
    root = scope.root if scope.kind == "project" else None
    return parse_reference(text, environment, path=path or None, ref=ref, base=base, root=root)


def locked_reference(
    skill: "LockedSkill | Wish", environment: "Environment", scope: "InstallScope"
) -> "SourceReference":
    """Return the reference of an entry of a lock, which follows its ref to the newest version, or of a wish."""
    try:
        return scoped_reference(skill.source, environment, scope, path=skill.path, ref=skill.ref, base=scope.root)
    except (ConfigurationError, SourceRefused) as error:
        # Nobody typed it, so the message says where it stands.
        where = scope.lock_path if isinstance(skill, LockedSkill) else scope.wishes_path
        if isinstance(error, SourceRefused):
            raise SourceRefused(error.rule, f"{where}: {error.reason}") from None
        raise ConfigurationError(f"{where}: {error}") from None


def pinned_reference(skill: LockedSkill, reference: "SourceReference") -> "SourceReference":
    """Return a reference to exactly the version that a lock names, where the kind of the source has versions."""
    if reference.kind == "git" and skill.commit is not None:
        return reference._replace(ref=skill.commit)
    if reference.kind == "oci" and skill.artifact is not None:
        return reference._replace(ref=skill.artifact)
    return reference


# Skills of a source -------------------------------------------------------------------------------


class SourceSkill(NamedTuple):
    """A skill that an open source offers."""

    source: "InstallableSource"
    entry: "SourceEntry"


class FetchedSkill(NamedTuple):
    """All files of a skill with the version that they are of; nobody agreed to them yet."""

    name: str
    identity: "SourceIdentity"
    contents: Mapping[str, bytes]
    tree: str
    notes: tuple[str, ...]


def listed_entries(source: "InstallableSource", reference: "SourceReference") -> "list[SourceEntry]":
    """Return the skills that a source offers, sorted by name; raise SourceNotFound if it has none."""
    entries = sorted(source.list(), key=lambda entry: (entry.name, entry.path))
    if reference.name is not None and reference.kind == "mcp":
        entries = named_entries(entries, [reference.name], reference.canonical)
    if not entries:
        where = f" below {visible(reference.path)}" if reference.path else ""
        raise SourceNotFound(f"{visible(reference.canonical)} has no skill{where}")
    return entries


def named_entries(entries: "Sequence[SourceEntry]", names: Sequence[str], source: str) -> "list[SourceEntry]":
    """Return the entries of these names; raise SourceNotFound for a name that none has."""
    found = []
    for name in dict.fromkeys(names):
        meant = [entry for entry in entries if entry.name == name]
        if not meant:
            known = [entry.name for entry in entries]
            shown = ", ".join(visible(one) for one in known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
            hint = did_you_mean(name, known) or f" (it has {shown})"
            raise SourceNotFound(f"{visible(source)} has no skill {visible(name)!r}{hint}")
        if len(meant) > 1:
            paths = ", ".join(visible(entry.path) for entry in meant[:_SHOWN])
            raise ConfigurationError(
                f"{visible(source)} has {len(meant)} skills named {visible(name)}; name one by --path: {paths}"
            )
        found += meant
    return found


def with_named(
    source: "InstallableSource", entries: "Sequence[SourceEntry]", names: Sequence[str]
) -> "Sequence[SourceEntry]":
    """Return the entries with those of names that a source has but did not list, since it has too many."""
    find_named = getattr(source, "find_named", None)
    missing = [name for name in dict.fromkeys(names) if name not in {entry.name for entry in entries}]
    return [*entries, *find_named(missing)] if missing and find_named is not None else entries


def fetch_skill(skill: SourceSkill, context: "SourceContext") -> FetchedSkill:
    """Fetch all files of a skill; raise SourceRefused if the source promised others."""
    entry = skill.entry
    contents = dict(skill.source.fetch(entry, (), context.limits))
    tree = tree_digest(listed_files(contents))
    if entry.tree is not None and entry.tree != tree:
        raise SourceRefused("tree-differs", f"{entry.name}: the source promised {entry.tree} and sent {tree}")
    return FetchedSkill(entry.name, skill.source.identity(entry), contents, tree, tuple(skill.source.notes))


class SourceReader:
    """Open each source once, however many skills of it are asked for."""

    def __init__(self, context: "SourceContext", *, shared: Sequence["SourceReference"] = ()) -> None:
        self._context = context
        self._open: dict[SourceReference, tuple[InstallableSource, list[SourceEntry]]] = {}
        whole = [reference._replace(path="") for reference in shared]
        self._shared = {reference for reference in whole if whole.count(reference) > 1}

    def find(self, name: str, reference: "SourceReference") -> SourceSkill:
        """Return the skill of a name that a reference leads to now; raise SourceNotFound if it is there no more."""
        whole = reference._replace(path="")
        if whole in self._shared:
            source, entries = self._listed(whole)
            inside = [entry for entry in entries if entry.name == name and entry.path == reference.path]
            if len(inside) == 1:
                return SourceSkill(source, inside[0])
        source, entries = self._listed(reference)
        entries = [*with_named(source, entries, [name])]
        at_path = [entry for entry in entries if entry.name == name and entry.path == reference.path]
        return SourceSkill(source, (at_path or named_entries(entries, [name], reference.canonical))[0])

    def names(self, reference: "SourceReference") -> list[str]:
        """Return the names of all skills that a reference leads to."""
        return [entry.name for entry in self._listed(reference)[1]]

    def fetch(self, name: str, reference: "SourceReference") -> FetchedSkill:
        """Return all files of the skill that `find` returns."""
        return fetch_skill(self.find(name, reference), self._context)

    def fetch_locked(self, name: str, reference: "SourceReference", skill: LockedSkill) -> FetchedSkill:
        """Return all files of the version that a lock names if the source still has it, else what `fetch` returns."""
        if reference.kind != "site" or skill.artifact is None:
            return self.fetch(name, reference)
        try:
            found = self.find(name, reference)
        except SourceNotFound:
            if (former := self._former(name, reference, skill)) is not None:
                return former
            raise
        is_current = found.source.identity(found.entry).artifact == skill.artifact
        former = None if is_current else self._former(name, reference, skill)
        return former or fetch_skill(found, self._context)

    def _former(self, name: str, reference: "SourceReference", skill: LockedSkill) -> FetchedSkill | None:
        """Return the version of a lock from a site that lists another one of that name, or none; None if it is gone."""
        from skillshelf.catalog.source import SourceIdentity
        from skillshelf.install.well_known import SiteSource

        source = SiteSource(reference, self._context)
        contents = source.fetch_former(name, skill.artifact or "", self._context.limits)
        if contents is None or (tree := tree_digest(listed_files(contents))) != skill.tree:
            return None
        identity = SourceIdentity(reference.canonical, name, None, None, skill.artifact, source.label)
        return FetchedSkill(name, identity, contents, tree, ())

    def newer(self, name: str, reference: "SourceReference", skill: LockedSkill) -> FetchedSkill | None:
        """Return the skill that a reference leads to now, or None if its bytes are those of the lock."""
        found = self.find(name, reference)
        if found.entry.tree == skill.tree:
            return None
        one = fetch_skill(found, self._context)
        return one if one.tree != skill.tree else None

    def _listed(self, reference: "SourceReference") -> "tuple[InstallableSource, list[SourceEntry]]":
        if reference not in self._open:
            source = open_source(reference, self._context)
            self._open[reference] = (source, listed_entries(source, reference))
        return self._open[reference]
