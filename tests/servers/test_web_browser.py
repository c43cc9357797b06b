"""The pages in a real browser: hostile skills do nothing, and everybody can use them: narrow, dark, by keyboard."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from support.installs import trusted, upstream
from support.needs import needs, needs_program
from support.trees import SOURCE, Machine, write_skill
from support.web import catalogue_of, hostile_machine

from skillshelf.core.limits import WEB_ROWS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page, ViewportSize

pytestmark = [
    pytest.mark.slow,
    needs_program("chromium"),
    needs("playwright"),
    needs("axe_playwright_python"),
]

Scheme = Literal["light", "dark"]
WIDE, NARROW = 1280, 390


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of the system; nothing is downloaded."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        # Everywhere but as root the sandbox would work; the pages are our own.
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(machine: Machine, *words: str) -> Iterator[str]:
    """Run the real command and yield its address with the token."""
    environment = {"PATH": "/nonexistent", "HOME": str(machine.home), "PYTHONPATH": SOURCE}
    process = subprocess.Popen(
        [sys.executable, "-m", "skillshelf", "ui", "--no-open", *words],
        cwd=machine.repo,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stderr
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(30) == 0, rest
        process.stdout.close()
        process.stderr.close()
    assert "Traceback" not in rest


class Reader:
    """A person at a browser who opened the address, and everything that the browser did."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.base = address.partition("/?")[0]
        self.browser = browser
        self.events: list[str] = []
        self.requests: set[str] = set()
        self.context = self.new_context(**options)
        self.page = self.context.new_page()
        self.page.goto(address)
        self.ready()

    def new_context(self, **options: Any) -> BrowserContext:
        """A window of its own, whose dialogs, errors and requests are noted."""
        context = self.browser.new_context(**options)
        context.on("request", lambda request: self.requests.add(request.url))
        context.on("dialog", self._dismiss)
        context.on("weberror", lambda error: self.events.append(f"error {error.error}"))
        context.on("console", lambda message: self.events.append(f"console {message.text}"))
        return context

    def _dismiss(self, dialog: Dialog) -> None:
        self.events.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def ready(self) -> None:
        """Wait until the skills are read."""
        self.page.locator("h1", has_text="One moment").wait_for(state="detached", timeout=120_000)

    def another(self, **options: Any) -> Page:
        """Another window of the same person."""
        return self.new_context(storage_state=self.context.storage_state(), **options).new_page()

    @property
    def foreign(self) -> set[str]:
        """The requests that left the server."""
        return {url for url in self.requests if not url.startswith(f"{self.base}/")}


def _size(width: int) -> ViewportSize:
    return {"width": width, "height": 844}


def test_hostile_skills_run_nothing_load_nothing_and_break_no_page(chromium: Browser, tmp_path: Path) -> None:
    machine = hostile_machine(tmp_path, files=5_000)
    with opened(machine) as address:
        reader = Reader(chromium, address, viewport=_size(WIDE))
        links = [link.get_attribute("href") or "" for link in _goto(reader.page, f"{reader.base}/skills").all()]
        slugs = sorted({link for link in links if link.startswith("/skills/")})
        inner = [f"/skills/hostile-script/files/{name}" for name in ("page.html", "picture.svg", "program.js")]
        paths = ["/", "/skills", "/hosts", "/problems", "/search?q=<script>alert(7)</script>", *slugs, *inner]
        paths += [f"{slug}/hosts" for slug in slugs if not slug.startswith("/skills/hostile")]
        for width in (WIDE, NARROW):
            page = reader.another(viewport=_size(width))
            for path in paths:
                page.goto(f"{reader.base}{path}")
                assert page.title() != "owned"
                too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert too_wide <= 0 or path in inner, (path, width, too_wide)
                cut = "[...document.querySelectorAll('.facts dd')].filter(one => one.scrollHeight > one.clientHeight)"
                assert page.evaluate(f"{cut}.length") == 0, (path, width)
        assert len(slugs) > 12
        assert reader.foreign == set()
        assert reader.events == []


def _goto(page: Page, address: str) -> Any:
    page.goto(address)
    return page.locator("a")


def _full_machine(machine: Machine) -> list[str]:
    """A machine with something on every page; return the paths of its pages."""
    trusted(machine)
    write_skill(machine.repo / ".agents/skills", "broken", "---\nname: broken\n---\nx\n")
    body = "# Guide\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\n" + "long " * 80 + "\n```\n"
    write_skill(machine.repo / ".agents/skills", "deploy", f"---\nname: deploy\ndescription: Ships it.\n---\n{body}")
    assert machine.run("add", str(upstream(machine)), "--yes").returncode == 0
    upstream(machine, body="Second.")
    assert machine.run("update", "pdf", "--yes").returncode == 0
    with machine.shelf().session(journal=machine.base / "run.jsonl", subject="ada") as session:
        session.call("skill_search", {"query": "ships"})
        session.call("skill_load", {"name": "deploy"})
    pages = ["/", "/skills", "/search?q=ships", "/search", "/skills/deploy", "/skills/broken", "/skills/deploy/hosts"]
    return [*pages, "/skills/pdf/diff", "/hosts", "/problems", "/problems?kind=findings", "/usage", "/journal", "/none"]


def test_no_page_has_a_serious_barrier_in_light_or_dark(chromium: Browser, machine: Machine) -> None:
    from axe_playwright_python.sync_playwright import Axe

    paths = _full_machine(machine)
    with opened(machine, "--journal", str(machine.base / "run.jsonl")) as address:
        reader = Reader(chromium, address)
        reader.page.goto(f"{reader.base}/journal")
        paths.append(reader.page.locator("tbody a").first.get_attribute("href") or "")
        found = []
        schemes: tuple[Scheme, ...] = ("light", "dark")
        for scheme, width in zip(schemes, (WIDE, NARROW), strict=True):
            page = reader.another(viewport=_size(width), color_scheme=scheme)
            for path in paths:
                page.goto(f"{reader.base}{path}")
                for violation in Axe().run(page).response["violations"]:
                    if violation["impact"] in ("serious", "critical"):
                        where = [node["html"][:120] for node in violation["nodes"][:2]]
                        found.append(f"{path} {scheme}: {violation['id']} {where}")
        assert not found, "\n".join(found)
        assert reader.foreign == set()


@pytest.mark.parametrize("width", [320, 760, WIDE])
def test_no_page_is_wider_than_the_window(chromium: Browser, machine: Machine, width: int) -> None:
    paths = _full_machine(machine)
    with opened(machine, "--all-hosts", "--journal", str(machine.base / "run.jsonl")) as address:
        page = Reader(chromium, address, viewport=_size(width)).page
        base = address.partition("/?")[0]
        too_wide = {}
        for path in paths:
            page.goto(f"{base}{path}")
            too_wide[path] = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    assert {path: pixels for path, pixels in too_wide.items() if pixels > 0} == {}


def test_a_search_follows_what_is_typed_and_works_without_a_script(chromium: Browser, machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "pdf", "---\nname: pdf\ndescription: Fills in forms\n---\nx\n")
    write_skill(machine.repo / ".agents/skills", "deploy")
    with opened(machine) as address:
        reader = Reader(chromium, address)
        page = reader.page
        page.goto(f"{reader.base}/search")
        page.evaluate("window.mine = 1")
        page.keyboard.type("forms")
        page.locator("mark", has_text="forms").wait_for()
        assert page.evaluate("window.mine") == 1
        assert "q=forms" in page.url

        plain = reader.another(java_script_enabled=False)
        plain.goto(f"{reader.base}/")
        plain.get_by_role("searchbox").fill("forms")
        plain.get_by_role("searchbox").press("Enter")
        assert plain.locator("mark").first.inner_text() == "forms"
        plain.get_by_role("link", name="pdf").first.click()
        assert plain.get_by_role("heading", level=1).inner_text() == "pdf"
        assert reader.events == []


class _LateCatalogue:
    """A catalogue that is read, and whose outdated skills are known, when a test says so."""

    parts = frozenset({"hosts", "search"})

    def __init__(self, catalogue: Any) -> None:
        self._catalogue = catalogue
        self.is_read = self.is_compared = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalogue, name)

    def preparing(self) -> Any:
        from skillshelf.servers.web.catalogue import Preparation

        return None if self.is_read else Preparation("Reading the skills")

    def problems(self) -> Any:
        from skillshelf.servers.web.catalogue import Preparation

        waiting = None if self.is_compared else Preparation("Asking the sources")
        return [
            one._replace(preparing=waiting if one.key == "outdated" else None) for one in self._catalogue.problems()
        ]


@contextmanager
def _served(catalogue: Any) -> Iterator[str]:
    """Serve a catalogue in this process and yield the address with the token."""
    import uvicorn

    from skillshelf.servers.web.ui import OneTimeAccess, ui_app

    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        access = OneTimeAccess(port)
        server = uvicorn.Server(uvicorn.Config(ui_app(catalogue, access, port), lifespan="off", log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token={access.token}"
        finally:
            server.should_exit = True
            thread.join(30)


def test_what_is_typed_and_opened_stays_while_a_page_waits(chromium: Browser, machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    late = _LateCatalogue(catalogue_of(machine))
    with _served(late) as address:
        page = chromium.new_context().new_page()
        page.goto(address)
        page.get_by_role("searchbox").fill("half a quest")
        page.evaluate("window.mine = 1")
        late.is_read = True
        page.get_by_role("heading", level=1, name=machine.repo.name).wait_for()
        assert page.get_by_role("link", name="Overview").get_attribute("aria-current") == "page"
        page.locator("details.place summary").click()
        assert "Asking the sources" in page.locator(".tiles").inner_text()

        late.is_compared = True

        page.locator(".tiles", has_text="No source on this disk").wait_for()
        assert page.locator("details.place").get_attribute("open") is None
        assert page.get_by_role("searchbox").input_value() == "half a quest"
        assert page.evaluate("window.mine") == 1


def test_a_search_says_that_the_server_was_ended(chromium: Browser, machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    with opened(machine) as address:
        reader = Reader(chromium, address)
        reader.page.goto(f"{reader.base}/search?q=deploy")
        reader.page.locator("mark").first.wait_for()

    reader.page.get_by_role("searchbox").fill("other")

    reader.page.get_by_text("The server does not answer").wait_for()
    assert reader.page.locator("mark").count() == 0


def test_a_filter_says_how_many_rows_of_which_list_it_shows(chromium: Browser, machine: Machine) -> None:
    for number in range(WEB_ROWS + 1):
        write_skill(machine.repo / ".agents/skills", f"skill-{number:03d}")
    with opened(machine) as address:
        reader = Reader(chromium, address)
        reader.page.goto(f"{reader.base}/skills")
        reader.page.get_by_label("Filter this page of the list").fill("skill-007")

        count = reader.page.get_by_text(f"1 of {WEB_ROWS} shown")

        count.wait_for()
        box = count.bounding_box()
        assert box
        assert box["width"] > 10


def test_a_keyboard_alone_reaches_everything(chromium: Browser, machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    with opened(machine) as address:
        page = Reader(chromium, address).page
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        reached: list[str] = []
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.getAttribute('href') || ''"))
        assert "/skills/deploy" in reached
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement === document.body")
        page.locator('a[href="/skills/deploy"]').first.focus()
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=1, name="deploy").wait_for()


def test_a_person_logs_in_to_a_team_server_looks_around_and_logs_out(
    chromium: Browser, machine: Machine, tmp_path: Path
) -> None:
    pytest.importorskip("mcp", reason="needs the extra: pip install 'skillshelf[server]'")
    from axe_playwright_python.sync_playwright import Axe
    from support.teams import running_team

    from skillshelf.servers.team.database import SqliteDatabase

    write_skill(machine.home / ".agents/skills", "deploy")
    with running_team(machine, SqliteDatabase(str(tmp_path / "team.sqlite"))) as team:
        team.wait_until_ready()
        page = chromium.new_context(viewport=_size(NARROW), color_scheme="dark").new_page()
        page.goto(f"{team.url}/")
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        page.get_by_label("Token").fill(team.token("ada", "admin"))
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=1, name="Team skills").wait_for()
        found = []
        for path in ("/", "/skills", "/skills/deploy", "/search?q=deploy", "/problems", "/usage", "/journal", "/none"):
            page.goto(f"{team.url}{path}")
            assert page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth") <= 0, path
            violations = Axe().run(page).response["violations"]
            found += [(path, one["id"]) for one in violations if one["impact"] in ("serious", "critical")]
        assert found == []
        page.goto(f"{team.url}/")
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("heading", level=1, name="Log in").wait_for()


def test_a_site_opens_from_the_disk_and_filters_its_list(chromium: Browser, machine: Machine) -> None:
    for name in ("deploy", "notes"):
        write_skill(machine.repo / ".agents/skills", name)
    out = machine.base / "out"
    assert machine.run("site", str(out)).returncode == 0
    page = chromium.new_context(viewport=_size(NARROW)).new_page()
    events: list[str] = []
    page.on("pageerror", lambda error: events.append(str(error)))
    page.goto(f"file://{os.fspath(out)}/index.html")
    page.get_by_role("link", name="Skills", exact=True).click()
    page.get_by_label("Filter this list").fill("notes")
    names = [row.inner_text() for row in page.locator("[data-row]:visible a.name").all()]

    assert names == ["notes"]
    assert events == []
