"""Builds a compaction: archive pages, stubs, retained items, overview line and report.

It is one pure function, so that all of its events are committed together.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
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
from inmind.history.compaction.detection import is_filler
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.policy import CompactionRequest, check_archive_path
from inmind.history.compaction.retention import items_in_memory, retained_items, unsent_items
from inmind.history.compaction.select import CompactionSelection
from inmind.history.compaction.stubs import FRAME_TOKENS, ArchivePage, build_pages, build_stubs, new_path
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


@frozen
class KeptItem:
    """A retained item and its location after the compaction."""

    kind: str
    text: str
    location: str
    """`conversation` if a sent message contains it, or `memory` if it is in the memory block before the conversation.
    """


@frozen(kw_only=True)
class CompactionReport:
    """Result of a compaction. If nothing was compacted, `messages` is 0 and `reason` says why."""

    reason: str
    messages: int = 0
    tokens: int = 0
    """Tokens by which the prompt became shorter; negative if it became longer.

    The messages that left, without their stubs and without the tokens that the guide and the blocks of retained items
    and of the overview grew by. It compares prompts whose memory blocks are current and not cut. The size of
    context_meta is left out.
    """
    archives: tuple[str, ...] = ()
    items: tuple[KeptItem, ...] = ()
    """Retained items with their locations."""
    left_out: tuple[RetainedItem, ...] = ()
    """Oldest rules and decisions that did not fit; they are in the archive."""

    @classmethod
    def of(
        cls,
        payload: Compacted,
        *,
        unsent: Container[RetainedItem],
        request: RetainedItem | None,
        left_out: Sequence[RetainedItem],
    ) -> CompactionReport:
        """`unsent`: items that no sent message contains. `request`: the last request."""
        items = [KeptItem(one.kind, one.text, "memory" if one in unsent else "conversation") for one in payload.items]
        is_sent = request is not None and all(one.seq != request.seq for one in payload.items if one.kind == "request")
        requests = [KeptItem(request.kind, request.text, "conversation")] if request and is_sent else []
        return cls(
            reason=payload.reason,
            messages=payload.messages,
            tokens=payload.tokens,
            archives=payload.archives,
            items=(*items, *requests),
            left_out=tuple(left_out),
        )

    def __bool__(self) -> bool:
        return self.messages > 0

    def __str__(self) -> str:
        if not self:
            return f"Nothing was compacted: {self.reason}."
        kept = (
            f" Kept word for word: {', '.join(_count_kinds(self.items))}{self._shortened_note()}." if self.items else ""
        )
        pages = ", ".join(self.archives) or "the journal"
        return (
            f"Compacted {count_noun(self.messages, 'message')}, {self._difference()}. "
            f"All of it is in {pages}.{kept} {describe_left_out(self.left_out)}".rstrip()
        )

    def _difference(self) -> str:
        return f"{abs(self.tokens):,} tokens {'more' if self.tokens < 0 else 'less'} to send"

    def _shortened_note(self) -> str:
        return " (long ones by how they begin)" if any(item.text.endswith("…") for item in self.items) else ""


def describe_left_out(left_out: Sequence[RetainedItem]) -> str:
    """Return the sentence about items that are only in the archive; empty if there are none."""
    return f"There was no room to keep {', '.join(_count_kinds(left_out))}: archive/ has them." if left_out else ""


@frozen(kw_only=True)
class CompactionUndoReport:
    """Result of undoing a compaction."""

    event: int
    """Sequence number of the compaction."""
    messages: int
    """Messages that are sent again, completely or in part."""
    tokens: int
    """Tokens that the compaction had saved."""
    removed: tuple[str, ...] = ()
    """Archive pages that were removed."""
    stay: tuple[str, ...] = ()
    """Pages of the compaction that another writer changed, or another compaction uses."""

    @classmethod
    def of(cls, seq: int, payload: Compacted, removed: Sequence[str]) -> CompactionUndoReport:
        return cls(
            event=seq,
            messages=payload.messages,
            tokens=payload.tokens,
            removed=tuple(removed),
            stay=tuple(path for path in payload.archives if path not in removed),
        )

    def __str__(self) -> str:
        pages = ", ".join((*(f"{path} (removed)" for path in self.removed), *self.stay))
        of = f", of {pages}" if pages else ""
        return f"Restored to the prompt: {count_noun(self.messages, 'message')}, {self.tokens:,} tokens{of}."


def _count_kinds(items: Sequence[KeptItem | RetainedItem]) -> list[str]:
    kinds = dict.fromkeys(item.kind for item in items)
    return [count_noun(sum(item.kind == kind for item in items), _NOUNS.get(kind, kind)) for kind in kinds]


_NOUNS = {"pinned": "pinned item", "earlier_goal": "earlier goal", "open_decision": "open decision"}
