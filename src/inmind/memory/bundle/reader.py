"""Reading of a bundle: its manifest, and its events and keys with every line checked.

`event_lines` checks each line separately. Here it is checked against the lines before it: the events of a stream are
numbered without a gap, positions in the journal increase, and stream names are valid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from inmind.core.encoding import decode
from inmind.core.events.base import Event
from inmind.core.events.dreams import DreamGathered, RecordsReadPosition
from inmind.core.frozen import frozen
from inmind.core.paths import check_name
from inmind.core.stream_names import RESOURCE_PREFIX, SESSION_PREFIX
from inmind.errors import InvalidInput
from inmind.memory.bundle import extra_files
from inmind.memory.bundle.event_lines import decode_event_line, decode_receipt_line
from inmind.memory.bundle.zip_reader import CHUNK_BYTES, ZipReader, bundle_error, iterate_lines
from inmind.store.protocol import Receipt

FORMAT = 1
"""Increased when an older inmind could not read the bundle; the older one then says so."""

MANIFEST, JOURNAL, KEYS, EXTRA_PREFIX = "manifest.json", "journal.jsonl", "keys.jsonl", "kept/"

MAX_MANIFEST_BYTES = 16 * 1_048_576

OnProgress = Callable[[int, int], None]
"""Called with the number of events done, and their total."""


def ignore_progress(_done: int, _total: int) -> None:
    """For callers that pass no callback."""


PROGRESS_INTERVAL_EVENTS = 1_000


@frozen
class EntryDigest:
    bytes: int
    sha256: str


@frozen(kw_only=True)
class Manifest:
    """The fields are the keys of manifest.json. All of it is checked against the contents."""

    made: str
    """Time of the export, in UTC."""
    by: str
    """Version of the inmind that wrote it."""
    of: str
    """The exported resource; empty for a whole home."""
    streams: int
    events: int
    keys: int
    entries: Mapping[str, EntryDigest]
    """All other entries, by name."""
    format: int = FORMAT


@frozen
class BundleContents:
    """The contents of a valid bundle."""

    versions: dict[str, int]
    """The last event number of each stream."""
    keys: int
    read_positions: frozenset[tuple[int, str]]
    """Journal positions that events of dreams refer to, each with the stream of the event."""

    def count_streams(self) -> dict[str, int]:
        """The number of sessions and of resources."""
        return {
            "sessions": sum(stream.startswith(SESSION_PREFIX) for stream in self.versions),
            "resources": sum(stream.startswith(RESOURCE_PREFIX) for stream in self.versions),
        }


class BundleReader:
    """One bundle file, which can be read several times.

    It keeps only a number per stream in memory.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._zip = ZipReader(file)
        self.manifest = _decode_manifest(self._zip.read_all(MANIFEST, max_bytes=MAX_MANIFEST_BYTES))
        self._check_entry_names()

    @property
    def size(self) -> int:
        return self._zip.size

    def sha256(self) -> str:
        hashed = hashlib.sha256()
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            hashed.update(chunk)
        return hashed.hexdigest()

    def check(self, watch: OnProgress) -> BundleContents:
        """Read and check everything. Nothing may be written before this returns."""
        versions: dict[str, int] = {}
        marks: set[tuple[int, str]] = set()
        for done, (_, event) in enumerate(self.events(), start=1):
            versions[event.stream] = event.seq
            if isinstance(event.payload, RecordsReadPosition):
                marks.add((event.payload.journal_position, event.stream))
            if not done % PROGRESS_INTERVAL_EVENTS:
                watch(done, self.manifest.events)
        keys = 0
        for receipt in self.receipts():
            keys += 1
            if receipt.appended.last > versions.setdefault(receipt.stream, 0):
                raise bundle_error(KEYS, value=receipt, expected="keys of events in this bundle")
        for _ in self.extra_files():
            pass
        actual = (len(versions), sum(versions.values()), keys)
        declared = (self.manifest.streams, self.manifest.events, self.manifest.keys)
        if actual != declared:
            raise bundle_error(
                MANIFEST, value=declared, expected=f"{actual} streams, events and keys, as in the bundle"
            )
        return BundleContents(versions, keys, frozenset(marks))

    def events(self) -> Iterator[tuple[int, Event]]:
        """The events in the order of the journal, each with its position.

        This starts a new pass over the bundle.
        """
        self._zip.reset_output()
        versions: dict[str, int] = {}
        before = 0
        for number, line in enumerate(self._lines(JOURNAL), start=1):
            try:
                position, event = decode_event_line(line)
                if event.stream not in versions:
                    _check_stream_name(event.stream)
                if event.seq != versions.get(event.stream, 0) + 1:
                    raise ValueError(f"event {event.id} after {versions.get(event.stream, 0)}")
                if position <= before:
                    raise ValueError(f"position {position} after {before}")
                if (
                    isinstance(event.payload, RecordsReadPosition)
                    and not 0 <= event.payload.journal_position < position
                ):
                    raise ValueError(f"a dream has read a later position, {event.payload.journal_position}")
                if isinstance(event.payload, DreamGathered) and not 0 <= event.payload.last_seq < event.seq:
                    raise ValueError(f"a dream has read a later event, {event.payload.last_seq}")
            except (ValueError, InvalidInput) as error:
                raise bundle_error(f"{JOURNAL} line {number}", value=str(error), expected="an event") from error
            versions[event.stream], before = event.seq, position
            yield position, event

    def receipts(self) -> Iterator[Receipt]:
        for number, line in enumerate(self._lines(KEYS), start=1):
            try:
                receipt = decode_receipt_line(line)
                _check_stream_name(receipt.stream)
            except (ValueError, InvalidInput) as error:
                raise bundle_error(f"{KEYS} line {number}", value=str(error), expected="a key") from error
            yield receipt

    def extra_files(self) -> Iterator[tuple[str, bytes]]:
        """The extra files, each with its path inside the home."""
        for name in self._zip.names:
            if name.startswith(EXTRA_PREFIX):
                yield (
                    name.removeprefix(EXTRA_PREFIX),
                    b"".join(self._verified_chunks(name, most=extra_files.MAX_EXTRA_FILE_BYTES)),
                )

    def _lines(self, name: str) -> Iterator[bytes]:
        return iterate_lines(self._verified_chunks(name), name)

    def _verified_chunks(self, name: str, *, most: int | None = None) -> Iterator[bytes]:
        """The bytes of an entry. At the end, length and hash must match the manifest."""
        declared, length, hashed = self.manifest.entries[name], 0, hashlib.sha256()
        for chunk in self._zip.chunks(name, max_bytes=most):
            length += len(chunk)
            hashed.update(chunk)
            yield chunk
        if (length, hashed.hexdigest()) != (declared.bytes, declared.sha256):
            actual = f"{length} bytes with SHA-256 {hashed.hexdigest()}"
            raise bundle_error(name, value=actual, expected=f"{declared.bytes} with {declared.sha256}")

    def _check_entry_names(self) -> None:
        """The entries are those of the manifest, and no others than a bundle can have."""
        names, declared = set(self._zip.names) - {MANIFEST}, set(self.manifest.entries)
        for name in sorted((names ^ declared) | ({JOURNAL, KEYS} - names)):
            raise bundle_error(
                name, value="missing in the manifest or in the file", expected="the entries that the manifest lists"
            )
        for name in sorted(names - {JOURNAL, KEYS}):
            if not (name.startswith(EXTRA_PREFIX) and extra_files.is_extra_file(name.removeprefix(EXTRA_PREFIX))):
                raise bundle_error(name, value="an unknown entry", expected="entries that `inmind export` writes")


def _check_stream_name(stream: str) -> None:
    kind, _, name = stream.partition("/")
    if kind not in ("session", "resource"):
        raise ValueError(f"stream {stream!r} is neither a session's nor a resource's")
    check_name(name, kind)


def _decode_manifest(data: bytes) -> Manifest:
    """Parse a manifest. A newer format is reported as such before anything else is checked."""
    try:
        values: Any = json.loads(data.decode())
        if type(values["format"]) is int and values["format"] > FORMAT:
            newer = f"format {values['format']} of inmind {values.get('by')}"
            raise bundle_error(MANIFEST, value=newer, expected=f"format {FORMAT} or older: upgrade inmind")
        return decode(Manifest, values, strict=True)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise bundle_error(MANIFEST, value=str(error), expected="the manifest of a bundle") from error
