"""What a replay showed, in numbers that add up: over calls, recordings and files.

Every id or name that the agent's calls used is a fact about one moment (was it held, was it anywhere in the prompt, had
it been said at all); the counts are read off those facts, so that no two of them can contradict each other. Names are
counted apart: a call is more often the first to say one, and a model can tell it again without having been told.

Prices stand against two others: an agent without memory in the same window, which forgets, and one with no window at
all, which sends its full history on every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields
from statistics import mean, median
from typing import Any

from inmind.core.events.session import Compacted
from inmind.core.frozen import frozen
from inmind.core.pricing import Rates, Usage


@frozen(kw_only=True)
class Use:
    """One id or name in the arguments of one recorded call, and where it was when the model made that call."""

    recording: str
    prompt: int
    """Counted from 1 in its recording."""
    tool: str
    argument: str
    id: str
    kind: str = "id"
    """`id`, or a `path`, an `email`, a `url`, a `name`: those a call may well use for the first time."""
    known: bool
    """It had been said before, by anybody."""
    held: bool
    """The session had it in mind: as a thing in its window, or as a part of one."""
    in_prompt: bool
    """It stood in what the model was sent: in memory, in the history that was left, or in the system prompt."""
    in_bare: bool
    """It stood in what the model would have been sent without memory."""
    user_given: bool = False
    """The user was the first to say it."""

    @property
    def lost(self) -> bool:
        return self.known and not self.in_prompt

    @property
    def lost_without_memory(self) -> bool:
        return self.known and not self.in_bare

    @property
    def from_nowhere(self) -> bool:
        return self.kind == "id" and not self.known


@frozen
class Uses:
    """Counts over what calls used."""

    each: Sequence[Use]

    def __len__(self) -> int:
        return len(self.each)

    def count(self, fact: Callable[[Use], bool]) -> int:
        return sum(map(fact, self.each))

    @property
    def known(self) -> int:
        return self.count(lambda use: use.known)

    @property
    def held(self) -> int:
        return self.count(lambda use: use.known and use.held)

    @property
    def held_share(self) -> float | None:
        """Of those that had been said before; None where no call used one."""
        return self.held / self.known if self.known else None

    @property
    def visible(self) -> int:
        """Not in mind, and in the history that was sent."""
        return self.count(lambda use: use.known and not use.held and use.in_prompt)

    @property
    def lost(self) -> int:
        return self.count(lambda use: use.lost)

    @property
    def lost_though_held(self) -> int:
        return self.count(lambda use: use.lost and use.held)

    @property
    def lost_without_memory(self) -> int:
        return self.count(lambda use: use.lost_without_memory)

    @property
    def user_given(self) -> int:
        return self.count(lambda use: use.user_given)

    @property
    def new(self) -> int:
        """Never said before, and of a kind that a call may be the first to say."""
        return self.count(lambda use: not use.known and not use.from_nowhere)

    @property
    def from_nowhere(self) -> int:
        return self.count(lambda use: use.from_nowhere)

    def as_json(self) -> dict[str, Any]:
        return {
            "used": len(self),
            "known": self.known,
            "held": self.held,
            "held_share": self.held_share,
            "visible": self.visible,
            "lost": self.lost,
            "lost_though_held": self.lost_though_held,
            "lost_without_memory": self.lost_without_memory,
            "user_given": self.user_given,
            "new": self.new,
        }


@frozen(kw_only=True)
class Unsaid:
    """Something that must survive, and did not stand in one prompt."""

    recording: str
    prompt: int
    kind: str
    text: str


@frozen
class Compactions:
    """Counts over what was taken out of view."""

    each: Sequence[Compacted]
    stub_tokens: Sequence[int]

    def __len__(self) -> int:
        return len(self.each)

    @property
    def by_reason(self) -> Mapping[str, int]:
        return Counter(what.reason for what in self.each)

    @property
    def messages(self) -> int:
        return sum(what.messages for what in self.each)

    @property
    def tokens(self) -> int:
        return sum(what.tokens for what in self.each)

    @property
    def archives(self) -> int:
        return sum(len(what.archives) for what in self.each)

    @property
    def largest_stub(self) -> int:
        return max(self.stub_tokens, default=0)

    def as_json(self) -> dict[str, Any]:
        return {
            "count": len(self),
            "by_reason": dict(self.by_reason),
            "messages": self.messages,
            "tokens": self.tokens,
            "archives": self.archives,
            "largest_stub": self.largest_stub,
        }


@frozen(kw_only=True)
class Side:
    """What one of the agents sent: the one with memory, the bare one, or the one without a window."""

    ledger: Usage = field(default_factory=Usage)
    cut_messages: int = 0
    cut_tokens: int = 0
    did_not_fit: int = 0
    """Calls that could not be made, since even the active turn was too long."""

    def __add__(self, other: Side) -> Side:
        return Side(
            ledger=added(self.ledger, other.ledger),
            cut_messages=self.cut_messages + other.cut_messages,
            cut_tokens=self.cut_tokens + other.cut_tokens,
            did_not_fit=self.did_not_fit + other.did_not_fit,
        )


@frozen(kw_only=True)
class ReplayReport:
    """What came of one recording, or of several."""

    name: str
    recordings: int = 1
    memory: Side = field(default_factory=Side)
    bare: Side = field(default_factory=Side)
    full: Side = field(default_factory=Side)
    """Every message on every call, whatever a window takes."""
    when_full: Side | None = None
    """The agent with memory once more, compacting only where it has to; None where nobody asked for it."""
    uses: Sequence[Use] = ()
    over_window: int = 0
    """Prompts with more tokens than the model takes less the room for its answer."""
    unpaired: int = 0
    """Calls and results that do not stand together in a prompt."""
    must_survive: int = 0
    """Items that had to stand in prompts: the last request in each, and what must survive of all that was said."""
    unsaid: Sequence[Unsaid] = ()
    """Those that did not."""
    no_room: int = 0
    """Those that did not either, and memory had told that there was no room for them."""
    compacted: Sequence[Compacted] = ()
    stub_tokens: Sequence[int] = ()
    """Of each stub that ever stood for messages."""
    memory_tokens: Sequence[int] = ()
    """What memory adds to each prompt: the guide, the overview, the entities, the meter."""
    entity_tokens: Sequence[int] = ()
    """What the entities take of each prompt: their block, and what the tail says has changed since it was sent."""
    seconds: Sequence[float] = ()
    """What `prepare` took, for each prompt."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def prompts(self) -> int:
        return len(self.seconds)

    @property
    def why_nothing(self) -> str:
        """Why nothing was played; empty where something was."""
        if self.prompts:
            return ""
        if not self.recordings:
            return "no recording in it"
        if self.memory.did_not_fit:
            return "not one of its calls fits the window"
        return "no message of an agent in it that answers one"

    @property
    def ids(self) -> Uses:
        """Addresses and paths among them."""
        return Uses([use for use in self.uses if use.kind != "name"])

    @property
    def names(self) -> Uses:
        return Uses([use for use in self.uses if use.kind == "name"])

    @property
    def compactions(self) -> Compactions:
        return Compactions(self.compacted, self.stub_tokens)

    def price_ratio(self, rates: Rates, *, against: Side | None = None) -> float | None:
        """With memory, against the agent without it or the one that is named."""
        other = (against or self.bare).ledger.price(rates)
        return self.memory.ledger.price(rates) / other if other else None

    def token_ratio(self, *, against: Side | None = None) -> float | None:
        """The same in tokens: what it comes to where nothing is cached."""
        other = (against or self.bare).ledger.tokens
        return self.memory.ledger.tokens / other if other else None

    def as_json(self, rates: Rates) -> dict[str, Any]:
        """Everything, under names that stay."""
        ids, names = self.ids, self.names
        price_when_full = None if self.when_full is None else self.price_ratio(rates, against=self.when_full)
        return {
            "name": self.name,
            "recordings": self.recordings,
            "prompts": self.prompts,
            "why_nothing": self.why_nothing or None,
            "with_memory": _side(self.memory, rates),
            "without_memory": _side(self.bare, rates),
            "full_history": _side(self.full, rates),
            "price_ratio": self.price_ratio(rates),
            "against_full_history": {
                "price_ratio": self.price_ratio(rates, against=self.full),
                "token_ratio": self.token_ratio(against=self.full),
            },
            "compacting_only_when_full": self.when_full
            and {**_side(self.when_full, rates), "price_ratio": price_when_full},
            "compactions": self.compactions.as_json(),
            "prompts_over_window": self.over_window,
            "unpaired_calls": self.unpaired,
            "must_survive": {"items": self.must_survive, "missing": len(self.unsaid), "no_room": self.no_room},
            "missing_items": [
                {"recording": one.recording, "prompt": one.prompt, "kind": one.kind, "text": one.text}
                for one in self.unsaid
            ],
            "ids": {**ids.as_json(), "from_nowhere": ids.from_nowhere},
            "lost_ids": [_found(use) for use in ids.each if use.lost],
            "ids_from_nowhere": [_found(use) for use in ids.each if use.from_nowhere],
            "names": names.as_json(),
            "lost_names": [_found(use) for use in names.each if use.lost],
            "memory_tokens": _sizes(self.memory_tokens),
            "entity_tokens": _sizes(self.entity_tokens),
            "milliseconds_per_call": {
                "median": 1000 * median(self.seconds) if self.seconds else None,
                "p95": 1000 * percentile(self.seconds, 95) if self.seconds else None,
            },
            "left_out": dict(self.left_out),
        }


def total(reports: Iterable[ReplayReport], name: str) -> ReplayReport:
    """Sums of numbers and sides, and all facts one after the other."""
    each = list(reports)
    again = [report.when_full for report in each if report.when_full is not None]
    left_out = sum((Counter(report.left_out) for report in each), Counter[str]())
    return ReplayReport(
        name=name,
        recordings=sum(report.recordings for report in each),
        memory=sum((report.memory for report in each), Side()),
        bare=sum((report.bare for report in each), Side()),
        full=sum((report.full for report in each), Side()),
        when_full=sum(again, Side()) if again else None,
        uses=[use for report in each for use in report.uses],
        over_window=sum(report.over_window for report in each),
        unpaired=sum(report.unpaired for report in each),
        must_survive=sum(report.must_survive for report in each),
        unsaid=[one for report in each for one in report.unsaid],
        no_room=sum(report.no_room for report in each),
        compacted=[what for report in each for what in report.compacted],
        stub_tokens=[tokens for report in each for tokens in report.stub_tokens],
        memory_tokens=[tokens for report in each for tokens in report.memory_tokens],
        entity_tokens=[tokens for report in each for tokens in report.entity_tokens],
        seconds=[took for report in each for took in report.seconds],
        left_out=left_out,
    )


def added(one: Usage, other: Usage) -> Usage:
    return Usage(**{field.name: getattr(one, field.name) + getattr(other, field.name) for field in fields(Usage)})


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest of the values that so many percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _side(side: Side, rates: Rates) -> dict[str, Any]:
    ledger = side.ledger
    return {
        "tokens": ledger.tokens,
        "cached": ledger.cached,
        "written": ledger.written,
        "uncached": ledger.uncached,
        "cached_share": ledger.cached_share,
        "price": ledger.price(rates),
        "cut_messages": side.cut_messages,
        "cut_tokens": side.cut_tokens,
        "did_not_fit": side.did_not_fit,
    }


def _sizes(tokens: Sequence[int]) -> dict[str, float]:
    return {"mean": mean(tokens) if tokens else 0, "largest": max(tokens, default=0)}


def _found(use: Use) -> dict[str, Any]:
    return {
        "recording": use.recording,
        "prompt": use.prompt,
        "tool": use.tool,
        "argument": use.argument,
        "id": use.id,
    }
