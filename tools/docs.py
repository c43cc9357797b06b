"""Write the generated parts of README.md, CONTRIBUTING.md and docs/; `--check` only reports which are out of date.

A generated part stands between `<!-- made: NAME -->` and `<!-- /made -->`. A console block is generated too: each line
that begins with `$ ` is run, and its output follows it. A page runs its commands in the repository, each with an empty
home folder. A page with `<!-- scratch -->` runs them one after the other in a new repository `~/shop`, a page with
`<!-- scratch: FOLDER -->` in a copy of that folder. There `<!-- file: PATH -->` writes the block that follows it to a
file, and `$ python`, `$ sh`, `$ cat`, `$ ls` and `$ rm` are allowed beside `$ skillshelf`.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

if TYPE_CHECKING:
    from skillshelf.cli.command_table import Option
    from skillshelf.config.profile import RootRule

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md")))
_PART = re.compile(r"(<!-- made: ([\w -]+) -->\n).*?(<!-- /made -->)", re.DOTALL)
_SCRATCH = re.compile(r"^<!-- scratch(?:: (\S+))? -->$", re.MULTILINE)
_STEP = re.compile(
    r"<!-- file: (?P<file>\S+) -->\n+(?P<fence>`{3,})\w*\n(?P<text>.*?)(?P=fence)|```console\n(?P<console>.*?)```",
    re.DOTALL,
)
_COLUMNS = 110


def render(text: str) -> str:
    """Return a page with its generated parts brought up to date."""
    text = _PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n{part[3]}", text)
    start = _SCRATCH.search(text)
    if start is None:
        return _STEP.sub(lambda step: _step(step, run_in_repository), text)
    # Not where TMPDIR says: the pages show numbers of bytes and tokens, which the length of the path changes.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        home = Path(os.path.realpath(folder))
        if start[1]:
            shutil.copytree(REPOSITORY / start[1], home / "shop")
        (home / "shop" / ".git").mkdir(parents=True)
        return _STEP.sub(lambda step: _step(step, lambda words: run_in_scratch(words, home), home / "shop"), text)


def _step(step: re.Match[str], run: Callable[[list[str]], str], folder: Path | None = None) -> str:
    """Write the file that a step shows, or return its console block with the output of each command."""
    if step["file"]:
        assert folder, f"a page that shows the file {step['file']} needs <!-- scratch -->"
        path = folder / step["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step["text"], encoding="utf-8")
        return step[0]
    commands = [line[2:] for line in step["console"].splitlines() if line.startswith("$ ")]
    return "```console\n" + "\n".join(f"$ {command}\n{run(shlex.split(command))}" for command in commands) + "```"


def run_in_repository(words: list[str]) -> str:
    """Return the output of a command that runs in a repository like this one with an empty home folder."""
    assert words[0] == "skillshelf", words
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        # A copy of what the pages speak of: a checkout may be read-only, and then nothing in it can be fixed.
        copy = Path(os.path.realpath(folder), "skillshelf")
        for name in ("tests/fixtures", ".agents"):
            shutil.copytree(REPOSITORY / name, copy / name, symlinks=True)
        (copy / ".git").mkdir()
        home = Path(folder, "home")
        home.mkdir()
        return _cut(_output(words, copy, str(home)).replace(str(copy), "~/skillshelf"))


def run_in_scratch(words: list[str], home: Path) -> str:
    """Return the output of a command that runs in the scratch folder, without what differs from run to run."""
    assert words[0] in ("skillshelf", "python", "sh", "cat", "ls", "rm"), words
    text = _output(words, home / "shop", str(home)).replace(str(home), "~")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z  [0-9a-f]{8}", "2026-11-16 09:30:00.000Z  7f3a9c1e", text)
    return _cut(re.sub(r"sum: [0-9a-f]{64}", "sum: 7f3a9c1e4b52…", text))


def _output(words: list[str], folder: Path, home: str) -> str:
    program = {"skillshelf": [sys.executable, "-m", "skillshelf"], "python": [sys.executable]}.get(words[0], words[:1])
    # To skillshelf the PATH says which hosts are installed here; only `run` starts a program.
    path = os.environ["PATH"] if words[0] != "skillshelf" or "run" in words else "/nonexistent"
    done = subprocess.run(
        [*program, *words[1:]],
        cwd=folder,
        env={"PATH": path, "HOME": home, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def _cut(text: str) -> str:
    """Cut long lines to a width, as a reader's terminal does."""
    lines = (line if len(line) <= _COLUMNS else line[: _COLUMNS - 1] + "…" for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines)


def rules_table() -> str:
    """Return every rule with its severity in every profile."""
    from skillshelf.config.builtin_profiles import SYSTEMS
    from skillshelf.config.profile import RULES

    head = ["rule", "what it says", *SYSTEMS]
    rows = [
        [f"`{rule}`", entry.summary, *(profile.rules[rule] for profile in SYSTEMS.values())]
        if not entry.fixed
        else [f"`{rule}`", entry.summary, *([f"**{entry.severity}**"] * len(SYSTEMS))]
        for rule, entry in RULES.items()
    ]
    return _markdown([head, *rows])


def guidance_table() -> str:
    """Every rule with its severity for authors, why it exists and how to fix what it finds."""
    from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, SYSTEMS, author_severities
    from skillshelf.config.rules import RULES
    from skillshelf.lint.fix import FIXERS, rename

    levels = {"reject": "error", "warn": "warning", "info": "info", "off": "off"}
    severities = author_severities(SYSTEMS[DEFAULT_PROFILE])
    renaming = {rule for rules, fixer in FIXERS if fixer is rename for rule in rules}
    safe = {rule for rules, fixer in FIXERS if fixer is not rename for rule in rules}
    rows = [["rule", "`check` says", "`--fix`", "why", "how to fix it"]]
    for rule, row in RULES.items():
        fix = "yes" if rule in safe else "`--fix=names`" if rule in renaming else ""
        rows.append([f"`{rule}`", levels[severities[rule]], fix, row.why, row.how_to_fix])
    return _markdown(rows)


def profiles_table() -> str:
    """Return every profile with its evidence."""
    from skillshelf.config.builtin_profiles import SYSTEMS

    rows = [["profile", "what it is", "evidence", "as of"]]
    rows += [[f"`{p.name}`", p.summary, p.evidence, p.as_of] for p in SYSTEMS.values()]
    return _markdown(rows)


def differences_table() -> str:
    """Return the fields in which the profiles differ, one column each; rules have a page of their own."""
    from skillshelf.config.builtin_profiles import SYSTEMS
    from skillshelf.config.profile import Profile, profile_to_dict

    shown = [field for field in Profile._fields if field not in ("name", "summary", "evidence", "as_of", "rules")]
    forms = {name: profile_to_dict(profile) for name, profile in SYSTEMS.items()}
    rows = [["field", *SYSTEMS]]
    for field in shown:
        cells = [_cell(field, form[field]) for form in forms.values()]
        if len(set(cells)) > 1:
            rows.append([f"`{field}`", *cells])
    return _markdown(rows)


def _cell(field: str, value: object) -> str:
    if field == "roots" and isinstance(value, list):
        return "<br>".join(f"{root['kind']}: {root['base']} {' '.join(root['paths'])}".strip() for root in value)
    if isinstance(value, list):
        return " ".join(f"`{item}`" for item in value) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key}: `{item}`" for key, item in value.items()) or "none"
    return "none" if value is None else f"`{value}`"


def settings_table() -> str:
    """Return every key of a configuration file with its type and default."""
    from skillshelf.config.settings import KEYS, Settings

    defaults = Settings()._asdict()
    rows = [["key", "type", "default"]]
    for key, (setting, kind) in KEYS.items():
        default = defaults.get(setting, True)
        rows.append([f"`{key}`", kind, f"`{json.dumps(default)}`" if default not in ((), None) else "none"])
    return _markdown(rows)


def policy_keys_table() -> str:
    """Return every key of a system policy with what it does."""
    from skillshelf.config.policy_file import POLICY_KEYS

    return _markdown(
        [["key", "value", "effect"], *([f"`{key}`", row.value, row.effect] for key, row in POLICY_KEYS.items())]
    )


def commands_text() -> str:
    """Every command with its options."""
    from skillshelf.cli.command_table import COMMANDS, SHARED

    shared = "## Options of every command\n\n" + _options(SHARED)
    return "\n\n".join([shared, *(_command(name) for name in COMMANDS if name != "help")])


def _command(name: str) -> str:
    from skillshelf.cli.command_table import COMMANDS, SHARED, usage_of

    command = COMMANDS[name]
    own = [option for option in command.options if option not in SHARED]
    width = max((len(line) for line, _ in command.examples), default=0)
    examples = "".join(f"{line.ljust(width)}  # {what}\n" for line, what in command.examples)
    parts = [f"## `{usage_of(name)}`", f"{command.help[0].upper()}{command.help[1:]}."]
    if command.actions:
        parts.append(_markdown([["action", "meaning"], *([f"`{words}`", what] for words, what in command.actions)]))
    return "\n\n".join([*parts, *([_options(own)] if own else []), *([f"```sh\n{examples}```"] if examples else [])])


def _options(options: Sequence["Option"]) -> str:
    rows = [["option", "meaning"]]
    rows += [[f"`{option.name}{' ' + option.value if option.value else ''}`", option.help] for option in options]
    return _markdown(rows)


def limits_table() -> str:
    """Return every named limit."""
    from skillshelf.core import limits

    rows = [["limit", "value"], *([f"`{name}`", f"{getattr(limits, name):,}"] for name in sorted(limits.__all__))]
    return _markdown(rows)


def schemas_text() -> str:
    """Return every schema."""
    from schemas import SCHEMAS

    return "\n\n".join(f"## {name}\n\n```json\n{json.dumps(schema, indent=2)}\n```" for name, schema in SCHEMAS.items())


def python_text() -> str:
    """Return the reference of every public Python name."""
    from reference import python_reference

    return python_reference()


def events_text() -> str:
    """Return every kind of event with its members."""
    from skillshelf.journal.events import EVENTS, MEMBERS

    parts = []
    for name, kind in EVENTS.items():
        rows = [["member", "type", "meaning"]]
        for key, hint in get_type_hints(kind).items():
            optional = " (may be missing)" if key in kind._field_defaults else ""
            rows.append([f"`{key}`", f"`{_type_words(hint)}`", MEMBERS[key] + optional])
        parts.append(f"## `{name}`\n\n{kind.__doc__}\n\n{_markdown(rows)}")
    return "\n\n".join(parts)


def rpc_text() -> str:
    """Return the reference of every RPC method, then of the messages that the server sends."""
    from skillshelf.servers.rpc.methods import METHODS, TO_CLIENT

    parts = ["## Methods", *(_method(name) for name in METHODS)]
    return "\n\n".join([*parts, "## Messages from the server", *(_method(name) for name in TO_CLIENT)])


_LINKED = ("catalog", "search", "show", "read", "skill")
"""Schemas that commands and methods share: the page of methods links to them."""


def _method(name: str) -> str:
    from skillshelf.servers.rpc.methods import METHODS, PARAMETERS, TO_CLIENT

    method = {**METHODS, **TO_CLIENT}[name]
    parts = [f"### `{name}`", method.help]
    hints = get_type_hints(method.params) if hasattr(method.params, "__required_keys__") else {}
    if hints:
        rows = [["parameter", "type", "meaning"]]
        for key, hint in hints.items():
            optional = "" if key in method.params.__required_keys__ else "?"
            rows.append([f"`{key}{optional}`", f"`{_type_words(hint)}`", PARAMETERS[key]])
        parts.append(_markdown(rows))
    return "\n\n".join([*parts, *([f"Result: {_result_words(method.result)}."] if method.result else [])])


def _result_words(form: object) -> str:
    """Return the shape of a result, with links to the schemas that commands have too."""
    shape = _shape(form)
    links = [f"[{name}](reference/json.md#{name})" for name in _LINKED if re.search(rf"\b{name}\b(?!:)", shape)]
    return f"`{shape}`" + (f", see {', '.join(links)}" if links else "")


def _shape(form: Any) -> str:
    """Return a type in short: an object by its members, a list by its items."""
    from schemas import FORMS

    if is_typeddict(form):
        linked = next((name for name in _LINKED if FORMS[name] is form), None)
        members = (
            f"{key}{'' if key in form.__required_keys__ else '?'}: {_shape(hint)}"
            for key, hint in get_type_hints(form).items()
        )
        return linked or "{" + ", ".join(members) + "}"
    if get_origin(form) is list:
        return f"[{_shape(get_args(form)[0])}]"
    if get_origin(form) in (UnionType, Union):
        return " or ".join(_shape(one) for one in get_args(form))
    return "null" if form is NoneType else _type_words(form)


def _type_words(hint: object) -> str:
    if isinstance(hint, type) and not str(hint).startswith(("list[", "dict[")):
        return hint.__name__
    return str(hint).replace("typing.", "")


def picker_screen() -> str:
    """Return the screen that the tests of the picker compare with."""
    screen = (REPOSITORY / "tests" / "cli" / "screens" / "search.txt").read_text(encoding="utf-8")
    return f"```text\n{screen.rstrip()}\n```"


def picker_plain() -> str:
    """The lines that the tests of `pick --plain` expect."""
    lines = (REPOSITORY / "tests" / "cli" / "screens" / "plain.txt").read_text(encoding="utf-8")
    return f"```text\n{lines.rstrip()}\n```"


def picker_keys() -> str:
    """Return the help page of the picker."""
    from skillshelf.cli.picker.rows import HELP

    return f"```text\n{HELP.rstrip()}\n```"


PARTS: dict[str, Callable[[], str]] = {
    "picker-screen": picker_screen,
    "picker-plain": picker_plain,
    "picker-keys": picker_keys,
    "rules": rules_table,
    "guidance": guidance_table,
    "profiles": profiles_table,
    "differences": differences_table,
    "settings": settings_table,
    "policy-keys": policy_keys_table,
    "commands": commands_text,
    "limits": limits_table,
    "schemas": schemas_text,
    "events": events_text,
    "rpc": rpc_text,
    "python": python_text,
}


def hosts_text() -> str:
    """Return every host with its roots and the evidence for them."""
    from skillshelf.config.hosts import HOSTS

    head = ["host", "version", "as of", "known by", "source", "roots in its order", "a name twice"]
    rows = [[*head, "if it is running", "not established"]]
    for host in HOSTS.values():
        roots = "<br>".join(_root(rule) for rule in host.roots)
        doubts = " ".join(f"`{doubt}`" for doubt in host.unknown) or "-"
        row = [f"`{host.name}`", host.version or "-", host.as_of, host.grade, host.evidence, roots]
        rows.append([*row, host.collision, host.on_change or "not known", doubts])
    return _markdown(rows)


def _root(rule: "RootRule") -> str:
    bases = {"home": "~/", "chain": "each folder upward: ", "cwd": "this folder: ", "fixed": ""}
    bases["repository"] = "the repository: "
    where = {**bases, "plugin-list": f"each plugin in ~/`{rule.plugin_list}` that is on: "}[rule.base]
    switch = f" (only with `{rule.host_switch}`)" if rule.host_switch else ""
    return where + " ".join(f"`{path}`" for path in rule.paths) + switch


def verdicts_table() -> str:
    """Return every verdict with its meaning."""
    from skillshelf.hosts.stages import VERDICTS

    return _markdown([["verdict", "meaning"], *([f"`{name}`", text] for name, (_, text) in VERDICTS.items())])


_KEPT_PLACES = {
    "config": "`$XDG_CONFIG_HOME/skillshelf`, else `~/.config/skillshelf`",
    "state": "`$XDG_STATE_HOME/skillshelf`, else `~/.local/state/skillshelf`",
    "data": "`$XDG_DATA_HOME/skillshelf`, else `~/.local/share/skillshelf`",
    "cache": "`$XDG_CACHE_HOME/skillshelf`, else `~/.cache/skillshelf`",
    "skills": "a folder of skills that a host reads",
    "temporary": "`$TMPDIR`, else `/tmp`",
    "chosen": "where you said",
}


def files_table() -> str:
    """Return every file that skillshelf keeps."""
    from skillshelf.core.kept_files import KEPT_FILES

    head = [
        "file",
        "where (Linux)",
        "version",
        "what it holds",
        "safe to delete?",
        "of an older version",
        "`uninstall`",
    ]
    rows = [head]
    for row in KEPT_FILES:
        shown = ", ".join(f"`{name}`" for name in row.shown.split(", "))
        version = "-" if row.version is None else str(row.version)
        rows.append(
            [shown, _KEPT_PLACES[row.place], version, row.holds, row.deletable, row.when_older, row.on_uninstall]
        )
    return _markdown(rows)


def checks_table() -> str:
    """Return every check of `doctor`."""
    from skillshelf.cli.doctor import CHECKS

    return _markdown([["check", "what it looks at"], *([f"`{check.name}`", check.help] for check in CHECKS)])


def imports_table() -> str:
    """Return the packages that each package may import, from the test that enforces it."""
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from test_house import ALLOWED

    rows = [["package", "may import"]]
    for package, allowed in ALLOWED.items():
        names = [name for name in ALLOWED if name in allowed]
        rows.append([f"`{package}`", ", ".join(f"`{name}`" for name in names) or "nothing"])
    return _markdown(rows)


def modules_text() -> str:
    """Return every module with the first sentence of its docstring, by package."""
    import skillshelf

    source = Path(skillshelf.__file__).parent
    packages: dict[str, list[list[str]]] = {}
    for path in sorted(source.rglob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            sentence = re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0].replace("\n", " ")
            package = path.parent.relative_to(source).as_posix()
            packages.setdefault(package, []).append([f"`{path.stem}`", sentence])
    parts = []
    for package, rows in sorted(packages.items()):
        title = "skillshelf" if package == "." else package
        parts.append(f"### `{title}`\n\n" + _markdown([["module", "purpose"], *rows]))
    return "\n\n".join(parts)


PARTS |= {"hosts": hosts_text, "verdicts": verdicts_table, "imports": imports_table, "modules": modules_text}
PARTS |= {"files": files_table, "checks": checks_table}


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def main() -> int:
    """Write the pages, or check them."""
    rendered = {page: render(page.read_text(encoding="utf-8")) for page in PAGES}
    stale = [page for page, text in rendered.items() if page.read_text(encoding="utf-8") != text]
    for page in stale:
        if "--check" in sys.argv:
            print(f"out of date: {page.relative_to(REPOSITORY)}; run: python tools/docs.py")
        else:
            page.write_text(rendered[page], encoding="utf-8")
            print(f"written: {page.relative_to(REPOSITORY)}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.path.insert(0, str(REPOSITORY / "src"))
    sys.exit(main())
