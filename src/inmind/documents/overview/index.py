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
from inmind.documents.document import ARCHIVE, FOLDERS
from inmind.documents.overview.front_matter import split_front_matter
from inmind.documents.overview.generated_lines import own_line, parted_lines, says_nothing, with_own, words_of
from inmind.documents.overview.sections import headings_in, plain, with_lines
from inmind.documents.overview.size import MOST_INDEXED, fitting

MOST_WRITTEN = 5
MOST_ARCHIVED = 3

# Characters in which a page says what it is: an archive may have a megabyte.
_BEGINNING = 8_000

_LONGEST = 240
_LONGEST_TITLE = 60
_LONGEST_LINE = 100

_HEADINGS = {"en": "Detail and archive", "zh": "详细与归档"}
# No tool is named: not every model has one that lists pages.
_MORE = {"en": "and {} more in these folders", "zh": "这些目录中另有 {} 个"}
# As it was said once: on a page from then it is still ours.
_MORE_ONCE = ("and {} more: memory_list", "另有 {} 个：memory_list")
_ENTRY = re.compile(
    rf"(?:{'|'.join(FOLDERS)})/.+ \(\d+ KB\): .*|"
    + "|".join(r"\d+".join(map(re.escape, more.split("{}"))) for more in (*_MORE.values(), *_MORE_ONCE))
)


@frozen
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
    title, line = _described(text[:_BEGINNING])
    return Page(
        path=path,
        title=shortened(title or PurePosixPath(path).stem, _LONGEST_TITLE),
        bytes=len(text.encode()),
        line=shortened(line, _LONGEST_LINE),
    )


def with_index(text: str, pages: Mapping[str, str], language: str) -> str:
    """The overview with the index of these pages, the newest of which come first; without pages it has none."""
    if not pages:
        for heading in _HEADINGS.values():
            text = with_lines(text, [heading], _without_index)
        return text

    def indexed(lines: Sequence[str]) -> list[str]:
        _, theirs = parted_lines(lines, _is_entry)
        wanted = [path for path in pages if not any(stands_in(line, path) for line in theirs)]
        archived = [path for path in wanted if path.startswith(ARCHIVE)]
        written = [path for path in wanted if not path.startswith(ARCHIVE)]
        kinds = (written[:MOST_WRITTEN], archived[:MOST_ARCHIVED])
        lists = [[own_line(page_of(path, pages[path]).entry, most=_LONGEST) for path in kind] for kind in kinds]
        listed = fitting(lists, str, most=MOST_INDEXED)
        own = [line for kind in lists for line in kind if line in listed]
        if more := len(wanted) - len(own):
            own.append(own_line(_MORE[language].format(more)))
        return with_own(theirs, own)

    return with_lines(text, [_HEADINGS[language], *_HEADINGS.values()], indexed, on_top=True)


@lru_cache(maxsize=64)
def _described(beginning: str) -> tuple[str, str]:
    """Remembered, since the same few pages are asked at every write of the overview."""
    lines = split_front_matter(beginning)[1].split("\n")
    titles = {number: words for number, _, words in headings_in(lines)}
    said = (line for number, line in plain(lines) if number not in titles)
    title = next((words for words in titles.values() if words), "")
    return title, next((words_of(line) for line in said if not says_nothing(line)), "")


def _without_index(lines: Sequence[str]) -> list[str] | None:
    own, theirs = parted_lines(lines, _is_entry)
    return theirs if not own or any(line.strip() for line in theirs) else None


def _is_entry(line: str) -> bool:
    """Told by its form: the lines of an index differ with every page, and nobody else has any under its heading."""
    return _ENTRY.fullmatch(words_of(line)) is not None
