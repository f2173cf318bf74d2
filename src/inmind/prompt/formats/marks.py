"""Where Anthropic is told to remember the prompt up to.

Anthropic caches only as far as an explicit mark, and takes four in a request. Two of ours pay: behind the memory
block, which stands for many calls, and behind the last block that the next request will repeat. That block is the
one *before* the tail, since the tail changes with every call. `carry` puts the tail in as a `Tail`, a dict that
goes out like any other, so that the request can tell it from the host's words without being told where it is.

A mark for an hour is refused behind one for five minutes (in tools, then system, then messages), so ours last as
long as any of the host's that stands behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from inmind.prompt.formats.parts import Wire
from inmind.prompt.formats.values import is_list, is_object

MOST = 4

_FOR_AN_HOUR = "1h"
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


class Tail(dict[str, Any]):
    """The content block that carries this call's changes and nothing of the conversation."""


def marks_left(*places: Iterable[Wire]) -> int:
    """How many marks the host has left to us in its system blocks, tools and messages."""
    return max(0, MOST - sum(1 for place in places for wire in place for _ in _marks(wire)))


def mark_before(wires: Iterable[Wire]) -> dict[str, str]:
    """The mark for a block with these messages behind it. Five minutes is what no `ttl` means."""
    longer = any(is_object(mark) and mark.get("ttl") == _FOR_AN_HOUR for wire in wires for mark in _marks(wire))
    return {"type": "ephemeral", "ttl": _FOR_AN_HOUR} if longer else {"type": "ephemeral"}


def with_mark_before_tail(wires: Sequence[Wire]) -> list[Wire]:
    """The same messages with a mark on the last block that will stand unchanged in the next request.

    Without a tail that is the end of the last message that is not the assistant's: what an assistant message at
    the end holds is a beginning, and will be longer next time.
    """
    marked = list(wires)
    end = _tail_message(wires)
    for place in range(end, -1, -1):
        blocks = _blocks(wires[place])
        for index in range(len(blocks) - 1, -1, -1):
            block = blocks[index]
            if block.get("cache_control") is not None:
                return marked
            if not isinstance(block, Tail) and _markable(block):
                blocks[index] = {**block, "cache_control": mark_before(wires[place + 1 :])}
                marked[place] = {**wires[place], "content": blocks}
                return marked
    return marked


def _marks(wire: Wire) -> Iterator[object]:
    content = wire.get("content")
    if is_list(content):
        for block in content:
            if is_object(block):
                yield from _marks(block)
    if wire.get("cache_control") is not None:
        yield wire["cache_control"]


def _tail_message(wires: Sequence[Wire]) -> int:
    said = [place for place, wire in enumerate(wires) if wire["role"] != "assistant"]
    for place in reversed(said):
        content = wires[place]["content"]
        if is_list(content) and any(isinstance(block, Tail) for block in content):
            return place
    return said[-1] if said else -1


def _blocks(wire: Wire) -> list[Wire]:
    content = wire["content"]
    return list(content) if is_list(content) else [{"type": "text", "text": content}]


def _markable(block: Wire) -> bool:
    kind = block["type"]
    return kind not in _UNMARKABLE and not (kind == "text" and not block["text"].strip())
