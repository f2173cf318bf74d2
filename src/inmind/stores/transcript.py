"""messages.jsonl: every message of a session, a line each, in the order they came.

A view that only grows, so it is appended to and not rewritten: the last complete line says how far it got, and
whoever comes next goes on from there. A torn end (a crash in the middle of a line) is cut off and written again;
an end that is not ours is kept beside, and the file is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from inmind.errors import InmindError
from inmind.journal import Event, HistorySpliced, MessageAdded, Reverted, digest, to_json
from inmind.stores.base import Store
from inmind.stores.files import Folder, Growing

FILE = "messages.jsonl"
_CHUNK = 65_536


class Transcript:
    """Keeps messages.jsonl of one stream up with the journal."""

    def __init__(self, folder: Folder, store: Store, stream: str) -> None:
        self._folder, self._store, self._stream = folder, store, stream
        self._reached = (-1, 0)
        """The length of the file when we left it, and the event it went up to."""

    def catch_up(self, fresh: Sequence[Event] = ()) -> str:
        """Write what is missing; `fresh` are events that were just appended, if the caller has them at hand.

        Answers with what went wrong, if anything: a view may lag, a call must not fail.
        """
        try:
            with self._folder.growing(FILE) as file:
                length = len(file)
                good, seq = self._position(file, length)
                known = fresh if fresh and fresh[0].seq == seq + 1 else self._store.read(self._stream, after=seq)
                data = "".join(map(_line, known)).encode()
                if good != length:
                    file.cut(good)
                if data:
                    file.append(data)
                self._reached = (good + len(data), known[-1].seq if known else seq)
        except InmindError as error:
            return f"{FILE} could not be brought up to date: {error}"
        return ""

    def _position(self, file: Growing, length: int) -> tuple[int, int]:
        """How many bytes are good, and up to which event they go."""
        if length == self._reached[0]:
            return self._reached
        size = _CHUNK
        while True:
            end = file.end(size)
            good = end.rfind(b"\n") + 1
            start = end.rfind(b"\n", 0, good - 1) + 1 if good else 0
            if good and (start or len(end) == length):
                seq = _seq(end[start:good])
                return (length - len(end) + good, seq) if seq else self._anew(file)
            if len(end) == length:
                return (0, 0) if _is_torn(end) else self._anew(file)
            size *= 4

    def _anew(self, file: Growing) -> tuple[int, int]:
        """Somebody else's words at the end: keep the whole file beside, and write ours from the beginning."""
        found = file.end(len(file))
        self._folder.replace(f"{FILE}.damaged-{digest(found.hex())[:8]}", found)
        return 0, 0


def _line(event: Event) -> str:
    match event.what:
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


def _is_torn(start: bytes) -> bool:
    """Nothing, or the beginning of a first line that did not get to its end."""
    ours = b'{"seq":'
    return start[: len(ours)] == ours[: len(start)]


def _seq(line: bytes) -> int:
    """The event a line shows; 0 when it is not one of ours, and then the file is written anew from the journal."""
    try:
        return int(json.loads(line)["seq"])
    except (ValueError, KeyError, TypeError):
        return 0
