"""messages.jsonl: every message of a session, a line each, in the order they came.

A view that only grows, so it is appended to and not rewritten: the last complete line says how far it got, and
whoever comes next goes on from there. A torn end (a crash in the middle of a line) is cut off and written again.
A file that somebody changed, by an end that is not ours or by lines taken out of its middle or put there, is kept
beside and written anew, and that is said.
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
_LINE_KINDS = (MessageAdded.kind, HistorySpliced.kind, Reverted.kind)
"""Kinds of events that have a line."""


class TranscriptFile:
    """Keeps messages.jsonl of one stream up with the journal."""

    def __init__(self, folder: Folder, store: Store, stream: str) -> None:
        self._folder, self._store, self._stream = folder, store, stream
        self._written: tuple[int, int] | None = None
        """The length of the file when we left it, and the event it went up to."""

    def update(self, fresh: Sequence[Event] = ()) -> str:
        """Write what is missing; `fresh` are events that were just appended, if the caller has them at hand.

        Answers with what people should know, if anything: a view may lag, a call must not fail.
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
            return f"{FILE} could not be brought up to date: {error}"

    def inspect(self, events: Sequence[Event]) -> FileCheck:
        """What `catch_up` would find in the file as it stands now, given all events; nothing is written."""
        whole = "".join(map(_render_line, events)).encode()
        found = self._folder.read(FILE, max_bytes=len(whole))
        if found.read_error:
            return FileCheck(FileStatus.FOREIGN, reason=found.read_error)
        if found.data is None:
            return FileCheck(FileStatus.MISSING if whole else FileStatus.CURRENT)
        if found.data == whole:
            return FileCheck(FileStatus.CURRENT)
        if whole.startswith(found.data):
            return FileCheck(FileStatus.STALE)
        return FileCheck(FileStatus.DAMAGED, reason="it was changed by somebody else")

    def _position(self, file: AppendFile, length: int) -> tuple[int, int]:
        """How many bytes are whole lines, and up to which event they go; below 0 when the end is none of ours."""
        if self._written and length == self._written[0]:
            return self._written
        size = _CHUNK
        while True:
            end = file.read_end(size)
            good = end.rfind(b"\n") + 1
            start = end.rfind(b"\n", 0, good - 1) + 1 if good else 0
            if len(end) == length or start:
                seq = _line_seq(end[start:good]) if good else 0
                return length - len(end) + good, seq if _is_partial_line(end[good:]) else -1
            size *= 4

    def _is_ours(self, file: AppendFile, length: int, position: tuple[int, int]) -> bool:
        """The end tells by itself. The middle is looked at when the file is first met, or has become shorter: to
        count its lines each time that another process has added some would cost more than the lines.
        """
        good, seq = position
        if position == self._written or (good, seq) == (0, 0):
            return True
        if not 0 < seq <= self._store.version(self._stream):
            return False
        grown = self._written is not None and length > self._written[0]
        return grown or file.count_lines(good) == self._count_lines_until(seq)

    def _count_lines_until(self, seq: int) -> int:
        """Counted without reading what the lines show. Events that come meanwhile are behind those in the summary."""
        kinds = self._store.summary(self._stream).kinds
        later = self._store.read(self._stream, after=seq, until=sum(kinds.values()))
        return sum(kinds.get(kind, 0) for kind in _LINE_KINDS) - sum(event.kind in _LINE_KINDS for event in later)

    def _save_damaged(self, file: AppendFile) -> str:
        """Somebody changed it: their bytes stay, under another name; answers with what to say about it."""
        found = file.read_end(len(file))
        name = f"{FILE}{DAMAGED_SUFFIX}{digest(found.hex())[:8]}"
        self._folder.replace(name, found)
        notice = f"{FILE} was changed by somebody else; it is written anew, what stood there is in {name}"
        log.warning("inmind: %s", notice)
        return notice


def _render_line(event: Event) -> str:
    match event.payload:
        case MessageAdded(wire=wire, format=format):
            said: dict[str, Any] = {"seq": event.seq, "at": f"{event.at:%Y-%m-%dT%H:%M:%SZ}"}
            if format != "openai":
                said["format"] = format
            return to_json({**said, "message": wire}) + "\n"
        case HistorySpliced(start=start, stop=stop, inserted=inserted):
            return to_json({"seq": event.seq, "splice": [start, stop, inserted]}) + "\n"
        case Reverted(to=to):
            return to_json({"seq": event.seq, "reverted_to": to}) + "\n"
        case _:
            return ""


def _is_partial_line(end: bytes) -> bool:
    """Nothing, or the beginning of a line that did not get to its end."""
    ours = b'{"seq":'
    return end[: len(ours)] == ours[: len(end)]


def _line_seq(line: bytes) -> int:
    """The event that a line shows; below 0 when it is not one of ours, whatever a person has put there."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        return -1
    seq = said.get("seq") if is_object(said) else None
    return seq if type(seq) is int else -1
