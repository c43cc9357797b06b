"""Exchange skills with the real programs of others: `npx skills` and `apm`, both of which are fetched from the network.

They run only where `SKILLSHELF_REQUIRE` names them: `SKILLSHELF_REQUIRE=npx,apm python -m pytest -n 0 tests/long`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.needs import REQUIRED
from support.trees import SOURCE

from skillshelf.install.foreign import folder_hash

pytestmark = pytest.mark.slow

needs_npx = pytest.mark.skipif("npx" not in REQUIRED, reason="needs npx and the network: SKILLSHELF_REQUIRE=npx")
needs_apm = pytest.mark.skipif("apm" not in REQUIRED, reason="needs apm and the network: SKILLSHELF_REQUIRE=apm")

# The newest version needs a newer Node.js than many machines have.
NPX = ["npx", "--yes", "-p", "node@22", "-p", "skills@1.7.4", "skills"]
FILES = {
    "SKILL.md": "---\nname: multi\ndescription: Several files for a test. Use when testing.\n---\n# Multi\n",
    "scripts/run.sh": "#!/bin/sh\necho hi\n",
    "references/Notes.md": "# Notes\n",
    "references/a-b.md": "# A\n",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        file = tmp_path / "author/multi" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "author/multi/scripts/run.sh").chmod(0o755)
    for folder in ("home", "home-of-another", "repo/.git"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def run(*words: str, cwd: Path, home: Path, env: Mapping[str, str] | None = None) -> str:
    full = {**os.environ, "HOME": str(home), "DISABLE_TELEMETRY": "1", "PYTHONPATH": SOURCE, **(env or {})}
    done = subprocess.run(words, cwd=cwd, env=full, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def skillshelf(place: Path, *words: str) -> str:
    return run(sys.executable, "-m", "skillshelf", *words, cwd=place / "repo", home=place / "home")


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def locked_tree(project: Path) -> str:
    return str(json.loads((project / "skillshelf.lock").read_text())["skills"]["multi"]["tree"])


def imported_tree(place: Path, theirs: Path, file: str) -> str:
    """Import what another program left in a project, in a fresh project with the same folders, and return the tree."""
    back = theirs.parent / "back"
    shutil.copytree(theirs, back, ignore=shutil.ignore_patterns(".agents", ".claude", "apm_modules", "skillshelf.*"))
    (back / ".git").mkdir(exist_ok=True)
    for words in (["trust", "."], ["import", file, "--yes"]):
        run(sys.executable, "-m", "skillshelf", *words, cwd=back, home=place / "home-of-another")
    assert contents(back / ".agents/skills/multi") == FILES
    return locked_tree(back)


@pytest.fixture
def site(place: Path) -> Iterator[str]:
    (place / "site").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(place / "site")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@needs_npx
def test_npx_skills_installs_from_a_site_that_we_published(place: Path, site: str) -> None:
    skillshelf(place, "publish", "../author/multi", "--site", "../site", "--yes")
    (place / "other").mkdir()
    run(*NPX, "add", site, "--skill", "multi", "--agent", "codex", "--yes", cwd=place / "other", home=place / "home")

    assert contents(place / "other/.agents/skills/multi") == FILES
    lock = json.loads((place / "other/skills-lock.json").read_text())
    assert lock["skills"]["multi"]["computedHash"] == folder_hash({path: text.encode() for path, text in FILES.items()})


@needs_npx
def test_npx_skills_restores_what_we_exported_and_we_import_what_it_locked(place: Path) -> None:
    (place / "author").rename(place / "repo/author")
    skillshelf(place, "add", "./author/multi", "--yes")
    skillshelf(place, "export", "--format", "vercel")
    (place / "other/.git").mkdir(parents=True)
    (place / "repo/author").rename(place / "other/author")
    (place / "repo/skills-lock.json").rename(place / "other/skills-lock.json")
    before = json.loads((place / "other/skills-lock.json").read_text())
    run(*NPX, "experimental_install", cwd=place / "other", home=place / "home")

    assert contents(place / "other/.agents/skills/multi") == FILES
    after = json.loads((place / "other/skills-lock.json").read_text())
    assert after["skills"]["multi"]["computedHash"] == before["skills"]["multi"]["computedHash"]
    assert imported_tree(place, place / "other", "skills-lock.json") == locked_tree(place / "repo")


@pytest.fixture(scope="session")
def apm(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("apm")
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "apm-cli==0.35.0"], check=True, timeout=600)
    return str(folder / "bin/apm")


@needs_apm
def test_apm_installs_what_we_exported_and_we_import_what_it_locked(place: Path, apm: str) -> None:
    (place / "author").rename(place / "repo/author")
    skillshelf(place, "add", "./author/multi", "--yes")
    skillshelf(place, "export", "--format", "apm", "-o", "out")
    (place / "repo/out/.claude").mkdir()
    # Nothing is fetched: a proxy where nobody listens would make every connection fail.
    nobody = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    run(apm, "install", "--target", "claude", cwd=place / "repo/out", home=place / "home", env=nobody)

    found = contents(place / "repo/out/.claude/skills/multi")
    assert {path: found.get(path) for path in FILES} == FILES
    for file in ("apm.yml", "apm.lock.yaml"):
        assert (place / "repo/out" / file).exists()
    assert imported_tree(place, place / "repo/out", "apm.lock.yaml") == locked_tree(place / "repo")
