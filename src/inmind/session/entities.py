"""What a session pays attention to: the window of things, kept current and asked about.

The session hands over what happens; here it becomes sightings in the same commit. Questions about things ("what
is it", "was this id ever seen") are answered from the state, then from what left the window, then from what other
sessions of the same resource have seen.
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
from inmind.entities.config import EntityRules
from inmind.entities.entity import Entity
from inmind.entities.nouns import canonical_type
from inmind.entities.observe import Observation, draft_entity_events, draft_evictions
from inmind.entities.serialize import deserialize, sighting_from
from inmind.entities.window import Entities
from inmind.errors import InvalidInput, NotFound
from inmind.session.message_events import last_reply, observations_in, session_texts
from inmind.session.sibling_entities import SiblingEntities
from inmind.session.state import SessionState
from inmind.store.protocol import AppendResult, Key, Store
from inmind.store.stream import Decision, Stream

# The resolver's words of two languages, and the guard, are a good part of what importing everything takes: they are
# imported when somebody asks.
if TYPE_CHECKING:
    from inmind.entities.grounding import CallCheck, SessionTexts
    from inmind.entities.references.result import Resolution


class EntityTracker:
    """The entities of one session."""

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
        """What the messages among these drafts tell, and what tools are said to have done."""
        messages = observations_in(
            state.conversation, drafts, stream=state.stream, version=state.seq, own=self._own_tool
        )
        observed = (
            Observation(draft.payload, draft.origin, f"{state.stream}#{state.seq + 1 + place}")
            for place, draft in enumerate(drafts)
            if isinstance(draft.payload, ToolObserved)
        )
        return [*messages, *observed]

    def sightings(self, state: SessionState, told: Sequence[Observation], behind: int, now: datetime) -> list[Draft]:
        """What that brings to mind; it will be appended behind so many events."""
        return self._sighted(state, told, behind, now) if told else []

    def track(self, entities: Sequence[Any], key: Key | None) -> AppendResult:
        """Bring things to the front one by one, so that the last of them comes to stand first."""
        things = [sighting_from(entity, f"entities[{n}]") for n, entity in enumerate(entities)]
        pins = {(canonical_type(thing.type), thing.id): thing for thing in things if thing.pinned}

        def decide(state: SessionState) -> list[Draft]:
            held = {entity.key for entity in state.entities if entity.pinned}
            if pins and len(held | set(pins)) >= self.rules.window:
                raise InvalidInput(field="entities", value=len(pins), expected=self._pin_limit())
            seen = [_host_draft(EntitiesSeen((thing,))) for thing in things]
            return [*seen, *(_host_draft(EntityPinned(pin.type, pin.id)) for pin in pins.values())]

        # The same things are the same request, in whichever words a host has put them.
        same = replace(key, request=digest_of([to_json(thing) for thing in things])) if key else None
        return self._commit(decide, same)

    def import_entities(self, data: object, key: Key | None = None) -> AppendResult:
        """What a checkpoint holds was once shown by tools: that a host hands it in makes it no more than data."""
        things = deserialize(data)
        return self._commit(lambda state: self._import_drafts(things, state), key)

    def sightings_from_child(self, state: SessionState, things: Sequence[EntitySighting], now: datetime) -> list[Draft]:
        """What another session has seen, in front of what is in mind here, and what leaves for it."""
        return self._with_evictions(state, self._import_drafts(things, state), now)

    def pin(self, id: str, type: str | None, key: Key | None, *, pinned: bool) -> AppendResult:
        def decide(state: SessionState) -> list[Draft]:
            entity = state.entities.get(id, type)
            if entity is None or entity not in state.entities.window:
                raise NotFound(
                    what=type or "entity in the window", name=id, hint=_not_in_window_hint(id, entity, state.entities)
                )
            held = sum(e.pinned for e in state.entities)
            if pinned and not entity.pinned and held + 1 >= self.rules.window:
                raise InvalidInput(field="id", value=id, expected=self._pin_limit())
            return [_host_draft(EntityPinned(entity.type, entity.id, pinned))] if pinned != entity.pinned else []

        return self._commit(decide, key)

    def resolve(self, text: str) -> Resolution:
        from inmind.entities.references.resolve import (
            resolve,  # its words of two languages are a fifth of what importing us takes
        )

        state = self._stream.refresh()
        said = last_reply(state.conversation)
        fresh = said is not None and all(_seq_of(entity.source) < said.seq for entity in state.entities)
        after = said.text if said is not None and fresh else ""
        return resolve(
            text, state.entities, previous_text=after, searched=self._known_elsewhere(state), rules=self.rules
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
        what = EntitiesRestored(self._limit_pins(things, state))
        return [Draft(payload=what, origin=Origin.OPERATOR, trust=Trust.DATA)] if things else []

    def _limit_pins(self, things: Sequence[EntitySighting], state: SessionState) -> tuple[EntitySighting, ...]:
        """Those of a checkpoint with as many pins as the window has room for, the most recent first."""
        restored = {(canonical_type(thing.type), thing.id) for thing in things}
        room = self.rules.window - 1 - sum(entity.pinned for entity in state.entities if entity.key not in restored)
        kept = {(thing.type, thing.id) for thing in [t for t in things if t.pinned][: max(0, room)]}
        return tuple(replace(thing, pinned=(thing.type, thing.id) in kept) for thing in things)

    def _pin_limit(self) -> str:
        return f"at most {self.rules.window - 1} pinned, so that the window can still move"

    def _sighted(self, state: SessionState, told: Sequence[Observation], behind: int, now: datetime) -> list[Draft]:
        version = state.seq + behind
        return draft_entity_events(state.entities, told, self.rules, now=now, stream=state.stream, version=version)

    def _commit(self, decide: Callable[[SessionState], list[Draft]], key: Key | None) -> AppendResult:
        """What the host itself says of things, and what leaves for it."""

        def decision(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            return Decision(self._with_evictions(state, decide(state), now), None)

        return self._stream.commit(decision, key=key).appended

    def _with_evictions(self, state: SessionState, drafts: list[Draft], now: datetime) -> list[Draft]:
        foreseen = self._stream.preview(state, state.seq, drafts, now)
        return [*drafts, *(draft_evictions(foreseen.entities, self.rules) if drafts else [])]

    def _known_elsewhere(self, state: SessionState) -> Iterator[Entity]:
        yield from state.entities.evicted_entities
        for other in self._siblings.entities_of(_resource_of(state), excluding=state.stream):
            yield from chain(other.window, other.evicted_entities)

    def _session_texts(self, state: SessionState) -> SessionTexts:
        """The slow way, for an id that no sighting has: everything that this session was told."""
        events = self._store.read(state.stream, kind=ToolObserved.kind)
        observed = (event.payload for event in events if isinstance(event.payload, ToolObserved))
        return session_texts(state.conversation, system=state.prompt.system, observed=observed)


def _host_draft(what: EventPayload) -> Draft:
    return Draft(payload=what, origin=Origin.OPERATOR)


def _not_in_window_hint(id: str, entity: Entity | None, entities: Entities) -> str:
    """What to do about a thing that is not in the window."""
    if entity is not None:
        return "it has left the window: bring it back with session.track"
    other = entities.get(id)
    return f"it is of another type: {other.type}" if other else "see session.entities for those there are"


def _seq_of(event: str) -> int:
    return int(event.rpartition("#")[2])


def _resource_of(state: SessionState) -> str:
    return state.opened.resource if state.opened else ""
