"""The JSON forms as types: what `--json` prints and what the shipped schemas are made from."""

from typing import Any, Literal, TypedDict

from skillshelf.values import FilterReason, Hidden, Scope

__all__ = [
    "CatalogForm",
    "CheckFindingForm",
    "CheckForm",
    "DiagnosticForm",
    "FailureForm",
    "FilteredForm",
    "LoadErrorForm",
    "MetadataForm",
    "NewForm",
    "PromptForm",
    "ResourceForm",
    "RootForm",
    "SearchForm",
    "SearchResultForm",
    "ShadowedForm",
    "ShownForm",
    "SkillForm",
    "ToolForm",
]


class SkillForm(TypedDict):
    """A skill of a catalog."""

    id: str
    name: str
    description: str
    path: str
    dir: str
    scope: Scope
    source: str
    mtime_ms: int
    enabled: bool
    trusted: bool
    hidden: Hidden | None
    frontmatter: dict[str, Any]


class MetadataForm(TypedDict):
    """What is known of a skill before its body is read."""

    name: str
    description: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, str] | None
    allowed_tools: str | None
    id: str
    path: str
    dir: str
    scope: Scope
    mtime_ms: int
    frontmatter: dict[str, Any]


class DiagnosticForm(TypedDict):
    """An error or a warning at its path."""

    path: str
    rule: str
    message: str
    line: int | None


LoadErrorForm = DiagnosticForm
"""Why a SKILL.md is not in the catalog."""


class RootForm(TypedDict):
    """A folder that was looked into, with the number of its skills in the catalog."""

    path: str
    scope: Scope
    exists: bool
    skills: int


class ShadowedForm(TypedDict):
    """A skill that lost its name, or its file, to another."""

    name: str
    path: str
    by: str
    same_file: bool


class FilteredForm(TypedDict):
    """A skill that was found and left out."""

    name: str
    path: str
    reason: FilterReason


class CatalogForm(TypedDict):
    """Everything one look at the disk gave."""

    profile: str
    roots: list[RootForm]
    skills: list[SkillForm]
    errors: list[DiagnosticForm]
    warnings: list[DiagnosticForm]
    shadowed: list[ShadowedForm]
    filtered: list[FilteredForm]
    truncated: bool


class SearchResultForm(TypedDict):
    """One answer of a search."""

    score: float
    reason: Literal["exact_name", "exact_path", "prefix", "token_overlap"]
    skill: SkillForm


class SearchForm(TypedDict):
    """What a search answers."""

    query: str
    count: int
    truncated: bool
    results: list[SearchResultForm]


class ShownForm(TypedDict):
    """A skill as a model would get it."""

    skill: SkillForm
    text: str
    files: list[str]
    files_truncated: bool
    digest: str
    warnings: list[DiagnosticForm]


class ResourceForm(TypedDict):
    """One file of a skill."""

    uri: str
    path: str
    content: str
    encoding: Literal["utf-8", "base64"]
    content_type: str
    size: int
    digest: str


class PromptForm(TypedDict):
    """The catalog as a model is told of it."""

    text: str
    chars: int
    tokens: int
    entries: int
    omitted: int
    truncated: bool


class ToolForm(TypedDict):
    """A tool as a model is told of it."""

    name: str
    description: str
    input_schema: dict[str, Any]


class CheckFindingForm(TypedDict):
    """What a rule says about a file; `fix` is the text that `--fix` would put on that line."""

    path: str
    line: int | None
    column: int | None
    rule: str
    severity: Literal["error", "warning", "info"]
    message: str
    fix: str | None


class CheckForm(TypedDict):
    """What a check gave; `fixed` counts the findings that were repaired."""

    checked: int
    findings: list[CheckFindingForm]
    fixed: int


class NewForm(TypedDict):
    """A skill that was made."""

    name: str
    path: str
    dir: str
    files: list[str]


class _Failure(TypedDict):
    code: str
    message: str
    candidates: list[str]


class FailureForm(TypedDict):
    """What a command prints instead of its answer."""

    error: _Failure
