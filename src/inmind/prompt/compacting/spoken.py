"""Messages of any provider as the history room looks at them."""

from __future__ import annotations

from inmind.history import Entry
from inmind.history.spoken import Answered, Asked, By, Spoken
from inmind.prompt.formats.parts import Message, Opaque, Text
from inmind.prompt.meter import Meter


def spoken(entry: Entry, message: Message, meter: Meter) -> Spoken:
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


def _words_alone(entry: Entry, message: Message, meter: Meter) -> Spoken:
    """Most messages are that."""
    by = _by(entry, message, answered=False)
    return Spoken(seq=entry.seq, by=by, words=message.text, tokens=meter.message(entry), stub=entry.stub)


def _by(entry: Entry, message: Message, *, answered: bool) -> By:
    if message.role in ("system", "developer") or entry.block:
        return "operator"
    if message.role == "assistant":
        return "assistant"
    return "tool" if answered or message.role == "tool" else "user"
