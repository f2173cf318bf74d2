"""A memory, written down as a bundle while others go on writing to it.

The journal only grows, and is read piece by piece as it was at one moment; no lock is held meanwhile. Before it gets
its name, what was written is read back and checked as an import would.
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
from inmind.core.streams import RESOURCE_PREFIX, SESSION_PREFIX, SETTINGS_STREAM
from inmind.errors import Damaged, InvalidInput
from inmind.memory.bundle import manifest
from inmind.memory.bundle.event_lines import line_of_event, line_of_receipt
from inmind.memory.bundle.extra_files import kept_at
from inmind.memory.bundle.manifest import JOURNAL, KEPT, KEYS, MANIFEST, Entry, Manifest
from inmind.memory.bundle.reader import Bundle, Watch
from inmind.memory.bundle.staging import aside
from inmind.memory.bundle.zip_reader import MOST_RATIO, SLACK, twin
from inmind.session.backend import Backend
from inmind.store.file_operations import fsync_folder, translate_os_error
from inmind.store.protocol import Receipt, Store

AT_A_TIME = 1_000


@frozen(kw_only=True)
class Exported:
    """What a bundle has, as it was read back."""

    path: Path
    sessions: int
    resources: int
    events: int
    keys: int
    kept: int
    """Files beside the journal."""
    bytes: int
    sha256: str
    left_out: tuple[str, ...] = ()
    """Files that could not be taken along: too large, or not to be told from another by every disk."""


def export(place: Backend, to: Path, *, resource: str, now: datetime, overwrite: bool, watch: Watch) -> Exported:
    """Of one resource, or of all where none is named."""
    _refuse_home(to, place.home)
    _refuse_existing(to, overwrite=overwrite)
    with aside(to) as folder, _new(part := folder / "bundle", to) as file:
        left_out: list[str] = []
        for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            file.seek(0)
            file.truncate()
            with zipfile.ZipFile(file, "w", compression=compression) as zip, place.store.consistent_read():
                writing = _Writing(zip)
                left_out = _written(writing, place, resource, now, watch)
            # What repeats itself without end would be taken for a bomb, and is written as it is.
            if writing.came < SLACK + MOST_RATIO // 2 * file.seek(0, os.SEEK_END):
                break
        file.flush()
        os.fsync(file.fileno())
        exported = _read_back(file, to, tuple(left_out), watch)
        _name(part, to, overwrite=overwrite)
    return exported


class _Writing:
    """A zip on its way, which knows the length and the hash of what it has."""

    def __init__(self, zip: zipfile.ZipFile) -> None:
        self._zip = zip
        self.entries: dict[str, Entry] = {}
        self.came = 0

    def add(self, name: str, pieces: Iterator[bytes]) -> None:
        info = zipfile.ZipInfo(name)
        info.compress_type, info.external_attr = self._zip.compression, (stat.S_IFREG | 0o600) << 16
        length, hashed = 0, hashlib.sha256()
        with self._zip.open(info, "w", force_zip64=True) as entry:
            for piece in pieces:
                length += len(piece)
                hashed.update(piece)
                entry.write(piece)
        self.entries[name] = Entry(length, hashed.hexdigest())
        self.came += length


def _written(writing: _Writing, place: Backend, resource: str, now: datetime, watch: Watch) -> list[str]:
    store, chosen = place.store, _Chosen(resource)
    keys = 0

    def receipts() -> Iterator[bytes]:
        nonlocal keys
        for receipt in _receipts(store, chosen):
            keys += 1
            yield f"{line_of_receipt(receipt)}\n".encode()

    writing.add(JOURNAL, _events(store, chosen, watch))
    writing.add(KEYS, receipts())
    left_out: list[str] = []
    names: set[str] = set()
    for name, data in kept_at(place, chosen.firsts if resource else None):
        if data is None or twin(name) in names:
            left_out.append(name)
        else:
            names.add(twin(name))
            writing.add(KEPT + name, iter([data]))
    told = Manifest(
        made=now.isoformat(),
        by=version("inmind"),
        of=resource,
        streams=len(chosen.versions),
        events=sum(chosen.versions.values()),
        keys=keys,
        entries=dict(writing.entries),
    )
    writing.add(MANIFEST, iter([manifest.written(told)]))
    return left_out


class _Chosen:
    """Streams that are wanted, and how far they go."""

    def __init__(self, resource: str) -> None:
        self.owner = resource or None
        self.versions: dict[str, int] = {}
        self.firsts: list[Event] = []
        """Of one resource's: only that one's files are looked for by them."""

    def takes(self, event: Event) -> bool:
        """Settings are not carried elsewhere as if they had happened there: see `kept`."""
        if event.stream == SETTINGS_STREAM:
            return False
        if event.seq == 1 and self.owner is not None:
            self.firsts.append(event)
        self.versions[event.stream] = self.versions.get(event.stream, 0) + 1
        return True


class _Places:
    """Places in a bundle grow from line to line. A store may tell of one owner behind the other: then an owner's events
    are moved behind those before them, all by as much, and so is how far its dreams have read."""

    def __init__(self) -> None:
        self._last = 0
        self._moved = 0

    def line_of(self, position: int, event: Event) -> str:
        if position + self._moved <= self._last:
            self._moved = self._last + 1 - position
        self._last = position + self._moved
        if self._moved and isinstance(event.payload, RecordsReadPosition):
            event = replace(
                event, payload=replace(event.payload, journal_position=event.payload.journal_position + self._moved)
            )
        return line_of_event(self._last, event)


def _events(store: Store, chosen: _Chosen, watch: Watch) -> Iterator[bytes]:
    upto, places = store.last_position(owner=chosen.owner), _Places()
    lines: list[str] = []
    for done, (position, event) in enumerate(
        store.events_up_to(upto, batch_size=AT_A_TIME, owner=chosen.owner), start=1
    ):
        if event is None:
            _tell_unread(store, store.stream_names("", owner=chosen.owner))
        if chosen.takes(event):
            lines.append(f"{places.line_of(position, event)}\n")
            if event.seq != chosen.versions[event.stream]:
                _tell_unread(store, [event.stream])
        if not done % AT_A_TIME:
            yield "".join(lines).encode()
            lines.clear()
            watch(min(done, upto), 2 * upto)
    yield "".join(lines).encode()
    watch(upto, 2 * upto)


def _tell_unread(store: Store, streams: Sequence[str]) -> NoReturn:
    """An event was damaged, or is of a kind that a newer inmind has: whoever reads its stream is told which and why."""
    for stream in streams:
        store.read(stream)
    raise Damaged(place="the journal", reason="one of its events did not, and does now")


def _receipts(store: Store, chosen: _Chosen) -> Iterator[Receipt]:
    """Keys of what is in the bundle. One that came meanwhile stands for events that are not; one of a stream without
    events is nobody's in particular."""
    found = (
        store.all_receipts(batch_size=AT_A_TIME) if chosen.owner is None else _receipts_of(store, list(chosen.versions))
    )
    for receipt in found:
        if receipt.stream != SETTINGS_STREAM and receipt.appended.last <= chosen.versions.setdefault(receipt.stream, 0):
            yield receipt


def _receipts_of(store: Store, streams: Sequence[str]) -> Iterator[Receipt]:
    for stream in streams:
        after: str | None = None
        while batch := store.receipts(stream, after=after, limit=AT_A_TIME):
            after = batch[-1].key.value
            yield from batch


def _read_back(file: BinaryIO, to: Path, left_out: tuple[str, ...], watch: Watch) -> Exported:
    """As somebody would find it who has nothing else. What is refused here is our own doing."""
    try:
        bundle = Bundle(file)
        checked = bundle.check(lambda done, total: watch(total + done, 2 * total))
    except InvalidInput as error:
        raise Damaged(place=str(to), reason=str(error)) from error
    return Exported(
        path=to,
        sessions=sum(stream.startswith(SESSION_PREFIX) for stream in checked.versions),
        resources=sum(stream.startswith(RESOURCE_PREFIX) for stream in checked.versions),
        events=bundle.manifest.events,
        keys=checked.keys,
        kept=sum(name.startswith(KEPT) for name in bundle.manifest.entries),
        bytes=bundle.size,
        sha256=bundle.sha256(),
        left_out=left_out,
    )


def _refuse_home(to: Path, home: Path | None) -> None:
    """No place in a home itself, by whichever way: there it would be among what it is made of, or take its place."""
    if not os.path.isdir(to.parent):
        raise InvalidInput(field="to", value=str(to), expected="a file in a folder that is there")
    folder = to.parent.resolve()
    if home is not None and any(os.path.samefile(home, above) for above in (folder, *folder.parents)):
        raise InvalidInput(field="to", value=str(to), expected=f"a file outside of the home {home}")


def _refuse_existing(to: Path, *, overwrite: bool) -> None:
    try:
        there = os.lstat(to)
    except OSError:
        return
    if not stat.S_ISREG(there.st_mode):
        raise InvalidInput(field="to", value=str(to), expected="a new file, not a folder, a link or a device")
    if not overwrite:
        raise _occupied(to)


def _occupied(to: Path) -> InvalidInput:
    expected = "a file that is not there yet, unless told to overwrite it (--force)"
    return InvalidInput(field="to", value=str(to), expected=expected)


@contextmanager
def _new(part: Path, to: Path) -> Generator[BinaryIO]:
    """For the owner alone."""
    try:
        with open(part, "x+b", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            yield file
    except OSError as error:
        raise translate_os_error(error, to) from error


def _name(part: Path, to: Path, *, overwrite: bool) -> None:
    """By a link where nothing may be overwritten: a rename would, if somebody was quicker."""
    if overwrite:
        os.rename(part, to)
    else:
        try:
            os.link(part, to)
        except FileExistsError as error:
            raise _occupied(to) from error
        except OSError:  # not every file system has links
            _refuse_existing(to, overwrite=False)
            os.rename(part, to)
    fsync_folder(to.parent)
