"""Recordings, and the JSON values of a file with their locations, compressed or not.

A file is read completely before the replay: an invalid line is found before the first call. Only the last line may be
invalid, because a recorder may still be writing it or was stopped there. The compression is detected by the first
bytes, not by the name, because a pipe has none. Input is bounded, and so is
decompressed data relative to the size of the file: a small file or an endless device cannot exhaust the memory.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.errors import InvalidInput, NotFound

OTHER_SYSTEM_PROMPTS = "system prompts of later recordings"

_CALL_ID_FIELDS = frozenset({"id", "tool_call_id", "tool_use_id"})

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


def join_recordings(recordings: Sequence[Recording], *, name: str) -> Recording:
    """All recordings as one long conversation: tasks change, and the context window fills.

    It has the system prompt of the first recording. Call ids that an earlier recording has used are renamed, because
    ids are unique in a session. Parts that cannot be in one conversation are left out and counted, or refused.
    """
    first = recordings[0]
    if len({recording.format for recording in recordings}) > 1:
        raise InvalidInput(field=name, value="OpenAI and Anthropic", expected="messages of one provider to join")
    messages: list[Wire] = []
    left_out: Counter[str] = Counter()
    used: set[str] = set()
    for number, recording in enumerate(recordings, start=1):
        call_ids = {call.id for wire in recording.messages for call in FORMATS[recording.format].read(wire).calls}
        names = {id: _unused_name(f"{id}_{number}", used | call_ids) for id in call_ids & used}
        messages += [_rename_calls(wire, names) for wire in recording.messages] if names else recording.messages
        used |= call_ids | set(names.values())
        left_out.update(recording.left_out)
        left_out[OTHER_SYSTEM_PROMPTS] += recording.system != first.system
    counted = {reason: count for reason, count in left_out.items() if count}
    return replace(first, name=name, messages=messages, left_out=counted)


def _unused_name(name: str, used: Collection[str]) -> str:
    while name in used:
        name += "_"
    return name


def _rename_calls(wire: Wire, names: Mapping[str, str]) -> dict[str, Any]:
    """Rename ids in the message, in its calls, and in the blocks of its content."""
    renamed = _rename_ids(wire, names)
    for several in ("tool_calls", "content"):
        if is_list(wire.get(several)):
            renamed[several] = [_rename_ids(part, names) if is_object(part) else part for part in wire[several]]
    return renamed


def _rename_ids(part: Wire, names: Mapping[str, str]) -> dict[str, Any]:
    return {key: names.get(value, value) if key in _CALL_ID_FIELDS else value for key, value in part.items()}


@frozen
class LocatedValue:
    """A JSON value with its location in the file."""

    value: Any
    location: str

    def child(self, path: str, value: Any) -> LocatedValue:
        return LocatedValue(value, f"{self.location}{path}")

    @property
    def items(self) -> list[LocatedValue]:
        """The items of a list."""
        return [self.child(f"[{index}]", item) for index, item in enumerate(self.value)]


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
    return _parse(_decompress(_read_bytes(path), name), name)


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
        raise InvalidInput(field="FILE", value=path, expected=f"a readable file ({error})") from error


def _read_bounded(read: Callable[[int], bytes], max_bytes: int, name: str) -> bytes:
    """Read in chunks: `read(max_bytes)` would allocate all of it first."""
    data = bytearray()
    while chunk := read(CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            size = f"more than {max_bytes:,} bytes"
            raise InvalidInput(field=name, value=size, expected=f"at most {max_bytes:,} bytes in it")
    return bytes(data)


def _decompress(data: bytes, name: str) -> bytes:
    if data.startswith(_GZIP):
        stream: Any = gzip.GzipFile(fileobj=io.BytesIO(data))
        kind, errors = "gzip", (OSError, EOFError, zlib.error)
    elif data.startswith(_ZSTD):
        if find_spec("zstandard") is None:
            expected = 'the zstandard library of the cli extra: pip install "inmind[cli]"'
            raise InvalidInput(field=name, value="a file compressed with zstd", expected=expected)
        import zstandard

        stream = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
        kind, errors = "zstd", (zstandard.ZstdError,)
    else:
        return data
    try:
        with stream:
            return _read_bounded(stream.read, min(MAX_BYTES, SLACK_BYTES + MAX_RATIO * len(data)), name)
    except errors as error:
        raise InvalidInput(field=name, value=str(error), expected=f"a whole {kind} file") from error


def _parse(data: bytes, name: str) -> FileContent:
    data = data.removeprefix(codecs.BOM_UTF8)
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    if not lines:
        raise InvalidInput(field=name, value="", expected="JSON, or JSON lines")
    if len(lines) > 1 and _is_json(lines[0][1]):
        torn = not _is_json(lines[-1][1])
        whole = lines[:-1] if torn else lines
        values = [LocatedValue(_parse_value(line, name, number), f"{name}:{number}") for number, line in whole]
        return FileContent(name, values, by_line=True, left_out={TORN_LINES: 1} if torn else {})
    return FileContent(name, [LocatedValue(_parse_value(data, name, 1), name)], by_line=False)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parse_value(data: bytes, name: str, first: int) -> Any:
    """Parse a JSON text that starts at this line of the file."""
    line = first
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        value, expected = error.doc[max(0, error.pos - 20) : error.pos + 20], f"JSON ({error.msg})"
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        value, expected = data[error.start : error.end], "text in UTF-8"
    except (ValueError, RecursionError):  # an integer or a nesting that exceeds Python's limits
        value, expected = data[:40], "JSON within Python's limits of integers and nesting"
    raise InvalidInput(field=f"{name}:{line}", value=value, expected=expected)
