"""The token for a team server, and the newest revision that was seen there: an older catalog is never taken.

A token goes to servers that the user named: typed for `add` or `publish`, or in `SKILLSHELF_SERVER`, which is the
only one that gets the token of the environment if it is set. A lock or a wish of a project names none.
"""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from skillshelf.core.environment import Environment, user_state_folder
from skillshelf.core.http_client import (
    TEAM_TOKEN_VARIABLE,
    HttpAnswer,
    HttpClient,
    HttpRequest,
    bearer_token,
    origin_of,
)
from skillshelf.core.limits import SERVERS_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.state_file import Document, StateFile
from skillshelf.errors import SourceRefused

__all__ = [
    "MIN_REVISION_HEADER",
    "REVISION_HEADER",
    "SERVERS_VERSION",
    "TENANT_HEADER",
    "ServerAccount",
    "missing_account",
    "server_account",
]

REVISION_HEADER = "Skillshelf-Revision"
MIN_REVISION_HEADER = "Skillshelf-Min-Revision"
TENANT_HEADER = "Skillshelf-Tenant"
SERVERS_VERSION = 1
_SERVER_VARIABLE = "SKILLSHELF_SERVER"
_SERVERS = "servers.json"
_TENANT_CHARS = 64
_DEFAULT_TENANT = "default"


class ServerAccount(NamedTuple):
    """A token with the origin that it is for, and where the newest revisions are remembered."""

    token: str
    origin: str
    environment: Environment

    def send(self, client: HttpClient, request: HttpRequest) -> HttpAnswer:
        """Return an answer that is not older than what was seen before the request; remember its revision.

        The request gets the token, and demands the newest revision that was seen of its tenant.
        """
        known, tenant = _known(self.environment), _tenant_of(self.token)
        newest = known.get(f"{self.origin} {tenant}", 0)
        headers = {"Authorization": f"Bearer {self.token}", **request.headers}
        demand = {MIN_REVISION_HEADER: str(newest)} if newest else {}
        answer = client.send(request._replace(headers={**headers, **demand}))
        if demand and answer.status == 503 and answer.headers.get(TENANT_HEADER.lower(), tenant) != tenant:
            # The demand was about another tenant. Without one the answer says of which revision it is.
            answer = client.send(request._replace(headers=headers))
        return self._checked(answer, known)

    def _checked(self, answer: HttpAnswer, known: Mapping[str, int]) -> HttpAnswer:
        """Return an answer unless it is older than what was known when it was asked for.

        What other commands saw meanwhile does not count: an answer may be older than that, and still be new.
        """
        given, tenant = answer.headers.get(REVISION_HEADER.lower(), ""), answer.headers.get(TENANT_HEADER.lower(), "")
        if not _is_number(given) or len(tenant) > _TENANT_CHARS or not tenant.isascii() or " " in tenant:
            return answer
        key, rev = f"{self.origin} {tenant}", int(given)
        newest = known.get(key, 0)
        if rev < newest:
            raise SourceRefused(
                "older-revision",
                f"{self.origin} answers with revision {rev} of its catalog, and {newest} was seen before (try again; "
                f"if the server was set back on purpose, remove its line from {_path(self.environment)})",
            )
        # Where a redirect led to may say that it is older, and nothing else about this server.
        is_own = origin_of(answer.url).text == self.origin
        if answer.status < 300 and is_own and (rev > newest or not newest):
            _remember(self.environment, key, rev)
        return answer


_OWN_TOKEN = re.compile(r"sks_([a-z0-9-]+)_[\w-]+")


def _tenant_of(token: str) -> str:
    """Return the tenant that a token is probably for.

    A token of an issuer names it by a claim, whose usual name is `tenant`, or is for the tenant `default`. This only
    decides what is asked for: the server checks the token, and its answer says whose it is.
    """
    if (own := _OWN_TOKEN.fullmatch(token)) is not None:
        return own[1]
    part = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return _DEFAULT_TENANT
    tenant = claims.get("tenant") if isinstance(claims, dict) else None
    return tenant if isinstance(tenant, str) else _DEFAULT_TENANT


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def server_account(
    url: str, environment: Environment, *, token_file: str | None = None, typed: bool = False
) -> ServerAccount | None:
    """Return the account for a server; None if there is no token, or the user did not name this server."""
    if token_file is None and not environment.env.get(TEAM_TOKEN_VARIABLE):
        return None
    origin, named = origin_of(url).text, environment.env.get(_SERVER_VARIABLE)
    if named and token_file is None:
        # The two variables belong together: another site that is typed, for its skills, gets no token.
        is_named = origin_of(named).text == origin
    else:
        before = {key.partition(" ")[0] for key in _known(environment)}
        is_named = typed or origin in before or bool(named and origin_of(named).text == origin)
    return ServerAccount(bearer_token(token_file, environment.env), origin, environment) if is_named else None


def missing_account(url: str, environment: Environment, token_file: str | None) -> str:
    """Return what to do about a server that got no token."""
    if token_file is None and not environment.env.get(TEAM_TOKEN_VARIABLE):
        return f"set {TEAM_TOKEN_VARIABLE}, or name a file with --token-file"
    named = origin_of(url).text
    return f"yours goes only to servers that you named; if this is your team's, set {_SERVER_VARIABLE}={named}"


# Revisions ----------------------------------------------------------------------------------------


def _path(environment: Environment) -> str | None:
    folder = user_state_folder(environment)
    return f"{folder}/{_SERVERS}" if folder is not None else None


def _file(environment: Environment) -> StateFile | None:
    path = _path(environment)
    what = "the revisions of team servers"
    return StateFile(path, SERVERS_VERSION, SERVERS_BYTES, what, f"remove {path}") if path is not None else None


def _revisions(document: Mapping[str, Any] | None) -> dict[str, int]:
    found = (document or {}).get("servers", {})
    return {key: rev for key, rev in found.items() if type(rev) is int} if isinstance(found, dict) else {}


def _known(environment: Environment) -> dict[str, int]:
    """Return the newest revision that was seen of each server and tenant."""
    file = _file(environment)
    return _revisions(file.read()) if file is not None else {}


def _remember(environment: Environment, key: str, rev: int) -> None:
    file = _file(environment)
    if file is None:
        return

    def change(document: Document) -> Document:
        known = _revisions(document)
        return {"version": SERVERS_VERSION, "servers": {**known, key: max(rev, known.get(key, 0))}}

    file.change(change)
