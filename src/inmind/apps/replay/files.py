"""What stands in a file, as JSON values with their places, however it is packed.

A file is read whole before anything is played: a broken line is found before the first call, and not in the middle
of a long run. Only the last line may be broken: whoever writes line by line may be at it still, or was stopped there.
How it is packed is told by its first bytes and not by its name, since a pipe has none.

Recordings come from anywhere. What is read is bounded, and so is what comes out of a packed one, which is told by its
own length: a small file cannot fill the memory, nor can a device that never ends.
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
from inmind.errors import InvalidInput, NotFound

STDIN = "-"

TORN = "torn last lines"

MOST_BYTES = 1_073_741_824
"""Of a file, packed or not: all of it has to be in memory, several times over."""

MOST_RATIO = 200
"""Times its own length that may come out of a packed file. Conversations come to a tenth of themselves, or a fiftieth
where each line has all of those before it."""

SLACK = 67_108_864
"""Bytes that may come out of any file, however short."""

CHUNK = 1_048_576

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


@frozen
class Placed:
    """A JSON value, and where a person would look for it."""

    value: Any
    place: str


@frozen
class Content:
    """What a file holds: one JSON value, or one on each line."""

    name: str
    values: Sequence[Placed]
    by_line: bool
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """How much of it could not be read, by what it is."""


def content_of(path: str) -> Content:
    """Everything in a file, or on standard input for "-"."""
    name = "<stdin>" if path == STDIN else path
    return _parsed(_text(_unpacked(_bytes(path), name), name), name)


def _bytes(path: str) -> bytes:
    if path == STDIN:
        return _bounded(sys.stdin.buffer.read, MOST_BYTES, "<stdin>")
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # opening a pipe that has a name waits for its writer
            raise InvalidInput(field="FILE", value=path, expected="a plain file, or - for standard input")
        with Path(path).open("rb") as file:
            return _bounded(file.read, MOST_BYTES, path)
    except FileNotFoundError:
        raise NotFound(what="file", name=path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise InvalidInput(field="FILE", value=path, expected=f"a file that can be read ({reason})") from error


def _bounded(read: Callable[[int], bytes], most: int, name: str) -> bytes:
    """Chunk by chunk, since whoever reads as much as there may be is given the room for it first."""
    data = bytearray()
    while chunk := read(CHUNK):
        data += chunk
        if len(data) > most:
            raise InvalidInput(field=name, value=f"more than {most:,} bytes", expected=f"at most {most:,} bytes in it")
    return bytes(data)


def _unpacked(data: bytes, name: str) -> bytes:
    try:
        if data.startswith(_GZIP):
            with gzip.open(io.BytesIO(data)) as stream:
                return _bounded(stream.read, _most_of(data), name)
        if data.startswith(_ZSTD):
            return _unpacked_zstd(data, name)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(field=name, value=str(error), expected="a whole gzip file") from error
    return data


def _unpacked_zstd(data: bytes, name: str) -> bytes:
    try:
        import zstandard
    except ModuleNotFoundError:
        expected = 'the library zstandard, which the extra brings: pip install "inmind[cli]"'
        raise InvalidInput(field=name, value="a file packed with zstd", expected=expected) from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
            return _bounded(reader.read, _most_of(data), name)
    except zstandard.ZstdError as error:
        raise InvalidInput(field=name, value=str(error), expected="a whole zstd file") from error


def _most_of(packed: bytes) -> int:
    return min(MOST_BYTES, SLACK + MOST_RATIO * len(packed))


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            # Torn inside a character. No JSON ends with this sign, so that the line is known to be torn as well.
            return data[: error.start].decode("utf-8-sig") + "\N{REPLACEMENT CHARACTER}"
        place = f"{name}:{data[: error.start].count(10) + 1}"
        raise InvalidInput(field=place, value=data[error.start : error.end], expected="text in UTF-8") from None


def _parsed(text: str, name: str) -> Content:
    # At "\n" and nowhere else: U+2028 and its like end a line for Python and stand inside a text for JSON.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise InvalidInput(field=name, value="", expected="JSON, or JSON lines")
    if len(lines) > 1 and _is_json(lines[0][1]):
        torn = not _is_json(lines[-1][1])
        whole = lines[:-1] if torn else lines
        values = [Placed(_value(line, name, number), f"{name}:{number}") for number, line in whole]
        return Content(name, values, by_line=True, left_out={TORN: 1} if torn else {})
    return Content(name, [Placed(_value(text, name, 1), name)], by_line=False)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _value(text: str, name: str, first: int) -> Any:
    """The value of a text that begins on this line of the file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{name}:{first + error.lineno - 1}"
        near = error.doc[max(0, error.pos - 20) : error.pos + 20]
        raise InvalidInput(field=place, value=near, expected=f"JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # an integer, or a depth, that Python refuses
        raise InvalidInput(field=f"{name}:{first}", value=text[:40], expected="JSON of a sane size") from error
