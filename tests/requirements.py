"""Every requirement of the five systems: what it asks for, and where this project stands with it.

Run as a script this prints the table: `python tests/requirements.py --state deferred --system C`.
`test_requirement_trace.py` holds the table and the `@pytest.mark.req("C-48")` marks of the tests together.

To move a requirement, change the function at the start of its line: `tested`, `divergent`, `deferred`
or `not_testable`. Ids are never renumbered.
"""
# ruff: noqa: E501 - one requirement a line keeps the table searchable and its diffs readable.

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["REQUIREMENTS", "SYSTEMS", "Requirement", "State", "Tag"]

State = Literal["tested", "divergent", "deferred", "not testable"]
"""Proved by a test; deliberately done otherwise; brought by later work; nothing there to observe."""

Tag = Literal["", "FUTURE", "NON-GOAL", "INFO", "AMBIGUOUS"]
"""The status of the requirement in its own document: a plan, out of scope, a remark, contradictory."""

SYSTEMS = {"C": "Codelia", "S": "SwiftAgent", "M": "Skill MVP", "K": "Contract: Skills", "O": "oh-my-pi"}
"""The first letter of an id, and the system whose document asks for it."""

TIDY = "Fast and tidy: the cache, the benchmarks beside the peers, and the author's tools"
POLICY = "Policy, journal, replay, and scripts in a sandbox"
SERVERS = "Servers: skills over MCP by the official extension, and the JSON-RPC protocol"
PEOPLE = "For people and agents: the picker, AgentSession, more adapters, a small chat"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One statement of one system's document."""

    id: str
    behaviour: str
    tag: Tag
    state: State
    reason: str

    @property
    def system(self) -> str:
        """The key of its system in `SYSTEMS`."""
        return self.id.partition("-")[0]


def tested(key: str, behaviour: str, *, tag: Tag = "", reason: str = "") -> Requirement:  # noqa: PT028 - a row, not a test.
    """A test names it; a reason is only needed to say which reading of an unclear text is meant."""
    return Requirement(key, behaviour, tag, "tested", reason)


def divergent(key: str, behaviour: str, reason: str, *, tag: Tag = "") -> Requirement:
    """Done otherwise on purpose; a test may name it to show what happens instead."""
    return Requirement(key, behaviour, tag, "divergent", reason)


def deferred(key: str, behaviour: str, reason: str, *, tag: Tag = "") -> Requirement:
    """Later work brings it, and its title is the reason."""
    return Requirement(key, behaviour, tag, "deferred", reason)


def not_testable(key: str, behaviour: str, reason: str, *, tag: Tag = "") -> Requirement:
    """Nothing about it can be observed in a program."""
    return Requirement(key, behaviour, tag, "not testable", reason)


# The formatter would spread one requirement over five lines.
# fmt: off

CODELIA = (
    # Status and layout
    not_testable("C-01", 'Sections 4 to 7, 9 and 10 are in force although their headings say "Planned"',
                 "Says how its document is to be read and describes nothing a program does.", tag="INFO"),
    tested("C-02", "Scope, metadata, load error, catalog and search result each have a schema, derived from the same definition as the type"),
    not_testable("C-03", "Module map: shared types, protocol types, config, resolver, two tools, injection, two RPC handlers, picker, permissions",
                 "Maps the packages of another code base; what they do is required by the entries below.", tag="INFO"),
    # Goals and non-goals
    tested("C-04", "Progressive disclosure: listing is light, a body is loaded only when needed"),
    tested("C-05", "Skills and AGENTS context coexist in one prompt without disturbing each other"),
    tested("C-06", "The prompt stays bounded with very many skills"),
    tested("C-07", "An explicit `$skill-name` or path request resolves to the same skill every time"),
    tested("C-08", "Skills are not searched for or fetched from a remote place", tag="NON-GOAL"),
    tested("C-09", "A skill that is only in `.claude/skills` is not listed", tag="NON-GOAL"),
    tested("C-10", "There is no system or admin scope", tag="NON-GOAL"),
    not_testable("C-11", "The look and the key bindings of the picker are not fixed", "a freedom: any look and any keys satisfy it", tag="NON-GOAL"),
    # Baseline
    tested("C-12", "One skill is one directory holding a file named exactly `SKILL.md`"),
    tested("C-13", "`SKILL.md` has YAML frontmatter in which `name` and `description` are mandatory"),
    tested("C-14", "The agent first gets a catalog of name, description and path; bodies come on demand"),
    tested("C-15", "Relative paths inside a skill resolve against the skill directory"),
    not_testable("C-16", "The standards followed are the agentskills.io specification and the OpenAI Codex skills guide",
                 "Attribution to two published texts; the rules taken from them are required one by one below.", tag="INFO"),
    # Adopted policy
    tested("C-17", "Explicit mentions are strict: duplicate names are ambiguous, a path beats a name"),
    tested("C-18", "Injection is structured markup with an element per skill, not prose"),
    tested("C-19", "Disabling a skill does not change what search computes"),
    tested("C-20", "Loading returns the base directory and information on bundled files"),
    tested("C-21", "The only placement is `.agents/skills`"),
    tested("C-22", "The initial context holds the catalog only, never a body"),
    tested("C-23", "A body enters the context only through the tool `skill_load`"),
    tested("C-24", "The tool `skill_search` exists for finding candidates"),
    # Types
    tested("C-25", "Scope is exactly `repo` or `user`"),
    tested("C-26", "Metadata has `id`, `name`, `description`, `path`, `dir`, `scope`, `mtimeMs`", tag="AMBIGUOUS",
           reason="Spelled `mtime_ms` everywhere, as in the metadata of `skill_load`."),
    tested("C-27", "`id` is a hash of the canonical path, stable within the session"),
    tested("C-28", "`path` is the absolute path of `SKILL.md`, `dir` the skill's base directory"),
    tested("C-29", "`mtimeMs` is a number of milliseconds"),
    tested("C-30", "A load error has the strings `path` and `message`"),
    tested("C-31", "A catalog has the lists `skills` and `errors` and the boolean `truncated`"),
    tested("C-32", "A search result has `skill` (metadata), `score` (number) and `reason`"),
    tested("C-33", "`reason` is one of `exact_name`, `exact_path`, `prefix`, `token_overlap`; nothing else validates"),
    # Discovery
    tested("C-34", "Discovery starts at the working directory and looks in the listed roots only"),
    tested("C-35", "Repo scope is `<dir>/.agents/skills/**/SKILL.md` for every directory from boundary to cwd, both included"),
    tested("C-36", "User scope is `~/.agents/skills/**/SKILL.md`, recursively"),
    tested("C-37", "`CODELIA_AGENTS_ROOT`, when set, is the repo boundary"),
    tested("C-38", "Otherwise markers give the boundary, by default `.codelia`, `.git`, `.jj`"),
    tested("C-39", "A `.agents/skills` above the boundary is not searched"),
    # Validation
    tested("C-40", "`name` has 1 to 64 characters"),
    tested("C-41", "`name` matches `^[a-z0-9]+(-[a-z0-9]+)*$`"),
    tested("C-42", "`description` has 1 to 1024 characters"),
    tested("C-43", "`version`, `license` and `metadata` (a map of strings) are accepted when present and not missed when absent"),
    tested("C-44", "`name` equals the name of the directory that contains `SKILL.md`"),
    tested("C-45", "A doubled, leading or trailing hyphen is rejected"),
    tested("C-46", "A skill that fails validation is not in `catalog.skills`"),
    tested("C-47", "A skill that fails validation is in `catalog.errors` with `path` and `message`"),
    # Duplicates
    tested("C-48", "One file reached twice gives one entry: the key is the canonical absolute path"),
    tested("C-49", "Different files with one name are all kept; nothing overwrites silently"),
    tested("C-50", "Choosing by a name that several skills share is ambiguous"),
    # Search
    tested("C-51", "Ranking classes, best first: `exact_path`, `exact_name`, `prefix`, `token_overlap`"),
    tested("C-52", "`prefix` means that the query is a prefix of the name"),
    tested("C-53", "`token_overlap` counts tokens shared with name and description", reason="In the profiles whose `ranking` is `overlap`; the others weigh the tokens, and those of bodies too."),
    tested("C-54", "The first tie-break is the score, descending"),
    tested("C-55", "The second tie-break is the scope, repo before user"),
    tested("C-56", "The third tie-break is the path, ascending"),
    # Initial context
    tested("C-57", "The catalog is added to the system prompt at session start"),
    tested("C-58", "The order is base system text, initial AGENTS context, initial skills context"),
    tested("C-59", "An entry carries only `name`, `description`, `path`, `scope`"),
    tested("C-60", "There are at most `skills.initial.maxEntries` entries"),
    tested("C-61", "There are at most `skills.initial.maxBytes` bytes"),
    tested("C-62", "Over either limit the catalog says that `truncated` is true and points to `skill_search`"),
    tested("C-63", '`<skills_context>` holds `<skills_usage>` with `<rule>`s, then `<skills_catalog scope="initial" truncated="...">`'),
    tested("C-64", "A `<skill>` has `<name>`, `<description>`, `<path>`, `<scope>` in this order"),
    tested("C-65", 'An uncut catalog reads `truncated="false"`'),
    # On-demand loading
    tested("C-66", "The body arrives as the result of `skill_load` and stays in history as an ordinary tool message"),
    tested("C-67", "The result of `skill_load` goes through the tool output cache"),
    tested("C-68", "Later compaction may keep a reference to a loaded body"),
    tested("C-69", 'The loaded text is enclosed in `<skill_context name="..." path="...">`'),
    tested("C-70", "First inside comes the full text of `SKILL.md`"),
    tested("C-71", "Then comes the line `Base directory: file://<dir>/` with its trailing slash"),
    tested("C-72", "Then comes the line `Relative paths in this skill are resolved from this directory.`"),
    tested("C-73", "Then comes `<skill_files>` with one `<file>` (absolute path) per bundled file"),
    # Reload suppression
    tested("C-74", "A session remembers `loadedVersions`, from path to mtimeMs"),
    divergent("C-75", "The same path with the same mtime does not send the body again", "so in Python, JSON-RPC and, where the messages still hold the text, in the adapters; MCP and the command line always send it, since neither knows what a model still sees"),
    tested("C-76", "A suppressed reload returns a short reminder with reference information"),
    tested("C-77", "A changed mtime sends the body again"),
    # Tools
    tested("C-78", "`skill_search` takes `query` (required), `limit` and `scope` (`repo` or `user`)"),
    tested("C-79", "`skill_search` gives candidates with `name`, `description`, `path`, `scope`, `reason`, `score`"),
    tested("C-80", "`skill_search` gives `count` and `truncated` too"),
    divergent("C-81", "`skill_load` takes an optional `name` and an optional `path`", "it takes an optional `offset` too, so that a text above the size of a result can be read to its end"),
    tested("C-82", "`path` wins over `name` when both are given"),
    tested("C-83", "A unique name resolves"),
    tested("C-84", "An ambiguous name is an error that returns the candidate paths"),
    tested("C-85", "The output text of `skill_load` is the `<skill_context>` block"),
    tested("C-86", "The output metadata of `skill_load` is `skill_id`, `name`, `path`, `dir`, `mtime_ms`"),
    # Permissions and path safety
    tested("C-87", 'Rules of `permissions.allow` and `permissions.deny` with `tool: "skill_load"` may carry `skill_name`'),
    divergent("C-88", "`skill_name` matches exactly and is lowercase kebab-case", "to the letter for an allow rule of `codelia`; a deny rule means every spelling of a name, since case and compatibility forms must not get around it, and may hold any name that the catalog can hold"),
    divergent("C-89", "Rules are evaluated in the order deny, allow, confirm", "to the letter with `trust=\"all\"`; under `ask` and `user` an allow rule does not reach an untrusted skill, which is confirmed: anybody can take a name"),
    divergent("C-90", "A `skill_load` rule without `skill_name` matches every skill", "to the letter with `trust=\"all\"` and for every deny rule but those of an untrusted project, which match that project's skills; under `ask` and `user` an allow rule matches every trusted skill"),
    divergent("C-91", 'Remembering a confirmation stores `{"tool":"skill_load","skill_name":"<name>"}`', "`codelia` stores it besides an approval of path and files; what opens an untrusted skill is the approval, since a rule for a name would open every clone that has it"),
    tested("C-92", "Only paths registered in the catalog can be loaded"),
    tested("C-93", "Neither `..` nor a symlink leads outside the skill directory"),
    tested("C-94", "The file listing has a maximum number of files"),
    tested("C-95", "The file listing has a maximum number of bytes", reason="the bytes of the listed paths, not of the files behind them"),
    # Config
    tested("C-96", "`skills.enabled` is true by default"),
    tested("C-97", "`skills.initial.maxEntries` is 200 by default"),
    tested("C-98", "`skills.initial.maxBytes` is 32768 by default"),
    tested("C-99", "`skills.search.defaultLimit` is 8 by default"),
    tested("C-100", "`skills.search.maxLimit` is 50 by default"),
    # Protocol and state
    tested("C-101", "The method `skills.list` returns the catalog to a UI"),
    tested("C-102", "`skills.list` takes `cwd` (string) and `force_reload` (boolean), both optional"),
    tested("C-103", "`skills.list` returns `skills` and `errors`"),
    tested("C-104", "`context.inspect` with `include_skills` shows the current catalog state"),
    tested("C-105", "The runtime state keeps `skillsCatalogByCwd`"),
    tested("C-106", "The runtime state keeps `loadedSkillVersions`"),
    # Boundaries
    tested("C-107", "The core has no skill transport or discovery, only the tool contract and context management"),
    not_testable("C-108", "The runtime owns discovery, search, load, both tools, permission and sandbox application", "the package layout of another code base"),
    not_testable("C-109", "The protocol owns `skills.list` and `context.inspect`; shared types own the catalog and result types", "the package layout of another code base"),
    tested("C-110", "The runtime never searches or fetches remotely by itself"),
    # Acceptance
    tested("C-111", "`.agents/skills/**/SKILL.md` from root to cwd is enumerated"),
    tested("C-112", "`~/.agents/skills/**/SKILL.md` is enumerated with scope `user`"),
    tested("C-113", "`skill_load` by a name that several skills share gives the ambiguity error"),
    tested("C-114", '`skill_search("release")` returns candidates from name and description'),
    tested("C-115", "`skill_load` returns the body and the base directory"),
    divergent("C-116", "Reloading the same skill does not inject the body twice", "so in Python, JSON-RPC and the adapters; MCP and the command line always send it, since a client session is not a conversation"),
    tested("C-117", "`context.inspect` with `include_skills=true` shows the catalog"),
    tested("C-118", "References to loaded skills still work after compaction"),
    # Phases
    not_testable("C-119", "Phase 1 is local discovery, both tools, initial catalog and `skills.list`", "a list of phases; its parts are C-35, C-36, C-57, C-78, C-81 and C-101"),
    tested("C-120", "Phase 2 has a policy per skill name"),
    tested("C-121", "Phase 2 has a picker with search, scope display and a toggle to enable and disable"),
)

SWIFTAGENT = (
    # Goals and non-goals
    tested("S-01", "`SKILL.md` files that follow the Agent Skills specification are read"),
    tested("S-02", "Progressive disclosure manages the context cost"),
    tested("S-03", "Skills fit the existing agent architecture without a parallel one"),
    tested("S-04", "Skills made for Cursor, Claude Code and VS Code are read"),
    divergent("S-05", "There is no tool for authoring skills", "the design wants `new` and `check --fix` for authors", tag="NON-GOAL"),
    tested("S-06", "A skill's scripts are not run automatically, only through tools", tag="NON-GOAL"),
    tested("S-07", "There is no connection to remote skill repositories", tag="NON-GOAL"),
    # Format
    tested("S-08", "A skill directory contains `SKILL.md` with metadata and instructions"),
    tested("S-09", "`scripts/` is optional"),
    tested("S-10", "`references/` is optional"),
    tested("S-11", "`assets/` is optional"),
    tested("S-12", "`name` is required: 1 to 64 lowercase letters, digits and hyphens"),
    tested("S-13", "`description` is required: 1 to 1024 characters"),
    tested("S-14", "`license` is an optional string"),
    tested("S-15", "`compatibility` is an optional string of at most 500 characters"),
    tested("S-16", "`metadata` is an optional map of string to string"),
    tested("S-17", "`allowed-tools` is optional and space-delimited, as in `Bash(git:*) Read`"),
    tested("S-18", "The rest of the file is Markdown instructions"),
    tested("S-19", "Discovery loads only `name` and `description`"),
    tested("S-20", "Activation loads the whole `SKILL.md`"),
    tested("S-21", "Execution reads `scripts/`, `references/` and `assets/` as needed"),
    # Flow
    not_testable("S-22", "A session owns a skill registry next to the subagent registry and the tool pipeline",
                 "Draws the inside of another code base; registry and session are required by S-52 to S-73 and S-99 to S-114.", tag="INFO"),
    tested("S-23", "`SkillDiscovery.discover()` leads to `SkillLoader.loadMetadata(path)`, then to `SkillRegistry.register(skill)`"),
    tested("S-24", "`generateAvailableSkillsPrompt()` is injected into the system prompt at session creation"),
    tested("S-25", "A tool call leads to `SkillRegistry.activate(name)`, to `SkillLoader.loadFull(path)`, to instructions in the context"),
    # SkillMetadata
    tested("S-26", "Fields: `name`, `description`, `license?`, `compatibility?`, `metadata?`, `allowedTools?`"),
    tested("S-27", "The value is immutable, comparable by value and serialisable both ways"),
    tested("S-28", "`allowedTools` is the frontmatter key `allowed-tools`"),
    tested("S-29", "`name` has 1 to 64 characters"),
    tested("S-30", "`name` matches `^[a-z0-9]+(-[a-z0-9]+)*$`"),
    tested("S-31", "`name` equals the directory name"),
    tested("S-32", "`description` is non-empty and has at most 1024 characters"),
    tested("S-33", "`compatibility`, when present, has 1 to 500 characters"),
    tested("S-34", "`allowedTools` is a space-separated list of tool identifiers"),
    # Skill
    tested("S-35", "`id` equals `metadata.name`"),
    tested("S-36", "`instructions` is absent after discovery"),
    tested("S-37", "`instructions` is present after activation"),
    tested("S-38", "`directoryPath` is absolute"),
    tested("S-39", "`skillFilePath` is `directoryPath` and `SKILL.md`"),
    tested("S-40", "`hasScripts` is true if and only if the scripts directory exists"),
    tested("S-41", "`hasReferences` is true if and only if the references directory exists"),
    tested("S-42", "`hasAssets` is true if and only if the assets directory exists"),
    tested("S-43", "`resourcePath(relative)` returns an absolute path inside the skill directory"),
    # SkillLoader
    tested("S-44", "`loadMetadata(from: directory)` returns a skill with metadata and no instructions"),
    tested("S-45", "`loadFull(from: directory)` returns a skill with instructions"),
    tested("S-46", "`loadMetadata` and `loadFull` raise `SkillError` on failure"),
    tested("S-47", "`parseFrontmatter(content)` returns metadata and body; bad structure raises `invalidFormat`"),
    tested("S-48", "`validate(metadata, directoryName)` raises `validationFailed`"),
    tested("S-49", "Frontmatter is the part enclosed in `---` lines"),
    tested("S-50", "A real YAML library parses the frontmatter"),
    tested("S-51", "`loadMetadata` does not read the body"),
    # SkillRegistry
    tested("S-52", "The registry is safe under concurrent use"),
    tested("S-53", "The registry has an empty constructor"),
    tested("S-54", "`discoverFromStandardPaths` discovers at construction and may raise"),
    tested("S-55", "`register(skill)` registers one skill"),
    tested("S-56", "`register([skills])` registers several skills"),
    tested("S-57", "`unregister(name)` returns the removed skill or nil"),
    tested("S-58", "`get(name)` returns the skill or nil"),
    tested("S-59", "`registeredNames` gives all names"),
    tested("S-60", "`allSkills` gives all skills"),
    tested("S-61", "`contains(name)` is a boolean"),
    tested("S-62", "`count` is the number registered"),
    tested("S-63", "`activate(name)` loads the full instructions and returns the skill"),
    tested("S-64", "`activate` of an unknown name raises `skillNotFound`"),
    tested("S-65", "`activate` passes loading errors on"),
    tested("S-66", "`deactivate(name)` frees the instructions from memory"),
    tested("S-67", "`isActive(name)` is a boolean"),
    tested("S-68", "`activeSkillNames` gives the names of active skills"),
    tested("S-69", "Registering the same name again replaces the skill, against S-89", tag="AMBIGUOUS"),
    tested("S-70", "`generateAvailableSkillsPrompt()` returns the listing for the system prompt"),
    tested("S-71", "`<available_skills>` has a `<skill>` each with `<name>`, `<description>`, `<location>`, two-space indents"),
    tested("S-72", "`<location>` is the absolute path of `SKILL.md`, against a comment that allows only name and description", tag="AMBIGUOUS"),
    tested("S-73", "`generateActiveSkillsPrompt()` returns the full instructions of the active skills"),
    # SkillDiscovery
    tested("S-74", "`standardPaths` is `~/.agent/skills`, then `./.agent/skills`"),
    tested("S-75", "`environmentVariable` is `AGENT_SKILLS_PATH`"),
    tested("S-76", "The value of the environment variable is colon-separated"),
    tested("S-77", "`discoverAll()` returns metadata-only skills from all search paths"),
    tested("S-78", "`discover(in: path)` returns the skills of one directory"),
    tested("S-79", "`searchPaths()` is the standard paths followed by those of the environment"),
    tested("S-80", "`isSkillDirectory(path)` is true if and only if the directory contains `SKILL.md`"),
    tested("S-81", "The search order is user, project, environment"),
    tested("S-82", "The project path is relative to the current directory, and `~` expands to home"),
    # SkillError
    tested("S-83", "The error `skillDirectoryNotFound(path)` exists"),
    tested("S-84", "The error `skillFileNotFound(path)` exists"),
    tested("S-85", "The error `invalidFormat(reason)` exists"),
    tested("S-86", "The error `validationFailed(field, reason)` exists"),
    tested("S-87", "The error `skillNotFound(name)` exists"),
    tested("S-88", "The error `fileReadError(path, underlyingError)` exists"),
    tested("S-89", "The error `skillAlreadyExists(name)` exists"),
    tested("S-90", "The error `yamlParsingError(reason)` exists"),
    tested("S-91", "Every error has a human-readable description"),
    # SkillTool
    tested("S-92", "The tool is named `activate_skill`"),
    tested("S-93", "The description says that it loads a skill's full instructions and points to `<available_skills>`"),
    tested("S-94", "The one argument is the string `skillName`, described as the skill to activate"),
    tested("S-95", "Output: `skillName`, `instructions`, `resourcesAvailable` with `hasScripts`, `hasReferences`, `hasAssets`"),
    tested("S-96", "Missing instructions become an empty string"),
    tested("S-97", "Rendered: `# Skill Activated: <name>`, instructions, `## Available Resources`, `- Scripts: yes|no` and its sisters"),
    tested("S-98", "The tool is constructed with a registry"),
    # Configuration
    tested("S-99", "`skillRegistry` is optional and nil by default"),
    tested("S-100", "`autoDiscoverSkills` is true by default"),
    tested("S-101", "`skillSearchPaths` is empty by default"),
    tested("S-102", "`withSkills(registry: nil, autoDiscover: true, additionalPaths: [])` returns a changed copy"),
    tested("S-103", "`withoutSkills()` returns a copy with registry nil and auto-discovery false"),
    # Session
    tested("S-104", "A registry exists if and only if auto-discovery is on or a registry was given"),
    tested("S-105", "A given registry is used, otherwise a new one"),
    tested("S-106", "With auto-discovery everything from `discoverAll()` is registered"),
    tested("S-107", "Then each of `skillSearchPaths` is discovered and registered, in order"),
    tested("S-108", "`skillSearchPaths` is scanned only when auto-discovery is on"),
    tested("S-109", "A non-empty listing is appended to the instructions after a blank line"),
    tested("S-110", "An empty listing appends nothing"),
    tested("S-111", "`listSkills()` returns all registered skills, and none without registry"),
    tested("S-112", "`activateSkill(name)` activates, and raises `skillNotFound(name)` without registry"),
    tested("S-113", "`deactivateSkill(name)` does nothing without registry"),
    tested("S-114", "`activeSkills()` returns the active names, and none without registry"),
    # Layout, dependency, usage
    not_testable("S-115", "Seven source files are new, and configuration and session are modified",
                 "Names source files of another code base, in another language.", tag="INFO"),
    not_testable("S-116", "Yams from 5.0.0 is a new dependency",
                 "Names a Swift package, which a Python project cannot depend on; that a real YAML library parses is S-50.", tag="INFO"),
    tested("S-117", "With `autoDiscoverSkills: true`, `listSkills()` shows name and description"),
    tested("S-118", "A manual registry with `autoDiscoverSkills: false` gives exactly the registered skills"),
    tested("S-119", "`skillSearchPaths` with several directories adds their skills"),
    # Security
    tested("S-120", "The skill system never executes `scripts/` directly"),
    tested("S-121", "The model runs scripts through a command tool under the existing permission delegate"),
    tested("S-122", "`references/` and `assets/` are read through the read tool under existing permissions"),
    tested("S-123", "`allowed-tools` is advisory information only"),
    tested("S-124", "The permission delegate makes the actual decision"),
    tested("S-125", "Automatic approval from `allowed-tools`", tag="FUTURE", reason="only where `permissions.grant_from_skills` names the skill, and never in a profile that only advises"),
    # Future
    not_testable("S-126", "Several versions of one skill",
                 "Planned for later by its document, which gives no behaviour to check.", tag="FUTURE"),
    divergent("S-127", "Skills fetched from remote repositories", "a skill is a folder on this machine; nothing is ever fetched by itself", tag="FUTURE"),
    not_testable("S-128", "Dependencies between skills",
                 "Planned for later by its document, which gives no behaviour to check.", tag="FUTURE"),
    tested("S-129", "Caching of frequently used skills", tag="FUTURE"),
    tested("S-130", "Usage analytics", tag="FUTURE"),
    # Tests
    tested("S-131", "Unit tests cover what the loader parses"),
    tested("S-132", "Unit tests cover metadata validation"),
    tested("S-133", "Unit tests cover registration, activation and removal in the registry"),
    tested("S-134", "Integration tests cover discovery over directories"),
    tested("S-135", "Integration tests cover skills in a session"),
    tested("S-136", "Integration tests cover running the tool"),
    tested("S-137", "The fixture `valid-skill` has `scripts/example.py` and `references/REFERENCE.md`"),
    tested("S-138", "The fixture `minimal-skill` has only `SKILL.md`"),
    tested("S-139", "The fixture `invalid-name-skill`, whose name differs from its directory, fails"),
    tested("S-140", "The fixture `invalid-format`, with malformed YAML, fails"),
)

MYCODEAGENT = (
    # Goal and scope
    tested("M-01", "A dedicated tool loads skills, and nothing else does"),
    tested("M-02", "Skills live in the project and are loaded on demand"),
    tested("M-03", "The model loads a skill by name and receives its instructions"),
    tested("M-04", "Skills are `skills/**/SKILL.md` under the project root, recursively"),
    tested("M-05", "The format is Markdown with YAML frontmatter"),
    tested("M-06", "`name` and `description` are required"),
    tested("M-07", "The tool's prompt lists the available skills with a brief description"),
    tested("M-08", "The tool loads the file, injects the base directory and applies `$ARGUMENTS`"),
    tested("M-09", "The layout is `skills/<skill-name>/SKILL.md`"),
    # $ARGUMENTS
    tested("M-10", "`$ARGUMENTS` in the body is replaced by the `args` string"),
    tested("M-11", "Without `$ARGUMENTS` in the body a section `ARGUMENTS: <args>` is appended for non-empty `args`"),
    tested("M-12", "Empty `args` change nothing, which is unclear for a body that contains `$ARGUMENTS`", tag="AMBIGUOUS"),
    # Loader
    not_testable("M-13", "The loader is the file `core/skills/skill_loader.py`",
                 "Names a source file of another code base.", tag="INFO"),
    tested("M-14", "The loader scans under the project root, parses frontmatter and body, validates required fields"),
    tested("M-15", "Results are cached and refreshed by mtime"),
    tested("M-16", "`SkillMeta` has `name: str`, `description: str`, `path: str`, `base_dir: str`, `mtime: float`"),
    tested("M-17", "`scan()` loads all skills into the cache"),
    tested("M-18", "`list_skills()` returns a list of `SkillMeta`"),
    tested("M-19", "`get_skill(name)` returns `SkillMeta` or `None`"),
    tested("M-20", "`name` matches `^[a-z0-9]+(?:-[a-z0-9]+)*$`, without a length limit"),
    tested("M-21", "`description` is non-empty, without a maximum"),
    tested("M-22", "A frontmatter name that differs from the folder is the one used"),
    tested("M-23", "Of duplicate names the last discovered is kept"),
    tested("M-24", "A duplicate logs a warning"),
    tested("M-25", "Simple `key: value` lines parse"),
    tested("M-26", "A frontmatter that does not parse skips that skill with a warning"),
    # Tool
    not_testable("M-27", "The tool is the file `tools/builtin/skill.py`", "the file name of another code base", tag="INFO"),
    tested("M-28", "The tool is named `Skill`"),
    tested("M-29", "The parameter `name` is a required string"),
    tested("M-30", "The parameter `args` is an optional string"),
    tested("M-31", "The content starts with `Base directory for this skill: <skill_base_dir>`"),
    tested("M-32", "Then comes the skill body without frontmatter"),
    tested("M-33", "Then the `$ARGUMENTS` rules are applied"),
    tested("M-34", "The result is the tool response envelope of its repository"),
    tested("M-35", "`data.name` is the skill name"),
    tested("M-36", "`data.base_dir` is the base directory"),
    tested("M-37", "`data.content` is the expanded content"),
    # Tool prompt
    not_testable("M-38", "The tool prompt is the file `prompts/tools_prompts/skill_prompt.py`", "the file name of another code base", tag="INFO"),
    tested("M-39", "The prompt has description and usage, parameters and examples"),
    tested("M-40", "The prompt lists the available skills with descriptions, cut by a budget"),
    tested("M-41", "`SKILLS_PROMPT_CHAR_BUDGET` is 12000 characters by default"),
    tested("M-42", "The listing stops when the budget is exceeded"),
    # Registration and prompt rules
    tested("M-43", "The agent registers the tool among its built-in tools"),
    tested("M-44", "The tool is registered before the context is built"),
    tested("M-45", "The L1 system prompt gains a section of Skills rules"),
    tested("M-46", 'Rule: a skill mentioned by name (`$code-review` or "use code-review skill") is loaded with the tool'),
    tested("M-47", "Rule: a task that clearly matches a description may load that skill"),
    tested("M-48", "Rule: load only when needed, never preload all"),
    tested("M-49", "The tool's prompt with the list reaches the Tools section of the L1 prompt through the context builder"),
    tested("M-50", "Skill files lie under the project root, so the existing read sandbox covers them"),
    # Cache invalidation
    tested("M-51", "There is one scan at agent startup and one loader instance"),
    tested("M-52", "Every `Skill` call runs `refresh_if_stale()`"),
    tested("M-53", "A skills root with an mtime newer than the last scan is scanned again"),
    divergent("M-54", "Otherwise the cache is used", "every call looks at every file again, since a folder's time says nothing about files in it; an unchanged disk gives an equal catalog"),
    tested("M-55", "`SKILLS_REFRESH_ON_CALL` (true by default) switches the refresh on each call"),
    # Errors
    tested("M-56", "A missing `name` is `INVALID_PARAM`"),
    tested("M-57", "An unknown name is `NOT_FOUND`"),
    tested("M-58", "A permission error of the system on reading is `PERMISSION_DENIED`"),
    tested("M-59", "Any other I/O error is `EXECUTION_ERROR` or `INTERNAL_ERROR`"),
    tested("M-60", "A file that does not parse during the scan is skipped with a warning and not listed"),
    tested("M-61", "A requested skill that does not parse is `INTERNAL_ERROR`"),
    # Future, files, tests, rollout
    tested("M-62", "A skill cannot invoke a skill"),
    not_testable("M-63", "If a skill ever can invoke a skill, call stack and depth are tracked", "planned only for a skill that invokes a skill; M-62 says that none can", tag="FUTURE"),
    not_testable("M-64", "A cycle returns `INVALID_PARAM` with a clear message", "planned only for a skill that invokes a skill; M-62 says that none can", tag="FUTURE"),
    not_testable("M-65", "Loader, tool and tool prompt are new, and the agent is modified",
                 "Names source files of another code base.", tag="INFO"),
    tested("M-66", "A test covers parsing frontmatter"),
    tested("M-67", "A test covers validating name and description"),
    tested("M-68", "A test covers scan and list"),
    tested("M-69", "A test covers getting a skill by name"),
    tested("M-70", "A test covers that the tool's response conforms to the envelope"),
    not_testable("M-71", "The rollout order is loader, tool, prompt with budget, registration, each with its tests",
                 "The order in which another code base was to be written leaves no trace in a program.", tag="INFO"),
    # Non-goals
    tested("M-72", "There is no external or global skills directory", tag="NON-GOAL"),
    tested("M-73", "There are no plugins and no marketplace", tag="NON-GOAL"),
    divergent("M-74", "There is no permission system for skills", "rules of the configuration hold in every profile; without a rule nothing stands in the way", tag="NON-GOAL"),
    tested("M-75", "`allowed-tools` restricts nothing", tag="NON-GOAL"),
    tested("M-76", "A skill does not override the model", tag="NON-GOAL"),
    tested("M-77", "Inline bash and `@file` inside a skill stay literal text", tag="NON-GOAL"),
)

RIP = (
    # Summary and goals
    tested("K-01", "Skills are discovered from disk and loaded progressively: frontmatter first, full content on activation"),
    tested("K-02", "Format and validation follow the Agent Skills standard"),
    tested("K-03", "Skills never bypass tool permissions, replay or surface parity"),
    not_testable("K-04", "References: notes on agentskills, pi-agent, claude-code, opencode, amp",
                 "Lists research notes of another repository and states no behaviour.", tag="INFO"),
    not_testable("K-05", "Related capability ids are listed",
                 "Numbers capabilities in the registry of another repository and states no behaviour of its own.", tag="INFO"),
    tested("K-06", "Discovery is quick and deterministic, without heavy I/O on the hot path"),
    tested("K-07", "Only `name` and `description` are in the baseline context"),
    tested("K-08", "The full `SKILL.md` is loaded only when needed"),
    tested("K-09", "Referenced files (scripts, assets, references) are loaded on demand"),
    tested("K-10", "A skill cannot implicitly widen permissions"),
    tested("K-11", "Every load and every invocation is logged as a structured event"),
    tested("K-12", "Tool activity caused by a skill produces the same frames as any other tool activity"),
    divergent("K-13", "CLI, server, SDK, TUI and MCP see the same skill events and tool events", "first loads are equal on every surface; a second load is a reminder in Python, JSON-RPC and the adapters, and the whole text over MCP and on the command line"),
    tested("K-14", "Nothing is installed from a remote marketplace without explicit policy", tag="NON-GOAL"),
    tested("K-15", "No script is executed during discovery", tag="NON-GOAL"),
    # Definitions
    tested("K-16", "A skill is a directory with `SKILL.md`: YAML frontmatter and Markdown body"),
    tested("K-17", "The catalog is all discovered skills as `{name, description, optional metadata}`"),
    tested("K-18", "Activation loads the full `SKILL.md` and applies its workflow"),
    # Discovery
    tested("K-19", "Configured directories are scanned for `**/SKILL.md`, recursively"),
    tested("K-20", "Only the frontmatter is parsed at discovery"),
    tested("K-21", "Required fields and constraints are validated per the standard"),
    tested("K-22", "On a name collision one winner is chosen by an explicit precedence order"),
    tested("K-23", "A warning event names both candidates of a collision"),
    tested("K-24", "No skill code runs during discovery"),
    # Catalog injection
    tested("K-25", "The context compiler injects `name` and `description` of each skill"),
    tested("K-26", "`compatibility` and `allowed-tools` may be added, gated by policy"),
    tested("K-27", "The Markdown body is never in the baseline context"),
    # Activation
    tested("K-28", "Activation loads the full `SKILL.md`"),
    tested("K-29", "Activation may load referenced files too"),
    tested("K-30", "`references/*` can be read on demand"),
    tested("K-31", "`scripts/*` can be run through the tool runtime, sandboxed and logged"),
    tested("K-32", "Every further read or run is an explicit tool call"),
    # Policy
    tested("K-33", "`allowed-tools` is a hint, not an authority"),
    tested("K-34", "`allowed-tools` and policy give an effective allowlist for the skill's execution window"),
    tested("K-35", "A skill may narrow permissions by default"),
    tested("K-36", "A skill does not widen permissions unless policy explicitly allows it"),
    tested("K-37", '"Full auto mode" is an explicit policy profile with broader defaults, and its use is replay-logged'),
    # Commands
    tested("K-38", "`/skill:<name>` loads a skill and appends the user's args to the skill context"),
    tested("K-39", "Command execution is logged and deterministic"),
    # Overrides
    tested("K-40", "A skill may propose tool defaults or aliases", tag="FUTURE"),
    tested("K-41", "A skill may propose a model or provider", tag="FUTURE"),
    tested("K-42", "A skill may propose context scoping rules", tag="FUTURE"),
    tested("K-43", "Overrides are mediated by policy and recorded as frames", tag="FUTURE"),
    # Determinism and replay
    tested("K-44", "One filesystem snapshot always gives the same catalog"),
    tested("K-45", "Paths and ordering are normalised"),
    tested("K-46", "Precedence decisions are captured in events"),
    tested("K-47", "Loading records the resolved skill directory"),
    tested("K-48", "Loading records the parsed frontmatter including unknown fields"),
    tested("K-49", "Loading records a digest of `SKILL.md` and of loaded referenced files"),
    tested("K-50", "Outputs and artifacts of scripts and tools follow the standard tool frames and artifact rules"),
    # Event frames
    tested("K-51", "`skill_catalog_updated` has `count`, `roots` and optional `collisions`"),
    tested("K-52", "`skill_loaded` has `name`, `path`, `digest`, `frontmatter` and optional `warnings`"),
    tested("K-53", "`skill_invoked` has `name`, optional `args`, `mode` and optional `effective_allowed_tools`"),
    tested("K-54", "`mode` is `manual` or `auto`"),
    tested("K-55", "`skill_warning` has optional `name`, `kind` and `detail`"),
    # Tests and benchmarks
    tested("K-56", "A contract test covers frontmatter parsing and validation with unknown fields preserved"),
    tested("K-57", "A contract test covers deterministic collision handling and ordering"),
    tested("K-58", "A contract test covers progressive disclosure, catalog against full load"),
    tested("K-59", "A replay test: catalog, load and invoke give identical snapshots and equivalent event streams"),
    tested("K-60", "A replay test: a skill execution that runs tools replays end to end"),
    tested("K-61", "A benchmark scans the catalog of a medium repository with bounded I/O and allocations"),
    tested("K-62", "A benchmark measures the throughput of frontmatter parsing"),
)

OMP = (
    # Exposure and model
    tested("O-01", "Skills are discovered at startup and exposed as name and description in the system prompt"),
    tested("O-02", "Content is read on demand through `read skill://...`"),
    tested("O-03", "Interactive `/skill:<name>` commands are optional"),
    not_testable("O-04", "Source files: `extensibility/skills.ts`, `discovery/builtin.ts`, `internal-urls/skill-protocol.ts`, ...",
                 "Names source files of another code base.", tag="INFO"),
    tested("O-05", "A skill has `name`, `description`, `filePath`, `baseDir` and the source metadata `provider`, `level`, path"),
    tested("O-06", "Validity needs only `name` and `path`"),
    # Layout
    tested("O-07", "Providers find `<skills-root>/<skill-name>/SKILL.md`, one level deep"),
    tested("O-08", "`<skills-root>/group/<skill>/SKILL.md` is not found by providers"),
    tested("O-09", "`skills.customDirectories` uses the same one-level layout"),
    tested("O-10", "Pointing `customDirectories` at the nested parent finds those skills"),
    # Frontmatter
    tested("O-11", "`name` is an optional string and defaults to the directory name"),
    tested("O-12", "`description` is an optional string"),
    tested("O-13", "`globs` is an optional list of strings"),
    tested("O-14", "`alwaysApply` is an optional boolean"),
    tested("O-15", "Other keys are preserved as unknown metadata"),
    tested("O-16", "`description` is required for the native `.omp` provider (`requireDescription: true`)"),
    tested("O-17", "`description` is required for `skills.customDirectories`"),
    tested("O-18", "Non-native providers load a skill without description"),
    # Pipeline
    tested("O-19", 'Pass 1 takes the capability providers through `loadCapability("skills")`'),
    tested("O-20", "Pass 2 takes the custom directories, one level deep, description required"),
    tested("O-21", "`skills.enabled` false means no skills"),
    # Providers
    tested("O-22", "Higher priority comes first, ties by registration order"),
    tested("O-23", "`native` has priority 100 (`.omp`, user and project)"),
    tested("O-24", "`claude` has priority 80"),
    tested("O-25", "`claude-plugins`, `agents`, `codex` have priority 70, in this order"),
    tested("O-26", "The dedup key is the name, and the first item wins"),
    # Toggles and filters
    divergent("O-27", "Toggles: `enableCodexUser`, `enableClaudeUser`, `enableClaudeProject`, `enablePiUser`, `enablePiProject`", "to the letter in the user's file, and in a project's with `trust=\"all\"` or in a trusted folder; the file of an untrusted project turns no source off or on"),
    divergent("O-28", "`ignoredSkills` are glob patterns on the name that exclude", "to the letter in the user's file, and in a project's with `trust=\"all\"` or in a trusted folder; the file of an untrusted project leaves out skills of that project only"),
    divergent("O-29", "`includeSkills` is a glob allowlist on the name; empty means all", "to the letter in the user's file, and in a project's with `trust=\"all\"` or in a trusted folder; the file of an untrusted project includes and excludes nothing"),
    divergent("O-30", "The filter order is source enabled, not ignored, included", "to the letter in the user's file, and in a project's with `trust=\"all\"` or in a trusted folder; of the file of an untrusted project only `ignoredSkills` counts, for its own skills"),
    tested("O-31", "Other providers (`agents`, `claude-plugins`, ...) are enabled if and only if any of the five toggles is on"),
    # Collisions
    tested("O-32", "The capability layer already keeps the first of each name"),
    tested("O-33", "Files identical by `realpath` are de-duplicated silently"),
    tested("O-34", "A later skill with a taken name yields a collision warning"),
    tested("O-35", "`discoverSkillsFromDir({ dir, source })` is a thin adapter over the directory scan"),
    tested("O-36", "Custom-directory skills are merged after provider skills, and the provider's stays on a collision"),
    # System prompt
    tested("O-37", "The list is included if the `read` tool is available and no preloaded skills are given"),
    tested("O-38", "Otherwise the list is omitted"),
    tested("O-39", "Preloaded skills are inlined in full inside `<preloaded_skills>`"),
    # Task pinning
    tested("O-40", "A Task call may name `skills`, resolved against the session's skills"),
    tested("O-41", "An unknown name is an immediate error that lists the available names"),
    tested("O-42", "Resolved skills become preloaded skills of the subagent"),
    # Commands
    tested("O-43", "`skills.enableSkillCommands` registers one slash command per discovered skill in interactive mode"),
    tested("O-44", "`/skill:<name> [args]` reads the file at `filePath` directly"),
    tested("O-45", "Frontmatter is stripped"),
    tested("O-46", "The body is injected as a follow-up custom message"),
    tested("O-47", "The line `Skill: <path>` is appended"),
    tested("O-48", "With args the line `User: <args>` is appended too, and without args it is absent"),
    # skill://
    tested("O-49", "`skill://<name>` is that skill's `SKILL.md`"),
    tested("O-50", "`skill://<name>/<relative-path>` is inside that skill's directory"),
    tested("O-51", "The name must match exactly, case included"),
    tested("O-52", "The relative path is URL-decoded"),
    tested("O-53", "Absolute paths are rejected"),
    tested("O-54", "`..` traversal is rejected"),
    tested("O-55", "The resolved path stays within `baseDir`"),
    tested("O-56", "A missing file gives an explicit `File not found` error"),
    tested("O-57", "`.md` is `text/markdown`"),
    tested("O-58", "Anything else is `text/plain`"),
    tested("O-59", "There is no fallback search for missing assets"),
    # Relations and guidance
    tested("O-60", "AGENTS.md files are persistent context, skills are optional packs chosen by task or request"),
    tested("O-61", "The AGENTS.md walk goes up from `cwd` to depth 20"),
    tested("O-62", "The AGENTS.md walk excludes hidden-directory segments"),
    tested("O-63", "`/skill:<name>` only injects text and does not change discovery"),
    tested("O-64", "Skills are documentation read through prompt and `read`; custom tools are executable APIs"),
    tested("O-65", "Skills are passive; hooks intercept at run time"),
    tested("O-66", "Guidance: one directory per skill"),
    tested("O-67", "Guidance: always give explicit `name` and `description`"),
    tested("O-68", "Guidance: keep assets in the skill directory and address them with `skill://<name>/...`"),
    tested("O-69", "Guidance: nested taxonomies via `customDirectories`; scanning stays non-recursive"),
    tested("O-70", "Guidance: avoid duplicate names; first match wins by precedence"),
)
# fmt: on

REQUIREMENTS: tuple[Requirement, ...] = (*CODELIA, *SWIFTAGENT, *MYCODEAGENT, *RIP, *OMP)


def table(requirements: Sequence[Requirement]) -> Iterator[str]:
    """The requirements as aligned lines of id, state, behaviour and reason."""
    rows = [("id", "state", "behaviour", "reason")]
    rows += [(r.id, r.state, r.behaviour, r.reason) for r in requirements]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, reason in rows:
        aligned = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        yield "  ".join([*aligned, reason]).rstrip()


def counts(requirements: Iterable[Requirement]) -> Iterator[str]:
    """The number of requirements of each system in each state, one line a system, and their sum."""
    tally = Counter((r.system, r.state) for r in requirements)
    width = max(len(name) for name in SYSTEMS.values())
    shown = [key for key in SYSTEMS if any(system == key for system, _ in tally)]
    for label, systems in [*((f"{key}  {SYSTEMS[key]}", [key]) for key in shown), ("=  all", shown)]:
        by_state = {state: sum(tally[system, state] for system in systems) for state in get_args(State)}
        numbers = "  ".join(f"{state} {number:3}" for state, number in by_state.items())
        yield f"{label:{width + 3}}  {numbers}  sum {sum(by_state.values()):3}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the chosen requirements and their counts."""
    parser = argparse.ArgumentParser(description="The requirements of five systems, and their state here.")
    parser.add_argument("--state", choices=get_args(State), help="only requirements in this state")
    parser.add_argument("--system", choices=tuple(SYSTEMS), help="only requirements of this system")
    chosen = parser.parse_args(argv)
    requirements = [
        requirement
        for requirement in REQUIREMENTS
        if chosen.state in (None, requirement.state) and chosen.system in (None, requirement.system)
    ]
    try:
        print(*table(requirements), "", *counts(requirements), sep="\n", flush=True)
    except BrokenPipeError:
        # The reader has seen enough. Python flushes once more on exit, and must not fail on the same pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
