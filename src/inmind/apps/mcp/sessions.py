"""The session of a request: its project, its owner, and the open sessions.

One server has many clients, and one home has the memory of many projects. The project of a client is the folder that
it reports, the folder of the server, or a name in its configured URL. Each project is a separate resource, and a
session that a model names is a session of that resource: no call reaches another resource by name. An operator can set
the resource instead, or open all of them.

The name of a folder's project contains a part of the digest of its path, so that two folders with the same name are two
projects.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import anyio
import anyio.to_thread
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ListRootsRequest, ListRootsResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request

from inmind.core.frozen import frozen
from inmind.core.paths import ANONYMOUS, check_name, require_resource
from inmind.errors import Closed, InvalidInput, NotFound
from inmind.memory.memory import Memory
from inmind.session.legacy_files import find_legacy
from inmind.session.session import Session

T = TypeVar("T")
Key = TypeVar("Key")

MAX_NAME_BYTES = 48
"""Bytes of the folder name in the project name."""

_EXPECTED_PROJECT = "a project: ?project=NAME in the client's URL, or --cwd, --session or --resource for the server"


@frozen(kw_only=True)
class Project:
    """The project of a client."""

    name: str
    folder: Path | None = None
    """Its folder, if known."""

    @classmethod
    def at(cls, folder: Path) -> Project:
        return cls(name=folder_project_name(folder), folder=folder)

    @classmethod
    def from_name(cls, name: str) -> Project:
        return cls(name=require_resource(name))


@frozen(kw_only=True)
class SessionTarget:
    """The session of a call."""

    session: str
    """Name that the caller uses."""
    resource: str
    """Owner of the session."""
    any_resource: bool
    """If the session exists, it may belong to any resource."""
    is_callers_choice: bool
    """The caller chose the name; it must not reveal which names other projects use."""
    folder: Path | None

    @property
    def qualified_id(self) -> str:
        """Session id if another resource already uses the name: ids are unique in a home."""
        return f"{self.session}@{self.resource}"


@frozen(kw_only=True)
class ServerDefaults:
    """Defaults and restrictions for calls."""

    project: Project | None = None
    """Project of clients without one; None if the server's folder belongs to no client."""
    is_fixed: bool = False
    """The operator set the project: clients are not asked for their folders."""
    session: str = ""
    resource: str = ""
    all_resources: bool = False
    """Every client can access all resources of the home."""

    @classmethod
    def from_options(
        cls,
        *,
        cwd: Path | None = None,
        session: str = "",
        resource: str = "",
        all_resources: bool = False,
        use_cwd: bool = True,
    ) -> ServerDefaults:
        """Check the options. `use_cwd`: the current folder is that of the client."""
        if resource and all_resources:
            expected = "no --resource: the two cannot be combined"
            raise InvalidInput(field="--all-resources", value=resource, expected=expected)
        folder = cwd or (Path.cwd() if use_cwd else None)
        return cls(
            project=Project.at(folder.resolve()) if folder else None,
            is_fixed=cwd is not None,
            session=session and check_name(session, "session"),
            resource=resource and require_resource(resource),
            all_resources=all_resources,
        )

    def depends_on_project(self, session: str = "", resource: str = "") -> bool:
        """True if a call with these names needs the client's folder to be resolved."""
        known = self.resource or (self.all_resources and resource)
        return not self.is_fixed and not ((session or self.session) and known)

    def owner_of(self, project: Project | None) -> str:
        """The resource that a client with this project can access."""
        known_project = project or self.project
        if owner := self.resource or (known_project.name if known_project else self.session):
            return owner
        raise InvalidInput(field="project", value="none", expected=_EXPECTED_PROJECT)

    def target(self, session: str = "", resource: str = "", *, project: Project | None = None) -> SessionTarget:
        """Resolve the session of a call that names these."""
        known_project = project or self.project
        if self.all_resources:
            owner = resource or (session if session and known_project is None else self.owner_of(project))
        else:
            owner = self.owner_of(project)
            if resource not in ("", owner):
                raise InvalidInput(field="resource", value=resource, expected=f"{owner!r}, or none")
            if owner == ANONYMOUS and session not in ("", self.session):
                # Anonymous sessions cannot access each other.
                raise NotFound(what="session", name=session, hint=f"this server only serves {self.session!r}")
        return SessionTarget(
            session=session or self.session or (known_project.name if known_project else owner),
            resource=owner,
            any_resource=self.all_resources and not resource,
            is_callers_choice=bool(session) and session != self.session and not self.all_resources,
            folder=known_project.folder if known_project else None,
        )


def folder_project_name(folder: Path) -> str:
    """Folder name plus six hex digits of the digest of its path."""
    plain = "".join(each if each.isalnum() or each in "-_." else "-" for each in folder.name) or "root"
    short = plain.encode(errors="replace")[:MAX_NAME_BYTES].decode(errors="ignore")
    return f"{short}-{sha256(os.fsencode(folder)).hexdigest()[:6]}"


def folder_from_uri(uri: str) -> Path | None:
    """Local folder of a file URI; None for any other URI."""
    try:
        parts = urlsplit(uri)
        path = Path(url2pathname(parts.path))
        return path.resolve() if parts.scheme == "file" and path.is_absolute() else None
    except (ValueError, OSError, RuntimeError):  # invalid URI or path, or a symlink loop
        return None


MAX_CONNECTIONS = 1_000
ROOTS_SECONDS = 5.0
"""Timeout for the client's answer to `roots/list`."""

PROJECT = "project"
"""Query parameter of the URL that the client is configured with."""

_SESSION_ID = "mcp-session-id"


class McpConnection:
    """The versions that a client was shown, and its project.

    A pipe is one connection, and so is an HTTP connection with a session id of the older protocol versions. The newer
    versions have no session ids: there is no connection state, and each call carries its own.
    """

    def __init__(self) -> None:
        self.versions: defaultdict[str, dict[str, str]] = defaultdict(dict)
        """By session: versions of pages and events that the client was shown."""
        self._project: Project | None = None
        self._answered = False
        self._roots_lock = anyio.Lock()

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


def _use(values: OrderedDict[Key, T], key: Key, new: T, maximum: int) -> T:
    """The value of a key, or `new` if it has none.

    Above the maximum the least recently used one is dropped.
    """
    value = values.setdefault(key, new)
    values.move_to_end(key)
    while len(values) > maximum:
        values.popitem(last=False)
    return value


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
        return _use(self._by_id, id, McpConnection(), MAX_CONNECTIONS)


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


MAX_THREADS = 16
"""Calls at the same time. The library waits for the disk, which an event loop must not: each call runs in a thread."""

MAX_SESSIONS = 256
"""Sessions kept open; above it the least recently used one is dropped and opened again on demand."""


class ServerStopping(Closed):
    """The server is shutting down. Nothing was done."""

    def __str__(self) -> str:
        return "the server is shutting down: nothing was done; call again when it is back"


class SessionPool:
    """The open sessions of one memory, shared by all clients, and its running calls."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._threads = anyio.CapacityLimiter(MAX_THREADS)
        self._stopping = threading.Event()
        self._active = 0
        self._lock = threading.Lock()
        self._sessions: OrderedDict[SessionTarget, Session] = OrderedDict()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in a thread.

        Raises ServerStopping if it has not started before the shutdown.
        """

        def run_unless_stopping() -> T:
            if self._stopping.is_set():
                raise ServerStopping
            return function()

        self._active += 1
        try:
            return await anyio.to_thread.run_sync(run_unless_stopping, limiter=self._threads)
        finally:
            self._active -= 1

    async def shutdown(self, seconds: float) -> None:
        """Refuse new calls, and wait for running ones at most this long."""
        self._stopping.set()
        with anyio.move_on_after(seconds):
            while self._active:
                await anyio.sleep(0.01)

    def resolve_defaults(self, defaults: ServerDefaults) -> ServerDefaults:
        """Defaults with the resource of the default session, whose owner cannot change."""
        if defaults.all_resources or not defaults.session or defaults.session not in self.memory:
            return defaults
        session = self.memory.session(defaults.session, resource=defaults.resource or None)
        return replace(defaults, resource=session.resource)

    def session(self, target: SessionTarget, *, create: bool) -> Session:
        """The session of a target. With `create=False` an unknown session raises NotFound."""
        session = self._sessions.get(target) or self._open(target, create=create)
        with self._lock:
            return _use(self._sessions, target, session, MAX_SESSIONS)

    def _open(self, target: SessionTarget, *, create: bool) -> Session:
        if (existing := self._find(target)) is not None:
            return existing
        if not create:
            raise NotFound(what="session", name=target.session, hint="inmind://sessions lists all")
        taken = target.session in self.memory
        if taken and (created := self._find(target)) is not None:
            return created  # created concurrently by another call
        id = target.qualified_id if target.is_callers_choice or taken else target.session
        return self.memory.session(id, resource=target.resource, cwd=target.folder or self.memory.home or "/")

    def _find(self, target: SessionTarget) -> Session | None:
        """The existing session, if it belongs to the resource.

        The existence of other sessions is not revealed.
        """
        if target.any_resource:
            return self.memory.session(target.session) if target.session in self.memory else None
        for id in (target.session, target.qualified_id):
            if id in self.memory and not (target.is_callers_choice and self._is_unclaimed(id, target.resource)):
                with suppress(InvalidInput):
                    return self.memory.session(id, resource=target.resource)
        return None

    def _is_unclaimed(self, id: str, resource: str) -> bool:
        """True for a legacy session file without an owner.

        It would belong to the first process that opens it.
        """
        home = self.memory.home
        return (
            home is not None
            and bool(find_legacy(home, id.__eq__))
            and all(info.id != id for info in self.memory.sessions(resource=resource))
        )
