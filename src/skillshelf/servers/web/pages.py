"""Render the pages of a catalogue, and serve them: every page is a function of a catalogue and an address.

Nothing here changes anything, and no page needs a script: `static/page.js` only searches as one types, copies commands,
filters lists and waits for what is not ready. The same functions make the files of a static site.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skillshelf.core.limits import WEB_DIFF_CHARS, WEB_DIFF_LINES, WEB_ROWS, WEB_SEARCH_CHARS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, plural, visible, visible_for_model
from skillshelf.servers.web.assets import asset, template_source
from skillshelf.servers.web.catalogue import Catalogue, DiffLines, Preparation, ProblemEntry, ProblemGroup
from skillshelf.servers.web.markdown import render_markdown, shown_lines

__all__ = [
    "HEADERS",
    "PAGES",
    "Link",
    "PageAnswer",
    "PageRequest",
    "failed_page",
    "login_page",
    "message_page",
    "page_response",
    "page_routes",
    "served_link",
]

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    # Without a referrer a browser sends the Origin `null` with a form, which no server can tell from a foreign page.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""The headers of every answer: nothing is loaded from elsewhere, framed, guessed, kept or told to other sites."""

HTML = "text/html; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"

Link = Callable[[str, Mapping[str, str]], str]
"""Returns the address of a page from its path in the site and its query, as the page that is made must write it."""


class PageRequest(NamedTuple):
    """A page that is asked for: the catalogue, the parts of its path, its query, and how it links to others.

    `live` is False for a static site, where nothing can be asked later and a list is one page.
    """

    catalogue: Catalogue
    parts: Mapping[str, str]
    query: Mapping[str, str]
    link: Link
    live: bool = True


class PageAnswer(NamedTuple):
    """The answer to a request for a page."""

    body: bytes
    status: int = 200
    media_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()


Page = Callable[[PageRequest], PageAnswer]


def served_link(base: str) -> Link:
    """Return how pages below a path of a server link to each other."""

    def link(path: str, query: Mapping[str, str]) -> str:
        # The name of a folder may have bytes that are not UTF-8, which no address brings back.
        return f"{base}{quote(path, errors='replace')}" + (f"?{urlencode(query, errors='replace')}" if query else "")

    return link


# Templates ----------------------------------------------------------------------------------------


def _finalized(value: object) -> object:
    """Return what a template writes for a value: texts of strangers have no character that hides or moves others."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return visible_for_model(value)


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_source),
        autoescape=True,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )
    environment.filters.update(number=_number, lines=_lines, named=_named, shell=shlex.quote)
    environment.globals.update(plural=_plural)
    return environment


def _number(value: int | None) -> str:
    """Return a number with its thousands apart."""
    return "–" if value is None else f"{value:,}"


def _plural(count: int, noun: str) -> str:
    """Return a count, with its thousands apart, and its noun."""
    return f"{count:,}{plural(count, noun).removeprefix(str(count))}"


def _named(name: str) -> str:
    """Return the text of a link to a skill: a name of blanks could not be seen."""
    return name if name.strip() else "(without a name)"


def _lines(text: str) -> Markup:
    """Return a text of several lines for a `pre` element."""
    return Markup.escape(shown_lines(text))


def _html(template: str, request: PageRequest, *, status: int = 200, **values: Any) -> PageAnswer:
    def link(path: str, **query: str) -> str:
        return request.link(path, query)

    catalogue = request.catalogue
    text = (
        _templates()
        .get_template(template)
        .render(
            link=link,
            live=request.live,
            title=catalogue.title,
            as_of=catalogue.as_of,
            notice=catalogue.notice,
            reader=catalogue.reader,
            has=catalogue.parts,
            query=request.query.get("q", ""),
            **values,
        )
    )
    return PageAnswer(text.encode("utf-8", "backslashreplace"), status)


def message_page(
    title: str,
    text: str,
    *,
    status: int,
    command: str = "",
    base: str = "",
    back: bool = False,
    links: Sequence[tuple[str, str]] = (),
) -> PageAnswer:
    """Return a page that only says something, without a catalogue: nobody may look yet, or there is none.

    `back` adds a link to the overview; `links` are the addresses and texts of others.
    """
    template = _templates().get_template("message.html")
    links = [*([("/", "To the overview")] if back else []), *links]
    body = template.render(heading=title, text=text, command=command, base=base, links=links)
    return PageAnswer(body.encode("utf-8", "backslashreplace"), status)


def failed_page(request: Request, error: Exception) -> Response:
    """Return the answer to a request that a mistake of ours ended; whoever runs the server sees the mistake."""
    text = "This page cannot be shown because of an error of this program. The other pages still can."
    return page_response(message_page("This page failed", text, status=500, back=True))


def login_page(told: str = "", *, status: int = 200, wanted: str = "") -> PageAnswer:
    """Return the page with the form that takes a token, what to tell whoever sees it, and the page that was wanted."""
    body = _templates().get_template("login.html").render(told=told, base="", wanted=wanted)
    return PageAnswer(body.encode("utf-8", "backslashreplace"), status)


def _missing(request: PageRequest, what: str) -> PageAnswer:
    return _html("missing.html", request, status=404, what=what)


# Lists --------------------------------------------------------------------------------------------


class PageOfRows(NamedTuple):
    """Some rows of a long list: the number of this page, of all pages, and of all rows."""

    rows: Sequence[Any]
    number: int
    pages: int
    total: int


def _page_of(rows: Sequence[Any], request: PageRequest, most: int = WEB_ROWS) -> PageOfRows:
    given = request.query.get("page", "1")
    pages = max(1, -(-len(rows) // most))
    number = min(pages, int(given)) if given.isascii() and given.isdecimal() and len(given) < 9 else 1
    number = max(1, number)
    return PageOfRows(rows[(number - 1) * most : number * most], number, pages, len(rows))


# Pages --------------------------------------------------------------------------------------------


def _home(request: PageRequest) -> PageAnswer:
    """Show the problems first, then the skills by place."""
    catalogue = request.catalogue
    skills = catalogue.skills()
    groups = catalogue.problems()
    urgent = _most_urgent(groups)
    return _html("home.html", request, skills=skills, groups=groups, places=catalogue.places(), urgent=urgent)


_URGENT_SHOWN = 5


def _most_urgent(groups: Sequence[ProblemGroup]) -> list[ProblemEntry]:
    """Return the first errors, one of each rule before a second one of any."""
    errors = [one for group in groups for one in group.problems if one.severity == "error"]
    first = {one.rule or one: one for one in reversed(errors)}
    return sorted(errors, key=lambda one: first[one.rule or one] is not one)[:_URGENT_SHOWN]


def _skills(request: PageRequest) -> PageAnswer:
    skills = request.catalogue.skills()
    place = request.query.get("place", "")
    shown = request.catalogue.places().get(place, ()) if place else skills
    most = WEB_ROWS if request.live else max(1, len(shown))
    return _html("skills.html", request, page=_page_of(shown, request, most), place=place, all=len(skills))


def _search(request: PageRequest) -> PageAnswer:
    query = cut(request.query.get("q", ""), WEB_SEARCH_CHARS)
    answer = request.catalogue.search(query) if query.strip() else None
    template = "results.html" if request.query.get("part") == "results" else "search.html"
    return _html(template, request, answer=answer)


def _skill(request: PageRequest) -> PageAnswer:
    slug = request.parts["slug"]
    detail = request.catalogue.skill(slug)
    if detail is None:
        return _missing(request, "skill")
    known = {entry.path for entry in detail.files if entry.has_address}

    def to_file(path: str) -> str | None:
        return request.link(f"/skills/{slug}/files/{path}", {}) if path in known else None

    return _html(
        "skill.html",
        request,
        skill=detail,
        body=render_markdown(detail.text, to_file),
        versions=request.catalogue.versions(slug) or (),
        use=request.catalogue.use(detail.summary),
        most=WEB_ROWS,
    )


def _why(request: PageRequest) -> PageAnswer:
    slug = request.parts["slug"]
    if "hosts" not in request.catalogue.parts:
        return _missing(request, "page")
    detail, candidates = request.catalogue.skill(slug), request.catalogue.why(slug)
    if detail is None or candidates is None:
        return _missing(request, "skill")
    return _html("why.html", request, skill=detail, candidates=candidates)


def _diff(request: PageRequest) -> PageAnswer:
    slug, query = request.parts["slug"], request.query
    detail, versions = request.catalogue.skill(slug), request.catalogue.versions(slug)
    keys = [version.key for version in versions or ()]
    before, after = query.get("from") or "".join(keys[:2][-1:]), query.get("to") or "".join(keys[:1])
    # Without versions it is asked all the same: that they cannot be read now is another answer than that there is none.
    found = request.catalogue.difference(slug, before, after)
    if detail is None or versions is None or found is None:
        return _missing(request, "version")
    most_lines = _shares([len(file.lines) for file in found.files], WEB_DIFF_LINES)
    most_chars = _shares([sum(map(len, file.lines)) for file in found.files], WEB_DIFF_CHARS)
    files = list(map(_beginning, found.files, most_lines, most_chars))
    return _html("diff.html", request, skill=detail, versions=versions, diff=found, files=files)


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    """Return how much of each size is shown: small ones whole, so that no large file takes the room of another."""
    shares = [0] * len(sizes)
    by_size = sorted(range(len(sizes)), key=lambda at: sizes[at])
    for number, at in enumerate(by_size):
        shares[at] = min(sizes[at], total // (len(sizes) - number))
        total -= shares[at]
    return shares


def _beginning(file: DiffLines, most_lines: int, most_chars: int) -> DiffLines:
    """Return the first lines of a difference, and say what is left out."""
    shown: list[str] = []
    for line in file.lines[:most_lines]:
        if line and most_chars <= 0:
            break
        shown.append(line[:most_chars])
        most_chars -= len(line)
    parts = ["the end of this line"] if most_chars < 0 else []
    parts += [_plural(len(file.lines) - len(shown), "more line")] if len(shown) < len(file.lines) else []
    return file._replace(lines=tuple(shown), left_out=" and ".join(parts))


def _raw(request: PageRequest) -> PageAnswer:
    return _file(request._replace(parts={**request.parts, "path": "SKILL.md"}))


def _file(request: PageRequest) -> PageAnswer:
    """Give the bytes of a file as plain text: no browser takes them for a page, a script or a picture."""
    found = request.catalogue.file(request.parts["slug"], request.parts["path"])
    if found is None:
        return _missing(request, "file")
    if found.too_large is not None:
        text = f"{visible(found.path)} has {found.too_large:,} bytes, more than are shown (WEB_FILE_BYTES).\n"
        return PageAnswer(text.encode("utf-8", "backslashreplace"), 413, PLAIN)
    name = quote(visible(found.path.rpartition("/")[2]))
    kind = "inline" if _is_text(found.data) else "attachment"
    media = PLAIN if kind == "inline" else "application/octet-stream"
    return PageAnswer(found.data, 200, media, (("content-disposition", f"{kind}; filename*=UTF-8''{name}"),))


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _hosts(request: PageRequest) -> PageAnswer:
    if "hosts" not in request.catalogue.parts:
        return _missing(request, "page")
    page = _page_of(request.catalogue.skills(), request)
    rows = request.catalogue.seen_by_hosts(page.rows)
    if isinstance(rows, Preparation):
        return _html("hosts.html", request, hosts=(), page=page, waiting=rows)
    hosts = request.catalogue.hosts()
    return _html("hosts.html", request, hosts=hosts, page=page._replace(rows=rows), waiting=None)


def _problems(request: PageRequest) -> PageAnswer:
    groups = request.catalogue.problems()
    wanted = request.query.get("kind", "")
    chosen = next((group for group in groups if group.key == wanted), None)
    if chosen is not None:
        return _problem_list(request, chosen)
    return _html("problems.html", request, groups=groups, most=_PROBLEMS_SHOWN)


def _problem_list(request: PageRequest, group: ProblemGroup) -> PageAnswer:
    """Show the problems of one kind, and if they are of several rules, those of one rule."""
    rules = Counter(one.rule for one in group.problems if one.rule)
    rule = request.query.get("rule", "")
    shown = [one for one in group.problems if one.rule == rule] if rule in rules else group.problems
    page, rule = _page_of(shown, request), rule if rule in rules else ""
    return _html("problem_list.html", request, group=group, rules=rules.most_common(), rule=rule, page=page)


_PROBLEMS_SHOWN = 25
"""Problems of one kind on the page of all kinds."""


def _usage(request: PageRequest) -> PageAnswer:
    catalogue = request.catalogue
    usage = catalogue.usage()
    used = [row for row in usage.skills if row["uses"]] if usage is not None else []
    # `log stats` sorts by loads and calls; the page shows uses.
    used.sort(key=lambda row: -row["uses"])
    return _html(
        "usage.html",
        request,
        usage=usage,
        page=_page_of(used, request),
        most_used=max((row["uses"] for row in used), default=1),
        slug_named=catalogue.slug_named,
        most=WEB_ROWS,
    )


def _journal(request: PageRequest) -> PageAnswer:
    return _html("journal.html", request, page=_page_of(request.catalogue.sessions(), request))


def _session(request: PageRequest) -> PageAnswer:
    story = request.catalogue.session(request.parts["key"])
    return _missing(request, "session") if story is None else _html("session.html", request, story=story)


PAGES: tuple[tuple[str, Page], ...] = (
    ("/", _home),
    ("/search", _search),
    ("/skills", _skills),
    ("/skills/{slug}", _skill),
    ("/skills/{slug}/hosts", _why),
    ("/skills/{slug}/diff", _diff),
    ("/skills/{slug}/raw", _raw),
    ("/skills/{slug}/files/{path:path}", _file),
    ("/hosts", _hosts),
    ("/problems", _problems),
    ("/usage", _usage),
    ("/journal", _journal),
    ("/journal/{key}", _session),
)
"""Every page by the pattern of its path."""


# Serving ------------------------------------------------------------------------------------------


def page_routes(catalogue_of: Callable[[Request], Catalogue], *, base: str = "") -> list[Route]:
    """Return the routes of all pages and of what they load, below a path.

    `catalogue_of` returns the catalogue of whoever asks; it may raise an `HTTPException`. It is called in a thread.
    """

    def route(path: str, page: Page) -> Route:
        def endpoint(request: Request) -> Response:
            catalogue = catalogue_of(request)
            asked = PageRequest(catalogue, request.path_params, dict(request.query_params), served_link(base))
            waiting = catalogue.preparing() if page is not _search else None
            return page_response(_preparing(asked, waiting) if waiting is not None else page(asked))

        return Route(f"{base}{path}", endpoint, methods=["GET"])

    def static(request: Request) -> Response:
        found = asset(request.path_params["name"])
        return page_response(
            PageAnswer(b"", 404, PLAIN) if found is None else PageAnswer(found.data, 200, found.media_type)
        )

    def icon(request: Request) -> Response:
        # A browser asks for it by itself beside a file that is no page.
        found = asset("icon.svg")
        return page_response(PageAnswer(found.data, 200, found.media_type) if found else PageAnswer(b"", 404, PLAIN))

    return [
        *(route(path, page) for path, page in PAGES),
        Route(f"{base}/static/{{name}}", static, methods=["GET"]),
        Route(f"{base}/favicon.ico", icon, methods=["GET"]),
    ]


def _preparing(request: PageRequest, waiting: Any) -> PageAnswer:
    """Show how far the work is that comes before the first page; the browser asks again by itself."""
    return _html("preparing.html", request, waiting=waiting)


def page_response(answer: PageAnswer) -> Response:
    """Return an answer with the headers that every answer has."""
    headers = {**HEADERS, **dict(answer.headers)}
    return Response(answer.body, answer.status, headers, answer.media_type)
