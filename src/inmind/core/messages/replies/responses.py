"""Replies of OpenAI's Responses API.

A reply is a sequence of items. The stream sends each item in pieces, then completely, and at the end all of them again
in the response; so only the text of an item that never arrived completely has to be joined.

A response that did not complete may not be stored at the provider, so ids in it may be unknown there. Only
self-contained items are kept of it: text and calls.
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
    event_type,
    incomplete_reply,
    is_count,
    join_text,
    make_usage,
    not_a_reply,
    peek,
    reply_id,
    reply_model,
    without_nulls,
)
from inmind.core.messages.responses import NAME
from inmind.errors import InvalidInput

_END_EVENTS = ("response.completed", "response.incomplete", "response.failed")

_SELF_CONTAINED = ("message", "function_call", "custom_tool_call")

# Types with an equivalent at other providers. The rest is specific to OpenAI, and some of it needs its nulls when it is
# sent back.
_COMMON_KINDS = ("reasoning", *_SELF_CONTAINED)


class ResponsesReplyReader:
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
            raise not_a_reply(reply, field=field)
        if not _is_response(reply):
            return _reply([_item(reply, field)])
        status, output = reply.get("status") or "completed", reply.get("output")
        if status not in ("completed", "incomplete"):
            raise incomplete_reply(status, field=f"{field}.status")
        if not is_list(output):
            raise InvalidInput(field=f"{field}.output", value=output, expected="a list")
        if reply.get("object") == "response.compaction":  # it repeats the messages of the user before its item
            output = [item for item in output if peek(item, "type") == "compaction"]
        return _reply(_items(output, f"{field}.output"), reply)

    def new_assembler(self) -> ResponsesAssembler:
        return ResponsesAssembler()


class ResponsesAssembler:
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

    @property
    def is_complete(self) -> bool:
        return self._response is not None

    def assemble(self, field: str) -> dict[str, Any] | None:  # noqa: ARG002 -- required by the protocol
        if self._response is None:
            by_place = {place: _message(join_text(words)) for place, words in self._words.items()} | self._items
            output = [without_id(item) for _, item in sorted(by_place.items()) if _is_self_contained(item)]
            return {"status": "incomplete", "output": output} if output else None
        # Some servers leave the items out of the last event, since each was sent before.
        output = self._response.get("output") or [self._items[place] for place in sorted(self._items)]
        return {**self._response, "output": output}


def _message(words: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}


def _is_self_contained(item: Any) -> bool:
    return (peek(item, "type") or "message") in _SELF_CONTAINED


def _reply(wires: Sequence[Wire], response: Wire | None = None) -> Reply:
    given = dict(response or {})
    whole = "incomplete" not in (given.get("status"), *(wire.get("status") for wire in wires))
    return Reply(
        format=NAME,
        wires=tuple(wires),
        id=reply_id(given),
        model=reply_model(given),
        usage=_usage(given.get("usage")),
        is_complete=whole,
    )


def _items(given: list[Any], field: str) -> list[Wire]:
    return [_item(item, f"{field}[{place}]") for place, item in enumerate(given)]


def _item(given: Any, field: str) -> Wire:
    """The item as it can be sent back, without values parsed by the client."""
    item = given
    if is_object(given) and (kind := given.get("type") or "message") in _COMMON_KINDS:
        item = without_nulls(given, "parsed_arguments")
        if kind == "message" and item.get("role") != "assistant":
            raise InvalidInput(field=f"{field}.role", value=item.get("role"), expected="assistant")
        if kind == "message" and is_list(item.get("content")):
            parts: list[Any] = item["content"]
            item["content"] = [without_nulls(part, "parsed") if is_object(part) else part for part in parts]
    FORMATS[NAME].check(item, field=field)
    return item


def _is_response(given: dict[str, Any]) -> bool:
    """True for a response. Items have a type, and some also an output."""
    return "output" in given and "type" not in given


def _is_item(given: Any) -> bool:
    if not is_object(given):
        return False
    kind, content = given.get("type"), given.get("content")
    if kind in (None, "message"):
        return "status" in given or (is_list(content) and any(peek(part, "type") == "output_text" for part in content))
    return kind in ("reasoning", "compaction") or (isinstance(kind, str) and kind.endswith("_call"))


def _usage(given: Any) -> ReplyUsage | None:
    cached = peek(peek(given, "input_tokens_details"), "cached_tokens")
    return make_usage(prompt=peek(given, "input_tokens"), cached=cached, completion=peek(given, "output_tokens"))
