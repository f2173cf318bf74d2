"""messages.jsonl: every message of a session, one line each, in order.

The file only grows: the last complete line says how far it got, and the next writer continues there. A partial last
line, from a crash, is cut off and written again. If another program changed the file, it is saved under another name,
rewritten, and reported.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from inmind.core.encoding import digest, to_json
from inmind.core.events.base import Event
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted
from inmind.core.json import is_object
from inmind.documents.document import FileCheck, FileStatus
from inmind.errors import InmindError
from inmind.store.atomic_files import DAMAGED_SUFFIX, AppendFile, Folder
from inmind.store.protocol import Store

log = logging.getLogger("inmind")

FILE = "messages.jsonl"
_CHUNK = 65_536
_LINE_START = b'{"seq":'
_LINE_KINDS = (MessageAdded.kind, HistorySpliced.kind, Reverted.kind)
"""Kinds of events that have a line."""


class TranscriptFile:
    """Keeps messages.jsonl of one stream up to date."""

    def __init__(self, folder: Folder, store: Store, stream: str) -> None:
        self._folder, self._store, self._stream = folder, store, stream
        self._written: tuple[int, int] | None = None
        """The length of the file after our last write, and the last event in it."""

    def update(self, fresh: Sequence[Event] = ()) -> str:
        """Write missing lines. `fresh`: events that were just appended, if the caller has them.

        Returns a notice, if any: the file may be stale, but a call must not fail.
        """
        try:
            with self._folder.open_append(FILE) as file:
                length = len(file)
                good, seq = position = self._position(file, length)
                notice = "" if self._is_ours(file, length, position) else self._save_damaged(file)
                if notice:
                    good, seq = 0, 0
                known = fresh if fresh and fresh[0].seq == seq + 1 else self._store.read(self._stream, after=seq)
                data = "".join(map(_render_line, known)).encode()
                if good != length:
                    file.truncate(good)
                if data:
                    file.append(data)
                self._written = (good + len(data), known[-1].seq if known else seq)
                return notice
        except InmindError as error:
            return f"{FILE} could not be updated: {error}"

    def inspect(self, events: Sequence[Event]) -> FileCheck:
        """The status of the file, given all events; nothing is written."""
        whole = "".join(map(_render_line, events)).encode()
        file = self._folder.read(FILE, max_bytes=len(whole))
        if file.read_error:
            return FileCheck(FileStatus.FOREIGN, reason=file.read_error)
        if file.data is None:
            return FileCheck(FileStatus.MISSING if whole else FileStatus.CURRENT)
        if file.data == whole:
            return FileCheck(FileStatus.CURRENT)
        if whole.startswith(file.data):
            return FileCheck(FileStatus.STALE)
        return FileCheck(FileStatus.DAMAGED, reason="it was changed by another program")

    def _position(self, file: AppendFile, length: int) -> tuple[int, int]:
        """The number of bytes in complete lines and the last event in them.

        The event is -1 if the end of the file is not ours.
        """
        if self._written and length == self._written[0]:
            return self._written
        size = _CHUNK
        while True:
            end = file.read_end(size)
            good = end.rfind(b"\n") + 1
            start = end.rfind(b"\n", 0, good - 1) + 1 if good else 0
            if len(end) == length or start:
                seq, partial = _line_seq(end[start:good]) if good else 0, end[good:]
                is_ours = partial[: len(_LINE_START)] == _LINE_START[: len(partial)]
                return length - len(end) + good, seq if is_ours else -1
            size *= 4

    def _is_ours(self, file: AppendFile, length: int, position: tuple[int, int]) -> bool:
        """True if the file has only lines that we wrote.

        The end is checked always. The lines are counted only when the file is first read or has become shorter:
        counting them whenever another process has added some would cost too much.
        """
        good, seq = position
        if position == self._written or (good, seq) == (0, 0):
            return True
        if not 0 < seq <= self._store.version(self._stream):
            return False
        grown = self._written is not None and length > self._written[0]
        return grown or file.count_lines(good) == self._count_lines_until(seq)

    def _count_lines_until(self, seq: int) -> int:
        """The number of lines up to an event, counted without reading messages.

        Events appended meanwhile come after those in the summary.
        """
        kinds = self._store.summary(self._stream).kinds
        later = self._store.read(self._stream, after=seq, until=sum(kinds.values()))
        return sum(kinds.get(kind, 0) for kind in _LINE_KINDS) - sum(event.kind in _LINE_KINDS for event in later)

    def _save_damaged(self, file: AppendFile) -> str:
        """Save the changed file under another name. Returns the notice."""
        content = file.read_end(len(file))
        name = f"{FILE}{DAMAGED_SUFFIX}{digest(content.hex())[:8]}"
        self._folder.replace(name, content)
        notice = f"{FILE} was changed by another program and rewritten; the old content is in {name}"
        log.warning("inmind: %s", notice)
        return notice


def _render_line(event: Event) -> str:
    match event.payload:
        case MessageAdded(wire=wire, format=format):
            line: dict[str, Any] = {"seq": event.seq, "at": f"{event.at:%Y-%m-%dT%H:%M:%SZ}"}
            if format != "openai":
                line["format"] = format
            return to_json({**line, "message": wire}) + "\n"
        case HistorySpliced(start=start, stop=stop, inserted=inserted):
            return to_json({"seq": event.seq, "splice": [start, stop, inserted]}) + "\n"
        case Reverted(to=to):
            return to_json({"seq": event.seq, "reverted_to": to}) + "\n"
        case _:
            return ""


def _line_seq(line: bytes) -> int:
    """The event number of a line; -1 if it is not one of ours."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return -1
    seq = value.get("seq") if is_object(value) else None
    return seq if type(seq) is int else -1
