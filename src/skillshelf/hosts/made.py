"""What `link` made, noted in a small file beside it: so only our own is replaced or removed, by anybody on the team."""

import json
import os
from collections.abc import Mapping
from errno import EEXIST
from typing import Any

from skillshelf.core import files
from skillshelf.core.atomic_write import remove_link, replace_file
from skillshelf.core.limits import CONFIG_BYTES

__all__ = [
    "RECORD",
    "copied_from",
    "hosts_of",
    "is_own_copy",
    "is_own_link",
    "keep_for",
    "note",
    "noted",
    "refuse_foreign",
]

RECORD = ".skillshelf-made.json"


def noted(root: str, name: str) -> dict[str, Any] | None:
    """What was made under a name in a root; None where that is not ours."""
    entry = _notes(root).get(name)
    return entry if isinstance(entry, dict) else None


def note(root: str, name: str, entry: Mapping[str, Any] | None) -> None:
    """Note what was made under a name, or that it is no longer there."""
    path = f"{root}/{RECORD}"
    notes = {key: value for key, value in _notes(root).items() if key != name}
    if entry is not None:
        notes[name] = dict(entry)
    if notes:
        refuse_foreign(root)
        # For everybody on the team, as far as the user's mask allows.
        replace_file(path, (json.dumps(notes, indent=2, sort_keys=True) + "\n").encode(), mode=0o666)
    elif files.kind_at(path) is not None:
        remove_link(path)


def refuse_foreign(root: str) -> None:
    """Raise where the notes of a root are no file of their own: a link would have something else overwritten."""
    kind = files.kind_at(f"{root}/{RECORD}")
    if kind not in (None, "file"):
        raise FileExistsError(EEXIST, f"{RECORD} there is a {kind}")


def is_own_link(path: str) -> bool:
    """Whether a link was made by us and still says what we made it say."""
    if files.kind_at(path) != "link":
        return False
    entry = noted(*os.path.split(path))
    return entry is not None and entry.get("how") == "link" and entry.get("target") == files.link_target(path)


def is_own_copy(path: str) -> bool:
    """Whether a folder is where we put a copy; somebody may have changed it since."""
    entry = noted(*os.path.split(path))
    return entry is not None and entry.get("how") == "copy" and files.kind_at(path) == "folder"


def copied_from(path: str) -> str | None:
    """The folder that a copy of ours was made from; None where that was not noted."""
    root, name = os.path.split(path)
    source = (noted(root, name) or {}).get("source")
    return os.path.normpath(os.path.join(files.real_path(root), source)) if isinstance(source, str) else None


def hosts_of(entry: Mapping[str, Any]) -> list[str]:
    """The hosts that something was made for."""
    hosts = entry.get("for")
    return [str(host) for host in hosts] if isinstance(hosts, list) else []


def keep_for(host: str, path: str) -> None:
    """Note that a host needs what was made for another one, if that is how it sees the skill at a path."""
    root, name = os.path.split(os.path.dirname(path))
    entry = noted(root, name)
    if entry is not None and host not in hosts_of(entry):
        note(root, name, {**entry, "for": [*hosts_of(entry), host]})


def _notes(root: str) -> dict[str, Any]:
    try:
        found = json.loads(files.read_file(f"{root}/{RECORD}", limit=CONFIG_BYTES, links="never") or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
