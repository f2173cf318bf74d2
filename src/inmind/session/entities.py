"""Entities of a session: what a host adds or pins, and questions about them.

Questions ("what does 'it' mean", "has this id been seen") are answered from the window, then from entities that left
it, then from other sessions of the same resource.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from inmind.core.encoding import digest_of, to_json
from inmind.core.events.base import Draft, EventId, EventPayload, Origin, Trust
from inmind.core.events.session import (
    EntitiesEvicted,
    EntitiesRestored,
    EntitiesSeen,
    EntityPinned,
    EntitySighting,
    ToolObserved,
)
from inmind.core.fork import register_after_fork
from inmind.core.messages.model import Opaque, Part, Text
from inmind.core.paths import ANONYMOUS, SESSION_PREFIX
from inmind.core.tool_outcome import is_failure
from inmind.entities.entity import Entity, EntityRules
from inmind.entities.nouns import canonical_type
from inmind.entities.observe import draft_evictions
from inmind.entities.serialize import deserialize, sighting_from
from inmind.entities.window import Entities
from inmind.errors import InvalidInput, NotFound
from inmind.history.history import Conversation
from inmind.history.turns import ReadMessage
from inmind.session.context import SessionContext
from inmind.session.derive import MAX_LOOKBACK, text_of_result
from inmind.session.state import SessionState
from inmind.store.protocol import Key, Store
from inmind.store.stream import Decision

if TYPE_CHECKING:
    from inmind.entities.grounding import CallCheck, SessionTexts
    from inmind.entities.references.result import Resolution

MAX_CACHED_RESOURCES = 100
"""The most recently used resources are kept."""

_BATCH_SIZE = 2_000


def track(context: SessionContext, entities: Sequence[Any], key: Key | None) -> None:
    """Add entities one by one, so that the last becomes the first of the window."""
    rules = context.config.entities
    things = [sighting_from(entity, f"entities[{n}]") for n, entity in enumerate(entities)]
    pins = {(canonical_type(thing.type), thing.id): thing for thing in things if thing.pinned}

    def decide(state: SessionState) -> list[Draft]:
        pinned = {entity.key for entity in state.entities if entity.pinned}
        if pins and len(pinned | set(pins)) >= rules.window:
            raise InvalidInput(field="entities", value=len(pins), expected=_pin_limit(rules))
        seen = [_host_draft(EntitiesSeen((thing,))) for thing in things]
        return [*seen, *(_host_draft(EntityPinned(pin.type, pin.id)) for pin in pins.values())]

    # The same entities are the same request, however the host has written them.
    same = replace(key, request=digest_of([to_json(thing) for thing in things])) if key else None
    _commit(context, decide, same)


def import_entities(context: SessionContext, data: object, key: Key | None) -> None:
    """Add the entities of an export. They came from tools, so their trust stays DATA."""
    things = deserialize(data)
    _commit(context, lambda state: _restored(things, state, context.config.entities), key)


def restore_from_child(
    context: SessionContext, state: SessionState, things: Sequence[EntitySighting], now: datetime
) -> list[Draft]:
    """Events that put the entities of a child in front of the window, and evict others."""
    return _with_evictions(context, state, _restored(things, state, context.config.entities), now)


def set_pinned(context: SessionContext, id: str, type: str | None, key: Key | None, *, pinned: bool) -> None:
    """Pin an entity in the window, or unpin it."""
    rules = context.config.entities

    def decide(state: SessionState) -> list[Draft]:
        entity = state.entities.get(id, type)
        if entity is None or entity not in state.entities.window:
            hint = _not_in_window_hint(id, entity, state.entities)
            raise NotFound(what=type or "entity in the window", name=id, hint=hint)
        pinned_count = sum(e.pinned for e in state.entities)
        if pinned and not entity.pinned and pinned_count + 1 >= rules.window:
            raise InvalidInput(field="id", value=id, expected=_pin_limit(rules))
        return [_host_draft(EntityPinned(entity.type, entity.id, pinned))] if pinned != entity.pinned else []

    _commit(context, decide, key)


def resolve(context: SessionContext, text: str) -> Resolution:
    """Find the entities that a user's words refer to."""
    from inmind.entities.references import resolve as references  # its word lists take a fifth of the import time

    state = context.stream.refresh()
    reply, seq = _last_reply(state.conversation, context.view.read_message)
    is_newest = all(EventId.of(entity.source).seq < seq for entity in state.entities)
    return references.resolve(
        text,
        state.entities,
        previous_text=reply if is_newest else "",
        searched=_known_elsewhere(context, state),
        rules=context.config.entities,
    )


def check_call(context: SessionContext, tool: str, arguments: Any) -> CallCheck:
    """Report ids in a call's arguments that this session and its resource have never seen."""
    from inmind.entities import grounding

    state = context.stream.refresh()

    def texts() -> grounding.SessionTexts:
        """All texts that the session received: the slow check, for an id without a sighting."""
        events = context.store.read(state.stream, kind=ToolObserved.kind)
        observed = (event.payload for event in events if isinstance(event.payload, ToolObserved))
        return _session_texts(
            state.conversation, context.view.read_message, system=state.prompt.system, observed=observed
        )

    return grounding.check_call(
        tool,
        arguments,
        state.entities,
        texts=texts,
        other_sessions=lambda: context.siblings.entities_of(context.resource_name, excluding=state.stream),
        rules=context.config.entities,
    )


def _restored(things: Sequence[EntitySighting], state: SessionState, rules: EntityRules) -> list[Draft]:
    """The event that restores entities.

    It has at most as many pins as the window has room for, most recent first.
    """
    restored = {(canonical_type(thing.type), thing.id) for thing in things}
    room = rules.window - 1 - sum(entity.pinned for entity in state.entities if entity.key not in restored)
    kept_pins = {(thing.type, thing.id) for thing in [t for t in things if t.pinned][: max(0, room)]}
    payload = EntitiesRestored(tuple(replace(one, pinned=(one.type, one.id) in kept_pins) for one in things))
    return [Draft(payload=payload, origin=Origin.OPERATOR, trust=Trust.DATA)] if things else []


def _commit(context: SessionContext, decide: Callable[[SessionState], list[Draft]], key: Key | None) -> None:
    """Commit the events of `decide` and the evictions that they cause."""

    def decision(state: SessionState, now: datetime) -> Decision[SessionState, None]:
        return Decision(_with_evictions(context, state, decide(state), now), None)

    context.stream.commit(decision, key=key)


def _with_evictions(context: SessionContext, state: SessionState, drafts: list[Draft], now: datetime) -> list[Draft]:
    next_state = context.stream.preview(state, state.seq, drafts, now)
    return [*drafts, *(draft_evictions(next_state.entities, context.config.entities) if drafts else [])]


def _known_elsewhere(context: SessionContext, state: SessionState) -> Iterator[Entity]:
    """Entities that have left the window, then those of other sessions of the resource."""
    yield from state.entities.evicted_entities
    for other in context.siblings.entities_of(context.resource_name, excluding=state.stream):
        yield from chain(other.window, other.evicted_entities)


def _host_draft(payload: EventPayload) -> Draft:
    return Draft(payload=payload, origin=Origin.OPERATOR)


def _pin_limit(rules: EntityRules) -> str:
    return f"at most {rules.window - 1} pinned, so that the window can still move"


def _not_in_window_hint(id: str, entity: Entity | None, entities: Entities) -> str:
    """The hint for an entity that is not in the window."""
    if entity is not None:
        return "it has left the window: add it with session.track"
    other = entities.get(id)
    return f"its type is {other.type}" if other else "session.entities lists them"


def _last_reply(line: Conversation, read: ReadMessage) -> tuple[str, int]:
    """The last text of the model and its event number; an empty text if there is none."""
    for entry in reversed(line[max(0, len(line) - MAX_LOOKBACK) :]):
        message = read(entry)
        if message.role == "assistant" and message.text:
            return message.text, entry.seq
    return "", 0


def _session_texts(
    line: Conversation, read: ReadMessage, *, system: object, observed: Iterable[ToolObserved]
) -> SessionTexts:
    """All texts of a session that the model did not write.

    Results of failed calls are left out: they repeat ids that do not exist.
    """
    from inmind.entities.grounding import SessionTexts  # imported late: it is rarely needed

    people: list[str] = []
    operator = [to_json(system)] if system else []
    tools = [to_json(outcome.result) for outcome in observed if not (outcome.error or is_failure(outcome.result))]
    for entry in line:
        message = read(entry)
        for result in message.results:
            if not (result.error or is_failure(text_of_result(result))):
                tools += _texts(result.parts)
        if message.role != "assistant":
            texts = people if message.role == "user" else tools if message.role == "tool" else operator
            texts += _texts(message.parts)
    return SessionTexts(operator="\n".join(operator), user="\n".join(people), tools="\n".join(tools))


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Opaque):
            yield to_json(part.body)


class SiblingEntities:
    """Entities of all sessions in a store, by resource.

    They are read from the store when they are needed; later calls read only new events of the resource. This is a cache
    and can be discarded at any time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[int, dict[str, Entities]]] = {}
        """By resource: a position of the journal, and the entities of each session up to it."""
        register_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def entities_of(self, resource: str, *, excluding: str) -> list[Entities]:
        """The entities of each other session of the resource.

        They are immutable values, so nothing is copied.
        """
        if resource == ANONYMOUS:
            return []
        with self._lock:
            position, seen = self._load_new(resource, *self._cache.pop(resource, (0, {})))
            self._cache[resource] = position, seen
            while len(self._cache) > MAX_CACHED_RESOURCES:
                del self._cache[next(iter(self._cache))]
        return [entities for stream, entities in sorted(seen.items()) if stream != excluding]

    def _load_new(self, resource: str, position: int, seen: Mapping[str, Entities]) -> tuple[int, dict[str, Entities]]:
        """Add the events after a position of the journal."""
        loaded = dict(seen)
        while True:
            batch = self._store.events_since(position, kinds=_KINDS, limit=_BATCH_SIZE, owner=resource)
            for event_position, event in batch:
                position = event_position
                if event is not None and event.stream.startswith(SESSION_PREFIX):
                    loaded[event.stream] = loaded.get(event.stream, Entities()).apply(event)
            if len(batch) < _BATCH_SIZE:
                return position, loaded


# Undo is not included: an id that was seen stays known.
_KINDS = tuple(kind.kind for kind in (EntitiesSeen, EntitiesEvicted, EntitiesRestored))
