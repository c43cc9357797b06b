"""Makes trees of realistic skills: sizes, fields and words as in public collections, from a fixed seed.

`python bench/trees.py FOLDER COUNT` writes COUNT skills below FOLDER.
"""

import random
import sys
from pathlib import Path

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


if __name__ == "__main__":
    write_tree(Path(sys.argv[1]), int(sys.argv[2]))
