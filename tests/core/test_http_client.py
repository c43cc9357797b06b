"""Requests to sites: what is connected to, what is sent along, and how much is read."""

from __future__ import annotations

import os
import socket
import stat
import time
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.http_sites import Certificates, Site, answer, connect_proxy, make_certificates, redirect
from support.needs import needs_program

from skillshelf.core.environment import Environment
from skillshelf.core.http_client import HttpClient, bearer_token, origin_of, require_found
from skillshelf.errors import ConfigurationError, SkillError, SourceRefused, SourceUnreachable

pytestmark = pytest.mark.slow

LIMIT = 1000


def client(site: str, home: Path | None = None, *, env: Mapping[str, str] | None = None, **options: Any) -> HttpClient:
    environment = Environment("/", str(home) if home else None, dict(env or {}))
    return HttpClient(site, environment, seconds=5, **{"allow_http": True, **options})


def refusal(error: pytest.ExceptionInfo[SkillError]) -> str:
    assert isinstance(error.value, SourceRefused)
    return error.value.rule


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def test_an_answer_comes_with_its_headers_in_small_letters_and_its_address() -> None:
    with Site({"/a": answer(b"hello", X_Test="yes")}) as site:
        got = client(site.url).get(f"{site.url}/a", limit=LIMIT)

    assert (got.status, got.data, got.headers["x-test"], got.url) == (200, b"hello", "yes", f"{site.url}/a")
    assert site.requests[0].headers["accept-encoding"] == "identity"
    assert site.requests[0].headers["host"] == f"127.0.0.1:{site.port}"


def test_an_answer_in_chunks_and_one_without_a_length_are_read_whole() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    with Site({"/c": chunked, "/e": b"HTTP/1.0 200 OK\r\n\r\nhello"}) as site:
        assert [client(site.url).get(site.url + path, limit=LIMIT).data for path in ("/c", "/e")] == [b"hello"] * 2


def test_a_redirect_on_the_same_site_is_followed() -> None:
    with Site({"/a": redirect("/b"), "/b": redirect("c?x=1#part"), "/c?x=1": answer(b"here")}) as site:
        got = client(site.url).get(f"{site.url}/a", limit=LIMIT)

    assert (got.data, got.url) == (b"here", f"{site.url}/c?x=1")


def test_an_error_page_is_cut_and_not_an_error_of_its_own() -> None:
    with Site({"/a": answer(b"x" * 5000, 500)}) as site:
        got = client(site.url).get(f"{site.url}/a", limit=LIMIT)

    assert (got.status, len(got.data)) == (500, LIMIT)


@pytest.mark.parametrize("status", [404, 403, 500])
def test_a_signature_in_an_address_is_not_in_a_message(status: int) -> None:
    with Site({"/a": redirect("/b?X-Signature=s3cret"), "/b": answer(b"", status)}) as site:
        got = client(site.url).get(f"{site.url}/a", limit=LIMIT)
    with pytest.raises(SkillError, match="/b") as caught:
        require_found(got)
    assert "s3cret" not in str(caught.value)


def test_nothing_is_asked_when_offline() -> None:
    with Site({"/a": answer(b"x")}) as site, pytest.raises(SourceUnreachable, match="--offline"):
        client(site.url, offline=True).get(f"{site.url}/a", limit=LIMIT)
    assert site.requests == []


def test_plain_http_needs_to_be_allowed_and_reaches_this_machine_alone() -> None:
    with Site({"/a": answer(b"x")}) as site, pytest.raises(SourceRefused) as caught:
        client(site.url, allow_http=False).get(f"{site.url}/a", limit=LIMIT)
    assert refusal(caught) == "plain-http"
    with pytest.raises(SourceRefused) as caught:
        client("http://192.0.2.1").get("http://192.0.2.1/", limit=LIMIT)
    assert refusal(caught) == "plain-http"
    assert site.requests == []


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("ftp://x/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("data:,x", "scheme"),
        ("//x/y", "scheme"),
        ("https://user:pw@x/", "secret-in-url"),
        ("https://@x/", "secret-in-url"),
        ("https:///x", "url"),
        ("https://x:99999/", "url"),
        ("https://x:0/", "url"),
        ("https://a b/", "url"),
        ("https://x/\r\nHost: y", "url"),
        ("https://x\\@y/", "url"),
        ("https://[::1/", "url"),
        ("https://ex\u00e4mple/", "url"),
    ],
)
def test_an_address_that_programs_read_differently_is_refused(url: str, rule: str) -> None:
    with pytest.raises(SourceRefused) as caught:
        origin_of(url)
    assert refusal(caught) == rule
    assert "pw" not in str(caught.value)


PRIVATE = [
    "127.0.0.2",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "2130706433",
    "0x7f.1",
    "localhost",
]


@pytest.mark.parametrize("host", PRIVATE)
def test_a_redirect_never_reaches_an_address_that_is_not_public(host: str) -> None:
    with Site({"/a": redirect(f"https://{host}/x")}) as site, pytest.raises(SourceRefused) as caught:
        client(site.url).get(f"{site.url}/a", limit=LIMIT)
    assert refusal(caught) == "address"


def test_the_host_that_the_user_named_may_have_any_address() -> None:
    with Site({"/a": answer(b"x")}) as first, Site({"/b": redirect(f"{first.url}/a")}) as second:
        assert client(second.url).get(f"{second.url}/b", limit=LIMIT).data == b"x"


def test_a_name_is_looked_up_once_and_what_was_checked_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"site.test": ["127.0.0.1"], "evil.test": ["192.0.2.7", "127.0.0.1"]}
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *rest: int, **options: int) -> object:
        if host in answers:
            # A name server that says another thing every time.
            asked.append(host)
            host = answers[host][(asked.count(host) - 1) % len(answers[host])]
        return real(host, port, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with Site({"/a": redirect("https://evil.test/x")}) as site:
        named = f"http://site.test:{site.port}"
        with pytest.raises(SkillError):
            client(named).get(f"{named}/a", limit=LIMIT)
    # The second answer, which would be this machine, is never asked for or used.
    assert asked.count("evil.test") == 1


# Credentials --------------------------------------------------------------------------------------


def netrc(home: Path, text: str, mode: int = 0o600) -> Path:
    home.mkdir(exist_ok=True)
    (home / ".netrc").write_text(text)
    (home / ".netrc").chmod(mode)
    return home


def test_the_login_of_netrc_goes_to_the_host_it_is_for(tmp_path: Path) -> None:
    home = netrc(tmp_path, "machine other.test login a password b\nmachine 127.0.0.1\n login me password s3cret\n")
    with Site({"/a": answer(b"x")}) as site:
        client(site.url, home).get(f"{site.url}/a", limit=LIMIT)

    assert site.requests[0].headers["authorization"] == "Basic " + b64encode(b"me:s3cret").decode()


@pytest.mark.parametrize(
    "text",
    [
        "default login me password s3cret\n",
        "machine 127.0.0.2 login me password s3cret\n",
        "macdef x\nmachine 127.0.0.1",
    ],
)
def test_no_other_login_is_sent(tmp_path: Path, text: str) -> None:
    with Site({"/a": answer(b"x")}) as site:
        client(site.url, netrc(tmp_path, text)).get(f"{site.url}/a", limit=LIMIT)

    assert "authorization" not in site.requests[0].headers


def test_a_login_does_not_follow_a_redirect_to_another_origin_nor_back(tmp_path: Path) -> None:
    home = netrc(tmp_path, "machine 127.0.0.1 login me password s3cret\n")
    with Site() as other, Site() as site:
        other.routes["/b"] = redirect(f"{site.url}/c")
        site.routes |= {"/a": redirect(f"{other.url}/b"), "/c": answer(b"x")}
        client(site.url, home).get(f"{site.url}/a", limit=LIMIT)

    # The other port is another origin, although `.netrc` names no ports.
    assert ["authorization" in one.headers for one in (*site.requests, *other.requests)] == [True, False, False]


def test_a_netrc_that_others_may_write_is_an_error(tmp_path: Path) -> None:
    home = netrc(tmp_path, "machine 127.0.0.1 login me password s3cret\n", mode=0o666)
    assert stat.S_IMODE(os.stat(home / ".netrc").st_mode) == 0o666
    with Site({"/a": answer(b"x")}) as site, pytest.raises(ConfigurationError, match="nobody else can write"):
        client(site.url, home).get(f"{site.url}/a", limit=LIMIT)


# Certificates and proxies -------------------------------------------------------------------------


@needs_program("openssl")
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "GIT_SSL_CAINFO"])
def test_a_certificate_is_checked_by_the_authority_that_the_environment_names(
    certificates: Certificates, variable: str
) -> None:
    with Site({"/a": answer(b"x")}, certificates) as site:
        trusted = client(site.url, env={variable: str(certificates.authority)}, allow_http=False)
        assert trusted.get(f"{site.url}/a", limit=LIMIT).data == b"x"
        with pytest.raises(SourceRefused) as caught:
            client(site.url).get(f"{site.url}/a", limit=LIMIT)
        assert refusal(caught) == "certificate"
        assert "certificate (name its authority with SSL_CERT_FILE)" in str(caught.value)


def test_a_port_for_plain_http_is_named_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain, ThreadPoolExecutor(1) as pool:
        url = f"https://127.0.0.1:{plain.getsockname()[1]}"
        asked = pool.submit(client(url).get, f"{url}/a", limit=LIMIT)
        with plain.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(SourceUnreachable, match="answers without TLS: the server speaks plain HTTP there"):
            asked.result(timeout=20)


def test_a_token_in_the_place_of_its_file_is_not_printed() -> None:
    with pytest.raises(ConfigurationError) as caught:
        bearer_token(f"/home/ada/sks_default_{'x' * 43}", {})
    assert str(caught.value) == "token file /home/ada/sks_... cannot be read: No such file or directory"


def test_what_stands_in_the_place_of_a_token_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "two").write_text("sks_default_x\nsks_default_y\n")
    with pytest.raises(ConfigurationError) as caught:
        bearer_token(f"{tmp_path}/two", {})
    assert f"token file {tmp_path}/two holds none (write it alone, in one line)" in str(caught.value)

    # As of `--token-file <(command)`.
    reading, writing = os.pipe()
    for path in (str(tmp_path), f"/dev/fd/{reading}"):
        with pytest.raises(ConfigurationError) as caught:
            bearer_token(path, {})
        assert str(caught.value) == f"token file {path} is not a regular file of at most 4096 bytes"
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "set SKILLSHELF_TOKEN, or name a file with --token-file"),
        ("Bearer sks_default_x", "SKILLSHELF_TOKEN holds none (write it alone, in one line)"),
        ("sks_default_x\r\nCookie: a", "SKILLSHELF_TOKEN holds none (write it alone, in one line)"),
    ],
)
def test_a_variable_without_a_token_is_named_with_what_to_do(given: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        bearer_token(None, {"SKILLSHELF_TOKEN": given})
    assert str(caught.value) == f"a team server needs a token: {told}"


def test_a_token_may_end_with_a_line_break_in_a_file_and_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("sks_default_x\n")

    assert bearer_token(str(tmp_path / "token"), {}) == "sks_default_x"
    assert bearer_token(None, {"SKILLSHELF_TOKEN": "sks_default_x\n"}) == "sks_default_x"


@needs_program("openssl")
def test_the_certificate_of_another_name_is_refused(certificates: Certificates) -> None:
    with Site({"/a": answer(b"x")}, certificates) as site, connect_proxy(site.port) as (proxy, _):
        env = {"https_proxy": proxy, "SSL_CERT_FILE": str(certificates.authority)}
        with pytest.raises(SourceRefused) as caught:
            client("https://wrong.test", env=env).get("https://wrong.test/a", limit=LIMIT)
    assert refusal(caught) == "certificate"
    assert "SSL_CERT_FILE" not in str(caught.value)
    assert site.requests == []


def test_a_file_of_certificates_that_is_missing_is_named() -> None:
    with Site() as site:
        url = site.url.replace("http:", "https:")
        asking = client(url, env={"SSL_CERT_FILE": "/nowhere.pem"})
        with pytest.raises(ConfigurationError, match=r"SSL_CERT_FILE: /nowhere\.pem"):
            asking.get(f"{url}/a", limit=LIMIT)


@needs_program("openssl")
def test_a_redirect_from_https_to_plain_http_is_refused(certificates: Certificates) -> None:
    env = {"SSL_CERT_FILE": str(certificates.authority)}
    with (
        Site({"/a": answer(b"x")}) as plain,
        Site({"/a": redirect(f"{plain.url}/a")}, certificates) as site,
        pytest.raises(SourceRefused) as caught,
    ):
        client(site.url, env=env).get(f"{site.url}/a", limit=LIMIT)
    assert refusal(caught) == "downgrade"


@needs_program("openssl")
def test_an_answer_that_ends_without_a_goodbye_is_not_whole(certificates: Certificates) -> None:
    def cut_off(_: object, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        connection.shutdown(socket.SHUT_RDWR)

    with Site({"/a": cut_off}, certificates) as site, pytest.raises(SourceUnreachable):
        client(site.url, env={"SSL_CERT_FILE": str(certificates.authority)}).get(f"{site.url}/a", limit=LIMIT)


@needs_program("openssl")
@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_asked_for_the_host_by_its_name(
    certificates: Certificates, variable: str
) -> None:
    with Site({"/a": answer(b"x")}, certificates) as site, connect_proxy(site.port) as (proxy, asked):
        address = proxy.replace("http://", "http://me:p%40ss@")
        env = {variable: address, "SSL_CERT_FILE": str(certificates.authority)}
        got = client("https://site.test", env=env).get("https://site.test/a", limit=LIMIT)

    assert got.data == b"x"
    assert (asked[0].method, asked[0].path) == ("CONNECT", "site.test:443")
    assert asked[0].headers["proxy-authorization"] == "Basic " + b64encode(b"me:p@ss").decode()
    assert "proxy-authorization" not in site.requests[0].headers


@needs_program("openssl")
def test_a_redirect_behind_a_proxy_is_checked_before_it_is_asked_for(certificates: Certificates) -> None:
    with (
        Site({"/a": redirect("https://localhost/b")}, certificates) as site,
        connect_proxy(site.port) as (proxy, asked),
    ):
        env = {"https_proxy": proxy, "SSL_CERT_FILE": str(certificates.authority)}
        with pytest.raises(SourceRefused) as caught:
            client("https://site.test", env=env).get("https://site.test/a", limit=LIMIT)

    assert refusal(caught) == "address"
    assert [one.path for one in asked] == ["site.test:443"]


@pytest.mark.parametrize("listed", ["*", "site.test", ".test", "x,site.test:443 ", "192.0.2.0/24,site.test"])
def test_an_exception_from_the_proxy_is_not_sent_through_it(listed: str) -> None:
    with connect_proxy(9) as (proxy, asked):
        asking = client("https://site.test", env={"https_proxy": proxy, "no_proxy": listed})
        with pytest.raises(SourceUnreachable, match=r"resolved|within"):
            asking.get("https://site.test/a", limit=LIMIT)
    assert asked == []


def test_a_proxy_that_says_no_and_one_that_cannot_be_used_are_one_line() -> None:
    with connect_proxy(9, status=403) as (proxy, _), pytest.raises(SourceUnreachable, match="403"):
        client("https://site.test", env={"https_proxy": proxy}).get("https://site.test/a", limit=LIMIT)
    with pytest.raises(ConfigurationError, match="https_proxy"):
        client("https://site.test", env={"https_proxy": "socks5://x:1"}).get("https://site.test/a", limit=LIMIT)


def test_a_deadline_ends_all_requests_whatever_time_each_of_them_has() -> None:
    with Site({"/first": answer(b"first"), "/second": answer(b"second")}) as site:
        asked = client(site.url, deadline=time.monotonic() + 600)
        late = client(site.url, deadline=time.monotonic())

        assert asked.get(f"{site.url}/first", limit=LIMIT).data == b"first"
        with pytest.raises(SourceUnreachable, match="does not answer within 5 seconds"):
            late.get(f"{site.url}/second", limit=LIMIT)

    assert [request.path for request in site.requests] == ["/first"]
