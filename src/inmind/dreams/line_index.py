"""An index of the page's lines, to merge new lines into them.

Comparing every pair would be too slow, so lines are looked up by their claims and by their rarest words. Two lines say
the same if they have the same wording, or nearly the same words in the same order without a difference in numbers,
names or negations. A line replaces another if both answer the same question differently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.dreams.page.edits import Add, Rewrite
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE
from inmind.dreams.page.page import Section
from inmind.dreams.statements import to_third_person
from inmind.search.claims import Answer, Statement, answers_differ, parse_statement
from inmind.search.tokenize import index_words

MIN_SIMILARITY: Final = 0.8
"""Jaccard index of the words from which two texts may say the same."""

MAX_LINE_SOURCES: Final = 20
"""Sources stored for a line. A search for these finds the others."""


class _IndexedLine:
    """A line of the resulting page: existing, new, or a replacement."""

    def __init__(self, add: Add, *, line: str = "", fixed: bool = False) -> None:
        self.add = add
        self.old_text = line
        """Its current text on the page; empty for a new line."""
        self.fixed = fixed
        """True for a line that must not change."""
        self.new_sources = () if line or fixed else add.sources
        """Sources that are not on the page yet."""
        self.changed = not (line or fixed)


class LineIndex:
    """Lines of the page and of settled edits. New lines are merged in, oldest first."""

    def __init__(self) -> None:
        self._entries: list[_IndexedLine] = []
        self._by_wording: dict[tuple[bool, str], _IndexedLine] = {}
        self._by_question: dict[tuple[bool, str], tuple[_IndexedLine, Answer]] = {}
        self._by_word: defaultdict[str, list[_IndexedLine]] = defaultdict(list)
        self._words_cache: dict[str, list[str]] = {}

    def add_line(self, line: PageLine) -> None:
        """Add a line of a dream, which may be rewritten."""
        self._put(_IndexedLine(line, line=line.text))

    def add_fixed(self, edit: Add | Rewrite) -> None:
        """Add a statement that must not change."""
        if isinstance(edit, Rewrite):
            edit = Add(edit.section, edit.text, edit.sources, edit.importance, at=edit.at)
        self._put(_IndexedLine(edit, fixed=True))

    def merge_in(self, add: Add) -> None:
        """Merge a new line into one that says the same or is outdated, or add it."""
        statement = _parse(add.text)
        is_data = add.trust == Trust.DATA
        existing = (
            self._by_wording.get((is_data, statement.wording))
            or self._find_contradicted(add, statement, is_data)
            or self._find_similar(add, is_data)
        )
        if existing is None or (existing.fixed and add.importance >= MIN_PROTECTED_IMPORTANCE):
            self._put(_IndexedLine(add), statement)
        elif not existing.fixed:
            self._merge(existing, add, statement)

    def edits(self) -> Iterator[Add | Rewrite]:
        """Edits that produce the merged lines, in no particular order."""
        for entry in self._entries:
            if entry.old_text and entry.changed:
                add = entry.add
                yield Rewrite(
                    lines=(entry.old_text,),
                    section=Section(add.section),
                    text=add.text,
                    sources=entry.new_sources,
                    importance=add.importance,
                    at=add.at,
                )
            elif entry.changed:
                yield entry.add

    def _put(self, entry: _IndexedLine, statement: Statement | None = None) -> None:
        self._entries.append(entry)
        self._index(entry, statement or _parse(entry.add.text))

    def _index(self, entry: _IndexedLine, statement: Statement) -> None:
        is_data = entry.add.trust == Trust.DATA
        self._by_wording[is_data, statement.wording] = entry
        for question, answer in statement.answers.items():
            self._by_question[is_data, question] = entry, answer
        for word in {*self._words_of(entry.add.text)}:
            self._by_word[word].append(entry)

    def _merge(self, entry: _IndexedLine, add: Add, statement: Statement) -> None:
        """Merge into one line: with the newer text if it contradicts, else with the longer one."""
        before = entry.add
        new_sources = tuple(source for source in add.sources if source not in before.sources)
        if not new_sources:
            return
        replaces = add.at >= before.at and _overrules(statement, _parse(before.text))
        is_longer = len(self._words_of(add.text)) > len(self._words_of(before.text)) and not _overrules(
            _parse(before.text), statement
        )
        added_sources = (
            new_sources if replaces or is_longer else new_sources[: max(0, MAX_LINE_SOURCES - len(before.sources))]
        )
        entry.add = before._replace(
            text=add.text if replaces or is_longer else before.text,
            sources=(*before.sources, *added_sources),
            importance=max(before.importance, add.importance),
            at=max(before.at, add.at),
            trust=min(before.trust, add.trust),
        )
        entry.new_sources += added_sources
        entry.changed = True
        if entry.add.text != before.text:
            self._index(entry, statement)

    def _find_contradicted(self, add: Add, statement: Statement, is_data: bool) -> _IndexedLine | None:
        """The line with another answer to the same question, if the newer one overrules the older."""
        for question in statement.answers:
            entry, answer = self._by_question.get((is_data, question), (None, ()))
            if entry and not entry.fixed and answers_differ(statement.answers[question], answer):
                existing = _parse(entry.add.text)
                newer, older = (statement, existing) if add.at >= entry.add.at else (existing, statement)
                if _overrules(newer, older):
                    return entry
        return None

    def _find_similar(self, add: Add, is_data: bool) -> _IndexedLine | None:
        """The line with nearly the same words.

        Two texts with this similarity share one of their rarest words, so only lines with one of these are compared.
        """
        add_words = self._words_of(add.text)
        rarest = sorted({*add_words}, key=lambda word: (len(self._by_word.get(word, ())), word))
        index_words = rarest[: len(rarest) - ceil(MIN_SIMILARITY * len(rarest)) + 1]
        candidates = {
            id(entry): entry for word in index_words for entry in self._by_word.get(word, ())[-_MAX_CANDIDATES:]
        }
        for entry in candidates.values():
            if (entry.add.trust == Trust.DATA) == is_data and _is_similar(add_words, self._words_of(entry.add.text)):
                return entry
        return None

    def _words_of(self, text: str) -> list[str]:
        if text not in self._words_cache:
            self._words_cache[text] = index_words(to_third_person(text))
        return self._words_cache[text]


# A word in more lines is not rare; which of them are compared hardly matters.
_MAX_CANDIDATES: Final = 50

_NEGATIONS = frozenset("no not never none nor neither without cannot t stop except 不 没 无 别 勿 非 未 否".split())
_STOP_WORDS = frozenset("a an the is are be it to of in on at for and that this user s i my 的 了 是 在".split())


def _parse(text: str) -> Statement:
    return parse_statement(to_third_person(text))


def _overrules(newer: Statement, older: Statement) -> bool:
    """True if the newer statement contradicts everything that the older one says."""
    shared = newer.overrules & older.answers.keys()
    return older.is_complete and any(
        answers_differ(newer.answers[question], older.answers[question]) for question in shared
    )


def _is_similar(first: Sequence[str], second: Sequence[str]) -> bool:
    """True for nearly the same words in the same order, if only one text has additional words."""
    first_set, second_set = {*first}, {*second}
    shared, all_words = first_set & second_set, first_set | second_set
    if not shared or len(shared) < MIN_SIMILARITY * len(all_words):
        return False
    if any(word in _NEGATIONS or word[0].isdigit() for word in first_set ^ second_set):
        return False
    if (first_set - second_set - _STOP_WORDS) and (second_set - first_set - _STOP_WORDS):
        return False
    first_order, second_order = (
        [*dict.fromkeys(word for word in sequence if word in shared)] for sequence in (first, second)
    )
    return first_order == second_order
