"""A skill and a host to where a link or a copy would make it visible there: the one place `why` and `link` go by."""

import os
from collections import Counter
from typing import Literal, NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import parse
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.systems import DEFAULT_PROFILE, find_profile
from skillshelf.core import files
from skillshelf.core.environment import Place, find_repository
from skillshelf.core.values import Root
from skillshelf.hosts.made import copied_from, is_own_copy, is_own_link
from skillshelf.hosts.survey import HostView, Sighting, base_of, is_broken
from skillshelf.hosts.verdict import ignored_safeguard

__all__ = [
    "Put",
    "careless_readers",
    "in_the_way",
    "is_open_to_all",
    "link_name",
    "project_of",
    "put_for",
    "real_root",
    "why_copy",
]


class Put(NamedTuple):
    """A link or a copy of a skill in a root; `label` is how the root is called in every folder."""

    root: str
    name: str
    how: Literal["link", "copy"]
    label: str

    @property
    def path(self) -> str:
        """The folder that it is."""
        return f"{self.root}/{self.name}"


def link_name(sighting: Sighting) -> str:
    """The folder name a link gets: what the skill calls itself if that can be a folder, else its folder's."""
    declared = sighting.declared
    plain = declared.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return declared if plain and not declared.startswith(".") else sighting.folder


def put_for(sighting: Sighting, view: HostView, place: Place) -> Put | None:
    """What makes a skill visible to a host: beside the file, or here, or at home; None where all is taken."""
    name = link_name(sighting)
    careless = Counter(path for host in _careless(sighting) for path in _folders_of(host))
    fitting = _fitting_roots(sighting, view, place)
    ordered = sorted(
        fitting, key=lambda root: (base_of(root) != sighting.base, careless[root.label], -_READERS[root.label])
    )
    for root in ordered:
        put = Put(root.path, name, _how(sighting, root, view), root.label)
        if _is_free(put, sighting):
            return put
    return None


def _fitting_roots(sighting: Sighting, view: HostView, place: Place) -> list[Root]:
    """The roots that something may be put into."""
    return [root for root in _roots_beside(sighting, view, place) if not _leads_out(root, place)]


def _roots_beside(sighting: Sighting, view: HostView, place: Place) -> list[Root]:
    bases = {"user": (sighting.base, place.home), "project": (sighting.base, place.cwd)}[sighting.kind]
    return [
        root
        for root in view.roots
        if root.kind == sighting.kind and base_of(root) in bases and not root.switched_off and not is_broken(root)
    ]


def _leads_out(root: Root, place: Place) -> bool:
    """Whether a link on the way to a root of the project leads out of it, where nothing of the project is written."""
    real = real_root(root.path, root.label) if root.kind == "project" else ""
    return real != "" and not files.is_inside(real, project_of(place))


def real_root(path: str, label: str) -> str:
    """Where a root really is if a link below its base leads to it; else nothing."""
    real = files.real_path(path)
    base = files.real_path(path.removesuffix(f"/{label}"))
    return real if real != f"{base.rstrip('/')}/{label}" else ""


def project_of(place: Place) -> str:
    """The repository around a place, or its folder where there is none."""
    here = files.real_path(place.cwd)
    return find_repository(here, find_profile(DEFAULT_PROFILE).markers) or here


def _how(sighting: Sighting, root: Root, view: HostView) -> Literal["link", "copy"]:
    """A copy where the host follows no link, where nobody knows whether it does, and where SKILL.md is one itself."""
    wants_copy = root.links == "never" or "links" in view.profile.unknown or _is_linked_file(sighting)
    return "copy" if wants_copy else "link"


def _is_linked_file(sighting: Sighting) -> bool:
    """Whether SKILL.md itself is a link, so that a link to its folder would not help."""
    return os.path.basename(sighting.real_path) != os.path.basename(sighting.ways[0])


def why_copy(sighting: Sighting, view: HostView) -> str:
    """Why a host gets a copy."""
    if "links" in view.profile.unknown:
        return "since nobody knows whether it follows links"
    return "since SKILL.md itself is a link" if _is_linked_file(sighting) else "since it follows no links"


def _is_free(put: Put, sighting: Sighting) -> bool:
    """Whether nothing stands there, or a link of our own that does not do."""
    if files.kind_at(put.path) is None:
        return True
    leads_here = files.real_path(put.path) == os.path.dirname(sighting.real_path)
    return is_own_link(put.path) and (put.how == "copy" or not leads_here)


def in_the_way(sighting: Sighting, view: HostView, place: Place) -> str:
    """What stands where a link or a copy would have to be, in words; nothing where there is no such root."""
    name = link_name(sighting)
    roots = _roots_beside(sighting, view, place)
    for root in roots:
        path = f"{root.path}/{name}"
        if not _leads_out(root, place) and files.kind_at(path) is not None:
            return f"{_shown(path, place)} is {_what_is(path, place)}"
    for root in roots:
        if _leads_out(root, place):
            real = real_root(root.path, root.label)
            return f"{_shown(root.path, place)} is behind a link out of this project, to {real}"
    return ""


def _what_is(path: str, place: Place) -> str:
    kind = files.kind_at(path)
    if is_own_copy(path):
        source = copied_from(path)
        return "a copy that skillshelf made" + (f" of {_shown(source, place)}" if source else "")
    if kind == "link":
        return f"a link that skillshelf did not make, to {files.link_target(path)}"
    if kind != "folder":
        return f"no folder but a {kind}"
    is_skill = files.kind_at(f"{path}/{SKILL_FILE}") is not None
    return "another skill" if is_skill else f"a folder without a {SKILL_FILE}"


def _shown(path: str, place: Place) -> str:
    return path[len(place.cwd) + 1 :] if path.startswith(place.cwd + "/") else path


def is_open_to_all(put: Put, sighting: Sighting) -> bool:
    """Whether a host reads that folder which would hand the skill to its model although the author holds it back."""
    return bool(careless_readers(put, sighting))


def careless_readers(put: Put, sighting: Sighting) -> list[str]:
    """The hosts that read that folder and would hand the skill to their model although the author holds it back."""
    return [host.name for host in _careless(sighting) if put.label in _folders_of(host)]


def _folders_of(host: Profile) -> set[str]:
    return {path for rule in host.roots for path in rule.paths}


def _careless(sighting: Sighting) -> list[Profile]:
    """The hosts that ignore what keeps a skill from models."""
    fields = parse(sighting.head, whole=len(sighting.head) >= sighting.size).fields
    return [host for host in HOSTS.values() if ignored_safeguard(fields, host)]


_READERS = Counter(path for host in HOSTS.values() for rule in host.roots for path in dict.fromkeys(rule.paths))
"""How many rules of all hosts read a folder: a link goes where it serves the most of them."""
