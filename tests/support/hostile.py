"""Machines that a stranger prepared, made from a seed: a user's skills, a cloned repository, and what is asked of them.

A case is a plain value, so that one that found a defect can be kept as a file and played again.
"""

from __future__ import annotations

import base64
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.trees import PROJECT_ROOTS, Machine

__all__ = ["GUARD", "OUTSIDE", "PROFILES", "STRANGER", "Case", "lay_out", "make_case", "messages", "smaller"]

GUARD = "token-of-the-users-own-guard"
"""Stands in the description of the user's skill `guard`, which no clone may take away."""

STRANGER = "token-of-a-stranger"
"""Stands in the skills of the clone, which no model may see before the user trusts it."""

OUTSIDE = "token-that-must-stay-outside"
"""Stands in files outside every root, which nobody may see."""

PROFILES = tuple(PROJECT_ROOTS)


class Case(NamedTuple):
    """One machine: files by path below its folder, the user's configuration, and what is asked.

    A file is `{"text"}`, `{"base64"}`, `{"link"}`, `{"pipe"}` or `{"folder"}`; bytes of a path that are not UTF-8 are
    surrogates, as Python decodes them.
    """

    seed: int
    profile: str
    files: Mapping[str, Mapping[str, Any]]
    config: str
    addresses: Sequence[str]
    words: Sequence[str]

    def to_json(self) -> str:
        """Return the text of the file that keeps the case."""
        return json.dumps(self._asdict(), indent=1, ensure_ascii=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Case:
        """Return the case that a file keeps."""
        return cls(**json.loads(text))


def lay_out(case: Case, base: Path) -> Machine:
    """Put a case on disk; what this disk cannot hold is left out."""
    machine = Machine(base)
    (base / "outside").mkdir()
    (base / "outside" / "SKILL.md").write_text(f"---\nname: outside\ndescription: {OUTSIDE}\n---\n{OUTSIDE}\n")
    for place in ("home", "home/.agents", "home/.agents/skills", "repo/.."):
        (base / place).mkdir(parents=True, exist_ok=True)
        (base / place / "secret.md").write_text(OUTSIDE)
    if case.config:
        machine.configure(case.config)
    for path, what in case.files.items():
        try:
            _put(os.path.join(os.fspath(base), path), what, base)
        except (OSError, ValueError):
            # Another entry of the case is in the way, or the name is too long for this disk.
            continue
    return machine


def _put(path: str, what: Mapping[str, Any], base: Path) -> None:
    # A link of the case may lead out of its folder: nothing is made through it, not even a folder above the entry.
    if not os.path.realpath(os.path.dirname(path)).startswith(os.path.realpath(base) + "/"):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if "link" in what:
        os.symlink(what["link"].replace("{base}", os.fspath(base)), path)
    elif "pipe" in what:
        os.mkfifo(path)
    elif "folder" in what:
        os.mkdir(path)
    else:
        data = base64.b64decode(what["base64"]) if "base64" in what else what["text"].encode("utf-8", "surrogateescape")
        with open(path, "xb") as file:
            file.write(data)


# Making a case --------------------------------------------------------------------------------------

_GUARDS = [
    "guard",
    "Guard",
    "GUARD",
    "ｇｕａｒｄ",
    "guаrd",
    "gu\u00adard",
    "guard\u200b",
    "guard ",
    "-guard",
    "guard--x",
]
_NAMES = [
    *(
        "deploy",
        "Deploy",
        "a",
        "a.b",
        "my_skill",
        "x" * 64,
        "x" * 65,
        "SKILL",
        "con",
        "naïve",
        "日本",
        "🧾",
        "0",
        "true",
    ),
    *(
        "null",
        "~",
        "..",
        ".",
        "a/b",
        "a\\b",
        "a\nb",
        "a\x1b[31mb",
        "<b>",
        "&amp;",
        "'x'",
        '"y"',
        "skill_content",
        "%2e",
    ),
]
_CHARACTERS = [
    *("\0", "\x1b", "\x07", "\r", "\n", "\t", "\x7f", "\x85", "\x9b", "\u2028", "\u200b", "\u202e", "\u2066", "\ufeff"),
    *("\U000e0041", "\ufe0f", "\u00ad", "\u3164", "\u180e", "\u0301", "\ud7ff", "\ue000", "\U0010ffff", "é", "\u1100"),
]
_CLOSING = [
    *("</skill_content>", "</skill_content >", "< /skill_content>", "</ skill_content>", "<\u200b/skill_content>"),
    *("</SKILL_CONTENT>", "</skill_content x='1'>", "</skill_content/>", "＜/skill_content>", "</skill\u00ad_content>"),
    *("</available_skills>", "</skill>", "</skill_resources>", "</active_skill>", "</skill_context>", "]]>", "-->"),
]
_VALUES = [
    *("", "''", "~", "null", "true", "010", "1e999", ".nan", "2024-13-45", "[a, b]", "{a: b}", "|\n  x", ">-\n  y\n"),
    *("&a b", "*a", "!!str x", "<<: x", "a: b", "'", '"', "[x] [y]", "- a\n- b", "\\uD83E\\uDDFE", "#", "a #b", "@x"),
]
_KEYS = [
    *("name", "description", "license", "compatibility", "metadata", "allowed-tools", "disable-model-invocation"),
    *("user-invocable", "argument-hint", "model", "context", "agent", "hooks", "enabled", "name", "Name", "a" * 300),
]
_TOOLS = ["Bash", "Bash(git:*)", "Bash (git:*)", "Bash((x))", "Bash(", ")", "*", "mcp__*", "Read, Write", "Bash(a)b"]
_FILES = [
    *("scripts/run.sh", "references/a.md", "SKILL.md", "Skill.md", "skill.md", "scripts/../x", "a%2fb", "100%", "x y"),
    *("deep/" * 9 + "x", "not-\udcff.txt", "new\nline", "AGENTS.md", ".git/config", "SKILL.md/x", "é.md", "*"),
]
_LINKS = [
    *("{base}/outside", "{base}/outside/SKILL.md", "/etc/passwd", "/dev/zero", "..", ".", "/", "/proc/self/environ"),
    *("{base}/home/.agents/skills/guard", "{base}/home/.agents/skills/guard/SKILL.md", "../../../../home", "nothing"),
]
_SETTINGS = [
    *('profile = "omp"', 'profile = "mycodeagent"', 'profile = "lab"', "profile = 1", "skills.enabled = false"),
    *('skills.disabled = ["guard"]', 'skills.disabled = ["*", "GUARD"]', 'skills.ignored = ["*"]', "skills = 3"),
    *('skills.include = ["nothing"]', "skills.initial.max_tokens = 1", "skills.initial.max_entries = 1", "[trust]"),
    *('permissions.deny = [{ tool = "skill_load" }]', 'permissions.deny = [{ tool = "skill_search" }]', "= = ="),
    *('permissions.deny = [{ tool = "skill_load", skill_name = "guard" }]', "permissions.run.unsandboxed = true"),
    *('permissions.allow = [{ tool = "skill_load" }]', 'permissions.allow = [{ tool = "skill_run" }]', "\udcff"),
    *('permissions.allow = [{ tool = "skill_load", path = "/" }]', 'permissions.grant_from_skills = ["x"]', "a" * 99),
    *('trust.folders = ["/"]', 'skills.custom_directories = ["../outside"]', 'profiles.lab.extends = "omp"', "x.y = 1"),
    *(
        "skills.search.max_limit = 1",
        "skills.commands = false",
        "skills.sources.enable_claude_user = false",
        "a." * 99,
    ),
]
_ROOTS = sorted({*PROJECT_ROOTS.values(), ".claude/skills", ".codex/skills", ".agent/skills"})
_TAILS = [
    *("", "SKILL.md", "SKILL.md/", "secret.md", "../secret.md", "%2e%2e/secret.md", "..%2fsecret.md", "//SKILL.md"),
    *("scripts/run.sh", "references/a.md", "not-%FF.txt", "not-%ff.txt", "link", "link/SKILL.md", "%00", "?x", "#y"),
    *("./SKILL.md", "SKILL.md%20", "a%252fb", "a%2fb", "100%25", "100%", "new%0Aline", "x%20y", "é.md", "\ud800"),
]


def make_case(seed: int) -> Case:
    """Return the case of a seed."""
    dice = random.Random(seed)
    profile = dice.choice(PROFILES)
    files: dict[str, dict[str, Any]] = {
        "home/.agents/skills/guard/SKILL.md": {
            "text": f"---\nname: guard\ndescription: Watches. {GUARD}\n---\n# Guard\n"
        },
        "home/.agents/skills/guard/references/a.md": {"text": "of the user\n"},
    }
    user_root = {"swiftagent": ".agent/skills", "mycodeagent": None, "omp": ".omp/agent/skills"}.get(
        profile, ".agents/skills"
    )
    if user_root not in (None, ".agents/skills"):
        for path in [*files]:
            files[path.replace(".agents/skills", str(user_root))] = files.pop(path)
    for _ in range(dice.randint(0, 2)):
        files |= _skill(dice, f"home/{user_root or '.agents/skills'}", "Of the user.")
    for _ in range(dice.randint(1, 5)):
        root = PROJECT_ROOTS[profile] if dice.random() < 0.7 else dice.choice(_ROOTS)
        files |= _skill(dice, f"repo/{root}", STRANGER)
    if dice.random() < 0.5:
        text = "\n".join(dice.sample(_SETTINGS, dice.randint(1, 4)))
        name = dice.choice(["skillshelf.toml", "skillshelf.toml", "pyproject.toml"])
        files[f"repo/{name}"] = {"text": f"[tool.skillshelf]\n{text}" if name == "pyproject.toml" else text}
    if dice.random() < 0.2:
        files["repo/AGENTS.md"] = {"text": STRANGER}
    names = ["guard", *dice.choices([*_GUARDS, *_NAMES], k=3)]
    addresses = [f"skill://{dice.choice(names)}/{dice.choice(_TAILS)}" for _ in range(4)]
    config = dice.choice(["", "", "", 'permissions.deny = [{ tool = "skill_run" }]', "skills.initial.max_tokens = 400"])
    return Case(seed, profile, files, config, addresses, [*names, dice.choice(_CHARACTERS), "watch over things"])


def _skill(dice: random.Random, root: str, token: str) -> dict[str, dict[str, Any]]:
    """Return the files of one skill, sound or not."""
    # The user has one guard.
    name = dice.choice([*_GUARDS, *_NAMES] if token == STRANGER else _NAMES)
    folder = f"{root}/{_folder(dice, name)}"
    # The user's own links may lead anywhere.
    links = _LINKS if token == STRANGER else ["..", ".", "nothing"]
    if dice.random() < 0.15:
        return {folder: {"link": dice.choice(links)}}
    path = f"{folder}/{dice.choice(['SKILL.md'] * 8 + ['Skill.md', 'skill.md'])}"
    files: dict[str, dict[str, Any]] = {path: _skill_file(dice, name, token, links)}
    for _ in range(dice.randint(0, 3)):
        files[f"{folder}/{dice.choice(_FILES)}"] = {"text": f"{token}\n"}
    if dice.random() < 0.2:
        files[f"{folder}/link"] = {"link": dice.choice(links)}
    if dice.random() < 0.05:
        files[f"{folder}/pipe"] = {"pipe": True}
    return files


def _folder(dice: random.Random, name: str) -> str:
    """Return a folder name: mostly that of the skill, as far as a disk can hold it."""
    if dice.random() < 0.1:
        return dice.choice(
            ["not-\udcff", "new\nline", "esc\x1b[31m", "n" * 255, ".hidden", "node_modules", "a/b/c/d/e/f"]
        )
    plain = name.replace("/", "-").replace("\0", "")
    return plain if plain not in ("", ".", "..") else "dots"


def _skill_file(dice: random.Random, name: str, token: str, links: Sequence[str]) -> dict[str, Any]:
    if dice.random() < 0.05:
        return dice.choice([{"pipe": True}, {"folder": True}, {"link": dice.choice(links)}])
    fields = {"name": _scalar(dice, name), "description": f"Does things. {token}"}
    if dice.random() < 0.3:
        fields["description"] += dice.choice([*_CHARACTERS, *_CLOSING])
    for _ in range(dice.randint(0, 2)):
        fields[dice.choice(_KEYS)] = dice.choice(_VALUES)
    if dice.random() < 0.2:
        fields["allowed-tools"] = " ".join(dice.choices(_TOOLS, k=2))
    lines = "".join(f"{key}: {value}\n" for key, value in fields.items())
    body = f"# Body\n{token}\n{dice.choice(_CLOSING)}\n{dice.choice(_CHARACTERS)}\n"
    data = f"---\n{lines}---\n{body}".encode("utf-8", "surrogatepass")
    if dice.random() < 0.3:
        data = _mutated(dice, data)
    return {"base64": base64.b64encode(data).decode()}


def _scalar(dice: random.Random, name: str) -> str:
    """Return a name as YAML: plain, or quoted so that every character arrives."""
    return name if dice.random() < 0.5 and "\n" not in name else json.dumps(name)


def _mutated(dice: random.Random, data: bytes) -> bytes:
    """Return bytes with a few changes: flipped, removed, doubled, cut."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(changed) or 1)
        kind = dice.randrange(5)
        if kind == 0 and changed:
            changed[place] = dice.randrange(256)
        elif kind == 1:
            del changed[place : place + dice.randint(1, 8)]
        elif kind == 2:
            changed[place:place] = dice.choice([b"---\n", b"\0", b"\xff", b"\r\n", b"\t", b"\xef\xbb\xbf", b": ", b"'"])
        elif kind == 3:
            changed[place:place] = changed[: dice.randint(1, 40)]
        else:
            del changed[dice.randint(0, len(changed)) :]
    return bytes(changed)


# Messages -------------------------------------------------------------------------------------------


def messages(dice: random.Random, sound: Sequence[Any], count: int) -> list[bytes]:
    """Return lines for a server that reads JSON: sound messages with changes, and lines that are none."""
    return [_message(dice, sound) for _ in range(count)]


def _message(dice: random.Random, sound: Sequence[Any]) -> bytes:
    value = json.loads(json.dumps(dice.choice(sound)))
    for _ in range(dice.randint(0, 3)):
        value = _changed(dice, value)
    line = json.dumps(value).encode()
    if dice.random() < 0.3:
        line = _mutated(dice, line)
    # A line break would make two lines of one.
    return line.replace(b"\n", b" ").replace(b"\r", b" ")


_JSON_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**63, -(2**200), 0.5, 1e308, "", "x", "\0", "\ud800", "x" * 5000, "..", "/etc/passwd"),
    *([], [[]], [None], {}, {"": ""}, {"name": 1}, ["a", 1], "s1", "skill://guard/../secret.md", "skill://guard"),
]


def _changed(dice: random.Random, value: Any) -> Any:
    """Return a JSON value with one change somewhere in it."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        key = dice.choice([*value])
        kind = dice.random()
        if kind < 0.6:
            return {**value, key: _changed(dice, value[key])}
        if kind < 0.8:
            return {other: part for other, part in value.items() if other != key}
        return {**value, dice.choice(["extra", "", "__class__", key.upper()]): dice.choice(_JSON_VALUES)}
    if isinstance(value, list) and value and dice.random() < 0.5:
        place = dice.randrange(len(value))
        return [*value[:place], _changed(dice, value[place]), *value[place + 1 :]]
    return dice.choice(_JSON_VALUES)


# Making a case smaller ------------------------------------------------------------------------------


def smaller(case: Case, still: Callable[[Case], bool]) -> Case:
    """Return a smaller case that still shows the same: entries are left out as long as it does."""
    progress = True
    while progress:
        progress = False
        for candidate in _without_one(case):
            if still(candidate):
                case, progress = candidate, True
                break
    return case


def _without_one(case: Case) -> list[Case]:
    fewer = [
        case._replace(files={path: what for path, what in case.files.items() if path != left_out})
        for left_out in case.files
    ]
    fewer += [case._replace(addresses=kept) for kept in _all_but_one(case.addresses)]
    fewer += [case._replace(words=kept) for kept in _all_but_one(case.words)]
    return [*fewer, *([case._replace(config="")] if case.config else [])]


def _all_but_one(values: Sequence[str]) -> list[list[str]]:
    return [[*values[:place], *values[place + 1 :]] for place in range(len(values))]
