"""Entities of a session: sightings in messages and tool results, and questions about them.

Sightings go into the commit of the messages and results. Questions ("what does 'it' mean", "has this id been seen") are
answered from the window, then from entities that left it, then from other sessions of the same resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from inmind.core.encoding import digest_of, to_json
from inmind.core.events.base import Draft, EventPayload, Origin, Trust
from inmind.core.events.entities import EntitiesRestored, EntitiesSeen, EntityPinned, EntitySighting
from inmind.core.events.session import ToolObserved
from inmind.entities.entity import Entity, EntityRules
from inmind.entities.nouns import canonical_type
from inmind.entities.observe import Observation, draft_entity_events, draft_evictions
from inmind.entities.serialize import deserialize, sighting_from
from inmind.entities.window import Entities
from inmind.errors import InvalidInput, NotFound
from inmind.session.message_events import last_reply, observations_in, session_texts
from inmind.session.sibling_entities import SiblingEntities
from inmind.session.state import SessionState
from inmind.store.protocol import Key, Store
from inmind.store.stream import Decision, Stream

if TYPE_CHECKING:
    from inmind.entities.grounding import CallCheck, SessionTexts
    from inmind.entities.references.result import Resolution


class EntityTracker:
    """Tracks the entities of one session."""

    def __init__(
        self,
        stream: Stream[SessionState],
        store: Store,
        siblings: SiblingEntities,
        rules: EntityRules,
        own_tool: Callable[[str], bool],
    ) -> None:
        self._stream, self._store, self._siblings, self.rules = stream, store, siblings, rules
        self._own_tool = own_tool

    def observations(self, state: SessionState, drafts: Sequence[Draft]) -> list[Observation]:
        """Messages and tool results among these drafts."""
        messages = observations_in(
            state.conversation, drafts, stream=state.stream, version=state.seq, own=self._own_tool
        )
        observed = (
            Observation(draft.payload, draft.origin, f"{state.stream}#{state.seq + 1 + place}")
            for place, draft in enumerate(drafts)
            if isinstance(draft.payload, ToolObserved)
        )
        return [*messages, *observed]

    def sightings(
        self, state: SessionState, observations: Sequence[Observation], offset: int, now: datetime
    ) -> list[Draft]:
        """Entity events for observations. They will be appended after `offset` other events."""
        if not observations:
            return []
        version = state.seq + offset
        return draft_entity_events(
            state.entities, observations, self.rules, now=now, stream=state.stream, version=version
        )

    def track(self, entities: Sequence[Any], key: Key | None) -> None:
        """Add entities one by one, so that the last becomes the first of the window."""
        things = [sighting_from(entity, f"entities[{n}]") for n, entity in enumerate(entities)]
        pins = {(canonical_type(thing.type), thing.id): thing for thing in things if thing.pinned}

        def decide(state: SessionState) -> list[Draft]:
            pinned = {entity.key for entity in state.entities if entity.pinned}
            if pins and len(pinned | set(pins)) >= self.rules.window:
                raise InvalidInput(field="entities", value=len(pins), expected=self._pin_limit())
            seen = [_host_draft(EntitiesSeen((thing,))) for thing in things]
            return [*seen, *(_host_draft(EntityPinned(pin.type, pin.id)) for pin in pins.values())]

        # The same entities are the same request, however the host has written them.
        same = replace(key, request=digest_of([to_json(thing) for thing in things])) if key else None
        self._commit(decide, same)

    def import_entities(self, data: object, key: Key | None = None) -> None:
        """Add the entities of an export. They came from tools, so their trust stays DATA."""
        things = deserialize(data)
        self._commit(lambda state: self._import_drafts(things, state), key)

    def sightings_from_child(self, state: SessionState, things: Sequence[EntitySighting], now: datetime) -> list[Draft]:
        """Events that put the entities of a child in front of the window, and evict others."""
        return self._with_evictions(state, self._import_drafts(things, state), now)

    def pin(self, id: str, type: str | None, key: Key | None, *, pinned: bool) -> None:
        def decide(state: SessionState) -> list[Draft]:
            entity = state.entities.get(id, type)
            if entity is None or entity not in state.entities.window:
                raise NotFound(
                    what=type or "entity in the window", name=id, hint=_not_in_window_hint(id, entity, state.entities)
                )
            pinned_count = sum(e.pinned for e in state.entities)
            if pinned and not entity.pinned and pinned_count + 1 >= self.rules.window:
                raise InvalidInput(field="id", value=id, expected=self._pin_limit())
            return [_host_draft(EntityPinned(entity.type, entity.id, pinned))] if pinned != entity.pinned else []

        self._commit(decide, key)

    def resolve(self, text: str) -> Resolution:
        from inmind.entities.references.resolve import (
            resolve,  # its word lists take a fifth of the import time
        )

        state = self._stream.refresh()
        reply = last_reply(state.conversation)
        is_newest = reply is not None and all(_seq_of(entity.source) < reply.seq for entity in state.entities)
        previous_text = reply.text if reply is not None and is_newest else ""
        return resolve(
            text, state.entities, previous_text=previous_text, searched=self._known_elsewhere(state), rules=self.rules
        )

    def check_call(self, tool: str, arguments: Any) -> CallCheck:
        from inmind.entities.grounding import check_call

        state = self._stream.refresh()
        return check_call(
            tool,
            arguments,
            state.entities,
            texts=lambda: self._session_texts(state),
            other_sessions=lambda: self._siblings.entities_of(_resource_of(state), excluding=state.stream),
            rules=self.rules,
        )

    def _import_drafts(self, things: Sequence[EntitySighting], state: SessionState) -> list[Draft]:
        payload = EntitiesRestored(self._limit_pins(things, state))
        return [Draft(payload=payload, origin=Origin.OPERATOR, trust=Trust.DATA)] if things else []

    def _limit_pins(self, things: Sequence[EntitySighting], state: SessionState) -> tuple[EntitySighting, ...]:
        """The sightings with at most as many pins as the window has room for, most recent first."""
        restored = {(canonical_type(thing.type), thing.id) for thing in things}
        room = self.rules.window - 1 - sum(entity.pinned for entity in state.entities if entity.key not in restored)
        kept_pins = {(thing.type, thing.id) for thing in [t for t in things if t.pinned][: max(0, room)]}
        return tuple(replace(thing, pinned=(thing.type, thing.id) in kept_pins) for thing in things)

    def _pin_limit(self) -> str:
        return f"at most {self.rules.window - 1} pinned, so that the window can still move"

    def _commit(self, decide: Callable[[SessionState], list[Draft]], key: Key | None) -> None:
        """Commit the events of `decide` and the evictions that they cause."""

        def decision(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            return Decision(self._with_evictions(state, decide(state), now), None)

        self._stream.commit(decision, key=key)

    def _with_evictions(self, state: SessionState, drafts: list[Draft], now: datetime) -> list[Draft]:
        next_state = self._stream.preview(state, state.seq, drafts, now)
        return [*drafts, *(draft_evictions(next_state.entities, self.rules) if drafts else [])]

    def _known_elsewhere(self, state: SessionState) -> Iterator[Entity]:
        """Entities that have left the window, then those of other sessions of the resource."""
        yield from state.entities.evicted_entities
        for other in self._siblings.entities_of(_resource_of(state), excluding=state.stream):
            yield from chain(other.window, other.evicted_entities)

    def _session_texts(self, state: SessionState) -> SessionTexts:
        """All texts that the session received: the slow check, for an id without a sighting."""
        events = self._store.read(state.stream, kind=ToolObserved.kind)
        observed = (event.payload for event in events if isinstance(event.payload, ToolObserved))
        return session_texts(state.conversation, system=state.prompt.system, observed=observed)


def _host_draft(payload: EventPayload) -> Draft:
    return Draft(payload=payload, origin=Origin.OPERATOR)


def _not_in_window_hint(id: str, entity: Entity | None, entities: Entities) -> str:
    """The hint for an entity that is not in the window."""
    if entity is not None:
        return "it has left the window: add it with session.track"
    other = entities.get(id)
    return f"its type is {other.type}" if other else "session.entities lists them"


def _seq_of(event: str) -> int:
    return int(event.rpartition("#")[2])


def _resource_of(state: SessionState) -> str:
    return state.opened.resource if state.opened else ""
