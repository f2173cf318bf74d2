"""MEMORY.md during a rewrite: the seven sections in order, and the text of users.

PageDraft is mutable. Lines are added and removed by their text; everything else keeps its position. If a user edited
the page meanwhile, `merge_pages` merges by entries, without conflicts: the user's text stays, and the dream's lines are
added to their sections.

A page that a user wrote before the first dream is adopted. All of it becomes crystals, in overlapping chunks, so that
its words stay searchable after later dreams change the page. On the page it stays unchanged; the first dream writes
below it, with a comment.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.core.tokens import estimator
from inmind.dreams.page.page import (
    PAGE_TITLE,
    Block,
    MemoryPage,
    PagePart,
    Section,
    entry_text,
    parse_page,
    render_page,
    split_blocks,
    split_parts,
)
from inmind.dreams.page.pointers import parse_pointer

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
    spans = list(_chunk_spans(text))
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    chunk_numbers: dict[str, int] = {}
    end = 0
    for _, entry in parse_page(text).all_entries():
        first_line, last_line = entry.split("\n")[0], entry.split("\n")[-1]
        start = max(text.find(first_line, end), 0)
        end = max(text.find(last_line, start), start) + len(last_line)
        first = bisect_right(ends, start)
        candidates = range(first, bisect_right(begins, start))
        chunk_numbers.setdefault(entry, next((number for number in candidates if ends[number] >= end), first))
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


@frozen(kw_only=True)
class RewriteContext:
    """The input of a rewrite: authors and sources of lines, weights, and a search."""

    now: datetime
    mood: str = ""
    dream_lines: Mapping[str, PageLine]
    """Lines that dreams wrote, by their text. All other entries were written by users."""
    user_lines: Mapping[str, str]
    """Entries of users that have a crystal, with its id: a pointer can find these again."""
    adopted_entries: frozenset[str] = frozenset()
    """Entries from before the first dream. Dreams may rewrite these."""
    weights: Mapping[Section, float]
    """Current weight of each section."""
    search: Callable[[str], frozenset[str]]
    """Ids of the crystals that a search for some words returns."""
    source_text: Callable[[str], str]
    """Text of a crystal or note; empty for an unknown id."""
    source_trust: Callable[[str], Trust]
    required_lines: tuple[PageLine, ...] = ()
    """Lines that must be on the page, verbatim."""


class PageDraft:
    """A page that is being rewritten."""

    def __init__(self, text: str, lines: Mapping[str, PageLine]) -> None:
        page = parse_page(text)
        entries = {entry for _, entry in page.all_entries()}
        self.dream_lines = {line: dream_line for line, dream_line in lines.items() if line in entries}
        """Lines on the page that dreams wrote, by their text."""
        self.is_unwritten = not (page.title or page.header or self.dream_lines)
        """True if no dream has written this page yet. Its text must not be changed then."""
        if self.is_unwritten:
            page = MemoryPage(preamble=text)
        self._preamble = page.preamble
        self._removed_from_preamble: set[str] = set()
        self._parts = _arrange_parts(page.parts)
        preamble_texts = [text for part in split_parts(self._preamble) for text in part.texts]
        self._preamble_texts = {*preamble_texts}
        self._positions: dict[str, list[_Position]] = {text: [] for text in preamble_texts}
        """Every text on the page, with its positions below the preamble."""
        for part in self._parts:
            for at, (text, _) in part.entries.items():
                if text:
                    self._positions.setdefault(text, []).append((part, at))
        pointer_texts = (text for text, line in self.dream_lines.items() if line.section == Section.POINTERS)
        self._pointer_texts = dict.fromkeys((*pointer_texts, *filter(parse_pointer, self._positions)))

    def __contains__(self, text: object) -> bool:
        return text in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def section_of(self, text: str) -> Section | None:
        """The section of a text; None outside the seven sections."""
        positions = self._positions.get(text)
        return positions[-1][0].section if positions else None

    @property
    def user_lines(self) -> list[str]:
        """Entries of users, in the order of the page."""
        return [text for text in self if text not in self.dream_lines]

    def entries(self, section: Section) -> list[str]:
        return [text for text in self if self.section_of(text) is section]

    def dream_pointers(self) -> list[str]:
        """Pointers that dreams wrote, oldest first."""
        texts = (text for text in self._pointer_texts if text in self.dream_lines)
        return [text for text in texts if self.dream_lines[text].section == Section.POINTERS]

    def user_pointers(self) -> list[str]:
        return [text for text in self._pointer_texts if text not in self.dream_lines]

    def write_line(self, line: PageLine, *, instead_of: Iterable[str] = ()) -> None:
        """Write a line in place of the first of these in its section, or at the end of the section."""
        section = Section(line.section)
        existing = [line.text] if line.text in self.dream_lines else []
        positions = [position for text in dict.fromkeys((*instead_of, *existing)) for position in self.remove(text)]
        own_part = self._part_for(section)
        self._insert(
            own_part,
            line.text,
            f"- {line.text}",
            at=min((at for part, at in positions if part is own_part), default=None),
        )
        self.dream_lines[line.text] = line

    def append_entry(self, section: Section, entry: str) -> None:
        """Append an entry verbatim."""
        self._insert(self._part_for(section), entry_text(entry), entry)

    def remove(self, text: str) -> list[_Position]:
        """Remove a text and return its former positions.

        All occurrences of a user's entry are removed. Of a dream's line only one is: a user may have written the same
        text elsewhere, and that stays.
        """
        if text not in self:
            return []
        line, positions = self.dream_lines.pop(text, None), self._positions[text]
        removed = positions
        if line is not None and positions:
            removed = [min(positions, key=lambda position: _distance(line, position))]
        for part, at in removed:
            del part.entries[at]
        if text in self._preamble_texts and (line is None or not positions):
            self._removed_from_preamble.add(text)
            self._preamble_texts.discard(text)
        self._positions[text] = [position for position in positions if position not in removed]
        if not (self._positions[text] or text in self._preamble_texts):
            del self._positions[text]
            self._pointer_texts.pop(text, None)
        return removed

    def to_page(self, header: str) -> MemoryPage:
        self._preamble, self._removed_from_preamble = remove_entries(self._preamble, self._removed_from_preamble), set()
        preamble = add_separator(self._preamble) if self.is_unwritten else self._preamble
        return MemoryPage(
            preamble=preamble,
            title=PAGE_TITLE,
            header=header,
            parts=tuple(draft_part.part for draft_part in self._parts),
        )

    def _part_for(self, section: Section) -> _DraftPart:
        return next(part for part in self._parts if part.section is section)

    def _insert(self, part: _DraftPart, text: str, entry: str, *, at: int | None = None) -> None:
        self._positions.setdefault(text, []).append((part, part.insert(text, entry, at=at)))
        if part.section is Section.POINTERS or parse_pointer(text):
            self._pointer_texts[text] = None


class _DraftPart:
    """A heading and its entries, each at a number that increases down the page."""

    def __init__(self, part: PagePart) -> None:
        self.heading, self.section = part.heading, part.section
        self.entries = {at: (entry_text(entry), entry) for at, entry in enumerate(part.entries)}
        self._end = len(self.entries)

    @property
    def part(self) -> PagePart:
        return PagePart(self.heading, tuple(entry for _, (_, entry) in sorted(self.entries.items())))

    def insert(self, text: str, entry: str, *, at: int | None = None) -> int:
        """Insert at a free number, or at the end."""
        if at is None:
            at, self._end = self._end, self._end + 1
        self.entries[at] = (text, entry)
        return at


_Position = tuple[_DraftPart, int]


def _distance(line: PageLine, position: _Position) -> tuple[bool, bool]:
    """Difference between an entry and the dream's line: moved, or marked differently."""
    part, at = position
    return part.section != line.section, part.entries[at][1] != f"- {line.text}"


def _arrange_parts(parts: Iterable[PagePart]) -> list[_DraftPart]:
    """The seven sections in order, each once.

    Headings of users stay after the section they followed.
    """
    groups: dict[Section | None, list[_DraftPart]] = {None: [], **{section: [] for section in Section}}
    last_section: Section | None = None
    for part in parts:
        draft_part = _DraftPart(part)
        last_section = part.section or last_section
        if part.section and groups[last_section]:
            for text, entry in draft_part.entries.values():
                groups[last_section][0].insert(text, entry)
        else:
            groups[last_section].append(draft_part)
    for section in Section:
        groups[section] = groups[section] or [_DraftPart(PagePart(f"## {section}"))]
    return [draft_part for group in groups.values() for draft_part in group]


def remove_entries(preamble: str, texts: Collection[str]) -> str:
    """The preamble without some entries, emptied headings, and an unneeded separator."""
    if not texts:
        return preamble
    lines = preamble.split("\n")
    blocks = list(split_blocks(lines))
    removed = {block for block in blocks if block.kind != "heading" and _block_text(lines, block) in texts}
    if not removed:
        return preamble
    removed |= _emptied_headings(lines, blocks, removed)
    kept = (lines[block.start] for block in blocks if block not in removed)
    if all(line in ("---", DREAMS_BELOW_COMMENT) for line in kept):
        return ""
    for block in sorted(removed, reverse=True):
        end = block.end
        after_blank = block.start == 0 or not lines[block.start - 1].strip()
        while after_blank and end < len(lines) - 1 and not lines[end].strip():
            end += 1
        del lines[block.start : end]
    return "\n".join(lines)


def _emptied_headings(lines: Sequence[str], blocks: Iterable[Block], removed: Collection[Block]) -> set[Block]:
    """Headings whose entries were all removed."""
    path: dict[int, Block] = {}
    emptied, kept = set[Block](), set[Block]()
    for block in blocks:
        if block.kind == "heading":
            level = len(lines[block.start]) - len(lines[block.start].lstrip("#"))
            path = {above: heading for above, heading in path.items() if above < level} | {level: block}
        elif block in removed:
            emptied.update(path.values())
        elif _block_text(lines, block):
            kept.update(path.values())
    return emptied - kept


def _block_text(lines: Sequence[str], block: Block) -> str:
    return entry_text("\n".join(line.rstrip("\r") for line in lines[block.start : block.end]))


def merge_pages(base: str, user_text: str, dream_text: str) -> str:
    """The user's page with the changes that a dream made to their common base."""
    before, after = entry_texts(base), entry_texts(dream_text)
    draft = PageDraft(user_text, {})
    removed = [text for text in draft if text in before and text not in after]
    dream = parse_page(dream_text)
    added = [
        (part.section, entry)
        for part in dream.parts
        for entry in part.entries
        if entry_text(entry) not in before and entry_text(entry) not in draft
    ]
    if not removed and not added:
        return user_text
    for text in removed:
        draft.remove(text)
    for section, entry in added:
        draft.append_entry(section or Section.ACTIVE, entry)
    return render_page(draft.to_page(dream.header))
