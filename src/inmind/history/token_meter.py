"""How full the window is, and what the model is told about it.

`context_meta` rides as an extra content part at the very end: it changes on every call, and anything before it
would push the history out of the provider's cache. It is never stored in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Image, Opaque, Part, Result, Text
from inmind.core.tokens import PER_IMAGE, PER_MESSAGE
from inmind.history import Conversation, ConversationEntry
from inmind.history.view import View

BANDS = (
    (20, "normal"),
    (40, "light_compression"),
    (60, "medium_compression"),
    (75, "heavy_compression"),
)
EMERGENCY = "emergency_compression"
NAMED = 3


def band(percent: float) -> str:
    """What this much use of the window asks for."""
    return next((name for below, name in BANDS if percent < below), EMERGENCY if percent > 75 else BANDS[-1][1])


@dataclass
class Meter:
    """Counts, and remembers what it has counted: a message is counted once, however often it is sent."""

    count: Callable[[str], int]
    _of_message: dict[str, int] = field(default_factory=dict[str, int])
    _counted: str = ""
    _tokens: list[int] = field(default_factory=list[int])
    _sums: list[int] = field(default_factory=lambda: [0])

    def history(self, line: Conversation, upto: int | None = None) -> int:
        """Tokens of the first `upto` messages of the line."""
        self._follow(line)
        return self._sums[len(line) if upto is None else upto]

    def wires(self, line: Conversation, view: View, upto: int | None = None) -> int:
        """Tokens of the first `upto` wires of a view of this line."""
        if view.as_it_came:
            return self.history(line, upto)
        length = len(view.wires) if upto is None else upto
        return sum(self._named_wire(view, index) for index in range(length))

    def largest(self, line: Conversation) -> tuple[tuple[int, int], ...]:
        """Sequence number and tokens of the largest messages, without the last, which is what is being answered."""
        self._follow(line)
        there = (place for place in range(max(0, len(line) - 1)) if not line[place].stub)
        biggest = nlargest(NAMED, there, key=self._tokens.__getitem__)
        return tuple((line[index].seq, self._tokens[index]) for index in biggest)

    def message(self, entry: ConversationEntry) -> int:
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

    def _follow(self, line: Conversation) -> None:
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
