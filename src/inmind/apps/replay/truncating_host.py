"""What a host does that has no other way out of a full window: it drops the oldest turns.

A turn goes whole, so that no call is parted from its result, and the one being answered stays. Half of the room is
made free at once: dropping a little with every call would send the history anew with every call. It is what the bare
agent does; a session compacts by itself, and raises only where even that is not enough.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeVar

from inmind.apps.replay.recording import Recording
from inmind.core.encoding import digest_of
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.core.tokens import estimator
from inmind.errors import ContextOverflow
from inmind.history import ConversationEntry
from inmind.history.token_meter import TokenMeter

T = TypeVar("T")


class Sizes:
    """Tokens of a recording's parts, by the counter that sessions have."""

    def __init__(self, recording: Recording) -> None:
        self._meter, self._format = TokenMeter(estimator()), recording.format
        self._sums = [0, *accumulate(map(self.message, recording.messages))]
        self.head = self.value(recording.system) + self.value(recording.tools)
        """System prompt and tools."""

    def message(self, wire: Wire) -> int:
        return self._meter.count_message(ConversationEntry(0, "", self._format, wire, digest_of(wire)))

    def value(self, value: object) -> int:
        """Of what stands beside the messages."""
        return self._meter.count_value(digest_of(value), value) if value else 0

    def between(self, start: int, stop: int) -> int:
        return self._sums[stop] - self._sums[start]

    def first_within(self, tokens: int, stop: int) -> int:
        """The first message from which everything up to `stop` takes no more than so many tokens."""
        return bisect_left(self._sums, self._sums[stop] - tokens, 0, stop)


def turns_of(recording: Recording) -> list[int]:
    """Where turns begin: at the first message, and at each of the user's that answers no call."""
    spoken = FORMATS[recording.format]
    said = [spoken.read(wire) for wire in recording.messages]
    return [place for place, one in enumerate(said) if place == 0 or (one.role == "user" and not one.results)]


class Host:
    """One agent's end of the conversation, as far as it still sends it."""

    def __init__(self, turns: Sequence[int], sizes: Sizes) -> None:
        self._turns, self._sizes = turns, sizes
        self.start: int = 0
        self.cut_messages: int = 0
        self.cut_tokens: int = 0
        self.did_not_fit: int = 0

    def ask(self, stop: int, call: Callable[[int], T]) -> T | None:
        """Call with the place from which messages up to `stop` are sent; None when even the last turn is too long."""
        while True:
            try:
                return call(self.start)
            except ContextOverflow as full:
                start = self._dropped(full, stop)
                if start == self.start:
                    self.did_not_fit += 1
                    return None
                self.cut_messages += start - self.start
                self.cut_tokens += self._sizes.between(self.start, start)
                self.start = start

    def _dropped(self, full: ContextOverflow, stop: int) -> int:
        """The next turn from which the conversation fits half of the room it has; at the latest the active one."""
        around = full.needed - self._sizes.between(self.start, stop)
        wanted = self._sizes.first_within(max(0, full.spendable - around) // 2, stop)
        turns = self._later_turns(stop)
        return next((turn for turn in turns if turn >= wanted), turns[-1] if turns else self.start)

    def _later_turns(self, stop: int) -> Sequence[int]:
        return self._turns[bisect_right(self._turns, self.start) : bisect_left(self._turns, stop)]
