"""Describe the seven systems as rows; only this module and `config.hosts` name a system or a host."""

from collections.abc import Mapping
from typing import Literal

from skillshelf.config.profile import Profile, RootRule, severities
from skillshelf.config.rules import RULES
from skillshelf.core.text import did_you_mean
from skillshelf.core.values import Severity
from skillshelf.errors import ConfigurationError

__all__ = ["DEFAULT_PROFILE", "HOST_PREFIX", "LOADER_PROFILES", "SYSTEMS", "author_severities", "find_profile"]

DEFAULT_PROFILE = "standard"
HOST_PREFIX = "host:"


_SPECIFICATION: dict[str, Severity] = {rule: row.strict for rule, row in RULES.items() if row.strict}
"""The severities that the Agent Skills specification demands, taken to the letter."""

_CLAUDE_FIELDS = (
    "argument-hint",
    "disable-model-invocation",
    "user-invocable",
    "model",
    "context",
    "version",
)

_STANDARD = Profile(
    name="standard",
    summary="The Agent Skills standard and its client guide, lenient where the guide is.",
    evidence="agentskills.io specification and client guide",
    as_of="2026-08-09",
    roots=(
        RootRule("env", "env", ("AGENT_SKILLS_PATH",)),
        RootRule("project", "chain", (".agents/skills", ".claude/skills")),
        RootRule("custom", "custom"),
        RootRule("user", "home", (".agents/skills",)),
        RootRule("user", "home", (".claude/skills",)),
    ),
    env=("AGENT_SKILLS_PATH",),
    collision_key="folded",
    fields=(*Profile._field_defaults["fields"], *_CLAUDE_FIELDS),
    rules=severities({}),
    tools=("skill_search", "skill_load", "skill_read", "skill_run"),
    configured_scorer="counts",
    search_prefix="word",
    search_copies="collapse",
    search_weak="few",
    search_prior="use",
    load_by=("name", "path"),
    arguments="substitute",
    mentions="dollar",
    commands="slash-skill",
    allowed_tools="narrow",
)

_STRICT = _STANDARD._replace(
    name="strict",
    summary="The Agent Skills specification to the letter; nothing is repaired.",
    evidence="agentskills.io specification",
    fields=Profile._field_defaults["fields"],
    rules=severities(
        {**_SPECIFICATION, "metadata-values": "warn", "allowed-tools-list": "reject", "unknown-field": "warn"}
    ),
    configured_scorer="ignored",
    search_prior="none",
)

_CODELIA = Profile(
    name="codelia",
    summary="Codelia: `.agents/skills` from the repository root to here, every copy of a name kept.",
    evidence="seed: Skills Spec (Discovery / Search / Context Loading)",
    as_of="2026-02-08",
    roots=(
        RootRule("project", "chain", (".agents/skills",)),
        RootRule("user", "home", (".agents/skills",)),
    ),
    chain_order="farthest-first",
    markers=(".codelia", ".git", ".jj"),
    markers_env="CODELIA_AGENTS_MARKERS",
    boundary_env="CODELIA_AGENTS_ROOT",
    home_in_chain="project",
    scope_labels={"project": "repo"},
    env=("CODELIA_AGENTS_ROOT", "CODELIA_AGENTS_MARKERS"),
    max_depth=None,
    skip_directories=(),
    below_skill="enter",
    root_file="skill",
    fields=("name", "description", "version", "license", "metadata"),
    rules=severities(
        {
            **_SPECIFICATION,
            "compatibility-type": "off",
            "compatibility-length": "off",
            "allowed-tools-type": "off",
        }
    ),
    collision="keep-all",
    order=("name", "scope", "path"),
    catalog_form="skills-context",
    catalog_budget=("entries", "bytes"),
    tools=("skill_search", "skill_load"),
    ranking="overlap",
    search_terms="plain",
    search_form="elements",
    load_by=("name", "path"),
    load_form="skill-context",
    loaded_text="file",
    listed_files=200,
    listed_bytes=512 * 1024,
    result_bytes=50 * 1024,
    mentions="dollar",
    remembered_as="approval-and-rule",
    rule_names="kebab-case",
    live_sources="refused",
)

_SWIFTAGENT = Profile(
    name="swiftagent",
    summary="SwiftAgent: `.agent/skills` of home and here, then AGENT_SKILLS_PATH; the last of a name stays.",
    evidence="seed: SwiftAgent Skills System Design",
    as_of="2026-01-20",
    roots=(
        RootRule("user", "home", (".agent/skills",)),
        RootRule("project", "cwd", (".agent/skills",)),
        RootRule("env", "env", ("AGENT_SKILLS_PATH",)),
    ),
    env=("AGENT_SKILLS_PATH",),
    max_depth=1,
    hidden="skip",
    rules=severities({**_SPECIFICATION, "allowed-tools-list": "warn"}),
    collision="last",
    catalog_form="with-location",
    catalog_budget=(),
    tools=("activate_skill",),
    search_terms="plain",
    load_form="skill-activated",
    reload="repeat",
    allowed_tools="advise",
)

_MYCODEAGENT = Profile(
    name="mycodeagent",
    summary="Skill MVP: `skills/` in the repository root, names from the frontmatter, the last of a name stays.",
    evidence="seed: Skill MVP Implementation Plan",
    as_of="2026-01-20",
    roots=(RootRule("project", "repository", ("skills",)),),
    env=("SKILLS_PROMPT_CHAR_BUDGET", "SKILLS_REFRESH_ON_CALL"),
    max_depth=None,
    skip_directories=(),
    below_skill="enter",
    root_file="skill",
    fields=("name", "description"),
    rules=severities(
        {
            "name-missing": "reject",
            "name-type": "reject",
            "name-length": "off",
            "name-pattern": "reject",
            "name-directory": "off",
            "description-length": "off",
        }
    ),
    collision="last",
    catalog_form="tool-prompt",
    catalog_budget=("chars",),
    budget_env="SKILLS_PROMPT_CHAR_BUDGET",
    tools=("Skill",),
    search_terms="plain",
    load_form="envelope",
    reload="repeat",
    refresh="on-call",
    refresh_env="SKILLS_REFRESH_ON_CALL",
    arguments="substitute",
    mentions="dollar",
)

_RIP = _STANDARD._replace(
    name="rip",
    summary="Contract: Skills: the roots of the standard, the rules of the specification, one winner by precedence.",
    evidence="seed: Contract: Skills (Phase 2); roots and order of `standard`, severities of `strict` where it is open",
    as_of="2026-01-19",
    max_depth=None,
    below_skill="enter",
    root_file="skill",
    rules={**_STRICT.rules, "unknown-field": "off"},
    tools=("skill_load", "skill_read", "skill_run"),
    configured_scorer="ignored",
    search_terms="plain",
    search_prefix="flat",
    search_copies="keep",
    search_weak="keep",
    search_prior="none",
    load_by=("name",),
    loaded_text="file",
    arguments="append",
    mentions="none",
)

_OMP = Profile(
    name="omp",
    summary="oh-my-pi: providers by priority, one level deep, the first of a name stays; then custom directories.",
    evidence="seed: oh-my-pi Skills",
    as_of="2026-02-10",
    roots=(
        RootRule("project", "cwd", (".omp/skills",), "native", 100, "enable_pi_project"),
        RootRule("user", "home", (".omp/agent/skills",), "native", 100, "enable_pi_user"),
        RootRule("user", "home", (".claude/skills",), "claude", 80, "enable_claude_user", "optional"),
        RootRule("project", "cwd", (".claude/skills",), "claude", 80, "enable_claude_project", "optional"),
        RootRule(
            "user",
            "plugin-list",
            ("skills",),
            "claude-plugins",
            70,
            "any",
            "optional",
            plugin_list=".claude/plugins/installed_plugins.json",
        ),
        RootRule("project", "chain", (".agents/skills", ".agent/skills"), "agents", 70, "any", "optional"),
        RootRule("user", "home", (".agents/skills", ".agent/skills"), "agents", 70, "any", "optional"),
        RootRule("user", "home", (".codex/skills",), "codex", 70, "enable_codex_user", "optional"),
        RootRule("project", "cwd", (".codex/skills",), "codex", 70, None, "optional"),
        RootRule("custom", "custom", (), "custom"),
    ),
    home_in_chain="skip",
    max_depth=1,
    hidden="skip",
    fields=("name", "description", "globs", "alwaysApply"),
    rules=severities(
        {
            "frontmatter-missing": "info",
            "name-missing": "off",
            "name-length": "off",
            "name-pattern": "off",
            "name-directory": "off",
            "description-length": "off",
            "compatibility-type": "off",
            "compatibility-length": "off",
            "metadata-type": "off",
            "allowed-tools-type": "off",
            "globs-type": "warn",
            "always-apply-type": "warn",
        }
    ),
    filter_order="after-collisions",
    catalog_form="skills-list",
    catalog_budget=(),
    catalog_condition="read-tool",
    context_files="agents-md",
    tools=("read",),
    search_terms="plain",
    load_form="raw",
    loaded_text="file",
    reload="repeat",
    content_types="markdown-or-plain",
    arguments="user-line",
    commands="slash-skill",
)

SYSTEMS: dict[str, Profile] = {
    profile.name: profile for profile in (_STANDARD, _STRICT, _CODELIA, _SWIFTAGENT, _MYCODEAGENT, _RIP, _OMP)
}

LOADER_PROFILES: Mapping[Literal["registry", "project", "providers"], Profile] = {
    "registry": _SWIFTAGENT,
    "project": _MYCODEAGENT,
    "providers": _OMP,
}
"""The profiles behind the loaders in `adapters.loaders`, by the purpose of the loader."""


_FOR_AUTHORS = severities({**_SPECIFICATION, "metadata-values": "warn", "allowed-tools-list": "warn"})


def author_severities(profile: Profile) -> Mapping[str, Severity]:
    """Return the severity of each rule for the authors of skills.

    The default profile is lenient towards the users of skills; authors are held to the specification.
    """
    return _FOR_AUTHORS if profile.name == DEFAULT_PROFILE else profile.rules


def find_profile(name: str, own: Mapping[str, Profile] | None = None) -> Profile:
    """Return a profile by name: a custom one first, then the systems, then the hosts; `host:NAME` is a host."""
    if own and name in own:
        return own[name]
    if name in SYSTEMS:
        return SYSTEMS[name]
    from skillshelf.config.hosts import HOSTS, find_host

    if name.startswith(HOST_PREFIX) or name in HOSTS:
        return find_host(name.removeprefix(HOST_PREFIX))
    known = [*SYSTEMS, *(own or ()), *(HOST_PREFIX + host for host in HOSTS)]
    # A host may be written without the prefix.
    hint = did_you_mean(name, [*known, *HOSTS]) or f" (known: {', '.join(known)})"
    raise ConfigurationError(f"unknown profile {name!r}{hint}")
