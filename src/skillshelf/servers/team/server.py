"""Put the parts of the team server together, and run them until a signal comes."""

import gc
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread

from skillshelf.core.console import note
from skillshelf.core.environment import Environment, user_data_folder
from skillshelf.core.limits import REQUEST_BYTES
from skillshelf.core.text import plural
from skillshelf.servers.mcp.connections import connection_room
from skillshelf.servers.mcp.event_loop import stopped_by_signal, watch
from skillshelf.servers.mcp.http import (
    PATH,
    HttpLimits,
    RequestGuard,
    ServerAccess,
    address_of,
    run_web_server,
)
from skillshelf.servers.mcp.skills import PublishedSkills
from skillshelf.servers.team.api import openapi_route, skill_routes
from skillshelf.servers.team.app import ObservedApp, TeamApp
from skillshelf.servers.team.catalogs import OWN_CATALOG, ShelfOf, TeamCatalogs, local_shelves
from skillshelf.servers.team.database import Database
from skillshelf.servers.team.identity import Authenticator, Issuer, IssuerKeys, fetch_from
from skillshelf.servers.team.journal_routes import journal_routes
from skillshelf.servers.team.mcp_endpoint import McpEndpoint
from skillshelf.servers.team.own_journals import OwnJournals
from skillshelf.servers.team.pages import team_pages
from skillshelf.servers.team.probes import probe_routes
from skillshelf.servers.team.published_catalog import PublishedCatalogs
from skillshelf.servers.team.release_access import Releases
from skillshelf.servers.team.release_routes import release_routes
from skillshelf.servers.team.routes import RouteTable, TeamRoute
from skillshelf.servers.team.services import TeamServices
from skillshelf.servers.team.values import READ, DatabaseAway
from skillshelf.session.recorder import recording_options
from skillshelf.shelf import Shelf

__all__ = ["TeamServer", "team_routes"]

_AGAIN_SECONDS = 1.0

AccessLog = Callable[[str], None]
"""Write a line of the access log."""


def team_routes(services: TeamServices, mcp: McpEndpoint, releases: Releases | None = None) -> list[TeamRoute]:
    """Return every route of the server."""
    routes = [
        *probe_routes(),
        *skill_routes(),
        *journal_routes(),
        *(release_routes(releases) if releases is not None else ()),
        *team_pages(services),
        TeamRoute("*", PATH, READ, "the Model Context Protocol", app=mcp, body_bytes=REQUEST_BYTES),
    ]
    return [*routes, openapi_route(routes)]


def _own_journals(database: Database, environment: Environment) -> OwnJournals | None:
    """Return the journals of this process; None where it has no folder to write them."""
    folder = user_data_folder(environment)
    try:
        if folder is None:
            raise FileNotFoundError(None, "there is no data folder")
        journals = OwnJournals(database, f"{folder}/team/journals")
    except OSError as error:
        note(f"sessions of clients are not recorded: {error.strerror or error}")
        return None
    journals.start()
    return journals


class TeamServer:
    """A team server: its services, its routes and its application.

    `shelf_of` returns the skills of a tenant; by default the disk of the server for the default tenant alone.
    `published` has the releases of all tenants, and the shelves with them.
    """

    def __init__(
        self,
        shelf: Shelf,
        database: Database,
        issuer: Issuer | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        shelf_of: ShelfOf | None = None,
        limits: HttpLimits | None = None,
        published: PublishedCatalogs | None = None,
    ) -> None:
        room = connection_room()
        self.room = room
        self.limits = (limits or HttpLimits()).within(room.connections)
        recorded = recording_options(values) if values is not None else {}
        self._exporter = recorded.get("otlp")
        self.journals = None if recorded.get("journal") else _own_journals(database, shelf.environment)
        journal_of = self.journals.path_of if self.journals is not None else None
        if published is not None:
            shelf_of = published.shelf_of
        catalogs = TeamCatalogs(shelf_of or local_shelves(shelf), **{**recorded, "journal_of": journal_of})
        keys = IssuerKeys(issuer, fetch_from(issuer, shelf.environment)) if issuer is not None else None
        if keys is not None:
            keys.fetch_behind()
        self.services = TeamServices(database, catalogs, Authenticator(database, keys), issuer=issuer)
        self.mcp = McpEndpoint(catalogs, self.services.metrics, self.limits)
        if published is not None:
            self.services.published, self.services.releases = published, published.releases
            self.services.add_blobs(published)
            published.start()
        self.table = RouteTable(team_routes(self.services, self.mcp, self.services.releases))
        self.app = TeamApp(self.services, self.table, self.mcp)
        self._preparing: str | None = "the skills are being read"
        self.services.add_check("catalog", lambda: self._preparing)

    async def run(self, address: ServerAccess, bound: socket.socket, log: AccessLog | None = None) -> None:
        """Serve until a signal comes; running requests may end first."""
        async with stopped_by_signal():
            await self.serve(address, bound, log)

    async def serve(self, address: ServerAccess, bound: socket.socket, log: AccessLog | None = None) -> None:
        """Serve until cancelled."""
        guard = RequestGuard(self.app, address, self.limits, lambda: self.mcp.running, self.app.authorize)
        self.mcp.call_ended = guard.advance
        observed = ObservedApp(guard, self.services, log)
        async with anyio.create_task_group() as group:
            note(f"serving at {address_of(address, bound)}")
            group.start_soon(self._prepare)
            await run_web_server(observed, guard, bound, self.room, self.limits, self.mcp.close)
            group.cancel_scope.cancel()

    async def _prepare(self) -> None:
        """Read the skills of the server's disk and open their index, then follow changes."""
        while (skills := await anyio.to_thread.run_sync(self._prepared, abandon_on_cancel=True)) is None:
            await anyio.sleep(_AGAIN_SECONDS)
        self._preparing = None
        note(f"ready: {plural(len(skills.visible), 'skill')}")
        if held_back := skills.held_back.for_user():
            note(held_back)
        # The servers run in the lifespan of the application, which may begin later.
        await self.mcp.started.wait()
        server = await self.mcp.server_of(OWN_CATALOG)
        async with anyio.create_task_group() as group:
            group.start_soon(watch, server)
            group.start_soon(self.mcp.announce_changes)

    def _prepared(self) -> PublishedSkills | None:
        """Return the skills when they can be searched; None while the database does not answer and they are unknown."""
        # The skills stay, and looking at all of them again and again while they are made takes longer than making them.
        gc.disable()
        try:
            try:
                skills = self.services.catalogs.skills(OWN_CATALOG)
            except DatabaseAway:
                return None
            # A search says why there is no index.
            with suppress(OSError):
                skills.prepare_search()
            _ = skills.visible
            gc.freeze()
        finally:
            gc.enable()
        return skills

    def close(self) -> None:
        """End all sessions, store what was recorded of them, and close the database."""
        self.services.catalogs.close()
        if self.journals is not None:
            self.journals.close()
        self.services.close()
        if self._exporter is not None:
            self._exporter.close()
