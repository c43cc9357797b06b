"""Pages for tests: the catalogue of a test's machine, requests without a network, and a hostile tree."""

from __future__ import annotations

import asyncio
import getpass
import html
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import pytest

from support.trees import Machine, write_skill

pytest.importorskip("starlette", reason="needs the extra: pip install 'skillshelf[web]'")
pytest.importorskip("nh3", reason="needs the extra: pip install 'skillshelf[web]'")

from skillshelf.servers.web.local import LocalCatalogue
from skillshelf.servers.web.local_state import LocalOptions
from skillshelf.servers.web.ui import OneTimeAccess, ui_app


def account_folder() -> str:
    """Return the name of this user's folder between slashes; of a user without a name, that of the number."""
    try:
        return f"/{getpass.getuser()}/"
    except (KeyError, OSError):
        return f"/{os.getuid()}/"


PORT = 4321
HOST = f"127.0.0.1:{PORT}"


class Answer(NamedTuple):
    """The answer of an application."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


def ask(
    app: Any,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    raised: type[Exception] | None = None,
) -> Answer:
    """Send one request to an application in this process; `raised` is what it raises after its answer."""
    parts = urlsplit(path)
    given = {"host": HOST, **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": re.sub("%[0-9A-Fa-f]{2}", lambda found: chr(int(found[0][1:], 16)), parts.path)
        .encode("latin-1")
        .decode(),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", PORT),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(raised) if raised is not None else nullcontext():
        asyncio.run(app(scope, receive, send))
    headers_sent = {key.decode(): value.decode("latin-1") for key, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], headers_sent, b"".join(message.get("body", b"") for message in sent[1:]))


def catalogue_of(machine: Machine, *journals: Path, all_hosts: bool = False) -> LocalCatalogue:
    """The catalogue of a machine, read whole."""
    shelf = machine.shelf(trust="ask")
    options = LocalOptions(shelf.environment, shelf.settings, shelf.profile, shelf.cache, tuple(map(str, journals)))
    return LocalCatalogue(options._replace(waits=True, all_hosts=all_hosts))


class Browser:
    """Somebody who opened the address of `ui`, without a browser."""

    def __init__(self, catalogue: Any) -> None:
        access = OneTimeAccess(PORT)
        self.app = ui_app(catalogue, access, PORT)
        answer = ask(self.app, f"/?token={access.token}")
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a page."""
        return ask(self.app, path, headers={"cookie": self.cookie, **headers})

    def follow(self) -> Iterator[tuple[str, Answer]]:
        """Yield every page that can be reached from the first one by links."""
        waiting, known = ["/"], {"/"}
        while waiting:
            path = waiting.pop()
            answer = self.get(path)
            yield path, answer
            if answer.headers["content-type"].startswith("text/html"):
                for link in links_in(answer.text):
                    target = urljoin(path, link).partition("#")[0]
                    if target.startswith("/") and target not in known:
                        known.add(target)
                        waiting.append(target)


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def elements_in(text: str) -> list[tuple[str, dict[str, str]]]:
    """Every element of a page with its attributes."""
    parser = _Elements()
    parser.feed(text)
    return parser.found


def links_in(text: str) -> list[str]:
    """Every address in a page."""
    names = ("href", "src", "action")
    return [value for _, found in elements_in(text) for name, value in found.items() if name in names and value]


def shown(text: str) -> str:
    """The text of a page without its elements."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", text)).split())


HOSTILE_TEXTS: Mapping[str, str] = {
    "script": "<script>document.title='owned'; alert(1)</script>\n\n<img src=x onerror=alert(1)>",
    "links": "[a](javascript:alert(1)) [b](https://evil.example/x) [c](data:text/html,<script>alert(1)</script>) "
    "![d](https://evil.example/p.png) <https://evil.example/y> [e][r]\n\n[r]: //evil.example/z 'title'\n",
    "attributes": "`\"><svg onload=alert(1)>` <a href='x' onclick=alert(1)>x</a> &lt;script&gt;alert(1)&lt;/script&gt;",
    "frames": "<iframe src='https://evil.example'></iframe><link rel=stylesheet href=//evil.example/x.css>"
    "<meta http-equiv=refresh content='0;url=https://evil.example'><form action=https://evil.example><input name=a>",
    "nested": "\n".join("  " * (n % 400) + "- x" for n in range(30_000)),
    "quotes": ">" * 5_000 + " deep",
    "long": "x" * 200_000,
    "large": "# big\n" + "word *text* `code` [l](https://evil.example)\n" * 25_000,
    "controls": "before \x1b[31mred\x1b[0m \x07 \u202edesrever\u202c \u200bhidden \x00 after\x85",
    "templates": "{{ 7*7 }} {% for x in y %} ${7*7} <%= 7 %>",
    "table": "|" + "a|" * 500 + "\n|" + "-|" * 500 + "\n|" + "b|" * 500,
}
"""Bodies of skills that try to do something to whoever looks at them."""

HOSTILE_NAMES = [
    '"><img src=x onerror=alert(1)>',
    "a'b\"c",
    "..%2f..%2fx",
    "x y/z".replace("/", "∕"),
    "y;touch PWNED;#",
    "\u0302\u0323" * 60,
    "ünï ☃ \u202ecod",
]


def hostile_machine(base: Path, *, files: int = 600) -> Machine:
    """A machine whose skills try everything on the pages that show them."""
    machine = Machine(base)
    root = machine.repo / ".agents/skills"
    for name, text in HOSTILE_TEXTS.items():
        description = f"Does <b>{name}</b> <script>alert(2)</script> things. Use when {name} is asked for."
        write_skill(root, f"hostile-{name}", f"---\nname: hostile-{name}\ndescription: '{description}'\n---\n{text}\n")
    for number, name in enumerate(HOSTILE_NAMES):
        quoted = name.replace("'", "''")
        fields = f"name: '{quoted}'\ndescription: odd {number}\nlong: '{quoted * (1_500 // len(quoted))}'"
        write_skill(root, name, f"---\n{fields}\n---\n# odd\n", folder=name)
    inside = root / "hostile-script"
    (inside / "page.html").write_text("<script>alert(3)</script>")
    (inside / "picture.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(4)'/>")
    (inside / "program.js").write_text("alert(5)")
    (inside / "data.bin").write_bytes(b"\x00\x01<script>alert(6)</script>")
    for number in range(files):
        (inside / f"f{number:04d}.txt").write_text("x")
    return machine
