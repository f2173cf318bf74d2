"""The Crystal value, how later events change it, its score by age, and its expiry.

Crystals are derived from the journal. A note, a message, a page section and an evicted entity each become a crystal
because of their event, so a crystal has the id of its event, and its lifecycle is folded from later events. All
crystals can be deleted and derived again.

A crystal is never rewritten. Text, importance and source come from its event; only the fields about later changes are
folded here. So an index can be deleted and the same crystals are derived from the journal.

The live events of a stream are those that no undo, edit or regenerated answer has retracted. Retracted events must
not be found. An undo retracts the events after its target and can itself be undone. Undoing a dream retracts only the
crystals of that dream. A withdrawn note is retracted until it is restored. A host that regenerates an answer, or
whose user edits a message, removes the end of the conversation. Messages that a host dropped from the front or middle
to save space stay live.

Two things keep a crystal searchable: repeated access, and the importance its author declared. They are separate,
because each fails alone: frequent access does not mean important (the weather is looked up daily), and an important
fact may wait a year for its question. One half of the score changes over time, the other half never does:

    dynamic = relevance of its kind x (1 - e^(-0.2 (accesses + 1))) x 0.5^(days since last access / half-life)
    score   = 0.5 x dynamic + 0.5 x importance^2

The half-life is 16 days, and up to twice that for a strong valence. Importance counts squared, so that small values
matter little, and so that 0.2 is the exact limit: a crystal with at least that importance never expires, one with
less expires unless it is accessed. Days from the last access until a crystal with neutral valence expires:

    importance   general, no access     episode, no access     fact, five accesses
    0.0                   24                     22                       61
    0.1                   30                     28                       68
    0.15                  43                     41                       80
    0.2                 never                  never                    never

Search skips an expired crystal; it stays in the journal. A pinned crystal never expires.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import exp
from typing import TYPE_CHECKING, Final, Literal

from inmind.core.events.base import Event, EventId, Origin, Trust
from inmind.core.events.crystals import Consolidated, CrystalPinned, NoteWithdrawn, SearchRecorded
from inmind.core.events.dreams import DreamCommitted, DreamUndone
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted
from inmind.core.frozen import frozen

if TYPE_CHECKING:
    from inmind.search.index.record import Record

KIND_RELEVANCE: Final[Mapping[str, float]] = {
    "fact": 0.8,
    "preference": 1.0,
    "goal": 0.9,
    "task_pattern": 0.7,
    "skill": 0.9,
    "insight": 0.8,
    "relationship": 1.0,
    "episode": 0.55,
    "general": 0.6,
}
"""Probability that a later conversation needs a crystal of this kind.

Facts about a person stay relevant, single events rarely."""

KINDS: Final = tuple(KIND_RELEVANCE)
"""Kinds of crystals. A message is an episode; a note is general unless its author says otherwise."""

Lifecycle = Literal["generated", "activated", "consolidated", "archived", "expired", "frozen"]
"""New; accessed since; processed by a consolidation; merged into another; expired; pinned (stored as "frozen")."""


HIDDEN_LIFECYCLES: Final[tuple[Lifecycle, ...]] = ("archived", "expired")
"""Lifecycles that search skips: an archived crystal is found as the one it was merged into, an expired one only as of
an earlier date."""


@frozen(kw_only=True)
class Crystal:
    """One searchable item with everything that decides its value."""

    id: str
    """Id of its event; for a section of a page, followed by a full stop and the number of the section."""
    text: str
    kind: str = "general"
    source: str = "memory"
    resource: str = ""
    session: str = ""
    sources: tuple[str, ...] = ()
    """Events it was made from; for a merged crystal, those of all merged ones."""
    origin: Origin = Origin.USER
    trust: Trust = Trust.PERSON
    at: datetime
    """Time of the statement."""
    speaker: str = ""
    """Name that its message declares, else the role. The text cannot change it."""
    path: str = ""
    """Page that it is a section of, if any."""
    importance: float = 0.5
    """As declared by the author. Never overwritten: later changes are in the fields below."""
    valence: float = 0.0
    """Emotional value from -1 to 1. Strong values of either sign are kept longer."""
    accesses: int = 0
    accessed: datetime | None = None
    """Time of the last access; None if never accessed."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_by: str = ""
    """Id of the crystal that states the same fact with a newer value."""
    merged_into: str = ""
    """Id of the crystal that says the same in nearly the same words."""
    lifecycle: Lifecycle = "generated"

    @property
    def last_used(self) -> datetime:
        """Time of the last access, else of the statement."""
        return self.accessed or self.at

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d} {self.kind}: {self.text}"


HALF_LIFE: Final = timedelta(days=16)

MIN_SCORE: Final = 0.02

# Declared importance weighs as much as the dynamic half.
_IMPORTANCE_SHARE = 0.5

# Effect of each access: three give more than half of the dynamic value, and no number gives all of it.
_ACCESS_RATE = 0.2


def score_crystal(crystal: Crystal | Record, now: datetime) -> float:
    """Return the score at this time, from 0 to 1.

    A clock that was set back counts as no time passed, and a pinned crystal does not age.
    """
    age = timedelta() if crystal.lifecycle == "frozen" else max(timedelta(), now - crystal.last_used)
    access_factor = 1 - exp(-_ACCESS_RATE * (crystal.accesses + 1))
    dynamic = KIND_RELEVANCE[crystal.kind] * access_factor * 0.5 ** (age / (HALF_LIFE * (1 + abs(crystal.valence))))
    return (1 - _IMPORTANCE_SHARE) * dynamic + _IMPORTANCE_SHARE * crystal.importance**2


def is_expired(crystal: Crystal, now: datetime) -> bool:
    """Return True if the score is below MIN_SCORE and the crystal is not pinned."""
    return crystal.lifecycle != "frozen" and score_crystal(crystal, now) < MIN_SCORE


def is_searchable(crystal: Crystal) -> bool:
    """Return True if search may return it.

    A merged crystal is found as its target, an expired one only as of a date.
    """
    return crystal.lifecycle not in HIDDEN_LIFECYCLES


def valid_since(crystal: Crystal) -> datetime:
    """Return the time since which it is valid: declared, else when it was said."""
    return crystal.valid_from or crystal.at


def apply_event(crystal: Crystal, event: Event, known: Mapping[str, Crystal]) -> Crystal:
    """Return the crystal after an event.

    `known` has the crystals that the event names, in their state before it.
    """
    match event.payload:
        case SearchRecorded(hits=ids) | DreamCommitted(replayed=ids) if crystal.id in ids:
            lifecycle = "activated" if crystal.lifecycle in ("generated", "expired") else crystal.lifecycle
            return replace(crystal, accesses=crystal.accesses + 1, accessed=event.at, lifecycle=lifecycle)
        case Consolidated() as consolidation:
            return _apply_consolidation(crystal, consolidation, known)
        case CrystalPinned(id=id, pinned=True) if id == crystal.id:  # a merge is undone: its target could expire
            return replace(crystal, lifecycle="frozen", merged_into="")
        case CrystalPinned(id=id) if id == crystal.id and crystal.lifecycle == "frozen":
            return replace(crystal, lifecycle="consolidated")
        case _:
            return crystal


def _apply_consolidation(crystal: Crystal, consolidation: Consolidated, known: Mapping[str, Crystal]) -> Crystal:
    merged, superseded = dict(consolidation.merged), dict(consolidation.superseded)
    hidden = {*merged, *consolidation.expired}
    kept = known.get(merged.get(crystal.id, ""))
    if kept and _can_merge(crystal, kept, hidden):
        return replace(crystal, merged_into=kept.id, lifecycle="archived")
    if crystal.id in consolidation.expired and _can_be_hidden(crystal):
        return replace(crystal, lifecycle="expired")
    if crystal.id in superseded:  # its validity ends when the newer one starts; a declared end is kept
        newer = superseded[crystal.id]
        ended = crystal.valid_to or (valid_since(known[newer]) if newer in known else None)
        crystal = replace(crystal, superseded_by=newer, valid_to=ended)
    named = {crystal.id} & {*superseded, *superseded.values()}
    duplicates = [known[id] for id, kept_id in consolidation.merged if kept_id == crystal.id and id in known]
    for duplicate in duplicates:
        if _can_merge(duplicate, crystal, hidden):
            crystal = _absorb(crystal, duplicate)
            named.add(crystal.id)
    if named and crystal.lifecycle in ("generated", "activated"):
        return replace(crystal, lifecycle="consolidated")
    return crystal


def _can_merge(merged: Crystal, kept: Crystal, hidden: Collection[str]) -> bool:
    """Return True if the crystal can still be merged into the target.

    Another pass may have merged them in the other direction while this one was planned. The first one wins;
    otherwise both would be hidden, each found as the other.
    """
    return _can_be_hidden(merged) and is_searchable(kept) and kept.id not in hidden


def _can_be_hidden(crystal: Crystal) -> bool:
    """Return False for a crystal that was pinned while the consolidation was planned."""
    return is_searchable(crystal) and crystal.lifecycle != "frozen"


def _absorb(kept: Crystal, merged: Crystal) -> Crystal:
    """Add lineage and accesses of the merged crystal."""
    access_times = [access_time for access_time in (kept.accessed, merged.accessed) if access_time]
    return replace(
        kept,
        sources=tuple(dict.fromkeys((*kept.sources, merged.id, *merged.sources))),
        accesses=kept.accesses + merged.accesses,
        accessed=max(access_times, default=None),
    )


def live_sequence_numbers(events: Sequence[Event]) -> set[int]:
    """Return the sequence numbers of the live events.

    `events` must hold every message, splice and undo of the stream, and the other events to check.
    """
    targets = sorted({event.payload.to for event in events if isinstance(event.payload, Reverted)})
    conversation: list[int] = []
    other_live: set[int] = set()
    """Live events outside the conversation: dropped messages, and events that are not messages."""
    states: dict[int, tuple[list[int], set[int]]] = {}
    for event in events:
        while targets and targets[0] < event.seq:
            states[targets.pop(0)] = (list(conversation), set(other_live))
        match event.payload:
            case Reverted(to=to):
                conversation, other_live = list(states[to][0]), set(states[to][1])
            case DreamUndone(crystals=crystals):
                other_live = {seq for seq in other_live if f"{event.stream}#{seq}" not in crystals}
            case NoteWithdrawn(note=note, withdrawn=withdrawn):
                stream, seq = EventId.of(note)
                if stream == event.stream:
                    other_live = other_live - {seq} if withdrawn else other_live | {seq}
            case MessageAdded():
                conversation.append(event.seq)
            case HistorySpliced(start=start, stop=stop, inserted=inserted):
                kept, new = conversation[: len(conversation) - inserted], conversation[len(conversation) - inserted :]
                is_retracted = start > 0 and stop >= len(kept)
                if not is_retracted:
                    other_live.update(kept[start:stop])
                conversation = [*kept[:start], *new, *kept[stop:]]
            case _:
                other_live.add(event.seq)
    return other_live.union(conversation)
