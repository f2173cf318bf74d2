"""Updates that memory makes on overview.md: the index of pages and the event log.

Both are one write with `upkeep=True`: it counts neither as an edit nor for the overview's coverage of the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.documents.document import OVERVIEW_PATH, PAGE_FOLDERS, Document, Documents
from inmind.documents.overview.event_log import OverviewLog, with_log_lines
from inmind.documents.overview.generated_lines import is_generated
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
    """Return drafts of these events, and of the overview if its generated lines change.

    `log`: the log before the events. `trust`: trust of the events' texts. `sources`: the events they come from.
    """
    drafts = [Draft(payload=event, origin=Origin.OPERATOR, sources=tuple(sources), trust=trust) for event in events]
    for event in events:
        log = log.with_event(event, trust=trust)
    page = documents.by_path.get(OVERVIEW_PATH)
    if page is None:
        return drafts
    text = with_index(with_log_lines(page.text, log, language), indexed_pages(documents), language)
    if text != page.text:
        written = DocumentWritten(OVERVIEW_PATH, text, upkeep=True)
        lowest = min((note.trust for note in log.visible_lines), default=Trust.OPERATOR)
        all_sources = tuple(filter(None, (page.source, *sources)))
        drafts.append(
            Draft(payload=written, origin=Origin.OPERATOR, sources=all_sources, trust=min(page.trust, lowest))
        )
    return drafts


def without_archive_lines(text: str) -> str:
    """Return the page without the index of pages and the line about archived messages."""
    lines = (line for line in with_index(text, {}, "en").split("\n") if not _is_about_archived(line))
    return "\n".join(lines).strip("\n")


def _is_about_archived(line: str) -> bool:
    return is_generated(line) and line.startswith(tuple(f"- {words}" for words in ARCHIVED_WORDS.values()))


ARCHIVED_WORDS = {"en": "archived ", "zh": "已归档 "}
"""Begin the line that a compaction writes on the page."""


def indexed_pages(documents: Documents) -> Mapping[str, str]:
    """Pages of detail/ and archive/ by path, newest first."""
    pages = [(path, page) for path, page in documents.by_path.items() if path.partition("/")[0] in PAGE_FOLDERS]
    return {path: page.text for path, page in sorted(pages, key=lambda one: one[1].version, reverse=True)}


def with_pending_writes(documents: Documents, drafts: Sequence[Draft]) -> Documents:
    """Return the documents with drafted pages; the last draft is the newest."""
    newest = max((page.version for page in documents.by_path.values()), default=0)
    fresh = {
        draft.payload.path: Document(draft.payload.text, newest + number, "", draft.effective_trust)
        for number, draft in enumerate(drafts, start=1)
        if isinstance(draft.payload, DocumentWritten)
    }
    return Documents({**documents.by_path, **fresh})


def without_generated_lines(text: str, *logs: OverviewLog) -> str:
    """Return the page without the lines of these logs and without the index."""
    for one in logs:
        text = with_log_lines(text, one.with_all_removed(), "en")
    return with_index(text, {}, "en")
