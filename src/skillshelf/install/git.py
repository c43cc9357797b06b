"""Read skills from a git repository: fetch one commit into a bare repository and read its objects.

Nothing is checked out, so no filter, hook, line-end conversion, link or case folding changes a byte.
"""

import re
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence

from skillshelf.catalog.source import ExecutableFile, SourceEntry, SourceIdentity, SourceLimits
from skillshelf.core import files
from skillshelf.core.disk_writes import make_owned_folder, remove_owned_folder, sweep_owned_folders
from skillshelf.core.limits import GIT_LISTING_BYTES, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import SkillError, SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.git_process import GitAnswer, GitProcess
from skillshelf.install.reference import SourceContext, SourceReference
from skillshelf.install.skill_entries import (
    SKILL_FILE,
    check_names,
    check_sizes,
    chosen_folders,
    entry_of,
    files_below,
    some_of,
)

__all__ = ["FetchedCommit", "GitFile", "GitSource"]

_PREFIX = "skillshelf-git-"
_WANTED = "refs/skillshelf/wanted"
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES = 1024


class GitFile(NamedTuple):
    """An entry of a commit: its mode, the id of its object, and its size, which a submodule does not have."""

    mode: str
    id: str
    size: int

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.mode in ("100644", "100755", "100664")


class GitSource:
    """Skills in a git repository, at the commit that its ref names when it is first asked."""

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self.label = reference.canonical
        self.notes: list[str] = []
        self._reference = reference
        self._context = context
        self._fetched: FetchedCommit | None = None

    def list(self) -> Iterable[SourceEntry]:
        """Return the skills in the repository; those that cannot be read are left out with a note."""
        fetched, path = self._commit(), self._reference.path
        folders = chosen_folders(fetched.files, path, self._context.limits, self.label)
        texts = {folder: fetched.files[f"{folder}/{SKILL_FILE}".lstrip("/")] for folder in folders}
        refused = {folder: why for folder, file in texts.items() if (why := _unreadable(folder, file)) is not None}
        if len(folders) == 1 and refused:
            raise next(iter(refused.values()))
        self.notes = [f"{visible(folder)} is left out: {why.reason}" for folder, why in refused.items()]
        readable = [folder for folder in folders if folder not in refused]
        data = fetched.read([texts[folder] for folder in readable])
        name = self._reference.location.rstrip("/").rpartition("/")[2].removesuffix(".git")
        return [entry_of(folder, data[texts[folder].id], name) for folder in readable]

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of a skill at that commit."""
        fetched = self._commit()
        found = files_below(fetched.files, entry.path)
        if SKILL_FILE not in found:
            raise SourceNotFound(f"{visible(self.label)}: no {SKILL_FILE} found in {visible(entry.path or '.')!r}")
        return some_of(fetched.contents(found, limits), paths)

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return the repository with the commit that was read."""
        commit = self._commit().id
        return SourceIdentity(self.label, entry.path, self._reference.ref, commit, None, self._publisher())

    def paths(self) -> Collection[str]:
        """Return the paths of all entries of the commit."""
        return self._commit().files

    def read(self, path: str, limit: int) -> bytes | None:
        """Return one file of the commit, or None if there is no such regular file of at most so many bytes."""
        file = self._commit().files.get(path)
        if file is None or not file.is_file or file.size > limit:
            return None
        return self._commit().read([file])[file.id]

    def _publisher(self) -> str:
        scheme, _, rest = self._reference.location.partition("://")
        if scheme == "file":
            return "a repository on this machine"
        host, _, path = rest.rpartition("@")[2].partition("/")
        return f"{host}/{path.rpartition('/')[0]}".rstrip("/")

    def _commit(self) -> "FetchedCommit":
        if self._fetched is None:
            self._fetched = FetchedCommit(self._reference, self._context)
        return self._fetched


def _unreadable(folder: str, file: GitFile) -> SourceRefused | None:
    try:
        check_names([folder] if folder else [])
    except SourceRefused as refused:
        return refused
    if not file.is_file:
        return _refusal_of(SKILL_FILE, file)
    if file.size > SKILL_FILE_BYTES:
        return SourceRefused("too-large", f"its {SKILL_FILE} has {file.size} bytes; at most {SKILL_FILE_BYTES}")
    return None


def _refusal_of(path: str, file: GitFile) -> SourceRefused:
    rule = {"120000": "link", "160000": "submodule"}.get(file.mode, "special-file")
    return SourceRefused(rule, f"it holds {visible(path)!r}, which is a {rule.replace('-', ' ')}")


class FetchedCommit:
    """One commit of a repository, fetched into a private folder that goes with this object.

    `files` are all its entries by path; a path that is not UTF-8 has surrogates in it.
    """

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self._reference = reference
        self._label = visible(reference.canonical)
        self._address = _address(reference, context)
        sweep_owned_folders(_PREFIX, seconds=0.5)
        try:
            folder = make_owned_folder(_PREFIX)
        except OSError as error:
            raise SourceUnreachable(f"no temporary folder can be made for {self._label}: {error.strerror}") from None
        self._remove = weakref.finalize(self, remove_owned_folder, folder)
        try:
            scheme = reference.location.partition("://")[0]
            self._git = GitProcess(f"{folder.path}/repository", scheme, context)
            self.id = self._fetch(folder.path, context)
            self.files = self._list()
        except SkillError:
            self._remove()
            raise
        except OSError as error:
            self._remove()
            raise SourceUnreachable(f"git cannot be run for {self._label}: {error.strerror}") from None

    def _fetch(self, folder: str, context: SourceContext) -> str:
        """Fetch the commit of the ref, and return its id."""
        git, ref = self._git, self._reference.ref or "HEAD"
        GitProcess(folder, "file", context).check_version()
        made = GitProcess(folder, "file", context).run(
            *("init", "--quiet", "--bare", "--template=", "--object-format=sha1", f"{folder}/repository"), limit=1024
        )
        if made.status:
            raise SourceUnreachable(f"git cannot make a repository in {folder}: {made.errors}")
        if context.progress is not None:
            context.progress(f"fetching {self._label}")
        options = ("--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--progress")
        answer = git.run(
            *("fetch", *options, "--end-of-options", self._address, f"+{ref}:{_WANTED}"),
            limit=1 << 20,
            what=f"fetching {self._label}",
        )
        if answer.status:
            raise _failure(answer, self._label, ref)
        found = git.run("rev-parse", "--verify", "--end-of-options", f"{_WANTED}^{{commit}}", limit=1024)
        commit = found.output.decode("ascii", "replace").strip()
        if found.status or not _COMMIT.match(commit):
            raise SourceRefused("ref", f"{self._label}: {visible(ref)!r} does not name a commit")
        if _COMMIT.match(ref) and commit != ref:
            raise SourceRefused("ref", f"{self._label}: asked for {ref}, and got {visible(commit)}")
        return commit

    def _list(self) -> dict[str, GitFile]:
        answer = self._git.run("ls-tree", "-r", "-z", "-l", "--full-tree", self.id, limit=GIT_LISTING_BYTES)
        if answer.status:
            raise SourceRefused("damaged", f"{self._label}: its files cannot be listed: {answer.errors}")
        found: dict[str, GitFile] = {}
        for line in answer.output.split(b"\0")[:-1]:
            about, _, name = line.partition(b"\t")
            mode, _, object_id, size = about.decode("ascii").split()
            path = name.decode("utf-8", "surrogateescape")
            if path in found:
                raise SourceRefused("duplicate", f"{self._label}: it holds {visible(path)!r} twice")
            found[path] = GitFile(mode, object_id, 0 if size == "-" else int(size))
        return found

    def contents(self, found: Mapping[str, GitFile], limits: SourceLimits) -> dict[str, bytes]:
        """Return the bytes of these files, checked as those of a skill."""
        for path, file in found.items():
            if not file.is_file:
                raise _refusal_of(path, file)
        check_names(found)
        check_sizes({path: file.size for path, file in found.items()}, limits)
        data = self.read(list(found.values()))
        contents: dict[str, bytes] = {}
        for path, file in found.items():
            content = data[file.id]
            if len(content) < _LFS_BYTES and content.startswith(_LFS):
                reason = f"{visible(path)!r} is a pointer to a file that Git LFS keeps elsewhere"
                raise SourceRefused("lfs-pointer", f"it holds no such file: {reason}")
            contents[path] = ExecutableFile(content) if file.mode == "100755" else content
        return contents

    def read(self, wanted: Sequence[GitFile]) -> dict[str, bytes]:
        """Return the bytes of regular files by the ids of their objects."""
        sizes = {file.id: file.size for file in wanted}
        asked = "".join(f"{object_id}\n" for object_id in sizes).encode()
        answer = self._git.run(
            *("cat-file", "--batch", "--buffer"), limit=sum(sizes.values()) + 128 * len(sizes) + 1024, sent=asked
        )
        found, at = {}, 0
        for object_id, size in sizes.items():
            head = f"{object_id} blob {size}\n".encode()
            end = at + len(head) + size
            if answer.output[at : at + len(head)] != head or answer.output[end : end + 1] != b"\n":
                raise SourceRefused("damaged", f"{self._label}: the object {object_id} cannot be read")
            found[object_id] = answer.output[end - size : end]
            at = end + 1
        return found


def _address(reference: SourceReference, context: SourceContext) -> str:
    """Return what git is told to fetch from; raise SourceRefused for a transport that is not allowed."""
    scheme, _, path = reference.location.partition("://")
    if scheme == "http" and not context.allow_http:
        raise SourceRefused("plain-http", f"{visible(reference.canonical)} is plain HTTP; --allow-http allows it")
    if scheme == "file":
        path = files.real_path(path)
        if files.kind_at(path) != "folder":
            raise SourceNotFound(f"no such folder: {visible(path)}")
        # Such a repository reads its objects from another one, which the user did not name.
        for objects in (f"{path}/objects", f"{path}/.git/objects"):
            if files.kind_at(f"{objects}/info/alternates") is not None:
                raise SourceRefused("alternates", f"{visible(path)} takes its objects from another repository")
        # Git decodes escapes in an address, and not in a path.
        return path
    if context.offline:
        raise SourceUnreachable(f"{visible(reference.canonical)} cannot be fetched offline")
    return reference.location


_FAILURES: Sequence[tuple[str, str]] = (
    (r"couldn't find remote ref|no such remote ref|not our ref|no matching remote head", "no-ref"),
    (r"transport '.*' not allowed|not permitted", "transport"),
    (r"returned error: 3[0-9][0-9]|redirection", "redirect"),
    (r"dubious ownership", "ownership"),
    (r"mismatched algorithms|object format", "object-format"),
    (r"out of memory|malloc|died of signal 25|File too large", "too-large"),
    (r"fsck error|error: object [0-9a-f]{40}", "fsck"),
    (r"not found|does not exist|does not appear to be a git repository|not a git repository", "no-repository"),
    (r"Authentication failed|could not read (?:User|Pass)|ould not read from remote|returned error: 40[13]", "login"),
)
"""The messages of git when a fetch fails, and what each means; the first row that fits counts."""

_REFUSED = {
    "transport": "its transport is not allowed",
    "redirect": "it answers with another address; use that one (some servers want .git at the end)",
    "ownership": "it belongs to another user, and git's safe.directory does not name it",
    "object-format": "its objects are not named by SHA-1",
    "too-large": "it is larger than a repository may be",
    "fsck": "git refuses its objects",
}


def _failure(answer: GitAnswer, label: str, ref: str) -> SkillError:
    """Return the error for a fetch that failed."""
    said = answer.errors
    kind = next((kind for pattern, kind in _FAILURES if re.search(pattern, said, re.IGNORECASE)), "")
    if kind in _REFUSED:
        return SourceRefused(kind, f"{label}: {_REFUSED[kind]}: {said}")
    if kind == "no-ref":
        hint = "; a commit is given by its 40 hex digits" if re.fullmatch("[0-9a-f]{4,39}", ref) else ""
        return SourceNotFound(f"{label} has no branch, tag or commit {visible(ref)!r}{hint}")
    if kind == "no-repository":
        return SourceNotFound(f"{label} is not a repository: {said}")
    if kind == "login":
        return SourceUnreachable(f"{label} does not exist, or git has no credentials for it: {said}")
    return SourceUnreachable(f"{label} cannot be fetched: {said}")
