"""Runs calls on a memory in worker threads, with a limit, and keeps sessions open.

The library waits for the disk, which an event loop must not. Each call runs in a thread, so that a reading client does
not wait for another client's commit. Sessions are opened once and shared; their streams are safe for threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import anyio
import anyio.to_thread

from inmind.apps.mcp.project import ServerDefaults, SessionTarget
from inmind.core.paths import to_file_name
from inmind.errors import Closed, InvalidInput, NotFound
from inmind.memory.memory import Memory
from inmind.session.legacy_files import find_legacy
from inmind.session.session import Session

MAX_THREADS = 16

MAX_SESSIONS = 256
"""Sessions kept open; above it the least recently used one is dropped and opened again on demand."""

T = TypeVar("T")


class ServerStopping(Closed):
    """The server is shutting down. Nothing was done."""

    def __str__(self) -> str:
        return "the server is shutting down: nothing was done; call again when it is back"


class SessionPool:
    """The open sessions of one memory, and the number of running calls."""

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
        with self._lock:
            if (pooled := self._sessions.get(target)) is not None:
                self._sessions.move_to_end(target)
                return pooled
        opened = self._open(target, create=create)
        with self._lock:
            pooled = self._sessions.setdefault(target, opened)
            self._sessions.move_to_end(target)
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return pooled

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
            and bool(find_legacy(home, to_file_name(id)))
            and all(info.id != id for info in self.memory.sessions(resource=resource))
        )
