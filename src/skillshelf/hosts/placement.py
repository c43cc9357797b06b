"""What `link` made, noted in a small file beside it: so only our own is replaced or removed, by anybody on the team."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from errno import EEXIST
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import parse
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.systems import DEFAULT_PROFILE, find_profile
from skillshelf.core import files
from skillshelf.core.atomic_write import remove_link, replace_file
from skillshelf.core.console import PathDisplay
from skillshelf.core.environment import Environment, find_repository
from skillshelf.core.limits import CONFIG_BYTES, COPIED_BYTES, LISTED_ENTRIES, SKILL_FILE_BYTES
from skillshelf.core.values import Root
from skillshelf.hosts.survey import HostState, SkillFile, Survey, base_of, is_broken
from skillshelf.hosts.verdict import ignored_safeguard

__all__ = [
    "RECORD",
    "CopyContents",
    "Placement",
    "Standing",
    "careless_readers",
    "contents_of",
    "copied_from",
    "copies_of",
    "digest_at",
    "digest_of",
    "hosts_of",
    "in_the_way",
    "is_open_to_all",
    "is_own_copy",
    "is_own_link",
    "keep_for",
    "link_name",
    "manifest_entry",
    "project_of",
    "put_for",
    "real_root",
    "record_entry",
    "refuse_foreign",
    "source_of",
    "sources",
    "standing_of",
    "why_copy",
]


RECORD = ".skillshelf-made.json"


def manifest_entry(root: str, name: str) -> dict[str, Any] | None:
    """What was made under a name in a root; None where that is not ours."""
    entry = _notes(root).get(name)
    return entry if isinstance(entry, dict) else None


def record_entry(root: str, name: str, entry: Mapping[str, Any] | None) -> None:
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
    entry = manifest_entry(*os.path.split(path))
    return entry is not None and entry.get("how") == "link" and entry.get("target") == files.link_target(path)


def is_own_copy(path: str) -> bool:
    """Whether a folder is where we put a copy; somebody may have changed it since."""
    entry = manifest_entry(*os.path.split(path))
    return entry is not None and entry.get("how") == "copy" and files.kind_at(path) == "folder"


def copied_from(path: str) -> str | None:
    """The folder that a copy of ours was made from; None where that was not noted."""
    root, name = os.path.split(path)
    source = (manifest_entry(root, name) or {}).get("source")
    return os.path.normpath(os.path.join(files.real_path(root), source)) if isinstance(source, str) else None


def hosts_of(entry: Mapping[str, Any]) -> list[str]:
    """The hosts that something was made for."""
    hosts = entry.get("for")
    return [str(host) for host in hosts] if isinstance(hosts, list) else []


def keep_for(host: str, path: str) -> None:
    """Note that a host needs what was made for another one, if that is how it sees the skill at a path."""
    root, name = os.path.split(os.path.dirname(path))
    entry = manifest_entry(root, name)
    if entry is not None and host not in hosts_of(entry):
        record_entry(root, name, {**entry, "for": [*hosts_of(entry), host]})


def _notes(root: str) -> dict[str, Any]:
    try:
        found = json.loads(files.read_file(f"{root}/{RECORD}", limit=CONFIG_BYTES, links="never") or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Placement(NamedTuple):
    """A link or a copy of a skill in a root; `label` is how the root is called in every folder."""

    root: str
    name: str
    how: Literal["link", "copy"]
    label: str

    @property
    def path(self) -> str:
        """The folder that it is."""
        return f"{self.root}/{self.name}"


def link_name(skill_file: SkillFile) -> str:
    """The folder name a link gets: what the skill calls itself if that can be a folder, else its folder's."""
    declared = skill_file.declared
    plain = declared.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return declared if plain and not declared.startswith(".") else skill_file.folder


def put_for(skill_file: SkillFile, state: HostState, environment: Environment) -> Placement | None:
    """What makes a skill visible to a host: beside the file, or here, or at home; None where all is taken."""
    name = link_name(skill_file)
    careless = Counter(path for host in _careless(skill_file) for path in _folders_of(host))
    fitting = _fitting_roots(skill_file, state, environment)
    ordered = sorted(
        fitting, key=lambda root: (base_of(root) != skill_file.base, careless[root.label], -_READERS[root.label])
    )
    for root in ordered:
        put = Placement(root.path, name, _how(skill_file, root, state), root.label)
        if _is_free(put, skill_file):
            return put
    return None


def _fitting_roots(skill_file: SkillFile, state: HostState, environment: Environment) -> list[Root]:
    """The roots that something may be put into."""
    return [root for root in _roots_beside(skill_file, state, environment) if not _leads_out(root, environment)]


def _roots_beside(skill_file: SkillFile, state: HostState, environment: Environment) -> list[Root]:
    bases = {"user": (skill_file.base, environment.home), "project": (skill_file.base, environment.cwd)}[
        skill_file.kind
    ]
    return [
        root
        for root in state.roots
        if root.kind == skill_file.kind and base_of(root) in bases and not root.switched_off and not is_broken(root)
    ]


def _leads_out(root: Root, environment: Environment) -> bool:
    """Whether a link on the way to a root of the project leads out of it, where nothing of the project is written."""
    real = real_root(root.path, root.label) if root.kind == "project" else ""
    return real != "" and not files.is_inside(real, project_of(environment))


def real_root(path: str, label: str) -> str:
    """Where a root really is if a link below its base leads to it; else nothing."""
    real = files.real_path(path)
    base = files.real_path(path.removesuffix(f"/{label}"))
    return real if real != f"{base.rstrip('/')}/{label}" else ""


def project_of(environment: Environment) -> str:
    """The repository around a place, or its folder where there is none."""
    here = files.real_path(environment.cwd)
    return find_repository(here, find_profile(DEFAULT_PROFILE).markers) or here


def _how(skill_file: SkillFile, root: Root, state: HostState) -> Literal["link", "copy"]:
    """A copy where the host follows no link, where nobody knows whether it does, and where SKILL.md is one itself."""
    wants_copy = root.links == "never" or "links" in state.profile.unknown or _is_linked_file(skill_file)
    return "copy" if wants_copy else "link"


def _is_linked_file(skill_file: SkillFile) -> bool:
    """Whether SKILL.md itself is a link, so that a link to its folder would not help."""
    return os.path.basename(skill_file.real_path) != os.path.basename(skill_file.paths[0])


def why_copy(skill_file: SkillFile, state: HostState) -> str:
    """Why a host gets a copy."""
    if "links" in state.profile.unknown:
        return "since nobody knows whether it follows links"
    return "since SKILL.md itself is a link" if _is_linked_file(skill_file) else "since it follows no links"


def _is_free(put: Placement, skill_file: SkillFile) -> bool:
    """Whether nothing stands there, or a link of our own that does not do."""
    if files.kind_at(put.path) is None:
        return True
    leads_here = files.real_path(put.path) == os.path.dirname(skill_file.real_path)
    return is_own_link(put.path) and (put.how == "copy" or not leads_here)


def in_the_way(skill_file: SkillFile, state: HostState, environment: Environment) -> str:
    """What stands where a link or a copy would have to be, in words; nothing where there is no such root."""
    name = link_name(skill_file)
    roots = _roots_beside(skill_file, state, environment)
    for root in roots:
        path = f"{root.path}/{name}"
        if not _leads_out(root, environment) and files.kind_at(path) is not None:
            return f"{_shown(path, environment)} is {_what_is(path, environment)}"
    for root in roots:
        if _leads_out(root, environment):
            real = real_root(root.path, root.label)
            return f"{_shown(root.path, environment)} is behind a link out of this project, to {real}"
    return ""


def _what_is(path: str, environment: Environment) -> str:
    kind = files.kind_at(path)
    if is_own_copy(path):
        source = copied_from(path)
        return "a copy that skillshelf made" + (f" of {_shown(source, environment)}" if source else "")
    if kind == "link":
        return f"a link that skillshelf did not make, to {files.link_target(path)}"
    if kind != "folder":
        return f"no folder but a {kind}"
    is_skill = files.kind_at(f"{path}/{SKILL_FILE}") is not None
    return "another skill" if is_skill else f"a folder without a {SKILL_FILE}"


def _shown(path: str, environment: Environment) -> str:
    return PathDisplay(environment.cwd, environment.home).short(path)


def is_open_to_all(put: Placement, skill_file: SkillFile) -> bool:
    """Whether a host reads that folder which would hand the skill to its model although the author holds it back."""
    return bool(careless_readers(put, skill_file))


def careless_readers(put: Placement, skill_file: SkillFile) -> list[str]:
    """The hosts that read that folder and would hand the skill to their model although the author holds it back."""
    return [host.name for host in _careless(skill_file) if put.label in _folders_of(host)]


def _folders_of(host: Profile) -> set[str]:
    return {path for rule in host.roots for path in rule.paths}


def _careless(skill_file: SkillFile) -> list[Profile]:
    """The hosts that ignore what keeps a skill from models."""
    fields = parse(skill_file.head, whole=len(skill_file.head) >= skill_file.size).fields
    return [host for host in HOSTS.values() if ignored_safeguard(fields, host)]


_READERS = Counter(path for host in HOSTS.values() for rule in host.roots for path in dict.fromkeys(rule.paths))
"""How many rules of all hosts read a folder: a link goes where it serves the most of them."""


Standing = Literal["same", "behind", "edited"]
"""How a copy stands to its skill: `behind` if only the skill changed since, `edited` if the copy did."""


class CopyContents(NamedTuple):
    """The files of a skill by relative path, and how many links and other things were left out."""

    files: dict[str, bytes]
    left_out: int


class TooMuch(OSError):
    """A skill has more in it than is copied."""

    def __init__(self, what: str) -> None:
        super().__init__(f"more than {what}")


# Which copies -------------------------------------------------------------------------------------


def copies_of(skill_file: SkillFile, survey: Survey) -> list[SkillFile]:
    """The copies that `link` made of a skill."""
    name = link_name(skill_file)
    others = [
        other for other in survey.skill_files if other is not skill_file and name in (other.folder, link_name(other))
    ]
    return [other for other in others if source_of(other, survey) is skill_file]


def source_of(skill_file: SkillFile, survey: Survey) -> SkillFile | None:
    """The skill that a copy of ours was made from; None for any other file, and where that skill is gone."""
    folder = os.path.dirname(skill_file.path)
    if not is_own_copy(folder):
        return None
    source = copied_from(folder)
    found = survey.by_path.get(f"{source}/{SKILL_FILE}") if source else None
    if found is not None and found is not skill_file:
        return found
    # It may have been moved; notes also did not always say what a copy was made from.
    alike = [other for other in survey.skill_files if link_name(other) == skill_file.folder and not other.problem]
    others = [other for other in alike if not is_own_copy(os.path.dirname(other.path))]
    same = [
        other for other in others if source is None or (other.head, other.size) == (skill_file.head, skill_file.size)
    ]
    return same[0] if len(same) == 1 else None


def sources(found: Sequence[SkillFile], survey: Survey) -> list[SkillFile]:
    """The skills that are meant by these files: for a copy of ours, what it was made from."""
    meant = {one.real_path: one for one in ((source_of(one, survey) or one) for one in found)}
    own = [one for one in meant.values() if not one.problem and not is_own_copy(os.path.dirname(one.path))]
    return own or list(meant.values())


# What is in them ----------------------------------------------------------------------------------


def standing_of(copy: SkillFile, source: SkillFile) -> Standing:
    """How a copy stands to the skill it was made from."""
    folder = os.path.dirname(copy.path)
    here, there = digest_at(folder, copy.real_path), digest_at(os.path.dirname(source.path), source.real_path)
    if here is not None and here == there:
        return "same"
    made = (manifest_entry(*os.path.split(folder)) or {}).get("digest")
    return "behind" if here == made else "edited"


def contents_of(path: str, skill_file: str) -> CopyContents:
    """Everything that is copied of a folder and the SKILL.md it leads to; raises an OSError where that is too much."""
    with files.Folder(files.real_path(path)) as folder:
        tree = folder.tree(LISTED_ENTRIES, without=())
        if not tree.complete:
            raise TooMuch(f"{LISTED_ENTRIES:,} files")
        found: dict[str, bytes] = {}
        room = COPIED_BYTES
        for name in tree.files:
            try:
                found[name] = folder.read(name.split("/"), limit=room).data
            except files.TooLarge as error:
                raise TooMuch(f"{COPIED_BYTES:,} bytes") from error
            room -= len(found[name])
    left_out = len(tree.others)
    if SKILL_FILE not in found:
        found[SKILL_FILE] = files.read_file(skill_file, limit=SKILL_FILE_BYTES, links="never") or b""
        left_out -= SKILL_FILE in tree.others
    return CopyContents(found, left_out)


def digest_of(contents: CopyContents) -> str:
    """What tells one tree of files from another."""
    whole = sha256()
    for name in sorted(contents.files):
        whole.update(f"{name}\0{sha256(contents.files[name]).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{whole.hexdigest()}"


def digest_at(path: str, skill_file: str) -> str | None:
    """What tells the folder at a path from another; None where it cannot be read."""
    try:
        return digest_of(contents_of(path, skill_file))
    except OSError:
        return None
