"""Selects the messages that a compaction removes, and their order.

A compaction runs on request, if the overview covers old turns, or if the window is full. All three choose from the same
units and keep the same guarantees: a call and its result are never separated, an open call stays, a message that the
model has not seen stays, and only whole turns, whole rounds of a turn, or tool results are removed. Selection is
arithmetic over sizes and always ends; stubs and archive pages are built elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain, pairwise, takewhile
from typing import NamedTuple

from inmind.core.frozen import frozen
from inmind.entities.record import Detail
from inmind.history.turns import TurnMessage, split_turns

TARGETS = ("conversation", "tools", "all")

FURTHER_STUB_TOKENS = 60
"""Tokens of each stub for messages after the first: it only names their location."""
MIN_OUTPUT_TOKENS = 60
"""A shorter tool result is not worth pruning."""
LOCATION_TOKENS = 50
"""Tokens of the line that says where the rest of a cut message is."""
MAX_CUT_ID_TOKENS = 150
"""Tokens of ids in such a line."""
MIN_CUT_TOKENS = 60
"""Tokens that stay of a cut message, without the line with the location of the rest."""
MIN_REQUEST_TOKENS = 240
"""The same for the current request, which must stay readable."""
DEFAULT_KEEP_RECENT = 5
"""Turns or tool results that stay in a requested compaction by default."""
AUTOMATIC_KEEP_RECENT = 3
"""Turns before the active one that stay in an automatic compaction."""
KEEP_RESULTS = 2
"""Messages with tool results that stay whole in an automatic compaction."""
KEEP_ROUNDS = 3
"""Rounds that stay of the remaining turns in an automatic compaction, if those are long."""


class HistoryBudget(NamedTuple):
    """Tokens that the conversation may take."""

    pruned: int
    """Down to this, tool results are pruned: a record has what is needed of most results."""
    target: int
    """Down to this, whole messages leave."""
    threshold: int
    """Before a compaction is due."""
    limit: int
    """Hard limit."""
    recent_limit: int
    """Limit up to which recent messages are spared."""
    stub_tokens: int = 0
    """Tokens, included above, for a stub that replaces messages, without its records."""
    record_tokens: int = 0
    """Tokens for the records in it."""


class MessageSizes(NamedTuple):
    """Tokens of a message after it was pruned, and of its line in a stub."""

    pruned: Callable[[int, Detail], int]
    """Returns the tokens of a message, by its place, whose tool results are pruned to this detail."""
    line: Callable[[int], int]
    """Returns the tokens of the record of a message, by its place."""


@frozen(kw_only=True)
class CompactionSelection:
    """Messages that a compaction changes, by index in the sent conversation."""

    outputs: Mapping[int, Detail] = field(default_factory=dict[int, Detail])
    """Messages whose tool results are pruned, and the detail that stays."""
    runs: tuple[tuple[int, ...], ...] = ()
    """Messages that are removed; each run gets one stub."""
    cut: Mapping[int, int] = field(default_factory=dict[int, int])
    """Messages that are cut, and the tokens that stay of each."""
    minimal_stubs: bool = False
    """Cut messages keep only the line with their location."""

    def __bool__(self) -> bool:
        return bool(self.outputs or self.runs or self.cut)

    @property
    def removed(self) -> list[int]:
        """Indexes of removed messages, in order."""
        return sorted(place for run in self.runs for place in run)

    @property
    def changed(self) -> list[int]:
        return sorted({*self.removed, *self.outputs, *self.cut})


def cut_stub_tokens(tokens: int) -> int:
    """Upper bound of the line about the rest of a cut message of this size."""
    return LOCATION_TOKENS + min(MAX_CUT_ID_TOKENS, tokens // 3)


def select_requested(messages: Sequence[TurnMessage], *, target: str, keep_recent: int) -> CompactionSelection:
    """Select old turns and rounds, old tool results, or both, as requested by a model or host.

    `keep_recent` counts what stays of each kind: turns before the active one, rounds of that one before its last, and
    results. The current request and the last few rounds always stay.
    """
    units = _Units(messages)
    runs: tuple[tuple[int, ...], ...] = ()
    if target != "tools":
        rounds = [one for turn in units.turns[-1:] for one in units.rounds(turn)]
        done = rounds[: max(0, len(rounds) - max(keep_recent, KEEP_ROUNDS))]
        runs = _new_runs(messages, [units.removable(units.before(keep_recent)), [*chain.from_iterable(done)]])
    removed = {place for run in runs for place in run}
    outputs: list[int] = []
    if target != "conversation":
        answered = [p for p in _prunable(messages) if p not in removed and not messages[p].stub]
        outputs = answered[: max(0, len(answered) - keep_recent)]
    return CompactionSelection(outputs=dict.fromkeys(_seen_by_model(messages, outputs), Detail.FACTS), runs=runs)


def select_covered(messages: Sequence[TurnMessage], *, before_seq: int, keep_recent: int) -> CompactionSelection:
    """Select old turns that the overview covers.

    All their messages are older than event `before_seq`.
    """
    units = _Units(messages)
    covered = takewhile(lambda turn: all(messages[place].seq < before_seq for place in turn), units.before(keep_recent))
    return CompactionSelection(runs=_new_runs(messages, [units.removable(covered)]))


def select_for_budget(
    messages: Sequence[TurnMessage],
    budget: HistoryBudget,
    sizes: MessageSizes,
    *,
    keep_recent: int = AUTOMATIC_KEEP_RECENT,
) -> CompactionSelection:
    """Select what leaves so that the conversation fits.

    One pass, least important messages first, no more than needed: tool results are pruned to records, old and large
    ones first; then old turns leave, and old rounds of a long turn. Recent messages stay up to `recent_limit`: beyond
    it their results are pruned, then recent turns and rounds leave, and last the reply to which a new request refers.
    Beginning and end stay of a message that is too long to be sent. As a last resort earlier stubs are merged and other
    messages are cut.
    """
    units, selector = _Units(messages), _Selector(messages, budget, sizes)
    old = units.before(keep_recent)
    rounds = [units.rounds(turn) for turn in units.turns[len(old) :]]
    answered = [place for place, one in enumerate(messages) if one.results]
    results = answered[: max(0, len(answered) - KEEP_RESULTS)]
    selector.prune(results, Detail.FACTS, until=budget.pruned)
    selector.prune(results, Detail.TRAITS, until=budget.target)
    selector.prune(results, Detail.IDS, until=budget.target)
    selector.remove((units.removable([turn]) for turn in old), until=budget.target)
    for of_turn in _older_rounds(rounds):
        selector.remove(of_turn, until=budget.target, separate=True)
    selector.cut(until=budget.pruned, longer_than=budget.limit)
    for detail in reversed(Detail):
        selector.prune(range(len(messages)), detail, until=budget.recent_limit)
    recent = [units.removable([turn]) for turn in units.turns[len(old) : -1]]
    # In the first round, the last turn before has the reply to which the request refers.
    before_reply = recent if any(rounds[-1:]) else recent[:-1]
    for parts in (before_reply, *rounds[-2:], recent[-1:]):
        selector.remove(parts, until=budget.recent_limit, separate=True)
    selector.remove([[place for place, one in enumerate(messages) if one.is_block]], until=budget.limit)
    if selector.tokens > budget.limit:
        selector.cut(until=(budget.threshold + budget.limit) // 2)
    if selector.tokens > budget.limit:
        selector.cut_to_minimum()
    # A request that was cut before, in a larger window, is not cut twice.
    cut_request = [[turn.start] for turn in units.turns[-1:] if messages[turn.start].stub]
    selector.remove(cut_request, until=budget.limit, separate=True)
    selector.add_detail(until=budget.target)
    return selector.selection


class _Selector:
    """Builds a selection step by step; `tokens` is the remaining size."""

    def __init__(self, messages: Sequence[TurnMessage], budget: HistoryBudget, sizes: MessageSizes) -> None:
        self._messages, self._budget, self._record_sizes = messages, budget, sizes
        self._record_room = budget.record_tokens
        self._sizes = [one.tokens for one in messages]
        self._answered = {answer.id for one in messages for answer in one.results}
        self._request = max((place for place, one in enumerate(messages) if one.starts_turn), default=-1)
        self._prunable = _seen_by_model(messages, _prunable(messages))
        self._outputs: dict[int, Detail] = {}
        self._runs: list[list[int]] = []
        self._cut: dict[int, int] = {}
        self._minimal_stubs = False
        self.tokens = sum(self._sizes)

    def prune(self, places: Iterable[int], detail: Detail, *, until: int) -> None:
        """Prune the tool results at these places, in the order given by age and size."""
        if self.tokens <= until:
            return
        allowed = set(places) - self._removed - self._cut.keys()
        prunable = [place for place in self._prunable if place in allowed]
        half = len(prunable) // 2
        by_size = sorted(
            range(len(prunable)), key=lambda number: (number > half, -_output_tokens(self._messages[prunable[number]]))
        )
        for place in (prunable[number] for number in by_size):
            if self.tokens <= until:
                return
            size = self._record_sizes.pruned(place, detail)
            if size < self._sizes[place]:
                self._outputs[place] = detail
                self._shrink(place, size)

    def add_detail(self, *, until: int) -> None:
        """Give pruned results more detail, newest first, if more room was made than needed."""
        for place, least in sorted(self._outputs.items(), reverse=True):
            for detail in (detail for detail in reversed(Detail) if detail > least):
                size = self._record_sizes.pruned(place, detail)
                if size < self._messages[place].tokens and self.tokens - self._sizes[place] + size <= until:
                    self._outputs[place] = detail
                    self._shrink(place, size)
                    break

    def remove(self, units: Iterable[Sequence[int]], *, until: int, separate: bool = False) -> None:
        """Remove units of whole messages, oldest first.

        They share a stub with the units before, unless `separate`. The first stub contains everything, so earlier
        stubs are merged into it. If the stub would be longer than the messages, they stay.
        """
        removed = self._removed
        fresh = [[place for place in unit if place not in removed] for unit in units]
        joins = bool(self._runs) and not separate
        stub = 0 if joins else FURTHER_STUB_TOKENS if self._runs else self._budget.stub_tokens
        if not self._runs and any(fresh):
            first = min(chain.from_iterable(fresh))
            fresh = [[place for place in range(first) if self._messages[place].is_block], *fresh]
        if self.tokens <= until or sum(self._sizes[place] for unit in fresh for place in unit) <= stub:
            return
        if not joins:
            self._runs.append([])
            self.tokens += stub
        for unit in fresh:
            if self.tokens <= until:
                return
            self._runs[-1] += unit
            for place in unit:
                line = min(self._record_room, self._record_sizes.line(place))
                self._record_room -= line
                self._shrink(place, line)
                self._outputs.pop(place, None)
                self._cut.pop(place, None)

    def cut(self, *, until: int, longer_than: int = 0) -> None:
        """Cut the longest messages first, each down to its minimum; the current request last."""
        long = [place for place in self._cuttable() if self._sizes[place] > longer_than]
        for place in sorted(long, key=lambda place: (place == self._request, -self._sizes[place])):
            if self.tokens <= until:
                return
            least = MIN_REQUEST_TOKENS if place == self._request else MIN_CUT_TOKENS
            most = self._sizes[place] - cut_stub_tokens(self._sizes[place])
            if most > least and self._messages[place].speaker != "operator":
                kept_tokens = max(least, most - (self.tokens - until))
                self._cut_to(place, kept_tokens, kept_tokens + cut_stub_tokens(self._sizes[place]))

    def cut_to_minimum(self) -> None:
        """Cut every message but the current request to the line with its location."""
        self._minimal_stubs = True
        least = MIN_CUT_TOKENS + LOCATION_TOKENS
        for place in self._cuttable():
            if self._sizes[place] > least and place != self._request:
                self._cut_to(place, MIN_CUT_TOKENS, least)

    def _cuttable(self) -> list[int]:
        """Messages that stay, without stubs and without calls that have no result."""
        removed = self._removed
        return [
            place
            for place, one in enumerate(self._messages)
            if place not in removed and not one.stub and all(call.id in self._answered for call in one.calls)
        ]

    def _cut_to(self, place: int, kept_tokens: int, size: int) -> None:
        self._cut[place] = kept_tokens
        self._outputs.pop(place, None)
        self._shrink(place, size)

    @property
    def selection(self) -> CompactionSelection:
        """The selection, with one stub for adjacent runs."""
        removed, runs = self._removed, list[list[int]]()
        for run in sorted(map(sorted, filter(None, self._runs))):
            if runs and removed.issuperset(range(runs[-1][-1], run[0])):
                runs[-1] = sorted([*runs[-1], *run])
            else:
                runs.append(run)
        return CompactionSelection(
            outputs=self._outputs, runs=tuple(map(tuple, runs)), cut=self._cut, minimal_stubs=self._minimal_stubs
        )

    @property
    def _removed(self) -> set[int]:
        return {place for run in self._runs for place in run}

    def _shrink(self, place: int, size: int) -> None:
        self.tokens -= self._sizes[place] - size
        self._sizes[place] = size


def _output_tokens(one: TurnMessage) -> int:
    return sum(answer.tokens for answer in one.results)


def _prunable(messages: Sequence[TurnMessage]) -> list[int]:
    """Messages with large tool results. A record may be pruned to fewer details."""
    return [place for place, one in enumerate(messages) if _output_tokens(one) > MIN_OUTPUT_TOKENS]


def _seen_by_model(messages: Sequence[TurnMessage], places: Sequence[int]) -> list[int]:
    """Places before the last assistant message, which the model has seen."""
    last = _last_reply(messages)
    return [place for place in places if place < last]


def _last_reply(messages: Sequence[TurnMessage]) -> int:
    return max((place for place, one in enumerate(messages) if one.speaker == "assistant"), default=-1)


class _Units:
    """The turns and rounds of a conversation, and which of their messages can leave together.

    A call and its result cannot be separated. An open call, and a message the model has not seen, are linked to future
    messages.
    """

    def __init__(self, messages: Sequence[TurnMessage]) -> None:
        self.turns, self._messages = split_turns(messages), messages
        self._links: dict[int, list[int]] = {}
        call_places: dict[str, int] = {}
        for place, one in enumerate(messages):
            for answer in one.results:
                if answer.id in call_places:
                    self._link(call_places.pop(answer.id), place)
            for call in one.calls:
                if call.id in call_places:
                    self._link(call_places[call.id], len(messages))
                call_places[call.id] = place
        for place in (*call_places.values(), *range(_last_reply(messages) + 1, len(messages))):
            self._link(place, len(messages))

    def before(self, keep_recent: int) -> list[range]:
        """The turns before the active one and the last few."""
        return self.turns[: max(0, len(self.turns) - 1 - keep_recent)]

    def removable(self, turns: Iterable[range]) -> list[int]:
        """Places of these turns that can leave.

        Turns that would separate a pair stay, and so do messages of the operator.
        """
        chosen = list(turns)
        while True:
            places = set(chain.from_iterable(chosen))
            kept = [turn for turn in chosen if all(places.issuperset(self._links.get(place, ())) for place in turn)]
            if len(kept) == len(chosen):
                return [p for p in sorted(places) if self._messages[p].speaker != "operator" or self._messages[p].stub]
            chosen = kept

    def rounds(self, turn: range) -> list[list[int]]:
        """Return the rounds of a turn except the last.

        A round is a model message with its tool results. The last round is the result of the turn, or still active. An
        earlier stub in the turn belongs to the first round, unless it is the cut request.
        """
        messages = self._messages
        replies = [place for place in turn if messages[place].speaker == "assistant"]
        starts = [p for p in replies if p == turn.start or messages[p - 1].speaker != "assistant"]
        before = range(turn.start, starts[0] if starts else turn.stop)
        earlier = [p for p in before if messages[p].stub and not (messages[p].results or messages[p].starts_turn)]
        lead = [earlier] if earlier and len(starts) > 1 else []
        return [*lead, *(self.removable([range(start, stop)]) for start, stop in pairwise(starts))]

    def _link(self, one: int, other: int) -> None:
        self._links.setdefault(one, []).append(other)
        self._links.setdefault(other, []).append(one)


def _older_rounds(rounds: Sequence[Sequence[list[int]]]) -> list[list[list[int]]]:
    """Rounds by turn, without the last few of all."""
    spare = sum(map(len, rounds)) - KEEP_ROUNDS
    done: list[list[list[int]]] = []
    for of_turn in rounds:
        done.append(list(of_turn[: max(0, spare)]))
        spare -= len(done[-1])
    return done


def _new_runs(messages: Sequence[TurnMessage], runs: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Runs that contain at least one message that is not a stub."""
    return tuple(tuple(run) for run in runs if any(not messages[place].stub for place in run))
