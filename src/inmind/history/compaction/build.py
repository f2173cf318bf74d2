"""Builds a compaction: archive pages, stubs, retained items and the line on the overview.

It is one pure function, so that all of its events are committed together.
"""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import Compacted
from inmind.core.frozen import frozen
from inmind.core.language.prose import is_greeting, own_words
from inmind.core.text import count_noun, shorten
from inmind.documents.document import Documents, validate_text
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.maintain import overview_updates, with_pending_writes
from inmind.errors import InvalidPath
from inmind.history import ConversationEntry, History
from inmind.history.compaction.archive_page import ArchivePage, build_pages, new_path
from inmind.history.compaction.report import CompactionReport
from inmind.history.compaction.request import CompactionRequest, check_archive_path
from inmind.history.compaction.retention import retained_items, unsent_items
from inmind.history.compaction.select import CompactionSelection
from inmind.history.compaction.stubs import build_stubs
from inmind.history.token_meter import TokenMeter
from inmind.history.turns import TurnMessage

_MAX_TITLE_CHARACTERS = 60


@frozen
class CompactionPlan:
    drafts: list[Draft]
    report: CompactionReport


def build_compaction(
    history: History,
    documents: Documents,
    messages: Sequence[TurnMessage],
    selection: CompactionSelection,
    request: CompactionRequest,
    *,
    overview_log: OverviewLog,
    language: str,
    meter: TokenMeter,
) -> CompactionPlan:
    """Return the drafts and the report of a compaction.

    `messages`: the sent messages, as in `history.sent`.
    """
    entries = history.sent[:]
    fresh = [place for place in selection.changed if not entries[place].is_stub]
    title = _title(messages, selection)
    archived = _archive_pages([entries[place] for place in fresh], title, request, documents)
    kept, dropped = retained_items(history, messages, selection, meter)
    stubs = build_stubs(history, messages, selection, request, archived, meter)
    before = sum(messages[place].tokens for place in selection.changed)
    after = sum(meter.count_wire(stub.format, wire) for stub in stubs for wire in stub.messages)
    compacted = Compacted(
        target=request.target,
        reason=request.reason,
        stubs=tuple(stubs),
        strategy=request.strategy,
        messages=len(fresh),
        tokens=before - after,
        archives=tuple(page.path for page in archived),
        items=tuple(kept),
        left_out=tuple(item for item in dropped if item not in history.dropped),
    )
    report = CompactionReport.of(
        compacted, unsent=unsent_items(kept, messages, selection), request=request.last_request, left_out=dropped
    )
    drafts = [
        _draft(DocumentWritten(page.path, page.text, upkeep=True), _page_sources(page, history, documents))
        for page in archived
    ]
    updated = with_pending_writes(documents, drafts[::-1])  # the first page of a compaction is listed first
    sources = _sources(history, selection.changed)
    earlier = [
        one.id for one in history.compactions[-1:]
    ]  # retained items are passed on from one compaction to the next
    drafts.append(_draft(compacted, (*earlier, *sources)))
    # Memory updates the overview itself, so the model does not have to.
    if archived:
        number = f"{len(fresh)} 条消息" if language == "zh" else count_noun(len(fresh), "message")
        entry = _COMPLETED[language].format(number, title, archived[0].path)
        occurred = [OverviewEvent("compression_completed", entry)]
        drafts += overview_updates(updated, language, occurred, log=overview_log, sources=sources)
    return CompactionPlan(drafts, report)


_COMPLETED = {
    "en": 'archived {} about "{}": {}',
    "zh": "已归档 {}（{}）：{}",
}


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
        if one.starts_turn and not is_greeting(one.text):
            return shorten(one.text, _MAX_TITLE_CHARACTERS)
    names = {call.id: call.tool for one in messages for call in one.calls}
    tools = [names.get(answer.id, "") for place in selection.changed for answer in messages[place].results]
    used = ", ".join(dict.fromkeys(filter(None, tools)))
    if used:
        return shorten(f"outputs of {used}", _MAX_TITLE_CHARACTERS)
    lines = (line for one in fresh if one.speaker == "assistant" for line in own_words(one.text))
    return shorten(next(lines, "conversation"), _MAX_TITLE_CHARACTERS)
