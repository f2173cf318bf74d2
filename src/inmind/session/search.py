"""Search in a session, by the host and by the model, and the record of what was found."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from inmind.core.background import BackgroundQueue
from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.fork import register_after_fork
from inmind.core.paths import owner_of
from inmind.core.settings import SOURCES
from inmind.errors import InmindError, KeyReused, ModelFailed
from inmind.store.protocol import Clock, Key
from inmind.store.stream import Stream, key_for

if TYPE_CHECKING:
    from inmind.search.engine import SearchEngine
    from inmind.search.query import Hit, Query
    from inmind.session.context import SessionContext

log = logging.getLogger("inmind")

EMBEDDING_SLICE_SECONDS = 1.0
"""Embedding in the background runs in slices of this length. Closing a memory waits for at most one of them."""

STORING_SECONDS = 1.0
"""How long a caller waits for searches that another thread stores.

That thread may itself wait for this one, if a layer asks for a crystal during a commit."""

MAX_PENDING_SEARCHES = 1_000
"""Searches of one session that wait to be stored. If the store fails for long, the oldest are dropped."""


class MemorySearch:
    """Search in one memory, shared by its sessions.

    A search stores nothing while its caller waits. What sessions found is stored soon after, many searches in one
    commit, and so are the vectors of new crystals. A process that is killed loses the record of its last searches.
    """

    def __init__(
        self, create_engine: Callable[[], SearchEngine], background: BackgroundQueue, clock: Clock, *, embeds: bool
    ) -> None:
        """`embeds`: new crystals are embedded even if nothing was searched so far."""
        self._create_engine, self._background, self._clock = create_engine, background, clock
        self._embeds = embeds
        self.sources: tuple[str, ...] = ()
        """The sources that searches are limited to by the settings; empty for all."""
        self._engine: SearchEngine | None = None
        self._to_embed: set[str] = set()
        """Owners with new crystals that may have no vectors yet."""
        self.after_fork()
        register_after_fork(self)

    def after_fork(self) -> None:
        """Drop what the parent process will store."""
        self._lock, self._storing = threading.RLock(), threading.RLock()
        self._pending: dict[tuple[str, str], _PendingSearches] = {}
        """Searches to store, by stream and key."""

    def limit_sources(self, sources: tuple[str, ...]) -> None:
        """Limit searches to some sources.

        For all of them there is no filter, which is faster: no hit has to be compared with it.
        """
        self.sources = () if sources == SOURCES else sources

    @property
    def engine(self) -> SearchEngine:
        with self._lock:
            if self._engine is None:
                self._engine = self._create_engine()
            return self._engine

    def run(self, query: Query, resources: Sequence[str] | None) -> list[Hit]:
        """Return the best hits in some resources or in all.

        Vectors that are still missing follow in the background.
        """
        result = self.engine.search(query if query.sources else replace(query, sources=self.sources), resources)
        if result.stale_owners:
            self.embed_soon(result.stale_owners)
        return result.hits

    def record(self, stream: Stream[Any], searched: SearchRecorded, key: Key | None) -> None:
        """Store a search soon, and once for each key.

        Raises KeyReused if the key stands for another search.
        """
        at = self._clock()
        with self._lock:
            place = stream.name, key.value if key else ""
            pending = self._pending.setdefault(place, _PendingSearches(stream, key, []))
            if pending.key != key:
                raise KeyReused(key=key.caller_key if key else "")
            if key is None or not pending.searches:
                pending.searches.append((searched, at))
        self._background.submit("searches", self.store_searches)

    def store_searches(self) -> None:
        """Store what was searched so far, all searches of a session in one commit.

        It has the time of the last one. If the store fails they are kept for the next time.
        """
        if not self._storing.acquire(timeout=STORING_SECONDS):
            return
        try:
            for place in list(self._pending):
                self._store_pending(place)
        finally:
            self._storing.release()

    def _store_pending(self, place: tuple[str, str]) -> None:
        with self._lock:
            pending = self._pending.pop(place)
        drafts = [Draft(payload=searched, origin=Origin.OPERATOR) for searched, _ in pending.searches]
        try:
            pending.stream.append(*drafts, key=pending.key, at=pending.searches[-1][1])
        except KeyReused as error:  # another process used the key in the meantime
            log.warning("a search in %s is not recorded: %s", pending.stream.name, error)
        except InmindError as error:
            log.warning("searches in %s will be recorded later: %s", pending.stream.name, error)
            with self._lock:
                later = self._pending.setdefault(place, pending)
                if later is not pending and pending.key is None:
                    later.searches[:0] = pending.searches
                del later.searches[:-MAX_PENDING_SEARCHES]

    def embed_soon(self, owners: Iterable[str], *, start: bool = False) -> None:
        """Embed new crystals of some owners in the background.

        With `start` this begins even if nothing was searched so far.
        """
        if self._engine.crystal_embedder if self._engine else start and self._embeds:
            self._to_embed.update(owners)
            self._background.submit("vectors", partial(self._embed, seconds=EMBEDDING_SLICE_SECONDS))

    def flush(self) -> None:
        """Wait until background tasks, records of searches and embeddings are done."""
        self._background.flush()
        self.store_searches()
        if self._engine is not None:
            try:
                self._embed()
            except ModelFailed as error:
                log.warning("embedding of new crystals failed: %s", error)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def _embed(self, seconds: float | None = None) -> None:
        """Embed until the time is over. The rest follows in another slice, or with the next change."""
        owners, self._to_embed = self._to_embed, set()
        finished = False
        try:
            finished = self.engine.embed(sorted(owners), seconds=seconds)
        finally:
            if not finished:
                self._to_embed |= owners
        if not finished:
            self.embed_soon(())


class _PendingSearches(NamedTuple):
    stream: Stream[Any]
    key: Key | None
    searches: list[tuple[SearchRecorded, datetime]]


def search_session(context: SessionContext, text: str, filters: Mapping[str, Any], key: str | None) -> list[Hit]:
    """Search the session's resource, and record the search in the background.

    So hits last longer, and misses become gaps.
    """
    from inmind.search.query import validate_query

    query = validate_query(text, **filters)
    checked_key, stream = key_for(key, "search", text, filters), context.stream
    repeated = checked_key is not None and context.store.receipt(stream.name, checked_key) is not None
    hits = _search(context, query)
    if not repeated:
        searched = SearchRecorded(query.text, tuple(hit.crystal.id for hit in hits), query.limit)
        context.search.record(stream, searched, checked_key)
    return hits


def search_by_model(context: SessionContext, query: Query) -> list[Hit]:
    """Search without the current user message, which would always rank first."""
    newest_first = reversed(context.stream.state.conversation[:])
    messages = ((entry, context.view.read_message(entry)) for entry in newest_first)
    current = next((entry.id for entry, message in messages if message.role == "user" and message.text), "")
    return _search(context, replace(query, excluded_events=frozenset({current})))


def _search(context: SessionContext, query: Query) -> list[Hit]:
    """Search the session's resource; an anonymous session searches only itself."""
    return context.search.run(query, [owner_of(context.stream.name, context.resource_name)])
