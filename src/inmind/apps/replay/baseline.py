"""The agent that a replay compares with: it has no memory, and sends its history as it is.

It only ever appends, which is the best that a provider's cache can meet; whatever it sent the time before it finds
there again. A price against this one is a price against somebody who does caching right.

Without a window it sends its full history, which no model of some size takes: the price that a long run would have if
forgetting were no question.
"""

from __future__ import annotations

from functools import partial

from inmind.apps.replay.truncating_host import Host, Sizes
from inmind.core.pricing import Usage
from inmind.errors import ContextOverflow


class BareAgent:
    def __init__(self, host: Host, sizes: Sizes, spendable: int | None = None) -> None:
        self.host = host
        self._sizes, self._spendable = sizes, spendable
        self._sent: tuple[int, int] | None = None

    def ask(self, stop: int) -> Usage | None:
        """What the call before this message costs; None when it cannot be made."""
        return self.host.ask(stop, partial(self._send, stop=stop))

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
