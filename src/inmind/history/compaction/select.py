"""Which messages leave the view, and in which order.

Three ways lead here: somebody asks, the overview covers what is old, or the window is full. All of them choose among
the same things and keep the same promises: a call and its answer are never parted, a call that waits for its answer
stays, what the model has not read yet stays, and what leaves are whole turns, whole rounds of one turn, or what tools
have answered. Choosing is arithmetic over sizes and always ends; writing stubs and archives is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain, pairwise
from typing import NamedTuple

from inmind.core.frozen import frozen
from inmind.history.turns import Turn, TurnMessage, split_turns

TARGETS = ("conversation", "tools", "all")

OUTPUT_STUB_TOKENS = 50
"""Tokens of the line that stands for what a tool has answered, beside the ids that it names."""
MAX_OUTPUT_ID_TOKENS = 150
"""Tokens of ids that such a line names at most."""
FURTHER_STUB_TOKENS = 60
"""Tokens of a stub for messages that only says where they are: the first says everything else."""
MIN_OUTPUT_TOKENS = 3 * OUTPUT_STUB_TOKENS
"""A shorter answer is not worth replacing."""
MIN_CUT_TOKENS = 60
"""Tokens that stay of a message that has to be cut, beside the line that says where the rest is."""
MIN_REQUEST_TOKENS = 240
"""The same of what is being asked, which must survive."""
DEFAULT_KEEP_RECENT = 5
"""Turns, or answers of tools, that stay when somebody asks for a compaction and does not say how many."""
AUTOMATIC_KEEP_RECENT = 3
"""Turns that stay behind the active one when memory itself compacts."""
KEEP_ROUNDS = 3
"""Rounds that stay then of the turns that stay, when those are long."""


class HistoryBudget(NamedTuple):
    """How many tokens the conversation may take."""

    target: int
    """After a compaction."""
    threshold: int
    """Before one is due."""
    limit: int
    """At all."""
    recent_limit: int
    """As far as what is recent is spared."""
    stub_tokens: int = 0
    """What a stub for messages may take of it."""


@frozen(kw_only=True)
class CompactionSelection:
    """What leaves the view, by places in what is sent."""

    outputs: frozenset[int] = frozenset()
    """Messages of which the answers of tools leave."""
    runs: tuple[tuple[int, ...], ...] = ()
    """Messages that leave whole; each run has one stub."""
    cut: Mapping[int, int] = field(default_factory=dict[int, int])
    """Messages too long to stay as they are, and the tokens that stay of each."""
    minimal_stubs: bool = False
    """There is no room for anything else in what is said of those."""

    def __bool__(self) -> bool:
        return bool(self.outputs or self.runs or self.cut)

    @property
    def removed(self) -> list[int]:
        """Places of messages that leave whole, in order."""
        return sorted(place for run in self.runs for place in run)

    @property
    def changed(self) -> list[int]:
        return sorted({*self.removed, *self.outputs, *self.cut})


def output_stub_tokens(tokens: int) -> int:
    """What the stub of an answer of so many tokens takes at most."""
    return OUTPUT_STUB_TOKENS + min(MAX_OUTPUT_ID_TOKENS, tokens // 3)


def select_requested(messages: Sequence[TurnMessage], *, target: str, keep_recent: int) -> CompactionSelection:
    """What a model or a host has asked to compact: old turns and rounds, old answers of tools, or both.

    `keep_recent` counts what stays of each kind: turns before the active one, rounds of that one before its last, and
    answers. What is being asked stays, and so do the last few rounds, however little is to be kept.
    """
    runs: tuple[tuple[int, ...], ...] = ()
    if target != "tools":
        all_turns, ties = split_turns(messages), _CallPairs(messages)
        old = _removable(messages, ties.complete_units(all_turns[: max(0, len(all_turns) - 1 - keep_recent)]))
        rounds = [one for turn in all_turns[-1:] for one in _rounds(messages, turn, ties)]
        done = rounds[: max(0, len(rounds) - max(keep_recent, KEEP_ROUNDS))]
        runs = _with_new_messages(messages, _to_runs([old, [*chain.from_iterable(done)]]))
    gone = {place for run in runs for place in run}
    outputs: list[int] = []
    if target != "conversation":
        answered = [place for place in _replaceable_outputs(messages) if place not in gone]
        outputs = answered[: max(0, len(answered) - keep_recent)]
    return CompactionSelection(outputs=frozenset(_seen_by_model(messages, outputs)), runs=runs)


def select_covered(messages: Sequence[TurnMessage], *, before_seq: int, keep_recent: int) -> CompactionSelection:
    """Old turns that the overview can know about: all that was said in them is older than event `upto`."""
    all_turns = split_turns(messages)
    old: list[Turn] = []
    for turn in all_turns[: max(0, len(all_turns) - 1 - keep_recent)]:
        if any(one.seq >= before_seq for one in messages[turn.start : turn.stop]):
            break
        old.append(turn)
    return CompactionSelection(
        runs=_with_new_messages(messages, _to_runs([_removable(messages, _CallPairs(messages).complete_units(old))]))
    )


def select_for_budget(
    messages: Sequence[TurnMessage], budget: HistoryBudget, *, keep_recent: int = AUTOMATIC_KEEP_RECENT
) -> CompactionSelection:
    """What has to leave so that the conversation fits: in one pass, least harm first, no more than needed.

    Old answers of tools, the largest first, and old turns. A turn that goes on for long gets old itself: what was asked
    stays, and the last rounds. What is recent stays as far as there is room for it: beyond that answers leave, but for
    the last, then recent turns, then recent rounds. Of a message that is too long to be sent at all beginning and end
    stay. Before nothing could be sent, earlier stubs are told in short, and other messages are cut as well.
    """
    all_turns = split_turns(messages)
    old = all_turns[: max(0, len(all_turns) - 1 - keep_recent)]
    recent = all_turns[len(old) : -1]
    selector, ties = _Selector(messages, budget), _CallPairs(messages)
    rounds = [_rounds(messages, turn, ties) for turn in all_turns[len(old) :]]
    done = _older_rounds(rounds)
    selector.remove_outputs(
        [*range(old[-1].stop if old else 0), *chain.from_iterable(chain(*done))], until=budget.target
    )
    selector.remove((_removable(messages, ties.complete_units([turn])) for turn in old), until=budget.target)
    for of_turn in done:
        selector.remove(of_turn, until=budget.target, separate=True)
    selector.cut(until=budget.recent_limit, longer_than=budget.limit)
    selector.remove_outputs(_older_results(messages), until=budget.recent_limit)
    selector.remove((_removable(messages, ties.complete_units([turn])) for turn in recent), until=budget.recent_limit)
    if rounds:
        selector.remove(rounds[-1][len(done[-1]) :], until=budget.recent_limit, separate=not done[-1])
    if selector.tokens > budget.limit:
        selector.remove_outputs(range(len(messages)), until=budget.target)
    if selector.tokens > budget.limit:
        selector.remove([[place for place, one in enumerate(messages) if one.is_block]], until=budget.limit)
    if selector.tokens > budget.limit:
        selector.cut(until=(budget.threshold + budget.limit) // 2)
    if selector.tokens > budget.limit:
        selector.cut_to_minimum()
    if selector.tokens > budget.limit:  # what is being asked was cut before, in a larger window, and is not cut twice
        selector.remove(
            [[turn.start] for turn in all_turns[-1:] if messages[turn.start].stub], until=budget.limit, separate=True
        )
    return selector.selection


class _Selector:
    """A relief in the making: what was chosen so far, and how many tokens that leaves."""

    def __init__(self, said: Sequence[TurnMessage], room: HistoryBudget) -> None:
        self._messages, self._budget = said, room
        self._sizes = [one.tokens for one in said]
        self._answered = {answer.id for one in said for answer in one.results}
        self._outputs: set[int] = set()
        self._runs: list[list[int]] = []
        self._cut: dict[int, int] = {}
        self._minimal_stubs = False
        self.tokens = sum(self._sizes)

    def remove_outputs(self, places: Iterable[int], *, until: int) -> None:
        """Answers of tools at these places, the largest first."""
        there = set(places) - self._removed - self._outputs - self._cut.keys()
        found = [
            place for place in _seen_by_model(self._messages, _replaceable_outputs(self._messages)) if place in there
        ]
        for place in sorted(found, key=lambda place: -_output_tokens(self._messages[place])):
            if self.tokens <= until:
                return
            self._outputs.add(place)
            size = _output_tokens(self._messages[place])
            self._shrink(place, self._sizes[place] - size + output_stub_tokens(size))

    def remove(self, units: Iterable[Sequence[int]], *, until: int, separate: bool = False) -> None:
        """Units of whole messages, the oldest first. All share a stub with those before, unless they stand `apart`.

        The first stub says everything, so earlier ones go into it. Where it would be longer than all that, they stay.
        """
        gone = self._removed
        fresh = [[place for place in unit if place not in gone] for unit in units]
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
                self._shrink(place, 0)
                self._outputs.discard(place)
                self._cut.pop(place, None)

    def cut(self, *, until: int, longer_than: int = 0) -> None:
        """The longest messages first, each down to what it has to give; what is being asked comes last."""
        gone = self._removed
        asked = max((place for place, one in enumerate(self._messages) if one.starts_turn), default=-1)
        there = (place for place in range(len(self._messages)) if place not in gone)
        long = [place for place in there if self._sizes[place] > longer_than]
        for place in sorted(long, key=lambda place: (place == asked, -self._sizes[place])):
            one = self._messages[place]
            least = MIN_REQUEST_TOKENS if place == asked else MIN_CUT_TOKENS
            stub = output_stub_tokens(self._sizes[place])
            spare = self._sizes[place] - least - stub
            if self.tokens <= until:
                return
            if spare <= 0 or self._has_open_call(one) or one.speaker == "operator" or one.stub:
                continue
            stays = max(least, self._sizes[place] - stub - (self.tokens - until))
            self._cut[place] = stays
            self._outputs.discard(place)
            self._shrink(place, stays + stub)

    def cut_to_minimum(self) -> None:
        """Even the least was too much: nothing is said of what was cut but where it is."""
        asked = max((place for place, one in enumerate(self._messages) if one.starts_turn), default=-1)
        self._minimal_stubs = True
        for place, one in enumerate(self._messages):
            least = MIN_CUT_TOKENS + OUTPUT_STUB_TOKENS
            if self._sizes[place] > least and place != asked and not (self._has_open_call(one) or one.stub):
                self._cut[place] = MIN_CUT_TOKENS
                self._outputs.discard(place)
                self._shrink(place, least)

    @property
    def selection(self) -> CompactionSelection:
        """With one stub for runs between which nothing stays."""
        gone, runs = self._removed, list[list[int]]()
        for run in sorted(sorted(run) for run in self._runs if self._is_worth_replacing(run)):
            if runs and gone.issuperset(range(runs[-1][-1], run[0])):
                runs[-1] = sorted([*runs[-1], *run])
            else:
                runs.append(run)
        return CompactionSelection(
            outputs=frozenset(self._outputs), runs=_to_runs(runs), cut=self._cut, minimal_stubs=self._minimal_stubs
        )

    @property
    def _removed(self) -> set[int]:
        return {place for run in self._runs for place in run}

    def _is_worth_replacing(self, run: Sequence[int]) -> bool:
        """Earlier stubs alone leave where they are long: what stays of a message that was cut, and a block that names
        more ids than there is room for."""
        gone = [self._messages[place] for place in run]
        return any(not one.stub for one in gone) or sum(one.tokens for one in gone) > self._budget.stub_tokens

    def _has_open_call(self, one: TurnMessage) -> bool:
        """Does a message make a call that nobody has answered yet?"""
        return any(call.id not in self._answered for call in one.calls)

    def _shrink(self, place: int, size: int) -> None:
        self.tokens -= self._sizes[place] - size
        self._sizes[place] = size


def _output_tokens(one: TurnMessage) -> int:
    return sum(answer.tokens for answer in one.results)


def _replaceable_outputs(said: Sequence[TurnMessage]) -> list[int]:
    """Messages with answers of tools that are worth replacing, and were not replaced before."""
    return [place for place, one in enumerate(said) if not one.stub and _output_tokens(one) > MIN_OUTPUT_TOKENS]


def _older_results(said: Sequence[TurnMessage]) -> list[int]:
    """Messages with answers of tools, without the last few."""
    answered = [place for place, one in enumerate(said) if one.results]
    return answered[: max(0, len(answered) - AUTOMATIC_KEEP_RECENT)]


def _seen_by_model(said: Sequence[TurnMessage], places: Sequence[int]) -> list[int]:
    """Those of the places that the model has read: it has said something since."""
    last = max((place for place, one in enumerate(said) if one.speaker == "assistant"), default=-1)
    return [place for place in places if place < last]


def _removable(said: Sequence[TurnMessage], places: Iterable[int]) -> list[int]:
    """What may leave whole: everything but what the operator himself has put into the conversation."""
    return [place for place in places if said[place].speaker != "operator" or said[place].stub]


class _CallPairs:
    """Which messages cannot be parted: calls and their answers.

    A call that waits is tied to what is to come, and so is what the model has not read yet.
    """

    def __init__(self, said: Sequence[TurnMessage]) -> None:
        asked_at: dict[str, int] = {}
        self._links: dict[int, list[int]] = {}
        for place, one in enumerate(said):
            for answer in one.results:
                if answer.id in asked_at:
                    self._link(asked_at.pop(answer.id), place)
            for call in one.calls:
                if call.id in asked_at:
                    self._link(asked_at[call.id], len(said))
                asked_at[call.id] = place
        last = max((place for place, one in enumerate(said) if one.speaker == "assistant"), default=-1)
        for place in (*asked_at.values(), *range(last + 1, len(said))):
            self._link(place, len(said))

    def complete_units(self, units: Sequence[Turn]) -> list[int]:
        """The places of these units, without units that would part something."""
        chosen = list(units)
        while True:
            places = {place for unit in chosen for place in range(unit.start, unit.stop)}
            kept = [unit for unit in chosen if self._is_complete(unit, places)]
            if len(kept) == len(chosen):
                return sorted(places)
            chosen = kept

    def _is_complete(self, unit: Turn, places: set[int]) -> bool:
        tied = (other for place in range(unit.start, unit.stop) for other in self._links.get(place, ()))
        return all(other in places for other in tied)

    def _link(self, one: int, other: int) -> None:
        self._links.setdefault(one, []).append(other)
        self._links.setdefault(other, []).append(one)


def _rounds(said: Sequence[TurnMessage], turn: Turn, ties: _CallPairs) -> list[list[int]]:
    """The rounds of a turn but the last: what the model said, with what tools have answered to it.

    The last is what the turn came to, or what it is at; an earlier stub in the turn goes with its first round, unless
    it is what was asked, cut short.
    """
    places = range(turn.start, turn.stop)
    begins = [
        p for p in places if said[p].speaker == "assistant" and (p == turn.start or said[p - 1].speaker != "assistant")
    ]
    rounds = [Turn(start, stop) for start, stop in pairwise(begins)]
    before = range(turn.start, begins[0] if begins else turn.stop)
    earlier = [p for p in before if said[p].stub and not (said[p].results or said[p].starts_turn)]
    lead = [earlier] if earlier and rounds else []
    return [*lead, *(_removable(said, ties.complete_units([one])) for one in rounds)]


def _older_rounds(rounds: Sequence[Sequence[list[int]]]) -> list[list[list[int]]]:
    """Turn by turn, without the last few rounds of all."""
    spare = sum(map(len, rounds)) - KEEP_ROUNDS
    done: list[list[list[int]]] = []
    for of_turn in rounds:
        done.append(list(of_turn[: max(0, spare)]))
        spare -= len(done[-1])
    return done


def _to_runs(units: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(unit) for unit in units if unit)


def _with_new_messages(said: Sequence[TurnMessage], runs: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Without those in which there is nothing but earlier stubs."""
    return tuple(tuple(run) for run in runs if any(not said[place].stub for place in run))
