"""Conversion of messages and system prompts for a provider.

Content that the provider does not know is left out. A system prompt is checked in its own format before it is stored,
and converted to another format as text: every provider accepts plain text, and none accepts the form of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from inmind.core.frozen import frozen
from inmind.core.messages.format import Format
from inmind.core.messages.model import (
    FormatRules,
    Image,
    Message,
    Opaque,
    ParsedMessage,
    Part,
    Result,
    Wire,
)

# The index of a message that was inserted.
NO_ENTRY = -1


@frozen
class OmittedPart:
    """Content that could not be sent. `index`: position of its message in the given list."""

    what: str
    reason: str
    index: int


@frozen
class OutgoingMessage:
    """A message to send: as `wire` if it is set, otherwise written from `message`."""

    index: int
    message: Message
    wire: Wire | None = None

    def with_parts(self, parts: Sequence[Part]) -> OutgoingMessage:
        return OutgoingMessage(self.index, Message(self.message.role, tuple(parts)))

    @property
    def parts_without_results(self) -> tuple[Part, ...]:
        """The remaining parts when the results have been moved to their calls."""
        return tuple(part for part in self.message.parts if not isinstance(part, Result))


P = TypeVar("P", bound=Part)


def convert_messages(
    messages: Sequence[ParsedMessage], format: Format
) -> tuple[list[OutgoingMessage], list[OmittedPart], list[str]]:
    """Return the messages without content that this provider does not know.

    Adjacent assistant messages of other formats are joined: a sequence of items in Responses is one message elsewhere,
    and parallel calls must stay parallel.
    """
    items: list[OutgoingMessage] = []
    left_out: list[OmittedPart] = []
    repaired: list[str] = []
    joinable = False
    for entry, parsed in enumerate(messages):
        if parsed.format == format.name:
            joinable = False
            sendable = format.is_sendable(parsed.wire, parsed.message)
            if not sendable and not parsed.message.parts and format.rules.drops_empty_messages:
                left_out.append(OmittedPart("an empty message", f"{format.name} refuses it", entry))
                continue
            if not sendable:
                repaired.append(f"message {entry} was rewritten: {format.name} would refuse it")
            items.append(OutgoingMessage(entry, parsed.message, parsed.wire if sendable else None))
            continue
        message = _without_foreign_parts(parsed.message, format, entry, left_out)
        if parsed.message.parts and not message.parts:
            continue
        is_assistant = message.role == "assistant" and format.rules.result_position != "anywhere"
        if is_assistant and joinable:
            items[-1] = items[-1].with_parts(items[-1].message.parts + message.parts)
        else:
            items.append(OutgoingMessage(entry, message))
        joinable = is_assistant
    return items, left_out, repaired


def _without_foreign_parts(message: Message, format: Format, entry: int, left_out: list[OmittedPart]) -> Message:
    kept: list[Part] = []
    for part in message.parts:
        if isinstance(part, Image) and message.role == "assistant" and not format.rules.assistant_images:
            reason = f"{format.name} accepts no images in assistant messages"
            left_out.append(OmittedPart("an image in an assistant message", reason, entry))
        elif isinstance(part, Result):
            kept.append(replace(part, parts=tuple(_keep_own_parts(part.parts, format, entry, left_out))))
        else:
            kept += _keep_own_parts([part], format, entry, left_out)
    return Message(message.role, tuple(kept))


def _keep_own_parts(parts: Iterable[P], format: Format, entry: int, left_out: list[OmittedPart]) -> Iterator[P]:
    for part in parts:
        if isinstance(part, Opaque) and part.format != format.name:
            left_out.append(OmittedPart(f"{part.format} {part.kind}", f"only {part.format} understands it", entry))
        else:
            yield part


def drop_unpaired_opaque(
    items: list[OutgoingMessage], demands: FormatRules, *, in_thread: bool = False
) -> tuple[list[OutgoingMessage], list[OmittedPart]]:
    """Keep an opaque request and its answer only together: neither half can be written by us.

    Items that lead to a dropped one are dropped too, and so are those that lead to nothing. In a thread, an answer is
    kept: the provider holds its request.
    """
    unpaired = _unpaired(items, in_thread=in_thread)
    stray: set[int] = set()
    follows = False
    for at in range(len(items) - 1, -1, -1):
        if _is_prefix(items[at].message, demands):
            if not follows:
                stray.add(at)
        else:
            follows = at not in unpaired and items[at].message.role == "assistant"
    reasons = dict.fromkeys(unpaired, "its request or answer is missing")
    reasons |= dict.fromkeys(stray, "the item after it is missing")
    left_out = [
        OmittedPart(f"{part.format} {part.kind}", reasons[at], items[at].index)
        for at in sorted(reasons)
        for part in items[at].message.parts
        if isinstance(part, Opaque)
    ]
    return [item for at, item in enumerate(items) if at not in reasons], left_out


def _is_prefix(message: Message, demands: FormatRules) -> bool:
    return any(isinstance(part, Opaque) and part.kind in demands.opaque_prefixes for part in message.parts)


def _unpaired(items: Sequence[OutgoingMessage], *, in_thread: bool) -> set[int]:
    """Indexes of items with a request that is not answered, or an answer without a request."""
    waiting: dict[str, int] = {}
    unpaired: set[int] = set()
    for at, item in enumerate(items):
        for part in item.message.parts:
            if not isinstance(part, Opaque):
                continue
            if part.answered_id and waiting.pop(part.answered_id, None) is None and not in_thread:
                unpaired.add(at)
            if part.request_id in waiting:
                unpaired.add(waiting[part.request_id])
            if part.request_id:
                waiting[part.request_id] = at
    return unpaired | set(waiting.values())
