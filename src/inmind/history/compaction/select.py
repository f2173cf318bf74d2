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
from inmind.history.turns import Spoken, Turn, turns

TARGETS = ("conversation", "tools", "all")

OUTPUT_STUB = 50
"""Tokens of the line that stands for what a tool has answered, beside the ids that it names."""
MOST_NAMED = 150
"""Tokens of ids that such a line names at most."""
FURTHER_STUB = 60
"""Tokens of a stub for messages that only says where they are: the first says everything else."""
LEAST_OUTPUT = 3 * OUTPUT_STUB
"""A shorter answer is not worth replacing."""
LEAST_LEFT = 60
"""Tokens that stay of a message that has to be cut, beside the line that says where the rest is."""
LEAST_ASKED = 240
"""The same of what is being asked, which must survive."""
KEEP_ASKED = 5
"""Turns, or answers of tools, that stay when somebody asks for a compaction and does not say how many."""
KEEP_RECENT = 3
"""Turns that stay behind the active one when memory itself compacts."""
KEEP_ROUNDS = 3
"""Rounds that stay then of the turns that stay, when those are long."""


class Room(NamedTuple):
    """How many tokens the conversation may take."""

    aim: int
    """After a compaction."""
    most: int
    """Before one is due."""
    limit: int
    """At all."""
    recent: int
    """As far as what is recent is spared."""
    stub: int = 0
    """What a stub for messages may take of it."""


@frozen(kw_only=True)
class Leaving:
    """What leaves the view, by places in what is sent."""

    outputs: frozenset[int] = frozenset()
    """Messages of which the answers of tools leave."""
    runs: tuple[tuple[int, ...], ...] = ()
    """Messages that leave whole; each run has one stub."""
    cut: Mapping[int, int] = field(default_factory=dict[int, int])
    """Messages too long to stay as they are, and the tokens that stay of each."""
    tight: bool = False
    """There is no room for anything else in what is said of those."""

    def __bool__(self) -> bool:
        return bool(self.outputs or self.runs or self.cut)

    @property
    def whole(self) -> list[int]:
        """Places of messages that leave whole, in order."""
        return sorted(place for run in self.runs for place in run)

    @property
    def touched(self) -> list[int]:
        return sorted({*self.whole, *self.outputs, *self.cut})


def output_stub(tokens: int) -> int:
    """What the stub of an answer of so many tokens takes at most."""
    return OUTPUT_STUB + min(MOST_NAMED, tokens // 3)


def asked(said: Sequence[Spoken], *, target: str, keep_recent: int) -> Leaving:
    """What a model or a host has asked to compact: old turns and rounds, old answers of tools, or both.

    `keep_recent` counts what stays of each kind: turns before the active one, rounds of that one before its last, and
    answers. What is being asked stays, and so do the last few rounds, however little is to be kept.
    """
    runs: tuple[tuple[int, ...], ...] = ()
    if target != "tools":
        everything, ties = turns(said), _Ties(said)
        old = _movable(said, ties.whole(everything[: max(0, len(everything) - 1 - keep_recent)]))
        rounds = [one for turn in everything[-1:] for one in _rounds(said, turn, ties)]
        done = rounds[: max(0, len(rounds) - max(keep_recent, KEEP_ROUNDS))]
        runs = _worth(said, _runs([old, [*chain.from_iterable(done)]]))
    gone = {place for run in runs for place in run}
    outputs: list[int] = []
    if target != "conversation":
        answered = [place for place in _with_outputs(said) if place not in gone]
        outputs = answered[: max(0, len(answered) - keep_recent)]
    return Leaving(outputs=frozenset(_read(said, outputs)), runs=runs)


def covered(said: Sequence[Spoken], *, upto: int, keep_recent: int) -> Leaving:
    """Old turns that the overview can know about: all that was said in them is older than event `upto`."""
    everything = turns(said)
    old: list[Turn] = []
    for turn in everything[: max(0, len(everything) - 1 - keep_recent)]:
        if any(one.seq >= upto for one in said[turn.start : turn.stop]):
            break
        old.append(turn)
    return Leaving(runs=_worth(said, _runs([_movable(said, _Ties(said).whole(old))])))


def relieved(said: Sequence[Spoken], room: Room, *, keep_recent: int = KEEP_RECENT) -> Leaving:
    """What has to leave so that the conversation fits: in one pass, least harm first, no more than needed.

    Old answers of tools, the largest first, and old turns. A turn that goes on for long gets old itself: what was asked
    stays, and the last rounds. What is recent stays as far as there is room for it: beyond that answers leave, but for
    the last, then recent turns, then recent rounds. Of a message that is too long to be sent at all beginning and end
    stay. Before nothing could be sent, earlier stubs are told in short, and other messages are cut as well.
    """
    everything = turns(said)
    old = everything[: max(0, len(everything) - 1 - keep_recent)]
    recent = everything[len(old) : -1]
    relief, ties = _Relief(said, room), _Ties(said)
    rounds = [_rounds(said, turn, ties) for turn in everything[len(old) :]]
    done = _but_the_last_rounds(rounds)
    relief.take_outputs([*range(old[-1].stop if old else 0), *chain.from_iterable(chain(*done))], until=room.aim)
    relief.take((_movable(said, ties.whole([turn])) for turn in old), until=room.aim)
    for of_turn in done:
        relief.take(of_turn, until=room.aim, apart=True)
    relief.cut(until=room.recent, longer_than=room.limit)
    relief.take_outputs(_but_the_last(said), until=room.recent)
    relief.take((_movable(said, ties.whole([turn])) for turn in recent), until=room.recent)
    if rounds:
        relief.take(rounds[-1][len(done[-1]) :], until=room.recent, apart=not done[-1])
    if relief.left > room.limit:
        relief.take_outputs(range(len(said)), until=room.aim)
    if relief.left > room.limit:
        relief.take([[place for place, one in enumerate(said) if one.block]], until=room.limit)
    if relief.left > room.limit:
        relief.cut(until=(room.most + room.limit) // 2)
    if relief.left > room.limit:
        relief.tighten()
    if relief.left > room.limit:  # what is being asked was cut before, in a larger window, and is not cut twice
        relief.take([[turn.start] for turn in everything[-1:] if said[turn.start].stub], until=room.limit, apart=True)
    return relief.leaving


class _Relief:
    """A relief in the making: what was chosen so far, and how many tokens that leaves."""

    def __init__(self, said: Sequence[Spoken], room: Room) -> None:
        self._said, self._room = said, room
        self._sizes = [one.tokens for one in said]
        self._answered = {answer.id for one in said for answer in one.answers}
        self._outputs: set[int] = set()
        self._runs: list[list[int]] = []
        self._cut: dict[int, int] = {}
        self._tight = False
        self.left = sum(self._sizes)

    def take_outputs(self, places: Iterable[int], *, until: int) -> None:
        """Answers of tools at these places, the largest first."""
        there = set(places) - self._gone - self._outputs - self._cut.keys()
        found = [place for place in _read(self._said, _with_outputs(self._said)) if place in there]
        for place in sorted(found, key=lambda place: -_output(self._said[place])):
            if self.left <= until:
                return
            self._outputs.add(place)
            size = _output(self._said[place])
            self._shrink(place, self._sizes[place] - size + output_stub(size))

    def take(self, units: Iterable[Sequence[int]], *, until: int, apart: bool = False) -> None:
        """Units of whole messages, the oldest first. All share a stub with those before, unless they stand `apart`.

        The first stub says everything, so earlier ones go into it. Where it would be longer than all that, they stay.
        """
        gone = self._gone
        fresh = [[place for place in unit if place not in gone] for unit in units]
        joins = bool(self._runs) and not apart
        stub = 0 if joins else FURTHER_STUB if self._runs else self._room.stub
        if not self._runs and any(fresh):
            first = min(chain.from_iterable(fresh))
            fresh = [[place for place in range(first) if self._said[place].block], *fresh]
        if self.left <= until or sum(self._sizes[place] for unit in fresh for place in unit) <= stub:
            return
        if not joins:
            self._runs.append([])
            self.left += stub
        for unit in fresh:
            if self.left <= until:
                return
            self._runs[-1] += unit
            for place in unit:
                self._shrink(place, 0)
                self._outputs.discard(place)
                self._cut.pop(place, None)

    def cut(self, *, until: int, longer_than: int = 0) -> None:
        """The longest messages first, each down to what it has to give; what is being asked comes last."""
        gone = self._gone
        asked = max((place for place, one in enumerate(self._said) if one.begins_turn), default=-1)
        there = (place for place in range(len(self._said)) if place not in gone)
        long = [place for place in there if self._sizes[place] > longer_than]
        for place in sorted(long, key=lambda place: (place == asked, -self._sizes[place])):
            one = self._said[place]
            least = LEAST_ASKED if place == asked else LEAST_LEFT
            stub = output_stub(self._sizes[place])
            spare = self._sizes[place] - least - stub
            if self.left <= until:
                return
            if spare <= 0 or self._waits(one) or one.by == "operator" or one.stub:
                continue
            stays = max(least, self._sizes[place] - stub - (self.left - until))
            self._cut[place] = stays
            self._outputs.discard(place)
            self._shrink(place, stays + stub)

    def tighten(self) -> None:
        """Even the least was too much: nothing is said of what was cut but where it is."""
        asked = max((place for place, one in enumerate(self._said) if one.begins_turn), default=-1)
        self._tight = True
        for place, one in enumerate(self._said):
            least = LEAST_LEFT + OUTPUT_STUB
            if self._sizes[place] > least and place != asked and not (self._waits(one) or one.stub):
                self._cut[place] = LEAST_LEFT
                self._outputs.discard(place)
                self._shrink(place, least)

    @property
    def leaving(self) -> Leaving:
        """With one stub for runs between which nothing stays."""
        gone, runs = self._gone, list[list[int]]()
        for run in sorted(sorted(run) for run in self._runs if self._worth(run)):
            if runs and gone.issuperset(range(runs[-1][-1], run[0])):
                runs[-1] = sorted([*runs[-1], *run])
            else:
                runs.append(run)
        return Leaving(outputs=frozenset(self._outputs), runs=_runs(runs), cut=self._cut, tight=self._tight)

    @property
    def _gone(self) -> set[int]:
        return {place for run in self._runs for place in run}

    def _worth(self, run: Sequence[int]) -> bool:
        """Earlier stubs alone leave where they are long: what stays of a message that was cut, and a block that names
        more ids than there is room for."""
        gone = [self._said[place] for place in run]
        return any(not one.stub for one in gone) or sum(one.tokens for one in gone) > self._room.stub

    def _waits(self, one: Spoken) -> bool:
        """Does a message make a call that nobody has answered yet?"""
        return any(call.id not in self._answered for call in one.asks)

    def _shrink(self, place: int, size: int) -> None:
        self.left -= self._sizes[place] - size
        self._sizes[place] = size


def _output(one: Spoken) -> int:
    return sum(answer.tokens for answer in one.answers)


def _with_outputs(said: Sequence[Spoken]) -> list[int]:
    """Messages with answers of tools that are worth replacing, and were not replaced before."""
    return [place for place, one in enumerate(said) if not one.stub and _output(one) > LEAST_OUTPUT]


def _but_the_last(said: Sequence[Spoken]) -> list[int]:
    """Messages with answers of tools, without the last few."""
    answered = [place for place, one in enumerate(said) if one.answers]
    return answered[: max(0, len(answered) - KEEP_RECENT)]


def _read(said: Sequence[Spoken], places: Sequence[int]) -> list[int]:
    """Those of the places that the model has read: it has said something since."""
    last = max((place for place, one in enumerate(said) if one.by == "assistant"), default=-1)
    return [place for place in places if place < last]


def _movable(said: Sequence[Spoken], places: Iterable[int]) -> list[int]:
    """What may leave whole: everything but what the operator himself has put into the conversation."""
    return [place for place in places if said[place].by != "operator" or said[place].stub]


class _Ties:
    """Which messages cannot be parted: calls and their answers.

    A call that waits is tied to what is to come, and so is what the model has not read yet.
    """

    def __init__(self, said: Sequence[Spoken]) -> None:
        asked_at: dict[str, int] = {}
        self._tied: dict[int, list[int]] = {}
        for place, one in enumerate(said):
            for answer in one.answers:
                if answer.id in asked_at:
                    self._tie(asked_at.pop(answer.id), place)
            for call in one.asks:
                if call.id in asked_at:
                    self._tie(asked_at[call.id], len(said))
                asked_at[call.id] = place
        last = max((place for place, one in enumerate(said) if one.by == "assistant"), default=-1)
        for place in (*asked_at.values(), *range(last + 1, len(said))):
            self._tie(place, len(said))

    def whole(self, units: Sequence[Turn]) -> list[int]:
        """The places of these units, without units that would part something."""
        chosen = list(units)
        while True:
            places = {place for unit in chosen for place in range(unit.start, unit.stop)}
            kept = [unit for unit in chosen if self._stays_whole(unit, places)]
            if len(kept) == len(chosen):
                return sorted(places)
            chosen = kept

    def _stays_whole(self, unit: Turn, places: set[int]) -> bool:
        tied = (other for place in range(unit.start, unit.stop) for other in self._tied.get(place, ()))
        return all(other in places for other in tied)

    def _tie(self, one: int, other: int) -> None:
        self._tied.setdefault(one, []).append(other)
        self._tied.setdefault(other, []).append(one)


def _rounds(said: Sequence[Spoken], turn: Turn, ties: _Ties) -> list[list[int]]:
    """The rounds of a turn but the last: what the model said, with what tools have answered to it.

    The last is what the turn came to, or what it is at; an earlier stub in the turn goes with its first round, unless
    it is what was asked, cut short.
    """
    places = range(turn.start, turn.stop)
    begins = [p for p in places if said[p].by == "assistant" and (p == turn.start or said[p - 1].by != "assistant")]
    rounds = [Turn(start, stop) for start, stop in pairwise(begins)]
    before = range(turn.start, begins[0] if begins else turn.stop)
    earlier = [p for p in before if said[p].stub and not (said[p].answers or said[p].begins_turn)]
    lead = [earlier] if earlier and rounds else []
    return [*lead, *(_movable(said, ties.whole([one])) for one in rounds)]


def _but_the_last_rounds(rounds: Sequence[Sequence[list[int]]]) -> list[list[list[int]]]:
    """Turn by turn, without the last few rounds of all."""
    spare = sum(map(len, rounds)) - KEEP_ROUNDS
    done: list[list[list[int]]] = []
    for of_turn in rounds:
        done.append(list(of_turn[: max(0, spare)]))
        spare -= len(done[-1])
    return done


def _runs(units: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(unit) for unit in units if unit)


def _worth(said: Sequence[Spoken], runs: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Without those in which there is nothing but earlier stubs."""
    return tuple(tuple(run) for run in runs if any(not said[place].stub for place in run))
