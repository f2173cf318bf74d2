"""How a line leaves the page: for a pointer that finds again what it was made of, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from inmind.core.events.dreams import PageLine
from inmind.dreams.page.draft import PageDraft, RewriteContext
from inmind.dreams.page.limits import MAX_PAGE_CHARACTERS
from inmind.dreams.page.pointers import (
    MAX_KEYWORDS,
    MAX_POINTERS,
    TOPIC_SEPARATOR,
    Pointer,
    format_pointer,
    make_pointer,
    parse_pointer,
)
from inmind.dreams.page.sections import Section

MAX_CHECKED_SOURCES = 5
"""Sources of a line that a search has to bring up: more would not fit into its answer."""

MAX_POINTER_CHARACTERS = MAX_PAGE_CHARACTERS // 5
"""Characters of all pointers: on a full page what is new has to find a place, and not only the names of what was."""

MAX_TOPICS = 3
"""Of one pointer: what it no longer names nobody would look for."""

_MAX_MERGE_ATTEMPTS = 3
"""Pointers that one which is too many is tried with: each costs a search."""


def replace_with_pointer(
    draft: PageDraft, line: PageLine, candidates: Iterable[Pointer], context: RewriteContext
) -> bool:
    """Strike a line for the first of these pointers that holds; False, and nothing is changed, if none does."""
    pointer = next((candidate for candidate in candidates if _finds_sources(candidate, line.sources, context)), None)
    if pointer is None:
        return False
    draft.remove(line.text)
    _write_pointer(draft, _pointer_line(pointer, [line]), context)
    return True


def limit_pointers(draft: PageDraft, context: RewriteContext) -> None:
    """No more pointers than a page may have, nor longer ones: two become one, and where no two can, the one leaves that
    is least important, and of these the oldest. Whatever it pointed at is found by search as ever."""
    limit = max(0, MAX_POINTERS - len(draft.user_pointers()))
    while len(texts := draft.dream_pointers()) > limit or sum(map(len, texts)) > MAX_POINTER_CHARACTERS:
        lines = [draft.dream_lines[text] for text in texts]
        least_important = min(lines, key=lambda line: (line.importance, line.at))
        for pair in _merge_candidates(lines, least_important):
            if merged := _merge_pointers(pair, context):
                draft.write_line(merged, instead_of=[line.text for line in pair])
                break
        else:
            draft.remove(least_important.text)


def _merge_candidates(lines: Sequence[PageLine], least_important: PageLine) -> Iterator[tuple[PageLine, PageLine]]:
    """Pointers that might become one: the two oldest, and else the one that would leave with those most like it."""
    if len(lines) > 1:
        yield lines[0], lines[1]
    words = _keyword_set(least_important)
    others = [line for line in lines if line is not least_important]
    most_similar = sorted(others, key=lambda line: len(words & _keyword_set(line)), reverse=True)
    yield from ((line, least_important) for line in most_similar[:_MAX_MERGE_ATTEMPTS])


def _write_pointer(draft: PageDraft, line: PageLine, context: RewriteContext) -> None:
    """A pointer for the page.

    One to the same topic takes it in, if both are still found by that; where somebody has
    written the very same, that is it."""
    topic = _parse(line).topic.casefold()
    for text in draft.dream_pointers():
        existing = draft.dream_lines[text]
        if _parse(existing).topic.casefold() == topic and (merged := _merge_pointers((existing, line), context)):
            draft.write_line(merged, instead_of=[text])
            return
    if (existing := draft.dream_lines.get(line.text)) is not None:
        line = line._replace(sources=_interleave_sources([existing, line]))
    elif line.text in draft:
        return
    draft.write_line(line)
    limit_pointers(draft, context)


def _merge_pointers(lines: Sequence[PageLine], context: RewriteContext) -> PageLine | None:
    """One pointer for several, if a search by it finds what each of them finds."""
    pointers = [_parse(line) for line in lines]
    words = dict.fromkeys(word for pointer in pointers for word in pointer.keywords.split())
    topics = dict.fromkeys(topic for pointer in pointers for topic in pointer.topic.split(TOPIC_SEPARATOR))
    if len(topics) > MAX_TOPICS:
        return None
    shortest = [pointer.keywords for pointer in pointers]
    for keywords in (*shortest, *([" ".join(words)] if len(words) <= MAX_KEYWORDS else [])):
        pointer = make_pointer(*topics, keywords=keywords)
        if all(_finds_sources(pointer, line.sources, context) for line in lines):
            return _pointer_line(pointer, lines)
    return None


def _keyword_set(line: PageLine) -> frozenset[str]:
    return frozenset(_parse(line).keywords.casefold().split())


def _pointer_line(pointer: Pointer, lines: Sequence[PageLine]) -> PageLine:
    return PageLine(
        section=Section.POINTERS,
        text=format_pointer(pointer),
        sources=_interleave_sources(lines),
        importance=max(line.importance for line in lines),
        at=max(line.at for line in lines),
        trust=min(line.trust for line in lines),
    )


def _parse(line: PageLine) -> Pointer:
    return parse_pointer(line.text) or Pointer(line.text, "")


def _interleave_sources(lines: Iterable[PageLine]) -> tuple[str, ...]:
    """Sources of several lines, by turns: the first of them, which are proven, are then of each."""
    turns = zip_longest(*(line.sources for line in lines))
    return tuple(dict.fromkeys(source for turn in turns for source in turn if source))


def _finds_sources(pointer: Pointer, sources: Sequence[str], context: RewriteContext) -> bool:
    return bool(sources) and context.search(pointer.keywords).issuperset(sources[:MAX_CHECKED_SOURCES])
