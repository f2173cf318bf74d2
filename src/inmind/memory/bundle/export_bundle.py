"""Export of a memory to a bundle while other processes write to it.

The journal is append-only and is read in batches as of one moment, without a lock. The file gets its final name after
it was read back and checked like an import.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, NoReturn

from inmind.core.events.base import Event
from inmind.core.events.dreams import RecordsReadPosition
from inmind.core.frozen import frozen
from inmind.core.stream_names import RESOURCE_PREFIX, SESSION_PREFIX, SETTINGS_STREAM
from inmind.core.text import count_noun
from inmind.errors import Damaged, InvalidInput
from inmind.memory.bundle import manifest
from inmind.memory.bundle.event_lines import encode_event_line, encode_receipt_line
from inmind.memory.bundle.extra_files import read_extra_files
from inmind.memory.bundle.manifest import EXTRA_PREFIX, JOURNAL, KEYS, MANIFEST, EntryDigest, Manifest
from inmind.memory.bundle.reader import BundleReader, OnProgress, ignore_progress
from inmind.memory.bundle.staging import staging_folder
from inmind.memory.bundle.zip_reader import MAX_RATIO, MIN_OUTPUT_BYTES, normalized_name
from inmind.session.backend import Backend
from inmind.store.file_operations import fsync_folder, translate_os_error
from inmind.store.protocol import Receipt, Store

BATCH_SIZE = 1_000


@frozen(kw_only=True)
class Exported:
    """The result of an export, as read back from the bundle."""

    path: Path
    sessions: int
    resources: int
    events: int
    keys: int
    extra_files: int
    """Number of files besides the journal."""
    bytes: int
    sha256: str
    left_out: tuple[str, ...] = ()
    """Files that were not exported: too large, or with a name that some file systems cannot distinguish from another.
    """

    def __str__(self) -> str:
        owners = f"{count_noun(self.sessions, 'session')} and {count_noun(self.resources, 'resource')}"
        return f"exported {owners} with {count_noun(self.events, 'event')} to {self.path}, {self.bytes:,} bytes"


def write_bundle(
    place: Backend, to: Path, *, resource: str, now: datetime, overwrite: bool, watch: OnProgress | None
) -> Exported:
    """Export one resource, or everything if `resource` is empty."""
    progress = watch or ignore_progress
    _check_outside_home(to, place.home)
    _check_not_existing(to, overwrite=overwrite)
    with staging_folder(to) as folder, _create_private(part := folder / "bundle", to) as file:
        left_out: list[str] = []
        for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            file.seek(0)
            file.truncate()
            with zipfile.ZipFile(file, "w", compression=compression) as zip, place.store.consistent_read():
                writer = _ZipWriter(zip)
                left_out = _write_entries(writer, place, resource, now, progress)
            # Very repetitive data would look like a zip bomb to the reader: it is stored uncompressed.
            if writer.written_bytes < MIN_OUTPUT_BYTES + MAX_RATIO // 2 * file.seek(0, os.SEEK_END):
                break
        file.flush()
        os.fsync(file.fileno())
        exported = _verify(file, to, tuple(left_out), progress)
        _move_into_place(part, to, overwrite=overwrite)
    return exported


class _ZipWriter:
    """A zip file being written, with the length and hash of each entry."""

    def __init__(self, zip: zipfile.ZipFile) -> None:
        self._zip = zip
        self.entries: dict[str, EntryDigest] = {}
        self.written_bytes = 0

    def add(self, name: str, pieces: Iterator[bytes]) -> None:
        info = zipfile.ZipInfo(name)
        info.compress_type, info.external_attr = self._zip.compression, (stat.S_IFREG | 0o600) << 16
        length, hashed = 0, hashlib.sha256()
        with self._zip.open(info, "w", force_zip64=True) as entry:
            for piece in pieces:
                length += len(piece)
                hashed.update(piece)
                entry.write(piece)
        self.entries[name] = EntryDigest(length, hashed.hexdigest())
        self.written_bytes += length


def _write_entries(writer: _ZipWriter, place: Backend, resource: str, now: datetime, watch: OnProgress) -> list[str]:
    store, selection = place.store, _StreamSelection(resource)
    keys = 0

    def receipts() -> Iterator[bytes]:
        nonlocal keys
        for receipt in _receipts(store, selection):
            keys += 1
            yield f"{encode_receipt_line(receipt)}\n".encode()

    writer.add(JOURNAL, _event_lines(store, selection, watch))
    writer.add(KEYS, receipts())
    left_out: list[str] = []
    names: set[str] = set()
    for name, data in read_extra_files(place, selection.first_events if resource else None):
        if data is None or normalized_name(name) in names:
            left_out.append(name)
        else:
            names.add(normalized_name(name))
            writer.add(EXTRA_PREFIX + name, iter([data]))
    bundle_manifest = Manifest(
        made=now.isoformat(),
        by=version("inmind"),
        of=resource,
        streams=len(selection.versions),
        events=sum(selection.versions.values()),
        keys=keys,
        entries=dict(writer.entries),
    )
    writer.add(MANIFEST, iter([manifest.encode_manifest(bundle_manifest)]))
    return left_out


class _StreamSelection:
    """The exported streams, and the number of events of each."""

    def __init__(self, resource: str) -> None:
        self.owner = resource or None
        self.versions: dict[str, int] = {}
        self.first_events: list[Event] = []
        """First events of the streams of one resource, to find its files; empty if everything is exported."""

    def includes(self, event: Event) -> bool:
        """Settings are not exported as events: see `extra_files`."""
        if event.stream == SETTINGS_STREAM:
            return False
        if event.seq == 1 and self.owner is not None:
            self.first_events.append(event)
        self.versions[event.stream] = self.versions.get(event.stream, 0) + 1
        return True


class _PositionEncoder:
    """Encodes events with increasing positions.

    A store may return the events of one owner after those of another, with smaller positions. Then all positions of an
    owner are shifted by the same offset, including how far its dreams have read.
    """

    def __init__(self) -> None:
        self._last = 0
        self._offset = 0

    def encode(self, position: int, event: Event) -> str:
        if position + self._offset <= self._last:
            self._offset = self._last + 1 - position
        self._last = position + self._offset
        if self._offset and isinstance(event.payload, RecordsReadPosition):
            event = replace(
                event, payload=replace(event.payload, journal_position=event.payload.journal_position + self._offset)
            )
        return encode_event_line(self._last, event)


def _event_lines(store: Store, selection: _StreamSelection, watch: OnProgress) -> Iterator[bytes]:
    upto, places = store.last_position(owner=selection.owner), _PositionEncoder()
    lines: list[str] = []
    for done, (position, event) in enumerate(
        store.events_up_to(upto, batch_size=BATCH_SIZE, owner=selection.owner), start=1
    ):
        if event is None:
            _raise_unreadable(store, store.stream_names("", owner=selection.owner))
        if selection.includes(event):
            lines.append(f"{places.encode(position, event)}\n")
            if event.seq != selection.versions[event.stream]:
                _raise_unreadable(store, [event.stream])
        if not done % BATCH_SIZE:
            yield "".join(lines).encode()
            lines.clear()
            watch(min(done, upto), 2 * upto)
    yield "".join(lines).encode()
    watch(upto, 2 * upto)


def _raise_unreadable(store: Store, streams: Sequence[str]) -> NoReturn:
    """Read the streams to raise the error for the event that is damaged or of an unknown kind."""
    for stream in streams:
        store.read(stream)
    raise Damaged(place="the journal", reason="an event could not be read, and can be read now: export again")


def _receipts(store: Store, selection: _StreamSelection) -> Iterator[Receipt]:
    """The keys of exported events.

    Keys that were added during the export belong to later events and are left out.
    """
    receipts = (
        store.all_receipts(batch_size=BATCH_SIZE)
        if selection.owner is None
        else _receipts_of(store, list(selection.versions))
    )
    for receipt in receipts:
        if receipt.stream != SETTINGS_STREAM and receipt.appended.last <= selection.versions.setdefault(
            receipt.stream, 0
        ):
            yield receipt


def _receipts_of(store: Store, streams: Sequence[str]) -> Iterator[Receipt]:
    for stream in streams:
        after: str | None = None
        while batch := store.receipts(stream, after=after, limit=BATCH_SIZE):
            after = batch[-1].key.value
            yield from batch


def _verify(file: BinaryIO, to: Path, left_out: tuple[str, ...], watch: OnProgress) -> Exported:
    """Read the file back as an import would. An error here is a bug of the export."""
    try:
        bundle = BundleReader(file)
        checked = bundle.check(lambda done, total: watch(total + done, 2 * total))
    except InvalidInput as error:
        raise Damaged(place=str(to), reason=str(error)) from error
    return Exported(
        path=to,
        sessions=sum(stream.startswith(SESSION_PREFIX) for stream in checked.versions),
        resources=sum(stream.startswith(RESOURCE_PREFIX) for stream in checked.versions),
        events=bundle.manifest.events,
        keys=checked.keys,
        extra_files=sum(name.startswith(EXTRA_PREFIX) for name in bundle.manifest.entries),
        bytes=bundle.size,
        sha256=bundle.sha256(),
        left_out=left_out,
    )


def _check_outside_home(to: Path, home: Path | None) -> None:
    """The file must not be inside the home, not even through a link.

    It would become part of the export, or replace a file of the home.
    """
    if not os.path.isdir(to.parent):
        raise InvalidInput(field="to", value=str(to), expected="a file in an existing folder")
    folder = to.parent.resolve()
    if home is not None and any(os.path.samefile(home, above) for above in (folder, *folder.parents)):
        raise InvalidInput(field="to", value=str(to), expected=f"a file outside of the home {home}")


def _check_not_existing(to: Path, *, overwrite: bool) -> None:
    try:
        status = os.lstat(to)
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(field="to", value=str(to), expected="a new file, not a folder, a link or a device")
    if not overwrite:
        raise _exists_error(to)


def _exists_error(to: Path) -> InvalidInput:
    expected = "a new file; to replace an existing one pass overwrite=True (--force)"
    return InvalidInput(field="to", value=str(to), expected=expected)


@contextmanager
def _create_private(part: Path, to: Path) -> Generator[BinaryIO]:
    """A new file that only its owner may read."""
    try:
        with open(part, "x+b", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            yield file
    except OSError as error:
        raise translate_os_error(error, to) from error


def _move_into_place(part: Path, to: Path, *, overwrite: bool) -> None:
    """Give the file its final name.

    Without `overwrite` a hard link is used: a rename would replace a file that another process created meanwhile.
    """
    if overwrite:
        os.rename(part, to)
    else:
        try:
            os.link(part, to)
        except FileExistsError as error:
            raise _exists_error(to) from error
        except OSError:  # the file system has no hard links
            _check_not_existing(to, overwrite=False)
            os.rename(part, to)
    fsync_folder(to.parent)
