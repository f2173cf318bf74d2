"""The zip around a bundle, read as if an enemy had made it.

Nothing that its headers say is believed. A bundle has the few entries that a bundle has, each once, plain files all;
how much may come out of it is told by how long the file itself is, and is counted while it comes. So whatever somebody
has made costs no more than reading a file of a bounded length, in bounded memory, before anything is written.
"""

from __future__ import annotations

import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from inmind.memory.bundle.refusal import refused

MOST_DIRECTORY = 8 * 1_048_576
"""Bytes of the list of entries: some ten thousands of them. Who reads it has all of it in memory."""

MOST_RATIO = 200
"""Times its own length that may come out of a file. Journals come to a tenth of it; an exporter that gets near half of
it does not compress."""

SLACK = 16 * 1_048_576
"""Bytes that may come out of any file, however short."""

MOST_LINE = 64 * 1_048_576
"""Bytes of one line: a message with pictures in it, larger than any provider takes."""

CHUNK = 262_144
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    ValueError,
    OverflowError,
)
"""All that the library has been seen to raise where a file is not what it seems."""


class Envelope:
    """The entries of one bundle, by name."""

    def __init__(self, file: BinaryIO) -> None:
        with _reading(""):
            self.size = file.seek(0, os.SEEK_END)
            _refuse_long_directory(file, self.size)
            self._zip = zipfile.ZipFile(file)
        self._entries = _plain_entries(self._zip.infolist())
        self._came = 0

    @property
    def names(self) -> Sequence[str]:
        return list(self._entries)

    def begin(self) -> None:
        """Count anew what comes out: a bundle may be gone through more than once."""
        self._came = 0

    def chunks(self, name: str, *, most: int | None = None) -> Iterator[bytes]:
        """The bytes of an entry, as they come; refused as soon as they are too many."""
        entry = self._entries.get(name)
        if entry is None:
            raise refused(name, value=None, expected="an entry of this name")
        here = 0
        with _reading(name), self._zip.open(entry) as stream:
            while chunk := stream.read(CHUNK):
                here += len(chunk)
                self._came += len(chunk)
                if most is not None and here > most:
                    raise refused(name, value=f"more than {most:,} bytes", expected=f"at most {most:,} bytes")
                if self._came > SLACK + MOST_RATIO * self.size:
                    came = f"{self._came:,} bytes out of a file of {self.size:,}"
                    raise refused(name, value=came, expected=f"at most {MOST_RATIO} times as many")
                yield chunk
        if here != entry.file_size:
            raise refused(name, value=f"{here:,} bytes", expected=f"{entry.file_size:,}, as its header says")

    def whole(self, name: str, *, most: int) -> bytes:
        return b"".join(self.chunks(name, most=most))


def lines_of(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Lines, of which each has an end, and none is longer than memory should have to hold."""
    held = bytearray()
    for chunk in chunks:
        *ended, last = chunk.split(b"\n")
        if ended:
            ended[0] = bytes(held) + ended[0]
            held.clear()
            yield from ended
        held += last
        if len(held) > MOST_LINE:
            raise refused(name, value=f"a line of more than {MOST_LINE:,} bytes", expected="shorter lines")
    if held:
        raise refused(name, value="a last line without an end", expected="whole lines")


@contextmanager
def _reading(name: str) -> Generator[None]:
    """Whatever the library says of a file that is none: it is refused, with the entry."""
    try:
        yield
    except _UNREADABLE as error:
        raise refused(
            name, value=str(error) or type(error).__name__, expected="a bundle as `inmind export` writes it"
        ) from error


def _refuse_long_directory(file: BinaryIO, size: int) -> None:
    """Before the library reads it: it would believe any number of entries, and hold all of them."""
    end = _last(file, size, _END.size)
    if end is None or end[:4] != b"PK\x05\x06":
        raise refused("", value="no end of a zip file", expected="a bundle as `inmind export` writes it, whole")
    directory = _END.unpack(end)[5]
    locator = _last(file, size, _LOCATOR_64.size, before=_END.size)
    if locator is not None and locator[:4] == b"PK\x06\x07":
        long = _last(file, size, _END_64.size, before=_END.size + _LOCATOR_64.size)
        if long is None or long[:4] != b"PK\x06\x06":
            raise refused("", value="no end of a long zip file", expected="a bundle as `inmind export` writes it")
        directory = max(_END_64.unpack(long)[8], directory if directory != 0xFFFFFFFF else 0)
    if directory > MOST_DIRECTORY:
        raise refused("", value=f"a list of entries of {directory:,} bytes", expected=f"at most {MOST_DIRECTORY:,}")


def _last(file: BinaryIO, size: int, length: int, *, before: int = 0) -> bytes | None:
    start = size - before - length
    if start < 0:
        return None
    file.seek(start)
    return file.read(length)


def _plain_entries(found: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Each name once, in whichever case: on some disks two that differ only in that are one file."""
    entries: dict[str, zipfile.ZipInfo] = {}
    folded: set[str] = set()
    for entry in found:
        name, mode = entry.filename, entry.external_attr >> 16
        if entry.orig_filename != name or not name.isprintable():
            raise refused(name, value=entry.orig_filename, expected="a printable name")
        if entry.flag_bits & _ENCRYPTED:
            raise refused(name, value="an encrypted entry", expected="a plain one")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused(name, value=f"compression {entry.compress_type}", expected="deflated, or as it is")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise refused(name, value="a link, a folder or a device", expected="a plain file")
        if (same := twin(name)) in folded:
            raise refused(name, value="a second entry of this name", expected="each name once, in whichever case")
        folded.add(same)
        entries[name] = entry
    return entries


def twin(name: str) -> str:
    """What two names have in common that some file systems take for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
