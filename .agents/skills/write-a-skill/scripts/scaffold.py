#!/usr/bin/env python3
"""A name to a new skill folder that satisfies the Agent Skills standard.

Never overwrites: an existing folder, file or link of that name is an error.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

NAME_MAX = 64
DESCRIPTION_MAX = 1024
YAML_WORDS = frozenset({"false", "n", "no", "null", "off", "on", "true", "y", "yes"})
DEFAULT_ROOT = os.path.join(".agents", "skills")
DEFAULT_DESCRIPTION = (
    "TODO say what this skill does and what it leaves behind. Use when the user asks for TODO or mentions TODO."
)

EPILOG = """\
exit status:
  0  created
  1  refused: the skill exists, or the folder cannot be written
  2  wrong usage, for example a name the standard does not allow

examples:
  scaffold.py release-notes
  scaffold.py pdf-forms --root ~/.agents/skills --references --scripts
"""

SKILL = """\
---
name: {name}
description: {description}
---

# {title}

TODO one sentence: what is true when this skill has done its work.

## Steps

1. TODO the first action, as an order.
2. TODO the next one; name exact commands, paths and formats.
{pointers}
## Check

TODO how to see that the result is right, and what to do when it is not.
"""

REFERENCE_POINTER = """
Read [references/details.md](references/details.md) when TODO the case that needs it.
"""

SCRIPT_POINTER = """
Run [scripts/run.py](scripts/run.py) to TODO; `--help` explains its options.
"""

REFERENCE = """\
# {title}: details

TODO what only some tasks need: tables, field lists, long examples.
"""

SCRIPT = '''\
#!/usr/bin/env python3
"""TODO what this turns into what."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="TODO what is read")
    options = parser.parse_args()
    try:
        text = options.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        print(f"{options.file}: cannot be read: {error}", file=sys.stderr)
        return 1
    print(f"{options.file}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''


class RefusedError(Exception):
    """The skill cannot be created, for a reason the user can act on."""


def name_problems(name: str) -> Iterator[str]:
    """Yield each rule of the standard that the name breaks."""
    if not name:
        yield "it is empty"
    if len(name) > NAME_MAX:
        yield f"it has {len(name)} characters, {NAME_MAX} are allowed"
    if re.search(r"[^a-z0-9-]", name):
        yield "only a-z, 0-9 and '-' are allowed"
    if name.startswith("-") or name.endswith("-"):
        yield "it must not start or end with '-'"
    if "--" in name:
        yield "it must not contain '--'"


def suggested_name(name: str) -> str:
    """Return the nearest allowed name, or nothing if no letter or digit is left."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", name).lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:NAME_MAX].strip("-")


def name_argument(name: str) -> str:
    problems = list(name_problems(name))
    if not problems:
        return name
    suggestion = suggested_name(name)
    advice = f"; try {suggestion!r}" if suggestion else ""
    raise argparse.ArgumentTypeError(f"{name[:80]!r}: {'; '.join(problems)}{advice}")


def description_argument(text: str) -> str:
    """Check a description for the standard, and for what line-based readers need."""
    text = text.strip()
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    if len(text) > DESCRIPTION_MAX:
        message = f"it has {len(text)} characters, {DESCRIPTION_MAX} are allowed"
        raise argparse.ArgumentTypeError(message)
    if not text.isprintable():
        raise argparse.ArgumentTypeError("it must be one line without control characters")
    if "---" in text:
        message = "it contains '---', at which some agents end the frontmatter"
        raise argparse.ArgumentTypeError(message)
    return text


def quoted(text: str) -> str:
    """Write one printable line as a YAML scalar."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def skill_files(name: str, description: str, *, references: bool, scripts: bool) -> dict[str, str]:
    """Return the text of every file of the new skill, by relative path."""
    title = name.replace("-", " ").capitalize()
    pointers = (REFERENCE_POINTER if references else "") + (SCRIPT_POINTER if scripts else "")
    files = {
        "SKILL.md": SKILL.format(
            name=quoted_name(name), description=quoted(description), title=title, pointers=pointers
        )
    }
    if references:
        files["references/details.md"] = REFERENCE.format(title=title)
    if scripts:
        files["scripts/run.py"] = SCRIPT
    return files


def quoted_name(name: str) -> str:
    """Quote a name that YAML could read as a number, a date or a truth value."""
    return f'"{name}"' if name[0].isdigit() or name in YAML_WORDS else name


def create(folder: str, files: Mapping[str, str]) -> list[str]:
    """Write the files into a folder that must not exist yet."""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        # mkdir and mode "x" refuse whatever is there, dangling links included.
        os.mkdir(folder)
    except FileExistsError as error:
        what = "exists" if error.filename == folder else "is not a folder"
        raise RefusedError(f"{error.filename} {what}; nothing was changed") from None
    except OSError as error:
        raise RefusedError(f"cannot create {folder}: {error.strerror}") from None
    written = []
    for relative, text in files.items():
        path = os.path.join(folder, *relative.split("/"))
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            if text.startswith("#!"):
                os.chmod(path, os.stat(path).st_mode | 0o111)
        except OSError as error:
            raise RefusedError(f"{folder} is incomplete: {path}: {error.strerror}") from None
        written.append(path)
    return written


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        description="Create a skill that satisfies the Agent Skills standard.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "name",
        type=name_argument,
        metavar="NAME",
        help="a-z, 0-9 and single '-' inside, at most 64 characters; also the folder's name",
    )
    result.add_argument(
        "--root",
        default=DEFAULT_ROOT,
        metavar="DIR",
        help="folder of skills, made if missing (default: %(default)s)",
    )
    result.add_argument(
        "--description",
        type=description_argument,
        default=DEFAULT_DESCRIPTION,
        metavar="TEXT",
        help="what it does and when to use it, at most 1024 characters, one line",
    )
    result.add_argument("--references", action="store_true", help="add references/details.md")
    result.add_argument("--scripts", action="store_true", help="add an executable scripts/run.py")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    root = os.path.abspath(os.path.expanduser(options.root))
    files = skill_files(options.name, options.description, references=options.references, scripts=options.scripts)
    try:
        written = create(os.path.join(root, options.name), files)
    except RefusedError as refusal:
        print(f"scaffold.py: {refusal}", file=sys.stderr)
        return 1
    for path in written:
        print(path)
    if os.path.basename(root) != "skills":
        print(f"note: agents look for folders called 'skills', this is {root}", file=sys.stderr)
    print("next: replace every TODO, then run skillshelf list --all", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main())
