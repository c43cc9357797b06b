"""Skills are read from archives and folders on this machine."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hostile_archives import Zipped, tar_block, tar_of, zip_of

from skillshelf.catalog.source import ExecutableFile, SourceEntry, SourceIdentity, SourceLimits
from skillshelf.core.environment import Environment
from skillshelf.errors import SourceNotFound, SourceRefused
from skillshelf.install.archive import ArchiveSource
from skillshelf.install.folder import FolderSource
from skillshelf.install.reference import SourceContext, parse_reference

SKILL = b"---\nname: pdf\ndescription: Reads PDF files.\n---\n\nRead it.\n"
FIELDS = {"name": "pdf", "description": "Reads PDF files."}
LIMITS = SourceLimits()


def archive(folder: Path, name: str, data: bytes, path: str | None = None) -> ArchiveSource:
    (folder / name).write_bytes(data)
    environment = Environment(str(folder), str(folder), {})
    reference = parse_reference(f"./{name}", environment, path=path, root=str(folder))
    return ArchiveSource(reference, SourceContext(environment))


def opened(folder: Path, path: str | None = None) -> FolderSource:
    environment = Environment(str(folder), str(folder), {})
    return FolderSource(parse_reference("./all", environment, path=path, root=str(folder)), SourceContext(environment))


def test_an_archive_is_one_skill_at_its_top(tmp_path: Path) -> None:
    data = zip_of(Zipped(b"SKILL.md", SKILL), Zipped(b"run.sh", b"x", stat.S_IFREG | 0o755))
    source = archive(tmp_path, "pdf.skill", data)
    (entry,) = source.list()

    assert entry == SourceEntry("pdf", "Reads PDF files.", FIELDS)
    files = source.fetch(entry, (), LIMITS)
    assert files == {"SKILL.md": SKILL, "run.sh": b"x"}
    assert isinstance(files["run.sh"], ExecutableFile)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert source.identity(entry) == SourceIdentity("./pdf.skill", "", None, None, digest, "a file on this machine")
    assert source.notes == []


def test_a_wrapper_folder_is_left_out_of_the_paths(tmp_path: Path) -> None:
    source = archive(tmp_path, "pdf.zip", wrapped())
    (entry,) = source.list()

    assert (entry.name, entry.path) == ("pdf", "pdf")
    assert source.fetch(entry, (), LIMITS) == {"SKILL.md": SKILL, "a/b/c": b"deep"}
    assert source.notes == ["1 file of the archive outside the skill left out"]


def wrapped() -> bytes:
    return zip_of(Zipped(b"pdf/SKILL.md", SKILL), Zipped(b"pdf/a/b/c", b"deep"), Zipped(b"__MACOSX/x", b""))


def test_a_packed_tar_is_read_by_either_name(tmp_path: Path) -> None:
    for name in ("pdf.tar.gz", "pdf.TGZ"):
        source = archive(tmp_path, name, tar_of(tar_block(b"./x", b"1")))
        (entry,) = source.list()
        assert source.fetch(entry, ["x"], LIMITS) == {"x": b"1"}


def test_several_skills_in_an_archive_are_listed_by_folder(tmp_path: Path) -> None:
    data = zip_of(
        Zipped(b"all/a/SKILL.md", b"text"), Zipped(b"all/b/SKILL.md", SKILL), Zipped(b"all/b/c/SKILL.md", SKILL)
    )
    source = archive(tmp_path, "all.zip", data)
    assert [(entry.name, entry.path) for entry in source.list()] == [("a", "all/a"), ("pdf", "all/b")]
    assert [entry.path for entry in archive(tmp_path, "all.zip", data, path="all/b").list()] == ["all/b"]
    with pytest.raises(SourceNotFound, match="in its folder 'nope'"):
        archive(tmp_path, "all.zip", data, path="nope").list()


def test_an_archive_without_a_skill_or_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"no SKILL\.md found"):
        archive(tmp_path, "x.zip", zip_of(Zipped(b"skill.md", SKILL))).list()
    source = archive(tmp_path, "x.zip", b"")
    os.unlink(tmp_path / "x.zip")
    with pytest.raises(SourceNotFound, match="no such file"):
        source.list()


def test_a_skill_in_an_archive_keeps_to_the_limits_of_a_skill(tmp_path: Path) -> None:
    source = archive(tmp_path, "x.zip", zip_of(Zipped(b"SKILL.md", SKILL), Zipped(b"a"), Zipped(b"b")))
    (entry,) = source.list()
    with pytest.raises(SourceRefused, match="too-many-files"):
        source.fetch(entry, (), SourceLimits(files=2))
    with pytest.raises(SourceRefused, match="too-large"):
        source.fetch(entry, (), SourceLimits(bytes=10))


def test_an_archive_is_no_pipe_and_no_folder(tmp_path: Path) -> None:
    source = archive(tmp_path, "x.zip", b"")
    os.unlink(tmp_path / "x.zip")
    os.mkfifo(tmp_path / "x.zip")
    with pytest.raises(SourceRefused, match="is not a file"):
        source.list()


# Folders ------------------------------------------------------------------------------------------


def test_a_folder_with_a_skill_is_that_skill_without_its_git(tmp_path: Path) -> None:
    (tmp_path / "all/.git/hooks").mkdir(parents=True)
    (tmp_path / "all/deep/er").mkdir(parents=True)
    (tmp_path / "all/SKILL.md").write_bytes(SKILL)
    (tmp_path / "all/deep/er/\u65e5\u672c\u8a9e").write_bytes(b"")
    (tmp_path / "all/run.sh").write_bytes(b"x")
    (tmp_path / "all/run.sh").chmod(0o755)
    source = opened(tmp_path)
    (entry,) = source.list()

    files = source.fetch(entry, (), LIMITS)
    assert files == {"SKILL.md": SKILL, "deep/er/\u65e5\u672c\u8a9e": b"", "run.sh": b"x"}
    assert [path for path, data in files.items() if isinstance(data, ExecutableFile)] == ["run.sh"]
    assert source.notes == ["its .git is left out"]
    assert source.identity(entry) == SourceIdentity("./all", "", None, None, None, "a folder on this machine")


def test_a_folder_with_several_skills_lists_them(tmp_path: Path) -> None:
    for name in ("a", "b/c", "b/c/d"):
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "SKILL.md").write_bytes(b"text")
    (tmp_path / "all/link").symlink_to("a")

    assert [(entry.name, entry.path) for entry in opened(tmp_path).list()] == [("a", "a"), ("c", "b/c")]
    source = opened(tmp_path, path="b/c")
    (entry,) = source.list()
    assert entry.path == "b/c"
    assert set(source.fetch(entry, (), LIMITS)) == {"SKILL.md", "d/SKILL.md"}


def test_a_folder_that_is_typed_as_a_link_is_the_folder_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/SKILL.md").write_bytes(SKILL)
    (tmp_path / "all").symlink_to("real")
    assert [entry.name for entry in opened(tmp_path).list()] == ["pdf"]


def test_a_folder_that_is_not_there_or_empty_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="no such folder"):
        opened(tmp_path).list()
    (tmp_path / "all").mkdir()
    with pytest.raises(SourceNotFound, match=r"no SKILL\.md found"):
        opened(tmp_path).list()
    with pytest.raises(SourceNotFound, match="no such folder"):
        opened(tmp_path, path="x").list()
