"""The pages of the team server: what one caller may see of the skills, their releases, their use and the journals."""

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request

from skillshelf.catalog.document import body, parse
from skillshelf.catalog.load import SKILL_FILE, near_names
from skillshelf.catalog.prompt import tokens_in
from skillshelf.core import files
from skillshelf.core.console import as_json
from skillshelf.core.digests import sha256
from skillshelf.core.limits import SKILL_FILE_BYTES, WEB_FILE_BYTES, WEB_FILES, WEB_MARKDOWN_CHARS, WEB_STORY_EVENTS
from skillshelf.core.text import cut, fold, plural
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import SkillError, SkillNotFound
from skillshelf.install.difference import difference_of
from skillshelf.journal.format import parse_line
from skillshelf.journal.words import event_time
from skillshelf.servers.mcp.skill_entries import OmittedSkill
from skillshelf.servers.mcp.skills import PublishedSkills, SkillTarget
from skillshelf.servers.team.journal_records import alarms, journal_lines, journal_sessions, usage
from skillshelf.servers.team.mcp_endpoint import CALLER
from skillshelf.servers.team.releases import Release
from skillshelf.servers.team.routes import PUBLIC, TeamRoute
from skillshelf.servers.team.services import TeamServices
from skillshelf.servers.team.upload import unpacked_artifact
from skillshelf.servers.team.values import ADMIN, DEFAULT_TENANT, JOURNAL_READ, READ, Caller
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
from skillshelf.servers.web.pages import PAGES, page_routes
from skillshelf.servers.web.paths import ShownPaths

__all__ = ["TeamCatalogue", "team_pages"]

_RESULTS = 20
_FIELD_CHARS = 2_000
_NEAR = 3
_JOURNAL_PAGES = ("/journal", "/usage")


class TeamCatalogue:
    """What the pages show to one caller."""

    def __init__(self, services: TeamServices, caller: Caller) -> None:
        self._services = services
        self._caller = caller
        self._skills: PublishedSkills = services.catalogs.of(caller)
        environment = self._skills.shelf.environment
        self._shown = ShownPaths(environment.cwd, environment.home, None)

    # What every page shows ------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The name of the tenant."""
        return "skills" if self._caller.tenant == DEFAULT_TENANT else self._caller.tenant

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
    def _visible(self) -> tuple[CatalogSkill, ...]:
        return self._skills.visible

    @cached_property
    def _by_slug(self) -> Mapping[str, CatalogSkill]:
        return dict(zip(slugs_of([skill.name for skill in self._visible]), self._visible, strict=True))

    @cached_property
    def _slug_of(self) -> Mapping[str, str]:
        return {skill.path: slug for slug, skill in self._by_slug.items()}

    def _summary(self, slug: str, skill: CatalogSkill) -> SkillSummary:
        place = "this server" if skill.scope != "remote" else "releases"
        return SkillSummary(slug, skill.name, self._shown.known(fold(skill.description)), place)

    def skills(self) -> Sequence[SkillSummary]:
        """Return the skills that the caller may read, by place and name."""
        found = [self._summary(slug, skill) for slug, skill in self._by_slug.items()]
        return sorted(found, key=lambda one: (one.place, one.name))

    # Search ---------------------------------------------------------------------------------------

    def search(self, query: str) -> SearchAnswer:
        """Search what the caller may read."""
        from skillshelf.search.rank import analyzer

        self._services.metrics.add("skillshelf_searches_total")
        report = self._skills.shelf.search(query, limit=_RESULTS, model=True, keep=self._skills.is_visible)
        terms = report.terms or frozenset(analyzer().query_terms(report.query))
        hits = []
        for result in report.results:
            slug = self._slug_of.get(result.skill.path)
            if slug is not None:
                summary = self._summary(slug, result.skill)
                parts = matched_parts(summary.name, terms), matched_parts(summary.description, terms), ()
                hits.append(SearchHit(summary, *parts, result.score, tuple(result.why) or (result.reason,)))
        notes = [*report.notes, *(["no skill clearly fits; these are the closest"] if report.weak and hits else [])]
        near = () if hits else tuple(near_names(query, self._visible)[:_NEAR])
        is_cut = report.truncated and not report.weak
        return SearchAnswer(query, tuple(hits), is_cut, tuple(notes), near, len(self._visible))

    # One skill ------------------------------------------------------------------------------------

    def skill(self, slug: str) -> SkillDetail | None:
        """Return a skill as it is served."""
        skill = self._by_slug.get(slug)
        if skill is None:
            return None
        data = self._read(skill, SKILL_FILE, SKILL_FILE_BYTES) or b""
        text, entries = body(data).decode("utf-8", "replace"), self._files(skill)
        releases = self._releases(skill)
        fields = parse(data, whole=True).fields if data else {}
        texts = ((key, value if isinstance(value, str) else as_json(value).strip()) for key, value in fields.items())
        return SkillDetail(
            self._summary(slug, skill),
            self._shown.known(text),
            tuple((cut(key, 100), cut(self._shown.known(value), _FIELD_CHARS)) for key, value in texts),
            tuple(entries[:WEB_FILES]),
            max(0, len(entries) - WEB_FILES),
            tokens_in(f"{skill.name}: {skill.description}"),
            tokens_in(text),
            f"sha256:{sha256(data).hexdigest()}" if data else "",
            skill.tree or "",
            "",
            f"published by {releases[0].publisher}" if releases else "",
            commands=(CommandHint(f"skillshelf add SERVER --skill {skill.name}", "install it from this server"),),
            text_cut=len(text) > WEB_MARKDOWN_CHARS,
        )

    def _files(self, skill: CatalogSkill) -> list[FileEntry]:
        entry = next(iter(self._skills.entries(skill)))
        if isinstance(entry, OmittedSkill):
            return []
        above = entry.uri.removesuffix(SKILL_FILE)
        return [FileEntry(one["uri"].removeprefix(above), one["size"]) for one in entry.resources]

    def _read(self, skill: CatalogSkill, path: str, limit: int) -> bytes | None:
        """Return a file of a skill, if it is one of those that are published."""
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

    def _releases(self, skill: CatalogSkill) -> list[Release]:
        if self._services.releases is None:
            return []
        try:
            return self._services.releases.versions(self._caller, skill.name)[1]
        except SkillNotFound:
            return []

    def versions(self, slug: str) -> Sequence[SkillVersion] | None:
        """Return the releases of a skill."""
        skill = self._by_slug.get(slug)
        return None if skill is None else [_version(one) for one in self._releases(skill)]

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
        changed = tuple(DiffLines(one.path, one.state, tuple(one.lines)) for one in found.files)
        return SkillDiff(_version(first), _version(second), changed, tuple(found.remarks))

    # Problems and use -----------------------------------------------------------------------------

    def problems(self) -> Sequence[ProblemGroup]:
        """Return the alarms of the journals, for those who may read them."""
        if "journal" not in self.parts:
            return []
        with self._services.database.transaction(self._caller.tenant, readonly=True) as transaction:
            found = alarms(transaction)
        entries = tuple(
            ProblemEntry("error", f"journal {one['stream'][:12]}", f"{one['kind']}: {one['detail']}", where=_day(one))
            for one in found
        )
        return [ProblemGroup("alarms", "Alarms of journals", entries, "No journal was cut, forked or edited.")]

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
        unused = tuple(skill.name for skill in self._visible if skill.name not in names)
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


def _version(release: Release) -> SkillVersion:
    states = [*release.channels, *(["yanked"] if release.yanked else [])]
    approvals = tuple(("approved by", by) for by, _ in release.approvals)
    label = f"{release.version} ({', '.join(states)})" if states else release.version
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(release.published / 1000))
    details = (("published by", release.publisher), *approvals)
    return SkillVersion(release.version, label, release.tree, when, "latest" in release.channels, details)


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


def team_pages(services: TeamServices) -> list[TeamRoute]:
    """Return the routes of the pages; a caller sees the catalogue of its token or login."""

    def catalogue_of(request: Request) -> Catalogue:
        caller = request.scope.get(CALLER)
        if not isinstance(caller, Caller):
            raise HTTPException(401)
        return TeamCatalogue(services, caller)

    app = Starlette(routes=page_routes(catalogue_of))
    found = [
        TeamRoute("GET", path, f"{JOURNAL_READ} {ADMIN}" if path.startswith(_JOURNAL_PAGES) else READ, "", app=app)
        for path, _ in PAGES
    ]
    pages = [route._replace(summary=f"the page {route.path}", is_page=True) for route in found]
    return [*pages, TeamRoute("GET", "/static/{name}", PUBLIC, "the style and script of the pages", app=app)]
