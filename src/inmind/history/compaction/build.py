"""Builds a compaction: archive pages, stubs, retained items, overview line and report.

It is one pure function, so that all of its events are committed together.

A provider may compact by itself, with an item in the conversation or a thread. The item is opaque and only its provider
reads it, so it never is the only copy: the messages before it stay in the journal. They are not sent, since the model
does not see them, and their retained items move to memory. A prompt in another format has no use for the item and sends
the messages again. The provider holds the messages of a thread and adds them to the prompt itself, so they are not
sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inmind.core.events.base import Draft, EventId, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import THREAD, Compacted, CompactionUndone, RetainedItem, Stub
from inmind.core.frozen import frozen
from inmind.core.language.prose import own_words
from inmind.core.language.spans import first_sentences
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, ProviderEdit
from inmind.core.text import count_noun, shorten
from inmind.documents.document import Documents, validate_text
from inmind.documents.overview.event_log import MAX_SUMMARY_LINE_CHARACTERS, SUMMARY_SUBJECT, OverviewLog
from inmind.documents.overview.maintain import ARCHIVED_WORDS, overview_updates, with_pending_writes
from inmind.errors import InvalidPath
from inmind.history.compaction.detection import is_filler
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.policy import CompactionReport, CompactionRequest
from inmind.history.compaction.retention import RetainedItems, items_in_memory, retained_items, unsent_items
from inmind.history.compaction.select import CompactionSelection
from inmind.history.compaction.stubs import FRAME_TOKENS, ArchivePage, build_pages, build_stubs, new_path
from inmind.history.compaction.summary import SummaryPoints, extract_summary, summary_line, summary_points
from inmind.history.history import Conversation, ConversationEntry, History
from inmind.history.turns import TurnMessage
from inmind.history.view import TokenMeter, View

_MAX_TITLE_CHARACTERS = 60


MemoryTokens = Callable[[Documents, Sequence[RetainedItem], bool], int]
"""Returns the tokens that memory needs for these documents and unsent items, and with or without stubs."""


@frozen
class CompactionPlan:
    drafts: list[Draft]
    report: CompactionReport
    history_tokens: int = 0
    """Tokens by which the conversation becomes shorter; `report.tokens` takes off what memory needs more."""


def build_compaction(
    records: MessageRecords,
    documents: Documents,
    selection: CompactionSelection,
    request: CompactionRequest,
    *,
    overview_log: OverviewLog,
    language: str,
    memory_tokens: MemoryTokens,
) -> CompactionPlan:
    """Return the drafts and the report of a compaction."""
    history, messages, meter = records.history, records.messages, records.meter
    entries = history.sent[:]
    fresh = [place for place in selection.changed if not entries[place].is_stub]
    title = _title(messages, selection)
    archived = _archive_pages([entries[place] for place in fresh], title, request, documents)
    kept, dropped = retained_items(history, messages, selection, meter, request=request.last_request)
    points = _summary_points(records, selection)
    by_model = request.summary
    if not by_model:
        room = max(0, request.stub_tokens - FRAME_TOKENS)
        request = replace(request, summary=extract_summary(points, budget=room, count=meter.count))
    stubs = build_stubs(records, selection, request, archived)
    shorter = sum(messages[place].tokens for place in selection.changed)
    shorter -= sum(meter.count_wire(stub.format, wire) for stub in stubs for wire in stub.messages)
    pages = [
        _draft(DocumentWritten(page.path, page.text, upkeep=True), _page_sources(page, history, documents))
        for page in archived
    ]
    sources = _sources(history, selection.changed)
    updated = with_pending_writes(documents, pages[::-1])  # the first page of a compaction is listed first
    overview: list[Draft] = []
    # Memory updates the overview itself, so the model does not have to.
    if archived:
        number = f"{len(fresh)} 条消息" if language == "zh" else count_noun(len(fresh), "message")
        line = _overview_line(request, by_model, points, kept, language) or title
        text = _COMPLETED[language].format(number, line)
        entry = OverviewEvent("compression_completed", text, subject=SUMMARY_SUBJECT)
        overview = overview_updates(updated, language, [entry], log=overview_log, sources=sources)
    unsent = unsent_items(kept, messages, selection)
    longer = memory_tokens(with_pending_writes(updated, overview), unsent, True)
    in_memory = items_in_memory(history, request.last_request)
    longer -= memory_tokens(documents, in_memory, any(entry.is_stub for entry in entries))
    compacted = Compacted(
        target=request.target,
        reason=request.reason,
        stubs=tuple(stubs),
        strategy=request.strategy,
        messages=len(fresh) or len(selection.changed),
        tokens=shorter - longer,
        archives=tuple(page.path for page in archived),
        items=tuple(kept),
        left_out=tuple(item for item in dropped if item not in history.dropped),
        summary=request.summary,
    )
    report = CompactionReport.of(compacted, unsent=unsent, request=request.last_request, left_out=dropped)
    # Retained items are passed on from one compaction to the next.
    earlier = [one.id for one in history.compactions[-1:]]
    drafts = [*pages, _draft(compacted, (*earlier, *sources)), *overview]
    return CompactionPlan(drafts, report, shorter)


def _overview_line(
    request: CompactionRequest, by_model: str, points: SummaryPoints, items: Sequence[RetainedItem], language: str
) -> str:
    """Return the summary on one line.

    The stub has the long form, and the index of the overview names the page.
    """
    room = min(MAX_SUMMARY_LINE_CHARACTERS, request.stub_tokens)  # less in a small window
    if by_model:
        return shorten(first_sentences(by_model, room), room)
    return summary_line(points, items, language=language, max_characters=room)


_COMPLETED = {"en": f"{ARCHIVED_WORDS['en']}{{}}: {{}}", "zh": f"{ARCHIVED_WORDS['zh']}{{}}：{{}}"}


def _summary_points(records: MessageRecords, selection: CompactionSelection) -> SummaryPoints:
    """Return the points of the removed messages, with those of the stubs among them.

    A pruned result is a stub, and answers its call.
    """
    messages, removed = records.messages, selection.removed
    summaries = (one.payload.summary for one in reversed(records.history.compactions) if one.payload.summary)
    earlier = next(summaries, "") if any(messages[place].is_block for place in removed) else ""
    own = [place for place in removed if not messages[place].stub or messages[place].results]
    calls = (answered for place in own for answered in records.answers[place])
    return summary_points([messages[place] for place in own], calls, earlier)


def _draft(payload: DocumentWritten | Compacted, sources: tuple[str, ...]) -> Draft:
    """A draft with trust DATA, because it contains text of all speakers, including tools."""
    return Draft(payload=payload, origin=Origin.OPERATOR, sources=sources, trust=Trust.DATA)


def _page_sources(page: ArchivePage, history: History, documents: Documents) -> tuple[str, ...]:
    """Return the messages on a page, and the event that wrote the page before."""
    places = [place for place, entry in enumerate(history.sent) if not entry.is_stub and entry.seq in page.lines]
    before = documents.by_path.get(page.path)
    return (*([before.source] if before else []), *_sources(history, places))


def _sources(history: History, places: Sequence[int]) -> tuple[str, ...]:
    """Return the messages at these places, including those replaced by stubs, as ranges.

    A page holds hundreds of messages; to forget one of them, inmind must find the page.
    """
    stream = EventId.of(history.sent[places[0]].id).stream
    runs = history.ranges_at(places)
    return tuple(f"{stream}#{first}" if first == last else f"{stream}#{first}-{last}" for first, last in runs)


def _archive_pages(
    entries: Sequence[ConversationEntry], title: str, request: CompactionRequest, documents: Documents
) -> list[ArchivePage]:
    if not entries:
        return []
    path = request.archive_to or new_path(title, documents.by_path)
    pages = build_pages(entries, title=title, path=path, existing=documents.text(path))
    for page in pages:
        validate_text(page.text, field="archive_to")
        if page.path != path and page.path in documents.by_path:
            raise InvalidPath(
                field="archive_to", value=request.archive_to, expected="a page with enough room for the messages"
            )
    return pages


def _title(messages: Sequence[TurnMessage], selection: CompactionSelection) -> str:
    """Return a title: the first request, else the tools used, else the assistant's first words."""
    fresh = [messages[place] for place in selection.removed if not messages[place].stub]
    requests = [one.text for one in fresh if one.starts_turn and not is_filler(one.text)]
    names = {call.id: call.tool for one in messages for call in one.calls}
    tools = (names.get(answer.id, "") for place in selection.changed for answer in messages[place].results)
    used = ", ".join(dict.fromkeys(filter(None, tools)))
    if requests or used:
        return shorten(requests[0] if requests else f"outputs of {used}", _MAX_TITLE_CHARACTERS)
    lines = (line for one in fresh if one.speaker == "assistant" for line in own_words(one.text))
    return shorten(next(lines, "conversation"), _MAX_TITLE_CHARACTERS)


BY_PROVIDER = "by the provider"
_PEOPLE = ("user", "operator")


@dataclass
class ProviderItems:
    """Finds the last compaction of each provider. Reads each message once."""

    read: Callable[[ConversationEntry], Message]
    _length: int = 0
    _digest: str = ""
    _last: dict[str, ConversationEntry] = field(default_factory=dict[str, ConversationEntry])

    def last(self, conversation: Conversation, format: str) -> ConversationEntry | None:
        """The last message with a compaction that a provider of this format understands."""
        if not conversation.begins_with(self._length, self._digest):
            self._length, self._last = 0, {}
        for entry in conversation[self._length :]:
            if self.read(entry).has_compaction:
                self._last[entry.format] = entry
        self._length, self._digest = len(conversation), conversation.prefix_digest()
        return self._last.get(format)


def compaction_by_provider(
    history: History,
    messages: Sequence[TurnMessage],
    item: ConversationEntry,
    *,
    request: RetainedItem | None,
    meter: TokenMeter,
) -> list[Draft]:
    """Return the event for a provider's compaction; none if its item is not sent.

    `messages`: the sent messages, as in `history.sent`.
    """
    item_places = [place for place, one in enumerate(messages) if one.seq == item.seq and not one.stub]
    if not item_places:  # older versions have archived such items
        return []
    before = messages[: _first_kept(messages, item_places[0])]
    places = tuple(range(len(before)))
    selection = CompactionSelection(runs=(places,))
    retained = retained_items(history, messages, selection, meter, request=request)
    if FORMATS[item.format].rules.compaction_keeps_users and all(one.speaker in _PEOPLE for one in before):
        before, places = (), ()
    ranges, tokens = history.ranges_at(places), sum(one.tokens for one in before)
    stubs = (Stub(ranges, (), item.format),) if ranges else ()
    return [_provider_draft(history, retained, item, stubs, strategy="compaction", messages=len(before), tokens=tokens)]


def _provider_draft(
    history: History, retained: RetainedItems, last: ConversationEntry, stubs: tuple[Stub, ...], **counts: Any
) -> Draft:
    compacted = Compacted(
        target="conversation",
        reason=BY_PROVIDER,
        stubs=stubs,
        items=tuple(retained.kept),
        left_out=tuple(one for one in retained.dropped if one not in history.dropped),
        provider_item=last.seq,
        **counts,
    )
    return _draft(compacted, (last.id,))


def thread_events(
    history: History,
    held_count: int,
    format: str,
    *,
    messages: Callable[[History], Sequence[TurnMessage]],
    meter: TokenMeter,
) -> list[Draft]:
    """Return the event for a thread that the provider holds; usually none.

    It holds the first messages of the conversation. With `held_count` 0 the request continues no thread: the one before
    ends, and its messages are sent again.
    """
    threads = [one for one in history.compactions if one.payload.is_thread]
    entries = history.messages[:held_count]
    last = entries[-1] if entries else None
    if last is None:
        return [Draft(payload=CompactionUndone(one.seq), origin=Origin.OPERATOR) for one in threads]
    if [one.payload.provider_item for one in threads] == [last.seq]:
        return []
    held_seqs, sent = {entry.seq for entry in entries}, messages(history)
    places = tuple(place for place, one in enumerate(sent) if one.seq in held_seqs)
    # The model sees the last request in the thread, so memory does not repeat it.
    retained = retained_items(history, sent, CompactionSelection(runs=(places,)), meter, request=None)
    tokens = held_tokens(history) + sum(sent[place].tokens for place in places)
    stubs = (Stub(history.ranges_of(held_seqs), (), format),)
    return [_provider_draft(history, retained, last, stubs, strategy=THREAD, messages=held_count, tokens=tokens)]


def held_tokens(history: History) -> int:
    """Tokens of the messages that the provider holds in a thread."""
    return sum(one.payload.tokens for one in history.compactions if one.payload.is_thread)


def clearing_by_provider(edit: ProviderEdit) -> Draft:
    """Return the event for content that a provider left out of one prompt.

    It changes nothing that is sent.
    """
    target = "tools" if "tool" in edit.kind else "thinking"
    cleared = Compacted(target, BY_PROVIDER, (), strategy=edit.kind, messages=edit.count, tokens=edit.tokens)
    return Draft(payload=cleared, origin=Origin.OPERATOR)


def memory_index(history: History, view: View) -> int:
    """Number of messages before memory: the provider may drop what comes before its compaction."""
    format = FORMATS[view.format]
    if not format.rules.has_instructions or not any(one.payload.provider_item for one in history.compactions):
        return 0
    return 1 + max((place for place, wire in enumerate(view.wires) if format.read(wire).has_compaction), default=-1)


def _first_kept(messages: Sequence[TurnMessage], item: int) -> int:
    """Place of the first message that stays: the item, or a round whose results come after it."""
    reply = _reply_start(messages, item)
    waiting: dict[str, int] = {}
    first = item
    for place, one in enumerate(messages):
        for result in one.results:
            call_place = waiting.pop(result.id, item)
            first = min(first, call_place) if place > item else first
        waiting.update((call.id, place) for call in one.calls if not call.is_compaction)
    first = min([first, *(place for place in waiting.values() if place >= reply)])
    return _reply_start(messages, first) if first < item else item


def _reply_start(messages: Sequence[TurnMessage], place: int) -> int:
    while place and messages[place - 1].speaker == "assistant":
        place -= 1
    return place
