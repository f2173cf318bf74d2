"""Escaping, truncating and finding text for prompts, terminals and budgets.

Stored text is data. In a prompt it is enclosed in tags of inmind, so it must not be able to close them, open others, or
hide characters. Everything that renders uses these functions; a second escaper could have other holes.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from inmind.core.frozen import frozen

TAGS = (
    "memory_guide",
    "memory_changes",
    "memory",
    "working_memory",
    "compacted_history",
    "context_meta",
    "system_message",
)

# The text after the bracket that opens one of our blocks. Possessive, so that no run of spaces is tried twice.
_TAG = rf"[\s/\\]*+(?:{'|'.join(TAGS)})\b"
_BANNER = r"\s*+working\s++memory\s*+\]"
_ESCAPES = {"<": "&lt;", "[": "&#91;"}
_OPENS = {"<": re.compile(_TAG), "[": re.compile(_BANNER)}
_OPENING = re.compile(rf"<(?={_TAG})|\[(?={_BANNER})", re.IGNORECASE)

# Invisible characters that reorder or hide text, never needed to write a language: bidi overrides and isolates,
# the tag block, zero-width space, word joiner, BOM, line and paragraph separators, controls. Zero-width joiner
# and non-joiner stay: emoji, Persian and Indic scripts need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_WORD = re.compile(r"[A-Za-z0-9_]")

# Longer texts are not cached, since the cache would keep them in memory.
_MAX_CACHED_CHARACTERS = 64 * 1024


def escape_markup(text: str) -> str:
    """The text, unable to close or imitate our tags, with hidden characters made visible."""
    return _cached_escape(text) if len(text) <= _MAX_CACHED_CHARACTERS else _escape_markup(text)


def printable(text: str) -> str:
    """The text without escape sequences or cursor control. Tabs and newlines stay."""
    return _HIDDEN.sub(_code_point, text.replace("\r\n", "\n")).replace("\r", "⟨U+000D⟩")


@frozen
class TruncatedText:
    """A text that fits a budget, and the number of lines that were left out."""

    text: str
    lines_left_out: int

    @property
    def whole(self) -> bool:
        return self.lines_left_out == 0


def truncate(text: str, *, budget: int, count: Callable[[str], int], pointer: str) -> TruncatedText:
    """Keep the beginning, up to a line boundary, and add a pointer to the rest.

    The pointer counts towards the budget. If not even one line fits with it, the first line is cut; if the pointer
    itself does not fit, the text is empty, and the caller must report that.
    """
    if count(text) <= budget:
        return TruncatedText(text=text, lines_left_out=0)
    lines = text.split("\n")

    def fits(body: str) -> bool:
        return count(f"{body}\n{pointer}" if body else pointer) <= budget

    if not fits(""):
        return TruncatedText(text="", lines_left_out=len(lines))
    kept = largest_that_fits(len(lines) - 1, lambda n: fits("\n".join(lines[:n])))
    body = "\n".join(lines[:kept])
    if not kept:
        length = largest_that_fits(len(lines[0]), lambda n: fits(lines[0][:n]))
        body = lines[0][: _step_before_combining(lines[0], length)]
    return TruncatedText(text=f"{body}\n{pointer}" if body else pointer, lines_left_out=len(lines) - kept)


def truncate_middle(
    text: str, *, budget: int, count: Callable[[str], int], pointer: str, least_head: int = 0
) -> tuple[str, str, str]:
    """The beginning with the pointer, the part that is left out, and the end.

    A long text usually has its question first or last, and the result of a program in its last lines. Two thirds of the
    budget are for the beginning, or more if `least_head` needs it.
    """
    if count(text) <= budget:
        return text, "", ""
    least = min(budget, count(pointer) + max(2, least_head))
    head = truncate(text, budget=max(2 * budget // 3, least), count=count, pointer=pointer).text
    if not head:
        return "", text, ""
    rest = text[len(head.removesuffix(pointer).rstrip("\n")) :]
    room = budget - count(head) - 1
    lines = rest.split("\n")
    kept = largest_that_fits(len(lines) - 1, lambda n: count("\n".join(lines[len(lines) - n :])) <= room)
    tail = "\n".join(lines[len(lines) - kept :])
    if not kept and room > 0:
        last = lines[-1]
        tail = last[len(last) - largest_that_fits(len(last) - 1, lambda n: count(last[len(last) - n :]) <= room) :]
    return head, rest[: len(rest) - len(tail)], tail


def contains_id(text: str, id: str) -> bool:
    """True if the text has this id as a whole word."""
    return any(True for _ in id_positions(id, text))


def id_positions(id: str, text: str) -> Iterator[int]:
    """Positions at which an id starts as a whole word, also in its JSON-escaped form."""
    for spelling in {id, json.dumps(id)[1:-1], json.dumps(id, ensure_ascii=False)[1:-1]} - {""}:
        # Only ASCII counts as a word character: Chinese text follows an id without a space.
        opens, closes = _WORD.match(spelling[0]), _WORD.match(spelling[-1])
        place = text.find(spelling)
        while place >= 0:
            end = place + len(spelling)
            inside = (opens and place and _WORD.match(text, place - 1)) or (closes and _WORD.match(text, end))
            if not inside:
                yield place
            place = text.find(spelling, place + 1)


def shorten(text: str, max_characters: int) -> str:
    """The text on one line, of at most `max_characters`.

    A longer text ends after a word, with an ellipsis.
    """
    line = " ".join(text.split())
    if len(line) <= max_characters:
        return line
    kept = line[: max_characters - 1].rstrip()
    words = kept.rpartition(" ")[0]
    return f"{words if len(words) > max_characters // 2 else kept}…"


def count_noun(number: int, noun: str) -> str:
    """ "1 note", "2 notes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def join_paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def largest_that_fits(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest n up to the limit that fits. 0 must fit, and fitting must be monotonic."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _step_before_combining(text: str, length: int) -> int:
    """Step back so that no accent or joiner is separated from its letter."""
    while 0 < length < len(text) and (unicodedata.combining(text[length]) or text[length] in "\u200d\ufe0f"):
        length -= 1
    return length


def _code_point(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match.group()):04X}⟩"


def _escape_markup(text: str) -> str:
    if not text.isprintable():
        text = _HIDDEN.sub(_code_point, _LINE_END.sub("\n", text))
    if text.isascii():
        return _OPENING.sub(lambda match: _ESCAPES[match.group()], text)
    return _BRACKETED.sub(_escape_bracket, text)


_cached_escape = lru_cache(maxsize=512)(_escape_markup)

# All carriage returns before a newline; a remaining one would be removed by the next pass.
_LINE_END = re.compile(r"(?<!\r)\r++\n")


def _escape_bracket(match: re.Match[str]) -> str:
    """Escape a bracket if the following text, in plain letters, opens a block.

    Only the bracket is replaced, so the plain form needs no mapping back to the text.
    """
    bracket, rest = match.groups()
    kind = _PLAIN_FORM.of(bracket)
    return _ESCAPES[kind] + rest if _OPENS[kind].match(rest.translate(_PLAIN_FORM)) else match.group()


# A model takes a look-alike for the real character. These are the ones that NFKC and case folding do not already map:
# brackets, slashes, and letters of our tags in Cyrillic, Greek and small capitals. A capital is listed if its small
# letter looks different. Quotation marks of whole languages (« 《) and letters of everyday words (く) are not listed as
# brackets, so that those texts stay readable.
_LOOK_ALIKES = {
    "<": "‹\u2329\u3008⟨❬❮❰⦑⧼˂˱ᐸ𝈶",
    "[": "【〔⟦❲⁅",
    "]": "】〕⟧❳⁆",
    "/": "⁄∕⧸╱⟋",
    "\\": "∖⧵╲⟍",
    "_": "ˍ‿⁀",
    " ": "\u2800",
    "a": "аαɑᴀ",
    "c": "сϲϹᴄ",
    "d": "ԁɗᴅ",
    "e": "еεєҽᴇ",
    "g": "ɡցɢ",
    "h": "һнհΗʜ",
    "i": "іιıɩӏɪ",
    "k": "кκᴋ",
    "m": "мμᴍ",
    "n": "пηոΝɴ",
    "o": "оοσօᴏ",
    "r": "гʀ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "υսцʋᴜ",
    "w": "ԝѡωшᴡ",
    "x": "хχ",
    "y": "уүγΥʏ",
}
_PLAIN_FORMS = {look_alike: plain for plain, look_alikes in _LOOK_ALIKES.items() for look_alike in look_alikes}
_BRACKETS = "".join(rf"\{plain}{_LOOK_ALIKES[plain]}" for plain in _ESCAPES) + "＜﹤︿［﹇︹︻﹝"
_BRACKETED = re.compile(rf"([{_BRACKETS}])([^{_BRACKETS}]*+)")

# Default ignorable characters that Unicode does not class as marks or format characters: fillers, and reserved ranges.
_IGNORABLE = re.compile("[\u115f\u1160\u2065\u3164\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]")


class _PlainForms(dict[int, str]):
    """Maps a character to its look-alike in plain small letters; empty if it is invisible.

    Entries are computed on first use.
    """

    _MAX_ENTRIES = 10_000
    # "㏌" spells a part of a tag; a character for a whole phrase does not, and would only make the result long.
    _MAX_EXPANSION = 4

    def __missing__(self, code: int) -> str:
        if len(self) >= self._MAX_ENTRIES:
            self.clear()
        seen = self[code] = self.of(chr(code))
        return seen

    def of(self, char: str) -> str:
        if char in _PLAIN_FORMS:
            return _PLAIN_FORMS[char]
        if unicodedata.category(char) in {"Cf", "Mn", "Me"} or _IGNORABLE.match(char):
            return ""
        forms = [unicodedata.normalize("NFKC", char), char.casefold()]
        if char.isalpha() and char < "\u2000":
            forms.append(unicodedata.normalize("NFD", char))
        simpler = next((form for form in forms if form != char), None)
        if simpler is None or len(simpler) > self._MAX_EXPANSION:
            return char
        return "".join(map(self.of, simpler))


_PLAIN_FORM = _PlainForms()
