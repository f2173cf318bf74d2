"""Act 5: the price of the earlier conversations, with memory and without.

Both sides are computed from the journal. The agent without memory sends its full history with every call and only
appends, which is the best case for caching. In a short conversation memory costs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from math import isclose

from rich.text import Text

from inmind import Session, Usage
from inmind.apps.cli.console import right_aligned, table
from inmind.apps.demo import full_window, references
from inmind.apps.demo.command import DemoAct, DemoContext, text_line
from inmind.apps.replay.baseline import BaselineAgent, TokenSizes
from inmind.apps.replay.files import Recording
from inmind.core.events.session import MessageAdded, PromptPrepared
from inmind.core.frozen import frozen
from inmind.types import Rates

TITLE = "The price, from the recorded usage"

INPUT_PRICE = 3.00
RATES = Rates.per_million(input=INPUT_PRICE)
"""Dollars per million tokens, as in common price lists: cache reads cost a tenth, cache writes a quarter more."""


@frozen(kw_only=True)
class CostComparison:
    """Accumulated cost of a conversation after each call, and tokens of its longest prompt."""

    with_memory: Sequence[float]
    full_history: Sequence[float]
    longest_with: int
    longest_without: int

    @property
    def calls(self) -> int:
        return len(self.with_memory)

    def ratio(self, call: int = 0) -> float:
        """Cost with memory by cost without, after a call; by default after the last."""
        return self.with_memory[call - 1] / self.full_history[call - 1]

    @property
    def cheaper_from(self) -> int | None:
        """The call from which on memory is cheaper in total; None if it never is."""
        last = max((call for call in range(1, self.calls + 1) if self.ratio(call) >= 1), default=0)
        return last + 1 if last < self.calls else None


def play(context: DemoContext) -> DemoAct:
    titles = {references.SESSION: "the page", full_window.SESSION: "the deliveries"}
    sessions = list(map(context.memory.session, titles))
    short, long = bills = list(map(compare_costs, sessions))
    columns = ("", *right_aligned("calls", "full history", "with memory", "ratio", "longest prompt"))
    rows = (
        (
            title,
            str(bill.calls),
            f"${bill.full_history[-1]:.4f}",
            f"${bill.with_memory[-1]:.4f}",
            Text(f"{bill.ratio():.2f}", "green" if bill.ratio() < 1 else "red"),
            f"{bill.longest_without:,} → {bill.longest_with:,}",
        )
        for title, bill in zip(titles.values(), bills, strict=True)
    )
    prices = f"At ${INPUT_PRICE:.2f} per million tokens; cache reads cost a tenth, cache writes a quarter more."
    is_exact = all(isclose(one.with_memory[-1], of.usage.price(RATES)) for one, of in zip(bills, sessions, strict=True))
    return DemoAct(
        lines=[table(columns, rows, header_style="dim"), text_line(_break_even_text(long)), text_line(prices, "dim")],
        facts={
            "rates": asdict(RATES),
            "bills": [
                {
                    "session": session,
                    "calls": bill.calls,
                    "full_history": bill.full_history[-1],
                    "with_memory": bill.with_memory[-1],
                    "ratio": bill.ratio(),
                    "pays_from_call": bill.cheaper_from,
                    "longest_prompt": {"with_memory": bill.longest_with, "full_history": bill.longest_without},
                }
                for session, bill in zip(titles, (short, long), strict=True)
            ],
        },
        promises={"the cost matches session.usage": is_exact, "a long run costs less with memory": long.ratio() < 1},
    )


def compare_costs(session: Session) -> CostComparison:
    """Cost per call, with memory and with the full history."""
    events = [event.payload for event in session.events()]
    prompt = session.state.prompt
    messages = [payload.wire for payload in events if isinstance(payload, MessageAdded)]
    recording = Recording(name=session.id, format="openai", messages=messages, system=prompt.system, tools=prompt.tools)
    baseline = BaselineAgent(TokenSizes(recording))
    message_count, with_memory, full_history = 0, list[Usage](), list[Usage]()
    for payload in events:
        if isinstance(payload, MessageAdded):
            message_count += 1
        elif isinstance(payload, PromptPrepared):
            tail = payload.used - payload.cached - payload.written
            with_memory.append(Usage(calls=1, cached=payload.cached, written=payload.written, uncached=tail))
            full_history.append(baseline.send(message_count) or Usage())
    return CostComparison(
        with_memory=list(accumulate(one.price(RATES) for one in with_memory)),
        full_history=list(accumulate(one.price(RATES) for one in full_history)),
        longest_with=max(one.tokens for one in with_memory),
        longest_without=max(one.tokens for one in full_history),
    )


def _break_even_text(long: CostComparison) -> str:
    """The result in words, also if it is negative."""
    if long.cheaper_from is None:
        return "Memory costs more here: the tokens that it adds to each prompt were not saved elsewhere."
    early = ", ".join(f"{long.ratio(call):.1f} times after call {call}" for call in (10, long.cheaper_from // 2))
    return (
        "A short run costs more with memory, because its tool, meter and blocks are in each prompt. So does the start "
        f"of a long one: {early}. From call {long.cheaper_from} on memory is cheaper."
    )
