"""Loaders under the API names of the described systems, built on this package's own functions."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from skillshelf.catalog import build as catalogs
from skillshelf.catalog.build_context import require_allowed
from skillshelf.catalog.discovery import SKILL_FILE, discover
from skillshelf.catalog.document import ParsedFrontmatter, body, has_frontmatter_end, parse
from skillshelf.catalog.lock_places import may_be_locked
from skillshelf.catalog.rules import check, placed
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.builtin_profiles import LOADER_PROFILES
from skillshelf.config.profile import Profile, RootRule
from skillshelf.config.settings import SWITCHES, Settings, load_system_policy, with_system_policy
from skillshelf.core import files
from skillshelf.core.environment import make_environment
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Catalog, CatalogSkill, Finding, SkillMetadata, metadata_of
from skillshelf.errors import (
    FileReadError,
    InvalidFormat,
    PathEscape,
    SkillDirectoryNotFound,
    SkillError,
    SkillFileNotFound,
    ValidationFailed,
    YamlParsingError,
)
from skillshelf.session.system_rules import require_usable
from skillshelf.shelf import open_shelf

__all__ = ["Skill", "SkillDiscovery", "SkillLoader", "SkillMeta", "discover_skills", "discover_skills_from_dir"]


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill on disk: its metadata, and its instructions if it was activated."""

    metadata: SkillMetadata
    instructions: str | None
    directory_path: str

    @property
    def id(self) -> str:
        """The name of the skill."""
        return self.metadata.name

    @property
    def skill_file_path(self) -> str:
        """The path of the SKILL.md."""
        return os.path.join(self.directory_path, SKILL_FILE)

    @property
    def has_scripts(self) -> bool:
        """True if there is a folder `scripts`."""
        return self._has("scripts")

    @property
    def has_references(self) -> bool:
        """True if there is a folder `references`."""
        return self._has("references")

    @property
    def has_assets(self) -> bool:
        """True if there is a folder `assets`."""
        return self._has("assets")

    def resource_path(self, relative: str) -> str:
        """Return the absolute path of a file inside the skill; raise `PathEscape` for any other, also behind a link."""
        if not relative or os.path.isabs(relative) or "\0" in relative or ".." in relative.split("/"):
            raise PathEscape(f"not a path inside the skill: {relative!r}")
        path = os.path.normpath(os.path.join(self.directory_path, relative))
        if not files.is_inside(files.real_path(path), files.real_path(self.directory_path)):
            raise PathEscape(f"a link leads out of the skill: {relative!r}")
        return path

    def _replace(self, **changes: Any) -> "Skill":
        return replace(self, **changes)

    def _has(self, name: str) -> bool:
        return files.kind_at(os.path.join(self.directory_path, name)) == "folder"


class SkillMeta(NamedTuple):
    """A skill as a project's loader lists it; `base_dir` is relative to the project."""

    name: str
    description: str
    path: str
    base_dir: str
    mtime: float


class SkillLoader:
    """Reads single skills (static methods), or scans and keeps the skills of one project (an instance)."""

    def __init__(self, project_root: str | os.PathLike[str]) -> None:
        self.project_root = os.path.abspath(os.fspath(project_root))
        self._catalog: Catalog | None = None

    @staticmethod
    def load_metadata(directory: str | os.PathLike[str]) -> Skill:
        """Return a skill without its instructions; the body is not read."""
        path = os.path.abspath(os.fspath(directory))
        head = _read_skill_file(path, whole=False)
        metadata = _metadata(parse(head.data, whole=head.whole), path, head.mtime_ns)
        return Skill(metadata, None, path)

    @staticmethod
    def load_full(directory: str | os.PathLike[str]) -> Skill:
        """Return a skill with its instructions."""
        path = os.path.abspath(os.fspath(directory))
        head = _read_skill_file(path, whole=True)
        metadata = _metadata(parse(head.data, whole=True), path, head.mtime_ns)
        _require_allowed(metadata.name, path)
        try:
            text = body(head.data).decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidFormat(f"the body is not UTF-8 (byte {error.start} after the frontmatter)") from None
        return Skill(metadata, text.strip(), path)

    @staticmethod
    def parse_frontmatter(content: str) -> tuple[SkillMetadata, str]:
        """Return metadata and body of a text; without a folder, the name is not compared with one."""
        data = content.encode("utf-8", "surrogatepass")
        document = parse(data, whole=True)
        profile = LOADER_PROFILES["registry"]
        directory = document.fields.get("name")
        findings = check(document, directory if isinstance(directory, str) else "", profile)
        _raise_first(findings, profile, only=("name-missing", "description-missing", "name-type", "description-type"))
        return metadata_of(document.fields), body(data).decode("utf-8", "surrogatepass")

    @staticmethod
    def validate(metadata: SkillMetadata, directory_name: str) -> None:
        """Raise ValidationFailed for the first rule that the metadata breaks."""
        fields: dict[str, Any] = {"name": metadata.name, "description": metadata.description}
        if metadata.compatibility is not None:
            fields["compatibility"] = metadata.compatibility
        profile = LOADER_PROFILES["registry"]
        _raise_first(check(ParsedFrontmatter(fields, "", ()), directory_name, profile), profile)

    def scan(self) -> list[SkillMeta]:
        """Scan the project's folder; files that are skipped are logged."""
        self._catalog = _scan(self.project_root, LOADER_PROFILES["project"]._replace(markers=()))
        _log(self._catalog)
        return [self._meta(skill) for skill in self._catalog.skills]

    def list_skills(self) -> list[SkillMeta]:
        """Return the skills of the last scan, sorted by name."""
        return [self._meta(skill) for skill in self._skills()]

    def get_skill(self, name: str) -> SkillMeta | None:
        """Return the skill of that name, or None."""
        return next((self._meta(skill) for skill in self._skills() if skill.name == name), None)

    def refresh_if_stale(self) -> bool:
        """Scan again; return True if the catalog has changed."""
        before = self._catalog
        self._catalog = _scan(self.project_root, LOADER_PROFILES["project"]._replace(markers=()))
        if before == self._catalog:
            return False
        _log(self._catalog)
        return True

    @property
    def catalog(self) -> Catalog:
        """The catalog of the last scan."""
        if self._catalog is None:
            self.scan()
        assert self._catalog is not None
        return self._catalog

    def _skills(self) -> Sequence[CatalogSkill]:
        return self.catalog.skills

    def _meta(self, skill: CatalogSkill) -> SkillMeta:
        base = os.path.relpath(skill.dir, self.project_root)
        return SkillMeta(skill.name, skill.description, skill.path, base, skill.mtime_ns / 1e9)


class SkillDiscovery:
    """Finds skills in the standard folders, in one folder, or in those of an environment variable."""

    _profile: ClassVar[Profile] = LOADER_PROFILES["registry"]
    environment_variable: ClassVar[str] = _profile.env[0]
    standard_paths: ClassVar[tuple[str, ...]] = tuple(
        ("~/" if rule.base == "home" else "./") + path
        for rule in _profile.roots
        if rule.base in ("home", "cwd")
        for path in rule.paths
    )

    @classmethod
    def discover_all(cls) -> list[Skill]:
        """Return the skills of all search paths, without instructions; the last of a name wins."""
        return [_skill(skill) for skill in open_shelf(profile=cls._profile.name).catalog.skills]

    @classmethod
    def discover(cls, path: str | os.PathLike[str]) -> list[Skill]:
        """Return the valid skills directly below one folder."""
        folder = os.path.abspath(os.path.expanduser(os.fspath(path)))
        if not os.path.isdir(folder):
            raise SkillDirectoryNotFound(folder)
        return [_skill(skill) for skill in _scan_folder(folder, cls._profile).skills]

    @classmethod
    def search_paths(cls) -> list[str]:
        """Return the standard paths, then those of the environment variable, expanded."""
        value = os.environ.get(cls.environment_variable, "")
        named = [*cls.standard_paths, *(entry for entry in value.split(":") if entry)]
        return [os.path.abspath(os.path.expanduser(path)) for path in named]

    @staticmethod
    def is_skill_directory(path: str | os.PathLike[str]) -> bool:
        """Return True if the folder contains a SKILL.md; a link counts if it leads to a file."""
        file = os.path.join(os.path.expanduser(os.fspath(path)), SKILL_FILE)
        return "\0" not in file and files.kind_at(files.real_path(file)) == "file"


def discover_skills(
    cwd: str | os.PathLike[str] | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    enabled: bool = True,
    custom_directories: tuple[str, ...] = (),
    ignored_skills: tuple[str, ...] = (),
    include_skills: tuple[str, ...] = (),
    **switches: bool,
) -> Catalog:
    """Return the skills of all providers by priority, then of custom directories; `switches` turn sources off."""
    if unknown := sorted(set(switches) - set(SWITCHES)):
        raise TypeError(f"unknown switch: {', '.join(unknown)} (valid are {', '.join(SWITCHES)})")
    config: Mapping[str, Any] = {
        "skills": {
            "enabled": enabled,
            "custom_directories": list(custom_directories),
            "ignored": list(ignored_skills),
            "include": list(include_skills),
            "sources": dict(switches),
        }
    }
    return open_shelf(cwd, LOADER_PROFILES["providers"].name, home=home, config=config).catalog


def discover_skills_from_dir(dir: str | os.PathLike[str], source: str) -> Catalog:  # noqa: A002
    """Return the skills one level below a folder, with the given source."""
    folder = os.path.abspath(os.path.expanduser(os.fspath(dir)))
    catalog = _scan_folder(folder, LOADER_PROFILES["providers"])
    return catalog._replace(skills=tuple(skill._replace(source=source) for skill in catalog.skills))


# Scans -------------------------------------------------------------------------------------


def _scan(project_root: str, profile: Profile) -> Catalog:
    environment = make_environment(project_root, None, {})
    settings = with_system_policy(Settings(), load_system_policy(environment))
    roots = resolve_roots(profile, environment, settings, trust="all")
    return catalogs.build(discover(roots.roots, profile, repository=roots.repository), roots, profile, settings)


def _scan_folder(folder: str, profile: Profile) -> Catalog:
    """Return the catalog of one folder, as if the profile had no other root."""
    rule = RootRule("custom", "cwd", (".",))
    return _scan(folder, profile._replace(roots=(rule,), markers=()))


def _log(catalog: Catalog) -> None:
    from logging import getLogger

    logger = getLogger("skillshelf")
    for diagnostic in (*catalog.errors, *catalog.warnings):
        logger.warning("%s: %s (%s)", diagnostic.path, diagnostic.message, diagnostic.rule)


def _skill(skill: CatalogSkill) -> Skill:
    return Skill(skill.metadata, None, skill.dir)


# One skill ----------------------------------------------------------------------------------------


class _SkillFileBytes(NamedTuple):
    data: bytes
    whole: bool
    mtime_ns: int


def _read_skill_file(directory: str, *, whole: bool) -> _SkillFileBytes:
    """Return the bytes of a folder's SKILL.md."""
    path = os.path.join(directory, SKILL_FILE)
    try:
        if files.kind_at(files.resolve_link(directory)) != "folder":
            raise SkillDirectoryNotFound(directory)
    except (FileNotFoundError, NotADirectoryError):
        raise SkillDirectoryNotFound(directory) from None
    except OSError as error:
        raise FileReadError(directory, error) from error
    if (installed := _installed_bytes(directory)) is not None:
        return installed
    try:
        parent, name = os.path.split(files.resolve_link(path))
        folder = files.open_folder(parent)
    except FileNotFoundError:
        raise SkillFileNotFound(path) from None
    except OSError as error:
        raise FileReadError(path, error) from error
    try:
        enough = (lambda head: False) if whole else has_frontmatter_end
        head = files.read_head(folder, name, limit=SKILL_FILE_BYTES, enough=enough, most=SKILL_FILE_BYTES)
    except OSError as error:
        raise FileReadError(path, error) from error
    finally:
        files.close(folder)
    if head.data is None:
        raise InvalidFormat(f"SKILL.md is a {head.kind} of {head.size} bytes, not a file within the limit")
    return _SkillFileBytes(head.data, len(head.data) >= head.size, head.stamp[3])


def _installed_bytes(directory: str) -> _SkillFileBytes | None:
    """Return the SKILL.md of an installed skill, all files of which were checked; None for any other skill."""
    place, environment = os.path.abspath(directory), make_environment(None, None, None)
    real = files.real_path(place)
    if not may_be_locked(environment, (real, place)):
        return None
    from skillshelf.catalog.locked_files import read_locked

    installed = read_locked(real, environment, place=place)
    if installed is None:
        return None
    found = installed.contents.get(SKILL_FILE)
    if found is None:
        raise SkillFileNotFound(os.path.join(directory, SKILL_FILE))
    return _SkillFileBytes(found.data, True, found.mtime_ns)


def _require_allowed(name: str, directory: str) -> None:
    """Raise PermissionDenied for a skill that the system policy forbids, or if nobody knows what it forbids."""
    system = load_system_policy(make_environment(directory, None, {}))
    if system.files:
        require_usable(system)
        path = os.path.join(directory, SKILL_FILE)
        require_allowed(system, name, path, files.real_path(path), files.real_path(directory))


def _metadata(document: ParsedFrontmatter, directory: str, mtime_ns: int) -> SkillMetadata:
    profile = LOADER_PROFILES["registry"]
    findings = check(document, os.path.basename(directory), profile)
    _raise_first([placed(finding, document) for finding in findings], profile)
    path = os.path.join(directory, SKILL_FILE)
    return metadata_of(document.fields, path=path, real_path=files.real_path(path), mtime_ns=mtime_ns)


def _raise_first(findings: list[Finding], profile: Profile, *, only: tuple[str, ...] | None = None) -> None:
    for finding in findings:
        if profile.rules[finding.rule] != "reject":
            continue
        field = next((name for name in profile.fields if finding.rule.startswith(name + "-")), None)
        if field is None or only is None or finding.rule in only:
            raise _error_for(finding, field)


def _error_for(finding: Finding, field: str | None) -> SkillError:
    where = f" (line {finding.line})" if finding.line else ""
    if field is not None:
        return ValidationFailed(field, finding.message)
    if finding.rule.startswith("yaml"):
        return YamlParsingError(finding.message + where)
    return InvalidFormat(finding.message + where)
