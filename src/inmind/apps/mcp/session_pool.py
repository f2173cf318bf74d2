"""What is asked of a memory by many at once: off the event loop, a few at a time, until we leave.

The library waits for the disk, and an event loop must not. Each question runs in a worker thread, so that a client
which reads is not held up by another's commit; the sessions are opened once and shared, and their streams see to it
that threads do not get in each other's way.
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

from inmind.apps.mcp.project import Place, Usual
from inmind.core.paths import as_file
from inmind.errors import Closed, InvalidInput, NotFound
from inmind.memory.memory import Memory
from inmind.session.legacy_files import find_legacy
from inmind.session.session import Session

THREADS = 16

MOST_SESSIONS = 256
"""Kept open; of more, those that were not asked for the longest are opened again when they are."""

T = TypeVar("T")


class Leaving(Closed):
    """The server has been told to leave. Nothing was done."""

    def __str__(self) -> str:
        return "the server is leaving: nothing was done; call again when it is back"


class Keeper:
    """One memory, and who is asking it right now."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._threads = anyio.CapacityLimiter(THREADS)
        self._leaving = threading.Event()
        self._asking = 0
        self._lock = threading.Lock()
        self._sessions: OrderedDict[Place, Session] = OrderedDict()

    async def ask(self, question: Callable[[], T]) -> T:
        """What a question comes to. One that is still waiting for a thread when we leave is not asked any more."""

        def asked() -> T:
            if self._leaving.is_set():
                raise Leaving
            return question()

        self._asking += 1
        try:
            return await anyio.to_thread.run_sync(asked, limiter=self._threads)
        finally:
            self._asking -= 1

    async def leave(self, seconds: float) -> None:
        """Take no more questions, and let those be answered that are being asked, for so long at most."""
        self._leaving.set()
        with anyio.move_on_after(seconds):
            while self._asking:
                await anyio.sleep(0.01)

    def settled(self, usual: Usual) -> Usual:
        """What the server was told, with the resource of the session that it was told: whose that is cannot be chosen
        again."""
        if usual.everybody or not usual.session or usual.session not in self.memory:
            return usual
        told = self.memory.session(usual.session, resource=usual.resource or None)
        return replace(usual, resource=told.resource)

    def session(self, place: Place, *, begin: bool) -> Session:
        """The session of a place. Where it may not begin, one that nobody knows is a slip of the pen."""
        with self._lock:
            if (kept := self._sessions.get(place)) is not None:
                self._sessions.move_to_end(place)
                return kept
        opened = self._opened(place, begin=begin)
        with self._lock:
            kept = self._sessions.setdefault(place, opened)
            self._sessions.move_to_end(place)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return kept

    def _opened(self, place: Place, *, begin: bool) -> Session:
        if (there := self._found(place)) is not None:
            return there
        if not begin:
            raise NotFound(what="session", name=place.session, hint="inmind://sessions lists those there are")
        taken = place.session in self.memory
        if taken and (begun := self._found(place)) is not None:
            return begun  # by another call, in this very moment
        id = place.within if place.own or taken else place.session
        return self.memory.session(id, resource=place.resource, cwd=place.folder or self.memory.home or "/")

    def _found(self, place: Place) -> Session | None:
        """The one that is there, if it is whose it has to be. Of another's it is not even told that it is there."""
        if place.anybody:
            return self.memory.session(place.session) if place.session in self.memory else None
        for id in (place.session, place.within):
            if id in self.memory and not (place.own and self._is_unclaimed(id, place.resource)):
                with suppress(InvalidInput):
                    return self.memory.session(id, resource=place.resource)
        return None

    def _is_unclaimed(self, id: str, resource: str) -> bool:
        """Is it still one of the older single files, which would be whoever's opens it first?"""
        home = self.memory.home
        return (
            home is not None
            and bool(find_legacy(home, as_file(id)))
            and all(info.id != id for info in self.memory.sessions(resource=resource))
        )
