"""A compaction, put together: pages, stubs, what must survive, and the overview's own record of it.

All of it is one decision over values, so that it happens at once or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import Compacted
from inmind.core.frozen import frozen
from inmind.core.language.prose import is_greeting, own_words
from inmind.core.text import counted, shortened
from inmind.documents.document import Documents, validate_text
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.maintain import overview_updates, with_pending_writes
from inmind.errors import InvalidPath
from inmind.history import ConversationEntry, History
from inmind.history.compaction.archive_page import Page, free_path, pages
from inmind.history.compaction.report import CompactionReport
from inmind.history.compaction.request import Wanted, archive_path
from inmind.history.compaction.retention import survivors, unsaid
from inmind.history.compaction.select import Leaving
from inmind.history.compaction.stubs import stubs_for
from inmind.history.token_meter import Meter
from inmind.history.turns import Spoken

_MOST_TITLE = 60


@frozen
class Made:
    drafts: list[Draft]
    report: CompactionReport


def compaction(
    history: History,
    documents: Documents,
    said: Sequence[Spoken],
    leaving: Leaving,
    wanted: Wanted,
    *,
    noted: OverviewLog,
    language: str,
    meter: Meter,
) -> Made:
    """The events of a compaction. `said`: what is sent, message by message, as `history.sent` has it."""
    entries = history.sent[:]
    fresh = [place for place in leaving.touched if not entries[place].stub]
    title = _title(said, leaving)
    archived = _archived([entries[place] for place in fresh], title, wanted, documents)
    kept, dropped = survivors(history, said, leaving, meter)
    stubs = stubs_for(history, said, leaving, wanted, archived, meter)
    before = sum(said[place].tokens for place in leaving.touched)
    after = sum(meter.wire(stub.format, wire) for stub in stubs for wire in stub.messages)
    what = Compacted(
        target=wanted.target,
        reason=wanted.reason,
        stubs=tuple(stubs),
        strategy=wanted.strategy,
        messages=len(fresh),
        tokens=before - after,
        archives=tuple(page.path for page in archived),
        items=tuple(kept),
        left_out=tuple(item for item in dropped if item not in history.left_out),
    )
    report = CompactionReport.of(what, unsaid=unsaid(kept, said, leaving), request=wanted.request, left_out=dropped)
    drafts = [
        _draft(DocumentWritten(page.path, page.text, upkeep=True), _sources_of(page, history, documents))
        for page in archived
    ]
    then = with_pending_writes(documents, drafts[::-1])  # of the pages of one compaction the first stands first
    sources = _sources(history, leaving.touched)
    earlier = [one.id for one in history.compactions[-1:]]  # what must survive is handed on from one to the next
    drafts.append(_draft(what, (*earlier, *sources)))
    # The overview is memory's to keep current: no model has to remember to.
    if archived:
        number = f"{len(fresh)} 条消息" if language == "zh" else counted(len(fresh), "message")
        told = _COMPLETED[language].format(number, title, archived[0].path)
        occurred = [OverviewEvent("compression_completed", told)]
        drafts += overview_updates(then, language, occurred, log=noted, sources=sources)
    return Made(drafts, report)


_COMPLETED = {
    "en": "archived {} about {}: {}",
    "zh": "已归档 {}（{}）：{}",
}


def _draft(what: DocumentWritten | Compacted, sources: tuple[str, ...]) -> Draft:
    """It holds what anybody has said, tools among them."""
    return Draft(payload=what, origin=Origin.OPERATOR, sources=sources, trust=Trust.DATA)


def _sources_of(page: Page, history: History, documents: Documents) -> tuple[str, ...]:
    """The messages on a page, and what stood there before."""
    here = [place for place, entry in enumerate(history.sent) if not entry.stub and entry.seq in page.lines]
    before = documents.by_path.get(page.path)
    return (*([before.source] if before else []), *_sources(history, here))


def _sources(history: History, places: Sequence[int]) -> tuple[str, ...]:
    """All messages at these places, those behind stubs included; such as follow each other as one, from first to last.

    A page holds hundreds, and whoever forgets one of them has to find it.
    """
    stream = history.sent[places[0]].id.rpartition("#")[0]
    runs = history.runs_at(places)
    return tuple(f"{stream}#{first}" if first == last else f"{stream}#{first}-{last}" for first, last in runs)


def _archived(entries: Sequence[ConversationEntry], title: str, wanted: Wanted, documents: Documents) -> list[Page]:
    if not entries:
        return []
    path = free_path(title, documents.by_path) if wanted.archive_to is None else archive_path(wanted.archive_to)
    made = pages(entries, title=title, path=path, before=documents.text(path))
    for page in made:
        validate_text(page.text, field="archive_to")
        if page.path != path and page.path in documents.by_path:
            raise InvalidPath(field="archive_to", value=wanted.archive_to, expected="a page with room for all of it")
    return made


def _title(said: Sequence[Spoken], leaving: Leaving) -> str:
    """What it was about: the first that a user asked there, the tools that answered, or what an agent did by text."""
    fresh = [said[place] for place in leaving.whole if not said[place].stub]
    for one in fresh:
        if one.begins_turn and not is_greeting(one.words):
            return shortened(one.words, _MOST_TITLE)
    names = {call.id: call.tool for one in said for call in one.asks}
    tools = [names.get(answer.id, "") for place in leaving.touched for answer in said[place].answers]
    used = ", ".join(dict.fromkeys(filter(None, tools)))
    if used:
        return shortened(f"outputs of {used}", _MOST_TITLE)
    told = (line for one in fresh if one.by == "assistant" for line in own_words(one.words))
    return shortened(next(told, "conversation"), _MOST_TITLE)
