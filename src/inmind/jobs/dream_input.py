"""Gather the input of a dream: page, pending notes, and activity since the last dream.

Nothing is changed here. Text that a user typed into the notes page has no event yet, so it is identified by its place
until the dream commits. The input is what the journal had before the dream, so a process that resumes it gathers the
same. Activity is read from a position of the whole journal: each event once, however many sessions there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from typing import cast

from inmind.core.encoding import to_json
from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import CrystalCreated, NoteAdded, SearchRecorded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import (
    DreamCommitted,
    DreamGathered,
    DreamResumed,
    DreamStarted,
    DreamUndone,
    TradeRecorded,
)
from inmind.core.events.session import EntitiesEvicted, MessageAdded, ToolObserved
from inmind.core.fair_turns import giving_way
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Text
from inmind.core.paths import RESOURCE_PREFIX, SESSION_PREFIX
from inmind.core.tool_outcome import is_failure
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import PageNote, format_timestamp, parse_notes, parse_remarks
from inmind.dreams.affect import describe_mood
from inmind.dreams.economics import summarize_trades
from inmind.dreams.gaps import update_gaps
from inmind.dreams.insights import find_insights
from inmind.dreams.material import (
    NEW_ID_PREFIX,
    Activity,
    DreamMaterial,
    LineSource,
    SearchUse,
    ToolUse,
    Utterance,
    select_crystals,
)
from inmind.dreams.open_loops import closed_lines, loop_text
from inmind.dreams.page.page import parse_page
from inmind.dreams.page.pointers import distinctive_words
from inmind.dreams.skills import update_skills
from inmind.errors import NotFound
from inmind.jobs.dream_history import as_page_note, is_memory_page
from inmind.search.consolidate import plan_consolidation
from inmind.search.crystal import Crystal, is_searchable
from inmind.search.engine import SearchEngine
from inmind.search.extract import extract_crystals, message_reader
from inmind.search.note import DEFAULT_IMPORTANCE
from inmind.search.query import Query
from inmind.session.state import ResourceState
from inmind.session.tools.registry import is_memory_tool
from inmind.store.protocol import Store

MAX_EVENTS = 20_000
"""Events that one dream reads. A longer backlog is processed by several dreams."""

_BATCH_SIZE = 50
_MAX_RESULT_CHARACTERS = 4_000
"""Characters kept of a tool result. Success or failure is read from the complete result."""

MAX_RECENT_CRYSTALS = 2_000
"""Recently written crystals that new material is compared with."""

MAX_COMPARED_CRYSTALS = 3_000
"""Recently written crystals that notes are compared with to find duplicates. The limit keeps the time of a dream
independent of the age of the memory; duplicates of older crystals are merged by the consolidation."""

MIN_SHARED_WORDS = 0.5
"""Share of words above which one text may be an edited version of the other."""


_DREAM_KINDS = (DreamStarted.kind, DreamResumed.kind, DreamGathered.kind)
_ACTIVITY_KINDS = tuple(
    kind.kind for kind in (MessageAdded, ToolObserved, SearchRecorded, CrystalCreated, EntitiesEvicted, DocumentWritten)
)


class Gatherer:
    """Gathers the input for dreams of one resource."""

    def __init__(self, resource: str, store: Store, search: SearchEngine, *, sources: tuple[str, ...] = ()) -> None:
        """`sources`: sources to which the searches of sessions are restricted; empty for all."""
        self._stream = f"{RESOURCE_PREFIX}{resource}"
        self._resource, self._store, self._search, self._sources = resource, store, search, sources

    def gather(self, state: ResourceState, *, last_seq: int, now: datetime, again: bool = False) -> DreamMaterial:
        """The input of the dream that event `last_seq` has started, given the state before it.

        `again`: an earlier process has gathered it too. Everything written since is ignored.
        """
        dreaming, page = state.dreams, state.documents.text(NOTES_PAGE_PATH)
        events, journal_position = self._read_activity(after=dreaming.journal_position, until=last_seq)
        activity = Activity(utterances=tuple(_utterances(events)), searches=tuple(_searches(events)))
        crystals = self._read_crystals(events)
        written = [
            crystal for crystal in self._search.written_crystals(self._resource) if not again or crystal.at <= now
        ]
        matched = self._match_notes(parse_notes(page), after=dreaming.last_seq, last_seq=last_seq)
        remarks = parse_remarks(page)
        typed = tuple(
            _typed_notes(matched, [PageNote(format_timestamp(now), DEFAULT_IMPORTANCE, remark) for remark in remarks])
        )
        levels = state.affect.levels.decayed_to(now)
        loop_lines = {line for line in dreaming.lines if loop_text(line)}
        closed = closed_lines(sorted(loop_lines), activity.utterances)
        insights = find_insights(
            _crystals_to_compare(crystals, written),
            activity,
            dreaming.insight_keys,
            now,
            loop_lines=loop_lines - {*closed},
        )
        return DreamMaterial(
            now=now,
            page=parse_page(state.documents.text(MEMORY_PAGE_PATH)),
            dream_lines=dreaming.lines,
            adopted=dreaming.adopted_entries,
            notes=(*_pending_notes(matched.unchanged, written, now), *typed),
            crystals=select_crystals(crystals),
            insights=tuple(insights),
            closed_loops=closed,
            levels=levels,
            mood=describe_mood(levels),
            gaps=update_gaps(activity, dreaming.gaps, now),
            skills=update_skills(activity, dreaming.skills, now),
            economics=summarize_trades(self._store.read(self._stream, until=last_seq, kind=TradeRecorded.kind), now),
            search=self.search_ids,
            get_crystal=self.get_crystal,
            last_seq=last_seq,
            journal_position=journal_position,
            note_ids=tuple(event.id for event in matched.unchanged),
            page_notes=tuple(parse_notes(page)),
            remarks=tuple(remarks),
            typed_notes=typed,
            accessed_crystals=tuple(dict.fromkeys(id for search in activity.searches for id in search.hits)),
            crystal_counts=dict(sorted(Counter(crystal.kind for crystal in crystals).items())),
        )

    def _read_activity(self, *, after: int, until: int) -> tuple[list[Event], int]:
        """Events of the resource up to the start of the dream, and the last position."""
        position, events = after, list[Event]()
        while len(events) < MAX_EVENTS:
            rows = self._store.events_since(
                position, kinds=(*_ACTIVITY_KINDS, *_DREAM_KINDS), limit=_BATCH_SIZE, owner=self._resource
            )
            for position, event in giving_way(rows):
                if event is not None and event.id == f"{self._stream}#{until}":
                    return events, position
                if event is not None and event.kind not in _DREAM_KINDS and not is_memory_page(event):
                    events.append(event)
            if len(rows) < _BATCH_SIZE:
                break
        return events, position

    def _read_crystals(self, events: Sequence[Event]) -> list[Crystal]:
        """Crystals of messages, tool results and events, in their current state. Notes have a page."""
        read = message_reader(is_memory_tool)
        texts: dict[str, str] = {}
        for event in giving_way(events):
            message = read(event.payload) if isinstance(event.payload, MessageAdded) else None
            for text_part in extract_crystals(event, message):
                texts[f"{event.id}.{text_part.part}" if text_part.part else event.id] = text_part.text
        records = self._search.records_of_events([event.id for event in events])
        return [
            record.crystal(texts[record.id], self._resource)
            for record in giving_way(records)
            if record.is_searchable and record.id in texts
        ]

    def search_ids(self, keywords: str) -> frozenset[str]:
        """Ids that a default search for these keywords returns, with those merged into them."""
        result = self._search.search(Query(text=keywords, sources=self._sources), [self._resource])
        return frozenset(id for hit in result.hits for id in (hit.crystal.id, *hit.crystal.sources))

    def get_crystal(self, id: str) -> Crystal | None:
        try:
            return self._search.crystal(id)
        except NotFound:
            return None

    def _match_notes(self, page_notes: Sequence[PageNote], *, after: int, last_seq: int) -> _MatchedNotes:
        """Match the notes on the page with their events.

        A note that a user removed from the page is not taken in. It remains searchable.
        """
        waiting, read = Counter(page_notes), partial(self._store.read, self._stream)
        unchanged, missing = _split_by_page(read(after=after, until=last_seq, kind=NoteAdded.kind), waiting)
        if not any(waiting.values()):
            return _MatchedNotes(unchanged, missing=missing)
        # An undo, or a user, may have put back notes that an earlier dream already took in.
        timestamps = {note.at for note in waiting.elements()}
        typed = (event for event in read(until=last_seq, kind=CrystalCreated.kind) if event.origin is Origin.FILE)
        noted = read(until=after, kind=NoteAdded.kind)
        earlier = [event for event in (*noted, *typed) if format_timestamp(event.at) in timestamps]
        used = self._processed_notes() if earlier else frozenset[str]()
        restored, _ = _split_by_page((event for event in earlier if event.id not in used), waiting)
        restored_ids = {event.id for event in restored}
        other = [event for event in earlier if event.id not in restored_ids]
        return _MatchedNotes([*restored, *unchanged], list(waiting.elements()), missing, other)

    def _processed_notes(self) -> frozenset[str]:
        """Ids of the notes that dreams took in, without those that were undone."""
        read = partial(self._store.read, self._stream)
        undone = {cast(DreamUndone, event.payload).dream for event in read(kind=DreamUndone.kind)}
        commits = (cast(DreamCommitted, event.payload) for event in read(kind=DreamCommitted.kind))
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


def _crystals_to_compare(new: Sequence[Crystal], written: Sequence[Crystal]) -> list[Crystal]:
    """New crystals and recent older ones.

    Repetition shows only in comparison with the earlier crystals.
    """
    recent = sorted(filter(is_searchable, written), key=lambda crystal: crystal.at)[-MAX_RECENT_CRYSTALS:]
    return list({crystal.id: crystal for crystal in (*recent, *new)}.values())


def _pending_notes(events: Sequence[Event], written: Sequence[Crystal], now: datetime) -> Iterator[LineSource]:
    """Notes, except those that a consolidation would merge with another or replace.

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
        if event.id not in superseded:
            note, at = _note_payload(event), event.at.isoformat()
            yield LineSource((event.id,), note.text, note.importance, note.category, at, event.trust, note.valence)


def _typed_notes(matched: _MatchedNotes, remarks: Sequence[PageNote]) -> Iterator[LineSource]:
    """Typed notes. A note that a user edited keeps the trust of the original, if that is lower."""
    words = cache(_word_set)

    def near(note: PageNote) -> list[Event]:
        return [event for event in matched.missing if _share_words(words(_note_payload(event).text), words(note.text))]

    def same_time(note: PageNote) -> list[Event]:
        return [event for event in (*matched.missing, *matched.earlier) if format_timestamp(event.at) == note.at]

    origins = [(note, near(note) or same_time(note)) for note in matched.typed]
    origins += ((note, near(note)) for note in remarks)
    for number, (note, originals) in enumerate(origins):
        at = datetime.fromisoformat(note.at).isoformat()
        typed = LineSource(
            (f"{NEW_ID_PREFIX}{number}",), note.text, min(1.0, note.importance), at=at, trust=Trust.PERSON
        )
        if originals:
            least_trusted = min(originals, key=attrgetter("trust"))
            original, trust = _note_payload(least_trusted), min(typed.trust, least_trusted.trust)
            typed = typed._replace(trust=trust, kind=original.category, valence=original.valence)
        yield typed


def _note_payload(event: Event) -> NoteAdded | CrystalCreated:
    return cast("NoteAdded | CrystalCreated", event.payload)  # the notes page has no other kinds


def _word_set(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in distinctive_words(text))


def _share_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """True if one contains most of the words of the other."""
    return len(first & second) > MIN_SHARED_WORDS * min(len(first), len(second))


def _searches(events: Iterable[Event]) -> Iterator[SearchUse]:
    for event in events:
        if isinstance(event.payload, SearchRecorded):
            search = event.payload
            yield SearchUse(id=event.id, session=_session_id(event), at=event.at, query=search.query, hits=search.hits)


def _utterances(events: Iterable[Event]) -> Iterator[Utterance]:
    calls: dict[tuple[str, str], Call] = {}
    for event in giving_way(events):
        match event.payload:
            case MessageAdded(from_memory=False) as message:
                yield from _message_utterances(event, message, calls)
            case ToolObserved(tool=tool, arguments=arguments, result=result, error=error):
                tool_use = ToolUse(tool=tool, arguments=to_json(arguments), failed=error or is_failure(result))
                yield _utterance(event, "tool", to_json(result)[:_MAX_RESULT_CHARACTERS], tool_use)
            case _:
                pass


def _message_utterances(event: Event, message: MessageAdded, calls: dict[tuple[str, str], Call]) -> Iterator[Utterance]:
    content = FORMATS[message.format].read(message.wire)
    host_calls = [call for call in content.calls if not is_memory_tool(call.name)]
    calls.update(((event.stream, call.id), call) for call in host_calls)
    for result in content.results:
        if call := calls.pop((event.stream, result.id), None):
            text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
            tool_use = ToolUse(tool=call.name, arguments=call.arguments, failed=result.error or is_failure(text))
            yield _utterance(event, "tool", text[:_MAX_RESULT_CHARACTERS], tool_use)
    if content.role in ("user", "assistant") and (content.text or host_calls):
        uses = (ToolUse(tool=call.name, arguments=call.arguments) for call in host_calls)
        yield _utterance(event, content.role, content.text, *uses)


def _utterance(event: Event, role: str, text: str, *tool_uses: ToolUse) -> Utterance:
    session = _session_id(event)
    return Utterance(
        id=event.id, session=session, at=event.at, role=role, text=text, tool_uses=tool_uses, trust=event.trust
    )


def _session_id(event: Event) -> str:
    return event.stream.removeprefix(SESSION_PREFIX)
