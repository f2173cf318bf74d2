"""The index of detail/ and archive/ on overview.md, kept current by memory itself.

Those pages are not shown in requests. A page that nothing names is as good as lost, and a model that has to remember
to name it forgets to; so each has a line here, as many as are worth their tokens: what somebody wrote before what was
archived, the newest first, and the others are counted. A line that somebody wrote about a page stands for ours.

It stands above the sections: a page that is too long is cut at its end, and what is appended to it lands there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from inmind.core.frozen import frozen
from inmind.core.text import shortened, stands_in
from inmind.documents.document import ARCHIVE_PREFIX, PAGE_FOLDERS
from inmind.documents.overview.front_matter import split_front_matter
from inmind.documents.overview.generated_lines import (
    generated_line,
    has_no_words,
    insert_generated,
    line_text,
    split_generated,
)
from inmind.documents.overview.sections import edit_section_lines, find_headings, text_lines
from inmind.documents.overview.size import MAX_INDEX_BYTES, fit_round_robin

MAX_DETAIL_PAGES = 5
MAX_ARCHIVE_PAGES = 3

# Characters in which a page says what it is: an archive may have a megabyte.
_SCANNED_CHARACTERS = 8_000

_MAX_ENTRY_CHARACTERS = 240
_MAX_TITLE_CHARACTERS = 60
_MAX_SUMMARY_CHARACTERS = 100

_HEADINGS = {"en": "Detail and archive", "zh": "详细与归档"}
# No tool is named: not every model has one that lists pages.
_MORE = {"en": "and {} more in these folders", "zh": "这些目录中另有 {} 个"}
# As it was said once: on a page from then it is still ours.
_OLD_MORE = ("and {} more: memory_list", "另有 {} 个：memory_list")
_ENTRY = re.compile(
    rf"(?:{'|'.join(PAGE_FOLDERS)})/.+ \(\d+ KB\): .*|"
    + "|".join(r"\d+".join(map(re.escape, more.split("{}"))) for more in (*_MORE.values(), *_OLD_MORE))
)


@frozen
class IndexEntry:
    """What the index says of a page."""

    path: str
    title: str
    bytes: int
    summary: str

    @property
    def text(self) -> str:
        size = f"{max(1, round(self.bytes / 1024))} KB"
        return f"{self.path} ({size}): {self.title}" + (f" — {self.summary}" if self.summary else "")


def index_entry(path: str, text: str) -> IndexEntry:
    """Its title is its first heading, or else its name; its line is the first that says something."""
    title, line = _title_and_summary(text[:_SCANNED_CHARACTERS])
    return IndexEntry(
        path=path,
        title=shortened(title or PurePosixPath(path).stem, _MAX_TITLE_CHARACTERS),
        bytes=len(text.encode()),
        summary=shortened(line, _MAX_SUMMARY_CHARACTERS),
    )


def with_index(text: str, pages: Mapping[str, str], language: str) -> str:
    """The overview with the index of these pages, the newest of which come first; without pages it has none."""
    if not pages:
        for heading in _HEADINGS.values():
            text = edit_section_lines(text, [heading], _without_index)
        return text

    def update_lines(lines: Sequence[str]) -> list[str]:
        _, theirs = split_generated(lines, _is_entry)
        wanted = [path for path in pages if not any(stands_in(line, path) for line in theirs)]
        archived = [path for path in wanted if path.startswith(ARCHIVE_PREFIX)]
        written = [path for path in wanted if not path.startswith(ARCHIVE_PREFIX)]
        kinds = (written[:MAX_DETAIL_PAGES], archived[:MAX_ARCHIVE_PAGES])
        lists = [
            [generated_line(index_entry(path, pages[path]).text, max_characters=_MAX_ENTRY_CHARACTERS) for path in kind]
            for kind in kinds
        ]
        listed = fit_round_robin(lists, str, max_bytes=MAX_INDEX_BYTES)
        own = [line for kind in lists for line in kind if line in listed]
        if more := len(wanted) - len(own):
            own.append(generated_line(_MORE[language].format(more)))
        return insert_generated(theirs, own)

    return edit_section_lines(text, [_HEADINGS[language], *_HEADINGS.values()], update_lines, on_top=True)


@lru_cache(maxsize=64)
def _title_and_summary(text: str) -> tuple[str, str]:
    """Remembered, since the same few pages are asked at every write of the overview."""
    lines = split_front_matter(text)[1].split("\n")
    titles = {number: words for number, _, words in find_headings(lines)}
    said = (line for number, line in text_lines(lines) if number not in titles)
    title = next((words for words in titles.values() if words), "")
    return title, next((line_text(line) for line in said if not has_no_words(line)), "")


def _without_index(lines: Sequence[str]) -> list[str] | None:
    own, theirs = split_generated(lines, _is_entry)
    return theirs if not own or any(line.strip() for line in theirs) else None


def _is_entry(line: str) -> bool:
    """Told by its form: the lines of an index differ with every page, and nobody else has any under its heading."""
    return _ENTRY.fullmatch(line_text(line)) is not None
