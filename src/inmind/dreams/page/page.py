"""MEMORY.md: its sections and size limits, and how it is parsed and rendered.

    # Working Memory State

    _Last dream: 2026-03-12T16:00:00Z | Mood: calm_

    ## The Bond

    - Prefers tabs over spaces

Users may write anything on this page, so parsing never fails and never drops a word: unknown text is an entry like
any other and is rendered at its position. An entry is a list item with the lines indented below it, or a paragraph.
Text in fences or comments is never a heading.

Affect weighs the sections. A large context window gets the whole page that a dream writes. A smaller one gets a part
of it. The pending notes share the budget: they are newer than the page, so they come first, with up to a quarter.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from textwrap import dedent
from typing import Final, Literal, NamedTuple

from inmind.core.frozen import frozen
from inmind.core.text import TruncatedText, truncate
from inmind.core.tokens import Counter, estimator
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.affect import BASELINES, Levels


class Section(StrEnum):
    """The headings, in the order of the page."""

    PHENOTYPE = "The Phenotype"
    """Who the agent is becoming."""
    BOND = "The Bond"
    """The user, and how the two get along."""
    NICHE = "The Niche"
    """The agent's place among others, and what it earns."""
    ACTIVE = "Active Context"
    """Current work: goals, open tasks, what to avoid, what went well."""
    POINTERS = "Crystal Pointers"
    """Topics that were removed from the page, and the keywords that find them."""
    GAPS = "Curiosity Gaps"
    SKILLS = "Emerging Skills"


def section_from_heading(heading: str) -> Section | None:
    """The section of a heading, also with a suffix in parentheses; None for other headings."""
    name = heading.lstrip("#").strip().casefold()
    return next(
        (section for section in Section if name == section.casefold() or name.startswith(f"{section.casefold()} (")),
        None,
    )


def section_weights(levels: Levels) -> dict[Section, float]:
    """Weight of each section by the current levels, from 1 at rest to 2 at the maximum.

    The worth of a line is multiplied by the weight when the page is full. Warm words raise The Bond; a win or a failure
    raises Active Context. No weight is below 1: affect raises lines and lowers none. Pointers, gaps and skills are not
    affected.
    """
    raised = {
        name: max(0.0, (level - BASELINES[name]) / (1 - BASELINES[name])) for name, level in levels.by_name.items()
    }
    active = 1 + max(raised["dopamine"], raised["cortisol"])
    return dict.fromkeys(Section, 1.0) | {Section.BOND: 1 + raised["oxytocin"], Section.ACTIVE: active}


MAX_PAGE_CHARACTERS: Final = 6_000
MAX_PAGE_TOKENS: Final = 2_000

_DREAM_FRACTION: Final = 4
"""Dreams may use this fraction (1/n) of the limit in addition, if user text alone fills the page."""

_PROMPT_CHARACTERS_BY_WINDOW: Final = ((200_000, 8_000), (128_000, 6_000), (64_000, 4_000))
"""Minimum context window, and the characters for page and notes in it."""

_MIN_PROMPT_CHARACTERS: Final = 3_200

_NOTES_FRACTION: Final = 4
"""Notes may use this fraction (1/n) if they need it."""


@frozen
class TextSize:
    """Characters and tokens of a text."""

    characters: int
    tokens: int

    def fits_in(self, other: TextSize) -> bool:
        return self.characters <= other.characters and self.tokens <= other.tokens

    def __add__(self, other: TextSize) -> TextSize:
        return TextSize(self.characters + other.characters, self.tokens + other.tokens)

    def __sub__(self, other: TextSize) -> TextSize:
        return TextSize(self.characters - other.characters, self.tokens - other.tokens)


MAX_PAGE_SIZE: Final = TextSize(MAX_PAGE_CHARACTERS, MAX_PAGE_TOKENS)


def measure(text: str) -> TextSize:
    return TextSize(len(text), _count_tokens(text))


def page_limit(user_text: str) -> TextSize:
    """The size limit of a page, given the text of users on it. Users are not limited."""
    user_size = measure(user_text)
    dream_part = TextSize(MAX_PAGE_CHARACTERS // _DREAM_FRACTION, MAX_PAGE_TOKENS // _DREAM_FRACTION)
    return MAX_PAGE_SIZE if user_size.fits_in(MAX_PAGE_SIZE) else user_size + dream_part


def prompt_characters(window: int) -> int:
    """Characters for page and notes together, by context window."""
    return next(
        (characters for min_window, characters in _PROMPT_CHARACTERS_BY_WINDOW if window >= min_window),
        _MIN_PROMPT_CHARACTERS,
    )


def split_prompt_characters(window: int, state: str, notes: str) -> tuple[int, int]:
    """Characters for the page and for the notes. Each may use what the other does not need."""
    total = prompt_characters(window)
    notes_characters = min(len(notes), max(total // _NOTES_FRACTION, total - len(state)))
    return total - notes_characters, notes_characters


_count_tokens = estimator()


PAGE_TITLE = "# Working Memory State"


@frozen
class PagePart:
    """A heading and the entries below it."""

    heading: str
    """The whole line, `## The Bond`; empty for entries without a heading."""
    entries: tuple[str, ...] = ()
    """Verbatim, except for line endings."""

    @property
    def section(self) -> Section | None:
        return section_from_heading(self.heading)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for entry in self.entries if (text := entry_text(entry)))


@frozen(kw_only=True)
class MemoryPage:
    """The parsed page."""

    preamble: str = ""
    """Text of users before the title, verbatim; the whole page if no dream has written yet."""
    title: str = ""
    """The title as written; empty if a user removed it."""
    header: str = ""
    """The line about the last dream; empty before the first."""
    parts: tuple[PagePart, ...] = ()

    def entries(self, section: Section) -> tuple[str, ...]:
        """The texts of a section's entries."""
        return tuple(text for part in self.parts if part.section is section for text in part.texts)

    def all_entries(self) -> Iterator[tuple[Section | None, str]]:
        """All entry texts, each with its section.

        The section is None in the preamble and under headings of users.
        """
        for part in split_parts(self.preamble):
            yield from ((None, text) for text in part.texts)
        for part in self.parts:
            yield from ((part.section, text) for text in part.texts)


def parse_page(text: str) -> MemoryPage:
    """Parse a text.

    The state begins with its title, or, if that is missing, with the first line of a dream.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    lines = text.removeprefix(bom).split("\n")
    blocks = list(split_blocks(lines))
    start = _find_state_start(lines, blocks)
    if start is None:
        return MemoryPage(preamble=text)
    preamble, rest = lines[:start], lines[start:]
    title = rest.pop(0).strip() if _is_title(rest[0]) else ""
    # The text around the header is parsed as it will be rendered: without the header in between.
    header_index = next((block.start for block in split_blocks(rest) if block.kind == "header"), None)
    header = "" if header_index is None else rest.pop(header_index).strip()
    return MemoryPage(
        preamble=bom + "".join(f"{line}\n" for line in preamble),
        title=title,
        header=header,
        parts=tuple(_build_parts(rest, split_blocks(rest))),
    )


def render_page(page: MemoryPage) -> str:
    """The text of a page. Parsing it results in the same page."""
    state = "\n\n".join(filter(None, (page.title, page.header, *map(_render_part, page.parts))))
    return page.preamble + (f"{state}\n" if state else "")


def entry_text(entry: str) -> str:
    """An entry without list mark and indentation; empty for a comment or a horizontal rule."""
    bare = entry.strip()
    if _HORIZONTAL_RULE.fullmatch(bare) or (bare.startswith("<!--") and bare.find("-->") == len(bare) - len("-->")):
        return ""
    first, _, rest = entry.partition("\n")
    return "\n".join([_LIST_MARK.sub("", first, count=1).strip(), *([dedent(rest)] if rest else [])]).strip()


def render_header(now: datetime, mood: str = "") -> str:
    """The header line of a dream."""
    mood_text = " ".join(mood.split()).replace("_", " ")
    return f"_Last dream: {format_timestamp(now)}{f' | Mood: {mood_text}' if mood_text else ''}_"


def split_parts(text: str) -> list[PagePart]:
    """Split a text at its headings."""
    lines = text.split("\n")
    return list(_build_parts(lines, split_blocks(lines)))


class Block(NamedTuple):
    """Lines that belong together: `start` up to, but not including, `end`."""

    start: int
    end: int
    kind: Literal["heading", "header", "entry"]


def split_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """All blocks in order. Blank lines are skipped."""
    block_end = _block_end_finder(lines)
    start = 0
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            continue
        kind = _line_kind(lines[start])
        end = _entry_end(lines, start, block_end) if kind == "entry" else start + 1
        yield Block(start, end, kind)
        start = end


_BOM = "\ufeff"
_LIST_MARK = re.compile(r"\A\s*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_HORIZONTAL_RULE = re.compile(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
_HEADING = re.compile(r"#{1,6}[ \t]+\S.*")
_HEADER = re.compile(r"\s*_Last dream:.*_\s*")
_FENCE_OPENING = re.compile(r"\s*(?:(`{3,})[^`]*|(~{3,}).*)")
_FENCE_CLOSING = re.compile(r"\s*(`{3,}|~{3,})\s*")

# A fence is closed by one of its kind that is at least as long. Longer fences than this are treated alike.
_MAX_FENCE_LENGTH = 8


def _line_kind(line: str) -> Literal["heading", "header", "entry"]:
    if _HEADING.fullmatch(line.rstrip()):
        return "heading"
    return "header" if _HEADER.fullmatch(line) else "entry"


def _is_title(line: str) -> bool:
    return line.strip().casefold() == PAGE_TITLE.casefold()


def _find_state_start(lines: Sequence[str], blocks: Sequence[Block]) -> int | None:
    """The line of the title, else of the header, else of the first section; None without any."""
    markers: tuple[Callable[[Block], bool], ...] = (
        lambda block: block.kind == "heading" and _is_title(lines[block.start]),
        lambda block: block.kind == "header",
        lambda block: block.kind == "heading" and section_from_heading(lines[block.start]) is not None,
    )
    return next((block.start for is_marker in markers for block in blocks if is_marker(block)), None)


def _entry_end(lines: Sequence[str], start: int, block_end: Callable[[int], int]) -> int:
    """The line after an entry.

    A blank line ends a paragraph. A list item continues after it if the next line is indented: an editor may have
    removed the indentation of the blank line.
    """
    is_item, indent = _LIST_MARK.match(lines[start]) is not None, _indent(lines[start])
    end = block_end(start)
    while end < len(lines):
        line = lines[end]
        if not line.strip():
            next_line = end + 1
            while next_line < len(lines) and not lines[next_line].strip():
                next_line += 1
            if not is_item or next_line == len(lines) or _indent(lines[next_line]) <= indent:
                break
            end = next_line
            continue
        starts_item = _LIST_MARK.match(line) and (not is_item or _indent(line) <= indent)
        if starts_item or _line_kind(line) != "entry":
            break
        end = block_end(end)
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block_end_finder(lines: Sequence[str]) -> Callable[[int], int]:
    """Return a function from the first line of a block to the line after the block.

    An unclosed fence or comment ends on its first line. All lines are scanned once, because a page may consist of
    openings. A comment that reaches the next one was not closed: an open comment of a user must not hide the text of
    dreams.
    """
    ends: dict[str, list[int]] = {}
    comment_start: int | None = None
    for number, line in enumerate(lines):
        comment_start = number if line.lstrip().startswith("<!--") else comment_start
        if "-->" in line and comment_start is not None:
            ends.setdefault(f"<!-- {comment_start}", []).append(number)
        if fence := _FENCE_CLOSING.fullmatch(line):
            ends.setdefault(fence[1][:_MAX_FENCE_LENGTH], []).append(number)

    def block_end(start: int) -> int:
        if lines[start].lstrip().startswith("<!--"):
            marks, search_from = [f"<!-- {start}"], start
        elif fence := _FENCE_OPENING.fullmatch(lines[start]):
            mark: str = fence[1] or fence[2]
            longer = range(min(len(mark), _MAX_FENCE_LENGTH), _MAX_FENCE_LENGTH + 1)
            marks, search_from = [mark[0] * length for length in longer], start + 1
        else:
            return start + 1
        places = [(ends[mark], bisect_left(ends[mark], search_from)) for mark in marks if mark in ends]
        return (
            min((line_numbers[offset] for line_numbers, offset in places if offset < len(line_numbers)), default=start)
            + 1
        )

    return block_end


def _build_parts(lines: Sequence[str], blocks: Iterator[Block] | Sequence[Block]) -> Iterator[PagePart]:
    heading, entries = "", list[str]()
    for block in blocks:
        if block.kind != "heading":
            entries.append("\n".join(line.rstrip("\r") for line in lines[block.start : block.end]))
            continue
        if heading or entries:
            yield PagePart(heading, tuple(entries))
        heading, entries = lines[block.start].rstrip("\r"), []
    if heading or entries:
        yield PagePart(heading, tuple(entries))


def _render_part(part: PagePart) -> str:
    """List items are on consecutive lines; other entries are separated by blank lines."""
    pieces = [part.heading] if part.heading else []
    previous = None
    for entry in part.entries:
        is_item = _LIST_MARK.match(entry)
        if pieces:
            pieces.append("\n" if previous and is_item else "\n\n")
        pieces.append(entry)
        previous = is_item
    return "".join(pieces)


def truncate_page(text: str, *, budget: int, count: Counter, pointer: str) -> TruncatedText:
    """The first entries that fit the budget together with the pointer.

    Entries are not cut, as a part of one can lose its "not", and a heading without entries is left out. If no entry
    fits, the text is cut like any other.
    """
    if count(text) <= budget:
        return TruncatedText(text, 0)
    lines = text.split("\n")
    ends = [block.end for block in split_blocks(lines) if block.kind == "entry"]

    def text_up_to(end: int) -> str:
        return "\n".join([*lines[:end], pointer])

    count_fitting = bisect_right(ends, budget, key=lambda end: count(text_up_to(end)))
    if not count_fitting:
        return truncate(text, budget=budget, count=count, pointer=pointer)
    return TruncatedText(text_up_to(ends[count_fitting - 1]), len(lines) - ends[count_fitting - 1])
