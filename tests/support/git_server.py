"""Real git repositories, made object by object, and a server for them: `git http-backend` behind HTTP on loopback."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple

from skillshelf.catalog.source import SourceLimits
from skillshelf.core.environment import Environment
from skillshelf.install.git import GitSource
from skillshelf.install.reference import SourceContext, parse_reference
from support.loopback import serving
from support.needs import needs_program

__all__ = ["GitEntry", "GitPlace", "GitRepository", "needs_git", "serving_git"]

needs_git = needs_program("git")

_VARIABLES = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
    "LC_ALL": "C",
}


class GitEntry(NamedTuple):
    """An entry of a tree that is not a plain file: `100755`, a link `120000`, a submodule `160000`."""

    mode: str
    data: bytes = b""


class GitRepository:
    """A bare repository for tests."""

    def __init__(self, path: Path, *, object_format: str = "sha1") -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--template=", "-b", "main", f"--object-format={object_format}", ".")
        self.git("config", "http.receivepack", "false")

    def git(self, *arguments: str, data: bytes = b"") -> str:
        """Run git here and return what it says."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=_VARIABLES, input=data, capture_output=True, check=False
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode().strip()

    def object(self, kind: str, data: bytes) -> str:
        """Write an object, whatever is wrong with it, and return its id."""
        return self.git("hash-object", "-w", "--literally", "--stdin", "-t", kind, data=data)

    def tree(self, entries: list[tuple[str, bytes, str]]) -> str:
        """Write a tree of mode, name and id, in this order, and return its id."""
        return self.object("tree", b"".join(f"{m} ".encode() + n + b"\0" + bytes.fromhex(i) for m, n, i in entries))

    def tree_of(self, files: Mapping[str, bytes | GitEntry]) -> str:
        """Write the tree of these files and return its id."""
        folders: dict[str, dict[str, bytes | GitEntry]] = {}
        entries: list[tuple[str, bytes, str]] = []
        for path, content in files.items():
            top, _, rest = path.partition("/")
            if rest:
                folders.setdefault(top, {})[rest] = content
                continue
            entry = content if isinstance(content, GitEntry) else GitEntry("100644", content)
            written = "1" * 40 if entry.mode == "160000" else self.object("blob", entry.data)
            entries.append((entry.mode, os.fsencode(top), written))
        entries += [("40000", os.fsencode(name), self.tree_of(inside)) for name, inside in folders.items()]
        # Git sorts a folder as if its name ended with a slash.
        return self.tree(sorted(entries, key=lambda one: one[1] + (b"/" if one[0] == "40000" else b"")))

    def commit(self, files: Mapping[str, bytes | GitEntry], *, branch: str = "main") -> str:
        """Commit these files as all that there is, and return the id of the commit."""
        return self.commit_tree(self.tree_of(files), branch=branch)

    def commit_tree(self, tree: str, *, branch: str = "main") -> str:
        """Commit a tree on a branch and return the id of the commit."""
        commit = self.git("commit-tree", "-m", "change", tree)
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit


class GitPlace:
    """A home folder, and repositories that sources of that home read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home").mkdir()
        (folder / "repositories").mkdir()
        self.environment = Environment(
            str(folder), str(folder / "home"), {"PATH": os.environ.get("PATH", os.defpath)}, home_moved=True
        )

    def repository(self, name: str = "skills", *, object_format: str = "sha1") -> GitRepository:
        """Make a repository."""
        return GitRepository(self.folder / "repositories" / f"{name}.git", object_format=object_format)

    def address(self, name: str = "skills") -> str:
        """Return the text that names a repository by its path."""
        return f"git+file://{self.folder}/repositories/{name}.git"

    def serve_by_ssh(self) -> None:
        """Let every address of `git+ssh://` be a repository here: a program stands for ssh and its server."""
        program = self.folder / "home" / "ssh"
        program.write_text(
            "#!/bin/sh\nfor last; do :; done\n"
            f'eval "exec $(printf %s "$last" | sed "s#\'/#\'{self.folder}/repositories/#")"\n'
        )
        program.chmod(0o755)
        variables = {**self.environment.env, "GIT_SSH_COMMAND": str(program), "GIT_SSH_VARIANT": "ssh"}
        self.environment = self.environment._replace(env=variables)

    def context(self, *, seconds: float = 10) -> SourceContext:
        """Return the conditions under which sources are read here."""
        return SourceContext(self.environment, allow_http=True, limits=SourceLimits(seconds=seconds))

    def source(self, text: str, *, ref: str | None = None, seconds: float = 10) -> GitSource:
        """Return the source of a repository."""
        return GitSource(parse_reference(text, self.environment, ref=ref), self.context(seconds=seconds))


@contextmanager
def serving_git(folder: Path, *, password: str | None = None, redirect: str | None = None) -> Iterator[str]:
    """The address of a server for the repositories in a folder, until the end of the block.

    With `password` it wants the user `me` and that password; with `redirect` it sends everybody to that address.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

        def _answer(self) -> None:
            if redirect is not None:
                self.send_response(302)
                self.send_header("Location", redirect + self.path)
                self.end_headers()
                return
            given = self.headers.get("Authorization", "")
            if password is not None and given != f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}":
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
                self.end_headers()
                return
            _run_backend(self, folder)

    with serving(Handler) as address:
        yield address


def _run_backend(handler: BaseHTTPRequestHandler, folder: Path) -> None:
    """Answer a request by git's own program for it."""
    path, _, query = handler.path.partition("?")
    length = int(handler.headers.get("Content-Length", "0"))
    body = handler.rfile.read(length)
    if handler.headers.get("Transfer-Encoding") == "chunked":
        body = b""
        while size := int(handler.rfile.readline(), 16):
            body += handler.rfile.read(size + 2)[:-2]
    variables = _VARIABLES | {
        "GIT_PROJECT_ROOT": str(folder),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
        "REQUEST_METHOD": handler.command,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
        # The folder of a test may belong to another user than the one who runs it.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    git = shutil.which("git") or "git"
    done = subprocess.run(
        [git, "http-backend"], env=variables, input=body, capture_output=True, check=False, timeout=60
    )
    head, _, answer = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line)
    handler.send_response(int(headers.pop("Status", "200").split()[0]))
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(answer)))
    handler.end_headers()
    handler.wfile.write(answer)
