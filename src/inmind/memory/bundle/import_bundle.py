"""A bundle, brought into a home: all of it or nothing, and what is there already is left as it is.

A stream that is not there is added; one that goes on from ours is continued; one that is the same, or that ours goes on
from, is left alone. One that has parted from ours is a conflict, and then nothing is brought in: two pasts cannot both
have happened. So the same bundle twice is the same as once.

One thing in an event belongs to the journal that it stands in: how far a dream has read. It is said anew for this one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from inmind.core.events.base import Event
from inmind.core.events.codec import DECODE_ERRORS
from inmind.core.events.dreams import RecordsReadPosition
from inmind.core.events.session import SessionOpened
from inmind.core.frozen import frozen
from inmind.core.streams import RESOURCE_PREFIX, SESSION_PREFIX
from inmind.errors import BundleDiverged, Conflict, InmindError, InvalidInput, NotFound, StoreError
from inmind.memory.bundle.extra_files import arriving_at
from inmind.memory.bundle.manifest import JOURNAL
from inmind.memory.bundle.reader import TOLD_EVERY, Bundle, Checked, Watch
from inmind.memory.bundle.refusal import refused
from inmind.session.backend import Backend
from inmind.store.file_operations import open_regular_file
from inmind.store.protocol import BulkImport, Receipt, Store


@frozen(kw_only=True)
class Imported:
    """What an import has brought, and what was there already."""

    sessions: int
    resources: int
    added: int
    """Streams that were not here."""
    extended: int
    """Streams that went on from ours."""
    unchanged: int
    events: int
    """New ones."""
    keys: int
    kept: tuple[str, ...]
    """Files that were put beside the journal."""
    left_out: tuple[str, ...]
    """Files that there is no place for: a database has none beside its journal."""
    unsourced: int
    """New events that were derived from some that are neither here nor in the bundle."""
    bytes: int
    sha256: str


def opened(path: Path) -> BinaryIO:
    """A file that somebody has named. One that could be read only once, or never ends, is none."""
    try:
        return open_regular_file(path.resolve())
    except FileNotFoundError as error:
        raise NotFound(what="bundle", name=str(path)) from error
    except OSError as error:
        why = f"a bundle that can be read ({error.strerror})"
        raise InvalidInput(field="bundle", value=str(path), expected=why) from error


def bring_in(
    file: BinaryIO,
    place: Backend,
    *,
    fold: Callable[[str], object],
    only_new: bool,
    now: datetime,
    watch: Watch,
) -> Imported:
    """`fold`: makes a stream's state, so that what could never be opened is not brought in.

    Everything is checked before the store is locked; what can only be seen beside what is there is checked before the
    end of the one transaction. While it lasts, nobody else can write to the store.
    """
    bundle = Bundle(file)
    total = 2 * bundle.manifest.events
    checked = bundle.check(lambda done, _: watch(done, total))
    hashed = bundle.sha256()
    store, placing = place.store, arriving_at(place, now)
    with placing.arriving():
        with store.bulk_import() as adoption, _refusing():
            there = (*store.stream_names(SESSION_PREFIX), *store.stream_names(RESOURCE_PREFIX)) if only_new else ()
            if any(map(store.version, there)):
                raise InvalidInput(field="home", value=str(place), expected="a home with nothing in it yet")
            arrival = _Arrival(store, adoption, checked)
            for done, (position, event) in enumerate(bundle.events(), start=1):
                arrival.take(position, event)
                if not done % TOLD_EVERY:
                    watch(total // 2 + done, total)
            keys = sum(arrival.keep(receipt) for receipt in bundle.receipts())
            arrival.refuse_double_lives()
            for stream in arrival.grown:
                _refuse_unfoldable(stream, fold)
            for name, data in bundle.kept():
                placing.lay(name, data, adoption)
        placing.name()
    watch(total, total)
    return Imported(
        sessions=sum(stream.startswith(SESSION_PREFIX) for stream in checked.versions),
        resources=sum(stream.startswith(RESOURCE_PREFIX) for stream in checked.versions),
        added=sum(not before for before in arrival.grown.values()),
        extended=sum(before > 0 for before in arrival.grown.values()),
        unchanged=len(checked.versions) - len(arrival.grown),
        events=arrival.events,
        keys=keys,
        kept=placing.placed,
        left_out=placing.left_out,
        unsourced=arrival.unsourced,
        bytes=bundle.size,
        sha256=hashed,
    )


class _Arrival:
    """Events on their way into a store, each looked at beside what stands there."""

    def __init__(self, store: Store, adoption: BulkImport, checked: Checked) -> None:
        self._store, self._adoption, self._theirs = store, adoption, checked.versions
        self._marks = deque(sorted(checked.marks))
        self._reached: dict[str, int] = {}
        """How far each owner's events go here: where those of others stand says nothing of them."""
        self._ours: dict[tuple[int, str], int] = {}
        """Where those places are here, of which the events so far could speak."""
        self._here: dict[str, int] = {}
        """How long streams are here that events speak of, and that are shorter in the bundle or not in it: no event of
        it changes that."""
        self._owners: dict[str, str] = {}
        self._new_of: set[str] = set()
        """Resources of which something new has come."""
        self._mixed: set[str] = set()
        """Those of which something that is here already came after that."""
        self._dreamt: set[str] = set()
        """Those that have dreamt, and not here."""
        self.grown: dict[str, int] = {}
        """Streams that are longer now, with their version before."""
        self.events = 0
        self.unsourced = 0

    def take(self, position: int, event: Event) -> None:
        while self._marks and self._marks[0][0] < position:
            mark, stream = self._marks.popleft()
            self._ours[mark, stream] = self._reached.get(self._owner_of(stream), 0)
        event = self._read_up_to_here(event)
        try:
            adopted = self._adoption.add_event(event)
        except Conflict as error:
            how = f"is not the same here and in the bundle from event {event.seq} on"
            raise BundleDiverged(event.stream, how, expected=error.expected, actual=error.actual) from error
        owner = self._owner(event)
        self._reached[owner] = max(self._reached.get(owner, 0), adopted.position)
        if not adopted.is_new:
            if owner in self._new_of:
                self._mixed.add(owner)
            return
        self._new_of.add(owner)
        self.grown.setdefault(event.stream, event.seq - 1)
        self.events += 1
        self.unsourced += not all(map(self._stands, event.sources))
        if isinstance(event.payload, RecordsReadPosition):
            self._dreamt.add(owner)

    def keep(self, receipt: Receipt) -> bool:
        try:
            return self._adoption.add_receipt(receipt)
        except Conflict as error:
            how = f"has the key {receipt.key.caller_key!r} for something else here than in the bundle"
            raise BundleDiverged(receipt.stream, how, expected=error.expected, actual=error.actual) from error

    def refuse_double_lives(self) -> None:
        """Dreams that come from there have read up to a place in the journal. What a resource has lived through here,
        and they never saw, would stand before it and be read by no dream any more."""
        if not self._dreamt:
            return
        for owner in sorted(self._dreamt & self._mixed):
            raise BundleDiverged(
                f"resource/{owner}", "has lived through the same in another order here than in the bundle"
            )
        for owner in sorted(self._dreamt):
            for stream in self._store.stream_names(SESSION_PREFIX, owner=owner):
                if self._store.version(stream) > self._theirs.get(stream, 0):
                    how = f"has dreamt on in the bundle, and has lived on here, in {stream}"
                    raise BundleDiverged(f"resource/{owner}", how)

    def _read_up_to_here(self, event: Event) -> Event:
        """With how far a dream has read, in this journal: up to where the same event stands, or as it says here."""
        what = event.payload
        if not isinstance(what, RecordsReadPosition):
            return event
        position = self._ours.get((what.journal_position, event.stream), 0)
        for there in self._store.read(event.stream, after=event.seq - 1, until=event.seq):
            if isinstance(there.payload, RecordsReadPosition):
                position = there.payload.journal_position
        return replace(event, payload=replace(what, journal_position=position))

    def _owner(self, event: Event) -> str:
        if isinstance(event.payload, SessionOpened):
            self._owners[event.stream] = event.payload.resource
        return self._owner_of(event.stream)

    def _owner_of(self, stream: str) -> str:
        return self._owners.get(stream, stream.removeprefix(RESOURCE_PREFIX))

    def _stands(self, source: str) -> bool:
        """Is there such an event? One is named by its stream and number, and a part of it by a number behind these."""
        stream, mark, number = source.rpartition("#")
        seq, _, _ = number.partition(".")
        if not mark or not seq.isdecimal():
            return True  # no event is meant
        if int(seq) <= self._theirs.get(stream, 0):
            return True
        if stream not in self._here:
            self._here[stream] = self._store.version(stream)
        return int(seq) <= self._here[stream]


@contextmanager
def _refusing() -> Generator[None]:
    """What no check has thought of is refused as well, and nothing of it is kept."""
    try:
        yield
    except DECODE_ERRORS as error:
        value = f"{type(error).__name__}: {error}"
        raise refused(JOURNAL, value=value, expected="events that can be taken in") from error


def _refuse_unfoldable(stream: str, fold: Callable[[str], object]) -> None:
    try:
        fold(stream)
    except StoreError:
        raise
    except (InmindError, *DECODE_ERRORS) as error:
        value = f"{stream}: {type(error).__name__}: {error}"
        raise refused(JOURNAL, value=value, expected="events that add up to a session or a resource") from error
