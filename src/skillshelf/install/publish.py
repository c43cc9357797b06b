"""Publish a skill: as files of a web site with a well-known index, or in an OCI registry."""

import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from skillshelf.catalog.document import frontmatter_span
from skillshelf.catalog.lock import is_installable_name
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.disk_writes import lock, make_parents, replace_file
from skillshelf.core.environment import Environment
from skillshelf.core.http_client import HttpAnswer, HttpRequest, require_found
from skillshelf.core.limits import OCI_MANIFEST_BYTES, SOURCE_ENTRIES, SOURCE_INDEX_BYTES, SOURCE_WHOLE_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, visible
from skillshelf.errors import ConfigurationError, SkillError, SourceRefused, SourceUnreachable
from skillshelf.install.oci import (
    ARTIFACT_TYPE,
    CONFIG_TYPE,
    LAYER_TYPE,
    MANIFEST_TYPE,
    NAME_ANNOTATION,
    RegistryClient,
)
from skillshelf.install.pack import tar_gzip_of, zip_of
from skillshelf.install.reference import SourceReference
from skillshelf.install.skill_entries import SKILL_FILE
from skillshelf.install.well_known import INDEX_PATH, INDEX_SCHEMA, json_value, skill_fields

__all__ = [
    "Published",
    "checked_fields",
    "publish_to_registry",
    "publish_to_site",
    "registry_tag",
    "upload_blob",
    "version_in",
]

_DESCRIPTION_CHARS = 1024
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
_DECIMAL = re.compile(r"\bversion[\"']?[ \t]*:[ \t]*([0-9]+\.[0-9]+)(?![^\s,}])")
_LOCK_SECONDS = 10


class Published(NamedTuple):
    """The artifact that was published: its place and digest, and whether anything had to be written for it."""

    place: str
    digest: str
    changed: bool


def checked_fields(contents: Mapping[str, bytes]) -> Mapping[str, Any]:
    """Return the frontmatter of a skill that others can install; raise SourceRefused for any other."""
    fields = skill_fields(contents)
    name, description = fields["name"], fields.get("description")
    if not is_installable_name(name):
        raise SourceRefused("name", f"{visible(cut(name, 100))!r} is not a name that a skill can be installed as")
    if not isinstance(description, str) or not description.strip():
        raise SourceRefused("description", f"{name} has no description, and nobody would know what it is for")
    if "\0" in description:
        raise SourceRefused("description", f"{name} has a NUL character in its description")
    return fields


# Sites --------------------------------------------------------------------------------------------


def publish_to_site(contents: Mapping[str, bytes], folder: str, *, dry_run: bool = False) -> Published:
    """Add a skill to a folder that a web server serves, and to its index; the files of other skills stay.

    The artifact has its digest in its address, so that a reader of the former index still gets what that promised.
    The index is replaced last, by one rename.
    """
    fields = checked_fields(contents)
    name = fields["name"]
    is_page = set(contents) == {SKILL_FILE} and type(contents[SKILL_FILE]) is bytes
    data = contents[SKILL_FILE] if is_page else zip_of(contents)
    digest = f"sha256:{sha256(data).hexdigest()}"
    url = f"{name}/{digest[7:23]}/{SKILL_FILE if is_page else f'{name}.zip'}"
    entry = {
        "name": name,
        "type": "skill-md" if is_page else "archive",
        "description": cut(fold(fields["description"]), _DESCRIPTION_CHARS),
        "url": url,
        "digest": digest,
    }
    index = f"{folder.rstrip('/')}{INDEX_PATH}"
    above = os.path.dirname(index)
    _refuse_links(folder, f"{INDEX_PATH.rpartition('/')[0]}/{url}")
    try:
        if dry_run:
            changed = _with_entry(index, entry) is not None or not _is_written(f"{above}/{url}", data)
            return Published(f"{above}/{url}", digest, changed)
        make_parents(above)
        opened = files.open_folder(files.real_path(above))
        held = files.open_to_list(opened, ".")
        try:
            if not lock(held, "alone", seconds=_LOCK_SECONDS):
                raise SkillError(f"{above}: another program has been publishing for {_LOCK_SECONDS} seconds")
            changed = _write_artifact(f"{above}/{url}", data)
            text = _with_entry(index, entry)
            if text is not None:
                replace_file(index, text, mode=0o644)
            return Published(f"{above}/{url}", digest, changed or text is not None)
        finally:
            files.close(held)
            files.close(opened)
    except OSError as error:
        raise SkillError(f"{error.filename or folder}: {(error.strerror or str(error)).lower()}") from None


def _refuse_links(folder: str, path: str) -> None:
    """Raise if a link below the folder would lead what is written to another place."""
    place = folder.rstrip("/")
    for part in path.strip("/").split("/"):
        place = f"{place}/{part}"
        if files.kind_at(place) == "link":
            raise SourceRefused("link", f"{place} is a link; nothing is published through it")


def _is_written(path: str, data: bytes) -> bool:
    return files.kind_at(path) == "file" and files.read_file(path, limit=len(data), links="never") == data


def _write_artifact(path: str, data: bytes) -> bool:
    """Write the bytes that a path promises by its name; return False if they are there."""
    if _is_written(path, data):
        return False
    make_parents(os.path.dirname(path))
    replace_file(path, data, mode=0o644)
    return True


def _with_entry(index: str, entry: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of an index with an entry; None if it has exactly that already."""
    before: Any = {"$schema": INDEX_SCHEMA, "skills": []}
    if files.kind_at(index) is not None:
        data = files.read_file(index, limit=SOURCE_INDEX_BYTES, links="never")
        before = json_value(data or b"", index, "index")
    skills = before.get("skills") if isinstance(before, dict) else None
    if not isinstance(skills, list) or before.get("$schema") != INDEX_SCHEMA:
        raise SourceRefused("index", f"{index} is not an index of version 0.2, and is left as it is")
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in skills):
        raise SourceRefused("index", f"{index} has an entry without a name, and is left as it is")
    if entry in skills:
        return None
    kept = [one for one in skills if one["name"] != entry["name"]]
    if len(kept) >= SOURCE_ENTRIES:
        raise SourceRefused("too-many-entries", f"{index} has {len(kept)} skills; at most {SOURCE_ENTRIES}")
    after = {**before, "skills": sorted([*kept, entry], key=lambda one: str(one["name"]))}
    return (json.dumps(after, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


# Registries ---------------------------------------------------------------------------------------


def registry_tag(reference: SourceReference, version: str | None) -> str:
    """Return the tag that a skill is published under: the one that was given, else its version, else `latest`."""
    if reference.ref is not None:
        if reference.ref.startswith("sha256:"):
            raise ConfigurationError("a skill is published under a tag, not under a digest")
        return reference.ref
    return version if version and _TAG.match(version) else "latest"


def version_in(contents: Mapping[str, bytes], fields: Mapping[str, Any]) -> str | None:
    """Return the version that the frontmatter of a skill says, in `version` or in its metadata, as it is written."""
    metadata = fields.get("metadata")
    found = fields.get("version") or (metadata.get("version") if isinstance(metadata, dict) else None)
    if isinstance(found, float):
        # YAML takes 1.10 for the number 1.1.
        start, end = frontmatter_span(contents[SKILL_FILE]) or (0, 0)
        text = contents[SKILL_FILE][start:end].decode("utf-8", "replace")
        return next((written for written in _DECIMAL.findall(text) if float(written) == found), str(found))
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else None


def publish_to_registry(
    contents: Mapping[str, bytes],
    reference: SourceReference,
    environment: Environment,
    *,
    allow_http: bool = False,
    dry_run: bool = False,
    seconds: float = SOURCE_WHOLE_SECONDS,
) -> Published:
    """Push a skill to a repository of a registry, by the agentskills profile; the manifest is sent last."""
    fields = checked_fields(contents)
    version = version_in(contents, fields)
    tag = registry_tag(reference, version)
    layer = tar_gzip_of(contents, wrapper=fields["name"])
    config = _compact(_config(fields, version))
    manifest = _compact(_manifest(fields, version, config, layer))
    digest = _digest(manifest)
    place = f"oci://{reference.location}:{tag}"
    if dry_run:
        return Published(place, digest, changed=True)
    client = RegistryClient(
        reference.location, environment, allow_http=allow_http, seconds=seconds, actions="pull,push"
    )
    for blob in (config, layer):
        _push_blob(client, blob)
    headers = {"Content-Type": MANIFEST_TYPE}
    answer = client.send(HttpRequest(client.address(f"manifests/{tag}"), OCI_MANIFEST_BYTES, "PUT", headers, manifest))
    _require(answer, 201, "the manifest")
    if answer.headers.get("docker-content-digest", digest) != digest:
        raise SourceRefused("digest", f"{client.host} stored another manifest than it was sent")
    return Published(place, digest, changed=True)


def _config(fields: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    """Return the configuration of a skill by the agentskills profile: its frontmatter in other names."""
    found: dict[str, Any] = {"schemaVersion": "1", "name": fields["name"], "description": fields["description"]}
    found["version"] = version
    found["license"], found["compatibility"] = fields.get("license"), fields.get("compatibility")
    tools = fields.get("allowed-tools")
    found["allowedTools"] = tools.split() if isinstance(tools, str) else tools
    found["metadata"] = fields.get("metadata")
    return {key: value for key, value in found.items() if value is not None}


def _manifest(fields: Mapping[str, Any], version: str | None, config: bytes, layer: bytes) -> dict[str, Any]:
    annotations = {
        NAME_ANNOTATION: fields["name"],
        "org.opencontainers.image.title": fields["name"],
        "org.opencontainers.image.description": fold(fields["description"]),
    }
    # No time: the same skill has the same digest tomorrow.
    for key, value in (("version", version), ("licenses", fields.get("license"))):
        if isinstance(value, str):
            annotations[f"org.opencontainers.image.{key}"] = value
    return {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": ARTIFACT_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "digest": _digest(config), "size": len(config)},
        "layers": [{"mediaType": LAYER_TYPE, "digest": _digest(layer), "size": len(layer)}],
        "annotations": annotations,
    }


def _compact(value: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise SourceRefused("frontmatter", "the frontmatter holds characters that cannot be written") from None


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _push_blob(client: RegistryClient, data: bytes) -> None:
    """Send a blob unless the registry has it."""
    address = client.address(f"blobs/{_digest(data)}")
    if client.send(HttpRequest(address, OCI_MANIFEST_BYTES, "HEAD")).status != 200:
        upload_blob(client, data)


def upload_blob(client: RegistryClient, data: bytes) -> None:
    """Send a blob to a registry, whether or not it has it: begin an upload, finish it."""
    digest, limit = _digest(data), OCI_MANIFEST_BYTES
    answer = client.send(HttpRequest(client.address("blobs/uploads/"), limit, "POST"))
    _require(answer, 202, "an upload")
    location = client.resolve(answer.headers.get("location", ""))
    url = f"{location}{'&' if '?' in location else '?'}{urlencode({'digest': digest})}"
    headers = {"Content-Type": "application/octet-stream"}
    answer = client.send(HttpRequest(url, limit, "PUT", headers, data))
    _require(answer, 201, "a blob")


def _require(answer: HttpAnswer, status: int, what: str) -> None:
    if answer.status == status:
        return
    if answer.status < 300:
        raise SourceUnreachable(f"{answer.url.partition('?')[0]} does not take {what} (status {answer.status})")
    require_found(answer)
