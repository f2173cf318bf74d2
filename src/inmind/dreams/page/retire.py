"""Replace a line with a pointer that finds its sources. Without one the line stays."""

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
"""Sources of a line that a search must return. More would not fit into the search result."""

MAX_POINTER_CHARACTERS = MAX_PAGE_CHARACTERS // 5
"""Characters of all pointers together, so that new lines still fit on a full page."""

MAX_TOPICS = 3
"""Topics of one pointer."""

_MAX_MERGE_ATTEMPTS = 3
"""Number of pointers with which a surplus one may be merged. Each attempt costs a search."""


def replace_with_pointer(
    draft: PageDraft, line: PageLine, candidates: Iterable[Pointer], context: RewriteContext
) -> bool:
    """Replace a line with the first pointer that finds its sources.

    Returns False, without a change, if none does.
    """
    pointer = next((candidate for candidate in candidates if _finds_sources(candidate, line.sources, context)), None)
    if pointer is None:
        return False
    draft.remove(line.text)
    _write_pointer(draft, _pointer_line(pointer, [line]), context)
    return True


def limit_pointers(draft: PageDraft, context: RewriteContext) -> None:
    """Reduce the pointers to their maximum number and size.

    Two are merged if possible. Otherwise the least important one is removed, the oldest among equals; its sources
    remain searchable.
    """
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
    """Pairs to merge: the two oldest, then the least important with the most similar ones."""
    if len(lines) > 1:
        yield lines[0], lines[1]
    words = _keyword_set(least_important)
    others = [line for line in lines if line is not least_important]
    most_similar = sorted(others, key=lambda line: len(words & _keyword_set(line)), reverse=True)
    yield from ((line, least_important) for line in most_similar[:_MAX_MERGE_ATTEMPTS])


def _write_pointer(draft: PageDraft, line: PageLine, context: RewriteContext) -> None:
    """Write a pointer, merged with one to the same topic if it still finds both.

    If a user has written the same pointer, that one is kept.
    """
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
    """One pointer for several, if its search finds the sources of each."""
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
    """Sources of several lines in turn, so that the checked ones include each line."""
    turns = zip_longest(*(line.sources for line in lines))
    return tuple(dict.fromkeys(source for turn in turns for source in turn if source))


def _finds_sources(pointer: Pointer, sources: Sequence[str], context: RewriteContext) -> bool:
    return bool(sources) and context.search(pointer.keywords).issuperset(sources[:MAX_CHECKED_SOURCES])
