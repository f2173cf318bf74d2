"""The line behind every answer: what is in mind, how full the window is, what it took."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from inmind.apps.chat.turn import Turn
from inmind.core.pricing import Rates
from inmind.core.text import printable, shortened

WIDTH = 80
LEAST_NAMES = 12
"""Columns without which no name is worth a beginning."""


def status_line(turn: Turn, things: Sequence[str], prices: tuple[float, float], *, width: int = WIDTH) -> str:
    """One line, in the width that there is: names give way first, since numbers cannot."""
    report = turn.report
    band = report.band.replace("_", " ")
    parts = [f"{band}, {report.tokens_percent:.0f}% of {_short(report.tokens_max)}", _tokens(turn)]
    if any(prices):
        parts.append(f"${_price(turn, prices):.4f}")
    fixed = " · ".join(parts)
    names = _names(things, width - len(fixed) - len(" · "))
    return " · ".join([names, fixed] if names else [fixed])[:width]


def _tokens(turn: Turn) -> str:
    counted = f"{turn.tokens:,} tokens, {turn.cached_share:.0%}"
    return f"{counted} from cache" if turn.used.reported_calls else f"about {counted} cacheable"


def _price(turn: Turn, prices: tuple[float, float]) -> float:
    used, rates = turn.used, Rates.per_million(input=prices[0])
    fresh = used.reported_prompt - used.reported_cached
    return fresh * rates.uncached + used.reported_cached * rates.cached + used.completion * prices[1] / 1e6


def _names(things: Sequence[str], room: int) -> str:
    """As many names as there is room for, and how many more there are."""
    label, names = "in mind: ", [printable(shortened(name, room)) for name in things] if room > LEAST_NAMES else []
    for kept in range(len(names), 0, -1):
        more = f" +{len(names) - kept}" if kept < len(names) else ""
        line = f"{label}{', '.join(names[:kept])}{more}"
        if cell_len(line) <= room:
            return line
    return f"{label}{len(things)}" if things and room > LEAST_NAMES else ""


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.0f}k" if tokens >= 10_000 else f"{tokens:,}"
