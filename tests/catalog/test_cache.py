"""A cache makes a listing faster and changes nothing else, whatever happens to the files or to the cache."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.trees import Machine, write_skill

from skillshelf.core import files
from skillshelf.core.limits import CACHE_FROM

SEQUENCES = int(os.environ.get("SKILLSHELF_CACHE_SEQUENCES", "12"))
SECONDS = float(os.environ.get("SKILLSHELF_RACE_SECONDS", "0.2"))
MANY = CACHE_FROM + 6


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that is used even for a single file, and for a file that has just changed."""
    monkeypatch.setattr("skillshelf.catalog.cache.CACHE_FROM", 1)
    monkeypatch.setattr("skillshelf.catalog.discovery.CACHE_FROM", 1)
    monkeypatch.setattr("skillshelf.catalog.scan.CACHE_FROM", 1)
    monkeypatch.setattr("skillshelf.catalog.cache.SETTLED_NS", 0)
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 0)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that does not wait for files to settle."""
    monkeypatch.setattr("skillshelf.catalog.cache.SETTLED_NS", 0)


def fill(machine: Machine, count: int = MANY) -> Path:
    """Write a root with enough skills for the cache to be used."""
    root = machine.home / ".agents" / "skills"
    for number in range(count):
        write_skill(root, f"s{number:03}")
    return root


def cache_file(machine: Machine) -> Path:
    return machine.home / ".cache" / "skillshelf" / "skills.sqlite3"


def wait_for_a_tick(folder: Path) -> None:
    """Wait until the clock of the file system has moved: the next change is stamped later than the last."""
    probe = folder / "probe"
    probe.touch()
    start = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == start:
        probe.touch()


@contextmanager
def counting_reads() -> Iterator[list[str]]:
    """Collect the files whose heads are read meanwhile."""
    read: list[str] = []
    original = files.read_head

    def counted(folder: int, name: str, **options: Any) -> files.Head:
        read.append(name)
        return original(folder, name, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skillshelf.core.files.read_head", counted)
        yield read


# Random edits -------------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "group/d", "group/e")


class Edits:
    """Random changes to the skills of a folder, one step at a time."""

    def __init__(self, machine: Machine, dice: random.Random) -> None:
        self.root = machine.repo / ".agents" / "skills"
        self.home = machine.home / ".agents" / "skills"
        self.outside = machine.base / "outside"
        self.dice = dice
        for name in NAMES:
            write_skill(self.root, os.path.basename(name), folder=name)
        for name in NAMES[2:]:
            write_skill(self.home, os.path.basename(name), folder=name)
        write_skill(self.outside, "a", "---\nname: a\ndescription: From outside.\n---\n")

    def file(self) -> Path:
        root = self.home if self.dice.random() < 0.3 else self.root
        return root / self.dice.choice(NAMES) / "SKILL.md"

    def content(self) -> None:
        path = self.file()
        path.parent.mkdir(parents=True, exist_ok=True)
        words = self.dice.choice(["One", "Two", "Six", "Seventeen: with a colon", "[broken"])
        path.unlink(missing_ok=True)
        path.write_text(f"---\nname: {path.parent.name}\ndescription: {words}\n---\n")

    def same_size_and_time(self) -> None:
        path = self.file()
        if path.is_file() and not path.is_symlink():
            before = path.stat()
            text = path.read_bytes()
            path.write_bytes(text.replace(b"One", b"Two") if b"One" in text else text.replace(b"Two", b"One"))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def time_set_back(self) -> None:
        path = self.file()
        if path.exists():
            os.utime(path, ns=(0, self.dice.randrange(10**18)))

    def rename_folder(self) -> None:
        here, there = self.file().parent, self.file().parent
        if here.is_dir() and not there.exists() and not there.is_symlink():
            there.parent.mkdir(parents=True, exist_ok=True)
            here.rename(there)

    def swap_folders(self) -> None:
        here, there = self.file().parent, self.file().parent
        spare = self.root.parent / "spare"
        if here != there and here.is_dir() and there.is_dir():
            here.rename(spare)
            there.rename(here)
            spare.rename(there)

    def folder_to_link(self) -> None:
        here = self.file().parent
        if here.is_dir() and not here.is_symlink():
            away = self.dice.choice([self.outside, self.root.parent / "inside"]) / f"moved{self.dice.randrange(10**9)}"
            away.parent.mkdir(exist_ok=True)
            here.rename(away)
            here.symlink_to(away)

    def file_to_link(self) -> None:
        path = self.file()
        if path.is_file() and not path.is_symlink():
            away = self.dice.choice([self.outside, self.root.parent / "inside"]) / f"file{self.dice.randrange(10**9)}"
            away.parent.mkdir(exist_ok=True)
            path.rename(away)
            path.symlink_to(away)

    def hard_link(self) -> None:
        path, other = self.file(), self.file()
        if path.is_file() and path != other and other.parent.is_dir():
            other.unlink(missing_ok=True)
            os.link(os.path.realpath(path), other)

    def permission(self) -> None:
        path = self.file()
        if path.exists():
            path.chmod(self.dice.choice([0o000, 0o644, 0o444]))

    def folder_permission(self) -> None:
        path = self.file().parent
        if path.is_dir():
            path.chmod(self.dice.choice([0o755, 0o111, 0o700, 0o000]))

    def delete(self) -> None:
        path = self.file().parent
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            path.chmod(0o755)
            shutil.rmtree(path)

    def inner(self) -> None:
        path = self.file().parent
        if path.is_dir():
            write_skill(path, "inner")

    def group_to_link(self) -> None:
        """Replace a folder of skills by a link to itself elsewhere: no file of a skill changes."""
        here = self.file().parents[1]
        if here.name == "group" and here.is_dir() and not here.is_symlink():
            away = here.parents[1] / f"moved{self.dice.randrange(10**9)}"
            here.rename(away)
            here.symlink_to(away)

    def other_target(self) -> None:
        """Let a link of an earlier step lead to another skill, or nowhere."""
        links = [path for path in sorted(self.root.rglob("*")) if path.is_symlink()]
        if links:
            link = self.dice.choice(links)
            link.unlink()
            link.symlink_to(self.dice.choice([self.outside / "a", self.root / "a", self.root.parent / "nothing"]))

    def behind_a_link(self) -> None:
        """Change a folder that a link may lead to, without a change in any root."""
        for folder in (self.outside, self.root.parent / "inside"):
            for path in sorted(folder.glob("moved*")) if folder.is_dir() else ():
                if self.dice.random() < 0.5:
                    path.rename(path.with_name(f"moved{self.dice.randrange(10**9)}"))
                elif (path / "SKILL.md").is_file():
                    (path / "SKILL.md").rename(path / "Skill.md")

    def same_inode(self) -> None:
        """Remove a file and write one of the same size at once, which often gets the number of the first."""
        path = self.file()
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes()
            path.unlink()
            path.write_bytes(text[::-1] if self.dice.random() < 0.2 else text.replace(b"e", b"i"))

    def near_miss(self) -> None:
        path = self.file().with_name(self.dice.choice(["Skill.md", "skill.md", "skills.md"]))
        if path.exists():
            path.unlink()
        elif path.parent.is_dir():
            path.write_text("---\nname: x\n---\n")

    STEPS: tuple[Callable[[Edits], None], ...] = (
        content,
        content,
        same_size_and_time,
        same_size_and_time,
        time_set_back,
        rename_folder,
        swap_folders,
        folder_to_link,
        file_to_link,
        hard_link,
        permission,
        folder_permission,
        delete,
        inner,
        group_to_link,
        other_target,
        behind_a_link,
        same_inode,
        near_miss,
    )

    def step(self) -> str:
        """Do one random step; a step that is impossible here does nothing."""
        act = self.dice.choice(self.STEPS)
        try:
            act(self)
        except OSError:
            return f"{act.__name__} (not possible)"
        return act.__name__

    def close(self) -> None:
        """Restore the permissions of every folder, so that it can be removed."""
        for root in (self.root, self.home):
            for folder, _, _ in os.walk(root):
                os.chmod(folder, 0o755)


@pytest.mark.req("S-129")
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_after_every_edit_a_listing_with_the_cache_is_the_listing_without(machine: Machine, seed: int) -> None:
    edits = Edits(machine, random.Random(seed))
    kept_open = machine.shelf()
    done = []
    for _ in range(12):
        done.append(edits.step())
        # Without this an edit may leave no trace at all; that is what SETTLED_NS is for, see below.
        wait_for_a_tick(machine.base)
        kept_open.refresh()
        fresh = machine.catalog(use_cache=False)
        assert machine.catalog() == fresh, done
        assert kept_open.catalog == fresh, done
        assert machine.shelf().scan(account=True) == machine.shelf(use_cache=False).scan(account=True), done
    edits.close()


@pytest.mark.usefixtures("eager")
def test_the_random_edits_reach_every_outcome_and_the_cache_is_used_among_them(machine: Machine) -> None:
    with counting_reads() as read:
        for seed in range(3):
            shutil.rmtree(machine.repo / ".agents", ignore_errors=True)
            shutil.rmtree(machine.home / ".agents", ignore_errors=True)
            shutil.rmtree(machine.base / "outside", ignore_errors=True)
            edits = Edits(machine, random.Random(seed))
            for _ in range(12):
                edits.step()
                wait_for_a_tick(machine.base)
                machine.catalog()
            edits.close()
    with_cache = len(read)
    assert 0 < with_cache < 3 * 12 * len(NAMES) * 0.75


# What counts as unchanged -------------------------------------------------------------------------


@pytest.mark.req("K-06")
@pytest.mark.usefixtures("settled")
def test_an_unchanged_file_is_not_read_again(machine: Machine) -> None:
    fill(machine)
    first = machine.catalog()

    with counting_reads() as read:
        assert machine.catalog() == first

    assert read == []
    assert len(first.skills) == MANY


@pytest.mark.usefixtures("settled")
def test_only_the_changed_file_is_read_again(machine: Machine) -> None:
    root = fill(machine)
    machine.catalog()
    wait_for_a_tick(machine.base)
    write_skill(root, "s001", "---\nname: s001\ndescription: New words.\n---\n")

    with counting_reads() as read:
        catalog = machine.catalog()

    assert read == ["SKILL.md"]
    assert [skill.description for skill in catalog.skills if skill.name == "s001"] == ["New words."]


def test_a_file_that_changed_within_two_seconds_is_read_again(machine: Machine) -> None:
    fill(machine)
    machine.catalog()

    with counting_reads() as read:
        machine.catalog()

    assert len(read) == MANY
    assert not cache_file(machine).exists()


@pytest.mark.usefixtures("settled")
def test_without_the_cache_every_file_is_read_and_nothing_is_written(machine: Machine) -> None:
    fill(machine)

    for _ in range(2):
        with counting_reads() as read:
            machine.catalog(use_cache=False)
        assert len(read) == MANY
    assert not (machine.home / ".cache").exists()


def test_a_handful_of_skills_needs_no_cache(machine: Machine) -> None:
    fill(machine, 3)

    machine.catalog()

    assert not (machine.home / ".cache").exists()


@pytest.mark.usefixtures("settled")
def test_the_configuration_is_applied_again_to_cached_skills(machine: Machine) -> None:
    fill(machine)
    machine.catalog()
    machine.configure('[skills]\ndisabled = ["s000"]\nignored = ["s00[12]"]\n')

    catalog = machine.catalog()

    assert catalog == machine.catalog(use_cache=False)
    assert (catalog.skills[0].name, catalog.skills[0].hidden, len(catalog.filtered)) == ("s000", "disabled", 2)


@pytest.mark.usefixtures("settled")
def test_each_profile_has_entries_of_its_own(machine: Machine) -> None:
    root = fill(machine)
    write_skill(root, "Bad_Name")
    found = {profile: machine.catalog(profile) for profile in ("standard", "strict", "rip")}

    assert {profile: machine.catalog(profile) for profile in found} == found
    assert (len(found["standard"].skills), len(found["strict"].skills)) == (MANY + 1, MANY)


@pytest.mark.usefixtures("settled")
def test_warnings_are_remembered_with_their_lines(machine: Machine) -> None:
    root = fill(machine)
    write_skill(root, "colon", "---\nname: colon\ndescription: Use it: now\n---\n")
    first = machine.catalog()

    with counting_reads() as read:
        again = machine.catalog()

    assert (again, read) == (first, [])
    assert [(warning.rule, warning.line) for warning in again.warnings] == [("yaml-colon", 3)]


# What can happen to the cache ---------------------------------------------------------------------


def damage_everything(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(path.stat().st_size))


def damage_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data), 97):
        data[place] ^= 0x55
    path.write_bytes(data)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def write_other_words(path: Path) -> None:
    path.write_text("this is no database")


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_another_table(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE roots (something TEXT)")
    connection.close()


def put_garbage_in_the_row(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE roots SET data = substr(data, 1, 40)")
    connection.close()


def put_text_in_the_row(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE roots SET data = 'text'")
    connection.close()


def close_to_all(path: Path) -> None:
    path.chmod(0o000)


def open_to_all(path: Path) -> None:
    path.chmod(0o666)


def link_elsewhere(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


ACCIDENTS = (
    damage_everything,
    damage_the_middle,
    cut_in_half,
    make_empty,
    write_other_words,
    make_a_folder,
    make_a_pipe,
    make_another_table,
    put_garbage_in_the_row,
    put_text_in_the_row,
    close_to_all,
    open_to_all,
    link_elsewhere,
)


@pytest.mark.parametrize("accident", ACCIDENTS)
@pytest.mark.usefixtures("settled")
def test_whatever_happens_to_the_cache_the_listing_is_right(machine: Machine, accident: Callable[[Path], None]) -> None:
    fill(machine)
    right = machine.catalog()
    assert cache_file(machine).is_file()
    accident(cache_file(machine))

    assert machine.catalog() == right
    assert machine.catalog() == right


@pytest.mark.parametrize("accident", [damage_everything, write_other_words, make_empty, put_garbage_in_the_row])
@pytest.mark.usefixtures("settled")
def test_a_damaged_cache_is_rebuilt(machine: Machine, accident: Callable[[Path], None]) -> None:
    fill(machine)
    right = machine.catalog()
    accident(cache_file(machine))
    for _ in range(2):
        machine.catalog()

    with counting_reads() as read:
        assert machine.catalog() == right

    assert read == []


@pytest.mark.usefixtures("settled")
def test_a_locked_cache_is_not_waited_for(machine: Machine) -> None:
    fill(machine)
    right = machine.catalog()
    connection = sqlite3.connect(cache_file(machine), isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        assert machine.catalog() == right
    finally:
        connection.close()


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("place", ["a file stands in its way", "a link to nowhere"])
def test_where_no_cache_can_be_written_the_listing_is_right(machine: Machine, place: str) -> None:
    fill(machine)
    folder = machine.home / ".cache"
    if place == "a file stands in its way":
        folder.write_text("")
    else:
        folder.symlink_to("nowhere/at/all")

    assert machine.catalog() == machine.catalog() == machine.catalog(use_cache=False)


@pytest.mark.usefixtures("settled")
def test_only_the_user_can_read_or_write_the_cache(machine: Machine) -> None:
    before = os.umask(0)
    try:
        fill(machine)
        machine.catalog()
    finally:
        os.umask(before)

    assert stat.S_IMODE(cache_file(machine).parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(cache_file(machine).stat().st_mode) & 0o022 == 0


@pytest.mark.usefixtures("settled")
def test_roots_that_were_written_long_ago_leave_first(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillshelf.catalog.cache.CACHE_ROWS", 3)
    fill(machine)
    for profile in ("standard", "strict", "rip", "swiftagent", "codelia"):
        machine.catalog(profile)

    with sqlite3.connect(cache_file(machine)) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM roots").fetchone()
    connection.close()
    assert rows == 3


# Many at once -------------------------------------------------------------------------------------

LISTER = """
import sys
from skillshelf.cli.main import main

until = float(sys.argv.pop(1))
import os, time
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
count = 0
while time.time() < until:
    status = main(["list", "--json", *sys.argv[1:]])
    assert status == 0, status
    count += 1
os.write(out, str(count).encode())
"""


@pytest.mark.slow
def test_eight_list_while_a_ninth_edits_and_the_last_listing_is_right(machine: Machine) -> None:
    root = fill(machine, 100)
    until = time.time() + SECONDS
    words = [sys.executable, "-c", LISTER, str(until), "--home", str(machine.home), "--cwd", str(machine.repo)]
    environment: Mapping[str, str] = {"PATH": os.environ.get("PATH", ""), "HOME": str(machine.home)}
    listers = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) for _ in range(8)
    ]
    dice = random.Random(1)
    edits = 0
    while time.time() < until or not edits:
        name = f"s{dice.randrange(100):03}"
        write_skill(root, name, f"---\nname: {name}\ndescription: Edit {edits}.\n---\n")
        edits += 1
    for lister in listers:
        output, problems = lister.communicate(timeout=60)
        assert (lister.returncode, problems) == (0, b"")
        assert int(output) >= 0
    assert machine.run_json("list") == machine.run_json("list", "--no-cache")
