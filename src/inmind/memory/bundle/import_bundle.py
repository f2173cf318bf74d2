"""Import of a bundle: all of it or nothing.

A stream that does not exist here is added. One that continues ours is extended. One that is equal to ours, or that ours
continues, is left unchanged. One that has diverged from ours raises BundleDiverged, and nothing is imported. So
importing the same bundle twice is the same as once.

One value in an event depends on the journal it is in: the position up to which a dream has read. It is recalculated
for this journal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from inmind.core.events import DECODE_ERRORS
from inmind.core.events.base import Event, EventId
from inmind.core.events.dreams import RecordsReadPosition
from inmind.core.events.session import SessionOpened
from inmind.core.frozen import frozen
from inmind.core.paths import RESOURCE_PREFIX, SESSION_PREFIX
from inmind.core.text import count_noun
from inmind.errors import BundleDiverged, Conflict, InmindError, InvalidInput, NotFound, StoreError
from inmind.memory.bundle.extra_files import DatabaseExtraFiles, FolderExtraFiles
from inmind.memory.bundle.reader import (
    JOURNAL,
    PROGRESS_INTERVAL_EVENTS,
    BundleContents,
    BundleReader,
    OnProgress,
    bundle_error,
    ignore_progress,
)
from inmind.session.context import Backend
from inmind.store.file_operations import open_regular_file
from inmind.store.protocol import BulkImport, Receipt, Store


@frozen(kw_only=True)
class Imported:
    """The result of an import."""

    sessions: int
    resources: int
    added: int
    """Streams that did not exist here."""
    extended: int
    """Streams that continued ours."""
    unchanged: int
    events: int
    """Number of new events."""
    keys: int
    extra_files: tuple[str, ...]
    """Files that were written besides the journal."""
    left_out: tuple[str, ...]
    """Files that were not imported: a database has no place for them."""

    def __str__(self) -> str:
        streams = f"{self.added} added, {self.extended} extended, {self.unchanged} unchanged"
        return f"imported {count_noun(self.events, 'event')}; streams: {streams}"

    missing_sources: int
    """Number of new events whose source events are neither here nor in the bundle."""
    bytes: int
    sha256: str


def open_bundle(path: Path) -> BinaryIO:
    """Open a regular file.

    Pipes and devices are refused: they cannot be read twice, or never end.
    """
    try:
        return open_regular_file(path.resolve())
    except FileNotFoundError as error:
        raise NotFound(what="bundle", name=str(path)) from error
    except OSError as error:
        expected = f"a readable bundle ({error.strerror})"
        raise InvalidInput(field="bundle", value=str(path), expected=expected) from error


def import_into(
    file: BinaryIO,
    place: Backend,
    *,
    fold: Callable[[str], object],
    only_new: bool,
    now: datetime,
    watch: OnProgress | None,
) -> Imported:
    """Import a bundle file.

    `fold` builds the state of a stream: a stream that cannot be folded is refused. The bundle is checked before the
    store is locked. It is compared with existing data inside the one transaction, in which no other process can write
    to the store.
    """
    progress = watch or ignore_progress
    bundle = BundleReader(file)
    total = 2 * bundle.manifest.events
    checked = bundle.check(lambda done, _: progress(done, total))
    hashed = bundle.sha256()
    store = place.store
    file_writer = DatabaseExtraFiles(place, now) if place.home is None else FolderExtraFiles(place.home)
    with file_writer.transaction():
        with store.bulk_import() as adoption, _refused_if_undecodable():
            for prefix in (SESSION_PREFIX, RESOURCE_PREFIX) if only_new else ():
                if any(map(store.version, store.stream_names(prefix))):
                    raise InvalidInput(field="home", value=str(place), expected="an empty home")
            importer = _EventImporter(store, adoption, checked)
            for done, (position, event) in enumerate(bundle.events(), start=1):
                importer.add(position, event)
                if not done % PROGRESS_INTERVAL_EVENTS:
                    progress(total // 2 + done, total)
            keys = sum(importer.add_receipt(receipt) for receipt in bundle.receipts())
            importer.check_dreams()
            for stream in importer.changed:
                _check_foldable(stream, fold)
            for name, data in bundle.extra_files():
                file_writer.stage(name, data, adoption)
        file_writer.publish()
    progress(total, total)
    return Imported(
        **checked.count_streams(),
        added=sum(not before for before in importer.changed.values()),
        extended=sum(before > 0 for before in importer.changed.values()),
        unchanged=len(checked.versions) - len(importer.changed),
        events=importer.events,
        keys=keys,
        extra_files=file_writer.written,
        left_out=file_writer.left_out,
        missing_sources=importer.missing_sources,
        bytes=bundle.size,
        sha256=hashed,
    )


class _EventImporter:
    """Adds events to a store, comparing each with the existing event."""

    def __init__(self, store: Store, adoption: BulkImport, checked: BundleContents) -> None:
        self._store, self._adoption, self._bundle_versions = store, adoption, checked.versions
        self._read_positions = deque(sorted(checked.read_positions))
        self._last_positions: dict[str, int] = {}
        """The last local position of each owner's events."""
        self._local_positions: dict[tuple[int, str], int] = {}
        """The local position for each read position of the bundle that was passed so far."""
        self._local_versions: dict[str, int] = {}
        """Local versions of streams that sources refer to and that the bundle does not extend."""
        self._owners: dict[str, str] = {}
        self._owners_with_new: set[str] = set()
        """Resources with new events so far."""
        self._owners_interleaved: set[str] = set()
        """Resources of which an existing event came after a new one."""
        self._owners_dreamed: set[str] = set()
        """Resources with new events of dreams."""
        self.changed: dict[str, int] = {}
        """Streams with new events, and their version before."""
        self.events = 0
        self.missing_sources = 0

    def add(self, position: int, event: Event) -> None:
        while self._read_positions and self._read_positions[0][0] < position:
            mark, stream = self._read_positions.popleft()
            self._local_positions[mark, stream] = self._last_positions.get(self._owner_of(stream), 0)
        event = self._with_local_position(event)
        try:
            adopted = self._adoption.add_event(event)
        except Conflict as error:
            difference = f"differs from the bundle from event {event.seq} on"
            raise BundleDiverged(event.stream, difference, expected=error.expected, actual=error.actual) from error
        owner = self._owner(event)
        self._last_positions[owner] = max(self._last_positions.get(owner, 0), adopted.position)
        if not adopted.is_new:
            if owner in self._owners_with_new:
                self._owners_interleaved.add(owner)
            return
        self._owners_with_new.add(owner)
        self.changed.setdefault(event.stream, event.seq - 1)
        self.events += 1
        self.missing_sources += not all(map(self._source_exists, event.sources))
        if isinstance(event.payload, RecordsReadPosition):
            self._owners_dreamed.add(owner)

    def add_receipt(self, receipt: Receipt) -> bool:
        try:
            return self._adoption.add_receipt(receipt)
        except Conflict as error:
            difference = f"has used the key {receipt.key.caller_key!r} for a different request than the bundle"
            raise BundleDiverged(receipt.stream, difference, expected=error.expected, actual=error.actual) from error

    def check_dreams(self) -> None:
        """Refuse dreams that would hide local activity.

        An imported dream has read up to a position in the journal. Local activity that it never saw would come before
        that position, and no later dream would read it.
        """
        if not self._owners_dreamed:
            return
        for owner in sorted(self._owners_dreamed & self._owners_interleaved):
            raise BundleDiverged(f"resource/{owner}", "has the same events in a different order than the bundle")
        for owner in sorted(self._owners_dreamed):
            for stream in self._store.stream_names(SESSION_PREFIX, owner=owner):
                if self._store.version(stream) > self._bundle_versions.get(stream, 0):
                    difference = f"has new dreams in the bundle and new events here, in {stream}"
                    raise BundleDiverged(f"resource/{owner}", difference)

    def _with_local_position(self, event: Event) -> Event:
        """The event with the read position that it has in this journal."""
        payload = event.payload
        if not isinstance(payload, RecordsReadPosition):
            return event
        position = self._local_positions.get((payload.journal_position, event.stream), 0)
        for existing in self._store.read(event.stream, after=event.seq - 1, until=event.seq):
            if isinstance(existing.payload, RecordsReadPosition):
                position = existing.payload.journal_position
        return replace(event, payload=replace(payload, journal_position=position))

    def _owner(self, event: Event) -> str:
        if isinstance(event.payload, SessionOpened):
            self._owners[event.stream] = event.payload.resource
        return self._owner_of(event.stream)

    def _owner_of(self, stream: str) -> str:
        return self._owners.get(stream, stream.removeprefix(RESOURCE_PREFIX))

    def _source_exists(self, source: str) -> bool:
        """True if the source event exists. Its id is stream#number, or stream#number.part."""
        event, dot, part = source.rpartition(".")
        id = EventId.parse(event if dot and part.isdecimal() else source)
        if id is None or id.seq <= self._bundle_versions.get(id.stream, 0):
            return True
        if id.stream not in self._local_versions:
            self._local_versions[id.stream] = self._store.version(id.stream)
        return id.seq <= self._local_versions[id.stream]


@contextmanager
def _refused_if_undecodable() -> Generator[None]:
    """Refuse data that passed the checks and still fails; nothing of it is kept."""
    try:
        yield
    except DECODE_ERRORS as error:
        value = f"{type(error).__name__}: {error}"
        raise bundle_error(JOURNAL, value=value, expected="events that can be imported") from error


def _check_foldable(stream: str, fold: Callable[[str], object]) -> None:
    try:
        fold(stream)
    except StoreError:
        raise
    except (InmindError, *DECODE_ERRORS) as error:
        value = f"{stream}: {type(error).__name__}: {error}"
        raise bundle_error(JOURNAL, value=value, expected="the events of a valid session or resource") from error
