"""Trees for a host, drawn at random from places, texts and settings: the same seed gives the same trees.

Every skill has a mark, a word that occurs in its description and its text and nowhere else, so that a prompt shows
which of several files a host took.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from skillshelf.config.hosts import HOSTS
from skillshelf.core.limits import CONFIG_BYTES
from support.host_cases import trust
from support.host_setting_cases import SWITCH_CASES, TRUST_CASES
from support.trees import Machine

__all__ = [
    "LAYOUTS",
    "PLACES",
    "SETTINGS",
    "TEXTS",
    "Drawn",
    "Put",
    "draw_trees",
    "every_place",
    "every_text",
    "many_skills",
    "one_name_everywhere",
    "put_tree",
]


class Put(NamedTuple):
    """A file or a link, by its path below the base; BASE and CWD in a text stand for folders."""

    path: str
    text: bytes = b""
    link: str | None = None


class Drawn(NamedTuple):
    """One tree: what lies where, the skills in it, the working directory and the variables."""

    title: str
    puts: tuple[Put, ...]
    skills: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = MappingProxyType({})
    trusted: bool = True
    kinds: frozenset[str] = frozenset()


# Layouts: where the repository and the working directory are ---------------------------------------


class Layout(NamedTuple):
    """The folder of a project, the working directory, and what marks the project as a repository."""

    project: str
    cwd: str
    marks: tuple[str, ...] = ()
    is_worktree: bool = False


LAYOUTS: Mapping[str, Layout] = {
    "repository": Layout("repo", "repo", ("repo",)),
    "package": Layout("repo", "repo/packages/api", ("repo",)),
    "no git": Layout("repo", "repo"),
    "no git, below": Layout("repo", "repo/packages/api"),
    "worktree": Layout("repo", "repo/packages/api", is_worktree=True),
    "in home": Layout("home/work/shop", "home/work/shop", ("home/work/shop",)),
    "no git, in home": Layout("home/work/shop", "home/work/shop/src"),
    "home is a repository": Layout("home/work/shop", "home/work/shop", ("home",)),
    "in home itself": Layout("home", "home"),
}


def _repository(folder: str) -> Iterator[Put]:
    """Yield the least that Git takes for a repository."""
    yield Put(f"{folder}/.git/HEAD", b"ref: refs/heads/main\n")
    yield Put(f"{folder}/.git/config", b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    yield Put(f"{folder}/.git/objects/info/.keep")
    yield Put(f"{folder}/.git/refs/heads/.keep")


def _layout(layout: Layout) -> Iterator[Put]:
    for folder in layout.marks:
        yield from _repository(folder)
    if layout.is_worktree:
        yield from _repository("main")
        yield Put("repo/.git", b"gitdir: BASE/main/.git/worktrees/repo\n")
        for name, text in {"HEAD": "ref: refs/heads/side", "commondir": "../..", "gitdir": "BASE/repo/.git"}.items():
            yield Put(f"main/.git/worktrees/repo/{name}", f"{text}\n".encode())


# Texts --------------------------------------------------------------------------------------------

Text = Callable[[str, str], bytes]
"""A name and a mark to the text of a SKILL.md."""


def _text(fields: str, *, before: str = "", opening: str = "---", closing: str = "---") -> Text:
    """Return a text with these fields, in which NAME and SAYS stand for the name and the description."""

    def write(name: str, mark: str) -> bytes:
        says = f"Does {mark} things. Use when {mark} is asked for."
        filled = fields.replace("NAME", name).replace("SAYS", says).replace("MARK", mark)
        ending = f"{closing}\n" if closing else ""
        return f"{before}{opening}\n{filled}{ending}# Title of {mark}\n\nFirst paragraph of {mark}.\n".encode()

    return write


def _changed(change: Callable[[bytes], bytes]) -> Text:
    plain = _text(_FINE)
    return lambda name, mark: change(plain(name, mark))


_FINE = "name: NAME\ndescription: SAYS\n"

TEXTS: Mapping[str, Text] = {
    "plain": _text(_FINE),
    "no name": _text("description: SAYS\n"),
    "other name": _text("name: NAME-other\ndescription: SAYS\n"),
    "blank in the name": _text("name: NAME Big Tool\ndescription: SAYS\n"),
    "number as name": _text("name: 1234\ndescription: SAYS\n"),
    "decimal as name": _text("name: 1.5\ndescription: SAYS\n"),
    "name of 70": _text(f"name: NAME-{'x' * 64}\ndescription: SAYS\n"),
    "name with an accent": _text("name: NAME-é\ndescription: SAYS\n"),
    "name with a first hyphen": _text("name: -NAME\ndescription: SAYS\n"),
    "name with an underscore": _text("name: NAME_x\ndescription: SAYS\n"),
    "name with a colon": _text("name: 'NAME: x'\ndescription: SAYS\n"),
    "name with a slash": _text("name: a/NAME\ndescription: SAYS\n"),
    "empty name": _text('name: ""\ndescription: SAYS\n'),
    "no description": _text("name: NAME\n"),
    "empty description": _text('name: NAME\ndescription: ""\n'),
    "null description": _text("name: NAME\ndescription: ~\n"),
    "list as description": _text("name: NAME\ndescription: [MARK, b]\n"),
    "number as description": _text("name: NAME\ndescription: 42\n"),
    "description of 1,300": _text(f"name: NAME\ndescription: SAYS {'d' * 1300}\n"),
    "folded description": _text("name: NAME\ndescription: >-\n  Does MARK\n  things.\n"),
    "quoted description": _text('name: NAME\ndescription: "SAYS"\n'),
    "hyphens in the description": _text("name: NAME\ndescription: Does MARK --- or not\n"),
    "unquoted colon": _text("name: NAME\ndescription: Use when: MARK is asked for\n"),
    "star before the description": _text("name: NAME\ndescription: * MARK\n"),
    "two descriptions": _text("name: NAME\ndescription: SAYS\ndescription: second\n"),
    "two brackets": _text(_FINE + "argument-hint: [file] [--fast]\n"),
    "list as hint": _text(_FINE + "argument-hint: [x]\n"),
    "metadata that is text": _text(_FINE + "metadata: none\n"),
    "metadata with a name": _text(_FINE + "metadata:\n  name: Jane\n"),
    "tab below metadata": _text(_FINE + "metadata:\n\tauthor: me\n"),
    "table of tools": _text(_FINE + "allowed-tools: {Bash: true}\n"),
    "star as tools": _text(_FINE + "allowed-tools: *\n"),
    "kept from models": _text(_FINE + "disable-model-invocation: true\n"),
    "kept from models, as text": _text(_FINE + 'disable-model-invocation: "true"\n'),
    "kept from models, yes": _text(_FINE + "disable-model-invocation: yes\n"),
    "not kept from models": _text(_FINE + "disable-model-invocation: false\n"),
    "kept from people": _text(_FINE + "user-invocable: false\n"),
    "kept from people, as text": _text(_FINE + 'user-invocable: "no"\n'),
    "hidden": _text(_FINE + "hide: true\n"),
    "when to use": _text(_FINE + "when_to_use: Also for others.\n"),
    "paths": _text(_FINE + "paths: '*.py'\n"),
    "indented keys": _text("  name: NAME\n  description: SAYS\n"),
    "comment above": _text(_FINE, before="<!-- licence -->\n"),
    "blank line above": _text(_FINE, before="\n"),
    "blank after the fence": _text(_FINE, opening="--- "),
    "four hyphens": _text(_FINE, opening="----"),
    "no closing fence": _text(_FINE, closing=""),
    "dots as closing fence": _text(_FINE, closing="..."),
    "no frontmatter": lambda name, mark: f"# Title of {mark}\n\nFirst paragraph of {mark}.\n".encode(),
    "empty": lambda name, mark: b"",
    "byte order mark": _changed(lambda text: b"\xef\xbb\xbf" + text),
    "CRLF": _changed(lambda text: text.replace(b"\n", b"\r\n")),
    "CR": _changed(lambda text: text.replace(b"\n", b"\r")),
    "Latin-1 in the body": _changed(lambda text: text + b"caf\xe9\n"),
}


# Places in a root ---------------------------------------------------------------------------------


class Slot(NamedTuple):
    """The place of one skill: the folder of a root, the name of the skill, its text, and another skill's."""

    root: str
    name: str
    text: bytes
    plain: bytes


Place = Callable[[Slot], list[Put]]
"""A slot to what is put on disk; the first one is the SKILL.md."""


def _at(folder: str, file: str = "SKILL.md") -> Place:
    return lambda slot: [Put(f"{slot.root}/{folder.replace('NAME', slot.name)}/{file}".replace("/./", "/"), slot.text)]


def _linked_folder(target: str) -> Place:
    def put(slot: Slot) -> list[Put]:
        real = f"{target}/{slot.name}"
        link = Put(f"{slot.root}/{slot.name}", link=real)
        return [Put(f"{slot.root}/{slot.name}/SKILL.md", link=""), Put(f"{real}/SKILL.md", slot.text), link]

    return put


def _linked_file(slot: Slot) -> list[Put]:
    real = f"store/{slot.name}.md"
    return [Put(f"{slot.root}/{slot.name}/SKILL.md", link=real), Put(real, slot.text)]


def _linked_root(slot: Slot) -> list[Put]:
    real = f"store/roots/{slot.name}"
    link = Put(slot.root, link=real)
    return [
        Put(f"{slot.root}/{slot.name}/SKILL.md", link=""),
        Put(f"{real}/{slot.name}/SKILL.md", slot.text),
        link,
    ]


def _inside(slot: Slot) -> list[Put]:
    outer = f"{slot.root}/outer-{slot.name}"
    return [Put(f"{outer}/sub/{slot.name}/SKILL.md", slot.text), Put(f"{outer}/SKILL.md", slot.plain)]


def _ignored(slot: Slot) -> list[Put]:
    return [*_at("NAME")(slot), Put(f"{slot.root}/.gitignore", f"{slot.name}/\n".encode())]


PLACES: Mapping[str, Place] = {
    "direct": _at("NAME"),
    "category": _at("ops/NAME"),
    "five deep": _at("a/b/c/d/NAME"),
    "six deep": _at("a/b/c/d/e/NAME"),
    "seven deep": _at("a/b/c/d/e/f/NAME"),
    "dot folder": _at(".NAME"),
    "drafts": _at(".drafts/NAME"),
    "node_modules": _at("node_modules/NAME"),
    "root file": _at("."),
    "inside a skill": _inside,
    "linked folder": _linked_folder("store"),
    "linked folder at home": _linked_folder("home/store"),
    "linked file": _linked_file,
    "linked root": _linked_root,
    "skill.md": _at("NAME", "skill.md"),
    "ignored there": _ignored,
}


# Settings -----------------------------------------------------------------------------------------

MOVED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "codex": (("CODEX_HOME", ".codex"),),
    "claude-code": (("CLAUDE_CONFIG_DIR", ".claude"),),
    "opencode": (("XDG_CONFIG_HOME", ".config"),),
    "goose": (("XDG_CONFIG_HOME", ".config"),),
    "copilot-cli": (("COPILOT_HOME", ".copilot"),),
    "gemini-cli": (("GEMINI_CLI_HOME", ""),),
    "pi": (("PI_CODING_AGENT_DIR", ".pi/agent"),),
    "oh-my-pi": (("PI_CODING_AGENT_DIR", ".omp/agent"), ("CLAUDE_CONFIG_DIR", ".claude")),
    "kilo": (("XDG_CONFIG_HOME", ".config"),),
    "amp": (("XDG_CONFIG_HOME", ".config"),),
    "kimi-code": (("KIMI_CODE_HOME", ".kimi-code"),),
}
"""The variables that move a folder of the home of a host."""


class Setting(NamedTuple):
    """Settings of a host: files, variables, trust, and a skill that they are about."""

    puts: tuple[Put, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    trusted: bool = True
    about: str = ""
    roots: tuple[str, ...] = ()


def _setting_file(name: str, content: Any, cwd: str) -> Put:
    text = content if isinstance(content, str) else json.dumps(content)
    path = f"home/{name[2:]}" if name.startswith("~/") else f"{cwd}/{name}"
    return Put(path, text.encode())


def _settings_of(host: str, layout: Layout) -> Iterator[tuple[str, Setting]]:
    """Yield every setting that a tree of a host can have."""
    yield "untrusted", Setting(trusted=False)
    manifest = Put(f"{layout.project}/.claude-plugin/plugin.json", b'{"name": "acme"}')
    yield "plugin", Setting((manifest,))
    for variable, folder in MOVED.get(host, ()):
        paths = [path for rule in HOSTS[host].roots if rule.kind == "user" for path in rule.paths]
        roots = [
            f"moved/{path[len(folder) :].strip('/')}"
            for path in paths
            if f"{path}/".startswith(f"{folder}/".lstrip("/"))
        ]
        yield "moved home", Setting((), {variable: "BASE/moved"}, roots=tuple(roots))
    for case in SWITCH_CASES:
        if case.host == host and case.verdict != "unknown":
            puts = tuple(_setting_file(name, content, layout.cwd) for name, content in case.settings.items())
            yield "switch", Setting(puts, about="deploy")
    for record in TRUST_CASES:
        if record.host == host and record.verdict != "unknown":
            puts = tuple(_setting_file(name, content, layout.cwd) for name, content in record.settings.items())
            yield "trust", Setting(puts, record.env, trusted=False)
    if host == "copilot-cli":
        text = json.dumps({"disabledSkills": ["deploy"]}).encode()
        yield "switch", Setting((Put("home/.copilot/settings.json", text),), about="deploy")


SETTINGS = ("none", "untrusted", "plugin", "moved home", "switch", "trust")


# Trees --------------------------------------------------------------------------------------------

OTHER_ROOTS = (
    *(".agents/skills", ".agent/skills", ".claude/skills", ".codex/skills", ".cursor/skills", ".gemini/skills"),
    *(".github/skills", ".goose/skills", ".kiro/skills", ".opencode/skills", ".pi/skills", ".qwen/skills", "skills"),
)


def draw_trees(host: str, *, seed: int, count: int) -> Iterator[Drawn]:
    """Yield trees for a host; each depends on the seed, the host and its number alone."""
    for number in range(count):
        yield _tree(host, number, random.Random(f"{seed}/{host}/{number}"))


def _tree(host: str, number: int, chance: random.Random) -> Drawn:
    layout_name = chance.choice(["repository", *LAYOUTS])
    layout = LAYOUTS[layout_name]
    settings = list(_settings_of(host, layout))
    setting_name, setting = chance.choice(settings) if chance.random() < 0.4 else ("none", Setting())
    puts, skills = [*_layout(layout), *setting.puts], []
    kinds = {layout_name, setting_name}
    is_shared = chance.random() < 0.3
    for index in range(chance.randint(1, 5)):
        root = _root(host, layout, setting, index, chance)
        name = "shared" if is_shared and chance.random() < 0.7 else f"probe-{index}"
        place, text = _weighted(chance, PLACES, "direct", 0.6), _weighted(chance, TEXTS, "plain", 0.35)
        if setting.about and index == 0:
            root, name, place, text = _own_root(host, layout, "project", chance), setting.about, "direct", "plain"
        slot = Slot(root, name, TEXTS[text](name, _mark(index)), TEXTS["plain"](f"outer-{name}", _mark(index + 50)))
        added = PLACES[place](slot)
        if _fits(added, puts):
            puts += added
            skills += [put.path for put in added if put.path.endswith(("/SKILL.md", "/skill.md"))]
            kinds |= {place, text}
    if chance.random() < 0.06:
        crowd = _crowd(_own_root(host, layout, chance.choice(["project", "user"]), chance), chance)
        if _fits(crowd, puts):
            puts += crowd
            skills += [put.path for put in crowd]
            kinds.add("many skills")
    title = f"{number}: {layout_name}, {setting_name}; {', '.join(sorted(kinds - {layout_name, setting_name}))}"
    return Drawn(title, tuple(puts), tuple(skills), layout.cwd, setting.env, setting.trusted, frozenset(kinds))


def _crowd(root: str, chance: random.Random) -> list[Put]:
    """Return so many skills, with descriptions of such a length, that some hosts have no room for all of them."""
    count, most = chance.choice([(30, 900), (80, 400), (150, 120), (300, 200), (300, 20)])
    return [
        Put(f"{root}/crowd-{index}/SKILL.md", _long_text(f"crowd-{index}", _mark(index + 100), chance.randint(0, most)))
        for index in range(count)
    ]


def _long_text(name: str, mark: str, more: int) -> bytes:
    """Return a plain text whose description is longer by so many characters."""
    filler = ("lorem ipsum dolor sit amet " * (more // 27 + 1))[:more].rstrip()
    return _text("name: NAME\ndescription: SAYS MORE\n".replace("MORE", filler))(name, mark)


def _mark(index: int) -> str:
    return f"mark{index:02d}q"


def _weighted(chance: random.Random, kinds: Mapping[str, Any], usual: str, share: float) -> str:
    return usual if chance.random() < share else chance.choice(list(kinds))


def _own_root(host: str, layout: Layout, kind: str, chance: random.Random) -> str:
    paths = [path for rule in HOSTS[host].roots if rule.kind == kind and rule.base != "fixed" for path in rule.paths]
    return f"{layout.cwd if kind == 'project' else 'home'}/{chance.choice(paths)}"


def _root(host: str, layout: Layout, setting: Setting, index: int, chance: random.Random) -> str:
    """Return the root of a skill: mostly one that the host reads, here, above, below or at home."""
    if setting.roots and index == 0:
        return chance.choice(setting.roots)
    kind = "project" if chance.random() < 0.65 else "user"
    if kind == "user":
        path = chance.choice(OTHER_ROOTS) if chance.random() < 0.15 else _own_root(host, layout, "user", chance)[5:]
        return f"home/{path}"
    path = _own_root(host, layout, "project", chance)[len(layout.cwd) + 1 :]
    if chance.random() < 0.15:
        path = chance.choice(OTHER_ROOTS)
    above = layout.project.rpartition("/")[0] or "."
    bases = [layout.cwd] * 6 + [layout.project] * 3 + [above, f"{layout.cwd}/packages/web"]
    return f"{chance.choice(bases)}/{path}".removeprefix("./")


def _fits(added: list[Put], puts: list[Put]) -> bool:
    """Return true if nothing would be in the way of what is added, and it in the way of nothing."""
    taken = {put.path: put for put in puts}
    links = [put.path for put in (*puts, *added) if put.link and not put.path.endswith(".md")]
    for put in added:
        if put.path in taken and taken[put.path] != put:
            return False
        if put.link == "" or put.path in links:
            continue
        if any(put.path.startswith(f"{link}/") for link in links):
            return False
    return not any(
        f"{old.path}/".startswith(f"{link}/") and old.link != "" for link in links for old in puts if old.path != link
    )


def one_name_everywhere(host: str, *, below: bool = False) -> Drawn:
    """Return a tree with one name in all roots of a host, and in those of the folder above if it climbs."""
    layout = LAYOUTS["package" if below else "repository"]
    folders = []
    for rule in HOSTS[host].roots:
        if rule.base in ("cwd", "chain"):
            folders += [f"{layout.cwd}/{path}" for path in rule.paths]
        if rule.base == "chain" and below:
            folders += [f"{layout.project}/{path}" for path in rule.paths]
        if rule.base == "home":
            folders += [f"home/{path}" for path in rule.paths]
    skills = tuple(f"{folder}/shared/SKILL.md" for folder in dict.fromkeys(folders))
    puts = tuple(Put(path, TEXTS["plain"]("shared", _mark(index))) for index, path in enumerate(skills))
    title = f"one name in {len(skills)} roots{', from a package' if below else ''}"
    return Drawn(title, (*_layout(layout), *puts), skills, layout.cwd, kinds=frozenset({"one name"}))


def every_text(host: str) -> Iterator[Drawn]:
    """Yield a tree for each project root of a host with one skill of every text in it."""
    layout = LAYOUTS["repository"]
    for root in _project_roots(host):
        slots = [(kind, f"{layout.cwd}/{root}/text-{index}/SKILL.md") for index, kind in enumerate(TEXTS)]
        puts = [Put(path, TEXTS[kind](f"text-{index}", _mark(index))) for index, (kind, path) in enumerate(slots)]
        skills = tuple(put.path for put in puts)
        yield Drawn(f"every text in {root}", (*_layout(layout), *puts), skills, layout.cwd)


def many_skills(host: str) -> Iterator[Drawn]:
    """Yield trees of a project root of a host with ever more skills, and ever longer descriptions."""
    layout = LAYOUTS["repository"]
    root = f"{layout.cwd}/{_project_roots(host)[0]}"
    for count, length in ((20, 900), (60, 100), (80, 400), (200, 60), (300, 250)):
        texts = [_long_text(f"crowd-{index}", _mark(index + 100), length + index % 7) for index in range(count)]
        puts = [Put(f"{root}/crowd-{index}/SKILL.md", text) for index, text in enumerate(texts)]
        skills = tuple(put.path for put in puts)
        yield Drawn(f"{count} skills of {length} characters", (*_layout(layout), *puts), skills, layout.cwd)


def every_place(host: str) -> Iterator[Drawn]:
    """Yield a tree for each project root of a host with one plain skill in every place of it."""
    layout = LAYOUTS["repository"]
    alone = ("root file", "linked root")
    for root in _project_roots(host):
        puts, skills = [*_layout(layout)], []
        for index, kind in enumerate(kind for kind in PLACES if kind not in alone):
            name, plain = f"place-{index}", TEXTS["plain"]
            slot = Slot(
                f"{layout.cwd}/{root}", name, plain(name, _mark(index)), plain(f"outer-{name}", _mark(index + 50))
            )
            added = PLACES[kind](slot)
            puts += added
            skills += [put.path for put in added if put.path.endswith(("/SKILL.md", "/skill.md"))]
        yield Drawn(f"every place in {root}", tuple(puts), tuple(skills), layout.cwd)


def _project_roots(host: str) -> list[str]:
    """Return the roots of a host in the working directory that may differ: its first one and the shared one."""
    paths = [path for rule in HOSTS[host].roots if rule.kind == "project" for path in rule.paths]
    return list(dict.fromkeys([paths[0], ".agents/skills" if ".agents/skills" in paths else paths[0]]))


def put_tree(tree: Drawn, machine: Machine) -> Path:
    """Write a tree to disk; return the working directory."""
    (machine.repo / ".git").rmdir()
    cwd = machine.base / tree.cwd
    cwd.mkdir(parents=True, exist_ok=True)
    if tree.trusted:
        trust(machine, cwd)
    for put in tree.puts:
        path = machine.base / put.path
        if put.link == "":
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if put.link is not None:
            path.symlink_to(machine.base / put.link)
        else:
            path.write_bytes(_filled(put.text, machine.base, cwd))
    return cwd


def _filled(text: bytes, base: Path, cwd: Path) -> bytes:
    """Return a text with the folders that its words stand for."""
    if len(text) > CONFIG_BYTES:
        return text
    for word, folder in ((b"BASE", base), (b"CWD", cwd), (b"ABOVE", cwd.parent)):
        text = text.replace(word, str(folder).encode())
    return text
