"""Publish a skill as a release of a team server."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from skillshelf.core.digests import sha256
from skillshelf.core.http_client import HttpAnswer, HttpClient, HttpRequest, require_found
from skillshelf.core.limits import SOURCE_INDEX_BYTES, SOURCE_WHOLE_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, visible
from skillshelf.errors import PermissionDenied, SkillError, SourceRefused, SourceUnreachable
from skillshelf.install.pack import zip_of
from skillshelf.install.publish import Published, checked_fields, version_in
from skillshelf.install.reference import SourceReference
from skillshelf.install.server_account import ServerAccount

__all__ = ["ServerRelease", "publish_to_server"]

_ANSWER_BYTES = SOURCE_INDEX_BYTES


class ServerRelease(NamedTuple):
    """The release that is asked for: a version other than that of the frontmatter, and where the files come from."""

    version: str | None = None
    source: str = ""
    commit: str = ""
    accept: Sequence[str] = ()


def publish_to_server(
    contents: Mapping[str, bytes],
    reference: SourceReference,
    account: ServerAccount,
    release: ServerRelease,
    *,
    allow_http: bool = False,
    dry_run: bool = False,
    seconds: float = SOURCE_WHOLE_SECONDS,
) -> Published:
    """Publish a skill as a release of a team server; the same release again changes nothing."""
    fields = checked_fields(contents)
    name, data = fields["name"], zip_of(contents, wrapper=fields["name"])
    digest = f"sha256:{sha256(zip_of(contents)).hexdigest()}"
    version = release.version or version_in(fields)
    client = HttpClient(reference.location, account.environment, allow_http=allow_http, seconds=seconds)
    base = reference.location.rstrip("/")
    if dry_run:
        known = _known_release(client, account, base, name, version, digest)
        shown = known or version or "the next version"
        return Published(f"{base}/api/v1/skills/{name}/versions/{shown}", digest, changed=known is None)
    query = {"source": release.source, "commit": release.commit, "accept_rule": ",".join(release.accept)}
    query["version"] = release.version or ""
    url = f"{base}/api/v1/releases?{urlencode({key: value for key, value in query.items() if value})}"
    headers = {**account.headers, "Content-Type": "application/zip"}
    answer = client.send(HttpRequest(url, _ANSWER_BYTES, "POST", headers, data))
    value = _value(answer)
    account.check(answer)
    sent = value["release"]
    return Published(f"{base}/api/v1/skills/{name}/versions/{sent['version']}", digest, changed=bool(value["changed"]))


def _known_release(
    client: HttpClient, account: ServerAccount, base: str, name: str, version: str | None, digest: str
) -> str | None:
    """Return the version under which a server has exactly this already; None if it has not."""
    answer = client.get(f"{base}/api/v1/skills/{name}/versions", limit=_ANSWER_BYTES, headers=account.headers)
    if answer.status == 404:
        return None
    releases = _value(answer).get("versions", [])
    account.check(answer)
    same = [one for one in releases if isinstance(one, dict) and one.get("artifact") == digest]
    if version is None:
        return str(releases[0]["version"]) if same and releases[0] is same[0] else None
    return version if any(one.get("version") == version for one in same) else None


def _value(answer: HttpAnswer) -> dict[str, Any]:
    """Return the value of an answer; raise what its error says."""
    try:
        value = json.loads(answer.data)
    except ValueError:
        value = None
    if answer.status in (200, 201) and isinstance(value, dict):
        return value
    error = value.get("error") if isinstance(value, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(message, str):
        require_found(answer)
        raise SourceUnreachable(f"{answer.url.partition('?')[0]} does not answer as a team server")
    raise _error(answer.status, visible(cut(fold(message), 500)))


def _error(status: int, message: str) -> SkillError:
    if status in (401, 403):
        return PermissionDenied(message)
    if status == 409:
        return SourceRefused("release-exists", message)
    if status in (400, 413, 422):
        return SourceRefused("server", message)
    return SourceUnreachable(message)
