"""File access: by descriptor, one component at a time, no links, only regular files within the limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.trees import Machine, put_socket, write_skill
from support.users import ordinary_user

from skillshelf import SkillLoader
from skillshelf.core import files
from skillshelf.core.disk_writes import disk_use, remove_tree, write_new
from skillshelf.core.environment import Environment
from skillshelf.core.limits import FIRST_READ, FRONTMATTER_BYTES, SKILL_FILE_BYTES
from skillshelf.hosts.fixes import ranked_fixes
from skillshelf.hosts.stages import judge
from skillshelf.hosts.survey import take_survey

NO_FOLDER = "Too many levels of symbolic links|Not a directory"
"""The errors of systems for a path that must be a folder and is a link or something else."""

FAILURE = r"\[Errno"
"""The beginning of the text of every operating system error."""


@contextmanager
def folder_at(path: Path) -> Iterator[int]:
    """Open a folder for the duration of a test."""
    descriptor = files.open_folder(str(path))
    try:
        yield descriptor
    finally:
        files.close(descriptor)


def lowest_free_descriptor() -> int:
    """Return the next free descriptor; it grows if something stays open."""
    descriptor = os.dup(0)
    os.close(descriptor)
    return descriptor


ENTRIES: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_bytes(b"---\n"),
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("/"),
    "pipe": lambda path: os.mkfifo(path),
    "socket": put_socket,
}
"""Every kind of entry that an ordinary user can create."""


# Folders ------------------------------------------------------------------------------------------


def test_a_folder_is_opened_by_its_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)

    with folder_at(tmp_path / "a" / "b") as descriptor:
        assert os.path.samestat(os.fstat(descriptor), os.stat(tmp_path / "a" / "b"))


@pytest.mark.parametrize("link", ["a", "a/b", "a/b/c"], ids=["first", "middle", "last"])
def test_no_component_of_a_path_may_be_a_link(tmp_path: Path, link: str) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / link).rename(tmp_path / "elsewhere")
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    assert (tmp_path / "a" / "b" / "c").is_dir()

    with pytest.raises(OSError, match=NO_FOLDER):
        files.open_folder(str(tmp_path / "a" / "b" / "c"))


@pytest.mark.parametrize("kind", ["file", "link", "pipe", "socket"])
def test_only_a_folder_is_opened_as_a_folder(tmp_path: Path, kind: str) -> None:
    ENTRIES[kind](tmp_path / "x")

    with folder_at(tmp_path) as parent, pytest.raises(OSError, match=NO_FOLDER):
        files.open_folder_at(parent, "x")


def test_a_folder_that_is_not_there_is_told_from_one_that_is_no_folder(tmp_path: Path) -> None:
    with folder_at(tmp_path) as parent:
        with pytest.raises(FileNotFoundError):
            files.open_folder_at(parent, "x")
        with pytest.raises(FileNotFoundError):
            files.open_folder(f"{tmp_path}/x/y")


def test_a_failure_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to("/")
    os.mkfifo(tmp_path / "a" / "pipe")
    before = lowest_free_descriptor()

    for path in (f"{tmp_path}/a/link/etc", f"{tmp_path}/a/none/b", f"{tmp_path}/a/pipe"):
        with pytest.raises(OSError, match=FAILURE):
            files.open_folder(path)
    with folder_at(tmp_path / "a") as folder:
        files.read_head(folder, "pipe", limit=10, enough=lambda data: True)
        with pytest.raises(OSError, match=FAILURE):
            files.read_head(folder, "link", limit=10, enough=lambda data: True)
    assert files.read_file(f"{tmp_path}/a", limit=10, links="never") is None

    assert lowest_free_descriptor() == before


def test_names_come_sorted_by_bytes(tmp_path: Path) -> None:
    names = [b"b", b"B", b"a", b"a.b", b"a-b", "\ue000".encode(), "é".encode(), b".h"]
    if sys.platform == "linux":
        # As text this one would stand before the private-use character; other systems refuse it.
        names.append(b"\xff")
    for name in names:
        os.mkdir(os.path.join(os.fsencode(tmp_path), name))

    with folder_at(tmp_path) as folder:
        assert [os.fsencode(name) for name in files.names_in(folder)] == sorted(names)


# Kinds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ENTRIES)
def test_the_kind_of_a_path_is_that_of_the_entry_itself(tmp_path: Path, kind: str) -> None:
    ENTRIES[kind](tmp_path / "x")

    with folder_at(tmp_path) as folder:
        at_folder = files.kind_of(files.stat_at(folder, "x").st_mode)

    assert (files.kind_at(str(tmp_path / "x")), at_folder) == (kind, kind)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/dev/null", "device"), ("/nonexistent/x", None), ("/dev/null/x", None), ("a\0b", None), ("/" + "x" * 300, None)],
)
def test_a_path_that_leads_nowhere_has_no_kind(path: str, kind: str | None) -> None:
    assert files.kind_at(path) == kind


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_the_head_of_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    ENTRIES[kind](tmp_path / "x")

    with folder_at(tmp_path) as folder:
        head = files.read_head(folder, "x", limit=1 << 20, enough=lambda data: True)

    assert (head.data, head.kind) == (None, kind)
    assert files.read_file(str(tmp_path / "x"), limit=1 << 20, links="never") is None


def test_an_endless_device_is_not_read() -> None:
    with folder_at(Path("/dev")) as folder:
        head = files.read_head(folder, "zero", limit=1 << 20, enough=lambda data: False)

    assert (head.data, head.kind) == (None, "device")
    assert files.read_file("/dev/zero", limit=1 << 20, links="follow") is None


@pytest.mark.parametrize("kind", ["link", "socket"])
def test_a_link_and_a_socket_cannot_even_be_opened(tmp_path: Path, kind: str) -> None:
    ENTRIES[kind](tmp_path / "x")

    with folder_at(tmp_path) as folder, pytest.raises(OSError, match=FAILURE):
        files.read_head(folder, "x", limit=1 << 20, enough=lambda data: True)
    with pytest.raises(OSError, match=FAILURE):
        files.read_file(str(tmp_path / "x"), limit=1 << 20, links="never")


MOST = FRONTMATTER_BYTES + FIRST_READ


@pytest.mark.parametrize(
    ("size", "enough", "read"),
    [
        (0, False, 0),
        (FIRST_READ - 1, False, FIRST_READ - 1),
        (FIRST_READ, False, FIRST_READ),
        (FIRST_READ + 1, True, FIRST_READ),
        (FIRST_READ + 1, False, FIRST_READ + 1),
        (MOST, False, MOST),
        (SKILL_FILE_BYTES, True, FIRST_READ),
        (SKILL_FILE_BYTES, False, MOST),
        (SKILL_FILE_BYTES + 1, True, None),
    ],
)
def test_of_a_file_is_read_what_is_enough_and_never_more_than_a_frontmatter(
    tmp_path: Path, size: int, enough: bool, read: int | None
) -> None:
    content = bytes(index % 251 for index in range(size))
    (tmp_path / "x").write_bytes(content)
    os.utime(tmp_path / "x", ns=(0, 1_700_000_000_123_456_789))

    with folder_at(tmp_path) as folder:
        head = files.read_head(folder, "x", limit=SKILL_FILE_BYTES, enough=lambda data: enough)

    data = None if read is None else content[:read]
    assert head == files.Head(data, "file", files.stamp_of((tmp_path / "x").stat()))
    assert head.stamp[2:4] == (size, 1_700_000_000_123_456_789)


@pytest.mark.parametrize(("limit", "data"), [(9, None), (10, b"0123456789"), (11, b"0123456789")])
def test_a_whole_file_is_read_up_to_its_limit(tmp_path: Path, limit: int, data: bytes | None) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")

    assert files.read_file(str(tmp_path / "x"), limit=limit, links="never") == data


def test_a_whole_file_is_read_through_a_link_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"text")
    (tmp_path / "link").symlink_to("x")

    assert files.read_file(str(tmp_path / "link"), limit=10, links="follow") == b"text"
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        files.read_file(str(tmp_path / "link"), limit=10, links="never")


# Links and containment ----------------------------------------------------------------------------


def test_a_link_is_resolved_to_its_very_end(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "a" / "c").symlink_to("../b")

    assert files.resolve_link(f"{tmp_path}/b/c/c") == str(tmp_path / "a")


def test_a_link_that_ends_nowhere_is_an_operating_system_error(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "self").symlink_to("self")
    # Longer than Python's own limit of nested calls.
    for number in range(1500):
        (tmp_path / f"hop{number}").symlink_to(f"hop{number + 1}")

    for name in ("dangling", "self", "hop0"):
        with pytest.raises(OSError, match=FAILURE):
            files.resolve_link(str(tmp_path / name))


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("/a/b", "/a", True),
        ("/a", "/a", True),
        ("/a", "/", True),
        ("/a-evil/b", "/a", False),
        ("/a", "/a/b", False),
        ("/ab", "/a", False),
        ("/A/b", "/a", False),
    ],
)
def test_inside_means_whole_components(path: str, folder: str, inside: bool) -> None:
    assert files.is_inside(path, folder) is inside


# What may not be read -----------------------------------------------------------------------------


def test_unreadable_files_and_folders_cost_one_error_each_and_no_neighbour(reachable_machine: Machine) -> None:
    root = reachable_machine.repo / ".agents" / "skills"
    write_skill(root, "good")
    write_skill(root, "secret-file").chmod(0)
    write_skill(root, "secret-folder").parent.chmod(0)
    write_skill(root / "group", "unlisted")
    (root / "group").chmod(0o111)
    write_skill(root, "only-passable").parent.chmod(0o111)
    # Everything that is imported late is imported now: an ordinary user may not be able to read it.
    reachable_machine.catalog()

    with ordinary_user():
        catalog = reachable_machine.catalog()

    assert [skill.name for skill in catalog.skills] == ["good", "only-passable"]
    assert [(error.path, error.rule, error.message) for error in catalog.errors] == [
        (str(root / "group"), "unreadable", "permission denied"),
        (str(root / "secret-file" / "SKILL.md"), "unreadable", "permission denied"),
        (str(root / "secret-folder" / "SKILL.md"), "unreadable", "permission denied"),
    ]
    assert catalog.warnings == ()


def test_a_survey_of_hosts_tells_where_it_could_not_look_and_what_it_could_not_read(reachable_machine: Machine) -> None:
    root = reachable_machine.repo / ".agents" / "skills"
    path = write_skill(root, "secret-file")
    path.chmod(0)
    write_skill(root, "secret-folder").parent.chmod(0)
    place = Environment(str(reachable_machine.repo), str(reachable_machine.home), {})
    take_survey(place, ["codex"])

    with ordinary_user():
        survey = take_survey(place, ["codex"])
        verdicts = [judge(skill_file, survey.states["codex"], survey) for skill_file in survey.skill_files]

    assert [(one.at, one.verdict, one.detail) for one in verdicts] == [
        (str(path), "unknown", "cannot be read: permission denied")
    ]
    assert [fix.what for fix in ranked_fixes(survey.skill_files[0], verdicts, survey)] == [
        "make the file readable for your user (permission denied)"
    ]
    assert [(one.path, one.message) for one in survey.unseen] == [(str(root / "secret-folder"), "permission denied")]


@pytest.mark.parametrize("mode", [0, 0o111, 0o444], ids=["nothing", "pass", "list"])
def test_an_unreadable_root_is_one_error_and_the_other_roots_are_searched(
    reachable_machine: Machine, mode: int
) -> None:
    write_skill(reachable_machine.repo / ".agents" / "skills", "shut")
    write_skill(reachable_machine.home / ".agents" / "skills", "open")
    reachable_machine.catalog()
    (reachable_machine.repo / ".agents" / "skills").chmod(mode)

    with ordinary_user():
        catalog = reachable_machine.catalog()

    (reachable_machine.repo / ".agents" / "skills").chmod(0o755)
    assert [skill.name for skill in catalog.skills] == ["open"]
    root = str(reachable_machine.repo / ".agents" / "skills")
    assert [(error.path, error.message) for error in catalog.errors] == [(root, "permission denied")]


# Bodies -------------------------------------------------------------------------------------------


def bytes_read() -> int:
    """Return the bytes that this thread has read so far."""
    try:
        lines = Path("/proc/thread-self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        pytest.skip("this system does not count what a thread reads")
    return int(lines[0].removeprefix("rchar: "))


def skill_with_large_body(root: Path, name: str) -> Path:
    """Write a skill whose body nearly fills the largest allowed file and is not text."""
    head = f"---\nname: {name}\ndescription: Has a large body.\n---\n".encode()
    return write_skill(root, name, head + b"\xff\xfe\x00" * 340_000)


@pytest.mark.req("S-19", "S-51")
def test_a_body_is_not_read_by_discovery_nor_with_the_metadata(machine: Machine) -> None:
    path = skill_with_large_body(machine.repo / ".agents" / "skills", "large")
    machine.catalog()
    SkillLoader.load_metadata(path.parent)
    start = bytes_read()

    catalog = machine.catalog()
    after_catalog = bytes_read()
    skill = SkillLoader.load_metadata(path.parent)
    after_metadata = bytes_read()

    assert [skill.name for skill in catalog.skills] == ["large"]
    assert (skill.metadata.description, skill.instructions) == ("Has a large body.", None)
    # One look at /proc is about 100 bytes, the first read of a skill 4096.
    assert after_catalog - start < 2 * FIRST_READ
    assert after_metadata - after_catalog < 2 * FIRST_READ


@pytest.mark.req("S-19", "S-51")
def test_a_body_that_cannot_be_read_as_text_does_not_matter_before_it_is_loaded(machine: Machine) -> None:
    path = skill_with_large_body(machine.repo / ".agents" / "skills", "large")

    catalog = machine.catalog()

    assert [skill.metadata for skill in catalog.skills] == [
        SkillLoader.load_metadata(path.parent).metadata._replace(scope="project")
    ]
    assert (catalog.errors, catalog.warnings) == ((), ())


# Folders of our own -------------------------------------------------------------------------------------


def test_a_folder_is_removed_however_deep_and_closed_it_is(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "closed" / "inside").mkdir(parents=True)
    (top / "closed" / "inside" / "file").write_text("")
    (top / "closed").chmod(0)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("")
    (top / "link").symlink_to(tmp_path / "outside")
    name = "deep" * 50
    descriptor = os.open(top, os.O_RDONLY)
    # Deeper than a path can be long, and than Python can recur.
    for _ in range(1100):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)

    remove_tree(str(top))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]
    assert (tmp_path / "outside" / "file").exists()


def test_what_lies_too_deep_to_be_counted_counts_as_too_much(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/")
    counted = disk_use(str(tmp_path), 100)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=descriptor)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)

    assert counted.entries == 3
    assert counted.size >= 100_000
    assert disk_use(str(tmp_path), 100).entries == 101
    assert disk_use(str(tmp_path), 2).entries == 3
    remove_tree(str(tmp_path / ("d" * 200)))


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")

    write_new(f"{tmp_path}/made/file", b"data")

    assert (tmp_path / "made" / "file").read_bytes() == b"data"
    assert (tmp_path / "made" / "file").stat().st_mode & 0o777 == 0o600
    for taken in ("made/file", "link"):
        with pytest.raises(FileExistsError):
            write_new(f"{tmp_path}/{taken}", b"other")
    assert not (tmp_path / "target").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_folder_is_opened_as_another_process_sees_it_and_read_by_its_descriptor(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "x.txt").write_text("text")
    os.symlink("inside", tmp_path / "link")

    descriptor = files.open_folder_of(os.getpid(), str(tmp_path / "inside"))
    try:
        with files.Folder("/anywhere", descriptor=descriptor) as folder:
            assert folder.read(["x.txt"], limit=10).data == b"text"
        # The folder had a descriptor of its own.
        assert os.fstat(descriptor).st_ino == (tmp_path / "inside").stat().st_ino
    finally:
        os.close(descriptor)
    with pytest.raises(OSError, match=NO_FOLDER):
        files.open_folder_of(os.getpid(), str(tmp_path / "link"))
