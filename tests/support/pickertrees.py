"""The tree that the screens of the picker show: a bit of everything, at a place whose path has a fixed length."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.trees import Machine, write_skill
from support.waiting import wait_for

SHOWN_AS = "/home/ada/web"

DEPLOY = """\
---
name: deploy
description: "Deploys the service [red]now[/red]. Use only when asked to."
---
# Deploy

Run `scripts/deploy.sh` and read [bold]what it says[/bold].
A line with a control character: \x1b[31mred\x07.
"""

NOTES = """\
---
name: release-notes
description: Drafts release notes from the commits since the last tag. Use before a release.
---
# Release notes

1. Read `references/style.md`.
2. Draft, then ask.
"""

TRANSLATE = """\
---
name: 翻译
description: 把文字翻译成中文。 Use when a text is to be translated.
---
# 翻译
"""


def _removed(folder: Path) -> bool | None:
    """Remove a folder; return None if a helper of a picker that has just ended still writes there."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists() or None


@contextmanager
def picker_machine() -> Iterator[Machine]:
    """A home folder and a repository below a folder whose path is as long as the one that screens show."""
    base = Path(tempfile.mkdtemp(prefix="", dir="/tmp"))
    assert len(str(base)) == len(SHOWN_AS)
    try:
        machine = Machine(base)
        project, user = machine.repo / ".agents/skills", machine.home / ".agents/skills"
        write_skill(project, "deploy", DEPLOY)
        write_skill(project, "release-notes", NOTES)
        (project / "release-notes/references").mkdir()
        (project / "release-notes/references/style.md").write_text("Short.\n")
        write_skill(project, "broken", "---\nname: broken\n---\nNo description.\n")
        write_skill(user, "release-notes")
        write_skill(user, "code-review")
        write_skill(user, "翻译", TRANSLATE)
        write_skill(user, "retired")
        machine.configure(f'[skills]\ndisabled = ["retired"]\n[trust]\nfolders = ["{machine.repo}"]\n')
        yield machine
    finally:
        wait_for(lambda: _removed(base))
