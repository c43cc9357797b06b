"""A skill and a host to a link or a copy where that host looks; nothing is overwritten, and only our own is removed.

A small file beside what was made, `.skillshelf-made.json`, says what that was: so anybody on the team can take it
back, and a link or a copy that somebody else made, or changed since, is left alone.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from skillshelf import files, writing
from skillshelf.discovery import SKILL_FILE
from skillshelf.limits import CONFIG_BYTES, COPIED_BYTES, LISTED_ENTRIES, SKILL_FILE_BYTES
from skillshelf.place import Place
from skillshelf.remedies import link_name, link_roots
from skillshelf.survey import HostView, Sighting
from skillshelf.text import visible
from skillshelf.values import Root

__all__ = ["RECORD", "Made", "keep_for", "made_line", "make", "take_back"]

RECORD = ".skillshelf-made.json"

How = Literal["link", "copy", "removed", "nothing"]


class Made(NamedTuple):
    """What was done for one host, where, and what there is to say about it."""

    host: str
    how: How
    path: str
    detail: str


def made_line(one: Made, seen: bool | None = None) -> str:
    """What was done, for a person, and whether the host sees the skill now."""
    words = {"link": "linked", "copy": "copied", "removed": "removed", "nothing": "nothing done"}
    if one.how == "nothing" and seen:
        return visible(f"{one.host}: sees it already, as {one.path}{f' ({one.detail})' if one.detail else ''}")
    now = {True: " - its model is told of it", False: " - its model is not told of it", None: ""}[seen]
    detail = f" ({one.detail})" if one.detail else ""
    return visible(f"{one.host}: {words[one.how]}{' ' + one.path if one.path else ''}{detail}{now}")


def make(sighting: Sighting, view: HostView, place: Place) -> Made:
    """Put the skill into a root of the host: a relative link, or a copy where it follows none."""
    host = view.profile.name
    name = link_name(sighting)
    roots = link_roots(sighting, view, place)
    if not roots:
        taken = [f"{root.path}/{name}" for root in view.roots if files.kind_at(f"{root.path}/{name}") is not None]
        why = f"{taken[0]} is there already and was not touched" if taken else "it has no root to put a link in"
        return Made(host, "nothing", "", why)
    root = roots[0]
    path = f"{root.path}/{name}"
    try:
        if root.links == "never" or _is_linked_file(sighting):
            return _copy(host, root, path, sighting)
        return _link(host, root, path, os.path.dirname(sighting.real_path))
    except OSError as error:
        return Made(host, "nothing", path, f"not made: {(error.strerror or str(error)).lower()}")


def _is_linked_file(sighting: Sighting) -> bool:
    """Whether SKILL.md itself is a link, so that a link to its folder would not help."""
    return os.path.basename(sighting.real_path) != os.path.basename(sighting.ways[0])


def _link(host: str, root: Root, path: str, source: str) -> Made:
    # From where the root really is: the way to it may lead through links.
    made = writing.make_parents(root.path)
    target = os.path.relpath(source, files.real_path(root.path))
    writing.make_link(path, target)
    _record(root.path, os.path.basename(path), {"how": "link", "target": target, "folders": len(made), "for": [host]})
    return Made(host, "link", path, f"leads to {target}")


def _copy(host: str, root: Root, path: str, sighting: Sighting) -> Made:
    with files.Folder(files.real_path(os.path.dirname(sighting.path))) as folder:
        names, whole = folder.files(LISTED_ENTRIES)
        if not whole:
            return Made(host, "nothing", path, f"not copied: more than {LISTED_ENTRIES:,} files")
        contents: dict[str, bytes] = {}
        room = COPIED_BYTES
        for name in names:
            try:
                contents[name] = folder.read(name.split("/"), limit=room).data
            except files.TooLarge:
                return Made(host, "nothing", path, f"not copied: more than {COPIED_BYTES:,} bytes")
            room -= len(contents[name])
    if SKILL_FILE not in contents:
        contents[SKILL_FILE] = files.read_file(sighting.real_path, limit=SKILL_FILE_BYTES, links="never") or b""
    made = writing.make_parents(root.path)
    writing.make_folder(path, contents)
    entry = {"how": "copy", "digest": _digest(contents), "folders": len(made), "for": [host]}
    _record(root.path, os.path.basename(path), entry)
    return Made(host, "copy", path, f"{len(contents)} files, since this host follows no such link")


def _digest(contents: Mapping[str, bytes]) -> str:
    """What tells one tree of files from another."""
    whole = sha256()
    for name in sorted(contents):
        whole.update(f"{name}\0{sha256(contents[name]).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def keep_for(host: str, path: str) -> None:
    """Note that a host needs what was made for another one, if that is how it sees the skill."""
    folder = os.path.dirname(path)
    root, name = os.path.split(folder)
    entry = _records(root).get(name)
    if isinstance(entry, dict) and host not in _hosts_of(entry):
        _record(root, name, {**entry, "for": [*_hosts_of(entry), host]})


def _hosts_of(entry: Mapping[str, Any]) -> list[str]:
    """The hosts that something was made for."""
    hosts = entry.get("for")
    return [str(host) for host in hosts] if isinstance(hosts, list) else []


# Taking back --------------------------------------------------------------------------------------


def take_back(name: str, view: HostView) -> list[Made]:
    """Remove what `make` put into the roots of a host under a name; what was changed since stays."""
    host = view.profile.name
    done, foreign = [], []
    for root in view.roots:
        entry = _records(root.path).get(name)
        if isinstance(entry, dict) and (hosts := _hosts_of(entry)) and host not in hosts:
            foreign += hosts
        elif isinstance(entry, dict):
            path = f"{root.path}/{name}"
            try:
                done.append(_give_up(host, root.path, path, entry))
            except OSError as error:
                done.append(Made(host, "nothing", path, f"not removed: {(error.strerror or str(error)).lower()}"))
    if foreign and not done:
        return [Made(host, "nothing", "", f"what there is was made for {', '.join(foreign)}")]
    return done or [Made(host, "nothing", "", "skillshelf made no link or copy of that name here")]


def _give_up(host: str, root: str, path: str, entry: Mapping[str, Any]) -> Made:
    """Remove what was made for a host, unless another one needs it too."""
    others = [other for other in _hosts_of(entry) if other != host]
    if not others:
        return _remove(host, root, path, entry)
    _record(root, os.path.basename(path), {**entry, "for": others})
    return Made(host, "removed", "", f"{path} stays, for {', '.join(others)}")


def _remove(host: str, root: str, path: str, entry: Mapping[str, Any]) -> Made:
    kind = files.kind_at(path)
    if kind == "link" and entry.get("how") == "link" and files.link_target(path) == entry.get("target"):
        writing.remove_link(path)
    elif kind == "folder" and entry.get("how") == "copy":
        if _digest_at(path) != entry.get("digest"):
            return Made(host, "nothing", path, "the copy was changed since; remove it by hand if you do not need it")
        writing.remove_folder(path)
    elif kind is not None:
        return Made(host, "nothing", path, "this is not what skillshelf made; it was left alone")
    _record(root, os.path.basename(path), None)
    folders = entry.get("folders", 0)
    writing.remove_empty(root, folders if isinstance(folders, int) else 0)
    return Made(host, "removed", path, "" if kind else "it was gone already")


def _digest_at(path: str) -> str:
    with files.Folder(path) as folder:
        names, _ = folder.files(LISTED_ENTRIES)
        return _digest({name: folder.read(name.split("/"), limit=COPIED_BYTES).data for name in names})


def _records(root: str) -> dict[str, Any]:
    try:
        found = json.loads(files.read_file(f"{root}/{RECORD}", limit=CONFIG_BYTES, links="never") or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _record(root: str, name: str, entry: Mapping[str, Any] | None) -> None:
    """Note what was made under a name, or that it is no longer there."""
    path = f"{root}/{RECORD}"
    records = {key: value for key, value in _records(root).items() if key != name}
    if entry is not None:
        records[name] = dict(entry)
    if records:
        writing.replace_file(path, (json.dumps(records, indent=2, sort_keys=True) + "\n").encode())
    elif files.kind_at(path) is not None:
        writing.remove_link(path)
