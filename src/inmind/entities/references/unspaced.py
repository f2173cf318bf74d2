"""Finds references in a language without spaces, from its patterns: Chinese.

Chinese marks neither plural nor article. A reference is recognised by its demonstrative, number and measure word
(那张图片, 第二个页面). A bare noun is definite depending on the verb before it: 删除页面 refers to an existing
page, 新建页面 does not. Words between the verb and the noun describe it (删除定价页面); as no space ends the verb,
common verbs are listed. After another verb the resolver asks, which is the cheaper error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from inmind.core.language.spans import HAN, any_of, compile_cached, has_han
from inmind.core.language.tables import ReferenceForms
from inmind.entities.references.result import Phrase

_DESCRIPTION = rf"(?:{HAN}|[A-Za-z0-9_-])+ ?$"
_MAX_DESCRIPTION_CHARS = 24
_MAX_NOUN_CHARS = 12
_MAX_UNKNOWN_NOUN_CHARS = 6


class FormFinder:
    """Finds the references of a text. `known_types` may have nouns of the host."""

    def __init__(self, text: str, known_types: Collection[str], table: ReferenceForms) -> None:
        self.table = table
        self.text = text.translate(table.simplified)
        own_types = {noun.translate(table.simplified): (noun,) for noun in known_types if has_han(noun)}
        self.types: Mapping[str, tuple[str, ...]] = own_types | dict(table.nouns)
        self.clear_nouns = re.compile(_alternatives(noun for noun in self.types if len(noun) > 1))
        self.not_descriptive = compile_cached(_alternatives(table.not_descriptive))
        self.not_a_noun = compile_cached(_alternatives(table.not_descriptive | table.predicates))

    def find(self) -> list[Phrase]:
        """Return the references in order."""
        text, phrases = self.text, list[Phrase]()
        for phrase in self._iter_phrases():
            before = phrases[-1] if phrases else None
            if before and before.noun and before.span[1] == phrase.span[0] and phrase.is_bare:
                phrases[-1] = _join_nouns(before, phrase)
            elif before and phrase.is_bare and self._describes(before, phrase):
                words = tuple(_search_words(text[before.span[1] : phrase.span[0]]))
                span = (before.span[0], phrase.span[1])
                phrases[-1] = replace(before, span=span, nouns=phrase.nouns, noun=phrase.noun, words=words)
            else:
                phrases.append(self._with_description(phrase, before) if phrase.is_bare else phrase)
        return phrases

    def _describes(self, before: Phrase, phrase: Phrase) -> bool:
        """Return True for a demonstrative with only a description before the noun: 那个定价页面."""
        between = self.text[before.span[1] : phrase.span[0]]
        return bool(
            before.kind == "pronoun"
            and compile_cached(self.table.demonstratives).search(self.text, *before.span)
            and compile_cached(_DESCRIPTION).fullmatch(between)
            and not self.not_descriptive.search(between)
        )

    def _with_description(self, phrase: Phrase, before: Phrase | None) -> Phrase:
        """Add the words before a bare noun that describe it: 定价页面, Pricing 页面."""
        start = max(before.span[1] if before else 0, phrase.span[0] - _MAX_DESCRIPTION_CHARS)
        run = compile_cached(_DESCRIPTION).search(self.text, start, phrase.span[0])
        if run is None or phrase.indefinite:
            return phrase
        description = run[0].rstrip(" ").removesuffix(self.table.attributive)
        offset = self._description_start(description)
        words = tuple(_search_words(description[offset:]))
        if not words or (before and run.start() + offset == before.span[1]):
            return phrase
        return replace(phrase, span=(run.start() + offset, phrase.span[1]), words=words)

    def _description_start(self, text: str) -> int:
        """Return the start of the description: after the last word that does not describe.

        关于我们 is a name, and so is the 设置 of 打开设置页面.
        """
        skipped = list(self.not_descriptive.finditer(text))
        start = skipped[-1].end() if skipped else 0
        if start < len(text):
            return start
        if name_match := compile_cached(self.table.name_verbs).search(text):
            return name_match.start(1)
        before = skipped[-2].end() if len(skipped) > 1 else 0
        is_name = skipped and skipped[-1][0] in self.table.plural_persons and before < skipped[-1].start()
        return before if is_name else start

    def _iter_phrases(self) -> Iterator[Phrase]:
        nouns = tuple(sorted(self.types, key=lambda noun: (-len(noun), noun)))
        creates = compile_cached(self.table.creates)
        for match in _phrase_pattern(nouns, tuple(self.table.forms.items()), self.table.measure).finditer(self.text):
            noun = self._last_noun(match[0].rstrip("0123456789#＃ "))
            is_all = any(word in self.text[match.end() : match.end() + 8] for word in self.table.all_after)
            is_created = creates.search(self.text, max(0, match.start() - 6), match.start()) is not None
            features = self._features(match, is_all=is_all, is_created=is_created)
            span, words = match.span(), ()
            if match.lastgroup in {"several", "it"} and not noun and len(match[0]) > 1:
                noun, describes = self._unknown_noun(*span)
                span = (span[0], span[1] + len(noun))
                if describes:
                    noun, words = "", tuple(_search_words(noun))
            types = self.types.get(noun, (noun,) if noun else ())
            yield Phrase(span=span, nouns=types, noun=noun, words=words, **features)

    def _features(self, match: re.Match[str], *, is_all: bool, is_created: bool) -> dict[str, Any]:
        """Return the fields of a phrase that its form decides."""
        digits = "".join(filter(None, match.group("k", "n", "b", "m", "p")))
        number = self.table.numbers.get(digits) or int(digits or 0)
        text, is_this = match[0], match[0][0] in "这那全"
        place, several = {"pick": "place"}, {"plural": True, "demonstrative": True}
        by_form: dict[str, dict[str, Any]] = {
            "dead": {"deleted": True},
            "new": {"indefinite": True},
            "numbered": place | {"position": number, "numbered": True},
            "former": place | {"position": -1 if text[0] == "后" else 1},
            "nth": place | {"position": number},
            "back": place | {"position": -number},
            "ends": place | {"position": 1 if match["e"] in ("前", "头") else -1, "count": number, "plural": True},
            "last": place | {"position": -1},
            "other": {"pick": "other", "plural": "其" in text and not re.search(self.table.measure, text)},
            "previous": {"pick": "previous"},
            "pair": {"plural": True, "count": number, "demonstrative": is_this, "exhaustive": is_all or text[0] == "全"}
            | {"indefinite": not is_this and is_created},
            "several": several,
            "whole": {"plural": True},
            "this": {"demonstrative": True, "plural": is_all},
            "they": several,
            "it": {"demonstrative": True},
            "bare": {"indefinite": is_created, "plural": is_all},
        }
        return by_form[match.lastgroup or ""]

    def _last_noun(self, text: str) -> str:
        """Return the noun that a reference ends with."""
        ends = (text[start:] for start in range(max(0, len(text) - _MAX_NOUN_CHARS), len(text)))
        return next((end for end in ends if end in self.types), "")

    def _unknown_noun(self, start: int, end: int) -> tuple[str, bool]:
        """Return the unknown noun after a demonstrative, and whether it is only a description.

        An example is 台灯 in 那个台灯. A word that may be a verb or adjective is not a noun, nor is a word that
        describes a known noun.
        """
        text, stop, han = self.text, end, compile_cached(HAN)
        while han.match(text, stop) and not self.clear_nouns.match(text, stop):
            skipped = self.not_a_noun.match(text, stop)
            if skipped and (stop != end + 1 or len(skipped[0]) > 1 or skipped[0] in self.table.particles):
                break  # most nouns have two characters: the 能 of 功能 is not a verb
            stop += 1
        noun = text[end:stop]
        is_followed = self.clear_nouns.match(text, stop) or compile_cached(self.table.verb_suffixes).match(text, stop)
        if not noun or len(noun) > _MAX_UNKNOWN_NOUN_CHARS or is_followed:
            return "", False
        if text[max(0, start - 1) : start] in {"把", "将"} and not han.match(text, stop):
            return "", False  # 把这个打印出来: the verb follows
        next_word = stop + len(self.table.attributive)
        is_attribute = not han.match(text, next_word) or self.not_a_noun.match(text, next_word)
        return noun, bool(text.startswith(self.table.attributive, stop) and is_attribute)


def _join_nouns(first: Phrase, second: Phrase) -> Phrase:
    """Join adjacent nouns: the last is the type, the others describe it: 产品页面 is a page."""
    return replace(
        first,
        span=(first.span[0], second.span[1]),
        nouns=second.nouns,
        noun=second.noun,
        words=(*first.words, first.noun),
        plural=first.plural or second.plural,
    )


def _search_words(text: str) -> Iterator[str]:
    """Yield the words to look for in names: Latin words, and each pair of adjacent characters."""
    for part in compile_cached(f"[A-Za-z0-9_-]+|{HAN}+").findall(text):
        if has_han(part) and len(part) > 1:
            yield from (one + other for one, other in pairwise(part))
        else:
            yield part.lower()


@lru_cache(maxsize=64)
def _phrase_pattern(nouns: tuple[str, ...], forms: tuple[tuple[str, str], ...], measure: str) -> re.Pattern[str]:
    placeholders = {
        "N": _alternatives(nouns),
        "B": _alternatives(noun for noun in nouns if len(noun) > 1),
        "M": measure,
        "H": HAN,
        "#": "(?:[一二三四五六七八九十]|[0-9]{1,2})",
        "%": "(?:[两俩二三四五六七八九十]|[0-9]{1,2})",
    }
    groups = (f"(?P<{kind}>{re.sub('[NBMH#%]', lambda sign: placeholders[sign[0]], form)})" for kind, form in forms)
    return re.compile("|".join(groups))


def _alternatives(words: Iterable[str]) -> str:
    return any_of(*(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word))))
