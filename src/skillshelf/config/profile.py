"""Define the Profile schema, and every rule with its default severity.

A `fixed` rule has the same severity in every profile: what it refuses is unsafe, unreadable or not a valid address.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from skillshelf.core.limits import DESCRIPTION_SHOWN, WALK_DIRECTORIES
from skillshelf.core.values import Grade, LinkRule, Severity

__all__ = [
    "RULES",
    "Base",
    "Budget",
    "CatalogLayout",
    "Count",
    "Filter",
    "LoadForm",
    "Profile",
    "Ranking",
    "ReportChannel",
    "RootRule",
    "Rule",
    "SettingForm",
    "SettingRule",
    "SortKey",
    "Switch",
    "Syntax",
    "ToolName",
    "how_to_allow",
    "profile_to_dict",
    "scopes_of",
    "severities",
]


Count = Annotated[int, 1]
"""A whole number of at least 1; `core.validation` reads the second argument as the least value."""


class Rule(NamedTuple):
    """One rule about a skill, a folder or a root, with its default severity."""

    summary: str
    severity: Severity
    fixed: bool = False


RULES: dict[str, Rule] = {
    # A root
    "root-missing": Rule("A folder that the user named does not exist.", "warn"),
    "root-not-a-directory": Rule("A root exists and is not a folder.", "reject", fixed=True),
    "root-unreadable": Rule("A root cannot be opened or listed.", "reject", fixed=True),
    "root-link": Rule("A root is a link whose target the link rule does not allow.", "reject", fixed=True),
    "root-file": Rule("A SKILL.md lies in a root itself instead of in a folder below it.", "reject"),
    "home-missing": Rule("There is no usable home folder.", "warn"),
    "boundary-outside": Rule("The configured boundary is not above the working directory.", "warn"),
    "plugins-unreadable": Rule("The list of installed plugins cannot be read.", "warn"),
    "settings-unreadable": Rule("A settings file of a host cannot be read.", "warn"),
    # A folder or file
    "walk-limit": Rule("A root holds too many folders without a skill; the walk stopped.", "reject", fixed=True),
    "unreadable": Rule("A folder or SKILL.md cannot be read.", "reject", fixed=True),
    "not-a-file": Rule("SKILL.md is a pipe, socket, device or folder.", "reject", fixed=True),
    "file-size": Rule("SKILL.md is larger than the limit; it was not read.", "reject", fixed=True),
    "file-name": Rule("A file that looks like a SKILL.md has another name.", "warn"),
    "path-encoding": Rule("A path is not UTF-8 or holds a control character.", "reject", fixed=True),
    "link-outside": Rule("A link leads out of what this root may reach.", "reject", fixed=True),
    "link-skipped": Rule("The profile does not follow this link.", "reject", fixed=True),
    "link-broken": Rule("The target of a link does not exist.", "warn"),
    "link-loop": Rule("A link leads back to a folder that was already visited.", "warn"),
    "too-deep": Rule("A SKILL.md lies deeper than the profile searches.", "warn"),
    "inside-skill": Rule("A SKILL.md lies inside another skill and is not a skill of its own.", "info"),
    # The form of a SKILL.md
    "encoding": Rule("The frontmatter is not UTF-8.", "reject", fixed=True),
    "control-character": Rule("The frontmatter holds NUL or another control character.", "reject", fixed=True),
    "bom": Rule("The file begins with a byte order mark.", "warn"),
    "crlf": Rule("The line ends are CRLF.", "info"),
    "fence-blanks": Rule("Blanks follow the opening fence.", "info"),
    "frontmatter-missing": Rule("The file does not begin with a line `---`.", "reject"),
    "frontmatter-unclosed": Rule("The frontmatter has no closing line `---`.", "reject"),
    "frontmatter-size": Rule("The frontmatter is larger than the limit.", "reject", fixed=True),
    "frontmatter-depth": Rule("The frontmatter is nested too deeply.", "reject", fixed=True),
    "frontmatter-keys": Rule("The frontmatter has too many keys.", "reject", fixed=True),
    "frontmatter-type": Rule("The frontmatter is not a map of fields.", "reject"),
    "yaml": Rule("The frontmatter is not readable YAML.", "reject"),
    "yaml-alias": Rule("The frontmatter uses a YAML alias.", "reject", fixed=True),
    "yaml-tag": Rule("The frontmatter uses a YAML tag.", "reject", fixed=True),
    "yaml-merge": Rule("The frontmatter uses a YAML merge key.", "reject", fixed=True),
    "yaml-duplicate-key": Rule("A key occurs twice in one map.", "reject", fixed=True),
    "yaml-key": Rule("A list or a map is used as a key.", "reject", fixed=True),
    "yaml-value": Rule(
        "A number has no exact JSON form (beyond 64 bits, infinite, not a number).", "reject", fixed=True
    ),
    "yaml-colon": Rule("An unquoted value holds `: `; it was read as if quoted.", "warn"),
    "yaml-brackets": Rule("An unquoted value begins like a list but is not one; it was read as if quoted.", "warn"),
    "yaml-tab": Rule("A line is indented with tabs; they were read as two blanks each.", "warn"),
    "yaml-lines": Rule("The frontmatter is not readable YAML; it was read as `key: value` lines.", "warn"),
    # Its fields
    "name-missing": Rule("There is no name; unless this rejects, the folder's name is used.", "warn"),
    "name-type": Rule("The name is not text.", "warn"),
    "name-address": Rule("The name is empty, `.`, `..`, or holds a slash or control character.", "reject", fixed=True),
    "name-length": Rule("The name is longer than the profile allows.", "warn"),
    "name-pattern": Rule("The name is not lower-case letters, digits and single hyphens.", "warn"),
    "name-directory": Rule("The name differs from the name of the folder.", "warn"),
    "name-collision": Rule("Two skills have one name.", "warn"),
    "description-missing": Rule("There is no description.", "reject"),
    "description-type": Rule("The description is not text.", "warn"),
    "description-length": Rule("The description is longer than the profile allows.", "warn"),
    "license-type": Rule("`license` is not text.", "info"),
    "version-type": Rule("`version` is not text.", "info"),
    "compatibility-type": Rule("`compatibility` is not text.", "warn"),
    "compatibility-length": Rule("`compatibility` is empty or longer than the profile allows.", "warn"),
    "metadata-type": Rule("`metadata` is not a map.", "warn"),
    "metadata-values": Rule("A value in `metadata` is not text.", "info"),
    "allowed-tools-type": Rule("`allowed-tools` is neither text nor a list of texts.", "warn"),
    "allowed-tools-list": Rule("`allowed-tools` is a list where the standard asks for one text.", "info"),
    "field-type": Rule("A field that must be text in this profile is not text.", "warn"),
    "globs-type": Rule("`globs` is not a list of texts.", "info"),
    "always-apply-type": Rule("`alwaysApply` is not true or false.", "info"),
    "unknown-field": Rule("The profile does not know this field.", "info"),
    "hidden-text": Rule("Name or description holds invisible, bidirectional, tag or control characters.", "warn"),
    # Only in `check`: the body, and the files beside it
    "description-cut": Rule("The description ends at ` #`, where YAML begins a comment.", "warn"),
    "description-vague": Rule("The description is too short to choose the skill.", "warn"),
    "description-when": Rule("The description does not say when to use the skill.", "info"),
    "description-long": Rule("The description is longer than it needs to be.", "info"),
    "body-empty": Rule("Nothing follows the frontmatter.", "warn"),
    "body-encoding": Rule("The text after the frontmatter is not UTF-8, so it cannot be loaded.", "reject"),
    "body-control-character": Rule("The text holds NUL or another control character.", "warn"),
    "body-lines": Rule("The text has more than 500 lines.", "info"),
    "body-tokens": Rule("The text has more than 5,000 tokens.", "info"),
    "reference-missing": Rule("A file that the text names does not exist.", "warn"),
    "reference-outside": Rule("A link leads out of the skill's folder.", "info"),
    "reference-deep": Rule("A file can be reached only through another reference.", "info"),
    "script-shebang": Rule("A script does not say what runs it.", "info"),
    "script-run-bit": Rule("A script cannot be run: its file mode does not allow it.", "info"),
    "check-limit": Rule("The skill has more pages or scripts than `check` reads.", "info"),
    "skill-unknown": Rule("The text names a skill that is not here.", "info"),
    "skill-cycle": Rule("Skills name each other in a circle.", "info"),
    # Other hosts
    "portability-safeguard": Rule("A field that restricts the skill is ignored by some hosts.", "info"),
    "portability-field": Rule("A field has an effect in some hosts only.", "info"),
    # A load
    "changed": Rule("The file changed since the catalog was built.", "warn"),
    "closing-tag": Rule("The text holds the closing tag of its own element, which was escaped.", "warn"),
    # The configuration
    "config-untrusted": Rule("A project's configuration sets a key that counts only in a trusted folder.", "warn"),
    "skills-disabled": Rule("Skills are switched off in the configuration.", "warn"),
    # Ourselves
    "internal": Rule("skillshelf failed on this file; please report it.", "reject", fixed=True),
}


def severities(overrides: Mapping[str, Severity], base: Mapping[str, Severity] | None = None) -> dict[str, Severity]:
    """Return a severity for every rule: the overrides, then the base or the defaults."""
    whole = dict(base) if base else {rule: entry.severity for rule, entry in RULES.items()}
    return {**whole, **overrides}


Base = Literal["env", "chain", "cwd", "repository", "custom", "home", "fixed", "plugin-list"]
"""The starting point of a root rule; `catalog.search_roots.BASES` has one function for each."""


CatalogLayout = Literal[
    "available-skills", "skills-context", "with-location", "tool-prompt", "skills-list", "bullets", "bullets-with-file"
]
"""The layout of the catalog for a model; `catalog.prompt` has one function for each."""

LoadForm = Literal["skill-content", "skill-context", "skill-activated", "envelope", "raw"]
"""The layout of a loaded skill for a model; `session.render` has one function for each."""


Ranking = Literal["relevance", "overlap"]
"""The ranking of skills that match by words alone; `search.query` has one function for each."""


Switch = Literal[
    "enable_codex_user", "enable_claude_user", "enable_claude_project", "enable_pi_user", "enable_pi_project", "any"
]
Filter = Literal["source", "ignored", "include"]
SortKey = Literal["name", "root", "scope", "path"]
ReportChannel = Literal["screen", "log", "nothing", "unknown"]
"""The place where a host reports that a skill is missing."""

Budget = Literal["entries", "bytes", "tokens", "chars"]
ToolName = Literal["skill_search", "skill_load", "skill_read", "skill_run", "activate_skill", "Skill", "read"]


Syntax = Literal["json", "json-comments", "jsonc", "toml", "yaml"]
"""The syntax of a host's settings file; `jsonc` allows trailing commas besides comments."""

SettingForm = Literal["names", "all", "entries", "states", "patterns", "mentions", "whole", "any"]
"""The form of a host's setting; `catalog.host_settings` has one function for each."""


class SettingRule(NamedTuple):
    """One setting by which a host excludes skills, and its files, the weakest first.

    A file begins with its base: `home:`, `cwd:`, `chain:` (each folder upward) or `repository:`. `mention` is the
    pattern of a word that names a skill; its group is the name.
    """

    form: SettingForm
    key: str
    files: tuple[str, ...]
    syntax: Syntax = "json"
    moved_by: str | None = None
    project_files: Literal["always", "trusted"] = "always"
    mention: str = "(.*)"


class RootRule(NamedTuple):
    """One folder, or one per folder of a chain, in which a profile searches for skills.

    `switch` names the source switch that turns it off; `any` means that one of the switches must be on.
    `host_switch` names a setting of the host that is off by default, `off_by` the variables that turn the root off.
    """

    kind: Literal["env", "project", "custom", "user"]
    base: Base
    paths: tuple[str, ...] = ()
    provider: str | None = None
    priority: Annotated[int, 0] = 0
    switch: Switch | None = None
    description: Literal["required", "optional"] = "required"
    plugin_list: str | None = None
    moved_by: str | None = None
    host_switch: str | None = None
    off_by: tuple[str, ...] = ()
    hidden: Literal["enter", "skip"] | None = None
    loose_files: Literal["none", "in-folders", "everywhere"] = "none"


class Profile(NamedTuple):
    """The behaviour of one system or host as data. docs/profiles.md documents each field."""

    name: str
    summary: str
    evidence: str
    as_of: str
    version: str = ""
    grade: Grade = "-"
    # Roots
    roots: tuple[RootRule, ...] = ()
    chain_order: Literal["nearest-first", "farthest-first"] = "nearest-first"
    markers: tuple[str, ...] = (".git", ".jj", ".hg")
    markers_env: str | None = None
    boundary_env: str | None = None
    no_marker: Literal["cwd", "filesystem"] = "cwd"
    home_in_chain: Literal["user", "project", "skip"] = "user"
    scope_labels: Mapping[str, str] = {}
    env: tuple[str, ...] = ()
    nested: Literal["none", "on-use"] = "none"
    trust_file: str | None = None
    trust_file_env: str | None = None
    trust_syntax: Syntax = "json"
    trust_levels: Mapping[str, Literal["folder", "parent", "refused", "none"]] = {}
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
    root_file: Literal["report", "skill"] = "report"
    user_links: LinkRule = "follow"
    other_links: LinkRule = "contained"
    linked_file: Literal["as-folder", "skip"] = "as-folder"
    max_directories: Count = WALK_DIRECTORIES
    # Parse
    yaml_mode: Literal["full", "simple", "lines"] = "full"
    yaml_fallback: Literal["none", "lines"] = "none"
    repaired_keys: Literal["any", "words"] = "any"
    opening_fence: Literal["first-line", "anywhere"] = "first-line"
    closing_fence: Literal["line", "anywhere"] = "line"
    body_text: Literal["any", "utf-8"] = "any"
    # Identity and rules
    name_source: Literal["frontmatter", "directory"] = "frontmatter"
    name_form: Literal["as-is", "one-blank", "hyphens", "file-name"] = "as-is"
    odd_name: Literal["text", "folder"] = "text"
    name_pattern: str = r"[a-z0-9]+(?:-[a-z0-9]+)*"
    name_max: Count = 64
    description_max: Count = 1024
    description_from: Literal["frontmatter", "or-body", "or-hide"] = "frontmatter"
    compatibility_max: Count = 500
    fields: tuple[str, ...] = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
    text_fields: tuple[str, ...] = ()
    hides_on: tuple[str, ...] = ("disable-model-invocation",)
    rules: Mapping[str, Severity] = {}
    # Collisions, filters, order
    collision: Literal["first", "last", "keep-all", "race"] = "first"
    collision_doubt: Literal["none", "same-root", "same-kind", "always"] = "none"
    collision_key: Literal["exact", "folded"] = "exact"
    filter_order: Literal["before-collisions", "after-collisions"] = "before-collisions"
    filters: tuple[Filter, ...] = ("source", "ignored", "include")
    order: tuple[SortKey, ...] = ("name", "root", "path")
    # The catalog for a model
    catalog_form: CatalogLayout = "available-skills"
    catalog_budget: tuple[Budget, ...] = ("tokens",)
    catalog_condition: Literal["always", "read-tool"] = "always"
    budget_env: str | None = None
    budget_chars: Count | None = None
    overflow: Literal["none", "shorten", "drop-descriptions", "drop-least-used"] = "none"
    description_shown: Count | None = DESCRIPTION_SHOWN
    # Facts about a host
    tells: Mapping[str, ReportChannel] = {}
    unknown: tuple[str, ...] = ()
    on_change: str = ""
    # Tools and loads
    tools: tuple[ToolName, ...] = ()
    ranking: Ranking = "relevance"
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
    # The effect of `allowed-tools` of active skills on the host's tools
    allowed_tools: Literal["ignore", "advise", "narrow"] = "ignore"


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
    if isinstance(value, RootRule | SettingRule):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(value[name]) for name in sorted(value)}
    return value
