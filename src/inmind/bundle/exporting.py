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
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, NoReturn

from inmind.bundle import manifest
from inmind.bundle.aside import aside
from inmind.bundle.bundle import Bundle, Watch
from inmind.bundle.envelope import MOST_RATIO, SLACK, twin
from inmind.bundle.kept import kept_at
from inmind.bundle.lines import line_of_event, line_of_receipt
from inmind.bundle.manifest import JOURNAL, KEPT, KEYS, MANIFEST, Entry, Manifest
from inmind.errors import Damaged, InvalidInput
from inmind.frozen import frozen
from inmind.home import RESOURCE, SESSION, SETTINGS, belongs_to
from inmind.journal import KINDS, Event
from inmind.stores.abode import Abode
from inmind.stores.base import Receipt, Store
from inmind.stores.files import sync_folder, translated

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


def export(place: Abode, to: Path, *, resource: str, now: datetime, overwrite: bool, watch: Watch) -> Exported:
    """Of one resource, or of all where none is named."""
    _refuse_home(to, place.home)
    _refuse_existing(to, overwrite=overwrite)
    with aside(to) as folder, _new(part := folder / "bundle", to) as file:
        left_out: list[str] = []
        for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            file.seek(0)
            file.truncate()
            with zipfile.ZipFile(file, "w", compression=compression) as zip, place.store.moment():
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


def _written(writing: _Writing, place: Abode, resource: str, now: datetime, watch: Watch) -> list[str]:
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
        self._resource = resource
        self.versions: dict[str, int] = {}
        self.firsts: list[Event] = []

    def takes(self, event: Event) -> bool:
        """Settings are not carried elsewhere as if they had happened there: see `kept`."""
        if event.stream == SETTINGS:
            return False
        if event.seq == 1 and self._resource in ("", belongs_to(event)):
            self.firsts.append(event)
            self.versions[event.stream] = 0
        if event.stream not in self.versions:
            return False
        self.versions[event.stream] += 1
        return True

    def of(self, store: Store) -> Sequence[str]:
        """Names of those streams; one that has keys and no events is nobody's in particular."""
        return list(self.versions) if self._resource else [one for one in store.streams("") if one != SETTINGS]


def _events(store: Store, chosen: _Chosen, watch: Watch) -> Iterator[bytes]:
    position, upto = 0, store.position()
    while position < upto:
        batch = store.since(position, kinds=tuple(KINDS), most=AT_A_TIME)
        lines: list[str] = []
        for place, event in batch:
            if place > upto:
                break
            if event is None:
                _tell_unread(store, store.streams(""))
            elif chosen.takes(event):
                lines.append(f"{line_of_event(place, event)}\n")
                if event.seq != chosen.versions[event.stream]:
                    _tell_unread(store, [event.stream])
        if lines:
            yield "".join(lines).encode()
        position = batch[-1][0] if batch else upto
        watch(min(position, upto), 2 * upto)
    for stream in chosen.of(store):  # what was passed over may be the last that its stream has
        upto = chosen.versions.get(stream, 0)
        store.read(stream, after=upto, until=upto + 1)


def _tell_unread(store: Store, streams: Sequence[str]) -> NoReturn:
    """An event was damaged, or is of a kind that a newer inmind has: whoever reads its stream is told which and why."""
    for stream in streams:
        store.read(stream)
    raise Damaged(place="the journal", reason="one of its events did not, and does now")


def _receipts(store: Store, chosen: _Chosen) -> Iterator[Receipt]:
    """Keys of what is in the bundle. One that came meanwhile stands for events that are not."""
    for stream in chosen.of(store):
        after: str | None = None
        while batch := store.receipts(stream, after=after, most=AT_A_TIME):
            after = batch[-1].key.value
            for receipt in batch:
                if receipt.appended.last <= chosen.versions.setdefault(stream, 0):
                    yield receipt


def _read_back(file: BinaryIO, to: Path, left_out: tuple[str, ...], watch: Watch) -> Exported:
    """As somebody would find it who has nothing else. What is refused here is our own doing."""
    try:
        bundle = Bundle(file)
        checked = bundle.check(lambda done, total: watch(total + done, 2 * total))
    except InvalidInput as error:
        raise Damaged(place=str(to), reason=str(error)) from error
    return Exported(
        path=to,
        sessions=sum(stream.startswith(SESSION) for stream in checked.versions),
        resources=sum(stream.startswith(RESOURCE) for stream in checked.versions),
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
        raise translated(error, to) from error


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
    sync_folder(to.parent)
