"""Reading of a bundle: its zip file, its manifest, its events and keys.

`event_lines` checks each line separately. Here it is checked against the lines before it: the events of a stream are
numbered without a gap, positions in the journal increase, and stream names are valid.

The zip file is untrusted input. Its headers are not trusted. A bundle has few entries, each once, all regular files.
The length of the file limits how much may be decompressed, and that is counted while reading. So a malicious file
costs no more than reading a file of bounded length in bounded memory, before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from inmind.core.encoding import decode
from inmind.core.events.base import Event
from inmind.core.events.dreams import DreamGathered, RecordsReadPosition
from inmind.core.frozen import frozen
from inmind.core.paths import RESOURCE_PREFIX, SESSION_PREFIX, check_name
from inmind.errors import InvalidInput
from inmind.memory.bundle import extra_files
from inmind.memory.bundle.event_lines import decode_event_line, decode_receipt_line
from inmind.store.protocol import Receipt

MAX_DIRECTORY_BYTES = 8 * 1_048_576
"""Of the central directory: some ten thousand entries. The zip library holds all of it in memory."""

MAX_RATIO = 200
"""Decompressed bytes per byte of the file. Journals reach a tenth of it; an export that reaches half of it is not
compressed."""

MIN_OUTPUT_BYTES = 16 * 1_048_576
"""Decompressed bytes that are allowed for any file, however small."""

MAX_LINE_BYTES = 64 * 1_048_576
"""A message with images, larger than any provider accepts."""

CHUNK_BYTES = 262_144
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError)
"""Every error that the zip library was seen to raise for an invalid file."""


def bundle_error(entry: str, *, value: object, expected: str) -> InvalidInput:
    """The error for an invalid bundle, with the entry. It is raised before anything is written."""
    return InvalidInput(field=f"bundle {entry}" if entry else "bundle", value=value, expected=expected)


@contextmanager
def _zip_errors(name: str) -> Generator[None]:
    """Turn errors of the zip library into a bundle error with the entry."""
    try:
        yield
    except _ZIP_ERRORS as error:
        value = str(error) or type(error).__name__
        raise bundle_error(name, value=value, expected="a bundle written by `inmind export`") from error


class _ZipSource:
    """A bundle file for the zip library, with a limit for its central directory.

    The library would read one of any size into memory.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY_BYTES:
            value = f"a central directory of {size:,} bytes"
            raise bundle_error("", value=value, expected=f"at most {MAX_DIRECTORY_BYTES:,}")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _open_zip(file: BinaryIO) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(cast(BinaryIO, _ZipSource(file)))
        if archive.comment:
            raise zipfile.BadZipFile("a comment could hide another end of the archive")
    except zipfile.BadZipFile as error:
        expected = "a complete bundle written by `inmind export`"
        raise bundle_error("", value="a file that is no zip archive", expected=expected) from error
    return archive


def _checked_entries(infos: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """The entries by name, checked.

    Names must differ in more than case: some file systems would make them one file.
    """
    entries: dict[str, zipfile.ZipInfo] = {}
    folded: set[str] = set()
    for entry in infos:
        name, mode = entry.filename, entry.external_attr >> 16
        if entry.orig_filename != name or not name.isprintable():
            raise bundle_error(name, value=entry.orig_filename, expected="a printable name")
        if entry.flag_bits & _ENCRYPTED:
            raise bundle_error(name, value="an encrypted entry", expected="an unencrypted entry")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise bundle_error(name, value=f"compression {entry.compress_type}", expected="deflated or stored")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise bundle_error(name, value="a link, a folder or a device", expected="a regular file")
        if (same := normalized_name(name)) in folded:
            raise bundle_error(name, value="a second entry of this name", expected="unique names, ignoring case")
        folded.add(same)
        entries[name] = entry
    return entries


def normalized_name(name: str) -> str:
    """The name as case-insensitive file systems compare it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


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

    It keeps only a number per stream in memory. An error is raised before anything is written.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        with _zip_errors(""):
            self.size = file.seek(0, os.SEEK_END)
            self._zip = _open_zip(file)
        self._entries = _checked_entries(self._zip.infolist())
        self._output_bytes = 0
        """Decompressed bytes of the current pass over the bundle."""
        self.manifest = _decode_manifest(b"".join(self._chunks(MANIFEST, max_bytes=MAX_MANIFEST_BYTES)))
        self._check_entry_names()

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
            expected = f"{actual} streams, events and keys, as in the bundle"
            raise bundle_error(MANIFEST, value=declared, expected=expected)
        return BundleContents(versions, keys, frozenset(marks))

    def events(self) -> Iterator[tuple[int, Event]]:
        """The events in the order of the journal, each with its position.

        This starts a new pass over the bundle.
        """
        self._output_bytes = 0
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
        for name in self._entries:
            if name.startswith(EXTRA_PREFIX):
                chunks = self._verified_chunks(name, max_bytes=extra_files.MAX_EXTRA_FILE_BYTES)
                yield name.removeprefix(EXTRA_PREFIX), b"".join(chunks)

    def _lines(self, name: str) -> Iterator[bytes]:
        """The lines of an entry. Each must end with a newline and fit into MAX_LINE_BYTES."""
        partial = bytearray()
        for chunk in self._verified_chunks(name):
            *complete, last = chunk.split(b"\n")
            if complete:
                complete[0] = bytes(partial) + complete[0]
                partial.clear()
                yield from complete
            partial += last
            if len(partial) > MAX_LINE_BYTES:
                value = f"a line of more than {MAX_LINE_BYTES:,} bytes"
                raise bundle_error(name, value=value, expected="shorter lines")
        if partial:
            raise bundle_error(name, value="a last line without a newline", expected="complete lines")

    def _verified_chunks(self, name: str, *, max_bytes: int | None = None) -> Iterator[bytes]:
        """The bytes of an entry. At the end, length and hash must match the manifest."""
        declared, length, hashed = self.manifest.entries[name], 0, hashlib.sha256()
        for chunk in self._chunks(name, max_bytes=max_bytes):
            length += len(chunk)
            hashed.update(chunk)
            yield chunk
        if (length, hashed.hexdigest()) != (declared.bytes, declared.sha256):
            actual = f"{length} bytes with SHA-256 {hashed.hexdigest()}"
            raise bundle_error(name, value=actual, expected=f"{declared.bytes} with {declared.sha256}")

    def _chunks(self, name: str, *, max_bytes: int | None) -> Iterator[bytes]:
        """The bytes of an entry in chunks. An error is raised as soon as they are too many."""
        entry = self._entries.get(name)
        if entry is None:
            raise bundle_error(name, value=None, expected="an entry of this name")
        entry_bytes = 0
        with _zip_errors(name), self._zip.open(entry) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                entry_bytes += len(chunk)
                self._output_bytes += len(chunk)
                if max_bytes is not None and entry_bytes > max_bytes:
                    limit = f"{max_bytes:,} bytes"
                    raise bundle_error(name, value=f"more than {limit}", expected=f"at most {limit}")
                if self._output_bytes > MIN_OUTPUT_BYTES + MAX_RATIO * self.size:
                    size = f"{self._output_bytes:,} decompressed bytes in a file of {self.size:,}"
                    raise bundle_error(name, value=size, expected=f"at most {MAX_RATIO} times the size of the file")
                yield chunk
        if entry_bytes != entry.file_size:
            raise bundle_error(name, value=f"{entry_bytes:,} bytes", expected=f"{entry.file_size:,}, as in its header")

    def _check_entry_names(self) -> None:
        """The entries are those of the manifest, and no others than a bundle can have."""
        names, declared = set(self._entries) - {MANIFEST}, set(self.manifest.entries)
        for name in sorted((names ^ declared) | ({JOURNAL, KEYS} - names)):
            value = "missing in the manifest or in the file"
            raise bundle_error(name, value=value, expected="the entries that the manifest lists")
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
