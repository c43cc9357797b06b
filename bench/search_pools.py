"""Writes collections of skills that are larger than the corpus, or in which someone tries to be found too often."""

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from search_variants import Query, SkillText

from skillshelf.catalog.document import body

COPIES = 8
"""The number of renamed copies of one skill."""
STUFFED_WORDS = 12_000
"""The number of the commonest words in a body that wants to be found by every query."""


def linked_tree(real: Path, root: Path, without: Iterable[str] = ()) -> Path:
    """Make a collection of all skills but some; the files are the same, not to be changed."""
    left_out = {real / path for path in without}

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name) in left_out]

    shutil.copytree(real, root, copy_function=os.link, ignore=ignored)
    return root


def golds(queries: Iterable[Query]) -> list[str]:
    """Return one right skill for each query, without repetition."""
    return sorted({min(query.gold) for query in queries})


# Copies -------------------------------------------------------------------------------------------


def renamed(text: bytes, name: str) -> bytes:
    """Return a skill under another name."""
    line = f"name: {name}".encode()
    return re.sub(rb"(?m)^name:.*$", lambda _: line, text, count=1)


def _plain_name(path: str, skills: Mapping[str, SkillText]) -> str:
    return re.sub(r"[^a-z0-9]+", "-", skills[path].name.lower()).strip("-")[:50] or "skill"


Copier = Callable[[str, bytes], list[tuple[str, bytes]]]
"""The name and text of a skill to the names and texts of what someone made of it."""


def eight_copies(name: str, text: bytes) -> list[tuple[str, bytes]]:
    """Return eight copies that differ in their names alone."""
    return [(f"{name}-v{number}", renamed(text, f"{name}-v{number}")) for number in range(1, COPIES + 1)]


def targeted_copy(name: str, text: bytes) -> list[tuple[str, bytes]]:
    """Return a copy under a better name that has a third of its body twice."""
    own = body(text)
    return [(f"{name}-pro", renamed(text, f"{name}-pro") + b"\n" + own[: len(own) // 3])]


def copied_tree(
    real: Path, root: Path, paths: Sequence[str], skills: Mapping[str, SkillText], copier: Copier
) -> dict[str, set[str]]:
    """Make a collection with copies of some skills; return the paths of the copies by that of the original."""
    linked_tree(real, root)
    made: dict[str, set[str]] = {}
    for number, path in enumerate(paths):
        text = (real / path).read_bytes()
        for name, copy in copier(_plain_name(path, skills), text):
            folder = root / "zz-copies" / f"{number:03d}" / name
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_bytes(copy)
            made.setdefault(path, set()).add(str((folder / "SKILL.md").relative_to(root)))
    return made


def near_copies(real: Path, paths: Sequence[str], skills: Mapping[str, SkillText]) -> dict[str, set[str]]:
    """Return for some skills all that have the same name or description, or two fifths of their phrases."""
    phrases = {path: _phrases(real / path) for path in skills}
    found: dict[str, set[str]] = {}
    for path in paths:
        mine = phrases[path]
        for other in skills:
            shared, theirs = len(mine & phrases[other]), phrases[other]
            same_text = shared >= 0.4 * max(1, len(mine) + len(theirs) - shared)
            description = skills[path].description
            same_words = skills[other].name == skills[path].name or (
                len(description) > 40 and skills[other].description == description
            )
            if same_text or same_words:
                found.setdefault(path, set()).add(other)
    return found


def _phrases(path: Path) -> set[int]:
    """Return the hashes of all runs of five words of a file."""
    words = path.read_text(encoding="utf-8", errors="replace").lower().split()
    return {hash(tuple(words[n : n + 5])) for n in range(len(words) - 4)}


# Stuffed with words -------------------------------------------------------------------------------


def stuffed_tree(real: Path, root: Path) -> set[str]:
    """Make a collection with four skills of the commonest words in name, description and body; return their paths."""
    linked_tree(real, root)
    counts: Counter[str] = Counter()
    for path in sorted(real.rglob("SKILL.md")):
        counts.update(set(re.findall(r"[a-z]{4,}", path.read_text(encoding="utf-8", errors="replace").lower())))
    common = [word for word, _ in counts.most_common(STUFFED_WORDS)]
    description = " ".join(common)[:1024].rpartition(" ")[0]
    kinds = {
        "stuffed-description": ("helper", description, "Nothing."),
        "stuffed-name": ("-".join(common[:12])[:64].rpartition("-")[0], "Helps with everything.", "Nothing."),
        "stuffed-body": ("assistant", "Helps with everything.", " ".join(common)),
        "stuffed-both": ("expert", description, " ".join(common)),
    }
    for folder, (name, told, text) in kinds.items():
        (root / folder).mkdir()
        (root / folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {told}\n---\n{text}\n")
    return {f"{folder}/SKILL.md" for folder in kinds}


# Larger -------------------------------------------------------------------------------------------


def mixed_tree(real: Path, root: Path, size: int) -> None:
    """Make so many skills: the real ones, then some with the frontmatter of one and lines of the bodies of two."""
    dice = random.Random(size)
    texts = [path.read_bytes() for path in sorted(real.rglob("SKILL.md"))]
    bodies = [body(text).splitlines(keepends=True) for text in texts]
    for number in range(size):
        text = texts[number % len(texts)]
        if number >= len(texts):
            lines = bodies[number % len(texts)] + dice.choice(bodies)
            text = text[: len(text) - len(body(text))] + b"".join(dice.sample(lines, len(lines) // 2))
        folder = root / f"skill-{number:05d}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(text)


def recombined_tree(real: Path, root: Path, more: int, skills: Mapping[str, SkillText]) -> None:
    """Make the corpus and more skills whose names, descriptions and bodies are put together from several real ones."""
    linked_tree(real, root)
    dice = random.Random(more)
    paths = sorted(skills)
    bodies = {path: body((real / path).read_bytes()).decode("utf-8", "replace").splitlines() for path in paths}
    sentences = {path: _sentences(skills[path]) for path in paths}
    words = {path: re.findall(r"\w+", skills[path].name.lower()) or ["skill"] for path in paths}
    for number in range(more):
        first, second, third = dice.sample(paths, 3)
        name = "-".join([*words[first][: max(1, len(words[first]) - 1)], words[second][-1]])[:64].strip("-")
        description = " ".join(dice.choice(sentences[path]) for path in (first, second, third))
        lines = bodies[first] + bodies[second]
        text = "\n".join(dice.sample(lines, len(lines) // 2))
        folder = root / "zz-synthetic" / f"{number:05d}" / name
        folder.mkdir(parents=True)
        quoted = re.sub(r"\s+", " ", description).replace('"', "'").replace("\\", "/")[:1000]
        (folder / "SKILL.md").write_text(f'---\nname: "{name}"\ndescription: "{quoted}"\n---\n{text}\n')


def _sentences(skill: SkillText) -> list[str]:
    """Return the sentences of a description; the name if there are none."""
    parts = re.split(r"(?<=[.;。；])\s*", skill.description.strip(" \"'|>\n"))
    return [part for part in parts if part.strip()] or [skill.name]
