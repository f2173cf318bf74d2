"""All that a dream is made of, put together: the page, the notes that wait, and what was lived through since the last.

Nothing is changed here. What people typed into the page of notes has no event of its own yet, so it goes by its place
until the dream commits. All of it comes out of the journal, so what a dream was made of can be put together again as it
was, by whoever goes on with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from typing import cast

from inmind.core.encoding import digest
from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.dreams import DreamCommitted, DreamGathered, DreamUndone, TradeRecorded
from inmind.core.frozen import frozen
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import PageNote, format_timestamp, parse_notes, parse_remarks
from inmind.dreams.affect.levels import describe_mood
from inmind.dreams.economics import summarize_trades
from inmind.dreams.gaps import update_gaps
from inmind.dreams.insights import accessed_crystals, find_insights
from inmind.dreams.material import DreamMaterial, PendingNote, count_by_kind, select_crystals
from inmind.dreams.open_loops import closed_lines, loop_text
from inmind.dreams.page.page import parse_page
from inmind.dreams.page.pointers import distinctive_words
from inmind.dreams.skills import update_skills
from inmind.errors import NotFound
from inmind.jobs.dreaming.activity import ActivitySlice, read_activity
from inmind.jobs.dreaming.history import as_page_note
from inmind.search.consolidate import plan
from inmind.search.crystal import Crystal
from inmind.search.engine import DeepMemory
from inmind.search.lifecycle import alive
from inmind.search.note import IMPORTANCE
from inmind.search.query import Query
from inmind.session.state import ResourceState
from inmind.session.tools.registry import is_memory_tool
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Stream

MAX_RECENT_CRYSTALS = 2_000
"""What was written down lately, beside which new things are seen."""

MAX_COMPARED_CRYSTALS = 3_000
"""What was written down last, beside which notes are looked at for what says the same. A dream must not take the longer
the older a memory is; what is said again after so much else is merged when all of it is consolidated."""

MIN_SHARED_WORDS = 0.5
"""Share of the words of a text that stand in another, from which on one may be the other, edited."""

NEW_ID_PREFIX = "new#"
"""In front of the place of what people typed among the notes: the commit gives it a name."""


@frozen(kw_only=True)
class GatheredInput:
    """What a dream is made of, and what of the journal it has looked at."""

    material: DreamMaterial
    last_seq: int
    """Of the resource's stream."""
    journal_position: int
    """Of the whole journal."""
    note_ids: tuple[str, ...]
    """Events of the notes that are taken in."""
    page_notes: tuple[PageNote, ...]
    """Those notes, and typed ones, as they stand on the page."""
    remarks: tuple[str, ...]
    """What people wrote between the notes."""
    typed_notes: tuple[PendingNote, ...]
    """What of all this has no event yet."""
    accessed_crystals: tuple[str, ...]
    crystal_counts: dict[str, int]
    """How many new ones there were, by kind."""

    @property
    def typed_digest(self) -> str:
        """Of what goes by its place: in what has the same one, a place means the same."""
        return digest(*(one.text for one in self.typed_notes))


class Gatherer:
    """Puts together what a dream of one resource is made of."""

    def __init__(
        self,
        *,
        resource: str,
        stream: Stream[ResourceState],
        store: Store,
        deep: DeepMemory,
        clock: Clock,
        sources: tuple[str, ...] = (),
    ) -> None:
        """`sources`: where those look who search, if not everywhere."""
        self._resource, self._stream, self._store, self._deep, self._clock = resource, stream, store, deep, clock
        self._sources = sources

    def gather(self) -> GatheredInput:
        owned = self._stream.refresh()
        return self._build(owned, upto=self._stream.version, now=self._clock())

    def gather_again(self, then: DreamGathered) -> GatheredInput:
        """The same that was gathered then, whatever has been written since."""
        now = datetime.fromisoformat(then.as_of)
        return self._build(
            self._stream.state_at(then.last_seq), upto=then.last_seq, now=now, position=then.journal_position
        )

    def _build(self, owned: ResourceState, *, upto: int, now: datetime, position: int | None = None) -> GatheredInput:
        dreaming, page = owned.dreams, owned.documents.text(NOTES_PAGE_PATH)
        lived = read_activity(
            self._store,
            self._deep,
            self._resource,
            after=dreaming.journal_position,
            until=position,
            own_tool=is_memory_tool,
        )
        written = self._deep.written(self._resource)
        if position is not None:
            written = [crystal for crystal in written if crystal.at <= now]
        matched = self._matched(parse_notes(page), after=dreaming.last_seq, upto=upto)
        remarks = parse_remarks(page)
        typed = tuple(
            _typed_notes(matched, [PageNote(format_timestamp(now), IMPORTANCE, remark) for remark in remarks])
        )
        levels = owned.affect.levels.decayed_to(now)
        loops = {line for line in dreaming.lines if loop_text(line)}
        done = closed_lines(sorted(loops), lived.activity.utterances)
        economics = summarize_trades(self._store.read(self._stream.name, until=upto, kind=TradeRecorded.kind), now)
        material = DreamMaterial(
            now=now,
            page=parse_page(owned.documents.text(MEMORY_PAGE_PATH)),
            dream_lines=dreaming.lines,
            adopted=dreaming.adopted_entries,
            notes=(*_pending_notes(matched.unchanged, written, now), *typed),
            crystals=select_crystals(lived.crystals),
            insights=tuple(
                find_insights(
                    _crystals_to_compare(lived, written),
                    lived.activity,
                    dreaming.insight_keys,
                    now,
                    loop_lines=loops - {*done},
                )
            ),
            closed_loops=done,
            levels=levels,
            mood=describe_mood(levels),
            gaps=update_gaps(lived.activity, dreaming.gaps, now),
            skills=update_skills(lived.activity, dreaming.skills, now),
            economics=economics,
            search=self.search_ids,
            get_crystal=self.get_crystal,
        )
        return GatheredInput(
            material=material,
            last_seq=upto,
            journal_position=lived.journal_position,
            note_ids=tuple(event.id for event in matched.unchanged),
            page_notes=tuple(parse_notes(page)),
            remarks=tuple(remarks),
            typed_notes=typed,
            accessed_crystals=accessed_crystals(lived.activity.searches),
            crystal_counts=count_by_kind(lived.crystals),
        )

    def search_ids(self, keywords: str) -> frozenset[str]:
        """What a search for these words brings up, for whoever does not ask for more than is usual; one that others
        were merged into has brought up those as well."""
        hits = self._deep.search(Query(text=keywords, sources=self._sources), [self._resource])
        return frozenset(id for hit in hits for id in (hit.crystal.id, *hit.crystal.sources))

    def get_crystal(self, id: str) -> Crystal | None:
        try:
            return self._deep.crystal(id)
        except NotFound:
            return None

    def _matched(self, page: Sequence[PageNote], *, after: int, upto: int) -> _MatchedNotes:
        """The notes that stand on the page, by their events.

        What somebody took off the page by hand is not taken in: it is found in deep memory, as ever.
        """
        waiting = Counter(page)
        taken, vanished = _split_by_page(self._offered(after=after, upto=upto), waiting)
        strangers = list(waiting.elements())
        if not strangers:
            return _MatchedNotes(taken, missing=vanished)
        # An undo may bring notes back that a dream has passed by already, and so may people.
        once = self._noted({jotting.at for jotting in strangers}, until=after)
        used = self._used() if any(as_page_note(event) in strangers for event in once) else frozenset[str]()
        again, _ = _split_by_page((event for event in once if event.id not in used), waiting)
        known = {event.id for event in again}
        past = [event for event in once if event.id not in known]
        return _MatchedNotes([*again, *taken], list(waiting.elements()), vanished, past)

    def _offered(self, *, after: int, upto: int) -> Iterator[Event]:
        """Notes since the last dream that stands; and what people typed, where the dream that took it in was undone."""
        read = partial(self._store.read, self._stream.name, after=after, until=upto)
        undone = {
            event.payload.dream for event in read(kind=DreamUndone.kind) if isinstance(event.payload, DreamUndone)
        }
        dreamt = (
            [event.payload for event in read(kind=DreamCommitted.kind) if isinstance(event.payload, DreamCommitted)]
            if undone
            else []
        )
        again = {note for dream in dreamt if dream.dream in undone for note in dream.notes}
        yield from read(kind=NoteAdded.kind)
        yield from (event for event in (read(kind=CrystalCreated.kind) if again else ()) if event.id in again)

    def _noted(self, stamps: set[str], *, until: int) -> list[Event]:
        """What was noted, or typed among the notes, at one of these times."""
        read = partial(self._store.read, self._stream.name, until=until)
        typed = (event for event in read(kind=CrystalCreated.kind) if event.origin is Origin.FILE)
        return [event for event in (*read(kind=NoteAdded.kind), *typed) if format_timestamp(event.at) in stamps]

    def _used(self) -> frozenset[str]:
        """Notes that a dream has taken in which stands."""
        read = partial(self._store.read, self._stream.name)
        undone = {
            event.payload.dream for event in read(kind=DreamUndone.kind) if isinstance(event.payload, DreamUndone)
        }
        dreamt = (
            event.payload for event in read(kind=DreamCommitted.kind) if isinstance(event.payload, DreamCommitted)
        )
        return frozenset(note for dream in dreamt if dream.dream not in undone for note in dream.notes)


@frozen
class _MatchedNotes:
    """The notes on a page, held against those that were taken."""

    unchanged: Sequence[Event]
    """Those that stand there as they were taken."""
    typed: Sequence[PageNote] = ()
    """Those that a person has typed or changed."""
    missing: Sequence[Event] = ()
    """Taken since the last dream, and not there, or not as they were taken."""
    earlier: Sequence[Event] = ()
    """Taken before that, at the time of one of the strangers."""


def _split_by_page(events: Iterable[Event], waiting: Counter[PageNote]) -> tuple[list[Event], list[Event]]:
    """Those that wait as they were taken, which then wait no longer, and the others."""
    taken, others = list[Event](), list[Event]()
    for event in events:
        jotting = as_page_note(event)
        if jotting is not None and waiting[jotting] > 0:
            waiting[jotting] -= 1
            taken.append(event)
        else:
            others.append(event)
    return taken, others


def _crystals_to_compare(activity: ActivitySlice, written: Sequence[Crystal]) -> list[Crystal]:
    """What is new, and what was written down before it: that something is said again shows only beside the first."""
    lately = sorted(filter(alive, written), key=lambda crystal: crystal.at)[-MAX_RECENT_CRYSTALS:]
    return list({crystal.id: crystal for crystal in (*lately, *activity.crystals)}.values())


def _pending_notes(events: Sequence[Event], written: Sequence[Crystal], now: datetime) -> Iterator[PendingNote]:
    """Notes, with what a consolidation would merge or mark as said anew, whether or not one has come by."""
    if not events:
        return
    waiting = {event.id for event in events}
    living = sorted(filter(alive, written), key=lambda crystal: crystal.at)
    lately = [
        *(crystal for crystal in living[:-MAX_COMPARED_CRYSTALS] if crystal.id in waiting),
        *living[-MAX_COMPARED_CRYSTALS:],
    ]
    decided = plan(lately, now=now)
    gone = {one for one, _ in (*decided.merged, *decided.superseded)}
    gone |= {crystal.id for crystal in written if not alive(crystal) or crystal.superseded_by}
    for event in events:
        match event.payload:
            case NoteAdded() as note:
                pending = PendingNote(
                    id=event.id,
                    text=note.text,
                    importance=note.importance,
                    kind=note.category,
                    at=event.at.isoformat(),
                    trust=event.trust,
                    valence=note.valence,
                )
            case CrystalCreated(text=text, importance=importance):
                at = event.at.isoformat()
                pending = PendingNote(id=event.id, text=text, importance=importance, at=at, trust=event.trust)
            case _:
                continue
        yield replace(pending, superseded=event.id in gone)


def _typed_notes(matched: _MatchedNotes, remarks: Sequence[PageNote]) -> Iterator[PendingNote]:
    """What people typed among the notes. What they made of another's note is no more to be trusted than that."""
    words = cache(_word_set)

    def near(jotting: PageNote) -> list[Event]:
        return [
            event for event in matched.missing if _share_words(words(_note_payload(event).text), words(jotting.text))
        ]

    def same_time(jotting: PageNote) -> list[Event]:
        return [event for event in (*matched.missing, *matched.earlier) if format_timestamp(event.at) == jotting.at]

    made = [(jotting, near(jotting) or same_time(jotting)) for jotting in matched.typed]
    made += ((jotting, near(jotting)) for jotting in remarks)
    for place, (jotting, edited) in enumerate(made):
        typed = PendingNote(
            id=f"{NEW_ID_PREFIX}{place}",
            text=jotting.text,
            importance=min(1.0, jotting.importance),
            at=datetime.fromisoformat(jotting.at).isoformat(),
            trust=Trust.PERSON,
        )
        if edited:
            least = min(edited, key=attrgetter("trust"))
            note = _note_payload(least)
            typed = replace(typed, trust=min(typed.trust, least.trust), kind=note.category, valence=note.valence)
        yield typed


def _note_payload(event: Event) -> NoteAdded | CrystalCreated:
    return cast("NoteAdded | CrystalCreated", event.payload)  # nothing else waits on the page


def _word_set(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in distinctive_words(text))


def _share_words(one: frozenset[str], other: frozenset[str]) -> bool:
    """Has one of them most of the words of the other?"""
    return len(one & other) > MIN_SHARED_WORDS * min(len(one), len(other))
