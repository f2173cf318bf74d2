"""How a line leaves the page: for a pointer that finds again what it was made of, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from inmind.journal import StateLine
from inmind.state.ground import Ground
from inmind.state.pointers import BOTH, MOST_POINTERS, Pointer, line_of, pointed, pointer_to
from inmind.state.sections import Section
from inmind.state.sheet import Sheet

PROVEN = 5
"""Sources of a line that a search has to bring up: more would not fit into its answer."""


def faded(sheet: Sheet, line: StateLine, offered: Iterable[Pointer], ground: Ground) -> bool:
    """Strike a line for the first of these pointers that holds; False, and nothing is changed, if none does."""
    held = next((pointer for pointer in offered if _holds(pointer, line.sources, ground)), None)
    if held is None:
        return False
    sheet.strike(line.text)
    _point(sheet, _line(held, [line]), ground)
    return True


def few_pointers(sheet: Sheet, ground: Ground) -> None:
    """No more pointers than a page may have: the two oldest become one, or else the least important leaves."""
    by_people = sum(pointed(text) is not None for text in sheet.theirs)
    while len(own := sheet.pointers()) > max(0, MOST_POINTERS - by_people):
        lines = [sheet.lines[text] for text in own]
        if joined := _joined(lines[:2], ground):
            sheet.write(joined, instead_of=own[:2])
        else:
            sheet.strike(min(lines, key=lambda line: line.importance).text)


def _point(sheet: Sheet, line: StateLine, ground: Ground) -> None:
    """A pointer for the page. One to the same topic takes it in, if both are still found by that."""
    topic = _pointer(line).topic.casefold()
    for text in sheet.pointers():
        there = sheet.lines[text]
        if _pointer(there).topic.casefold() == topic and (both := _joined((there, line), ground)):
            sheet.write(both, instead_of=[text])
            return
    if (there := sheet.lines.get(line.text)) is not None:
        line = line._replace(sources=_all([there, line]))
    sheet.write(line, instead_of=[line.text])
    few_pointers(sheet, ground)


def _joined(lines: Sequence[StateLine], ground: Ground) -> StateLine | None:
    """One pointer for several, if a search by it finds what each of them finds."""
    pointers = [_pointer(line) for line in lines]
    words = dict.fromkeys(word for pointer in pointers for word in pointer.keywords.split())
    topics = dict.fromkeys(topic for pointer in pointers for topic in pointer.topic.split(BOTH))
    fewest = [pointer.keywords for pointer in pointers]
    for keywords in (*fewest, " ".join(words)):
        pointer = pointer_to(*topics, keywords=keywords)
        if all(_holds(pointer, line.sources, ground) for line in lines):
            return _line(pointer, lines)
    return None


def _line(pointer: Pointer, lines: Sequence[StateLine]) -> StateLine:
    return StateLine(
        section=Section.POINTERS,
        text=line_of(pointer),
        sources=_all(lines),
        importance=max(line.importance for line in lines),
        at=max(line.at for line in lines),
        trust=min(line.trust for line in lines),
    )


def _pointer(line: StateLine) -> Pointer:
    return pointed(line.text) or Pointer(line.text, "")


def _all(lines: Iterable[StateLine]) -> tuple[str, ...]:
    """Sources of several lines, by turns: the first of them, which are proven, are then of each."""
    turns = zip_longest(*(line.sources for line in lines))
    return tuple(dict.fromkeys(source for turn in turns for source in turn if source))


def _holds(pointer: Pointer, sources: Sequence[str], ground: Ground) -> bool:
    return bool(sources) and ground.finds(pointer.keywords).issuperset(sources[:PROVEN])
