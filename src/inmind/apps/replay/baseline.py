"""The agent without memory: sends its history, and drops old turns if the window is full.

Turns are dropped as a whole, so that no call is separated from its result; the active turn is kept. Half of the room is
freed at once: dropping a little with every call would invalidate the cache with every call. A session compacts
automatically, and is truncated only if that is not enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import TypeVar

from inmind.apps.replay.files import Recording
from inmind.apps.replay.report import AgentCost
from inmind.core.encoding import digest_of
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.core.tokens import Usage, estimator
from inmind.errors import ContextOverflow
from inmind.history.history import ConversationEntry
from inmind.history.turns import split_turns, to_turn_message
from inmind.history.view import TokenMeter

T = TypeVar("T")


class TokenSizes:
    """Messages of a recording with their token counts, by the counter that sessions use."""

    def __init__(self, recording: Recording) -> None:
        self._meter, self._format = TokenMeter(estimator()), recording.format
        entries = [self._entry(wire, place) for place, wire in enumerate(recording.messages)]
        parsed = [FORMATS[recording.format].read(wire) for wire in recording.messages]
        self.messages = [to_turn_message(*each, self._meter) for each in zip(entries, parsed, strict=True)]
        self.turn_starts = [turn.start for turn in split_turns(self.messages)]
        """Index of the first message of each turn."""
        self.head = self.value(recording.system) + self.value(recording.tools)
        """System prompt and tools."""
        self._sums = [0, *accumulate(message.tokens for message in self.messages)]

    def message(self, wire: Wire) -> int:
        return self._meter.count_message(self._entry(wire))

    def value(self, value: object) -> int:
        """Tokens of the system prompt or the tools."""
        return self._meter.count_value(digest_of(value), value) if value else 0

    def between(self, start: int, stop: int) -> int:
        return self._sums[stop] - self._sums[start]

    def first_within(self, tokens: int, stop: int) -> int:
        """First index from which everything up to `stop` has at most this many tokens."""
        return bisect_left(self._sums, self._sums[stop] - tokens, 0, stop)

    def _entry(self, wire: Wire, place: int = 0) -> ConversationEntry:
        return ConversationEntry(place, "", self._format, wire, digest_of(wire))


class TruncatingHost:
    """One agent's view of the conversation: the part that it still sends."""

    def __init__(self, sizes: TokenSizes) -> None:
        self._sizes = sizes
        self.start: int = 0
        self.cost = AgentCost()
        """Without usage."""

    def call(self, stop: int, call: Callable[[int], T]) -> T | None:
        """Call with the index of the first message to send; None if even the last turn is too long."""
        while True:
            try:
                return call(self.start)
            except ContextOverflow as overflow:
                start = self._next_start(overflow, stop)
                if start == self.start:
                    self.cost.did_not_fit += 1
                    return None
                self.cost.cut_messages += start - self.start
                self.cost.cut_tokens += self._sizes.between(self.start, start)
                self.start = start

    def _next_start(self, overflow: ContextOverflow, stop: int) -> int:
        """Start of the next turn from which the conversation fits half of the room.

        The active turn is always kept.
        """
        overhead = overflow.needed - self._sizes.between(self.start, stop)
        earliest = self._sizes.first_within(max(0, overflow.spendable - overhead) // 2, stop)
        later = [turn for turn in self._sizes.turn_starts if self.start < turn < stop]
        return next((turn for turn in later if turn >= earliest), later[-1] if later else self.start)


class BaselineAgent(TruncatingHost):
    """The agent that a replay compares with: no memory, sends its history as is.

    It only appends, which is the best case for a provider's cache. Without `spendable` it sends the full history, which
    shows the price of a long run without any limit.
    """

    def __init__(self, sizes: TokenSizes, spendable: int | None = None) -> None:
        super().__init__(sizes)
        self._spendable = spendable
        self._sent: tuple[int, int] | None = None

    def send(self, stop: int) -> Usage | None:
        """Usage of the call before this message; None if it does not fit."""
        return self.call(stop, partial(self._send, stop=stop))

    def _send(self, start: int, stop: int) -> Usage:
        head = self._sizes.head
        tokens = head + self._sizes.between(start, stop)
        if self._spendable is not None and tokens > self._spendable:
            raise ContextOverflow(needed=tokens, spendable=self._spendable)
        cached = 0
        if self._sent is not None:
            began, ended = self._sent
            cached = head + (self._sizes.between(start, ended) if began == start else 0)
        self._sent = (start, stop)
        return Usage(calls=1, cached=cached, written=tokens - cached)
