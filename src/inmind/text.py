"""The one escaper and the one truncater: how stored text stands in a prompt, a terminal, a budget.

Stored text is data. Inside a prompt it is wrapped in tags of ours, so it must not be able to close them, open
others, or hide what it says from the person who inspects it. Everything that renders goes through here; a
second copy of an escaper is where the hole would be.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

TAGS = ("memory_guide", "memory_changes", "memory", "working_memory", "context_meta", "system_message")

# Look-alikes of "<" count: a full-width closer reads like a closer to a model, if not to a parser.
_CLOSER = re.compile(r"[<＜﹤‹〈⟨](?=\s*[/／⁄∕]?\s*(?:" + "|".join(TAGS) + r")\b)", re.IGNORECASE)
_BANNER = re.compile(r"\[(?=\s*WORKING\s+MEMORY\s*\])", re.IGNORECASE)

# Invisible characters that reorder or hide text, never needed to write a language: bidi overrides and isolates,
# the tag block, zero-width space, word joiner, BOM, line and paragraph separators, controls. Zero-width joiner
# and non-joiner stay: emoji, Persian and Indic scripts are spelt with them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


@lru_cache(maxsize=512)
def inert(text: str) -> str:
    """The text as it may stand between our tags: unable to close them, and with nothing hidden in it."""
    text = _HIDDEN.sub(_named, text.replace("\r\n", "\n"))
    return _BANNER.sub("&#91;", _CLOSER.sub("&lt;", text))


def printable(text: str) -> str:
    """The text as it may stand in a terminal: no escape sequence, no cursor tricks; tabs and newlines stay."""
    return _HIDDEN.sub(_named, text.replace("\r\n", "\n")).replace("\r", "⟨U+000D⟩")


@dataclass(frozen=True, slots=True)
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
