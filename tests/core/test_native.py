"""The optional extension gives what the Python code gives, and nothing breaks where it is missing or foreign."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.needs import needs_native
from support.trees import put_socket

from skillshelf.core import files


def stamps_both_ways(folder: Path, names: list[bytes], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return the packed stamps, after comparing those of the extension with those of Python."""
    descriptor = files.open_folder(str(folder))
    try:
        found = []
        for way in ("", "off"):
            monkeypatch.setenv("SKILLSHELF_NATIVE", way)
            found.append(files.packed_stamps(descriptor, b"\0".join(names)))
    finally:
        files.close(descriptor)
    assert found[0] == found[1]
    return found[0]


# Stamps -------------------------------------------------------------------------------------------


@needs_native
def test_stamps_are_equal_for_every_kind_of_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5000)
    (tmp_path / "folder/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    put_socket(tmp_path / "socket")
    odd = b"\xff\xfe\n" + b"n" * 252
    (Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), odd)))).write_bytes(b"")
    names = [b".", b"file", b"folder", b"folder/below", b"link", b"pipe", b"socket", odd, b"file"]

    packed = stamps_both_ways(tmp_path, names, monkeypatch)

    assert len(packed) == len(names) * 5 * 8


@needs_native
@pytest.mark.parametrize(
    "nanoseconds", [-1, -1_000_000_001, -(2**31) * 10**9, 0, 999_999_999, 2**31 * 10**9, 2**33 * 10**9 + 5]
)
def test_stamps_are_equal_for_odd_times(tmp_path: Path, nanoseconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.utime(tmp_path / "file", ns=(nanoseconds, nanoseconds))

    assert stamps_both_ways(tmp_path, [b"file"], monkeypatch)


@needs_native
@pytest.mark.parametrize("name", [b"", b"missing", b"file/below", b"n" * 256, b"x/" * 3000, b"loop/a"])
def test_there_are_no_stamps_if_an_entry_is_missing(
    tmp_path: Path, name: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")

    for names in ([name], [b"file", name], [name, b"file"], [b"file", name, b"file"]):
        assert stamps_both_ways(tmp_path, names, monkeypatch) == b""


@needs_native
def test_stamps_are_equal_for_random_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    for number in range(300):
        path = tmp_path / f"{number}" / "SKILL.md"
        path.parent.mkdir()
        path.write_bytes(b"x" * number)
    names = [f"{number}/SKILL.md".encode() for number in range(300)]

    for _ in range(50):
        some = chance.choices([*names, *names, b"missing"], k=chance.randrange(1, 40))
        assert bool(stamps_both_ways(tmp_path, some, monkeypatch)) == (b"missing" not in some)


@needs_native
def test_a_descriptor_that_is_closed_gives_no_stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = files.open_folder(str(tmp_path))
    files.close(descriptor)

    for way in ("", "off"):
        monkeypatch.setenv("SKILLSHELF_NATIVE", way)
        assert files.packed_stamps(descriptor, b".") == b""


# Without the extension ----------------------------------------------------------------------------

USE = """
import os, sys
from skillshelf.core import files
folder = files.open_folder(os.path.realpath(sys.argv[1]))
print(len(files.packed_stamps(folder, b".")), files.native_core() is not None)
"""


def copied_package(folder: Path, extension: bytes | str | None) -> dict[str, str]:
    """Copy the modules that `files` needs, with this extension; return the environment that imports them."""
    source = Path(files.__file__).parent
    core = folder / "skillshelf/core"
    core.mkdir(parents=True)
    for module in ("__init__.py", "files.py", "limits.py", "records.py", "values.py"):
        (core / module).write_bytes((source / module).read_bytes())
    (folder / "skillshelf/__init__.py").write_text("")
    if isinstance(extension, bytes):
        (core / "_native.abi3.so").write_bytes(extension)
    elif extension is not None:
        (core / "_native.py").write_text(extension)
    return {**os.environ, "PYTHONPATH": str(folder), "SKILLSHELF_NATIVE": ""}


@pytest.mark.slow
@pytest.mark.parametrize(
    "extension",
    [None, b"", b"\x7fELF\x02\x01\x01" + bytes(200), b"not a library", "INTERFACE = 0\nFIRST_READ = 4096\n", "", "x ="],
    ids=["missing", "empty", "damaged", "text", "of another version", "foreign", "not Python"],
)
def test_an_extension_that_cannot_be_used_is_left_alone(tmp_path: Path, extension: bytes | str | None) -> None:
    environment = copied_package(tmp_path / "package", extension)

    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("40 False\n", "")


@pytest.mark.slow
@needs_native
def test_a_variable_switches_the_extension_off(tmp_path: Path) -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", USE, str(tmp_path)],
            env={**os.environ, "SKILLSHELF_NATIVE": way},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for way in ("", "off")
    ]

    assert outputs == ["40 True\n", "40 False\n"]
