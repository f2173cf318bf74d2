"""How the index follows the journal: what each event adds to it, and what becomes of what is there.

Everything here happens within one transaction, which whoever follows has begun. Which crystals an event holds, what
stands and what is only an echo is decided in `crystals`; this puts it into tables.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from inmind.crystals.crystal import owner_of
from inmind.crystals.echo import is_echo, runs
from inmind.crystals.glean import TALK, Gleaned, Said, gleaned, may_echo, subjects, words_shown
from inmind.crystals.lifecycle import after
from inmind.crystals.passages import passages
from inmind.crystals.standing import standing
from inmind.crystals.words import words
from inmind.errors import Damaged
from inmind.journal import (
    Consolidated,
    CrystalFrozen,
    Dreamt,
    DreamUndone,
    Event,
    HistorySpliced,
    MessageAdded,
    Reverted,
    Searched,
    SessionOpened,
    microseconds,
    to_json,
)
from inmind.stores.base import Store
from inmind.stores.numbers import MOST_PASSAGES, all_of, crystal_at, is_full, passage_at
from inmind.stores.records import known
from inmind.stores.statements import named

log = logging.getLogger("inmind")

CHUNK = 120
"""Passages that are kept together under a word: as many as fit into a page of the file beside others."""

FOLLOWED = (
    "opened",
    "message",
    "splice",
    "reverted",
    "note",
    "crystallised",
    "document",
    "left",
    "anchor",
    "tail",
    "searched",
    "consolidated",
    "frozen",
    "dreamt",
    "dream_undone",
)
"""Kinds of events that deep memory takes something from."""

_MORE = "\x01"
_sql = named("index")

Read = Callable[[MessageAdded], Said]
"""How a message of any provider is read."""


class Follower:
    """Takes events in, within one transaction."""

    def __init__(self, connection: Any, store: Store, read: Read) -> None:
        self._connection, self._store, self._read = connection, store, read
        self._resources: dict[str, int] = {}
        self._owners: dict[str, int] = {}
        self._held: dict[tuple[int, str], array[int]] = {}
        """Passages that hold words, and are yet to be kept under them."""
        self._overturned: dict[str, datetime] = {}
        """Streams in which something was taken back, and when that was."""

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            match event.what:
                case SessionOpened(resource=resource):
                    self._owners[event.stream] = self._resource(owner_of(event.stream, resource))
                    self._series(event.stream, TALK)
                case Reverted() | HistorySpliced() | DreamUndone():
                    self._overturned[event.stream] = event.at
                case Searched() | Dreamt() | Consolidated() | CrystalFrozen():
                    self._befall(event)
                case MessageAdded() as message:
                    self._glean(event, self._read(message))
                case _:
                    self._glean(event, None)
        for stream, at in self._overturned.items():
            self._settle(stream, at)
        for (resource, word), numbers in self._held.items():
            self._hold(resource, word, numbers)

    def _glean(self, event: Event, said: Said | None) -> None:
        for text in words_shown(event, said):
            series = self._series(event.stream, TALK)
            for run in runs(text):
                self._connection.execute(_sql("show"), (series.id, run))
        for name, about in subjects(event):
            bounds = all_of(self._series(event.stream, name).id)
            self._connection.execute(_sql("overtake"), (*bounds, about, microseconds(event.at)))
        for found in gleaned(event, said):
            self._add(event, found)

    def _add(self, event: Event, found: Gleaned) -> None:
        series = self._series(event.stream, found.series)
        texts = passages(found.text)[:MOST_PASSAGES]
        echoes = self._echoes(event, texts)
        if len(echoes) == len(texts):
            return
        number = crystal_at(series.id, series.length)
        read = [words(text) for text in texts]
        for place, its_words in enumerate(read):
            if place not in echoes:
                passage = passage_at(number, place, words=len(its_words))
                for word in set(its_words):
                    self._held.setdefault((series.resource, word), array("q")).append(passage)
        self._connection.execute(
            _sql("add_crystal"),
            (
                number,
                event.id,
                found.part,
                series.resource,
                found.kind,
                found.source,
                event.origin.value,
                int(event.trust),
                microseconds(found.at or event.at),
                found.role,
                found.speaker,
                int(found.named),
                sum(map(len, read)),
                series.asks,
                found.importance,
                found.valence,
                found.about,
                to_json(sorted(echoes)) if echoes else None,
                _stamp(found.valid_from),
                _stamp(found.valid_to),
                _stamp(found.valid_to),
                "consolidated" if found.consolidated else "generated",
            ),
        )
        asks = found.text.rstrip().endswith(("?", "？"))
        self._connection.execute(_sql("grow_series"), (series.id, series.length + 1, asks))
        self._connection.execute(_sql("grow_resource"), (series.resource, len(texts) - len(echoes)))
        if found.speaker:
            self._connection.execute(_sql("count_speaker"), (series.resource, found.speaker))

    def _hold(self, resource: int, word: str, numbers: array[int]) -> None:
        """Keep the numbers of passages under a word that they hold, behind those that are there."""
        last = self._connection.execute(_sql("last_chunk"), (resource, word)).fetchone()
        chunk, length = (last[0], last[1] // numbers.itemsize) if last else (0, 0)
        while numbers:
            if length >= CHUNK:
                chunk, length = chunk + 1, 0
            room = CHUNK - length
            self._connection.execute(_sql("hold"), (resource, word, chunk, numbers[:room].tobytes()))
            numbers, length = numbers[room:], CHUNK

    def _echoes(self, event: Event, texts: Sequence[str]) -> set[int]:
        """Places of those passages that only say what memory has shown."""
        if not may_echo(event):
            return set()
        series = self._series(event.stream, TALK)
        if not self._connection.execute(_sql("anything_shown"), (series.id,)).fetchone():
            return set()
        found = (
            {run for run in runs(text) if self._connection.execute(_sql("is_shown"), (series.id, run)).fetchone()}
            for text in texts
        )
        return {place for place, (text, shown) in enumerate(zip(texts, found, strict=True)) if is_echo(text, shown)}

    def _befall(self, event: Event) -> None:
        """What happens to crystals: found, dreamt of, consolidated, frozen."""
        records = {id: record for id in _named(event) if (record := known(self._connection, id)) is not None}
        before = {id: record.crystal("", "") for id, record in records.items()}
        for id, record in records.items():
            then = after(before[id], event, before)
            if then is not before[id]:
                lineage = [source for source in then.sources if source != record.event]
                self._connection.execute(
                    _sql("after_crystal"),
                    (
                        record.made,
                        then.accesses,
                        _stamp(then.accessed),
                        _stamp(then.valid_to),
                        then.superseded_by,
                        then.merged_into,
                        to_json(lineage) if lineage else None,
                        then.lifecycle,
                    ),
                )

    def _settle(self, stream: str, at: datetime) -> None:
        """After an undo, or an edit: the last word on everything that stands in this stream is found, nothing else."""
        try:
            read = [event for kind in _STANDING for event in self._store.read(stream, kind=kind)]
        except Damaged as error:
            log.warning("what was taken back in %s may still be found: %s", stream, error)
            return
        events = sorted(read, key=lambda event: event.seq)
        stands = standing(events)
        last: dict[str, int] = {}
        for event in events:
            if event.seq in stands:
                last |= {about: event.seq for _, about in subjects(event)}
        rows = self._connection.execute(_sql("of_stream"), (f"{stream}#", f"{stream}$")).fetchall()
        for made, event, about in rows:
            of, _, number = event.rpartition("#")
            if of == stream:  # a session may be called like another and what stands behind its "#"
                seq = int(number)
                found = seq in stands and last.get(about, seq) == seq
                self._connection.execute(_sql("stand"), (made, None if found else microseconds(at)))

    def _series(self, stream: str, name: str) -> _Series:
        """Where the next of a series comes; a series that has no place left goes on in another."""
        found = self._connection.execute(_sql("series"), (stream, name)).fetchone()
        if found is not None and is_full(found[2]):
            return self._series(stream, f"{name}{_MORE}")
        if found is not None:
            return _Series(*found)
        resource = self._owner(stream)
        talk = name.rstrip(_MORE) == TALK and stream.startswith("session/")
        number = self._connection.execute(_sql("add_series"), (stream, name, resource, int(talk))).get
        return _Series(number, resource, 0, 0)

    def _owner(self, stream: str) -> int:
        if stream not in self._owners:
            kind, _, name = stream.partition("/")
            row = self._connection.execute(_sql("series"), (stream, TALK)).fetchone() if kind == "session" else None
            self._owners[stream] = row[1] if row else self._resource(name if kind == "resource" else "")
        return self._owners[stream]

    def _resource(self, name: str) -> int:
        if name not in self._resources:
            row = self._connection.execute(_sql("resource"), (name,)).fetchone()
            self._resources[name] = row[0] if row else self._connection.execute(_sql("add_resource"), (name,)).get
        return self._resources[name]


class _Series(NamedTuple):
    id: int
    resource: int
    length: int
    asks: int


_STANDING = ("message", "splice", "reverted", "dream_undone", "note", "crystallised", "document", "left")
"""What can be taken back, and what takes it back."""


def _named(event: Event) -> set[str]:
    match event.what:
        case Searched(found=wanted) | Dreamt(replayed=wanted):
            return set(wanted)
        case Consolidated(merged=merged, superseded=superseded, expired=expired):
            return {*expired, *(id for pair in (*merged, *superseded) for id in pair)}
        case CrystalFrozen(id=id):
            return {id}
        case _:
            return set()


def _stamp(at: datetime | None) -> int | None:
    return None if at is None else microseconds(at)
