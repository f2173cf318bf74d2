"""Export of a memory to a bundle while other processes write to it.

The journal is append-only and is read in batches as of one moment, without a lock. The file is written in a temporary
folder next to its place, and moved there after it was read back and checked like an import. The process holds a lock on
the folder, which ends with the process. The next writer at the same place finds the folders of killed processes
unlocked and removes them: they contain copies of private data.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, NoReturn

from inmind.core.events.base import Event
from inmind.core.events.dreams import RecordsReadPosition
from inmind.core.frozen import frozen
from inmind.core.paths import SETTINGS_STREAM
from inmind.core.text import count_noun
from inmind.errors import Damaged, InvalidInput
from inmind.memory.bundle.event_lines import encode_event_line, encode_receipt_line
from inmind.memory.bundle.extra_files import read_extra_files
from inmind.memory.bundle.reader import (
    EXTRA_PREFIX,
    JOURNAL,
    KEYS,
    MANIFEST,
    MAX_RATIO,
    MIN_OUTPUT_BYTES,
    BundleReader,
    EntryDigest,
    Manifest,
    OnProgress,
    ignore_progress,
    normalized_name,
)
from inmind.session.context import Backend
from inmind.store.file_operations import fsync_folder, translated_os_errors
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
    progress, home = watch or ignore_progress, place.home
    if not os.path.isdir(to.parent):
        raise InvalidInput(field="to", value=str(to), expected="a file in an existing folder")
    folders = (to.parent.resolve(), *to.parent.resolve().parents)
    # In the home it would become part of the export, or replace a file of it, also through a link.
    if home is not None and any(os.path.samefile(home, above) for above in folders):
        raise InvalidInput(field="to", value=str(to), expected=f"a file outside of the home {home}")
    _check_not_existing(to, overwrite=overwrite)
    with (
        translated_os_errors(to),
        staging_folder(to) as folder,
        open(part := folder / "bundle", "x+b", opener=partial(os.open, mode=0o600)) as file,
    ):
        for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            file.seek(0)
            file.truncate()
            with zipfile.ZipFile(file, "w", compression=compression) as zip, place.store.consistent_read():
                export = _Export(zip, place, resource, progress)
                export.write(now)
            # Very repetitive data would look like a zip bomb to the reader: it is stored uncompressed.
            if export.written_bytes < MIN_OUTPUT_BYTES + MAX_RATIO // 2 * file.seek(0, os.SEEK_END):
                break
        file.flush()
        os.fsync(file.fileno())
        exported = _verify(file, to, tuple(export.left_out), progress)
        _move_into_place(part, to, overwrite=overwrite)
    return exported


class _Export:
    """The zip file being written, and what it contains so far."""

    def __init__(self, zip: zipfile.ZipFile, place: Backend, resource: str, watch: OnProgress) -> None:
        self._zip, self._place, self._store, self._watch = zip, place, place.store, watch
        self._resource, self._owner = resource, resource or None
        self._entries: dict[str, EntryDigest] = {}
        self._versions: dict[str, int] = {}
        """The number of exported events of each stream."""
        self._first_events: list[Event] = []
        """First events of the streams of one resource, to find its files; empty if everything is exported."""
        self._keys = 0
        self._last_position = self._position_offset = 0
        self.written_bytes = 0
        self.left_out: list[str] = []

    def write(self, now: datetime) -> None:
        self._add(JOURNAL, self._event_lines())
        self._add(KEYS, self._receipt_lines())
        names: set[str] = set()
        for name, data in read_extra_files(self._place, self._first_events if self._owner else None):
            if data is None or normalized_name(name) in names:
                self.left_out.append(name)
            else:
                names.add(normalized_name(name))
                self._add(EXTRA_PREFIX + name, iter([data]))
        manifest = Manifest(
            made=now.isoformat(),
            by=version("inmind"),
            of=self._resource,
            streams=len(self._versions),
            events=sum(self._versions.values()),
            keys=self._keys,
            entries=self._entries,
        )
        text = json.dumps(asdict(manifest), ensure_ascii=False, indent=2)
        self._add(MANIFEST, iter([f"{text}\n".encode()]))

    def _add(self, name: str, pieces: Iterator[bytes]) -> None:
        info = zipfile.ZipInfo(name)
        info.compress_type, info.external_attr = self._zip.compression, (stat.S_IFREG | 0o600) << 16
        length, hashed = 0, hashlib.sha256()
        with self._zip.open(info, "w", force_zip64=True) as entry:
            for piece in pieces:
                length += len(piece)
                hashed.update(piece)
                entry.write(piece)
        self._entries[name] = EntryDigest(length, hashed.hexdigest())
        self.written_bytes += length

    def _event_lines(self) -> Iterator[bytes]:
        upto = self._store.last_position(owner=self._owner)
        events = self._store.events_up_to(upto, batch_size=BATCH_SIZE, owner=self._owner)
        lines: list[str] = []
        for done, (position, event) in enumerate(events, start=1):
            if event is None:
                self._raise_unreadable(self._store.stream_names("", owner=self._owner))
            if event.stream != SETTINGS_STREAM:  # settings are not exported as events: see `extra_files`
                lines.append(f"{self._encode(position, event)}\n")
            if not done % BATCH_SIZE:
                yield "".join(lines).encode()
                lines.clear()
                self._watch(min(done, upto), 2 * upto)
        yield "".join(lines).encode()
        self._watch(upto, 2 * upto)

    def _encode(self, position: int, event: Event) -> str:
        """The line of the next event. Positions increase.

        A store may return the events of one owner after those of another, with smaller positions. Then all positions of
        an owner are shifted by the same offset, including how far its dreams have read.
        """
        if event.seq == 1 and self._owner is not None:
            self._first_events.append(event)
        self._versions[event.stream] = self._versions.get(event.stream, 0) + 1
        if event.seq != self._versions[event.stream]:
            self._raise_unreadable([event.stream])
        if position + self._position_offset <= self._last_position:
            self._position_offset = self._last_position + 1 - position
        self._last_position = position + self._position_offset
        payload = event.payload
        if self._position_offset and isinstance(payload, RecordsReadPosition):
            shifted = payload.journal_position + self._position_offset
            event = replace(event, payload=replace(payload, journal_position=shifted))
        return encode_event_line(self._last_position, event)

    def _raise_unreadable(self, streams: Sequence[str]) -> NoReturn:
        """Read the streams to raise the error for the event that is damaged or of an unknown kind."""
        for stream in streams:
            self._store.read(stream)
        raise Damaged(place="the journal", reason="an event could not be read, and can be read now: export again")

    def _receipt_lines(self) -> Iterator[bytes]:
        """The keys of exported events.

        Keys that were added during the export belong to later events and are left out.
        """
        for receipt in self._receipts():
            if receipt.stream == SETTINGS_STREAM:
                continue
            if receipt.appended.last <= self._versions.setdefault(receipt.stream, 0):
                self._keys += 1
                yield f"{encode_receipt_line(receipt)}\n".encode()

    def _receipts(self) -> Iterator[Receipt]:
        if self._owner is None:
            yield from self._store.all_receipts(batch_size=BATCH_SIZE)
            return
        for stream in list(self._versions):
            yield from stream_receipts(self._store, stream)


def stream_receipts(store: Store, stream: str) -> Iterator[Receipt]:
    """All receipts of a stream."""
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
        **checked.count_streams(),
        events=bundle.manifest.events,
        keys=checked.keys,
        extra_files=sum(name.startswith(EXTRA_PREFIX) for name in bundle.manifest.entries),
        bytes=bundle.size,
        sha256=bundle.sha256(),
        left_out=left_out,
    )


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


_PREFIX = ".inmind-bundle-"
_LOCK = "lock"


@contextmanager
def staging_folder(place: Path) -> Generator[Path]:
    """A private folder, removed at the end with its contents."""
    with translated_os_errors(place):
        remove_leftovers(place)
        folder, lock = _create_locked(place.parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_leftovers(place: Path) -> None:
    """Remove the folders of processes that have ended."""
    for leftover in place.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # owned by another user, or already removed
            if leftover.lstat().st_uid == os.geteuid():
                _remove_if_unlocked(leftover)


def _create_locked(parent: Path) -> tuple[Path, int]:
    """A new folder and its lock.

    Another process may remove the folder before it is locked: then try again.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if _try_lock_if_supported(lock) and (folder / _LOCK).exists():
                return folder, lock
            os.close(lock)


def _try_lock_if_supported(lock: int) -> bool:
    """True on file systems without locks too; leftovers are never removed there."""
    try:
        return _try_lock(lock)
    except OSError:
        return True


def _remove_if_unlocked(leftover: Path) -> None:
    try:
        lock = os.open(leftover / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return leftover.rmdir()  # its process ended before it created the lock
    try:
        if _try_lock(lock):
            shutil.rmtree(leftover, ignore_errors=True)
    finally:
        os.close(lock)


def _try_lock(descriptor: int) -> bool:
    """Lock the open file, not the process as record locks do: two threads may use one place."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
