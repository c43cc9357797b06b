"""List every file that skillshelf keeps: where it lies, what it holds, its version, and whether it may be deleted.

`docs/reference/files.md` is generated from this table; `uninstall` and `doctor` go by it. A file that is not in it is
not ours.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from skillshelf.core import files
from skillshelf.core.environment import (
    Environment,
    user_cache_folder,
    user_config_path,
    user_data_folder,
    user_state_folder,
)
from skillshelf.core.records import NamedTuple

__all__ = [
    "KEPT_FILES",
    "TEMPORARY",
    "FoundFile",
    "KeptFile",
    "KeptFolder",
    "KeptPlace",
    "kept_folder",
    "kept_folders",
    "known_file",
]

KeptPlace = Literal["config", "data", "state", "cache", "skills", "temporary", "chosen"]
"""Where a file lies: one of the user's four folders, a folder of skills, the folder for temporary files, or where the
user said."""


class KeptFile(NamedTuple):
    """One kind of file, or of folder, that skillshelf writes.

    `pattern` matches its path below its place. `version` is the number that this version writes, None for a file
    without a format of its own; `when_older` says what becomes of a file of an older number.
    """

    name: str
    place: KeptPlace
    shown: str
    pattern: str
    version: int | None
    holds: str
    deletable: str
    when_older: Literal["made again", "migrated", "read as it is", "-"]
    on_uninstall: Literal["removed", "left", "removed unless changed"]
    kind: Literal["file", "folder", "link"] = "file"
    """A folder counts as one thing, whatever is in it."""


_OLD = r"(\.v\d+)?"
"""The end of a file of an older version, which stays beside the migrated one."""

_UNFINISHED = r"\.\d+-[0-9a-f]{8}\.(new|old)"
"""The end of a file that is being written; one that stays is from a process that was killed."""

_SCOPE = r"(projects/[0-9a-f]{16}/)?"
"""The beginning of what is kept for a project; without it, for the user."""

TEMPORARY = ("skillshelf-run-", "skillshelf-output-", "skillshelf-git-", "skillshelf-review-")
"""The beginnings of temporary folders that belong to a process, and are removed when it is dead."""

KEPT_FILES: tuple[KeptFile, ...] = (
    KeptFile(
        "configuration",
        "config",
        "config.toml",
        r"config\.toml",
        1,
        "your settings, rules and trusted folders",
        "no: your choices are gone",
        "migrated",
        "left",
    ),
    KeptFile(
        "approvals",
        "state",
        "approvals.json",
        rf"approvals\.json{_OLD}",
        1,
        'what you answered "remember" to',
        "yes: you are asked again",
        "migrated",
        "removed",
    ),
    KeptFile(
        "servers",
        "state",
        "servers.json",
        rf"servers\.json{_OLD}",
        1,
        "the newest revision that you saw of each team server",
        "yes: an older catalog of a server is not noticed, and a token is asked for by name again",
        "migrated",
        "removed",
    ),
    KeptFile(
        "store",
        "data",
        "store/1/",
        r"store/1/[0-9a-f]{2}/[0-9a-f]{62}",
        1,
        "every installed skill, read-only, under the digest of its files",
        "no: installed skills of yours and links to them are gone until `skillshelf install`",
        "migrated",
        "removed",
        "folder",
    ),
    KeptFile(
        "manifests of trees",
        "data",
        "store/1/*/*.manifest",
        rf"store/1/[0-9a-f]{{2}}/[0-9a-f]{{62}}\.manifest({_UNFINISHED})?",
        1,
        "the text whose digest is the name of a folder of the store",
        "yes",
        "read as it is",
        "removed",
    ),
    KeptFile(
        "unfinished trees",
        "data",
        "store/1/.new-*, store/1/.removed-*",
        r"store/1/\.(new|removed)-\d+-[0-9a-f]{8}",
        None,
        "what a process that was killed did not write or remove to the end; `gc` removes it",
        "yes",
        "-",
        "removed",
        "folder",
    ),
    KeptFile(
        "generations",
        "data",
        "generations/N.json, projects/*/generations/N.json",
        rf"{_SCOPE}generations/\d+\.json({_UNFINISHED})?",
        1,
        "lock and wishes of you, or of a project, after each change, for `rollback`",
        "yes: `rollback` cannot go back, and `gc` removes trees that only these need",
        "migrated",
        "removed",
    ),
    KeptFile(
        "current generation",
        "data",
        "current, projects/*/current",
        rf"{_SCOPE}current({_UNFINISHED})?",
        None,
        "which generation counts",
        "yes: the next change makes it again",
        "-",
        "removed",
        "link",
    ),
    KeptFile(
        "pending change",
        "data",
        "pending.json, projects/*/pending.json",
        rf"{_SCOPE}pending\.json({_UNFINISHED})?",
        1,
        "what a change of installed skills has begun, so that the next command can finish or undo it",
        "no: a change that was interrupted stays half done",
        "migrated",
        "removed",
    ),
    KeptFile(
        "install locks",
        "data",
        "store.lock, install.lock, projects/*/install.lock",
        rf"store\.lock|{_SCOPE}install\.lock",
        None,
        "nothing; a process that installs holds it",
        "yes",
        "-",
        "removed",
    ),
    KeptFile(
        "lock of installed skills",
        "config",
        "skillshelf.lock",
        r"skillshelf\.lock",
        1,
        "where each skill that you installed with `--user` came from, and the digest of its files",
        "no: nothing says any more which bytes were installed",
        "migrated",
        "left",
    ),
    KeptFile(
        "unfinished lock",
        "config",
        "skillshelf.lock.*.new, skillshelf.lock.*.old",
        rf"skillshelf\.lock{_UNFINISHED}",
        None,
        "what a process that was killed did not write to the end",
        "yes",
        "-",
        "removed",
    ),
    KeptFile(
        "record of links",
        "state",
        "links.json",
        r"links\.json",
        1,
        "which links and copies `link` and `sync` made, from where, for which hosts, and the tree of each copy",
        "no: `sync --remove`, updates and `uninstall` no longer know them",
        "migrated",
        "removed unless changed",
    ),
    KeptFile(
        "older records of links",
        "state",
        "links.json.v*, manifests/",
        r"links\.json\.v\d+|manifests/[0-9a-f]{16}\.json",
        None,
        "a copy of each record of links of an older version, as it was before its entries moved to `links.json`",
        "yes",
        "-",
        "removed",
    ),
    KeptFile(
        "record of switches",
        "state",
        "switches.json",
        rf"switches\.json{_OLD}",
        1,
        "which blanks and empty files `enable --in` brings back where `disable --in` changed the settings of a host",
        "yes: a settings file that was missing stays as an empty one",
        "migrated",
        "removed",
    ),
    KeptFile(
        "chat history",
        "state",
        "chat-history.json",
        rf"chat-history\.json{_OLD}",
        1,
        "the last lines that you typed in `chat`",
        "yes: the arrow keys no longer bring them back",
        "migrated",
        "removed",
    ),
    KeptFile(
        "use history",
        "state",
        "usage.sqlite",
        r"usage\.sqlite(-journal|-wal|-shm)?",
        1,
        "with `search.learn = true`: the real paths of skills that were loaded after a search, when, and the terms of "
        "the search as salted hashes. `skillshelf usage --clear` removes it",
        "yes: searches rank by words alone again",
        "migrated",
        "removed",
    ),
    KeptFile(
        "locks",
        "state",
        "approvals.json.lock, links.json.lock, servers.json.lock, switches.json.lock, chat-history.json.lock",
        r"(approvals|links|servers|switches|chat-history)\.json\.lock",
        None,
        "nothing; a process that writes the file holds it",
        "yes",
        "-",
        "removed",
    ),
    KeptFile(
        "configuration lock",
        "config",
        "config.toml.lock",
        r"config\.toml\.lock",
        None,
        "nothing; a process that writes the file holds it",
        "yes",
        "-",
        "removed",
    ),
    KeptFile(
        "unfinished files",
        "state",
        "approvals.json.*.new, links.json.*.new, switches.json.*.new, chat-history.json.*.new",
        rf"(approvals|links|switches|chat-history)\.json{_UNFINISHED}",
        None,
        "what a process that was killed did not write to the end",
        "yes",
        "-",
        "removed",
    ),
    KeptFile(
        "unfinished configuration",
        "config",
        "config.toml.*.new, config.toml.*.old",
        rf"config\.toml{_UNFINISHED}",
        None,
        "what a process that was killed did not write to the end",
        "yes",
        "-",
        "removed",
    ),
    KeptFile(
        "cache",
        "cache",
        "skills.sqlite3",
        r"skills\.sqlite3(-journal|-wal|-shm)?",
        2,
        "the skills of earlier scans, by root. An entry counts while device, inode, size and times of its file are the "
        "same, so a second write through a mapping, which the kernel does not stamp, shows only with `--no-cache` or "
        "after the next change",
        "yes: built again",
        "made again",
        "removed",
    ),
    KeptFile(
        "embeddings",
        "cache",
        "embeddings.sqlite3",
        r"embeddings\.sqlite3(-journal|-wal|-shm)?",
        1,
        "the embeddings of names and descriptions of skills, by the digests of model and text, if your configuration "
        "names a [second scorer](../search.md#a-second-scorer); no text, nothing about queries",
        "yes: the server is asked again",
        "made again",
        "removed",
    ),
    KeptFile(
        "packed catalogs",
        "cache",
        "packed/",
        rf"packed/[0-9a-f]{{16}}({_UNFINISHED})?",
        1,
        "whole catalogs, surveys of hosts and inventories. One counts while its files and folders are as they were and "
        "every link leads where it led",
        "yes: built again",
        "made again",
        "removed",
    ),
    KeptFile(
        "search index",
        "cache",
        "search/",
        rf"search/[0-9a-f]{{24}}/(lock|seal({_UNFINISHED})?|index/[^/]+)",
        4,
        "the search index of each set of roots",
        "yes: built again",
        "made again",
        "removed",
    ),
    KeptFile(
        "links and copies",
        "skills",
        "NAME",
        r"[^/]+",
        None,
        "a skill that `link` or `sync` made visible to a host",
        "yes: that host no longer sees the skill",
        "-",
        "removed unless changed",
    ),
    KeptFile(
        "manifest",
        "skills",
        ".skillshelf-made.json",
        rf"\.skillshelf-made\.json({_UNFINISHED})?",
        None,
        "the record of the links and copies that version 0.1 made there; its entries move to `links.json` with the "
        "next change in that folder",
        "no: `link --remove`, updates and `uninstall` no longer know them",
        "migrated",
        "removed unless changed",
    ),
    KeptFile(
        "run folders",
        "temporary",
        ", ".join(f"{prefix}*" for prefix in TEMPORARY),
        rf"({'|'.join(TEMPORARY)})[^/]+(/.*)?",
        None,
        "the copy of a script while it runs, long outputs of a session without a journal, and what is fetched or "
        "checked before it is installed",
        "yes, when nothing runs; abandoned ones are removed by the next run",
        "-",
        "removed",
    ),
    KeptFile(
        "kept work",
        "temporary",
        "skillshelf-kept-*",
        r"skillshelf-kept-[^/]+(/.*)?",
        None,
        "the files that a script made",
        "yes, if you do not need them",
        "-",
        "left",
    ),
    KeptFile(
        "team blobs",
        "data",
        "team/blobs/",
        r"team/blobs",
        None,
        "the archives of published releases, and snapshots of search indexes, under their digests",
        "no: the releases of the team server are gone",
        "-",
        "left",
        "folder",
    ),
    KeptFile(
        "team cache",
        "data",
        "team/store/, team/snapshots/, team/empty/",
        r"team/(store|snapshots|empty)",
        None,
        "files of releases and snapshots that the team server fetched from its blobs",
        "yes, while no server runs: they are fetched again",
        "-",
        "removed",
        "folder",
    ),
    KeptFile(
        "team sessions",
        "data",
        "team/journals/",
        r"team/journals/[^/]+",
        None,
        "what the team server recorded of sessions at itself, a folder for each process, until it is in the database",
        "no: what the database does not have yet is lost",
        "-",
        "left",
        "folder",
    ),
    KeptFile(
        "team database",
        "data",
        "team/team.sqlite, team/team.TENANT.sqlite",
        r"team/team(\.[a-z0-9-]+)?\.sqlite(-wal|-shm|(\.retention)?\.lock|\.v\d+(\.new)?)?",
        8,
        "what `serve` keeps of a team without PostgreSQL, a file for each tenant: digests of tokens, members, "
        "releases, journals, usage",
        "no: the team is gone",
        "migrated",
        "left",
    ),
    KeptFile(
        "journal",
        "chosen",
        "FILE, FILE.part-N, FILE.d, FILE.torn",
        r".+",
        2,
        "where `--journal FILE` says: events; older ones, if it is rotated; with `--keep` all inputs; long "
        "outputs; a torn last line",
        "yes, if you need no proof of what happened",
        "read as it is",
        "left",
    ),
    KeptFile(
        "stream of a journal",
        "chosen",
        "FILE.stream",
        r".+",
        1,
        "beside a journal that `log push` or `journal.push` sent: the id under which a team server has it",
        "no: a journal whose beginning was rotated away is sent as a new one, and one that was replaced is not noticed",
        "migrated",
        "left",
    ),
    KeptFile(
        "record of a site",
        "chosen",
        ".skillshelf-site.json",
        r".+",
        1,
        "in the folder of `site OUT`: the files that it wrote there",
        "no: `site` does not write into that folder again until it is empty",
        "migrated",
        "left",
    ),
    KeptFile(
        "wishes and lock of a project",
        "chosen",
        "skillshelf.toml, skillshelf.lock, .gitattributes, .agents/skills/NAME",
        r".+",
        1,
        "at the root of a repository: the skills that the project asks for, what they are, and the copies of them",
        "no: they belong to the project; `skillshelf remove NAME` takes one out",
        "migrated",
        "left",
    ),
)


def known_file(place: KeptPlace, path: str) -> KeptFile | None:
    """Return the row for a path below a place, or None if no file of ours is called so."""
    rows = (row for row in KEPT_FILES if row.place == place)
    return next((row for row in rows if re.fullmatch(row.pattern, path, re.DOTALL)), None)


# What is there ------------------------------------------------------------------------------------


class FoundFile(NamedTuple):
    """A file below one of the user's folders; `problem` says why it does not count as ours, else it is empty."""

    folder: str
    relative: str
    row: KeptFile | None
    problem: str = ""

    @property
    def path(self) -> str:
        """The path of the file."""
        return f"{self.folder}/{self.relative}"

    @property
    def is_abandoned(self) -> bool:
        """Whether it was being written by a process that is gone."""
        if not re.search(f"{_UNFINISHED}$", self.relative):
            return False
        process = self.relative.rsplit(".", 2)[1].partition("-")[0]
        return files.kind_at(f"/proc/{process}") is None


class KeptFolder(NamedTuple):
    """One of the user's folders with its files; `folders` are those below it, innermost first.

    `problem` says why nothing in it is looked at: a link, a foreign owner, something that is no folder.
    """

    place: KeptPlace
    path: str
    exists: bool = False
    problem: str = ""
    files: tuple[FoundFile, ...] = ()
    folders: tuple[str, ...] = ()

    @property
    def removable(self) -> list[FoundFile]:
        """The files that are removed when everything is."""
        own = ((one, one.row.on_uninstall) for one in self.files if one.row is not None and not one.problem)
        return [one for one, fate in own if fate == "removed"]


_DEEPEST = 5


def kept_folders(environment: Environment) -> list[KeptFolder]:
    """Return the folders of the user in which skillshelf keeps files, with what is there; no link is followed."""
    return [kept_folder(place, path) for place, path in _paths(environment).items()]


def _paths(environment: Environment) -> Mapping[KeptPlace, str]:
    config = user_config_path(environment._replace(config=None))
    found: dict[KeptPlace, str | None] = {
        "cache": user_cache_folder(environment),
        "data": user_data_folder(environment),
        "state": user_state_folder(environment),
        "config": os.path.dirname(config) if config is not None else None,
    }
    return {place: path for place, path in found.items() if path is not None}


def kept_folder(place: KeptPlace, path: str) -> KeptFolder:
    """Return one of the user's folders, with what is there."""
    kind = files.kind_at(path)
    if kind is None:
        return KeptFolder(place, path)
    if kind == "link":
        return KeptFolder(place, path, True, f"it is a link to {files.link_target(path)}")
    if kind != "folder":
        return KeptFolder(place, path, True, f"it is a {kind}")
    # The folders above may be reached by links, which are the user's own.
    real = f"{files.real_path(os.path.dirname(path))}/{os.path.basename(path)}"
    folders: list[str] = []
    try:
        descriptor = files.open_folder(real)
        try:
            if files.owner_of_open(descriptor) != os.geteuid():
                return KeptFolder(place, path, True, "it belongs to another user")
            found = tuple(_found(place, real, descriptor, "", folders))
        finally:
            files.close(descriptor)
    except OSError as error:
        return KeptFolder(place, path, True, _unreadable(error))
    return KeptFolder(place, path, True, "", found, tuple(reversed(folders)))


def _unreadable(error: OSError) -> str:
    return f"it cannot be read: {(error.strerror or str(error)).lower()}"


def _found(place: KeptPlace, top: str, descriptor: int, below: str, folders: list[str]) -> Iterator[FoundFile]:
    """Yield the files below an open folder; the folders on the way are added to `folders`."""
    for name, is_folder in files.entries_in(descriptor):
        relative = f"{below}{name}"
        row = known_file(place, relative)
        if not is_folder or (row is not None and row.kind == "folder"):
            yield _found_file(place, top, descriptor, name, relative)
            continue
        if relative.count("/") >= _DEEPEST:
            yield FoundFile(top, relative, None, "it is deeper than any folder of ours")
            continue
        folders.append(relative)
        try:
            inner = files.open_folder_at(descriptor, name)
            try:
                yield from _found(place, top, inner, f"{relative}/", folders)
            finally:
                files.close(inner)
        except OSError as error:
            yield FoundFile(top, relative, None, _unreadable(error))


def _found_file(place: KeptPlace, top: str, descriptor: int, name: str, relative: str) -> FoundFile:
    row = known_file(place, relative)
    if row is None:
        return FoundFile(top, relative, None, "skillshelf did not make it")
    try:
        status = files.stat_at(descriptor, name)
    except FileNotFoundError:
        return FoundFile(top, relative, row)
    if (kind := files.kind_of(status.st_mode)) != row.kind:
        return FoundFile(top, relative, row, f"it is a {kind}")
    return FoundFile(top, relative, row, "" if status.st_uid == os.geteuid() else "it belongs to another user")
