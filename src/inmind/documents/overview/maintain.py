"""Updates that memory makes on overview.md: the index of pages and the event log.

Both are one write with `upkeep=True`: it counts neither as an edit nor for the overview's coverage of the conversation.

Pages of detail/ and archive/ are not in the prompt, and a model does not read a page without a reference. So each gets
a line in the index, within a limit: detail pages before archive pages, newest first; the rest is counted. If a person
or model wrote a line about a page, that line is used instead. The index is above the sections, because a long page is
cut at its end and text is appended there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.text import contains_id, shorten
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, PAGE_FOLDERS, Document, Documents
from inmind.documents.overview.event_log import OverviewLog, with_log_lines
from inmind.documents.overview.front_matter import split_front_matter
from inmind.documents.overview.page import MAX_INDEX_BYTES, fit_round_robin
from inmind.documents.overview.sections import (
    edit_section_lines,
    find_headings,
    generated_line,
    has_no_words,
    insert_generated,
    is_generated,
    line_text,
    split_generated,
    text_lines,
)

MAX_DETAIL_PAGES = 5
MAX_ARCHIVE_PAGES = 3

# Characters scanned for title and summary: an archive page may have a megabyte.
_SCANNED_CHARACTERS = 8_000

_MAX_ENTRY_CHARACTERS = 240
_MAX_TITLE_CHARACTERS = 60
_MAX_SUMMARY_CHARACTERS = 100

_HEADINGS = {"en": "Detail and archive", "zh": "详细与归档"}
# Names no tool, because not every model has one that lists pages.
_MORE = {"en": "and {} more in these folders", "zh": "这些目录中另有 {} 个"}
# Wording of older versions, still recognized as generated.
_OLD_MORE = ("and {} more: memory_list", "另有 {} 个：memory_list")
_ENTRY = re.compile(
    rf"(?:{'|'.join(PAGE_FOLDERS)})/.+ \(\d+ KB\): .*|"
    + "|".join(r"\d+".join(map(re.escape, more.split("{}"))) for more in (*_MORE.values(), *_OLD_MORE))
)


def index_line(path: str, text: str) -> str:
    """Return the index line of a page.

    The title is the first heading, else the file name. The summary is the first line with words.
    """
    title, first_line = _title_and_summary(text[:_SCANNED_CHARACTERS])
    size = max(1, round(len(text.encode()) / 1024))
    title = shorten(title or PurePosixPath(path).stem, _MAX_TITLE_CHARACTERS)
    summary = shorten(first_line, _MAX_SUMMARY_CHARACTERS)
    return f"{path} ({size} KB): {title}" + (f" — {summary}" if summary else "")


def with_index(text: str, pages: Mapping[str, str], language: str) -> str:
    """Return the overview with the index of these pages, newest first.

    Without pages it has no index.
    """
    if not pages:
        for heading in _HEADINGS.values():
            text = edit_section_lines(text, [heading], _without_index)
        return text

    def update_lines(lines: Sequence[str]) -> list[str]:
        _, others = split_generated(lines, _is_entry)
        unlisted = [path for path in pages if not any(contains_id(line, path) for line in others)]
        archived = [path for path in unlisted if path.startswith(ARCHIVE_PREFIX)]
        written = [path for path in unlisted if not path.startswith(ARCHIVE_PREFIX)]
        kinds = (written[:MAX_DETAIL_PAGES], archived[:MAX_ARCHIVE_PAGES])
        lists = [
            [generated_line(index_line(path, pages[path]), max_characters=_MAX_ENTRY_CHARACTERS) for path in kind]
            for kind in kinds
        ]
        listed = fit_round_robin(lists, str, max_bytes=MAX_INDEX_BYTES)
        own = [line for kind in lists for line in kind if line in listed]
        if more := len(unlisted) - len(own):
            own.append(generated_line(_MORE[language].format(more)))
        return insert_generated(others, own)

    return edit_section_lines(text, [_HEADINGS[language], *_HEADINGS.values()], update_lines, on_top=True)


@lru_cache(maxsize=64)
def _title_and_summary(text: str) -> tuple[str, str]:
    """Title and summary of a page. Cached: every write of the overview reads the same pages."""
    lines = split_front_matter(text)[1].split("\n")
    titles = {number: words for number, _, words in find_headings(lines)}
    body_lines = (line for number, line in text_lines(lines) if number not in titles)
    title = next((words for words in titles.values() if words), "")
    return title, next((line_text(line) for line in body_lines if not has_no_words(line)), "")


def _without_index(lines: Sequence[str]) -> list[str] | None:
    own, others = split_generated(lines, _is_entry)
    return others if not own or any(line.strip() for line in others) else None


def _is_entry(line: str) -> bool:
    """True for a line with the form of an index entry; no others are under this heading."""
    return _ENTRY.fullmatch(line_text(line)) is not None


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
    starts = tuple(f"- {words}" for words in ARCHIVED_WORDS.values())
    lines = with_index(text, {}, "en").split("\n")
    return "\n".join(line for line in lines if not (is_generated(line) and line.startswith(starts))).strip("\n")


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
