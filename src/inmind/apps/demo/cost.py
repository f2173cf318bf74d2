"""The last act: what it costs, with memory and without, for the conversations of the acts before.

Both sides are read from the journal. The agent without memory sends its full history with every call and does its
caching right: it only ever appends. So memory has to earn its place, and in a short conversation it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from math import isclose
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from inmind import Session, Usage
from inmind.apps.cli.console import plain_table
from inmind.apps.demo import full_window, references
from inmind.apps.demo.script import Act, Stage, line
from inmind.apps.replay.files import Recording
from inmind.apps.replay.truncating_host import BaselineAgent, TokenSizes, TruncatingHost, turn_starts
from inmind.core.events.prompt import PromptPrepared
from inmind.core.events.session import MessageAdded
from inmind.core.frozen import frozen
from inmind.types import Rates

TITLE = "The price, from the ledger"

INPUT = 3.00
RATES = Rates.per_million(input=INPUT)
"""Dollars for a million tokens, as common price lists have it: cache reads a tenth, cache writes a quarter more."""


@frozen(kw_only=True)
class Bill:
    """What a conversation has cost after each of its calls."""

    name: str
    with_memory: Sequence[float]
    without: Sequence[float]
    largest: tuple[int, int]
    """Tokens of the longest prompt, with memory and without."""

    @property
    def calls(self) -> int:
        return len(self.with_memory)

    @property
    def ratio(self) -> float:
        return self.ratio_after(self.calls)

    def ratio_after(self, call: int) -> float:
        return self.with_memory[call - 1] / self.without[call - 1]

    @property
    def pays_from(self) -> int | None:
        """The call from which on memory has cost less; None where it has not."""
        dear = [call for call in range(1, self.calls + 1) if self.ratio_after(call) >= 1]
        last = dear[-1] if dear else 0
        return last + 1 if last < self.calls else None


def play(stage: Stage) -> Act:
    sessions = [stage.memory.session(name) for name in (references.SESSION, full_window.SESSION)]
    short, long = (bill(session) for session in sessions)
    return Act(
        lines=[
            _table({"the page": short, "the deliveries": long}),
            line(_when_it_pays(long)),
            line(f"At ${INPUT:.2f} a million tokens; a tenth of it from cache, a quarter more into it.", "dim"),
        ],
        facts={"rates": asdict(RATES), "bills": [_facts(one) for one in (short, long)]},
        promises={
            "the bill is the ledger's": all(
                isclose(one.with_memory[-1], session.usage.price(RATES))
                for one, session in zip((short, long), sessions, strict=True)
            ),
            "a long run costs less with memory": long.ratio < 1,
        },
    )


def bill(session: Session) -> Bill:
    """Call by call: what was sent, and what full history would have sent in its place."""
    events = [event.payload for event in session.events()]
    standing = session.state.prompt
    said = [what.wire for what in events if isinstance(what, MessageAdded)]
    recording = Recording(name=session.id, format="openai", messages=said, system=standing.system, tools=standing.tools)
    sizes = TokenSizes(recording)
    bare = BaselineAgent(TruncatingHost(turn_starts(recording), sizes), sizes)
    heard, ours, theirs = 0, list[Usage](), list[Usage]()
    for what in events:
        if isinstance(what, MessageAdded):
            heard += 1
        elif isinstance(what, PromptPrepared):
            tail = what.used - what.cached - what.written
            ours.append(Usage(calls=1, cached=what.cached, written=what.written, uncached=tail))
            theirs.append(bare.call(heard) or Usage())
    return Bill(
        name=session.id,
        with_memory=list(accumulate(one.price(RATES) for one in ours)),
        without=list(accumulate(one.price(RATES) for one in theirs)),
        largest=(max(one.tokens for one in ours), max(one.tokens for one in theirs)),
    )


def _table(bills: Mapping[str, Bill]) -> Table:
    right = ("calls", "full history", "with memory", "ratio", "longest prompt")
    table = plain_table("", *(Column(name, justify="right") for name in right), header_style="dim")
    for name, one in bills.items():
        table.add_row(
            name,
            str(one.calls),
            f"${one.without[-1]:.4f}",
            f"${one.with_memory[-1]:.4f}",
            Text(f"{one.ratio:.2f}", "green" if one.ratio < 1 else "red"),
            f"{one.largest[1]:,} → {one.largest[0]:,}",
        )
    return table


def _when_it_pays(long: Bill) -> str:
    """Said in full, also where it speaks against us."""
    if long.pays_from is None:
        return "Memory has cost more: what it adds to each prompt was never earned back."
    early = ", ".join(f"{long.ratio_after(call):.1f} times after call {call}" for call in (10, long.pays_from // 2))
    return (
        "A short run costs more with memory, whose tools and blocks stand in each prompt. So does the beginning of "
        f"a long one: {early}. From call {long.pays_from} on it has cost less."
    )


def _facts(one: Bill) -> dict[str, Any]:
    return {
        "session": one.name,
        "calls": one.calls,
        "full_history": one.without[-1],
        "with_memory": one.with_memory[-1],
        "ratio": one.ratio,
        "pays_from_call": one.pays_from,
        "longest_prompt": {"with_memory": one.largest[0], "full_history": one.largest[1]},
    }
