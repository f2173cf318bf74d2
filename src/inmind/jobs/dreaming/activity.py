"""What happened to a resource since its last dream, read from the journal: what was said, looked up and seen.

The journal is read on from a position, over all streams that belong to the resource; so a dream looks at each event
once, however many sessions there are. A backlog is worked off by several dreams.
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
from inmind.search.engine import DeepMemory, reader
from inmind.search.extract import gleaned
from inmind.store.protocol import Store

MAX_EVENTS = 20_000
"""Events that one dream looks at."""

_BATCH_SIZE = 2_000
_MAX_RESULT_CHARACTERS = 4_000
"""Characters of what a tool answered: how it ended is read from the whole."""

_EVENT_KINDS = tuple(
    kind.kind for kind in (MessageAdded, ToolObserved, SearchRecorded, CrystalCreated, EntitiesEvicted, DocumentWritten)
)


@frozen(kw_only=True)
class ActivitySlice:
    activity: Activity
    crystals: tuple[Crystal, ...]
    """Of what was said, seen and distilled, as they stand now. Notes are not among them: they have a page."""
    journal_position: int
    """Up to where the journal was read."""


def read_activity(
    store: Store,
    search: DeepMemory,
    resource: str,
    *,
    after: int,
    until: int | None = None,
    own_tool: Callable[[str], bool],
) -> ActivitySlice:
    """What a resource and its sessions have seen behind a position of the journal, and up to another where one is
    given."""
    position, events = after, list[Event]()
    while len(events) < MAX_EVENTS:
        found = store.events_since(position, kinds=_EVENT_KINDS, limit=_BATCH_SIZE, owner=resource)
        batch = [(place, event) for place, event in found if until is None or place <= until]
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
    """A person's MEMORY.md has the lines of dreams on it. What they wrote themselves is told by the page."""
    return isinstance(event.payload, DocumentWritten) and event.payload.path == MEMORY_PAGE_PATH


def _read_crystals(
    events: list[Event], deep: DeepMemory, resource: str, own_tool: Callable[[str], bool]
) -> Iterator[Crystal]:
    read = reader(own_tool)
    texts: dict[str, str] = {}
    for event in events:
        said = read(event.payload) if isinstance(event.payload, MessageAdded) else None
        for one in gleaned(event, said):
            texts[f"{event.id}.{one.part}" if one.part else event.id] = one.text
    for record in deep.of_events([event.id for event in events]):
        if record.found_again and record.id in texts:
            yield record.crystal(texts[record.id], resource)


def _searches(events: list[Event]) -> Iterator[SearchUse]:
    for event in events:
        if isinstance(event.payload, SearchRecorded):
            what = event.payload
            yield SearchUse(id=event.id, session=_session_id(event), at=event.at, query=what.query, hits=what.hits)


def _utterances(events: list[Event], own_tool: Callable[[str], bool]) -> Iterator[Utterance]:
    calls: dict[tuple[str, str], Call] = {}
    for event in events:
        match event.payload:
            case MessageAdded(from_memory=False) as message:
                yield from _message_utterances(event, message, calls, own_tool)
            case ToolObserved() as observed:
                bad = observed.error or is_failure(observed.result)
                arguments = to_json(observed.arguments)
                yield _tool_utterance(
                    event, ToolUse(tool=observed.tool, arguments=arguments, failed=bad), to_json(observed.result)
                )
            case _:
                pass


def _message_utterances(
    event: Event, message: MessageAdded, calls: dict[tuple[str, str], Call], own_tool: Callable[[str], bool]
) -> Iterator[Utterance]:
    said = FORMATS[message.format].read(message.wire)
    theirs = [call for call in said.calls if not own_tool(call.name)]
    calls.update(((event.stream, call.id), call) for call in theirs)
    for result in said.results:
        if call := calls.pop((event.stream, result.id), None):
            answer = _result_text(result)
            bad = result.error or is_failure(answer)
            yield _tool_utterance(event, ToolUse(tool=call.name, arguments=call.arguments, failed=bad), answer)
    if said.role in ("user", "assistant") and (said.text or theirs):
        yield Utterance(
            id=event.id,
            session=_session_id(event),
            at=event.at,
            role=said.role,
            text=said.text,
            tool_uses=tuple(ToolUse(tool=call.name, arguments=call.arguments) for call in theirs),
            trust=event.trust,
        )


def _tool_utterance(event: Event, used: ToolUse, answer: str) -> Utterance:
    return Utterance(
        id=event.id,
        session=_session_id(event),
        at=event.at,
        role="tool",
        text=answer[:_MAX_RESULT_CHARACTERS],
        tool_uses=(used,),
        trust=event.trust,
    )


def _result_text(result: Result) -> str:
    return "\n".join(part.text for part in result.parts if isinstance(part, Text))


def _session_id(event: Event) -> str:
    return event.stream.removeprefix("session/")
