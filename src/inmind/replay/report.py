"""What a replay showed, in numbers that add up: over calls, recordings and files.

Every id that the agent's calls used is a fact about one moment (was it held, was it anywhere in the prompt, had it been
said at all); the counts are read off those facts, so that no two of them can contradict each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import mean, median
from typing import Any

from inmind.prompt.ledger import Ledger, Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One id in the arguments of one recorded call, and where it was when the model made that call."""

    recording: str
    prompt: int
    """Counted from 1 in its recording."""
    tool: str
    argument: str
    id: str
    is_id: bool = True
    """And not an address or a path, which a call may well name for the first time."""
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
        return self.is_id and not self.known


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one of the two agents sent, the one with memory or the bare one."""

    ledger: Ledger = field(default_factory=Ledger)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """What came of one recording, or of several."""

    name: str
    recordings: int = 1
    memory: Side = field(default_factory=Side)
    bare: Side = field(default_factory=Side)
    uses: Sequence[Use] = ()
    entity_tokens: Sequence[int] = ()
    """What the entities take of each prompt: their block, and what the tail says has changed since it was sent."""
    seconds: Sequence[float] = ()
    """What `prepare` took, for each prompt."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def prompts(self) -> int:
        return len(self.seconds)

    def count(self, fact: Callable[[Use], bool]) -> int:
        return sum(map(fact, self.uses))

    @property
    def known(self) -> int:
        return self.count(lambda use: use.known)

    @property
    def held(self) -> int:
        return self.count(lambda use: use.known and use.held)

    @property
    def lost(self) -> int:
        return self.count(lambda use: use.lost)

    @property
    def lost_without_memory(self) -> int:
        return self.count(lambda use: use.lost_without_memory)

    @property
    def held_share(self) -> float | None:
        """Of the ids that had been said before; None where no call used one."""
        return self.held / self.known if self.known else None

    def price_ratio(self, rates: Rates) -> float | None:
        bare = self.bare.ledger.price(rates)
        return self.memory.ledger.price(rates) / bare if bare else None

    def as_json(self, rates: Rates) -> dict[str, Any]:
        """Everything, under names that stay."""
        return {
            "name": self.name,
            "recordings": self.recordings,
            "prompts": self.prompts,
            "with_memory": _side(self.memory, rates),
            "without_memory": _side(self.bare, rates),
            "price_ratio": self.price_ratio(rates),
            "ids": {
                "used": len(self.uses),
                "known": self.known,
                "held": self.held,
                "held_share": self.held_share,
                "visible": self.count(lambda use: use.known and not use.held and use.in_prompt),
                "lost": self.lost,
                "lost_though_held": self.count(lambda use: use.lost and use.held),
                "lost_without_memory": self.lost_without_memory,
                "user_given": self.count(lambda use: use.user_given),
                "new_names": self.count(lambda use: not use.known and not use.is_id),
                "from_nowhere": self.count(lambda use: use.from_nowhere),
            },
            "lost_ids": [_found(use) for use in self.uses if use.lost],
            "ids_from_nowhere": [_found(use) for use in self.uses if use.from_nowhere],
            "entity_tokens": {
                "mean": mean(self.entity_tokens) if self.entity_tokens else 0,
                "largest": max(self.entity_tokens, default=0),
            },
            "milliseconds_per_call": {
                "median": 1000 * median(self.seconds) if self.seconds else None,
                "p95": 1000 * percentile(self.seconds, 95) if self.seconds else None,
            },
            "left_out": dict(self.left_out),
        }


def total(reports: Iterable[ReplayReport], name: str) -> ReplayReport:
    memory, bare, left_out = Side(), Side(), Counter[str]()
    uses: list[Use] = []
    entity_tokens: list[int] = []
    seconds: list[float] = []
    recordings = 0
    for report in reports:
        recordings += report.recordings
        memory, bare = memory + report.memory, bare + report.bare
        uses += report.uses
        entity_tokens += report.entity_tokens
        seconds += report.seconds
        left_out.update(report.left_out)
    return ReplayReport(
        name=name,
        recordings=recordings,
        memory=memory,
        bare=bare,
        uses=uses,
        entity_tokens=entity_tokens,
        seconds=seconds,
        left_out=left_out,
    )


def added(one: Ledger, other: Ledger) -> Ledger:
    return Ledger(**{field.name: getattr(one, field.name) + getattr(other, field.name) for field in fields(Ledger)})


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


def _found(use: Use) -> dict[str, Any]:
    return {
        "recording": use.recording,
        "prompt": use.prompt,
        "tool": use.tool,
        "argument": use.argument,
        "id": use.id,
    }
