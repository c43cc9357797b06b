"""Send bounded HTTP requests to hosts that the user named: checked addresses, few redirects, no leaked credentials.

The standard library does the protocol. What it leaves open is decided here: which addresses may be reached, who gets
credentials, how many bytes and seconds an answer may take.
"""

import http.client
import io
import ipaddress
import json
import re
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from skillshelf.core import files
from skillshelf.core.environment import Environment, secret_in
from skillshelf.core.limits import HTTP_HEADER_BYTES, HTTP_REDIRECTS, NETRC_BYTES, SOURCE_SECONDS
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, visible
from skillshelf.errors import ConfigurationError, SkillError, SourceNotFound, SourceRefused, SourceUnreachable

__all__ = [
    "TEAM_TOKEN_VARIABLE",
    "HttpAnswer",
    "HttpClient",
    "HttpRequest",
    "Origin",
    "basic",
    "bearer_token",
    "is_loopback_name",
    "netrc_login",
    "origin_of",
    "refusal_in",
    "require_found",
]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REFUSALS = frozenset({401, 403, 421, 503})
_PORTS = {"https": 443, "http": 80}
# A public address at which a large cloud answers its own machines.
_METADATA = ipaddress.ip_address("168.63.129.16")
# Codes of OpenSSL about a certificate that nobody signed whom this machine knows, from x509_vfy.h.
_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})
# What OpenSSL makes of an answer that is no TLS, by its version.
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Origin(NamedTuple):
    """A scheme, a host in lower case and a port: what credentials belong to."""

    scheme: str
    host: str
    port: int

    @property
    def text(self) -> str:
        """The origin as it stands in an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port != _PORTS.get(self.scheme) else "")


class HttpRequest(NamedTuple):
    """One request; `headers` go to the origin of `url` alone, and `limit` bounds the bytes of the answer."""

    url: str
    limit: int
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes | None = None


class HttpAnswer(NamedTuple):
    """A whole answer; the names of headers are in lower case, and `url` is where it came from after redirects."""

    url: str
    status: int
    headers: Mapping[str, str]
    data: bytes


def origin_of(url: str) -> Origin:
    """Return the origin of an address; raise SourceRefused for one that no request is sent to."""
    shown = visible(cut(url.partition("?")[0], 200))
    # A blank, a control character or a backslash is read differently by different programs.
    if not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url):
        raise SourceRefused("url", f"an address has characters that no address may have: {shown}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SourceRefused("url", f"not a usable address: {shown}") from None
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise SourceRefused(
            "secret-in-url",
            f"an address with credentials in it: {_without_secret(parts)} "
            f"(for a team server: --token-file or {TEAM_TOKEN_VARIABLE})",
        )
    if parts.scheme not in _PORTS:
        raise SourceRefused("scheme", f"only https is fetched, not {visible(cut(parts.scheme or 'a path', 40))}")
    host = (parts.hostname or "").rstrip(".")
    if not host or not re.fullmatch(r"[0-9a-z._:-]+", host) or port == 0:
        raise SourceRefused("url", f"an address without a usable host: {shown}")
    return Origin(parts.scheme, host, port or _PORTS[parts.scheme])


def _without_secret(parts: SplitResult) -> str:
    return visible(cut(f"{parts.scheme}://***@{parts.netloc.rpartition('@')[2]}", 100))


def is_loopback_name(host: str) -> bool:
    """Return whether a host is this machine by its spelling alone: `localhost`, or a literal address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refusal_in(answer: HttpAnswer) -> str | None:
    """Return the reason that a team server gives for a refusal, fit to be shown; None without one."""
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status not in _REFUSALS or media_type not in ("text/plain", "application/json"):
        return None
    text = answer.data.decode("utf-8", "replace")
    if media_type == "application/json":
        try:
            said = json.loads(text)["error"]["message"]
        except (ValueError, LookupError, TypeError, RecursionError):
            return None
        text = said if isinstance(said, str) else ""
    return visible(cut(fold(text), 500)) or None


def require_found(answer: HttpAnswer, *, reason: str | None = None) -> HttpAnswer:
    """Return an answer with content; raise the error that its status stands for, with the reason if one is known."""
    told = f": {reason}" if reason else ""
    # What follows the question mark is often a signature, which opens the door to whoever reads the message.
    where = visible(cut(answer.url.partition("?")[0], 200))
    if answer.status == 200:
        return answer
    if answer.status in (404, 410):
        raise SourceNotFound(f"{where} does not exist (status {answer.status})")
    if answer.status in (401, 403, 407):
        raise SourceRefused("credentials", f"{where} refuses access (status {answer.status}){told}")
    raise SourceUnreachable(f"{where} answers with status {answer.status}{told}")


class HttpClient:
    """Sends requests to one server, which the user named by its host.

    That host may have any address. Every other one, by a redirect or because the source names it, must have a public
    one. Plain HTTP goes to this machine alone, and only if the user allows it. Credentials of `.netrc` go to the
    origin that the user named, unless `netrc` is False. `limit` is the name of the limit that `seconds` come from. They
    are those of one request; `deadline`, by the monotonic clock, ends all of them.
    """

    def __init__(
        self,
        named: str,
        environment: Environment,
        *,
        allow_http: bool = False,
        offline: bool = False,
        seconds: float = SOURCE_SECONDS,
        limit: str = "SOURCE_SECONDS",
        deadline: float | None = None,
        netrc: bool = True,
    ) -> None:
        self.named = origin_of(named)
        self._own_hosts = {self.named.host}
        self._netrc = netrc
        self._environment = environment
        self._allow_http = allow_http
        self._offline = offline
        self._seconds = seconds
        self._limit = limit
        self._deadline = deadline
        self._context: ssl.SSLContext | None = None

    def allow_host(self, host: str) -> None:
        """Let a host have any address, since the user's own configuration has a login for it."""
        self._own_hosts.add(host)

    def get(self, url: str, *, limit: int, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Return the answer to a GET request that may be redirected; whatever its status is."""
        return self.send(HttpRequest(url, limit, headers=headers or {}))

    def send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request and return the answer; only GET and HEAD follow redirects."""
        if self._offline:
            raise SourceUnreachable(f"{self.named.text} is not asked: --offline")
        url, first = request.url, origin_of(request.url)
        # One time for the whole chain: each step of a slow one would start it again.
        deadline, is_first = _Deadline(self._seconds, first.text, self._limit, self._deadline), True
        for _ in range(HTTP_REDIRECTS + 1):
            origin = origin_of(url)
            # Back from another origin is not the same as never gone: that one chose the address.
            is_first = is_first and origin == first
            headers = self._headers(request, origin, is_first=is_first)
            answer = self._exchange(request._replace(url=url, headers=headers), origin, deadline)
            if answer.status not in _REDIRECTS or request.method not in ("GET", "HEAD"):
                return answer
            url = self._redirected(answer, origin)
        raise SourceRefused("redirects", f"{first.text} redirects more than {HTTP_REDIRECTS} times (HTTP_REDIRECTS)")

    def _headers(self, request: HttpRequest, origin: Origin, *, is_first: bool) -> dict[str, str]:
        """Return the headers for one step: those of the caller and credentials before a foreign origin was seen."""
        headers = {"Accept-Encoding": "identity", "User-Agent": _agent(), "Connection": "close"}
        if not is_first:
            # What is accepted is no secret, and a registry's storage wants to know it.
            return headers | {name: value for name, value in request.headers.items() if name == "Accept"}
        headers |= request.headers
        if self._netrc and origin == self.named and "Authorization" not in headers:
            login = netrc_login(origin.host, self._environment)
            if login is not None:
                headers["Authorization"] = basic(*login)
        return headers

    def _redirected(self, answer: HttpAnswer, origin: Origin) -> str:
        location = answer.headers.get("location")
        if not location:
            raise SourceUnreachable(f"{origin.text} redirects to nowhere (status {answer.status})")
        try:
            url = urljoin(answer.url, location).partition("#")[0]
        except ValueError:
            raise SourceRefused("url", f"{origin.text} redirects to an address that is none") from None
        target = origin_of(url)
        if origin.scheme == "https" and target.scheme != "https":
            raise SourceRefused("downgrade", f"{origin.text} redirects from https to plain http")
        return url

    # One exchange ------------------------------------------------------------------------------------

    def _exchange(self, request: HttpRequest, origin: Origin, deadline: "_Deadline") -> HttpAnswer:
        where = origin.text
        try:
            connected = self._connected(origin, deadline)
            try:
                return _exchanged(request, origin, connected)
            finally:
                connected.end()
        except (SkillError, _Late) as error:
            raise error if isinstance(error, SkillError) else deadline.error from None
        except ssl.SSLCertVerificationError as error:
            reason = visible(cut(error.verify_message or "not valid", 100))
            hint = " (name its authority with SSL_CERT_FILE)" if error.verify_code in _UNKNOWN_AUTHORITY else ""
            raise SourceRefused("certificate", f"the certificate of {where} is refused: {reason}{hint}") from None
        except TimeoutError:
            raise deadline.error from None
        except http.client.HTTPException as error:
            # The base class itself is what more than a hundred headers raise.
            if type(error) in (http.client.HTTPException, http.client.LineTooLong):
                raise SourceRefused("headers", f"{where} sends too many or too long headers") from None
            raise SourceUnreachable(f"{where} breaks off or does not speak HTTP") from None
        except (OSError, ValueError) as error:
            if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
                raise SourceUnreachable(f"{where} answers without TLS: the server speaks plain HTTP there") from None
            reason = visible(cut(getattr(error, "strerror", None) or str(error) or type(error).__name__, 100))
            raise SourceUnreachable(f"{where} cannot be reached or breaks off: {reason}") from None

    def _connected(self, origin: Origin, deadline: "_Deadline") -> "_TimedSocket":
        """Return a connection to an address of an origin that was checked before."""
        proxy = _proxy_for(origin, self._environment.env)
        if proxy is None:
            addresses, port = self._checked(origin, deadline), origin.port
        else:
            addresses, port = _resolved(proxy.host, proxy.port, deadline), proxy.port
        connected = _TimedSocket(_opened(addresses, port, deadline), deadline)
        try:
            if proxy is not None:
                # The proxy looks up the host that the user named; any other one is looked up and checked here.
                is_named = origin.host in self._own_hosts
                target = origin.host if is_named else str(self._checked(origin, deadline)[0])
                _tunnel(connected, target, origin.port, proxy)
            if origin.scheme == "https":
                connected.secure(self._tls_context(), origin.host)
        except BaseException:
            connected.end()
            raise
        return connected

    def _checked(self, origin: Origin, deadline: "_Deadline") -> list[Address]:
        """Return the addresses of a host; raise SourceRefused unless all of them may be reached."""
        addresses = _resolved(origin.host, origin.port, deadline)
        if origin.scheme == "http":
            if not all(one.is_loopback for one in addresses):
                raise SourceRefused("plain-http", f"plain http goes to this machine alone, not to {origin.host}")
            if not self._allow_http:
                raise SourceRefused("plain-http", f"{origin.text} is plain http; allow it with --allow-http")
        if origin.host not in self._own_hosts:
            for address in addresses:
                if (what := _not_public(address)) is not None:
                    raise SourceRefused(
                        "address", f"{self.named.text} leads to {origin.host}, which is {what}: {address}"
                    )
        return addresses

    def _tls_context(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = _tls_context(self._environment.env)
        return self._context


def _agent() -> str:
    from skillshelf import __version__

    return f"skillshelf/{__version__}"


def basic(login: str, password: str) -> str:
    """Return the value of a header for a name and a password."""
    return "Basic " + b64encode(f"{login}:{password}".encode()).decode("ascii")


def _exchanged(request: HttpRequest, origin: Origin, connected: "_TimedSocket") -> HttpAnswer:
    """Send one request over a connection and read its answer within its limits."""
    parts = urlsplit(request.url)
    connection = http.client.HTTPConnection(origin.host, origin.port)
    # It must not open a connection by itself: the name would be looked up a second time.
    connection.sock = connected
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", origin.text.partition("://")[2])
    for name, value in request.headers.items():
        connection.putheader(name, value)
    if request.body is not None or request.method in ("POST", "PUT"):
        connection.putheader("Content-Length", str(len(request.body or b"")))
    connection.endheaders(request.body)
    connected.allow(HTTP_HEADER_BYTES, "headers", "HTTP_HEADER_BYTES")
    with closing(connection.getresponse()) as response:
        _require_plain(response, origin)
        return HttpAnswer(
            request.url,
            response.status,
            {name.lower(): value for name, value in response.headers.items()},
            _body(response, request, origin, connected) if request.method != "HEAD" else b"",
        )


def _require_plain(response: http.client.HTTPResponse, origin: Origin) -> None:
    """Raise unless an answer is framed in one way and is not compressed."""
    for name in ("content-length", "transfer-encoding", "content-encoding", "location"):
        if len(set(response.headers.get_all(name, []))) > 1:
            raise SourceRefused("headers", f"{origin.text} sends two different headers {name}")
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise SourceRefused("compressed", f"{origin.text} compresses an answer that must come as it is")
    transfer = response.headers.get("transfer-encoding", "").strip().lower()
    if transfer not in ("", "chunked"):
        raise SourceRefused("headers", f"{origin.text} sends an answer in an unknown transfer encoding")


def _body(response: http.client.HTTPResponse, request: HttpRequest, origin: Origin, connected: "_TimedSocket") -> bytes:
    """Return the body of an answer; an error page is not read further than the limit."""
    limit = request.limit
    too_large = SourceRefused("too-large", f"{origin.text} sends more than {limit} bytes")
    if response.status == 200 and response.length is not None and response.length > limit:
        raise too_large
    # A chunk of one byte takes six; a server that sends nothing but those is not served.
    connected.allow(6 * limit + HTTP_HEADER_BYTES, "chunks", "six times its limit")
    data = b"".join(_pieces(response, limit + 1))
    if response.status != 200 and len(data) > limit:
        return data[:limit]
    if len(data) > limit:
        raise too_large
    if response.length:
        raise SourceUnreachable(f"{origin.text} breaks off: {response.length} bytes are missing")
    return data


def _pieces(response: http.client.HTTPResponse, most: int) -> Iterator[bytes]:
    while most > 0 and (piece := response.read(min(most, 1 << 16))):
        yield piece
        most -= len(piece)


# Connections --------------------------------------------------------------------------------------


class _Late(Exception):
    """The time of a request is over."""


class _Deadline:
    """The time at which a request ends, however many steps it has."""

    def __init__(self, seconds: float, where: str, limit: str, latest: float | None) -> None:
        end = time.monotonic() + seconds
        self._end = end if latest is None else min(end, latest)
        self.error = SourceUnreachable(f"{where} does not answer within {seconds:g} seconds ({limit})")

    def left(self) -> float:
        """Return the seconds that are left; raise _Late if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise _Late
        return left


class _TimedSocket:
    """A connection that reads at most what was allowed, and ends with its deadline; what `http.client` needs of one.

    The time of each call is what is left of the whole, so that a byte a second is no way around it.
    """

    def __init__(self, connected: socket.socket, deadline: _Deadline) -> None:
        self._socket = connected
        self._deadline = deadline
        self._allowed = HTTP_HEADER_BYTES
        self._part, self._limit = "headers", "HTTP_HEADER_BYTES"

    def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Continue with TLS, for the host whose certificate must be shown."""
        self._socket.settimeout(self._deadline.left())
        # An end without a goodbye may be an attacker's: it must not pass for the end of an answer.
        self._socket = context.wrap_socket(self._socket, server_hostname=host, suppress_ragged_eofs=False)

    def allow(self, count: int, part: str, limit: str) -> None:
        """Allow N more bytes to be read, which are those of a part of an answer."""
        self._allowed, self._part, self._limit = count, part, limit

    def readinto(self, buffer: Any) -> int:
        """Read what is there, at most the allowed bytes."""
        if self._allowed <= 0:
            rule = "headers" if self._part == "headers" else "too-large"
            raise SourceRefused(rule, f"{self._part} of an answer take too many bytes ({self._limit})")
        self._socket.settimeout(self._deadline.left())
        count = self._socket.recv_into(memoryview(buffer)[: self._allowed])
        self._allowed -= count
        return count

    def sendall(self, data: Any) -> None:
        """Send everything before the deadline."""
        left = memoryview(data)
        while left:
            self._socket.settimeout(self._deadline.left())
            left = left[self._socket.send(left) :]

    def makefile(self, mode: str, *_: Any) -> io.BufferedReader:
        """Return a reader for one answer."""
        return io.BufferedReader(_Unclosed(self.readinto))

    def close(self) -> None:
        """Do nothing: `http.client` closes before the body is read, and its owner ends a connection."""

    def end(self) -> None:
        """Close the connection without waiting."""
        self._socket.close()


class _Unclosed(io.RawIOBase):
    """A stream that `http.client` may close as often as it wants."""

    def __init__(self, read: Callable[[Any], int]) -> None:
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there."""
        return self._read(buffer)


def _resolved(host: str, port: int, deadline: _Deadline) -> list[Address]:
    """Return the addresses of a host; the system's resolver has no time limit of its own."""
    from threading import Thread

    found: list[Any] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)

    thread = Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(deadline.left())
    if not found:
        raise deadline.error
    if isinstance(found[0], Exception):
        raise SourceUnreachable(f"the name {visible(host)} cannot be resolved")
    return list(dict.fromkeys(ipaddress.ip_address(row[4][0].partition("%")[0]) for row in found[0]))


def _opened(addresses: list[Address], port: int, deadline: _Deadline) -> socket.socket:
    """Connect to the first of these addresses that answers."""
    problem: OSError | None = None
    for number, address in enumerate(addresses):
        # A share of the time each: the first may be of a kind of network that does not work here.
        share = deadline.left() / (len(addresses) - number)
        try:
            return socket.create_connection((str(address), port), timeout=share)
        except OSError as error:
            problem = error
    raise problem or OSError("the name has no address")


def _not_public(address: Address) -> str | None:
    """Return what kind of address no stranger may lead us to; None for a public one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _not_public(inner)
    for what in ("loopback", "link_local", "multicast", "unspecified", "private", "reserved"):
        if getattr(address, f"is_{what}"):
            return f"a {what.replace('_', '-')} address"
    if address == _METADATA:
        return "an address of a cloud's own services"
    return None if address.is_global else "not a public address"


def _tls_context(env: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context that checks certificates by the files that the environment names, else by the system's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Older versions of Python take an end without a goodbye for the end of an answer.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    named = {name: env[name] for name in ("GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR") if env.get(name)}
    if not named:
        context.load_default_certs()
    for name, path in named.items():
        try:
            context.load_verify_locations(**{"capath" if name == "SSL_CERT_DIR" else "cafile": path})
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or "it holds no certificates"
            raise ConfigurationError(f"{name}: {path} cannot be used: {reason}") from None
    return context


# Proxies ------------------------------------------------------------------------------------------


class _Proxy(NamedTuple):
    """A program of the user's network that connections go through."""

    host: str
    port: int
    credentials: str | None


def _proxy_for(origin: Origin, env: Mapping[str, str]) -> _Proxy | None:
    """Return the proxy that the environment names for an origin; this machine is never reached through one."""
    if is_loopback_name(origin.host) or _is_excepted(origin, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    # In upper case a client of a CGI program can set `HTTP_PROXY`; plain http goes to this machine anyway.
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY") if origin.scheme == "https" else ()
    name = next((name for name in names if env.get(name)), None)
    if name is None:
        return None
    try:
        parts = urlsplit(env[name] if "://" in env[name] else f"http://{env[name]}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host = None
    if host is None or parts.scheme != "http":
        raise ConfigurationError(f"{name} does not name a proxy that can be used: it begins with http:// and a host")
    login = basic(unquote(parts.username), unquote(parts.password or "")) if parts.username is not None else None
    return _Proxy(host, port, login)


def _is_excepted(origin: Origin, listed: str) -> bool:
    """Return whether a list of exceptions from a proxy holds a host: a name, an ending of it, a network or `*`."""
    for word in filter(None, (word.strip().lower() for word in listed.split(","))):
        name, _, port = word.rpartition(":") if re.search(r"^[^:]+:[0-9]+$", word) else (word, "", "")
        if port and int(port) != origin.port:
            continue
        name = name.removeprefix("*").lstrip(".").strip("[]")
        if not name or origin.host == name or origin.host.endswith(f".{name}"):
            return True
        try:
            if ipaddress.ip_address(origin.host) in ipaddress.ip_network(name, strict=False):
                return True
        except ValueError:
            continue
    return False


def _tunnel(connected: _TimedSocket, host: str, port: int, proxy: _Proxy) -> None:
    """Ask a proxy for a connection to a host; what it answers before that is read byte by byte."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", f"User-Agent: {_agent()}"]
    lines += [f"Proxy-Authorization: {proxy.credentials}"] if proxy.credentials else []
    connected.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii"))
    connected.allow(HTTP_HEADER_BYTES, "headers", "HTTP_HEADER_BYTES")
    head = b""
    # Not through a buffer: the first bytes of TLS may follow.
    while not head.endswith((b"\r\n\r\n", b"\n\n")):
        one = bytearray(1)
        if not connected.readinto(one):
            break
        head += one
    status = re.match(rb"HTTP/1\.[01] ([0-9]{3})\b", head)
    if status is None or status[1] != b"200":
        said = status[1].decode("ascii") if status else "no answer"
        raise SourceUnreachable(f"the proxy {proxy.host}:{proxy.port} does not connect to {host}: {said}")


# Credentials --------------------------------------------------------------------------------------

TEAM_TOKEN_VARIABLE = "SKILLSHELF_TOKEN"
"""The variable with the token for a team server."""


def bearer_token(path: str | None, env: Mapping[str, str]) -> str:
    """Return the token for a team server: of a file, else of the environment; raise ConfigurationError without one."""
    token = env.get(TEAM_TOKEN_VARIABLE, "").strip() if path is None else secret_in(path, what="token file")
    where = TEAM_TOKEN_VARIABLE if path is None else f"token file {path}"
    if not token and path is None:
        raise ConfigurationError(
            f"a team server needs a token: set {TEAM_TOKEN_VARIABLE}, or name a file with --token-file"
        )
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(f"a team server needs a token: {where} holds none (write it alone, in one line)")
    return token


def netrc_login(host: str, environment: Environment) -> tuple[str, str] | None:
    """Return the login and the password that the user's `.netrc` has for a host.

    Its entry `default` does not count: it would give a password to every host. A file that others may write is not
    the user's own word.
    """
    path = environment.env.get("NETRC") or (f"{environment.home}/.netrc" if environment.home else None)
    if path is None or files.kind_at(path) is None:
        return None
    try:
        data = files.read_own_file(files.real_path(path), limit=NETRC_BYTES)
        words = data.decode("utf-8").split() if data is not None else None
    except (OSError, ValueError):
        words = None
    if words is None:
        raise ConfigurationError(f"{path} cannot be used: it must be a file of yours that nobody else can write")
    return _login_in(words, host)


def _login_in(words: list[str], host: str) -> tuple[str, str] | None:
    found: dict[str, str] = {}
    machine: str | None = None
    values = iter(words)
    for word in values:
        if word == "macdef":
            # A macro ends with an empty line, which is not seen here; nothing behind it counts.
            break
        if word == "default":
            machine = None
        elif word == "machine":
            if machine == host:
                break
            machine = next(values, "").lower()
        elif word in ("login", "password", "account"):
            value = next(values, "")
            if machine == host:
                found[word] = value
    return (found.get("login", ""), found["password"]) if "password" in found else None
