"""State per connection: the versions shown to the client, and its project.

A pipe is one connection, and so is an HTTP connection with a session id of the older protocol versions. The newer
versions have no session ids: there is no connection state, and each call carries its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import anyio
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ListRootsRequest, ListRootsResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request

from inmind.apps.mcp.project import Project, folder_from_uri
from inmind.errors import InvalidInput

MAX_CONNECTIONS = 1_000
ROOTS_SECONDS = 5.0
"""Timeout for the client's answer to `roots/list`."""

PROJECT = "project"
"""Query parameter of the URL that the client is configured with."""

_SESSION_ID = "mcp-session-id"


class McpConnection:
    """One connection."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {}
        self._project: Project | None = None
        self._answered = False
        self._roots_lock = anyio.Lock()

    def seen_versions(self, session: str) -> Mapping[str, str]:
        """Versions of pages and events of this session that the client was shown."""
        return self._seen.get(session, {})

    def add_seen(self, session: str, seen: Mapping[str, str]) -> None:
        if seen:
            self._seen.setdefault(session, {}).update(seen)

    async def project(self, context: ServerRequestContext[Any, Any]) -> Project | None:
        """Project of the client's first root folder.

        The client is asked until it has answered once.
        """
        async with self._roots_lock:
            if not self._answered:
                try:
                    self._project = await _project_of_first_root(context)
                except (MCPError, ValidationError):
                    return None
                self._answered = True
        return self._project

    def reset_project(self) -> None:
        """Ask for the roots again: the client has changed them."""
        self._answered = False


class Connections:
    """All connections. Above MAX_CONNECTIONS the least recently used one is forgotten."""

    def __init__(self) -> None:
        self._pipe = McpConnection()
        self._by_id: OrderedDict[str, McpConnection] = OrderedDict()

    def get(self, context: ServerRequestContext[Any, Any]) -> McpConnection | None:
        request = context.request
        if not isinstance(request, Request):
            return self._pipe
        id = request.headers.get(_SESSION_ID)
        if not id or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None  # these versions do not validate session ids
        connection = self._by_id.setdefault(id, McpConnection())
        self._by_id.move_to_end(id)
        while len(self._by_id) > MAX_CONNECTIONS:
            self._by_id.popitem(last=False)
        return connection


def configured_project(context: ServerRequestContext[Any, Any]) -> Project | None:
    """Project of the client's configured URL, which a model cannot change."""
    request = context.request
    names = request.query_params.getlist(PROJECT) if isinstance(request, Request) else []
    if len(names) > 1:
        raise InvalidInput(field=PROJECT, value=names, expected="one")
    return Project.from_name(names[0]) if names else None


async def _project_of_first_root(context: ServerRequestContext[Any, Any]) -> Project | None:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.roots is None or not context.session.can_send_request:
        return None
    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    result = await context.session.send_request(ListRootsRequest(), ListRootsResult, ROOTS_SECONDS, metadata)
    folders = (folder_from_uri(str(root.uri)) for root in result.roots)
    return next((Project.at(folder) for folder in folders if folder is not None), None)
