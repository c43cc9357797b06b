"""The pages of the team server: what one caller may see of the skills, their releases, their use and the journals."""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from shlex import quote
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from skillshelf.catalog.document import body, parse
from skillshelf.catalog.load import SKILL_FILE, near_names
from skillshelf.catalog.prompt import tokens_in
from skillshelf.core import files
from skillshelf.core.console import as_json
from skillshelf.core.digests import sha256
from skillshelf.core.limits import (
    SKILL_FILE_BYTES,
    TEAM_CATALOGS,
    WEB_FILE_BYTES,
    WEB_FILES,
    WEB_MARKDOWN_CHARS,
    WEB_STORY_EVENTS,
)
from skillshelf.core.text import cut, fold, plural
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError, SkillNotFound
from skillshelf.install.difference import difference_of
from skillshelf.journal.format import parse_line
from skillshelf.journal.words import event_time
from skillshelf.search.collisions import near_duplicates
from skillshelf.servers.mcp.skill_entries import OmittedSkill
from skillshelf.servers.mcp.skills import PublishedSkills, SkillTarget
from skillshelf.servers.team.catalogs import CatalogKey, key_of
from skillshelf.servers.team.journal_records import alarms, journal_lines, journal_sessions, usage
from skillshelf.servers.team.mcp_endpoint import CALLER
from skillshelf.servers.team.releases import PUBLISHED, Release
from skillshelf.servers.team.routes import PUBLIC, TeamRoute, base_of
from skillshelf.servers.team.services import TeamServices
from skillshelf.servers.team.upload import unpacked_artifact
from skillshelf.servers.team.values import ADMIN, DEFAULT_TENANT, JOURNAL_READ, READ, BlobsAway, Caller, DatabaseAway
from skillshelf.servers.web.catalogue import (
    Catalogue,
    CommandHint,
    DiffLines,
    FileBytes,
    FileEntry,
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
    slugs_of,
)
from skillshelf.servers.web.journals import JournalReader
from skillshelf.servers.web.local import matched_parts
from skillshelf.servers.web.pages import PAGES, message_page, page_response, page_routes
from skillshelf.servers.web.paths import ShownPaths

__all__ = ["SkillList", "SkillLists", "TeamCatalogue", "team_pages"]

_RESULTS = 20
_FIELD_CHARS = 2_000
_NEAR = 3
_JOURNAL_PAGES = ("/journal", "/usage")


class SkillList:
    """What follows from the skills that some callers see, found out once: their addresses, summaries and collisions."""

    def __init__(self, skills: tuple[CatalogSkill, ...], shown: ShownPaths) -> None:
        self.skills = skills
        self._shown = shown
        self._collisions: tuple[ProblemEntry, ...] | None = None
        self._worker: threading.Thread | None = None
        self._lock = threading.Lock()

    @cached_property
    def by_slug(self) -> Mapping[str, CatalogSkill]:
        """The skills by their addresses."""
        return dict(zip(slugs_of([skill.name for skill in self.skills]), self.skills, strict=True))

    @cached_property
    def slug_by_path(self) -> Mapping[str, str]:
        """The addresses of the skills."""
        return {skill.path: slug for slug, skill in self.by_slug.items()}

    @cached_property
    def summary_by_slug(self) -> Mapping[str, SkillSummary]:
        """All skills in short, by place and name."""
        found = [self._summary(slug, skill) for slug, skill in self.by_slug.items()]
        return {one.slug: one for one in sorted(found, key=lambda one: (one.place, one.name))}

    def _summary(self, slug: str, skill: CatalogSkill) -> SkillSummary:
        place = "published" if skill.source == PUBLISHED else "the disk of the server"
        return SkillSummary(slug, skill.name, self._shown.known(fold(skill.description)), place)

    def collisions(self) -> ProblemGroup:
        """Return the skills whose descriptions say nearly the same; they are compared behind the first answer."""
        with self._lock:
            if self._collisions is None and self._worker is None:
                self._worker = threading.Thread(target=self._compare, name="skillshelf-collisions", daemon=True)
                self._worker.start()
            found = self._collisions
        waiting = Preparation("Comparing descriptions") if found is None else None
        empty = "No two descriptions collide."
        return ProblemGroup("collisions", "Similar descriptions", found or (), empty, None, waiting)

    def _compare(self) -> None:
        skills = [skill for skill in self.skills if skill.description.strip()]
        found = []
        for first, second in near_duplicates([skill.description for skill in skills]):
            one, other = skills[first], skills[second]
            if one.name != other.name:
                slug, second_slug = self.slug_by_path[one.path], self.slug_by_path[other.path]
                entry = ProblemEntry("warning", one.name, "says nearly the same as", "description-collision", slug)
                found.append(entry._replace(other=(other.name, second_slug)))
        self._collisions = tuple(found)


class SkillLists:
    """The lists of skills in use, by tenant and subset; the one that was not used for longest is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: OrderedDict[CatalogKey, SkillList] = OrderedDict()

    def of(self, key: CatalogKey, skills: tuple[CatalogSkill, ...], shown: ShownPaths) -> SkillList:
        """Return the list for a key, a new one if its skills have changed."""
        with self._lock:
            found = self._lists.get(key)
            if found is None or (found.skills is not skills and found.skills != skills):
                found = self._lists[key] = SkillList(skills, shown)
            self._lists.move_to_end(key)
            while len(self._lists) > TEAM_CATALOGS:
                self._lists.popitem(last=False)
            return found


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
    def reader(self) -> str:
        """The person of the token or login."""
        return self._caller.subject

    @property
    def parts(self) -> frozenset[str]:
        """Search, and the journals for those who may read them."""
        reads = self._caller.may(JOURNAL_READ) or self._caller.may(ADMIN)
        return frozenset({"search", *(("usage", "journal") if reads else ())})

    def preparing(self) -> Preparation | None:
        """Return nothing: opening the catalog has read it."""
        return None

    @cached_property
    def _list(self) -> SkillList:
        return self._lists.of(key_of(self._caller), self._skills.visible, self._shown)

    @property
    def _by_slug(self) -> Mapping[str, CatalogSkill]:
        return self._list.by_slug

    def skills(self) -> Sequence[SkillSummary]:
        """Return the skills that the caller may read, by place and name."""
        return [*self._list.summary_by_slug.values()]

    # Search ---------------------------------------------------------------------------------------

    def search(self, query: str) -> SearchAnswer:
        """Search what the caller may read."""
        from skillshelf.search.rank import analyzer

        self._services.metrics.add("skillshelf_searches_total")
        report = self._skills.shelf.search(query, limit=_RESULTS, model=True, keep=self._skills.is_visible)
        terms = report.terms or frozenset(analyzer().query_terms(report.query))
        hits = []
        for result in report.results:
            slug = self._list.slug_by_path.get(result.skill.path)
            if slug is not None:
                summary = self._list.summary_by_slug[slug]
                parts = matched_parts(summary.name, terms), matched_parts(summary.description, terms), ()
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
        data = self._read(skill, SKILL_FILE, SKILL_FILE_BYTES) or b""
        text, entries = body(data).decode("utf-8", "replace"), self._files(skill)
        releases = self._releases(skill)
        notes = ("the database does not answer: its releases are not shown",) if releases is None else ()
        fields = parse(data, whole=True).fields if data else {}
        texts = ((key, value if isinstance(value, str) else as_json(value).strip()) for key, value in fields.items())
        known, add = self._shown.known, f"skillshelf add {quote(self._base)} --skill {quote(skill.name)}"
        return SkillDetail(
            self._list.summary_by_slug[slug],
            self._shown.known(text),
            tuple((cut(known(key), 100), cut(known(value), _FIELD_CHARS)) for key, value in texts),
            tuple(entries[:WEB_FILES]),
            max(0, len(entries) - WEB_FILES),
            tokens_in(f"{skill.name}: {skill.description}"),
            tokens_in(text),
            f"sha256:{sha256(data).hexdigest()}" if data else "",
            skill.tree or "",
            "",
            next((f"published by {one.publisher}" for one in releases or () if one.tree == skill.tree), ""),
            commands=(CommandHint(add, "install it from this server, with a token of yours"),),
            notes=notes,
            text_cut=len(text) > WEB_MARKDOWN_CHARS,
        )

    def _files(self, skill: CatalogSkill) -> list[FileEntry]:
        entry = next(iter(self._skills.entries(skill)))
        if isinstance(entry, OmittedSkill):
            return []
        above = entry.uri.removesuffix(SKILL_FILE)
        return [FileEntry(one["uri"].removeprefix(above), one["size"]) for one in entry.resources]

    def _read(self, skill: CatalogSkill, path: str, limit: int) -> bytes | None:
        """Return a file of a skill, if it is one of those that are published; raise `BlobsAway`."""
        self._skills.shelf.make_ready(skill)
        try:
            state = self._skills.scan(SkillTarget(skill, self._skills.base_of(skill), ""))
            if state is None or path not in state.files:
                return None
            with files.Folder(skill.real_dir) as folder:
                return folder.read(path.split("/"), limit=limit).data
        except (OSError, ValueError, SkillError):
            return None

    def file(self, slug: str, path: str) -> FileBytes | None:
        """Return a published file of a skill."""
        skill = self._by_slug.get(slug)
        data = self._read(skill, path, WEB_FILE_BYTES) if skill is not None else None
        return FileBytes(path, data) if data is not None else None

    def why(self, slug: str) -> Sequence[WhyCandidate] | None:
        """Return nothing: a server does not know the hosts of its clients."""
        return () if slug in self._by_slug else None

    def hosts(self) -> Sequence[HostSummary]:
        """Return nothing, for the same reason."""
        return ()

    # Releases -------------------------------------------------------------------------------------

    def _releases(self, skill: CatalogSkill) -> list[Release] | None:
        """Return the releases of a skill, the newest first; None while the database does not answer."""
        if self._services.releases is None:
            return []
        try:
            return self._services.releases.versions(self._caller, skill.name)[1]
        except SkillNotFound:
            return []
        except DatabaseAway:
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
        """Return the alarms of the journals, for those who may read them, and descriptions that collide."""
        collisions = self._list.collisions()
        return [self._alarms(), collisions] if "journal" in self.parts else [collisions]

    def _alarms(self) -> ProblemGroup:
        group = ProblemGroup("alarms", "Alarms of journals", (), "No journal was cut, forked or edited.")
        try:
            with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
                found = alarms(transaction)
        except DatabaseAway:
            return group._replace(empty="The database does not answer, so they are not known.", is_complete=False)
        entries = (
            ProblemEntry("error", f"journal {one['stream'][:12]}", f"{one['kind']}: {one['detail']}", where=_day(one))
            for one in found
        )
        return group._replace(problems=tuple(entries))

    def usage(self) -> UsageReport | None:
        """Return the counts of all days."""
        if "usage" not in self.parts:
            return None
        with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
            skills, people = usage(transaction, by="skill"), usage(transaction, by="person")
            rows = transaction.rows(
                "select subject, count(*), sum(events) from journal_session where tenant = ? group by subject",
                (self._caller.tenant,),
            )
        sessions = {subject: int(count) for subject, count, _ in rows}
        used = _by_skill(skills)
        names = {row["name"] for row in used}
        total, events = sum(sessions.values()), sum(int(row[2]) for row in rows)
        unused = tuple(skill.name for skill in self._list.skills if skill.name not in names)
        source = (f"the journals of {plural(len(sessions), 'person')}".replace("persons", "people"),)
        return UsageReport(source, total, events, 0, used, _by_person(people, sessions), never_used=unused)

    def sessions(self) -> Sequence[SessionSummary]:
        """Return the sessions of the journals, the latest first."""
        if "journal" not in self.parts:
            return []
        with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
            return [_session(row) for row in journal_sessions(transaction)]

    def session(self, key: str) -> SessionStory | None:
        """Return one session, event by event."""
        stream, _, session = key.partition(".")
        if "journal" not in self.parts:
            return None
        with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
            rows = [row for row in journal_sessions(transaction, stream=stream) if row["session"] == session]
            lines = journal_lines(transaction, stream, session=session, limit=WEB_STORY_EVENTS) if rows else []
        if not rows:
            return None
        parsed = (parse_line(one["seq"], one["line"].encode()) for one in lines if one["line"] is not None)
        story = JournalReader((), self._shown).story_of(_session(rows[0]), parsed)
        return story._replace(left_out=max(0, int(rows[0]["events"]) - len(lines)))


def _day(row: Mapping[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(row["at_ms"] / 1000))


def _version(release: Release, *, current: bool = False) -> SkillVersion:
    states = [*release.channels, *(["yanked"] if release.yanked else [])]
    approvals = tuple(("approved by", by) for by, _ in release.approvals)
    label = f"{release.version} ({', '.join(states)})" if states else release.version
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(release.published / 1000))
    details = (("published by", release.publisher), *approvals)
    return SkillVersion(release.version, label, release.tree, when, current, details)


def _session(row: Mapping[str, Any]) -> SessionSummary:
    who = " with ".join(filter(None, (row["subject"], row["client"])))
    began, ended = event_time(row["started_ms"])[:19], event_time(row["ended_ms"])[:19] if row["ended_ms"] else ""
    return SessionSummary(
        f"{row['stream']}.{row['session']}", row["session"][:8], began, ended, who, int(row["events"]), ()
    )


def _by_skill(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the use of each skill, most used first; None is what the counts of a day do not hold."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        unknown = dict.fromkeys(("sessions", "after_search", "failed"))
        one = found.setdefault(row["skill"], {"name": row["skill"], "uses": 0, "denied": 0, **unknown})
        one["uses"] += int(row["loads"])
        one["denied"] += int(row["denials"])
    return sorted(found.values(), key=lambda one: (-one["uses"], one["name"]))


def _by_person(rows: Sequence[Mapping[str, Any]], sessions: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the use of each person, the busiest first."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        who = row["subject"]
        begin = {"user": who, "kind": "subject", "uses": 0, "skills": 0, "denied": 0, "sessions": sessions.get(who, 0)}
        one = found.setdefault(who, begin)
        one["uses"] += int(row["loads"])
        one["denied"] += int(row["denials"])
        one["skills"] += 1
    return sorted(found.values(), key=lambda one: (-one["uses"], one["user"]))


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
    app = Starlette(routes=page_routes(catalogue_of), exception_handlers={DatabaseAway: _away, BlobsAway: _files_away})
    found = [
        TeamRoute("GET", path, f"{JOURNAL_READ} {ADMIN}" if path.startswith(_JOURNAL_PAGES) else READ, "", app=app)
        for path, _ in PAGES
    ]
    pages = [route._replace(summary=f"the page {route.path}", is_page=True) for route in found]
    return [*pages, TeamRoute("GET", "/static/{name}", PUBLIC, "the style and script of the pages", app=app)]
