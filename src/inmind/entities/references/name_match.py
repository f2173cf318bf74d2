"""Finds entity names in a text, and measures how well a description fits a name.

A name is a sequence of words; a Chinese character counts as a word, so one search serves both scripts. Lookups use
maps that are built once, so the cost depends on the length of the text and not on the number of entities. Only
misspelt words are compared with every name, at most MAX_TYPOS of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, TypeVar

from inmind.core.frozen import frozen
from inmind.core.language.languages import LANGUAGES
from inmind.core.language.spans import Token, compile_cached, has_han, tokens
from inmind.core.language.tables import ReferenceWords
from inmind.entities.entity import Entity, EntityKey
from inmind.entities.nouns import edit_distance, singular

Place = TypeVar("Place", "Mention", Token)
MatchKind = Literal["id", "name", "alias", "part", "typo"]

MAX_NAME_WORDS = 12
"""Number of words of a name that are indexed."""
MAX_TYPOS = 40
"""Number of words of a text that are compared with all names."""

_ID = re.compile(r"#?[A-Za-z0-9][A-Za-z0-9_./:@+#-]*")
_TABLES = [one.references for one in LANGUAGES if isinstance(one.references, ReferenceWords)]
_DEFINITE_WORDS = [word for table in _TABLES for word in (*table.articles, *table.demonstratives)]
_DEFINITE = rf"(?i:\b(?:{'|'.join(sorted(_DEFINITE_WORDS))}) $)"
_MAX_DEFINITE_CHARS = max(map(len, _DEFINITE_WORDS)) + 1
_QUOTES = frozenset("\"'“”‘’「」『』《》`")

# Words that do not identify an entity, even as part of a name.
_COMMON_WORDS = frozenset(
    "a an the and or of in on at to for from by with it its this that these those is are was be my your our new old "
    "one two all both i you we they me us up out no not as do does did how what who which where when why can will "
    "would could should please thanks yes ok okay more other some any also now then here there about have has had "
    "just get want need like make add set use see show find open delete remove rename update change move create "
    "edit name title first second third last next com www http https jpg jpeg png gif svg webp pdf txt md html".split()
)
_COMMON_CHINESE_PAIRS = frozenset(
    "我们 你们 他们 它们 一个 这个 那个 什么 怎么 可以 请把 删除 修改 添加 更新 新建 创建 打开 发布 名字 标题 改名 "
    "重命 命名 的页 的图 的文".split()
)


@frozen
class Mention:
    """Words of a text that name something; several entities if the words fit them equally."""

    start: int
    end: int
    entities: tuple[Entity, ...]
    match_kind: MatchKind
    fit: float
    """Share of the name that the text contains, 0 to 1."""
    weaker_matches: tuple[Entity, ...] = ()
    """Entities with these words in a longer name: meant only if a noun next to them says so."""

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


class NameIndex:
    """Index of the names of entities."""

    def __init__(self, entities: Iterable[Entity], *, nouns: Collection[str] = ()) -> None:
        self._nouns = nouns
        self._ids: dict[str, list[Entity]] = {}
        self._by_name: dict[tuple[str, ...], list[tuple[Entity, MatchKind]]] = {}
        self._by_word: dict[str, dict[EntityKey, Entity]] = {}
        self._words_by_key: dict[EntityKey, tuple[str, ...]] = {}
        self._lengths: set[int] = set()
        for entity in entities:
            self._add(entity)

    def mentions(self, text: str, *, excluded_spans: Sequence[tuple[int, int]] = ()) -> list[Mention]:
        """Return the names found in a text, in order. `excluded_spans` are skipped."""
        words = _outside(tokens(text), excluded_spans)
        mentions = _outside(self._find_ids(text), excluded_spans)
        mentions += self._find_full_names(_outside(words, [mention.span for mention in mentions]))
        mentions += self._find_partial_names(text, _outside(words, [mention.span for mention in mentions]))
        mentions = mentions or self._find_typos(words)
        return sorted(mentions, key=lambda mention: mention.start)

    def fit(self, words: Sequence[str], entity: Entity) -> float:
        """Return the share of descriptive words found in its names, 0 to 1.

        A misspelt word counts less.
        """
        own = self._words_by_key.get(entity.key, ())
        return sum(_word_fit(word, own) for word in words) / len(words) if words else 0.0

    def _add(self, entity: Entity) -> None:
        bare_id = entity.id.lstrip("#").lower()
        for id in {entity.id, entity.id.lower(), bare_id, f"#{bare_id}" if bare_id.isdigit() else bare_id}:
            if _is_recognisable(id):
                self._ids.setdefault(id, []).append(entity)
        words = list(self._words_by_key.get(entity.key, ()))  # the same entity may occur without a name, as a part
        names: list[tuple[str, MatchKind]] = [(entity.name, "name"), *((alias, "alias") for alias in entity.aliases)]
        if entity.id.isalpha() and entity.id != entity.name:
            names.append((entity.id, "name"))
        for name, kind in names:
            bases = tuple(word.base for word in tokens(name[:200]))[:MAX_NAME_WORDS]
            if bases and self._can_stand_alone(bases):
                self._by_name.setdefault(bases, []).append((entity, kind))
                self._lengths.add(len(bases))
            words += bases
            words += (one + other for one, other in pairwise(bases) if has_han(one + other))
        self._words_by_key[entity.key] = tuple(dict.fromkeys(words))
        for word in self._words_by_key[entity.key]:
            if self._is_distinctive(word):
                self._by_word.setdefault(word, {}).setdefault(entity.key, entity)

    def _find_ids(self, text: str) -> list[Mention]:
        mentions: list[Mention] = []
        for match in _ID.finditer(text):
            id = match[0].rstrip("./:@+#-")
            entities = self._ids.get(id) or self._ids.get(id.lower()) or self._ids.get(id.lower().lstrip("#"))
            if entities:
                mentions.append(Mention(match.start(), match.start() + len(id), _distinct(entities), "id", 1.0))
        return mentions

    def _find_full_names(self, words: Sequence[Token]) -> list[Mention]:
        mentions: list[Mention] = []
        lengths = sorted(self._lengths, reverse=True)
        at = 0
        while at < len(words):
            for length in lengths:
                run = words[at : at + length]
                matches = self._by_name.get(tuple(word.base for word in run)) if len(run) == length else None
                if matches:
                    newest = [entity for entity, kind in matches if kind == "name"]
                    kind: MatchKind = "name" if newest else "alias"
                    entities = _distinct(newest or [entity for entity, _ in matches])
                    mentions.append(Mention(run[0].start, run[-1].end, entities, kind, 1.0))
                    at += length - 1
                    break
            at += 1
        return mentions

    def _find_partial_names(self, text: str, words: Sequence[Token]) -> Iterator[Mention]:
        """Find runs of words that are part of the names of the same entities."""
        runs: list[tuple[list[Token], dict[EntityKey, Entity]]] = []
        for index, word in enumerate(words):
            own = words[index : index + 2] if has_han(word.base) else [word]
            matching = self._by_word.get("".join(one.base for one in own))
            if not matching:
                continue
            run, fitting = runs[-1] if runs else ([], {})
            is_near = run and (word.start - run[-1].end <= 1 or _is_connector(text[run[-1].end : word.start]))
            still_fitting = {key: entity for key, entity in fitting.items() if is_near and key in matching}
            if still_fitting:
                runs[-1] = (run, still_fitting)
            else:
                runs.append(([], matching))
            runs[-1][0].extend(own)
        for run, fitting in runs:
            yield from self._partial_mentions(text, run, list(fitting.values()))

    def _partial_mentions(self, text: str, run: Sequence[Token], fitting: Sequence[Entity]) -> Iterable[Mention]:
        start, end = run[0].start, run[-1].end
        run_words = {word.base for word in run}
        covered = {entity.key: _covered_share(run_words, entity) for entity in fitting}
        best = max(covered.values())
        entities = _distinct(entity for entity in fitting if covered[entity.key] >= best - 0.15)
        if self._is_deliberate(text, run, best):
            chosen = {entity.key for entity in entities}
            weaker_matches = _distinct(entity for entity in fitting if entity.key not in chosen)
            yield Mention(start, end, entities, "part", best, weaker_matches)

    def _is_deliberate(self, text: str, run: Sequence[Token], covered: float) -> bool:
        """Return True if a name was meant, not a word that happens to be in one."""
        start, end = run[0].start, run[-1].end
        if text[start - 1 : start] in _QUOTES and text[end : end + 1] in _QUOTES and start:
            return True
        if has_han(run[0].base):
            return covered >= 0.5 or len({word.start for word in run}) >= 3
        capital = run[0].text[0].isupper() and not _starts_sentence(text, start)
        digits = any(char.isdigit() for word in run for char in word.text) and len(run[0].text) > 2
        min_covered = 0.4 if compile_cached(_DEFINITE).search(text, max(0, start - _MAX_DEFINITE_CHARS), start) else 0.6
        return capital or digits or len(run) > 1 or (covered >= min_covered and len(run[0].base) >= 4)

    def _find_typos(self, words: Sequence[Token]) -> list[Mention]:
        mentions: list[Mention] = []
        known = [word for word in self._by_word if len(word) >= 4 and not has_han(word)]
        unknown = [word for word in words if len(word.base) >= 5 and self._is_distinctive(word.base)]
        for word in unknown[:MAX_TYPOS]:
            similar_words = [other for other in known if is_typo(word.base, other)]
            matches = [(other, entity) for other in similar_words for entity in self._by_word[other].values()]
            entities = _distinct(entity for other, entity in matches if _covered_share({other}, entity) >= 0.5)
            if entities:
                mentions.append(Mention(word.start, word.end, entities, "typo", 0.6))
        return mentions

    def _can_stand_alone(self, words: tuple[str, ...]) -> bool:
        """False for one common word or a bare number, which occur in many sentences."""
        if len(words) != 1:
            return True
        return self._is_distinctive(words[0]) and not words[0].isdigit()

    def _is_distinctive(self, word: str) -> bool:
        if has_han(word):
            return len(word) > 1 and word not in _COMMON_CHINESE_PAIRS and word not in self._nouns
        return len(word) > 1 and word not in _COMMON_WORDS and singular(word) not in self._nouns


def is_typo(word: str, target: str) -> bool:
    """Return True if a word may be a misspelling of another. The first letter must be right."""
    allowed = 2 if len(target) >= 8 else 1
    may_match = word[:1] == target[:1] and min(len(word), len(target)) >= 4
    return may_match and 0 < edit_distance(word, target, max_distance=allowed) <= allowed


def is_in_earlier_name(text: str, entity: Entity) -> bool:
    """Return True if words of the text are in an earlier name and none is in the current one."""
    words = {word.base for word in tokens(text)}
    return _covered_share(words, entity) > 0 and _covered_share(words, replace(entity, aliases=())) == 0


def _word_fit(word: str, name_words: Sequence[str]) -> float:
    if word in name_words or singular(word) in name_words:
        return 1.0
    return 0.8 if len(word) >= 5 and any(is_typo(word, other) for other in name_words) else 0.0


def _covered_share(words: Collection[str], entity: Entity) -> float:
    """Return the share of letters of a name that the words cover, for the best of its names."""
    best = 0.0
    for name in (entity.name, *entity.aliases):
        bases = [word.base for word in tokens(name[:200])]
        bases = [base for base in bases if base not in _COMMON_WORDS] or bases
        length = sum(map(len, bases))
        best = max(best, sum(len(base) for base in bases if base in words) / length if length else 0.0)
    return best


def _is_recognisable(id: str) -> bool:
    """Return True if an id is long or unusual enough not to occur by chance."""
    if id.isalpha():
        return False
    return len(id) >= 4 or (len(id) >= 2 and not id.isdigit())


def _is_connector(between: str) -> bool:
    return between.strip() in {"", "and", "&", "-", "/", ".", "'", "’"}


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 3) : start].rstrip()
    return not before or before[-1] in ".!?:\n"


def _outside(places: Iterable[Place], spans: Sequence[tuple[int, int]]) -> list[Place]:
    """Return the words or mentions that overlap none of the spans."""
    return [one for one in places if not any(one.start < stop and begin < one.end for begin, stop in spans)]


def _distinct(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    return tuple({entity.key: entity for entity in entities}.values())
