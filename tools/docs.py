"""Writes the generated parts of README.md and docs/; `--check` only says which are out of date.

A generated part stands between `<!-- made: NAME -->` and `<!-- /made -->`. A console block is generated too:
each line that begins with `$ ` is run in the repository with an empty home folder, and what it prints follows it.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

if TYPE_CHECKING:
    from skillshelf.cli.main import Option
    from skillshelf.config.profile import RootRule

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
_PART = re.compile(r"(<!-- made: ([\w -]+) -->\n).*?(<!-- /made -->)", re.DOTALL)
_CONSOLE = re.compile(r"(```console\n)(.*?)(```)", re.DOTALL)


def render(text: str) -> str:
    """A page with all its generated parts as they are now."""
    text = _PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n{part[3]}", text)
    return _CONSOLE.sub(lambda block: block[1] + _session(block[2]) + block[3], text)


def _session(block: str) -> str:
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "\n".join(f"$ {command}\n{_output(command)}" for command in commands)


def _output(command: str) -> str:
    words = shlex.split(command)
    assert words[0] == "skillshelf", command
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": str(REPOSITORY / "src")}
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    # The command line of a reader is not a pipe: long lines are cut to a screen there.
    lines = (done.stdout + done.stderr).replace(str(REPOSITORY), "~/skillshelf").splitlines()
    return "\n".join(line if len(line) <= 110 else line[:109] + "…" for line in lines) + "\n"


def rules_table() -> str:
    """Every rule with its weight in every profile."""
    from skillshelf.config.profile import RULES
    from skillshelf.config.systems import SYSTEMS

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
    from skillshelf.config.rules import RULES
    from skillshelf.config.systems import DEFAULT_PROFILE, SYSTEMS, author_severities
    from skillshelf.lint.fix import FIXERS

    levels = {"reject": "error", "warn": "warning", "info": "info", "off": "off"}
    severities = author_severities(SYSTEMS[DEFAULT_PROFILE])
    fixable = {rule for rules, _ in FIXERS for rule in rules}
    rows = [["rule", "`check` says", "`--fix`", "why", "how to fix it"]]
    for rule, row in RULES.items():
        rows.append([f"`{rule}`", levels[severities[rule]], "yes" if rule in fixable else "", row.why, row.how_to_fix])
    return _markdown(rows)


def profiles_table() -> str:
    """Every profile with its evidence and roots."""
    from skillshelf.config.systems import SYSTEMS

    rows = [["profile", "what it is", "evidence", "as of"]]
    rows += [[f"`{p.name}`", p.summary, p.evidence, p.as_of] for p in SYSTEMS.values()]
    return _markdown(rows)


def differences_table() -> str:
    """The fields in which the profiles differ, one column each; rules have a page of their own."""
    from skillshelf.config.profile import Profile, profile_to_dict
    from skillshelf.config.systems import SYSTEMS

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
    """Every key of a configuration file with its type and default."""
    from skillshelf.config.settings import KEYS, Settings

    defaults = Settings()._asdict()
    rows = [["key", "type", "default"]]
    for key, (setting, kind) in KEYS.items():
        default = defaults.get(setting, True)
        rows.append([f"`{key}`", kind, f"`{json.dumps(default)}`" if default not in ((), None) else "none"])
    return _markdown(rows)


def commands_text() -> str:
    """Every command with its options; not the text of `--help`, which differs between versions of Python."""
    from skillshelf.cli.main import COMMANDS, SHARED

    shared = "## Options of every command\n\n" + _options(SHARED)
    return "\n\n".join([shared, *(_command(name) for name in COMMANDS if name != "help")])


def _command(name: str) -> str:
    from skillshelf.cli.main import COMMANDS, SHARED

    command = COMMANDS[name]
    places = (f"[{place.name}{' ...' if place.many else ''}]" for place in command.arguments)
    words = " ".join(["skillshelf", *([name] if name else []), *places])
    own = [option for option in command.options if option not in SHARED]
    return f"## `{words}`\n\n{command.help.capitalize()}." + (f"\n\n{_options(own)}" if own else "")


def _options(options: Sequence["Option"]) -> str:
    rows = [["option", "meaning"]]
    rows += [[f"`{option.name}{' ' + option.value if option.value else ''}`", option.help] for option in options]
    return _markdown(rows)


def limits_table() -> str:
    """Every named limit."""
    from skillshelf.core import limits

    rows = [["limit", "value"], *([f"`{name}`", f"{getattr(limits, name):,}"] for name in sorted(limits.__all__))]
    return _markdown(rows)


def schemas_text() -> str:
    """Every schema."""
    from schemas import SCHEMAS

    return "\n\n".join(f"## {name}\n\n```json\n{json.dumps(schema, indent=2)}\n```" for name, schema in SCHEMAS.items())


def events_text() -> str:
    """Every kind of event with its members."""
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
    """Every method of the JSON-RPC server, then what the server sends by itself."""
    from skillshelf.servers.rpc.schema import METHODS, TO_CLIENT

    parts = ["## What a client may ask for", *(_method(name) for name in METHODS)]
    return "\n\n".join([*parts, "## What the server sends", *(_method(name) for name in TO_CLIENT)])


_SHIPPED = {
    "CatalogForm": "catalog",
    "SearchForm": "search",
    "ShownForm": "show",
    "ResourceForm": "read",
    "SkillForm": "skill",
}


def _method(name: str) -> str:
    from skillshelf.servers.rpc.schema import MEMBERS, METHODS, TO_CLIENT

    method = {**METHODS, **TO_CLIENT}[name]
    parts = [f"### `{name}`", f"{method.help[0].upper()}{method.help[1:]}."]
    hints = get_type_hints(method.params) if hasattr(method.params, "__required_keys__") else {}
    if hints:
        rows = [["parameter", "type", "meaning"]]
        for key, hint in hints.items():
            optional = "" if key in method.params.__required_keys__ else "?"
            rows.append([f"`{key}{optional}`", f"`{_type_words(hint)}`", MEMBERS[key]])
        parts.append(_markdown(rows))
    return "\n\n".join([*parts, *([f"Result: {_result_words(method.result)}."] if method.result else [])])


def _result_words(form: object) -> str:
    """The shape of what a method gives, with links to the schemas that commands have too."""
    shape = _shape(form)
    links = [f"[{name}](json.md#{name})" for name in _SHIPPED.values() if re.search(rf"\b{name}\b(?!:)", shape)]
    return f"`{shape}`" + (f", see {', '.join(links)}" if links else "")


def _shape(form: Any) -> str:
    """A type in short: an object by its members, a list by its items."""
    if is_typeddict(form):
        members = (
            f"{key}{'' if key in form.__required_keys__ else '?'}: {_shape(hint)}"
            for key, hint in get_type_hints(form).items()
        )
        return _SHIPPED.get(form.__name__) or "{" + ", ".join(members) + "}"
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
    """The screen that the tests of the picker hold it to."""
    screen = (REPOSITORY / "tests" / "cli" / "screens" / "search.txt").read_text(encoding="utf-8")
    return f"```text\n{screen.rstrip()}\n```"


def picker_plain() -> str:
    """The lines that the tests of `pick --plain` expect."""
    lines = (REPOSITORY / "tests" / "cli" / "screens" / "plain.txt").read_text(encoding="utf-8")
    return f"```text\n{lines.rstrip()}\n```"


def picker_keys() -> str:
    """The picker's own page of help."""
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
    "commands": commands_text,
    "limits": limits_table,
    "schemas": schemas_text,
    "events": events_text,
    "rpc": rpc_text,
}


def hosts_text() -> str:
    """Every host with its roots, and how that is known."""
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
    where = {"home": "~/", "chain": "each folder upward: ", "cwd": "this folder: ", "fixed": ""}[rule.base]
    switch = f" (only with `{rule.host_switch}`)" if rule.host_switch else ""
    return where + " ".join(f"`{path}`" for path in rule.paths) + switch


def verdicts_table() -> str:
    """Every verdict."""
    from skillshelf.hosts.stages import VERDICTS

    return _markdown([["verdict", "meaning"], *([f"`{name}`", text] for name, (_, text) in VERDICTS.items())])


PARTS |= {"hosts": hosts_text, "verdicts": verdicts_table}


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def main() -> int:
    """Write the pages, or check them."""
    stale = [page for page in PAGES if (text := page.read_text(encoding="utf-8")) != render(text)]
    for page in stale:
        if "--check" in sys.argv:
            print(f"out of date: {page.relative_to(REPOSITORY)}; run: python tools/docs.py")
        else:
            page.write_text(render(page.read_text(encoding="utf-8")), encoding="utf-8")
            print(f"written: {page.relative_to(REPOSITORY)}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.path.insert(0, str(REPOSITORY / "src"))
    sys.exit(main())
