"""Excerpts of texts: beginning and end, and the words around known ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from inmind.entities.ids.keys import has_secret, is_credential_key

_AROUND_ID = 30
"""Characters before and after an id that is quoted from a text."""
_MAX_QUOTES = 8
"""More ids are not quoted: a text with many is a listing."""


def _never_known(_: str) -> bool:
    return False


def clip_text(text: str, max_characters: int, known: Callable[[str], bool] = _never_known) -> str:
    """Beginning and end of a text on one line, and between them the words around known ids.

    The end of an output says how it ended. It is cut between words: a part of an id would pass for another id.
    """
    line = " ".join("[secret]" if has_secret(word) else word for word in _PAIR.sub(_hide_secret, text).split())
    if len(line) <= max_characters:
        return line
    spaced = line.translate(_SEPARATORS)
    tail = max_characters // 3
    last = _start_of_words(spaced, len(line) - tail, len(line))
    spans = [(0, _end_of_words(spaced, 0, max_characters - tail))]
    in_spans = {word for _, word in _words(line[last:])}
    for place, word in _words(line):
        end = place + len(word)
        if len(spans) > _MAX_QUOTES or end > last:
            break
        if word in in_spans or not known(word):
            continue
        in_spans.add(word)
        if end > spans[-1][1]:
            start = min(place, max(spans[-1][1], _start_of_words(spaced, place - _AROUND_ID, place)))
            spans.append((start, min(last, _end_of_words(spaced, end, place + 2 * _AROUND_ID))))
    pieces = [line[start:end].strip() for start, end in (*spans, (last, len(line)))]
    return " … ".join(filter(None, pieces)) + ("" if pieces[-1] else "…")


def _hide_secret(pair: re.Match[str]) -> str:
    """The key with `[secret]` if its value grants access.

    A name in code does not: `token = next(lines)`.
    """
    is_value = pair["quoted"] or any(map(str.isdigit, pair["bare"]))
    return f"{pair['start']}[secret]" if is_value and is_credential_key(pair["key"]) else pair[0]


_PAIR = re.compile(
    r"""(?P<start>(?<![\w-])(?P<key>[^\W\d][\w-]{1,60})\\?["']?\s{0,9}[:=]>?\s{0,9}\[?(?:(?i:bearer|basic)\s)?)"""
    r"""(?:(?P<quoted>\\?"[^"\\]{3,}\\?"|'[^']{3,}')|(?P<bare>[^\s"',;}\])\\]{3,}))"""
)
"""A key and its value in a text, as in JSON or YAML."""


def _start_of_words(spaced: str, place: int, end: int) -> int:
    """The place of the first word that begins between two places; `end` if there is none."""
    return 0 if place <= 0 else (spaced.find(" ", place - 1, end) + 1 or end)


def _end_of_words(spaced: str, start: int, place: int) -> int:
    """The end of the last word that ends between two places; `place` if there is none."""
    return len(spaced) if place >= len(spaced) else max(start, spaced.rfind(" ", start, place + 1)) or place


def possible_ids(text: str) -> set[str]:
    """Return all words of a text that could be an id."""
    words = set(text.translate(_SEPARATORS).split())
    if "://" in text:
        words.update(_LINK.findall(text))
    return words | {word.rstrip(_TRAILING) for word in words if word.endswith(_ENDS)}


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Places and words, with and without a sentence's last character."""
    place = 0
    for word in text.translate(_SEPARATORS).split():
        place = text.index(word, place)
        yield place, word
        if word.endswith(_ENDS):
            yield place, word.rstrip(_TRAILING)
        place += len(word)


_LINK = re.compile(r"""[a-z][a-z0-9+.-]{0,30}://[^\s"'`<>()\[\]{}|\\]+""")
_SEPARATORS = str.maketrans(dict.fromkeys("\"'`(),;:=[]{}<>|\\", " "))
_TRAILING = ".!?…"
_ENDS = tuple(_TRAILING)
