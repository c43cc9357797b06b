"""The routes about skills: listings, one skill, search, and the index for other programs."""

import threading
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from skillshelf import __version__
from skillshelf.catalog.load import SKILL_FILE
from skillshelf.catalog.lock import is_installable_name
from skillshelf.catalog.tree import folded_path
from skillshelf.core.digests import sha256
from skillshelf.core.json_types import (
    TeamCallerForm,
    TeamSearchForm,
    TeamSkillDetailForm,
    TeamSkillForm,
    TeamSkillsForm,
)
from skillshelf.core.limits import KNOWN_SECONDS, SOURCE_ENTRIES, SOURCE_INDEX_BYTES, TEAM_CATALOGS, TEAM_PAGE
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, encoded_path, fold
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import ConfigurationError, SkillError, SkillNotFound, SkillNotUsable
from skillshelf.install.pack import skill_files, zip_of
from skillshelf.install.publish import checked_fields
from skillshelf.install.well_known import INDEX_PATH, INDEX_SCHEMA
from skillshelf.servers.mcp.skill_entries import InvalidCursor, OmittedSkill, cursor_after, cursor_key, skills_after
from skillshelf.servers.mcp.skills import PublishedSkills, ServedSkills
from skillshelf.servers.team.catalogs import CatalogKey, key_of
from skillshelf.servers.team.release_routes import MIN_REV, at_least, with_rev
from skillshelf.servers.team.releases import PUBLISHED, ChannelMove
from skillshelf.servers.team.routes import (
    ANY_TOKEN,
    Parameter,
    TeamAnswer,
    TeamRequest,
    TeamRoute,
    json_answer,
    openapi_document,
)
from skillshelf.servers.team.tenant_shelf import TenantShelf
from skillshelf.servers.team.values import READ, Caller, DatabaseAway, NoSuchTenant

__all__ = ["STALE_HEADER", "openapi_route", "skill_routes"]

STALE_HEADER = "skillshelf-stale"
"""The header of an answer that was made without the database."""

_LISTING = "api skills"
_DESCRIPTION_CHARS = 1024
_ABOVE = INDEX_PATH.rpartition("/")[0]


def _shown(served: ServedSkills, skill: CatalogSkill) -> TeamSkillForm:
    return {
        "name": skill.name,
        "description": skill.description,
        "uri": served.uri_of(skill),
        "scope": skill.scope,
        "tree": skill.tree,
    }


def _count(request: TeamRequest, name: str, default: int | None, most: int) -> int | None:
    given = request.query.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and 0 < len(given) < 9 and int(given)):
        raise ConfigurationError(f"{name} takes a whole number of at least 1")
    return min(int(given), most)


def _of_revision(run: Callable[[TeamRequest], TeamAnswer]) -> Callable[[TeamRequest], TeamAnswer]:
    """Return a route whose answers are of a revision: at least the one that the request demands, and it says which.

    Without the database they are of the last one that this server saw, with a mark.
    """

    def answered(request: TeamRequest) -> TeamAnswer:
        published = request.services.published
        if published is None:
            return run(request)
        shelf = published.shelf_of(request.caller.tenant)
        shelf.require_rev(at_least(request))
        rev = shelf.state.rev
        answer = with_rev(run(request), rev, request.caller.tenant)
        return answer if shelf.away is None else _stale(answer)

    return answered


def _stale(answer: TeamAnswer) -> TeamAnswer:
    """Return an answer with the mark of one that was made without the database."""
    return answer._replace(headers=(*answer.headers, (STALE_HEADER, "true")))


def list_skills(request: TeamRequest) -> TeamAnswer:
    """Give a page of the skills that the caller may read."""
    served = request.services.catalogs.of(request.caller).served
    try:
        after = cursor_key(_LISTING, request.query.get("after"), length=2)
    except InvalidCursor as error:
        raise ConfigurationError(str(error)) from None
    rest = skills_after(served.visible, after)
    page = rest[: _count(request, "limit", TEAM_PAGE, TEAM_PAGE)]
    more = cursor_after(_LISTING, page[-1].name, page[-1].id) if len(rest) > len(page) else None
    found: TeamSkillsForm = {
        "count": len(served.visible),
        "skills": [_shown(served, skill) for skill in page],
        "next": more,
    }
    return json_answer(found)


def _named(skills: PublishedSkills, name: str) -> CatalogSkill:
    """Return the visible skill of a name; raise `SkillNotFound` also for one that the caller may not read."""
    visible = skills.visible
    place = bisect_left(visible, name, key=lambda skill: skill.name)
    if place == len(visible) or visible[place].name != name:
        raise SkillNotFound(cut(name, 100))
    return visible[place]


def show_skill(request: TeamRequest) -> TeamAnswer:
    """Give a skill with its text and the digests of its files."""
    skills = request.services.catalogs.of(request.caller)
    skill = _named(skills, request.parts["name"])
    # First: an entry would say that the folder is gone, where the blob store lost it or does not answer.
    skills.shelf.make_ready(skill)
    entry = skills.own_entry(skill)
    if isinstance(entry, OmittedSkill):
        raise SkillNotUsable(skill.name, entry.reason)
    client = skills.sessions.start(_client(request), subject=request.caller.subject, per_request=True)
    try:
        text = client.read(skills.uri_of(skill), skill.path).content
    finally:
        client.end()
    found: TeamSkillDetailForm = {
        **_shown(skills.served, skill),
        "frontmatter": dict(entry.frontmatter),
        "text": text,
        "files": [
            {
                "uri": file["uri"],
                "path": encoded_path(entry.path_of(file)),
                "size": file["size"],
                "digest": file["digest"],
            }
            for file in entry.resources
        ],
    }
    return json_answer(found)


def _client(request: TeamRequest) -> str:
    return cut(fold(request.headers.get("user-agent", "api")), 200)


def search_skills(request: TeamRequest) -> TeamAnswer:
    """Give the skills that fit a query, best first."""
    query = request.query.get("q", "")
    if not query.strip():
        raise ConfigurationError("q takes the text to search for")
    skills = request.services.catalogs.of(request.caller)
    served = skills.served
    report = skills.shelf.search(
        query,
        limit=_count(request, "limit", None, skills.shelf.settings.max_limit),
        model=True,
        keep=lambda skill: skill.path in served.by_path,
    )
    request.services.metrics.add("skillshelf_searches_total")
    found: TeamSearchForm = {
        "query": report.query,
        "count": report.count,
        "truncated": report.truncated,
        "confidence": report.confidence,
        "weak": report.weak,
        "notes": [*report.notes, *_away(request)],
        "results": [
            {
                **_shown(served, result.skill),
                "score": result.score,
                "reason": result.reason,
                "why": [*result.why],
            }
            for result in report.results
        ],
    }
    return json_answer(found)


def _away(request: TeamRequest) -> Iterator[str]:
    """Yield what a person should know while the database does not answer."""
    published = request.services.published
    shelf = published.shelf_of(request.caller.tenant) if published is not None else None
    if shelf is not None and shelf.away is not None:
        yield f"the database does not answer; these are the skills of revision {shelf.state.rev}"


def show_caller(request: TeamRequest) -> TeamAnswer:
    """Give who the token belongs to."""
    caller = request.caller
    found: TeamCallerForm = {
        "subject": caller.subject,
        "tenant": caller.tenant,
        "scopes": sorted(caller.scopes),
    }
    return json_answer(found)


# The index for other programs ---------------------------------------------------------------------


class _Artifact(NamedTuple):
    entry: Mapping[str, Any]
    skill: CatalogSkill


class SiteIndex:
    """The index of a catalog, which is made again when the catalog changes, and after a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[Any, tuple[Any, float, dict[str, _Artifact]]] = {}

    def artifacts(self, caller: Caller, skills: PublishedSkills) -> dict[str, _Artifact]:
        """Return the entries of the skills that a caller may read, by name."""
        key, visible = key_of(caller), skills.visible
        with self._lock:
            kept = self._made.get(key)
            if kept is not None and kept[0] is visible and time.monotonic() - kept[1] < KNOWN_SECONDS:
                return kept[2]
        own = (skill for skill in visible if skill.source != PUBLISHED)
        found = {artifact.skill.name: artifact for artifact in map(_artifact, own) if artifact is not None}
        with self._lock:
            if len(self._made) > 2 * len(found) + 64:
                self._made.clear()
            self._made[key] = visible, time.monotonic(), found
        return found


def _packed(skill: CatalogSkill) -> tuple[bytes, Mapping[str, Any], bool]:
    contents, _ = skill_files(skill.real_dir)
    fields = checked_fields(contents)
    is_page = set(contents) == {SKILL_FILE} and type(contents[SKILL_FILE]) is bytes
    return (contents[SKILL_FILE] if is_page else zip_of(contents)), fields, is_page


def _artifact(skill: CatalogSkill) -> _Artifact | None:
    """Return the entry of a skill, or None for one that cannot be installed elsewhere."""
    try:
        data, fields, is_page = _packed(skill)
    except (SkillError, OSError):
        return None
    digest, name = sha256(data).hexdigest(), fields["name"]
    if name != skill.name:
        return None
    entry = {
        "name": name,
        "type": "skill-md" if is_page else "archive",
        "description": cut(fold(fields["description"]), _DESCRIPTION_CHARS),
        "url": _artifact_address(name, digest, SKILL_FILE if is_page else f"{name}.zip"),
        "digest": f"sha256:{digest}",
    }
    return _Artifact(entry, skill)


def _artifact_address(name: str, digest: str, file: str) -> str:
    return "/".join(quote(part, safe="") for part in (name, digest[:16], file))


def _release_entry(name: str, description: str, artifact: str) -> Mapping[str, Any]:
    """Return the entry of a release; its artifact is not read for that."""
    return {
        "name": name,
        "type": "archive",
        "description": cut(fold(description), _DESCRIPTION_CHARS),
        "url": _artifact_address(name, artifact.removeprefix("sha256:"), f"{name}.zip"),
        "digest": artifact,
    }


class _NamesKey(NamedTuple):
    """What the names of an index follow from: a revision, the newest moves of its channel, the names of the disk."""

    rev: int
    moves: tuple[ChannelMove, ...]
    own: frozenset[str]


class ServedIndex:
    """The index of what a server serves to callers: its releases, and the skills of its own disk.

    The names are kept for a revision; of the releases only those of a page are read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = SiteIndex()
        self._names: OrderedDict[CatalogKey, tuple[_NamesKey, list[str]]] = OrderedDict()

    def own(self, request: TeamRequest) -> dict[str, _Artifact]:
        """Return the entries of the skills of the server's own disk that a caller may read, by name."""
        return self._own.artifacts(request.caller, request.services.catalogs.of(request.caller))

    def names(self, request: TeamRequest, own: Mapping[str, _Artifact]) -> tuple[int, list[str]]:
        """Return the revision and all names, sorted."""
        releases, caller = request.services.releases, request.caller
        if releases is None:
            return 0, sorted(own)
        key, rev = key_of(caller), releases.rev(caller, at_least(request))
        # A database that was set back can reach the same revision with other releases.
        published = request.services.published
        moves = published.shelf_of(caller.tenant).state.moves if published is not None else ()
        made_of = _NamesKey(rev, moves, frozenset(own))
        with self._lock:
            kept = self._names.get(key)
        if kept is not None and kept[0] == made_of:
            return rev, kept[1]
        rev, served = releases.served_names(caller, at_least=rev)
        names = sorted({*served, *own})
        with self._lock:
            self._names[key] = made_of._replace(rev=rev), names
            self._names.move_to_end(key)
            while len(self._names) > TEAM_CATALOGS:
                self._names.popitem(last=False)
        return rev, names

    def entries(self, request: TeamRequest, own: Mapping[str, _Artifact], names: Sequence[str]) -> list[Any]:
        """Return the entries of some names, sorted; a release comes before a skill of the disk."""
        releases = request.services.releases
        served = releases.served(request.caller, names) if releases is not None else []
        found = {name: own[name].entry for name in names if name in own}
        found |= {one.name: _release_entry(one.name, one.description, one.artifact) for one in served}
        return [found[name] for name in sorted(found)]


class KnownIndex:
    """The index of the catalog that a server knows, for the time in which the database does not answer."""

    def __init__(self, served: ServedIndex, shelf: TenantShelf) -> None:
        self._served = served
        self._shelf = shelf

    def own(self, request: TeamRequest) -> dict[str, _Artifact]:
        """Return the entries of the skills of the server's own disk that a caller may read, by name."""
        return self._served.own(request)

    def names(self, request: TeamRequest, own: Mapping[str, _Artifact]) -> tuple[int, list[str]]:
        """Return the revision and all names, sorted."""
        self._shelf.require_rev(at_least(request))
        visible = request.services.catalogs.of(request.caller).visible
        return self._shelf.state.rev, sorted({*own, *(skill.name for skill in visible if skill.source == PUBLISHED)})

    def entries(self, request: TeamRequest, own: Mapping[str, _Artifact], names: Sequence[str]) -> list[Any]:
        """Return the entries of some names, sorted; a release comes before a skill of the disk."""
        found = {name: own[name].entry for name in names if name in own}
        wanted = {*names}
        for skill in request.services.catalogs.of(request.caller).visible:
            if skill.name in wanted and (artifact := self._shelf.artifact_of(skill)) is not None:
                found[skill.name] = _release_entry(skill.name, skill.description, artifact)
        return [found[name] for name in sorted(found)]


def _index_page(index: ServedIndex | KnownIndex, request: TeamRequest) -> TeamAnswer:
    """Return the entries of the names that are asked for, or as many as programs take of one index.

    An index that ends early says so: `total` is the number of all entries, `next` the address of the rest.
    """
    own = index.own(request)
    if wanted := request.query.get("name"):
        rev = index.names(request, own)[0]
        chosen = sorted(set(wanted.split(",")))[:SOURCE_ENTRIES]
        content: dict[str, Any] = {"$schema": INDEX_SCHEMA, "skills": index.entries(request, own, chosen)}
        return with_rev(json_answer(content), rev, request.caller.tenant)
    rev, names = index.names(request, own)
    start = bisect_right(names, request.query["after"]) if "after" in request.query else 0
    for count in (SOURCE_ENTRIES, SOURCE_ENTRIES // 4):
        listed = names[start : start + count]
        shown = index.entries(request, own, [*_distinct(listed)])
        content = {"$schema": INDEX_SCHEMA, "skills": shown}
        if len(shown) < len(names):
            content["total"] = len(names)
        if start + count < len(names):
            content["next"] = f"index.json?{urlencode({'after': listed[-1]})}"
        answer = json_answer(content)
        if len(answer.body) <= SOURCE_INDEX_BYTES:
            break
    return with_rev(answer, rev, request.caller.tenant)


def _released(request: TeamRequest, name: str, digest: str) -> bytes | None:
    """Return the archive of a release that the caller may read; without the database, of the catalog that is known."""
    releases, published = request.services.releases, request.services.published
    if releases is None or published is None:
        return None
    try:
        return releases.artifact_with(request.caller, name, digest)
    except (DatabaseAway, NoSuchTenant):
        skill = _named(request.services.catalogs.of(request.caller), name)
        artifact = published.shelf_of(request.caller.tenant).artifact_of(skill) or ""
        is_meant = len(digest) == 16 and artifact.startswith(f"sha256:{digest}")
        return releases.archive(artifact) if is_meant else None


def _distinct(names: Iterable[str]) -> Iterator[str]:
    """Yield names that can be installed side by side: with one that cannot, clients would refuse the whole index."""
    seen = set()
    for name in names:
        if is_installable_name(name) and (folded := folded_path(name)) not in seen:
            seen.add(folded)
            yield name


def _index_routes() -> Iterator[TeamRoute]:
    index = ServedIndex()

    def show_index(request: TeamRequest) -> TeamAnswer:
        try:
            return _index_page(index, request)
        except (DatabaseAway, NoSuchTenant):
            assert request.services.published is not None, "only releases need the database"
            known = KnownIndex(index, request.services.published.shelf_of(request.caller.tenant))
            return _stale(_index_page(known, request))

    def show_artifact(request: TeamRequest) -> TeamAnswer:
        name, digest = request.parts["name"], request.parts["digest"]
        if (data := _released(request, name, digest)) is not None:
            return TeamAnswer(data, media_type="application/zip")
        skill = _named(request.services.catalogs.of(request.caller), name)
        if skill.source == PUBLISHED:
            raise SkillNotFound(skill.name)
        data, _, is_page = _packed(skill)
        if not sha256(data).hexdigest().startswith(digest) or len(digest) != 16:
            raise SkillNotFound(skill.name)
        return TeamAnswer(data, media_type="text/markdown; charset=utf-8" if is_page else "application/zip")

    yield TeamRoute(
        "GET",
        INDEX_PATH,
        READ,
        "list the skills for other programs",
        show_index,
        parameters=(
            Parameter("name", "only the skills of these names, separated by commas"),
            Parameter("after", "only names after this one, as `next` of the index before says"),
        ),
    )
    yield TeamRoute(
        "GET",
        _ABOVE + "/{name}/{digest}/{file}",
        READ,
        "give a skill as its index promises",
        show_artifact,
        kind="files",
    )


def skill_routes() -> list[TeamRoute]:
    """Return the routes about skills."""
    return [
        TeamRoute("GET", "/api/v1/me", ANY_TOKEN, "show who the token belongs to", show_caller, gives=TeamCallerForm),
        TeamRoute(
            "GET",
            "/api/v1/skills",
            READ,
            "list the skills by name",
            _of_revision(list_skills),
            parameters=(
                Parameter("limit", f"entries of a page, at most {TEAM_PAGE}", kind="integer"),
                Parameter("after", "`next` of the page before"),
                MIN_REV,
            ),
            gives=TeamSkillsForm,
        ),
        TeamRoute(
            "GET",
            "/api/v1/skills/{name}",
            READ,
            "show a skill with its text and its files",
            _of_revision(show_skill),
            parameters=(Parameter("name", "the name of the skill", "path"), MIN_REV),
            gives=TeamSkillDetailForm,
            kind="files",
        ),
        TeamRoute(
            "GET",
            "/api/v1/search",
            READ,
            "find the skills that fit a query",
            _of_revision(search_skills),
            parameters=(
                Parameter("q", "the query, in plain words", required=True),
                Parameter("limit", "the number of results", kind="integer"),
                MIN_REV,
            ),
            gives=TeamSearchForm,
            kind="search",
        ),
        *_index_routes(),
    ]


def openapi_route(routes: list[TeamRoute]) -> TeamRoute:
    """Return the route of the OpenAPI document, which describes itself too."""

    def show_document(request: TeamRequest) -> TeamAnswer:
        return json_answer(openapi_document([*routes, route], __version__))

    route = TeamRoute("GET", "/api/v1/openapi.json", ANY_TOKEN, "describe this API", show_document)
    return route
