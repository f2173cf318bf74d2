"""Splits texts into passages, and texts and queries into index words.

One function serves both, so that they match: Unicode normalisation, case folding, English stems, and for scripts
without spaces every character and every pair of neighbours. Most Chinese words have two characters, so pairs work
without a dictionary for each language.

A message of ten thousand characters shares a word with every query, and its vector has no direction. So it is indexed
by passage and scored by its best one.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import apsw

MAX_WORD_CHARS = 40
"""A longer word is a key or an encoded file and is indexed by its beginning."""

_UNSPACED = re.compile(
    "["
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana and iteration marks
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul, whose words include particles
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "]+"
)


def index_words(text: str) -> list[str]:
    """Return all words of a text in order; those of scripts without spaces come last."""
    spaced, runs = _split_scripts(text)
    return [*_stem(spaced), *(gram for run in runs for gram in (*run, *_pairs(run)))]


def query_words(text: str) -> list[str]:
    """Return the distinct words of a query; of a run without spaces only its pairs."""
    spaced, runs = _split_scripts(text)
    grams = (gram for run in runs for gram in (_pairs(run) if len(run) > 1 else run))
    return list(dict.fromkeys([*_stem(spaced), *grams]))


def _split_scripts(text: str) -> tuple[str, list[str]]:
    normalised = unicodedata.normalize("NFKC", text).casefold()
    return (_UNSPACED.sub(" ", normalised), runs) if (runs := _UNSPACED.findall(normalised)) else (normalised, [])


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _stem(text: str) -> list[str]:
    data = text.encode("utf-8", "replace")
    words = _tokenizer()(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [word[:MAX_WORD_CHARS] for word in words if word]


_TOKENIZER_OPTIONS = ["unicode61", "remove_diacritics", "2", "categories", "L* M* N* Co"]
"""Combining marks are part of words: Hindi and Tamil write vowels with them."""

_thread_state = threading.local()


def _tokenizer() -> Callable[..., Any]:
    """Return SQLite's tokenizer of this thread. A connection must not be shared by threads."""
    if not hasattr(_thread_state, "tokenizer"):
        _thread_state.connection = apsw.Connection(":memory:")
        _thread_state.tokenizer = _thread_state.connection.fts5_tokenizer("porter", _TOKENIZER_OPTIONS)
    return _thread_state.tokenizer


MAX_PASSAGE_CHARS = 700
"""About 120 words, which embedders read completely."""

_END = re.compile(r"[.!?](?=\s)|[。！？][」』”’）]*|\n+")
_PAUSE = re.compile(r"[\s,;:|/)\]}，、；：）」』।။]")


def split_passages(text: str) -> list[str]:
    """Return the passages of a text, in order; a short text is one passage."""
    if len(text) <= MAX_PASSAGE_CHARS:
        return [text] if text.strip() else []
    passages: list[str] = []
    start = end = 0
    for boundary in _boundaries(text):
        if boundary - start > MAX_PASSAGE_CHARS and end > start:
            passages.append(text[start:end].strip())
            start = end
        end = boundary
    return [passage for passage in (*passages, text[start:end].strip()) if passage]


def _boundaries(text: str) -> Iterator[int]:
    """Yield positions where a passage may end: after sentences, and inside overlong ones."""
    position = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        while end - position > MAX_PASSAGE_CHARS:
            position = _pause_before_limit(text, position)
            yield position
        if end > position:
            yield (position := end)


def _pause_before_limit(text: str, start: int) -> int:
    """Return the last word boundary before the limit, or the limit itself."""
    pauses = [match.end() for match in _PAUSE.finditer(text, start + MAX_PASSAGE_CHARS // 2, start + MAX_PASSAGE_CHARS)]
    return pauses[-1] if pauses else start + MAX_PASSAGE_CHARS
