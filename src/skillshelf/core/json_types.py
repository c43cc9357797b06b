"""Define the type of every `--json` output; the shipped JSON Schemas are generated from these types."""

from typing import Any, Literal, NotRequired, TypedDict

from skillshelf.core.values import FilterReason, Grade, Hidden, Scope, TreeProblem, VerdictName, Wall

__all__ = [
    "ApprovalForm",
    "BaselineForm",
    "CandidateForm",
    "CatalogForm",
    "ChatForm",
    "CheckFindingForm",
    "CheckForm",
    "DiagnosticForm",
    "DiffForm",
    "DifferenceForm",
    "DigestForm",
    "DoctorCheckForm",
    "DoctorForm",
    "EvalCollisionForm",
    "EvalConfigurationForm",
    "EvalForm",
    "EvalModelForm",
    "EvalOutputForm",
    "EvalQueryForm",
    "EvalRecallForm",
    "EvalSkillForm",
    "FailureForm",
    "FileDiffForm",
    "FileReadForm",
    "FilteredForm",
    "HostChoiceForm",
    "HostForm",
    "HostListSizeForm",
    "HostSkillForm",
    "HostSwitchForm",
    "HostVerdictForm",
    "HostsForm",
    "IgnoredForm",
    "InstallActionForm",
    "InstallForm",
    "InstallRefusedForm",
    "InstalledForm",
    "InventoryCountsForm",
    "InventoryForm",
    "InventoryHostForm",
    "InventoryPlaceForm",
    "InventoryProblemForm",
    "InventorySkillForm",
    "JournalPushForm",
    "LeftOverForm",
    "LinkActionForm",
    "LinkForm",
    "LoadErrorForm",
    "LogExportForm",
    "LogProblemForm",
    "LogStatsForm",
    "LogVerifyForm",
    "LogVerifyStoredForm",
    "MetadataForm",
    "NewForm",
    "OtherProblemForm",
    "OutdatedForm",
    "OutdatedSkillForm",
    "PolicyFileForm",
    "PolicyForm",
    "PromptForm",
    "PublishActionForm",
    "PublishForm",
    "ReleaseActForm",
    "ReleasePolicyForm",
    "RemovalForm",
    "ReplayForm",
    "ResourceForm",
    "ReviewForm",
    "ReviewProblemForm",
    "ReviewedFileForm",
    "RootForm",
    "RuleForm",
    "RuleInForceForm",
    "RulesForm",
    "RunForm",
    "SearchForm",
    "SearchResultForm",
    "SecurityFindingForm",
    "SentForm",
    "ShadowedForm",
    "ShownForm",
    "SiteForm",
    "SkillForm",
    "SkillUseForm",
    "StateForm",
    "StoredJournalForm",
    "SwitchForm",
    "SyncActionForm",
    "SyncForm",
    "SyncRefusedForm",
    "SyncUnchangedForm",
    "TeamAlarmForm",
    "TeamAlarmsForm",
    "TeamApprovalForm",
    "TeamCallerForm",
    "TeamContentForm",
    "TeamFileForm",
    "TeamForgottenForm",
    "TeamFoundForm",
    "TeamJournalLineForm",
    "TeamJournalLinesForm",
    "TeamJournalSessionForm",
    "TeamJournalSessionsForm",
    "TeamMemberForm",
    "TeamMemberRecordForm",
    "TeamMembersForm",
    "TeamMigrationForm",
    "TeamPolicyAnswerForm",
    "TeamPolicyForm",
    "TeamPublishedForm",
    "TeamReceiptForm",
    "TeamReleaseChangeForm",
    "TeamReleaseForm",
    "TeamReleasesForm",
    "TeamReleasesPageForm",
    "TeamRetentionForm",
    "TeamRevokedForm",
    "TeamSearchForm",
    "TeamSkillDetailForm",
    "TeamSkillForm",
    "TeamSkillsForm",
    "TeamStreamForm",
    "TeamStreamStateForm",
    "TeamStreamsForm",
    "TeamTenantForm",
    "TeamTenantRecordForm",
    "TeamTenantsForm",
    "TeamTokenForm",
    "TeamTokenRecordForm",
    "TeamTokensForm",
    "TeamUsageForm",
    "TeamUseForm",
    "TeamVersionsForm",
    "ToolForm",
    "ToolUseForm",
    "TreeDiffForm",
    "TrustForm",
    "TrustListForm",
    "UninstallForm",
    "UseCountForm",
    "UseHistoryForm",
    "VerifiedFileForm",
    "VerifiedSkillForm",
    "VerifyForm",
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
    hidden_by: str | None
    origin: str | None
    tree: str | None
    frontmatter: dict[str, Any]


class MetadataForm(TypedDict):
    """The metadata of a skill: everything but its body."""

    name: str
    description: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, str] | None
    allowed_tools: str | None
    id: str
    path: str
    dir: str
    scope: Scope | Literal[""]
    mtime_ms: int
    frontmatter: dict[str, Any]


class DiagnosticForm(TypedDict):
    """An error or a warning at its path."""

    path: str
    rule: str
    message: str
    line: int | None


LoadErrorForm = DiagnosticForm
"""The reason why a SKILL.md is not in the catalog."""


class RootForm(TypedDict):
    """A folder that was searched, with the number of its skills in the catalog."""

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
    by: str | None


class CatalogForm(TypedDict):
    """The result of one scan."""

    profile: str
    roots: list[RootForm]
    skills: list[SkillForm]
    errors: list[DiagnosticForm]
    warnings: list[DiagnosticForm]
    shadowed: list[ShadowedForm]
    filtered: list[FilteredForm]
    truncated: bool


class SearchResultForm(TypedDict):
    """One result of a search."""

    score: float
    reason: Literal["exact_name", "exact_path", "prefix", "token_overlap"]
    skill: SkillForm
    why: list[str]
    copies: list[str]


class SearchForm(TypedDict):
    """The results of a search; it is `weak` if none of them clearly fits, which `confidence` from 0 to 1 decides."""

    query: str
    count: int
    truncated: bool
    confidence: float
    weak: bool
    notes: list[str]
    results: list[SearchResultForm]


class UseCountForm(TypedDict):
    """The loads of one skill after searches, and the time of the last one."""

    path: str
    loads: int
    last: str


class UseHistoryForm(TypedDict):
    """The history of use: its file, whether `search.learn` is set, its rows, and the loads by skill."""

    file: str
    learn: bool | None
    cleared: bool
    rows: int
    most_rows: int
    removed: int
    since: str | None
    skills: list[UseCountForm]


class ShownForm(TypedDict):
    """A skill as a model would get it, with the digest of all its files; `tree_problem` is there if it has one."""

    skill: SkillForm
    text: str
    files: list[str]
    files_truncated: bool
    digest: str
    warnings: list[DiagnosticForm]
    tree: str | None
    tree_problem: NotRequired[TreeProblem]


class DigestForm(TypedDict):
    """The digest of all files of a folder, or null and the reason; the number of files and their bytes."""

    path: str
    tree: str | None
    files: int
    bytes: int
    tree_problem: TreeProblem | None


class ApprovalForm(TypedDict):
    """A thing that a person approved for good."""

    tool: str
    name: str
    path: str | None
    tree: str
    origin: str | None
    at: str


class SecurityFindingForm(TypedDict):
    """A finding of a security rule in a file of a skill; `skill` is the path of its SKILL.md, `path` is inside it."""

    skill: str
    path: str
    line: int
    column: int
    rule: str
    severity: str
    message: str
    evidence: str


class TrustForm(TypedDict):
    """The result of `trust`: the folder, the file of the user's configuration, and what security rules found."""

    folder: str
    file: str
    changed: bool
    findings: list[SecurityFindingForm]


TrustListForm = list[str | ApprovalForm]
"""The folders that the user trusts, then the approvals."""


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
    """The catalog as a model gets it."""

    text: str
    chars: int
    tokens: int
    entries: int
    omitted: int
    truncated: bool


class ToolForm(TypedDict):
    """A tool as a model gets it."""

    name: str
    description: str
    input_schema: dict[str, Any]


class CheckFindingForm(TypedDict):
    """A finding of a rule in a file; `fix` is the text that `--fix` would write on that line.

    If it `renames` the skill, only `--fix=names` would. `relative` is the path from the repository; null outside it.
    """

    path: str
    line: int | None
    column: int | None
    rule: str
    severity: Literal["error", "warning", "info"]
    message: str
    fix: str | None
    renames: bool
    relative: str | None


class IgnoredForm(TypedDict):
    """Findings that are not shown: ignored by comments, of rules that are switched off, below the severity."""

    comments: int
    rules: int
    severity: int


class BaselineForm(TypedDict):
    """Findings compared with a baseline: known ones, new ones, and known ones that are fixed."""

    file: str
    known: int
    new: int
    fixed: int
    written: bool


class CheckForm(TypedDict):
    """The result of a check; `fixed` counts the findings that were fixed.

    `findings` are those that are shown: new ones, if there is a `baseline`. `excluded` counts the skills that the
    configuration leaves out.
    """

    checked: int
    findings: list[CheckFindingForm]
    fixed: int
    ignored: IgnoredForm
    excluded: int
    baseline: BaselineForm | None


class RuleForm(TypedDict):
    """A rule of `check`; `profiles` has the severity where it differs from `severity`, that of the default profile.

    `fix` says whether `--fix` can fix what it finds, or only `--fix=names`; `inline` whether a comment can ignore it.
    The examples are a whole file, lines of the frontmatter, a part of the text, or sentences about a place.
    """

    rule: str
    group: str
    severity: Literal["error", "warning", "info", "off"]
    profiles: dict[str, Literal["error", "warning", "info", "off"]]
    summary: str
    why: str
    how_to_fix: str
    fix: Literal["no", "safe", "names"]
    inline: bool
    example: Literal["file", "fields", "body", "place"]
    bad: str
    good: str


class RulesForm(TypedDict):
    """Every rule of `check`."""

    rules: list[RuleForm]


class NewForm(TypedDict):
    """A skill that was created."""

    name: str
    path: str
    dir: str
    files: list[str]
    hosts: dict[str, bool | None]


class HostVerdictForm(TypedDict):
    """The verdict of one host about one file."""

    host: str
    visible: bool | None
    verdict: VerdictName
    detail: str
    told: bool | None
    fix: str | None
    as_of: str
    grade: Grade


class CandidateForm(TypedDict):
    """One file that the name may mean."""

    path: str
    hosts: list[HostVerdictForm]
    hidden: Hidden | FilterReason | None
    hidden_by: str | None
    origin: str | None
    version: str | None
    changed: bool


class WhyForm(TypedDict):
    """The hosts that see a skill, and why others do not."""

    name: str
    candidates: list[CandidateForm]
    near: list[str]


class HostListSizeForm(TypedDict):
    """The cost of a host's list of skills; `budget` is in characters, or null without a budget.

    `least_used_first` means that the host cuts the least used skills, so that only the length of `cut_skills` is known.
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
    """The skills that one host sees here; a file is not `missing` if the host sees a copy with the same text.

    `silent` counts the missing ones that the host does not report.
    """

    host: str
    as_of: str
    grade: Grade
    seen: int
    missing: int
    silent: int
    catalog: HostListSizeForm


class HostSkillForm(TypedDict):
    """The hosts that see a skill."""

    name: str
    path: str
    hosts: dict[str, bool | None]
    origin: str | None
    version: str | None
    changed: bool


class HostsForm(TypedDict):
    """Skills and hosts of a folder."""

    cwd: str
    hosts: list[HostForm]
    skills: list[HostSkillForm]


class HostChoiceForm(TypedDict):
    """The result of `hosts --set`: the user's hosts, and why these."""

    hosts: list[str]
    by: Literal["set", "detected", "all"]
    file: str
    changed: bool


class InventoryHostForm(TypedDict):
    """A known host: whether it was found on the machine, the path that shows it, and whether it is the user's."""

    host: str
    detected: bool
    by: str | None
    enabled: bool


class InventoryPlaceForm(TypedDict):
    """A folder of skills, who it is for, and the number of files called SKILL.md in it."""

    path: str
    kind: Literal["user", "project", "package", "plugin", "custom", "unread"]
    scope: Scope
    skills: int


class InventoryProblemForm(TypedDict):
    """An error or warning of `check` about a skill."""

    rule: str
    severity: Literal["error", "warning"]
    message: str
    line: int | None


class OtherProblemForm(TypedDict):
    """An error or warning about a folder or file that is no skill, such as one that cannot be read."""

    path: str
    rule: str
    severity: Literal["error", "warning"]
    message: str
    line: int | None


class InventorySkillForm(TypedDict):
    """One text of a name; `copies` are other paths with the same tree, or to the same file.

    A broken skill has the name of its folder, and its errors in `problems`.
    """

    name: str
    path: str
    copies: list[str]
    tree: str | None
    hosts: dict[str, bool | None]
    problems: list[InventoryProblemForm]
    origin: str | None
    version: str | None
    changed: bool


class InventoryCountsForm(TypedDict):
    """The number of skills, of files, of skills with errors, and of skills that none of the hosts sees."""

    skills: int
    files: int
    broken: int
    unseen: int


class InventoryForm(TypedDict):
    """Every skill of the machine."""

    hosts: list[InventoryHostForm]
    places: list[InventoryPlaceForm]
    skills: list[InventorySkillForm]
    problems: list[OtherProblemForm]
    counts: InventoryCountsForm


class LinkActionForm(TypedDict):
    """The action that made a skill visible to a host, and whether it is visible now."""

    host: str
    how: Literal["link", "copy", "removed", "kept", "nothing"]
    path: str
    detail: str
    visible: bool | None
    on_change: str


class LinkForm(TypedDict):
    """The result of `link`."""

    name: str
    made: list[LinkActionForm]
    findings: list[SecurityFindingForm]


class DoctorCheckForm(TypedDict):
    """One line of `doctor`; `run` is the command that helps, `fixed` is true if `--fix` repaired it.

    A problem is `fixable` if `--fix` repairs it.
    """

    check: str
    state: Literal["ok", "problem", "missing"]
    detail: str
    path: str | None
    run: str | None
    fixed: bool
    fixable: bool


class DoctorForm(TypedDict):
    """The state of the installation; `ok` is false if a problem remains."""

    ok: bool
    checks: list[DoctorCheckForm]


class PolicyFileForm(TypedDict):
    """A file of the system policy; `added` is one that `SKILLSHELF_SYSTEM_POLICY` names."""

    path: str
    origin: Literal["system", "added"]
    state: Literal["ok", "missing", "refused"]
    problem: str | None


class RuleInForceForm(TypedDict):
    """A rule, who set it in which file, and the choices of others that have no effect because of it."""

    key: str
    value: str
    origin: Literal["system", "added", "user", "project", "default"]
    file: str | None
    overrides: list[str]


class PolicyForm(TypedDict):
    """The rules in force; `refusal` says why no model is served, if that is so."""

    files: list[PolicyFileForm]
    serves_models: bool
    refusal: str | None
    rules: list[RuleInForceForm]


class RemovalForm(TypedDict):
    """One thing that `uninstall` removes; `detail` is the reason if that failed."""

    kind: Literal["link", "copy", "temporary", "cache", "data", "state", "config"]
    path: str
    detail: str
    state: Literal["planned", "done", "failed"]


class LeftOverForm(TypedDict):
    """One thing that `uninstall` leaves, why, and the command that removes it."""

    kind: str
    path: str
    reason: str
    run: str


class SiteForm(TypedDict):
    """The folder that `site` wrote its pages to, and the number of files."""

    folder: str
    files: int


class UninstallForm(TypedDict):
    """The plan of `uninstall`, and whether it was applied."""

    applied: bool
    actions: list[RemovalForm]
    left: list[LeftOverForm]


SyncActionForm = TypedDict(
    "SyncActionForm",
    {
        "kind": Literal["link", "copy", "update", "remove", "forget"],
        "skill": str,
        "host": str,
        "from": str,
        "to": str,
        "reason": str,
    },
)
"""One action of a plan; `from` is the folder of the skill, `to` the path of the link or copy."""


class SyncUnchangedForm(TypedDict):
    """A skill that a host sees already, and where."""

    skill: str
    host: str
    path: str


class SyncRefusedForm(TypedDict):
    """A skill and a host for which nothing is done, and why."""

    skill: str
    host: str
    reason: str


class SyncForm(TypedDict):
    """The plan of `sync`: what is done, what need not be done, what is refused, and what security rules found."""

    actions: list[SyncActionForm]
    unchanged: list[SyncUnchangedForm]
    refused: list[SyncRefusedForm]
    findings: list[SecurityFindingForm]


InstallActionForm = TypedDict(
    "InstallActionForm",
    {
        "kind": Literal["add", "install", "update", "restore", "accept", "remove", "rollback", "collect", "import"],
        "name": str,
        "tree": str | None,
        "from": str,
        "path": str,
    },
)
"""One skill that is installed, changed or removed; `from` is its source, `path` its folder."""


class InstalledForm(TypedDict):
    """A skill that is as it should be."""

    name: str
    tree: str
    path: str


class InstallRefusedForm(TypedDict):
    """A skill that is left alone, and why."""

    name: str
    reason: str


class ReviewedFileForm(TypedDict):
    """A file of a skill that nobody agreed to yet."""

    path: str
    size: int
    executable: bool
    script: bool


class ReviewProblemForm(TypedDict):
    """A finding of `check` in a skill that nobody agreed to yet."""

    path: str
    line: int | None
    rule: str
    severity: Literal["error", "warning", "info"]
    message: str


class ReviewForm(TypedDict):
    """A skill that would be installed; `claims` are what its name does to other skills."""

    name: str
    description: str
    source: str
    source_path: str
    ref: str | None
    commit: str | None
    artifact: str | None
    publisher: str
    tree: str
    path: str
    files: list[ReviewedFileForm]
    problems: list[ReviewProblemForm]
    notes: list[str]
    claims: list[str]


class FileDiffForm(TypedDict):
    """A file that differs between two trees, with its unified diff."""

    path: str
    state: Literal["added", "removed", "changed", "mode"]
    script: bool
    diff: str


TreeDiffForm = TypedDict(
    "TreeDiffForm",
    {"name": str, "from": str | None, "to": str | None, "files": list[FileDiffForm], "remarks": list[str]},
)
"""How one tree of a skill becomes another; `remarks` are about permissions, scripts and modes."""


class InstallForm(TypedDict):
    """The plan of a command that installs: what is done, what need not be, what is refused, and what was shown."""

    actions: list[InstallActionForm]
    unchanged: list[InstalledForm]
    refused: list[InstallRefusedForm]
    findings: list[SecurityFindingForm]
    reviews: list[ReviewForm]
    differences: list[TreeDiffForm]


PublishActionForm = TypedDict(
    "PublishActionForm",
    {"kind": Literal["pack", "publish", "export"], "name": str, "tree": str, "from": str, "path": str},
)
"""One skill that is given to others; `from` is its folder or source, `path` the archive, address or file."""


class PublishForm(TypedDict):
    """The plan of `pack`, `publish` and `export`: what is done, what need not be, and what is refused."""

    actions: list[PublishActionForm]
    unchanged: list[InstalledForm]
    refused: list[InstallRefusedForm]
    findings: list[SecurityFindingForm]


DiffForm = TypedDict(
    "DiffForm",
    {
        "name": str,
        "sides": list[str],
        "from": str | None,
        "to": str | None,
        "files": list[FileDiffForm],
        "remarks": list[str],
    },
)
"""The difference of an installed skill; `sides` are what is compared."""


class VerifiedFileForm(TypedDict):
    """A file that is not as the lock says."""

    path: str
    state: Literal["ok", "changed", "missing", "extra"]


class VerifiedSkillForm(TypedDict):
    """An installed skill; `found` is the tree on the disk, `cause` says why it differs where that is certain."""

    name: str
    path: str
    tree: str
    found: str | None
    state: Literal["ok", "changed", "missing", "extra"]
    files: list[VerifiedFileForm]
    cause: str | None


class VerifyForm(TypedDict):
    """Whether every installed skill is what its lock says."""

    ok: bool
    skills: list[VerifiedSkillForm]


class OutdatedSkillForm(TypedDict):
    """An installed skill and what its source has now; `reason` says why that is unknown."""

    name: str
    source: str
    ref: str | None
    tree: str
    state: Literal["current", "outdated", "unknown"]
    new_tree: str | None
    new_commit: str | None
    reason: str | None


class OutdatedForm(TypedDict):
    """Which installed skills are not what their sources have now."""

    skills: list[OutdatedSkillForm]


class HostSwitchForm(TypedDict):
    """A switch of a skill in the settings of one host; `reason` says why nothing was changed."""

    host: str
    file: str | None
    changed: bool
    reason: str


class SwitchForm(TypedDict):
    """The result of `enable --in` and `disable --in`."""

    name: str
    hosts: list[HostSwitchForm]


class _Failure(TypedDict):
    code: str
    message: str
    candidates: list[str]


class FailureForm(TypedDict):
    """The output of a command that failed; with the findings of security rules if it failed because of them."""

    error: _Failure
    findings: NotRequired[list[SecurityFindingForm]]


class LogProblemForm(TypedDict):
    """A problem at a line of a journal."""

    line: int
    seq: int | None
    kind: Literal["edited", "removed", "reordered", "torn", "cut"]
    detail: str
    file: NotRequired[str]
    line_in_file: NotRequired[int]


class LogPartForm(TypedDict):
    """A file of a rotated journal."""

    file: str
    lines: int
    first_seq: int | None


class LogVerifyForm(TypedDict):
    """The result of verifying a journal."""

    file: str
    ok: bool
    lines: int
    sessions: int
    torn_tail: bool
    problems: list[LogProblemForm]
    head: str | None
    open_end: bool
    parts: list[LogPartForm]
    removed_parts: int


class StoredJournalForm(TypedDict):
    """A journal as a server stores it: `reduced` lines have no content, of `removed` ones only digests are left."""

    stream: str
    ok: bool
    lines: int
    reduced: int
    removed: int
    first_seq: int | None
    head: str | None
    problems: list[LogProblemForm]


class LogVerifyStoredForm(TypedDict):
    """The result of verifying the journals that a server stores, by `log verify --server URL --stream ID`."""

    server: str
    ok: bool
    streams: list[StoredJournalForm]


class UsesByUserForm(TypedDict):
    """The uses of a skill by one user."""

    user: str
    uses: int


class UsesByWeekForm(TypedDict):
    """The uses of a skill in one week."""

    week: str
    uses: int


class NeverUsedForm(TypedDict):
    """A skill that sessions were offered and nobody used."""

    name: str
    paths: list[str]


class UserUseForm(TypedDict):
    """The use of skills by one user: a subject, a client program, or whoever has the journal."""

    user: str
    kind: Literal["subject", "client", "journal"]
    sessions: int
    uses: int
    denied: int
    failed: int
    skills: int
    first_ms: int | None
    last_ms: int | None


class WeekUseForm(TypedDict):
    """The use of skills in one ISO week, in UTC."""

    week: str
    sessions: int
    uses: int
    searches: int
    denied: int
    failed: int


class LoadsBySkillForm(TypedDict):
    """The loads of one skill after a search."""

    name: str
    loads: int


class SearchUseForm(TypedDict):
    """A search, and the loads that followed it; the query is null if the journal does not hold it."""

    query: str | None
    searches: int
    loads: int
    skills: list[LoadsBySkillForm]


class DenialsByUserForm(TypedDict):
    """The denials of one user."""

    user: str
    count: int


class DenialForm(TypedDict):
    """A denial: the tool and skill, the rule, and the user."""

    tool: str
    skill: str | None
    rule: str | None
    by: str | None
    count: int
    first_ms: int | None
    last_ms: int | None
    users: list[DenialsByUserForm]


class ErrorUseForm(TypedDict):
    """A kind of failure."""

    tool: str
    skill: str | None
    code: str
    count: int


class CountedJournalForm(TypedDict):
    """A journal that was counted, and whether its chain holds."""

    file: str
    source: str
    lines: int
    ok: bool
    problem: str | None


class SkillUseForm(TypedDict):
    """The use of a skill in journals; `sessions` were offered it, `uses` are calls that gave something of it."""

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
    uses: int
    after_search: int
    paths: list[str]
    sessions: int
    first_ms: int | None
    last_ms: int | None
    users: list[UsesByUserForm]
    weeks: list[UsesByWeekForm]


class ToolUseForm(TypedDict):
    """The use of a tool in a journal."""

    name: str
    calls: int
    failed: int
    denied: int
    total_ms: int
    longest_ms: int
    bytes: int


class LogStatsForm(TypedDict):
    """The use of skills and tools in journals; `file` is the first that was named."""

    file: str
    events: int
    sessions: int
    broken: int
    skills: list[SkillUseForm]
    tools: list[ToolUseForm]
    catalog: int
    never_used: list[NeverUsedForm]
    unlisted: int
    users: list[UserUseForm]
    weeks: list[WeekUseForm]
    searches: list[SearchUseForm]
    denials: list[DenialForm]
    errors: list[ErrorUseForm]
    files: list[CountedJournalForm]
    since_ms: int | None
    until_ms: int | None


class LogExportForm(TypedDict):
    """The spans that were sent to a receiver, and what was lost."""

    files: list[str]
    otlp: str
    spans: int
    lost: int
    problem: str | None


class RunForm(TypedDict):
    """The result of a script of a skill."""

    name: str
    script: str
    exit_code: int
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    artifact: str | None
    sandbox: Literal["bubblewrap", "none"]
    missing: list[Wall]
    reason: str | None
    files: list[str]


class DifferenceForm(TypedDict):
    """The first difference between a replay and its journal, or a search whose prior was not kept."""

    line: int
    session: str
    detail: str
    recorded: dict[str, Any] | None
    repeated: dict[str, Any] | None
    kind: Literal["event", "prior-missing"]


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
    """The state of a session, from its events."""

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
    """The state that a journal records, and the differences found by replay."""

    file: str
    state: StateForm
    differences: list[DifferenceForm]
    sessions: list[StateForm]
    skipped: list[str]


class ChatForm(TypedDict):
    """One answer of a model, whether it was cut off, the skills loaded for it, and the journal that recorded it."""

    model: str
    answer: str
    cut: bool
    skills: list[str]
    journal: str | None


class EvalModelForm(TypedDict):
    """The runs of one query with a model: how often the skill was loaded, which were, and what went wrong.

    `rate` is the share of the completed runs, null if none was; `loaded` counts the runs that loaded each skill.
    """

    runs: int
    triggered: int
    errors: int
    rate: float | None
    outcome: Literal["pass", "fail", "error"]
    loaded: dict[str, int]
    details: list[str]
    journals: list[str]


class EvalConfigurationForm(TypedDict):
    """The runs of one task with the skill, or without it: the assertions of all runs, and what went wrong."""

    runs: int
    errors: int
    passed: int
    failed: int
    unjudged: int
    pass_rate: float | None
    time_seconds: float | None
    tokens: float | None
    details: list[str]


class EvalOutputForm(TypedDict):
    """One task of a skill, done by a model with and without the skill."""

    id: str
    prompt: str
    outcome: Literal["pass", "fail", "error"]
    with_skill: EvalConfigurationForm
    without_skill: EvalConfigurationForm


class EvalQueryForm(TypedDict):
    """One query of a skill: its place in the search, who is first, and whether the text for a model has the skill.

    `margin` is the share by which the next one is behind, or below 0 by how much the first one is ahead. `words` are
    those of a failed query that the description lacks, or that it has though the skill should not be found. `model`
    has the runs with a model, which then decide the outcome.
    """

    query: str
    should_trigger: bool
    rank: int | None
    winner: str | None
    in_catalog: bool
    outcome: Literal["pass", "fail", "error"]
    margin: float | None
    origin: str
    words: list[str]
    model: EvalModelForm | None


EvalCollisionForm = TypedDict(
    "EvalCollisionForm",
    {"with": str, "path": str, "margin": float, "shared": list[str], "own": list[str], "other": list[str]},
)
EvalCollisionForm.__doc__ = """Another skill with nearly the same description: words of both, and of one only."""


EvalRecallForm = TypedDict("EvalRecallForm", {"1": float | None, "3": float | None, "8": float | None})
EvalRecallForm.__doc__ = """The share of queries that find a skill among so many results; null without such queries."""


class EvalSkillForm(TypedDict):
    """The results of one skill; with `host` on the text that this host shows."""

    name: str
    path: str
    host: str | None
    problem: str | None
    queries: list[EvalQueryForm]
    recall: EvalRecallForm
    positives: int
    negatives: int
    false_wins: int
    collisions: list[EvalCollisionForm]
    notes: list[str]
    outputs: list[EvalOutputForm]


class EvalForm(TypedDict):
    """The results of a test of findability."""

    skills: list[EvalSkillForm]


class TeamTokenForm(TypedDict):
    """A token of a team server when it is made; `token` is shown this once. Empty `scopes` are those of the role."""

    id: str
    token: str
    subject: str
    tenant: str
    scopes: list[str]


class TeamTokenRecordForm(TypedDict):
    """A token as it is listed; times are milliseconds since 1970. Empty `scopes` are those of `role`, the subject's."""

    id: str
    subject: str
    tenant: str
    scopes: list[str]
    created: int
    expires: int | None
    revoked: int | None
    role: str | None


class TeamTokensForm(TypedDict):
    """The tokens of a tenant."""

    tenant: str
    tokens: list[TeamTokenRecordForm]


class TeamRevokedForm(TypedDict):
    """The number of tokens that were revoked, and of logins of browsers that ended."""

    tenant: str
    revoked: int
    logins: int


class TeamTenantForm(TypedDict):
    """A tenant, and whether it was made now."""

    tenant: str
    created: bool


class TeamTenantRecordForm(TypedDict):
    """A tenant as it is listed; `created` is in milliseconds since 1970."""

    tenant: str
    created: int


class TeamTenantsForm(TypedDict):
    """The tenants of a database, by name."""

    tenants: list[TeamTenantRecordForm]


class TeamMemberRecordForm(TypedDict):
    """A member as it is listed."""

    subject: str
    role: str


class TeamMembersForm(TypedDict):
    """The members of a tenant, by name."""

    tenant: str
    members: list[TeamMemberRecordForm]


class TeamMemberForm(TypedDict):
    """The role of a subject in a tenant; null if it has none."""

    tenant: str
    subject: str
    role: str | None


class TeamMigrationForm(TypedDict):
    """The version of the database before and after a migration, and the address that the server takes.

    `password` is False if the role existed before: then the address lacks the password that the role has. It has none
    here either if `--write-address` wrote it into a file.
    """

    before: int
    version: int
    address: str
    role: str | None
    password: bool


class TeamApprovalForm(TypedDict):
    """The approval of the tree of a release: by whom, and when, in milliseconds since 1970."""

    by: str
    at: int


class TeamReleaseForm(TypedDict):
    """A release of a team server; `tree` is the digest of its files, `artifact` that of its archive.

    `rev` is the revision of the catalog that it was published with.
    """

    name: str
    version: str
    tree: str
    artifact: str
    bytes: int
    description: str
    source: str
    commit: str
    publisher: str
    published: int
    yanked: bool
    yanked_by: str | None
    yanked_why: str | None
    rev: int
    approvals: list[TeamApprovalForm]
    channels: list[str]


class TeamReleasesPageForm(TypedDict):
    """A page of the releases, by name and version; `next` is the cursor of the next page."""

    rev: int
    releases: list[TeamReleaseForm]
    next: str | None


class TeamVersionsForm(TypedDict):
    """The releases of a skill, the newest first, and what its channels mean."""

    rev: int
    name: str
    channels: dict[str, str]
    versions: list[TeamReleaseForm]


class TeamReleaseChangeForm(TypedDict):
    """The release that a request was about, and whether it changed something."""

    rev: int
    changed: bool
    release: TeamReleaseForm


class TeamPublishedForm(TeamReleaseChangeForm):
    """The release that was published, and what the security rules found in it."""

    findings: list[SecurityFindingForm]


class TeamPolicyForm(TypedDict):
    """The conditions that a tenant sets for releases."""

    approved_only: bool
    approvals: int
    approve_own: bool
    accept_rules: list[str]


class TeamPolicyAnswerForm(TypedDict):
    """The policy of a tenant, with the revision of its catalog."""

    rev: int
    policy: TeamPolicyForm


class TeamReleasesForm(TypedDict):
    """The releases of a server, as `release list` prints them."""

    server: str
    rev: int
    releases: list[TeamReleaseForm]


class ReleaseActForm(TypedDict):
    """The act of `release` on a release; `planned` means that nothing was sent, `changed` that something changes."""

    server: str
    action: Literal["approve", "yank", "channel"]
    channel: str | None
    subject: str
    planned: bool
    changed: bool
    release: TeamReleaseForm
    findings: list[SecurityFindingForm]
    differences: list[TreeDiffForm]


class ReleasePolicyForm(TypedDict):
    """The policy of a tenant as it is, or as it is after a change; `changed` names what is new."""

    server: str
    planned: bool
    changed: list[str]
    policy: TeamPolicyForm


class TeamCallerForm(TypedDict):
    """The caller of a request, and what they may do."""

    subject: str
    tenant: str
    scopes: list[str]


class TeamSkillForm(TypedDict):
    """A skill as the team server lists it; `tree` is the digest of its files if it is known."""

    name: str
    description: str
    uri: str
    scope: str
    tree: str | None


class TeamSkillsForm(TypedDict):
    """A page of the skills, by name; `next` is the cursor of the next page."""

    count: int
    skills: list[TeamSkillForm]
    next: str | None


class TeamFileForm(TypedDict):
    """A file of a skill."""

    uri: str
    path: str
    size: int
    digest: str


class TeamSkillDetailForm(TypedDict):
    """A skill with its frontmatter, its text, and its files."""

    name: str
    description: str
    uri: str
    scope: str
    tree: str | None
    frontmatter: dict[str, Any]
    text: str
    files: list[TeamFileForm]


class TeamFoundForm(TypedDict):
    """A skill that a search found."""

    name: str
    description: str
    uri: str
    scope: str
    tree: str | None
    score: float
    reason: str
    why: list[str]


class TeamSearchForm(TypedDict):
    """The results of a search on a team server, best first."""

    query: str
    count: int
    truncated: bool
    confidence: float
    weak: bool
    notes: list[str]
    results: list[TeamFoundForm]


# Journals of many machines ------------------------------------------------------------------------


class JournalPushForm(TypedDict):
    """The result of `log push`: the last line that the server has with all before it, and the number of new ones.

    `problem` is why it could not send all lines.
    """

    stream: str
    acknowledged: int | None
    stored: int
    problem: str | None


class TeamReceiptForm(TypedDict):
    """The answer to a batch of lines; `wanted` is the `seq` of the next one. A refused batch also has `error`."""

    stream: str
    acknowledged: int | None
    stored: int
    head: str | None
    wanted: int | None


class TeamStreamStateForm(TypedDict):
    """The last line of a journal that a server has; `content` is how it wants the next ones, `full` or `digest`.

    It takes nothing more of a journal whose person was `forgotten`.
    """

    stream: str
    acknowledged: int | None
    head: str | None
    content: str
    forgotten: bool


class TeamStreamForm(TypedDict):
    """A journal that a server has: of a `machine`, a `server`, or a person who was `forgotten`."""

    stream: str
    machine: str
    subject: str
    origin: str
    content: str
    first_seq: int
    head_seq: int
    head_sum: str
    updated_ms: int
    kept_seq: int | None


class TeamStreamsForm(TypedDict):
    """A page of the journals by id."""

    streams: list[TeamStreamForm]
    next: str | None


class _TeamJournalLine(TypedDict):
    seq: int
    line: str | None


class TeamJournalLineForm(_TeamJournalLine, total=False):
    """A line as it was sent; `sum` and `digest` stand for one that was removed with a person."""

    sum: str
    digest: str


class TeamJournalLinesForm(TypedDict):
    """A page of the lines of a journal; `next` is the `seq` to go on after."""

    stream: str
    lines: list[TeamJournalLineForm]
    next: int | None


class TeamJournalSessionForm(TypedDict):
    """A session in a journal; `subject` is that of the token which sent it."""

    stream: str
    session: str
    subject: str | None
    client: str | None
    started_ms: int
    latest_ms: int
    ended_ms: int | None
    events: int


class TeamJournalSessionsForm(TypedDict):
    """Sessions, the one with the latest event first; `next` says where to go on."""

    sessions: list[TeamJournalSessionForm]
    next: str | None


class TeamAlarmForm(TypedDict):
    """Something about a journal that does not fit: `fork`, `gap`, `cut`, `edited`, `subject` or `owner`."""

    id: str
    at_ms: int
    stream: str
    kind: str
    detail: str


class TeamAlarmsForm(TypedDict):
    """A page of alarms, the latest first; `next` is where to go on."""

    alarms: list[TeamAlarmForm]
    next: str | None


class _TeamUse(TypedDict):
    loads: int
    reads: int
    runs: int
    denials: int
    first_day: int
    last_day: int


class TeamUseForm(_TeamUse, total=False):
    """The use of a skill, on a day or by a person; days are numbers such as 20261117."""

    skill: str
    tree: str
    day: int
    subject: str
    machines: int


class TeamUsageForm(TypedDict):
    """The use of skills, counted by `skill`, `day` or `person`; `next` says where to go on."""

    by: str
    usage: list[TeamUseForm]
    next: int | None


class TeamContentForm(TypedDict):
    """How a tenant takes the lines of journals: `full` or `digest`."""

    tenant: str
    content: str


class TeamRetentionForm(TypedDict):
    """The result of retention: removed lines, or in PostgreSQL without a tenant whole days of all tenants."""

    keep_days: int
    lines: int
    days: int


class TeamForgottenForm(TypedDict):
    """The number of things that were removed with a person; `records` are sessions and counts that had the name."""

    tenant: str
    subject: str
    streams: int
    lines: int
    records: int
