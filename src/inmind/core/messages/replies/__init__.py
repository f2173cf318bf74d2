"""Parsing of model replies: client objects, JSON, chunks of a stream, or a bare message.

The provider is detected by the fields. A bare message may have none: `{"role": "assistant", "content": "Hello"}` is
valid for all providers; its format is then that of the last prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from inmind.core.json import to_plain
from inmind.core.messages import get_format
from inmind.core.messages.replies.anthropic import AnthropicReplyReader
from inmind.core.messages.replies.openai import ChatReplyReader
from inmind.core.messages.replies.reply import (
    ProviderEdit,
    Reply,
    ReplyAssembler,
    ReplyReader,
    ReplyUsage,
    incomplete_reply,
    is_error,
    refuse_error,
    text_and_calls,
)
from inmind.core.messages.replies.responses import ResponsesReplyReader
from inmind.errors import InvalidInput

# In the order in which they are tried: a response has nearly every field by which the others are detected.
_READERS: dict[str, ReplyReader] = {
    one.name: one for one in (ResponsesReplyReader(), AnthropicReplyReader(), ChatReplyReader())
}


def read_reply(reply: object, *, format: str | None = None, hint: str = "openai", field: str = "reply") -> Reply:
    """Parse a reply.

    Its format is `format`, else detected, else `hint`: the format of the prompt.

    A `Reply` is returned unchanged.
    """
    if isinstance(reply, Reply):
        return reply
    readers = list(_READERS.values()) if format is None else [_READERS[get_format(format).name]]
    if _is_stream(reply, readers):
        replies, pieces = _assemble(cast(Iterable[object], reply), readers, field)
        joined = pieces.assemble(field) if pieces.is_complete else None
        if joined is None:
            raise incomplete_reply("chunks without an end", field=field)
        return replies.read(joined, field=field)
    plain = to_plain(list(cast(Sequence[object], reply)) if isinstance(reply, tuple) else reply, field)
    refuse_error(plain, field=field)
    known = readers if format is not None else [one for one in readers if one.is_reply(plain)]
    replies = known[0] if known else _READERS[get_format(hint, field="hint").name]
    return replies.read(plain, field=field)


def read_partial_reply(chunks: Sequence[object], *, format: str, field: str = "reply") -> Reply | None:
    """Parse the chunks of a stream that may have ended early; None if it has no content.

    A stream without an end marker gives an incomplete reply.
    """
    if not chunks:
        return None
    replies, pieces = _assemble(chunks, [_READERS[format]], field)
    joined = pieces.assemble(field)
    return None if joined is None else replies.read(joined, field=field)


def _is_stream(reply: object, readers: Sequence[ReplyReader]) -> bool:
    """True if the reply consists of chunks.

    Output items are a list too, and client objects are iterable.
    """
    if isinstance(reply, list | tuple):
        chunks = cast(Sequence[object], reply)
        return bool(chunks) and (is_error(chunks[0]) or any(one.is_chunk(chunks[0]) for one in readers))
    is_single = isinstance(reply, str | bytes | dict) or hasattr(reply, "model_dump")
    return isinstance(reply, Iterable) and not is_single


def _assemble(
    chunks: Iterable[object], readers: Sequence[ReplyReader], field: str
) -> tuple[ReplyReader, ReplyAssembler]:
    replies: ReplyReader | None = None
    pieces: ReplyAssembler | None = None
    for taken, chunk in enumerate(chunks):
        place = f"{field}[{taken}]"
        if replies is None or pieces is None:
            replies = _detect_reader(chunk, readers, place)
            pieces = replies.new_assembler()
        refuse_error(chunk, field=place)
        pieces.add(chunk, place)
    if replies is None or pieces is None:
        raise incomplete_reply("no chunks", field=field)
    return replies, pieces


def _detect_reader(chunk: object, readers: Sequence[ReplyReader], field: str) -> ReplyReader:
    """Detect the provider by the first chunk."""
    refuse_error(chunk, field=field)
    known = readers if len(readers) == 1 else [one for one in readers if one.is_chunk(chunk)]
    if not known:
        raise InvalidInput(field=field, value=chunk, expected="a chunk of a reply")
    return known[0]


__all__ = ["ProviderEdit", "Reply", "ReplyUsage", "read_partial_reply", "read_reply", "text_and_calls"]
