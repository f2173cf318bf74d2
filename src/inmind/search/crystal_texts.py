"""Reads the texts of crystals and messages from the journal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from inmind.core.events.base import Event, EventId
from inmind.core.events.session import MessageAdded
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Text
from inmind.documents.document import OVERVIEW_PATH
from inmind.errors import Damaged
from inmind.search.extract import SearchableMessage, extract_crystals
from inmind.search.index.indexer import MessageReader
from inmind.search.index.record import Record
from inmind.store.protocol import Store

MAX_EVENT_GAP = 8
"""Events up to this far apart are read in one query."""


class CrystalTexts:
    """Reads the texts of crystals from the journal: the index stores none."""

    def __init__(self, store: Store, read_message: MessageReader) -> None:
        self._store, self._read_message = store, read_message

    def read(self, records: Iterable[Record]) -> dict[int, str]:
        """Return the texts of crystals by `made`. Nearby events are read together."""
        wanted = {(record.event, record.part): record.made for record in records}
        event_ids = {event for event, _ in wanted}
        texts: dict[int, str] = {}
        for stream, first, last in _event_runs(event_ids):
            for event in self._events(stream, first, last):
                if event.id in event_ids:
                    message = self._read_message(event.payload) if isinstance(event.payload, MessageAdded) else None
                    texts |= {
                        wanted[event.id, draft.part]: draft.text
                        for draft in extract_crystals(event, message)
                        if (event.id, draft.part) in wanted
                    }
        return texts

    def _events(self, stream: str, first: int, last: int) -> Sequence[Event]:
        """Read a range of events; damaged ones are skipped."""
        try:
            return self._store.read(stream, after=first - 1, until=last)
        except Damaged:
            if first == last:
                return ()
        return [event for seq in range(first, last + 1) for event in self._events(stream, seq, seq)]


def _event_runs(events: Iterable[str]) -> list[tuple[str, int, int]]:
    """Group events by stream into (stream, first, last) ranges."""
    runs: list[tuple[str, int, int]] = []
    for stream, seq in sorted(map(EventId.of, set(events))):
        if runs and runs[-1][0] == stream and seq - runs[-1][2] <= MAX_EVENT_GAP:
            runs[-1] = (stream, runs[-1][1], seq)
        else:
            runs.append((stream, seq, seq))
    return runs


def message_reader(is_memory_tool: Callable[[str], bool]) -> MessageReader:
    """Return a function that parses messages for indexing.

    Calls of memory tools are skipped, because their effect is indexed. Writes to the overview are kept: the
    overview itself is not indexed, and its earlier versions would not be found.
    """

    def is_indexed(name: str, arguments: str) -> bool:
        return not is_memory_tool(name) or (
            OVERVIEW_PATH in arguments and (name == "memory_write" or _WRITE_COMMAND.search(arguments) is not None)
        )

    def read(message: MessageAdded) -> SearchableMessage:
        parsed = FORMATS[message.format].read(message.wire)
        results = (part.text for result in parsed.results for part in result.parts if isinstance(part, Text))
        name = message.wire.get("name")
        return SearchableMessage(
            role=parsed.role if parsed.text or not parsed.results else "tool",
            name=name if isinstance(name, str) and parsed.role != "tool" else "",
            text="\n".join((*([parsed.text] if parsed.text else []), *results)),
            calls=[(call.name, call.arguments) for call in parsed.calls if is_indexed(call.name, call.arguments)],
        )

    return read


_WRITE_COMMAND = re.compile(r'"command"\s*:\s*"(?:write|append)\b')
