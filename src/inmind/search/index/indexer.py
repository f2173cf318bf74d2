"""Updates the index tables from journal events.

Everything runs in one transaction of the caller. `extract`, `crystal` and `echo` decide which crystals an event
has, which are live and which are echoes; this module writes the tables.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from inmind.core.encoding import to_json, to_microseconds
from inmind.core.events.base import Event, EventId
from inmind.core.events.crystals import Consolidated, CrystalPinned, NoteWithdrawn, SearchRecorded
from inmind.core.events.dreams import DreamCommitted, DreamUndone
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted, SessionOpened
from inmind.core.paths import ANONYMOUS, owner_of
from inmind.errors import Damaged
from inmind.search.crystal import apply_event, is_searchable, live_sequence_numbers
from inmind.search.echo import is_echo, word_runs
from inmind.search.extract import (
    CONVERSATION_SERIES,
    CrystalDraft,
    MessageReader,
    SearchableMessage,
    can_echo,
    extract_crystals,
    shown_texts,
    subjects_of,
)
from inmind.search.index.record import (
    MAX_PASSAGES,
    PassageWords,
    Record,
    Tables,
    crystal_number,
    is_series_full,
    parse_crystal_id,
    passage_number,
    series_bounds,
    series_number,
)
from inmind.search.tokenize import index_words, split_passages
from inmind.store.protocol import Store

log = logging.getLogger("inmind")

_RETRACTABLE_KINDS = ("message", "note", "crystallised", "document", "left")
_RETRACTING_KINDS = ("reverted", "splice", "dream_undone", "note_withdrawn")
_LIFECYCLE_KINDS = ("searched", "dreamt", "consolidated", "frozen")

INDEXED_KINDS = ("opened", *_RETRACTABLE_KINDS, "anchor", "tail", *_RETRACTING_KINDS, *_LIFECYCLE_KINDS)
"""Kinds of events that the index reads."""

_OVERFLOW_MARK = "\x01"
_ANONYMOUS_STREAM = f"resource/{ANONYMOUS}"
"""Stream with lifecycle events for crystals of anonymous sessions.

Other streams only affect crystals of their owner."""


class Indexer:
    """Indexes events within one transaction."""

    def __init__(
        self, tables: Tables, store: Store, read_message: MessageReader, *, resource: int | None = None
    ) -> None:
        """`resource`: the owner of all these events; otherwise it is determined by their streams."""
        self._tables, self._store, self._read_message = tables, store, read_message
        self._by_name: dict[str, _Resource] = {}
        self._by_id: dict[int, _Resource] = {}
        self._single_resource = None if resource is None else self._resource_by_id(resource)
        self._owners: dict[str, _Resource] = {}
        self._series_by_name: dict[tuple[str, str], _Series] = {}
        self._reverted_streams: dict[str, datetime] = {}
        """Streams with a retraction, and its time."""
        self._crystals: list[tuple[object, ...]] = []
        self._passage_words: list[PassageWords] = []
        self._speakers: Counter[tuple[int, str]] = Counter()

    def index(self, events: Sequence[Event]) -> None:
        self._load_series({event.stream for event in events})
        for event in events:
            match event.payload:
                case SessionOpened(resource=resource):
                    self._owners[event.stream] = self._single_resource or self._resource(
                        owner_of(event.stream, resource)
                    )
                    self._series(event.stream, CONVERSATION_SERIES)
                case Reverted() | HistorySpliced() | DreamUndone() | NoteWithdrawn():
                    self._reverted_streams[event.stream] = event.at
                case SearchRecorded() | DreamCommitted() | Consolidated() | CrystalPinned():
                    self._apply_lifecycle(event)
                case MessageAdded() as message:
                    self._extract(event, self._read_message(message))
                case _:
                    self._extract(event, None)
        for stream, at in self._reverted_streams.items():
            self._apply_reverts(stream, at)
        self._flush()

    # -- new crystals --------------------------------------------------------------------------------------

    def _extract(self, event: Event, parsed: SearchableMessage | None) -> None:
        for text in shown_texts(event, parsed):
            self._series(event.stream, CONVERSATION_SERIES).new_runs |= word_runs(text)
        for name, subject in subjects_of(event):
            series = self._series(event.stream, name)
            self._flush_crystals()
            bounds = series_bounds(series.id)
            if self._tables.rows("hide_earlier", series.resource.id, *bounds, subject, to_microseconds(event.at)):
                series.resource.hidden = 1
        for draft in extract_crystals(event, parsed):
            self._add(event, draft)

    def _add(self, event: Event, draft: CrystalDraft) -> None:
        series = self._series(event.stream, draft.series)
        texts = split_passages(draft.text)[:MAX_PASSAGES]
        echoes = self._echoes(event, texts)
        if len(echoes) == len(texts):
            return
        number, resource = crystal_number(series.id, series.length), series.resource
        words = [index_words(text) for text in texts]
        for position, passage_words in enumerate(words):
            if position not in echoes:
                passage = passage_number(number, position, words=len(passage_words))
                self._passage_words.append((resource.id, passage, list(dict.fromkeys(passage_words))))
        identity = (number, event.id, draft.part, resource.id, draft.kind, draft.source)
        origin = (event.origin.value, int(event.trust), to_microseconds(draft.at or event.at))
        speaker = (draft.role, draft.speaker, int(draft.speaker_declared))
        content = (sum(map(len, words)), series.ends_with_question, float(draft.importance), float(draft.valence))
        subject = (draft.subject, to_json(sorted(echoes)) if echoes else None)
        validity = (_to_stamp(draft.valid_from), _to_stamp(draft.valid_to), _to_stamp(draft.valid_to))
        lifecycle = "consolidated" if draft.consolidated else "generated"
        self._crystals.append((*identity, *origin, *speaker, *content, *subject, *validity, lifecycle))
        series.length, series.ends_with_question = series.length + 1, int(draft.text.rstrip().endswith(("?", "？")))
        resource.passages += len(texts) - len(echoes)
        if draft.speaker:
            self._speakers[resource.id, draft.speaker] += 1

    def _echoes(self, event: Event, texts: Sequence[str]) -> set[int]:
        """Return the positions of passages that only repeat what memory has shown."""
        if not can_echo(event):
            return set()
        series = self._series(event.stream, CONVERSATION_SERIES)
        if not series.has_shown and not series.new_runs:
            return set()
        runs = [word_runs(text) for text in texts]
        all_runs = set[int]().union(*runs)
        shown_runs = series.new_runs & all_runs
        if series.has_shown and (other_runs := all_runs - shown_runs):
            parameters = (series.resource.id, series.id, sorted(other_runs))
            shown_runs |= {run for (run,) in self._tables.rows("find_shown_runs", *parameters)}
        return {index for index, text in enumerate(texts) if is_echo(text, runs[index] & shown_runs)}

    # -- changes to crystals -------------------------------------------------------------------------------

    def _apply_lifecycle(self, event: Event) -> None:
        """Apply an access, dream, consolidation or pin to the crystals it names."""
        self._flush_crystals()
        ids, owner = _crystal_ids(event), self._owner(event.stream)
        events = sorted({event_and_part[0] for id in ids if (event_and_part := parse_crystal_id(id))})
        rows = self._tables.rows("crystals_of_events", events) if events else []
        records = {
            record.id: record
            for record in (Record(*row) for row in rows)
            if record.id in ids and (record.resource == owner.id or event.stream == _ANONYMOUS_STREAM)
        }
        before = {id: record.crystal("", "") for id, record in records.items()}
        changed: list[tuple[object, ...]] = []
        for id, record in records.items():
            updated = apply_event(before[id], event, before)
            if updated is before[id]:
                continue
            lineage = [source for source in updated.sources if source != record.event]
            used = (updated.accesses, _to_stamp(updated.accessed))
            replaced = (_to_stamp(updated.valid_to), updated.superseded_by, updated.merged_into)
            history = (to_json(lineage) if lineage else None, updated.lifecycle)
            changed.append((record.resource, record.made, *used, *replaced, *history))
            if is_searchable(updated) != is_searchable(before[id]):
                self._resource_by_id(record.resource).hidden = 1
        self._tables.execute_many("update_crystal", changed)

    def _apply_reverts(self, stream: str, at: datetime) -> None:
        """After an undo or edit: make exactly the latest live version of each subject searchable."""
        self._flush_crystals()
        try:
            kinds = (*_RETRACTABLE_KINDS, *_RETRACTING_KINDS)
            unsorted = [event for kind in kinds for event in self._store.read(stream, kind=kind)]
        except Damaged as error:
            log.warning("cannot apply a retraction in %s, retracted text may still be found: %s", stream, error)
            return
        events = sorted(unsorted, key=lambda event: event.seq)
        live = live_sequence_numbers(events)
        last: dict[str, int] = {}
        for event in events:
            if event.seq in live:
                last |= {subject: event.seq for _, subject in subjects_of(event)}
        changed: list[tuple[object, ...]] = []
        for resource, position, event, subject, gone in self._tables.rows("of_stream", f"{stream}#", f"{stream}$"):
            event_stream, seq = EventId.of(event)
            if event_stream != stream:  # a session id may contain another stream's id and "#"
                continue
            is_live = seq in live and last.get(subject, seq) == seq
            if is_live is not (gone is None):
                self._resource_by_id(resource).hidden = 1
                changed.append((resource, position, None if is_live else to_microseconds(at)))
        self._tables.execute_many("set_gone", changed)

    # -- owners and series --------------------------------------------------------------------------------

    def _load_series(self, streams: set[str]) -> None:
        """Load all series of these streams at once."""
        for stream, name, id, length, ends_with_question, has_shown, resource in self._tables.rows(
            "series_of_streams", sorted(streams)
        ):
            owner = self._resource_by_id(resource)
            series = _Series(owner, id, stream, name, length, ends_with_question, has_shown, stored_length=length)
            self._series_by_name[stream, name] = series

    def _series(self, stream: str, name: str) -> _Series:
        """Return a series with a free position; a full series continues in another one."""
        while (series := self._series_by_name.get((stream, name))) is not None and is_series_full(series.length):
            name += _OVERFLOW_MARK
        if series is None:
            resource = self._owner(stream)
            is_conversation = name.rstrip(_OVERFLOW_MARK) == CONVERSATION_SERIES and stream.startswith("session/")
            if resource.series is None:
                resource.series = int(self._tables.value("count_series", resource.id))
            resource.series += 1
            id = series_number(resource.series, conversation=is_conversation)
            series = self._series_by_name[stream, name] = _Series(resource, id, stream, name)
        return series

    def _owner(self, stream: str) -> _Resource:
        if self._single_resource is not None:
            return self._single_resource
        if stream not in self._owners:
            kind, _, name = stream.partition("/")
            conversation = self._series_by_name.get((stream, CONVERSATION_SERIES)) if kind == "session" else None
            owner = name if kind == "resource" else ""
            self._owners[stream] = conversation.resource if conversation else self._resource(owner)
        return self._owners[stream]

    def _resource(self, name: str) -> _Resource:
        if name not in self._by_name:
            row = self._tables.row("resource", name) or self._tables.rows("add_resource", name)[0]
            self._by_name[name] = self._resource_by_id(row[0])
        return self._by_name[name]

    def _resource_by_id(self, id: int) -> _Resource:
        return self._by_id.setdefault(id, _Resource(id))

    # -- writing the tables --------------------------------------------------------------------------------

    def _flush_crystals(self) -> None:
        """Write pending crystals before reading or updating the table."""
        crystals, self._crystals = self._crystals, []
        self._tables.execute_many("add_crystal", crystals)

    def _flush(self) -> None:
        self._flush_crystals()
        changed_series = [series for series in self._series_by_name.values() if series.has_changed]
        runs = [(series.resource.id, series.id, run) for series in changed_series for run in sorted(series.new_runs)]
        speakers = [(resource, speaker, messages) for (resource, speaker), messages in self._speakers.items()]
        resources = [(resource.id, resource.passages, resource.hidden) for resource in self._by_id.values()]
        tables = self._tables
        tables.execute_many("save_series", [series.row() for series in changed_series])
        tables.execute_many("add_shown_runs", runs)
        tables.add_words(self._passage_words)
        tables.execute_many("count_speaker", speakers)
        tables.execute_many("grow_resource", [row for row in resources if any(row[1:])])


@dataclass
class _Resource:
    """Pending changes of a resource."""

    id: int
    passages: int = 0
    hidden: int = 0
    series: int | None = None
    """Number of series; None until it is loaded."""


@dataclass
class _Series:
    """A series of crystals and its current length."""

    resource: _Resource
    id: int
    stream: str
    name: str
    length: int = 0
    ends_with_question: int = 0
    has_shown: int = 0
    """Memory had shown text there before these events."""
    stored_length: int = -1
    """Length in the tables; -1 if it is not stored yet."""
    new_runs: set[int] = field(default_factory=set[int])
    """Word runs that memory has shown there in these events."""

    @property
    def has_changed(self) -> bool:
        return self.length != self.stored_length or bool(self.new_runs)

    def row(self) -> tuple[object, ...]:
        has_shown = int(bool(self.has_shown or self.new_runs))
        return (self.resource.id, self.id, self.stream, self.name, self.length, self.ends_with_question, has_shown)


def _crystal_ids(event: Event) -> set[str]:
    match event.payload:
        case SearchRecorded(hits=ids) | DreamCommitted(replayed=ids):
            return set(ids)
        case Consolidated(merged=merged, superseded=superseded, expired=expired):
            return {*expired, *(id for pair in (*merged, *superseded) for id in pair)}
        case CrystalPinned(id=id):
            return {id}
        case _:
            return set()


def _to_stamp(at: datetime | None) -> int | None:
    return None if at is None else to_microseconds(at)
