"""Recordings, and the JSON values of a file with their locations, compressed or not.

A file is read completely before the replay: an invalid line is found before the first call. Only the last line may be
invalid, because a recorder may still be writing it or was stopped there. The compression is detected by the first
bytes, not by the name, because a pipe has none.

Recordings may come from anywhere. Input is bounded, and so is decompressed data relative to the size of the file: a
small file or an endless device cannot exhaust the memory.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.messages.model import Wire
from inmind.errors import InvalidInput, NotFound

STDIN = "-"

TORN_LINES = "torn last lines"

MAX_BYTES = 1_073_741_824
"""Maximum size of a file, compressed or not: several copies of it are held in memory."""

MAX_RATIO = 200
"""Maximum decompression ratio. Conversations compress to a tenth, or to a fiftieth if each line repeats all previous
ones."""

SLACK_BYTES = 67_108_864
"""Decompressed bytes that are always allowed."""

CHUNK_BYTES = 1_048_576

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


@frozen
class LocatedValue:
    """A JSON value with its location in the file."""

    value: Any
    location: str


@frozen
class FileContent:
    """Content of a file: one JSON value, or one per line."""

    name: str
    values: Sequence[LocatedValue]
    by_line: bool
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of unreadable parts, by kind."""


def read_content(path: str) -> FileContent:
    """Read a file, or standard input for "-"."""
    name = "<stdin>" if path == STDIN else path
    return _parse(_decode(_decompress(_read_bytes(path), name), name), name)


def _read_bytes(path: str) -> bytes:
    if path == STDIN:
        return _read_bounded(sys.stdin.buffer.read, MAX_BYTES, "<stdin>")
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # opening a named pipe would block
            raise InvalidInput(field="FILE", value=path, expected="a regular file, or - for standard input")
        with Path(path).open("rb") as file:
            return _read_bounded(file.read, MAX_BYTES, path)
    except FileNotFoundError:
        raise NotFound(what="file", name=path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise InvalidInput(field="FILE", value=path, expected=f"a readable file ({reason})") from error


def _read_bounded(read: Callable[[int], bytes], max_bytes: int, name: str) -> bytes:
    """Read in chunks: `read(max_bytes)` would allocate all of it first."""
    data = bytearray()
    while chunk := read(CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise InvalidInput(
                field=name, value=f"more than {max_bytes:,} bytes", expected=f"at most {max_bytes:,} bytes in it"
            )
    return bytes(data)


def _decompress(data: bytes, name: str) -> bytes:
    try:
        if data.startswith(_GZIP):
            with gzip.open(io.BytesIO(data)) as stream:
                return _read_bounded(stream.read, _max_decompressed_bytes(data), name)
        if data.startswith(_ZSTD):
            return _decompress_zstd(data, name)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(field=name, value=str(error), expected="a whole gzip file") from error
    return data


def _decompress_zstd(data: bytes, name: str) -> bytes:
    try:
        import zstandard
    except ModuleNotFoundError:
        expected = 'the zstandard library of the cli extra: pip install "inmind[cli]"'
        raise InvalidInput(field=name, value="a file compressed with zstd", expected=expected) from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
            return _read_bounded(reader.read, _max_decompressed_bytes(data), name)
    except zstandard.ZstdError as error:
        raise InvalidInput(field=name, value=str(error), expected="a whole zstd file") from error


def _max_decompressed_bytes(compressed: bytes) -> int:
    return min(MAX_BYTES, SLACK_BYTES + MAX_RATIO * len(compressed))


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            # Cut inside a character. No JSON ends with the replacement character, so the line counts as torn too.
            return data[: error.start].decode("utf-8-sig") + "\N{REPLACEMENT CHARACTER}"
        place = f"{name}:{data[: error.start].count(10) + 1}"
        raise InvalidInput(field=place, value=data[error.start : error.end], expected="text in UTF-8") from None


def _parse(text: str, name: str) -> FileContent:
    # Split at "\n" only: U+2028 and similar end a line for str.splitlines, but are valid inside a JSON string.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise InvalidInput(field=name, value="", expected="JSON, or JSON lines")
    if len(lines) > 1 and _is_json(lines[0][1]):
        torn = not _is_json(lines[-1][1])
        whole = lines[:-1] if torn else lines
        values = [LocatedValue(_parse_value(line, name, number), f"{name}:{number}") for number, line in whole]
        return FileContent(name, values, by_line=True, left_out={TORN_LINES: 1} if torn else {})
    return FileContent(name, [LocatedValue(_parse_value(text, name, 1), name)], by_line=False)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parse_value(text: str, name: str, first: int) -> Any:
    """Parse a JSON text that starts at this line of the file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{name}:{first + error.lineno - 1}"
        near = error.doc[max(0, error.pos - 20) : error.pos + 20]
        raise InvalidInput(field=place, value=near, expected=f"JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # an integer or a nesting that exceeds Python's limits
        raise InvalidInput(
            field=f"{name}:{first}", value=text[:40], expected="JSON within Python's limits of integers and nesting"
        ) from error


@frozen(kw_only=True)
class Recording:
    """A recorded conversation in a format that a session accepts."""

    name: str
    format: str
    messages: Sequence[Wire]
    system: str | Sequence[Any] | None = None
    tools: Sequence[Any] | None = None
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of omitted parts of the file, by kind."""
