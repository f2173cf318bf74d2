"""The zip file of a bundle, read as untrusted input.

Headers are not trusted. A bundle has few entries, each once, all regular files. The length of the file limits how much
may be decompressed, and that is counted while reading. So a malicious file costs no more than reading a file of bounded
length in bounded memory, before anything is written.
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

from inmind.errors import InvalidInput

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
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_ZIP_ERRORS = (
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
"""Every error that the zip library was seen to raise for an invalid file."""


class ZipReader:
    """The entries of one bundle, by name."""

    def __init__(self, file: BinaryIO) -> None:
        with _zip_errors(""):
            self.size = file.seek(0, os.SEEK_END)
            _check_directory_size(file, self.size)
            self._zip = zipfile.ZipFile(file)
        self._entries = _checked_entries(self._zip.infolist())
        self._output_bytes = 0

    @property
    def names(self) -> Sequence[str]:
        return list(self._entries)

    def reset_output(self) -> None:
        """Count decompressed bytes from 0 again, before another pass over the bundle."""
        self._output_bytes = 0

    def chunks(self, name: str, *, max_bytes: int | None = None) -> Iterator[bytes]:
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
                    raise bundle_error(
                        name, value=f"more than {max_bytes:,} bytes", expected=f"at most {max_bytes:,} bytes"
                    )
                if self._output_bytes > MIN_OUTPUT_BYTES + MAX_RATIO * self.size:
                    size = f"{self._output_bytes:,} decompressed bytes in a file of {self.size:,}"
                    raise bundle_error(name, value=size, expected=f"at most {MAX_RATIO} times the size of the file")
                yield chunk
        if entry_bytes != entry.file_size:
            raise bundle_error(name, value=f"{entry_bytes:,} bytes", expected=f"{entry.file_size:,}, as in its header")

    def read_all(self, name: str, *, max_bytes: int) -> bytes:
        return b"".join(self.chunks(name, max_bytes=max_bytes))


def iterate_lines(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The lines of an entry. Each must end with a newline and fit into MAX_LINE_BYTES."""
    partial = bytearray()
    for chunk in chunks:
        *complete, last = chunk.split(b"\n")
        if complete:
            complete[0] = bytes(partial) + complete[0]
            partial.clear()
            yield from complete
        partial += last
        if len(partial) > MAX_LINE_BYTES:
            raise bundle_error(name, value=f"a line of more than {MAX_LINE_BYTES:,} bytes", expected="shorter lines")
    if partial:
        raise bundle_error(name, value="a last line without a newline", expected="complete lines")


def bundle_error(entry: str, *, value: object, expected: str) -> InvalidInput:
    """The error for an invalid bundle, with the entry. It is raised before anything is written."""
    return InvalidInput(field=f"bundle {entry}" if entry else "bundle", value=value, expected=expected)


@contextmanager
def _zip_errors(name: str) -> Generator[None]:
    """Turn errors of the zip library into a bundle error with the entry."""
    try:
        yield
    except _ZIP_ERRORS as error:
        raise bundle_error(
            name, value=str(error) or type(error).__name__, expected="a bundle written by `inmind export`"
        ) from error


def _check_directory_size(file: BinaryIO, size: int) -> None:
    """Check the size of the central directory before the zip library reads it.

    The library accepts any number of entries, and holds all of them in memory.
    """
    end = _read_from_end(file, size, _END.size)
    if end is None or end[:4] != b"PK\x05\x06":
        raise bundle_error(
            "", value="a file that is no zip archive", expected="a complete bundle written by `inmind export`"
        )
    directory = _END.unpack(end)[5]
    locator = _read_from_end(file, size, _LOCATOR_64.size, before=_END.size)
    if locator is not None and locator[:4] == b"PK\x06\x07":
        long = _read_from_end(file, size, _END_64.size, before=_END.size + _LOCATOR_64.size)
        if long is None or long[:4] != b"PK\x06\x06":
            raise bundle_error("", value="a broken zip archive", expected="a bundle written by `inmind export`")
        directory = max(_END_64.unpack(long)[8], directory if directory != 0xFFFFFFFF else 0)
    if directory > MAX_DIRECTORY_BYTES:
        raise bundle_error(
            "", value=f"a central directory of {directory:,} bytes", expected=f"at most {MAX_DIRECTORY_BYTES:,}"
        )


def _read_from_end(file: BinaryIO, size: int, length: int, *, before: int = 0) -> bytes | None:
    start = size - before - length
    if start < 0:
        return None
    file.seek(start)
    return file.read(length)


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
