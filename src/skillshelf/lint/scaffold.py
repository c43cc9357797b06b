"""Create a new skill that passes `check`: completely or not at all, and never instead of an existing one."""

import json
import os
import re
import unicodedata
from typing import Any

from skillshelf.catalog.build_context import require_allowed
from skillshelf.catalog.document import parse
from skillshelf.catalog.rules import check
from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.builtin_profiles import author_severities
from skillshelf.config.profile import Profile, RootRule
from skillshelf.config.system_policy import SystemPolicy
from skillshelf.core import files
from skillshelf.core.console import PathDisplay
from skillshelf.core.disk_writes import make_folder
from skillshelf.core.environment import expand, find_repository
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import fold, folded_name, visible
from skillshelf.errors import ConfigurationError, SkillAlreadyExists, SkillError
from skillshelf.lint.checks import description_findings
from skillshelf.lint.fix import is_valid_name, yaml_word
from skillshelf.shelf import Shelf

__all__ = ["NewSkill", "NewSkillOptions", "create_skill", "suggested_name", "summary_of"]


class NewSkillOptions(NamedTuple):
    """The name, the description and the folders of a new skill."""

    name: str
    description: str | None = None
    scripts: bool = False
    references: bool = False
    assets: bool = False


class NewSkill(NamedTuple):
    """A created skill, with notes for its author."""

    name: str
    path: str
    files: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"name": self.name, "path": self.path, "dir": os.path.dirname(self.path), "files": list(self.files)}


def create_skill(
    options: NewSkillOptions, shelf: Shelf, *, root: str | None = None, user: bool = False, dry_run: bool = False
) -> NewSkill:
    """Create a skill in a root: the given one, the user's own, or that of the repository; or only check that."""
    _refuse_name(options.name, shelf.profile)
    _refuse_controls(options.description or "")
    contents = _contents(options)
    notes = [*_check_new(contents["SKILL.md"], options.name, shelf.profile)]
    folder = f"{_root(shelf, root, user)}/{options.name}"
    _refuse_banned(options.name, folder, shelf.settings.system)
    notes += [
        f"another skill already has this name: {skill.path}"
        for skill in shelf.catalog.skills
        if folded_name(skill.name) == folded_name(options.name) and skill.dir != folder
    ]
    try:
        if not dry_run:
            make_folder(folder, contents)
        elif files.kind_at(folder) is not None:
            raise FileExistsError
    except FileExistsError:
        raise SkillAlreadyExists(folder) from None
    except OSError as error:
        raise SkillError(f"{folder} cannot be created: {(error.strerror or str(error)).lower()}") from None
    return NewSkill(options.name, f"{folder}/SKILL.md", tuple(sorted(contents)), tuple(notes))


def _refuse_banned(name: str, folder: str, system: SystemPolicy) -> None:
    """Raise PermissionDenied for a name or a place that the system policy forbids; there are no files yet."""
    by_name = system._replace(rules=tuple(rule for rule in system.rules if rule.tree is None))
    real = files.real_path(folder)
    require_allowed(by_name, name, f"{folder}/SKILL.md", f"{real}/SKILL.md", real)


def summary_of(new: NewSkill, where: PathDisplay, *, dry_run: bool = False) -> str:
    """Return the created files and the next steps, for people."""
    folder = visible(where.short(os.path.dirname(new.path)))
    if dry_run:
        return "\n".join([f"Would create {folder}", *(f"  {path}" for path in new.files)]) + "\n"
    lines = [f"Created {folder}", *(f"  {path}" for path in new.files), "", "Next:"]
    lines += [
        f"  write the instructions in {folder}/SKILL.md",
        f"  skillshelf check {folder}",
        f"  write real requests into {folder}/evals/eval_queries.json",
        f"  skillshelf eval {new.name}",
        f"  skillshelf show {new.name}",
    ]
    return "\n".join(lines) + "\n"


# Name and location --------------------------------------------------------------------------------


def suggested_name(name: str, profile: Profile) -> str | None:
    """Return the nearest valid name, if there is one."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1-\2", plain).lower()
    near = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[: profile.name_max].strip("-")
    return near if near and is_valid_name(near, profile) else None


def _refuse_name(name: str, profile: Profile) -> None:
    if is_valid_name(name, profile) and name.isascii():
        return
    near = suggested_name(name, profile)
    hint = f"; try: skillshelf new {near}" if near else ""
    raise ConfigurationError(
        f"{name[:80]!r} is not a valid name: use lower-case letters, digits and single hyphens, "
        f"at most {profile.name_max} characters{hint}"
    )


def _refuse_controls(description: str) -> None:
    """Reject control characters, which the file cannot contain; line ends and tabs become blanks."""
    controls = sorted({c for c in description if unicodedata.category(c) == "Cc" and c not in "\t\n\r"})
    if controls:
        named = ", ".join(f"U+{ord(c):04X}" for c in controls)
        raise ConfigurationError(f"--description: control characters are not allowed ({named})")


def _root(shelf: Shelf, root: str | None, user: bool) -> str:
    if root is not None and user:
        raise ConfigurationError("--root and --user exclude each other")
    if root is not None:
        return expand(files.from_system(root), shelf.environment, base=shelf.environment.cwd)
    repository = find_repository(shelf.environment.cwd, shelf.profile.markers)
    rules = {rule.kind: rule for rule in reversed(shelf.profile.roots) if rule.base in _BASES}
    if "project" in rules and repository is not None and not user:
        return _inside(_allowed(_path(rules["project"], shelf, repository), shelf), repository)
    if "user" in rules and shelf.environment.home is not None:
        return _allowed(_path(rules["user"], shelf, repository or shelf.environment.cwd), shelf)
    where = "there is no home folder" if "user" in rules else f"profile {shelf.profile.name} has no root of that kind"
    raise ConfigurationError(f"{where}; name the folder of skills with --root")


_BASES = ("chain", "cwd", "repository", "home")


def _path(rule: RootRule, shelf: Shelf, repository: str) -> str:
    bases = {
        "chain": repository,
        "repository": repository,
        "cwd": shelf.environment.cwd,
        "home": shelf.environment.home or "",
    }
    return os.path.join(bases[rule.base], rule.paths[0])


def _allowed(path: str, shelf: Shelf) -> str:
    """Return the root, unless it is a link that a cloned repository may not contain."""
    roots = resolve_roots(shelf.profile, shelf.environment, shelf.settings, trust=shelf.trust)
    for problem in roots.problems:
        if problem.path == path:
            raise ConfigurationError(f"{path}: {problem.message}")
    return path


def _inside(path: str, repository: str) -> str:
    """Return the root, unless a link in its path leads out of the repository, whether or not the root exists yet."""
    real = files.real_path(path)
    if files.is_inside(real, files.real_path(repository)):
        return path
    raise ConfigurationError(
        f"{path}: a link in this path leads to {real}, outside the repository; name it with --root"
    )


# The files ----------------------------------------------------------------------------------------


def _check_new(data: bytes, name: str, profile: Profile) -> list[str]:
    """Return the notes of `check` about the new file; raise ConfigurationError for a warning or an error."""
    document = parse(data, whole=True)
    findings = [*check(document, name, profile)]
    findings += [found.finding for found in description_findings(document, name)]
    severities = author_severities(profile)
    for finding in findings:
        if severities[finding.rule] in ("reject", "warn"):
            raise ConfigurationError(f"--description: {finding.message}")
    return [f"description: {finding.message}" for finding in findings if severities[finding.rule] != "off"]


def _contents(options: NewSkillOptions) -> dict[str, bytes]:
    title = options.name.replace("-", " ")
    description = options.description if options.description is not None else _DESCRIPTION.format(title=title)
    texts = {"SKILL.md": ""}
    pointers = ""
    for wanted, path, text, pointer in (
        (options.references, "references/details.md", _REFERENCE, _READ_IT),
        (options.scripts, "scripts/run.py", _SCRIPT, _RUN_IT),
        (options.assets, "assets/template.md", _ASSET, _COPY_IT),
    ):
        if wanted:
            texts[path] = text.format(title=title.capitalize())
            pointers += pointer
    # JSON is YAML, and every agent reads one line of it the same way.
    quoted = json.dumps(fold(description), ensure_ascii=False)
    texts["SKILL.md"] = _SKILL.format(
        name=yaml_word(options.name), description=quoted, title=title.capitalize(), pointers=pointers
    )
    texts["evals/eval_queries.json"] = _queries(title, fold(description))
    return {path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}


def _queries(title: str, description: str) -> str:
    """Return first test queries: what the description says, in its own words, and something that it does not."""
    sentences = re.split(r"(?<=[.!?])\s+|(?<=[。！？])", fold(description))
    # What a skill is not for is no request that should find it.
    said = " ".join(one for one in sentences if not re.search(r"\b(?:not|never|don['’]t) use\b|\bnot for\b", one, re.I))
    clauses = re.split(r"\buse (?:when|for|if|to)\b|(?<=[。！？])\s*", said or fold(description), flags=re.IGNORECASE)
    asked = [query for clause in clauses if (query := clause.strip(" .,;:-。！？")[:_QUERY_CHARS])][:2]
    known = set(re.findall(r"\w+", f"{title} {description}".lower()))
    foreign = [query for query in _FOREIGN if known.isdisjoint(query.lower().split())] or _FOREIGN[-1:]
    rows = [(query, True) for query in dict.fromkeys(asked)] + [(query, False) for query in foreign[:2]]
    lines = [json.dumps({"query": query, "should_trigger": should}, ensure_ascii=False) for query, should in rows]
    return "[\n  " + ",\n  ".join(lines) + "\n]\n"


_QUERY_CHARS = 300
_FOREIGN = ("tell me a joke about penguins", "how long do potatoes boil", "who won the football match yesterday")
"""Requests that nearly no skill is for; those that share no word with a skill are its first negative queries."""

_DESCRIPTION = "Carries out {title} step by step and checks the result. Use when the user asks for {title}."

_SKILL = """\
---
name: {name}
description: {description}
---

# {title}

Say in one sentence what is true when this skill has done its work.

## Steps

1. Write the first action as an order.
2. Write the next one; name exact commands, paths and formats.
{pointers}
## Check

Say how to see that the result is right, and what to do when it is not.
"""

_READ_IT = "\nRead [references/details.md](references/details.md) when a case is not covered here.\n"
_RUN_IT = "\nRun [scripts/run.py](scripts/run.py) from this folder; `--help` explains its options.\n"
_COPY_IT = "\nStart the result from [assets/template.md](assets/template.md).\n"

_REFERENCE = """\
# {title}: details

Keep here what only some tasks need: tables, lists of fields, long examples.
"""

_ASSET = """\
# Title

Keep here the text that every result begins with.
"""

_SCRIPT = '''\
#!/usr/bin/env python3
"""Count the lines of a file."""

import argparse
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the file to read")
    options = parser.parse_args()
    try:
        text = options.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        print(f"{{options.file}}: cannot be read: {{error}}", file=sys.stderr)
        return 1
    print(f"{{options.file}}: {{len(text.splitlines())}} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
