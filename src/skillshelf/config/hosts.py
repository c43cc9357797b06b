"""The agent hosts as rows: one profile each, with the source of every fact.

A new host is a row derived from `HOST`, `NOT_RUN` or `DOCUMENTED` and an entry in `HOSTS`.
"""

from skillshelf.config.profile import FieldType, PluginRule, Profile, ReportChannel, RootRule, SettingRule, severities
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean
from skillshelf.core.values import Severity
from skillshelf.errors import ConfigurationError

__all__ = [
    "DETECTION",
    "DOCUMENTED",
    "HOST",
    "HOSTS",
    "MARKETPLACE_FILES",
    "NOT_RUN",
    "NO_REPAIR",
    "PLUGIN_FILES",
    "PLUGIN_KEYS",
    "PLUGIN_PATHS",
    "find_host",
    "reported_in",
    "roots_of",
    "rules_of",
]


_RUN = "2026-11-17"

_UNCHECKED = (
    *("name-missing", "name-type", "name-length", "name-pattern", "name-directory"),
    *("description-type", "description-length", "compatibility-type", "compatibility-length"),
    *("metadata-type", "allowed-tools-type", "bom", "crlf", "fence-blanks"),
)
"""Rules that most hosts do not check."""

NO_REPAIR = ("yaml-colon", "yaml-brackets", "yaml-tab")
_OPEN_FORM = (
    *("bom", "fence-blanks", "frontmatter-missing", "frontmatter-unclosed", "frontmatter-type"),
    *("yaml", *NO_REPAIR, "yaml-duplicate-key", "yaml-tag", "description-type", "name-type"),
)
"""Mistakes in the form of a file whose effect is unknown for hosts that were not run."""


def rules_of(*, reject: tuple[str, ...] = (), off: tuple[str, ...] = ()) -> dict[str, Severity]:
    """Return the severity of every rule: `reject` leaves a skill out, `off` adds to what most hosts ignore."""
    rules: dict[str, Severity] = {**dict.fromkeys((*_UNCHECKED, *off), "off"), "root-file": "reject"}
    return severities({**rules, **dict.fromkeys(reject, "reject")})


def reported_in(
    *, invalid: ReportChannel, collision: ReportChannel, budget: ReportChannel | None = None
) -> dict[str, ReportChannel]:
    """Return the channel for each group of problems; no host reports folders it does not read, links or trust."""
    reported: dict[str, ReportChannel] = {"place": "nothing", "link": "nothing", "trust": "nothing"}
    reported |= {"invalid": invalid, "collision": collision}
    return reported if budget is None else {**reported, "budget": budget}


def roots_of(*rules: tuple[str, str, str]) -> tuple[RootRule, ...]:
    """Return root rules from (kind, base, path) triples."""
    return tuple(RootRule(kind, base, (path,)) for kind, base, path in rules)  # type: ignore[arg-type]


HOST = Profile(
    name="",
    summary="",
    evidence="",
    as_of=_RUN,
    grade="R",
    markers=(".git",),
    max_depth=1,
    root_file="report",
    skip_directories=(),
    user_links="follow",
    other_links="follow",
    fields=("name", "description"),
    hides_on=(),
    rules=rules_of(),
    order=("name", "root", "path"),
    catalog_budget=(),
    catalog_form="with-location",
    description_shown=None,
    hidden_characters="keep",
    tells=reported_in(invalid="nothing", collision="nothing"),
)
"""The common defaults: one level, every link followed, few rules checked."""

NOT_RUN = HOST._replace(
    as_of="2026-08-22",
    grade="D",
    name_source="directory",
    rules=rules_of(off=("description-missing", "frontmatter-missing", "yaml")),
    unknown=(*_OPEN_FORM, "linked_file", "encoding"),
)
"""A host known from its source or documentation only."""

DOCUMENTED = NOT_RUN._replace(
    tells={"place": "nothing", "link": "unknown", "trust": "unknown", "invalid": "unknown", "collision": "unknown"},
    unknown=(
        *(*NOT_RUN.unknown, "fields", "links", "below_skill", "root-file", "skip_directories"),
        *("name-missing", "name-pattern", "name-directory", "name-length"),
        *("description-missing", "description-length"),
    ),
)
"""A host known from its documentation only."""


_CODEX_FILES = ("home:.codex/config.toml",)

_CODEX = HOST._replace(
    name="codex",
    summary="Codex: `.agents/skills` and `.codex/skills` up to the repository, six levels, every copy of a name kept.",
    evidence="run: app-server skills/list, and the prompt of exec; read: codex-rs at 343074d",
    version="0.166.0",
    roots=(
        RootRule("project", "chain", (".codex/skills",)),
        RootRule("user", "home", (".codex/skills",)),
        RootRule("user", "home", (".agents/skills",)),
        RootRule("user", "fixed", ("/etc/codex/skills",)),
        RootRule("project", "chain", (".agents/skills",)),
    ),
    chain_order="farthest-first",
    env=("CODEX_HOME",),
    moved={".codex": "$CODEX_HOME"},
    settings=(
        SettingRule("entries", "skills.config", _CODEX_FILES, "toml"),
        SettingRule("whole", "skills.include_instructions", _CODEX_FILES, "toml"),
    ),
    plugin_manifests=(".codex-plugin/plugin.json", ".claude-plugin/plugin.json", ".cursor-plugin/plugin.json"),
    max_depth=6,
    hidden="skip",
    below_skill="enter",
    root_file="skill",
    linked_file="skip",
    max_directories=2_000,
    body_text="utf-8",
    repaired_marks="[{@`",
    tags="drop",
    name_form="one-blank",
    types=(
        *(FieldType(field, ("text", "null", "list", "map"), "text") for field in ("name", "description")),
        FieldType("metadata", ("map", "null")),
    ),
    rules=rules_of(reject=("bom", "body-encoding", "yaml-tab", "name-length", "description-type", "field-type")),
    accepts=("name-address",),
    collision="keep-all",
    order=("scope", "name", "path"),
    catalog_form="bullets-with-file",
    catalog_budget=("chars",),
    budget_chars=21_760,
    budget_least=8_000,
    budget_unit="token-lines",
    bundled={"imagegen": 570, "openai-docs": 459, "skill-creator": 106, "skill-installer": 225},
    bundled_at=".codex/skills/.system",
    overflow="shorten",
    description_shown=1_024,
    mentions="dollar",
    tells=reported_in(invalid="screen", collision="nothing", budget="screen"),
    on_change="picks it up automatically after about ten seconds",
)

_CLAUDE_FILES = (
    *("home:.claude/settings.json", "cwd:.claude/settings.json"),
    *("repository:.claude/settings.local.json", "cwd:.claude/settings.local.json"),
)

_CLAUDE_CODE = HOST._replace(
    name="claude-code",
    summary="Claude Code: `.claude/skills` upward and at home, one level; the folder is the name, personal wins.",
    evidence="run: -p with stream-json, and the prompt it sends; code.claude.com/docs/en/skills",
    version="2.1.325",
    roots=(
        RootRule("user", "home", (".claude/skills",)),
        RootRule("project", "chain", (".claude/skills",)),
        RootRule(
            *("user", "plugin-list", ("skills",)),
            plugin_list=".claude/plugins/installed_plugins.json",
            plugins=PluginRule(
                SettingRule("states", "enabledPlugins", _CLAUDE_FILES),
                manifest=".claude-plugin/plugin.json",
                markets=".claude/plugins/known_marketplaces.json",
                market=".claude-plugin/marketplace.json",
            ),
        ),
    ),
    env=("CLAUDE_CONFIG_DIR",),
    moved={".claude": "$CLAUDE_CONFIG_DIR"},
    settings=(
        SettingRule("states", "skillOverrides", _CLAUDE_FILES),
        SettingRule("mentions", "permissions.deny", _CLAUDE_FILES, mention=r"Skill()"),
        SettingRule(
            *("mentions", "permissions.deny", _CLAUDE_FILES),
            mention=r"Skill\(([^)]*?)(?:[ :]\*)?\)",
            known="it may not be called, but it is listed and its model is told of it",
        ),
    ),
    no_marker="home",
    nested="on-use",
    closing_fence="anywhere",
    repaired_marks="[{@`%&*|>",
    duplicate_keys="last",
    tags="drop",
    name_source="directory",
    description_from="or-body",
    description_parts=("when_to_use",),
    fields=(
        *("name", "description", "when_to_use", "argument-hint", "arguments", "disable-model-invocation"),
        *("user-invocable", "allowed-tools", "disallowed-tools", "model", "effort", "context", "agent", "background"),
        *("hooks", "paths", "shell"),
    ),
    hides_on=("disable-model-invocation",),
    waits_for=("paths",),
    keeps_from_users=("user-invocable",),
    rules=rules_of(
        off=("frontmatter-missing", "frontmatter-unclosed", "frontmatter-type", "yaml", "description-missing")
    ),
    catalog_form="bullets",
    catalog_budget=("chars",),
    budget_chars=30_000,
    budget_least=8_000,
    bundled={
        "dataviz": 1436,
        "update-config": 690,
        "keybindings-help": 228,
        "code-review": 825,
        "simplify": 176,
        "fewer-permission-prompts": 163,
        "loop": 336,
        "claude-api": 1157,
        "workflow-authoring": 230,
        "run": 361,
        "plugin-authoring": 255,
        "init": 59,
        "security-review": 71,
    },
    bundled_last=("init", "security-review"),
    budget_unit="joined-chars",
    overflow="drop-least-used",
    description_shown=1_536,
    arguments="substitute",
    tells=reported_in(invalid="nothing", collision="nothing", budget="nothing"),
    unknown=("fields", "yaml-duplicate-key"),
    on_change="picks it up automatically (needs a restart if its skills folder is new)",
)

_OPENCODE_CLAUDE = (
    *("OPENCODE_DISABLE_EXTERNAL_SKILLS", "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS"),
    "OPENCODE_DISABLE_CLAUDE_CODE",
)
_OPENCODE_FILES = (
    *("home:.config/opencode/config.json", "home:.config/opencode/opencode.json"),
    *("home:.config/opencode/opencode.jsonc", "chain:opencode.json", "chain:opencode.jsonc"),
    *("chain:.opencode/opencode.json", "chain:.opencode/opencode.jsonc"),
)

_OPENCODE = HOST._replace(
    name="opencode",
    summary="opencode: `.claude`, `.agents` and `.opencode` upward and at home, any depth; a name twice is a race.",
    evidence="run: debug skill; read: packages/opencode at d545d8f",
    version="1.18.33",
    roots=(
        RootRule("user", "home", (".claude/skills",), off_by=_OPENCODE_CLAUDE),
        RootRule("user", "home", (".agents/skills",), off_by=_OPENCODE_CLAUDE[:1]),
        RootRule("project", "chain", (".claude/skills",), off_by=_OPENCODE_CLAUDE),
        RootRule("project", "chain", (".agents/skills",), off_by=_OPENCODE_CLAUDE[:1]),
        RootRule(
            *("user", "home", (".config/opencode/skill", ".config/opencode/skills")),
            hidden="skip",
        ),
        RootRule(
            *("project", "chain", (".opencode/skill", ".opencode/skills")),
            off_by=("OPENCODE_DISABLE_PROJECT_CONFIG",),
            hidden="skip",
        ),
        RootRule("user", "home", (".opencode/skill", ".opencode/skills"), hidden="skip"),
    ),
    env=("XDG_CONFIG_HOME", *_OPENCODE_CLAUDE, "OPENCODE_DISABLE_PROJECT_CONFIG"),
    moved={".config": "$XDG_CONFIG_HOME"},
    settings=(
        SettingRule("patterns", "permission.skill", _OPENCODE_FILES, "jsonc"),
        SettingRule("all", "tools.skill", _OPENCODE_FILES, "jsonc"),
        SettingRule("whole", "permission", _OPENCODE_FILES, "jsonc"),
        SettingRule("mentions", "agent.*.permission.skill", _OPENCODE_FILES, "jsonc"),
        SettingRule("folders", "skills.paths", _OPENCODE_FILES, "jsonc"),
    ),
    no_marker="filesystem",
    max_depth=None,
    below_skill="enter",
    root_file="skill",
    repaired_keys="words",
    closing_fence="line-start-or-end",
    description_from="or-hide",
    types=(FieldType("name", ("text",)), FieldType("description", ("text",))),
    rules=rules_of(
        reject=("yaml-brackets", "name-missing", "name-type", "description-type", "field-type"),
        off=("description-missing",),
    ),
    accepts=("name-address",),
    collision="race",
    arguments="substitute",
    tells=reported_in(invalid="nothing", collision="log"),
    on_change="needs a restart",
)

_GEMINI_FILES = ("home:.gemini/settings.json", "cwd:.gemini/settings.json")

_GEMINI_CLI = HOST._replace(
    name="gemini-cli",
    summary="Gemini CLI: `.gemini/skills` and `.agents/skills` of this folder and of home, one level; the last wins.",
    evidence="run: skills list; read: packages/core at 5411f11",
    version="0.61.0",
    roots=roots_of(
        ("user", "home", ".gemini/skills"),
        ("user", "home", ".agents/skills"),
        ("project", "cwd", ".gemini/skills"),
        ("project", "cwd", ".agents/skills"),
    ),
    env=(
        *("GEMINI_CLI_HOME", "GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_RESTRICTED_MODE"),
        "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
    ),
    moved={"": "$GEMINI_CLI_HOME"},
    trust_file=".gemini/trustedFolders.json",
    trust_file_env="GEMINI_CLI_TRUSTED_FOLDERS_PATH",
    trust_syntax="json-comments",
    trust_levels={"TRUST_FOLDER": "folder", "TRUST_PARENT": "parent", "DO_NOT_TRUST": "refused"},
    trust_env=("GEMINI_CLI_TRUST_WORKSPACE=true",),
    distrust_env=("GEMINI_RESTRICTED_MODE=true", "GEMINI_CLI_TRUST_WORKSPACE=false"),
    trust_switch=SettingRule("all", "security.folderTrust.enabled", _GEMINI_FILES[:1], "json-comments"),
    settings=(
        SettingRule("names", "skills.disabled", _GEMINI_FILES, "json-comments", project_files="trusted"),
        SettingRule("all", "skills.enabled", _GEMINI_FILES, "json-comments", project_files="trusted"),
    ),
    hidden="skip",
    skip_directories=("node_modules", ".git"),
    root_file="skill",
    yaml_fallback="lines",
    closing_fence="line-start",
    name_form="file-name",
    empty_description="kept",
    rules=rules_of(reject=("bom", "fence-blanks", "name-missing")),
    folder_order="reversed",
    collision="last",
    order=("root", "path"),
    tells=reported_in(invalid="nothing", collision="screen"),
    on_change="needs /skills reload",
)

_GOOSE = HOST._replace(
    name="goose",
    summary="goose: `.agents`, `.goose` and `.claude` of this folder and of home, any depth; the first wins.",
    evidence="run: skills list; read: crates/goose at e94f304",
    version="1.52.0",
    roots=(
        RootRule("project", "cwd", (".agents/skills", ".goose/skills", ".claude/skills")),
        RootRule("user", "home", (".agents/skills",)),
        RootRule("user", "home", (".config/goose/skills",)),
        RootRule("user", "home", (".claude/skills",)),
        RootRule("user", "home", (".config/agents/skills",)),
    ),
    env=("XDG_CONFIG_HOME",),
    moved={".config/goose": "$XDG_CONFIG_HOME/goose"},
    max_depth=None,
    skip_directories=(".git", ".hg", ".svn"),
    below_skill="enter",
    root_file="skill",
    opening_fence="anywhere",
    closing_fence="anywhere",
    frontmatter_blanks="strip",
    tags="drop",
    line_ends="any",
    body_text="utf-8",
    name_pattern=r"[^/\\]+",
    types=(
        *(FieldType(field, ("text", "list", "map"), "text") for field in ("name", "description")),
        FieldType("metadata", ("map", "null")),
    ),
    rules=rules_of(
        reject=(
            *(*NO_REPAIR, "body-encoding", "name-missing", "name-pattern"),
            *("description-type", "field-type"),
        ),
        off=("description-missing",),
    ),
    collision_doubt="same-root",
    catalog_form="bullets",
    arguments="substitute",
    tells=reported_in(invalid="log", collision="nothing"),
    on_change="needs a new session",
)

_PI_FILES = ("home:.pi/agent/settings.json", "cwd:.pi/settings.json")

_PI = HOST._replace(
    name="pi",
    summary="pi: `.pi/skills` here, `.agents/skills` upward, and at home, any depth, once you trust the folder.",
    evidence="run: rpc get_commands of 1.5.0 and 0.87.1; read: its package 1.5.0",
    version="1.5.0",
    roots=(
        RootRule("project", "cwd", (".pi/skills",), loose_files="in-root"),
        RootRule("project", "chain", (".agents/skills",), loose_files="in-folders"),
        RootRule("user", "home", (".pi/agent/skills",), loose_files="in-root"),
        RootRule("user", "home", (".agents/skills",), loose_files="in-folders"),
    ),
    env=("PI_CODING_AGENT_DIR",),
    moved={".pi/agent": "$PI_CODING_AGENT_DIR"},
    no_marker="filesystem",
    trust_file=".pi/agent/trust.json",
    trust_levels={"true": "folder", "false": "refused", "none": "none"},
    trust_paths="written",
    settings=(
        SettingRule("mentions", "skills", _PI_FILES, project_files="trusted", mention="[!-](.*)"),
        SettingRule("folders", "skills", _PI_FILES, project_files="trusted"),
    ),
    max_depth=None,
    hidden="skip",
    skip_directories=("node_modules",),
    root_file="alone",
    ignore_files=(".gitignore", ".ignore", ".fdignore"),
    tags="drop",
    opening_fence="hyphens",
    closing_fence="line-start",
    line_ends="any",
    odd_name="folder",
    fields=("name", "description", "disable-model-invocation"),
    hides_on=("disable-model-invocation",),
    truth="boolean",
    rules=rules_of(reject=(*NO_REPAIR, "description-type")),
    accepts=("name-address",),
    order=("root", "path"),
    arguments="append",
    commands="slash-skill",
    tells=reported_in(invalid="screen", collision="screen"),
    on_change="needs /reload",
)

_OH_MY_PI = HOST._replace(
    name="oh-my-pi",
    summary="oh-my-pi: `.omp`, `.claude`, `.codex`, `.agents` and others upward and at home, one level; first wins.",
    evidence="run: Settings and loadSkills; read: its package 18.2.3",
    version="18.2.3",
    roots=(
        RootRule("project", "chain", (".omp/skills",)),
        RootRule("user", "home", (".omp/agent/skills",)),
        RootRule(
            *("user", "home", (".claude/skills",)),
            description="optional",
            host_switch="skills.enableClaudeUser",
            on_if_set=("CLAUDE_CONFIG_DIR",),
        ),
        RootRule("project", "chain", (".claude/skills",), description="optional"),
        RootRule("project", "chain", (".agent/skills", ".agents/skills"), description="optional"),
        RootRule("user", "home", (".agent/skills", ".agents/skills"), description="optional"),
        RootRule("user", "home", (".codex/skills",), description="optional", host_switch="skills.enableCodexUser"),
        RootRule("project", "cwd", (".codex/skills",), description="optional"),
        RootRule("project", "cwd", (".opencode/skills",), description="optional"),
        RootRule("project", "cwd", (".github/skills",)),
    ),
    env=("CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR"),
    moved={".claude": "$CLAUDE_CONFIG_DIR", ".omp/agent": "$PI_CODING_AGENT_DIR"},
    settings=(
        SettingRule(
            *("any", "skills", ("home:.omp/agent/config.yml", "home:.omp/agent/config.yaml", "cwd:.omp/config.yml")),
            syntax="yaml",
        ),
        SettingRule("any", "skills", ("cwd:.omp/settings.json",)),
    ),
    no_marker="home",
    hidden="skip",
    yaml_fallback="lines-on-error",
    tags="drop",
    opening_fence="hyphens",
    closing_fence="line-start",
    line_ends="any",
    odd_name="folder",
    fields=("name", "description", "disable-model-invocation", "hide"),
    hides_on=("disable-model-invocation", "hide"),
    truth="boolean",
    empty_file="no-bytes",
    empty_description="of-other-types",
    types=(FieldType("name", ("text",), "ignore"),),
    rules=rules_of(off=("frontmatter-missing", "frontmatter-unclosed")),
    accepts=("name-address",),
    commands="slash-skill",
    on_change="needs a restart",
)

_CODELIA = HOST._replace(
    name="codelia",
    summary="Codelia: `.agents/skills` from the repository to here and at home, any depth, no link, all copies kept.",
    evidence="run: SkillsResolver of source 48e27ff",
    as_of="2026-11-15",
    version="48e27ff",
    roots=(RootRule("project", "chain", (".agents/skills",)), RootRule("user", "home", (".agents/skills",))),
    chain_order="farthest-first",
    markers=(".codelia", ".git", ".jj"),
    markers_env="CODELIA_AGENTS_MARKERS",
    boundary_env="CODELIA_AGENTS_ROOT",
    home_in_chain="project",
    scope_labels={"project": "repo"},
    env=("CODELIA_AGENTS_ROOT", "CODELIA_AGENTS_MARKERS"),
    max_depth=None,
    below_skill="enter",
    root_file="skill",
    user_links="never",
    other_links="never",
    linked_root="follow",
    linked_file="skip",
    yaml_mode="lines",
    rules=rules_of(
        reject=(
            "bom",
            "fence-blanks",
            "name-missing",
            "name-length",
            "name-pattern",
            "name-directory",
            "description-length",
        )
    ),
    collision="keep-all",
    order=("name", "scope", "path"),
    catalog_form="skills-context",
    catalog_budget=("entries", "bytes"),
    budget_frame="free",
    mentions="dollar",
    tells=reported_in(invalid="screen", collision="screen", budget="nothing"),
    on_change="needs a reload of its skills",
)

_OPENSKILLS = HOST._replace(
    name="openskills",
    summary="openskills: `.agent/skills` and `.claude/skills` of this folder and of home, written into AGENTS.md.",
    evidence="run: list; read: src/utils at 57d933a",
    version="1.5.0",
    roots=roots_of(
        ("project", "cwd", ".agent/skills"),
        ("user", "home", ".agent/skills"),
        ("project", "cwd", ".claude/skills"),
        ("user", "home", ".claude/skills"),
    ),
    yaml_mode="first-lines",
    closing_fence="end",
    line_ends="any",
    name_source="directory",
    rules=rules_of(off=("frontmatter-missing", "frontmatter-unclosed", "description-missing")),
    order=("root", "name"),
    on_change="needs openskills sync",
)

_COPILOT_CLI = HOST._replace(
    name="copilot-cli",
    summary="Copilot CLI: `.github`, `.agents` and `.claude` upward, `~/.copilot` and `~/.agents`; strict about types.",
    evidence="run: skill list --json, and the prompt of -p; docs.github.com",
    version="1.0.102",
    roots=(
        RootRule("project", "chain", (".github/skills",), home="project"),
        RootRule("project", "chain", (".agents/skills",), home="project"),
        RootRule("project", "chain", (".claude/skills",), home="skip"),
        RootRule("user", "home", (".copilot/skills",)),
        RootRule("user", "home", (".agents/skills",), off_if_set=("COPILOT_HOME",)),
    ),
    env=("COPILOT_HOME",),
    moved={".copilot": "$COPILOT_HOME"},
    settings=(SettingRule("exact-names", "disabledSkills", ("home:.copilot/settings.json",)),),
    no_marker="home",
    max_depth=None,
    hidden="skip",
    root_file="alone",
    name_form="hyphens",
    name_pattern=r"[A-Za-z0-9][A-Za-z0-9 ._:-]*",
    tags="drop",
    description_from="or-text",
    empty_description="kept",
    types=(
        *(FieldType(field, ("text",)) for field in ("name", "description", "argument-hint")),
        FieldType("allowed-tools", ("text", "list", "null")),
        *(FieldType(field, ("boolean",)) for field in ("disable-model-invocation", "user-invocable")),
    ),
    fields=(
        *("name", "description", "license", "allowed-tools", "argument-hint", "disable-model-invocation"),
        "user-invocable",
    ),
    hides_on=("disable-model-invocation",),
    truth="boolean",
    keeps_from_users=("user-invocable",),
    rules=rules_of(
        reject=(*NO_REPAIR, "name-length", "name-pattern", "description-length", "field-type"),
        off=("description-missing",),
    ),
    order=("root", "name", "path"),
    catalog_form="skill-elements",
    catalog_budget=("chars",),
    budget_chars=15_000,
    overflow="drop-descriptions",
    tells=reported_in(invalid="screen", collision="nothing", budget="nothing"),
    unknown=("fields",),
    on_change="needs /skills reload",
)

_VSCODE_FILES = ("home:.config/Code/User/settings.json", "cwd:.vscode/settings.json")

_VSCODE = NOT_RUN._replace(
    name="vscode",
    summary="VS Code with Copilot: `.github`, `.agents` and `.claude` of the workspace folder and of home, one level.",
    evidence="read: promptSyntax of microsoft/vscode at 00eacc9; agent-skills page of vscode-docs",
    as_of="2026-05-28",
    grade="S",
    roots=(
        RootRule("project", "cwd", (".github/skills", ".agents/skills", ".claude/skills")),
        RootRule("user", "home", (".copilot/skills", ".agents/skills", ".claude/skills")),
    ),
    settings=(
        SettingRule("all", "chat.useAgentSkills", _VSCODE_FILES, "jsonc"),
        SettingRule("folders", "chat.agentSkillsLocations", _VSCODE_FILES, "jsonc"),
    ),
    description_shown=1_024,
    fields=(
        *("name", "description", "argument-hint", "user-invocable", "disable-model-invocation", "context"),
        "allowed-tools",
    ),
    hides_on=("disable-model-invocation",),
    tells=reported_in(invalid="log", collision="log"),
    on_change="picks it up automatically",
)

_CURSOR = DOCUMENTED._replace(
    name="cursor",
    summary="Cursor: `.agents`, `.cursor`, `.claude` and `.codex` of the repository and of home, any depth.",
    evidence="cursor.com/docs/skills and its changelog",
    roots=(
        RootRule("project", "chain", (".agents/skills", ".cursor/skills", ".claude/skills", ".codex/skills")),
        RootRule("user", "home", (".agents/skills", ".cursor/skills", ".claude/skills", ".codex/skills")),
    ),
    nested="on-use",
    max_depth=None,
    hidden="skip",
    fields=(
        *("name", "description", "paths", "globs", "disable-model-invocation", "user-invocable", "icon", "color"),
        *("metadata", "license", "compatibility"),
    ),
    hides_on=("disable-model-invocation",),
    collision_doubt="always",
    unknown=(*DOCUMENTED.unknown, "above-cwd"),
    on_change="needs a restart",
)

_KIRO = DOCUMENTED._replace(
    name="kiro",
    summary="Kiro: `.kiro/skills` of the workspace, which wins, and of home.",
    evidence="kiro.dev/docs/skills",
    roots=roots_of(("project", "cwd", ".kiro/skills"), ("user", "home", ".kiro/skills")),
    unknown=(*DOCUMENTED.unknown, "max_depth", "hidden", "hides_on"),
)

_AMP = HOST._replace(
    name="amp",
    summary="Amp: `.agents` and `.claude` upward, and at home, five levels; personal wins; strict about names.",
    evidence="run: skill list",
    version="0.0.1790142911",
    roots=(
        RootRule("user", "home", (".config/agents/skills", ".agents/skills", ".config/amp/skills")),
        RootRule("project", "chain", (".agents/skills",)),
        RootRule("project", "chain", (".claude/skills",)),
        RootRule("user", "home", (".claude/skills",)),
    ),
    markers=(),
    no_marker="filesystem",
    max_depth=5,
    skip_directories=("node_modules",),
    below_skill="enter",
    root_file="skill",
    empty_description="of-other-types",
    types=(FieldType("description", ("text", "list", "null"), "no-list"),),
    rules=rules_of(reject=(*NO_REPAIR, "name-missing", "name-length", "name-pattern", "field-type")),
    collision_doubt="same-root",
    tells=reported_in(invalid="screen", collision="nothing"),
    unknown=("hides_on", "file-name", "frontmatter-type"),
)

_KILO = HOST._replace(
    name="kilo",
    summary="Kilo: `.agents`, `.claude`, `.kilo` and `.kilocode` up to the repository and at home, any depth.",
    evidence="run: debug skill",
    version="7.7.7",
    roots=(
        RootRule("user", "home", (".claude/skills", ".agents/skills")),
        RootRule("project", "chain", (".claude/skills", ".agents/skills")),
        RootRule("user", "home", (".config/kilo/skills",), hidden="skip"),
        RootRule("project", "chain", (".kilocode/skills", ".kilo/skills"), hidden="skip"),
        RootRule("user", "home", (".kilocode/skills", ".kilo/skills"), hidden="skip"),
    ),
    moved={".config": "$XDG_CONFIG_HOME"},
    env=("XDG_CONFIG_HOME",),
    max_depth=None,
    below_skill="enter",
    root_file="skill",
    repaired_keys="words",
    description_from="or-hide",
    types=(FieldType("name", ("text",)), FieldType("description", ("text",))),
    rules=rules_of(
        reject=("yaml-brackets", "name-missing", "name-type", "description-type", "field-type"),
        off=("description-missing",),
    ),
    collision="last",
    collision_doubt="same-root",
    tells=reported_in(invalid="nothing", collision="log"),
    unknown=("hides_on", "yaml-tab", "frontmatter-unclosed", "frontmatter-type"),
)

_GROK = HOST._replace(
    name="grok",
    summary="Grok Build: `.grok`, `.agents`, `.claude` and `.cursor` upward and at home, six levels, once trusted.",
    evidence="run: inspect --json",
    version="1.0.41",
    roots=(
        RootRule("project", "chain", (".grok/skills", ".agents/skills", ".claude/skills", ".cursor/skills")),
        RootRule("user", "home", (".grok/skills", ".agents/skills", ".claude/skills", ".cursor/skills")),
    ),
    trust_file=".grok/trusted_folders.toml",
    trust_syntax="toml",
    trust_key="folders.*.trusted",
    trust_levels={"true": "folder", "false": "refused", "none": "none"},
    trust_at="project",
    home_repository="ignored",
    max_depth=6,
    below_skill="enter",
    repaired_marks="[{@`%&*|>",
    duplicate_keys="last",
    frontmatter_blanks="strip",
    name_form="slug",
    long_name="folder",
    description_from="or-text",
    description_shown=1_024,
    rules=rules_of(
        reject=("name-length",),
        off=("description-missing", "frontmatter-missing", "frontmatter-unclosed", "frontmatter-type", "yaml"),
    ),
    collision="first-and-folders",
    tells=reported_in(invalid="nothing", collision="nothing"),
    # It lists such files; the description that it makes from their text was not settled.
    unknown=("hides_on", "bom", "encoding", "frontmatter-missing", "frontmatter-unclosed"),
)

_QODER = HOST._replace(
    name="qoder",
    summary="Qoder CLI: `.qoder/skills` and `.agents/skills` of this folder and of home; the folder is the name.",
    evidence="run: skills list",
    version="1.1.52",
    roots=roots_of(
        ("user", "home", ".qoder/skills"),
        ("user", "home", ".agents/skills"),
        ("project", "cwd", ".qoder/skills"),
        ("project", "cwd", ".agents/skills"),
    ),
    max_depth=4,
    skip_directories=("node_modules",),
    repaired_marks="[{@`%&*|>",
    duplicate_keys="last",
    name_source="directory",
    description_from="or-body",
    types=(FieldType("description", ("text",), "ignore"),),
    rules=rules_of(
        off=("frontmatter-missing", "frontmatter-unclosed", "frontmatter-type", "yaml", "description-missing")
    ),
    empty_file="blanks",
    collision_doubt="same-root",
    tells=reported_in(invalid="unknown", collision="screen"),
    # It lists a file with a byte order mark or a blank after the fence, without its description.
    unknown=("hides_on", "bom", "fence-blanks", "encoding"),
)

_QWEN_CODE = HOST._replace(
    name="qwen-code",
    summary="Qwen Code: `.qwen/skills` and `.agents/skills` of this folder and of home, one level; the project wins.",
    evidence="run: the prompt that it sends",
    version="0.24.4",
    roots=roots_of(
        ("project", "cwd", ".qwen/skills"),
        ("project", "cwd", ".agents/skills"),
        ("user", "home", ".qwen/skills"),
        ("user", "home", ".agents/skills"),
    ),
    yaml_fallback="lines-on-error",
    line_ends="any",
    name_pattern=r"[^\s/]+",
    fields=("name", "description", "disable-model-invocation", "paths"),
    hides_on=("disable-model-invocation",),
    truth="boolean-or-text",
    waits_for=("paths",),
    rules=rules_of(reject=("fence-blanks", "name-missing", "name-pattern", "description-type")),
    collision_doubt="same-root",
    unknown=("other-fields", "description-type"),
)

_KIMI_CODE = HOST._replace(
    name="kimi-code",
    summary="Kimi Code: `.kimi-code/skills` and `.agents/skills` of the repository and of home; the project wins.",
    evidence="run: the prompt that it sends",
    version="2.1.0",
    roots=(
        RootRule("project", "repository", (".kimi-code/skills", ".agents/skills")),
        RootRule("user", "home", (".kimi-code/skills", ".agents/skills")),
    ),
    max_depth=None,
    hidden="skip",
    skip_directories=("node_modules",),
    frontmatter_blanks="strip",
    fields=("name", "description", "disable-model-invocation"),
    hides_on=("disable-model-invocation",),
    truth="boolean",
    rules=rules_of(reject=(*NO_REPAIR, "name-missing", "name-type", "description-type")),
    accepts=("name-address",),
    collision_doubt="same-root",
    description_shown=250,
    # It takes a folder with a dot in a root, and none further down; and Markdown files beside the folders.
    unknown=("other-fields", "hidden", "file-name", "encoding"),
)

_CLINE = HOST._replace(
    name="cline",
    summary="Cline: `.cline`, `.clinerules` and `.agents` of the repository and of home, one level, names alone.",
    evidence="run: the tool that it sends",
    version="3.0.65",
    roots=(
        RootRule("project", "repository", (".cline/skills", ".clinerules/skills", ".agents/skills")),
        RootRule("user", "home", (".cline/skills", ".agents/skills")),
    ),
    root_file="skill",
    empty_file="no-body",
    rules=rules_of(
        reject=(*NO_REPAIR, "name-type", "description-type"),
        off=("description-missing", "frontmatter-missing", "frontmatter-unclosed"),
    ),
    accepts=("name-address",),
    collision_doubt="always",
    unknown=("other-fields", "encoding"),
)


MARKETPLACE_FILES = (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json")
"""The files in which a marketplace lists its plugins (code.claude.com/docs/en/plugin-marketplaces; Codex `plugins`)."""

PLUGIN_FILES = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json")
"""The files in which a plugin describes itself."""

PLUGIN_KEYS = {
    "agents": "agents",
    "apps": "apps",
    "commands": "commands",
    "hooks": "hooks",
    "lspServers": "language servers",
    "mcpServers": "MCP servers",
    "monitors": "monitors",
    "outputStyles": "output styles",
    "themes": "themes",
    "workflows": "workflows",
}
"""The members of such a file that name parts which are no skills, and what they are."""

PLUGIN_PATHS = {
    ".app.json": "apps",
    ".lsp.json": "language servers",
    ".mcp.json": "MCP servers",
    "agents/": "agents",
    "bin/": "programs",
    "commands/": "commands",
    "hooks/": "hooks",
    "hooks.json": "hooks",
    "monitors/": "monitors",
    "output-styles/": "output styles",
    "themes/": "themes",
    "workflows/": "workflows",
}
"""The places of such parts in a plugin that does not name them."""


class _Traces(NamedTuple):
    """The traces of an installed host: names of its programs, and paths below the home folder that it makes."""

    programs: tuple[str, ...] = ()
    home_paths: tuple[str, ...] = ()


DETECTION: dict[str, _Traces] = {
    "claude-code": _Traces(("claude",), (".claude.json", ".claude/settings.json", ".claude/projects")),
    "codex": _Traces(("codex",), (".codex/config.toml", ".codex/auth.json", ".codex/sessions")),
    "opencode": _Traces(
        ("opencode",),
        (
            *(".config/opencode/opencode.json", ".config/opencode/opencode.jsonc", ".config/opencode/config.json"),
            ".local/share/opencode",
        ),
    ),
    "gemini-cli": _Traces(
        ("gemini",), (".gemini/settings.json", ".gemini/oauth_creds.json", ".gemini/trustedFolders.json")
    ),
    "goose": _Traces((), (".config/goose/config.yaml", ".local/share/goose")),
    "pi": _Traces((), (".pi/agent/settings.json", ".pi/agent/auth.json", ".pi/agent/trust.json", ".pi/agent/sessions")),
    "oh-my-pi": _Traces(("omp",), (".omp/agent/config.yml", ".omp/agent/config.yaml", ".omp/agent/sessions")),
    "codelia": _Traces(("codelia",), (".codelia",)),
    "vscode": _Traces(("code", "code-insiders"), (".config/Code/User", "Library/Application Support/Code/User")),
    "copilot-cli": _Traces(
        (), (".copilot/config.json", ".copilot/settings.json", ".copilot/session-state", ".copilot/logs")
    ),
    "cursor": _Traces(
        ("cursor", "cursor-agent"), (".cursor/argv.json", ".cursor/cli-config.json", ".cursor/extensions")
    ),
    "kiro": _Traces(("kiro", "kiro-cli"), (".kiro/argv.json", ".kiro/extensions", ".kiro/settings")),
    "openskills": _Traces(("openskills",)),
    "amp": _Traces((), (".config/amp/settings.json", ".local/share/amp")),
    "kilo": _Traces(("kilo", "kilocode"), (".config/kilo/kilo.json", ".local/share/kilo")),
    "grok": _Traces((), (".grok/user-settings.json", ".grok/trusted_folders.toml", ".grok/sessions")),
    "qoder": _Traces(("qodercli", "qoder"), (".qoder/settings.json", ".qoder.json")),
    "qwen-code": _Traces(("qwen",), (".qwen/settings.json", ".qwen/oauth_creds.json")),
    "kimi-code": _Traces(("kimi",), (".kimi-code/config.toml", ".kimi-code/sessions")),
    "cline": _Traces(("cline",), (".cline/data",)),
}
"""The traces of each installed host, by its name.

Only what no other program makes: several hosts read skills in `~/.claude`, `~/.codex` or `~/.agents`, so a folder that
may hold skills alone is no trace of any of them. Programs named `goose`, `copilot`, `pi`, `amp` or `grok` also belong
to other products.
"""


HOSTS: dict[str, Profile] = {
    profile.name: profile._replace(host=profile.name)
    for profile in (
        _CLAUDE_CODE,
        _CODEX,
        _OPENCODE,
        _GEMINI_CLI,
        _GOOSE,
        _PI,
        _OH_MY_PI,
        _CODELIA,
        _VSCODE,
        _COPILOT_CLI,
        _CURSOR,
        _KIRO,
        _OPENSKILLS,
        _AMP,
        _KILO,
        _GROK,
        _QODER,
        _QWEN_CODE,
        _KIMI_CODE,
        _CLINE,
    )
}
HOSTS |= {name: HOSTS[name]._replace(**traces._asdict()) for name, traces in DETECTION.items() if name in HOSTS}


def find_host(name: str) -> Profile:
    """Return the host of that name; raise a ConfigurationError with a suggestion if there is none."""
    if name in HOSTS:
        return HOSTS[name]
    hint = did_you_mean(name, HOSTS) or f" (known: {', '.join(HOSTS)})"
    raise ConfigurationError(f"unknown host {name!r}{hint}")
