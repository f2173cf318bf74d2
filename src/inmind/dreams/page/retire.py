"""How a line leaves the page: for a pointer that finds again what it was made of, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from inmind.core.events.dreams import PageLine
from inmind.dreams.page.draft import Ground, Sheet
from inmind.dreams.page.limits import MOST_CHARACTERS
from inmind.dreams.page.pointers import BOTH, MOST_KEYWORDS, MOST_POINTERS, Pointer, line_of, pointed, pointer_to
from inmind.dreams.page.sections import Section

PROVEN = 5
"""Sources of a line that a search has to bring up: more would not fit into its answer."""

ROOM = MOST_CHARACTERS // 5
"""Characters of all pointers: on a full page what is new has to find a place, and not only the names of what was."""

MOST_TOPICS = 3
"""Of one pointer: what it no longer names nobody would look for."""

_TRIED = 3
"""Pointers that one which is too many is tried with: each costs a search."""


def faded(sheet: Sheet, line: PageLine, offered: Iterable[Pointer], ground: Ground) -> bool:
    """Strike a line for the first of these pointers that holds; False, and nothing is changed, if none does."""
    held = next((pointer for pointer in offered if _holds(pointer, line.sources, ground)), None)
    if held is None:
        return False
    sheet.strike(line.text)
    _point(sheet, _line(held, [line]), ground)
    return True


def few_pointers(sheet: Sheet, ground: Ground) -> None:
    """No more pointers than a page may have, nor longer ones: two become one, and where no two can, the one leaves that
    is least important, and of these the oldest. Whatever it pointed at is found by search as ever."""
    room = max(0, MOST_POINTERS - len(sheet.pointers_of_people()))
    while len(own := sheet.pointers()) > room or sum(map(len, own)) > ROOM:
        lines = [sheet.lines[text] for text in own]
        least = min(lines, key=lambda line: (line.importance, line.at))
        for pair in _pairs(lines, least):
            if joined := _joined(pair, ground):
                sheet.write(joined, instead_of=[line.text for line in pair])
                break
        else:
            sheet.strike(least.text)


def _pairs(lines: Sequence[PageLine], least: PageLine) -> Iterator[tuple[PageLine, PageLine]]:
    """Pointers that might become one: the two oldest, and else the one that would leave with those most like it."""
    if len(lines) > 1:
        yield lines[0], lines[1]
    words = _words(least)
    others = [line for line in lines if line is not least]
    likest = sorted(others, key=lambda line: len(words & _words(line)), reverse=True)
    yield from ((line, least) for line in likest[:_TRIED])


def _point(sheet: Sheet, line: PageLine, ground: Ground) -> None:
    """A pointer for the page. One to the same topic takes it in, if both are still found by that; where somebody has
    written the very same, that is it."""
    topic = _pointer(line).topic.casefold()
    for text in sheet.pointers():
        there = sheet.lines[text]
        if _pointer(there).topic.casefold() == topic and (both := _joined((there, line), ground)):
            sheet.write(both, instead_of=[text])
            return
    if (there := sheet.lines.get(line.text)) is not None:
        line = line._replace(sources=_all([there, line]))
    elif line.text in sheet:
        return
    sheet.write(line)
    few_pointers(sheet, ground)


def _joined(lines: Sequence[PageLine], ground: Ground) -> PageLine | None:
    """One pointer for several, if a search by it finds what each of them finds."""
    pointers = [_pointer(line) for line in lines]
    words = dict.fromkeys(word for pointer in pointers for word in pointer.keywords.split())
    topics = dict.fromkeys(topic for pointer in pointers for topic in pointer.topic.split(BOTH))
    if len(topics) > MOST_TOPICS:
        return None
    fewest = [pointer.keywords for pointer in pointers]
    for keywords in (*fewest, *([" ".join(words)] if len(words) <= MOST_KEYWORDS else [])):
        pointer = pointer_to(*topics, keywords=keywords)
        if all(_holds(pointer, line.sources, ground) for line in lines):
            return _line(pointer, lines)
    return None


def _words(line: PageLine) -> frozenset[str]:
    return frozenset(_pointer(line).keywords.casefold().split())


def _line(pointer: Pointer, lines: Sequence[PageLine]) -> PageLine:
    return PageLine(
        section=Section.POINTERS,
        text=line_of(pointer),
        sources=_all(lines),
        importance=max(line.importance for line in lines),
        at=max(line.at for line in lines),
        trust=min(line.trust for line in lines),
    )


def _pointer(line: PageLine) -> Pointer:
    return pointed(line.text) or Pointer(line.text, "")


def _all(lines: Iterable[PageLine]) -> tuple[str, ...]:
    """Sources of several lines, by turns: the first of them, which are proven, are then of each."""
    turns = zip_longest(*(line.sources for line in lines))
    return tuple(dict.fromkeys(source for turn in turns for source in turn if source))


def _holds(pointer: Pointer, sources: Sequence[str], ground: Ground) -> bool:
    return bool(sources) and ground.finds(pointer.keywords).issuperset(sources[:PROVEN])
