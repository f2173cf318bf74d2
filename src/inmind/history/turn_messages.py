"""Messages of any provider as the history room looks at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Opaque, Text
from inmind.history import Behind, ConversationEntry, History
from inmind.history.command_output import told_apart
from inmind.history.token_meter import Meter
from inmind.history.turns import Answered, Asked, By, Spoken

Reader = Callable[[ConversationEntry], Message]
"""What a message of the conversation says."""


def conversation(history: History, read: Reader, meter: Meter) -> list[Spoken]:
    """What is sent, message by message, with what commands answered told apart from what people say."""
    said = [spoken(entry, read(entry), meter) for entry in history.sent]
    return told_apart(said, seen=in_context(history, said, meter))


def in_context(history: History, said: Sequence[Spoken], meter: Meter) -> list[Spoken]:
    """What is sent, but for each stub the message that it was, or the last of those: what comes next answers that."""
    stubs = [place for place, one in enumerate(said) if one.stub]
    if not stubs:
        return list(said)
    seen, behind = list(said), Behind(history.line)
    for place in stubs:
        if entries := behind(history.sent[place].of or ()):
            was = entries[-1]
            seen[place] = replace(spoken(was, FORMATS[was.format].read(was.wire), meter), stub=True)
    return seen


def spoken(entry: ConversationEntry, message: Message, meter: Meter) -> Spoken:
    """A message of the conversation, which says this."""
    if not any(type(part) is not Text for part in message.parts):
        return _words_alone(entry, message, meter)
    opaque = [part for part in message.parts if isinstance(part, Opaque)]
    asks = [Asked(call.id, call.name, call.arguments) for call in message.calls]
    asks += [Asked(part.asks, part.kind, "") for part in opaque if part.asks]
    answers = [
        Answered(
            result.id,
            "\n".join(part.text for part in result.parts if isinstance(part, Text)),
            meter.part(result),
            result.error,
        )
        for result in message.results
    ]
    answers += [Answered(part.answers, "", 0) for part in opaque if part.answers]
    return Spoken(
        seq=entry.seq,
        by=_by(entry, message, answered=bool(answers)),
        words=message.text,
        asks=tuple(asks),
        answers=tuple(answers),
        tokens=meter.message(entry),
        stub=entry.stub,
    )


def _words_alone(entry: ConversationEntry, message: Message, meter: Meter) -> Spoken:
    """Most messages are that."""
    by = _by(entry, message, answered=False)
    return Spoken(seq=entry.seq, by=by, words=message.text, tokens=meter.message(entry), stub=entry.stub)


def _by(entry: ConversationEntry, message: Message, *, answered: bool) -> By:
    if message.role in ("system", "developer") or entry.block:
        return "operator"
    if message.role == "assistant":
        return "assistant"
    return "tool" if answered or message.role == "tool" else "user"
