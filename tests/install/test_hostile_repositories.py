"""Repositories and folders that attack whoever installs from them are refused by name."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from hashlib import sha1
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from support.git_server import GitEntry, GitPlace, GitRepository, needs_git, serving_git
from support.loopback import serving

from skillshelf.catalog.source import SourceLimits
from skillshelf.core.environment import Environment
from skillshelf.errors import SkillError, SourceNotFound, SourceRefused, SourceUnreachable
from skillshelf.install.folder import FolderSource
from skillshelf.install.git import GitSource
from skillshelf.install.reference import SourceContext, parse_reference

SKILL = b"---\nname: pdf\ndescription: Reads PDF files.\n---\n\nRead it.\n"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"


@pytest.fixture
def place(tmp_path: Path) -> GitPlace:
    return GitPlace(tmp_path)


def read(source: GitSource | FolderSource) -> None:
    """Fetch every skill that a source offers."""
    for entry in source.list():
        source.fetch(entry, (), SourceLimits())


# Repositories -------------------------------------------------------------------------------------

FILES: dict[str, tuple[dict[str, bytes | GitEntry], str]] = {
    "link out of the repository": ({"key": GitEntry("120000", b"/etc/passwd")}, "link"),
    "link inside the skill": ({"copy.md": GitEntry("120000", b"SKILL.md")}, "link"),
    "link deep inside": ({"a/b/c": GitEntry("120000", b"../../..")}, "link"),
    "submodule": ({"module": GitEntry("160000")}, "submodule"),
    "submodule with an option as its address": (
        {
            ".gitmodules": b'[submodule "x"]\n\tpath = x\n\turl = --upload-pack=touch /tmp/evil\n',
            "x": GitEntry("160000"),
        },
        "submodule",
    ),
    "pointer of Git LFS": ({"model.bin": LFS}, "lfs-pointer"),
    "backslash in a name": ({"a\\b": b"x"}, "backslash"),
    "escape sequence in a name": ({"a\x1b[2Jb": b"x"}, "control-character"),
    "line break in a name": ({"a\nb": b"x"}, "control-character"),
    "name that is not UTF-8": ({"a\udcff": b"x"}, "name"),
    "device of Windows": ({"aux.md": b"x"}, "name"),
    "final dot": ({"evil.": b"x"}, "name"),
    "case twins": ({"a.md": b"x", "A.md": b"y"}, "twin"),
    "twin of the skill": ({"skill.md": b"x"}, "twin"),
    "twins by composition": ({"\u00e9": b"x", "e\u0301": b"y"}, "twin"),
    "file and folder of one name": ({"docs": b"x", "DOCS/a": b"y"}, "twin"),
    "more files than a skill may have": ({f"{n}": b"" for n in range(513)}, "too-many-files"),
    "more bytes than a skill may have": ({"large": b"\0" * (16 << 20)}, "too-large"),
    "path that is too deep": ({"/".join(["a"] * 33): b"x"}, "depth"),
    "short name of the folder of git": ({"git~1": b"x"}, "fsck"),
}


@needs_git
@pytest.mark.slow
@pytest.mark.parametrize(("files", "rule"), FILES.values(), ids=list(FILES))
def test_a_skill_with_hostile_files_is_refused(place: GitPlace, files: dict[str, bytes | GitEntry], rule: str) -> None:
    place.repository().commit({"pdf/SKILL.md": SKILL, **{f"pdf/{path}": data for path, data in files.items()}})
    with pytest.raises(SourceRefused) as caught:
        read(place.source(place.address()))
    assert caught.value.rule == rule
    assert str(caught.value).isprintable()


@needs_git
@pytest.mark.slow
def test_hostile_files_beside_a_skill_do_not_matter(place: GitPlace) -> None:
    beside = [files for files, rule in FILES.values() if rule not in ("fsck", "too-large")]
    place.repository().commit(
        {
            "pdf/SKILL.md": SKILL,
            **{f"{n}/{path}": data for n, files in enumerate(beside) for path, data in files.items()},
        }
    )
    read(place.source(place.address() + "#pdf"))


@needs_git
@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "rule"), [(GitEntry("120000", b"other"), "link"), (b"x" * (1 << 20) + b"y", "too-large")]
)
def test_a_skill_whose_text_is_no_file_is_refused_alone_and_left_out_of_several(
    place: GitPlace, entry: bytes | GitEntry, rule: str
) -> None:
    place.repository().commit({"bad/SKILL.md": entry, "good/SKILL.md": SKILL})
    source = place.source(place.address())
    assert [one.path for one in source.list()] == ["good"]
    assert len(source.notes) == 1
    assert source.notes[0].startswith("bad is left out: ")
    with pytest.raises(SourceRefused) as caught:
        place.source(place.address() + "#bad").list()
    assert caught.value.rule == rule


def broken_tree(*entries: tuple[str, bytes]) -> Callable[[GitRepository], None]:
    """Return what commits a tree of a skill and these entries of mode and name, which git would not write."""

    def commit(repository: GitRepository) -> None:
        blob, inner = repository.object("blob", SKILL), repository.tree_of({"config": b"x"})
        rows = [("100644", b"SKILL.md", blob), *((m, n, inner if m == "40000" else blob) for m, n in entries)]
        repository.commit_tree(repository.tree(rows))

    return commit


def tag_of_itself(repository: GitRepository) -> None:
    repository.commit({"SKILL.md": SKILL})
    blob = repository.object("blob", b"x")
    repository.git("update-ref", "refs/tags/v1", blob)


def linked_modules(repository: GitRepository) -> None:
    repository.commit({"SKILL.md": SKILL, ".gitmodules": GitEntry("120000", b"x")})


def option_as_module(repository: GitRepository) -> None:
    modules = b'[submodule "-x"]\n\tpath = -x\n\turl = https://example.org/x\n'
    repository.commit({"SKILL.md": SKILL, ".gitmodules": modules})


def parent_as_module(repository: GitRepository) -> None:
    modules = b'[submodule "../../x"]\n\tpath = x\n\turl = https://example.org/x\n'
    repository.commit({"SKILL.md": SKILL, ".gitmodules": modules})


def broken_commit(repository: GitRepository) -> None:
    tree = repository.tree_of({"SKILL.md": SKILL})
    commit = repository.object("commit", f"tree {tree}\nauthor A <a> nonsense\n\nx".encode())
    repository.git("update-ref", "refs/heads/main", commit)


def bomb(repository: GitRepository) -> None:
    """Ten trees of ten entries, each the tree below: ten thousand million files in one kilobyte."""
    tree = repository.tree([("100644", b"f%d" % n, repository.object("blob", b"x")) for n in range(10)])
    for _ in range(9):
        tree = repository.tree([("40000", b"d%d" % n, tree) for n in range(10)])
    repository.commit_tree(
        repository.tree([("100644", b"SKILL.md", repository.object("blob", SKILL)), ("40000", b"d", tree)])
    )


COMMITS: dict[str, tuple[Callable[[GitRepository], None], str]] = {
    "folder of git in a tree": (broken_tree(("40000", b".git")), "fsck"),
    "folder of git in capitals": (broken_tree(("40000", b".GIT")), "fsck"),
    "folder of git with an unseen character": (broken_tree(("40000", ".g\u200cit".encode())), "fsck"),
    "parent folder in a tree": (broken_tree(("40000", b"..")), "fsck"),
    "slash in a name": (broken_tree(("100644", b"a/../../b")), "fsck"),
    "the same name twice": (broken_tree(("100644", b"SKILL.md")), "fsck"),
    "tree out of order": (broken_tree(("100644", b"A")), "fsck"),
    "linked .gitmodules": (linked_modules, "fsck"),
    "module with an option as its name": (option_as_module, "fsck"),
    "module outside": (parent_as_module, "fsck"),
    "broken commit": (broken_commit, "fsck"),
    "bomb of trees": (bomb, "too-large"),
}


@needs_git
@pytest.mark.slow
@pytest.mark.parametrize(("commit", "rule"), COMMITS.values(), ids=list(COMMITS))
def test_a_repository_with_broken_objects_is_refused(
    place: GitPlace, commit: Callable[[GitRepository], None], rule: str
) -> None:
    commit(place.repository())
    with serving_git(place.folder / "repositories") as address, pytest.raises(SourceRefused) as caught:
        read(place.source(f"git+{address}/skills.git"))
    assert caught.value.rule == rule
    assert str(caught.value).isprintable()


@needs_git
@pytest.mark.slow
def test_a_tag_that_names_no_commit_is_refused(place: GitPlace) -> None:
    tag_of_itself(place.repository())
    with pytest.raises(SourceRefused) as caught:
        read(place.source(place.address(), ref="v1"))
    assert caught.value.rule == "ref"


@needs_git
@pytest.mark.slow
def test_a_repository_of_another_object_format_is_refused(place: GitPlace) -> None:
    repository = place.repository(object_format="sha256")
    blob = repository.object("blob", SKILL)
    repository.commit_tree(repository.tree([("100644", b"SKILL.md", blob)]))
    with serving_git(place.folder / "repositories") as address, pytest.raises(SourceRefused) as caught:
        read(place.source(f"git+{address}/skills.git"))
    assert caught.value.rule == "object-format"


@needs_git
@pytest.mark.slow
def test_a_repository_that_borrows_objects_is_refused(place: GitPlace) -> None:
    place.repository("private").commit({"SKILL.md": SKILL})
    repository = place.repository()
    (repository.path / "objects/info").mkdir(exist_ok=True)
    (repository.path / "objects/info/alternates").write_text(f"{place.folder}/repositories/private.git/objects\n")
    with pytest.raises(SourceRefused) as caught:
        read(place.source(place.address()))
    assert caught.value.rule == "alternates"


@needs_git
@pytest.mark.slow
def test_an_empty_repository_offers_nothing(place: GitPlace) -> None:
    place.repository()
    with pytest.raises(SourceNotFound):
        read(place.source(place.address()))


@needs_git
@pytest.mark.slow
def test_what_replaces_objects_in_a_repository_is_not_read(place: GitPlace) -> None:
    repository = place.repository()
    commit = repository.commit({"SKILL.md": SKILL})
    other = repository.commit({"SKILL.md": b"evil"}, branch="evil")
    repository.git("update-ref", f"refs/replace/{commit}", other)
    with serving_git(place.folder / "repositories") as address:
        source = place.source(f"git+{address}/skills.git", ref=commit)
        (entry,) = source.list()
        assert source.fetch(entry, (), SourceLimits()) == {"SKILL.md": SKILL}
        assert source.identity(entry).commit == commit


@needs_git
@pytest.mark.slow
def test_neither_hooks_nor_the_configuration_of_a_repository_run_anything(place: GitPlace, tmp_path: Path) -> None:
    repository, marker = place.repository(), tmp_path / "ran"
    repository.commit({"SKILL.md": SKILL, ".gitattributes": b"* filter=evil\n", ".gitconfig": b"[alias]\n\tx = !id\n"})
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ntouch {marker}\nexec "$@"\n')
    program.chmod(0o755)
    (repository.path / "hooks").mkdir(exist_ok=True)
    for name in ("post-checkout", "post-merge", "reference-transaction", "pre-receive", "update"):
        (repository.path / "hooks" / name).write_bytes(program.read_bytes())
        (repository.path / "hooks" / name).chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "filter.evil.smudge", "core.pager"):
        repository.git("config", key, str(program))

    read(place.source(place.address()))
    assert not marker.exists()


# Servers ------------------------------------------------------------------------------------------


def answering(data: bytes, content_type: str, status: int = 200) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    return Handler


def line(text: bytes) -> bytes:
    return b"%04x" % (len(text) + 4) + text


ADVERTISED = "application/x-git-upload-pack-advertisement"

SERVERS: dict[str, type[BaseHTTPRequestHandler]] = {
    "page": answering(b"<html>login</html>", "text/html"),
    "failure": answering(b"", "text/plain", 500),
    "nonsense": answering(b"\xff" * 4096, ADVERTISED),
    "broken length": answering(b"ffff" + b"x" * 10, ADVERTISED),
    "cut off": answering(line(b"# service=git-upload-pack\n") + b"0000" + line(b"0" * 40)[:20], ADVERTISED),
    "error with an escape sequence": answering(line(b"ERR \x1b[2J\x1b]0;evil\x07"), ADVERTISED),
}


@needs_git
@pytest.mark.slow
@pytest.mark.parametrize("handler", SERVERS.values(), ids=list(SERVERS))
def test_a_server_that_does_not_speak_git_costs_one_line(
    place: GitPlace, handler: type[BaseHTTPRequestHandler]
) -> None:
    with serving(handler) as address, pytest.raises((SourceUnreachable, SourceNotFound)) as caught:
        read(place.source(f"git+{address}/skills.git"))
    assert str(caught.value).isprintable()


COMMIT = sha1(b"x").hexdigest().encode()


def sending(start: bytes, *, repeated: bytes = b"") -> type[BaseHTTPRequestHandler]:
    """Return a server that sends a pack: its start, and then the same bytes again and again."""
    refs = line(b"# service=git-upload-pack\n") + b"0000" + line(COMMIT + b" HEAD\0shallow side-band-64k\n") + b"0000"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", ADVERTISED)
            self.end_headers()
            self.wfile.write(refs)

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-git-upload-pack-result")
            self.end_headers()
            self.wfile.write(line(b"shallow " + COMMIT) + b"0000")
            if b"done" not in asked:
                return
            self.wfile.write(line(b"NAK\n"))
            for part in (start, *[repeated] * 1000):
                for at in range(0, len(part), 60_000):
                    self.wfile.write(line(b"\1" + part[at : at + 60_000]))
            self.wfile.write(b"0000")

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    return Handler


def packed(kind: int, size: int, data: bytes, *, base: bytes = b"") -> bytes:
    """Return an object as it stands in a pack; `size` is what its header says."""
    head = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        head[-1] |= 0x80
        head.append(size & 127)
        size >>= 7
    return bytes(head) + base + zlib.compress(data, 1)


def memory_bomb() -> bytes:
    """Return a pack of some kilobytes: a blob of 16 MiB, and one that is a hundred and fifty copies of it."""
    blob = b"\0" * (0xFFFFFF)
    copies = 150
    sizes = b""
    for size in (len(blob), copies * len(blob)):
        while size > 127:
            sizes += bytes([size & 127 | 128])
            size >>= 7
        sizes += bytes([size])
    delta = sizes + b"\xf0\xff\xff\xff" * copies
    base = sha1(b"blob %d\0" % len(blob) + blob).digest()
    body = packed(3, len(blob), blob) + packed(7, len(delta), delta, base=base)
    pack = b"PACK" + struct.pack(">2L", 2, 2) + body
    return pack + sha1(pack).digest()


@needs_git
@pytest.mark.slow
def test_a_server_that_never_stops_sending_is_cut_off_by_size(place: GitPlace) -> None:
    blob = os.urandom(1 << 20)
    handler = sending(b"PACK" + struct.pack(">2L", 2, 1000), repeated=packed(3, len(blob), blob))
    context = place.context()._replace(limits=SourceLimits(bytes=1 << 19))
    with serving(handler) as address, pytest.raises(SourceRefused) as caught:
        read(GitSource(parse_reference(f"git+{address}/skills.git", place.environment), context))
    assert caught.value.rule == "too-large"


@needs_git
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of another process")
def test_a_pack_that_grows_in_memory_is_refused(place: GitPlace) -> None:
    pack = memory_bomb()
    assert len(pack) < 200_000
    with serving(sending(pack)) as address, pytest.raises(SourceRefused) as caught:
        read(place.source(f"git+{address}/skills.git"))
    assert caught.value.rule == "too-large"


# Folders ------------------------------------------------------------------------------------------


def with_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def with_socket(folder: Path) -> None:
    # The path of a socket is short, so it is made from inside its folder.
    program = "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


def with_pipe_as_text(folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    os.mkfifo(folder / "SKILL.md")


def with_link_as_text(folder: Path) -> None:
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to("/etc/passwd")


def with_large_text(folder: Path) -> None:
    os.truncate(folder / "SKILL.md", 1 << 40)


def with_large_file(folder: Path) -> None:
    (folder / "large").touch()
    os.truncate(folder / "large", 1 << 40)


def with_many_files(folder: Path) -> None:
    for number in range(513):
        (folder / str(number)).touch()


def with_inner_git(folder: Path) -> None:
    (folder / "sub/.git/hooks").mkdir(parents=True)
    (folder / "sub/.git/hooks/post-checkout").touch()


def with_name(name: str | bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        descriptor = os.open(os.path.join(os.fsencode(folder), os.fsencode(name)), os.O_CREAT | os.O_WRONLY)
        os.close(descriptor)

    return write


def with_deep_folder(folder: Path) -> None:
    deep = folder.joinpath(*["a"] * 33)
    deep.mkdir(parents=True)
    (deep / "x").touch()


FOLDERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "link": (lambda folder: (folder / "l").symlink_to("/etc/passwd"), "link"),
    "link inside": (lambda folder: (folder / "l").symlink_to("SKILL.md"), "link"),
    "link to a folder": (lambda folder: (folder / "l").symlink_to("/"), "link"),
    "link to itself": (lambda folder: (folder / "l").symlink_to("l"), "link"),
    "link as its text": (with_link_as_text, "link"),
    "pipe": (with_pipe, "special-file"),
    "pipe as its text": (with_pipe_as_text, "special-file"),
    "socket": (with_socket, "special-file"),
    "large text": (with_large_text, "too-large"),
    "large file": (with_large_file, "too-large"),
    "many files": (with_many_files, "too-many-files"),
    "inner repository": (with_inner_git, "git-folder"),
    "escape sequence": (with_name("a\x1b[2J"), "control-character"),
    "backslash": (with_name("a\\b"), "backslash"),
    "name that is not UTF-8": (with_name(b"a\xff"), "name"),
    "device of Windows": (with_name("nul"), "name"),
    "case twin": (with_name("skill.MD"), "twin"),
    "deep folder": (with_deep_folder, "depth"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("change", "rule"), FOLDERS.values(), ids=list(FOLDERS))
def test_a_hostile_folder_is_refused(tmp_path: Path, change: Callable[[Path], None], rule: str) -> None:
    folder = tmp_path / "pdf"
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(SKILL)
    change(folder)
    environment = Environment(str(tmp_path), str(tmp_path), {})
    with pytest.raises(SkillError) as caught:
        read(FolderSource(parse_reference("./pdf", environment), SourceContext(environment)))
    assert isinstance(caught.value, SourceRefused)
    assert caught.value.rule == rule
    assert str(caught.value).isprintable()


def test_a_link_on_the_way_to_a_skill_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/SKILL.md").write_bytes(SKILL)
    (tmp_path / "all").mkdir()
    (tmp_path / "all/pdf").symlink_to(tmp_path / "real")
    environment = Environment(str(tmp_path), str(tmp_path), {})
    with pytest.raises(SourceRefused) as caught:
        read(FolderSource(parse_reference("./all", environment, path="pdf"), SourceContext(environment)))
    assert caught.value.rule == "link"
