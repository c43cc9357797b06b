"""The index on disk: it follows the skills, gives what a fresh one gives, and survives what happens to files.

The races run for a moment, or as long as SKILLSHELF_RACE_SECONDS says; the number of kills is SKILLSHELF_KILLS.
"""

from __future__ import annotations

import marshal
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.trees import SOURCE, Machine, write_skill

from skillshelf import CatalogSkill, FileReadError, Shelf
from skillshelf.core import files
from skillshelf.core.disk_writes import locked_within, remove_folder
from skillshelf.core.values import Stamp
from skillshelf.search import index
from skillshelf.search import index as indexes

SECONDS = float(os.environ.get("SKILLSHELF_RACE_SECONDS", "0.5"))
KILLS = int(os.environ.get("SKILLSHELF_KILLS", "4"))
# Without bytecode: a process with a small limit of file size would leave half of it behind.
ENVIRONMENT = {"PYTHONPATH": SOURCE, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
WORDS = ["deploy", "release", "notes", "GitHub", "pdf", "forms", "转换文件", "paint", "fences", "résumé", "schedule"]
QUERIES = ["deploy release notes", "fill pdf forms", "github", "转换", "how to paint fences", "a resume schedule"]


def put(root: Path, name: str, words: list[str]) -> Path:
    """A skill whose description and body are these words."""
    half = len(words) // 2
    description = " ".join(words[:half]) or "Nothing."
    return write_skill(root, name, f"---\nname: {name}\ndescription: {description}\n---\n{' '.join(words[half:])}\n")


def skills_of(machine: Machine) -> Path:
    """The folder of the user's skills."""
    return machine.home / ".agents" / "skills"


def answers(shelf: Shelf) -> list[Any]:
    """Return the results of a shelf, with all digits of the scores."""
    return [
        [(result.skill.name, result.score) for result in shelf.search(query, limit=50).results] for query in QUERIES
    ]


def names_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the names of the skills whose text is read from now on."""
    read: list[str] = []
    look = index._body

    def counted(skill: CatalogSkill) -> str:
        read.append(skill.name)
        return look(skill)

    monkeypatch.setattr(index, "_body", counted)
    return read


def fresh(machine: Machine) -> list[Any]:
    """Return the results of a new index in memory."""
    return answers(machine.shelf(use_cache=False))


def index_folder(machine: Machine) -> Path:
    """The one index in the cache folder."""
    (folder,) = (machine.home / ".cache" / "skillshelf" / "search").iterdir()
    return folder


def fill(machine: Machine, count: int, *, seed: int) -> None:
    """Skills of random words, always the same for a seed."""
    dice = random.Random(seed)
    for number in range(count):
        put(skills_of(machine), f"skill-{number:02d}", dice.choices(WORDS, k=8))


# The same answers ---------------------------------------------------------------------------------

Texts = st.lists(st.sampled_from(WORDS), max_size=6)
Changes = st.lists(st.tuples(st.integers(0, 5), st.none() | Texts), min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.lists(Changes, min_size=2, max_size=4))
def test_an_index_that_followed_changes_answers_like_a_fresh_one(history: list[list[tuple[int, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        for changes in history:
            for number, words in changes:
                path = skills_of(machine) / f"skill-{number}" / "SKILL.md"
                if words is not None:
                    put(skills_of(machine), f"skill-{number}", words)
                elif path.exists():
                    path.unlink()
            assert answers(machine.shelf()) == fresh(machine)


@settings(max_examples=15, deadline=None)
@given(st.lists(Texts, min_size=3, max_size=8), st.sets(st.integers(0, 7), min_size=1), st.sampled_from(QUERIES))
def test_the_absence_of_hidden_skills_leaves_the_others_in_their_order(
    texts: list[list[str]], hidden: set[int], query: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        for number, words in enumerate(texts):
            put(skills_of(machine), f"skill-{number}", words)
        disabled = [f"skill-{number}" for number in hidden]
        everything = machine.shelf(use_cache=False).search(query, limit=50, every=True).results

        report = machine.shelf(use_cache=False, config={"skills": {"disabled": disabled}}).search(
            query, limit=50, model=True, every=True
        )

        kept = [(r.skill.name, r.score) for r in everything if r.skill.name not in disabled]
        assert [(r.skill.name, r.score) for r in report.results] == kept


def test_more_equal_skills_than_are_looked_at_first_are_cut_by_path(machine: Machine) -> None:
    for number in range(150):
        put(skills_of(machine), f"skill-{number:03d}", ["deploy", "now"])

    for shelf in (machine.shelf(), machine.shelf(use_cache=False)):
        assert [r.skill.name for r in shelf.search("deploy", limit=3, every=True).results] == [
            "skill-000",
            "skill-001",
            "skill-002",
        ]


# Following the disk -------------------------------------------------------------------------------


def test_a_prepared_search_reads_no_skill_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    put(skills_of(machine), "one", ["pdf", "forms"])
    shelf = machine.shelf()

    shelf.prepare_search()
    monkeypatch.setattr(index, "open_index", None)

    assert [hit.skill.name for hit in shelf.search("forms").results] == ["one"]
    assert shelf.indexing is None


def test_searches_that_come_while_the_index_is_built_wait_for_all_of_it(machine: Machine) -> None:
    for number in range(60):
        put(skills_of(machine), f"skill-{number}", ["Nothing", "special", f"word{number}"])
    shelf = machine.shelf()

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda number: shelf.search(f"word{number}").results, range(0, 60, 10)))

    assert [[hit.skill.name for hit in hits] for hits in found] == [[f"skill-{number}"] for number in range(0, 60, 10)]


def test_only_what_changed_is_read_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "SETTLED_NS", 50_000_000)
    fill(machine, 12, seed=1)
    time.sleep(0.06)
    machine.shelf().search("deploy")
    read = names_read(monkeypatch)

    assert machine.shelf().search("deploy").count
    assert read == []
    put(skills_of(machine), "skill-03", ["xylophone"])
    (skills_of(machine) / "skill-04" / "SKILL.md").unlink()
    put(skills_of(machine), "skill-99", ["marimba"])
    machine.shelf().search("deploy")
    assert sorted(read) == ["skill-03", "skill-99"]


def test_files_that_the_scan_saw_are_not_examined_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "SETTLED_NS", 50_000_000)
    fill(machine, 12, seed=1)
    time.sleep(0.06)
    machine.shelf().search("deploy")
    shelf = machine.shelf()
    assert len(shelf.catalog.skills) == 12
    looked_at: list[str] = []
    stamp_at = files.stamp_at

    def counted(path: str) -> Stamp | None:
        looked_at.append(path)
        return stamp_at(path)

    monkeypatch.setattr(files, "stamp_at", counted)

    assert shelf.search("deploy").count
    assert [path for path in looked_at if path.endswith("SKILL.md")] == []


def test_an_edit_between_the_look_and_the_search_is_seen_by_the_next_look(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "SETTLED_NS", 50_000_000)
    put(skills_of(machine), "alpha", ["x", "y", "kettle"])
    time.sleep(0.06)
    early = machine.shelf()
    assert early.catalog.skills
    put(skills_of(machine), "alpha", ["x", "y", "teapot"])
    early.search("teapot")
    put(skills_of(machine), "alpha", ["x", "y", "saucer"])

    assert [machine.shelf().search(word).count for word in ("kettle", "teapot", "saucer")] == [0, 0, 1]


def test_a_whole_seal_of_another_version_does_not_count(machine: Machine) -> None:
    fill(machine, 3, seed=1)
    machine.shelf().search("deploy")
    content = marshal.dumps(("another", "version", "of it"))
    (index_folder(machine) / "seal").write_bytes(blake2b(content, digest_size=16).digest() + content)

    assert answers(machine.shelf()) == fresh(machine)


def test_an_edit_that_keeps_size_and_time_is_seen(machine: Machine) -> None:
    path = put(skills_of(machine), "alpha", ["x", "y", "kettle"])
    time.sleep(0.06)
    assert machine.shelf().search("kettle").count == 1
    status = path.stat()

    path.write_text(path.read_text().replace("kettle", "teapot"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert [machine.shelf().search(word).count for word in ("kettle", "teapot")] == [0, 1]


def test_edits_within_one_tick_of_the_clock_are_seen(machine: Machine) -> None:
    for turn in range(4):
        put(skills_of(machine), "alpha", ["x", "y", f"word{turn:02d}"])
        assert machine.shelf().search(f"word{turn:02d}").count == 1
        assert machine.shelf().search(f"word{turn - 1:02d}").count == 0


def test_a_refresh_is_needed_and_enough_to_see_an_edit(machine: Machine) -> None:
    put(skills_of(machine), "alpha", ["x", "y", "kettle"])
    shelf = machine.shelf()
    shelf.search("kettle")

    put(skills_of(machine), "alpha", ["x", "y", "teapot"])
    before = shelf.search("teapot").count
    shelf.refresh()

    assert (before, shelf.search("teapot").count) == (0, 1)


def test_a_skill_that_went_away_since_the_catalog_was_made_is_found_by_its_name_and_description(
    machine: Machine,
) -> None:
    path = put(skills_of(machine), "alpha", ["kettle", "teapot"])
    shelf = machine.shelf()
    assert shelf.catalog.skills
    path.unlink()

    assert [shelf.search(word).count for word in ("kettle", "teapot")] == [1, 0]


def test_a_skill_that_the_machine_failed_to_read_is_read_at_the_next_look(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(machine, 6, seed=3)
    with monkeypatch.context() as patched:
        patched.setattr(index, "_body", failing)
        notes = machine.shelf().search("deploy release").notes

    assert notes == ("the text of 6 skills could not be read; name and description are searched",)
    assert answers(machine.shelf()) == fresh(machine)


def failing(skill: CatalogSkill) -> str:
    """Fail as the reading of a body does on a broken disk."""
    raise FileReadError(skill.path, OSError(5, "Input/output error"))


def test_each_set_of_roots_has_an_index_of_its_own_and_old_ones_go(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "INDEXES_KEPT", 3)
    fill(machine, 3, seed=2)
    for number in range(5):
        folder = machine.base / f"other-{number}"
        put(folder, f"other-{number}", ["deploy"])
        machine.env = {"AGENT_SKILLS_PATH": str(folder)}
        assert machine.shelf().search(f"other-{number}", limit=1).results[0].skill.name == f"other-{number}"

    kept = list((machine.home / ".cache" / "skillshelf" / "search").iterdir())
    # The fifth came after the others were counted.
    assert len(kept) <= 4
    assert machine.shelf().search("other-4").count >= 1


# Damage -------------------------------------------------------------------------------------------


def damage(path: Path, dice: random.Random) -> None:
    """Change, cut, lengthen or remove a file."""
    data = bytearray(path.read_bytes())
    how = dice.choice(["change", "cut", "lengthen", "remove"])
    if how == "remove":
        path.unlink()
        return
    if how == "change" and data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif how == "cut":
        del data[len(data) // 2 :]
    else:
        data += bytes([dice.randrange(256)])
    # In its place, not in it: cutting a file that a search of this process still has mapped would end the process.
    damaged = path.with_name("damaged")
    damaged.write_bytes(bytes(data))
    damaged.replace(path)


def test_a_damaged_index_is_rebuilt(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "SETTLED_NS", 0)
    fill(machine, 10, seed=3)
    wanted = fresh(machine)
    assert answers(machine.shelf()) == wanted
    dice = random.Random(4)
    for _ in range(15):
        victims = sorted(path for path in index_folder(machine).rglob("*") if path.is_file())
        damage(dice.choice(victims), dice)

        assert answers(machine.shelf()) == wanted
    # It was stored again, and matches.
    state = files.stamps_in(str(index_folder(machine) / "index"))
    assert answers(machine.shelf()) == wanted
    assert files.stamps_in(str(index_folder(machine) / "index")).keys() == state.keys()


@pytest.mark.parametrize("what", ["cache", "index", "lock", "seal"])
def test_where_nothing_can_be_kept_an_index_in_memory_answers_the_same(machine: Machine, what: str) -> None:
    fill(machine, 6, seed=5)
    wanted = fresh(machine)
    if what == "cache":
        (machine.home / ".cache").write_text("a file where a folder should be")
    else:
        machine.shelf().search("deploy")
        place = index_folder(machine) / what
        remove_folder(str(place))
        place.unlink(missing_ok=True)
        place.write_text("") if what == "index" else place.mkdir()

    assert answers(machine.shelf()) == wanted
    assert answers(machine.shelf()) == wanted


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache_folder_is_not_an_error(machine: Machine) -> None:
    fill(machine, 6, seed=5)
    (machine.home / ".cache").mkdir(mode=0o500)

    assert answers(machine.shelf()) == fresh(machine)
    assert list((machine.home / ".cache").iterdir()) == []


FULL = """
import resource, sys
import skillshelf
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
shelf = skillshelf.open_shelf(sys.argv[1], home=sys.argv[1], env={})
print([[(r.skill.name, r.score) for r in shelf.search(query, limit=50).results] for query in sys.argv[2:]])
"""


@pytest.mark.slow
def test_a_full_disk_is_not_an_error(machine: Machine) -> None:
    fill(machine, 30, seed=6)

    done = subprocess.run(
        [sys.executable, "-c", FULL, str(machine.home), *QUERIES],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == f"{fresh(machine)}\n", done.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    assert answers(machine.shelf()) == fresh(machine)


def test_while_another_process_writes_the_last_commit_and_what_changed_since_answer_together(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "_BRIEF_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(indexes, "SETTLED_NS", 50_000_000)
    fill(machine, 30, seed=7)
    time.sleep(0.06)
    machine.shelf().search("deploy")
    put(skills_of(machine), "skill-00", ["kettle", "deploy"])
    put(skills_of(machine), "skill-77", ["kettle", "release", "notes"])
    (skills_of(machine) / "skill-01" / "SKILL.md").unlink()
    expected = fresh(machine)
    read = names_read(monkeypatch)

    with locked_within(str(index_folder(machine) / "lock"), 0) as held:
        assert held
        assert answers(machine.shelf()) == expected
    assert sorted(read) == ["skill-00", "skill-77"]
    assert answers(machine.shelf()) == expected


def test_who_waits_too_long_for_the_first_index_answers_from_memory(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "INDEX_WAIT_SECONDS", 0.02)
    fill(machine, 6, seed=7)
    machine.shelf().search("deploy")
    (index_folder(machine) / "seal").unlink()

    with locked_within(str(index_folder(machine) / "lock"), 0) as held:
        assert held
        assert answers(machine.shelf()) == fresh(machine)


@pytest.mark.parametrize("what", ["a link", "a folder in which others write"])
def test_what_is_not_ours_alone_in_the_cache_folder_is_left_alone(machine: Machine, what: str, tmp_path: Path) -> None:
    fill(machine, 6, seed=7)
    machine.shelf().search("deploy")
    folder = index_folder(machine)
    if what == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.chmod(0o777)
    (folder / "seal").write_bytes(b"")
    (folder / "index" / "precious").write_bytes(b"kept")

    assert answers(machine.shelf()) == fresh(machine)
    assert (folder / "index" / "precious").read_bytes() == b"kept"


def test_folders_of_the_index_are_private(machine: Machine) -> None:
    fill(machine, 1, seed=7)
    machine.shelf().search("deploy")

    folder = index_folder(machine)
    assert [oct(place.stat().st_mode & 0o777) for place in (folder, folder.parent)] == ["0o700", "0o700"]


# Other processes ----------------------------------------------------------------------------------

SEARCH = """
import os, sys, time
import skillshelf
parent, end = os.getppid(), time.monotonic() + float(sys.argv[2])
shelf = skillshelf.open_shelf(sys.argv[1], home=sys.argv[1], env={})
shelf.catalog
print("ready", flush=True)
while True:
    for result in shelf.search("deploy release notes", limit=50).results:
        assert result.skill.name.startswith("skill-") and result.score > 100, result
    if time.monotonic() > end or os.getppid() != parent:
        break
    shelf.refresh()
"""

EDIT = """
import os, random, sys, time
parent, end, dice = os.getppid(), time.monotonic() + float(sys.argv[2]), random.Random(sys.argv[3])
words = sys.argv[4:]
print("ready", flush=True)
while time.monotonic() < end and os.getppid() == parent:
    name = f"skill-{dice.randrange(30):02d}"
    folder = f"{sys.argv[1]}/.agents/skills/{name}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/.new-{os.getpid()}", "w") as file:
        description, body = " ".join(dice.choices(words, k=4)), dice.choice(words)
        file.write(f"---\\nname: {name}\\ndescription: {description}\\n---\\n{body}\\n")
    if dice.random() < 0.1:
        try:
            os.unlink(f"{folder}/SKILL.md")
        except FileNotFoundError:
            pass
    else:
        os.replace(f"{folder}/.new-{os.getpid()}", f"{folder}/SKILL.md")
"""


def started(script: str, *words: str) -> subprocess.Popen[str]:
    """Start a process and wait until it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]
    return process


@pytest.mark.slow
def test_a_process_killed_while_it_changes_the_index_leaves_one_that_works(machine: Machine) -> None:
    dice = random.Random(os.environ.get("SKILLSHELF_KILLS", "a seed"))
    interrupted = 0
    for turn in range(KILLS):
        fill(machine, 20, seed=100 + turn)
        process = started(SEARCH, str(machine.home), "0")
        with process:
            time.sleep(dice.uniform(0, 0.08))
            interrupted += process.poll() is None
            process.kill()

        assert answers(machine.shelf()) == fresh(machine)
    assert interrupted


def racing(machine: Machine, searchers: int, editors: int) -> Iterator[subprocess.Popen[str]]:
    """Processes that search, and processes that edit."""
    for _ in range(searchers):
        yield started(SEARCH, str(machine.home), str(SECONDS))
    for number in range(editors):
        yield started(EDIT, str(machine.home), str(SECONDS), str(number), *WORDS)


@pytest.mark.slow
def test_many_processes_search_while_others_edit(machine: Machine) -> None:
    fill(machine, 30, seed=8)
    searchers, editors = (8, 2) if SECONDS >= 5 else (2, 1)
    with ExitStack() as stack:
        for process in [stack.enter_context(process) for process in racing(machine, searchers, editors)]:
            errors = process.communicate(timeout=SECONDS + 60)[1]
            assert (process.returncode, errors) == (0, "")

    assert answers(machine.shelf()) == fresh(machine)
    assert answers(machine.shelf()) == fresh(machine)
