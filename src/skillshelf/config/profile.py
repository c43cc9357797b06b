"""Define the schema of a profile: everything in which the described systems differ."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from skillshelf.config.rules import RULES
from skillshelf.core.limits import DESCRIPTION_SHOWN, WALK_DIRECTORIES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Grade, LinkRule, Scope, Severity

__all__ = [
    "REPAIRED_MARKS",
    "RULES",
    "Base",
    "Budget",
    "BudgetUnit",
    "CatalogLayout",
    "ClosingFence",
    "Count",
    "DescriptionSource",
    "FieldKind",
    "FieldType",
    "Filter",
    "HomeRule",
    "LoadForm",
    "OpeningFence",
    "PluginRule",
    "Profile",
    "Ranking",
    "ReportChannel",
    "RootRule",
    "SearchForm",
    "SettingForm",
    "SettingRule",
    "SortKey",
    "Switch",
    "Syntax",
    "ToolName",
    "YamlFallback",
    "YamlMode",
    "how_to_allow",
    "profile_to_dict",
    "scopes_of",
    "severities",
]


Count = Annotated[int, 1]
"""A whole number of at least 1; `core.validation` reads the second argument as the least value."""


def severities(overrides: Mapping[str, Severity], base: Mapping[str, Severity] | None = None) -> dict[str, Severity]:
    """Return a severity for every rule: the overrides, or else that of the base or of the rule itself."""
    whole = dict(base) if base else {rule: entry.severity for rule, entry in RULES.items()}
    return {**whole, **overrides}


HomeRule = Literal["user", "project", "skip"]
"""The home folder in a chain: read once, as the user's own; read as any other folder; or not read."""


Base = Literal["env", "chain", "cwd", "repository", "custom", "home", "fixed", "plugin-list"]
"""The starting point of a root rule; `catalog.search_roots.BASES` has one function for each."""


CatalogLayout = Literal[
    "available-skills",
    "skills-context",
    "with-location",
    "tool-prompt",
    "skills-list",
    "bullets",
    "bullets-with-file",
    "skill-elements",
]
"""The layout of the catalog for a model; `catalog.prompt` has one function for each."""

LoadForm = Literal["skill-content", "skill-context", "skill-activated", "envelope", "raw"]
"""The layout of a loaded skill for a model; `session.render` has one function for each."""


SearchForm = Literal["numbered", "elements"]
"""The layout of search results for a model; `session.results` has one function for each."""


Ranking = Literal["relevance", "overlap"]
"""The ranking of skills that match by words alone; `search.query` has one function for each."""


PrefixMatch = Literal["flat", "word"]
"""The names that begin with a query: all of them, before every match by words; or those in which a word ends there."""


TermKind = Literal["plain", "extended"]
"""How texts and queries become terms: words as they are written; or also other spellings, compounds and languages."""


Switch = Literal[
    "enable_codex_user", "enable_claude_user", "enable_claude_project", "enable_pi_user", "enable_pi_project", "any"
]
Filter = Literal["source", "ignored", "include"]
SortKey = Literal["name", "root", "scope", "path"]
ReportChannel = Literal["screen", "log", "nothing", "unknown"]
"""The place where a host reports that a skill is missing."""

Budget = Literal["entries", "bytes", "tokens", "chars"]
BudgetUnit = Literal["chars", "joined-chars", "token-lines"]
"""The unit of a budget in characters; `joined-chars` does not count the end of the last line, `token-lines` rounds the
bytes of each line up to tokens of four."""

ToolName = Literal["skill_search", "skill_load", "skill_read", "skill_run", "activate_skill", "Skill", "read"]


Syntax = Literal["json", "json-comments", "jsonc", "toml", "yaml"]
"""The syntax of a host's settings file; `jsonc` allows trailing commas besides comments."""

SettingForm = Literal[
    "names", "exact-names", "all", "entries", "states", "patterns", "mentions", "folders", "whole", "any"
]
"""The form of a host's setting; `catalog.host_settings` has one function for each."""


YamlMode = Literal["full", "simple", "lines", "first-lines"]
"""The way to read a frontmatter; `catalog.document.YAML_MODES` has one function for each."""

YamlFallback = Literal["none", "lines", "lines-on-error"]
"""When the frontmatter is read line by line instead: never, or if YAML fails; `lines` also for a field not text."""

OpeningFence = Literal["first-line", "anywhere", "hyphens"]
"""Where the frontmatter begins; `hyphens` is a first line of three hyphens or more."""

ClosingFence = Literal["line", "anywhere", "line-start", "line-start-or-end", "end"]
"""Where the frontmatter ends; `catalog.document.CLOSINGS` has one function for each."""

REPAIRED_MARKS = "[{@`%"
"""The characters that begin a value which is quoted if it is not YAML."""

DescriptionSource = Literal["frontmatter", "or-body", "or-text", "or-hide"]
"""The substitute for a missing description; `catalog.parse.DESCRIPTIONS` has one function for each that reads the text,
and `or-hide` keeps the skill from models."""

FieldKind = Literal["text", "number", "boolean", "list", "map", "null"]


class FieldType(NamedTuple):
    """The kinds of value that a field may have, and what happens to others.

    The skill is left out, the field counts as missing, the value is taken as it is written, or the host lists no skill
    at all.
    """

    field: str
    accepts: tuple[FieldKind, ...]
    otherwise: Literal["reject", "ignore", "text", "no-list"] = "reject"


class SettingRule(NamedTuple):
    """One setting by which a host excludes skills, and its files, the weakest first.

    A file begins with its base: `home:`, `cwd:`, `chain:` (each folder upward) or `repository:`. `mention` is the
    pattern of a word that names a skill; its group is the name. `known` is what such a mention does, if that was tried.
    """

    form: SettingForm
    key: str
    files: tuple[str, ...]
    syntax: Syntax = "json"
    project_files: Literal["always", "trusted"] = "always"
    mention: str = "(.*)"
    known: str = ""


class PluginRule(NamedTuple):
    """The records of a host about its plugins: the setting that turns each on, and the files that name them.

    `manifest` is that of a plugin; a market that is a folder, by the list `markets`, is named in its file `market`.
    """

    switch: SettingRule
    manifest: str
    markets: str
    market: str


class RootRule(NamedTuple):
    """One folder, or one per folder of a chain, in which a profile searches for skills.

    `switch` names the source switch that turns it off; `any` means that one of the switches must be on.
    `host_switch` names a setting of the host that is off by default. The variables in `off_by` turn the root off if
    they are true, those in `off_if_set` with any value; those in `on_if_set` stand in for the switch. `home` says what
    the root is where the chain passes the home folder.
    """

    kind: Literal["env", "project", "custom", "user"]
    base: Base
    paths: tuple[str, ...] = ()
    provider: str | None = None
    priority: Annotated[int, 0] = 0
    switch: Switch | None = None
    description: Literal["required", "optional"] = "required"
    plugin_list: str | None = None
    plugins: PluginRule | None = None
    host_switch: str | None = None
    on_if_set: tuple[str, ...] = ()
    off_by: tuple[str, ...] = ()
    off_if_set: tuple[str, ...] = ()
    home: HomeRule | None = None
    hidden: Literal["enter", "skip"] | None = None
    loose_files: Literal["none", "in-root", "in-folders"] = "none"


class Profile(NamedTuple):
    """The behaviour of one system or host as data. docs/reference/profiles.md documents each field."""

    name: str
    summary: str
    evidence: str
    as_of: str
    version: str = ""
    grade: Grade = "-"
    host: str | None = None
    # Roots
    roots: tuple[RootRule, ...] = ()
    chain_order: Literal["nearest-first", "farthest-first"] = "nearest-first"
    markers: tuple[str, ...] = (".git", ".jj", ".hg")
    markers_env: str | None = None
    boundary_env: str | None = None
    no_marker: Literal["cwd", "home", "filesystem"] = "cwd"
    home_in_chain: HomeRule = "user"
    home_repository: Literal["counts", "ignored"] = "counts"
    moved: Mapping[str, str] = {}
    scope_labels: Mapping[str, Scope] = {}
    env: tuple[str, ...] = ()
    nested: Literal["none", "on-use"] = "none"
    trust_file: str | None = None
    trust_file_env: str | None = None
    trust_syntax: Syntax = "json"
    trust_key: str | None = None
    trust_levels: Mapping[str, Literal["folder", "parent", "refused", "none"]] = {}
    trust_at: Literal["above", "project"] = "above"
    trust_paths: Literal["real", "written"] = "real"
    trust_env: tuple[str, ...] = ()
    distrust_env: tuple[str, ...] = ()
    trust_switch: SettingRule | None = None
    settings: tuple[SettingRule, ...] = ()
    plugin_manifests: tuple[str, ...] = ()
    # Walk
    max_depth: Count | None = 6
    folder_order: Literal["sorted", "reversed"] = "sorted"
    hidden: Literal["enter", "skip"] = "enter"
    skip_directories: tuple[str, ...] = (".git", "node_modules")
    below_skill: Literal["skip", "enter"] = "skip"
    root_file: Literal["report", "skill", "alone"] = "report"
    ignore_files: tuple[str, ...] = ()
    user_links: LinkRule = "follow"
    other_links: LinkRule = "contained"
    linked_root: Literal["bounded", "follow"] = "bounded"
    linked_file: Literal["as-folder", "skip"] = "as-folder"
    max_directories: Count = WALK_DIRECTORIES
    # Parse
    yaml_mode: YamlMode = "full"
    yaml_fallback: YamlFallback = "none"
    repaired_keys: Literal["any", "words"] = "any"
    repaired_marks: str = REPAIRED_MARKS
    duplicate_keys: Literal["reject", "last"] = "reject"
    tags: Literal["reject", "drop"] = "reject"
    opening_fence: OpeningFence = "first-line"
    closing_fence: ClosingFence = "line"
    frontmatter_blanks: Literal["keep", "strip"] = "keep"
    line_ends: Literal["lf", "any"] = "lf"
    body_text: Literal["any", "utf-8"] = "any"
    empty_file: Literal["text", "no-bytes", "blanks", "no-body"] = "text"
    # Identity and rules
    name_source: Literal["frontmatter", "directory"] = "frontmatter"
    name_form: Literal["as-is", "one-blank", "hyphens", "slug", "file-name"] = "as-is"
    odd_name: Literal["text", "folder"] = "text"
    long_name: Literal["keep", "folder"] = "keep"
    name_pattern: str = r"[a-z0-9]+(?:-[a-z0-9]+)*"
    name_max: Count = 64
    description_max: Count = 1024
    description_from: DescriptionSource = "frontmatter"
    empty_description: Literal["missing", "kept", "of-other-types"] = "missing"
    description_parts: tuple[str, ...] = ()
    compatibility_max: Count = 500
    fields: tuple[str, ...] = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
    types: tuple[FieldType, ...] = ()
    hides_on: tuple[str, ...] = ("disable-model-invocation",)
    truth: Literal["words", "boolean", "boolean-or-text"] = "words"
    waits_for: tuple[str, ...] = ()
    keeps_from_users: tuple[str, ...] = ()
    rules: Mapping[str, Severity] = {}
    accepts: tuple[str, ...] = ()
    # Collisions, filters, order
    collision: Literal["first", "last", "keep-all", "race", "first-and-folders"] = "first"
    collision_doubt: Literal["none", "same-root", "always"] = "none"
    collision_key: Literal["exact", "folded"] = "exact"
    filter_order: Literal["before-collisions", "after-collisions"] = "before-collisions"
    filters: tuple[Filter, ...] = ("source", "ignored", "include")
    order: tuple[SortKey, ...] = ("name", "root", "path")
    # The catalog for a model
    catalog_form: CatalogLayout = "available-skills"
    catalog_budget: tuple[Budget, ...] = ("tokens",)
    catalog_condition: Literal["always", "read-tool"] = "always"
    catalog_place: Literal["prompt", "tool"] = "prompt"
    budget_env: str | None = None
    budget_chars: Count | None = None
    budget_least: Count | None = None
    budget_unit: BudgetUnit = "chars"
    budget_frame: Literal["counts", "free"] = "counts"
    bundled: Mapping[str, int] = {}
    bundled_last: tuple[str, ...] = ()
    bundled_at: str | None = None
    overflow: Literal["none", "shorten", "drop-descriptions", "drop-least-used"] = "none"
    description_shown: Count | None = DESCRIPTION_SHOWN
    hidden_characters: Literal["remove", "keep"] = "remove"
    # Facts about a host
    tells: Mapping[str, ReportChannel] = {}
    unknown: tuple[str, ...] = ()
    on_change: str = ""
    programs: tuple[str, ...] = ()
    home_paths: tuple[str, ...] = ()
    # Tools and loads
    tools: tuple[ToolName, ...] = ()
    ranking: Ranking = "relevance"
    configured_scorer: Literal["counts", "ignored"] = "ignored"
    search_terms: TermKind = "extended"
    search_prefix: PrefixMatch = "flat"
    search_copies: Literal["keep", "collapse"] = "keep"
    search_weak: Literal["keep", "few"] = "keep"
    search_form: SearchForm = "numbered"
    search_prior: Literal["use", "none"] = "none"
    load_by: tuple[Literal["name", "path"], ...] = ("name",)
    load_form: LoadForm = "skill-content"
    loaded_text: Literal["body", "file"] = "body"
    listed_files: Count = 512
    listed_bytes: Count | None = None
    result_bytes: Count = 256 * 1024
    reload: Literal["remind", "repeat"] = "remind"
    refresh: Literal["manual", "on-call"] = "manual"
    refresh_env: str | None = None
    content_types: Literal["markdown-or-plain", "by-extension"] = "by-extension"
    # Arguments, mentions, commands
    arguments: Literal["none", "substitute", "append", "user-line"] = "none"
    empty_arguments: Literal["replace", "keep"] = "replace"
    mentions: Literal["dollar", "none"] = "none"
    commands: Literal["slash-skill", "none"] = "none"
    # Standing context of the host
    context_files: Literal["none", "agents-md"] = "none"
    # The effect of `allowed-tools` of active skills on the host's tools
    allowed_tools: Literal["ignore", "advise", "narrow"] = "ignore"
    # The form in which the answer "remember" is kept
    remembered_as: Literal["approval", "approval-and-rule"] = "approval"
    # The names that an allow rule may hold
    rule_names: Literal["any", "kebab-case"] = "any"
    # Skills of sources that a program passes to `open_shelf`
    live_sources: Literal["allowed", "refused"] = "allowed"


def scopes_of(profile: Profile) -> list[str]:
    """Return the scopes of a profile in the order of its roots."""
    return list(dict.fromkeys(profile.scope_labels.get(rule.kind, rule.kind) for rule in profile.roots))


def how_to_allow(root: str, profile: Profile) -> str:
    """Return the end of a message about a link: the setting that would make its target a root."""
    settings = [name for rule in profile.roots if rule.base == "env" for name in rule.paths]
    settings += ["skills.custom_directories" for rule in profile.roots if rule.base == "custom"]
    if not settings:
        return "; this profile has no setting to allow it"
    return f"; to allow it, name {root} in {' or '.join(settings)}"


def profile_to_dict(profile: Profile) -> dict[str, Any]:
    """Return the JSON form: every field, in order."""
    return {name: _plain(value) for name, value in profile._asdict().items()}


def _plain(value: Any) -> Any:
    if isinstance(value, RootRule | SettingRule | FieldType | PluginRule):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(value[name]) for name in sorted(value)}
    return value
