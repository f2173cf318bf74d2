"""Replies of Anthropic's API, as a host is shown them.

A reply is a row of blocks, each with its index, and every event of a block has that index. So whole blocks are shown
or hidden, and the blocks of several rounds stand one behind the other. A stream says at its beginning what went in and
at its end what came out; of several rounds, the end says both.
"""

from __future__ import annotations

from typing import Any

from inmind.core.messages.replies.reply import peek
from inmind.integrations.wrap.visible.base import Hidden, changed, summed


class AnthropicShowing:
    def __init__(self, hidden: Hidden, paid: Any = None) -> None:
        self._hidden = hidden
        self.paid = self._earlier = paid
        self._id: Any = None
        self._before: list[Any] = []
        self._blocks: list[Any] = []
        self._places: dict[int, int | None] = {}
        self._begun = 0
        self._calls, self._later = False, False
        self._usage: Any = None
        self._ending: list[Any] = []

    def is_failure(self, said: Any) -> bool:  # noqa: ARG002 -- here a failure is an error of the client's
        return False

    def whole(self, reply: Any) -> Any:
        self._id = self._id or peek(reply, "id")
        self._blocks = [*self._before, *(block for block in peek(reply, "content") if not self._is_hidden(block))]
        self.paid = summed(self._earlier, peek(reply, "usage"))
        shown = changed(reply, id=self._id, content=self._blocks, usage=self.paid)
        return _ended(shown, calls=any(map(_is_call, self._blocks)))

    def take(self, chunk: Any) -> list[Any]:
        kind, index = peek(chunk, "type"), peek(chunk, "index")
        if kind in ("message_delta", "message_stop"):
            if kind == "message_delta":
                self.paid = summed(self._earlier, _later(self._usage, peek(chunk, "usage")))
            self._ending.append(chunk)
            return []
        if kind == "message_start":
            self._usage = peek(peek(chunk, "message"), "usage")
            return [] if self._later else [chunk]
        if kind == "content_block_start":
            self._places[index] = self._place(peek(chunk, "content_block"))
        if index is None:
            return [chunk]
        place = self._places.get(index)
        return [] if place is None else [changed(chunk, index=place)]

    def next_round(self) -> None:
        self._earlier, self._before = self.paid, self._blocks
        self._places, self._ending, self._later = {}, [], True

    def end(self) -> list[Any]:
        return [self._ended(chunk) for chunk in self._ending]

    def _place(self, block: Any) -> int | None:
        if self._is_hidden(block):
            return None
        self._calls = self._calls or _is_call(block)
        self._begun += 1
        return self._begun - 1

    def _is_hidden(self, block: Any) -> bool:
        return _is_call(block) and self._hidden(peek(block, "name"))

    def _ended(self, chunk: Any) -> Any:
        delta, usage = peek(chunk, "delta"), peek(chunk, "usage")
        if usage is not None and self._earlier is not None:
            usage = changed(usage, **dict(self.paid))
        return changed(chunk, delta=_ended(delta, calls=self._calls), usage=usage)


def _is_call(block: Any) -> bool:
    return peek(block, "type") == "tool_use"


def _later(begun: Any, now: Any) -> Any:
    """Usage in a stream is counted from its beginning: what is said later takes the place of what was said first."""
    if begun is None or now is None:
        return begun if now is None else now
    return changed(begun, **{name: value for name, value in dict(now).items() if value is not None})


def _ended(what: Any, *, calls: bool) -> Any:
    """What did not stop for a tool, as far as the host can see, came to the end of its turn."""
    stopped = peek(what, "stop_reason") == "tool_use" and not calls
    return changed(what, stop_reason="end_turn") if stopped else what
