"""Status lines of the chat: after an answer, on resume, and after changes by others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from inmind.apps.chat.turn import ChatExchange, ChatTurn, OtherChanges
from inmind.core.pricing import Rates
from inmind.core.text import count_noun, printable, shorten

WIDTH = 80
MIN_NAME_COLUMNS = 12
"""Minimum width for names; below it only their number is shown."""


def status_line(turn: ChatTurn, entities: Sequence[str], prices: tuple[float, float], *, width: int = WIDTH) -> str:
    """One line within the width; names are shortened first, numbers never."""
    report = turn.report
    band = report.band.replace("_", " ")
    parts = [f"{band}, {report.tokens_percent:.0f}% full", _tokens(turn)]
    if any(prices):
        parts.append(f"${_price(turn, prices):.4f}")
    fixed = " · ".join(parts)
    names = _names(entities, width - len(fixed) - len(" · "))
    return " · ".join([names, fixed] if names else [fixed])[:width]


def _tokens(turn: ChatTurn) -> str:
    counted = f"{turn.tokens:,} tokens, {turn.cached_share:.0%}"
    return f"{counted} from cache" if turn.usage.reported_calls else f"about {counted} cacheable"


def _price(turn: ChatTurn, prices: tuple[float, float]) -> float:
    used, rates = turn.usage, Rates.per_million(input=prices[0])
    fresh = used.reported_prompt - used.reported_cached
    return fresh * rates.uncached + used.reported_cached * rates.cached + used.completion * prices[1] / 1e6


def _names(entities: Sequence[str], room: int) -> str:
    """As many names as fit, and the number of the others."""
    label, names = (
        "in mind: ",
        [printable(shorten(name, room)) for name in entities] if room > MIN_NAME_COLUMNS else [],
    )
    for count in range(len(names), 0, -1):
        more = f" +{len(names) - count}" if count < len(names) else ""
        line = f"{label}{', '.join(names[:count])}{more}"
        if cell_len(line) <= room:
            return line
    return f"{label}{len(entities)}" if entities and room > MIN_NAME_COLUMNS else ""


UNANSWERED = "no answer yet: /retry"


MIN_COLUMNS = 20
"""Minimum width of a text, however narrow the terminal is."""


def describe_last_exchange(title: str, last: ChatExchange | None, *, width: int) -> Iterator[str]:
    """Title and last exchange of a resumed session."""
    if title:
        yield shorten(f"About: {title}", max(MIN_COLUMNS, width))
    if last is not None:
        reply = last.answer if last.is_answered else UNANSWERED
        room = max(MIN_COLUMNS, width - len("Last:  → "))
        question = shorten(
            last.question, max(room // 2, room - len(reply))
        )  # each gets the room that the other does not need
        yield f"Last: {question} → {shorten(reply, room - len(question))}"


def describe_other_changes(changes: OtherChanges, *, width: int) -> Iterator[str]:
    """Lines about changes by other processes; none if there are none."""
    if changes.removed:
        yield f"Another process removed {count_noun(changes.removed, 'message')} of this session."
    if changes.messages:
        *before, last = changes.messages
        more = f" and {len(before)} more" if before else ""
        prefix = f"New from another process{more}: "
        yield f"{prefix}{shorten(last, max(MIN_COLUMNS, width - len(prefix)))}"
