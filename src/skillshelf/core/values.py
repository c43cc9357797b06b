"""Define the values that pass between the stages, from a found file to a catalog.

They are `NamedTuple`, not `dataclass`: importing `dataclasses` takes longer than starting Python, and a whole
`list` may take only five starts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from skillshelf.core.records import NamedTuple

__all__ = [
    "CacheEntry",
    "Candidate",
    "Catalog",
    "CatalogSkill",
    "Diagnostic",
    "FilterReason",
    "Filtered",
    "Finding",
    "Grade",
    "Hidden",
    "RejectedFile",
    "Root",
    "RootReport",
    "Scope",
    "Severity",
    "Shadowed",
    "SkillMetadata",
    "Stamp",
    "TreeProblem",
    "UnchangedCandidate",
    "VerdictName",
    "Wall",
    "metadata_of",
    "skill_id",
    "tools_text",
]

Scope = Literal["repo", "project", "user", "custom", "env", "remote"]
"""The labels of all profiles: a kind of root, or the label that a profile gives it; `remote` is for sources."""

Severity = Literal["off", "info", "warn", "reject"]
Hidden = Literal["disabled", "untrusted", "denied", "changed", "disable-model-invocation", "no-description", "on-use"]
FilterReason = Literal["ignored", "not-included", "source-off", "inside-skill", "too-deep", "limit"]
TreeProblem = Literal["link", "name", "too-many-files", "too-large", "special-file", "git-folder"]
LinkRule = Literal["never", "contained", "follow"]

Wall = Literal["bubblewrap", "seccomp", "userns", "cgroup", "tmpfs", "keyring"]
"""The parts of the sandbox; `sandbox/walls.py` says what each does."""

Grade = Literal["R", "S", "D", "T", "-"]
"""The evidence for a profile: run, source, documentation or third party; `-` for a profile that is a document."""

VerdictName = Literal[
    "visible",
    "root-not-read",
    "outside-boundary",
    "too-deep",
    "limit-hit",
    "hidden-dir",
    "ignored",
    "dir-link-skipped",
    "file-link-skipped",
    "wrong-file-name",
    "no-fence",
    "bom",
    "yaml-error",
    "repaired",
    "missing-name",
    "missing-description",
    "wrong-type",
    "name-rejected",
    "name-from-folder",
    "renamed-by-plugin",
    "description-cut",
    "shadowed-by",
    "shadows",
    "ambiguous",
    "disabled-by-config",
    "untrusted",
    "hidden-from-model",
    "changed",
    "over-budget",
    "unknown",
]
"""The closed list of verdicts of a host about a file."""


class Finding(NamedTuple):
    """A statement of a rule about one SKILL.md; the profile decides its severity."""

    rule: str
    message: str
    line: int | None = None
    column: int | None = None


class Diagnostic(NamedTuple):
    """A finding at its path, as a catalog reports it."""

    path: str
    rule: str
    message: str
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return self._asdict()


class RejectedFile(Diagnostic):
    """The finding that rejected a file, which is still known by the name that it gives itself."""

    name: str | None = None


class Root(NamedTuple):
    """One folder to search, with the properties that its rule in the profile gives it."""

    path: str
    real_path: str | None
    kind: Literal["env", "project", "custom", "user"]
    scope: Scope
    source: str
    links: LinkRule
    trusted: bool
    description_required: bool = True
    switched_off: bool = False
    switch: str | None = None
    untrusted_by: str = ""
    exists: bool = True
    hidden: Literal["enter", "skip"] = "enter"
    loose_files: Literal["none", "in-root", "in-folders"] = "none"
    prefix: str = ""
    label: str = ""
    spared: str = ""
    """A folder that no link below the root leads into as a whole."""

    @property
    def base(self) -> str:
        """The folder that the root belongs to: its path without the label."""
        return self.path.removesuffix(f"/{self.label}")


Stamp = tuple[int, int, int, int, int]
"""Device, inode, size, mtime_ns and ctime_ns: they tell two states of a file apart without reading it."""


class Candidate(NamedTuple):
    """A SKILL.md that was found and whose head was read; its text is not parsed yet."""

    root: int
    path: str
    real_path: str
    real_dir: str
    head: bytes
    stamp: Stamp

    @property
    def size(self) -> int:
        """The size of the whole file in bytes."""
        return self.stamp[2]


class CacheEntry(NamedTuple):
    """A cache entry of an accepted SKILL.md: its stamp, and the result of parsing and rules."""

    stamp: Stamp
    real_path: str
    name: str
    description: str
    fields: Mapping[str, Any]
    warnings: tuple[tuple[str, str, int | None], ...]


class UnchangedCandidate(NamedTuple):
    """A SKILL.md that has not changed since its cache entry was written."""

    root: int
    path: str
    real_dir: str
    entry: CacheEntry


class CatalogSkill(NamedTuple):
    """A skill the profile accepts."""

    name: str
    description: str
    path: str
    real_path: str
    real_dir: str
    scope: Scope
    source: str
    root: int
    mtime_ns: int
    size: int
    enabled: bool
    trusted: bool
    hidden: Hidden | None
    frontmatter: Mapping[str, Any]
    hidden_by: str | None = None
    origin: str | None = None
    """The source that a lock names for it."""
    tree: str | None = None
    """The tree that it must be; None unless it is locked."""

    @property
    def id(self) -> str:
        """A short hash of the real path of SKILL.md."""
        return skill_id(self.real_path)

    @property
    def dir(self) -> str:
        """The folder that holds SKILL.md, as found."""
        return self.path.rpartition("/")[0] or "/"

    @property
    def file_path(self) -> str:
        """The same as `path`, under the name of a document."""
        return self.path

    @property
    def base_dir(self) -> str:
        """The same as `dir`, under the name of a document."""
        return self.dir

    @property
    def provider(self) -> str:
        """The provider in a source such as `claude:user`; empty where the profile has no providers."""
        provider, _, level = self.source.partition(":")
        return provider if level in ("project", "user") else ""

    @property
    def level(self) -> str:
        """The level of the provider, `project` or `user`; empty where the profile has no providers."""
        return self.source.partition(":")[2] if self.provider else ""

    @property
    def mtime_ms(self) -> int:
        """When SKILL.md was last written, never negative."""
        return max(0, self.mtime_ns // 1_000_000)

    @property
    def metadata(self) -> "SkillMetadata":
        """The same skill as SkillMetadata."""
        about = metadata_of(self.frontmatter, path=self.path, real_path=self.real_path, mtime_ns=self.mtime_ns)
        return about._replace(name=self.name, description=self.description, scope=self.scope)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as `list --json` prints it."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "path": self.path,
            "dir": self.dir,
            "scope": self.scope,
            "source": self.source,
            "mtime_ms": self.mtime_ms,
            "enabled": self.enabled,
            "trusted": self.trusted,
            "hidden": self.hidden,
            "hidden_by": self.hidden_by,
            "origin": self.origin,
            "tree": self.tree,
            "frontmatter": self.frontmatter,
        }


class SkillMetadata:
    """The metadata of a skill: everything but its body. It never changes, and is equal to another by its members."""

    # Written out: a tuple would have a `count` and an `index`, and `dataclasses` is slow to import.
    __slots__ = (
        *("name", "description", "license", "compatibility", "metadata", "allowed_tools"),
        *("id", "path", "dir", "scope", "mtime_ms", "frontmatter"),
    )
    name: str
    description: str
    license: str | None
    compatibility: str | None
    metadata: Mapping[str, str] | None
    allowed_tools: str | None
    id: str
    path: str
    dir: str
    scope: Scope | Literal[""]
    mtime_ms: int
    frontmatter: Mapping[str, Any]

    def __init__(
        self,
        name: str,
        description: str,
        license: str | None = None,  # noqa: A002 - the names are those of the documents.
        compatibility: str | None = None,
        metadata: Mapping[str, str] | None = None,
        allowed_tools: str | None = None,
        id: str = "",  # noqa: A002
        path: str = "",
        dir: str = "",  # noqa: A002
        scope: Scope | Literal[""] = "",
        mtime_ms: int = 0,
        frontmatter: Mapping[str, Any] = {},
    ) -> None:
        members = (name, description, license, compatibility, metadata, allowed_tools)
        members += (id, path, dir, scope, mtime_ms, frontmatter)  # type: ignore[assignment]
        for key, value in zip(self.__slots__, members, strict=True):
            object.__setattr__(self, key, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name!r} of a SkillMetadata cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name!r} of a SkillMetadata cannot be removed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SkillMetadata) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.description, self.path, self.mtime_ms))

    def __repr__(self) -> str:
        members = ", ".join(f"{key}={value!r}" for key, value in self.to_dict().items())
        return f"SkillMetadata({members})"

    def __reduce__(self) -> tuple[Any, ...]:
        return SkillMetadata, tuple(self.to_dict().values())

    def _replace(self, **changes: Any) -> "SkillMetadata":
        return SkillMetadata(**{**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value from which `from_dict` builds an equal one."""
        return {key: getattr(self, key) for key in self.__slots__}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "SkillMetadata":
        """Return the metadata that `to_dict` wrote; raise TypeError for an unknown member, ValueError for a scope."""
        scopes = get_args(Scope)
        if (scope := value.get("scope", "")) not in ("", *scopes):
            raise ValueError(f"unknown scope {scope!r} (known: {', '.join(scopes)})")
        return cls(**value)


class Shadowed(NamedTuple):
    """A skill that lost its name, or its file, to another."""

    name: str
    path: str
    by: str
    same_file: bool


class Filtered(NamedTuple):
    """A skill that was found and left out by a setting or a limit."""

    name: str
    path: str
    reason: FilterReason
    by: str | None = None
    """The file and the key that said so, where a setting did."""


class RootReport(NamedTuple):
    """A root as a catalog reports it."""

    path: str
    scope: Scope
    exists: bool
    skills: int


class Catalog(NamedTuple):
    """The result of one scan: the skills, and why others are missing."""

    profile: str
    roots: tuple[RootReport, ...]
    skills: Sequence[CatalogSkill]
    errors: Sequence[Diagnostic]
    warnings: Sequence[Diagnostic]
    shadowed: Sequence[Shadowed]
    filtered: Sequence[Filtered]
    truncated: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as `list --json` prints it."""
        return {
            "profile": self.profile,
            "roots": [root._asdict() for root in self.roots],
            "skills": [skill.to_dict() for skill in self.skills],
            "errors": [error.to_dict() for error in self.errors],
            "warnings": [warning.to_dict() for warning in self.warnings],
            "shadowed": [loser._asdict() for loser in self.shadowed],
            "filtered": [left_out._asdict() for left_out in self.filtered],
            "truncated": self.truncated,
        }


def skill_id(real_path: str) -> str:
    """Return the first 24 hex digits of the SHA-256 of a SKILL.md's real path."""
    # Imported here: a table of skills shows no ids.
    from skillshelf.core.digests import sha256

    return sha256(real_path.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def metadata_of(
    fields: Mapping[str, Any], *, path: str = "", real_path: str = "", mtime_ns: int = 0
) -> "SkillMetadata":
    """Return the metadata in the fields of a frontmatter, whatever their types."""
    extra = fields.get("metadata")
    return SkillMetadata(
        name=_text_or_none(fields.get("name")) or "",
        description=(_text_or_none(fields.get("description")) or "").strip(),
        license=_text_or_none(fields.get("license")),
        compatibility=_text_or_none(fields.get("compatibility")),
        metadata={key: _plain_text(value) for key, value in extra.items()} if isinstance(extra, dict) else None,
        allowed_tools=tools_text(fields.get("allowed-tools")),
        id=skill_id(real_path) if real_path else "",
        path=path,
        dir=path.rpartition("/")[0],
        mtime_ms=max(0, mtime_ns // 1_000_000),
        frontmatter=fields,
    )


def tools_text(value: object) -> str | None:
    """Return `allowed-tools` as one string; a YAML list is joined with blanks."""
    if isinstance(value, list):
        return " ".join(_plain_text(item) for item in value)
    return _text_or_none(value)


def _text_or_none(value: object) -> str | None:
    return None if value is None or isinstance(value, dict | list) else _plain_text(value)


def _plain_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)
