"""Call a live source within a time limit, and check everything that it says: labels, entries, files.

A source is untrusted, and it may be slow or broken. It runs in a thread of its own; what it returns is copied into
plain values, so that nothing of it is left to surprise a caller later.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from skillshelf.catalog.load import (
    SKILL_FILE,
)
from skillshelf.catalog.rules import description_of
from skillshelf.catalog.source import (
    NOWHERE,
    SOURCE_SCHEME,
    ExecutableFile,
    Source,
    SourceEntry,
    SourceLimits,
    source_address,
)
from skillshelf.catalog.tree import TreeFile, parse_manifest, tree_digest
from skillshelf.core.limits import (
    FRONTMATTER_BYTES,
    FRONTMATTER_DEPTH,
    FRONTMATTER_KEYS,
    SKILL_FILE_BYTES,
    SOURCE_LABEL_CHARS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, folded_name, visible
from skillshelf.errors import (
    SkillError,
    SourceRefused,
    SourceUnreachable,
)

__all__ = ["QUOTED", "BoundedCall", "LiveSource", "Offer", "OfferedSkills", "fetch_files", "list_entries", "quoted"]

QUOTED = 200
"""Characters of a message of a source that are quoted."""

_Result = TypeVar("_Result")


# Calls --------------------------------------------------------------------------------------------


class BoundedCall(Generic[_Result]):
    """A call of a source in a thread of its own, which nobody waits for longer than a time limit."""

    def __init__(self, function: Callable[[], _Result]) -> None:
        self.is_late = False
        self._function = function
        self._results: list[_Result] = []
        self._errors: list[SkillError] = []
        # A thread that never ends must not keep the program from ending.
        self._thread = threading.Thread(target=self._run, name="skillshelf-source", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._function())
        except SkillError as error:
            self._errors.append(error)
        except BaseException as error:
            # Also what would end the program elsewhere: a source decides about itself only.
            self._errors.append(SourceRefused("exception", _described(error)))

    def ends_within(self, seconds: float) -> bool:
        """Return whether the call has ended, or does within some seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self, seconds: float) -> _Result:
        """Return what the call returned; raise a SkillError if it failed or takes too long."""
        self.is_late = not self.ends_within(max(0.0, seconds))
        if self.is_late:
            raise SourceUnreachable("it did not answer in time")
        for error in self._errors:
            raise error
        return self._results[0]


def _described(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    return cut(fold(text), QUOTED)


class LiveSource:
    """One source, with the entries that it listed last, or the problem with them."""

    def __init__(self, source: Source, taken: Iterable[str]) -> None:
        self.source = source
        self.label, self.problem = _label_of(source, taken)
        self.has_label = not self.problem
        self.offered: tuple[Offer, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.lock = threading.Lock()
        self._starting = threading.Lock()
        self._call: BoundedCall[Any] | None = None

    @property
    def address(self) -> str:
        return source_address(self.label)

    def start(self, function: Callable[[], _Result], seconds: float) -> BoundedCall[_Result]:
        """Start a call after the one before; raise SourceUnreachable if that is late: a source gets one thread."""
        with self._starting:
            if self._call is not None and not self._call.ends_within(0.0 if self._call.is_late else seconds):
                raise SourceUnreachable("it has not answered an earlier request yet")
            call = BoundedCall(function)
            self._call = call
            return call

    def call(self, function: Callable[[], _Result], seconds: float) -> _Result:
        return self.start(function, seconds).result(seconds)


def _label_of(source: Source, taken: Iterable[str]) -> tuple[str, str]:
    """Return the label of a source, and what is wrong with it."""
    try:
        label = source.label
    except Exception as error:
        return "", f"its label cannot be read: {_described(error)}"
    if not isinstance(label, str) or type(label) is not str:
        return "", f"its label is {_kind(label)}, not text"
    if not label or len(label) > SOURCE_LABEL_CHARS or label != fold(label) or not _is_utf8(label):
        shown = cut(visible(label), 40)
        return "", f"its label {shown!r} is not one line of 1 to {SOURCE_LABEL_CHARS} characters (SOURCE_LABEL_CHARS)"
    if folded_name(label) in map(folded_name, taken):
        return label, f"another source has the label {label!r}; each skill must have one origin"
    return label, ""


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _kind(value: object) -> str:
    return cut(fold(type(value).__name__), 60)


# Entries ------------------------------------------------------------------------------------------


class Offer:
    """A skill that a source offers, checked, with its files as far as they were fetched.

    `listed` is None while nobody but the source knows the files; `frontmatter` is what the source says of it.
    """

    def __init__(self, live: LiveSource, entry: SourceEntry, listed: Mapping[str, TreeFile] | None) -> None:
        self.live = live
        self.entry = entry
        self.listed = listed
        self.contents: dict[str, bytes] = {}
        # The version that a file of was handed out; it stays what it was while somebody uses it.
        self.tree = entry.tree
        self.dir = f"{live.address}/{entry.name}"
        self.real_dir = f"{NOWHERE}{live.address.removeprefix(SOURCE_SCHEME)}/{entry.name}/{entry.tree or '-'}"

    @property
    def version(self) -> tuple[object, ...]:
        entry = self.entry
        return (self.real_dir, entry.description, entry.path, json.dumps(entry.frontmatter, sort_keys=True))


class OfferedSkills(NamedTuple):
    """The accepted entries of a source, a sentence for each that is left out, and remarks of the source."""

    offered: tuple[Offer, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...] = ()


def list_entries(live: LiveSource, limits: SourceLimits) -> OfferedSkills:
    """Ask a source for its entries, and check each; it runs in the thread of the source."""
    offered: dict[str, Offer] = {}
    left_out = []
    for number, entry in enumerate(live.source.list()):
        if number >= limits.entries:
            left_out.append(f"everything after the first {limits.entries} entries (SOURCE_ENTRIES)")
            break
        try:
            offer = _offer(live, entry, limits)
            if folded_name(offer.entry.name) in offered:
                raise ValueError(f"{quoted(offer.entry.name)} is listed twice")
            offered[folded_name(offer.entry.name)] = offer
        except ValueError as error:
            left_out.append(str(error))
    return OfferedSkills(tuple(offered.values()), tuple(left_out), _notes_of(live.source))


def _notes_of(source: Source) -> tuple[str, ...]:
    """Return the remarks that an installable source has; others have none."""
    notes = getattr(source, "notes", ())
    if not isinstance(notes, list | tuple):
        return ()
    return tuple(cut(fold(visible(note)), QUOTED) for note in notes[:_NOTES] if isinstance(note, str))


_NOTES = 20


def _offer(live: LiveSource, entry: object, limits: SourceLimits) -> Offer:
    """Return an entry with plain, checked members; raise ValueError with the reason if it cannot be used."""
    if not isinstance(entry, SourceEntry):
        raise ValueError(f"an entry is {_kind(entry)}, not a SourceEntry")
    name, description, frontmatter, tree, path, manifest = entry
    if type(name) is not str or type(description) is not str or type(path) is not str:
        raise ValueError("name, description and path of an entry are texts")
    if not _is_name(name):
        raise ValueError(f"{quoted(name)} is not a name that can be part of an address")
    fields = _plain_fields(name, frontmatter)
    if fields.setdefault("name", name) != name or description_of(fields) not in ("", description.strip()):
        raise ValueError(f"{quoted(name)} has another name or description in its frontmatter than in its entry")
    fields.setdefault("description", description)
    listed = _manifest_files(name, manifest, limits)
    digest = tree_digest(listed) if listed is not None else None
    if tree is not None and not _is_digest(tree):
        raise ValueError(f"{quoted(name)} has a tree that is not `sha256:` and 64 hexadecimal digits")
    if digest is not None and tree not in (None, digest):
        raise ValueError(f"{quoted(name)} has a manifest that its tree is not the digest of")
    return Offer(live, SourceEntry(name, description.strip(), fields, tree or digest, path, manifest), listed)


def _is_name(name: str) -> bool:
    if name in ("", ".", "..") or len(name) > 255 or not _is_utf8(name):
        return False
    return not any(c in "/\\\u2028\u2029" or c < " " or "\x7f" <= c < "\xa0" for c in name)


def _is_digest(tree: object) -> bool:
    if type(tree) is not str or len(tree) != 71 or not tree.startswith("sha256:"):
        return False
    return set(tree[7:]) <= set("0123456789abcdef")


def quoted(name: str) -> str:
    return repr(cut(visible(name.encode("utf-8", "replace").decode()), 60))


def _plain_fields(name: str, frontmatter: object) -> dict[str, Any]:
    if not isinstance(frontmatter, Mapping):
        raise ValueError(f"the frontmatter of {quoted(name)} is {_kind(frontmatter)}, not a mapping")
    budget = [FRONTMATTER_BYTES, FRONTMATTER_KEYS]
    try:
        fields: dict[str, Any] = _plain(frontmatter, FRONTMATTER_DEPTH, budget)
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"the frontmatter of {quoted(name)} {error}") from None
    return fields


def _plain(value: object, depth: int, budget: list[int]) -> Any:
    """Return a copy of a JSON value; raise ValueError if it is none, or more than a frontmatter may hold."""
    if depth < 0:
        raise ValueError(f"is deeper than {FRONTMATTER_DEPTH} levels (FRONTMATTER_DEPTH)")
    budget[0] -= len(value.encode("utf-8")) if isinstance(value, str) else 8
    if isinstance(value, Mapping):
        budget[1] -= len(value)
    if budget[0] < 0 or budget[1] < 0:
        raise ValueError(f"has more than {FRONTMATTER_BYTES} bytes or {FRONTMATTER_KEYS} keys (FRONTMATTER_BYTES)")
    if value is None or type(value) in (str, bool):
        return value
    if type(value) is int and abs(value) < 2**63:
        return value
    if type(value) is float and value - value == 0:
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1, budget) for item in value]
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {_plain(key, depth, budget): _plain(value[key], depth - 1, budget) for key in value}
    raise ValueError(f"holds {_kind(value)}, which no frontmatter can")


def _manifest_files(name: str, manifest: object, limits: SourceLimits) -> dict[str, TreeFile] | None:
    if manifest is None:
        return None
    # A line has at least 70 characters, and at most a path of 1,024 bytes more.
    if type(manifest) is not str or len(manifest) > limits.files * 1200:
        raise ValueError(f"{quoted(name)} has a manifest that is no text or too long")
    listed = parse_manifest(manifest)
    if listed is None:
        raise ValueError(f"{quoted(name)} has a manifest that is not a skill-tree-v1")
    if reason := _too_much(listed, limits):
        raise ValueError(f"{quoted(name)} {reason}")
    if SKILL_FILE not in listed or listed[SKILL_FILE].size > SKILL_FILE_BYTES:
        raise ValueError(f"{quoted(name)} has no {SKILL_FILE} of at most {SKILL_FILE_BYTES} bytes")
    return listed


def _too_much(listed: Mapping[str, TreeFile], limits: SourceLimits) -> str:
    if len(listed) > limits.files:
        return f"has {len(listed)} files; at most {limits.files} (TREE_FILES)"
    size = sum(file.size for file in listed.values())
    return f"has {size} bytes; at most {limits.bytes} (TREE_BYTES)" if size > limits.bytes else ""


# Files --------------------------------------------------------------------------------------------


def fetch_files(offer: Offer, paths: Sequence[str], limits: SourceLimits) -> dict[str, bytes]:
    """Ask a source for files, and check their form; it runs in the thread of the source."""
    answer: object = offer.live.source.fetch(offer.entry, tuple(paths), limits)
    if not isinstance(answer, Mapping):
        raise SourceRefused("type", f"it returned {_kind(answer)} instead of files by their paths")
    wanted = paths or list(_first(answer, limits.files + 1))
    contents: dict[str, bytes] = {}
    size = 0
    for path in wanted:
        if path not in answer:
            raise SourceRefused("missing-file", f"it did not return {visible(path)}")
        data = answer[path]
        if type(path) is not str or not isinstance(data, bytes):
            raise SourceRefused("type", f"it returned {_kind(data)} as a file; a file is bytes")
        size += len(data)
        if len(contents) >= limits.files or size > limits.bytes:
            raise SourceRefused("too-large", f"it returned more than {limits.files} files or {limits.bytes} bytes")
        is_executable = isinstance(data, ExecutableFile)
        contents[path] = ExecutableFile(data) if is_executable else bytes(data)
    return contents


def _first(items: Iterable[Any], most: int) -> Iterable[Any]:
    for _, item in zip(range(most), items, strict=False):
        yield item
