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

MAX_WORD_CHARS = 40
"""Characters of a word; what goes on for longer is a key or a file in text form, and is found by its beginning."""

_UNSPACED = re.compile(
    "["
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana, and marks that stand for a Han
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul, whose words carry their particles with them
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "]+"
)


def index_words(text: str) -> list[str]:
    """All words of a text, in order, those of scripts without spaces behind the others."""
    spaced, runs = _split_scripts(text)
    return [*_stem(spaced), *(gram for run in runs for gram in (*run, *_pairs(run)))]


def query_words(text: str) -> list[str]:
    """The words that a question looks for, each once: of a run without spaces only the pairs, which say more."""
    spaced, runs = _split_scripts(text)
    grams = (gram for run in runs for gram in (_pairs(run) if len(run) > 1 else run))
    return list(dict.fromkeys([*_stem(spaced), *grams]))


def _split_scripts(text: str) -> tuple[str, list[str]]:
    normalised = unicodedata.normalize("NFKC", text).casefold()
    return (_UNSPACED.sub(" ", normalised), runs) if (runs := _UNSPACED.findall(normalised)) else (normalised, [])


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _stem(text: str) -> list[str]:
    tokenizer = _tokenizer()
    found = tokenizer(
        text.encode("utf-8", "replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return [word[:MAX_WORD_CHARS] for word in found if word]


class _Tokenizer(Protocol):
    def __call__(
        self, text: bytes, flags: int, locale: str | None, *, include_offsets: bool, include_colocated: bool
    ) -> list[str]: ...


_TOKENIZER_OPTIONS = ["unicode61", "remove_diacritics", "2", "categories", "L* M* N* Co"]
"""Marks are parts of words: what Hindi and Tamil write their vowels with."""

_thread_state = threading.local()


def _tokenizer() -> _Tokenizer:
    """SQLite's own. It lives in a connection, and a connection is used by one thread at a time."""
    if not hasattr(_thread_state, "tokenizer"):
        _thread_state.connection = apsw.Connection(":memory:")
        _thread_state.tokenizer = _thread_state.connection.fts5_tokenizer("porter", _TOKENIZER_OPTIONS)
    return cast(_Tokenizer, _thread_state.tokenizer)
