"""Read skills from a site that lists them in an index at a well-known address.

Version 0.2 of the index has the digest of every skill. Version 0.1 has none, so what it offers is read with a warning.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from skillshelf.catalog.document import parse
from skillshelf.catalog.lock import is_installable_name
from skillshelf.catalog.source import SourceEntry, SourceIdentity, SourceLimits
from skillshelf.catalog.tree import name_problem
from skillshelf.core.digests import sha256
from skillshelf.core.http_client import HttpAnswer, HttpClient, HttpRequest, origin_of, refusal_in, require_found
from skillshelf.core.limits import SKILL_FILE_BYTES, SOURCE_INDEX_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, plural, visible
from skillshelf.errors import SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.archive import ArchiveKind, unpack
from skillshelf.install.reference import SourceContext, SourceReference
from skillshelf.install.server_account import missing_account, server_account
from skillshelf.install.skill_entries import SKILL_FILE, check_names, check_sizes, some_of

__all__ = [
    "DIGEST",
    "INDEX_PATH",
    "INDEX_SCHEMA",
    "SiteSource",
    "json_value",
    "require_digest",
    "require_name",
    "skill_fields",
]

INDEX_PATH = "/.well-known/agent-skills/index.json"
INDEX_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_FORMER_PATH = "/.well-known/skills/index.json"
_ARCHIVE_OVERHEAD = 1024 * 1024

DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
"""The only spelling of a digest: others could mean the same bytes and pass for another version."""


class _Offer(NamedTuple):
    """An entry of an index: the address of its artifact, or of its files in version 0.1, which has no digest."""

    entry: SourceEntry
    kind: str
    url: str
    digest: str | None
    files: tuple[str, ...] = ()


class SiteSource:
    """The skills of a site, as its index lists them."""

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self._reference = reference
        self._context = context
        self._client = HttpClient(
            reference.location,
            context.environment,
            allow_http=context.allow_http,
            offline=context.offline,
            seconds=context.limits.seconds,
        )
        self._account = server_account(
            reference.location, context.environment, token_file=context.token_file, typed=context.typed
        )
        self.label = self._client.named.host
        self.notes: Sequence[str] = ()
        self._offers: dict[str, _Offer] | None = None
        self._is_cut = False
        self._kept: tuple[str, Mapping[str, bytes]] | None = None

    def list(self) -> Iterable[SourceEntry]:
        """Return the skills that the index lists now; an index with one unusable entry is refused as a whole."""
        self.notes = ()
        self._kept = None
        answer = self._index()
        where = visible(cut(answer.url.partition("?")[0], 200))
        document = json_value(answer.data, where, "index")
        self._offers = self._read(document, answer.url)
        total = document.get("total")
        self._is_cut = type(total) is int and total > len(self._offers)
        if self._is_cut:
            shown = f"{where} lists {len(self._offers)} of its {total} skills; others are found by their names"
            self.notes = (*self.notes, f"{shown} (--skill NAME)")
        if not self._offers and not self.notes:
            raise SourceNotFound(f"{where} lists no skill")
        return [offer.entry for offer in self._offers.values()]

    def find_named(self, names: Sequence[str]) -> Iterable[SourceEntry]:
        """Return the skills of these names that the index left out because the site has too many for one."""
        if not self._is_cut or self._offers is None or not all(map(is_installable_name, names)):
            return []
        answer = self._index(f"?name={quote(','.join(names))}")
        notes = self.notes
        found = self._read(json_value(answer.data, "the index", "index"), answer.url.partition("?")[0])
        self.notes = notes
        meant = {name: found[name] for name in names if name in found}
        self._offers = {**self._offers, **meant}
        return [offer.entry for offer in meant.values()]

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of a skill, after the digest of all of them was compared with the index."""
        offer = self._offer(entry.name)
        if offer.kind == "files":
            wanted = dict.fromkeys([SKILL_FILE, *(paths or offer.files)])
            return some_of(self._files(offer, wanted, limits), paths)
        if self._kept is None or self._kept[0] != offer.digest:
            self._kept = (offer.digest or "", self._artifact(offer, limits))
        return some_of(self._kept[1], paths)

    def fetch_former(self, name: str, digest: str, limits: SourceLimits) -> Mapping[str, bytes] | None:
        """Return the files of an artifact that the index lists no more; None if the site does not have it.

        A team server has all releases of a name, and a folder that `publish --site` filled has what it ever had.
        """
        if not is_installable_name(name) or not DIGEST.match(digest):
            return None
        above = (self._reference.location.rstrip("/") + INDEX_PATH).rpartition("/")[0]
        entry = SourceEntry(name, "", {}, None, name)
        for kind, file in (("archive", f"{name}.zip"), ("skill-md", SKILL_FILE)):
            url = f"{above}/{quote(name, safe='')}/{digest[7:23]}/{quote(file, safe='')}"
            try:
                return self._artifact(_Offer(entry, kind, url, digest), limits)
            except (SourceNotFound, SourceRefused):
                # Another site may answer anything.
                continue
        return None

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return what a fetched skill is recorded as: its site, and the digest of its artifact."""
        offer = self._offer(entry.name)
        return SourceIdentity(self._reference.canonical, entry.path, None, None, offer.digest, self.label)

    def _offer(self, name: str) -> _Offer:
        if self._offers is None:
            self.list()
        offer = (self._offers or {}).get(name)
        if offer is None:
            raise SourceNotFound(f"{self.label} does not offer a skill {visible(name)!r}")
        return offer

    def _say(self, text: str) -> None:
        if self._context.progress is not None:
            self._context.progress(text)

    # The index ----------------------------------------------------------------------------------------

    def _index(self, query: str = "") -> HttpAnswer:
        """Return the index of the newest version that the site has."""
        base = self._reference.location.rstrip("/")
        self._say(f"reading the index of {self.label}")
        answer = self._get(base + INDEX_PATH + query, limit=SOURCE_INDEX_BYTES)
        if answer.status in (404, 410) and not query:
            answer = self._get(base + _FORMER_PATH, limit=SOURCE_INDEX_BYTES)
            if answer.status in (404, 410):
                hint = "; name the site, and one of its skills with --skill" if base.count("/") > 2 else ""
                raise SourceNotFound(f"{base} has no index of skills ({INDEX_PATH}{hint})")
        return self._found(answer)

    def _found(self, answer: HttpAnswer) -> HttpAnswer:
        """Return an answer with content; for a server that wants a token say why it got none, or what it says."""
        if self._account is not None:
            return require_found(answer, reason=refusal_in(answer))
        if answer.status == 401 and answer.headers.get("www-authenticate", "").lower().startswith("bearer"):
            hint = missing_account(self._reference.location, self._context.environment, self._context.token_file)
            raise SourceRefused("credentials", f"{self.label} needs a token: {hint}")
        return require_found(answer)

    def _get(self, url: str, *, limit: int) -> HttpAnswer:
        """Return an answer; one of a team server is not older than what was seen before."""
        if self._account is None or origin_of(url).text != self._account.origin:
            return self._client.get(url, limit=limit)
        answer = self._account.send(self._client, HttpRequest(url, limit))
        if answer.status == 503 and answer.headers.get("retry-after"):
            raise SourceUnreachable(f"{self.label} cannot answer now; try again")
        return answer

    def _read(self, document: Any, url: str) -> dict[str, _Offer]:
        where = visible(cut(url.partition("?")[0], 200))
        rows = document.get("skills") if isinstance(document, dict) else None
        if not isinstance(rows, list):
            raise SourceRefused("index", f"{where} is not an index of skills")
        if len(rows) > self._context.limits.entries:
            limit = f"at most {self._context.limits.entries} (SOURCE_ENTRIES)"
            raise SourceRefused("too-many-entries", f"{where} lists {len(rows)} skills; {limit}")
        schema = document.get("$schema")
        if "$schema" in document and schema != INDEX_SCHEMA:
            raise SourceRefused("schema", f"{where} has an unknown $schema: {visible(cut(repr(schema), 100))}")
        if "$schema" not in document and rows:
            self.notes = (f"{where} is of version 0.1, without digests: nothing proves that its files are whole",)
        offers: dict[str, _Offer] = {}
        unknown = 0
        for number, row in enumerate(rows):
            offer = _offer_of(row, url, f"{where}: skills[{number}]", has_digest="$schema" in document)
            if offer is None:
                unknown += 1
            elif offer.entry.name in offers:
                raise SourceRefused("index", f"{where}: skills[{number}]: {offer.entry.name!r} is listed twice")
            else:
                offers[offer.entry.name] = offer
        if unknown:
            self.notes = (*self.notes, f"{where}: left out because of an unknown type: {plural(unknown, 'skill')}")
        if (twin := name_problem(offers)) is not None:
            raise SourceRefused("index", f"{where}: {twin!r}: another skill has nearly the same name")
        return offers

    # Files --------------------------------------------------------------------------------------------

    def _artifact(self, offer: _Offer, limits: SourceLimits) -> Mapping[str, bytes]:
        """Return all files of a skill from the one file that the index names."""
        name = offer.entry.name
        self._say(f"fetching {name} from {self.label}")
        limit = limits.bytes + _ARCHIVE_OVERHEAD if offer.kind == "archive" else min(limits.bytes, SKILL_FILE_BYTES)
        data = self._found(self._get(offer.url, limit=limit)).data
        require_digest(data, offer.digest or "", f"{name} at {self.label}")
        contents = unpack(data, limits, kind=_kind_of(data)) if offer.kind == "archive" else {SKILL_FILE: data}
        check_sizes({path: len(one) for path, one in contents.items()}, limits)
        require_name(contents, name)
        return contents

    def _files(self, offer: _Offer, wanted: Iterable[str], limits: SourceLimits) -> Mapping[str, bytes]:
        """Return files of a skill of version 0.1, each of which has its own address."""
        if len(offer.files) > limits.files:
            limit = f"at most {limits.files} (TREE_FILES)"
            raise SourceRefused("too-many-files", f"{offer.entry.name} has {len(offer.files)} files; {limit}")
        contents: dict[str, bytes] = {}
        left = limits.bytes
        for path in wanted:
            if path not in offer.files:
                raise SourceNotFound(f"{offer.entry.name} has no file {visible(path)!r}")
            url = f"{offer.url}/{quote(path)}"
            self._say(f"fetching {offer.entry.name}/{visible(path)} from {self.label}")
            contents[path] = require_found(self._client.get(url, limit=left)).data
            left -= len(contents[path])
        require_name(contents, offer.entry.name)
        return contents


def _offer_of(row: Any, base: str, where: str, *, has_digest: bool) -> _Offer | None:
    """Return a checked entry of an index, or None if it is of an unknown type; raise SourceRefused."""
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("name", "description")):
        raise SourceRefused("index", f"{where}: an entry needs a name and a description")
    name, description = row["name"], row["description"]
    if not is_installable_name(name):
        raise SourceRefused("name", f"{where}: {visible(cut(name, 100))!r} is not a name that a skill can have")
    entry = SourceEntry(name, description, {"name": name, "description": description}, None, name)
    if not has_digest:
        return _Offer(entry, "files", urljoin(base, quote(name)), None, _listed_paths(row, where))
    kind, url, digest = row.get("type"), row.get("url"), row.get("digest")
    if kind not in ("skill-md", "archive"):
        return None
    if not isinstance(digest, str) or not DIGEST.match(digest):
        raise SourceRefused("digest", f"{where}: digest is not sha256: and 64 hex digits in small letters")
    if not isinstance(url, str) or not url:
        raise SourceRefused("index", f"{where}: url is missing")
    return _Offer(entry, kind, _resolved(base, url, where), digest)


def _listed_paths(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    paths = row.get("files")
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise SourceRefused("index", f"{where}: neither a $schema above it nor a list of files")
    if SKILL_FILE not in paths:
        raise SourceRefused("index", f"{where}: the list of files has no {SKILL_FILE}")
    try:
        check_names(paths)
    except SourceRefused as error:
        raise SourceRefused(error.rule, f"{where}: {error.reason}") from None
    return tuple(paths)


def _kind_of(data: bytes) -> ArchiveKind:
    """Return the kind of an archive by its first bytes: a header of HTTP or an address may say anything."""
    if data.startswith(b"PK"):
        return "zip"
    if data.startswith(b"\x1f\x8b"):
        return "tar.gz"
    raise SourceRefused("not-an-archive", "it is neither a zip nor a tar.gz")


def _resolved(base: str, url: str, where: str) -> str:
    """Return the address of an artifact, relative to that of the index; raise SourceRefused for another scheme."""
    try:
        absolute = urljoin(base, url).partition("#")[0]
        scheme = urlsplit(absolute).scheme
    except ValueError:
        raise SourceRefused("url", f"{where}: url is not an address") from None
    if scheme == "http" and base.startswith("https:"):
        raise SourceRefused("downgrade", f"{where}: url leads from https to plain http")
    try:
        origin_of(absolute)
    except SourceRefused as error:
        raise SourceRefused(error.rule, f"{where}: {error.reason}") from None
    return absolute


# What all sources of the network check ------------------------------------------------------------


class _Twice(ValueError):
    """A member that occurs twice: two readers would take two different values."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice
    return found


def _refused_number(text: str) -> float:
    raise ValueError(text)


def json_value(data: bytes, where: str, rule: str) -> Any:
    """Return the value of JSON text from a stranger; raise SourceRefused with a rule if it is not exactly that."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused_number)
    except _Twice:
        raise SourceRefused(rule, f"{where}: a member occurs twice") from None
    except (ValueError, RecursionError):
        raise SourceRefused(rule, f"{where} is not JSON") from None


def require_digest(data: bytes, digest: str, what: str) -> None:
    """Raise SourceRefused unless bytes have a digest."""
    found = f"sha256:{sha256(data).hexdigest()}"
    if found != digest:
        raise SourceRefused("digest", f"{what}: the bytes are {found}, not {digest}")


def skill_fields(contents: Mapping[str, bytes]) -> Mapping[str, Any]:
    """Return the frontmatter of a skill; raise SourceRefused if it has no SKILL.md, or one without a name."""
    data = contents.get(SKILL_FILE)
    if data is None:
        raise SourceRefused("no-skill", f"it holds no {SKILL_FILE}")
    if len(data) > SKILL_FILE_BYTES:
        raise SourceRefused("too-large", f"{SKILL_FILE} has more than {SKILL_FILE_BYTES} bytes (SKILL_FILE_BYTES)")
    fields = parse(data, whole=True).fields
    if not isinstance(fields.get("name"), str):
        raise SourceRefused("name", f"its {SKILL_FILE} does not say a name")
    return fields


def require_name(contents: Mapping[str, bytes], name: str) -> None:
    """Raise SourceRefused unless a skill has the name under which it is offered."""
    own = skill_fields(contents)["name"]
    if own != name:
        raise SourceRefused("name", f"it is offered as {name!r}, but its {SKILL_FILE} says {visible(cut(own, 100))!r}")
