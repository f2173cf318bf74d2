"""Gather the input of a dream: page, pending notes, and activity since the last dream.

Nothing is changed here. Text that a user typed into the notes page has no event yet, so it is identified by its place
until the dream commits. Everything is read from the journal, so a process that resumes a dream gathers the same input.
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
from inmind.search.consolidate import plan_consolidation
from inmind.search.crystal import Crystal
from inmind.search.engine import SearchEngine
from inmind.search.lifecycle import is_searchable
from inmind.search.note import DEFAULT_IMPORTANCE
from inmind.search.query import Query
from inmind.session.state import ResourceState
from inmind.session.tools.registry import is_memory_tool
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Stream

MAX_RECENT_CRYSTALS = 2_000
"""Recently written crystals that new material is compared with."""

MAX_COMPARED_CRYSTALS = 3_000
"""Recently written crystals that notes are compared with to find duplicates. The limit keeps the time of a dream
independent of the age of the memory; duplicates of older crystals are merged by the consolidation."""

MIN_SHARED_WORDS = 0.5
"""Share of words above which one text may be an edited version of the other."""

NEW_ID_PREFIX = "new#"
"""Prefix of the temporary id of a typed note: prefix and place. The commit replaces it with an event id."""


@frozen(kw_only=True)
class GatheredInput:
    """The input of a dream, and how far the journal was read for it."""

    material: DreamMaterial
    last_seq: int
    """The last event read from the resource's stream."""
    journal_position: int
    """The position up to which the whole journal was read."""
    note_ids: tuple[str, ...]
    """Event ids of the notes that the dream takes in."""
    page_notes: tuple[PageNote, ...]
    """These notes and the typed ones, as they are on the notes page."""
    remarks: tuple[str, ...]
    """Text that a user wrote between the notes."""
    typed_notes: tuple[PendingNote, ...]
    """Notes and remarks that have no event yet."""
    accessed_crystals: tuple[str, ...]
    crystal_counts: dict[str, int]
    """Number of new crystals, by kind."""

    @property
    def typed_digest(self) -> str:
        """Digest of the typed notes. With an equal digest, a place refers to the same text."""
        return digest(*(one.text for one in self.typed_notes))


class Gatherer:
    """Gathers the input for dreams of one resource."""

    def __init__(
        self,
        *,
        resource: str,
        stream: Stream[ResourceState],
        store: Store,
        search: SearchEngine,
        clock: Clock,
        sources: tuple[str, ...] = (),
    ) -> None:
        """`sources`: sources to which the searches of sessions are restricted; empty for all."""
        self._resource, self._stream, self._store, self._search, self._clock = resource, stream, store, search, clock
        self._sources = sources

    def gather(self) -> GatheredInput:
        state = self._stream.refresh()
        return self._build(state, last_seq=self._stream.version, now=self._clock())

    def gather_again(self, gathered: DreamGathered) -> GatheredInput:
        """Gather the same input as an earlier run, ignoring everything written since."""
        now = datetime.fromisoformat(gathered.as_of)
        return self._build(
            self._stream.state_at(gathered.last_seq),
            last_seq=gathered.last_seq,
            now=now,
            until=gathered.journal_position,
        )

    def _build(self, state: ResourceState, *, last_seq: int, now: datetime, until: int | None = None) -> GatheredInput:
        dreaming, page = state.dreams, state.documents.text(NOTES_PAGE_PATH)
        recent = read_activity(
            self._store,
            self._search,
            self._resource,
            after=dreaming.journal_position,
            until=until,
            own_tool=is_memory_tool,
        )
        written = self._search.written_crystals(self._resource)
        if until is not None:
            written = [crystal for crystal in written if crystal.at <= now]
        matched = self._match_notes(parse_notes(page), after=dreaming.last_seq, last_seq=last_seq)
        remarks = parse_remarks(page)
        typed = tuple(
            _typed_notes(matched, [PageNote(format_timestamp(now), DEFAULT_IMPORTANCE, remark) for remark in remarks])
        )
        levels = state.affect.levels.decayed_to(now)
        loop_lines = {line for line in dreaming.lines if loop_text(line)}
        closed = closed_lines(sorted(loop_lines), recent.activity.utterances)
        economics = summarize_trades(self._store.read(self._stream.name, until=last_seq, kind=TradeRecorded.kind), now)
        material = DreamMaterial(
            now=now,
            page=parse_page(state.documents.text(MEMORY_PAGE_PATH)),
            dream_lines=dreaming.lines,
            adopted=dreaming.adopted_entries,
            notes=(*_pending_notes(matched.unchanged, written, now), *typed),
            crystals=select_crystals(recent.crystals),
            insights=tuple(
                find_insights(
                    _crystals_to_compare(recent, written),
                    recent.activity,
                    dreaming.insight_keys,
                    now,
                    loop_lines=loop_lines - {*closed},
                )
            ),
            closed_loops=closed,
            levels=levels,
            mood=describe_mood(levels),
            gaps=update_gaps(recent.activity, dreaming.gaps, now),
            skills=update_skills(recent.activity, dreaming.skills, now),
            economics=economics,
            search=self.search_ids,
            get_crystal=self.get_crystal,
        )
        return GatheredInput(
            material=material,
            last_seq=last_seq,
            journal_position=recent.journal_position,
            note_ids=tuple(event.id for event in matched.unchanged),
            page_notes=tuple(parse_notes(page)),
            remarks=tuple(remarks),
            typed_notes=typed,
            accessed_crystals=accessed_crystals(recent.activity.searches),
            crystal_counts=count_by_kind(recent.crystals),
        )

    def search_ids(self, keywords: str) -> frozenset[str]:
        """Ids that a default search for these keywords returns, with those merged into them."""
        hits = self._search.search(Query(text=keywords, sources=self._sources), [self._resource])
        return frozenset(id for hit in hits for id in (hit.crystal.id, *hit.crystal.sources))

    def get_crystal(self, id: str) -> Crystal | None:
        try:
            return self._search.crystal(id)
        except NotFound:
            return None

    def _match_notes(self, page_notes: Sequence[PageNote], *, after: int, last_seq: int) -> _MatchedNotes:
        """Match the notes on the page with their events.

        A note that a user removed from the page is not taken in. It remains searchable.
        """
        waiting = Counter(page_notes)
        unchanged, missing = _split_by_page(self._candidate_notes(after=after, last_seq=last_seq), waiting)
        unmatched = list(waiting.elements())
        if not unmatched:
            return _MatchedNotes(unchanged, missing=missing)
        # An undo, or a user, may have put back notes that an earlier dream already took in.
        earlier = self._notes_at({note.at for note in unmatched}, until=after)
        used = self._used_note_ids() if any(as_page_note(event) in unmatched for event in earlier) else frozenset[str]()
        restored, _ = _split_by_page((event for event in earlier if event.id not in used), waiting)
        restored_ids = {event.id for event in restored}
        other = [event for event in earlier if event.id not in restored_ids]
        return _MatchedNotes([*restored, *unchanged], list(waiting.elements()), missing, other)

    def _candidate_notes(self, *, after: int, last_seq: int) -> Iterator[Event]:
        """Notes since the last dream that was not undone, and typed notes of undone dreams."""
        read = partial(self._store.read, self._stream.name, after=after, until=last_seq)
        undone = {
            event.payload.dream for event in read(kind=DreamUndone.kind) if isinstance(event.payload, DreamUndone)
        }
        commits = (
            [event.payload for event in read(kind=DreamCommitted.kind) if isinstance(event.payload, DreamCommitted)]
            if undone
            else []
        )
        returned_ids = {note for dream in commits if dream.dream in undone for note in dream.notes}
        yield from read(kind=NoteAdded.kind)
        yield from (
            event for event in (read(kind=CrystalCreated.kind) if returned_ids else ()) if event.id in returned_ids
        )

    def _notes_at(self, timestamps: set[str], *, until: int) -> list[Event]:
        """Events of notes, and of typed notes, with one of these timestamps."""
        read = partial(self._store.read, self._stream.name, until=until)
        typed = (event for event in read(kind=CrystalCreated.kind) if event.origin is Origin.FILE)
        return [event for event in (*read(kind=NoteAdded.kind), *typed) if format_timestamp(event.at) in timestamps]

    def _used_note_ids(self) -> frozenset[str]:
        """Ids of the notes taken in by dreams that were not undone."""
        read = partial(self._store.read, self._stream.name)
        undone = {
            event.payload.dream for event in read(kind=DreamUndone.kind) if isinstance(event.payload, DreamUndone)
        }
        commits = (
            event.payload for event in read(kind=DreamCommitted.kind) if isinstance(event.payload, DreamCommitted)
        )
        return frozenset(note for dream in commits if dream.dream not in undone for note in dream.notes)


@frozen
class _MatchedNotes:
    """The notes on the page, compared with the recorded ones."""

    unchanged: Sequence[Event]
    """Events of notes that are on the page as recorded."""
    typed: Sequence[PageNote] = ()
    """Notes on the page that a user typed or changed."""
    missing: Sequence[Event] = ()
    """Events of notes since the last dream that are not on the page as recorded."""
    earlier: Sequence[Event] = ()
    """Events of older notes with the timestamp of a typed note."""


def _split_by_page(events: Iterable[Event], waiting: Counter[PageNote]) -> tuple[list[Event], list[Event]]:
    """Split events into those whose note is on the page, and the others.

    Matched notes are removed from `waiting`.
    """
    matching, others = list[Event](), list[Event]()
    for event in events:
        note = as_page_note(event)
        if note is not None and waiting[note] > 0:
            waiting[note] -= 1
            matching.append(event)
        else:
            others.append(event)
    return matching, others


def _crystals_to_compare(activity: ActivitySlice, written: Sequence[Crystal]) -> list[Crystal]:
    """New crystals and recent older ones.

    Repetition shows only in comparison with the earlier crystals.
    """
    recent = sorted(filter(is_searchable, written), key=lambda crystal: crystal.at)[-MAX_RECENT_CRYSTALS:]
    return list({crystal.id: crystal for crystal in (*recent, *activity.crystals)}.values())


def _pending_notes(events: Sequence[Event], written: Sequence[Crystal], now: datetime) -> Iterator[PendingNote]:
    """Notes, each marked as superseded if a consolidation would merge or replace it.

    This does not depend on whether a consolidation has run.
    """
    if not events:
        return
    note_ids = {event.id for event in events}
    current = sorted(filter(is_searchable, written), key=lambda crystal: crystal.at)
    compared = [
        *(crystal for crystal in current[:-MAX_COMPARED_CRYSTALS] if crystal.id in note_ids),
        *current[-MAX_COMPARED_CRYSTALS:],
    ]
    plan = plan_consolidation(compared, now=now)
    superseded = {id for id, _ in (*plan.merged, *plan.superseded)}
    superseded |= {crystal.id for crystal in written if not is_searchable(crystal) or crystal.superseded_by}
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
        yield replace(pending, superseded=event.id in superseded)


def _typed_notes(matched: _MatchedNotes, remarks: Sequence[PageNote]) -> Iterator[PendingNote]:
    """Typed notes. A note that a user edited keeps the trust of the original, if that is lower."""
    words = cache(_word_set)

    def near(note: PageNote) -> list[Event]:
        return [event for event in matched.missing if _share_words(words(_note_payload(event).text), words(note.text))]

    def same_time(note: PageNote) -> list[Event]:
        return [event for event in (*matched.missing, *matched.earlier) if format_timestamp(event.at) == note.at]

    origins = [(note, near(note) or same_time(note)) for note in matched.typed]
    origins += ((note, near(note)) for note in remarks)
    for number, (note, originals) in enumerate(origins):
        typed = PendingNote(
            id=f"{NEW_ID_PREFIX}{number}",
            text=note.text,
            importance=min(1.0, note.importance),
            at=datetime.fromisoformat(note.at).isoformat(),
            trust=Trust.PERSON,
        )
        if originals:
            least_trusted = min(originals, key=attrgetter("trust"))
            original = _note_payload(least_trusted)
            typed = replace(
                typed, trust=min(typed.trust, least_trusted.trust), kind=original.category, valence=original.valence
            )
        yield typed


def _note_payload(event: Event) -> NoteAdded | CrystalCreated:
    return cast("NoteAdded | CrystalCreated", event.payload)  # the notes page has no other kinds


def _word_set(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in distinctive_words(text))


def _share_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """True if one contains most of the words of the other."""
    return len(first & second) > MIN_SHARED_WORDS * min(len(first), len(second))
