"""A packed catalog answers about one skill without making others, and is never believed when it should not be."""

from __future__ import annotations

import contextlib
import errno
import gc
import marshal
import os
import pickle
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from support.trees import Machine, write_skill

import skillshelf
from skillshelf.catalog import packed_file as packed_files
from skillshelf.catalog.packed import PackedSkills, SkillTable
from skillshelf.core import files
from skillshelf.core.limits import CACHE_FROM

MANY = CACHE_FROM + 6


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catalogs that are packed although their files were written a moment ago."""
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 0)
    monkeypatch.setattr("skillshelf.catalog.cache.SETTLED_NS", 0)


def fill(machine: Machine) -> Path:
    """Write enough skills for a packed catalog, one of them in a group, one linked and one refused."""
    root = machine.home / ".agents" / "skills"
    for number in range(MANY):
        write_skill(root, f"s{number:03}")
    write_skill(root, "Grouped", "---\nname: Grouped\ndescription: In a group.\n---\n", folder="group/Grouped")
    write_skill(root, "broken", "---\nname: [\n---\n")
    write_skill(machine.base / "elsewhere", "linked")
    (root / "linked").symlink_to(machine.base / "elsewhere" / "linked")
    machine.catalog()
    return root


def packed_file(machine: Machine) -> Path:
    (path,) = (machine.home / ".cache" / "skillshelf" / "packed").iterdir()
    return path


@contextmanager
def made_skills() -> Iterator[list[int]]:
    """Collect the positions of the skills that are made meanwhile."""
    made: list[int] = []
    original = PackedSkills._decoded

    def counted(skills: PackedSkills, position: int) -> skillshelf.CatalogSkill:
        made.append(position)
        return original(skills, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PackedSkills, "_decoded", counted)
        yield made


# One skill costs one skill ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda shelf: shelf.load("s007").skill.name,
        lambda shelf: shelf.load("S007").skill.name,
        lambda shelf: shelf.load(path=shelf.environment.home + "/.agents/skills/s007").skill.name,
        lambda shelf: shelf.read("skill://s007/SKILL.md") and "s007",
        lambda shelf: shelf.session().call("skill_load", {"name": "s007"}).data["name"],
    ],
    ids=["name", "spelling", "path", "address", "session"],
)
def test_a_question_about_one_skill_makes_one(machine: Machine, ask: Callable[[skillshelf.Shelf], str]) -> None:
    fill(machine)
    with made_skills() as made:
        assert ask(machine.shelf()) == "s007"
    assert len(set(made)) == 1


def test_a_table_answers_the_hundredth_question_as_the_first() -> None:
    names, paths = ["git", "git-hooks", "github", "git", "x", ""], ["/a/git", "/a", "/a/git-hooks", "/b", "/b/x", "/c"]
    table = SkillTable({"names": "\n".join(["", *names, ""]).encode(), "paths": "\0".join(["", *paths, ""]).encode()})
    asked = ["git", "gith", "g", "", "git\ngit-hooks", "z", "github-actions", "/a", "/a/git", "/b\0/b/x", "/nowhere"]

    answers = [[(table.named(one), table.begun(one), table.at_path(one)) for one in asked] for _ in range(20)]

    assert answers == [answers[0]] * 20
    assert answers[0][0] == ([0, 3], [0, 1, 2, 3], [])
    assert answers[0][7] == ([], [], [1])


def test_a_table_of_all_skills_makes_none(machine: Machine) -> None:
    fill(machine)
    with made_skills() as made:
        done = machine.run("list")
    assert made == []
    assert done.stdout == machine.run("list", "--no-cache").stdout


def test_a_catalog_from_its_file_is_the_catalog_of_a_scan(machine: Machine) -> None:
    fill(machine)
    scanned, unpacked = machine.catalog(use_cache=False), machine.catalog()

    assert isinstance(unpacked.skills, PackedSkills)
    assert unpacked == scanned
    assert unpacked.to_dict() == scanned.to_dict()
    assert unpacked.skills[-1] == scanned.skills[-1]
    assert unpacked.skills[2:5] == scanned.skills[2:5]
    assert pickle.loads(pickle.dumps(unpacked)) == scanned
    with pytest.raises(IndexError):
        unpacked.skills[len(scanned.skills)]


def test_the_name_in_a_refused_file_is_kept(machine: Machine) -> None:
    root = fill(machine)
    write_skill(root, "folder", "---\nname: own-name\n---\n")
    for _ in range(2):
        with pytest.raises(skillshelf.SkillError, match="description"):
            machine.shelf().load("own-name")


def test_two_neighbours_are_not_one_name(machine: Machine) -> None:
    fill(machine)
    for cached in (True, False):
        shelf = machine.shelf(use_cache=cached)
        assert [
            result.reason for result in shelf.search("s001\ns002").results if result.reason != "token_overlap"
        ] == []
        with pytest.raises(skillshelf.SkillNotFound):
            shelf.load("s001\ns002")


def test_a_refresh_without_a_change_gives_the_same_catalog_and_reads_nothing(machine: Machine) -> None:
    fill(machine)
    shelf = machine.shelf()
    before = shelf.catalog

    assert shelf.refresh() is False
    assert shelf.catalog is before
    write_skill(machine.home / ".agents" / "skills", "new")
    assert shelf.refresh() is True
    assert "new" in [skill.name for skill in shelf.catalog.skills]


# What is not believed -----------------------------------------------------------------------------


def test_a_rule_that_looks_at_other_files_is_decided_anew(machine: Machine) -> None:
    """A rule that names a folder follows its links when it is asked, and no stamp of a skill tells where they lead."""
    root = fill(machine)
    place = machine.base / "place"
    place.symlink_to(root / "s001")
    machine.configure(f'permissions.deny = [{{ tool = "skill_load", path = "{place}" }}]')

    def denied() -> list[str]:
        return [skill.name for skill in machine.catalog().skills if skill.hidden == "denied"]

    assert denied() == ["s001"]
    place.unlink()
    place.symlink_to(root / "s002")
    assert denied() == ["s002"]


def test_a_file_that_changed_a_moment_ago_is_not_packed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 2_000_000_000)
    fill(machine)
    assert not (machine.home / ".cache" / "skillshelf" / "packed").exists()


def test_other_settings_have_a_catalog_of_their_own(machine: Machine) -> None:
    fill(machine)
    machine.configure('skills.disabled = ["s003"]')
    assert [skill.name for skill in machine.catalog().skills if skill.hidden] == ["s003"]
    machine.configure("")
    assert [skill.name for skill in machine.catalog().skills if skill.hidden] == []


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"x",
    "another magic": lambda data: b"X" + data[1:],
    "header": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    "names": lambda data: data.replace(b"\ns004\n", b"\ns00x\n"),
    "an entry": lambda data: data.replace(b"s004/SKILL.md", b"s005/SKILL.md"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_costs_a_scan(machine: Machine, damage: Callable[[bytes], bytes]) -> None:
    fill(machine)
    path = packed_file(machine)
    path.write_bytes(damage(path.read_bytes()))

    assert machine.catalog() == machine.catalog(use_cache=False)
    assert machine.shelf().load("s004").skill.name == "s004"


def test_no_flipped_byte_gives_another_catalog(machine: Machine) -> None:
    fill(machine)
    path = packed_file(machine)
    whole, right = path.read_bytes(), machine.catalog(use_cache=False).to_dict()
    dice = random.Random(5)
    for _ in range(60):
        place = dice.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << dice.randrange(8))]) + whole[place + 1 :])
        assert machine.catalog().to_dict() == right, place


@pytest.mark.parametrize("entry", [(), ("s",), 5, ("s", "d", "x", None, None, 0, 0, 0, None, None, {})])
def test_an_entry_with_a_right_checksum_and_a_wrong_shape_costs_a_scan(machine: Machine, entry: Any) -> None:
    fill(machine)
    data = marshal.dumps(entry)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marshal, "dumps", lambda value, real=marshal.dumps: data if _is_entry(value) else real(value))
        (machine.home / ".agents" / "skills" / "s001" / "SKILL.md").touch()
        machine.catalog()
    assert crc32(data).to_bytes(4, "big") in packed_file(machine).read_bytes()

    assert machine.catalog() == machine.catalog(use_cache=False)


def _is_entry(value: object) -> bool:
    return isinstance(value, tuple) and isinstance(value[-1], dict) and isinstance(value[0], str)


def test_a_file_of_somebody_else_is_not_read(machine: Machine) -> None:
    fill(machine)
    packed_file(machine).chmod(0o666)
    with made_skills() as made:
        assert machine.catalog() == machine.catalog(use_cache=False)
    assert made == []


def test_the_oldest_files_go_first(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_files, "PACKED_KEPT", 2)
    fill(machine)
    first = packed_file(machine)
    os.utime(first, ns=(0, 0))
    for profile in ("strict", "rip"):
        machine.catalog(profile)

    left = list(first.parent.iterdir())
    assert len(left) == 2
    assert first not in left


# While it is used ---------------------------------------------------------------------------------


def test_a_packed_file_is_closed_with_the_last_user_of_its_catalog(machine: Machine) -> None:
    """A server that opens one shelf after another must not wait for the collector of garbage to close their files."""
    fill(machine)

    def ask() -> None:
        shelf = machine.shelf()
        shelf.load("s003")
        shelf.search("s004")
        assert len(tuple(shelf.catalog.skills)) > MANY

    ask()
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            ask()
        assert len(os.listdir("/dev/fd")) == before
    finally:
        gc.enable()


def test_damage_while_it_is_used_costs_a_scan_of_the_same_disk(machine: Machine) -> None:
    fill(machine)
    right = machine.catalog(use_cache=False)
    catalog = machine.catalog()
    os.truncate(packed_file(machine), 100)

    assert catalog == right


def test_damage_while_it_is_used_and_another_disk_are_an_error_until_the_next_scan(machine: Machine) -> None:
    root = fill(machine)
    shelf = machine.shelf()
    catalog = shelf.catalog
    os.truncate(packed_file(machine), 100)
    write_skill(root, "s010", "---\nname: s010\ndescription: Another one.\n---\n")

    with pytest.raises(skillshelf.FileReadError, match="scan again"):
        list(catalog.skills)
    assert shelf.refresh() is True
    assert shelf.catalog == machine.catalog(use_cache=False)


def test_a_catalog_stays_what_it_was_when_its_file_is_replaced(machine: Machine) -> None:
    root = fill(machine)
    before, kept = machine.catalog(use_cache=False), machine.catalog()
    write_skill(root, "s010", "---\nname: s010\ndescription: Another one.\n---\n")
    machine.catalog()

    assert kept.to_dict() == before.to_dict()


def test_who_may_read_other_files_gets_another_catalog(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(machine)
    shelf = machine.shelf()
    before = shelf.catalog
    monkeypatch.setattr("skillshelf.core.files.reader", lambda: ("somebody else",))

    assert shelf.refresh() is False
    assert shelf.catalog is not before


def test_where_stamps_of_folders_do_not_tell_their_entries_are_compared(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an overlay a folder has the stamp of one layer: entries of another come and go without it."""
    monkeypatch.setattr("skillshelf.core.files.stamps_listings", lambda device: False)
    root = fill(machine)
    shelf = machine.shelf()
    assert shelf.catalog
    assert shelf._scanner is not None
    assert shelf._scanner.last is not None
    state = shelf._scanner.last.state
    assert state is not None
    assert state.is_current()
    write_skill(root, "new")

    folder = files.open_folder(state.groups[0].folder)
    stamps = files.packed_stamps(folder, state.groups[0].paths)
    files.close(folder)
    unstamped = state._replace(groups=(state.groups[0]._replace(stamps=stamps), *state.groups[1:]))
    assert not unstamped.is_current()


def test_the_rows_of_a_packed_catalog_do_what_tuples_do(machine: Machine) -> None:
    fill(machine)
    scanned, unpacked = machine.catalog(use_cache=False), machine.catalog()

    for name in ("skills", "errors", "warnings", "shadowed", "filtered"):
        rows, same = getattr(unpacked, name), getattr(scanned, name)
        assert rows + () == same  # noqa: RUF005
        assert (1, *same) == (1,) + rows  # noqa: RUF005
        assert rows * 2 == same * 2
        assert rows[:1] + rows[1:] == same
    assert hash(unpacked.errors) == hash(scanned.errors)
    errors: Any = unpacked.errors
    assert errors + unpacked.warnings == (*scanned.errors, *scanned.warnings)


def test_a_lack_of_descriptors_is_no_empty_root(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(machine)

    def refuse(path: str) -> int:
        raise OSError(errno.EMFILE, "Too many open files", path)

    monkeypatch.setattr("skillshelf.core.files.open_folder", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        machine.catalog(use_cache=False)


# Catalogs that are brought up to date -------------------------------------------------------------


def text_of(name: str, description: str = "Another text.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n"


def wait_for_a_tick(machine: Machine) -> None:
    """Wait until the clock of the file system has moved: the next change is stamped later than the last."""
    probe = machine.base / "probe"
    probe.touch()
    first = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == first:
        probe.touch()


def _replace(root: Path) -> None:
    (root / "s003/new").write_text(text_of("s003"))
    (root / "s003/new").rename(root / "s003/SKILL.md")


def _change_several(root: Path) -> None:
    shutil.rmtree(root / "s009")
    write_skill(root, "t")
    write_skill(root, "u")


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edit": lambda root: (root / "s003/SKILL.md").write_text(text_of("s003")),
    "a replaced file": _replace,
    "a new skill": lambda root: write_skill(root, "s003a"),
    "the first skill": lambda root: write_skill(root, "a"),
    "the last skill": lambda root: write_skill(root, "zz"),
    "a removed skill": lambda root: shutil.rmtree(root / "s003"),
    "a renamed skill": lambda root: shutil.move(write_skill(root, "s003").parent, root / "moved"),
    "a broken skill": lambda root: (root / "s003/SKILL.md").write_text("---\nname: [\n---\n"),
    "a repaired skill": lambda root: (root / "broken/SKILL.md").write_text(text_of("broken")),
    "a hidden skill": lambda root: (root / "s003/SKILL.md").write_text(
        "---\nname: s003\ndescription: D.\ndisable-model-invocation: true\n---\n"
    ),
    "a warning": lambda root: (root / "s003/SKILL.md").write_text("---\nname: s003\ndescription: a: b\n---\n"),
    "several at once": _change_several,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_after_a_change_only_what_changed_is_read(
    machine: Machine, change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = fill(machine)
    kept_open = machine.shelf()
    wait_for_a_tick(machine)
    change(root)
    wait_for_a_tick(machine)
    fresh = machine.catalog(use_cache=False)
    heads: list[str] = []
    read: Callable[..., Any] = files.read_head

    def counted(folder: int, name: str, **options: Any) -> Any:
        heads.append(name)
        return read(folder, name, **options)

    monkeypatch.setattr(files, "read_head", counted)
    catalog = machine.catalog()

    assert len(heads) <= 2
    assert isinstance(catalog.skills, PackedSkills)
    assert catalog == fresh
    assert catalog.to_dict() == fresh.to_dict()
    heads.clear()
    assert machine.catalog() == fresh
    assert heads == []
    kept_open.refresh()
    assert kept_open.catalog == fresh


def _turn_into_link(root: Path) -> None:
    shutil.rmtree(root / "s004")
    (root / "s004").symlink_to(root / "s005")


AFFECTING: dict[str, Callable[[Path], object]] = {
    "a name that another has": lambda root: write_skill(root, "s004", folder="other"),
    "a name that looks like another": lambda root: write_skill(root, "s0O4"),
    "another spelling": lambda root: (root / "s003/SKILL.md").write_text(text_of("S004")),
    "a link": lambda root: (root / "link").symlink_to(root / "s004"),
    "a file in the root": lambda root: (root / "skill.md").write_text("a near miss"),
    "a group": lambda root: write_skill(root, "inner", folder="group-2/inner"),
    "a skill behind a link": lambda root: (root / "linked/SKILL.md").write_text(text_of("linked")),
    "a skill in a group": lambda root: (root / "group/Grouped/SKILL.md").write_text(text_of("Grouped")),
    "a folder that became a link": _turn_into_link,
}


@pytest.mark.parametrize("change", AFFECTING.values(), ids=AFFECTING)
def test_a_change_that_may_affect_others_is_seen(machine: Machine, change: Callable[[Path], object]) -> None:
    root = fill(machine)
    wait_for_a_tick(machine)
    change(root)
    wait_for_a_tick(machine)
    for _ in range(2):
        assert machine.catalog() == machine.catalog(use_cache=False)
        assert machine.run("list", "--json").stdout == machine.run("list", "--json", "--no-cache").stdout
    # And whatever is done next to a skill that was affected.
    (root / "s004/SKILL.md").write_text(text_of("s004"))
    wait_for_a_tick(machine)
    assert machine.catalog() == machine.catalog(use_cache=False)


@pytest.mark.parametrize("seed", range(4))
def test_after_every_edit_of_many_the_catalog_is_that_of_a_scan(machine: Machine, seed: int) -> None:
    dice, root = random.Random(seed), fill(machine)
    for _ in range(25):
        wait_for_a_tick(machine)
        for _ in range(dice.choice((1, 1, 2))):
            name = f"s{dice.randrange(MANY):03}"
            change = dice.choice(
                (*CHANGES.values(), None, None, *AFFECTING.values()) if dice.random() < 0.2 else (None,)
            )
            folder = root / dice.choice((name, f"n{dice.randrange(9)}"))
            with contextlib.suppress(OSError, shutil.Error):
                if change is not None:
                    change(root)
                elif folder.exists() and dice.random() < 0.3:
                    shutil.rmtree(folder)
                else:
                    write_skill(
                        root,
                        folder.name,
                        text_of(dice.choice((folder.name, folder.name, name)), "x" * dice.randrange(9)),
                    )
        wait_for_a_tick(machine)
        assert machine.catalog() == machine.catalog(use_cache=False)


def test_a_damaged_file_is_not_brought_up_to_date(machine: Machine) -> None:
    root = fill(machine)
    data = packed_file(machine).read_bytes()
    (root / "s003/SKILL.md").write_text(text_of("s003"))
    wait_for_a_tick(machine)
    right = machine.catalog(use_cache=False)
    for at in range(0, len(data), max(1, len(data) // 60)):
        packed_file(machine).write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        catalog = machine.catalog()
        assert catalog == right
        assert catalog.to_dict() == right.to_dict()


def test_an_update_that_has_not_settled_is_not_written(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fill(machine)
    before = packed_file(machine).read_bytes()
    monkeypatch.setattr("skillshelf.catalog.disk_state.SETTLED_NS", 60_000_000_000)
    wait_for_a_tick(machine)
    (root / "s003/SKILL.md").write_text(text_of("s003"))

    for _ in range(2):
        assert machine.catalog() == machine.catalog(use_cache=False)
        assert packed_file(machine).read_bytes() == before
