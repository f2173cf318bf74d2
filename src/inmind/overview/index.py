"""The index of detail/ and archive/ on overview.md, kept current by memory itself.

Those pages are not shown in requests. A page that nothing names is as good as lost, and a model that has to remember
to name it forgets to; so each has a line here, the newest first, as many as are worth their tokens. A line that
somebody wrote about a page stands for ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from inmind.overview.head import parted
from inmind.overview.own import is_own, own_line, parted_lines, with_own, words_of
from inmind.overview.sections import headings_in, plain, with_lines
from inmind.text import shortened, stands_in

MOST_PAGES = 5

# Characters in which a page says what it is: an archive may have a megabyte, and every page is asked at every write.
_BEGINNING = 8_000

_LONGEST = 240
_LONGEST_TITLE = 60
_LONGEST_LINE = 100

_HEADINGS = {"en": "Detail and archive", "zh": "详细与归档"}
_MORE = {"en": "and {} more: memory_list", "zh": "另有 {} 个：memory_list"}
_RULE = re.compile(r"\W*")


@dataclass(frozen=True, slots=True)
class Page:
    """What the index says of a page."""

    path: str
    title: str
    bytes: int
    line: str

    @property
    def entry(self) -> str:
        size = f"{max(1, round(self.bytes / 1024))} KB"
        return f"{self.path} ({size}): {self.title}" + (f" — {self.line}" if self.line else "")


def page_of(path: str, text: str) -> Page:
    """Its title is its first heading, or else its name; its line is the first that says something."""
    lines = parted(text[:_BEGINNING])[1].split("\n")
    titles = {number: words for number, _, words in headings_in(lines)}
    said = (words_of(line) for number, line in plain(lines) if number not in titles and not is_own(line))
    title = next((words for words in titles.values() if words), PurePosixPath(path).stem)
    first = next((words for words in said if not _RULE.fullmatch(words)), "")
    return Page(
        path=path,
        title=shortened(title, _LONGEST_TITLE),
        bytes=len(text.encode()),
        line=shortened(first, _LONGEST_LINE),
    )


def with_index(text: str, pages: Sequence[Page], language: str) -> str:
    """The overview with the index of these pages, the newest of which come first; without pages it has none."""
    if not pages:
        for heading in _HEADINGS.values():
            text = with_lines(text, [heading], _without_index)
        return text

    def indexed(lines: Sequence[str]) -> list[str]:
        _, theirs = parted_lines(lines)
        wanted = [page for page in pages if not any(stands_in(line, page.path) for line in theirs)]
        own = [own_line(page.entry, most=_LONGEST) for page in wanted[:MOST_PAGES]]
        if more := len(wanted) - len(own):
            own.append(own_line(_MORE[language].format(more)))
        return with_own(lines, own)

    return with_lines(text, [_HEADINGS[language], *_HEADINGS.values()], indexed)


def _without_index(lines: Sequence[str]) -> list[str] | None:
    _, theirs = parted_lines(lines)
    return theirs if any(line.strip() for line in theirs) else None


def bare(text: str) -> str:
    """The page as others wrote it, without anything that memory has entered."""
    head, page = parted(text)
    _, theirs = parted_lines(page.split("\n"))
    return with_index(head + "\n".join(theirs), [], "en")
