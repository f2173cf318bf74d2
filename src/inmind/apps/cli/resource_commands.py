"""Commands about a resource: `show state`, `affect` and `economics`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, get_args

import click
from rich.text import Text

from inmind import Memory
from inmind.apps.cli.console import (
    choice_option,
    complete_choices,
    complete_owners,
    console,
    json_option,
    not_found_error,
    open_existing_memory,
    optional_resource_argument,
    print_json,
    print_text,
    resolve_resource,
    resource_argument,
)
from inmind.apps.cli.dreams import describe_dream, dream_summary_json
from inmind.core.text import count_noun
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.dreams.affect import BASELINES, SPIKES
from inmind.dreams.economics import CurrencyTotals, format_amount
from inmind.dreams.economics import economics_lines as told_in_short
from inmind.errors import InvalidInput
from inmind.memory.listing import nearest_resource, nearest_session
from inmind.memory.memory import suggest_name
from inmind.session.affect import MIN_MINUTES
from inmind.session.economics import TradeKind

ENTRY_KINDS: tuple[str, ...] = get_args(TradeKind)

CURVE_POINTS = 36
"""Points of a curve; the whole line fits 80 columns."""
BAR_WIDTH = 20

_COLOURS = {"dopamine": "green", "cortisol": "red", "oxytocin": "blue"}
_HEIGHTS = "▁▂▃▄▅▆▇█"


@click.argument(
    "owner",
    metavar="[RESOURCE|SESSION]",
    required=False,
    help="A resource, or one of its sessions.",
    shell_complete=complete_owners,
)
@json_option
def show_state(owner: str | None, as_json: bool = False) -> None:
    """Show MEMORY.md of a resource, its waiting notes, last dream, mood and economics."""
    with open_existing_memory() as memory:
        resource = _resolve_owner(memory, owner)
        owned = memory.resource(resource).state
        text, waiting = owned.documents.text(MEMORY_PAGE_PATH), len(parse_notes(owned.documents.text(NOTES_PAGE_PATH)))
        last = next(iter(memory.resource(resource).dreams()), None)
        mood, totals = memory.resource(resource).affect.mood, memory.resource(resource).economics.report()
        if as_json:
            return print_json(
                {
                    "resource": resource,
                    "state": text,
                    "notes": waiting,
                    "dream": dream_summary_json(last) if last else None,
                    "mood": mood,
                    "economics": [_economics_json(currency_totals) for currency_totals in totals],
                }
            )
        print_text(text.rstrip("\n") if text.strip() else f"MEMORY.md of {resource} is empty.")
        print_text("")
        print_text(f"{count_noun(waiting, 'note')} waiting for a dream. Mood: {mood}.")
        print_text(next(describe_dream(last)) if last else "No dreams yet.")
        for line in (line for currency_totals in totals for line in told_in_short(currency_totals)):
            print_text(f"{line}.")
    return None


@optional_resource_argument
@click.option("--hours", default=24.0, help="Hours that the curves show.")
@choice_option("--spike", choices=SPIKES, help="Record this spike first.")
@click.option("--why", help="Reason of the spike; only with --spike.")
@json_option
def affect(resource: str | None, hours: float, spike: str | None, why: str | None, as_json: bool) -> None:
    """Show the affect levels, mood and recent history of a resource."""
    with open_existing_memory() as memory:
        name = resolve_resource(memory, resource)
        resource_affect = memory.resource(name).affect
        if spike is None and why is not None:
            raise InvalidInput(field="--why", value=why, expected="--spike with it")
        if spike is not None and not resource_affect.spike(spike, why or ""):
            raise InvalidInput(field="--spike", value=spike, expected="affect to be enabled in config.toml")
        levels, past = (
            resource_affect.levels.by_name,
            resource_affect.history(hours, max(hours * 60 / CURVE_POINTS, MIN_MINUTES)),
        )
        if as_json:
            history = [{"at": point.at.isoformat() if point.at else None, **point.by_name} for point in past]
            return print_json(
                {
                    "resource": name,
                    "enabled": resource_affect.enabled,
                    "mood": resource_affect.mood,
                    "levels": levels,
                    "history": history,
                }
            )
        print_text(
            f"{name} is {resource_affect.mood}." if resource_affect.enabled else "Affect is disabled in config.toml."
        )
        for level, value in levels.items():
            curve = _curve([point.by_name[level] for point in past], maximum=1.0)
            console().print(level_bar(level, value).append(f"  {curve}", _COLOURS[level]))
        rest = ", ".join(f"{level} {base:.2f}" for level, base in BASELINES._asdict().items())
        print_text(f"Range 0 to 1; last {hours:g} hours. Baselines: {rest}.")
    return None


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
@json_option
def economics(
    resource: str,
    what: str | None,
    amount: str | None,
    currency: str,
    skill: str,
    buyer: str,
    seller: str,
    note: str,
    on: str | None,
    as_json: bool,
) -> None:
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
                skill=skill,
                buyer=buyer,
                seller=seller,
                note=note,
                on=on,
            )
            if as_json:
                return print_json({"id": entry})
            print_text(f"Recorded as {entry}.")
            return None
        for field, value in {"skill": skill, "buyer": buyer, "seller": seller, "note": note, "on": on}.items():
            if value:
                raise InvalidInput(field=f"--{field}", value=value, expected="a kind of entry with it")
        totals = memory.resource(name).economics.report()
        if as_json:
            return print_json([_economics_json(currency_totals) for currency_totals in totals])
        for currency_totals in totals:
            print_text(currency_totals.currency)
            for label, figure in _economics_rows(currency_totals):
                print_text(f"  {label:<8} {figure}")
        if not totals:
            print_text(f"No entries for {name} yet.")
    return None


def level_bar(level: str, value: float) -> Text:
    full = "█" * round(value * BAR_WIDTH)
    return Text(f"{level:<9} ").append(f"{full:░<{BAR_WIDTH}}", _COLOURS[level]).append(f" {value:.2f}", "default")


def _resolve_owner(memory: Memory, name: str | None) -> str:
    """The named resource, or the resource of the named session."""
    if name is None or memory.has_resource(name):
        return resolve_resource(memory, name)
    if name in memory:
        return resolve_resource(memory, memory.session(name).resource)
    raise not_found_error("resource or session", name, suggest_name(memory, name, nearest_resource, nearest_session))


def _economics_rows(economics: CurrencyTotals) -> Iterator[tuple[str, str]]:
    yield (
        "earned",
        f"{format_amount(economics.earned)} in {count_noun(economics.earnings, 'sale')}, "
        f"{count_noun(economics.buyers, 'buyer')}",
    )
    if economics.spendings:
        yield "spent", f"{format_amount(economics.spent)}, {count_noun(economics.spendings, 'time')}"
    if economics.listed:
        yield "offered", ", ".join(economics.listed)
    if economics.top:
        yield "best", ", ".join(f"{skill} {format_amount(earned)}" for skill, earned in economics.top)
    week = _curve([float(day) for day in economics.days], maximum=float(max(economics.days)) or 1.0)
    yield (
        "7 days",
        f"{format_amount(economics.week)} {week} after {format_amount(economics.week_before)} in the 7 days before",
    )


def _economics_json(economics: CurrencyTotals) -> dict[str, Any]:
    return {
        **asdict(economics),
        **{name: str(getattr(economics, name)) for name in ("earned", "spent", "week", "week_before")},
        "top": {skill: str(earned) for skill, earned in economics.top},
        "days": [str(day) for day in economics.days],
    }


def _curve(values: Sequence[float], maximum: float) -> str:
    """A one-line curve, scaled from 0 to `maximum`."""
    return "".join(_HEIGHTS[round(value / maximum * (len(_HEIGHTS) - 1))] for value in values)
