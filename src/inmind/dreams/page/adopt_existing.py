"""Adopt a MEMORY.md that a user wrote before the first dream.

All of it becomes crystals, in overlapping chunks, so that its words stay searchable after later dreams change the page.
On the page it stays unchanged; the first dream writes below it, with a comment.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from typing import Final

from inmind.core.tokens import estimator
from inmind.dreams.page.page import entry_text, parse_page, split_blocks

CHUNK_TOKENS: Final = 400
OVERLAP_TOKENS: Final = 80
"""Tokens of a chunk, and tokens that it shares with the next."""

DREAMS_BELOW_COMMENT: Final = "<!-- Written by dreams from here on. Later ones will work in what stands above. -->"

_MAX_WORD_CHARACTERS: Final = 60
"""Longer runs are scripts without spaces or no words, and may be cut anywhere."""

_MAX_CHUNK_WORDS: Final = 2 * CHUNK_TOKENS
"""Upper bound of words in a chunk: a word has at least half a token."""

_WORD = re.compile(rf"\S{{1,{_MAX_WORD_CHARACTERS}}}\s*|\s+")


def split_chunks(text: str) -> list[str]:
    """The text in chunks. Each word is complete in at least one of them."""
    return [text[begin:end].strip() for begin, end in _chunk_spans(text)]


def entry_texts(text: str) -> frozenset[str]:
    """The entries of the page."""
    return frozenset(entry for _, entry in parse_page(text).all_entries())


def chunk_by_entry(text: str) -> dict[str, int]:
    """The chunk number of each entry: the first chunk with all of it, else with its beginning."""
    spans, lines = list(_chunk_spans(text)), text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    entries = entry_texts(text)
    chunk_numbers: dict[str, int] = {}
    for block in split_blocks(lines):
        entry = entry_text("\n".join(line.rstrip("\r") for line in lines[block.start : block.end]))
        if entry in entries:
            start = starts[block.start]
            end = start + len(text[start : starts[block.end]].rstrip())
            first, after_last = bisect_right(spans, start, key=_span_end), bisect_right(spans, start, key=_span_start)
            chunk_numbers.setdefault(
                entry, next((number for number in range(first, after_last) if spans[number][1] >= end), first)
            )
    for entry in sorted(entries - chunk_numbers.keys()):  # interrupted by the header of a dream
        start = max(text.find(entry.partition("\n")[0]), 0)
        chunk_numbers[entry] = bisect_right(spans, start, key=_span_end)
    return chunk_numbers


def add_separator(text: str) -> str:
    """The preamble of the new page: the user's text, unchanged, and a separator."""
    if not text.strip():
        return ""
    blank_lines = "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{blank_lines}---\n\n{DREAMS_BELOW_COMMENT}\n\n"


def _chunk_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each chunk. No chunk is blank."""
    count = estimator()
    offsets = [0, *(word.end() for word in _WORD.finditer(text))]
    words = range(len(offsets) if text.strip() else 1)
    begin, end = 0, 0
    while end < words[-1]:
        limit = min(begin + _MAX_CHUNK_WORDS, len(words))
        end = (
            bisect_right(
                words, CHUNK_TOKENS, begin + 2, limit, key=lambda at: count(text[offsets[begin] : offsets[at]])
            )
            - 1
        )
        yield offsets[begin], offsets[end]
        begin = bisect_left(
            words, -OVERLAP_TOKENS, begin + 1, end, key=lambda at: -count(text[offsets[at] : offsets[end]])
        )


_span_start, _span_end = itemgetter(0), itemgetter(1)
