"""The index of deep memory: which passages hold a word, where they stand, and their vectors.

It follows the journal in the order in which events were stored, and is asked only after it has caught up; so whatever
was acknowledged is found, by whichever process asks. It is a file of its own, derived and deletable: one that is
damaged, of another shape, or made of another journal, is made anew.

Numbers carry what ranking needs most. A crystal's number is its row and its place there, so its neighbours are the
numbers beside it; a passage's number is its crystal's, its place there and how long it is. So a word is looked up by
reading one list of numbers, and nothing is joined.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import threading
from array import array
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from math import log2
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw

from inmind.crystals.crystal import HIDDEN, PRIVATE, Crystal, owner_of
from inmind.crystals.echo import is_echo, runs
from inmind.crystals.glean import TALK, THINGS, Gleaned, Said, gleaned, may_echo, subjects, words_shown
from inmind.crystals.lifecycle import after
from inmind.crystals.passages import passages
from inmind.crystals.standing import standing
from inmind.crystals.when import Span
from inmind.crystals.words import words
from inmind.errors import Closed, Damaged, StorageFull, StoreBusy, StoreError, UnsafeStorage
from inmind.frozen import frozen
from inmind.journal import (
    NOBODY,
    Consolidated,
    CrystalFrozen,
    Event,
    HistorySpliced,
    MessageAdded,
    Origin,
    Reverted,
    Searched,
    SessionOpened,
    Trust,
    microseconds,
    moment,
    to_json,
)
from inmind.stores.base import Store
from inmind.stores.files import create_private
from inmind.stores.fork import hold_during_fork, keep_for_ever
from inmind.stores.sqlite import is_full, set_journal_mode
from inmind.stores.statements import named

log = logging.getLogger("inmind")

VERSION = 5
"""Raised when the shape of the index changes, or what is put there: one of another version is made anew."""

AT_A_TIME = 500
"""Events that are followed in one transaction: others who want to write wait for no more than these."""

CHUNK = 120
"""Passages that are kept together under a word: as many as fit into a page of the file beside others."""
COMMON = 4_800
"""Passages that are looked at for one word, the newest of those that hold it. A word that so many hold tells little."""

MOST_SPEAKERS = 200

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
)
"""Kinds of events that deep memory takes something from."""

_PLACES, _PARTS, _LENGTHS = 20, 12, 4
_WITHIN, _GRADE = _PARTS + _LENGTHS, (1 << _LENGTHS) - 1
_MORE = "\x00"
_sql = named("index")


def crystal_of(passage: int) -> int:
    """The number of the crystal that a passage belongs to."""
    return passage >> _WITHIN


def series(passage: int) -> int:
    """What stands in order with the crystal of a passage."""
    return passage >> (_WITHIN + _PLACES)


def part_of(passage: int) -> int:
    """Which passage of its crystal it is."""
    return (passage >> _LENGTHS) & ((1 << _PARTS) - 1)


def best_passages(worth: Mapping[int, float], by_length: Callable[[float], float]) -> dict[int, tuple[float, int]]:
    """Of each crystal what its best passage is worth, and which that is. `by_length`: what its words make of that."""
    grades = [by_length(2 ** (grade / 2)) for grade in range(1 << _LENGTHS)]
    best: dict[int, tuple[float, int]] = {}
    for passage, gain in worth.items():
        one = (gain * grades[passage & _GRADE], passage)
        crystal = passage >> _WITHIN
        if crystal not in best or one > best[crystal]:
            best[crystal] = one
    return best


def conversation_of(crystal: int) -> int | None:
    """Which conversation a crystal stands in, if it does."""
    row = crystal >> _PLACES
    return row if row & 1 else None


def _passage(crystal: int, part: int, length: int) -> int:
    grade = min((1 << _LENGTHS) - 1, round(2 * log2(max(length, 1))))
    return (((crystal << _PARTS) | part) << _LENGTHS) | grade


def passages_of(record: Record, text: str) -> list[tuple[int, str]]:
    """The passages of a crystal that can be found, by their numbers, each as an embedder reads it."""
    echoes: list[int] = json.loads(record.echoes) if record.echoes else []
    speaker = record.speaker or record.role
    return [
        (_passage(record.number, part, len(words(passage))), f"{speaker}: {passage}" if speaker else passage)
        for part, passage in enumerate(passages(text)[: 1 << _PARTS])
        if part not in echoes
    ]


class Record(NamedTuple):
    """A crystal as the index has it: everything but its text."""

    made: int
    number: int
    event: str
    part: int
    resource: int
    kind: str
    source: str
    origin: str
    trust: int
    at: int
    role: str
    speaker: str
    named: int
    words: int
    answers: int
    importance: float
    valence: float
    about: str
    echoes: str | None
    gone: int | None
    accesses: int
    accessed: int | None
    valid_from: int | None
    ends: int | None
    valid_to: int | None
    superseded_by: str
    merged_into: str
    lineage: str | None
    lifecycle: str

    @property
    def id(self) -> str:
        return f"{self.event}.{self.part}" if self.part else self.event

    @property
    def found_again(self) -> bool:
        """May a search find it that looks back from now? What was merged is found as what it was merged into."""
        return self.stood() and self.lifecycle not in HIDDEN

    def stood(self, day: datetime | None = None) -> bool:
        """Is it neither taken back nor overtaken? Or was it not yet, on that day."""
        return self.gone is None or (day is not None and self.gone > microseconds(day))

    @property
    def last(self) -> datetime:
        """When it was last found, or said."""
        return moment(self.at if self.accessed is None else self.accessed)

    @property
    def path(self) -> str:
        """The page that it is part of. Things too are about something, which nobody can open."""
        return "" if self.about.startswith(f"{THINGS}/") else self.about

    def as_known(self, day: datetime, newer: Record | None) -> Record:
        """As it stood on that day: an end that came with what was said later was not in sight, a declared one was."""
        if newer is not None and newer.at <= microseconds(day):
            return self
        return self._replace(valid_to=self.ends, superseded_by="")

    def crystal(self, text: str, resource: str) -> Crystal:
        stream = self.event.rpartition("#")[0]
        return Crystal(
            id=self.id,
            text=text,
            kind=self.kind,
            source=self.source,
            resource=NOBODY if resource.startswith(PRIVATE) else resource,
            session=stream.removeprefix("session/") if stream.startswith("session/") else "",
            sources=(self.event, *(json.loads(self.lineage) if self.lineage else ())),
            origin=Origin(self.origin),
            trust=Trust(self.trust),
            at=moment(self.at),
            speaker=self.speaker if self.named else self.role,
            path=self.path,
            importance=self.importance,
            valence=self.valence,
            accesses=self.accesses,
            accessed=_moment(self.accessed),
            valid_from=_moment(self.valid_from),
            valid_to=_moment(self.valid_to),
            superseded_by=self.superseded_by,
            merged_into=self.merged_into,
            lifecycle=cast(Any, self.lifecycle),
        )


@frozen
class Scope:
    """Whose memory is asked: a resource, as the index numbers it, and how many passages it has."""

    id: int
    name: str
    passages: int
    hidden: int = 0
    """Changes whenever something of it is hidden, or found again."""


@frozen
class Holding:
    """How many passages hold a word, and the numbers of some of them."""

    count: int
    passages: Sequence[int]


Read = Callable[[MessageAdded], Said]
"""How a message of any provider is read."""


class Index:
    """The derived index of one home."""

    def __init__(self, path: Path, store: Store, read: Read, *, busy_seconds: float = 30.0) -> None:
        self.path = path
        self._store, self._read, self._busy_seconds = store, read, busy_seconds
        self._lock = threading.RLock()
        self._connection: Any = None
        self._closed = False
        self._broken = False
        """Something has read there what cannot be: it is not taken for an index again."""
        hold_during_fork(self)

    # -- following the journal -----------------------------------------------------------------------------

    def catch_up(self) -> bool:
        """Take in all that the journal has and this has not. True if there was anything."""
        any_news = False
        while self._follow():
            any_news = True
        return any_news

    def _follow(self) -> bool:
        with self._using() as connection:
            upto = connection.execute(_sql("upto")).get
            if not self._store.since(upto, kinds=FOLLOWED, most=1):
                return False
            with _transaction(connection):
                upto = connection.execute(_sql("upto")).get
                news = self._store.since(upto, kinds=FOLLOWED, most=AT_A_TIME)
                if news:
                    _Follower(connection, self._store, self._read).take(event for _, event in news if event)
                    connection.execute(_sql("follow"), _mark(*news[-1]))
            return bool(news)

    # -- asking --------------------------------------------------------------------------------------------

    def scope(self, resource: str) -> Scope | None:
        with self._using() as connection:
            row = connection.execute(_sql("resource"), (resource,)).fetchone()
        return Scope(row[0], resource, row[1], row[2]) if row else None

    def resources(self) -> list[str]:
        with self._using() as connection:
            return [name for (name,) in connection.execute(_sql("resource_names")).fetchall()]

    def holding(self, scope: Scope, word: str, *, every: bool = False) -> Holding:
        """Passages that hold a word: at most COMMON of them, the newest, unless `every` one is asked for."""
        with self._using() as connection:
            last = connection.execute(_sql("last_chunk"), (scope.id, word)).fetchone()
            if last is None:
                return Holding(0, ())
            most = last[0] + 1 if every else COMMON // CHUNK
            rows = connection.execute(_sql("holding"), (scope.id, word, most)).fetchall()
        numbers = array("q", b"".join(chunk for (chunk,) in rows))
        return Holding(last[0] * CHUNK + last[1] // numbers.itemsize, numbers)

    def hidden(self, scope: Scope) -> frozenset[int]:
        """Crystals that were taken back, overtaken or merged, or have faded."""
        with self._using() as connection:
            return frozenset(number for (number,) in connection.execute(_sql("hidden"), (scope.id,)).fetchall())

    def series_of(self, stream: str) -> frozenset[int]:
        """What of a stream stands in order: its conversation, its notes, its pages. See `series`."""
        with self._using() as connection:
            return frozenset(number for (number,) in connection.execute(_sql("series_of"), (stream,)).fetchall())

    def speakers(self, scope: Scope) -> list[str]:
        with self._using() as connection:
            return [name for (name,) in connection.execute(_sql("speakers"), (scope.id, MOST_SPEAKERS)).fetchall()]

    def records(self, numbers: Iterable[int]) -> list[Record]:
        with self._using() as connection:
            return [Record(*row) for row in connection.execute(_sql("placed"), (to_json(list(numbers)),)).fetchall()]

    def known(self, id: str) -> Record | None:
        """A crystal by its id."""
        with self._using() as connection:
            return _known(connection, id)

    def amid(self, scope: Scope, span: Span, most: int) -> list[int]:
        """Crystals that were said in a span of time, the newest first."""
        bounds = (scope.id, microseconds(span.first), microseconds(span.before), most)
        with self._using() as connection:
            return [number for (number,) in connection.execute(_sql("amid"), bounds).fetchall()]

    def written(self, scope: Scope) -> list[Record]:
        """Notes, and what dreams have found."""
        with self._using() as connection:
            return [Record(*row) for row in connection.execute(_sql("written"), (scope.id,)).fetchall()]

    def fading(self, scope: Scope, made: int, most: int) -> list[Record]:
        """What was said and may leave search, in the order in which it was taken in."""
        with self._using() as connection:
            return [Record(*row) for row in connection.execute(_sql("fading"), (scope.id, made, most)).fetchall()]

    # -- vectors -------------------------------------------------------------------------------------------

    def unembedded(self, embedder: str, most: int) -> list[Record]:
        """Crystals that an embedder has not been through yet, in their order."""
        with self._using() as connection:
            _, upto = _embedder(connection, embedder)
            return [Record(*row) for row in connection.execute(_sql("unembedded"), (upto, most)).fetchall()]

    def behind(self, embedder: str, scope: Scope, most: int) -> int:
        """How many crystals of a resource an embedder has not been through yet, of at most so many."""
        with self._using() as connection:
            _, upto = _embedder(connection, embedder)
            return connection.execute(_sql("unembedded_of"), (upto, scope.id, most)).get

    def embedded(self, embedder: str, *, upto: int, vectors: Sequence[tuple[int, int, bytes]]) -> None:
        """Keep vectors (resource, passage, numbers), and that the embedder has been through all up to a crystal."""
        with self._using() as connection, _transaction(connection):
            number, known = connection.execute(_sql("add_embedder"), (embedder,)).fetchone()
            for resource, passage, numbers in vectors:
                connection.execute(_sql("add_vector"), (number, resource, passage, numbers))
            connection.execute(_sql("embedded_upto"), (number, max(upto, known)))

    def vectors(self, embedder: str, scope: Scope, *, after: int, most: int) -> list[tuple[int, int, bytes]]:
        """Vectors (made, passage, numbers) of a resource by this embedder and no other."""
        with self._using() as connection:
            number, _ = _embedder(connection, embedder)
            return connection.execute(_sql("vectors"), (number, scope.id, after, most)).fetchall()

    def identity(self) -> bytes:
        """Of all that is here: one that was made anew is another, and numbers its rows from the beginning."""
        with self._using() as connection:
            return connection.execute(_sql("identity")).get

    def forget_others(self, embedder: str) -> None:
        """Once all is embedded anew, the vectors of embedders that came before are of no use."""
        with self._using() as connection, _transaction(connection):
            for (other,) in connection.execute(_sql("other_embedders"), (embedder,)).fetchall():
                connection.execute(_sql("drop_vectors"), (other,))
                connection.execute(_sql("drop_embedder"), (other,))

    # -- the file ------------------------------------------------------------------------------------------

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._let_go()

    @contextlib.contextmanager
    def _using(self) -> Generator[Any]:
        """The connection. Damaged with the place of this file: whoever asks starts anew, since nothing is lost."""
        with self._lock:
            if self._closed:
                raise Closed
            if self._connection is None:
                self._connection = self._connect()
            connection = self._connection
            try:
                yield connection
            except apsw.Error as error:
                raise self._translated(error, connection) from error

    def _translated(self, error: apsw.Error, connection: Any) -> StoreError:
        """Whatever else SQLite says of it, that a table is missing or a file has moved: it is no index of ours."""
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=str(self.path), seconds=self._busy_seconds)
        if is_full(error, connection):
            return StorageFull(place=str(self.path))
        return Damaged(place=str(self.path), reason=str(error))

    def _connect(self) -> Any:
        """What is no index, or not ours, is emptied, which others who have it open survive; deleted only if it must."""
        for is_last in (False, True):
            create_private(self.path)
            try:
                connection: Any = apsw.Connection(str(self.path))
            except apsw.Error as error:
                raise UnsafeStorage(place=str(self.path), reason=str(error)) from error
            try:
                connection.set_busy_timeout(int(self._busy_seconds * 1000))
                if not self._is_sound(connection):
                    _empty(connection)
                    self._set_up(connection)
                self._broken = False
                return connection
            except apsw.Error as error:
                translated = self._translated(error, connection)
                connection.close()
                if is_last or not isinstance(translated, Damaged):
                    raise translated from error
            except BaseException:
                connection.close()
                raise
            self._delete()
        raise AssertionError("the last try answers or raises")

    def _is_sound(self, connection: Any) -> bool:
        if self._broken:
            return False
        try:
            self._set_up(connection)
            if self._is_ours(connection):
                return True
            log.info("the index is of another version or journal and is made anew")
        except apsw.Error as error:
            if not isinstance(translated := self._translated(error, connection), Damaged):
                raise translated from error
            log.warning("the index is damaged and is made anew: %s", error)
        return False

    def _set_up(self, connection: Any) -> None:
        set_journal_mode(connection, place=self.path, busy_seconds=self._busy_seconds)
        for pragma, value in _PRAGMAS:
            connection.pragma(pragma, value)
        with _transaction(connection):
            if connection.pragma("user_version") == 0:
                connection.execute(_sql("schema"))
                connection.pragma("user_version", VERSION)

    def _is_ours(self, connection: Any) -> bool:
        """Of our shape, and made of this journal: the last event that it took in stands where it stood.

        A home whose journal was brought back from a copy has other events there, or none.
        """
        if connection.pragma("user_version") != VERSION:
            return False
        upto, *last = connection.execute(_sql("followed")).fetchone() or (0,)
        there = self._store.since(upto - 1, kinds=FOLLOWED, most=1) if upto else ()
        return not upto or [_mark(*one) for one in there] == [(upto, *last)]

    def start_anew(self, reason: object) -> None:
        """Let go of an index that has turned out to be damaged; the next who asks makes it again."""
        log.warning("the index is damaged and is made anew: %s", reason)
        with self._lock:
            self._let_go()
            self._broken = True

    def _delete(self) -> None:
        """What SQLite keeps beside it goes first: a new file that met an old log would be damaged by it."""
        try:
            for suffix in ("-wal", "-shm", "-journal", ""):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        except OSError as error:
            raise UnsafeStorage(place=str(self.path), reason=str(error)) from error

    def _let_go(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(apsw.Error):  # of a damaged one there is nothing to save
                self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._connection is not None and not self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):
                self._connection.close()
            self._connection = None

    def after_fork_here(self) -> None:
        self._lock.release()

    def after_fork(self) -> None:
        if self._connection is not None:
            keep_for_ever(self._connection)
            self._connection = None
        self._lock = threading.RLock()


class _Follower:
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
                    self._row(event.stream, TALK)
                case Reverted() | HistorySpliced():
                    self._overturned[event.stream] = event.at
                case Searched() | Consolidated() | CrystalFrozen():
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
            row = self._row(event.stream, TALK)
            for run in runs(text):
                self._connection.execute(_sql("show"), (row.id, run))
        for row, about in subjects(event):
            first = self._row(event.stream, row).id << _PLACES
            bounds = (first, first | ((1 << _PLACES) - 1), about, microseconds(event.at))
            self._connection.execute(_sql("overtake"), bounds)
        for found in gleaned(event, said):
            self._add(event, found)

    def _add(self, event: Event, found: Gleaned) -> None:
        row = self._row(event.stream, found.row)
        texts = passages(found.text)[: 1 << _PARTS]
        echoes = self._echoes(event, texts)
        if len(echoes) == len(texts):
            return
        number = (row.id << _PLACES) | row.length
        read = [words(text) for text in texts]
        for part, its_words in enumerate(read):
            if part not in echoes:
                passage = _passage(number, part, len(its_words))
                for word in set(its_words):
                    self._held.setdefault((row.resource, word), array("q")).append(passage)
        self._connection.execute(
            _sql("add_crystal"),
            (
                number,
                event.id,
                found.part,
                row.resource,
                found.kind,
                found.source,
                event.origin.value,
                int(event.trust),
                microseconds(found.at or event.at),
                found.role,
                found.speaker,
                int(found.named),
                sum(map(len, read)),
                row.asks,
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
        self._connection.execute(_sql("grow_series"), (row.id, row.length + 1, asks))
        self._connection.execute(_sql("grow_resource"), (row.resource, len(texts) - len(echoes)))
        if found.speaker:
            self._connection.execute(_sql("count_speaker"), (row.resource, found.speaker))

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
        row = self._row(event.stream, TALK)
        if not self._connection.execute(_sql("anything_shown"), (row.id,)).fetchone():
            return set()
        found = (
            {run for run in runs(text) if self._connection.execute(_sql("is_shown"), (row.id, run)).fetchone()}
            for text in texts
        )
        return {place for place, (text, shown) in enumerate(zip(texts, found, strict=True)) if is_echo(text, shown)}

    def _befall(self, event: Event) -> None:
        """What happens to crystals: found, consolidated, frozen."""
        records = {id: record for id in _named(event) if (record := _known(self._connection, id)) is not None}
        known = {id: record.crystal("", "") for id, record in records.items()}
        for id, record in records.items():
            then = after(known[id], event, known)
            if then is not known[id]:
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

    def _row(self, stream: str, name: str) -> _Row:
        """Where the next of a series comes; a series that has no place left goes on in another."""
        found = self._connection.execute(_sql("series"), (stream, name)).fetchone()
        if found is not None and found[2] >> _PLACES:
            return self._row(stream, f"{name}{_MORE}")
        if found is not None:
            return _Row(*found)
        resource = self._owner(stream)
        talk = name.rstrip(_MORE) == TALK and stream.startswith("session/")
        number = self._connection.execute(_sql("add_series"), (stream, name, resource, int(talk))).get
        return _Row(number, resource, 0, 0)

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


class _Row(NamedTuple):
    id: int
    resource: int
    length: int
    asks: int


_STANDING = ("message", "splice", "reverted", "note", "crystallised", "document", "left")
"""What can be taken back, and what takes it back."""

_PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("synchronous", "normal"),
    ("trusted_schema", False),
    ("secure_delete", True),
    ("journal_size_limit", 4_194_304),
)
"""A power cut may take the last of it: it is made of the journal, which is asked again."""


@contextlib.contextmanager
def _transaction(connection: Any) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(apsw.Error):
                connection.execute("ROLLBACK")
        raise


def _empty(connection: Any) -> None:
    """SQLite's own way to begin again in a file that may hold anything."""
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    try:
        connection.execute("VACUUM")
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)


_ID = re.compile(r"([^\ud800-\udfff]*#[0-9]{1,18})(?:\.([1-9][0-9]{0,8}))?")


def _mark(position: int, event: Event | None) -> tuple[int, str, int]:
    """Where the journal was followed to, and by which event that can be known again."""
    return (position, event.id, microseconds(event.at)) if event else (position, "", 0)


def _known(connection: Any, id: str) -> Record | None:
    """By its id: that of its event, and of a part the number behind a full stop."""
    named = _ID.fullmatch(id)
    row = connection.execute(_sql("known"), (named[1], int(named[2] or 0))).fetchone() if named else None
    return Record(*row) if row else None


def _named(event: Event) -> set[str]:
    match event.what:
        case Searched(found=found):
            return set(found)
        case Consolidated(merged=merged, superseded=superseded, expired=expired):
            return {*expired, *(id for pair in (*merged, *superseded) for id in pair)}
        case CrystalFrozen(id=id):
            return {id}
        case _:
            return set()


def _embedder(connection: Any, name: str) -> tuple[int, int]:
    """Its number, and how far it is; one that has embedded nothing yet has none."""
    return connection.execute(_sql("embedder"), (name,)).fetchone() or (0, 0)


def _stamp(at: datetime | None) -> int | None:
    return None if at is None else microseconds(at)


def _moment(stamp: int | None) -> datetime | None:
    return None if stamp is None else moment(stamp)
