"""A skill and a host to a link or a copy where that host looks; only our own is replaced or removed.

A link or a copy that somebody else made, or changed since, is left alone.
"""

import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from skillshelf import files, writing
from skillshelf.discovery import SKILL_FILE
from skillshelf.limits import COPIED_BYTES, LISTED_ENTRIES, SKILL_FILE_BYTES
from skillshelf.made import hosts_of, is_own_link, note, noted
from skillshelf.place import Place
from skillshelf.putting import Put, in_the_way, put_for, why_copy
from skillshelf.survey import HostView, Sighting
from skillshelf.text import visible

__all__ = ["Made", "made_line", "make", "take_back"]

How = Literal["link", "copy", "removed", "kept", "nothing"]


class Made(NamedTuple):
    """What was done for one host, where, and what there is to say about it."""

    host: str
    how: How
    path: str
    detail: str


def made_line(one: Made, seen: bool | None = None) -> str:
    """What was done, for a person, and whether the host sees the skill now."""
    words = {"link": "linked", "copy": "copied", "removed": "removed", "kept": "left", "nothing": "nothing done"}
    if one.how == "nothing" and seen:
        return visible(f"{one.host}: sees it already, as {one.path}{f' ({one.detail})' if one.detail else ''}")
    now = {True: " - its model is told of it", False: " - its model is not told of it", None: ""}[seen]
    detail = f" ({one.detail})" if one.detail else ""
    return visible(f"{one.host}: {words[one.how]}{' ' + one.path if one.path else ''}{detail}{now}")


def make(sighting: Sighting, view: HostView, place: Place) -> Made:
    """Put the skill into a root of the host: a relative link, or a copy where that is not sure to be followed."""
    host = view.profile.name
    put = put_for(sighting, view, place)
    if put is None:
        taken = in_the_way(sighting, view, place)
        why = f"{taken}: move it away and try again" if taken else "it has no root to put a link in"
        return Made(host, "nothing", "", why)
    try:
        made = _replaced(put, host, sighting) if is_own_link(put.path) else _MAKERS[put.how](put, [host], sighting)
        return made._replace(detail=f"{made.detail}, {why_copy(sighting, view)}") if made.how == "copy" else made
    except OSError as error:
        return Made(host, "nothing", put.path, f"not made: {(error.strerror or str(error)).lower()}")


def _replaced(put: Put, host: str, sighting: Sighting) -> Made:
    """Make something in the place of a link of our own, which is back there if that fails."""
    target = files.link_target(put.path)
    hosts = hosts_of(noted(put.root, put.name) or {})
    writing.remove_link(put.path)
    try:
        made = _MAKERS[put.how](put, [*(other for other in hosts if other != host), host], sighting)
    except OSError:
        writing.make_link(put.path, target)
        raise
    if made.how == "nothing":
        writing.make_link(put.path, target)
        return made
    return made._replace(host=host, detail=f"in place of the link that skillshelf made; {made.detail}")


def _link(put: Put, hosts: list[str], sighting: Sighting) -> Made:
    # From where the root really is: the way to it may lead through links.
    made = writing.make_parents(put.root)
    target = os.path.relpath(os.path.dirname(sighting.real_path), files.real_path(put.root))
    writing.make_link(put.path, target)
    _note(put, {"how": "link", "target": target, "folders": len(made), "for": hosts})
    return Made(hosts[-1], "link", put.path, f"leads to {target}")


def _copy(put: Put, hosts: list[str], sighting: Sighting) -> Made:
    host = hosts[-1]
    with files.Folder(files.real_path(os.path.dirname(sighting.path))) as folder:
        names, whole = folder.files(LISTED_ENTRIES)
        if not whole:
            return Made(host, "nothing", put.path, f"not copied: more than {LISTED_ENTRIES:,} files")
        contents: dict[str, bytes] = {}
        room = COPIED_BYTES
        for name in names:
            try:
                contents[name] = folder.read(name.split("/"), limit=room).data
            except files.TooLarge:
                return Made(host, "nothing", put.path, f"not copied: more than {COPIED_BYTES:,} bytes")
            room -= len(contents[name])
    if SKILL_FILE not in contents:
        contents[SKILL_FILE] = files.read_file(sighting.real_path, limit=SKILL_FILE_BYTES, links="never") or b""
    made = writing.make_parents(put.root)
    writing.make_folder(put.path, contents)
    _note(put, {"how": "copy", "digest": _digest(contents), "folders": len(made), "for": hosts})
    count = "1 file" if len(contents) == 1 else f"{len(contents)} files"
    return Made(host, "copy", put.path, count)


_MAKERS: Mapping[str, Callable[[Put, list[str], Sighting], Made]] = {"link": _link, "copy": _copy}
"""How each kind is made, for these hosts, the last of which asked for it."""


def _note(put: Put, entry: Mapping[str, Any]) -> None:
    """Note what was made; the folders that were made for what it replaces are still ours."""
    before = noted(put.root, put.name) or {}
    folders = before.get("folders", 0)
    note(put.root, put.name, {**entry, "folders": entry["folders"] + (folders if isinstance(folders, int) else 0)})


def _digest(contents: Mapping[str, bytes]) -> str:
    """What tells one tree of files from another."""
    whole = sha256()
    for name in sorted(contents):
        whole.update(f"{name}\0{sha256(contents[name]).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


# Taking back --------------------------------------------------------------------------------------


def take_back(name: str, view: HostView) -> list[Made]:
    """Remove what `make` put into the roots of a host under a name; what was changed since stays."""
    host = view.profile.name
    done, foreign = [], []
    for root in view.roots:
        entry = noted(root.path, name)
        if entry is not None and (hosts := hosts_of(entry)) and host not in hosts:
            foreign += hosts
        elif entry is not None:
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
    others = [other for other in hosts_of(entry) if other != host]
    if not others:
        return _remove(host, root, path, entry)
    note(root, os.path.basename(path), {**entry, "for": others})
    return Made(host, "kept", path, f"{', '.join(others)} {'needs' if len(others) == 1 else 'need'} it")


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
    note(root, os.path.basename(path), None)
    folders = entry.get("folders", 0)
    writing.remove_empty(root, folders if isinstance(folders, int) else 0)
    return Made(host, "removed", path, "" if kind else "it was gone already")


def _digest_at(path: str) -> str:
    with files.Folder(path) as folder:
        names, _ = folder.files(LISTED_ENTRIES)
        return _digest({name: folder.read(name.split("/"), limit=COPIED_BYTES).data for name in names})
