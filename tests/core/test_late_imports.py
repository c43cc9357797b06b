"""What takes long to load is loaded when it is needed, and gives the same."""

from __future__ import annotations

import hashlib
import pickle
import re
import subprocess
import sys

import pytest
from support.trees import SOURCE, Machine, write_skill

from skillshelf.core import digests
from skillshelf.core.patterns import lazy_pattern


@pytest.mark.parametrize("size", [0, 3, 5000, digests._MUCH])
@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_digest_is_the_same_by_either_module(monkeypatch: pytest.MonkeyPatch, size: int, is_loaded: bool) -> None:
    data = b"x" * size
    right = hashlib.sha256(data).hexdigest()
    if not is_loaded:
        monkeypatch.delitem(sys.modules, "hashlib")

    assert digests.sha256(data).hexdigest() == right


def test_a_lazy_pattern_does_what_the_pattern_does() -> None:
    text = "one two  three"
    for flags in (0, re.IGNORECASE):
        lazy, pattern = lazy_pattern("T(\\w+)", flags), re.compile("T(\\w+)", flags)
        assert lazy.findall(text) == pattern.findall(text)
        assert lazy.sub("<\\1>", text) == pattern.sub("<\\1>", text)
        assert [found.span() for found in lazy.finditer(text)] == [found.span() for found in pattern.finditer(text)]
        assert (lazy.match(text), bool(lazy.search(text))) == (None, bool(pattern.search(text)))
        assert lazy.pattern == pattern.pattern
    assert lazy_pattern(b"a+").split(b"xaay") == [b"x", b"y"]
    assert pickle.loads(pickle.dumps(lazy_pattern("a").pattern)) == "a"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "late"),
    [
        (["--version"], {"skillshelf.cli.main", "typing"}),
        (["list"], {"sqlite3", "hashlib", "ryaml", "json", "skillshelf.catalog.build", "skillshelf.catalog.discovery"}),
        (["read", "skill://s007/SKILL.md"], {"sqlite3", "_hashlib", "skillshelf.session", "skillshelf.catalog.build"}),
        (["show", "s007"], {"sqlite3", "_hashlib", "urllib.parse", "skillshelf.search", "tantivy", "asyncio"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_does_not_load_what_it_does_not_need(machine: Machine, words: list[str], late: set[str]) -> None:
    root = machine.home / ".agents" / "skills"
    for number in range(80):
        write_skill(root, f"s{number:03}")
    program = (
        "import sys; sys.argv[1:] = sys.argv[2:]; from skillshelf.__main__ import main; main(); "
        "print(*sys.modules, file=sys.stderr)"
    )
    line = [sys.executable, "-c", program, "-", *words]
    if words != ["--version"]:
        line += ["--home", str(machine.home), "--cwd", str(machine.repo)]
    patch = (
        "import skillshelf.catalog.disk_state as d, skillshelf.catalog.cache as c; d.SETTLED_NS = c.SETTLED_NS = 0; "
    )
    environment = {"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin"}
    # The first one packs the catalog, although its files are new.
    subprocess.run([*line[:2], patch + program, *line[3:]], env=environment, capture_output=True, check=True)

    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)

    loaded = set(done.stderr.split())
    assert {name for name in late if name in loaded} == set()
