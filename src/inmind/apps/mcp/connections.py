"""Who is asking, as far as the transport tells: what a connection was shown, and the project that it works on.

A process on the other end of a pipe is one caller, and so is a connection over HTTP that has a session id of the
protocol's older kind. The newer kind has neither: then nobody is known, and a call brings along what it has to.
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

from inmind.apps.mcp.project import Project, folder_of
from inmind.errors import InvalidInput

MOST_CALLERS = 1_000
ROOTS_SECONDS = 5.0
"""For a client to say where it works."""

PROJECT = "project"
"""In the query of the URL that a client was configured with."""

_SESSION_ID = "mcp-session-id"


class Caller:
    """One connection."""

    def __init__(self) -> None:
        self._heard: dict[str, dict[str, str]] = {}
        self._works_on: Project | None = None
        self._answered = False
        self._asking = anyio.Lock()

    def knows(self, session: str) -> Mapping[str, str]:
        """What it was shown of a session: pages, and the events that wrote what it was shown."""
        return self._heard.get(session, {})

    def hears(self, session: str, seen: Mapping[str, str]) -> None:
        if seen:
            self._heard.setdefault(session, {}).update(seen)

    async def project(self, context: ServerRequestContext[Any, Any]) -> Project | None:
        """That of the folder that it works in, by its own word; it is asked until it has answered once."""
        async with self._asking:
            if not self._answered:
                try:
                    self._works_on = await _at_its_first_root(context)
                except (MCPError, ValidationError):
                    return None
                self._answered = True
        return self._works_on

    def has_moved(self) -> None:
        """It works in other folders now."""
        self._answered = False


class Callers:
    """The connections that there are; of too many, those that were not heard of the longest are strangers again."""

    def __init__(self) -> None:
        self._pipe = Caller()
        self._known: OrderedDict[str, Caller] = OrderedDict()

    def of(self, context: ServerRequestContext[Any, Any]) -> Caller | None:
        request = context.request
        if not isinstance(request, Request):
            return self._pipe
        id = request.headers.get(_SESSION_ID)
        if not id or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None  # where there are no such ids, nobody has checked it
        caller = self._known.setdefault(id, Caller())
        self._known.move_to_end(id)
        while len(self._known) > MOST_CALLERS:
            self._known.popitem(last=False)
        return caller


def configured(context: ServerRequestContext[Any, Any]) -> Project | None:
    """The project that the client's configuration names, which no model can change."""
    request = context.request
    named = request.query_params.getlist(PROJECT) if isinstance(request, Request) else []
    if len(named) > 1:
        raise InvalidInput(field=PROJECT, value=named, expected="one")
    return Project.named(named[0]) if named else None


async def _at_its_first_root(context: ServerRequestContext[Any, Any]) -> Project | None:
    able = context.session.client_capabilities
    if able is None or able.roots is None or not context.session.can_send_request:
        return None
    riding = ServerMessageMetadata(related_request_id=context.request_id)
    told = await context.session.send_request(ListRootsRequest(), ListRootsResult, ROOTS_SECONDS, riding)
    folders = (folder_of(str(root.uri)) for root in told.roots)
    return next((Project.at(folder) for folder in folders if folder is not None), None)
