"""Ask a team server about its releases, and publish, approve and yank them there.

What a server answers is checked before it is used: it may be another program, or lie.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode

from skillshelf.catalog.source import SourceLimits
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import tree_digest
from skillshelf.core.digests import sha256
from skillshelf.core.http_client import HttpAnswer, HttpClient, HttpRequest, refusal_in, require_found
from skillshelf.core.json_types import (
    TeamCallerForm,
    TeamPolicyAnswerForm,
    TeamPolicyForm,
    TeamReleaseChangeForm,
    TeamReleaseForm,
    TeamReleasesPageForm,
    TeamVersionsForm,
)
from skillshelf.core.limits import RELEASE_PAGES, SOURCE_INDEX_BYTES, SOURCE_WHOLE_SECONDS, UPLOAD_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, near, visible
from skillshelf.core.validation import members_of, validate
from skillshelf.errors import (
    ConfigurationError,
    PermissionDenied,
    SkillError,
    SourceNotFound,
    SourceRefused,
    SourceUnreachable,
)
from skillshelf.install.archive import unpack
from skillshelf.install.pack import zip_of
from skillshelf.install.publish import Published, checked_fields, version_in
from skillshelf.install.server_account import ServerAccount
from skillshelf.install.skill_entries import SKILL_FILE, check_sizes

__all__ = ["ReleaseAct", "ReleaseClient", "ServerRelease"]

ReleaseAct = Literal["approve", "yank", "channel"]
"""The acts on a release that was published."""

_ANSWER_BYTES = SOURCE_INDEX_BYTES
_Form = TypeVar("_Form")


class ServerRelease(NamedTuple):
    """The release that is asked for: a version other than that of the frontmatter, and where the files come from."""

    version: str | None = None
    source: str = ""
    commit: str = ""
    accept: Sequence[str] = ()


class ReleaseClient:
    """Sends requests about releases to one team server, as the person of a token."""

    def __init__(
        self,
        location: str,
        account: ServerAccount,
        *,
        allow_http: bool = False,
        seconds: float = SOURCE_WHOLE_SECONDS,
    ) -> None:
        self.base = location.rstrip("/")
        self._account = account
        self._client = HttpClient(
            location, account.environment, allow_http=allow_http, seconds=seconds, limit="SOURCE_WHOLE_SECONDS"
        )

    # Looking ----------------------------------------------------------------------------------------

    def subject(self) -> str:
        """Return who the token belongs to."""
        return self._asked("/api/v1/me", TeamCallerForm)["subject"]

    def releases(self, *, yanked: bool = False) -> tuple[int, list[TeamReleaseForm]]:
        """Return the revision of the catalog, and all releases by name and version."""
        found: list[TeamReleaseForm] = []
        query = {"yanked": "true"} if yanked else {}
        rev, after = 0, ""
        for _ in range(RELEASE_PAGES):
            page = self._asked("/api/v1/releases", TeamReleasesPageForm, query={**query, "after": after})
            found += page["releases"]
            rev, after = page["rev"], page["next"] or ""
            if not after:
                return rev, found
        raise SourceRefused("too-many-entries", f"{self.base} has more than {RELEASE_PAGES} pages (RELEASE_PAGES)")

    def versions(self, name: str) -> TeamVersionsForm:
        """Return the releases of a skill, the newest first; raise SourceNotFound, with names that are near."""
        answer = self._send("GET", f"{_skill_path(name)}/versions")
        if answer.status == 404:
            error = SourceNotFound(f"{self.base} has no release of {visible(name)}")
            error.near = tuple(near(name, {one["name"] for one in self.releases()[1]}, 3))
            raise error
        return self._checked(answer, TeamVersionsForm)

    def files(self, release: TeamReleaseForm) -> dict[str, bytes]:
        """Return the files of a release; raise SourceRefused if they are not those of the tree that it names."""
        path = f"{_skill_path(release['name'])}/versions/{quote(release['version'], safe='')}/artifact"
        answer = self._send("GET", path, limit=UPLOAD_BYTES)
        if answer.status != 200:
            self._checked(answer, TeamVersionsForm)
        contents = unpack(answer.data, SourceLimits(), kind="zip")
        check_sizes({one: len(data) for one, data in contents.items()}, SourceLimits())
        if SKILL_FILE not in contents or tree_digest(listed_files(contents)) != release["tree"]:
            shown = f"{visible(release['name'])} {visible(release['version'])}"
            raise SourceRefused("digest", f"{self.base} sends other files of {shown} than those of its tree")
        return contents

    def policy(self) -> TeamPolicyForm:
        """Return the policy of the tenant."""
        return self._asked("/api/v1/policy", TeamPolicyAnswerForm)["policy"]

    # Changing ---------------------------------------------------------------------------------------

    def approve(self, release: TeamReleaseForm) -> TeamReleaseChangeForm:
        """Approve the tree of a release; a server that has another tree under this version refuses."""
        return self._change(release, "approve", {"tree": release["tree"]})

    def yank(self, release: TeamReleaseForm, why: str = "") -> TeamReleaseChangeForm:
        """Take a release out of channels and listings."""
        return self._change(release, "yank", {"why": why})

    def move_channel(self, release: TeamReleaseForm, channel: str) -> TeamReleaseChangeForm:
        """Let a channel mean a release."""
        path, body = f"{_skill_path(release['name'])}/channel", {"channel": channel, "version": release["version"]}
        return self._checked(self._send("POST", path, value=body), TeamReleaseChangeForm)

    def set_policy(self, policy: Mapping[str, Any]) -> TeamPolicyForm:
        """Change the policy of the tenant."""
        return self._checked(self._send("PUT", "/api/v1/policy", value=policy), TeamPolicyAnswerForm)["policy"]

    def publish(self, contents: Mapping[str, bytes], release: ServerRelease, *, dry_run: bool = False) -> Published:
        """Publish a skill as a release; the same release again changes nothing."""
        fields = checked_fields(contents)
        name, data = fields["name"], zip_of(contents, wrapper=fields["name"])
        digest = f"sha256:{sha256(zip_of(contents)).hexdigest()}"
        place = f"{self.base}{_skill_path(name)}/versions/"
        if dry_run:
            version = release.version or version_in(contents, fields)
            known = self._known_version(name, version, digest)
            return Published(f"{place}{known or version or 'NEXT'}", digest, changed=known is None)
        query = {"source": release.source, "commit": release.commit, "accept_rule": ",".join(release.accept)}
        query["version"] = release.version or ""
        answer = self._send("POST", "/api/v1/releases", query=query, body=data, media_type="application/zip")
        sent = self._checked(answer, TeamReleaseChangeForm)
        if not sent["changed"]:
            _require_not_yanked(sent["release"])
        return Published(f"{place}{visible(sent['release']['version'])}", digest, changed=sent["changed"])

    def _known_version(self, name: str, version: str | None, digest: str) -> str | None:
        """Return the version under which the server has exactly this already; None if it has not."""
        answer = self._send("GET", f"{_skill_path(name)}/versions")
        if answer.status == 404:
            return None
        found = self._checked(answer, TeamVersionsForm)["versions"]
        same = [one for one in found if one["artifact"] == digest]
        if version is None:
            return same[0]["version"] if same and same[0] == found[0] and not same[0]["yanked"] else None
        for one in same:
            if one["version"] == version:
                _require_not_yanked(one)
                return version
        return None

    # Requests ---------------------------------------------------------------------------------------

    def _change(self, release: TeamReleaseForm, act: ReleaseAct, value: Mapping[str, Any]) -> TeamReleaseChangeForm:
        path = f"{_skill_path(release['name'])}/versions/{quote(release['version'], safe='')}/{act}"
        return self._checked(self._send("POST", path, value=value), TeamReleaseChangeForm)

    def _asked(self, path: str, form: type[_Form], *, query: Mapping[str, str] | None = None) -> _Form:
        return self._checked(self._send("GET", path, query=query), form)

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        value: Any = None,
        body: bytes | None = None,
        media_type: str = "application/json",
        limit: int = _ANSWER_BYTES,
    ) -> HttpAnswer:
        given = urlencode({key: one for key, one in (query or {}).items() if one})
        data = json.dumps(value).encode() if value is not None else body
        headers = {"Content-Type": media_type} if data is not None else {}
        url = f"{self.base}{path}{'?' if given else ''}{given}"
        return self._account.send(self._client, HttpRequest(url, limit, method, headers, data))

    def _checked(self, answer: HttpAnswer, form: type[_Form]) -> _Form:
        """Return the value of an answer in the form that it must have; raise what its error says."""
        try:
            value = json.loads(answer.data)
        except (ValueError, RecursionError):
            value = None
        where = visible(cut(answer.url.partition("?")[0], 200))
        if answer.status in (200, 201):
            known: _Form = _known_members(value, form)
            if validate(known, form) is None:
                return known
            raise SourceUnreachable(f"{where} does not answer as a team server")
        error = value.get("error") if isinstance(value, dict) else None
        message = error.get("message") if isinstance(error, dict) else refusal_in(answer)
        if not isinstance(message, str):
            require_found(answer)
            raise SourceUnreachable(f"{where} does not answer as a team server")
        raise _error(answer.status, visible(cut(fold(message), 500)), self.base)


def _require_not_yanked(release: TeamReleaseForm) -> None:
    """Raise SourceRefused for a release that was yanked: publishing the same again does not bring it back."""
    if release["yanked"]:
        shown = f"{visible(release['name'])} {visible(release['version'])}"
        raise SourceRefused("yanked", f"{shown} was yanked, and stays so; choose another version")


def _skill_path(name: str) -> str:
    return f"/api/v1/skills/{quote(name, safe='')}"


def _known_members(value: Any, form: Any) -> Any:
    """Return a value without the members that a newer server added."""
    if not isinstance(value, dict):
        return value
    members, _ = members_of(form)
    found = {name: one for name, one in value.items() if name in members}
    for name in ("release", "policy"):
        if name in found and isinstance(found[name], dict):
            found[name] = _known_members(found[name], members[name])
    for name in ("releases", "versions"):
        if name in found and isinstance(found[name], list):
            found[name] = [_known_members(one, TeamReleaseForm) for one in found[name]]
    return found


def _error(status: int, message: str, server: str) -> SkillError:
    """Return the exception that the error of a server stands for; it names the server if that is what matters."""
    if status in (401, 403):
        return PermissionDenied(f"{server}: {message}")
    if status == 404:
        return SourceNotFound(message)
    if status == 400:
        return ConfigurationError(message)
    if status == 409:
        return SourceRefused("release-exists", message)
    if status in (413, 422):
        return SourceRefused("server", message)
    return SourceUnreachable(f"{server}: {message} (try again later)")
