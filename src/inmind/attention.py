"""What a session pays attention to: the window of things, kept current and asked about.

The session hands over what happens; here it becomes sightings in the same commit. Questions about things ("what
is it", "was this id ever seen") are answered from the state, then from what left the window, then from what other
sessions of the same resource have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from inmind.entities.checkpoint import deserialize, thing_from
from inmind.entities.entity import Entity
from inmind.entities.ground import CallCheck, check_call
from inmind.entities.nouns import same_type
from inmind.entities.resolve.resolution import Resolution
from inmind.entities.rules import EntityRules
from inmind.entities.sight import Happening, leaving, sighted
from inmind.errors import InvalidInput, NotFound
from inmind.journal import (
    Draft,
    EntitiesRestored,
    EntitiesSeen,
    EntityPinned,
    Happened,
    Origin,
    ThingSeen,
    ToolObserved,
)
from inmind.mind import Mind
from inmind.prompt.heard import heard, last_reply, was_said
from inmind.stores.base import Appended, Key, Store
from inmind.stores.siblings import Siblings
from inmind.stores.stream import Decision, Stream


class Attention:
    """The entities of one session."""

    def __init__(self, stream: Stream[Mind], store: Store, siblings: Siblings, rules: EntityRules) -> None:
        self._stream, self._store, self._siblings, self.rules = stream, store, siblings, rules

    def of_messages(self, mind: Mind, drafts: Sequence[Draft], now: datetime) -> list[Draft]:
        """What the messages among these drafts bring to mind; it will be appended right behind them."""
        told = heard(mind.line, drafts, stream=mind.stream, version=mind.seq)
        return self._sighted(mind, told, len(drafts), now) if told else []

    def of_outcome(self, mind: Mind, what: ToolObserved, origin: Origin, now: datetime) -> list[Draft]:
        """The same for what a tool did, which is appended right before."""
        told = Happening(what, origin, f"{mind.stream}#{mind.seq + 1}")
        return self._sighted(mind, [told], 1, now)

    def track(self, entities: Sequence[Any], key: Key | None) -> Appended:
        """Bring things to the front one by one, so that the last of them comes to stand first."""
        things = [thing_from(entity, f"entities[{n}]") for n, entity in enumerate(entities)]
        return self._commit(lambda _: EntitiesSeen(tuple(reversed(things))) if things else None, key)

    def restore(self, data: object) -> Appended:
        things = deserialize(data)
        return self._commit(lambda mind: EntitiesRestored(self._pinnable(things, mind)) if things else None, None)

    def pin(self, id: str, type: str | None, key: Key | None, *, pinned: bool) -> Appended:
        def decide(mind: Mind) -> Happened | None:
            entity = mind.entities.get(id, type)
            if entity is None or entity not in mind.entities.window:
                raise NotFound(what="entity in the window", name=id, hint="see session.entities for those there are")
            held = sum(e.pinned for e in mind.entities)
            if pinned and not entity.pinned and held + 1 >= self.rules.window:
                most = f"at most {self.rules.window - 1} pinned, so that the window can still move"
                raise InvalidInput(field="id", value=id, expected=most)
            return EntityPinned(entity.type, entity.id, pinned) if pinned != entity.pinned else None

        return self._commit(decide, key)

    def resolve(self, text: str) -> Resolution:
        from inmind.entities.resolve.resolver import (
            resolve,  # its words of two languages are a fifth of what importing us takes
        )

        mind = self._stream.refresh()
        said = last_reply(mind.line)
        fresh = said is not None and all(_place(entity.source) < said.seq for entity in mind.entities)
        after = said.text if said is not None and fresh else ""
        return resolve(text, mind.entities, after=after, deep=self._deep(mind), rules=self.rules)

    def check_call(self, tool: str, arguments: Any) -> CallCheck:
        mind = self._stream.refresh()
        return check_call(
            tool,
            arguments,
            mind.entities,
            heard=lambda id: self._was_heard(mind, id),
            elsewhere=lambda: self._siblings.ids(_owner(mind), but=mind.stream),
            rules=self.rules,
        )

    def _pinnable(self, things: Sequence[ThingSeen], mind: Mind) -> tuple[ThingSeen, ...]:
        """Those of a checkpoint with as many pins as the window has room for, the most recent first."""
        restored = {(same_type(thing.type), thing.id) for thing in things}
        room = self.rules.window - 1 - sum(entity.pinned for entity in mind.entities if entity.key not in restored)
        kept = {(thing.type, thing.id) for thing in [t for t in things if t.pinned][: max(0, room)]}
        return tuple(replace(thing, pinned=(thing.type, thing.id) in kept) for thing in things)

    def _sighted(self, mind: Mind, told: Sequence[Happening], behind: int, now: datetime) -> list[Draft]:
        version = mind.seq + behind
        return sighted(mind.entities, told, self.rules, now=now, stream=mind.stream, version=version)

    def _commit(self, decide: Callable[[Mind], Happened | None], key: Key | None) -> Appended:
        """What the host itself says of things, and what leaves for it."""

        def decision(mind: Mind, now: datetime) -> Decision[Mind, None]:
            what = decide(mind)
            if what is None:
                return Decision([], None)
            draft = Draft(what=what, origin=Origin.OPERATOR)
            foreseen = self._stream.foresee(mind, mind.seq, [draft], now)
            return Decision([draft, *leaving(foreseen.entities, self.rules)], None)

        return self._stream.commit(decision, key=key).appended

    def _deep(self, mind: Mind) -> Iterator[Entity]:
        yield from mind.entities.beyond
        yield from self._siblings.entities(_owner(mind), but=mind.stream)

    def _was_heard(self, mind: Mind, id: str) -> bool:
        """The slow way, for an id that no sighting has: is it anywhere in what this session was told?"""
        if id in str(mind.standing.system) or was_said(id, mind.line):
            return True
        observed = self._store.read(mind.stream, kind=ToolObserved.kind)
        return any(id in str(event.what.result) for event in observed if isinstance(event.what, ToolObserved))


def _place(event: str) -> int:
    return int(event.rpartition("#")[2])


def _owner(mind: Mind) -> str:
    return mind.opened.resource if mind.opened else ""
