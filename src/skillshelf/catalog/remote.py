"""Add the skills of live sources to a catalog, and fetch their files when they are used, each checked.

A source that fails is one error of the catalog. A skill of a source is hidden from models until the user approved
exactly its files as they come from that source.

Files are fetched when they are needed and held in memory. The store keeps whole trees only, so a skill moves there
once all its files were fetched and the user approved them for good; before that it is in quarantine: nowhere on disk.
"""

import json
import threading
import time
from collections.abc import Collection, Mapping, Sequence

from skillshelf.catalog.build import FILTERS, diagnostic_key, order_key
from skillshelf.catalog.build_context import make_skill, shown_though_untrusted
from skillshelf.catalog.document import parse
from skillshelf.catalog.live_source import (
    QUOTED,
    BoundedCall,
    LiveSource,
    Offer,
    OfferedSkills,
    fetch_files,
    list_entries,
    quoted,
)
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
from skillshelf.catalog.rules import check
from skillshelf.catalog.source import SOURCE_SCHEME, ExecutableFile, Source, SourceEntry, SourceLimits
from skillshelf.catalog.store import listed_files, store_of
from skillshelf.catalog.tree import SkillTree, TreeFile, tree_digest
from skillshelf.config.approvals import Approval, is_origin_approved, read_approvals
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.config.system_policy import SystemPolicy, lock_required, source_refusal
from skillshelf.core.digests import sha256
from skillshelf.core.environment import Environment
from skillshelf.core.limits import (
    LISTED_CHILDREN,
    REMOTE_BYTES,
    SKILL_FILE_BYTES,
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
"""The reason for which a skill of a source is hidden from models until the user approves it."""

_RULE = "source-failed"
_SHOWN_PROBLEMS = 3


class RemoteSkills:
    """The skills of live sources, for one shelf. It is safe to use from several threads."""

    def __init__(
        self,
        sources: Sequence[Source],
        environment: Environment,
        limits: SourceLimits | None = None,
        *,
        held_bytes: int = REMOTE_BYTES,
    ) -> None:
        self._environment = environment
        self._limits = limits or SourceLimits()
        self._held_bytes = held_bytes
        self._sources: list[LiveSource] = []
        for source in sources:
            self._sources.append(LiveSource(source, [live.label for live in self._sources if live.has_label]))
        self._offers: dict[str, Offer] = {}
        self._lock = threading.Lock()
        self._listed_at = 0.0

    @property
    def bytes_held(self) -> int:
        """The bytes of files that are held in memory now."""
        with self._lock:
            return sum(len(data) for offer in self._offers.values() for data in offer.contents.values())

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

    def _start_list(self, live: LiveSource) -> BoundedCall[OfferedSkills] | SkillError:
        try:
            return live.start(lambda: list_entries(live, self._limits), self._limits.seconds)
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
                message = f"no skill of a source is approved: {cut(fold(str(error)), QUOTED)}"
                report.errors.append(Diagnostic(SOURCE_SCHEME, _RULE, message))
            return ()

    def _accepted(
        self,
        live: LiveSource,
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
                report.rejected.setdefault(live.label, []).append(f"{quoted(entry.name)}: {reason}")
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
            if skill.hidden_by == UNAPPROVED and self._is_described(offer, approvals):
                # A model may be told of it. It stays untrusted: what a load fetches is compared with the approval.
                skill = shown_though_untrusted(skill, settings, profile)
            if (required := lock_required(settings.system)) and skill.hidden in (None, "untrusted"):
                # No lock names a skill that is not installed.
                skill = skill._replace(hidden="denied", hidden_by=required)
            reasons = (FILTERS[name](skill, root, settings) for name in profile.filters)
            filtered = next((reason for reason in reasons if reason is not None), None)
            if filtered is not None:
                report.filtered.append(Filtered(skill.name, skill.path, filtered))
            else:
                skills.append(skill)
        return skills

    def _is_described(self, offer: Offer, approvals: Sequence[Approval]) -> bool:
        """Return whether an entry without a tree says of itself what an approved skill from its source says."""
        entry, label = offer.entry, offer.live.label
        if entry.tree is not None:
            return False
        for tree in {one.tree for one in approvals if one.name == entry.name and _is_for(one, "skill_load", [label])}:
            try:
                _require_same_fields(offer, store_of(self._environment).read(tree)[SKILL_FILE])
            except (SkillError, KeyError, ValueError):
                continue
            return True
        return False

    # Using ----------------------------------------------------------------------------------------

    def load(self, skill: CatalogSkill, profile: Profile, *, approved: bool = False) -> LoadedSkill:
        """Fetch the SKILL.md of a skill and return it; its `allowed-tools` count for nothing.

        With `approved` only files that the user approved are returned. Raise SourceRefused if it is not what the source
        said, SourceUnreachable if the source does not answer.
        """
        offer = self._offer(skill.real_dir)
        tree, listed, held = self._version_of(offer, skill if approved else None)
        data = held[SKILL_FILE] if held is not None else self._file(offer, SKILL_FILE)
        if len(data) > SKILL_FILE_BYTES:
            raise LimitExceeded(f"{skill.path} has {len(data)} bytes; at most {SKILL_FILE_BYTES} are read")
        _require_same_fields(offer, data)
        has = (any(path.startswith(f"{name}/") for path in listed) for name in ("scripts", "references", "assets"))
        listing = listing_of(listed, most=profile.listed_files, most_bytes=profile.listed_bytes)
        return loaded_from(skill, data, 0, profile, folder=SkillFolder(listing, *has))._replace(tree=tree)

    def read(self, uri: str, skill: CatalogSkill, profile: Profile, limit: int, *, approved: bool = False) -> Resource:
        """Fetch one file of a skill and return it; for a folder, a text with the names in it.

        With `approved` only files that the user approved are returned.
        """
        address = parse_address(uri)
        offer = self._offer(skill.real_dir)
        path = "/".join(address.segments) or SKILL_FILE
        shown = encoded_path(path)
        _, listed, held = self._version_of(offer, skill if approved else None)
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
        data = held[path] if held is not None else self._file(offer, path)
        return resource_of(uri, f"{skill.dir}/{path}", shown, data, profile)

    def tree(self, skill: CatalogSkill) -> SkillTree:
        """Return the files that an answer about a skill is about; those of an entry without a tree are fetched."""
        offer = self._offer(skill.real_dir)
        if offer.tree is not None and offer.listed is None:
            # Whether the files are those is checked when they are fetched.
            return SkillTree(offer.tree, None, 0, 0, offer.tree)
        listed = self._listed(offer)
        size = sum(file.size for file in listed.values())
        return SkillTree(offer.tree, None, len(listed), size, offer.tree, listed)

    def _require_approved(self, skill: CatalogSkill, offer: Offer, tree: str) -> None:
        """Raise PermissionDenied unless the user approved this tree of a skill as it comes from its source."""
        if skill.trusted or self._is_approved(offer, tree):
            return
        raise PermissionDenied(
            f"{skill.name} may not be used: it comes from {skill.source}, and nobody approved it; "
            'load it in a session whose `confirm` asks the user, who may answer "remember"'
        )

    def script_folder(self, real_dir: str) -> str:
        """Return a folder with exactly the files of an approved skill, to run a script from; fetch what is missing."""
        offer = self._offer(real_dir)
        tree, _, contents = self._version_of(offer)
        if not self._is_approved(offer, tree):
            raise PermissionDenied(
                f"{offer.entry.name} may not be used: no script of {offer.live.label} runs before the user approved "
                "the skill for good"
            )
        store = store_of(self._environment)
        return store.path_of(store.put(self._whole(offer) if contents is None else contents))

    def approvals(self, tool: str, skills: Sequence[CatalogSkill]) -> list[Approval]:
        """Return the approvals of a tool for these skills as they come from their sources, whatever their files."""
        origins = [skill.source for skill in skills]
        return [one for one in read_approvals(self._environment) if _is_for(one, tool, origins)]

    # Files ----------------------------------------------------------------------------------------

    def _offer(self, real_dir: str) -> Offer:
        with self._lock:
            offer = self._offers.get(real_dir)
        if offer is None:
            raise SkillNotFound(real_dir.split("/")[-2])
        return offer

    def _listed(self, offer: Offer) -> Mapping[str, TreeFile]:
        """Return the files of a skill; without a manifest only all of them together can be checked."""
        if offer.listed is None:
            self._whole(offer)
        return offer.listed or {}

    def _version_of(self, offer: Offer, approved: CatalogSkill | None = None) -> "_OfferedVersion":
        """Return the tree and the files of a skill; where its source names no tree, all from one answer.

        Such an entry may stand for other files at any time; nobody may get some of these and some of those. Raise
        PermissionDenied if the tree must be `approved` and is not.
        """
        tree = offer.entry.tree
        if tree is None:
            contents = self._whole(offer)
            listed = listed_files(contents)
            tree = tree_digest(listed)
        if approved is not None:
            self._require_approved(approved, offer, tree)
        if offer.entry.tree is not None:
            return _OfferedVersion(tree, self._listed(offer), None)
        return _OfferedVersion(tree, listed, contents)

    def _file(self, offer: Offer, path: str) -> bytes:
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

    def _whole(self, offer: Offer) -> dict[str, bytes]:
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

    def _fetch(self, offer: Offer, paths: Sequence[str]) -> dict[str, bytes]:
        limits = self._limits
        try:
            return offer.live.call(lambda: fetch_files(offer, paths, limits), limits.seconds)
        except SourceUnreachable as error:
            raise SourceUnreachable(_about(offer, str(error))) from None
        except SourceRefused as error:
            raise SourceRefused(error.rule, _about(offer, error.reason)) from None
        except SkillError as error:
            raise SourceRefused("source", _about(offer, str(error))) from None

    def _stored(self, offer: Offer) -> Mapping[str, bytes]:
        """Return the files of a skill from the store, if they are there and intact; the store reads nothing else."""
        try:
            store = store_of(self._environment)
            return store.read(offer.tree) if offer.tree is not None and store.has(offer.tree) else {}
        except (SkillError, OSError):
            return {}

    def _is_approved(self, offer: Offer, tree: str) -> bool:
        return is_origin_approved(self._approvals(), "skill_load", offer.live.label, tree)

    def _keep(self, offer: Offer) -> None:
        """Store a skill that is whole and approved for good; limit the memory that all others take."""
        listed, contents = offer.listed, offer.contents
        if listed is not None and contents.keys() == listed.keys() and self._is_approved(offer, tree_digest(listed)):
            try:
                store = store_of(self._environment)
                if not store.has(tree_digest(listed)):
                    store.put(contents)
            except (SkillError, OSError):
                # Without a store the files stay in memory.
                return
        with self._lock:
            # The last one used is the last to go.
            if self._offers.get(offer.real_dir) is offer:
                self._offers[offer.real_dir] = self._offers.pop(offer.real_dir)
            self._trim(offer)

    def _trim(self, spared: Offer | None = None) -> None:
        total = 0
        for offer in reversed(list(self._offers.values())):
            total += sum(map(len, offer.contents.values()))
            if total > self._held_bytes and offer is not spared:
                offer.contents = {}
                if offer.entry.tree is None:
                    # What is fetched next may be other files: they are asked about again.
                    offer.listed = offer.tree = None


def _take_list(live: LiveSource, call: BoundedCall[OfferedSkills] | SkillError, seconds: float) -> None:
    """Wait for what a source offers; until then it offers what it did before."""
    listed, problem = OfferedSkills((), ()), ""
    try:
        if isinstance(call, SkillError):
            raise call
        listed = call.result(seconds)
    except SkillError as error:
        problem = cut(fold(str(error)), QUOTED)
    live.offered, live.left_out, live.notes, live.problem = *listed, problem


def _version(current: Mapping[str, Offer], key: str, offer: Offer) -> tuple[object, ...]:
    """Return the version that an entry has now; an entry that is no longer offered keeps its own."""
    if key not in current:
        return offer.version
    # An entry without a tree may stand for other files now.
    return current[key].version if offer.entry.tree is not None else ()


class _OfferedVersion(NamedTuple):
    """The files of a skill at one moment; `contents` is None where a tree that the source named tells each."""

    tree: str
    listed: Mapping[str, TreeFile]
    contents: Mapping[str, bytes] | None


class _Report(NamedTuple):
    """The lists that collect what a catalog reports about sources."""

    roots: list[RootReport]
    errors: list[Diagnostic]
    warnings: list[Diagnostic]
    shadowed: list[Shadowed]
    filtered: list[Filtered]
    rejected: dict[str, list[str]]

    def failed(self, live: LiveSource, refused: str | None) -> None:
        """Add the one error of a source, if it has any."""
        self.warnings.extend(Diagnostic(live.address, "source-note", note) for note in live.notes)
        left_out = (*live.left_out, *self.rejected.pop(live.label, ()))
        message = live.problem
        if refused:
            message = f"the system policy does not allow the source {live.label} ({refused})"
        elif not message and left_out:
            more = f"; and {len(left_out) - _SHOWN_PROBLEMS} more" if len(left_out) > _SHOWN_PROBLEMS else ""
            shown = "; ".join(cut(fold(text), QUOTED) for text in left_out[:_SHOWN_PROBLEMS])
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


def _about(offer: Offer, message: str) -> str:
    """Return a message about a fetch with the skill and its source, which may be in it already."""
    label = offer.live.label
    return f"{offer.entry.name} of {label}: {cut(fold(message.removeprefix(f'{label}: ')), QUOTED)}"


def _checked_files(offer: Offer, contents: Mapping[str, bytes]) -> dict[str, TreeFile]:
    """Return the files of a whole skill; raise SourceRefused unless they are those of its tree."""
    if SKILL_FILE not in contents:
        raise SourceRefused("no-skill", f"{offer.entry.name} of {offer.live.label} has no {SKILL_FILE}")
    listed = listed_files(contents)
    expected = offer.tree
    if expected is not None and tree_digest(listed) != expected:
        message = f"the files of {offer.entry.name} are not those that {offer.live.label} named: {expected}"
        raise SourceRefused("tree", message)
    return listed


def _require_file(offer: Offer, path: str, data: bytes, known: TreeFile) -> None:
    if len(data) != known.size or sha256(data).hexdigest() != known.sha256:
        message = f"{visible(path)} of {offer.entry.name} is not the file that {offer.live.label} named; refresh"
        raise SourceRefused("digest", message)


def _require_same_fields(offer: Offer, data: bytes) -> None:
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
