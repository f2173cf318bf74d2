"""The one escaper, the one truncater, the one finder: how stored text stands in a prompt, a terminal, a budget.

Stored text is data. Inside a prompt it is wrapped in tags of ours, so it must not be able to close them, open
others, or hide what it says from the person who inspects it. Everything that renders goes through here; a
second copy of an escaper is where the hole would be.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
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

# What opens one of our blocks, behind its bracket. Possessive, so that no run of spaces is ever tried twice.
_TAG = rf"[\s/\\]*+(?:{'|'.join(TAGS)})\b"
_BANNER = r"\s*+working\s++memory\s*+\]"
_ESCAPES = {"<": "&lt;", "[": "&#91;"}
_OPENS = {"<": re.compile(_TAG), "[": re.compile(_BANNER)}
_OPENING = re.compile(rf"<(?={_TAG})|\[(?={_BANNER})", re.IGNORECASE)

# Invisible characters that reorder or hide text, never needed to write a language: bidi overrides and isolates,
# the tag block, zero-width space, word joiner, BOM, line and paragraph separators, controls. Zero-width joiner
# and non-joiner stay: emoji, Persian and Indic scripts are spelt with them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_WORD = re.compile(r"[A-Za-z0-9_]")

# Characters of a text whose escaping is remembered: a cache of large texts would keep them all in memory.
_MOST_REMEMBERED = 64 * 1024


def inert(text: str) -> str:
    """The text as it may stand between our tags: unable to close them or to look so, and with nothing hidden in it."""
    return _remembered(text) if len(text) <= _MOST_REMEMBERED else _inert(text)


def printable(text: str) -> str:
    """The text as it may stand in a terminal: no escape sequence, no cursor tricks; tabs and newlines stay."""
    return _HIDDEN.sub(_named, text.replace("\r\n", "\n")).replace("\r", "⟨U+000D⟩")


@frozen
class Cut:
    """A text brought inside a budget, and how much of it had to stay out."""

    text: str
    lines_left_out: int

    @property
    def whole(self) -> bool:
        return self.lines_left_out == 0


def cut(text: str, *, budget: int, count: Callable[[str], int], pointer: str) -> Cut:
    """Keep the beginning, at a line boundary, and say where the rest is.

    The pointer is part of the budget. When not even one line fits beside it the first line is cut inside; when
    the pointer itself does not fit the text is empty, which the caller reports: half a pointer helps nobody.
    """
    if count(text) <= budget:
        return Cut(text=text, lines_left_out=0)
    lines = text.split("\n")

    def fits(body: str) -> bool:
        return count(f"{body}\n{pointer}" if body else pointer) <= budget

    if not fits(""):
        return Cut(text="", lines_left_out=len(lines))
    kept = _most(len(lines) - 1, lambda n: fits("\n".join(lines[:n])))
    body = "\n".join(lines[:kept])
    if not kept:
        length = _most(len(lines[0]), lambda n: fits(lines[0][:n]))
        body = lines[0][: _before_mark(lines[0], length)]
    return Cut(text=f"{body}\n{pointer}" if body else pointer, lines_left_out=len(lines) - kept)


def cut_inside(
    text: str, *, budget: int, count: Callable[[str], int], pointer: str, least_head: int = 0
) -> tuple[str, str, str]:
    """The beginning with the pointer, what is left out, and the end: who hands over a long text asks in front of it or
    behind it, and what a program comes to stands in its last lines. Two thirds of the budget are for the beginning, or
    more, where it has to have so much."""
    if count(text) <= budget:
        return text, "", ""
    least = min(budget, count(pointer) + max(2, least_head))
    head = cut(text, budget=max(2 * budget // 3, least), count=count, pointer=pointer).text
    if not head:
        return "", text, ""
    rest = text[len(head.removesuffix(pointer).rstrip("\n")) :]
    room = budget - count(head) - 1
    lines = rest.split("\n")
    kept = _most(len(lines) - 1, lambda n: count("\n".join(lines[len(lines) - n :])) <= room)
    tail = "\n".join(lines[len(lines) - kept :])
    if not kept and room > 0:
        last = lines[-1]
        tail = last[len(last) - _most(len(last) - 1, lambda n: count(last[len(last) - n :]) <= room) :]
    return head, rest[: len(rest) - len(tail)], tail


def stands_in(text: str, id: str) -> bool:
    """Does the text have this id, and not merely a longer word with it inside?"""
    return any(True for _ in places_of(id, text))


def places_of(id: str, text: str) -> Iterator[int]:
    """Where an id begins as a word of its own, also as JSON may have escaped it."""
    for spelt in {id, json.dumps(id)[1:-1], json.dumps(id, ensure_ascii=False)[1:-1]} - {""}:
        # Words of ASCII only: in Chinese, they follow an id without a space.
        opens, closes = _WORD.match(spelt[0]), _WORD.match(spelt[-1])
        place = text.find(spelt)
        while place >= 0:
            end = place + len(spelt)
            inside = (opens and place and _WORD.match(text, place - 1)) or (closes and _WORD.match(text, end))
            if not inside:
                yield place
            place = text.find(spelt, place + 1)


def shortened(text: str, most: int) -> str:
    """A text on one line, of at most so many characters; what is longer ends between two words, in an ellipsis."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    kept = line[: most - 1].rstrip()
    words = kept.rpartition(" ")[0]
    return f"{words if len(words) > most // 2 else kept}…"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest n up to limit that fits, given that 0 does and that what fits still fits when shortened."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _before_mark(text: str, length: int) -> int:
    """Step back so that no accent or joiner is parted from its letter."""
    while 0 < length < len(text) and (unicodedata.combining(text[length]) or text[length] in "\u200d\ufe0f"):
        length -= 1
    return length


def _named(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match.group()):04X}⟩"


def _inert(text: str) -> str:
    text = _HIDDEN.sub(_named, _LINE_END.sub("\n", text))
    if text.isascii():
        return _OPENING.sub(lambda match: _ESCAPES[match.group()], text)
    return _BRACKETED.sub(_escaped, text)


_remembered = lru_cache(maxsize=512)(_inert)

# All the returns before a line's end, since one that was left would be in front of it the next time.
_LINE_END = re.compile(r"(?<!\r)\r++\n")


def _escaped(match: re.Match[str]) -> str:
    """One bracket and everything up to the next. Whether it opens a block is read off the shadow of what follows.

    So the shadow needs no map back to the text: only the bracket is ever replaced, and its place is known.
    """
    bracket, behind = match.groups()
    kind = _SHADOW.of(bracket)
    return _ESCAPES[kind] + behind if _OPENS[kind].match(behind.translate(_SHADOW)) else match.group()


# To a model a look-alike closes a block as well as the real thing. These are the ones that compatibility forms (NFKC)
# and case do not already bring together: brackets, slashes, and letters of our tags as Cyrillic, Greek and small
# capitals have them. A capital stands here by itself where its small letter looks like another. Quotation marks of
# whole languages (« 《) and letters of everyday words (く) are not among the brackets: those texts must stay readable.
_ALIKE = {
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
_PLAIN = {alike: plain for plain, many in _ALIKE.items() for alike in many}
_BRACKETS = "".join(rf"\{plain}{_ALIKE[plain]}" for plain in _ESCAPES) + "＜﹤︿［﹇︹︻﹝"
_BRACKETED = re.compile(rf"([{_BRACKETS}])([^{_BRACKETS}]*+)")

# What Unicode calls default ignorable and does not already class as a mark or a format character: fillers that are
# letters by name, and ranges kept for later.
_IGNORABLE = re.compile("[\u115f\u1160\u2065\u3164\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]")


class _Shadow(dict[int, str]):
    """How a character looks, in plain small letters; nothing for one that is not seen. Filled as texts come by."""

    _MOST = 10_000
    # "㏌" spells a piece of a tag; what stands for a whole phrase does not, and would only make the shadow huge.
    _LONGEST = 4

    def __missing__(self, code: int) -> str:
        if len(self) >= self._MOST:
            self.clear()
        seen = self[code] = self.of(chr(code))
        return seen

    def of(self, char: str) -> str:
        if char in _PLAIN:
            return _PLAIN[char]
        if unicodedata.category(char) in {"Cf", "Mn", "Me"} or _IGNORABLE.match(char):
            return ""
        forms = [unicodedata.normalize("NFKC", char), char.casefold()]
        if char.isalpha() and char < "\u2000":
            forms.append(unicodedata.normalize("NFD", char))
        simpler = next((form for form in forms if form != char), None)
        if simpler is None or len(simpler) > self._LONGEST:
            return char
        return "".join(map(self.of, simpler))


_SHADOW = _Shadow()
