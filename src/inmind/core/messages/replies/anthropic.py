"""Replies of Anthropic's API.

What the reply is as an object (its id, model, usage, the reason it stopped) does not go back: the message is its role
and its blocks. A block is streamed as its beginning and then deltas; the input of a tool comes as pieces of JSON text,
which is an object only at the end, if it ever is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inmind.core.json import is_list, is_object, object_at, text_at, to_plain
from inmind.core.messages import FORMATS
from inmind.core.messages.anthropic import NAME, input_of
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
from inmind.errors import InvalidInput

_CUT = ("max_tokens", "model_context_window_exceeded", "refusal")
_STAND_BY_HALVES = ("text", "tool_use")
_OWN_BLOCKS = ("tool_use", "server_tool_use", "thinking", "redacted_thinking")
_EVENTS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
)


class AnthropicReplies:
    name: str = NAME

    def is_reply(self, reply: object) -> bool:
        if not is_object(reply):
            return False
        content = reply.get("content")
        marked = is_list(content) and any(peek(block, "type") in _OWN_BLOCKS for block in content)
        return marked or "stop_reason" in reply or (is_list(content) and reply.get("type") == "message")

    def is_chunk(self, chunk: object) -> bool:
        return peek(chunk, "type") in _EVENTS

    def read(self, reply: object, *, field: str) -> Reply:
        if not is_object(reply) or "content" not in reply:
            raise no_reply(reply, field=field)
        role, content = reply.get("role") or "assistant", reply["content"]
        if role != "assistant":
            raise InvalidInput(field=f"{field}.role", value=role, expected="assistant")
        reason = reply.get("stop_reason", "end_turn")
        if reason is None:
            raise unended(reason, field=f"{field}.stop_reason")
        wire = {"role": role, "content": [_block(block) for block in content] if is_list(content) else content}
        FORMATS[NAME].check(wire, field=field)
        usage = _usage(reply.get("usage"))
        return Reply(
            format=NAME, wires=(wire,), id=id_of(reply), model=model_of(reply), usage=usage, whole=reason not in _CUT
        )

    def pieces(self) -> AnthropicPieces:
        return AnthropicPieces()


class AnthropicPieces:
    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._deltas: dict[int, list[dict[str, Any]]] = {}
        self._closed: set[object] = set()
        self._stopped = False

    def add(self, chunk: object, field: str) -> None:
        kind = kind_of(chunk, field=field)
        if kind == "message_start":
            self._message = _part(chunk, "message", field)
        elif kind == "content_block_start":
            index = _index(chunk, field)
            self._blocks[index], self._deltas[index] = _part(chunk, "content_block", field), []
        elif kind == "content_block_delta":
            index = _index(chunk, field)
            if index not in self._blocks:
                raise InvalidInput(field=f"{field}.index", value=index, expected="the index of a block that has begun")
            self._deltas[index].append(_part(chunk, "delta", field))
        elif kind == "content_block_stop":
            index = peek(chunk, "index")
            if is_count(index):
                self._closed.add(index)
        elif kind == "message_delta":
            usage = to_plain(peek(chunk, "usage"), f"{field}.usage")
            self._message.update(without_nothing(_part(chunk, "delta", field)))
            self._message["usage"] = _later(self._message.get("usage"), usage)
        elif kind == "message_stop":
            self._stopped = True

    @property
    def ended(self) -> bool:
        return self._stopped or self._message.get("stop_reason") is not None

    def joined(self, field: str) -> dict[str, Any] | None:
        begun = [index for index, block in self._blocks.items() if self.ended or self._stands(index, block)]
        if not self.ended and not begun:
            return None
        content = [
            _joined(self._blocks[index], self._deltas[index], f"{field}.content[{place}]")
            for place, index in enumerate(begun)
        ]
        cut = {} if self.ended else {"stop_reason": "max_tokens"}
        return {**without_nothing(self._message), **cut, "content": content}

    def _stands(self, index: int, block: dict[str, Any]) -> bool:
        """Half a text is a text, and half a call will be answered as one. Thinking without its signature is refused."""
        return index in self._closed or block.get("type") in _STAND_BY_HALVES


def _joined(block: dict[str, Any], deltas: Sequence[dict[str, Any]], field: str) -> dict[str, Any]:
    """A block with everything that its deltas add: their texts continue those of the block, under the same names.

    Two things are called otherwise in a delta, and its numbers are only for a display.
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
            joined["input"] = input_of(in_one(texts))
        elif texts:
            begun = "" if joined.get(key) is None else text_at(joined, key, field)
            joined[key] = in_one([begun, *texts])
    return joined


def _block(given: Any) -> Any:
    """A block as it may go back. What only Anthropic understands stays as it is: some of it needs its nulls."""
    if not is_object(given) or given.get("type") not in ("text", "tool_use"):
        return given
    block = without_nothing(given)
    return block if block.get("citations") != [] else without_nothing(block, "citations")


def _part(chunk: object, name: str, field: str) -> dict[str, Any]:
    return object_at({name: to_plain(peek(chunk, name), f"{field}.{name}")}, name, field)


def _index(chunk: object, field: str) -> int:
    index = peek(chunk, "index")
    if not is_count(index):
        raise InvalidInput(field=f"{field}.index", value=index, expected="a whole number")
    return index


def _later(before: Any, now: Any) -> Any:
    """Usage in a stream is counted from the beginning: what is said later takes the place of what was said first."""
    return {**before, **without_nothing(now)} if is_object(before) and is_object(now) else now or before


def _usage(given: Any) -> ReplyUsage | None:
    cached = peek(given, "cache_read_input_tokens")
    sent = (peek(given, "input_tokens"), peek(given, "cache_creation_input_tokens") or 0, cached or 0)
    prompt = sum(sent) if all(is_count(tokens) for tokens in sent) else None
    return usage_of(prompt=prompt, cached=cached, completion=peek(given, "output_tokens"))
