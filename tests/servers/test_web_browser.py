"""The pages in a real browser: hostile skills do nothing, and everybody can use them: narrow, dark, by keyboard."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from support.installs import trusted, upstream
from support.needs import needs, needs_program
from support.trees import SOURCE, Machine, write_skill
from support.web import hostile_machine

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
        for width in (WIDE, NARROW):
            page = reader.another(viewport=_size(width))
            for path in paths:
                page.goto(f"{reader.base}{path}")
                assert page.title() != "owned"
                too_wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert too_wide <= 0 or path in inner, (path, width, too_wide)
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
