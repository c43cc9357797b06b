"""Who may look at the pages of `ui`: the address, the cookie, Host and Origin, and that nothing can be changed."""

from __future__ import annotations

import pytest
from support.trees import Machine, write_skill
from support.web import HOST, PORT, Browser, ask, catalogue_of

from skillshelf.core.limits import WEB_TOKEN_SECONDS
from skillshelf.servers.web.pages import HEADERS, PAGES
from skillshelf.servers.web.ui import OneTimeAccess, ui_app

PATHS = [path.replace("{slug}", "deploy").replace("{path:path}", "SKILL.md").replace("{key}", "x") for path, _ in PAGES]


@pytest.fixture
def door(machine: Machine) -> tuple[object, OneTimeAccess]:
    write_skill(machine.repo / ".agents/skills", "deploy")
    access = OneTimeAccess(PORT)
    return ui_app(catalogue_of(machine), access, PORT), access


def test_the_token_is_exchanged_for_a_cookie_and_an_address_without_it(door: tuple[object, OneTimeAccess]) -> None:
    app, access = door

    answer = ask(app, f"/?token={access.token}")

    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert access.token not in cookie
    page = ask(app, "/", headers={"cookie": cookie.partition(";")[0]})
    assert page.status == 200
    assert access.token not in page.text


def test_the_token_is_good_once(door: tuple[object, OneTimeAccess]) -> None:
    app, access = door
    assert ask(app, f"/?token={access.token}").status == 303

    assert ask(app, f"/?token={access.token}").status == 401


def test_who_has_the_cookie_may_open_the_address_again(door: tuple[object, OneTimeAccess]) -> None:
    app, access = door
    cookie = ask(app, f"/?token={access.token}").headers["set-cookie"].partition(";")[0]

    again = ask(app, f"/?token={access.token}", headers={"cookie": cookie})

    assert (again.status, again.headers["location"]) == (303, "/")
    assert "set-cookie" not in again.headers


def test_a_look_without_opening_does_not_use_the_token_up(door: tuple[object, OneTimeAccess]) -> None:
    app, access = door

    assert ask(app, f"/?token={access.token}", method="HEAD").status == 401
    assert ask(app, f"/skills?token={access.token}").status == 401
    assert ask(app, f"/?token={access.token}").status == 303


@pytest.mark.parametrize(("after", "cookie"), [(WEB_TOKEN_SECONDS - 1, True), (WEB_TOKEN_SECONDS + 1, False)])
def test_the_token_is_good_for_a_minute(after: float, cookie: bool) -> None:
    times = iter([100.0, 100.0 + after])
    access = OneTimeAccess(PORT, now=lambda: next(times))

    assert (access.exchange(access.token) is not None) == cookie


@pytest.mark.parametrize("path", PATHS)
def test_no_page_is_shown_without_the_cookie(door: tuple[object, OneTimeAccess], path: str) -> None:
    app, access = door

    for headers in ({}, {"cookie": f"{access.cookie_name}=wrong"}, {"authorization": f"Bearer {access.token}"}):
        answer = ask(app, path, headers=headers)
        assert answer.status == 401
        assert "deploy" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "", f"{HOST}.x"])
def test_another_name_of_this_machine_is_refused_first(door: tuple[object, OneTimeAccess], host: str) -> None:
    app, access = door

    assert ask(app, f"/?token={access.token}", headers={"host": host}).status == 421
    # A second one could be what another program on the way goes by.
    assert ask(app, f"/?token={access.token}", headers={"Host": host}).status == 421
    assert ask(app, f"/?token={access.token}").status == 303


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_browser_leaves_out_the_port_of_http(machine: Machine, name: str) -> None:
    access = OneTimeAccess(80)
    app = ui_app(catalogue_of(machine), access, 80)

    assert ask(app, "/", headers={"host": "evil.example"}).status == 421
    assert ask(app, f"/?token={access.token}", headers={"host": name, "origin": f"http://{name}"}).status == 303


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"http://127.0.0.1:{PORT + 1}", f"https://{HOST}"])
def test_a_page_of_another_origin_is_refused(machine: Machine, origin: str) -> None:
    browser = Browser(catalogue_of(machine))

    assert browser.get("/", origin=origin).status == 403
    assert browser.get("/", origin=origin, Origin=f"http://{HOST}").status == 403
    assert browser.get("/", origin=f"http://{HOST}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_no_route_takes_anything_but_a_question(machine: Machine, method: str) -> None:
    browser = Browser(catalogue_of(machine))

    for path in [*PATHS, "/static/page.css", "/nothing"]:
        answer = ask(browser.app, path, method=method, headers={"cookie": browser.cookie})
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_every_answer_forbids_what_pages_do_not_need(machine: Machine) -> None:
    write_skill(machine.repo / ".agents/skills", "deploy")
    browser = Browser(catalogue_of(machine))

    for path in [*PATHS, "/static/page.css", "/static/none", "/nothing"]:
        headers = browser.get(path).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy == {
            **dict.fromkeys(("default-src", "base-uri", "frame-ancestors"), "'none'"),
            **dict.fromkeys(("style-src", "script-src", "img-src", "connect-src", "form-action"), "'self'"),
        }
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        for name in ("referrer-policy", "cross-origin-opener-policy", "cross-origin-resource-policy"):
            assert headers[name] == "same-origin"


class _Broken:
    """A catalogue with a mistake in it."""

    def preparing(self) -> None:
        raise ZeroDivisionError


def test_a_page_that_fails_has_the_headers_of_every_page() -> None:
    browser = Browser(_Broken())

    answer = ask(browser.app, "/skills", headers={"cookie": browser.cookie}, raised=ZeroDivisionError)

    assert answer.status == 500
    assert "This page failed" in answer.text
    assert HEADERS.items() <= answer.headers.items()
