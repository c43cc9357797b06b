"""Resolve names, paths and `skill://` addresses to skills, and read files inside a skill and nowhere else."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import body, parse, parse_options
from skillshelf.catalog.packed import skills_at, skills_named
from skillshelf.catalog.rules import check, placed
from skillshelf.catalog.source import PUBLISHED_SCHEME, SOURCE_SCHEME
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.digests import sha256
from skillshelf.core.limits import (
    ADDRESS_CHARS,
    ADDRESS_SEGMENTS,
    LISTED_CHILDREN,
    LISTED_ENTRIES,
    RESOURCE_BYTES,
    SKILL_FILE_BYTES,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, encoded_path, fold, folded_name, for_model, visible, visible_for_model
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic, Filtered, RejectedFile, Shadowed
from skillshelf.errors import (
    AmbiguousSkill,
    FileReadError,
    InvalidFormat,
    LimitExceeded,
    PathEscape,
    ResourceNotFound,
    SkillFileNotFound,
    SkillNotFound,
    SkillNotUsable,
)

if TYPE_CHECKING:
    # Only a skill that is installed needs it.
    from skillshelf.catalog.locked_files import LockedFiles

__all__ = [
    "SKILL_FILE",
    "Listing",
    "LoadedSkill",
    "OmittedFile",
    "Resource",
    "ResourceAddress",
    "SkillFolder",
    "digest_of",
    "list_files",
    "listing_of",
    "load",
    "loaded_from",
    "loaded_locked",
    "near_names",
    "omissions",
    "omissions_of",
    "parse_address",
    "read_resource",
    "read_skill",
    "refusing",
    "resolve",
    "resource_of",
]


SCHEME = "skill://"


class ResourceAddress(NamedTuple):
    """The name of a skill and the path segments of one of its files, decoded and checked.

    A segment may hold bytes that are not UTF-8, as names of files do. `is_folder` is True if a slash follows the path.
    """

    name: str
    segments: tuple[str, ...]
    is_folder: bool = False


class Resource(NamedTuple):
    """One file of a skill; `content` is text, or base64 if the bytes are not UTF-8."""

    uri: str
    path: str
    content: str
    encoding: Literal["utf-8", "base64"]
    content_type: str
    size: int
    digest: str


class Listing(NamedTuple):
    """The files of a skill by relative path, their total number, and whether some are left out."""

    files: tuple[str, ...]
    total: int
    truncated: bool


def digest_of(data: bytes) -> str:
    """Return the digest of some bytes in the form that is used everywhere."""
    return "sha256:" + sha256(data).hexdigest()


# Addresses ----------------------------------------------------------------------------------------


def parse_address(uri: str) -> ResourceAddress:
    """Return the parsed address; raise PathEscape with the reason if it is not valid."""
    if len(uri) > ADDRESS_CHARS:
        raise LimitExceeded(f"an address has at most {ADDRESS_CHARS} characters")
    if any("\ud800" <= c <= "\udfff" for c in uri):
        raise PathEscape("an address must be UTF-8")
    if not uri.startswith(SCHEME):
        raise PathEscape(f"not an address of the form {SCHEME}<name>/<path>")
    if any(c < " " or "\x7f" <= c < "\xa0" or c in "\\?#" for c in uri):
        raise PathEscape("control characters, backslashes, `?` and `#` must be percent-encoded in an address")
    name, _, path = uri[len(SCHEME) :].partition("/")
    if not name:
        raise PathEscape(f"an address needs a skill's name: {SCHEME}<name>")
    segments = path.removesuffix("/").split("/") if path else []
    if len(segments) > ADDRESS_SEGMENTS:
        raise LimitExceeded(f"an address has at most {ADDRESS_SEGMENTS} segments")
    return ResourceAddress(_skill_name(name), tuple(map(_segment, segments)), path.endswith("/"))


def _decoded(text: str) -> str:
    """Return the text with its percent-encoding undone, once."""
    # By hand: importing `urllib.parse` takes as long as starting Python.
    first, *rest = text.split("%")
    data = first.encode()
    for part in rest:
        if len(part) < 2 or not all(c in _HEX for c in part[:2]):
            raise PathEscape("a `%` in an address must be followed by two hexadecimal digits")
        data += bytes([int(part[:2], 16)]) + part[2:].encode()
    return data.decode("utf-8", "surrogateescape")


def _skill_name(raw: str) -> str:
    decoded = _decoded(raw)
    if any("\ud800" <= c <= "\udfff" for c in decoded):
        raise PathEscape("the name of a skill in an address must be UTF-8")
    return decoded


_HEX = frozenset("0123456789abcdefABCDEF")


def _segment(raw: str) -> str:
    """Return one segment of a path, decoded; raise PathEscape if it leads to another folder."""
    name = _decoded(raw)
    if not name or name.startswith("/"):
        raise PathEscape(f"Absolute paths are not allowed in {SCHEME} addresses")
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or "." in parts:
        raise PathEscape(f"Path traversal (..) is not allowed in {SCHEME} addresses")
    if len(parts) > 1 or any(c < " " or "\x7f" <= c < "\xa0" for c in name) or len(files.path_bytes(name)) > 255:
        raise PathEscape("an address may not hold encoded slashes, backslashes or control characters")
    return name


# Names --------------------------------------------------------------------------------------------


class OmittedFile(NamedTuple):
    """A file that the catalog reports without holding it as a skill, and the entry that says why."""

    name: str
    path: str
    entry: Diagnostic | Shadowed | Filtered


def resolve(
    skills: Sequence[CatalogSkill],
    *,
    name: str | None = None,
    path: str | None = None,
    cwd: str = "/",
    real_path: Callable[[str], str] = files.real_path,
    may_have: Callable[[CatalogSkill], bool] | None = None,
    catalog: Catalog | None = None,
    withheld: Callable[[str], bool] = lambda path: False,
    names: Literal["exact", "folded"] = "folded",
) -> CatalogSkill:
    """Return the one skill that a path, or else a name, refers to.

    `names` is the profile's `collision_key`: where names are folded, `Deploy` means the skill `deploy` too. A name
    means the skills that the caller `may_have`, and only if there are none of them the others; among these one that is
    written exactly so comes first. Raise SkillNotFound with names that are close, SkillNotUsable with the reason if the
    `catalog` reports a file of that name or path without holding it, or AmbiguousSkill with the paths of all skills of
    that name. The reason does not describe a file that is `withheld`.
    """
    found = _named(skills, name or "", names) if path is None else _at_path(skills, path, cwd, real_path)
    if len(found) > 1 and may_have is not None:
        found = [skill for skill in found if may_have(skill)] or found
    if len(found) > 1:
        found = [skill for skill in found if skill.name == name] or found
    if len(found) > 1:
        raise AmbiguousSkill(found[0].name, [skill.path for skill in found])
    if found:
        return found[0]
    # A model is shown a name without what nobody sees, and gives it back so.
    as_shown = [s for s in skills if path is None and not s.name.isascii() and for_model(s.name) == name]
    if len(as_shown) == 1:
        return as_shown[0]
    wanted = (name if path is None else path) or ""
    omitted = omissions_of(catalog, name=name, path=path, cwd=cwd) if catalog is not None else []
    if omitted:
        raise SkillNotUsable(wanted, _reason(omitted, withheld))
    missing = SkillNotFound(wanted)
    missing.near = tuple(near_names(missing.name, skills))
    raise missing


def _named(skills: Sequence[CatalogSkill], name: str, names: Literal["exact", "folded"]) -> list[CatalogSkill]:
    """Return the skills of a name, in every spelling that is the same name."""
    alike = skills_named(skills, folded_name(name))
    return alike if names == "folded" else [skill for skill in alike if skill.name == name]


def _reason(omitted: Sequence[OmittedFile], withheld: Callable[[str], bool]) -> str:
    """Return why files are not in the catalog: the rule, the reason, and where; those that are not withheld first."""
    told = [omission for omission in omitted if not any(map(withheld, _paths_in(omission.entry)))]
    if not told:
        entry = omitted[0].entry
        line = f", line {entry.line}" if isinstance(entry, Diagnostic) and entry.line else ""
        return f"its file is not accepted (rule {_rule_of(entry)}{line}), in a folder that the user has not trusted"
    reasons = [_sentence(omission) for omission in told[:_REASONS]]
    more = f"; and {len(told) - _REASONS} more files" if len(told) > _REASONS else ""
    return "; ".join(reasons) + more


def _paths_in(entry: Diagnostic | Shadowed | Filtered) -> tuple[str, ...]:
    return (entry.path, entry.by) if isinstance(entry, Shadowed) else (entry.path,)


_REASONS = 3
_FILTERS: Mapping[str, str] = {
    "ignored": "the setting skills.ignored leaves it out",
    "not-included": "the setting skills.include does not name it",
    "source-off": "its source is switched off",
    "inside-skill": "it lies inside another skill",
    "too-deep": "it lies deeper than this profile searches",
    "limit": "it lies beyond a limit of the walk",
}


def _rule_of(entry: Diagnostic | Shadowed | Filtered) -> str:
    if isinstance(entry, Shadowed):
        return "shadowed"
    return entry.rule if isinstance(entry, Diagnostic) else entry.reason


def _sentence(omission: OmittedFile) -> str:
    """Return rule, reason and line of one file; what it quotes is cut and on one line."""
    entry = omission.entry
    if isinstance(entry, Diagnostic):
        line = f", line {entry.line}" if entry.line else ""
        return f"{cut(fold(entry.message), _QUOTED)} (rule {entry.rule}{line}): {visible(entry.path)}"
    if isinstance(entry, Shadowed):
        same = "is the same file as" if entry.same_file else "loses its name to"
        return f"{visible(entry.path)} {same} {visible(entry.by)} (rule shadowed)"
    return f"{_FILTERS[entry.reason]} (rule {entry.reason}): {visible(entry.path)}"


_QUOTED = 300
"""Characters of a message about a file that are quoted; it may quote the file."""


def _at_path(
    skills: Sequence[CatalogSkill], path: str, cwd: str, real_path: Callable[[str], str]
) -> list[CatalogSkill]:
    """Return the skill at a folder or SKILL.md, compared as found first and by its real path second."""
    wanted = _skill_file(path, cwd)
    if wanted is None:
        return []
    found = skills_at(skills, wanted)
    if not found:
        real = real_path(wanted)
        found = [skill for skill in skills if skill.real_path == real]
    return found[:1]


def _skill_file(path: str, cwd: str) -> str | None:
    """Return the absolute path of the SKILL.md that a path names; None if no file can have that path."""
    if len(path) > ADDRESS_CHARS or "\0" in path or any("\ud800" <= c <= "\udfff" for c in path):
        return None
    # An address of a live source or of a release is no path on a disk.
    wanted = path if path.startswith((SOURCE_SCHEME, PUBLISHED_SCHEME)) else os.path.normpath(os.path.join(cwd, path))
    return wanted if os.path.basename(wanted) == SKILL_FILE else os.path.join(wanted, SKILL_FILE)


def omissions(catalog: Catalog) -> Iterator[OmittedFile]:
    """Yield everything that was rejected, shadowed or filtered; a rejected file goes by the name of its folder."""
    for error in catalog.errors:
        is_skill_file = os.path.basename(error.path).lower() == SKILL_FILE.lower()
        folder = os.path.dirname(error.path) if is_skill_file else error.path
        yield OmittedFile(os.path.basename(folder), error.path, error)
    yield from (OmittedFile(loser.name, loser.path, loser) for loser in catalog.shadowed)
    yield from (OmittedFile(entry.name, entry.path, entry) for entry in catalog.filtered)


def omissions_of(
    catalog: Catalog, *, name: str | None = None, path: str | None = None, cwd: str = "/"
) -> list[OmittedFile]:
    """Return the omitted files at a path, or else of a name, that `resolve` does not find."""
    if path is None:
        folded = folded_name(name or "")
        return [one for one in omissions(catalog) if folded in [folded_name(known or "") for known in _names_of(one)]]
    wanted = _skill_file(path, cwd)
    return [omission for omission in omissions(catalog) if wanted in (omission.path, f"{omission.path}/{SKILL_FILE}")]


def _names_of(omission: OmittedFile) -> tuple[str | None, ...]:
    """Return what an omitted file may be called: the name of its folder, and the name in its frontmatter."""
    folder, file = os.path.split(omission.path)
    written = omission.entry.name if isinstance(omission.entry, RejectedFile) else None
    return omission.name, os.path.basename(folder) if file == SKILL_FILE else None, written


def near_names(name: str, skills: Sequence[CatalogSkill]) -> list[str]:
    """Return names of skills that resemble a misspelt one."""
    from skillshelf.core.text import near

    return near(name, (skill.name for skill in skills), 3)


# Reading ------------------------------------------------------------------------------------------


def read_skill(skill: CatalogSkill, *, limit: int) -> files.Contents:
    """Read the SKILL.md of a skill at its path in the catalog."""
    folder, name = os.path.split(skill.real_path)
    with refusing(skill.path, limit), files.Folder(folder) as here:
        return here.read((name,), limit=limit)


def read_resource(
    uri: str,
    skills: Sequence[CatalogSkill],
    profile: Profile,
    *,
    limit: int = RESOURCE_BYTES,
    catalog: Catalog | None = None,
    locked: "Callable[[CatalogSkill], LockedFiles | None]" = lambda skill: None,
) -> tuple[CatalogSkill, Resource]:
    """Return the skill and the file of an address; for a folder, a text with the names in it.

    `locked` gives the files of an installed skill, which are all that it has.
    """
    address = parse_address(uri)
    skill = resolve(skills, name=address.name, catalog=catalog, names=profile.collision_key)
    if (installed := locked(skill)) is not None:
        return skill, _locked_resource(uri, address, skill, installed, profile, limit)
    shown = encoded_path("/".join(address.segments)) or SKILL_FILE
    if not address.segments:
        return skill, resource_of(uri, skill.path, shown, read_skill(skill, limit=limit).data, profile)
    path = os.path.join(skill.dir, *address.segments)
    try:
        data = _read(skill.real_dir, address.segments, limit=limit, shown=shown).data
        if address.is_folder:
            raise PathEscape(f"a slash follows the path of a file: {shown}/")
    except IsADirectoryError:
        names = _children(skill.real_dir, address.segments, shown)
        return skill, resource_of(uri, path, "children.txt", "\n".join(names).encode(), profile)
    return skill, resource_of(uri, path, shown, data, profile)


def _locked_resource(
    uri: str, address: ResourceAddress, skill: CatalogSkill, installed: "LockedFiles", profile: Profile, limit: int
) -> Resource:
    """Return a file of an installed skill, or the names in one of its folders, from the bytes that were checked."""
    wanted = "/".join(address.segments)
    path = os.path.join(skill.dir, *address.segments) if wanted else skill.path
    shown = encoded_path(wanted) or SKILL_FILE
    found = installed.contents.get(wanted or os.path.basename(skill.real_path))
    if found is None:
        inside = _names_below(installed.contents, wanted)
        if not inside:
            raise ResourceNotFound(shown)
        return resource_of(uri, path, "children.txt", "\n".join(_shown_children(inside)).encode(), profile)
    if address.is_folder:
        raise PathEscape(f"a slash follows the path of a file: {shown}/")
    if len(found.data) > limit:
        raise LimitExceeded(f"{shown} has {len(found.data)} bytes; at most {limit} are read")
    return resource_of(uri, path, shown, found.data, profile)


def _names_below(paths: Iterable[str], folder: str) -> list[str]:
    """Return the names directly in a folder of these files; folders end in a slash."""
    below = [path[len(folder) + 1 :].partition("/") for path in paths if path.startswith(f"{folder}/")]
    return sorted({f"{name}{slash}" for name, slash, _ in below}, key=files.path_bytes)


def resource_of(uri: str, path: str, shown: str, data: bytes, profile: Profile) -> Resource:
    """Return the resource with these bytes; `shown` is the path in the skill, which decides its content type."""
    kind = CONTENT_TYPES[profile.content_types](shown)
    try:
        return Resource(uri, path, data.decode("utf-8"), "utf-8", kind, len(data), digest_of(data))
    except UnicodeDecodeError:
        from base64 import b64encode

        return Resource(uri, path, b64encode(data).decode(), "base64", kind, len(data), digest_of(data))


def _read(folder: str, segments: Sequence[str], *, limit: int, shown: str) -> files.Contents:
    """Read a regular file below a folder, opened segment by segment; a link is followed if it stays in the folder."""
    with refusing(shown, limit), files.Folder(folder) as here:
        real = here.resolve(segments)
        if not real:
            raise IsADirectoryError
        return here.read(real, limit=limit)


def _children(folder: str, segments: Sequence[str], shown: str) -> list[str]:
    with refusing(shown, 0), files.Folder(folder) as here:
        return _shown_children(here.children(here.resolve(segments), links="inside"))


def _shown_children(found: Iterable[str]) -> list[str]:
    names = [visible_for_model(encoded_path(name)) for name in found]
    if len(names) > LISTED_CHILDREN:
        return [*names[:LISTED_CHILDREN], f"({len(names) - LISTED_CHILDREN} more are not listed)"]
    return names


@contextmanager
def refusing(shown: str, limit: int) -> Iterator[None]:
    """Turn failures of file access into errors that name the requested path; IsADirectoryError passes."""
    try:
        yield
    except FileNotFoundError:
        raise ResourceNotFound(shown) from None
    except IsADirectoryError:
        raise
    except files.NotRegular as error:
        raise PathEscape(f"not a regular file: {shown} ({error.kind})") from None
    except files.TooLarge as error:
        raise LimitExceeded(f"{shown} has {error.size} bytes; at most {limit} are read") from None
    except OSError as error:
        raise FileReadError(shown, error) from error


def list_files(skill: CatalogSkill, *, most: int, most_bytes: int | None) -> Listing:
    """List the regular files of a skill except its SKILL.md, sorted before anything is cut; see `encoded_path`."""
    try:
        with files.Folder(skill.real_dir) as here:
            found, complete = here.files(LISTED_ENTRIES)
    except OSError:
        return Listing((), 0, True)
    return listing_of(found, most=most, most_bytes=most_bytes, complete=complete)


def listing_of(found: Iterable[str], *, most: int, most_bytes: int | None, complete: bool = True) -> Listing:
    """Return these files of a skill as a listing, without its SKILL.md."""
    paths = sorted((path for path in found if path != SKILL_FILE), key=files.path_bytes)
    kept: list[str] = []
    used = 0
    for path in paths[:most]:
        shown = encoded_path(path)
        used += len(shown.encode()) + 1
        if most_bytes is not None and used > most_bytes:
            break
        kept.append(shown)
    return Listing(tuple(kept), len(paths), not complete or len(kept) < len(paths))


# Content types ------------------------------------------------------------------------------------


def _markdown_or_plain(path: str) -> str:
    return "text/markdown" if path.lower().endswith(".md") else "text/plain"


def _by_extension(path: str) -> str:
    if path.lower().endswith((".md", ".markdown")):
        return "text/markdown"
    return _TYPES.get(path.lower().rpartition(".")[2], "text/plain")


# The platform's table differs between machines; the same file must have the same type on all of them.
_TYPES = {
    "css": "text/css",
    "csv": "text/csv",
    "gif": "image/gif",
    "gz": "application/gzip",
    "htm": "text/html",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "pdf": "application/pdf",
    "png": "image/png",
    "py": "text/x-python",
    "sh": "application/x-sh",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "ttf": "font/ttf",
    "wasm": "application/wasm",
    "webp": "image/webp",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
}

CONTENT_TYPES = {"markdown-or-plain": _markdown_or_plain, "by-extension": _by_extension}


class LoadedSkill(NamedTuple):
    """A skill whose bytes were read and digested just now.

    `data` is the whole file, `content` the same as text, `body` the text after the frontmatter.
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
    mtime_ns: int = 0
    tree: str | None = None
    """The tree of an installed skill, which all of its files have."""


class SkillFolder(NamedTuple):
    """The files beside a SKILL.md, as far as a load shows them."""

    listing: Listing
    has_scripts: bool
    has_references: bool
    has_assets: bool


def _folder_of(skill: CatalogSkill, profile: Profile) -> SkillFolder:
    listing = list_files(skill, most=profile.listed_files, most_bytes=profile.listed_bytes)
    has = (files.kind_at(os.path.join(skill.real_dir, name)) == "folder" for name in _RESOURCE_FOLDERS)
    return SkillFolder(listing, *has)


_RESOURCE_FOLDERS = ("scripts", "references", "assets")


def load(skill: CatalogSkill, profile: Profile) -> LoadedSkill:
    """Return the skill as it is on disk now; raise if it is gone or no longer valid."""
    try:
        data, mtime_ns, _ = read_skill(skill, limit=SKILL_FILE_BYTES)
    except ResourceNotFound:
        raise SkillFileNotFound(skill.path) from None
    except (IsADirectoryError, PathEscape):
        raise InvalidFormat(f"SKILL.md is no longer a regular file: {skill.path}") from None
    return loaded_from(skill, data, mtime_ns, profile)


def loaded_locked(skill: CatalogSkill, installed: "LockedFiles", profile: Profile) -> LoadedSkill:
    """Return an installed skill from the bytes that were checked; the files that it lists are those and no others."""
    found = installed.contents.get(os.path.basename(skill.real_path))
    if found is None:
        raise SkillFileNotFound(skill.path)
    if len(found.data) > SKILL_FILE_BYTES:
        raise LimitExceeded(f"{skill.path} has {len(found.data)} bytes; at most {SKILL_FILE_BYTES} are read")
    listing = listing_of(installed.contents, complete=True, most=profile.listed_files, most_bytes=profile.listed_bytes)
    has = (any(path.startswith(f"{name}/") for path in installed.contents) for name in _RESOURCE_FOLDERS)
    loaded = loaded_from(skill, found.data, found.mtime_ns, profile, folder=SkillFolder(listing, *has))
    if installed.extra:
        from skillshelf.catalog.lock_places import EXTRA

        loaded = loaded._replace(warnings=(*loaded.warnings, Diagnostic(skill.path, EXTRA, installed.extra_text)))
    return loaded._replace(tree=installed.tree.digest)


def loaded_from(
    skill: CatalogSkill, data: bytes, mtime_ns: int, profile: Profile, *, folder: SkillFolder | None = None
) -> LoadedSkill:
    """Return the skill with these bytes as its SKILL.md, checked again; its folder is looked at unless it is given."""
    fields = _recheck(skill, data, profile)
    is_remote = skill.scope == "remote"
    if is_remote:
        # A source neither grants nor narrows the use of tools.
        fields = {key: value for key, value in fields.items() if key != "allowed-tools"}
    try:
        content = data.decode("utf-8-sig")
        text = body(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFormat(f"not UTF-8 at byte {error.start}: {skill.path}") from None
    listing, *has = folder or _folder_of(skill, profile)
    changed = Diagnostic(skill.path, "changed", "the file changed since the catalog was built; this is its new text")
    return LoadedSkill(
        skill=skill,
        data=data,
        content=content,
        body=text,
        digest=digest_of(data),
        mtime_ms=max(0, mtime_ns // 1_000_000),
        files=listing.files,
        files_total=listing.total,
        files_truncated=listing.truncated,
        has_scripts=has[0],
        has_references=has[1],
        has_assets=has[2],
        warnings=() if not skill.mtime_ns or (len(data), mtime_ns) == (skill.size, skill.mtime_ns) else (changed,),
        frontmatter=fields,
        mtime_ns=mtime_ns,
    )


def _recheck(skill: CatalogSkill, data: bytes, profile: Profile) -> Mapping[str, Any]:
    """Return the current frontmatter fields; raise if the profile would now reject the file."""
    document = parse(data, whole=True, options=parse_options(profile))
    directory = os.path.basename(os.path.dirname(skill.path))
    for finding in check(document, directory, profile):
        optional = finding.rule == "description-missing" and not skill.description
        if profile.rules[finding.rule] == "reject" and not optional:
            finding = placed(finding, document)
            raise InvalidFormat(f"{finding.message} ({finding.rule}, line {finding.line}): {skill.path}")
    if document.fields.get("disable-model-invocation") and not skill.frontmatter.get("disable-model-invocation"):
        raise InvalidFormat(f"the file was hidden from models after the catalog was built; refresh it: {skill.path}")
    return document.fields
