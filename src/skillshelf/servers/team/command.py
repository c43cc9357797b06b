"""Run the `serve` command: open the database, listen, read the skills behind the first answers, stop at a signal."""

import ctypes
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from skillshelf.core.console import note
from skillshelf.core.disk_writes import open_to_append
from skillshelf.core.environment import Environment, user_data_folder
from skillshelf.core.files import NotRegular
from skillshelf.core.text import visible
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.servers.team.database import Database, open_database
from skillshelf.servers.team.database_address import DatabaseAddress, database_address
from skillshelf.servers.team.journal_removal import DailyRetention, kept_days
from skillshelf.servers.team.tokens import list_tokens
from skillshelf.servers.team.values import DEFAULT_TENANT, BlobsAway, BlobsFull
from skillshelf.shelf import Shelf

if TYPE_CHECKING:
    from skillshelf.servers.team.blobs import BlobStore

__all__ = ["AccessLog", "access_log", "open_team_database", "require_extra", "serve"]

_EXTRA = ("mcp", "anyio", "uvicorn", "starlette", "watchfiles", "jwt", "cryptography", "jinja2", "markdown_it", "nh3")

# The name of the option in malloc.h.
_MMAP_THRESHOLD = -3
_LARGE_BLOCK = 1024 * 1024
_SWITCH_SECONDS = 0.0005

_INSTALL = "serve needs the extra server: run pip install 'skillshelf[server]'"


def require_extra(address: DatabaseAddress, *, to_serve: bool) -> None:
    """Raise `ConfigurationError` if a package of the extra `server` is missing that is needed now."""
    needed = (*(_EXTRA if to_serve else ()), *(("psycopg",) if address.is_postgres else ()))
    if not all(find_spec(package) for package in needed):
        raise ConfigurationError(_INSTALL)


def open_team_database(address: DatabaseAddress) -> Database:
    """Open the database of a command, or raise `ConfigurationError` or `DatabaseAway`."""
    require_extra(address, to_serve=False)
    return open_database(address.url)


def serve(shelf: Shelf, values: Mapping[str, Any]) -> None:
    """Serve a team until a signal comes."""
    place = database_address(values["database"], shelf.environment, path=values["database_file"])
    require_extra(place, to_serve=True)
    from skillshelf.servers.mcp.http import ServerAccess, allowed_host, bind, host_and_port
    from skillshelf.servers.mcp.notices import library_notices

    # Before the database is opened, which makes or migrates a SQLite file.
    host, port = host_and_port("127.0.0.1:8000" if values["listen"] is None else values["listen"], "--listen")
    names = frozenset(map(allowed_host, values["allow_host"]))
    address = ServerAccess(host, port, None, names)
    issuer = _issuer(values)
    log = access_log(values["access_log"])
    database = open_team_database(place)
    retention = _retention(values, database)
    blobs, folder = _blobs(values, shelf.environment)
    bound = bind(address)
    import anyio

    from skillshelf.servers.team.published_catalog import PublishedCatalogs
    from skillshelf.servers.team.server import TeamServer

    # As nginx has it, for logrotate; without a file it changes nothing, and does not end the server.
    signal.signal(signal.SIGUSR1, lambda *_: log.reopen() if log is not None else None)
    _give_memory_back()
    # What only reads rows waits for each of them while something computes: ten times shorter than by default.
    sys.setswitchinterval(_SWITCH_SECONDS)
    with library_notices():
        published = PublishedCatalogs(shelf, database, blobs, folder)
        server = TeamServer(shelf, database, issuer, values, published=published)
        note(f"database: {place.place}; published files: {_place_of(blobs, values['blobs'])}")
        _note_at_start(database, values, is_local=address.is_local)
        if retention is not None:
            retention.start()
        try:
            anyio.run(server.run, address, bound, log)
        except ExceptionGroup as group:
            raise _first_of(group) from None
        finally:
            if retention is not None:
                retention.close()
            server.close()


def _give_memory_back() -> None:
    """Let the allocator of glibc give each large block back to the system when it is freed; others do nothing here.

    By default it does so for ever larger blocks only, so archives that were sent once stay in memory.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK)


def _first_of(error: BaseException) -> BaseException:
    """Return the first error of a group of tasks, which says what failed; the group itself says only that one did."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _blobs(values: Mapping[str, Any], environment: Environment) -> "tuple[BlobStore, str]":
    """Return the blob store, and the folder of this machine for trees and snapshots, which can be made again."""
    from skillshelf.servers.team.blobs import FolderBlobs, open_blobs

    folder = user_data_folder(environment)
    if folder is None:
        raise ConfigurationError("there is no home folder for the skills of the server (name one with --home)")
    blobs = open_blobs(values["blobs"] or f"{folder}/team/blobs", environment)
    if isinstance(blobs, FolderBlobs):
        # Another store may be slow or away for a while, and is asked behind the first answers.
        try:
            blobs.check()
        except BlobsFull:
            pass
        except BlobsAway as error:
            raise ConfigurationError(f"{error} (name another folder with --blobs)") from None
    return blobs, f"{folder}/team"


def _place_of(blobs: "BlobStore", url: str | None) -> str:
    """Return where a blob store is, without a login that its address may have."""
    from skillshelf.servers.team.blobs import FolderBlobs

    if isinstance(blobs, FolderBlobs):
        return visible(blobs.folder)
    parts = urlsplit(url or "")
    return visible(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _retention(values: Mapping[str, Any], database: Database) -> DailyRetention | None:
    return DailyRetention(database, kept_days(values["keep_lines"])) if values["keep_lines"] else None


def _issuer(values: Mapping[str, Any]) -> Any:
    url, audience = values["issuer"], values["audience"]
    if url is None and audience is None:
        return None
    if url is None or audience is None:
        raise ConfigurationError("--issuer and --audience need each other")
    from skillshelf.core.http_client import is_loopback_name, origin_of
    from skillshelf.servers.team.identity import Issuer

    refused = ConfigurationError(f"--issuer takes an https address, such as https://login.example, not {visible(url)}")
    try:
        origin = origin_of(url)
    except SkillError:
        raise refused from None
    # The address of an issuer has neither a query nor a fragment (RFC 8414), and those of its documents are below it.
    if (origin.scheme != "https" and not is_loopback_name(origin.host)) or {"?", "#"} & {*url}:
        raise refused
    return Issuer(url, audience, values["tenant_claim"] or "tenant", values["roles_claim"] or "roles")


def _note_at_start(database: Database, values: Mapping[str, Any], *, is_local: bool) -> None:
    if not is_local:
        note("requests are not encrypted here; put a proxy that ends TLS in front (see docs/deploy.md)")
    if not list_tokens(database, DEFAULT_TENANT):
        # Without it the token would be made in another database.
        file = values["database_file"]
        where = f" --database-file {shlex.quote(file)}" if file else " --database ..." if values["database"] else ""
        note(f"nobody has a token yet; make one with `skillshelf serve token create NAME --scope skills:read{where}`")


class AccessLog:
    """Writes the lines of the access log to standard error or to a file, which can be opened again."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._descriptor = 2 if path is None else self._opened(path)

    def __call__(self, line: str) -> None:
        """Write a line; a full disk or a closed terminal must not end requests."""
        with suppress(OSError):
            os.write(self._descriptor, line.encode())

    def reopen(self) -> None:
        """Open the file again, which somebody may have moved away; if that is not possible, go on with the old one."""
        if self._path is None:
            return
        try:
            opened = self._opened(self._path)
        except ConfigurationError as error:
            note(str(error))
            return
        # One step for a thread that writes just now.
        os.dup2(opened, self._descriptor, inheritable=False)
        os.close(opened)

    @staticmethod
    def _opened(path: str) -> int:
        try:
            return open_to_append(path)
        except NotRegular as error:
            hint = "without --access-log it goes to standard error, and with none nowhere"
            raise ConfigurationError(f"the access log {path} is a {error.kind}, not a file ({hint})") from None
        except OSError as error:
            raise ConfigurationError(f"the access log {path} cannot be written: {error.strerror}") from None


def access_log(path: str | None) -> AccessLog | None:
    """Return the access log: on standard error, in a file, or None for `none`."""
    if path == "none":
        return None
    return AccessLog(None if path is None or path == "-" else os.path.abspath(path))
