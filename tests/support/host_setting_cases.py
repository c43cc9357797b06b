"""The effect of the hosts' own settings: records of trust and switches of skills, each with the verdict it leads to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from skillshelf.core.limits import CONFIG_BYTES
from support.trees import Machine, write_skill

GEMINI, GEMINI_TRUST = "~/.gemini/settings.json", "~/.gemini/trustedFolders.json"
PI_TRUST = "~/.pi/agent/trust.json"
OMP = "~/.omp/agent/config.yml"
COPILOT = "~/.copilot/settings.json"
CODEX, CLAUDE, OPENCODE = "~/.codex/config.toml", "~/.claude/settings.json", "opencode.json"


def put(machine: Machine, name: str, content: Any, *, cwd: Path | None = None) -> None:
    """Write a settings file of a host; CWD and ABOVE in it stand for folders."""
    cwd = cwd or machine.repo
    path = machine.home / name[2:] if name.startswith("~/") else cwd / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text.replace("CWD", str(cwd)).replace("ABOVE", str(cwd.parent)))


class TrustCase(NamedTuple):
    """A record of trust, and the verdict it leads to; each was tried on the released program."""

    host: str
    title: str
    verdict: str
    settings: Mapping[str, Any] = MappingProxyType({})
    env: Mapping[str, str] = MappingProxyType({})


TRUST_CASES = (
    TrustCase("gemini-cli", "no record", "untrusted"),
    TrustCase("gemini-cli", "the folder", "visible", {GEMINI_TRUST: {"CWD": "TRUST_FOLDER"}}),
    TrustCase("gemini-cli", "a folder above", "visible", {GEMINI_TRUST: {"ABOVE": "TRUST_FOLDER"}}),
    TrustCase("gemini-cli", "its parent", "visible", {GEMINI_TRUST: {"CWD": "TRUST_PARENT"}}),
    TrustCase("gemini-cli", "the parent of a neighbour", "visible", {GEMINI_TRUST: {"ABOVE/other": "TRUST_PARENT"}}),
    TrustCase("gemini-cli", "a neighbour", "untrusted", {GEMINI_TRUST: {"ABOVE/other": "TRUST_FOLDER"}}),
    TrustCase(
        *("gemini-cli", "refused below", "untrusted"),
        {GEMINI_TRUST: {"ABOVE": "TRUST_FOLDER", "CWD": "DO_NOT_TRUST"}},
    ),
    TrustCase(
        *("gemini-cli", "refused above", "visible"), {GEMINI_TRUST: {"ABOVE": "DO_NOT_TRUST", "CWD": "TRUST_FOLDER"}}
    ),
    TrustCase("gemini-cli", "comments", "visible", {GEMINI_TRUST: '{"CWD": /* mine */ "TRUST_FOLDER" // "x"\n}'}),
    TrustCase(
        *("gemini-cli", "trust switched off", "visible"),
        {GEMINI: '{// all mine\n"security": {"folderTrust": {"enabled": false}}}'},
    ),
    TrustCase(
        *("gemini-cli", "a project cannot switch it off", "untrusted"),
        {".gemini/settings.json": {"security": {"folderTrust": {"enabled": False}}}},
    ),
    TrustCase("gemini-cli", "the variable", "visible", env={"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
    TrustCase("gemini-cli", "another word in it", "untrusted", env={"GEMINI_CLI_TRUST_WORKSPACE": "1"}),
    TrustCase(
        *("gemini-cli", "the variable says no", "untrusted", {GEMINI_TRUST: {"CWD": "TRUST_FOLDER"}}),
        {"GEMINI_CLI_TRUST_WORKSPACE": "false"},
    ),
    TrustCase(
        *("gemini-cli", "restricted", "untrusted", {GEMINI_TRUST: {"CWD": "TRUST_FOLDER"}}),
        {"GEMINI_RESTRICTED_MODE": "true", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
    TrustCase("gemini-cli", "broken", "unknown", {GEMINI_TRUST: "{"}),
    TrustCase(
        *("gemini-cli", "no level of trust", "unknown", {GEMINI_TRUST: {"CWD": "TRUST_FOLDER", "/x": "yes"}}),
    ),
    TrustCase("gemini-cli", "is not a table", "unknown", {GEMINI_TRUST: "[]"}),
    TrustCase("gemini-cli", "too large", "unknown", {GEMINI_TRUST: " " * (CONFIG_BYTES + 1)}),
    TrustCase("gemini-cli", "too deep", "unknown", {GEMINI_TRUST: "[" * 200_000}),
    TrustCase("gemini-cli", "no end of a string", "unknown", {GEMINI_TRUST: '"' + '\\"' * 400_000}),
    TrustCase("pi", "no record", "untrusted"),
    TrustCase("pi", "the folder", "visible", {PI_TRUST: {"CWD": True}}),
    TrustCase("pi", "a folder above", "visible", {PI_TRUST: {"ABOVE": True}}),
    TrustCase("pi", "refused below", "untrusted", {PI_TRUST: {"ABOVE": True, "CWD": False}}),
    TrustCase("pi", "refused above", "visible", {PI_TRUST: {"ABOVE": False, "CWD": True}}),
    TrustCase("pi", "nothing said below", "visible", {PI_TRUST: {"ABOVE": True, "CWD": None}}),
    TrustCase("pi", "broken", "unknown", {PI_TRUST: "{"}),
    TrustCase("pi", "comments, which it does not take", "unknown", {PI_TRUST: '{// mine\n"CWD": true}'}),
    TrustCase("pi", "no level of trust", "unknown", {PI_TRUST: {"CWD": "true please"}}),
)


class SwitchCase(NamedTuple):
    """A setting, and what it does to the skill `deploy`; `said` is in the detail."""

    host: str
    title: str
    settings: dict[str, Any]
    verdict: str
    said: str = ""
    fix: str | None = None


def entry(*lines: str) -> str:
    """One table of the list of skills that are on or off."""
    return "\n".join(["[[skills.config]]", *lines, ""])


def denied(rules: Any) -> dict[str, Any]:
    """Permissions for skills."""
    return {"permission": {"skill": rules}}


OFF, ON = {"skillOverrides": {"deploy": "off"}}, {"skillOverrides": {"deploy": "on"}}
CODEX_OFF = entry('name = "deploy"', "enabled = false")

SWITCH_CASES = (
    SwitchCase(
        *("codex", "by name", {CODEX: CODEX_OFF}, "disabled-by-config"),
        *("skills.config in ~/.codex/config.toml", "set enabled to true for it in ~/.codex/config.toml"),
    ),
    SwitchCase("codex", "by another name", {CODEX: entry('name = "Deploy"', "enabled = false")}, "visible"),
    SwitchCase(
        *("codex", "by path"),
        {CODEX: entry('path = "CWD/.agents/skills/deploy/SKILL.md"', "enabled = false")},
        "disabled-by-config",
    ),
    SwitchCase(
        "codex", "by its folder", {CODEX: entry('path = "CWD/.agents/skills/deploy"', "enabled = false")}, "visible"
    ),
    SwitchCase("codex", "on again", {CODEX: CODEX_OFF + entry('name = "deploy"', "enabled = true")}, "visible"),
    SwitchCase(
        *("codex", "by name and path"),
        {CODEX: entry('name = "deploy"', 'path = "CWD/x"', "enabled = false")},
        "visible",
    ),
    SwitchCase("codex", "in a project, where it does not count", {".codex/config.toml": CODEX_OFF}, "visible"),
    SwitchCase("codex", "neither on nor off", {CODEX: entry('name = "deploy"')}, "unknown", "of an unknown form"),
    SwitchCase("codex", "broken", {CODEX: "[["}, "unknown", "~/.codex/config.toml cannot be read"),
    SwitchCase(
        *("codex", "no instructions", {CODEX: "[skills]\ninclude_instructions = false"}, "unknown"),
        "a setting of the host mentions it: skills.include_instructions in ~/.codex/config.toml",
    ),
    SwitchCase(
        *("gemini-cli", "in any case", {GEMINI: {"skills": {"disabled": ["Deploy"]}}}, "disabled-by-config"),
        *(
            "skills.disabled in ~/.gemini/settings.json",
            "remove 'deploy' from skills.disabled in ~/.gemini/settings.json",
        ),
    ),
    SwitchCase(
        *("gemini-cli", "in a project"),
        {GEMINI: {"skills": {"disabled": []}}, ".gemini/settings.json": {"skills": {"disabled": ["deploy"]}}},
        *("disabled-by-config", "in .gemini/settings.json"),
    ),
    SwitchCase("gemini-cli", "another", {GEMINI: {"skills": {"disabled": ["deploy-it"]}}}, "visible"),
    SwitchCase(
        *("gemini-cli", "all", {GEMINI: {"skills": {"enabled": False}}}, "disabled-by-config"),
        *("skills.enabled is off in ~/.gemini/settings.json", "set skills.enabled to true in ~/.gemini/settings.json"),
    ),
    SwitchCase(
        *("gemini-cli", "all on again in a project"),
        {GEMINI: {"skills": {"enabled": False}}, ".gemini/settings.json": {"skills": {"enabled": True}}},
        "visible",
    ),
    SwitchCase("gemini-cli", "no list", {GEMINI: {"skills": {"disabled": "deploy"}}}, "unknown", "is not a list"),
    SwitchCase("gemini-cli", "no switch", {GEMINI: {"skills": {"enabled": "no"}}}, "unknown", "neither true nor false"),
    SwitchCase("gemini-cli", "is not a table", {GEMINI: {"skills": []}}, "visible"),
    SwitchCase("gemini-cli", "broken", {GEMINI: "{"}, "unknown", "~/.gemini/settings.json cannot be read"),
    SwitchCase(
        *("claude-code", "off for the user", {CLAUDE: OFF}, "disabled-by-config"),
        "skillOverrides in ~/.claude/settings.json says 'off'",
        "remove 'deploy' from skillOverrides in ~/.claude/settings.json",
    ),
    SwitchCase("claude-code", "off in a project", {".claude/settings.json": OFF}, "disabled-by-config"),
    SwitchCase("claude-code", "off here only", {".claude/settings.local.json": OFF}, "disabled-by-config"),
    SwitchCase("claude-code", "on in a project", {CLAUDE: OFF, ".claude/settings.json": ON}, "visible"),
    SwitchCase(
        "claude-code", "a project is stronger", {CLAUDE: ON, ".claude/settings.json": OFF}, "disabled-by-config"
    ),
    SwitchCase("claude-code", "in another case", {CLAUDE: {"skillOverrides": {"Deploy": "off"}}}, "visible"),
    SwitchCase(
        *("claude-code", "for people", {CLAUDE: {"skillOverrides": {"deploy": "user-invocable-only"}}}),
        *("hidden-from-model", "users can still invoke it"),
    ),
    SwitchCase(
        *("claude-code", "its name alone", {CLAUDE: {"skillOverrides": {"deploy": "name-only"}}}),
        *("description-cut", "the model sees only the name"),
    ),
    SwitchCase("claude-code", "no such state", {CLAUDE: {"skillOverrides": {"deploy": "maybe"}}}, "unknown", "'maybe'"),
    SwitchCase("claude-code", "not a table", {CLAUDE: {"skillOverrides": ["deploy"]}}, "unknown", "is not a table"),
    *(
        SwitchCase(
            *("claude-code", f"a permission: {rule}", {CLAUDE: {"permissions": {"deny": ["Bash", rule]}}}, "visible"),
            "it is listed and its model is told of it (permissions.deny in ~/.claude/settings.json)",
        )
        for rule in ("Skill(deploy)", "Skill(deploy *)", "Skill(deploy:*)")
    ),
    SwitchCase(
        *("copilot-cli", "by name", {COPILOT: {"disabledSkills": ["deploy"]}}, "disabled-by-config"),
        *(
            "disabledSkills in ~/.copilot/settings.json",
            "remove 'deploy' from disabledSkills in ~/.copilot/settings.json",
        ),
    ),
    SwitchCase("copilot-cli", "in another case", {COPILOT: {"disabledSkills": ["Deploy"]}}, "visible"),
    SwitchCase("copilot-cli", "no list", {COPILOT: {"disabledSkills": "deploy"}}, "unknown", "is not a list"),
    SwitchCase(
        "claude-code", "its tool", {CLAUDE: {"permissions": {"deny": ["Skill"]}}}, "unknown", "permissions.deny"
    ),
    SwitchCase("claude-code", "another one's", {CLAUDE: {"permissions": {"deny": ["Skill(other)"]}}}, "visible"),
    SwitchCase("claude-code", "comments, which it does not take", {CLAUDE: "{// x\n}"}, "unknown", "cannot be read"),
    SwitchCase(
        *("opencode", "denied", {OPENCODE: denied({"deploy": "deny"})}, "disabled-by-config"),
        *("permission.skill in opencode.json denies it", "allow 'deploy' in permission.skill of opencode.json"),
    ),
    SwitchCase("opencode", "by a pattern", {OPENCODE: denied({"*": "allow", "dep*": "deny"})}, "disabled-by-config"),
    SwitchCase("opencode", "the last one decides", {OPENCODE: denied({"*": "deny", "deploy": "allow"})}, "visible"),
    SwitchCase("opencode", "asked for", {OPENCODE: denied("ask")}, "visible"),
    SwitchCase("opencode", "all", {OPENCODE: denied("deny")}, "disabled-by-config"),
    SwitchCase("opencode", "brackets are no pattern", {OPENCODE: denied({"[d]eploy": "deny"})}, "visible"),
    SwitchCase(
        *("opencode", "comments and a last comma"),
        {"opencode.jsonc": '{"permission": {"skill": {"deploy": "deny", /* , */ }, },}'},
        "disabled-by-config",
    ),
    SwitchCase(
        *("opencode", "two files at odds"),
        {"~/.config/opencode/opencode.json": denied({"deploy": "deny"}), OPENCODE: denied({"*": "allow"})},
        *("unknown", "another file does not"),
    ),
    SwitchCase("opencode", "its tool", {OPENCODE: {"tools": {"skill": False}}}, "disabled-by-config", "tools.skill"),
    SwitchCase("opencode", "everything denied", {OPENCODE: {"permission": {"*": "deny"}}}, "unknown", "permission in"),
    SwitchCase(
        *("opencode", "for one agent", {OPENCODE: {"agent": {"plan": denied({"dep*": "deny"})}}}, "unknown"),
        "agent.*.permission.skill in opencode.json",
    ),
    SwitchCase("opencode", "broken", {OPENCODE: '{"permission": '}, "unknown", "opencode.json cannot be read"),
    SwitchCase("pi", "a pattern", {"~/.pi/agent/settings.json": {"skills": ["!**/deploy/**"]}}, "unknown", "skills in"),
    SwitchCase("pi", "a folder more", {"~/.pi/agent/settings.json": {"skills": ["~/deploy"]}}, "visible"),
    SwitchCase(
        "oh-my-pi", "any", {OMP: "skills:\n  ignoredSkills: [x]\n"}, "unknown", "skills in ~/.omp/agent/config.yml"
    ),
    SwitchCase("oh-my-pi", "none", {OMP: "theme:\n  dark: titanium\n"}, "visible"),
    SwitchCase("oh-my-pi", "an empty one", {OMP: ""}, "visible"),
    SwitchCase("oh-my-pi", "broken", {OMP: "skills: [\n"}, "unknown", "~/.omp/agent/config.yml cannot be read"),
    SwitchCase(
        *("vscode", "all", {".vscode/settings.json": '{"chat.useAgentSkills": false, // no\n}'}, "disabled-by-config"),
        *(
            "chat.useAgentSkills is off in .vscode/settings.json",
            "set chat.useAgentSkills to true in .vscode/settings.json",
        ),
    ),
)


def build_trust(case: TrustCase, machine: Machine) -> Path:
    """Put a record of trust and the skill `deploy` on disk; gives the skill's file."""
    for name, content in case.settings.items():
        put(machine, name, content)
    return write_skill(machine.repo / ".agents/skills", "deploy")


def build_switch(case: SwitchCase, machine: Machine) -> Path:
    """Put settings and the skill `deploy` on disk, in a folder that is trusted; gives the skill's file."""
    put(machine, GEMINI_TRUST, {"CWD": "TRUST_FOLDER"})
    put(machine, PI_TRUST, {"CWD": True})
    for name, content in case.settings.items():
        put(machine, name, content)
    root = ".claude/skills" if case.host == "claude-code" else ".agents/skills"
    return write_skill(machine.repo / root, "deploy")
