"""The words that a text is found by.

One function reads what is kept and what is asked, so that the two always meet: letters of one width and case, English
endings taken off, and for scripts that put no space between words every character and every pair of neighbours. Most
Chinese words have two characters, so a pair is the smallest thing that means something; a dictionary would know the
words better and would have to be had for every language.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from typing import Protocol, cast

import apsw

LONGEST = 40
"""Characters of a word; what goes on for longer is a key or a file in text form, and is found by its beginning."""

_UNSPACED = re.compile(
    "["
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana, and marks that stand for a Han
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul, whose words carry their particles with them
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "]+"
)


def words(text: str) -> list[str]:
    """All words of a text, in order, those of scripts without spaces behind the others."""
    spaced, runs = _parted(text)
    return [*_stemmed(spaced), *(gram for run in runs for gram in (*run, *_pairs(run)))]


def words_asked(text: str) -> list[str]:
    """The words that a question looks for, each once: of a run without spaces only the pairs, which say more."""
    spaced, runs = _parted(text)
    grams = (gram for run in runs for gram in (_pairs(run) if len(run) > 1 else run))
    return list(dict.fromkeys([*_stemmed(spaced), *grams]))


def _parted(text: str) -> tuple[str, list[str]]:
    even = unicodedata.normalize("NFKC", text).casefold()
    return (_UNSPACED.sub(" ", even), runs) if (runs := _UNSPACED.findall(even)) else (even, [])


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _stemmed(text: str) -> list[str]:
    tokenizer = _tokenizer()
    found = tokenizer(
        text.encode("utf-8", "replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return [word[:LONGEST] for word in found if word]


class _Tokenizer(Protocol):
    def __call__(
        self, text: bytes, flags: int, locale: str | None, *, include_offsets: bool, include_colocated: bool
    ) -> list[str]: ...


_SPELLING = ["unicode61", "remove_diacritics", "2", "categories", "L* M* N* Co"]
"""Marks are parts of words: what Hindi and Tamil write their vowels with."""

_MINE = threading.local()


def _tokenizer() -> _Tokenizer:
    """SQLite's own. It lives in a connection, and a connection is used by one thread at a time."""
    if not hasattr(_MINE, "tokenizer"):
        _MINE.connection = apsw.Connection(":memory:")
        _MINE.tokenizer = _MINE.connection.fts5_tokenizer("porter", _SPELLING)
    return cast(_Tokenizer, _MINE.tokenizer)
