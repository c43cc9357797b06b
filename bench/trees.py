"""Makes trees of skills: synthetic ones from a fixed seed, or copies of a folder of real ones.

`python bench/trees.py FOLDER COUNT [REAL]` writes COUNT skills below FOLDER: copies of those below REAL if it is given.
"""

import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

NAME = re.compile(
    rb"""(\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:(?!---)[^\n]*\n)*?name:[ \t]*)(["']?)([^\r\n"'#]+?)(\2[ \t]*\r?\n)"""
)
"""The frontmatter up to a name on one line, its quote, the name, and the rest of the line."""
NAME_BYTES = 64

VERBS = [
    "Draft",
    "Review",
    "Deploy",
    "Convert",
    "Extract",
    "Generate",
    "Validate",
    "Summarise",
    "Migrate",
    "Profile",
    "Refactor",
    "Translate",
    "Audit",
]
NOUNS = [
    "release notes",
    "pull requests",
    "database schemas",
    "PDF forms",
    "spreadsheets",
    "API clients",
    "log files",
    "container images",
    "test suites",
    "design documents",
    "invoices",
    "calendar events",
    "translations",
    "security reports",
    "shell scripts",
    "dashboards",
]
REASONS = [
    "the user asks for it",
    "a build fails",
    "files of that kind are attached",
    "a review is due",
    "numbers do not add up",
    "a customer reports a problem",
    "the team prepares a release",
    "data has to move between systems",
]
TOOLS = ("Read", "Bash(git log:*) Read", "Read Grep Glob", "Bash(npm run:*) Read Write")


def write_tree(root: Path, count: int, *, seed: int = 20_261_115) -> None:
    """The same skills for the same count and seed, each with a few files beside its SKILL.md."""
    dice = random.Random(seed)
    root.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name = f"{dice.choice(VERBS).lower()}-{dice.choice(NOUNS).replace(' ', '-').lower()}-{number:05d}"
        folder = root / name
        folder.mkdir(exist_ok=True)
        (folder / "SKILL.md").write_text(skill_text(name, dice), encoding="utf-8")
        for extra in dice.sample(("references/guide.md", "scripts/run.sh", "assets/template.txt"), dice.randint(0, 3)):
            path = folder / extra
            path.parent.mkdir(exist_ok=True)
            path.write_text("A file that is read only when it is needed.\n" * dice.randint(1, 40), encoding="utf-8")


def skill_text(name: str, dice: random.Random) -> str:
    """Frontmatter of about 300 bytes and a body of a few kilobytes."""
    sentences = [f"{dice.choice(VERBS)} {dice.choice(NOUNS)} with a checklist" for _ in range(dice.randint(1, 3))]
    description = f"{'. '.join(sentences)}. Use when {dice.choice(REASONS)} or {dice.choice(REASONS)}."
    if dice.random() < 0.08:
        description += " Unterstützt auch Umlaute — und Gedankenstriche."
    lines = ["---", f"name: {name}", f"description: {description}"]
    if dice.random() < 0.3:
        lines.append("license: Apache-2.0")
    if dice.random() < 0.45:
        lines += ["metadata:", f"  author: team-{dice.randint(1, 40)}", f'  version: "{dice.randint(0, 9)}.0"']
    if dice.random() < 0.15:
        lines.append(f"allowed-tools: {dice.choice(TOOLS)}")
    steps = [f"## Step {n}\n\n{dice.choice(VERBS)} the {dice.choice(NOUNS)}.\n" for n in range(1, 12)]
    body = [step * dice.randint(2, 12) for step in steps]
    return "\n".join([*lines, "---", "", f"# {name}", "", *body])


def real_files(source: Path) -> list[Path]:
    """Return every SKILL.md below a folder, sorted by path."""
    return sorted(path for path in source.rglob("SKILL.md") if path.is_file())


def write_real_tree(root: Path, count: int, files: Sequence[Path]) -> None:
    """Copy real skills as often as `count` needs, each with a number behind its name and the name of its folder.

    A smaller tree takes files from all parts of the collection. A file without a name on one line is copied as it is.
    """
    root.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        source = files[number * len(files) // count if count < len(files) else number % len(files)]
        folder = root / numbered(source.parent.name.encode(), number).decode("utf-8", "ignore")
        folder.mkdir(exist_ok=True)
        text = NAME.sub(
            lambda found, number=number: found[1] + found[2] + numbered(found[3], number) + found[4],
            source.read_bytes(),
            count=1,
        )
        (folder / "SKILL.md").write_bytes(text)


def numbered(name: bytes, number: int) -> bytes:
    """Return a name with a number behind it, cut so that it is not too long because of the number."""
    end = b"-%05d" % number
    kept = name[: NAME_BYTES - len(end)] if len(name) <= NAME_BYTES else name
    return kept.decode("utf-8", "ignore").rstrip("-").encode() + end


if __name__ == "__main__":
    if sys.argv[3:]:
        write_real_tree(Path(sys.argv[1]), int(sys.argv[2]), real_files(Path(sys.argv[3])))
    else:
        write_tree(Path(sys.argv[1]), int(sys.argv[2]))
