"""messages.jsonl and meta.json: files of a session that follow from its journal.

messages.jsonl has every message, one line each, in order. It only grows: the last complete line says how far it got,
and the next writer continues there. A partial last line, from a crash, is cut off and written again. If another program
changed the file, it is saved under another name, rewritten, and reported.

meta.json is a summary for lists of sessions and for people. A list must not read thousands of journals, so it uses
these numbers if the file is as new as the stream. The file is written when a session opens or closes, and when its
title or model changes. Only the title may be edited by people; the next opening stores it in the journal, which has the
one title of a session: the last change wins. Renaming an open session comes after an edit of its file. If the order is
unknown because a writer was killed, the file wins.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from inmind.core.encoding import digest, to_json
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.session import (
    Compacted,
    HistorySpliced,
    MessageAdded,
    PromptPrepared,
    Reverted,
    SessionImported,
    SessionOpened,
    SessionTitled,
    UsageReported,
)
from inmind.core.frozen import frozen
from inmind.core.json import check_text, is_object
from inmind.core.text import shorten
from inmind.documents.document import ARCHIVE_PREFIX, FileCheck, FileStatus
from inmind.errors import Damaged, InmindError, InvalidInput, StoreError
from inmind.session.state import MAX_TITLE_LENGTH, SessionState, title_after
from inmind.store.atomic_files import DAMAGED_SUFFIX, AppendFile, Folder
from inmind.store.protocol import Store, StreamInfo
from inmind.store.stream import Stream

TRANSCRIPT_FILE = "messages.jsonl"
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
            with self._folder.open_append(TRANSCRIPT_FILE) as file:
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
            return f"{TRANSCRIPT_FILE} could not be updated: {error}"

    def inspect(self, events: Sequence[Event]) -> FileCheck:
        """The status of the file, given all events; nothing is written."""
        whole = "".join(map(_render_line, events)).encode()
        file = self._folder.read(TRANSCRIPT_FILE, max_bytes=len(whole))
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
        name = f"{TRANSCRIPT_FILE}{DAMAGED_SUFFIX}{digest(content.hex())[:8]}"
        self._folder.replace(name, content)
        notice = f"{TRANSCRIPT_FILE} was changed by another program and rewritten; the old content is in {name}"
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


log = logging.getLogger("inmind")

META_FILE = "meta.json"

_MAX_BYTES = 65_536

_ENDS = 100
"""Events at the start and at the end of a stream that are read before all of them."""


@frozen(kw_only=True)
class SessionSummary:
    """The part of meta.json that lists show, as of event `version`.

    `version` is 0 if the numbers are not valid.
    """

    title: str = ""
    model: str = ""
    created: str = ""
    version: int = 0
    messages: int = 0
    calls: int = 0
    updated: str = ""


def read_summary(folder: Folder) -> SessionSummary:
    """Read meta.json. Invalid values are ignored: any program may have written there."""
    try:
        values: Any = json.loads(folder.read(META_FILE, max_bytes=_MAX_BYTES).data or b"{}")
    except (ValueError, RecursionError):
        values = {}
    if not is_object(values):
        values = {}
    texts: dict[str, str] = {}
    for name in ("title", "model", "created", "updated"):
        with suppress(InvalidInput):
            check_text(values.get(name), META_FILE)
            texts[name] = values[name]
    numbers = {
        name: values[name]
        for name in ("version", "messages", "calls")
        if type(values.get(name)) is int and values[name] >= 0
    }
    return SessionSummary(**texts, **numbers if len(numbers) == 3 and texts.get("updated") else {})


def complete_summary(summary: SessionSummary, store: Store, info: StreamInfo) -> SessionSummary:
    """A summary with values from the journal if the file is missing or out of date."""
    stream = info.first.stream
    if summary.version != info.version:
        kinds = store.summary(stream).kinds
        summary = replace(
            summary,
            messages=kinds.get(MessageAdded.kind, 0),
            calls=kinds.get(PromptPrepared.kind, 0),
            updated=info.updated.isoformat(),
        )
    if summary.messages and not summary.title:
        with suppress(Damaged):  # reported when the session is opened; a list continues
            title, model = _find_title_and_model(store, stream, info.version)
            summary = replace(summary, title=title, model=summary.model or model)
    return summary


class MetaFile:
    """Writes meta.json of one session."""

    def __init__(self, folder: Folder, stream: Stream[SessionState], store: Store) -> None:
        self._folder, self._stream, self._store = folder, stream, store
        self._version = -1
        self._title_and_model: tuple[str, str] | None = None

    def read_title(self) -> None:
        """Store a title that a person has edited in the file."""
        try:
            if title := self._edited_title(self._stream.state):
                self._stream.append(Draft(payload=SessionTitled(title), origin=Origin.FILE))
        except StoreError as error:
            log.warning("the title in %s could not be read: %s", self._folder.path / META_FILE, error)

    def is_stale(self, state: SessionState) -> bool:
        """True if the title or the model has changed.

        Until the file is written, lists count messages and calls in the journal.
        """
        return self._title_and_model != (state.title, state.model)

    def write(self, state: SessionState) -> str:
        """Write the file.

        Returns the error as a text, if any: a file may be stale, but a call must not fail.
        """
        if state.seq == self._version or state.opened is None:
            return ""
        since, name = self._version, self._stream.name
        renamed = since > 0 and bool(self._store.read(name, after=since, kind=SessionTitled.kind))
        # Also if it fails: do not retry at every call.
        self._version, self._title_and_model = state.seq, (state.title, state.model)
        try:
            with self._folder.lock():
                title = "" if renamed else self._edited_title(state)
                data = self._render(state, state.opened, title=title or state.title)
                if self._folder.read(META_FILE, max_bytes=len(data)).data != data:
                    self._folder.replace(META_FILE, data)
        except InmindError as error:
            return f"{META_FILE} could not be updated: {error}"
        return ""

    def _edited_title(self, state: SessionState) -> str:
        """The title in the file if a person has edited it; empty otherwise.

        The file may be stale, for example after a kill, so its title is compared with the title at the file's version.
        """
        summary = read_summary(self._folder)
        title = shorten(summary.title, MAX_TITLE_LENGTH)
        if title in ("", state.title) or not 0 < summary.version <= state.seq:
            return ""
        return "" if title == self._stream.state_at(summary.version).title else title

    def _render(self, state: SessionState, opened: SessionOpened, *, title: str) -> bytes:
        summary = self._store.summary(state.stream)
        first, *opening = self._store.read(state.stream, until=2)
        imported = next((event.payload for event in opening if isinstance(event.payload, SessionImported)), None)
        meta = {
            "id": state.stream.removeprefix("session/"),
            "title": title,
            "model": state.model,
            "resource": opened.resource,
            "cwd": opened.cwd,
            "language": opened.language,
            "parent": opened.parent or None,
            "imported": imported.file if imported else None,
            "messages": summary.kinds.get(MessageAdded.kind, 0),
            "messages_in_history": len(state.conversation),
            "calls": summary.kinds.get(PromptPrepared.kind, 0),
            "compactions": summary.kinds.get(Compacted.kind, 0),
            "archives": sum(path.startswith(ARCHIVE_PREFIX) for path in state.documents.by_path),
            "created": (imported and imported.started_at) or first.at.isoformat(),
            "updated": summary.updated.isoformat(),
            "asked": state.prompt.last_call_at.isoformat() if state.prompt.last_call_at else None,
            "version": state.seq,
        }
        return (json.dumps(meta, ensure_ascii=False, indent=2) + "\n").encode()


def _find_title_and_model(store: Store, stream: str, version: int) -> tuple[str, str]:
    """The title of a session and the last model, usually from the ends of the stream.

    The title is the last rename, or the first words of the user.
    """
    renames = store.read(stream, kind=SessionTitled.kind)
    starts = (store.read(stream, until=until, kind=MessageAdded.kind) for until in (_ENDS, version))
    titles = (title_after("", event) for events in ([renames[-1:]] if renames else starts) for event in events)
    ends = (store.read(stream, after=max(0, after), kind=UsageReported.kind) for after in (version - _ENDS, 0))
    usages = (event.payload for events in ends for event in reversed(events))
    imports = (event.payload for event in store.read(stream, until=2, kind=SessionImported.kind))
    payloads = (item for item in chain(usages, imports) if isinstance(item, UsageReported | SessionImported))
    return next(filter(None, titles), ""), next((payload.model for payload in payloads if payload.model), "")
