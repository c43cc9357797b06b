"""A name or path to a loaded skill: read anew, digested, checked once more, with the list of its files."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skillshelf.catalog import resources
from skillshelf.catalog.document import body, form_of, parse
from skillshelf.catalog.rules import check, placed
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import ADDRESS_CHARS, SKILL_FILE_BYTES
from skillshelf.core.values import CatalogSkill, Diagnostic
from skillshelf.errors import (
    AmbiguousSkill,
    InvalidFormat,
    PathEscape,
    ResourceNotFound,
    SkillFileNotFound,
    SkillNotFound,
)

__all__ = ["LoadedSkill", "load", "loaded_from", "near_names", "resolve"]


class LoadedSkill(NamedTuple):
    """A skill whose bytes were read and digested just now.

    `data` is the whole file, `content` the same as text, `body` what follows its frontmatter.
    """

    skill: CatalogSkill
    data: bytes
    content: str
    body: str
    digest: str
    mtime_ms: int
    files: tuple[str, ...]
    files_total: int
    files_truncated: bool
    has_scripts: bool
    has_references: bool
    has_assets: bool
    warnings: tuple[Diagnostic, ...]
    frontmatter: Mapping[str, Any] = {}


def resolve(
    skills: Sequence[CatalogSkill], *, name: str | None = None, path: str | None = None, cwd: str
) -> CatalogSkill:
    """The one skill of the catalog that a path, or else a name, means; a path wins."""
    if path is not None:
        return _by_path(skills, path, cwd)
    named = [skill for skill in skills if skill.name == name]
    if not named:
        raise SkillNotFound(name or "")
    if len(named) > 1:
        raise AmbiguousSkill(named[0].name, [skill.path for skill in named])
    return named[0]


def _by_path(skills: Sequence[CatalogSkill], path: str, cwd: str) -> CatalogSkill:
    """A folder or its SKILL.md, relative to the working directory, as found or by its real path."""
    if len(path) > ADDRESS_CHARS or "\0" in path or any("\ud800" <= c <= "\udfff" for c in path):
        raise SkillNotFound(path)
    wanted = os.path.normpath(os.path.join(cwd, path))
    if os.path.basename(wanted) != resources.SKILL_FILE:
        wanted = os.path.join(wanted, resources.SKILL_FILE)
    for skill in skills:
        if skill.path == wanted:
            return skill
    real = files.real_path(wanted)
    for skill in skills:
        if skill.real_path == real:
            return skill
    raise SkillNotFound(path)


def near_names(name: str, skills: Sequence[CatalogSkill]) -> list[str]:
    """Names that somebody who wrote this one may have meant."""
    from difflib import get_close_matches

    if len(name) > 200:
        return []
    known = {skill.name.lower(): skill.name for skill in skills}
    return [known[near] for near in get_close_matches(name.lower(), list(known), 3, 0.6)]


def load(skill: CatalogSkill, profile: Profile) -> LoadedSkill:
    """The skill as it is on disk now; an error where it is gone or no longer valid."""
    try:
        data, mtime_ns, _ = resources.read_skill(skill, limit=SKILL_FILE_BYTES)
    except ResourceNotFound:
        raise SkillFileNotFound(skill.path) from None
    except (IsADirectoryError, PathEscape):
        raise InvalidFormat(f"SKILL.md is no regular file any more: {skill.path}") from None
    return loaded_from(skill, data, mtime_ns, profile)


def loaded_from(skill: CatalogSkill, data: bytes, mtime_ns: int, profile: Profile) -> LoadedSkill:
    """The skill that these bytes of its SKILL.md make, checked once more."""
    fields = _recheck(skill, data, profile)
    try:
        content = data.decode("utf-8-sig")
        text = body(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFormat(f"not UTF-8 at byte {error.start}: {skill.path}") from None
    listing = resources.list_files(skill, most=profile.listed_files, most_bytes=profile.listed_bytes)
    return LoadedSkill(
        skill=skill,
        data=data,
        content=content,
        body=text,
        digest=resources.digest_of(data),
        mtime_ms=max(0, mtime_ns // 1_000_000),
        files=listing.files,
        files_total=listing.total,
        files_truncated=listing.truncated,
        **{f"has_{name}": _has_folder(skill, name) for name in ("scripts", "references", "assets")},
        warnings=_changes(skill, len(data), mtime_ns),
        frontmatter=fields,
    )


def _changes(skill: CatalogSkill, size: int, mtime_ns: int) -> tuple[Diagnostic, ...]:
    if (size, mtime_ns) == (skill.size, skill.mtime_ns):
        return ()
    return (Diagnostic(skill.path, "changed", "the file changed since the catalog was made; this is its new text"),)


def _recheck(skill: CatalogSkill, data: bytes, profile: Profile) -> Mapping[str, Any]:
    """The fields of the frontmatter as they are now; raises if the file would not be in the catalog any more."""
    document = parse(data, whole=True, form=form_of(profile))
    directory = os.path.basename(os.path.dirname(skill.path))
    for finding in check(document, directory, profile):
        optional = finding.rule == "description-missing" and not skill.description
        if profile.rules[finding.rule] == "reject" and not optional:
            finding = placed(finding, document)
            raise InvalidFormat(f"{finding.message} ({finding.rule}, line {finding.line}): {skill.path}")
    if document.fields.get("disable-model-invocation") and not skill.frontmatter.get("disable-model-invocation"):
        raise InvalidFormat(f"the file was closed to models since the catalog was made; look again: {skill.path}")
    return document.fields


def _has_folder(skill: CatalogSkill, name: str) -> bool:
    return files.kind_at(os.path.join(skill.real_dir, name)) == "folder"
