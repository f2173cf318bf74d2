"""Message formats of the providers, and parsing of model replies.

Everything else in inmind uses `Message` and its parts; only this package knows the providers' names for them. A new
format is a module here, an entry in `FORMATS`, and a row of its tests.

A reply is a client object, JSON, chunks of a stream, or a bare message. Its provider is detected by the fields. A bare
message may have none: `{"role": "assistant", "content": "Hello"}` is valid for all providers; its format is then that
of the last prompt. A stream is first joined into the complete reply and then parsed like one, so a streamed reply
cannot be parsed differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from inmind.core.json import peek, to_plain
from inmind.core.messages.anthropic import AnthropicMessages
from inmind.core.messages.format import Format, ReplyAssembler, incomplete_reply
from inmind.core.messages.model import Call, Reply, Text, Wire
from inmind.core.messages.openai import OpenAIChat
from inmind.core.messages.responses import OpenAIResponses
from inmind.errors import InvalidInput

FORMATS: dict[str, Format] = {format.name: format for format in (OpenAIResponses(), AnthropicMessages(), OpenAIChat())}
"""In the order of detection: a response has nearly every field by which the others are detected."""


def get_format(name: object, field: str = "format") -> Format:
    """Return the format with this name."""
    known = FORMATS.get(name) if isinstance(name, str) else None
    if known is None:
        raise InvalidInput(field=field, value=name, expected=f"one of {', '.join(FORMATS)}")
    return known


def read_reply(reply: object, *, format: str | None = None, hint: str = "openai", field: str = "reply") -> Reply:
    """Parse a reply.

    Its format is `format`, else detected, else `hint`: the format of the prompt.

    A `Reply` is returned unchanged.
    """
    if isinstance(reply, Reply):
        return reply
    formats = list(FORMATS.values()) if format is None else [get_format(format)]
    if _is_stream(reply, formats):
        detected, pieces = _assemble(cast(Iterable[object], reply), formats, field)
        joined = pieces.assemble(field) if pieces.is_complete else None
        if joined is None:
            raise incomplete_reply("chunks without an end", field=field)
        return detected.read_reply(joined, field=field)
    plain = to_plain(list(cast(Sequence[object], reply)) if isinstance(reply, tuple) else reply, field)
    refuse_error(plain, field=field)
    known = formats if format is not None else [one for one in formats if one.is_reply(plain)]
    return (known[0] if known else get_format(hint, field="hint")).read_reply(plain, field=field)


def read_partial_reply(chunks: Sequence[object], *, format: str) -> Reply | None:
    """Parse the chunks of a stream that may have ended early; None if it has no content.

    A stream without an end marker gives an incomplete reply.
    """
    if not chunks:
        return None
    _, pieces = _assemble(chunks, [FORMATS[format]], "reply")
    joined = pieces.assemble("reply")
    return None if joined is None else FORMATS[format].read_reply(joined, field="reply")


def text_and_calls(wires: Iterable[Wire], format: str) -> tuple[Text | Call, ...]:
    """The text and calls of messages, by which two copies of a reply are compared.

    They may differ in everything else: one host appends the client's object with its nulls, parsed values and
    annotations, another the bare text, a third leaves out the reasoning.
    """
    parts: list[Text | Call] = []
    for wire in wires:
        for part in FORMATS[format].read(wire).parts:
            if isinstance(part, Text) and parts and isinstance(before := parts[-1], Text):
                parts[-1] = Text(before.text + part.text)
            elif isinstance(part, Call) or (isinstance(part, Text) and part.text):
                parts.append(part)
    return tuple(parts)


def _is_stream(reply: object, formats: Sequence[Format]) -> bool:
    """True if the reply consists of chunks.

    Output items are a list too, and client objects are iterable.
    """
    if isinstance(reply, list | tuple):
        chunks = cast(Sequence[object], reply)
        return bool(chunks) and (is_error(chunks[0]) or any(one.is_chunk(chunks[0]) for one in formats))
    is_single = isinstance(reply, str | bytes | dict) or hasattr(reply, "model_dump")
    return isinstance(reply, Iterable) and not is_single


def _assemble(chunks: Iterable[object], formats: Sequence[Format], field: str) -> tuple[Format, ReplyAssembler]:
    """Join chunks. The provider is detected by the first one."""
    format: Format | None = None
    pieces: ReplyAssembler | None = None
    for taken, chunk in enumerate(chunks):
        place = f"{field}[{taken}]"
        refuse_error(chunk, field=place)
        if format is None or pieces is None:
            known = formats if len(formats) == 1 else [one for one in formats if one.is_chunk(chunk)]
            if not known:
                raise InvalidInput(field=place, value=chunk, expected="a chunk of a reply")
            format = known[0]
            pieces = format.assembler()
        pieces.add(chunk, place)
    if format is None or pieces is None:
        raise incomplete_reply("no chunks", field=field)
    return format, pieces


def refuse_error(reply: object, *, field: str) -> None:
    """Raise if a provider sent an error instead of a reply or a chunk."""
    if is_error(reply):
        raise incomplete_reply(to_plain(peek(reply, "error") or reply, field), field=field)


def is_error(reply: object) -> bool:
    """True for an error object.

    Items may have an error field too, of a failed tool, but they have a type.
    """
    kind = peek(reply, "type")
    return kind == "error" or (kind is None and bool(peek(reply, "error")))
