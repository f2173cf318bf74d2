"""Parsing of model replies: client objects, JSON, chunks of a stream, or a bare message.

The provider is detected by the fields. A bare message may have none: `{"role": "assistant", "content": "Hello"}` is
valid for all providers; its format is then that of the last prompt.

A stream is first joined into the complete reply and then parsed like one. So there is one parser for each provider, and
a streamed reply cannot be parsed differently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from inmind.core.json import (
    is_count,
    is_list,
    is_object,
    object_at,
    objects_at,
    peek,
    text_at,
    to_plain,
    without_nulls,
)
from inmind.core.messages import FORMATS, get_format
from inmind.core.messages.anthropic import parse_input
from inmind.core.messages.format import Format, incomplete_reply
from inmind.core.messages.model import Call, Reply, Text, Wire, without_id
from inmind.core.messages.openai import ONE_CHOICE
from inmind.core.messages.responses import SELF_CONTAINED
from inmind.errors import InvalidInput


def read_reply(reply: object, *, format: str | None = None, hint: str = "openai", field: str = "reply") -> Reply:
    """Parse a reply.

    Its format is `format`, else detected, else `hint`: the format of the prompt.

    A `Reply` is returned unchanged.
    """
    if isinstance(reply, Reply):
        return reply
    formats = [FORMATS[name] for name in _ASSEMBLERS] if format is None else [get_format(format)]
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


def read_partial_reply(chunks: Sequence[object], *, format: str, field: str = "reply") -> Reply | None:
    """Parse the chunks of a stream that may have ended early; None if it has no content.

    A stream without an end marker gives an incomplete reply.
    """
    if not chunks:
        return None
    _, pieces = _assemble(chunks, [FORMATS[format]], field)
    joined = pieces.assemble(field)
    return None if joined is None else FORMATS[format].read_reply(joined, field=field)


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
            pieces = _ASSEMBLERS[format.name]()
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


class ReplyAssembler(ABC):
    """Joins the chunks of one provider."""

    is_complete = False
    """True if the provider has sent the end of the reply."""

    @abstractmethod
    def add(self, chunk: object, field: str) -> None:
        """Add a chunk. Events that a client library inserts are skipped."""

    @abstractmethod
    def assemble(self, field: str) -> dict[str, Any] | None:
        """Return the complete reply as the provider would have sent it; None if it has no content.

        An incomplete one is returned as if the provider had cut it off, without parts that cannot be sent back
        partially. Joining waits for the last chunk: appending each piece would copy a long text every time.
        """


class ChatAssembler(ReplyAssembler):
    def __init__(self) -> None:
        self._id: Any = None
        self._model: Any = None
        self._usage: Any = None
        self._deltas: list[dict[str, Any]] = []
        self._reason: Any = None

    def add(self, chunk: object, field: str) -> None:
        if peek(chunk, "choices") is None and peek(chunk, "type") is not None:
            # An event of the client library: it wraps a chunk, or repeats the content of one.
            chunk = peek(chunk, "chunk")
            if chunk is None:
                return
        given = to_plain(chunk, field)
        if not is_object(given):
            raise InvalidInput(field=field, value=given, expected="a chunk: an object")
        self._id = self._id or given.get("id")
        self._model = given.get("model") or self._model
        self._usage = given.get("usage") or self._usage
        for choice, place in objects_at({"choices": given.get("choices") or []}, "choices", field):
            if (choice.get("index") or 0) != 0:
                raise InvalidInput(field=f"{place}.index", value=choice["index"], expected=ONE_CHOICE)
            if choice.get("delta") is not None:
                self._deltas.append(object_at(choice, "delta", place))
            self._reason = choice.get("finish_reason") or self._reason
        self.is_complete = self._reason is not None

    def assemble(self, field: str) -> dict[str, Any] | None:
        message: Any = _join_pieces([{"role": "assistant"}, *self._deltas], f"{field}.choices[0].message")
        if not self.is_complete:
            message = _without_partial_calls(message)
            if not any(value for key, value in message.items() if key != "role"):
                return None
        choice = {"message": message, "finish_reason": self._reason or "length"}
        return {"id": self._id, "model": self._model, "choices": [choice], "usage": self._usage}


def _without_partial_calls(message: dict[str, Any]) -> dict[str, Any]:
    """Drop calls of a truncated message whose name has not arrived completely."""
    calls: Any = message.get("tool_calls") or []
    return {**message, "tool_calls": [call for call in calls if peek(call, "id") and _is_named(call)]}


def _is_named(call: Any) -> bool:
    function, custom = peek(call, "function"), peek(call, "custom")
    return all(isinstance(peek(custom or function, key), str) for key in ("name", "input" if custom else "arguments"))


def _join_pieces(pieces: Sequence[Any], field: str, *, once: bool = False) -> Any:
    """Join the pieces of a value; `once`: for text that is repeated, not sent in pieces."""
    some = [piece for piece in pieces if piece is not None]
    if some and all(isinstance(piece, str) for piece in some):
        return next((piece for piece in reversed(some) if piece), "") if once else join_text(some)
    if some and all(is_object(piece) for piece in some):
        keys = dict.fromkeys(key for piece in some for key in piece)
        fields = {key: [piece.get(key) for piece in some] for key in keys}
        return {
            key: _join_pieces(parts, f"{field}.{key}", once=key in _SENT_ONCE or (key == "name" and is_repeated(parts)))
            for key, parts in fields.items()
        }
    if some and all(is_list(piece) for piece in some):
        entries = _group_by_entry(part for piece in some for part in piece)
        return [_join_pieces(parts, f"{field}[{place}]") for place, parts in enumerate(entries)]
    if any(isinstance(piece, str | list | dict) for piece in some):
        kinds = sorted({type(piece).__name__ for piece in some})
        raise InvalidInput(field=field, value=kinds, expected="pieces of one kind")
    return some[-1] if some else None


def is_repeated(pieces: Sequence[Any]) -> bool:
    """True if each piece is the whole tool name."""
    non_empty = [piece for piece in pieces if piece]
    return all(piece == non_empty[0] for piece in non_empty)


def _group_by_entry(pieces: Iterable[Any]) -> list[list[Any]]:
    """Group the pieces of a list by entry."""
    entries: list[list[Any]] = []
    for piece in pieces:
        started = next((entry for entry in reversed(entries) if belongs_to_entry(piece, entry[0])), None)
        if started is None:
            entries.append([piece])
        else:
            started.append(piece)
    return entries


def belongs_to_entry(piece: Any, first: Any) -> bool:
    """True if a piece belongs to the entry that starts with `first`, by its index.

    Some servers give all calls the same index, or none; then the ids decide. Other pieces without an index are separate
    entries.
    """
    index = peek(piece, "index")
    if index != peek(first, "index") or (index is None and not (_is_call(piece) and _is_call(first))):
        return False
    return all(not (one := peek(piece, key)) or one == (peek(first, key) or one) for key in ("id", "type"))


def _is_call(piece: Any) -> bool:
    return peek(piece, "function") is not None or peek(piece, "custom") is not None


_SENT_ONCE = frozenset({"role", "id", "type", "format"})


class AnthropicAssembler(ReplyAssembler):
    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._deltas: dict[int, list[dict[str, Any]]] = {}
        self._closed: set[object] = set()

    def add(self, chunk: object, field: str) -> None:
        kind = event_type(chunk, field=field)
        if kind == "message_start":
            self._message = _part(chunk, "message", field)
        elif kind == "content_block_start":
            index = _index(chunk, field)
            self._blocks[index], self._deltas[index] = _part(chunk, "content_block", field), []
        elif kind == "content_block_delta":
            index = _index(chunk, field)
            if index not in self._blocks:
                raise InvalidInput(field=f"{field}.index", value=index, expected="the index of a started block")
            self._deltas[index].append(_part(chunk, "delta", field))
        elif kind == "content_block_stop":
            index = peek(chunk, "index")
            if is_count(index):
                self._closed.add(index)
        elif kind == "message_delta":
            usage = to_plain(peek(chunk, "usage"), f"{field}.usage")
            self._message.update(without_nulls(_part(chunk, "delta", field)))
            before = self._message.get("usage")  # usage in a stream is cumulative: later values replace earlier ones
            if is_object(before) and is_object(usage):
                usage = {**before, **without_nulls(usage)}
            self._message["usage"] = usage or before
            if (edited := to_plain(peek(chunk, "context_management"), f"{field}.context_management")) is not None:
                self._message["context_management"] = edited
        if kind == "message_stop" or self._message.get("stop_reason") is not None:
            self.is_complete = True

    def assemble(self, field: str) -> dict[str, Any] | None:
        usable = [index for index, block in self._blocks.items() if self.is_complete or self._is_usable(index, block)]
        if not self.is_complete and not usable:
            return None
        content = [
            _join_deltas(self._blocks[index], self._deltas[index], f"{field}.content[{place}]")
            for place, index in enumerate(usable)
        ]
        stop = {} if self.is_complete else {"stop_reason": "max_tokens"}
        return {**without_nulls(self._message), **stop, "content": content}

    def _is_usable(self, index: int, block: dict[str, Any]) -> bool:
        """True for a complete block, and for partial text and calls.

        Thinking without its signature would be refused.
        """
        return index in self._closed or block.get("type") in _USABLE_IF_PARTIAL


def _join_deltas(block: dict[str, Any], deltas: Sequence[dict[str, Any]], field: str) -> dict[str, Any]:
    """Return a block with its deltas: texts are appended to the block's field of the same name.

    Two fields have another name in a delta, and its numbers are for display only.
    """
    joined = dict(block)
    for key in dict.fromkeys(key for delta in deltas for key in delta if key != "type"):
        pieces = [delta[key] for delta in deltas if delta.get(key) is not None]
        texts = [piece for piece in pieces if isinstance(piece, str)]
        if key == "citation":
            cited: Any = joined.get("citations") or []
            if not is_list(cited):
                raise InvalidInput(field=f"{field}.citations", value=cited, expected="a list")
            joined["citations"] = [*cited, *pieces]
        elif key == "partial_json":
            joined["input"] = parse_input(join_text(texts))
        elif texts:
            start = "" if joined.get(key) is None else text_at(joined, key, field)
            joined[key] = join_text([start, *texts])
    return joined


def _part(chunk: object, name: str, field: str) -> dict[str, Any]:
    return object_at({name: to_plain(peek(chunk, name), f"{field}.{name}")}, name, field)


def _index(chunk: object, field: str) -> int:
    index = peek(chunk, "index")
    if not is_count(index):
        raise InvalidInput(field=f"{field}.index", value=index, expected="a whole number")
    return index


_USABLE_IF_PARTIAL = ("text", "tool_use")


class ResponsesAssembler(ReplyAssembler):
    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._words: dict[int, list[str]] = {}
        self._response: dict[str, Any] | None = None

    def add(self, chunk: object, field: str) -> None:
        kind, place = event_type(chunk, field=field), peek(chunk, "output_index")
        if kind == "response.output_item.done":
            if not is_count(place):
                raise InvalidInput(field=f"{field}.output_index", value=place, expected="a whole number")
            self._items[place] = to_plain(peek(chunk, "item"), f"{field}.item")
        elif kind == "response.output_text.delta" and is_count(place) and isinstance(peek(chunk, "delta"), str):
            self._words.setdefault(place, []).append(peek(chunk, "delta"))
        elif kind in _END_EVENTS:
            response = to_plain(peek(chunk, "response"), f"{field}.response")
            if not is_object(response):
                raise InvalidInput(field=f"{field}.response", value=response, expected="an object")
            self._response = {"status": kind.removeprefix("response."), **response}
            self.is_complete = True

    def assemble(self, field: str) -> dict[str, Any] | None:  # noqa: ARG002 -- required by the protocol
        if self._response is None:
            items_by_place: dict[int, Any] = {}
            for place, words in self._words.items():
                text = {"type": "output_text", "text": join_text(words)}
                items_by_place[place] = {"type": "message", "role": "assistant", "content": [text]}
            items_by_place |= self._items
            items = [item for _, item in sorted(items_by_place.items())]
            output = [without_id(item) for item in items if (peek(item, "type") or "message") in SELF_CONTAINED]
            return {"status": "incomplete", "output": output} if output else None
        # Some servers leave the items out of the last event, since each was sent before.
        output = self._response.get("output") or [self._items[place] for place in sorted(self._items)]
        return {**self._response, "output": output}


_END_EVENTS = ("response.completed", "response.incomplete", "response.failed")


def event_type(event: object, *, field: str) -> str:
    kind = peek(event, "type")
    if not isinstance(kind, str):
        raise InvalidInput(field=f"{field}.type", value=kind, expected="the type of an event")
    return kind


def join_text(pieces: Iterable[str]) -> str:
    """Join pieces of text. A server may cut between the halves of a surrogate pair."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


_ASSEMBLERS: dict[str, Callable[[], ReplyAssembler]] = {
    "responses": ResponsesAssembler,
    "anthropic": AnthropicAssembler,
    "openai": ChatAssembler,
}
"""In the order of detection: a response has nearly every field by which the others are detected."""
