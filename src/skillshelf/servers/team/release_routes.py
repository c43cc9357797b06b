"""The HTTP routes of releases: publish, list, fetch, approve, yank, channels, policy, and the well-known index.

Every answer has the header `Skillshelf-Revision`. A request may demand a revision with `Skillshelf-Min-Revision`
(or `min_rev`); a server whose database has not seen it answers 503 with `Retry-After`, never with older skills, and
changes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from skillshelf.core.json_types import (
    TeamPolicyAnswerForm,
    TeamPolicyForm,
    TeamPublishedForm,
    TeamReleaseChangeForm,
    TeamReleasesPageForm,
    TeamVersionsForm,
)
from skillshelf.core.limits import CONFIG_BYTES, UPLOAD_BYTES
from skillshelf.core.validation import schema_of
from skillshelf.errors import ConfigurationError
from skillshelf.install.server_account import MIN_REVISION_HEADER, REVISION_HEADER, TENANT_HEADER
from skillshelf.servers.team.release_access import ReleaseChange, Releases
from skillshelf.servers.team.routes import Parameter, TeamAnswer, TeamRequest, TeamRoute, json_answer
from skillshelf.servers.team.upload import read_upload
from skillshelf.servers.team.values import ADMIN, PUBLISH, READ

__all__ = ["MIN_REV", "at_least", "demands_revision", "release_routes", "with_rev"]

MIN_REV: Final = Parameter("min_rev", "the least revision of the catalog that may answer", kind="integer")


def release_routes(releases: Releases) -> list[TeamRoute]:
    """Return the routes of releases."""
    api = _ReleaseApi(releases)
    skill = "/api/v1/skills/{name}"
    release = f"{skill}/versions/{{version}}"
    name = Parameter("name", "the name of the skill", "path")
    version = Parameter("version", "the version of the release", "path")
    return [
        TeamRoute(
            "POST",
            "/api/v1/releases",
            PUBLISH,
            "publish a skill, packed by `skillshelf pack`",
            api.publish,
            parameters=(
                Parameter("version", "the version; without one that of the frontmatter, or the next number"),
                Parameter("source", "where its files come from"),
                Parameter("commit", "the commit that they are of"),
                Parameter("accept_rule", "security rules that an admin accepts, separated by commas"),
                MIN_REV,
            ),
            body_bytes=UPLOAD_BYTES,
            gives=TeamPublishedForm,
            added="a new release is published",
            takes={"application/zip": {}, "application/gzip": {}},
            kind="files",
        ),
        TeamRoute(
            "GET",
            "/api/v1/releases",
            f"{READ} {PUBLISH}",
            "list the releases",
            api.releases,
            parameters=(
                Parameter("after", "`next` of the page before"),
                Parameter("yanked", "`true` lists yanked releases too"),
                MIN_REV,
            ),
            gives=TeamReleasesPageForm,
        ),
        TeamRoute(
            "GET",
            f"{skill}/versions",
            f"{READ} {PUBLISH}",
            "list the releases of a skill, its channels and approvals",
            api.versions,
            parameters=(name, MIN_REV),
            gives=TeamVersionsForm,
        ),
        TeamRoute(
            "GET",
            f"{release}/artifact",
            f"{READ} {PUBLISH}",
            "give the archive of a release, by its version or channel",
            api.artifact,
            parameters=(name, version, MIN_REV),
            media_type="application/zip",
            kind="files",
        ),
        _change(f"{release}/approve", "approve the files of a release", api.approve, name, version, takes=("tree",)),
        _change(
            f"{release}/yank", "take a release out of channels and listings", api.yank, name, version, takes=("why",)
        ),
        _change(
            f"{skill}/channel",
            "let a channel mean another release",
            api.channel,
            name,
            takes=("channel", "version"),
            required=True,
        ),
        TeamRoute(
            "GET",
            "/api/v1/policy",
            f"{READ} {PUBLISH}",
            "show the policy of the tenant",
            api.policy,
            parameters=(MIN_REV,),
            gives=TeamPolicyAnswerForm,
        ),
        TeamRoute(
            "PUT",
            "/api/v1/policy",
            ADMIN,
            "change the policy of the tenant",
            api.set_policy,
            parameters=(MIN_REV,),
            body_bytes=CONFIG_BYTES,
            gives=TeamPolicyAnswerForm,
            takes=_json_body(schema_of(TeamPolicyForm)["properties"]),
        ),
    ]


def _change(
    path: str, summary: str, run: Any, *parameters: Parameter, takes: Sequence[str], required: bool = False
) -> TeamRoute:
    members = {name: {"type": "string"} for name in takes}
    return TeamRoute(
        "POST",
        path,
        PUBLISH,
        summary,
        run,
        parameters=(*parameters, MIN_REV),
        body_bytes=CONFIG_BYTES,
        gives=TeamReleaseChangeForm,
        takes=_json_body(members, required=takes if required else ()),
    )


def _json_body(members: Mapping[str, Any], *, required: Sequence[str] = ()) -> Mapping[str, Any]:
    needed = {"required": [*required]} if required else {}
    return {"application/json": {"schema": {"type": "object", "properties": members, **needed}}}


def _number(text: str | None, what: str) -> int:
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise ConfigurationError(f"{what} is a whole number")
    return int(text)


def demands_revision(request: TeamRequest) -> bool:
    """Return whether a request names the least revision that it may be answered from."""
    return MIN_REVISION_HEADER.lower() in request.headers or "min_rev" in request.query


def at_least(request: TeamRequest) -> int:
    """Return the least revision that a request may be answered from."""
    header = request.headers.get(MIN_REVISION_HEADER.lower())
    return max(_number(header, MIN_REVISION_HEADER), _number(request.query.get("min_rev"), "min_rev"))


def with_rev(answer: TeamAnswer, rev: int, tenant: str) -> TeamAnswer:
    """Return an answer with the revision of the tenant's catalog that it is made from."""
    marks = ((REVISION_HEADER.lower(), str(rev)), (TENANT_HEADER.lower(), tenant))
    return answer._replace(headers=(*answer.headers, *marks))


def _value(request: TeamRequest) -> Mapping[str, Any]:
    try:
        found = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ConfigurationError("the body is not a JSON object")
    return found


def _text(value: Mapping[str, Any], name: str, *, required: bool = False) -> str:
    found = value.get(name, "")
    if not isinstance(found, str) or (required and not found):
        raise ConfigurationError(f"{name} is a text")
    return found


def _answer(request: TeamRequest, content: Mapping[str, Any], rev: int, status: int = 200) -> TeamAnswer:
    return with_rev(json_answer({"rev": rev, **content}, status), rev, request.caller.tenant)


class _ReleaseApi:
    """The acts of the routes, each for a caller."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases

    def publish(self, request: TeamRequest) -> TeamAnswer:
        query = request.query
        accept = [rule for rule in query.get("accept_rule", "").split(",") if rule]
        upload = read_upload(request.body)
        found = self._releases.publish(
            request.caller,
            upload,
            version=query.get("version") or None,
            source=query.get("source", ""),
            commit=query.get("commit", ""),
            accept=accept,
            at_least=at_least(request),
        )
        if found.changed:
            request.services.metrics.add("skillshelf_releases_total")
        content = {**_changed(found), "findings": [*upload.findings]}
        return _answer(request, content, found.rev, 201 if found.changed else 200)

    def releases(self, request: TeamRequest) -> TeamAnswer:
        query = request.query
        rev, found, more = self._releases.listed(
            request.caller,
            after=query.get("after", ""),
            yanked=query.get("yanked") == "true",
            at_least=at_least(request),
        )
        return _answer(request, {"releases": [one.to_dict() for one in found], "next": more}, rev)

    def versions(self, request: TeamRequest) -> TeamAnswer:
        name = request.parts["name"]
        rev, found = self._releases.versions(request.caller, name, at_least=at_least(request))
        channels = {channel: one.version for one in found for channel in one.channels}
        return _answer(request, {"name": name, "channels": channels, "versions": [one.to_dict() for one in found]}, rev)

    def artifact(self, request: TeamRequest) -> TeamAnswer:
        path = request.parts
        rev, release, data = self._releases.artifact(
            request.caller, path["name"], path["version"], at_least=at_least(request)
        )
        headers = (("skillshelf-tree", release.tree), ("skillshelf-version", release.version))
        marks = (("skillshelf-yanked", "true"),) if release.yanked else ()
        return with_rev(
            TeamAnswer(data, media_type="application/zip", headers=(*headers, *marks)), rev, request.caller.tenant
        )

    def approve(self, request: TeamRequest) -> TeamAnswer:
        path = request.parts
        tree = _text(_value(request), "tree")
        found = self._releases.approve(request.caller, path["name"], path["version"], tree, at_least=at_least(request))
        return _answer(request, _changed(found), found.rev)

    def yank(self, request: TeamRequest) -> TeamAnswer:
        path = request.parts
        why = _text(_value(request), "why")
        found = self._releases.yank(request.caller, path["name"], path["version"], why, at_least=at_least(request))
        return _answer(request, _changed(found), found.rev)

    def channel(self, request: TeamRequest) -> TeamAnswer:
        value = _value(request)
        channel, version = _text(value, "channel", required=True), _text(value, "version", required=True)
        name, least = request.parts["name"], at_least(request)
        found = self._releases.move_channel(request.caller, name, channel, version, at_least=least)
        return _answer(request, _changed(found), found.rev)

    def policy(self, request: TeamRequest) -> TeamAnswer:
        rev = self._releases.rev(request.caller, at_least(request))
        return _answer(request, {"policy": self._releases.policy(request.caller).to_dict()}, rev)

    def set_policy(self, request: TeamRequest) -> TeamAnswer:
        policy = self._releases.set_policy(request.caller, _value(request), at_least=at_least(request))
        return _answer(request, {"policy": policy.to_dict()}, self._releases.rev(request.caller))


def _changed(found: ReleaseChange) -> dict[str, Any]:
    return {"changed": found.changed, "release": found.release.to_dict()}
