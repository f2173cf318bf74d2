"""What memory enters on overview.md by itself: the index of pages, and what has happened.

It is one write, and marked as memory's own: a page that only memory has written on is not one that somebody keeps, and
says nothing about how far it covers the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.documents.document import OVERVIEW_PATH, PAGE_FOLDERS, Document, Documents
from inmind.documents.overview.event_log import OverviewLog, with_log_lines
from inmind.documents.overview.index import with_index

_EMPTY_LOG = OverviewLog()


def overview_updates(
    documents: Documents,
    language: str,
    events: Sequence[OverviewEvent] = (),
    *,
    log: OverviewLog = _EMPTY_LOG,
    trust: Trust = Trust.OPERATOR,
    sources: Sequence[str] = (),
) -> list[Draft]:
    """What occurred, and the overview with all that memory keeps on it: nothing where it is so already.

    `noted`: the lines of ours until then. `trust`: how far to trust the words of what occurred. `sources`: the events
    that told of it.
    """
    drafts = [Draft(payload=what, origin=Origin.OPERATOR, sources=tuple(sources), trust=trust) for what in events]
    for what in events:
        log = log.with_event(what, trust=trust)
    page = documents.by_path.get(OVERVIEW_PATH)
    if page is None:
        return drafts
    text = with_index(with_log_lines(page.text, log, language), indexed_pages(documents), language)
    if text != page.text:
        written = DocumentWritten(OVERVIEW_PATH, text, upkeep=True)
        least = min((note.trust for note in log.visible_lines), default=Trust.OPERATOR)
        where_from = tuple(filter(None, (page.source, *sources)))
        drafts.append(Draft(payload=written, origin=Origin.OPERATOR, sources=where_from, trust=min(page.trust, least)))
    return drafts


def indexed_pages(documents: Documents) -> Mapping[str, str]:
    """Pages of detail/ and archive/, the newest first."""
    pages = [(path, page) for path, page in documents.by_path.items() if path.partition("/")[0] in PAGE_FOLDERS]
    return {path: page.text for path, page in sorted(pages, key=lambda one: one[1].version, reverse=True)}


def with_pending_writes(documents: Documents, drafts: Sequence[Draft]) -> Documents:
    """The documents with pages that are about to be written, the last of which will be the newest."""
    newest = max((page.version for page in documents.by_path.values()), default=0)
    fresh = {
        draft.payload.path: Document(draft.payload.text, newest + number, "", draft.effective_trust)
        for number, draft in enumerate(drafts, start=1)
        if isinstance(draft.payload, DocumentWritten)
    }
    return Documents({**documents.by_path, **fresh})


def without_generated_lines(text: str, *logs: OverviewLog) -> str:
    """The page without anything that memory has entered, by these."""
    for one in logs:
        text = with_log_lines(text, one.with_all_removed(), "en")
    return with_index(text, {}, "en")
