"""All that a dream is made of, put together: the page, the notes that wait, and what was lived through since the last.

Nothing is changed here. What people typed into the page of notes has no event of its own yet, so it goes by its place
until the dream commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from inmind.affect.mood import mood
from inmind.crystals.consolidate import plan
from inmind.crystals.crystal import Crystal
from inmind.crystals.lifecycle import alive
from inmind.crystals.note import IMPORTANCE
from inmind.crystals.query import Query
from inmind.deep import DeepMemory
from inmind.documents import SCRATCH, STATE, Documents
from inmind.dream.curiosity import gaps
from inmind.dream.economics import report
from inmind.dream.insight import insights, replayed
from inmind.dream.material import Material, Pending
from inmind.dream.quota import chosen, counted
from inmind.dream.skills import skills
from inmind.dreams import waits_as
from inmind.errors import NotFound
from inmind.frozen import frozen
from inmind.journal import Crystallised, Dreamt, DreamUndone, Event, NoteTaken, Traded, Trust
from inmind.mind import Belongings
from inmind.notes import Jotting, notes_in, remarks_in, stamp
from inmind.recollection import Recollection, recollect
from inmind.state.page import read
from inmind.stores.base import Clock, Store
from inmind.stores.stream import Stream
from inmind.tools import is_memory_tool

FOUND = 20
"""Hits among which a pointer has to find what it points at."""

REMEMBERED = 2_000
"""What was written down lately, beside which new things are seen."""

UNNAMED = "new#"
"""In front of the place of what people typed among the notes: the commit gives it a name."""


@frozen(kw_only=True)
class Gathered:
    """What a dream is made of, and what of the journal it has looked at."""

    material: Material
    upto: int
    """Of the resource's stream."""
    position: int
    """Of the whole journal."""
    notes: tuple[str, ...]
    """Events of the notes that are taken in."""
    jottings: tuple[Jotting, ...]
    """Those notes, and typed ones, as they stand on the page."""
    remarks: tuple[str, ...]
    """What people wrote between the notes."""
    typed: tuple[Jotting, ...]
    """What of all this has no event yet."""
    replayed: tuple[str, ...]
    crystals: dict[str, int]
    """How many new ones there were, by kind."""


class Gathering:
    """Puts together what a dream of one resource is made of."""

    def __init__(self, *, resource: str, stream: Stream[Belongings], store: Store, deep: DeepMemory, clock: Clock):
        self._resource, self._stream, self._store, self._deep, self._clock = resource, stream, store, deep, clock

    def gather(self) -> Gathered:
        owned, upto, now = self._stream.refresh(), self._stream.version, self._clock()
        dreaming, page = owned.dreams, owned.documents.text(SCRATCH)
        lived = recollect(self._store, self._deep, self._resource, after=dreaming.position, own_tool=is_memory_tool)
        written = self._deep.written(self._resource)
        taken, strangers = self._matched(owned.documents, after=dreaming.upto, upto=upto)
        remarks = remarks_in(page)
        typed = [*strangers, *(Jotting(stamp(now), IMPORTANCE, remark) for remark in remarks)]
        levels = owned.felt.levels.then(now)
        economics = report(self._store.read(self._stream.name, kind=Traded.kind), now)
        material = Material(
            now=now,
            page=read(owned.documents.text(STATE)),
            lines=dreaming.lines,
            seed=dreaming.seed,
            notes=(*_pending(taken, written, now), *_typed(typed)),
            crystals=chosen(lived.crystals),
            insights=tuple(insights(_seen_together(lived, written), lived.lived, dreaming.insights, now)),
            levels=levels,
            mood=mood(levels),
            gaps=gaps(lived.lived, dreaming.gaps, now),
            skills=skills(lived.lived, dreaming.skills, now),
            economics=economics,
            finds=self.finds,
            known=self.known,
        )
        return Gathered(
            material=material,
            upto=upto,
            position=lived.position,
            notes=tuple(event.id for event in taken),
            jottings=tuple(notes_in(page)),
            remarks=tuple(remarks),
            typed=tuple(typed),
            replayed=replayed(lived.lived.lookups),
            crystals=counted(lived.crystals),
        )

    def finds(self, keywords: str) -> frozenset[str]:
        """What a search for these words brings up; one that others were merged into has brought up those as well."""
        hits = self._deep.search(Query(text=keywords, limit=FOUND), [self._resource])
        return frozenset(id for hit in hits for id in (hit.crystal.id, *hit.crystal.sources))

    def known(self, id: str) -> Crystal | None:
        try:
            return self._deep.crystal(id)
        except NotFound:
            return None

    def _matched(self, documents: Documents, *, after: int, upto: int) -> tuple[list[Event], list[Jotting]]:
        """The notes that stand on the page, by their events, and those among them that a person has typed or changed.

        What somebody took off the page by hand is not taken in: it is found in deep memory, as ever.
        """
        waiting = Counter(notes_in(documents.text(SCRATCH)))
        taken: list[Event] = []
        for event in self._offered(after=after, upto=upto):
            if (jotting := waits_as(event)) is not None and waiting[jotting] > 0:
                waiting[jotting] -= 1
                taken.append(event)
        return taken, list(waiting.elements())

    def _offered(self, *, after: int, upto: int) -> Iterator[Event]:
        """Notes since the last dream that stands; and what people typed, where the dream that took it in was undone."""
        read = partial(self._store.read, self._stream.name, after=after, until=upto)
        undone = {event.what.dream for event in read(kind=DreamUndone.kind) if isinstance(event.what, DreamUndone)}
        dreamt = [event.what for event in read(kind=Dreamt.kind) if isinstance(event.what, Dreamt)] if undone else []
        again = {note for dream in dreamt if dream.dream in undone for note in dream.notes}
        yield from read(kind=NoteTaken.kind)
        yield from (event for event in (read(kind=Crystallised.kind) if again else ()) if event.id in again)


def _seen_together(lived: Recollection, written: Sequence[Crystal]) -> list[Crystal]:
    """What is new, and what was written down before it: that something is said again shows only beside the first."""
    lately = sorted(filter(alive, written), key=lambda crystal: crystal.at)[-REMEMBERED:]
    return list({crystal.id: crystal for crystal in (*lately, *lived.crystals)}.values())


def _pending(events: Sequence[Event], written: Sequence[Crystal], now: datetime) -> Iterator[Pending]:
    """Notes, with what a consolidation would merge or mark as said anew, whether or not one has come by."""
    decided = plan(written, now=now)
    gone = {one for one, _ in (*decided.merged, *decided.superseded)}
    gone |= {crystal.id for crystal in written if not alive(crystal) or crystal.superseded_by}
    for event in events:
        match event.what:
            case NoteTaken() as note:
                pending = Pending(
                    id=event.id,
                    text=note.text,
                    importance=note.importance,
                    kind=note.about,
                    at=event.at.isoformat(),
                    trust=event.trust,
                    valence=note.valence,
                )
            case Crystallised(text=text, importance=importance):
                at = event.at.isoformat()
                pending = Pending(id=event.id, text=text, importance=importance, at=at, trust=event.trust)
            case _:
                continue
        yield replace(pending, gone=event.id in gone)


def _typed(jottings: Sequence[Jotting]) -> Iterator[Pending]:
    for place, jotting in enumerate(jottings):
        yield Pending(
            id=f"{UNNAMED}{place}",
            text=jotting.text,
            importance=min(1.0, jotting.importance),
            at=datetime.fromisoformat(jotting.at).isoformat(),
            trust=Trust.PERSON,
        )
