"""Replies of OpenAI's chat completions, and of compatible servers.

A chunk holds pieces of one message: texts are appended, list entries are joined by their `index`, and names are sent
once. Other servers send names in every chunk, send the name of a tool in pieces, or set the index of all calls to 0 or
leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from inmind.core.json import is_list, is_object, object_at, objects_at, to_plain
from inmind.core.messages import FORMATS
from inmind.core.messages.openai import NAME
from inmind.core.messages.replies.reply import (
    Reply,
    ReplyUsage,
    incomplete_reply,
    join_text,
    make_usage,
    not_a_reply,
    peek,
    reply_id,
    reply_model,
    without_nulls,
)
from inmind.errors import InvalidInput

_EXTRA_FIELDS = (
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
    "annotations",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
)
_INCOMPLETE_REASONS = ("length", "content_filter")
_SENT_ONCE = frozenset({"role", "id", "type", "format"})
_ONE_CHOICE = "one choice: of several, pass the message that was chosen"


class ChatReplyReader:
    name: str = NAME

    def is_reply(self, reply: object) -> bool:
        return is_object(reply) and any(key in reply for key in ("choices", *_EXTRA_FIELDS))

    def is_chunk(self, chunk: object) -> bool:
        return peek(chunk, "choices") is not None or peek(chunk, "type") == "chunk"

    def read(self, reply: object, *, field: str) -> Reply:
        if not is_object(reply):
            raise not_a_reply(reply, field=field)
        if "choices" not in reply:
            return Reply(format=NAME, wires=(_message(reply, field),))
        choices = objects_at(reply, "choices", field)
        if len(choices) != 1:
            raise InvalidInput(field=f"{field}.choices", value=f"{len(choices)} choices", expected=_ONE_CHOICE)
        choice, place = choices[0]
        reason = choice.get("finish_reason", "stop")
        if not reason or reason == "error":
            raise incomplete_reply(choice.get("error", reason), field=f"{place}.finish_reason")
        message = _message(object_at(choice, "message", place), f"{place}.message")
        usage = _usage(reply.get("usage"))
        return Reply(
            format=NAME,
            wires=(message,),
            id=reply_id(reply),
            model=reply_model(reply),
            usage=usage,
            is_complete=reason not in _INCOMPLETE_REASONS,
        )

    def new_assembler(self) -> ChatAssembler:
        return ChatAssembler()


class ChatAssembler:
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
                raise InvalidInput(field=f"{place}.index", value=choice["index"], expected=_ONE_CHOICE)
            if choice.get("delta") is not None:
                self._deltas.append(object_at(choice, "delta", place))
            self._reason = choice.get("finish_reason") or self._reason

    @property
    def is_complete(self) -> bool:
        return self._reason is not None

    def assemble(self, field: str) -> dict[str, Any] | None:
        message: Any = _join_pieces([{"role": "assistant"}, *self._deltas], f"{field}.choices[0].message")
        if not self.is_complete:
            message = _without_partial_calls(message)
            if not any(value for key, value in message.items() if key != "role"):
                return None
        choice = {"message": message, "finish_reason": self._reason or "length"}
        return {"id": self._id, "model": self._model, "choices": [choice], "usage": self._usage}


def _message(given: dict[str, Any], field: str) -> dict[str, Any]:
    """The message as it can be sent back.

    Empty fields outside the content and values parsed by the client are left out. An empty text stays: some servers
    require empty reasoning.
    """
    if not any(key in given for key in ("role", "content", *_EXTRA_FIELDS)):
        raise not_a_reply(given, field=field)
    role = given.get("role") or "assistant"
    if role != "assistant":
        raise InvalidInput(field=f"{field}.role", value=role, expected="assistant")
    wire: dict[str, Any] = {"role": role, "content": given.get("content")}
    extra_fields = without_nulls(given, *wire, "parsed")
    wire.update((key, value) for key, value in extra_fields.items() if value != [])
    if is_list(wire.get("tool_calls")):
        wire["tool_calls"] = [_call(call) for call in wire["tool_calls"]]
    FORMATS[NAME].check(wire, field=field)
    return wire


def _without_partial_calls(message: dict[str, Any]) -> dict[str, Any]:
    """Drop calls of a truncated message whose name has not arrived completely."""
    calls: Any = message.get("tool_calls") or []
    return {**message, "tool_calls": [call for call in calls if peek(call, "id") and _is_named(call)]}


def _is_named(call: Any) -> bool:
    function, custom = peek(call, "function"), peek(call, "custom")
    return all(isinstance(peek(custom or function, key), str) for key in ("name", "input" if custom else "arguments"))


def _call(given: Any) -> Any:
    """A call without its index in the stream."""
    if not is_object(given):
        return given
    call = without_nulls(given, "index")
    if is_object(call.get("function")):
        call["function"] = without_nulls(call["function"], "parsed_arguments")
    return call


def _usage(given: Any) -> ReplyUsage | None:
    cached = peek(peek(given, "prompt_tokens_details"), "cached_tokens")
    return make_usage(prompt=peek(given, "prompt_tokens"), cached=cached, completion=peek(given, "completion_tokens"))


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
