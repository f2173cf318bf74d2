"""Commands about a resource: `affect` and `economics`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, get_args

import click
from rich.text import Text

from inmind.apps.cli.console import (
    CommandResult,
    choice_option,
    complete_choices,
    open_existing_memory,
    optional_resource_argument,
    prints_result,
    resolve_resource,
    resource_argument,
)
from inmind.core.text import count_noun
from inmind.dreams.affect import BASELINES, SPIKES
from inmind.dreams.economics import CurrencyTotals, format_amount
from inmind.errors import InvalidInput
from inmind.session.affect import MIN_MINUTES
from inmind.session.economics import TradeKind

ENTRY_KINDS: tuple[str, ...] = get_args(TradeKind)

CURVE_POINTS = 36
"""Points of a curve; the whole line fits 80 columns."""
BAR_WIDTH = 20

_COLOURS = {"dopamine": "green", "cortisol": "red", "oxytocin": "blue"}
_HEIGHTS = "▁▂▃▄▅▆▇█"


@optional_resource_argument
@click.option("--hours", default=24.0, help="Hours that the curves show.")
@choice_option("--spike", choices=SPIKES, help="Record this spike first.")
@click.option("--why", help="Reason of the spike; only with --spike.")
@prints_result
def affect(resource: str | None, hours: float, spike: str | None, why: str | None) -> CommandResult:
    """Show the affect levels, mood and recent history of a resource."""
    with open_existing_memory() as memory:
        name = resolve_resource(memory, resource)
        owned = memory.resource(name).affect
        if spike is None and why is not None:
            raise InvalidInput(field="--why", value=why, expected="--spike with it")
        if spike is not None and not owned.spike(spike, why or ""):
            raise InvalidInput(field="--spike", value=spike, expected="affect to be enabled in config.toml")
        levels, mood, enabled = owned.levels.by_name, owned.mood, owned.enabled
        past = owned.history(hours, max(hours * 60 / CURVE_POINTS, MIN_MINUTES))
    history = [{"at": point.at.isoformat() if point.at else None, **point.by_name} for point in past]
    lines: list[str | Text] = [f"{name} is {mood}." if enabled else "Affect is disabled in config.toml."]
    for level, value in levels.items():
        curve = _curve([point.by_name[level] for point in past], maximum=1.0)
        full = "█" * round(value * BAR_WIDTH)
        drawn = (f"{full:░<{BAR_WIDTH}}", _COLOURS[level])
        lines.append(Text.assemble(f"{level:<9} ", drawn, f" {value:.2f}", (f"  {curve}", _COLOURS[level])))
    rest = ", ".join(f"{level} {base:.2f}" for level, base in BASELINES._asdict().items())
    lines.append(f"Range 0 to 1; last {hours:g} hours. Baselines: {rest}.")
    return {"resource": name, "enabled": enabled, "mood": mood, "levels": levels, "history": history}, lines


@resource_argument
@click.argument(
    "what",
    metavar=f"[{'|'.join(ENTRY_KINDS)}]",
    required=False,
    help="Kind of entry to record; without it, print the report.",
    shell_complete=complete_choices(ENTRY_KINDS),
)
@click.argument("amount", required=False, help="Exact amount, such as 12.50.")
@click.option("--currency", default="USD", help="Currency code.")
@click.option("--skill", default="", help="Skill that was sold, bought or offered.")
@click.option("--buyer", default="", help="Buyer of an earning.")
@click.option("--seller", default="", help="Seller of a spending.")
@click.option("--note", default="", help="Free text.")
@click.option("--on", metavar="DAY", help="Day of the entry; default: now.")
@prints_result
def economics(resource: str, what: str | None, amount: str | None, currency: str, **details: Any) -> CommandResult:
    """Show or record the income, spending and offers of a resource.

    The next dream adds them to The Niche.
    """
    with open_existing_memory() as memory:
        name = resolve_resource(memory, resource)
        if what is not None:
            entry = memory.resource(name).economics.record(
                what,  # pyright: ignore[reportArgumentType] -- validated by record()
                amount=amount or "0",
                currency=currency,
                **details,
            )
            return {"id": entry}, f"Recorded as {entry}."
        for field, value in details.items():
            if value:
                raise InvalidInput(field=f"--{field}", value=value, expected="a kind of entry with it")
        report = memory.resource(name).economics.report()
    lines = [line for totals in report for line in _economics_lines(totals)]
    return map(economics_json, report), lines or f"No entries for {name} yet."


def _economics_lines(economics: CurrencyTotals) -> Iterator[str]:
    yield economics.currency
    sales, buyers = count_noun(economics.earnings, "sale"), count_noun(economics.buyers, "buyer")
    yield f"  earned   {format_amount(economics.earned)} in {sales}, {buyers}"
    if economics.spendings:
        yield f"  spent    {format_amount(economics.spent)}, {count_noun(economics.spendings, 'time')}"
    if economics.listed:
        yield f"  offered  {', '.join(economics.listed)}"
    if economics.top:
        yield f"  best     {', '.join(f'{skill} {format_amount(earned)}' for skill, earned in economics.top)}"
    curve = _curve([float(day) for day in economics.days], maximum=float(max(economics.days)) or 1.0)
    week, before = format_amount(economics.week), format_amount(economics.week_before)
    yield f"  7 days   {week} {curve} after {before} in the 7 days before"


def economics_json(economics: CurrencyTotals) -> dict[str, Any]:
    return {**asdict(economics), "top": dict(economics.top)}


def _curve(values: Sequence[float], maximum: float) -> str:
    """A one-line curve, scaled from 0 to `maximum`."""
    return "".join(_HEIGHTS[round(value / maximum * (len(_HEIGHTS) - 1))] for value in values)
