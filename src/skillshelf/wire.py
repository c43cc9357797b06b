"""The JSON forms as types: what `--json` prints and what the shipped schemas are made from."""

from typing import Any, Literal, TypedDict

from skillshelf.values import FilterReason, Hidden, Scope

__all__ = [
    "CatalogForm",
    "ChatForm",
    "CheckFindingForm",
    "CheckForm",
    "DiagnosticForm",
    "DifferenceForm",
    "FailureForm",
    "FileReadForm",
    "FilteredForm",
    "LoadErrorForm",
    "LogProblemForm",
    "LogStatsForm",
    "LogVerifyForm",
    "MetadataForm",
    "NewForm",
    "PromptForm",
    "ReplayForm",
    "ResourceForm",
    "RootForm",
    "RunForm",
    "SearchForm",
    "SearchResultForm",
    "SentForm",
    "ShadowedForm",
    "ShownForm",
    "SkillForm",
    "SkillUseForm",
    "StateForm",
    "ToolForm",
    "ToolUseForm",
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


class LogProblemForm(TypedDict):
    """What is wrong at a line of a journal."""

    line: int
    seq: int | None
    kind: Literal["edited", "removed", "reordered", "torn", "cut"]
    detail: str


class LogVerifyForm(TypedDict):
    """Whether a journal is as it was written."""

    file: str
    ok: bool
    lines: int
    sessions: int
    torn_tail: bool
    problems: list[LogProblemForm]
    head: str | None
    open_end: bool


class SkillUseForm(TypedDict):
    """How a skill was used."""

    name: str
    auto: int
    manual: int
    repeated: int
    loaded: int
    read: int
    denied: int
    calls: int
    failed: int
    total_ms: int
    longest_ms: int
    bytes: int


class ToolUseForm(TypedDict):
    """How a tool was used."""

    name: str
    calls: int
    failed: int
    denied: int
    total_ms: int
    longest_ms: int
    bytes: int


class LogStatsForm(TypedDict):
    """How the skills and tools of a journal were used."""

    file: str
    events: int
    sessions: int
    broken: int
    skills: list[SkillUseForm]
    tools: list[ToolUseForm]


class RunForm(TypedDict):
    """How a script of a skill ended."""

    name: str
    script: str
    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    artifact: str | None
    sandbox: Literal["bubblewrap", "none"]
    reason: str | None
    files: list[str]


class DifferenceForm(TypedDict):
    """Where a repetition first departs from a journal."""

    line: int
    session: str
    detail: str
    recorded: dict[str, Any] | None
    repeated: dict[str, Any] | None


class SentForm(TypedDict):
    """A skill that was sent to the model."""

    name: str
    path: str
    digest: str
    arguments: str
    ref: str
    in_context: bool


class FileReadForm(TypedDict):
    """A file of a skill that was sent to the model."""

    uri: str
    path: str
    digest: str
    ref: str


class StateForm(TypedDict):
    """A session as its events tell it."""

    session: str
    profile: str
    cwd: str
    policy: str
    preloaded: list[str]
    active: list[str]
    asked_for: list[str]
    loaded: list[SentForm]
    read: list[FileReadForm]
    denied: int
    failed: int
    ended: bool


class ReplayForm(TypedDict):
    """What a journal tells, and what is different here."""

    file: str
    state: StateForm
    differences: list[DifferenceForm]
    sessions: list[StateForm]
    skipped: list[str]


class ChatForm(TypedDict):
    """One answer of a model, the skills that were loaded for it, and where that was recorded."""

    model: str
    answer: str
    skills: list[str]
    journal: str | None
