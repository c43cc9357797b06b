"""Every disagreement between hosts as a tree, and the verdict each host must get.

A row of letters stands for the hosts in the order of `COLUMNS`. `Y` listed and told to the model, `H` listed but
kept from the model, `-` missing and nothing said, `e` missing and the host says so, `l` missing and only a log
says so, `?` not established or undefined in the host itself. Three letters with slashes are the roots `.omp`,
`.claude` and `.agents` of the one host that treats them differently.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from support.trees import Machine, write_skill

COLUMNS = (
    *("codex", "claude-code", "opencode", "gemini-cli", "goose", "pi", "oh-my-pi", "copilot-cli", "codelia"),
    *("openskills", "vscode", "cursor", "kiro"),
    *("amp", "kilo", "grok", "qoder", "qwen-code", "kimi-code", "cline"),
)

ROOTS = {"claude-code": ".claude/skills", "openskills": ".claude/skills", "kiro": ".kiro/skills"}
"""The root of the files that test a text; `.agents/skills` for all other hosts."""

BODY = "# Probe\n\nDo the thing.\n"
FINE = "name: probe-x\ndescription: Probes things. Use when asked to probe.\n"


def skill(frontmatter: str = FINE, body: str = BODY) -> str:
    """A SKILL.md with these fields."""
    return f"---\n{frontmatter}---\n{body}"


def trust(machine: Machine, cwd: Path) -> None:
    """Let the hosts that ask for it trust the folder."""
    grok = machine.home / ".grok/trusted_folders.toml"
    grok.parent.mkdir(parents=True, exist_ok=True)
    # This one trusts the repository, which may be above.
    folders = [folder for folder in (cwd, *cwd.parents) if folder.is_relative_to(machine.base)]
    folders.append(machine.base / "main")
    grok.write_text("".join(f"[folders.{json.dumps(str(folder))}]\ntrusted = true\n" for folder in folders))
    for file, value in {".gemini/trustedFolders.json": "TRUST_FOLDER", ".pi/agent/trust.json": True}.items():
        path = machine.home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({str(cwd): value}))


class TextCase(NamedTuple):
    """One SKILL.md in a folder of a root that each host reads."""

    number: str
    title: str
    text: str | bytes
    expected: str
    folder: str = "probe-x"
    file: str = "SKILL.md"


LONG_NAME = "probe-" + "x" * 64

TEXT_CASES = (
    TextCase("00", "nothing unusual", skill(), "Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y"),
    TextCase("05", "category folder", skill(), "Y - Y - Y Y - Y Y - - Y ? Y Y Y Y - Y -", folder="ops/probe-x"),
    TextCase("05b", "six levels", skill(), "Y - Y - Y Y - Y Y - - Y ? - Y Y - - Y -", folder="a/b/c/d/e/probe-x"),
    TextCase("05b", "seven levels", skill(), "- - Y - Y Y - Y Y - - Y ? - Y - - - Y -", folder="a/b/c/d/e/f/probe-x"),
    TextCase("05c", "SKILL.md in the root itself", skill(), "Y - Y Y Y Y - Y e - - ? ? Y Y - - - - Y", folder="."),
    TextCase("06", "no name", skill("description: Probes.\n"), "Y Y - - l Y Y Y e Y Y ? ? e - Y Y - - Y"),
    TextCase(
        *("07", "another name than the folder", skill("name: pdf-probe\ndescription: Probes.\n")),
        *("Y Y Y Y Y Y Y Y e Y Y ? ? Y Y Y Y Y Y Y", "pdf-tools-probe"),
    ),
    TextCase(
        *("08", "unquoted colon", skill("name: probe-x\ndescription: Use when: the user asks\n")),
        "Y Y Y Y l e Y e Y Y ? ? ? e Y Y Y Y - -",
    ),
    TextCase(
        "09",
        "two brackets",
        skill(FINE + "argument-hint: [file] [--fast]\n"),
        "Y Y - Y l e Y e Y Y ? ? ? e - Y Y Y - -",
    ),
    TextCase("09b", "a list", skill(FINE + "argument-hint: [x]\n"), "Y Y Y Y Y Y Y e Y Y Y Y Y Y Y Y Y Y Y Y"),
    TextCase("10", "byte order mark", b"\xef\xbb\xbf" + skill().encode(), "e Y Y - Y Y Y Y e Y ? ? ? Y Y ? ? Y Y Y"),
    TextCase("10b", "CRLF", skill().replace("\n", "\r\n"), "Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y"),
    TextCase("10c", "Latin-1 in the body", skill().encode() + b"caf\xe9\n", "e Y Y Y l Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y"),
    TextCase(
        *("10d", "Latin-1 far down", skill().encode() + b"line\n" * 2000 + b"caf\xe9\n"),
        "e Y Y Y l Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y",
    ),
    TextCase("13", "no description", skill("name: probe-x\n"), "e Y H - Y e -/Y/Y Y e Y Y ? ? e ? Y Y - - Y"),
    TextCase(
        *("14", "description of 1,300", skill(f"name: probe-x\ndescription: {'d' * 1300}\n")),
        "Y Y Y Y Y Y Y e e Y Y ? ? Y Y Y Y Y Y Y",
    ),
    TextCase(
        *("15", "name of 70", skill(f"name: {LONG_NAME}\ndescription: Probes.\n")),
        *("e Y Y Y Y Y Y e e Y Y ? ? e Y - Y Y Y Y", LONG_NAME),
    ),
    TextCase(
        "17",
        "disable-model-invocation",
        skill(FINE + "disable-model-invocation: true\n"),
        "Y H Y Y Y H H H Y Y H H ? ? ? ? ? H H Y",
    ),
    TextCase(
        "19",
        "--- inside",
        skill("name: probe-x\ndescription: Convert A --- B\n"),
        "Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y",
    ),
    TextCase(
        "20a", "blank after the fence", "--- \n" + FINE + "---\n" + BODY, "Y Y Y - Y Y Y Y e Y ? ? ? Y Y Y ? - Y Y"
    ),
    TextCase("20b", "comment above", "<!-- licence -->\n" + skill(), "e Y - - Y e -/Y/Y e e Y ? ? ? e - ? Y - - Y"),
    TextCase("20c", "blank line above", "\n" + skill(), "e Y - - Y e -/Y/Y e e Y ? ? ? e - ? Y - - Y"),
    TextCase("21", "folder with a dot", skill(), "- Y Y - Y - - - e Y Y - ? Y Y Y Y Y ? Y", folder=".probe-dot"),
    TextCase("21", "in .drafts", skill(), "- - Y - Y - - - Y - - - ? Y Y Y Y - ? -", folder=".drafts/probe-x"),
    TextCase(
        "22",
        "two deep in node_modules",
        skill(),
        "Y - Y - Y - - Y Y - - ? ? - Y Y - - - -",
        folder="node_modules/probe-x",
    ),
    TextCase("22b", "called node_modules", skill(), "Y Y Y - Y - Y Y e Y Y ? ? - Y Y - Y - Y", folder="node_modules"),
    TextCase(
        "26",
        "name below metadata",
        skill(FINE + "metadata:\n  name: Jane\n"),
        "Y Y Y Y Y Y Y Y e Y Y Y Y Y Y Y Y Y Y Y",
    ),
    TextCase(
        *("27", "folded description", skill("name: probe-x\ndescription: >-\n  Probes\n  things.\n")),
        "Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y",
    ),
    TextCase("31", "skill.md", skill(), "- - - - - Y - - - - - - - ? - - - - ? -", file="skill.md"),
    TextCase(
        "32", "a number as name", skill("name: 123\ndescription: Probes.\n"), "Y Y - Y Y Y Y e e Y ? ? ? Y - Y Y Y - -"
    ),
    TextCase(
        *("33", "a list as description", skill("name: probe-x\ndescription: [a, b]\n")),
        "e Y - Y l e Y e Y Y ? ? ? Y - Y Y ? - -",
    ),
    TextCase(
        "34",
        "blank in the name",
        skill("name: Probe Tool\ndescription: Probes.\n"),
        "Y Y Y Y Y Y Y Y e Y Y ? ? e Y Y Y - Y Y",
    ),
)


class PlaceCase(NamedTuple):
    """A tree, and for each place in it what the hosts make of the skill there."""

    number: str
    title: str
    build: Callable[[Machine], None]
    expected: dict[str, str]
    cwd: str = "repo"
    trusted: bool = True


def at(*places: str) -> Callable[[Machine], None]:
    """Skills called probe-x in these roots."""

    def build(machine: Machine) -> None:
        for place in places:
            write_skill(machine.base / place, "probe-x", skill(body=f"# {place}\n"))

    return build


def without_git(*places: str) -> Callable[[Machine], None]:
    """The same, where there is no repository."""

    def build(machine: Machine) -> None:
        (machine.repo / ".git").rmdir()
        at(*places)(machine)

    return build


def linked_folder(root: str, target: str) -> Callable[[Machine], None]:
    """A skill that is a link to a folder elsewhere."""

    def build(machine: Machine) -> None:
        write_skill(machine.base / target, "probe-x", skill())
        (machine.repo / root).mkdir(parents=True)
        (machine.repo / root / "probe-x").symlink_to(machine.base / target / "probe-x")

    return build


def linked_file(root: str) -> Callable[[Machine], None]:
    """A skill whose SKILL.md is a link."""

    def build(machine: Machine) -> None:
        path = machine.base / "store/probe.md"
        path.parent.mkdir()
        path.write_text(skill())
        (machine.repo / root / "probe-x").mkdir(parents=True)
        (machine.repo / root / "probe-x/SKILL.md").symlink_to(path)

    return build


def leading_nowhere(root: str) -> Callable[[Machine], None]:
    """A skill beside a folder and a SKILL.md that are links to nothing."""

    def build(machine: Machine) -> None:
        at(f"repo/{root}")(machine)
        (machine.repo / root / "gone-folder").symlink_to("../../gone/folder")
        (machine.repo / root / "gone-file").mkdir()
        (machine.repo / root / "gone-file/SKILL.md").symlink_to("../../../gone/SKILL.md")

    return build


def inner_skills(machine: Machine) -> None:
    """A skill with another one in it."""
    root = machine.repo / ".agents/skills"
    write_skill(root, "outer")
    write_skill(root / "outer/sub", "probe-x", skill())


def plugin(machine: Machine) -> None:
    """A repository that is a plugin."""
    at("repo/.agents/skills")(machine)
    (machine.repo / ".claude-plugin").mkdir()
    (machine.repo / ".claude-plugin/plugin.json").write_text('{"name": "acme"}')


def recipe(machine: Machine) -> None:
    """A recipe beside a skill of the same name."""
    at("repo/.agents/skills")(machine)
    (machine.repo / "probe-x.yaml").write_text("version: 1.0.0\ntitle: probe-x\ndescription: d\nprompt: p\n")


def two_folders(machine: Machine) -> None:
    """Two folders, one name."""
    root = machine.repo / ".agents/skills"
    write_skill(root, "probe-x", skill())
    write_skill(root, "probe-x", skill(body="# second\n"), folder="probe-second")


def ignored_by_git(machine: Machine) -> None:
    """A skill that the repository ignores."""
    at("repo/.agents/skills")(machine)
    (machine.repo / ".gitignore").write_text(".agents/\n")


def flat_files(machine: Machine) -> None:
    """Markdown files beside and in folders that have no SKILL.md."""
    root = machine.repo / ".agents/skills"
    (root / "inner").mkdir(parents=True)
    (root / "README.md").write_text("# Skills\n")
    (root / "probe-flat.md").write_text(skill())
    (root / "inner/probe-inner.md").write_text(skill())


AGENTS, CLAUDE = "repo/.agents/skills/probe-x", "repo/.claude/skills/probe-x"

PLACE_CASES = (
    PlaceCase("01", ".claude only", at("repo/.claude/skills"), {CLAUDE: "- Y Y - Y - Y Y - Y Y Y - Y Y Y - - - -"}),
    PlaceCase("02", ".agents only", at("repo/.agents/skills"), {AGENTS: "Y - Y Y Y Y Y Y Y - Y Y - Y Y Y Y Y Y Y"}),
    PlaceCase(
        *("02b", ".agent only", at("repo/.agent/skills")),
        {"repo/.agent/skills/probe-x": "- - - - - - Y - - Y - - - - - - - - - -"},
    ),
    PlaceCase(
        *("03", "below the root: .agents", at("repo/.agents/skills")),
        *({AGENTS: "Y - Y - - Y Y Y Y - - ? - Y Y Y - - Y Y"}, "repo/packages/api"),
    ),
    PlaceCase(
        *("03", "below the root: .claude", at("repo/.claude/skills")),
        *({CLAUDE: "- Y Y - - - Y Y - - - ? - Y Y Y - - - -"}, "repo/packages/api"),
    ),
    PlaceCase(
        *("03", "below the root: .omp", at("repo/.omp/skills")),
        *({"repo/.omp/skills/probe-x": "- - - - - - Y - - - - - - - - - - - - -"}, "repo/packages/api"),
    ),
    PlaceCase(
        *("03n", "above the skill", at("repo/packages/api/.agents/skills")),
        {"repo/packages/api/.agents/skills/probe-x": "- - - - - - - - - - - ? - - - - - - - -"},
    ),
    PlaceCase(
        *("04", "no git: .agents", without_git("repo/.agents/skills")),
        *({AGENTS: "- - Y - - Y Y Y - - - - - Y - - - - - -"}, "repo/packages/api"),
    ),
    PlaceCase(
        *("04", "no git: .claude", without_git("repo/.claude/skills")),
        *({CLAUDE: "- Y Y - - - Y Y - - - - - Y - - - - - -"}, "repo/packages/api"),
    ),
    PlaceCase(
        *("05d", "category below .claude", at("repo/.claude/skills/ops")),
        {"repo/.claude/skills/ops/probe-x": "- - Y - Y - - Y - - - Y - Y Y Y - - - -"},
    ),
    PlaceCase(
        *("11", "linked folder", linked_folder(".agents/skills", "repo/store")),
        {AGENTS: "Y - Y Y Y Y Y Y - - Y ? - Y Y Y Y Y Y Y"},
    ),
    PlaceCase(
        *("11b", "linked folder outside", linked_folder(".agents/skills", "elsewhere")),
        {AGENTS: "Y - Y Y Y Y Y Y - - Y ? - Y Y Y Y Y Y Y"},
    ),
    PlaceCase(
        "12", "linked SKILL.md", linked_file(".agents/skills"), {AGENTS: "- - Y Y Y Y Y Y - - ? ? - Y Y Y Y Y Y Y"}
    ),
    PlaceCase(
        "12b", "linked in .claude", linked_file(".claude/skills"), {CLAUDE: "- Y Y - Y - Y Y - Y ? ? - Y Y Y - - - -"}
    ),
    PlaceCase(
        *("16", "personal and project: .agents", at("repo/.agents/skills", "home/.agents/skills")),
        {
            "home/.agents/skills/probe-x": "Y - ? e - e - - Y - l ? - Y l - Y - - ?",
            AGENTS: "Y - ? Y Y Y Y Y Y - Y ? - - Y Y e Y Y ?",
        },
    ),
    PlaceCase(
        *("16", "personal and project: .claude", at("repo/.claude/skills", "home/.claude/skills")),
        {
            "home/.claude/skills/probe-x": "- Y ? - - - - - - - l ? - - l - - - - -",
            CLAUDE: "- - ? - Y - Y Y - Y Y ? - Y Y Y - - - -",
        },
    ),
    PlaceCase(
        *("18", "no trust given", at("repo/.agents/skills")),
        *({AGENTS: "Y - Y - Y - Y Y Y - Y Y - Y Y - Y Y Y Y"}, "repo", False),
    ),
    PlaceCase(
        *("18c", "personal, no trust given", at("home/.agents/skills")),
        *({"home/.agents/skills/probe-x": "Y - Y Y Y Y Y Y Y - Y Y - Y Y Y Y Y Y Y"}, "repo", False),
    ),
    PlaceCase(
        *("21", ".drafts of its own folder", at("repo/.opencode/skills/.drafts")),
        {"repo/.opencode/skills/.drafts/probe-x": "- - - - - - - - - - - - - - - - - - - -"},
    ),
    PlaceCase(
        *("22", "a skill inside a skill", inner_skills),
        {"repo/.agents/skills/outer/sub/probe-x": "Y - Y - Y - - - Y - - ? - Y Y Y - - - -"},
    ),
    PlaceCase("24", "a plugin", plugin, {AGENTS: "Y - Y Y Y Y Y Y Y - Y Y - Y Y Y Y Y Y Y"}),
    PlaceCase("25", "a recipe of the same name", recipe, {AGENTS: "Y - Y Y Y Y Y Y Y - Y Y - Y Y Y Y Y Y Y"}),
    PlaceCase(
        *("30", "~/.claude and ~/.codex", at("home/.claude/skills", "home/.codex/skills")),
        {
            "home/.claude/skills/probe-x": "- Y Y - Y - - - - Y Y ? - Y Y Y - - - -",
            "home/.codex/skills/probe-x": "Y - - - - - - - - - - ? - - - - - - - -",
        },
    ),
    PlaceCase("35", "ignored by git", ignored_by_git, {AGENTS: "Y - Y Y Y Y Y Y Y - Y Y - Y Y Y Y Y Y Y"}),
    PlaceCase(
        *("36", "two folders, one name", two_folders),
        {
            "repo/.agents/skills/probe-second": "Y - ? Y ? Y Y Y e - Y ? - ? ? Y Y ? ? ?",
            AGENTS: "Y - ? e ? e - - Y - Y Y - ? ? Y Y ? ? ?",
        },
    ),
    PlaceCase(
        *("37", "links to nothing", leading_nowhere(".agents/skills")),
        {
            AGENTS: "Y - Y Y Y Y Y Y Y - Y Y - Y Y Y Y Y Y Y",
            "repo/.agents/skills/gone-folder": "- - - - - - - - - - - - - - - - - - - -",
            "repo/.agents/skills/gone-file": "- - - - - - - - - - - - - - - - - - - -",
        },
    ),
    PlaceCase(
        *("37b", "links to nothing in .claude", leading_nowhere(".claude/skills")),
        {
            CLAUDE: "- Y Y - Y - Y Y - Y Y Y - Y Y Y - - - -",
            "repo/.claude/skills/gone-folder": "- - - - - - - - - - - - - - - - - - - -",
            "repo/.claude/skills/gone-file": "- - - - - - - - - - - - - - - - - - - -",
        },
    ),
)
