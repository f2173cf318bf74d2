"""How full the window is, and what the model is told about it.

`context_meta` rides as an extra content part at the very end: it changes on every call, and anything before it
would push the history out of the provider's cache. It is never stored in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Any

from inmind.frozen import frozen
from inmind.history import Entry, Line
from inmind.journal import to_json
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.parts import Call, Image, Opaque, Part, Result, Text
from inmind.prompt.standing import Standing
from inmind.prompt.view import View
from inmind.text import inert
from inmind.tokens import PER_IMAGE, PER_MESSAGE

BANDS = (
    (20, "normal"),
    (40, "light_compression"),
    (60, "medium_compression"),
    (75, "heavy_compression"),
)
EMERGENCY = "emergency_compression"
STRONG_FROM = 50
NAMED = 3

MOST_META = 150
"""Tokens of a context_meta that names the largest messages."""


def band(percent: float) -> str:
    """What this much use of the window asks for."""
    return next((name for below, name in BANDS if percent < below), EMERGENCY if percent > 75 else BANDS[-1][1])


@frozen(kw_only=True)
class Reading:
    """The meter's numbers for one call."""

    tokens_used: int
    tokens_max: int
    messages: int
    memory_size: int

    @property
    def percent(self) -> float:
        return 100 * self.tokens_used / self.tokens_max


def reading_of(standing: Standing, line: Line, used: int, window: int) -> Reading:
    """What the meter tells of so many tokens by our count."""
    return Reading(
        tokens_used=standing.calibration.correct(used),
        tokens_max=window,
        messages=len(line),
        memory_size=sum(len(block.text.encode()) for block in standing.blocks),
    )


def context_meta(reading: Reading, wording: Mapping[str, str], named: Sequence[str]) -> str:
    numbers = {
        "tokens_used": reading.tokens_used,
        "tokens_max": reading.tokens_max,
        "tokens_percent": round(reading.percent),
        "messages_in_history": reading.messages,
        "working_memory_size": reading.memory_size,
        "action_hint": band(reading.percent),
    }
    reminder = wording["reminder_strong" if reading.percent > STRONG_FROM else "reminder"]
    if named:
        reminder += f" {wording['largest']}{inert('; '.join(named))}."
    return f"<context_meta>\n{to_json(numbers)}\n{reminder}\n</context_meta>"


def describe(entry: Entry, tokens: int, position: int) -> str:
    """A message as a person would point at it."""
    message = FORMATS[entry.format].read(entry.wire)
    what = "tool result" if message.results else f"{message.role} message"
    return f"{what} {position + 1} ({tokens} tokens)"


@dataclass
class Meter:
    """Counts, and remembers what it has counted: a message is counted once, however often it is sent."""

    count: Callable[[str], int]
    _of_message: dict[str, int] = field(default_factory=dict[str, int])
    _counted: str = ""
    _tokens: list[int] = field(default_factory=list[int])
    _sums: list[int] = field(default_factory=lambda: [0])

    def history(self, line: Line, upto: int | None = None) -> int:
        """Tokens of the first `upto` messages of the line."""
        self._follow(line)
        return self._sums[len(line) if upto is None else upto]

    def wires(self, line: Line, view: View, upto: int | None = None) -> int:
        """Tokens of the first `upto` wires of a view of this line."""
        if view.as_it_came:
            return self.history(line, upto)
        length = len(view.wires) if upto is None else upto
        return sum(self._named_wire(view, index) for index in range(length))

    def largest(self, line: Line) -> tuple[tuple[int, int], ...]:
        """Sequence number and tokens of the largest messages, without the last, which is what is being answered."""
        self._follow(line)
        there = (place for place in range(max(0, len(line) - 1)) if not line[place].stub)
        biggest = nlargest(NAMED, there, key=self._tokens.__getitem__)
        return tuple((line[index].seq, self._tokens[index]) for index in biggest)

    def meta(self, reading: Reading, wording: Mapping[str, str]) -> int:
        """What context_meta is counted as, given a reading of everything else.

        It reports the count that it is part of, and may name messages: a little more stands for both.
        """
        whole = replace(reading, tokens_used=reading.tokens_used + MOST_META)
        named = ["assistant message 9999 (99999 tokens)"] * NAMED if whole.percent > STRONG_FROM else []
        return self.count(context_meta(whole, wording, named))

    def message(self, entry: Entry) -> int:
        known = self._of_message.get(entry.digest)
        if known is None:
            known = self._of_message[entry.digest] = self.wire(entry.format, entry.wire)
        return known

    def value(self, name: str, value: object) -> int:
        """Tokens of a JSON value that goes by this name: a system prompt, a list of tools."""
        known = self._of_message.get(name)
        if known is None:
            known = self._of_message[name] = self.count(to_json(value)) if value else 0
        return known

    def _named_wire(self, view: View, index: int) -> int:
        known = self._of_message.get(view.names[index])
        if known is None:
            known = self.wire(view.format, view.wires[index])
            self._of_message[view.names[index]] = known
        return known

    def _follow(self, line: Line) -> None:
        if not line.begins_with(len(self._tokens), self._counted):
            self._tokens, self._sums = [], [0]
        for entry in line[len(self._tokens) :]:
            tokens = self.message(entry)
            self._tokens.append(tokens)
            self._sums.append(self._sums[-1] + tokens)
        self._counted = line.name()

    def wire(self, format: str, wire: Mapping[str, Any]) -> int:
        """Tokens of a message of some format."""
        content = wire.get("content")
        if isinstance(content, str) and len(wire) == 2:
            return PER_MESSAGE + self.count(content)
        return PER_MESSAGE + sum(self.part(part) for part in FORMATS[format].read(wire).parts)

    def part(self, part: Part) -> int:
        match part:
            case Text():
                return self.count(part.text)
            case Image():
                return PER_IMAGE
            case Call():
                return self.count(part.name) + self.count(part.arguments) + PER_MESSAGE
            case Result():
                return sum(self.part(inner) for inner in part.parts) + PER_MESSAGE
            case Opaque():
                return self.count(to_json(part.body))
