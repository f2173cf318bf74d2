"""Converts conversation entries of any provider format to turn messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Opaque, Text
from inmind.history import Conversation, ConversationEntry, EntriesByRange, History
from inmind.history.command_output import mark_command_output
from inmind.history.token_meter import TokenMeter
from inmind.history.turns import Speaker, TurnCall, TurnMessage, TurnResult

ReadMessage = Callable[[ConversationEntry], Message]
"""Returns the parsed message of an entry."""


def turn_messages(history: History, read: ReadMessage, meter: TokenMeter) -> list[TurnMessage]:
    """Return the sent messages, with command output marked."""
    messages = [to_turn_message(entry, read(entry), meter) for entry in history.sent]
    return mark_command_output(messages, originals=with_archived(history, messages, meter))


@dataclass
class GrowingConversation:
    """The turn messages of a growing conversation. Each message is converted once, if needed."""

    read: ReadMessage
    meter: TokenMeter
    _messages: dict[str, TurnMessage] = field(default_factory=dict[str, TurnMessage])

    def newest_first(self, conversation: Conversation) -> Iterator[TurnMessage]:
        """Yield the messages of the conversation from the last to the first."""
        if len(self._messages) > len(conversation):  # some are of messages that the host removed
            self._messages.clear()
        for entry in reversed(conversation[:]):
            known = self._messages.get(entry.id)
            if known is None:
                known = self._messages[entry.id] = to_turn_message(entry, self.read(entry), self.meter)
            yield known


def with_archived(history: History, messages: Sequence[TurnMessage], meter: TokenMeter) -> list[TurnMessage]:
    """Return the messages with each stub replaced by the last message that it replaces.

    The next message answers that one.
    """
    stubs = [place for place, one in enumerate(messages) if one.stub]
    if not stubs:
        return list(messages)
    restored, entries_by_range = list(messages), EntriesByRange(history.messages)
    for place in stubs:
        if entries := entries_by_range(history.sent[place].replaced_ranges or ()):
            original = entries[-1]
            restored[place] = replace(
                to_turn_message(original, FORMATS[original.format].read(original.wire), meter), stub=True
            )
    return restored


def to_turn_message(entry: ConversationEntry, message: Message, meter: TokenMeter) -> TurnMessage:
    """Convert an entry with this parsed message."""
    if not any(type(part) is not Text for part in message.parts):
        return _text_message(entry, message, meter)
    opaque = [part for part in message.parts if isinstance(part, Opaque)]
    turn_calls = [TurnCall(call.id, call.name, call.arguments) for call in message.calls]
    turn_calls += [TurnCall(part.request_id, part.kind, "") for part in opaque if part.request_id]
    turn_calls += [
        TurnCall(f"#{entry.seq}", part.kind, "", is_compaction=True) for part in opaque if part.is_compaction
    ]
    turn_results = [
        TurnResult(
            result.id,
            "\n".join(part.text for part in result.parts if isinstance(part, Text)),
            meter.count_part(result),
            result.error,
            entry.is_memory_reply,
        )
        for result in message.results
    ]
    turn_results += [TurnResult(part.answered_id, "", 0) for part in opaque if part.answered_id]
    return TurnMessage(
        seq=entry.seq,
        speaker=_speaker(entry, message, has_results=bool(turn_results)),
        text=message.text,
        calls=tuple(turn_calls),
        results=tuple(turn_results),
        tokens=meter.count_message(entry),
        stub=entry.is_stub,
    )


def _text_message(entry: ConversationEntry, message: Message, meter: TokenMeter) -> TurnMessage:
    """Convert an entry that has only text, which is the common case."""
    speaker = _speaker(entry, message, has_results=False)
    return TurnMessage(
        seq=entry.seq, speaker=speaker, text=message.text, tokens=meter.count_message(entry), stub=entry.is_stub
    )


def _speaker(entry: ConversationEntry, message: Message, *, has_results: bool) -> Speaker:
    if message.role in ("system", "developer") or entry.is_block:
        return "operator"
    if message.role == "assistant":
        return "assistant"
    return "tool" if has_results or message.role == "tool" else "user"
