"""The digest of a whole skill, `skill-tree-v1`: what it covers, what has none, and that anybody can compute it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillshelf.catalog.tree import TreeFile, manifest_of, name_problem, skill_tree, tree_of
from skillshelf.core.files import Folder, Measured
from skillshelf.core.limits import TREE_BYTES, TREE_FILES
from skillshelf.errors import SkillDirectoryNotFound

# The line of the definition, with the owner's bit where `-x` of root would say yes to any bit, and `./` because `stat`
# takes `-` for its standard input.
ONE_LINER = r"""
{ echo skill-tree-v1; find . -type f -printf '%P\n' | LC_ALL=C sort | while IFS= read -r p; do
  case "$(stat -c %A "./$p")" in ???x*|???s*) m=x;; *) m=-;; esac
  echo "$m $(stat -c %s "./$p") $(sha256sum < "./$p" | cut -d' ' -f1) $p"; done; } | sha256sum
"""

SEGMENTS = st.text(st.sampled_from("abAZ0 .-_é中ñ$'\"*?"), min_size=1, max_size=6)
FILES = st.dictionaries(
    st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join),
    st.tuples(st.binary(max_size=40), st.sampled_from([0o644, 0o755, 0o700, 0o600, 0o655, 0o4755, 0o444])),
    max_size=8,
)


def write(root: Path, path: str, data: bytes = b"x", mode: int = 0o644) -> Path:
    """Write one file with its mode."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    file.chmod(mode)
    return file


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES)
def test_a_shell_computes_the_same_digest(
    tmp_path_factory: pytest.TempPathFactory, found: dict[str, tuple[bytes, int]]
) -> None:
    if name_problem(sorted(found)) is not None:
        return
    root = tmp_path_factory.mktemp("tree")
    for path, (data, mode) in found.items():
        write(root, path, data, mode)

    shell = subprocess.run(["bash", "-c", ONE_LINER], cwd=root, capture_output=True, text=True, check=True)

    tree = skill_tree(str(root), bounded=False)
    assert tree.digest == f"sha256:{shell.stdout.split()[0]}"
    assert (tree.files, tree.size) == (len(found), sum(len(data) for data, _ in found.values()))


def test_the_text_is_the_one_of_the_definition(tmp_path: Path) -> None:
    write(tmp_path, "b.md", b"two\n")
    write(tmp_path, "a/run.sh", b"#!/bin/sh\n", 0o755)
    write(tmp_path, "B.txt", b"")
    text = (
        "skill-tree-v1\n"
        f"- 0 {sha256(b'').hexdigest()} B.txt\n"
        f"x 10 {sha256(b'#!/bin/sh' + bytes([10])).hexdigest()} a/run.sh\n"
        f"- 4 {sha256(b'two' + bytes([10])).hexdigest()} b.md\n"
    )

    tree = skill_tree(str(tmp_path))

    assert manifest_of(tree.listed) == text
    assert tree.digest == f"sha256:{sha256(text.encode()).hexdigest()}"
    assert tree.version == tree.digest


def test_paths_are_sorted_by_their_bytes() -> None:
    file = TreeFile(0, "0", executable=False)
    paths = ["a/b", "a-b", "a.b", "中", "\U0001f600", "é"]
    lines = manifest_of(dict.fromkeys(paths, file)).splitlines()[1:]
    assert [line.split(" ", 3)[3] for line in lines] == sorted(paths, key=str.encode)


def test_only_files_bytes_names_and_the_owners_bit_count(tmp_path: Path) -> None:
    file = write(tmp_path, "run.sh", b"x", 0o644)
    before = skill_tree(str(tmp_path)).digest
    (tmp_path / "empty").mkdir()
    os.utime(file, (1, 1))
    file.chmod(0o600)
    assert skill_tree(str(tmp_path)).digest == before
    file.chmod(0o654)
    assert skill_tree(str(tmp_path)).digest == before
    file.chmod(0o744)
    assert skill_tree(str(tmp_path)).digest != before


def test_bytes_that_move_between_a_name_and_a_content_make_another_digest(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, "SKILL.md", b"A")
    write(one, "z/notes.md", b"B")
    write(other, "SKILL.md", b"Az/notes.mdB")
    assert skill_tree(str(one)).digest != skill_tree(str(other)).digest


@pytest.mark.parametrize(
    "name",
    [
        "a\nb",
        "a\x1bb",
        "a\x7fb",
        "a\x85b",
        "a\\b",
        "sub/.git/config",
        "sub/.GIT",
        "con",
        "CON.txt",
        "Nul.tar.gz",
        "lib/com1",
        "LPT9.md",
        "aux .txt",
        "COM¹",
        "dot.",
        "blank ",
        "folder./x",
        "x" * 255 + "/" + "y" * 255 + "/" + "z" * 255 + "/" + "w" * 255 + "/last",
    ],
)
def test_a_name_that_not_every_machine_can_have_means_no_digest(tmp_path: Path, name: str) -> None:
    write(tmp_path, "SKILL.md")
    write(tmp_path, name)
    tree = skill_tree(str(tmp_path))
    assert (tree.digest, tree.problem) == (None, "name")
    assert tree.version is not None


def test_a_name_that_is_not_utf_8_means_no_digest(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff\xfe", "wb"):
        pass
    assert skill_tree(str(tmp_path)).problem == "name"


@pytest.mark.parametrize(
    "paths", [("a", "A"), ("ﬁ", "fi"), ("Straße", "STRASSE"), ("x/é", "x/É"), ("K", "\u212a"), ("Docs", "docs/a")]
)
def test_two_paths_that_one_disk_may_take_for_one_mean_no_digest(paths: tuple[str, str]) -> None:
    assert name_problem(paths) is not None
    assert name_problem(reversed(paths)) is not None


@pytest.mark.parametrize("name", ["console", "com10", "a.con", "lpt", ".gitignore", "git", "x.git", "a b", ".hidden"])
def test_names_that_only_resemble_a_bad_one_are_fine(name: str) -> None:
    assert name_problem([name]) is None


@pytest.mark.parametrize("target", ["SKILL.md", "/etc/hostname", "nowhere"])
def test_a_link_means_no_digest_wherever_it_leads(tmp_path: Path, target: str) -> None:
    write(tmp_path, "SKILL.md")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/link").symlink_to(target)
    assert skill_tree(str(tmp_path))[:2] == (None, "link")


def test_a_pipe_means_no_digest(tmp_path: Path) -> None:
    write(tmp_path, "SKILL.md")
    os.mkfifo(tmp_path / "pipe")
    assert skill_tree(str(tmp_path))[:2] == (None, "special-file")


def test_the_bound_is_512_files_and_only_for_what_decides(tmp_path: Path) -> None:
    for number in range(TREE_FILES):
        write(tmp_path, f"f{number}", b"")
    assert skill_tree(str(tmp_path)).digest
    write(tmp_path, "one-more")
    assert skill_tree(str(tmp_path))[:3] == (None, "too-many-files", TREE_FILES + 1)
    assert skill_tree(str(tmp_path), bounded=False).digest


def test_the_bound_is_16_mib_by_size_before_anything_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, "big")
    os.truncate(file, TREE_BYTES)
    assert skill_tree(str(tmp_path)).digest
    os.truncate(file, TREE_BYTES + 1)
    read = file.stat().st_atime_ns
    assert skill_tree(str(tmp_path))[:4] == (None, "too-large", 1, TREE_BYTES + 1)
    assert file.stat().st_atime_ns == read
    assert skill_tree(str(tmp_path), bounded=False).digest


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_git_folder_at_the_top_is_left_out_and_said(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "SKILL.md")
    plain = skill_tree(str(tmp_path))
    write(tmp_path, ".git/config" if kind == "folder" else ".git")

    tree = skill_tree(str(tmp_path))

    assert (tree.digest, tree.problem, tree.files) == (plain.digest, "git-folder", 1)
    assert skill_tree(str(tmp_path), without_git=False)[:2] == (None, "name")


def test_a_folder_without_a_digest_still_has_a_version_that_follows_its_changes(tmp_path: Path) -> None:
    file = write(tmp_path, "a\nb", b"one")
    first = skill_tree(str(tmp_path)).version
    assert skill_tree(str(tmp_path)).version == first
    file.write_bytes(b"two")
    assert skill_tree(str(tmp_path)).version != first


def test_a_missing_folder_and_one_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SkillDirectoryNotFound):
        skill_tree(str(tmp_path / "none"))
    write(tmp_path, "file")
    with pytest.raises(SkillDirectoryNotFound):
        skill_tree(str(tmp_path / "file"))


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("a")


class ChangingFolder(Folder):
    """A folder in which something changes after its first file was read."""

    def __init__(self, path: str, change: Callable[[], object]) -> None:
        super().__init__(path)
        self.change: Callable[[], object] | None = change

    def measure(self, segments: Sequence[str]) -> Measured:
        """Measure a file, then change the folder once."""
        measured = super().measure(segments)
        if self.change is not None:
            change, self.change = self.change, None
            change()
        return measured


@pytest.mark.parametrize("what", ["rewritten", "replaced", "removed", "added", "mode", "linked"])
def test_a_folder_that_changes_while_it_is_read_gives_no_digest_of_a_mixture(tmp_path: Path, what: str) -> None:
    first = write(tmp_path, "a", b"old")
    write(tmp_path, "b", b"old")
    changes: dict[str, Callable[[], object]] = {
        "rewritten": lambda: first.write_bytes(b"new"),
        "replaced": lambda: os.replace(write(tmp_path.parent, "new", b"old"), first),
        "removed": lambda: (tmp_path / "b").unlink(),
        "added": lambda: write(tmp_path, "c"),
        "mode": lambda: first.chmod(0o755),
        "linked": lambda: _link(tmp_path / "b"),
    }
    time.sleep(0.02)
    with ChangingFolder(str(tmp_path), changes[what]) as folder:
        assert tree_of(folder) is None
        assert tree_of(folder) == skill_tree(str(tmp_path))
