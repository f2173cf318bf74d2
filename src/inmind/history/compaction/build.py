"""Builds a compaction: archive pages, stubs, retained items, and the line on the overview.

It is one pure function, so that all of its events are committed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import Compacted, RetainedItem
from inmind.core.frozen import frozen
from inmind.core.language.prose import own_words
from inmind.core.language.spans import first_sentences
from inmind.core.text import count_noun, shorten
from inmind.documents.document import Documents, validate_text
from inmind.documents.overview.event_log import MAX_SUMMARY_LINE_CHARACTERS, SUMMARY_SUBJECT, OverviewLog
from inmind.documents.overview.maintain import ARCHIVED_WORDS, overview_updates, with_pending_writes
from inmind.errors import InvalidPath
from inmind.history import ConversationEntry, History
from inmind.history.compaction.archive_page import ArchivePage, build_pages, new_path
from inmind.history.compaction.goal_detection import is_filler
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.report import CompactionReport
from inmind.history.compaction.request import CompactionRequest, check_archive_path
from inmind.history.compaction.retention import items_in_memory, retained_items, unsent_items
from inmind.history.compaction.select import CompactionSelection
from inmind.history.compaction.stubs import FRAME_TOKENS, build_stubs
from inmind.history.compaction.summary import SummaryPoints, extract_summary, summary_line, summary_points
from inmind.history.turns import TurnMessage

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
    points = _summary_points(history, messages, selection)
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
        entry = _overview_entry(len(fresh), request, by_model, points, kept, title=title, language=language)
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


def _overview_entry(
    messages: int,
    request: CompactionRequest,
    by_model: str,
    points: SummaryPoints,
    items: Sequence[RetainedItem],
    *,
    title: str,
    language: str,
) -> OverviewEvent:
    """Return the event with the summary on one line.

    The stub has the long form, and the index of the overview names the page.
    """
    number = f"{messages} 条消息" if language == "zh" else count_noun(messages, "message")
    room = min(MAX_SUMMARY_LINE_CHARACTERS, request.stub_tokens)  # less in a small window
    if by_model:
        line = shorten(first_sentences(by_model, room), room)
    else:
        line = summary_line(points, items, language=language, max_characters=room)
    text = _COMPLETED[language].format(number, line or title)
    return OverviewEvent("compression_completed", text, subject=SUMMARY_SUBJECT)


_COMPLETED = {
    "en": f"{ARCHIVED_WORDS['en']}{{}}: {{}}",
    "zh": f"{ARCHIVED_WORDS['zh']}{{}}：{{}}",
}


def _summary_points(history: History, messages: Sequence[TurnMessage], selection: CompactionSelection) -> SummaryPoints:
    """Return the points of the removed messages, with those of the stubs among them.

    A pruned result is a stub, and answers its call.
    """
    removed = [messages[place] for place in selection.removed]
    summaries = (one.payload.summary for one in reversed(history.compactions) if one.payload.summary)
    earlier = next(summaries, "") if any(one.is_block for one in removed) else ""
    return summary_points([one for one in removed if not one.stub or one.results], earlier)


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
    stream = history.sent[places[0]].id.rpartition("#")[0]
    runs = history.ranges_at(places)
    return tuple(f"{stream}#{first}" if first == last else f"{stream}#{first}-{last}" for first, last in runs)


def _archive_pages(
    entries: Sequence[ConversationEntry], title: str, request: CompactionRequest, documents: Documents
) -> list[ArchivePage]:
    if not entries:
        return []
    path = new_path(title, documents.by_path) if request.archive_to is None else check_archive_path(request.archive_to)
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
    for one in fresh:
        if one.starts_turn and not is_filler(one.text):
            return shorten(one.text, _MAX_TITLE_CHARACTERS)
    names = {call.id: call.tool for one in messages for call in one.calls}
    tools = [names.get(answer.id, "") for place in selection.changed for answer in messages[place].results]
    used = ", ".join(dict.fromkeys(filter(None, tools)))
    if used:
        return shorten(f"outputs of {used}", _MAX_TITLE_CHARACTERS)
    lines = (line for one in fresh if one.speaker == "assistant" for line in own_words(one.text))
    return shorten(next(lines, "conversation"), _MAX_TITLE_CHARACTERS)
