"""Serve skills by the methods of the Model Context Protocol, in both of its versions ("eras").

The extension for skills is `io.modelcontextprotocol/skills`. Clients without it use the tools, the resources and, if
there are few skills, a prompt for each.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from math import inf
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import PydanticSerializationError, to_json

from skillshelf.catalog.load import CONTENT_TYPES, SKILL_FILE
from skillshelf.core.limits import PAGE_ENTRIES, STREAMS_AT_ONCE
from skillshelf.core.text import encoded_path, fold, for_model, visible
from skillshelf.errors import PermissionDenied, SkillError
from skillshelf.servers.mcp.client_sessions import ClientSession, client_label
from skillshelf.servers.mcp.listings import CACHE_SCOPE, CACHE_TTL_MS, EXTENSIONS, SERVER_INFO, TEMPLATE, Listings
from skillshelf.servers.mcp.skill_entries import (
    InvalidCursor,
    PublishableFolder,
    SkillEntry,
    address,
    cursor_after,
    cursor_key,
    names_after,
)
from skillshelf.servers.mcp.skills import PublishedSkills, SkillTarget
from skillshelf.servers.mcp.tools import call_tool, offered_tools
from skillshelf.session.permissions import NAMES_OF_TOOLS
from skillshelf.session.policy import Policy
from skillshelf.session.session import COMMAND

__all__ = ["SkillServer"]

FOLDER = "inode/directory"
_COMPLETED = 100
_THREADS = 16
_ANNOUNCED = 1_000
_ANNOUNCE_SECONDS = 1.0
_CLIENT = "skillshelf"

Context = Any
Result = TypeVar("Result")


class _UriParams(types.RequestParams):
    uri: str


class _DirectoryParams(types.PaginatedRequestParams):
    uri: str


class _Server(Server[Any]):
    """The server of the SDK; it declares in the older era too that it announces changes."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options that the handshake of the older era sends to a client."""
        announced = notification_options or NotificationOptions(prompts_changed=True, resources_changed=True)
        return super().create_initialization_options(announced, experimental_capabilities, extensions)


class SkillServer:
    """The methods of the protocol for one set of published skills.

    With `one_client` (standard input and output) all requests are of one client session, in both eras; `client` is that
    session if it was opened before, and `listings` what answered it. `running` is the number of calls that run, and
    `call_ended` is called at the end of each. `subject_of` returns the person who sends a request over HTTP, for the
    journal. Searches that only compute have one turn after the other, also with other servers of a `search_turn`.
    """

    def __init__(
        self,
        skills: PublishedSkills,
        *,
        show_paths: bool,
        one_client: bool = False,
        page_entries: int = PAGE_ENTRIES,
        progress_seconds: float = 0.5,
        listings: Listings | None = None,
        client: ClientSession | None = None,
        subject_of: Callable[[Mapping[str, Any]], str | None] = lambda scope: None,
        search_turn: anyio.CapacityLimiter | None = None,
    ) -> None:
        self.skills = skills
        self._search_turn = search_turn or anyio.CapacityLimiter(1)
        self._subject_of = subject_of
        self._one_client = one_client
        self._only = client
        self._page_entries = page_entries
        self._progress_seconds = progress_seconds
        self.bus = InMemorySubscriptionBus()
        self.subscriptions = ListenHandler(self.bus, max_subscriptions=STREAMS_AT_ONCE)
        self._listings = listings or Listings(skills, show_paths=show_paths, page_entries=page_entries)
        self._redaction = self._listings.redaction
        self.running = 0
        self.call_ended: Callable[[], None] = lambda: None
        self._limiter = anyio.CapacityLimiter(_THREADS)
        self._unlimited = anyio.CapacityLimiter(inf)
        self._sessions: dict[int, Any] = {}
        self._offered: tuple[Policy, tuple[str, ...]] | None = None
        self.server = self._build()

    def _build(self) -> _Server:
        hint = CacheHint(ttl_ms=CACHE_TTL_MS, scope=CACHE_SCOPE)
        server = _Server(
            SERVER_INFO["name"],
            version=SERVER_INFO["version"],
            title=SERVER_INFO["title"],
            description=SERVER_INFO["description"],
            instructions=self._listings.instructions(),
            cache_hints={
                "tools/list": hint,
                "resources/list": hint,
                "resources/templates/list": hint,
                "resources/read": hint,
                "prompts/list": hint,
            },
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self.subscriptions,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        server.extensions.update(EXTENSIONS)
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list_skills)
        server.add_request_handler("skills/get", _UriParams, self._get_skill)
        server.add_request_handler("resources/directory/read", _DirectoryParams, self._read_directory)
        server.middleware.append(self._count_calls)
        server.middleware.append(self._watch_handshake)
        server.middleware.append(encode_result)
        return server

    async def _watch_handshake(self, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        """Declare the extension in the older era, where the SDK omits it, and remember whom to notify of changes.

        The first message of a client session opens the session that records it.
        """
        result = await call_next(ctx)
        if ctx.request_id is not None and (ctx.method == "initialize" or (self._one_client and self._only is None)):
            await self._in_thread(_open, self._client_of(ctx))
        if ctx.method == "initialize" and isinstance(result, dict):
            capabilities = {**result.get("capabilities", {}), "extensions": dict(self.server.extensions)}
            return {**result, "capabilities": capabilities}
        if ctx.method == "notifications/initialized":
            if len(self._sessions) >= STREAMS_AT_ONCE:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[id(ctx.session)] = ctx.session
        return result

    async def _count_calls(self, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        """Count the calls that run: in the older era they go on when their client has left."""
        if ctx.method == "subscriptions/listen":
            return await call_next(ctx)
        self.running += 1
        try:
            return await call_next(ctx)
        finally:
            self.running -= 1
            self.call_ended()

    async def announce(self, changed: set[str], *, catalog: bool) -> None:
        """Notify clients of addresses with new contents, and of a changed catalog."""
        for uri in sorted(changed)[:_ANNOUNCED]:
            await self.bus.publish(ResourceUpdated(uri))
        if not catalog:
            return
        self.server.instructions = self._listings.instructions()
        await self.bus.publish(ResourcesListChanged())
        await self.bus.publish(PromptsListChanged())
        for key, session in list(self._sessions.items()):
            with anyio.move_on_after(_ANNOUNCE_SECONDS) as limit:
                await session.send_resource_list_changed()
                await session.send_prompt_list_changed()
            if limit.cancelled_caught:
                # It does not read notifications, and others must not wait for it again.
                self._sessions.pop(key, None)

    def _limiter_of(self, tool: str) -> anyio.CapacityLimiter:
        """Return what bounds the calls of a tool that run at one time.

        Python computes in one thread at a time: with several, a search takes more CPU time, and none ends sooner.
        """
        is_brief = NAMES_OF_TOOLS.get(tool) == "skill_search" and self.skills.shelf.is_search_brief
        return self._search_turn if is_brief else self._limiter

    async def _in_thread(
        self, function: Callable[..., Result], *arguments: Any, limiter: anyio.CapacityLimiter | None = None
    ) -> Result:
        """Return the result of a function that reads the disk or waits; it runs in a thread.

        A call that is cancelled leaves its thread behind, which counts until it ends.
        """
        borrower, loop, places = object(), asyncio.get_running_loop(), limiter or self._limiter
        await places.acquire_on_behalf_of(borrower)
        # Taken by the thread when it starts, or by a call that is cancelled before.
        start = [borrower]

        def run() -> Result:
            start.pop()
            try:
                return function(*arguments)
            except PermissionDenied as error:
                # A tool has its refusals in its results; this one is of the server: the policy lets none be served.
                raise MCPError(code=types.INVALID_REQUEST, message=self._redaction.message(str(error))) from None
            finally:
                # The loop may have ended by now.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(places.release_on_behalf_of, borrower)

        try:
            return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._unlimited)
        finally:
            with suppress(IndexError):
                places.release_on_behalf_of(start.pop())

    # Client sessions ------------------------------------------------------------------------------

    def _client_of(self, ctx: Context) -> ClientSession:
        """Return the client session of a request: a new one if its transport has no sessions."""
        if self._one_client:
            self._only = self._only or self.skills.sessions.start(_label(ctx))
            return self._only
        # The SDK has no public way from a request to its connection, only its state and exit stack are public.
        connection = getattr(ctx.session, "_connection", None)
        subject = self._subject_of(ctx.request.scope) if ctx.request is not None else None
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or connection is None:
            return self.skills.sessions.start(_label(ctx), subject=subject, per_request=True)
        client: ClientSession | None = connection.state.get(_CLIENT)
        if client is None:
            client = connection.state[_CLIENT] = self.skills.sessions.start(_label(ctx), subject=subject)
            # However the connection ends: by the client, idle, or with the server.
            connection.exit_stack.push_async_callback(anyio.to_thread.run_sync, client.end)
        return client

    async def _for_client(
        self,
        ctx: Context,
        function: Callable[..., Result],
        *arguments: Any,
        limiter: anyio.CapacityLimiter | None = None,
    ) -> Result:
        """Return the result of a function that takes the client session of a request first; it runs in a thread."""
        client = self._client_of(ctx)
        is_request = not self._one_client and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        run = partial(_and_end, function) if is_request else function
        async with client.turn:
            return await self._in_thread(run, client, *arguments, limiter=limiter)

    # The extension --------------------------------------------------------------------------------

    async def _list_skills(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        with _known_cursors():
            return self._cached(ctx, await self._for_client(ctx, self._listings.skills, params.cursor))

    async def _get_skill(self, ctx: Context, params: _UriParams) -> dict[str, Any]:
        found = await self._in_thread(self.skills.entry, params.uri)
        if not isinstance(found, SkillEntry):
            why = f": {found.reason}" if found is not None else ""
            raise _invalid(f"no published skill has this address{why}", params.uri)
        return self._cached(ctx, {"skill": found.to_dict()})

    async def _read_directory(self, ctx: Context, params: _DirectoryParams) -> dict[str, Any]:
        return self._cached(ctx, await self._in_thread(self._page_of_children, params.uri, params.cursor))

    def _page_of_children(self, uri: str, cursor: str | None) -> dict[str, Any]:
        target, state = self._located(uri)
        if target is None or state is None or target.path not in ("", *state.folders):
            raise _invalid("no skill has a folder of this address", uri)
        above = f"{target.path}/" if target.path else ""
        children = sorted(
            path.removeprefix(above)
            for path in (*state.files, *state.folders)
            if path.startswith(above) and "/" not in path.removeprefix(above)
        )
        with _known_cursors():
            names = names_after(children, cursor_key(f"directory {uri}", cursor, length=1))
        shown = names[: self._page_entries]
        more = cursor_after(f"directory {uri}", shown[-1]) if len(names) > len(shown) else None
        resources = [self._child(state, above + name).model_dump(by_alias=True, exclude_none=True) for name in shown]
        return {"resources": resources, **({"nextCursor": more} if more else {})}

    def _located(self, uri: str) -> tuple[SkillTarget | None, PublishableFolder | None]:
        """Return what an address leads to, and the files of its skill; raise an error if those are others now."""
        target = self.skills.locate(uri)
        try:
            return target, self.skills.scan(target) if target is not None else None
        except SkillError as error:
            raise _invalid(self._redaction.message(str(error)), uri) from None

    def _child(self, state: PublishableFolder, path: str) -> types.Resource:
        name = encoded_path(path.rpartition("/")[2])
        if path in state.folders:
            return types.Resource(uri=state.uri(path), name=name, mime_type=FOLDER)
        return types.Resource(uri=state.uri(path), name=name, mime_type=_type_of(path), size=state.files[path][2])

    def _cached(self, ctx: Context, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result with its lifetime, if the era has that."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return result
        return {**result, "ttlMs": CACHE_TTL_MS, "cacheScope": CACHE_SCOPE}

    # Resources ------------------------------------------------------------------------------------

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        with _known_cursors():
            found = await self._for_client(ctx, self._listings.resources, params.cursor if params else None)
        return types.ListResourcesResult.model_validate(found)

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        _only_page(params)
        return types.ListResourceTemplatesResult.model_validate(self._listings.templates())

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        contents = await self._for_client(ctx, self._contents, str(params.uri))
        return types.ReadResourceResult(contents=[contents])

    def _contents(self, client: ClientSession, uri: str) -> types.TextResourceContents | types.BlobResourceContents:
        target, state = self._located(uri)
        if target is None or state is None or target.path not in state.files:
            raise _invalid("no skill has a file of this address", uri)
        try:
            # A session knows the address without the id of the skill.
            session_uri = address(target.skill.name, *target.path.split("/"))
            resource = client.read(session_uri, target.skill.path)
        except SkillError as error:
            raise _invalid(self._redaction.message(str(error)), uri) from None
        kind = _type_of(target.path)
        if resource.encoding == "utf-8":
            return types.TextResourceContents(uri=uri, mime_type=kind, text=resource.content)
        kind = "application/octet-stream" if kind.startswith("text/") else kind
        return types.BlobResourceContents(uri=uri, mime_type=kind, blob=resource.content)

    # Tools ----------------------------------------------------------------------------------------

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        _only_page(params)
        return types.ListToolsResult.model_validate(await self._in_thread(self._listings.tools))

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        searches = NAMES_OF_TOOLS.get(params.name) == "skill_search"
        waits = searches and not self.skills.shelf.is_search_ready
        async with self._index_progress(ctx) if waits else nullcontext():
            called = await self._for_client(
                ctx, self._called, params.name, params.arguments or {}, limiter=self._limiter_of(params.name)
            )
        return types.CallToolResult.model_validate(called)

    def _called(self, client: ClientSession, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        policy = self.skills.queries.policy
        if self._offered is None or self._offered[0] is not policy:
            self._offered = policy, tuple(tool["name"] for tool in offered_tools(self.skills))
        if name not in self._offered[1]:
            known = ", ".join(self._offered[1])
            raise MCPError(code=types.INVALID_PARAMS, message=f"unknown tool '{visible(name)[:80]}' (known: {known})")
        return call_tool(client, self.skills, self._redaction, name, arguments)

    async def call(
        self, scope: Mapping[str, Any], label: str | None, name: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the result of a call that is a request of its own; raise what the SDK would turn into an error."""
        client = self.skills.sessions.start(label, subject=self._subject_of(scope), per_request=True)
        self.running += 1
        try:
            limiter = self._limiter_of(name)
            return await self._in_thread(_and_end, self._called, client, name, arguments, limiter=limiter)
        finally:
            self.running -= 1
            self.call_ended()

    @asynccontextmanager
    async def _index_progress(self, ctx: Context) -> AsyncIterator[None]:
        """Report the progress of the search index while a call waits for it, if its client asks for progress."""
        reports = asyncio.create_task(self._report_indexing(ctx))
        try:
            yield
        finally:
            reports.cancel()

    async def _report_indexing(self, ctx: Context) -> None:
        reported = 0
        while True:
            await anyio.sleep(self._progress_seconds)
            total, done = self.skills.shelf.indexing or (0, 0)
            if done > reported:
                # The client may have left; whoever serves it will notice.
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await ctx.session.report_progress(done, total, "indexing skills")
                reported = done

    # Prompts --------------------------------------------------------------------------------------

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        _only_page(params)
        return types.ListPromptsResult.model_validate(await self._in_thread(self._listings.prompts))

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._for_client(ctx, self._prompt, params.name, params.arguments or {})

    def _prompt(self, client: ClientSession, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
        skill = next((skill for skill in self._listings.for_users() if skill.name == name), None)
        if skill is None or set(arguments) - {"args"}:
            raise MCPError(code=types.INVALID_PARAMS, message="no such prompt, or it has no such argument")
        result = client.command(f"{COMMAND}{name} {arguments.get('args', '')}".rstrip())
        if result is None or not result.ok:
            why = result.error.message if result is not None and result.error else "it cannot be invoked"
            raise MCPError(code=types.INVALID_PARAMS, message=visible(self._redaction.message(why)))
        message = types.PromptMessage(role="user", content=types.TextContent(text=self._redaction.text(result.text)))
        return types.GetPromptResult(description=fold(for_model(skill.description)), messages=[message])

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        known = params.context.arguments if params.context and params.context.arguments else {}
        values: list[str] = []
        if isinstance(params.ref, types.ResourceTemplateReference) and params.ref.uri == TEMPLATE:
            values = await self._in_thread(self._completions, params.argument.name, known.get("name", ""))
        matching = [value for value in values if value.startswith(params.argument.value)]
        return types.CompleteResult(
            completion=types.Completion(
                values=matching[:_COMPLETED], total=len(matching), has_more=len(matching) > _COMPLETED
            )
        )

    def _completions(self, argument: str, name: str) -> list[str]:
        if argument == "name":
            return sorted({skill.name for skill in self.skills.visible})
        target = self.skills.locate(f"skill://{name}/{SKILL_FILE}") if argument == "path" else None
        try:
            state = self.skills.scan(target) if target is not None else None
        except SkillError:
            state = None
        return list(map(encoded_path, state.files)) if state is not None else []


def _label(ctx: Context) -> str | None:
    """Return the label of the client program: from its handshake, or from the envelope of a request."""
    params = ctx.session.client_params
    if params is not None:
        return client_label(params.client_info.name, params.client_info.version)
    # While the handshake is answered, the SDK has not stored it yet.
    given = (ctx.params or {}).get("clientInfo")
    return client_label(given.get("name"), given.get("version")) if isinstance(given, Mapping) else None


def _open(client: ClientSession) -> None:
    with client.session():
        pass


def _and_end(function: Callable[..., Result], client: ClientSession, *arguments: Any) -> Result:
    """Return the result of a function for a client session that is only this request."""
    try:
        return function(client, *arguments)
    finally:
        client.end()


@contextmanager
def _known_cursors() -> Iterator[None]:
    """Turn a cursor that is not of a listing into an error of the protocol."""
    try:
        yield
    except InvalidCursor as error:
        raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None


def _only_page(params: types.PaginatedRequestParams | None) -> None:
    """Refuse a cursor of a listing that has only one page."""
    with _known_cursors():
        cursor_key("none", params.cursor if params else None, length=0)


def _type_of(path: str) -> str:
    return CONTENT_TYPES["by-extension"](path)


def _invalid(message: str, uri: str) -> MCPError:
    text = f"{visible(message)}: {visible(uri)[:200]}"
    return MCPError(code=types.INVALID_PARAMS, message=text, data={"uri": uri[:4096]})


async def encode_result(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return the result of a method without text that UTF-8 cannot encode, such as an odd file name."""
    return encodable(await call_next(ctx))


def encodable(value: Any) -> Any:
    """Return the value itself if it can be encoded, else a copy with such text escaped."""
    try:
        to_json(value)
    except PydanticSerializationError:
        return _escaped(value)
    return value


def _escaped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_escaped(key): _escaped(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(inner) for inner in value]
    has_surrogate = isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value)
    return visible(value) if has_surrogate else value
