"""Add the skills of live sources to a catalog, and fetch their files when they are used, each checked.

What a source says is untrusted. It runs in a thread of its own within a time limit, and everything it returns is
checked: types, names, sizes and digests. A source that fails is one error of the catalog. A skill of a source is
hidden from models until the user approved exactly its files as they come from that source.

Files are fetched when they are needed and held in memory. The store keeps whole trees only, so a skill moves there
once all its files were fetched and the user approved them for good; before that it is in quarantine: nowhere on disk.
"""

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from skillshelf.catalog.build import FILTERS, diagnostic_key, order_key
from skillshelf.catalog.build_context import make_skill
from skillshelf.catalog.document import parse
from skillshelf.catalog.load import (
    SKILL_FILE,
    LoadedSkill,
    Resource,
    SkillFolder,
    listing_of,
    loaded_from,
    parse_address,
    resource_of,
)
from skillshelf.catalog.look_alikes import find_look_alikes
from skillshelf.catalog.rules import check, description_of
from skillshelf.catalog.source import NOWHERE, SOURCE_SCHEME, ExecutableFile, Source, SourceEntry, SourceLimits
from skillshelf.catalog.store import listed_files, store_of
from skillshelf.catalog.tree import SkillTree, TreeFile, parse_manifest, tree_digest
from skillshelf.config.approvals import Approval, is_origin_approved, read_approvals
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.config.system_policy import SystemPolicy, source_refusal
from skillshelf.core.digests import sha256
from skillshelf.core.environment import Environment
from skillshelf.core.limits import (
    FRONTMATTER_BYTES,
    FRONTMATTER_DEPTH,
    FRONTMATTER_KEYS,
    LISTED_CHILDREN,
    REMOTE_BYTES,
    SKILL_FILE_BYTES,
    SOURCE_LABEL_CHARS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, encoded_path, fold, folded_name, visible, visible_for_model
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic, Filtered, Root, RootReport, Shadowed
from skillshelf.errors import (
    LimitExceeded,
    PathEscape,
    PermissionDenied,
    ResourceNotFound,
    SkillError,
    SkillNotFound,
    SourceRefused,
    SourceUnreachable,
)

__all__ = ["UNAPPROVED", "RemoteSkills"]

UNAPPROVED = "rule: not approved as it comes from its source"
"""What hides a skill of a source from models until the user approves it."""

_RULE = "source-failed"
_SHOWN_PROBLEMS = 3
_QUOTED = 200
_Result = TypeVar("_Result")


# Calls --------------------------------------------------------------------------------------------


class _BoundedCall(Generic[_Result]):
    """A call of a source in a thread of its own, which nobody waits for longer than a time limit."""

    def __init__(self, function: Callable[[], _Result]) -> None:
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

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def result(self, seconds: float) -> _Result:
        """Return what the call returned; raise a SkillError if it failed or takes too long."""
        self._thread.join(max(0.0, seconds))
        if self._thread.is_alive():
            raise SourceUnreachable("it did not answer in time")
        for error in self._errors:
            raise error
        return self._results[0]


def _described(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    return cut(fold(text), _QUOTED)


class _LiveSource:
    """One source, with the entries that it listed last, or the problem with them."""

    def __init__(self, source: Source, taken: Iterable[str]) -> None:
        self.source = source
        self.label, self.problem = _label_of(source, taken)
        self.has_label = not self.problem
        self.offered: tuple[_Offer, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self.lock = threading.Lock()
        self._call: _BoundedCall[Any] | None = None

    @property
    def quoted_label(self) -> str:
        return quote(self.label, safe=_IN_LABEL)

    @property
    def address(self) -> str:
        return f"{SOURCE_SCHEME}{self.quoted_label}"

    def start(self, function: Callable[[], _Result]) -> _BoundedCall[_Result]:
        """Start a call; raise SourceUnreachable while an earlier one still runs: a source gets one thread."""
        if self._call is not None and self._call.is_running:
            raise SourceUnreachable("it has not answered an earlier request yet")
        call = _BoundedCall(function)
        self._call = call
        return call

    def call(self, function: Callable[[], _Result], seconds: float) -> _Result:
        return self.start(function).result(seconds)


_IN_LABEL = ":@"


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


class _Offer:
    """A skill that a source offers, checked, with its files as far as they were fetched.

    `listed` is None while nobody but the source knows the files; `frontmatter` is what the source says of it.
    """

    def __init__(self, live: _LiveSource, entry: SourceEntry, listed: Mapping[str, TreeFile] | None) -> None:
        self.live = live
        self.entry = entry
        self.listed = listed
        self.contents: dict[str, bytes] = {}
        # The version that a file of was handed out; it stays what it was while somebody uses it.
        self.tree = entry.tree
        self.dir = f"{live.address}/{entry.name}"
        self.real_dir = f"{NOWHERE}{live.quoted_label}/{entry.name}/{entry.tree or '-'}"

    @property
    def version(self) -> tuple[object, ...]:
        entry = self.entry
        return (self.real_dir, entry.description, entry.path, json.dumps(entry.frontmatter, sort_keys=True))


class _Listing(NamedTuple):
    """The accepted entries of a source, and a sentence for each that is left out."""

    offered: tuple[_Offer, ...]
    left_out: tuple[str, ...]


def _list_entries(live: _LiveSource, limits: SourceLimits) -> _Listing:
    """Ask a source for its entries, and check each; it runs in the thread of the source."""
    offered: dict[str, _Offer] = {}
    left_out = []
    for number, entry in enumerate(live.source.list()):
        if number >= limits.entries:
            left_out.append(f"everything after the first {limits.entries} entries (SOURCE_ENTRIES)")
            break
        try:
            offer = _offer(live, entry, limits)
            if folded_name(offer.entry.name) in offered:
                raise ValueError(f"{_quoted(offer.entry.name)} is listed twice")
            offered[folded_name(offer.entry.name)] = offer
        except ValueError as error:
            left_out.append(str(error))
    return _Listing(tuple(offered.values()), tuple(left_out))


def _offer(live: _LiveSource, entry: object, limits: SourceLimits) -> _Offer:
    """Return an entry with plain, checked members; raise ValueError with the reason if it cannot be used."""
    if not isinstance(entry, SourceEntry):
        raise ValueError(f"an entry is {_kind(entry)}, not a SourceEntry")
    name, description, frontmatter, tree, path, manifest = entry
    if type(name) is not str or type(description) is not str or type(path) is not str:
        raise ValueError("name, description and path of an entry are texts")
    if not _is_name(name):
        raise ValueError(f"{_quoted(name)} is not a name that can be part of an address")
    fields = _plain_fields(name, frontmatter)
    if fields.setdefault("name", name) != name or description_of(fields) not in ("", description.strip()):
        raise ValueError(f"{_quoted(name)} has another name or description in its frontmatter than in its entry")
    fields.setdefault("description", description)
    listed = _manifest_files(name, manifest, limits)
    digest = tree_digest(listed) if listed is not None else None
    if tree is not None and not _is_digest(tree):
        raise ValueError(f"{_quoted(name)} has a tree that is not `sha256:` and 64 hexadecimal digits")
    if digest is not None and tree not in (None, digest):
        raise ValueError(f"{_quoted(name)} has a manifest that its tree is not the digest of")
    return _Offer(live, SourceEntry(name, description.strip(), fields, tree or digest, path, manifest), listed)


def _is_name(name: str) -> bool:
    if name in ("", ".", "..") or len(name) > 255 or not _is_utf8(name):
        return False
    return not any(c in "/\\\u2028\u2029" or c < " " or "\x7f" <= c < "\xa0" for c in name)


def _is_digest(tree: object) -> bool:
    if type(tree) is not str or len(tree) != 71 or not tree.startswith("sha256:"):
        return False
    return set(tree[7:]) <= set("0123456789abcdef")


def _quoted(name: str) -> str:
    return repr(cut(visible(name.encode("utf-8", "replace").decode()), 60))


def _plain_fields(name: str, frontmatter: object) -> dict[str, Any]:
    if not isinstance(frontmatter, Mapping):
        raise ValueError(f"the frontmatter of {_quoted(name)} is {_kind(frontmatter)}, not a mapping")
    budget = [FRONTMATTER_BYTES, FRONTMATTER_KEYS]
    try:
        fields: dict[str, Any] = _plain(frontmatter, FRONTMATTER_DEPTH, budget)
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"the frontmatter of {_quoted(name)} {error}") from None
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
        raise ValueError(f"{_quoted(name)} has a manifest that is no text or too long")
    listed = parse_manifest(manifest)
    if listed is None:
        raise ValueError(f"{_quoted(name)} has a manifest that is not a skill-tree-v1")
    if reason := _too_much(listed, limits):
        raise ValueError(f"{_quoted(name)} {reason}")
    if SKILL_FILE not in listed or listed[SKILL_FILE].size > SKILL_FILE_BYTES:
        raise ValueError(f"{_quoted(name)} has no {SKILL_FILE} of at most {SKILL_FILE_BYTES} bytes")
    return listed


def _too_much(listed: Mapping[str, TreeFile], limits: SourceLimits) -> str:
    if len(listed) > limits.files:
        return f"has {len(listed)} files; at most {limits.files} (TREE_FILES)"
    size = sum(file.size for file in listed.values())
    return f"has {size} bytes; at most {limits.bytes} (TREE_BYTES)" if size > limits.bytes else ""


# Files --------------------------------------------------------------------------------------------


def _fetched(offer: _Offer, paths: Sequence[str], limits: SourceLimits) -> dict[str, bytes]:
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


class RemoteSkills:
    """The skills of live sources, for one shelf. It is safe to use from several threads."""

    def __init__(self, sources: Sequence[Source], environment: Environment, limits: SourceLimits | None = None) -> None:
        self._environment = environment
        self._limits = limits or SourceLimits()
        self._sources: list[_LiveSource] = []
        for source in sources:
            self._sources.append(_LiveSource(source, [live.label for live in self._sources if live.has_label]))
        self._offers: dict[str, _Offer] = {}
        self._lock = threading.Lock()
        self._listed_at = 0.0

    # Listing --------------------------------------------------------------------------------------

    def refresh(self, older_than: float = 0.0) -> None:
        """Ask every source what it offers, all at the same time; not again within some seconds."""
        if older_than and time.monotonic() - self._listed_at < older_than:
            return
        end = time.monotonic() + self._limits.seconds
        calls = [(live, self._start_list(live)) for live in self._sources if live.has_label]
        for live, call in calls:
            _take_list(live, call, end - time.monotonic())
        self._listed_at = time.monotonic()
        with self._lock:
            # Files of an older version are kept for those who use it.
            known = {key: offer for key, offer in self._offers.items() if offer.contents}
            current = {offer.real_dir: offer for live in self._sources for offer in live.offered}
            self._offers = {**current, **{k: o for k, o in known.items() if o.version == _version(current, k, o)}}
            self._trim()

    def _start_list(self, live: _LiveSource) -> _BoundedCall[_Listing] | SkillError:
        try:
            return live.start(lambda: _list_entries(live, self._limits))
        except SkillError as error:
            return error

    def merged(self, catalog: Catalog, profile: Profile, settings: Settings) -> Catalog:
        """Return a catalog with the skills that the sources listed last; no name of a local skill changes hands."""
        report = _Report([], [], [], [], [], {})
        approvals = self._approvals(report)
        found: list[CatalogSkill] = []
        for live in self._sources:
            root = len(catalog.roots) + len(report.roots)
            refused = _refusal(settings.system, live.label)
            skills = [] if refused else self._accepted(live, root, approvals, profile, settings, report)
            report.failed(live, refused)
            report.roots.append(RootReport(live.address, "remote", not (live.problem or refused), 0))
            found += skills
        kept = _settled(found, catalog, report)
        counts = [sum(skill.root == len(catalog.roots) + n for skill in kept) for n in range(len(report.roots))]
        roots = (*catalog.roots, *(root._replace(skills=n) for root, n in zip(report.roots, counts, strict=True)))
        skills = sorted([*catalog.skills, *kept], key=order_key(profile, roots))
        remote = {skill.path for skill in kept}
        alike = [one for one in find_look_alikes(skills) if one.path in remote and profile.rules[one.rule] == "warn"]
        return catalog._replace(
            roots=roots,
            skills=tuple(skills),
            errors=tuple(sorted([*catalog.errors, *report.errors], key=diagnostic_key)),
            warnings=tuple(sorted(dict.fromkeys([*catalog.warnings, *report.warnings, *alike]), key=diagnostic_key)),
            shadowed=tuple(sorted([*catalog.shadowed, *report.shadowed], key=lambda loser: (loser.name, loser.path))),
            filtered=tuple(sorted([*catalog.filtered, *report.filtered], key=lambda entry: entry[:3])),
        )

    def _approvals(self, report: "_Report | None" = None) -> Sequence[Approval]:
        """Return the approvals of the user; none, with an error, if they cannot be read."""
        try:
            return read_approvals(self._environment)
        except SkillError as error:
            if report is not None:
                message = f"no skill of a source is approved: {cut(fold(str(error)), _QUOTED)}"
                report.errors.append(Diagnostic(SOURCE_SCHEME, _RULE, message))
            return ()

    def _accepted(
        self,
        live: _LiveSource,
        root_index: int,
        approvals: Sequence[Approval],
        profile: Profile,
        settings: Settings,
        report: "_Report",
    ) -> list[CatalogSkill]:
        """Return the skills of a source that profile and settings accept."""
        skills = []
        for offer in live.offered:
            entry = offer.entry
            if reason := _rejected(entry, f"{offer.dir}/{SKILL_FILE}", profile, report.warnings):
                report.rejected.setdefault(live.label, []).append(f"{_quoted(entry.name)}: {reason}")
                continue
            approved = entry.tree is not None and is_origin_approved(approvals, "skill_load", live.label, entry.tree)
            root = Root(live.address, None, "custom", "remote", live.label, "never", approved, untrusted_by=UNAPPROVED)
            skill = make_skill(
                entry.name,
                entry.description,
                f"{offer.dir}/{SKILL_FILE}",
                real_path=f"{offer.real_dir.rpartition('/')[0]}/{SKILL_FILE}",
                real_dir=offer.real_dir,
                root=root,
                root_index=root_index,
                stamp=None,
                fields=entry.frontmatter,
                settings=settings,
                profile=profile,
            )
            reasons = (FILTERS[name](skill, root, settings) for name in profile.filters)
            filtered = next((reason for reason in reasons if reason is not None), None)
            if filtered is not None:
                report.filtered.append(Filtered(skill.name, skill.path, filtered))
            else:
                skills.append(skill)
        return skills

    # Using ----------------------------------------------------------------------------------------

    def load(self, skill: CatalogSkill, profile: Profile) -> LoadedSkill:
        """Fetch the SKILL.md of a skill and return it; its `allowed-tools` count for nothing.

        Raise SourceRefused if it is not what the source said, SourceUnreachable if the source does not answer.
        """
        offer = self._offer(skill.real_dir)
        data = self._file(offer, SKILL_FILE)
        if len(data) > SKILL_FILE_BYTES:
            raise LimitExceeded(f"{skill.path} has {len(data)} bytes; at most {SKILL_FILE_BYTES} are read")
        _require_same_fields(offer, data)
        listed = self._listed(offer)
        has = (any(path.startswith(f"{name}/") for path in listed) for name in ("scripts", "references", "assets"))
        listing = listing_of(listed, most=profile.listed_files, most_bytes=profile.listed_bytes)
        loaded = loaded_from(skill, data, 0, profile, folder=SkillFolder(listing, *has))
        fields = {key: value for key, value in loaded.frontmatter.items() if key != "allowed-tools"}
        return loaded._replace(warnings=(), frontmatter=fields)

    def read(self, uri: str, skill: CatalogSkill, profile: Profile, limit: int) -> Resource:
        """Fetch one file of a skill and return it; for a folder, a text with the names in it."""
        address = parse_address(uri)
        offer = self._offer(skill.real_dir)
        path = "/".join(address.segments) or SKILL_FILE
        shown = encoded_path(path)
        listed = self._listed(offer)
        if path not in listed:
            names = sorted({_child(other, path) for other in listed if other.startswith(f"{path}/")})
            if not names:
                raise ResourceNotFound(shown)
            more = [f"({len(names) - LISTED_CHILDREN} more are not listed)"] if len(names) > LISTED_CHILDREN else []
            text = "\n".join([*map(visible_for_model, names[:LISTED_CHILDREN]), *more])
            return resource_of(uri, f"{skill.dir}/{path}", "children.txt", text.encode(), profile)
        if address.is_folder:
            raise PathEscape(f"a slash follows the path of a file: {shown}/")
        if listed[path].size > limit:
            raise LimitExceeded(f"{shown} has {listed[path].size} bytes; at most {limit} are read")
        return resource_of(uri, f"{skill.dir}/{path}", shown, self._file(offer, path), profile)

    def tree(self, skill: CatalogSkill) -> SkillTree:
        """Return the files that an answer about a skill is about; those of an entry without a tree are fetched."""
        offer = self._offer(skill.real_dir)
        if offer.tree is not None and offer.listed is None:
            # Whether the files are those is checked when they are fetched.
            return SkillTree(offer.tree, None, 0, 0, offer.tree)
        listed = self._listed(offer)
        size = sum(file.size for file in listed.values())
        return SkillTree(offer.tree, None, len(listed), size, offer.tree, listed)

    def require_approved(self, skill: CatalogSkill) -> None:
        """Raise PermissionDenied unless the user approved the skill as its source offers it."""
        if skill.trusted or (self.tree(skill).digest and self._is_approved(self._offer(skill.real_dir))):
            return
        raise PermissionDenied(
            f"{skill.name} may not be used: it comes from {skill.source}, and nobody approved it; "
            'load it in a session whose `confirm` asks the user, who may answer "remember"'
        )

    def script_folder(self, real_dir: str) -> str:
        """Return a folder with exactly the files of an approved skill, to run a script from; fetch what is missing."""
        offer = self._offer(real_dir)
        self._listed(offer)
        if not self._is_approved(offer):
            raise PermissionDenied(
                f"{offer.entry.name} may not be used: no script of {offer.live.label} runs before the user approved "
                "the skill for good"
            )
        contents = self._whole(offer)
        store = store_of(self._environment)
        return store.path_of(store.put(contents))

    def approvals(self, tool: str, skills: Sequence[CatalogSkill]) -> list[Approval]:
        """Return the approvals of a tool for these skills as they come from their sources, whatever their files."""
        origins = [skill.source for skill in skills]
        return [one for one in read_approvals(self._environment) if _is_for(one, tool, origins)]

    # Files ----------------------------------------------------------------------------------------

    def _offer(self, real_dir: str) -> _Offer:
        with self._lock:
            offer = self._offers.get(real_dir)
        if offer is None:
            raise SkillNotFound(real_dir.split("/")[-2])
        return offer

    def _listed(self, offer: _Offer) -> Mapping[str, TreeFile]:
        """Return the files of a skill; without a manifest only all of them together can be checked."""
        if offer.listed is None:
            self._whole(offer)
        return offer.listed or {}

    def _file(self, offer: _Offer, path: str) -> bytes:
        """Return one file, its digest compared again; from the source if nobody fetched it yet."""
        known = self._listed(offer).get(path)
        if known is None:
            raise ResourceNotFound(path)
        with offer.live.lock:
            known_files = offer.contents if path in offer.contents else self._stored(offer)
            data = known_files[path] if path in known_files else self._fetch(offer, (path,))[path]
            _require_file(offer, path, data, known)
            offer.contents[path] = ExecutableFile(data) if known.executable else bytes(data)
        self._keep(offer)
        return data

    def _whole(self, offer: _Offer) -> dict[str, bytes]:
        """Return all files of a skill, each compared with its digest, or all with their tree."""
        with offer.live.lock:
            known, listed = {**self._stored(offer), **offer.contents}, offer.listed
            missing = [path for path in listed if path not in known] if listed is not None else []
            if listed is None and not known:
                known = self._fetch(offer, ())
                listed = _checked_files(offer, known)
            elif missing:
                known = {**known, **self._fetch(offer, missing)}
            listed = listed if listed is not None else _checked_files(offer, known)
            contents = {}
            for path, file in listed.items():
                _require_file(offer, path, known[path], file)
                contents[path] = ExecutableFile(known[path]) if file.executable else bytes(known[path])
            offer.listed, offer.tree, offer.contents = listed, tree_digest(listed), contents
        self._keep(offer)
        return contents

    def _fetch(self, offer: _Offer, paths: Sequence[str]) -> dict[str, bytes]:
        limits = self._limits
        try:
            return offer.live.call(lambda: _fetched(offer, paths, limits), limits.seconds)
        except SkillError as error:
            kind = type(error) if isinstance(error, SourceUnreachable) else None
            message = f"{offer.entry.name} of {offer.live.label}: {cut(fold(str(error)), _QUOTED)}"
            raise (kind(message) if kind else SourceRefused(getattr(error, "rule", "source"), message)) from None

    def _stored(self, offer: _Offer) -> Mapping[str, bytes]:
        """Return the files of a skill from the store, if they are there and intact; the store reads nothing else."""
        try:
            store = store_of(self._environment)
            return store.read(offer.tree) if offer.tree is not None and store.has(offer.tree) else {}
        except (SkillError, OSError):
            return {}

    def _is_approved(self, offer: _Offer) -> bool:
        label, tree = offer.live.label, offer.tree
        return tree is not None and is_origin_approved(self._approvals(), "skill_load", label, tree)

    def _keep(self, offer: _Offer) -> None:
        """Store a skill that is whole and approved for good; limit the memory that all others take."""
        listed, contents = offer.listed, offer.contents
        if listed is not None and contents.keys() == listed.keys() and self._is_approved(offer):
            try:
                store = store_of(self._environment)
                if not store.has(offer.tree or ""):
                    store.put(contents)
            except (SkillError, OSError):
                # Without a store the files stay in memory.
                return
        with self._lock:
            # The last one used is the last to go.
            if self._offers.get(offer.real_dir) is offer:
                self._offers[offer.real_dir] = self._offers.pop(offer.real_dir)
            self._trim(offer)

    def _trim(self, spared: _Offer | None = None) -> None:
        total = 0
        for offer in reversed(list(self._offers.values())):
            total += sum(map(len, offer.contents.values()))
            if total > REMOTE_BYTES and offer is not spared:
                offer.contents = {}
                if offer.entry.tree is None:
                    # What is fetched next may be other files: they are asked about again.
                    offer.listed = offer.tree = None


def _take_list(live: _LiveSource, call: _BoundedCall[_Listing] | SkillError, seconds: float) -> None:
    live.offered, live.left_out, live.problem = (), (), ""
    try:
        if isinstance(call, SkillError):
            raise call
        live.offered, live.left_out = call.result(seconds)
    except SkillError as error:
        live.problem = cut(fold(str(error)), _QUOTED)


def _version(current: Mapping[str, _Offer], key: str, offer: _Offer) -> tuple[object, ...]:
    """Return the version that an entry has now; an entry that is no longer offered keeps its own."""
    if key not in current:
        return offer.version
    # An entry without a tree may stand for other files now.
    return current[key].version if offer.entry.tree is not None else ()


class _Report(NamedTuple):
    """The lists that collect what a catalog reports about sources."""

    roots: list[RootReport]
    errors: list[Diagnostic]
    warnings: list[Diagnostic]
    shadowed: list[Shadowed]
    filtered: list[Filtered]
    rejected: dict[str, list[str]]

    def failed(self, live: _LiveSource, refused: str | None) -> None:
        """Add the one error of a source, if it has any."""
        left_out = (*live.left_out, *self.rejected.pop(live.label, ()))
        message = live.problem
        if refused:
            message = f"the system policy does not allow the source {live.label} ({refused})"
        elif not message and left_out:
            more = f"; and {len(left_out) - _SHOWN_PROBLEMS} more" if len(left_out) > _SHOWN_PROBLEMS else ""
            shown = "; ".join(cut(fold(text), _QUOTED) for text in left_out[:_SHOWN_PROBLEMS])
            message = f"{len(left_out)} left out: {shown}{more}"
        if message:
            self.errors.append(Diagnostic(live.address, _RULE, message))


def _refusal(system: SystemPolicy, label: str) -> str | None:
    return source_refusal(system, label) if system.files else None


def _rejected(entry: SourceEntry, path: str, profile: Profile, warnings: list[Diagnostic]) -> str:
    """Return why a profile rejects an entry, empty if it does not; the fields are checked as those of a file are."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in entry.frontmatter.items()]
    document = parse("\n".join(["---", *lines, "---", ""]).encode(), whole=True)
    for finding in check(document, entry.name, profile):
        severity = profile.rules[finding.rule]
        if severity == "reject":
            return f"{finding.message} ({finding.rule})"
        if severity == "warn":
            warnings.append(Diagnostic(path, finding.rule, finding.message))
    return ""


def _settled(found: Sequence[CatalogSkill], catalog: Catalog, report: _Report) -> list[CatalogSkill]:
    """Return the skills whose names are free: a local one always keeps its name, then one that is not hidden."""
    local = {folded_name(skill.name): skill for skill in reversed(catalog.skills)}
    by_name: dict[str, list[CatalogSkill]] = {}
    for skill in found:
        by_name.setdefault(folded_name(skill.name), []).append(skill)
    kept = []
    for name, same_name in by_name.items():
        winner = local.get(name) or next((skill for skill in same_name if skill.hidden is None), same_name[0])
        kept += [skill for skill in same_name if skill is winner]
        losers = [skill for skill in same_name if skill is not winner]
        report.shadowed.extend(Shadowed(loser.name, loser.path, winner.path, same_file=False) for loser in losers)
    return kept


def _checked_files(offer: _Offer, contents: Mapping[str, bytes]) -> dict[str, TreeFile]:
    """Return the files of a whole skill; raise SourceRefused unless they are those of its tree."""
    if SKILL_FILE not in contents:
        raise SourceRefused("no-skill", f"{offer.entry.name} of {offer.live.label} has no {SKILL_FILE}")
    listed = listed_files(contents)
    expected = offer.tree
    if expected is not None and tree_digest(listed) != expected:
        message = f"the files of {offer.entry.name} are not those that {offer.live.label} named: {expected}"
        raise SourceRefused("tree", message)
    return listed


def _require_file(offer: _Offer, path: str, data: bytes, known: TreeFile) -> None:
    if len(data) != known.size or sha256(data).hexdigest() != known.sha256:
        message = f"{visible(path)} of {offer.entry.name} is not the file that {offer.live.label} named; refresh"
        raise SourceRefused("digest", message)


def _require_same_fields(offer: _Offer, data: bytes) -> None:
    """Raise SourceRefused if a SKILL.md says something else of itself than its entry."""
    fields = parse(data, whole=True).fields
    for key, said in offer.entry.frontmatter.items():
        found = fields.get(key)
        if key == "description" and isinstance(found, str) and isinstance(said, str):
            found, said = found.strip(), said.strip()
        if json.dumps(found, sort_keys=True) != json.dumps(said, sort_keys=True):
            message = f"`{visible(cut(key, 60))}` of {offer.entry.name} is not what {offer.live.label} said it is"
            raise SourceRefused("frontmatter", message)


def _child(path: str, folder: str) -> str:
    name, slash, _ = path.removeprefix(f"{folder}/").partition("/")
    return encoded_path(name) + slash


def _is_for(approval: Approval, tool: str, origins: Collection[str]) -> bool:
    # Who may have the instructions of a skill may have its files; a script is another question.
    tools = (tool, "skill_load") if tool == "skill_read" else (tool,)
    return approval.tool in tools and approval.path is None and (approval.origin or "") in origins
