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
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
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


_ID_COUNTS: Mapping[str, Callable[[IdUse], bool]] = {
    "used": lambda _: True,
    "known": lambda use: use.known,
    "held": lambda use: use.known and use.held,
    "visible": lambda use: use.known and not use.held and use.in_prompt,
    "lost": lambda use: use.lost,
    "lost_though_held": lambda use: use.lost and use.held,
    "lost_without_memory": lambda use: use.lost_without_memory,
    "user_given": lambda use: use.user_given,
    "new": lambda use: not use.known and not use.never_seen,
}
"""The counts of ids: `visible` only in the sent history; `new`, of a kind that a call may be the first to use."""


@frozen(kw_only=True)
class MissingItem:
    """A retained item that was missing in a prompt."""

    recording: str
    prompt: int
    kind: str
    text: str


@dataclass(kw_only=True)
class AgentCost:
    """Usage and truncation of one agent: with memory, without, or without a window."""

    usage: Usage = field(default_factory=Usage)
    cut_messages: int = 0
    cut_tokens: int = 0
    did_not_fit: int = 0
    """Calls that could not be made because even the active turn was too long."""

    def as_json(self, rates: Rates) -> dict[str, Any]:
        usage = {
            name: getattr(self.usage, name) for name in ("tokens", "cached", "written", "uncached", "cached_share")
        }
        cut = {name: getattr(self, name) for name in ("cut_messages", "cut_tokens", "did_not_fit")}
        return {**usage, "price": self.usage.price(rates), **cut}


@dataclass(kw_only=True)
class ReplayReport:
    """Result of one or several recordings. A replay adds to it call by call."""

    name: str
    recordings: int = 1
    memory: AgentCost = field(default_factory=AgentCost)
    bare: AgentCost = field(default_factory=AgentCost)
    full: AgentCost = field(default_factory=AgentCost)
    """The agent without a window: every message with every call."""
    when_full: AgentCost | None = None
    """The agent with memory, compacting only if necessary; None unless requested."""
    uses: list[IdUse] = field(default_factory=list[IdUse])
    over_window: int = 0
    """Prompts that exceed the window minus the reserve."""
    unpaired: int = 0
    """Calls and results that are not adjacent."""
    expected_items: int = 0
    """Items that had to be in prompts: the last request and all retained items."""
    missing: list[MissingItem] = field(default_factory=list[MissingItem])
    """Expected items that were missing."""
    omitted: int = 0
    """Expected items that did not fit and were reported as omitted."""
    compacted: list[Compacted] = field(default_factory=list[Compacted])
    stub_tokens: list[int] = field(default_factory=list[int])
    """Tokens of each stub."""
    memory_tokens: list[int] = field(default_factory=list[int])
    """Tokens that memory adds to each prompt: its tool, guide, overview, entities, meter."""
    tool_tokens: int = 0
    """Tokens of the memory tool, in every prompt."""
    entity_tokens: list[int] = field(default_factory=list[int])
    """Tokens of the entities in each prompt: their block, and changes in the tail."""
    seconds: list[float] = field(default_factory=list[float])
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

    def id_counts(self, *, names: bool = False) -> dict[str, Any]:
        """Counts of the ids in calls, or of the names; the share is None if all are new."""
        uses = [use for use in self.uses if (use.kind == "name") is names]
        counts = {name: sum(map(is_counted, uses)) for name, is_counted in _ID_COUNTS.items()}
        return {**counts, "held_share": counts["held"] / counts["known"] if counts["known"] else None}

    def lost(self, *, names: bool = False) -> list[IdUse]:
        return [use for use in self.uses if use.lost and (use.kind == "name") is names]

    @property
    def never_seen(self) -> list[IdUse]:
        return [use for use in self.uses if use.never_seen]

    @property
    def compactions(self) -> dict[str, Any]:
        """Counts over compactions."""
        return {
            "count": len(self.compacted),
            "by_reason": dict(Counter(event.reason for event in self.compacted)),
            "messages": sum(event.messages for event in self.compacted),
            "tokens": sum(event.tokens for event in self.compacted),
            "archives": sum(len(event.archives) for event in self.compacted),
            "largest_stub": max(self.stub_tokens, default=0),
        }

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
        when_full = self.when_full and {
            **self.when_full.as_json(rates),
            "price_ratio": self.price_ratio(rates, against=self.when_full),
        }
        return {
            "name": self.name,
            "recordings": self.recordings,
            "prompts": self.prompts,
            "why_nothing": self.skip_reason or None,
            "with_memory": self.memory.as_json(rates),
            "without_memory": self.bare.as_json(rates),
            "full_history": self.full.as_json(rates),
            "price_ratio": self.price_ratio(rates),
            "against_full_history": {
                "price_ratio": self.price_ratio(rates, against=self.full),
                "token_ratio": self.token_ratio(against=self.full),
            },
            "compacting_only_when_full": when_full,
            "compactions": self.compactions,
            "prompts_over_window": self.over_window,
            "unpaired_calls": self.unpaired,
            "must_survive": {"items": self.expected_items, "missing": len(self.missing), "no_room": self.omitted},
            "missing_items": list(map(asdict, self.missing)),
            "ids": {**self.id_counts(), "from_nowhere": len(self.never_seen)},
            "lost_ids": list(map(_use_json, self.lost())),
            "ids_from_nowhere": list(map(_use_json, self.never_seen)),
            "names": self.id_counts(names=True),
            "lost_names": list(map(_use_json, self.lost(names=True))),
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
    each = [ReplayReport(name=name, recordings=0), *reports]
    summed = {one.name: [getattr(report, one.name) for report in each] for one in fields(ReplayReport)}
    totals = {field: total(values) for field, values in summed.items() if field not in ("name", "tool_tokens")}
    return ReplayReport(name=name, tool_tokens=max(summed["tool_tokens"]), **totals)


def total(values: Iterable[Any]) -> Any:
    """Sum of numbers, counts by name or dataclasses of numbers; the items of all lists.

    None counts as nothing.
    """
    present = [value for value in values if value is not None]
    match present:
        case []:
            return None
        case [list(), *_]:
            return list(chain.from_iterable(present))
        case [Mapping(), *_]:
            return sum((Counter[str](counts) for counts in present), Counter[str]())
        case [AgentCost() | Usage() as first, *_]:
            names = [one.name for one in fields(first)]
            return replace(first, **{name: total(getattr(value, name) for value in present) for name in names})
        case _:
            return sum(present)


def percentile(values: Sequence[float], percent: int) -> float:
    """Smallest value that at least this percentage of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _size_json(tokens: Sequence[int]) -> dict[str, float]:
    return {"mean": mean(tokens) if tokens else 0, "largest": max(tokens, default=0)}


def _use_json(use: IdUse) -> dict[str, Any]:
    return {name: getattr(use, name) for name in ("recording", "prompt", "tool", "argument", "id")}
