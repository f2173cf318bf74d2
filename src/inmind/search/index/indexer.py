"""How the index follows the journal: what each event adds to it, and what becomes of what is there.

Everything here happens within one transaction, which whoever follows has begun. Which crystals an event holds, what
stands and what is only an echo is decided in `crystals`; this puts it into tables.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from inmind.core.encoding import to_json
from inmind.core.events.base import Event
from inmind.core.events.crystals import Consolidated, CrystalPinned, SearchRecorded
from inmind.core.events.dreams import DreamCommitted, DreamUndone
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted, SessionOpened
from inmind.core.streams import ANONYMOUS, owner_of
from inmind.core.timestamps import to_microseconds
from inmind.errors import Damaged
from inmind.search.echo import is_echo, runs
from inmind.search.extract import TALK, Gleaned, Said, gleaned, may_echo, subjects, words_shown
from inmind.search.index.ids import MOST_PASSAGES, all_of, crystal_at, is_full, next_series, passage_at
from inmind.search.index.record import Record, named_by
from inmind.search.index.tables import Held, Tables
from inmind.search.lifecycle import after, alive
from inmind.search.live_events import standing
from inmind.search.passages import passages
from inmind.search.tokenize import words
from inmind.store.protocol import Store

log = logging.getLogger("inmind")

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
_NOBODYS = f"resource/{ANONYMOUS}"
"""The stream that says what becomes of crystals of sessions that are nobody's; any other names its owner's own."""


Read = Callable[[MessageAdded], Said]
"""How a message of any provider is read."""


class Follower:
    """Takes events in, within one transaction."""

    def __init__(self, tables: Tables, store: Store, read: Read, *, resource: int | None = None) -> None:
        """`resource`: whose events these all are; else it is told by the streams that they stand in."""
        self._tables, self._store, self._read = tables, store, read
        self._by_name: dict[str, _Resource] = {}
        self._by_number: dict[int, _Resource] = {}
        self._only = None if resource is None else self._numbered(resource)
        self._owners: dict[str, _Resource] = {}
        self._known: dict[tuple[str, str], _Series] = {}
        self._overturned: dict[str, datetime] = {}
        """Streams in which something was taken back, and when that was."""
        self._crystals: list[tuple[object, ...]] = []
        self._held: list[Held] = []
        self._speakers: Counter[tuple[int, str]] = Counter()

    def take(self, events: Sequence[Event]) -> None:
        self._meet({event.stream for event in events})
        for event in events:
            match event.payload:
                case SessionOpened(resource=resource):
                    self._owners[event.stream] = self._only or self._resource(owner_of(event.stream, resource))
                    self._series(event.stream, TALK)
                case Reverted() | HistorySpliced() | DreamUndone():
                    self._overturned[event.stream] = event.at
                case SearchRecorded() | DreamCommitted() | Consolidated() | CrystalPinned():
                    self._befall(event)
                case MessageAdded() as message:
                    self._glean(event, self._read(message))
                case _:
                    self._glean(event, None)
        for stream, at in self._overturned.items():
            self._settle(stream, at)
        self._keep()

    # -- what an event holds -------------------------------------------------------------------------------

    def _glean(self, event: Event, said: Said | None) -> None:
        for text in words_shown(event, said):
            self._series(event.stream, TALK).shown |= runs(text)
        for name, about in subjects(event):
            series = self._series(event.stream, name)
            self._keep_crystals()
            bounds = all_of(series.id)
            if self._tables.rows("overtake", series.resource.id, *bounds, about, to_microseconds(event.at)):
                series.resource.hidden = 1
        for found in gleaned(event, said):
            self._add(event, found)

    def _add(self, event: Event, found: Gleaned) -> None:
        series = self._series(event.stream, found.series)
        texts = passages(found.text)[:MOST_PASSAGES]
        echoes = self._echoes(event, texts)
        if len(echoes) == len(texts):
            return
        number, resource = crystal_at(series.id, series.length), series.resource
        read = [words(text) for text in texts]
        for place, its_words in enumerate(read):
            if place not in echoes:
                passage = passage_at(number, place, words=len(its_words))
                self._held.append(Held(resource.id, passage, list(dict.fromkeys(its_words))))
        self._crystals.append(
            (
                number,
                event.id,
                found.part,
                resource.id,
                found.kind,
                found.source,
                event.origin.value,
                int(event.trust),
                to_microseconds(found.at or event.at),
                found.role,
                found.speaker,
                int(found.named),
                sum(map(len, read)),
                series.asks,
                float(found.importance),
                float(found.valence),
                found.about,
                to_json(sorted(echoes)) if echoes else None,
                _stamp(found.valid_from),
                _stamp(found.valid_to),
                _stamp(found.valid_to),
                "consolidated" if found.consolidated else "generated",
            )
        )
        series.length, series.asks = series.length + 1, int(found.text.rstrip().endswith(("?", "？")))
        resource.passages += len(texts) - len(echoes)
        if found.speaker:
            self._speakers[resource.id, found.speaker] += 1

    def _echoes(self, event: Event, texts: Sequence[str]) -> set[int]:
        """Places of those passages that only say what memory has shown."""
        if not may_echo(event):
            return set()
        series = self._series(event.stream, TALK)
        if not series.shows and not series.shown:
            return set()
        said = [runs(text) for text in texts]
        every = set[int]().union(*said)
        shown = series.shown & every
        if series.shows and (others := every - shown):
            asked = (series.resource.id, series.id, self._tables.listed(sorted(others)))
            shown |= {run for (run,) in self._tables.rows("are_shown", *asked)}
        return {place for place, text in enumerate(texts) if is_echo(text, said[place] & shown)}

    # -- what becomes of what is there ---------------------------------------------------------------------

    def _befall(self, event: Event) -> None:
        """What happens to crystals: found, dreamt of, consolidated, frozen."""
        self._keep_crystals()
        wanted, owner = _named(event), self._owner(event.stream)
        events = sorted({place[0] for id in wanted if (place := named_by(id))})
        rows = self._tables.rows("befallen", self._tables.listed(events)) if events else []
        records = {
            record.id: record
            for record in (Record(*row) for row in rows)
            if record.id in wanted and (record.resource == owner.id or event.stream == _NOBODYS)
        }
        before = {id: record.crystal("", "") for id, record in records.items()}
        changed: list[tuple[object, ...]] = []
        for id, record in records.items():
            then = after(before[id], event, before)
            if then is not before[id]:
                lineage = [source for source in then.sources if source != record.event]
                changed.append(
                    (
                        record.resource,
                        record.made,
                        then.accesses,
                        _stamp(then.accessed),
                        _stamp(then.valid_to),
                        then.superseded_by,
                        then.merged_into,
                        to_json(lineage) if lineage else None,
                        then.lifecycle,
                    )
                )
                if alive(then) != alive(before[id]):
                    self._numbered(record.resource).hidden = 1
        self._tables.many("after_crystal", changed)

    def _settle(self, stream: str, at: datetime) -> None:
        """After an undo, or an edit: the last word on everything that stands in this stream is found, nothing else."""
        self._keep_crystals()
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
        changed: list[tuple[object, ...]] = []
        for resource, made, event, about, gone in self._tables.rows("of_stream", f"{stream}#", f"{stream}$"):
            of, _, number = event.rpartition("#")
            if of != stream:  # a session may be called like another and what stands behind its "#"
                continue
            seq = int(number)
            found = seq in stands and last.get(about, seq) == seq
            if found is not (gone is None):
                self._numbered(resource).hidden = 1
                changed.append((resource, made, None if found else to_microseconds(at)))
        self._tables.many("stand", changed)

    # -- whose it is, and where it stands ------------------------------------------------------------------

    def _meet(self, streams: set[str]) -> None:
        """Look up all that is known of these streams at once."""
        for stream, name, id, length, asks, shows, resource in self._tables.rows(
            "series_of_streams", self._tables.listed(sorted(streams))
        ):
            owner = self._numbered(resource)
            self._known[stream, name] = _Series(owner, id, stream, name, length, asks, shows, kept=length)

    def _series(self, stream: str, name: str) -> _Series:
        """Where the next of a series comes; a series that has no place left goes on in another."""
        while (found := self._known.get((stream, name))) is not None and is_full(found.length):
            name += _MORE
        if found is None:
            resource = self._owner(stream)
            talk = name.rstrip(_MORE) == TALK and stream.startswith("session/")
            id = next_series(self._many_series(resource), talk=talk)
            found = self._known[stream, name] = _Series(resource, id, stream, name)
        return found

    def _owner(self, stream: str) -> _Resource:
        if self._only is not None:
            return self._only
        if stream not in self._owners:
            kind, _, name = stream.partition("/")
            talk = self._known.get((stream, TALK)) if kind == "session" else None
            self._owners[stream] = talk.resource if talk else self._resource(name if kind == "resource" else "")
        return self._owners[stream]

    def _resource(self, name: str) -> _Resource:
        if name not in self._by_name:
            row = self._tables.row("resource", name) or self._tables.rows("add_resource", name)[0]
            self._by_name[name] = self._numbered(row[0])
        return self._by_name[name]

    def _numbered(self, id: int) -> _Resource:
        return self._by_number.setdefault(id, _Resource(id))

    def _many_series(self, resource: _Resource) -> int:
        """How many it has, with the one that comes."""
        if resource.series is None:
            resource.series = int(self._tables.value("many_series", resource.id))
        resource.series += 1
        return resource.series

    # -- into the tables -----------------------------------------------------------------------------------

    def _keep_crystals(self) -> None:
        """Before anything is asked of those that are there."""
        crystals, self._crystals = self._crystals, []
        self._tables.many("add_crystal", crystals)

    def _keep(self) -> None:
        self._keep_crystals()
        series = [one for one in self._known.values() if one.length != one.kept or one.shown]
        for one in series:
            one.shows = int(bool(one.shows or one.shown))
        tables = self._tables
        tables.many(
            "keep_series",
            [(one.resource.id, one.id, one.stream, one.name, one.length, one.asks, one.shows) for one in series],
        )
        tables.many("show", [(one.resource.id, one.id, run) for one in series for run in sorted(one.shown)])
        tables.hold(self._held)
        tables.many("count_speaker", [(*whom, messages) for whom, messages in self._speakers.items()])
        grown = [one for one in self._by_number.values() if one.has_changed]
        tables.many("grow_resource", [(one.id, one.passages, one.hidden) for one in grown])


class _Resource:
    """How much a resource has grown."""

    def __init__(self, id: int) -> None:
        self.id = id
        self.passages = self.hidden = 0
        self.series: int | None = None
        """How many it has; None as long as nobody had to know."""

    @property
    def has_changed(self) -> bool:
        return bool(self.passages or self.hidden)


@dataclass
class _Series:
    """Where something stands in order, and how far it has come."""

    resource: _Resource
    id: int
    stream: str
    name: str
    length: int = 0
    asks: int = 0
    shows: int = 0
    """Whether memory had shown anything there before these events."""
    kept: int = -1
    """The length that the tables know; none yet."""
    shown: set[int] = field(default_factory=set[int])
    """Runs of words that memory has shown there by them."""


_STANDING = ("message", "splice", "reverted", "dream_undone", "note", "crystallised", "document", "left")
"""What can be taken back, and what takes it back."""


def _named(event: Event) -> set[str]:
    match event.payload:
        case SearchRecorded(hits=wanted) | DreamCommitted(replayed=wanted):
            return set(wanted)
        case Consolidated(merged=merged, superseded=superseded, expired=expired):
            return {*expired, *(id for pair in (*merged, *superseded) for id in pair)}
        case CrystalPinned(id=id):
            return {id}
        case _:
            return set()


def _stamp(at: datetime | None) -> int | None:
    return None if at is None else to_microseconds(at)
