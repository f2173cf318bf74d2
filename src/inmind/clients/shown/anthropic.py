"""Replies of Anthropic's API, as a host is shown them.

A reply is a row of blocks, each with its index, and every event of a block has that index. So whole blocks are shown
or hidden, and the blocks of several rounds stand one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inmind.clients.shown.showing import Hidden, changed
from inmind.prompt.replies.reply import peek


class AnthropicShowing:
    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self._places: dict[int, int | None] = {}
        self._shown = 0
        self._calls, self._later = False, False
        self._ending: list[Any] = []

    def is_failure(self, said: Any) -> bool:  # noqa: ARG002 -- here a failure is an error of the client's
        return False

    def whole(self, reply: Any) -> Any:
        blocks: Sequence[Any] = peek(reply, "content")
        kept = [block for block in blocks if not self._is_hidden(block)]
        if len(kept) == len(blocks):
            return reply
        return _ended(changed(reply, content=kept), calls=any(map(_is_call, kept)))

    def take(self, chunk: Any) -> list[Any]:
        kind, index = peek(chunk, "type"), peek(chunk, "index")
        if kind in ("message_delta", "message_stop"):
            self._ending.append(chunk)
            return []
        if kind == "content_block_start":
            self._places[index] = self._place(peek(chunk, "content_block"))
        if index is None:
            return [] if self._later and kind == "message_start" else [chunk]
        place = self._places.get(index)
        return [] if place is None else [changed(chunk, index=place)]

    def next_round(self) -> None:
        self._places, self._ending, self._later = {}, [], True

    def end(self) -> list[Any]:
        return [changed(chunk, delta=_ended(peek(chunk, "delta"), calls=self._calls)) for chunk in self._ending]

    def _place(self, block: Any) -> int | None:
        if self._is_hidden(block):
            return None
        self._calls = self._calls or _is_call(block)
        self._shown += 1
        return self._shown - 1

    def _is_hidden(self, block: Any) -> bool:
        return _is_call(block) and self._hidden(peek(block, "name"))


def _is_call(block: Any) -> bool:
    return peek(block, "type") == "tool_use"


def _ended(what: Any, *, calls: bool) -> Any:
    """What did not stop for a tool, as far as the host can see, came to the end of its turn."""
    stopped = peek(what, "stop_reason") == "tool_use" and not calls
    return changed(what, stop_reason="end_turn") if stopped else what
