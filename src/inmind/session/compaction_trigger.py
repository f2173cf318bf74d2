"""What has to leave the conversation before the next prompt, or may as well, without anybody having asked.

The window is full; or the overview tells what is old, and everything is written anew anyway; or the host's policy says
so in this band, or its prices do. Found on values, and carried out by whoever keeps the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from inmind.core.frozen import frozen
from inmind.core.pricing import Rates
from inmind.history import History
from inmind.history.compaction.policy import CompressionPolicy, pays
from inmind.history.compaction.request import Wanted, sized
from inmind.history.compaction.retention import survivors, unsaid
from inmind.history.compaction.select import Leaving, asked, covered, output_stub, relieved
from inmind.history.compaction.stubs import stub_size
from inmind.history.token_meter import Meter, band
from inmind.history.turns import Spoken
from inmind.prompt.layers.retained import RetainedLayer, retained
from inmind.prompt.pressure import Crowd
from inmind.session.state import SessionState

MIN_NAMED_ID_TOKENS = 100
"""Tokens of ids below which a stub is not made shorter any more."""
MIN_GAIN_TOKENS = 300
"""Tokens that a compaction which nothing forces has to make free."""

FULL = "the window was full"
COVERED = "the overview covers it"
PAYS = "it pays"


@frozen
class PlannedCompaction:
    """A compaction that has come due by itself: what leaves, and how it is to be done."""

    selection: Leaving
    request: Wanted
    based_on: str
    """The name of what was sent when it was found."""


class CompactionTrigger:
    """The judgement of one session."""

    def __init__(
        self,
        policy: CompressionPolicy,
        meter: Meter,
        *,
        said: Callable[[History], Sequence[Spoken]],
        complete: Callable[[SessionState, Wanted], Wanted],
    ) -> None:
        """`said`: what is sent, message by message. `complete`: a wish, with what is known at the moment."""
        self._policy, self._meter, self._said, self._complete = policy, meter, said, complete

    def plan(self, state: SessionState, crowd: Crowd) -> PlannedCompaction | None:
        """What has to leave before the next prompt, or may as well: nothing, most of the time."""
        if crowd.hopeless:
            return None
        if crowd.full:
            return self._when_full(state, crowd)
        return self._when_covered(state, crowd) or self._by_policy(state, crowd)

    def _when_full(self, state: SessionState, crowd: Crowd) -> PlannedCompaction | None:
        """A stub says all that it has to say, unless nothing could be sent for it."""
        said = self._said(state.history)
        wanted = self._complete(state, sized(Wanted(reason=FULL, strategy="summarize"), crowd.room.most))
        while True:
            stub = stub_size(said, wanted, self._meter)
            leaving = self._relieved(state.history, said, crowd, stub)
            gain = self._gain(said, leaving, stub)
            if crowd.history - gain <= crowd.available - crowd.fixed or wanted.naming < MIN_NAMED_ID_TOKENS:
                break
            wanted = replace(wanted, naming=wanted.naming // 2, stub=wanted.stub // 2)
        worth = crowd.over or gain >= crowd.least_gain
        return self._due(state, leaving, wanted) if leaving and worth else None

    def _when_covered(self, state: SessionState, crowd: Crowd) -> PlannedCompaction | None:
        """Where the overview tells it and everything is written anew anyway."""
        if not (crowd.moves and state.overview_covers):
            return None
        said = self._said(state.history)
        leaving = covered(said, upto=state.overview_covers, keep_recent=self._policy.keep_recent)
        wanted = self._complete(state, sized(Wanted(reason=COVERED, target="conversation"), crowd.room.most))
        gain = self._gain(said, leaving, stub_size(said, wanted, self._meter))
        return self._due(state, leaving, wanted) if leaving and gain >= MIN_GAIN_TOKENS else None

    def _by_policy(self, state: SessionState, crowd: Crowd) -> PlannedCompaction | None:
        """What the host's policy asks for in this band, where there is enough to gain and the price agrees."""
        name = band(crowd.percent)
        asks = self._policy.asks_for(name)
        rates = self._policy.rates
        # Where prices decide, they know best; otherwise each message would be followed by a compaction of its own.
        least = max(MIN_GAIN_TOKENS, crowd.least_gain // 4 if rates else crowd.least_gain)
        if asks is None or crowd.history < least:
            return None
        target, keep = asks
        said = self._said(state.history)
        reason = PAYS if rates else name
        wanted = Wanted(reason=reason, target=target, strategy="summarize")
        wanted = self._complete(state, sized(wanted, crowd.room.most))
        stub = stub_size(said, wanted, self._meter)
        if rates:
            leaving = self._relieved(state.history, said, crowd, stub)
        else:
            leaving = asked(said, target=target, keep_recent=keep)
        gain = self._gain(said, leaving, stub)
        worth = crowd.moves or rates is None or self._pays(rates, said, gain, crowd)
        return self._due(state, leaving, wanted) if gain >= least and worth else None

    def _relieved(self, history: History, said: Sequence[Spoken], crowd: Crowd, stub: int) -> Leaving:
        """What leaves when memory itself makes room: for what must survive of it, too."""

        def leaving(crowd: Crowd) -> Leaving:
            room = crowd.thrifty if self._policy.rates else crowd.room
            return relieved(said, room._replace(stub=stub), keep_recent=self._policy.keep_recent)

        first = leaving(crowd)
        left = crowd.around + crowd.history - self._gain(said, first, stub)
        if left + RetainedLayer.budget.max <= crowd.available:  # there is room, however much it is
            return first
        items = unsaid(survivors(history, said, first, self._meter).kept, said, first)
        more = self._meter.count(retained(items)) - self._meter.count(retained(history.unsaid))
        return leaving(crowd.with_firm(more)) if more > 0 else first

    def _pays(self, rates: Rates, said: Sequence[Spoken], gain: int, crowd: Crowd) -> bool:
        calls = sum(one.by == "assistant" and not one.stub for one in said) or 1
        growth = sum(one.tokens for one in said if not one.stub) / calls
        stays = max(0, crowd.history - gain) + crowd.around
        return pays(rates, leaves=gain, rewritten=stays, growth=growth)

    def _gain(self, said: Sequence[Spoken], leaving: Leaving, stub: int) -> int:
        """Tokens that a compaction makes free, at the least."""
        sizes = [sum(answer.tokens for answer in said[place].answers) for place in leaving.outputs]
        outputs, stubs = sum(sizes), sum(map(output_stub, sizes))
        whole = sum(said[place].tokens for place in leaving.whole)
        cut = sum(said[place].tokens - stays for place, stays in leaving.cut.items())
        return outputs - stubs + whole - stub * len(leaving.runs) + cut

    def _due(self, state: SessionState, leaving: Leaving, wanted: Wanted) -> PlannedCompaction:
        return PlannedCompaction(leaving, wanted, state.history.sent.name())
