"""The replies of every provider, as one value: the client's object or plain, whole or in chunks, or the bare message.

Which provider it is, is told by the shape. A bare message may have none: `{"role": "assistant", "content": "Hello"}`
is everybody's, and is then taken for a reply to the last prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from inmind.core.json import to_plain
from inmind.core.messages import format_named
from inmind.core.messages.replies.anthropic import AnthropicReplies
from inmind.core.messages.replies.openai import ChatReplies
from inmind.core.messages.replies.reply import Pieces, Replies, Reply, ReplyUsage, is_error, refuse_error, said, unended
from inmind.core.messages.replies.responses import ResponsesReplies
from inmind.errors import InvalidInput

# In the order in which they are asked: a response has nearly every field that marks the others.
_REPLIES: dict[str, Replies] = {one.name: one for one in (ResponsesReplies(), AnthropicReplies(), ChatReplies())}


def read_reply(reply: object, *, format: str | None = None, hint: str = "openai", field: str = "reply") -> Reply:
    """What the model answered. `format` decides what it is, else its shape, else `hint`: the format it was asked in.

    One that was read before is itself.
    """
    if isinstance(reply, Reply):
        return reply
    asked = list(_REPLIES.values()) if format is None else [_REPLIES[format_named(format).name]]
    if _is_stream(reply, asked):
        replies, pieces = _gathered(cast(Iterable[object], reply), asked, field)
        joined = pieces.joined(field) if pieces.ended else None
        if joined is None:
            raise unended("chunks without an end", field=field)
        return replies.read(joined, field=field)
    whole = to_plain(list(cast(Sequence[object], reply)) if isinstance(reply, tuple) else reply, field)
    refuse_error(whole, field=field)
    known = asked if format is not None else [one for one in asked if one.is_reply(whole)]
    replies = known[0] if known else _REPLIES[format_named(hint, field="hint").name]
    return replies.read(whole, field=field)


def read_as_far_as_it_came(chunks: Sequence[object], *, format: str, field: str = "reply") -> Reply | None:
    """What a stream brought that is over, though it may not have said so: a proxy gave up, a server is careless.

    Then it is a reply that was cut short. None where nothing was said.
    """
    if not chunks:
        return None
    replies, pieces = _gathered(chunks, [_REPLIES[format]], field)
    joined = pieces.joined(field)
    return None if joined is None else replies.read(joined, field=field)


def _is_stream(reply: object, asked: Sequence[Replies]) -> bool:
    """Is it to be gathered? Output items come in a list too, and a client's objects can be iterated over."""
    if isinstance(reply, list | tuple):
        chunks = cast(Sequence[object], reply)
        return bool(chunks) and (is_error(chunks[0]) or any(one.is_chunk(chunks[0]) for one in asked))
    whole = isinstance(reply, str | bytes | dict) or hasattr(reply, "model_dump")
    return isinstance(reply, Iterable) and not whole


def _gathered(chunks: Iterable[object], asked: Sequence[Replies], field: str) -> tuple[Replies, Pieces]:
    replies: Replies | None = None
    pieces: Pieces | None = None
    for taken, chunk in enumerate(chunks):
        place = f"{field}[{taken}]"
        if replies is None or pieces is None:
            replies = _sender(chunk, asked, place)
            pieces = replies.pieces()
        refuse_error(chunk, field=place)
        pieces.add(chunk, place)
    if replies is None or pieces is None:
        raise unended("no chunks", field=field)
    return replies, pieces


def _sender(chunk: object, asked: Sequence[Replies], field: str) -> Replies:
    """Whose stream begins like this."""
    refuse_error(chunk, field=field)
    known = asked if len(asked) == 1 else [one for one in asked if one.is_chunk(chunk)]
    if not known:
        raise InvalidInput(field=field, value=chunk, expected="a chunk of a reply")
    return known[0]


__all__ = ["Reply", "ReplyUsage", "read_as_far_as_it_came", "read_reply", "said"]
