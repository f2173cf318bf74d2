"""The parts that a memory, its resources and its sessions share.

These are the store, streams, search, dreams and upkeep. Each part is built on first use: a program that only writes
sessions never loads the search engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from inmind.core.background import BackgroundQueue
from inmind.core.fork import register_after_fork
from inmind.core.paths import RESOURCE_PREFIX, SESSION_PREFIX
from inmind.errors import Closed, InvalidInput
from inmind.session.context import Backend, DocumentFiles
from inmind.session.search import MemorySearch
from inmind.session.state import ResourceFold, ResourceState, SessionFold, SessionState
from inmind.store.protocol import Clock
from inmind.store.stream import Stream, key_for

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.dreams.models import Model, ModelReply
    from inmind.jobs.consolidation import Consolidator
    from inmind.jobs.dream_history import Dream, DreamHistory
    from inmind.jobs.rate_limits import ModelOptions, RateLimits
    from inmind.jobs.upkeep import UpkeepScheduler
    from inmind.search.embedders.base import Embedder
    from inmind.search.engine import SearchEngine
    from inmind.search.query import Hit
    from inmind.session.notes import NoteWriter


class MemoryContext:
    """The parts of one open memory."""

    def __init__(
        self,
        backend: Backend,
        *,
        clock: Clock | None = None,
        embedder: str | Embedder | None = "auto",
        model: Model | Callable[[str], str | ModelReply] | None = None,
        settings: Settings | None = None,
        overrides: object = None,
    ) -> None:
        """`overrides`: settings that take precedence over config.toml each time it is read again."""
        from inmind.core.settings import Settings  # loaded when a memory is opened, not on import

        self.backend, self.store = backend, backend.store
        self.settings = settings or Settings()
        self._overrides = self.settings if overrides is None else overrides
        self._embedder, self._model = embedder, model
        self.clock: Clock = _checked_clock(clock) if clock else backend.clock
        self.background = BackgroundQueue()
        self.lock = threading.RLock()
        self.closed = False
        self.search = MemorySearch(self._create_engine, self.background, self.clock, embeds=embedder is not None)
        self.search.limit_sources(self.settings.search.sources)
        self._upkeep: UpkeepScheduler | None = None
        register_after_fork(self)

    def after_fork(self) -> None:
        self.lock = threading.RLock()

    def check_open(self) -> None:
        if self.closed:
            raise Closed

    def stop_background(self) -> None:
        """End upkeep and the background tasks. They may write, so this comes before `close_store`."""
        if self._upkeep is not None:
            self._upkeep.stop()
        self.background.close()
        self.search.store_searches()

    def close_store(self) -> None:
        self.search.close()
        self.store.close()

    # -- streams -------------------------------------------------------------------------------------------

    def session_stream(self, id: str) -> Stream[SessionState]:
        return Stream(self.store, SESSION_PREFIX + id, SessionFold(SESSION_PREFIX + id), self.clock)

    def resource_stream(self, resource: str) -> Stream[ResourceState]:
        name = f"{RESOURCE_PREFIX}{resource}"
        return Stream(self.store, name, ResourceFold(name), self.clock)

    def stream_named(self, stream: str) -> Stream[SessionState] | Stream[ResourceState]:
        kind, _, name = stream.partition("/")
        return self.session_stream(name) if f"{kind}/" == SESSION_PREFIX else self.resource_stream(name)

    def resource_files(self, resource: str, stream: Stream[ResourceState]) -> DocumentFiles:
        return self.backend.resource_files(resource, stream)

    def note_writer(self, stream: Stream[Any], files: DocumentFiles, owner: str) -> NoteWriter:
        from inmind.session.notes import NoteWriter

        schedule_embedding = partial(self.search.embed_soon, [owner], start=True)
        return NoteWriter(stream, files, submit=self.background.submit, schedule_embedding=schedule_embedding)

    # -- search --------------------------------------------------------------------------------------------

    def _create_engine(self) -> SearchEngine:
        from inmind.search.embedders import create_embedder
        from inmind.search.engine import SearchEngine
        from inmind.search.extract import message_reader
        from inmind.session.tools.registry import is_memory_tool

        self.check_open()
        read = message_reader(is_memory_tool)
        return SearchEngine(self.backend.index(read), self.store, read, self.clock, create_embedder(self._embedder))

    # -- background jobs -----------------------------------------------------------------------------------

    def consolidator(self, resource: str) -> Consolidator:
        from inmind.jobs.consolidation import Consolidator

        self.search.store_searches()
        return Consolidator(self.search.engine, self.store, self.resource_stream(resource), resource, self.clock)

    def upkeep(self) -> UpkeepScheduler:
        from inmind.jobs.upkeep import UpkeepScheduler

        self.check_open()
        with self.lock:
            if self._upkeep is None:
                self._upkeep = UpkeepScheduler(
                    store=self.store,
                    search=self.search,
                    resource_stream=self.resource_stream,
                    consolidator=self.consolidator,
                    dream=self.dream,
                    rate_limits=self._rate_limits(),
                    settings=self.settings,
                    read_settings=self._read_settings,
                    clock=self.clock,
                )
            return self._upkeep

    def dream(
        self,
        resource: str,
        trigger: str,
        *,
        ask_model: bool = True,
        watch: Callable[[str, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        key: str | None = None,
    ) -> Dream:
        """Run one dream.

        `ask_model`: use the model, if there is one and its daily budget is not used up.
        """
        from inmind.jobs.dreaming import Dreamer

        self.check_open()
        self.search.store_searches()
        stream = self.resource_stream(resource)
        dreamer = Dreamer(
            resource=resource,
            stream=stream,
            files=self.resource_files(resource, stream),
            save_backup=partial(self.backend.back_up_state, resource),
            store=self.store,
            search=self.search.engine,
            clock=self.clock,
            sources=self.search.sources,
            model_options=self._dream_model(stream.state) if ask_model else None,
            on_progress=watch,
            cancelled=cancelled,
        )
        number = dreamer.dream(trigger, key=key_for(key, "dream", resource))
        return self.dream_history(resource, stream).get(number)

    def dream_history(self, resource: str, stream: Stream[ResourceState] | None = None) -> DreamHistory:
        from inmind.jobs.dream_history import DreamHistory

        return DreamHistory(resource, lambda: stream or self.resource_stream(resource), self.store, self.clock)

    def _read_settings(self) -> Settings:
        """Read config.toml again."""
        from inmind.core.settings import parse_settings

        self.settings = parse_settings(self.backend.read_config().text, self._overrides)
        self.search.limit_sources(self.settings.search.sources)
        return self.settings

    def _dream_model(self, owner: ResourceState) -> ModelOptions | None:
        """The model for dreams: the one passed to `open`, or the one in the settings.

        None if there is none, or its daily budget is used up.
        """
        from inmind.dreams.models import as_model, model_from_settings
        from inmind.jobs.rate_limits import ModelOptions

        settings = self.settings.model
        if settings.daily_tokens and owner.dreams.tokens_on(self.clock()) >= settings.daily_tokens:
            return None
        model = as_model(self._model) if self._model is not None else model_from_settings(settings)
        if model is None:
            return None
        prices = (settings.input_price / 1e6, settings.output_price / 1e6)
        return ModelOptions(model=model, limits=self._rate_limits(), timeout_seconds=settings.seconds, prices=prices)

    def _rate_limits(self) -> RateLimits:
        from inmind.jobs.rate_limits import RateLimits

        return RateLimits(self.store, self.settings.limits, self.clock)


class SearchInput:
    """Searches from outside of a session: of a memory, or of one resource."""

    def __init__(self, context: MemoryContext, resources: Sequence[str] | None) -> None:
        """`resources`: those to search; None for all."""
        self._context, self._searched_resources = context, resources

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: str | Iterable[str] | None = None,
        sources: str | Iterable[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        session: str | None = None,
        as_of: date | str | None = None,
    ) -> list[Hit]:
        """Search messages, notes and pages, the best hits first.

        `Memory.search` searches all resources and sessions, `Resource.search` those of the resource. `as_of` searches
        what was known on that day. Unlike `Session.search` this records nothing: a search from outside does not make
        its hits more important.
        """
        from inmind.search.query import validate_query

        checked = validate_query(query, limit, kinds, sources, since, until, session, as_of)
        return self._context.search.run(checked, self._searched_resources)


def _checked_clock(clock: Clock) -> Clock:
    """Call the clock once: it has to return a datetime with a time zone."""
    now = cast(object, clock()) if callable(clock) else None
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidInput(field="clock", value=now, expected="a function that returns a datetime with a time zone")
    return clock
