"""The JSON forms as types: what `--json` prints and what the shipped schemas are made from."""

from typing import Any, Literal, TypedDict

from skillshelf.core.values import FilterReason, Grade, Hidden, Scope, VerdictName

__all__ = [
    "CandidateForm",
    "CatalogForm",
    "ChatForm",
    "CheckFindingForm",
    "CheckForm",
    "DiagnosticForm",
    "DifferenceForm",
    "FailureForm",
    "FileReadForm",
    "FilteredForm",
    "HostCatalogForm",
    "HostForm",
    "HostSkillForm",
    "HostVerdictForm",
    "HostsForm",
    "LinkForm",
    "LoadErrorForm",
    "LogProblemForm",
    "LogStatsForm",
    "LogVerifyForm",
    "MadeForm",
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
    "WhyForm",
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


class HostVerdictForm(TypedDict):
    """What one host makes of one file."""

    host: str
    visible: bool | None
    verdict: VerdictName
    detail: str
    told: bool | None
    fix: str | None
    as_of: str
    grade: Grade


class CandidateForm(TypedDict):
    """One file that a question may mean."""

    path: str
    hosts: list[HostVerdictForm]


class WhyForm(TypedDict):
    """Who sees a skill, and why the others do not."""

    name: str
    candidates: list[CandidateForm]
    near: list[str]


class HostCatalogForm(TypedDict):
    """What a host's list of skills costs, and who pays; `budget` is in characters, null where there is none.

    `least_used_first` means that a host cuts those which were used least, so that `cut_skills` tells only how many.
    """

    chars: int
    tokens: int
    budget: int | None
    cut: int
    dropped: int
    cut_skills: list[str]
    dropped_skills: list[str]
    least_used_first: bool


class HostForm(TypedDict):
    """What one host sees of the skills here; a file of which it sees a copy with the same text is not `missing`.

    `silent` counts those of the missing of which the host says nothing.
    """

    host: str
    as_of: str
    grade: Grade
    seen: int
    missing: int
    silent: int
    catalog: HostCatalogForm


class HostSkillForm(TypedDict):
    """Which hosts see a skill."""

    name: str
    path: str
    hosts: dict[str, bool | None]


class HostsForm(TypedDict):
    """Skills and hosts of a folder."""

    cwd: str
    hosts: list[HostForm]
    skills: list[HostSkillForm]


class MadeForm(TypedDict):
    """What was done to make a skill visible to a host, and whether it is now."""

    host: str
    how: Literal["link", "copy", "removed", "kept", "nothing"]
    path: str
    detail: str
    visible: bool | None
    on_change: str


class LinkForm(TypedDict):
    """What `link` did."""

    name: str
    made: list[MadeForm]


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
    """One answer of a model, whether it was cut off, the skills loaded for it, and where that was recorded."""

    model: str
    answer: str
    cut: bool
    skills: list[str]
    journal: str | None
