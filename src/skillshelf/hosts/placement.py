"""Decide where a link or copy of a skill goes, record it in a manifest, and tell whether a copy is stale.

The manifest lies beside what it describes, so that any member of a team can update or remove what `link` made, and
nothing else is ever replaced or removed.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from errno import EEXIST
from hashlib import sha256
from typing import Any, Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import parse
from skillshelf.catalog.tree import TreeFile, name_problem, tree_digest
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.disk_writes import remove_link, replace_file
from skillshelf.core.environment import Environment, find_repository
from skillshelf.core.limits import CONFIG_BYTES, COPIED_BYTES, LISTED_ENTRIES, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Root
from skillshelf.hosts.survey import HostScan, SkillFile, Survey, is_broken
from skillshelf.hosts.verdict import ignores_safeguard

__all__ = [
    "MANIFEST",
    "CopyContents",
    "CopyFile",
    "CopyState",
    "Placement",
    "contents_at",
    "copied_from",
    "copies_of",
    "copy_state",
    "hosts_of",
    "is_as_made",
    "is_own_copy",
    "link_name",
    "manifest_entry",
    "own_kind",
    "placement_for",
    "project_of",
    "read_contents",
    "readers_ignoring_safeguard",
    "real_root",
    "record_entry",
    "record_host",
    "refuse_foreign_manifest",
    "source_of",
    "sources",
    "why_copy",
]


# The manifest -------------------------------------------------------------------------------------

MANIFEST = ".skillshelf-made.json"


def manifest_entry(path: str) -> dict[str, Any] | None:
    """Return the entry of the manifest for the link or copy at a path, or None if `link` did not make it."""
    root, name = os.path.split(path)
    entry = _entries(root).get(name)
    return entry if isinstance(entry, dict) else None


def record_entry(path: str, entry: Mapping[str, Any] | None) -> None:
    """Write the entry of a path to the manifest; None deletes it, and the last deletion removes the manifest."""
    root, name = os.path.split(path)
    manifest = f"{root}/{MANIFEST}"
    entries = {key: value for key, value in _entries(root).items() if key != name}
    if entry is not None:
        entries[name] = dict(entry)
    if entries:
        refuse_foreign_manifest(root)
        # Readable for the whole team, as far as the user's mask allows.
        replace_file(manifest, (json.dumps(entries, indent=2, sort_keys=True) + "\n").encode(), mode=0o666)
    elif files.kind_at(manifest) is not None:
        remove_link(manifest)


def _entries(root: str) -> dict[str, Any]:
    try:
        found = json.loads(files.read_file(f"{root}/{MANIFEST}", limit=CONFIG_BYTES, links="never") or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def refuse_foreign_manifest(root: str) -> None:
    """Raise an OSError if the manifest of a root is not a regular file: a link would make us overwrite its target."""
    kind = files.kind_at(f"{root}/{MANIFEST}")
    if kind not in (None, "file"):
        raise FileExistsError(EEXIST, f"{MANIFEST} there is a {kind}")


def own_kind(path: str) -> Literal["link", "copy"] | None:
    """Return the kind of a link or copy made by `link`; None for anything else, and for a link redirected since."""
    kind = files.kind_at(path)
    if kind not in ("link", "folder") or (entry := manifest_entry(path)) is None:
        return None
    if kind == "link":
        return "link" if entry.get("how") == "link" and entry.get("target") == files.link_target(path) else None
    return "copy" if entry.get("how") == "copy" else None


def is_own_copy(skill_file: SkillFile) -> bool:
    """Return true if a skill lies in a copy that `link` made; it may have been modified since."""
    return own_kind(os.path.dirname(skill_file.path)) == "copy"


def copied_from(path: str) -> str | None:
    """Return the folder that a copy made by `link` comes from, or None if the manifest does not say."""
    source = (manifest_entry(path) or {}).get("source")
    root = files.real_path(os.path.dirname(path))
    return os.path.normpath(os.path.join(root, source)) if isinstance(source, str) else None


def hosts_of(entry: Mapping[str, Any] | None) -> list[str]:
    """Return the hosts that need a link or copy."""
    hosts = (entry or {}).get("for")
    return [str(host) for host in hosts] if isinstance(hosts, list) else []


def record_host(path: str, host: str, **changes: str) -> None:
    """Record that another host needs a link or copy made by `link`, with other changes of its entry."""
    entry = manifest_entry(path)
    if entry is None:
        return
    hosts = hosts_of(entry)
    updated = {**entry, **changes, "for": hosts if host in hosts else [*hosts, host]}
    if updated != entry:
        record_entry(path, updated)


# Where a link or copy goes ------------------------------------------------------------------------


class Placement(NamedTuple):
    """A link or copy of a skill in a root; `label` is the root's path relative to the project or home folder."""

    root: str
    name: str
    how: Literal["link", "copy"]
    label: str

    @property
    def path(self) -> str:
        """The path of the link or copy."""
        return f"{self.root}/{self.name}"


def link_name(skill_file: SkillFile) -> str:
    """Return the name that a link or copy gets: the declared one if it can be a folder, else that of the folder."""
    declared = skill_file.declared
    plain = declared.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return declared if plain and not declared.startswith(".") else skill_file.folder


def placement_for(skill_file: SkillFile, host: HostScan, survey: Survey) -> Placement | str:
    """Return the best place for a link or copy that a host reads, or the reason why there is none.

    Preferred are the folder beside the skill, then one that no host reads that would ignore the author's safeguard,
    then the one that most hosts read. The reason is empty if the host has no suitable root at all.
    """
    roots = _roots_beside(skill_file, host, survey.environment)
    inside = [root for root in roots if not _leads_out(root, survey.environment)]
    ignoring = Counter(label for one in _hosts_ignoring_safeguard(skill_file) for label in _labels(one))
    readers = Counter(
        label for one in HOSTS.values() for rule in one.roots for label in dict.fromkeys(rule.paths)
    )  # A link goes where it serves the most hosts.
    for root in sorted(
        inside, key=lambda root: (root.base != skill_file.base, ignoring[root.label], -readers[root.label])
    ):
        placement = Placement(root.path, link_name(skill_file), _how(skill_file, root, host.profile), root.label)
        if _is_free(placement, skill_file):
            return placement
    if inside:
        path = f"{inside[0].path}/{link_name(skill_file)}"
        return f"{survey.short(path)} is {_description(path, survey)}"
    if roots:
        real = real_root(roots[0].path, roots[0].label)
        return f"{survey.short(roots[0].path)} is behind a link out of this project, to {real}"
    return ""


def _roots_beside(skill_file: SkillFile, host: HostScan, environment: Environment) -> list[Root]:
    """Return the usable roots of the skill's kind: beside the skill, in the working directory or at home."""
    bases = (skill_file.base, environment.cwd)
    return [
        root
        for root in host.roots
        if root.kind == skill_file.kind and not root.switched_off and not is_broken(root)
        # A variable may have moved a folder of the user's; a plugin is not a place to add skills to.
        if root.base in bases or (root.kind == "user" and not root.label.startswith("/"))
        if root.label in _labels(host.profile)
    ]


def _leads_out(root: Root, environment: Environment) -> bool:
    """Return true if a link leads from a root of the project out of it, where nothing may be written."""
    real = real_root(root.path, root.label) if root.kind == "project" else ""
    return real != "" and not files.is_inside(real, project_of(environment))


def real_root(path: str, label: str) -> str:
    """Return the real path of a root that is reached through a link below its base, else an empty string."""
    real = files.real_path(path)
    base = files.real_path(path.removesuffix(f"/{label}"))
    return real if real != f"{base.rstrip('/')}/{label}" else ""


def project_of(environment: Environment) -> str:
    """Return the repository around the working directory, or that directory if there is none."""
    here = files.real_path(environment.cwd)
    return find_repository(here, find_profile(DEFAULT_PROFILE).markers) or here


def _how(skill_file: SkillFile, root: Root, profile: Profile) -> Literal["link", "copy"]:
    """Return "copy" if the host may not follow a link, or if a link to the folder would end at another link."""
    needs_copy = root.links == "never" or "links" in profile.unknown or _is_linked_file(skill_file)
    return "copy" if needs_copy else "link"


def _is_linked_file(skill_file: SkillFile) -> bool:
    return os.path.basename(skill_file.real_path) != skill_file.file_name


def why_copy(skill_file: SkillFile, profile: Profile) -> str:
    """Explain why a host gets a copy instead of a link."""
    if "links" in profile.unknown:
        return f"because it is not known whether {profile.name} follows links"
    return "because SKILL.md is a link" if _is_linked_file(skill_file) else f"because {profile.name} follows no links"


def _is_free(placement: Placement, skill_file: SkillFile) -> bool:
    """Return true if nothing is there, or a link made by `link` that does not serve the host."""
    if files.kind_at(placement.path) is None:
        return True
    leads_here = files.real_path(placement.path) == os.path.dirname(skill_file.real_path)
    return own_kind(placement.path) == "link" and (placement.how == "copy" or not leads_here)


def _description(path: str, survey: Survey) -> str:
    """Describe what occupies a path."""
    kind = files.kind_at(path)
    if own_kind(path) == "copy":
        source = copied_from(path)
        return "a copy made by skillshelf" + (f" from {survey.short(source)}" if source else "")
    if kind == "link":
        return f"a link that skillshelf did not make, to {files.link_target(path)}"
    if kind != "folder":
        return f"a {kind}, not a folder"
    is_skill = files.kind_at(f"{path}/{SKILL_FILE}") is not None
    return "another skill" if is_skill else f"a folder without a {SKILL_FILE}"


def readers_ignoring_safeguard(placement: Placement, skill_file: SkillFile) -> list[str]:
    """Return the hosts that read the folder and would show their model a skill that its author keeps from models."""
    return [host.name for host in _hosts_ignoring_safeguard(skill_file) if placement.label in _labels(host)]


def _labels(host: Profile) -> set[str]:
    return {label for rule in host.roots for label in rule.paths}


def _hosts_ignoring_safeguard(skill_file: SkillFile) -> list[Profile]:
    fields = parse(skill_file.head, whole=len(skill_file.head) >= skill_file.size).fields
    return [host for host in HOSTS.values() if ignores_safeguard(fields, host)]


# Copies -------------------------------------------------------------------------------------------

CopyState = Literal["current", "stale", "modified"]
"""A copy is `stale` if only the skill changed since it was made, `modified` if the copy itself did."""


def copies_of(skill_file: SkillFile, survey: Survey) -> list[SkillFile]:
    """Return the copies that `link` made of a skill."""
    name = link_name(skill_file)
    alike = survey.names.named(name)
    others = [one for one in alike if one is not skill_file and name in (one.folder, link_name(one))]
    return [other for other in others if source_of(other, survey) is skill_file]


def source_of(skill_file: SkillFile, survey: Survey) -> SkillFile | None:
    """Return the skill that a copy made by `link` comes from; None for other files, and if that skill is gone."""
    if not is_own_copy(skill_file):
        return None
    source = copied_from(os.path.dirname(skill_file.path))
    found = survey.by_path.get(f"{source}/{SKILL_FILE}") if source else None
    if found is not None and found is not skill_file:
        return found
    # The skill may have been moved, and early manifests do not name the source.
    named = survey.names.named(skill_file.folder)
    alike = [one for one in named if link_name(one) == skill_file.folder and not one.problem]
    others = [one for one in alike if not is_own_copy(one) and (source is None or one.text == skill_file.text)]
    return others[0] if len(others) == 1 else None


def sources(found: Sequence[SkillFile], survey: Survey) -> list[SkillFile]:
    """Replace copies made by `link` by their sources, and drop files that cannot be read if others can."""
    meant = {one.real_path: one for one in ((source_of(one, survey) or one) for one in found)}
    own = [one for one in meant.values() if not one.problem and not is_own_copy(one)]
    return own or list(meant.values())


def copy_state(copy: SkillFile, source: SkillFile) -> CopyState:
    """Compare a copy with the skill it was made from."""
    folder = os.path.dirname(copy.path)
    contents = contents_at(folder, copy.real_path)
    if contents is not None and contents.files == _files_at(os.path.dirname(source.path), source.real_path):
        return "current"
    return "stale" if contents is not None and is_as_made(contents, manifest_entry(folder)) else "modified"


def is_as_made(contents: "CopyContents", entry: Mapping[str, Any] | None) -> bool:
    """Return true if a copy has the contents with which it was made."""
    recorded = entry or {}
    if "tree" in recorded:
        return contents.tree is not None and contents.tree == recorded["tree"]
    # Version 0.1 recorded another digest; so do we for names that no tree may hold.
    return contents.digest == recorded.get("digest")


class CopyFile(NamedTuple):
    """One file of a copy."""

    data: bytes
    executable: bool


class CopyContents(NamedTuple):
    """The files of a skill by relative path, and the number of links and special files that are not copied."""

    files: dict[str, CopyFile]
    left_out: int

    @property
    def tree(self) -> str | None:
        """The digest of these files as a tree, or None if a name prevents it."""
        if name_problem(self.files) is not None:
            return None
        listed = {
            path: TreeFile(len(file.data), sha256(file.data).hexdigest(), file.executable)
            for path, file in self.files.items()
        }
        return tree_digest(listed)

    @property
    def digest(self) -> str:
        """The digest of names and contents that version 0.1 recorded."""
        whole = sha256()
        for name in sorted(self.files):
            line = f"{name}\0{sha256(self.files[name].data).hexdigest()}\n"
            whole.update(line.encode("utf-8", "surrogateescape"))
        return f"sha256:{whole.hexdigest()}"

    @property
    def recorded(self) -> dict[str, str]:
        """The members of a manifest entry by which `is_as_made` knows these contents again."""
        tree = self.tree
        return {"tree": tree} if tree is not None else {"digest": self.digest}

    @property
    def data(self) -> dict[str, bytes]:
        """The bytes of the files."""
        return {path: file.data for path, file in self.files.items()}

    @property
    def executables(self) -> set[str]:
        """The files that their owner may execute."""
        return {path for path, file in self.files.items() if file.executable}


class SkillTooLarge(OSError):
    """A skill has more files or bytes than `link` copies."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"the skill has more than {limit}")


def read_contents(path: str, skill_file: str) -> CopyContents:
    """Read the files of a folder and the SKILL.md it links to; raise an OSError if they exceed the limits."""
    with files.Folder(files.real_path(path)) as folder:
        tree = folder.tree(LISTED_ENTRIES, without=())
        if not tree.complete:
            raise SkillTooLarge(f"{LISTED_ENTRIES:,} files")
        found: dict[str, CopyFile] = {}
        room = COPIED_BYTES
        for name in tree.files:
            try:
                contents = folder.read(name.split("/"), limit=room)
            except files.TooLarge as error:
                raise SkillTooLarge(f"{COPIED_BYTES:,} bytes") from error
            found[name] = CopyFile(contents.data, contents.runnable)
            room -= len(contents.data)
    left_out = len(tree.others)
    if SKILL_FILE not in found:
        data = files.read_file(skill_file, limit=SKILL_FILE_BYTES, links="never") or b""
        found[SKILL_FILE] = CopyFile(data, executable=False)
        left_out -= SKILL_FILE in tree.others
    return CopyContents(found, left_out)


def contents_at(path: str, skill_file: str) -> CopyContents | None:
    """Return the contents of the folder at a path, or None if it cannot be read."""
    try:
        return read_contents(path, skill_file)
    except OSError:
        return None


def _files_at(path: str, skill_file: str) -> dict[str, CopyFile] | None:
    contents = contents_at(path, skill_file)
    return contents.files if contents is not None else None
