"""Read the activity of a resource since its last dream from the journal.

The journal is read from a position, over all streams of the resource. A dream therefore reads each event once, however
many sessions there are. A backlog of more than MAX_EVENTS is processed by several dreams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inmind.core.encoding import to_json
from inmind.core.events.base import Event
from inmind.core.events.crystals import CrystalCreated, SearchRecorded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.entities import EntitiesEvicted
from inmind.core.events.session import MessageAdded, ToolObserved
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Result, Text
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.dreams.activity import Activity, SearchUse, ToolUse, Utterance
from inmind.entities.outcome import is_failure
from inmind.search.crystal import Crystal
from inmind.search.crystal_texts import message_reader
from inmind.search.engine import SearchEngine
from inmind.search.extract import extract_crystals
from inmind.store.protocol import Store

MAX_EVENTS = 20_000
"""Events that one dream reads."""

_BATCH_SIZE = 2_000
_MAX_RESULT_CHARACTERS = 4_000
"""Characters kept of a tool result. Success or failure is read from the complete result."""

_EVENT_KINDS = tuple(
    kind.kind for kind in (MessageAdded, ToolObserved, SearchRecorded, CrystalCreated, EntitiesEvicted, DocumentWritten)
)


@frozen(kw_only=True)
class ActivitySlice:
    """Activity and crystals between two positions of the journal."""

    activity: Activity
    crystals: tuple[Crystal, ...]
    """Crystals of messages, tool results and events, in their current state. Notes are excluded: they have a page."""
    journal_position: int
    """The position up to which the journal was read."""


def read_activity(
    store: Store,
    search: SearchEngine,
    resource: str,
    *,
    after: int,
    until: int | None = None,
    own_tool: Callable[[str], bool],
) -> ActivitySlice:
    """Read the activity of a resource after one journal position and up to `until`, if given."""
    position, events = after, list[Event]()
    while len(events) < MAX_EVENTS:
        rows = store.events_since(position, kinds=_EVENT_KINDS, limit=_BATCH_SIZE, owner=resource)
        batch = [(at, event) for at, event in rows if until is None or at <= until]
        events += (event for _, event in batch if event and not _is_memory_page(event))
        if batch:
            position = batch[-1][0]
        if len(batch) < _BATCH_SIZE:
            break
    activity = Activity(utterances=tuple(_utterances(events, own_tool)), searches=tuple(_searches(events)))
    return ActivitySlice(
        activity=activity, crystals=tuple(_read_crystals(events, search, resource, own_tool)), journal_position=position
    )


def _is_memory_page(event: Event) -> bool:
    """True for an edit of MEMORY.md.

    A user's edit of MEMORY.md also contains lines that dreams wrote. The user's own lines are read from the page.
    """
    return isinstance(event.payload, DocumentWritten) and event.payload.path == MEMORY_PAGE_PATH


def _read_crystals(
    events: list[Event], search_engine: SearchEngine, resource: str, own_tool: Callable[[str], bool]
) -> Iterator[Crystal]:
    read = message_reader(own_tool)
    texts: dict[str, str] = {}
    for event in events:
        message = read(event.payload) if isinstance(event.payload, MessageAdded) else None
        for text_part in extract_crystals(event, message):
            texts[f"{event.id}.{text_part.part}" if text_part.part else event.id] = text_part.text
    for record in search_engine.records_of_events([event.id for event in events]):
        if record.is_searchable and record.id in texts:
            yield record.crystal(texts[record.id], resource)


def _searches(events: list[Event]) -> Iterator[SearchUse]:
    for event in events:
        if isinstance(event.payload, SearchRecorded):
            search = event.payload
            yield SearchUse(id=event.id, session=_session_id(event), at=event.at, query=search.query, hits=search.hits)


def _utterances(events: list[Event], own_tool: Callable[[str], bool]) -> Iterator[Utterance]:
    calls: dict[tuple[str, str], Call] = {}
    for event in events:
        match event.payload:
            case MessageAdded(from_memory=False) as message:
                yield from _message_utterances(event, message, calls, own_tool)
            case ToolObserved() as observed:
                has_failed = observed.error or is_failure(observed.result)
                arguments = to_json(observed.arguments)
                yield _tool_utterance(
                    event, ToolUse(tool=observed.tool, arguments=arguments, failed=has_failed), to_json(observed.result)
                )
            case _:
                pass


def _message_utterances(
    event: Event, message: MessageAdded, calls: dict[tuple[str, str], Call], own_tool: Callable[[str], bool]
) -> Iterator[Utterance]:
    content = FORMATS[message.format].read(message.wire)
    host_calls = [call for call in content.calls if not own_tool(call.name)]
    calls.update(((event.stream, call.id), call) for call in host_calls)
    for result in content.results:
        if call := calls.pop((event.stream, result.id), None):
            text = _result_text(result)
            has_failed = result.error or is_failure(text)
            yield _tool_utterance(event, ToolUse(tool=call.name, arguments=call.arguments, failed=has_failed), text)
    if content.role in ("user", "assistant") and (content.text or host_calls):
        yield Utterance(
            id=event.id,
            session=_session_id(event),
            at=event.at,
            role=content.role,
            text=content.text,
            tool_uses=tuple(ToolUse(tool=call.name, arguments=call.arguments) for call in host_calls),
            trust=event.trust,
        )


def _tool_utterance(event: Event, tool_use: ToolUse, text: str) -> Utterance:
    return Utterance(
        id=event.id,
        session=_session_id(event),
        at=event.at,
        role="tool",
        text=text[:_MAX_RESULT_CHARACTERS],
        tool_uses=(tool_use,),
        trust=event.trust,
    )


def _result_text(result: Result) -> str:
    return "\n".join(part.text for part in result.parts if isinstance(part, Text))


def _session_id(event: Event) -> str:
    return event.stream.removeprefix("session/")
