"""Results of a replay, which can be summed over calls, recordings and files.

Every id or name in the agent's calls is one fact (in the window, in the prompt, appeared before); all counts are
derived from these facts, so that they cannot contradict each other. Names are counted separately: a call is more often
the first to use one, and a model can produce it without having seen it.

Prices are compared with two agents: one without memory in the same window, and one without a window, which sends its
full history with every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields
from statistics import mean, median
from typing import Any

from inmind.core.events.session import Compacted
from inmind.core.frozen import frozen
from inmind.core.tokens import Rates, Usage


@frozen(kw_only=True)
class IdUse:
    """One id or name in the arguments of a recorded call, and where it was at that moment."""

    recording: str
    prompt: int
    """Number of the prompt in its recording, from 1."""
    tool: str
    argument: str
    id: str
    kind: str = "id"
    """`id`, or `path`, `email`, `url`, `name`, which a call may be the first to use."""
    known: bool
    """It had appeared before."""
    held: bool
    """It was in the entity window of the session, as an entity or as a part of one."""
    in_prompt: bool
    """It was in the prompt: in memory, in the remaining history, or in the system prompt."""
    in_bare: bool
    """It was in the prompt of the agent without memory."""
    user_given: bool = False
    """The user was the first to use it."""

    @property
    def lost(self) -> bool:
        return self.known and not self.in_prompt

    @property
    def lost_without_memory(self) -> bool:
        return self.known and not self.in_bare

    @property
    def never_seen(self) -> bool:
        return self.kind == "id" and not self.known


@frozen
class IdUses:
    """Counts of ids or names in calls."""

    each: Sequence[IdUse]

    def __len__(self) -> int:
        return len(self.each)

    def count(self, fact: Callable[[IdUse], bool]) -> int:
        return sum(map(fact, self.each))

    @property
    def known(self) -> int:
        return self.count(lambda use: use.known)

    @property
    def held(self) -> int:
        return self.count(lambda use: use.known and use.held)

    @property
    def held_share(self) -> float | None:
        """Share of those that had appeared before; None if there are none."""
        return self.held / self.known if self.known else None

    @property
    def visible(self) -> int:
        """Not in the window, but in the history that was sent."""
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
        """First use, of a kind that a call may be the first to use."""
        return self.count(lambda use: not use.known and not use.never_seen)

    @property
    def never_seen(self) -> int:
        return self.count(lambda use: use.never_seen)

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
class MissingItem:
    """A retained item that was missing in a prompt."""

    recording: str
    prompt: int
    kind: str
    text: str


@frozen
class CompactionCounts:
    """Counts over compactions."""

    each: Sequence[Compacted]
    stub_tokens: Sequence[int]

    def __len__(self) -> int:
        return len(self.each)

    @property
    def by_reason(self) -> Mapping[str, int]:
        return Counter(event.reason for event in self.each)

    @property
    def messages(self) -> int:
        return sum(event.messages for event in self.each)

    @property
    def tokens(self) -> int:
        return sum(event.tokens for event in self.each)

    @property
    def archives(self) -> int:
        return sum(len(event.archives) for event in self.each)

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
class AgentCost:
    """Usage and truncation of one agent: with memory, without, or without a window."""

    usage: Usage = field(default_factory=Usage)
    cut_messages: int = 0
    cut_tokens: int = 0
    did_not_fit: int = 0
    """Calls that could not be made because even the active turn was too long."""

    def __add__(self, other: AgentCost) -> AgentCost:
        return AgentCost(
            usage=add_usage(self.usage, other.usage),
            cut_messages=self.cut_messages + other.cut_messages,
            cut_tokens=self.cut_tokens + other.cut_tokens,
            did_not_fit=self.did_not_fit + other.did_not_fit,
        )


@frozen(kw_only=True)
class ReplayReport:
    """Result of one or several recordings."""

    name: str
    recordings: int = 1
    memory: AgentCost = field(default_factory=AgentCost)
    bare: AgentCost = field(default_factory=AgentCost)
    full: AgentCost = field(default_factory=AgentCost)
    """The agent without a window: every message with every call."""
    when_full: AgentCost | None = None
    """The agent with memory, compacting only if necessary; None unless requested."""
    uses: Sequence[IdUse] = ()
    over_window: int = 0
    """Prompts that exceed the window minus the reserve."""
    unpaired: int = 0
    """Calls and results that are not adjacent."""
    expected_items: int = 0
    """Items that had to be in prompts: the last request and all retained items."""
    missing: Sequence[MissingItem] = ()
    """Expected items that were missing."""
    omitted: int = 0
    """Expected items that did not fit and were reported as omitted."""
    compacted: Sequence[Compacted] = ()
    stub_tokens: Sequence[int] = ()
    """Tokens of each stub."""
    memory_tokens: Sequence[int] = ()
    """Tokens that memory adds to each prompt: its tool, guide, overview, entities, meter."""
    tool_tokens: int = 0
    """Tokens of the memory tool, in every prompt."""
    entity_tokens: Sequence[int] = ()
    """Tokens of the entities in each prompt: their block, and changes in the tail."""
    seconds: Sequence[float] = ()
    """Duration of `prepare`, per prompt."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def prompts(self) -> int:
        return len(self.seconds)

    @property
    def skip_reason(self) -> str:
        """Reason why nothing was replayed; empty otherwise."""
        if self.prompts:
            return ""
        if not self.recordings:
            return "it contains no recordings"
        if self.memory.did_not_fit:
            return "no call fits the window"
        return "no message of an agent answers another one"

    @property
    def ids(self) -> IdUses:
        """All uses except names."""
        return IdUses([use for use in self.uses if use.kind != "name"])

    @property
    def names(self) -> IdUses:
        return IdUses([use for use in self.uses if use.kind == "name"])

    @property
    def compactions(self) -> CompactionCounts:
        return CompactionCounts(self.compacted, self.stub_tokens)

    def price_ratio(self, rates: Rates, *, against: AgentCost | None = None) -> float | None:
        """Price with memory divided by that of the other agent; default: the one without memory."""
        other = (against or self.bare).usage.price(rates)
        return self.memory.usage.price(rates) / other if other else None

    def token_ratio(self, *, against: AgentCost | None = None) -> float | None:
        """The same in tokens, which is the price without any caching."""
        other = (against or self.bare).usage.tokens
        return self.memory.usage.tokens / other if other else None

    def as_json(self, rates: Rates) -> dict[str, Any]:
        """Everything, with stable keys."""
        ids, names = self.ids, self.names
        price_when_full = None if self.when_full is None else self.price_ratio(rates, against=self.when_full)
        return {
            "name": self.name,
            "recordings": self.recordings,
            "prompts": self.prompts,
            "why_nothing": self.skip_reason or None,
            "with_memory": _cost_json(self.memory, rates),
            "without_memory": _cost_json(self.bare, rates),
            "full_history": _cost_json(self.full, rates),
            "price_ratio": self.price_ratio(rates),
            "against_full_history": {
                "price_ratio": self.price_ratio(rates, against=self.full),
                "token_ratio": self.token_ratio(against=self.full),
            },
            "compacting_only_when_full": self.when_full
            and {**_cost_json(self.when_full, rates), "price_ratio": price_when_full},
            "compactions": self.compactions.as_json(),
            "prompts_over_window": self.over_window,
            "unpaired_calls": self.unpaired,
            "must_survive": {"items": self.expected_items, "missing": len(self.missing), "no_room": self.omitted},
            "missing_items": [
                {"recording": one.recording, "prompt": one.prompt, "kind": one.kind, "text": one.text}
                for one in self.missing
            ],
            "ids": {**ids.as_json(), "from_nowhere": ids.never_seen},
            "lost_ids": [_use_json(use) for use in ids.each if use.lost],
            "ids_from_nowhere": [_use_json(use) for use in ids.each if use.never_seen],
            "names": names.as_json(),
            "lost_names": [_use_json(use) for use in names.each if use.lost],
            "memory_tokens": _size_json(self.memory_tokens),
            "tool_tokens": self.tool_tokens,
            "entity_tokens": _size_json(self.entity_tokens),
            "milliseconds_per_call": {
                "median": 1000 * median(self.seconds) if self.seconds else None,
                "p95": 1000 * percentile(self.seconds, 95) if self.seconds else None,
            },
            "left_out": dict(self.left_out),
        }


def sum_reports(reports: Iterable[ReplayReport], name: str) -> ReplayReport:
    """Sum of all numbers, and all facts in one list."""
    each = list(reports)
    again = [report.when_full for report in each if report.when_full is not None]
    left_out = sum((Counter(report.left_out) for report in each), Counter[str]())
    return ReplayReport(
        name=name,
        recordings=sum(report.recordings for report in each),
        memory=sum((report.memory for report in each), AgentCost()),
        bare=sum((report.bare for report in each), AgentCost()),
        full=sum((report.full for report in each), AgentCost()),
        when_full=sum(again, AgentCost()) if again else None,
        uses=[use for report in each for use in report.uses],
        over_window=sum(report.over_window for report in each),
        unpaired=sum(report.unpaired for report in each),
        expected_items=sum(report.expected_items for report in each),
        missing=[one for report in each for one in report.missing],
        omitted=sum(report.omitted for report in each),
        compacted=[event for report in each for event in report.compacted],
        stub_tokens=[tokens for report in each for tokens in report.stub_tokens],
        memory_tokens=[tokens for report in each for tokens in report.memory_tokens],
        tool_tokens=max((report.tool_tokens for report in each), default=0),
        entity_tokens=[tokens for report in each for tokens in report.entity_tokens],
        seconds=[took for report in each for took in report.seconds],
        left_out=left_out,
    )


def add_usage(first: Usage, second: Usage) -> Usage:
    return Usage(**{field.name: getattr(first, field.name) + getattr(second, field.name) for field in fields(Usage)})


def percentile(values: Sequence[float], percent: int) -> float:
    """Smallest value that at least this percentage of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _cost_json(side: AgentCost, rates: Rates) -> dict[str, Any]:
    usage = side.usage
    return {
        "tokens": usage.tokens,
        "cached": usage.cached,
        "written": usage.written,
        "uncached": usage.uncached,
        "cached_share": usage.cached_share,
        "price": usage.price(rates),
        "cut_messages": side.cut_messages,
        "cut_tokens": side.cut_tokens,
        "did_not_fit": side.did_not_fit,
    }


def _size_json(tokens: Sequence[int]) -> dict[str, float]:
    return {"mean": mean(tokens) if tokens else 0, "largest": max(tokens, default=0)}


def _use_json(use: IdUse) -> dict[str, Any]:
    return {
        "recording": use.recording,
        "prompt": use.prompt,
        "tool": use.tool,
        "argument": use.argument,
        "id": use.id,
    }
