"""Cases of the policy as data: rules, what is asked, what must come of it, and the skills they speak of."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

from support.trees import Machine, write_skill

__all__ = ["BROKEN_RULES", "CASES", "GIT_ONLY", "Case", "prepare", "put"]

GIT_ONLY = "allowed-tools: Bash(git:*) Read\n"


def put(root: Path, name: str, more: str = "") -> Path:
    """Write a skill with a script; returns its file."""
    path = write_skill(root, name, f"---\nname: {name}\ndescription: Does {name}.\n{more}---\nBody of {name}.\n")
    (path.parent / "scripts").mkdir(exist_ok=True)
    (path.parent / "scripts/hello.sh").write_text("#!/bin/sh\necho hello\n")
    return path


def prepare(machine: Machine) -> dict[str, str]:
    """The user's `deploy` and `review`, the project's `stranger`; returns the folders by name."""
    home, repo = machine.home / ".agents/skills", machine.repo / ".agents/skills"
    put(home, "deploy", GIT_ONLY)
    put(home, "review")
    put(repo, "stranger", GIT_ONLY)
    (machine.base / "link-to-deploy").symlink_to(home / "deploy")
    return {"home": str(home), "repo": str(repo), "base": str(machine.base)}


class Case(NamedTuple):
    """One question to a policy.

    The machine has `deploy` and `review` in the user's folder, and `stranger` in a project that is not trusted.
    `{home}` and `{repo}` in arguments are the folders of their skills.
    """

    name: str
    tool: str
    arguments: dict[str, str]
    verdict: Literal["allow", "deny", "confirm"]
    policy: Any = None
    user: str = ""
    project: str = ""
    active: tuple[str, ...] = ()
    rule: str | None = None


def rules(kind: str, *entries: tuple[str, str | None]) -> dict[str, list[dict[str, str]]]:
    """A policy of rules for tools and skills."""
    return {kind: [{"tool": tool, **({"skill_name": name} if name else {})} for tool, name in entries]}


DENY_DEPLOY = rules("deny", ("skill_load", "deploy"))
ALLOW_DEPLOY = rules("allow", ("skill_load", "deploy"))
DENY_LOAD = rules("deny", ("skill_load", None))
ALLOW_ALL = rules("allow", ("skill_load", None), ("skill_run", None), ("skill_read", None))
LOAD, READ, RUN = "skill_load", "skill_read", "skill_run"
DEPLOY, REVIEW, STRANGER = {"name": "deploy"}, {"name": "review"}, {"name": "stranger"}
RUN_DEPLOY = {"name": "deploy", "script": "hello.sh"}
RUN_STRANGER = {"name": "stranger", "script": "hello.sh"}
TRUST = "trust.folders = ['{repo}']\n"


def allow_toml(tool: str, name: str | None = None) -> str:
    """One rule of a configuration file."""
    return f"permissions.allow = [{{ tool = '{tool}'" + (f", skill_name = '{name}'" if name else "") + " }]\n"


def shell(command: str) -> dict[str, str]:
    """The arguments of a shell tool."""
    return {"command": command}


CASES = [
    # Without a rule.
    Case("a trusted skill is loaded", LOAD, DEPLOY, "allow"),
    Case("a trusted skill is read", READ, {"uri": "skill://deploy/SKILL.md"}, "allow"),
    Case("skills are searched", "skill_search", {"query": "x"}, "allow"),
    Case("a script is confirmed", RUN, RUN_DEPLOY, "confirm"),
    Case("an untrusted skill is confirmed", LOAD, STRANGER, "confirm"),
    Case("an untrusted file is confirmed", READ, {"uri": "skill://stranger/SKILL.md"}, "confirm"),
    Case("an untrusted script is confirmed", RUN, RUN_STRANGER, "confirm"),
    Case("an unknown skill is denied", LOAD, {"name": "nonsense"}, "deny"),
    Case("nothing at all is denied", LOAD, {}, "deny"),
    Case("a tool of the host is confirmed", "Bash", shell("ls"), "confirm"),
    # Deny beats allow beats confirm.
    Case("a denied skill", LOAD, DEPLOY, "deny", DENY_DEPLOY, rule="permissions.deny: skill_load deploy"),
    Case("another one than the denied", LOAD, REVIEW, "allow", DENY_DEPLOY),
    Case("deny beats allow", LOAD, DEPLOY, "deny", {**DENY_DEPLOY, **ALLOW_DEPLOY}),
    Case("deny of one beats allow of all", LOAD, DEPLOY, "deny", {**DENY_DEPLOY, **ALLOW_ALL}),
    Case("deny of all beats allow of one", LOAD, DEPLOY, "deny", {**DENY_LOAD, **ALLOW_DEPLOY}),
    Case("allow beats confirm", RUN, RUN_DEPLOY, "allow", rules("allow", (RUN, "deploy"))),
    Case("allow of all beats confirm", RUN, RUN_DEPLOY, "allow", rules("allow", (RUN, None))),
    Case("a rule for a name is not for a stranger", LOAD, STRANGER, "confirm", rules("allow", (LOAD, "stranger"))),
    Case("a rule for all is not for a stranger", LOAD, STRANGER, "confirm", ALLOW_ALL),
    Case("allow beats confirm where it is trusted", LOAD, STRANGER, "allow", ALLOW_ALL, TRUST),
    Case("allow of one leaves another", LOAD, STRANGER, "confirm", ALLOW_DEPLOY),
    Case("a rule without a name is for every skill", LOAD, REVIEW, "deny", DENY_LOAD),
    Case(
        "deny in the user's file beats allow in Python",
        LOAD,
        DEPLOY,
        "deny",
        ALLOW_DEPLOY,
        "permissions.deny = [{ tool = 'skill_load', skill_name = 'deploy' }]\n",
    ),
    Case(
        "the order of the rules does not matter",
        LOAD,
        DEPLOY,
        "deny",
        {"deny": [{"tool": LOAD, "skill_name": "review"}, {"tool": LOAD, "skill_name": "deploy"}]},
    ),
    # Names are exact.
    Case("a rule for a longer name", LOAD, DEPLOY, "allow", rules("deny", (LOAD, "deploy-all"))),
    Case("a rule for a shorter name", LOAD, DEPLOY, "allow", rules("deny", (LOAD, "dep"))),
    Case("a rule for another tool", LOAD, DEPLOY, "allow", rules("deny", (RUN, "deploy"))),
    Case("a rule for searching", "skill_search", {"query": "x"}, "deny", rules("deny", ("skill_search", None))),
    # The resolved skill counts, and a path wins over a name.
    Case(
        "an allowed name with the path of a denied skill",
        LOAD,
        {"name": "review", "path": "{home}/deploy"},
        "deny",
        {**DENY_DEPLOY, **rules("allow", (LOAD, "review"))},
    ),
    Case("the same with the file", LOAD, {"name": "review", "path": "{home}/deploy/SKILL.md"}, "deny", DENY_DEPLOY),
    Case(
        "the same with dots on the way",
        LOAD,
        {"name": "review", "path": "{home}/review/../deploy"},
        "deny",
        DENY_DEPLOY,
    ),
    Case(
        "a denied name with the path of an allowed skill",
        LOAD,
        {"name": "deploy", "path": "{home}/review"},
        "allow",
        DENY_DEPLOY,
    ),
    Case(
        "an allowed name with the path of a stranger",
        LOAD,
        {"name": "review", "path": "{repo}/stranger"},
        "confirm",
        rules("allow", (LOAD, "review")),
    ),
    Case(
        "a folder that is named like an allowed skill",
        LOAD,
        {"path": "/elsewhere/review/SKILL.md"},
        "deny",
        rules("allow", (LOAD, "review")),
    ),
    Case("a path that is in no catalog", LOAD, {"path": "/etc/passwd"}, "deny", ALLOW_ALL),
    Case("a path with backslashes", LOAD, {"path": "{home}\\deploy"}, "deny", ALLOW_ALL),
    Case("a path with a NUL", LOAD, {"path": "{home}/deploy\0"}, "deny", ALLOW_ALL),
    Case("a link to a denied skill", LOAD, {"path": "{base}/link-to-deploy"}, "deny", DENY_DEPLOY),
    Case("a name in other letters", LOAD, {"name": "DEPLOY"}, "allow", ALLOW_ALL),
    Case("a denied name in other letters", LOAD, {"name": "DEPLOY"}, "deny", DENY_DEPLOY),
    # Files and scripts are part of their skill.
    Case("a file of a denied skill", READ, {"uri": "skill://deploy/SKILL.md"}, "deny", DENY_DEPLOY),
    Case("an encoded address of a denied skill", READ, {"uri": "skill://d%65ploy/SKILL.md"}, "deny", DENY_DEPLOY),
    Case(
        "an address that climbs out of an allowed skill",
        READ,
        {"uri": "skill://review/../deploy/SKILL.md"},
        "deny",
        ALLOW_ALL,
    ),
    Case("a script of a denied skill", RUN, RUN_DEPLOY, "deny", {**DENY_DEPLOY, **rules("allow", (RUN, None))}),
    Case("a script that a rule allows", RUN, RUN_DEPLOY, "allow", rules("allow", (RUN, "deploy"))),
    Case("a rule for loads allows no script", RUN, RUN_DEPLOY, "confirm", ALLOW_DEPLOY),
    Case("a rule for all scripts means the user's own", RUN, RUN_STRANGER, "confirm", rules("allow", (RUN, None))),
    Case("nor does one that names the stranger", RUN, RUN_STRANGER, "confirm", rules("allow", (RUN, "stranger"))),
    # Named policies.
    Case("read-only loads", LOAD, DEPLOY, "allow", "read-only"),
    Case("read-only runs nothing", RUN, RUN_DEPLOY, "deny", "read-only"),
    Case("read-only runs nothing, whatever is allowed", RUN, RUN_DEPLOY, "deny", "read-only", allow_toml(RUN)),
    Case("read-only denies tools of the host", "Bash", shell("ls"), "deny", "read-only"),
    Case("read-only has tools that a rule allows", "Grep", {}, "allow", "read-only", allow_toml("Grep")),
    Case("full-auto runs", RUN, RUN_DEPLOY, "allow", "full-auto"),
    Case("full-auto loads a stranger", LOAD, STRANGER, "allow", "full-auto"),
    Case("full-auto asks about a stranger's script", RUN, RUN_STRANGER, "confirm", "full-auto"),
    Case("full-auto allows tools of the host", "Bash", shell("ls"), "allow", "full-auto"),
    Case(
        "a rule denies in full-auto too",
        LOAD,
        DEPLOY,
        "deny",
        "full-auto",
        "permissions.deny = [{ tool = 'skill_load', skill_name = 'deploy' }]\n",
    ),
    # A cloned repository's own configuration.
    Case("a project allows its own skill", LOAD, STRANGER, "confirm", project=allow_toml(LOAD, "stranger")),
    Case("a project allows its own script", RUN, RUN_STRANGER, "confirm", project=allow_toml(RUN, "stranger")),
    Case("a project trusts itself", LOAD, STRANGER, "confirm", project=TRUST),
    Case(
        "a project grants itself tools",
        "Bash",
        shell("git log"),
        "confirm",
        project="permissions.grant_from_skills = ['deploy']\n",
        active=("deploy",),
    ),
    Case(
        "a stranger cannot deny a skill of the user",
        LOAD,
        DEPLOY,
        "allow",
        project="permissions.deny = [{ tool = 'skill_load', skill_name = 'deploy' }, { tool = 'skill_load' }]\n",
    ),
    Case(
        "a stranger denies its own skill",
        LOAD,
        STRANGER,
        "deny",
        project="permissions.deny = [{ tool = 'skill_load', skill_name = 'stranger' }]\n",
    ),
    Case(
        "a trusted project denies",
        LOAD,
        DEPLOY,
        "deny",
        user=TRUST,
        project="permissions.deny = [{ tool = 'skill_load', skill_name = 'deploy' }]\n",
    ),
    Case("a trusted project allows", RUN, RUN_STRANGER, "allow", user=TRUST, project=allow_toml(RUN, "stranger")),
    Case("a trusted project's skill is loaded", LOAD, STRANGER, "allow", user=TRUST),
    # allowed-tools of an active skill: `Bash(git:*) Read`.
    Case("a tool that the active skill names is still confirmed", "Read", {"path": "x"}, "confirm", active=("deploy",)),
    Case(
        "a tool that it does not name", "Write", {"path": "x"}, "deny", active=("deploy",), rule="allowed-tools: deploy"
    ),
    Case(
        "a tool that it does not name, though a rule allows it",
        "Write",
        {"path": "x"},
        "deny",
        rules("allow", ("Write", None)),
        active=("deploy",),
    ),
    Case(
        "a tool that it names and a rule allows",
        "Read",
        {"path": "x"},
        "allow",
        rules("allow", ("Read", None)),
        active=("deploy",),
    ),
    Case(
        "a tool that it names and a rule denies",
        "Read",
        {"path": "x"},
        "deny",
        rules("deny", ("Read", None)),
        active=("deploy",),
    ),
    Case("a skill without allowed-tools narrows nothing", "Write", {"path": "x"}, "confirm", active=("review",)),
    Case("a skill does not allow by itself", "Bash", shell("git status"), "confirm", active=("deploy",)),
    Case(
        "a skill that the policy lets allow",
        "Bash",
        shell("git status"),
        "allow",
        {"grant_from_skills": ["deploy"]},
        active=("deploy",),
        rule="permissions.grant_from_skills: deploy",
    ),
    Case(
        "it allows only what it names",
        "Bash",
        shell("rm -rf /"),
        "deny",
        {"grant_from_skills": ["deploy"]},
        active=("deploy",),
    ),
    Case(
        "it allows nothing while it is not active",
        "Bash",
        shell("git status"),
        "confirm",
        {"grant_from_skills": ["deploy"]},
    ),
    Case(
        "a stranger of that name is granted nothing",
        "Bash",
        shell("git status"),
        "confirm",
        {**rules("allow", (LOAD, "stranger")), "grant_from_skills": ["stranger"]},
        active=("stranger",),
    ),
    Case(
        "a rule for a tool while a skill is active",
        "Write",
        {},
        "allow",
        rules("allow", ("Write", "review")),
        active=("review",),
    ),
    Case("the same rule while it is not", "Write", {}, "confirm", rules("allow", ("Write", "review"))),
    *(
        Case(
            f"no second command behind a prefix: {command!r}",
            "Bash",
            shell(command),
            "deny",
            {"grant_from_skills": ["deploy"]},
            active=("deploy",),
        )
        for command in (
            "git; rm -rf /",
            "git status; rm x",
            "git && x",
            "git status && x",
            "git || x",
            "git & x",
            "git | sh",
            "git $(x)",
            "git `x`",
            "git\nrm x",
            "git status\nrm x",
            "git\rrm",
            "git > /etc/x",
            "git < x",
            "git ${IFS}x",
            "gitx",
            "git-evil",
            "git/../sh",
            "git\\\nx",
            "git {a,b}",
            "(git)",
            " git",
            "GIT",
            "env git",
            "X=1 git",
            "git !x",
            "git\x00x",
            "git status\u2028rm x",
            "",
        )
    ),
]

BROKEN_RULES: list[tuple[Any, str]] = [
    ({"tool": LOAD, "skill_name": ""}, "skill_name ''"),
    ({"tool": LOAD, "skill_name": " "}, "skill_name ' '"),
    ({"tool": LOAD, "skill_name": 5}, "skill_name 5"),
    ({"tool": LOAD, "skill_name": ["a"]}, "skill_name ['a']"),
    ({"tool": LOAD, "skill_name": "."}, "skill_name '.'"),
    ({"tool": LOAD, "skill_name": ".."}, "skill_name '..'"),
    ({"tool": LOAD, "skill_name": "a/b"}, "without slashes"),
    ({"tool": LOAD, "skill_name": "a\\b"}, "without slashes"),
    ({"tool": LOAD, "skill_name": "a\n"}, "on one line"),
    ({"tool": LOAD, "skill_name": "a\u2028b"}, "on one line"),
    ({"tool": LOAD, "skill_name": "a\x7f"}, "on one line"),
    ({"tool": LOAD, "skillname": "deploy"}, "skillname"),
    ({"tool": LOAD, "path": ""}, "path ''"),
    ({"tool": LOAD, "path": 5}, "path 5"),
    ({"tool": LOAD, "path": ["/x"]}, "path ['/x']"),
    ({"tool": LOAD, "tree": ""}, "tree ''"),
    ({"tool": LOAD, "tree": "sha256:12"}, "64 hexadecimal digits"),
    ({"tool": LOAD, "tree": "sha256:" + "A" * 64}, "64 hexadecimal digits"),
    ({"tool": LOAD, "tree": "sha256:" + "a" * 64 + "\n"}, "64 hexadecimal digits"),
    ({"tool": "ACTIVATE_SKILL"}, "activate_skill"),
    ({"tool": "skill-load"}, "skill-load"),
    ({"tool": "skill_laod"}, "skill_laod"),
    ({"tool": "SKILL_LOAD"}, "SKILL_LOAD"),
    ({"tool": "*"}, "one tool"),
    ({"tool": "Bash(git:*)"}, "without patterns"),
    ({"tool": ""}, "a rule is"),
    ({"tool": 1}, "a rule is"),
    ({"skill_name": "deploy"}, "a rule is"),
    ({}, "a rule is"),
    (LOAD, "a rule is"),
    (None, "a rule is"),
]
"""Invalid rules, each with a text that the error must contain."""
