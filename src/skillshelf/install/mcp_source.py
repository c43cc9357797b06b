"""Read skills from another MCP server, by the skills extension of MCP (SEP-2640).

Servers are named in the user's own configuration; what a server calls itself does not count. Everything that it says
is untrusted: addresses, sizes, digests and frontmatter are checked, and a file is read only if the entry that was
listed names it.
"""

import json
import ssl
import subprocess
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote_to_bytes, urlsplit

from skillshelf import __version__
from skillshelf.catalog.document import parse
from skillshelf.catalog.live_source import BoundedCall
from skillshelf.catalog.source import SourceEntry, SourceIdentity, SourceLimits
from skillshelf.catalog.tree import TreeFile, manifest_of, tree_digest
from skillshelf.config.settings import McpServer, load_settings
from skillshelf.core.digests import sha256
from skillshelf.core.environment import Environment, user_config_path
from skillshelf.core.limits import (
    ADDRESS_CHARS,
    MCP_ANSWER_BYTES,
    MCP_PAGES,
    SKILL_FILE_BYTES,
    SOURCE_WHOLE_SECONDS,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, fold, plural, visible
from skillshelf.errors import (
    ConfigurationError,
    SkillError,
    SourceNotFound,
    SourceRefused,
    SourceUnreachable,
)
from skillshelf.install.reference import SourceContext, SourceReference, is_loopback
from skillshelf.install.skill_entries import SKILL_FILE, check_names, check_sizes

if TYPE_CHECKING:
    from mcp import Client

__all__ = ["EXTENSION", "McpSource"]

EXTENSION = "io.modelcontextprotocol/skills"
"""The identifier of the skills extension."""

_EXTRA = ("mcp", "httpx2", "anyio")
_QUOTED = 200
_HEX = frozenset("0123456789abcdef")
_Result = TypeVar("_Result")


class _ServedFile(NamedTuple):
    """A file as the entry of its skill names it."""

    uri: str
    size: int
    sha256: str


class _ServedSkill(NamedTuple):
    """An entry of a server, checked; `root` is the address of its folder."""

    root: str
    frontmatter: Mapping[str, Any]
    files: Mapping[str, _ServedFile]

    @property
    def name(self) -> str:
        return str(self.frontmatter["name"])

    @property
    def folder(self) -> str:
        """The folder in the server's own order of skills, with which its address ends."""
        return _folder_in(self.root)

    def source_entry(self) -> SourceEntry:
        """Return the entry as every source has it. The protocol knows no executable files."""
        listed = {path: TreeFile(file.size, file.sha256, False) for path, file in self.files.items()}
        description = str(self.frontmatter["description"])
        manifest = manifest_of(listed)
        return SourceEntry(self.name, description, self.frontmatter, tree_digest(listed), self.folder, manifest)


class McpSource:
    """Skills of an MCP server that the user's configuration names: `mcp:LABEL`, or one of them, `mcp:LABEL/NAME`.

    Every call connects, asks and leaves. What `list` returned is what `fetch` reads from, until `list` is called again.
    """

    def __init__(self, reference: SourceReference, context: SourceContext) -> None:
        self.label = f"mcp:{reference.location}"
        self.notes: Sequence[str] = ()
        self._reference = reference
        self._context = context
        self._server = _server_of(reference.location, context.environment)
        self._held: dict[str, _ServedSkill] = {}

    @classmethod
    def named(cls, label: str, environment: Environment) -> "McpSource":
        """Return the server of a label in the configuration of an environment, as a live source."""
        return cls(SourceReference("mcp", f"mcp:{label}", label), SourceContext(environment))

    def list(self) -> list[SourceEntry]:
        """Return the skills that the server offers, or the one that is named; what cannot be used is in `notes`."""
        served, notes = self._ask(self._listed)
        self.notes = notes
        self._held = {skill.folder: skill for skill in served}
        return [skill.source_entry() for skill in served]

    def fetch(self, entry: SourceEntry, paths: Sequence[str], limits: SourceLimits) -> dict[str, bytes]:
        """Return files of a listed skill, each compared with its entry; all of them if no path is given."""
        if entry.path not in self._held:
            self.list()
        skill = self._held.get(entry.path)
        if skill is None:
            raise SourceNotFound(f"{self.label} has no skill {visible(entry.name)}")
        if entry.tree not in (None, skill.source_entry().tree):
            raise SourceRefused("changed", f"{visible(entry.name)} of {self.label} changed since it was listed")
        if missing := [path for path in paths if path not in skill.files]:
            raise SourceNotFound(f"{visible(entry.name)} of {self.label} has no file {visible(missing[0])!r}")
        check_sizes({path: file.size for path, file in skill.files.items()}, limits)
        return self._ask(lambda client: self._files(client, skill, paths or tuple(skill.files)))

    def identity(self, entry: SourceEntry) -> SourceIdentity:
        """Return the server and the address of the skill there; its version is its tree."""
        source = f"mcp:{self._reference.location}/{entry.path}"
        return SourceIdentity(source, "", None, None, None, f"the MCP server {self._reference.location}")

    # Requests -------------------------------------------------------------------------------------

    def _ask(self, work: "Callable[[_ServerRequests], Awaitable[_Result]]") -> _Result:
        """Return what `work` does with a connection; it runs in a thread, where no other event loop does."""
        if self._context.offline:
            raise SourceUnreachable(f"{self.label} is not asked: offline")
        if not all(find_spec(package) for package in _EXTRA):
            raise ConfigurationError(f"{self.label} needs the extra: pip install 'skillshelf[mcp]'")
        seconds = self._context.limits.seconds

        def run() -> _Result:
            import anyio

            return anyio.run(_connected, self._server, self._context.environment, seconds, work)

        try:
            # The connection has its own time limits; this one is for a server that keeps it from ending.
            return BoundedCall(run).result(SOURCE_WHOLE_SECONDS + 2 * seconds)
        except SkillError as error:
            raise _named(error, self.label) from None

    async def _listed(self, client: "_ServerRequests") -> "tuple[Sequence[_ServedSkill], Sequence[str]]":
        entries = [entry async for entry in client.entries(self._context.limits)]
        wanted = self._reference.name
        served: dict[str, _ServedSkill] = {}
        notes: list[str] = []
        for entry in entries:
            try:
                skill = _checked_skill(entry, self._context.limits)
            except SourceRefused as error:
                notes.append(f"left out: {_shown_name(entry)}: {error}")
                continue
            if skill.folder in served:
                notes.append(f"left out: {visible(skill.root)} is listed twice")
            elif wanted in (None, skill.name, skill.folder):
                served[skill.folder] = skill
        if not served and wanted is not None:
            skill = await self._confirmed(client, wanted)
            served[skill.folder] = skill
        return list(served.values()), notes

    async def _confirmed(self, client: "_ServerRequests", wanted: str) -> _ServedSkill:
        """Return a skill that a listing may leave out: the server is asked for it by its address."""
        uri = f"skill://{wanted}/{SKILL_FILE}"
        answer = await client.request("skills/get", uri=uri)
        skill = _checked_skill(answer.get("skill"), self._context.limits)
        if f"{skill.root}/{SKILL_FILE}" != uri:
            raise SourceRefused("address", f"the server answered with another skill than {visible(uri)}")
        return skill

    async def _files(self, client: "_ServerRequests", skill: _ServedSkill, paths: Sequence[str]) -> dict[str, bytes]:
        contents = {}
        for path in paths:
            file = skill.files[path]
            data = _bytes_of(await client.request("resources/read", uri=file.uri), file)
            if len(data) != file.size:
                raise SourceRefused("size", f"{visible(path)} has {len(data)} bytes, and its entry says {file.size}")
            if sha256(data).hexdigest() != file.sha256:
                raise SourceRefused("digest", f"{visible(path)} is not the file that its entry names")
            if path == SKILL_FILE:
                _require_same_frontmatter(skill, data)
            contents[path] = data
        return contents


def _named(error: SkillError, label: str) -> SkillError:
    """Return an error with the label of the server in its message."""
    if isinstance(error, ConfigurationError):
        return error
    if isinstance(error, SourceRefused):
        return SourceRefused(error.rule, f"{label}: {error.reason}")
    kind = type(error) if isinstance(error, SourceNotFound | SourceUnreachable) else SourceUnreachable
    return kind(f"{label}: {cut(fold(str(error)), _QUOTED)}")


def _server_of(label: str, environment: Environment) -> McpServer:
    """Return the server of a label; raise ConfigurationError if the user's own file does not name it."""
    # Under this rule of trust no file of a project says anything.
    known = load_settings(environment, trust="user").mcp_servers
    if label not in known:
        file = user_config_path(environment) or "your configuration"
        raise ConfigurationError(f"no MCP server {visible(label)!r}: name it in [mcp.servers.{label}] of {file}")
    server = known[label]
    if server.url is not None:
        _require_address(label, server.url)
    return server


def _require_address(label: str, url: str) -> None:
    """Raise SourceRefused for an address with secrets, or one that others on the way could read and change."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise SourceRefused("url", f"the url of the MCP server {label} is not valid") from None
    if parts.username is not None or parts.password is not None or parts.query:
        raise SourceRefused("secret", f"the url of the MCP server {label} holds a user, a password or a query")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise SourceRefused("url", f"the url of the MCP server {label} is neither https:// nor http:// to loopback")


# Connections --------------------------------------------------------------------------------------


async def _connected(
    server: McpServer,
    environment: Environment,
    seconds: float,
    work: "Callable[[_ServerRequests], Awaitable[_Result]]",
) -> _Result:
    """Connect to a server, let `work` ask it, and leave; every step is bounded in time."""
    import anyio

    try:
        with anyio.fail_after(seconds) as scope:
            async with _client(server, environment) as client:
                # It is connected: from now on every request has its own time.
                scope.deadline = anyio.current_time() + SOURCE_WHOLE_SECONDS
                _require_extension(client)
                result = await work(_ServerRequests(client, seconds))
                # A server that is slow to end has answered all the same.
                scope.deadline = float("inf")
        return result
    except BaseException as error:
        raise _as_failure(error) from None


def _as_failure(error: BaseException) -> BaseException:
    """Return the first of our own errors in a group of errors, or else what was wrong with the connection."""
    found = _leaves(error)
    ours = [one for one in found if isinstance(one, SkillError)]
    if ours:
        return ours[0]
    if any(isinstance(one, TimeoutError) for one in found):
        return SourceUnreachable("the server did not answer in time")
    name = type(found[0]).__name__
    if name == "ValidationError":
        # Its text quotes what the server sent.
        return SourceRefused("protocol", "an answer of the server does not have the form that the protocol asks for")
    return SourceUnreachable(cut(fold(visible(f"{name}: {found[0]}")), _QUOTED))


def _leaves(error: BaseException) -> "Sequence[BaseException]":
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


@asynccontextmanager
async def _client(server: McpServer, environment: Environment) -> "AsyncIterator[Client]":
    """Connect to a server; nothing but the skills extension is offered to it."""
    from mcp import Client
    from mcp.client import advertise
    from mcp_types import Implementation

    async with AsyncExitStack() as stack:
        if server.url is not None:
            from mcp.client.streamable_http import streamable_http_client

            http = await stack.enter_async_context(_http_client())
            transport: Any = streamable_http_client(
                server.url, http_client=http, max_sse_event_size=MCP_ANSWER_BYTES, terminate_on_close=False
            )
        else:
            from mcp import StdioServerParameters
            from mcp.client.stdio import stdio_client

            variables = {name: environment.env[name] for name in server.env if name in environment.env}
            parameters = StdioServerParameters(
                command=server.command[0], args=list(server.command[1:]), env=variables, cwd=environment.home
            )
            # What the server prints for people could hold anything, and nobody asked for it.
            transport = stdio_client(parameters, errlog=subprocess.DEVNULL)  # type: ignore[arg-type]
        about = Implementation(name="skillshelf", version=__version__)
        client = Client(transport, extensions=[advertise(EXTENSION)], cache=None, client_info=about)
        yield await stack.enter_async_context(client)


def _http_client() -> Any:
    """Return an HTTP client whose answers are bounded in size, which are never compressed, and that uses no proxy."""
    import httpx2

    class BoundedStream(httpx2.AsyncByteStream):
        """A body that ends with an error beyond a number of bytes."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > MCP_ANSWER_BYTES:
                    raise SourceRefused("too-large", f"an answer has more than {MCP_ANSWER_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    class BoundedTransport(httpx2.AsyncHTTPTransport):
        """A transport that passes on bodies as they come, up to a size."""

        async def handle_async_request(self, request: Any) -> Any:
            response = await super().handle_async_request(request)
            if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
                raise SourceRefused("compressed", "the server compresses an answer that nobody asked to compress")
            response.stream = BoundedStream(response.stream)
            return response

    transport = BoundedTransport(verify=ssl.create_default_context())
    headers = {"accept-encoding": "identity"}
    return httpx2.AsyncClient(transport=transport, headers=headers, trust_env=False, timeout=SOURCE_WHOLE_SECONDS)


def _require_extension(client: "Client") -> None:
    """Raise SourceRefused unless the server declares that it serves skills."""
    capabilities = client.server_capabilities
    declared = (capabilities.extensions or {}).get(EXTENSION)
    if not isinstance(declared, dict) or capabilities.resources is None:
        raise SourceRefused("capability", f"the server does not declare the extension {EXTENSION} and resources")


class _ServerRequests:
    """The requests to one connected server, each bounded in time."""

    def __init__(self, client: "Client", seconds: float) -> None:
        self._client = client
        self._seconds = seconds

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a method; raise SourceNotFound for what the server does not have."""
        import anyio
        import mcp_types as types
        from mcp.shared.exceptions import MCPError
        from pydantic import ConfigDict

        class OpenParams(types.RequestParams):
            model_config = ConfigDict(extra="allow")

        class OpenResult(types.Result):
            model_config = ConfigDict(extra="allow")

        request: Any = types.Request(method=method, params=OpenParams(**params))
        try:
            with anyio.fail_after(self._seconds):
                answer = await self._client.session.send_request(request, OpenResult)
        except MCPError as error:
            message = f"{method}: {cut(fold(visible(str(error))), _QUOTED)}"
            raise (SourceNotFound if error.code == _INVALID_PARAMS else SourceUnreachable)(message) from None
        result = answer.model_dump(by_alias=True)
        if result.get("resultType") not in (None, "complete"):
            raise SourceRefused("incomplete", f"{method}: the server asks for something instead of answering")
        return dict(result)

    async def entries(self, limits: SourceLimits) -> AsyncIterator[Any]:
        """Yield the entries of all pages; raise SourceRefused for pages without an end."""
        cursor: str | None = None
        seen: set[str] = set()
        count = 0
        for _ in range(MCP_PAGES):
            params = {} if cursor is None else dict(cursor=cursor)  # noqa: C408 - the word is a host's name, too
            page = await self.request("skills/list", **params)
            skills = page.get("skills")
            if not isinstance(skills, list):
                raise SourceRefused("type", "skills/list: the server returned no list of skills")
            count += len(skills)
            if count > limits.entries:
                raise SourceRefused("too-many-skills", f"the server lists more than {plural(limits.entries, 'skill')}")
            for entry in skills:
                yield entry
            cursor = page.get("nextCursor")
            if cursor is None:
                return
            if not isinstance(cursor, str) or cursor in seen:
                raise SourceRefused("pages", "skills/list: the server returned a cursor twice, or one that is no text")
            seen.add(cursor)
        raise SourceRefused("pages", f"skills/list: more than {MCP_PAGES} pages")


_INVALID_PARAMS = -32602


# Entries ------------------------------------------------------------------------------------------


def _checked_skill(entry: object, limits: SourceLimits) -> _ServedSkill:
    """Return an entry whose members are checked; raise SourceRefused with the rule that it breaks."""
    if not isinstance(entry, dict):
        raise SourceRefused("type", "an entry is not an object")
    uri, frontmatter, resources = entry.get("uri"), entry.get("frontmatter"), entry.get("resources")
    root = _root_of(uri)
    if not isinstance(frontmatter, dict):
        raise SourceRefused("frontmatter", "an entry has no frontmatter")
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if not isinstance(name, str) or not isinstance(description, str) or not description.strip():
        raise SourceRefused("frontmatter", "the frontmatter has no name or no description")
    if _decoded(root.rpartition("/")[2]) != name:
        raise SourceRefused("name", f"its address does not end with its name: {visible(root)}")
    check_names([name])
    if "/" in name:
        raise SourceRefused("name", "its name holds a slash")
    if resources == "dynamic":
        raise SourceRefused("dynamic", "its files have no digests, so nobody can know what was approved")
    if not isinstance(resources, list):
        raise SourceRefused("resources", "its files are not listed")
    if len(resources) > limits.files:
        raise SourceRefused("too-many-files", f"it has {len(resources)} files; at most {limits.files}")
    files: dict[str, _ServedFile] = {}
    for resource in resources:
        path, file = _checked_file(resource, root)
        if path in files:
            raise SourceRefused("duplicate", f"it lists {visible(path)!r} twice")
        files[path] = file
    check_names(files)
    check_sizes({path: file.size for path, file in files.items()}, limits)
    if SKILL_FILE not in files or files[SKILL_FILE].size > SKILL_FILE_BYTES:
        raise SourceRefused("no-skill", f"it lists no {SKILL_FILE} of at most {SKILL_FILE_BYTES} bytes")
    return _ServedSkill(root, frontmatter, files)


def _root_of(uri: object) -> str:
    """Return the address of the folder of a SKILL.md."""
    if not isinstance(uri, str) or len(uri) > ADDRESS_CHARS or not uri.isascii() or not uri.isprintable():
        raise SourceRefused("address", "the address of an entry is not a short text")
    scheme, separator, place = uri.partition("://")
    if not separator or not scheme.isalnum() or not place.endswith(f"/{SKILL_FILE}") or set("?#\\ ") & set(place):
        raise SourceRefused("address", f"not the address of a {SKILL_FILE}: {visible(uri)}")
    root = uri.removesuffix(f"/{SKILL_FILE}")
    if any(segment in ("", ".", "..") for segment in map(_decoded, _folder_in(root).split("/"))):
        raise SourceRefused("address", f"not the address of a {SKILL_FILE}: {visible(uri)}")
    return root


def _folder_in(root: str) -> str:
    return root.partition("://")[2]


def _checked_file(resource: object, root: str) -> tuple[str, _ServedFile]:
    if not isinstance(resource, dict):
        raise SourceRefused("resources", "an entry of its files is not an object")
    uri, digest, size = resource.get("uri"), resource.get("digest"), resource.get("size")
    if not isinstance(uri, str) or not uri.isascii() or not uri.startswith(f"{root}/") or set("?#") & set(uri):
        raise SourceRefused("containment", "it lists a file outside its folder")
    path = "/".join(map(_decoded, uri[len(root) + 1 :].split("/")))
    if type(size) is not int or size < 0:
        raise SourceRefused("size", f"the size of {visible(path)!r} is not a number of bytes")
    if not isinstance(digest, str) or not digest.startswith("sha256:") or len(digest) != 71:
        raise SourceRefused("digest", f"the digest of {visible(path)!r} is not `sha256:` and 64 hexadecimal digits")
    if not set(digest[7:]) <= _HEX:
        raise SourceRefused("digest", f"the digest of {visible(path)!r} is not in small hexadecimal digits")
    return path, _ServedFile(uri, size, digest[7:])


def _decoded(segment: str) -> str:
    """Return a segment of an address without its percent-encoding, undone once."""
    try:
        text = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise SourceRefused("name", "an address holds a name that is not UTF-8") from None
    if "/" in text:
        raise SourceRefused("path-escape", f"an address holds an encoded slash: {visible(segment)}")
    return text


def _bytes_of(answer: Mapping[str, Any], file: _ServedFile) -> bytes:
    """Return the one content of a read; its address must be the one that was asked for."""
    contents = answer.get("contents")
    if not isinstance(contents, list) or len(contents) != 1 or not isinstance(contents[0], dict):
        raise SourceRefused("type", "resources/read: the server did not return one file")
    content = contents[0]
    if content.get("uri") != file.uri:
        raise SourceRefused("address", "resources/read: the server returned another file than was asked for")
    text, blob = content.get("text"), content.get("blob")
    try:
        if isinstance(text, str) and blob is None:
            return text.encode("utf-8")
        if isinstance(blob, str) and text is None:
            return b64decode(blob, validate=True)
    except ValueError:
        pass
    raise SourceRefused("type", "resources/read: the server returned neither text nor base64")


def _require_same_frontmatter(skill: _ServedSkill, data: bytes) -> None:
    """Raise SourceRefused if the frontmatter of a file differs in any field from that of its entry."""
    fields = parse(data, whole=True).fields
    for key in sorted({*fields, *skill.frontmatter}):
        if _as_json(fields.get(key, _Missing)) != _as_json(skill.frontmatter.get(key, _Missing)):
            message = f"`{visible(cut(key, 60))}` in its frontmatter differs between entry and file"
            raise SourceRefused("frontmatter", message)


class _Missing:
    """Stands for a field that is not there."""


def _as_json(value: Any) -> str:
    """Return a value in one spelling; a JSON number has one kind."""
    if value is _Missing:
        return ""
    return json.dumps(_plain_numbers(value), sort_keys=True)


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    return {key: _plain_numbers(item) for key, item in value.items()} if isinstance(value, dict) else value


def _shown_name(entry: object) -> str:
    uri = entry.get("uri") if isinstance(entry, dict) else None
    return visible(cut(fold(uri.encode("utf-8", "replace").decode()), 100)) if isinstance(uri, str) else "an entry"
