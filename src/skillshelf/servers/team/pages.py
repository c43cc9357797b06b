"""The pages of the team server: what one caller may see of the skills, their releases, their use and the journals."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from shlex import quote
from typing import Any, overload
from urllib.parse import quote as quoted
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from skillshelf.catalog.document import body, parse
from skillshelf.catalog.load import SKILL_FILE, near_names
from skillshelf.catalog.prompt import tokens_in
from skillshelf.config.hosts import HOSTS
from skillshelf.core import files
from skillshelf.core.console import as_json
from skillshelf.core.digests import sha256
from skillshelf.core.limits import (
    JOURNAL_ALARMS,
    JOURNAL_ROWS,
    SKILL_FILE_BYTES,
    WEB_FILE_BYTES,
    WEB_FILES,
    WEB_HIT_CHARS,
    WEB_MARKDOWN_CHARS,
    WEB_PEOPLE_DAYS,
    WEB_STORY_EVENTS,
)
from skillshelf.core.text import cut, fold, plural
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError, SkillNotFound
from skillshelf.install.difference import difference_of
from skillshelf.journal.format import Line, parse_line
from skillshelf.journal.sent_lines import SentLine, is_reduced, stored_line
from skillshelf.journal.words import event_time
from skillshelf.servers.mcp.skill_entries import OmittedSkill
from skillshelf.servers.mcp.skills import PublishedSkills, SkillTarget
from skillshelf.servers.team.catalogs import key_of
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.journal_records import (
    alarm_groups,
    journal_lines,
    journal_sessions,
    sessions_by_person,
    use_by_person,
    use_by_skill,
)
from skillshelf.servers.team.journal_removal import first_kept
from skillshelf.servers.team.mcp_endpoint import CALLER
from skillshelf.servers.team.release_findings import TenantFindings
from skillshelf.servers.team.releases import Release
from skillshelf.servers.team.routes import PUBLIC, TeamRoute, base_of
from skillshelf.servers.team.services import TeamServices
from skillshelf.servers.team.skill_lists import SkillList, SkillLists
from skillshelf.servers.team.upload import unpacked_artifact
from skillshelf.servers.team.values import (
    ADMIN,
    DEFAULT_TENANT,
    JOURNAL_READ,
    READ,
    BlobsAway,
    Caller,
    DatabaseAway,
    NoSuchTenant,
)
from skillshelf.servers.web.catalogue import (
    Catalogue,
    CommandHint,
    DiffLines,
    FileBytes,
    FileEntry,
    HostAnswer,
    HostSummary,
    Preparation,
    ProblemEntry,
    ProblemGroup,
    SearchAnswer,
    SearchHit,
    SessionStory,
    SessionSummary,
    SkillDetail,
    SkillDiff,
    SkillSummary,
    SkillVersion,
    UsageReport,
    WhyCandidate,
    file_order,
    matched_beginning,
    matched_parts,
)
from skillshelf.servers.web.journals import JournalReader
from skillshelf.servers.web.pages import PAGES, failed_page, message_page, page_response, page_routes
from skillshelf.servers.web.paths import ShownPaths

__all__ = ["TeamCatalogue", "team_pages"]

_RESULTS = 20
_FIELD_CHARS = 2_000
_NEAR = 3
_WHY_CHARS = 300
_JOURNAL_PAGES = ("/journal", "/usage")
_AS_INSTALLED = "judged as if it were installed for each host, in the folder of the user that the host reads first"


class TeamCatalogue:
    """What the pages show to one caller; `base` is the address of the server as the caller wrote it."""

    def __init__(self, services: TeamServices, caller: Caller, lists: SkillLists, base: str) -> None:
        self._services = services
        self._caller = caller
        self._lists = lists
        self._base = base
        self._skills: PublishedSkills = services.catalogs.of(caller)
        environment = self._skills.shelf.environment
        self._shown = ShownPaths(environment.cwd, environment.home, None)

    # What every page shows ------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The name of the tenant."""
        return "Team skills" if self._caller.tenant == DEFAULT_TENANT else self._caller.tenant

    @property
    def as_of(self) -> str:
        """Nothing: what is shown is the present state."""
        return ""

    @property
    def notice(self) -> str:
        """What is to be known of every page while the database does not answer."""
        published = self._services.published
        shelf = published.shelf_of(self._caller.tenant) if published is not None else None
        if shelf is None or shelf.away is None:
            return ""
        return f"The database does not answer. These are the skills as they were at revision {shelf.state.rev}."

    @property
    def reader(self) -> str:
        """The person of the token or login."""
        return self._caller.subject

    @property
    def parts(self) -> frozenset[str]:
        """Search and hosts, and the journals for those who may read them."""
        reads = self._caller.may(JOURNAL_READ) or self._caller.may(ADMIN)
        return frozenset({"hosts", "search", *(("usage", "journal") if reads else ())})

    def preparing(self) -> Preparation | None:
        """Return nothing: opening the catalog has read it."""
        return None

    @cached_property
    def _list(self) -> SkillList:
        return self._lists.of(key_of(self._caller), self._skills.visible, self._shown)

    @cached_property
    def _findings(self) -> TenantFindings:
        return self._lists.findings_of(self._caller.tenant, self._services.database, self._skills.shelf)

    @property
    def _by_slug(self) -> Mapping[str, CatalogSkill]:
        return self._list.by_slug

    def skills(self) -> Sequence[SkillSummary]:
        """Return the skills that the caller may read, by place and name."""
        return self._list.summaries

    def places(self) -> Mapping[str, Sequence[SkillSummary]]:
        """Return the skills that the caller may read by place, sorted by name."""
        return self._list.places

    def slug_named(self, name: str) -> str:
        """Return the slug of a skill by its name; empty if the caller may not read it."""
        return self._list.slug_named(name)

    # Search ---------------------------------------------------------------------------------------

    def search(self, query: str) -> SearchAnswer:
        """Search what the caller may read."""
        from skillshelf.search.rank import analyzer

        self._services.metrics.add("skillshelf_searches_total")
        served = self._skills.served.by_path
        report = self._skills.shelf.search(query, limit=_RESULTS, model=True, keep=lambda skill: skill.path in served)
        terms = report.terms or frozenset(analyzer().query_terms(report.query))
        hits = []
        for result in report.results:
            if result.skill.path in self._list.slug_by_path:
                summary = self._list.summary(result.skill)
                about = matched_beginning(summary.description, terms, WEB_HIT_CHARS)
                parts = matched_parts(summary.name, terms), about, ()
                hits.append(SearchHit(summary, *parts, result.score, tuple(result.why) or (result.reason,)))
        notes = [
            *map(self._shown.text, report.notes),
            *(["no skill clearly fits; these are the closest"] if report.weak and hits else []),
        ]
        near = () if hits else tuple(near_names(query, self._list.skills)[:_NEAR])
        is_cut = report.truncated and not report.weak
        return SearchAnswer(query, tuple(hits), is_cut, tuple(notes), near, len(self._list.skills))

    # One skill ------------------------------------------------------------------------------------

    def skill(self, slug: str) -> SkillDetail | None:
        """Return a skill as it is served."""
        skill = self._by_slug.get(slug)
        if skill is None:
            return None
        data = self._text(skill) or b""
        text, entries = body(data).decode("utf-8", "replace"), self._files(skill)
        releases = self._releases(skill)
        notes = ("the database does not answer: its releases are not shown",) if releases is None else ()
        fields = parse(data, whole=True).fields if data else {}
        texts = ((key, value if isinstance(value, str) else as_json(value).strip()) for key, value in fields.items())
        known, plain = self._shown.known, " --allow-http" if self._base.startswith("http:") else ""
        add = f"skillshelf add {quote(self._base)} --skill {quote(skill.name)}{plain}"
        summary = self._list.summary(skill)
        problems: tuple[ProblemEntry, ...] = ()
        if data:
            found = self._findings.of(skill)
            problems = tuple(self._list.finding_entries(skill, found))
            summary = summary._replace(errors=found.errors, warnings=found.warnings)
        return SkillDetail(
            self._seen(summary, self._list.host_verdicts.of(skill, lambda _: data or None)),
            self._shown.known(text),
            tuple((cut(known(key), 100), cut(known(value), _FIELD_CHARS)) for key, value in texts),
            tuple(entries[:WEB_FILES]),
            max(0, len(entries) - WEB_FILES),
            tokens_in(f"{skill.name}: {skill.description}"),
            tokens_in(text),
            f"sha256:{sha256(data).hexdigest()}" if data else "",
            skill.tree or "",
            "" if skill.tree else "only a release has one",
            next((f"published by {one.publisher}" for one in releases or () if one.tree == skill.tree), summary.place),
            problems=problems,
            commands=(CommandHint(add, "install it from this server, with a token of yours"),),
            notes=notes,
            text_cut=len(text) > WEB_MARKDOWN_CHARS,
        )

    def _files(self, skill: CatalogSkill) -> list[FileEntry]:
        entry = self._skills.own_entry(skill)
        if isinstance(entry, OmittedSkill):
            return []
        sizes = {entry.path_of(one): one["size"] for one in entry.resources}
        modes = dict.fromkeys(sizes, 0)
        with suppress(OSError), files.Folder(skill.real_dir) as folder:
            modes = {path: folder.mode(path.split("/")) for path in sizes}
        return [FileEntry(path, sizes[path], bool(modes[path] & 0o100)) for path in sorted(sizes, key=file_order)]

    def _read(self, skill: CatalogSkill, path: str, limit: int) -> bytes | None:
        """Return a file of a skill, if it is one of those that are published; raise `TooLarge` or `BlobsAway`."""
        self._skills.shelf.make_ready(skill)
        try:
            state = self._skills.scan(SkillTarget(skill, self._skills.base_of(skill), ""))
            if state is None or path not in state.files:
                return None
            with files.Folder(skill.real_dir) as folder:
                return folder.read(path.split("/"), limit=limit).data
        except files.TooLarge:
            raise
        except (OSError, ValueError, SkillError):
            return None

    def _text(self, skill: CatalogSkill) -> bytes | None:
        """Return the SKILL.md of a skill; None if it cannot be read or is too large."""
        try:
            return self._read(skill, SKILL_FILE, SKILL_FILE_BYTES)
        except files.TooLarge:
            return None

    def file(self, slug: str, path: str) -> FileBytes | None:
        """Return a published file of a skill."""
        skill = self._by_slug.get(slug)
        try:
            data = self._read(skill, path, WEB_FILE_BYTES) if skill is not None else None
        except files.TooLarge as error:
            return FileBytes(path, b"", error.size)
        return FileBytes(path, data) if data is not None else None

    def why(self, slug: str) -> Sequence[WhyCandidate] | None:
        """Return what each host makes of a skill that is installed there."""
        skill = self._by_slug.get(slug)
        if skill is None:
            return None
        answers = self._list.host_verdicts.of(skill, self._text)
        return [WhyCandidate(f"{skill.name}/{SKILL_FILE}", answers, _AS_INSTALLED)] if answers else ()

    def hosts(self) -> Sequence[HostSummary]:
        """Return nothing: a server does not know the hosts of its clients, and how much they have room for."""
        return ()

    def seen_by_hosts(self, skills: Sequence[SkillSummary]) -> Sequence[SkillSummary] | Preparation:
        """Return skills with what each host makes of them once they are installed there."""
        wanted = [self._by_slug[one.slug] for one in skills]
        found = self._list.host_verdicts.of_all(wanted, self._text)
        if isinstance(found, Preparation):
            return found
        return [self._seen(one, found[skill.path]) for one, skill in zip(skills, wanted, strict=True)]

    @staticmethod
    def _seen(summary: SkillSummary, answers: Sequence[HostAnswer]) -> SkillSummary:
        by_host = {one.host: one.visible for one in answers} or dict.fromkeys(HOSTS)
        return summary._replace(hosts=by_host)

    # Releases -------------------------------------------------------------------------------------

    def _releases(self, skill: CatalogSkill) -> list[Release] | None:
        """Return the releases of a skill, the newest first; None while the database does not answer."""
        if self._services.releases is None:
            return []
        try:
            return self._services.releases.versions(self._caller, skill.name)[1]
        except SkillNotFound:
            return []
        except (DatabaseAway, NoSuchTenant):
            return None

    def versions(self, slug: str) -> Sequence[SkillVersion] | None:
        """Return the releases of a skill."""
        skill = self._by_slug.get(slug)
        if skill is None:
            return None
        return [_version(one, current=one.tree == skill.tree) for one in self._releases(skill) or ()]

    def difference(self, slug: str, before: str, after: str) -> SkillDiff | None:
        """Compare two releases."""
        skill, releases = self._by_slug.get(slug), self._services.releases
        if skill is None or releases is None:
            return None
        try:
            (_, first, old), (_, second, new) = (
                releases.artifact(self._caller, skill.name, version) for version in (before, after)
            )
        except SkillNotFound:
            return None
        found = difference_of(unpacked_artifact(old), unpacked_artifact(new))
        changed = tuple(DiffLines(one.path, one.state, tuple(map(self._shown.known, one.lines))) for one in found.files)
        return SkillDiff(_version(first), _version(second), changed, tuple(map(self._shown.text, found.remarks)))

    # Problems and use -----------------------------------------------------------------------------

    def problems(self) -> Sequence[ProblemGroup]:
        """Return the alarms of the journals, for those who may read them, findings, and descriptions that collide."""
        groups = [self._list.findings(self._findings, self._skills.shelf), self._list.collisions()]
        return [self._alarms(), *groups] if "journal" in self.parts else groups

    def _alarms(self) -> ProblemGroup:
        none = "No push showed that a journal was cut, forked or edited."
        group = ProblemGroup("alarms", "Alarms of journals", (), none)
        try:
            with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
                found = alarm_groups(transaction)
        except (DatabaseAway, NoSuchTenant):
            return group._replace(empty="The database does not answer, so they are not known.", is_complete=False)
        entries = tuple(
            ProblemEntry("error", f"journal {one['stream'][:12]}", _alarm_words(one), where=_day(one)) for one in found
        )
        if len(found) == JOURNAL_ROWS:
            only = f"Only the latest {JOURNAL_ROWS:,} kinds and journals are listed; /api/v1/journal/alarms has all."
            return group._replace(problems=entries, empty=only, is_complete=False)
        return group._replace(problems=entries)

    def usage(self) -> UsageReport | None:
        """Return the counts of all days; of people those of the last days, since their rows grow without end."""
        if "usage" not in self.parts:
            return None
        since = first_kept(WEB_PEOPLE_DAYS)
        with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
            skills, people = use_by_skill(transaction), use_by_person(transaction, since)
            sessions, recent = sessions_by_person(transaction), sessions_by_person(transaction, since)
        names = {skill for skill, uses, _ in skills if uses}
        unused = tuple(skill.name for skill in self._list.skills if skill.name not in names)
        source = (f"the journals of {plural(len(sessions), 'person')}".replace("persons", "people"),)
        total, events = (sum(column) for column in zip(*sessions.values(), strict=True)) if sessions else (0, 0)
        used, users = [_skill_use(*row) for row in skills], [_person_use(*row, recent) for row in people]
        return UsageReport(source, total, events, 0, used, users, never_used=unused, users_days=WEB_PEOPLE_DAYS)

    def use(self, skill: SkillSummary) -> Mapping[str, Any] | None:
        """Return the counts of one skill in all days."""
        if "usage" not in self.parts:
            return None
        try:
            with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
                return next((_skill_use(*row) for row in use_by_skill(transaction, skill.name)), None)
        except (DatabaseAway, NoSuchTenant):
            return None

    def sessions(self) -> Sequence[SessionSummary]:
        """Return the sessions of the journals, the latest first."""
        return _StoredSessions(self._services.database, self._caller.tenant) if "journal" in self.parts else ()

    def session(self, key: str) -> SessionStory | None:
        """Return one session, event by event."""
        stream, _, session = unquote(key).partition(".")
        if "journal" not in self.parts:
            return None
        with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
            rows = journal_sessions(transaction, stream=stream, session=session, limit=1)
            if not rows:
                return None
            lines = journal_lines(transaction, stream, session=session, limit=WEB_STORY_EVENTS).lines
        texts = [(one["seq"], one["line"].encode()) for one in lines if one["line"] is not None]
        story = JournalReader((), self._shown).story_of(_session(rows[0]), (_line(*text) for text in texts))
        reduced = sum(is_reduced(data) for _, data in texts)
        which = "all events" if reduced == len(texts) else plural(reduced, "event")
        return story._replace(
            left_out=max(0, int(rows[0]["events"]) - len(lines)),
            note=f"Reduced, {which}: sizes and digests only." if reduced else "",
        )


def _line(seq: int, data: bytes) -> Line:
    """Return a stored line; a reduced one has the sum of the whole line, which is not that of its own text."""
    line = parse_line(seq, data)
    return line._replace(problem=None) if is_reduced(data) and isinstance(stored_line(data), SentLine) else line


def _alarm_words(group: Mapping[str, Any]) -> str:
    """Return how many alarms of one kind a journal has, and what one of them says."""
    if group["count"] == 1:
        return f"{group['kind']}: {group['detail']}"
    more = " or more" if group["count"] >= JOURNAL_ALARMS else ""
    return f"{group['kind']}: {group['count']}{more} alarms, such as: {group['detail']}"


def _day(row: Mapping[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(row["at_ms"] / 1000))


def _version(release: Release, *, current: bool = False) -> SkillVersion:
    states = [*release.channels, *(["yanked"] if release.yanked else [])]
    approvals = tuple(("approved by", by) for by, _ in release.approvals)
    label = f"{release.version} ({', '.join(states)})" if states else release.version
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(release.published / 1000))
    why = f": {cut(fold(release.yanked_why), _WHY_CHARS)}" if release.yanked_why else ""
    yanks = (("yanked by", f"{release.yanked_by or '?'}{why}"),) if release.yanked else ()
    details = (("published by", release.publisher), *approvals, *yanks)
    return SkillVersion(release.version, label, release.tree, when, current, details)


def _session(row: Mapping[str, Any]) -> SessionSummary:
    who = " with ".join(filter(None, (row["subject"], row["client"])))
    began, ended = event_time(row["started_ms"])[:19], event_time(row["ended_ms"])[:19] if row["ended_ms"] else ""
    # Machines name their sessions: a name may hold a slash, which would be another page.
    key = f"{row['stream']}.{quoted(row['session'], safe='')}"
    return SessionSummary(key, row["session"][:8], began, ended, who, int(row["events"]), ())


class _StoredSessions(Sequence[SessionSummary]):
    """The sessions of a tenant, the latest first; only those of a page are read."""

    def __init__(self, database: Database, tenant: str) -> None:
        self._database = database
        self._tenant = tenant

    @cached_property
    def _count(self) -> int:
        with self._database.transaction(self._tenant, readonly=True) as transaction:
            row = transaction.row(
                "select count(*) from journal_session where tenant = ? and forgotten = 0", (self._tenant,)
            )
        return int(row[0]) if row else 0

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> SessionSummary: ...
    @overload
    def __getitem__(self, at: slice) -> list[SessionSummary]: ...
    def __getitem__(self, at: int | slice) -> SessionSummary | list[SessionSummary]:
        if not isinstance(at, slice):
            return self[at : at + 1][0]
        start, end, _ = at.indices(len(self))
        if end <= start:
            return []
        with self._database.transaction(self._tenant, readonly=True) as transaction:
            return [_session(row) for row in journal_sessions(transaction, limit=end - start, start=start)]


def _skill_use(name: str, uses: int, denials: int) -> dict[str, Any]:
    """Return the use of a skill; None is what the counts of a day do not hold."""
    unknown = dict.fromkeys(("sessions", "after_search", "failed"))
    return {"name": name, "uses": uses, "denied": denials, **unknown}


def _person_use(
    who: str, uses: int, skills: int, denials: int, sessions: Mapping[str, tuple[int, int]]
) -> dict[str, Any]:
    counts = {"uses": uses, "skills": skills, "denied": denials, "sessions": sessions.get(who, (0, 0))[0]}
    return {"user": who, "kind": "subject", **counts}


# Routes -------------------------------------------------------------------------------------------


def _away(request: Request, error: Exception) -> Response:
    text = "The database of this server does not answer, and this page needs it. The skills can still be read."
    return page_response(message_page("Not now", text, status=503, back=True))


def _files_away(request: Request, error: Exception) -> Response:
    text = "The files of this skill cannot be had at the moment. The other skills can still be read."
    return page_response(message_page("Not now", text, status=503, back=True))


def team_pages(services: TeamServices) -> list[TeamRoute]:
    """Return the routes of the pages; a caller sees the catalogue of its token or login."""

    def catalogue_of(request: Request) -> Catalogue:
        caller = request.scope.get(CALLER)
        if not isinstance(caller, Caller):
            raise HTTPException(401)
        return TeamCatalogue(services, caller, lists, base_of(request.scope))

    lists = SkillLists()
    app = Starlette(
        routes=page_routes(catalogue_of),
        exception_handlers={DatabaseAway: _away, NoSuchTenant: _away, BlobsAway: _files_away, 500: failed_page},
    )
    found = [
        TeamRoute("GET", path, f"{JOURNAL_READ} {ADMIN}" if path.startswith(_JOURNAL_PAGES) else READ, "", app=app)
        for path, _ in PAGES
    ]
    pages = [route._replace(summary=f"the page {route.path}", is_page=True) for route in found]
    return [*pages, TeamRoute("GET", "/static/{name}", PUBLIC, "the style and script of the pages", app=app)]
