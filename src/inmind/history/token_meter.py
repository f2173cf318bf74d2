"""Counts tokens of messages and names the usage band of the context window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Image, Opaque, Part, Result, Text
from inmind.core.tokens import TOKENS_PER_IMAGE, TOKENS_PER_MESSAGE
from inmind.history import Conversation, ConversationEntry
from inmind.history.view import View

BANDS = (
    (20, "normal"),
    (40, "light_compression"),
    (60, "medium_compression"),
    (75, "heavy_compression"),
)
EMERGENCY_BAND = "emergency_compression"


def band_for(percent: float) -> str:
    """Return the name of the usage band, which the model reads as `action_hint`."""
    return next((name for below, name in BANDS if percent < below), EMERGENCY_BAND if percent > 75 else BANDS[-1][1])


@dataclass
class TokenMeter:
    """Counts tokens and caches the results: each message is counted once."""

    count: Callable[[str], int]
    _cache: dict[str, int] = field(default_factory=dict[str, int])
    _counted_digest: str = ""
    _tokens: list[int] = field(default_factory=list[int])
    _sums: list[int] = field(default_factory=lambda: [0])

    def count_history(self, conversation: Conversation, length: int | None = None) -> int:
        """Tokens of the first `length` messages, by default of all."""
        self._update_sums(conversation)
        return self._sums[len(conversation) if length is None else length]

    def count_view(self, conversation: Conversation, view: View, length: int | None = None) -> int:
        """Tokens of the first `length` wires of a view of this conversation."""
        if view.is_unchanged:
            return self.count_history(conversation, length)
        length = len(view.wires) if length is None else length
        return sum(self._count_view_wire(view, index) for index in range(length))

    def largest_message(self, conversation: Conversation) -> int:
        """Tokens of the largest message."""
        self._update_sums(conversation)
        return max(self._tokens, default=0)

    def count_message(self, entry: ConversationEntry) -> int:
        known = self._cache.get(entry.digest)
        if known is None:
            known = self._cache[entry.digest] = self.count_wire(entry.format, entry.wire)
        return known

    def count_value(self, name: str, value: object) -> int:
        """Tokens of a JSON value (system prompt, tools), cached under `name`."""
        known = self._cache.get(name)
        if known is None:
            known = self._cache[name] = self.count(to_json(value)) if value else 0
        return known

    def _count_view_wire(self, view: View, index: int) -> int:
        known = self._cache.get(view.prefix_digests[index])
        if known is None:
            known = self.count_wire(view.format, view.wires[index])
            self._cache[view.prefix_digests[index]] = known
        return known

    def _update_sums(self, conversation: Conversation) -> None:
        if not conversation.begins_with(len(self._tokens), self._counted_digest):
            self._tokens, self._sums = [], [0]
        for entry in conversation[len(self._tokens) :]:
            tokens = self.count_message(entry)
            self._tokens.append(tokens)
            self._sums.append(self._sums[-1] + tokens)
        self._counted_digest = conversation.prefix_digest()

    def count_wire(self, format: str, wire: Mapping[str, Any]) -> int:
        """Tokens of a message of this format."""
        content = wire.get("content")
        if isinstance(content, str) and len(wire) == 2:
            return TOKENS_PER_MESSAGE + self.count(content)
        return TOKENS_PER_MESSAGE + sum(self.count_part(part) for part in FORMATS[format].read(wire).parts)

    def count_part(self, part: Part) -> int:
        match part:
            case Text():
                return self.count(part.text)
            case Image():
                return TOKENS_PER_IMAGE
            case Call():
                return self.count(part.name) + self.count(part.arguments) + TOKENS_PER_MESSAGE
            case Result():
                return sum(self.count_part(inner) for inner in part.parts) + TOKENS_PER_MESSAGE
            case Opaque():
                return self.count(to_json(part.body))
