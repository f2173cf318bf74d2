"""A bundle, read: every line of it checked on its way, whoever asks for it.

What a line says is looked at by itself (`lines`), and here beside the lines before it: events are numbered without a
gap, their places in the journal grow, and whatever has a name has one that a home could have given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from inmind.core.events.base import Event
from inmind.core.events.dreams import DreamGathered, RecordsReadPosition
from inmind.core.frozen import frozen
from inmind.core.paths import checked_name
from inmind.errors import InvalidInput
from inmind.memory.bundle import extra_files, manifest
from inmind.memory.bundle.event_lines import event_of_line, receipt_of_line
from inmind.memory.bundle.manifest import JOURNAL, KEPT, KEYS, MANIFEST
from inmind.memory.bundle.refusal import refused
from inmind.memory.bundle.zip_reader import CHUNK, Envelope, lines_of
from inmind.store.protocol import Receipt

Watch = Callable[[int, int], None]
"""Told how much is done, of how much."""

TOLD_EVERY = 1_000


@frozen
class Checked:
    """What was found in a bundle that has passed."""

    versions: dict[str, int]
    """How far each stream goes."""
    keys: int
    marks: frozenset[tuple[int, str]]
    """Places of the journal that events speak of, each with their stream."""


class Bundle:
    """One file, gone through as often as somebody likes. Nothing of it is kept but a number for each stream."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._envelope = Envelope(file)
        self.manifest = manifest.read(self._envelope.whole(MANIFEST, most=manifest.MOST_BYTES))
        self._refuse_others()

    @property
    def size(self) -> int:
        return self._envelope.size

    def sha256(self) -> str:
        hashed = hashlib.sha256()
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            hashed.update(chunk)
        return hashed.hexdigest()

    def check(self, watch: Watch) -> Checked:
        """Go through all of it. Whoever comes back from here may begin to write."""
        versions: dict[str, int] = {}
        marks: set[tuple[int, str]] = set()
        for done, (_, event) in enumerate(self.events(), start=1):
            versions[event.stream] = event.seq
            if isinstance(event.payload, RecordsReadPosition):
                marks.add((event.payload.journal_position, event.stream))
            if not done % TOLD_EVERY:
                watch(done, self.manifest.events)
        keys = 0
        for receipt in self.receipts():
            keys += 1
            if receipt.appended.last > versions.setdefault(receipt.stream, 0):
                raise refused(KEYS, value=receipt, expected="keys of events that are there")
        for _ in self.kept():
            pass
        found = (len(versions), sum(versions.values()), keys)
        said = (self.manifest.streams, self.manifest.events, self.manifest.keys)
        if found != said:
            raise refused(MANIFEST, value=said, expected=f"{found} streams, events and keys, as there are")
        return Checked(versions, keys, frozenset(marks))

    def events(self) -> Iterator[tuple[int, Event]]:
        """In the order in which they were stored, each with its place there. With these it is gone through anew."""
        self._envelope.begin()
        versions: dict[str, int] = {}
        before = 0
        for number, line in enumerate(self._lines(JOURNAL), start=1):
            try:
                position, event = event_of_line(line)
                if event.stream not in versions:
                    _check_name(event.stream)
                if event.seq != versions.get(event.stream, 0) + 1:
                    raise ValueError(f"event {event.id} behind {versions.get(event.stream, 0)}")
                if position <= before:
                    raise ValueError(f"position {position} behind {before}")
                if (
                    isinstance(event.payload, RecordsReadPosition)
                    and not 0 <= event.payload.journal_position < position
                ):
                    raise ValueError(f"a dream of what comes later, up to {event.payload.journal_position}")
                if isinstance(event.payload, DreamGathered) and not 0 <= event.payload.last_seq < event.seq:
                    raise ValueError(f"a dream of what comes later, up to event {event.payload.last_seq}")
            except (ValueError, InvalidInput) as error:
                raise refused(f"{JOURNAL} line {number}", value=str(error), expected="an event") from error
            versions[event.stream], before = event.seq, position
            yield position, event

    def receipts(self) -> Iterator[Receipt]:
        for number, line in enumerate(self._lines(KEYS), start=1):
            try:
                receipt = receipt_of_line(line)
                _check_name(receipt.stream)
            except (ValueError, InvalidInput) as error:
                raise refused(f"{KEYS} line {number}", value=str(error), expected="a key") from error
            yield receipt

    def kept(self) -> Iterator[tuple[str, bytes]]:
        """Files, each with its path below a home."""
        for name in self._envelope.names:
            if name.startswith(KEPT):
                yield name.removeprefix(KEPT), b"".join(self._checked(name, most=extra_files.MOST_BYTES))

    def _lines(self, name: str) -> Iterator[bytes]:
        return lines_of(self._checked(name), name)

    def _checked(self, name: str, *, most: int | None = None) -> Iterator[bytes]:
        """The bytes of an entry; at their end they have to be those that the manifest tells of."""
        promised, length, hashed = self.manifest.entries[name], 0, hashlib.sha256()
        for chunk in self._envelope.chunks(name, most=most):
            length += len(chunk)
            hashed.update(chunk)
            yield chunk
        if (length, hashed.hexdigest()) != (promised.bytes, promised.sha256):
            found = f"{length} bytes with SHA-256 {hashed.hexdigest()}"
            raise refused(name, value=found, expected=f"{promised.bytes} with {promised.sha256}")

    def _refuse_others(self) -> None:
        """There is what the manifest tells of, and nothing that a bundle does not have."""
        names, told = set(self._envelope.names) - {MANIFEST}, set(self.manifest.entries)
        for name in sorted((names ^ told) | ({JOURNAL, KEYS} - names)):
            raise refused(name, value="in only one of the two", expected="entries as the manifest tells of them")
        for name in sorted(names - {JOURNAL, KEYS}):
            if not (name.startswith(KEPT) and extra_files.is_kept(name.removeprefix(KEPT))):
                raise refused(
                    name, value="an entry that no bundle has", expected="entries as `inmind export` makes them"
                )


def _check_name(stream: str) -> None:
    kind, _, name = stream.partition("/")
    if kind not in ("session", "resource"):
        raise ValueError(f"stream {stream!r} is neither a session's nor a resource's")
    checked_name(name, kind)
