"""Replies of OpenAI's Responses API.

A reply is a row of items. Its stream tells each item piece by piece, then whole, and at the end all of them once more
in the response; so nothing has to be put together here but the words of an item that never came whole.

A response that did not end may not be stored at the provider, and what has an id there is not known by it. So of that
one only what says itself is kept: words and calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inmind.core.json import is_list, is_object, to_plain
from inmind.core.messages import FORMATS, Wire
from inmind.core.messages.model import without_id
from inmind.core.messages.replies.reply import (
    Reply,
    ReplyUsage,
    id_of,
    in_one,
    is_count,
    kind_of,
    model_of,
    no_reply,
    peek,
    unended,
    usage_of,
    without_nothing,
)
from inmind.core.messages.responses import NAME
from inmind.errors import InvalidInput

_ENDS = ("response.completed", "response.incomplete", "response.failed")

_SAYS_ITSELF = ("message", "function_call", "custom_tool_call")

# Kinds that other providers have under other names. The rest is for OpenAI alone, and some of it may not go back
# without its nulls.
_KNOWN = ("reasoning", *_SAYS_ITSELF)


class ResponsesReplies:
    name: str = NAME

    def is_reply(self, reply: object) -> bool:
        if is_list(reply):
            return any(_is_item(item) for item in reply)
        return is_object(reply) and (_is_response(reply) or _is_item(reply))

    def is_chunk(self, chunk: object) -> bool:
        kind = peek(chunk, "type")
        return isinstance(kind, str) and kind.startswith("response.")

    def read(self, reply: object, *, field: str) -> Reply:
        if is_list(reply) and reply:
            return _reply(_items(reply, field))
        if not is_object(reply):
            raise no_reply(reply, field=field)
        if not _is_response(reply):
            return _reply([_item(reply, field)])
        status, output = reply.get("status") or "completed", reply.get("output")
        if status not in ("completed", "incomplete"):
            raise unended(status, field=f"{field}.status")
        if not is_list(output):
            raise InvalidInput(field=f"{field}.output", value=output, expected="a list")
        return _reply(_items(output, f"{field}.output"), reply)

    def pieces(self) -> ResponsesPieces:
        return ResponsesPieces()


class ResponsesPieces:
    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._words: dict[int, list[str]] = {}
        self._response: dict[str, Any] | None = None

    def add(self, chunk: object, field: str) -> None:
        kind, place = kind_of(chunk, field=field), peek(chunk, "output_index")
        if kind == "response.output_item.done":
            if not is_count(place):
                raise InvalidInput(field=f"{field}.output_index", value=place, expected="a whole number")
            self._items[place] = to_plain(peek(chunk, "item"), f"{field}.item")
        elif kind == "response.output_text.delta" and is_count(place) and isinstance(peek(chunk, "delta"), str):
            self._words.setdefault(place, []).append(peek(chunk, "delta"))
        elif kind in _ENDS:
            response = to_plain(peek(chunk, "response"), f"{field}.response")
            if not is_object(response):
                raise InvalidInput(field=f"{field}.response", value=response, expected="an object")
            self._response = {"status": kind.removeprefix("response."), **response}

    @property
    def ended(self) -> bool:
        return self._response is not None

    def joined(self, field: str) -> dict[str, Any] | None:  # noqa: ARG002 -- the protocol's
        if self._response is None:
            said = {place: _message(in_one(words)) for place, words in self._words.items()} | self._items
            output = [without_id(item) for _, item in sorted(said.items()) if _says_itself(item)]
            return {"status": "incomplete", "output": output} if output else None
        # A few servers leave the items out of the last event, since they have sent each of them before.
        output = self._response.get("output") or [self._items[place] for place in sorted(self._items)]
        return {**self._response, "output": output}


def _message(words: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}


def _says_itself(item: Any) -> bool:
    return (peek(item, "type") or "message") in _SAYS_ITSELF


def _reply(wires: Sequence[Wire], response: Wire | None = None) -> Reply:
    given = dict(response or {})
    whole = "incomplete" not in (given.get("status"), *(wire.get("status") for wire in wires))
    return Reply(
        format=NAME,
        wires=tuple(wires),
        id=id_of(given),
        model=model_of(given),
        usage=_usage(given.get("usage")),
        whole=whole,
    )


def _items(given: list[Any], field: str) -> list[Wire]:
    return [_item(item, f"{field}[{place}]") for place, item in enumerate(given)]


def _item(given: Any, field: str) -> Wire:
    """The item as it may go back, without what the client has parsed."""
    item = given
    if is_object(given) and (kind := given.get("type") or "message") in _KNOWN:
        item = without_nothing(given, "parsed_arguments")
        if kind == "message" and item.get("role") != "assistant":
            raise InvalidInput(field=f"{field}.role", value=item.get("role"), expected="assistant")
        if kind == "message" and is_list(item.get("content")):
            parts: list[Any] = item["content"]
            item["content"] = [without_nothing(part, "parsed") if is_object(part) else part for part in parts]
    FORMATS[NAME].check(item, field=field)
    return item


def _is_response(given: dict[str, Any]) -> bool:
    """Items have a type, and some of them an output of their own."""
    return "output" in given and "type" not in given


def _is_item(given: Any) -> bool:
    if not is_object(given):
        return False
    kind, content = given.get("type"), given.get("content")
    if kind in (None, "message"):
        return "status" in given or (is_list(content) and any(peek(part, "type") == "output_text" for part in content))
    return kind == "reasoning" or (isinstance(kind, str) and kind.endswith("_call"))


def _usage(given: Any) -> ReplyUsage | None:
    cached = peek(peek(given, "input_tokens_details"), "cached_tokens")
    return usage_of(prompt=peek(given, "input_tokens"), cached=cached, completion=peek(given, "output_tokens"))
