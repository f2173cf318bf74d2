"""Opening of sessions: check options, write the first events, assemble the parts."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import SessionImported, SessionOpened, SessionTitled
from inmind.core.paths import ANONYMOUS, check_name, owner_of, working_directory
from inmind.core.tokens import Counter
from inmind.documents.document import OVERVIEW_PATH
from inmind.documents.overview.page import LANGUAGES, template
from inmind.errors import InvalidInput
from inmind.memory.context import MemoryContext
from inmind.memory.listing import belongs_to_folder
from inmind.prompt.budget import WindowLimits
from inmind.prompt.layers.base import Layer, check_layers
from inmind.prompt.layers.builtin import DocumentLayer, EntityLayer, NotesLayer, StateLayer
from inmind.session.context import SessionConfig, SessionContext
from inmind.session.legacy_files import LegacySession, read_messages
from inmind.session.state import SessionState
from inmind.store.stream import Decision, Stream

if TYPE_CHECKING:
    from inmind.session.entities import SiblingEntities
    from inmind.session.session import Session

V = TypeVar("V")

log = logging.getLogger("inmind")

DEFAULT_WINDOW = 128_000
DEFAULT_RESERVE = 4_096
"""Tokens of the context window that stay free for the model's reply."""
MIN_WINDOW = 1_000


def default_layers(*own: Layer) -> tuple[Layer, ...]:
    """The default layers of a session, with those in `own`.

    A layer in `own` replaces the default layer of the same name: `default_layers(ScratchpadLayer(schema=Task))` returns
    the defaults with a scratchpad that a schema checks.
    """
    from inmind.prompt.layers.scratchpad import ScratchpadLayer

    overview = DocumentLayer(name="overview", path=OVERVIEW_PATH)
    defaults = (StateLayer(), NotesLayer(), ScratchpadLayer(), overview, EntityLayer())
    names = {layer.name for layer in check_layers(own)}
    return check_layers([*(layer for layer in defaults if layer.name not in names), *own])


def checked_type(value: V, kind: type[V], field: str, expected: str) -> V:
    """The value, if it has this type: hosts are not all typed."""
    if not isinstance(value, kind):
        raise InvalidInput(field=field, value=value, expected=expected)
    return value


class SessionOpener:
    """Opens the sessions of one memory, and closes them with it."""

    def __init__(self, context: MemoryContext) -> None:
        self._context = context
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()

    def open(
        self, id: str, *, resource: str | None, cwd: str | Path | None, language: str, setup: SessionConfig
    ) -> Session:
        """The session with this id; one that does not exist is created."""
        name = check_name(id, "id")
        owner = check_name(ANONYMOUS if resource is None else resource, "resource")
        if language not in LANGUAGES:
            raise InvalidInput(field="language", value=language, expected=f"one of {', '.join(LANGUAGES)}")
        private = _with_private_scratchpad(setup.layers)
        first = SessionOpened(resource=owner, cwd=working_directory(cwd), language=language)
        stream = self._start_stream(name, first, ())
        opened = stream.state.opened or first
        if resource is not None and opened.resource != owner:
            raise InvalidInput(field="resource", value=resource, expected="the resource that owns this session")
        layers = private if opened.resource == ANONYMOUS else setup.layers
        generations = [opened, *(stream.state.opened for stream in self._ancestors(opened))]
        for generation in reversed(generations):  # the policies of all ancestors apply to the host's layers
            if generation is not None and generation.parent:
                layers = _inherit_layers(layers, generation)
        return self._assemble(name, stream, opened, replace(setup, layers=layers))

    def spawn(self, id: str, first: SessionOpened, inherited: Sequence[Draft], setup: SessionConfig) -> Session:
        """A child session with the setup of its parent. An existing one must have the same parent."""
        self._context.check_open()
        name = check_name(id, "id")
        stream = self._start_stream(name, first, inherited)
        opened = stream.state.opened or first
        if opened.parent != first.parent:
            raise InvalidInput(field="id", value=id, expected="a new id, or the id of a child of this session")
        return self._assemble(name, stream, opened, replace(setup, layers=_inherit_layers(setup.layers, opened)))

    def close_all(self) -> None:
        for session in list(self._sessions):
            session.close()

    def _start_stream(self, id: str, first: SessionOpened, inherited: Sequence[Draft]) -> Stream[SessionState]:
        def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
            return Decision([] if state.opened else self._first_events(id, first, inherited), None)

        stream = self._context.session_stream(id)
        stream.commit(decide)
        return stream

    def _first_events(self, id: str, first: SessionOpened, inherited: Sequence[Draft]) -> list[Draft]:
        legacy = None if first.parent else self._legacy_session(id, first.cwd)
        imported, messages = list[Draft](), list[Draft]()
        if legacy is not None:
            first = replace(first, cwd=legacy.cwd or first.cwd)
            started_at = legacy.created.isoformat() if legacy.created else ""
            payload = SessionImported(file=legacy.file, started_at=started_at, model=legacy.model)
            imported = [Draft(payload=payload, origin=Origin.FILE)]
            titles = [Draft(payload=SessionTitled(legacy.title), origin=Origin.FILE)] if legacy.title else []
            messages = [*titles, *read_messages(legacy)]
        page = DocumentWritten(path=OVERVIEW_PATH, text=template(first.language))
        written = {draft.payload.path for draft in inherited if isinstance(draft.payload, DocumentWritten)}
        overview = [] if OVERVIEW_PATH in written else [Draft(payload=page, origin=Origin.OPERATOR)]
        return [Draft(payload=first, origin=Origin.OPERATOR), *imported, *overview, *inherited, *messages]

    def _legacy_session(self, id: str, cwd: str) -> LegacySession | None:
        """The single-file session with this id; of several, the one of this folder.

        Session ids are unique in a home, so the other files cannot be opened under this id. A warning names them.
        """
        candidates = self._context.backend.legacy_sessions(id.__eq__)
        candidates.sort(key=lambda legacy: not belongs_to_folder(legacy, cwd))
        for duplicate in candidates[1:]:
            log.warning("%s was not imported: another session has this id; rename the file to open it", duplicate.file)
        return candidates[0] if candidates else None

    def _assemble(self, id: str, stream: Stream[SessionState], opened: SessionOpened, setup: SessionConfig) -> Session:
        from inmind.history.view import TokenMeter, ViewBuilder
        from inmind.prompt.layers.builtin import RETAINED_LAYER, RetainedLayer
        from inmind.session.scratchpad import open_scratchpad
        from inmind.session.session import Session  # loaded with the first session

        if RETAINED_LAYER not in {layer.name for layer in setup.layers}:
            setup = replace(setup, layers=check_layers([*setup.layers, RetainedLayer()]))
        context = self._context
        files, transcript, meta = context.backend.session_files(id, opened.cwd, stream)
        resource = context.resource_stream(opened.resource)
        ancestors = tuple(self._ancestors(opened))
        shared = context.resource_files(opened.resource, resource)
        owner = owner_of(stream.name, opened.resource)
        notes = (stream, files) if opened.resource == ANONYMOUS else (resource, shared)
        parts = SessionContext(
            id=id,
            store=context.store,
            stream=stream,
            resource=resource,
            files=files,
            resource_files=shared,
            transcript=transcript,
            meta=meta,
            siblings=self._siblings,
            scratchpad=open_scratchpad(setup.layers, (stream, *ancestors), resource, context.store),
            ancestors=ancestors,
            config=setup,
            session_stream=context.session_stream,
            notes=context.note_writer(*notes, owner),
            search=context.search,
            schedule_embedding=partial(context.search.embed_soon, [owner]),
            meter=TokenMeter(setup.counter),
            view=ViewBuilder(),
        )
        meta.read_title()
        session = Session(parts, self.spawn)
        with context.lock:
            self._sessions.add(session)
        return session

    @cached_property
    def _siblings(self) -> SiblingEntities:
        from inmind.session.entities import SiblingEntities  # loaded with the first session

        return SiblingEntities(self._context.store)

    def _ancestors(self, opened: SessionOpened) -> Iterator[Stream[SessionState]]:
        """Streams of the parent session, its parent, and so on."""
        above: SessionOpened | None = opened
        while above is not None and above.parent:
            stream = self._context.session_stream(above.parent)
            yield stream
            above = stream.state.opened


def _with_private_scratchpad(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Layers for a session without a resource, whose scratchpad belongs to the session."""
    from inmind.prompt.layers.scratchpad import find_scratchpad

    pad = find_scratchpad(layers)
    return tuple(pad.for_session() if pad is not None and layer is pad else layer for layer in layers)


def _inherit_layers(layers: tuple[Layer, ...], opened: SessionOpened) -> tuple[Layer, ...]:
    from inmind.session.children import child_layers  # loaded with the first child session

    return child_layers(layers, dict(opened.inheritance))


def checked_counter(counter: Counter) -> Counter:
    """Call the counter once: it has to return a token count."""
    if not callable(counter):
        raise InvalidInput(field="counter", value=counter, expected="a function from text to a number")
    count = cast(object, counter("two words"))
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidInput(field="counter", value=count, expected="a function that returns 0 or more")
    return counter


def window_limits(window: object, reserve: object, cache_seconds: object, *, exact: bool) -> WindowLimits:
    """Check the window and the reserve.

    The default reserve is DEFAULT_RESERVE, or half the window if that is less.
    """
    if isinstance(window, bool) or not isinstance(window, int) or window < MIN_WINDOW:
        raise InvalidInput(field="window", value=window, expected=f"tokens, {MIN_WINDOW} or more")
    if reserve is None:
        reserve = min(DEFAULT_RESERVE, window // 2)
    if isinstance(reserve, bool) or not isinstance(reserve, int) or not 0 <= reserve < window:
        raise InvalidInput(field="reserve", value=reserve, expected="0 or more tokens, and less than the window")
    return WindowLimits(
        window=window, reserve=reserve, exact=exact, cache_seconds=checked_seconds(cache_seconds, "cache_seconds")
    )


def checked_seconds(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise InvalidInput(field=field, value=value, expected="seconds, 0 or more")
    return float(value)
