"""One skill through every system: what a model gets at each step of the same conversation.

`python tests/support/scenario.py` writes the page `docs/scenario.md`; `test_scenario.py` keeps it as the code makes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import skillshelf

__all__ = ["PAGE", "SYSTEMS", "System", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "scenario.md"


class System(NamedTuple):
    """The root of a profile in a project, and the tool call by which its model loads a skill."""

    root: str
    tool: str
    parameter: str
    value: str = "{name}"

    def load(self, session: skillshelf.Session, name: str) -> skillshelf.ToolResult:
        """The result for the model of this system when it loads that skill."""
        return session.call(self.tool, {self.parameter: self.value.format(name=name)})


SYSTEMS = {
    "standard": System(".agents/skills", "skill_load", "name"),
    "strict": System(".agents/skills", "skill_load", "name"),
    "codelia": System(".agents/skills", "skill_load", "name"),
    "swiftagent": System(".agent/skills", "activate_skill", "skillName"),
    "mycodeagent": System("skills", "Skill", "name"),
    "rip": System(".agents/skills", "skill_load", "name"),
    "omp": System(".omp/skills", "read", "path", "skill://{name}"),
}

INTRODUCTION = """\
# One skill through every system

The same conversation in each profile: the model gets a list of two skills, the user mentions one, the model loads it,
loads it again, the author edits the file, the model loads it once more; then its context is compacted, the text is
recalled by its reference, and the skill is loaded a last time. Every block is what `skillshelf` gave, made by
`python tests/support/scenario.py`; only paths, digests and times are replaced.
"""
SKILLS = {
    "deploy": "---\nname: deploy\ndescription: Deploys the service. Use for releases & rollbacks.\n---\n# Deploy\n",
    "release-notes": "---\nname: release-notes\ndescription: Drafts release notes from commits.\n---\n"
    "# Release notes\n\nRead references/style.md, then write one line for each change.\n",
}
MESSAGE = "Please use $release-notes for v2.1, and mind $HOME."
WRITTEN, EDITED = 1_700_000_000, 1_700_000_060


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(_chapter(name) for name in SYSTEMS)])


def _chapter(profile: str) -> str:
    """The conversation in one profile; a text that was shown before is not shown again."""
    lines = [f"## {profile}", ""]
    seen: dict[str, int] = {}
    for number, (title, output) in enumerate(_plain(profile), 1):
        lines += [f"{number}. {title}", ""]
        if output in seen:
            lines += [f"The same text as in step {seen[output]}.", ""]
        elif output:
            seen[output] = number
            lines += ["```text", output.rstrip("\n"), "```", ""]
    return "\n".join(lines)


def _plain(profile: str) -> Iterator[tuple[str, str]]:
    """The steps with everything replaced that differs between two runs."""
    digests: dict[str, str] = {}
    with TemporaryDirectory() as folder:
        base = os.path.realpath(folder)
        for title, output in _steps(Path(base), profile):
            plain = output.replace(f"{base}/project", "/home/you/project")
            for digest in re.findall(r"sha256:[0-9a-f]{64}", plain):
                plain = plain.replace(digest, digests.setdefault(digest, f"sha256:{len(digests) + 1}…"))
            yield title, re.sub(r'"time_ms": \d+', '"time_ms": 1', plain)


def _steps(base: Path, profile: str) -> Iterator[tuple[str, str]]:
    """Each step of the conversation: what happens, and what comes of it."""
    system, project = SYSTEMS[profile], base / "project"
    for name, text in SKILLS.items():
        _write(project / system.root / name / "SKILL.md", text, WRITTEN)
    file = project / system.root / "release-notes" / "SKILL.md"
    _write(file.parent / "references" / "style.md", "Write in the past tense.\n", WRITTEN)
    (project / ".git").mkdir()
    shelf = skillshelf.open_shelf(project, profile, home=base / "home", env={})
    session = shelf.session()

    tools = ", ".join(f"`{tool.name}`" for tool in session.tools())
    yield f"The model has {tools} and gets a list of the skills.", session.system_prompt()
    mentions = session.resolve_mentions(MESSAGE)
    meaning = ", ".join(f"`{name}`" for name in mentions.skills) or "nothing, since this system has no mentions"
    yield f"The user mentions {meaning}.", mentions.text
    yield f"The model calls `{system.tool}`.", system.load(session, "release-notes").text
    yield "It calls again.", system.load(session, "release-notes").text
    _write(file, file.read_text().replace("one line", "two lines"), EDITED)
    yield "The author edits the file, and the model calls again.", system.load(session, "release-notes").text
    session.compact()
    ref = list(session.snapshot()["texts"])[-1]
    yield f"The context is compacted. The host recalls `{ref}`.", session.recall(ref)
    yield "The model calls once more.", system.load(session, "release-notes").text


def _write(path: Path, text: str, time: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time, time))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
