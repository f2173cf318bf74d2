"""What stands in a file, as JSON values with their places, however it is packed.

A file is read whole before anything is played: a broken line is found before the first call, and not in the middle
of a long run. How it is packed is told by its first bytes and not by its name, since a pipe has none.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inmind.errors import InvalidInput, NotFound

STDIN = "-"

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Placed:
    """A JSON value, and where a person would look for it."""

    value: Any
    place: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds: one JSON value, or one on each line."""

    name: str
    values: Sequence[Placed]
    by_line: bool


def content_of(path: str) -> Content:
    """Everything in a file, or on standard input for "-"."""
    name = "<stdin>" if path == STDIN else path
    data = _unpacked(_bytes(path), name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"{name}:{data[: error.start].count(10) + 1}"
        raise InvalidInput(field=place, value=data[error.start : error.end], expected="text in UTF-8") from None
    return _parsed(text, name)


def _bytes(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFound(what="file", name=path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise InvalidInput(field="file", value=path, expected=f"a file that can be read ({reason})") from error


def _unpacked(data: bytes, name: str) -> bytes:
    try:
        if data.startswith(_GZIP):
            return gzip.decompress(data)
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
            return reader.read()
    except zstandard.ZstdError as error:
        raise InvalidInput(field=name, value=str(error), expected="a whole zstd file") from error


def _parsed(text: str, name: str) -> Content:
    # At "\n" and nowhere else: U+2028 and its like end a line for Python and stand inside a text for JSON.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise InvalidInput(field=name, value="", expected="JSON, or JSON lines")
    if len(lines) > 1 and _is_json(lines[0][1]):
        values = [Placed(_value(line, name, number), f"{name}:{number}") for number, line in lines]
        return Content(name, values, by_line=True)
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
