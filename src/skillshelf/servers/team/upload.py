"""Check the archive that a release is published with, and make the one that is kept of it."""

import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from skillshelf.catalog.document import parse, parse_options
from skillshelf.catalog.rules import check, placed
from skillshelf.catalog.source import SourceLimits
from skillshelf.catalog.store import listed_files
from skillshelf.catalog.tree import manifest_of, tree_digest
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, find_profile
from skillshelf.core.limits import RELEASE_VERSION_CHARS, SKILL_FILE_BYTES, UPLOAD_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, visible
from skillshelf.errors import ConfigurationError, PermissionDenied, SourceRefused
from skillshelf.install.archive import ArchiveKind, unpack
from skillshelf.install.pack import zip_of
from skillshelf.install.publish import checked_fields, version_in
from skillshelf.install.skill_entries import SKILL_FILE, check_sizes, files_below, skill_folders
from skillshelf.servers.team.blobs import digest_of

if TYPE_CHECKING:
    from skillshelf.core.json_types import SecurityFindingForm

__all__ = ["Upload", "checked_version", "read_upload", "require_accepted", "unpacked_artifact"]

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*\Z")
_RESERVED = ("latest", "approved")


class Upload(NamedTuple):
    """A skill that can be published: its files, their tree, and the deterministic archive that is kept of them."""

    name: str
    description: str
    fields: Mapping[str, Any]
    version: str | None
    contents: Mapping[str, bytes]
    tree: str
    manifest: str
    artifact: bytes
    findings: "tuple[SecurityFindingForm, ...]"

    @property
    def artifact_digest(self) -> str:
        """The digest of the archive."""
        return digest_of(self.artifact)

    @property
    def size(self) -> int:
        """The bytes of SKILL.md."""
        return len(self.contents[SKILL_FILE])

    @property
    def fields_text(self) -> str:
        """The frontmatter as JSON text."""
        return json.dumps(self.fields, ensure_ascii=False, default=str)


def read_upload(data: bytes) -> Upload:
    """Return the skill in an archive; nothing that the sender says about it counts.

    Raise SourceRefused with the rule for what no skill may have, or what the standard profile rejects.
    """
    if len(data) > UPLOAD_BYTES:
        raise SourceRefused("too-large", f"the archive has more than {UPLOAD_BYTES} bytes (UPLOAD_BYTES)")
    contents = _one_skill(unpack(data, SourceLimits(), kind=_kind_of(data)))
    check_sizes({path: len(one) for path, one in contents.items()}, SourceLimits())
    listed = listed_files(contents)
    if len(contents[SKILL_FILE]) <= SKILL_FILE_BYTES:
        # First: why a frontmatter cannot be read says more than that it has no name.
        _require_accepted_by_profile(contents[SKILL_FILE])
    fields = checked_fields(contents)
    version = version_in(contents, fields)
    return Upload(
        fields["name"],
        fields["description"].strip(),
        fields,
        version,
        contents,
        tree_digest(listed),
        manifest_of(listed),
        zip_of(contents),
        _findings(contents, fields["name"]),
    )


def unpacked_artifact(data: bytes) -> dict[str, bytes]:
    """Return the files of an archive that was kept of a release."""
    return unpack(data, SourceLimits(), kind="zip")


def _kind_of(data: bytes) -> ArchiveKind:
    if data.startswith(b"PK"):
        return "zip"
    if data.startswith(b"\x1f\x8b"):
        return "tar.gz"
    raise SourceRefused("not-an-archive", "it is neither a zip nor a tar.gz, which `skillshelf pack` makes")


def _one_skill(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of the one skill of an archive, which may lie in a folder."""
    folders = skill_folders(contents)
    if not folders:
        raise SourceRefused("no-skill", f"the archive holds no {SKILL_FILE}")
    if len(folders) > 1:
        raise SourceRefused("several-skills", f"the archive holds {len(folders)} skills; publish each by itself")
    found = files_below(contents, folders[0])
    if len(found) != len(contents):
        raise SourceRefused("outside", f"the archive holds files outside of its skill {visible(folders[0])!r}")
    return found


def _require_accepted_by_profile(data: bytes) -> None:
    profile = find_profile(DEFAULT_PROFILE, {})
    document = parse(data, whole=True, options=parse_options(profile))
    # Its folder is named as it is.
    for finding in check(document, str(document.fields.get("name")), profile):
        if profile.rules[finding.rule] == "reject":
            one = placed(finding, document)
            raise SourceRefused(one.rule, f"{SKILL_FILE}:{one.line}: {visible(cut(one.message, 300))}")


def _findings(contents: Mapping[str, bytes], name: str) -> "tuple[SecurityFindingForm, ...]":
    from skillshelf.lint.consent import consent_needed
    from skillshelf.lint.security import security_findings

    return tuple(consent_needed({f"{name}/{SKILL_FILE}": security_findings(contents)}).rows())


def require_accepted(upload: Upload, accepted: Collection[str]) -> None:
    """Raise PermissionDenied if a security rule of severity error found something, and is not accepted."""
    errors = [one for one in upload.findings if one["severity"] == "error" and one["rule"] not in accepted]
    if not errors:
        return
    rules = ", ".join(sorted({one["rule"] for one in errors}))
    first = errors[0]
    denied = PermissionDenied(
        f"{upload.name} is not published: {rules} at {visible(first['path'])}:{first['line']}: {first['message']} "
        "(an admin may accept a rule with --accept-rule)"
    )
    denied.findings = upload.findings
    raise denied


def checked_version(version: str) -> str:
    """Return the version of a release, or raise ConfigurationError."""
    if not _VERSION.match(version) or len(version) > RELEASE_VERSION_CHARS or version.lower() in _RESERVED:
        raise ConfigurationError(
            f"a version has at most {RELEASE_VERSION_CHARS} letters, digits and any of . _ + -, "
            f"and is not the name of a channel: {visible(cut(version, 100))!r}"
        )
    return version
