"""meta.json: a summary of one session, for lists of sessions and for people.

A list must not read thousands of journals, so it uses these numbers if the file is as new as the stream. The file is
rewritten whenever a session opens. Only the title may be edited by people; the next opening stores it in the journal.

The journal has the one title of a session, and the last change wins. Renaming an open session comes after an edit of
its file. If the order is unknown because a writer was killed, the file wins.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.prompt import PromptPrepared, UsageReported
from inmind.core.events.session import Compacted, MessageAdded, SessionImported, SessionOpened, SessionTitled
from inmind.core.frozen import frozen
from inmind.core.json import check_text, is_object
from inmind.core.text import shorten
from inmind.documents.document import ARCHIVE_PREFIX
from inmind.errors import Damaged, InmindError, InvalidInput, StoreError
from inmind.session.state import MAX_TITLE_LENGTH, SessionState, title_after
from inmind.store.atomic_files import Folder
from inmind.store.protocol import Store, StreamInfo
from inmind.store.stream import Stream

log = logging.getLogger("inmind")

FILE = "meta.json"

MIN_EVENTS_BETWEEN_WRITES = 200
"""Events between two writes while a session runs. The file is also written when the session opens and closes, and when
its title or model changes, because lists show them.
"""

WRITE_EVERY_NTH_PART = 20
"""A long session is written once per twentieth of its length, because counting its events reads all of them."""

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
        values: Any = json.loads(folder.read(FILE, max_bytes=_MAX_BYTES).data or b"{}")
    except (ValueError, RecursionError):
        values = {}
    if not is_object(values):
        values = {}
    texts: dict[str, str] = {}
    for name in ("title", "model", "created", "updated"):
        with suppress(InvalidInput):
            check_text(values.get(name), FILE)
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
            log.warning("the title in %s could not be read: %s", self._folder.path / FILE, error)

    def is_stale(self, state: SessionState) -> bool:
        due = max(MIN_EVENTS_BETWEEN_WRITES, self._version // WRITE_EVERY_NTH_PART)
        return state.seq - self._version >= due or self._title_and_model != (state.title, state.model)

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
                if self._folder.read(FILE, max_bytes=len(data)).data != data:
                    self._folder.replace(FILE, data)
        except InmindError as error:
            return f"{FILE} could not be updated: {error}"
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
