"""Visible replies of Anthropic's API.

A reply is a list of blocks, and every event of a block has its index. So whole blocks are shown or hidden, and blocks
of several rounds are concatenated. A stream reports input tokens at its start and output tokens at its end; for several
rounds, the end reports both.
"""

from __future__ import annotations

from typing import Any

from inmind.core.messages.format import peek
from inmind.integrations.wrap.visible.base import IsHidden, add_usage, with_fields


class AnthropicVisibleReply:
    def __init__(self, hidden: IsHidden, earlier_usage: Any = None) -> None:
        self._hidden = hidden
        self.usage = self._earlier_usage = earlier_usage
        self._id: Any = None
        self._earlier_blocks: list[Any] = []
        self._blocks: list[Any] = []
        self._places: dict[int, int | None] = {}
        self._block_count = 0
        self._has_calls, self._is_later_round = False, False
        self._start_usage: Any = None
        self._final_chunks: list[Any] = []

    def is_failure(self, reply: Any) -> bool:  # noqa: ARG002 -- the client raises failures
        return False

    def complete_reply(self, reply: Any) -> Any:
        self._id = self._id or peek(reply, "id")
        self._blocks = [
            *self._earlier_blocks,
            *(block for block in peek(reply, "content") if not self._is_hidden(block)),
        ]
        self.usage = add_usage(self._earlier_usage, peek(reply, "usage"))
        visible = with_fields(reply, id=self._id, content=self._blocks, usage=self.usage)
        return _with_stop_reason(visible, calls=any(map(_is_call, self._blocks)))

    def add_chunk(self, chunk: Any) -> list[Any]:
        kind, index = peek(chunk, "type"), peek(chunk, "index")
        if kind in ("message_delta", "message_stop"):
            if kind == "message_delta":
                self.usage = add_usage(self._earlier_usage, _latest_usage(self._start_usage, peek(chunk, "usage")))
            self._final_chunks.append(chunk)
            return []
        if kind == "message_start":
            self._start_usage = peek(peek(chunk, "message"), "usage")
            return [] if self._is_later_round else [chunk]
        if kind == "content_block_start":
            self._places[index] = self._place(peek(chunk, "content_block"))
        if index is None:
            return [chunk]
        place = self._places.get(index)
        return [] if place is None else [with_fields(chunk, index=place)]

    def next_round(self) -> None:
        self._earlier_usage, self._earlier_blocks = self.usage, self._blocks
        self._places, self._final_chunks, self._is_later_round = {}, [], True

    def end(self) -> list[Any]:
        return [self._final_chunk(chunk) for chunk in self._final_chunks]

    def _place(self, block: Any) -> int | None:
        if self._is_hidden(block):
            return None
        self._has_calls = self._has_calls or _is_call(block)
        self._block_count += 1
        return self._block_count - 1

    def _is_hidden(self, block: Any) -> bool:
        return _is_call(block) and self._hidden(peek(block, "name"))

    def _final_chunk(self, chunk: Any) -> Any:
        delta, usage = peek(chunk, "delta"), peek(chunk, "usage")
        if usage is not None and self._earlier_usage is not None:
            usage = with_fields(usage, **dict(self.usage))
        return with_fields(chunk, delta=_with_stop_reason(delta, calls=self._has_calls), usage=usage)


def _is_call(block: Any) -> bool:
    return peek(block, "type") == "tool_use"


def _latest_usage(start: Any, latest: Any) -> Any:
    """Usage in a stream is cumulative: later values replace earlier ones."""
    if start is None or latest is None:
        return start if latest is None else latest
    return with_fields(start, **{name: value for name, value in dict(latest).items() if value is not None})


def _with_stop_reason(value: Any, *, calls: bool) -> Any:
    """Replace the stop reason "tool_use" by "end_turn" if no call is visible to the host."""
    stopped = peek(value, "stop_reason") == "tool_use" and not calls
    return with_fields(value, stop_reason="end_turn") if stopped else value
