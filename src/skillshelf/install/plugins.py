"""Read the skills of a plugin that a marketplace lists; whatever else the plugin has is left out, and said.

A marketplace is a folder or a repository. Its file names the place of each plugin: a folder in the marketplace, or
another repository. That file is a stranger's: it cannot name a path of this machine or an address inside a network.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from skillshelf.catalog.source import SourceEntry, SourceIdentity, SourceLimits
from skillshelf.config.hosts import MARKETPLACE_FILES, PLUGIN_FILES, PLUGIN_KEYS, PLUGIN_PATHS
from skillshelf.core.limits import CONFIG_BYTES, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, visible
from skillshelf.errors import ConfigurationError, SourceNotFound, SourceRefused
from skillshelf.install.folder import FolderSource
from skillshelf.install.git import GitSource
from skillshelf.install.reference import SourceContext, SourceReference, check_path, is_loopback, parse_reference
from skillshelf.install.skill_entries import SKILL_FILE, entry_of, files_below, skill_folders

__all__ = ["MarketplaceSource"]

_SHA = re.compile(r"[0-9a-f]{40}\Z")
_SKILLS = "skills"


class _Plugin(NamedTuple):
    """A plugin where it is: the source that has its files, its folder there, and what its files say of it."""

    source: FolderSource | GitSource
    folder: str
    said: tuple[Mapping[str, Any], ...]
    files: Mapping[str, str]


class MarketplaceSource:
    """The skills of one plugin of a marketplace."""

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self.label = reference.canonical
        self.notes: list[str] = []
        self._reference = reference
        self._context = context
        self._found: _Plugin | None = None

    def list(self) -> Iterable[SourceEntry]:
        """Return the skills of the plugin; `path` is that in the folder of the plugin."""
        plugin = self._plugin()
        entries = []
        for folder in self._skill_folders(plugin):
            path = "/".join(filter(None, (plugin.folder, folder, SKILL_FILE)))
            data = plugin.source.read(path, SKILL_FILE_BYTES)
            if data is None:
                raise SourceRefused("link", f"{visible(path)!r} of the plugin is not a regular file of a usual size")
            entries.append(entry_of(folder, data, self._reference.name or ""))
        self.notes = _left_out(plugin)
        return entries

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of a skill of the plugin."""
        plugin = self._plugin()
        found = plugin.source.fetch(_at(entry, plugin), paths, limits)
        self.notes = [*_left_out(plugin), *plugin.source.notes]
        return found

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return the plugin of the marketplace, with the commit of the repository that has it."""
        plugin = self._plugin()
        known = plugin.source.identity(_at(entry, plugin))
        return known._replace(source=self.label, path=entry.path, ref=self._reference.ref)

    def _skill_folders(self, plugin: _Plugin) -> Sequence[str]:
        """Return the folders of the skills that the plugin names, else of those in its folder `skills`."""
        named = [one for said in plugin.said for one in _texts(said.get(_SKILLS))]
        places = [check_path(one) for one in named] or [_SKILLS]
        found: dict[str, None] = {}
        for place in places:
            inside = files_below(plugin.files, place)
            found |= dict.fromkeys(f"{place}/{folder}".strip("/") for folder in skill_folders(inside))
        if not found and not named and SKILL_FILE in plugin.files:
            found[""] = None
        wanted = self._reference.path
        chosen = [folder for folder in found if f"{folder}/".startswith(f"{wanted}/" if wanted else "")]
        if not chosen:
            raise SourceNotFound(f"{visible(self.label)}: the plugin has no skill{' there' if wanted else ''}")
        if len(chosen) > self._context.limits.entries:
            raise SourceRefused("too-many-skills", f"the plugin has {len(chosen)} skills")
        return sorted(chosen)

    def _plugin(self) -> _Plugin:
        if self._found is None:
            market = parse_reference(self._reference.location, self._context.environment, ref=self._reference.ref)
            source = _opened(market, self._context)
            entry, root = self._listed(source)
            self._found = self._located(source, market, entry, root)
        return self._found

    def _listed(self, market: FolderSource | GitSource) -> tuple[Mapping[str, Any], str]:
        """Return what the marketplace says of the plugin, and the folder in which its plugins are."""
        read = [found for path in MARKETPLACE_FILES if (found := _document(market, path)) is not None]
        if not read:
            raise SourceNotFound(
                f"{visible(self.label)}: not a marketplace: it has no {' and no '.join(MARKETPLACE_FILES)}"
            )
        known: list[str] = []
        for document in read:
            offered = document.get("plugins")
            rows = [one for one in offered if isinstance(one, dict)] if isinstance(offered, list) else []
            fitting = [one for one in rows if one.get("name") == self._reference.name]
            if len(fitting) > 1:
                raise SourceRefused("duplicate", f"the marketplace has the plugin {self._reference.name!r} twice")
            if fitting:
                about = document.get("metadata")
                root = about.get("pluginRoot") if isinstance(about, dict) else None
                return fitting[0], root if isinstance(root, str) else ""
            known += [one["name"] for one in rows if isinstance(one.get("name"), str)]
        hint = visible(did_you_mean(self._reference.name or "", known))
        raise SourceNotFound(f"the marketplace has no plugin {self._reference.name!r}{hint}")

    def _located(
        self, market: FolderSource | GitSource, reference: SourceReference, entry: Mapping[str, Any], root: str
    ) -> _Plugin:
        """Return the plugin at the place that the marketplace names."""
        said = entry.get("source")
        place = said.get("path") if isinstance(said, dict) and said.get("source") == "local" else said
        if isinstance(place, str):
            # The root counts for a plain name; a path says itself where it starts.
            folder = check_path(place)
            if not place.startswith("./") and root:
                folder = check_path(f"{check_path(root)}/{folder}")
            source = market
        elif isinstance(said, dict):
            elsewhere = _repository(said, reference, self._context)
            if self._context.permit is not None:
                self._context.permit(elsewhere)
            folder, source = elsewhere.path, _opened(elsewhere, self._context)
        else:
            raise SourceRefused("plugin-source", "the marketplace does not say where the plugin is")
        inside = files_below({path: path for path in source.paths()}, folder)
        if not inside:
            raise SourceNotFound(f"{visible(self.label)}: the plugin's folder {visible(folder)!r} is not there")
        own = [_document(source, f"{folder}/{path}".lstrip("/")) for path in PLUGIN_FILES if path in inside]
        return _Plugin(source, folder, (entry, *(one for one in own if one is not None)), inside)


def _opened(reference: SourceReference, context: SourceContext) -> FolderSource | GitSource:
    reference = reference._replace(path="")
    return GitSource(reference, context) if reference.kind == "git" else FolderSource(reference, context)


def _at(entry: SourceEntry, plugin: _Plugin) -> SourceEntry:
    return entry._replace(path="/".join(filter(None, (plugin.folder, entry.path))))


def _document(source: FolderSource | GitSource, path: str) -> dict[str, Any] | None:
    """Return a file of a marketplace or plugin, or None if there is none; raise SourceRefused if it cannot be read."""
    data = source.read(path, CONFIG_BYTES)
    if data is None:
        return None
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise SourceRefused("plugin-file", f"{path} is not a JSON object")
    return document


def _texts(value: object) -> Collection[str]:
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [one for one in values if isinstance(one, str)]


def _left_out(plugin: _Plugin) -> list[str]:
    """Return one line about the parts of a plugin that are no skills."""
    named = {words for said in plugin.said for key, words in PLUGIN_KEYS.items() if said.get(key)}
    lying = {words for start, words in PLUGIN_PATHS.items() if any(path.startswith(start) for path in plugin.files)}
    parts = sorted(named | lying)
    return [f"only skills are installed; left out of the plugin: {', '.join(parts)}"] if parts else []


# Repositories that a marketplace names ------------------------------------------------------------


def _repository(said: Mapping[str, Any], market: SourceReference, context: SourceContext) -> SourceReference:
    """Return the repository that a marketplace names; raise SourceRefused for one that a stranger may not name."""
    kind = said.get("source")
    if kind not in ("github", "url", "git-subdir"):
        raise SourceRefused(
            "plugin-source", f"the plugin is in a package or place that is not read: {visible(str(kind))}"
        )
    sha, ref = said.get("sha"), said.get("ref")
    if sha is not None and not (isinstance(sha, str) and _SHA.match(sha)):
        raise SourceRefused("ref", "the marketplace names a commit that is not 40 hex digits")
    text = said.get("repo" if kind == "github" else "url")
    path = said.get("path") if kind == "git-subdir" else None
    if not isinstance(text, str) or not isinstance(path, str | None) or not isinstance(ref, str | None):
        raise SourceRefused("plugin-source", "the marketplace does not say where the plugin is")
    if "://" in text and not text.startswith("git+"):
        text = f"git+{text}"
    try:
        found = parse_reference(text, context.environment, path=path, ref=sha or ref)
    except ConfigurationError as error:
        raise SourceRefused("plugin-source", f"the marketplace names no repository: {error}") from None
    _check_stranger(found, market)
    return found


def _check_stranger(found: SourceReference, market: SourceReference) -> None:
    """Refuse an address that only the user may name."""
    scheme, _, rest = found.location.partition("://")
    if found.kind != "git" or scheme == "file":
        raise SourceRefused("transport", "a marketplace may not name a path of this machine outside itself")
    is_own = market.kind == "folder" or market.location.startswith(("http://", "file://"))
    host = rest.partition("/")[0].rpartition("@")[2].strip("[]")
    host = host if host.count(":") > 1 else host.partition(":")[0]
    if not is_own and (scheme == "http" or is_loopback(host) or _is_private(host)):
        raise SourceRefused(
            "private-address", f"a marketplace may not name an address of this network: {visible(host)}"
        )


def _is_private(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host
