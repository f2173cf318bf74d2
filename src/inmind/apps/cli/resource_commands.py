"""A resource in the terminal: its state, how things have been going for it, and its books."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any, get_args

import typer
from rich.text import Text

from inmind import Memory
from inmind.apps.cli.console import (
    AsJson,
    OnlyResource,
    Resource,
    complete_owners,
    console,
    existing_memory,
    known_resource,
    one_of,
    print_json,
    say,
    unknown,
)
from inmind.apps.cli.dreams import in_short, told
from inmind.core.text import counted
from inmind.documents.document import SCRATCH, STATE
from inmind.documents.notes_page import notes_in
from inmind.dreams.affect.levels import BASELINES, SPIKES
from inmind.dreams.economics import Economics, money
from inmind.dreams.economics import told as told_in_short
from inmind.errors import InvalidInput
from inmind.memory.listing import nearest_resource, nearest_session
from inmind.memory.memory import meant
from inmind.session.affect import LEAST_MINUTES
from inmind.session.economics import What

ENTRIES: tuple[str, ...] = get_args(What)

POINTS = 36
"""Of a small curve: with everything else in its line, it fits 80 columns."""
WIDTH = 20

_COLOURS = {"dopamine": "green", "cortisol": "red", "oxytocin": "blue"}
_HEIGHTS = "▁▂▃▄▅▆▇█"


def show_state(
    whose: Annotated[
        str | None,
        typer.Argument(
            metavar="RESOURCE|SESSION", help="A resource, or a session of it.", autocompletion=complete_owners
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """MEMORY.md of a resource, and what is to come. Notes that wait, the last dream, the mood, the books."""
    with existing_memory() as memory:
        resource = _of_whom(memory, whose)
        owned = memory.belongings(resource)
        text, waiting = owned.documents.text(STATE), len(notes_in(owned.documents.text(SCRATCH)))
        last = next(iter(memory.dreams(resource)), None)
        mood, books = memory.affect(resource).mood, memory.ledger.report(resource)
        if as_json:
            return print_json(
                {
                    "resource": resource,
                    "state": text,
                    "notes": waiting,
                    "dream": in_short(last) if last else None,
                    "mood": mood,
                    "economics": [_as_json(one) for one in books],
                }
            )
        say(text.rstrip("\n") if text.strip() else f"MEMORY.md of {resource} is empty.")
        say("")
        say(f"Waiting for a dream: {counted(waiting, 'note')}. Mood: {mood}.")
        say(next(told(last)) if last else "No dream so far.")
        for line in (line for one in books for line in told_in_short(one)):
            say(f"{line}.")
    return None


def affect(
    resource: OnlyResource = None,
    hours: Annotated[float, typer.Option(help="How far back the curves go.")] = 24.0,
    spike: Annotated[
        str | None,
        typer.Option(
            "--raise",
            metavar="|".join(SPIKES),
            help="Something happened that is felt.",
            autocompletion=one_of(tuple(SPIKES)),
        ),
    ] = None,
    why: Annotated[str | None, typer.Option(help="What it was, in a few words; only with --raise.")] = None,
    as_json: AsJson = False,
) -> None:
    """How things have been going for a resource. The levels, their mood in words, and their last hours."""
    with existing_memory() as memory:
        name = known_resource(memory, resource)
        felt = memory.affect(name)
        if spike is None and why is not None:
            raise InvalidInput(field="--why", value=why, expected="nothing without --raise")
        if spike is not None and felt.raise_(spike, why or "") is None:
            raise InvalidInput(field="--raise", value=spike, expected="nothing while affect is off in config.toml")
        levels, past = felt.levels.named, felt.history(hours, max(hours * 60 / POINTS, LEAST_MINUTES))
        if as_json:
            history = [{"at": point.at.isoformat() if point.at else None, **point.named} for point in past]
            return print_json(
                {"resource": name, "enabled": felt.enabled, "mood": felt.mood, "levels": levels, "history": history}
            )
        say(f"{name} is {felt.mood}." if felt.enabled else "Affect is switched off in this home's config.toml.")
        for level, value in levels.items():
            curve = _curve([point.named[level] for point in past], most=1.0)
            console().print(bar(level, value).append(f"  {curve}", _COLOURS[level]))
        rest = ", ".join(f"{level} {base:.2f}" for level, base in BASELINES._asdict().items())
        say(f"From 0 to 1; the last {hours:g} hours. At rest: {rest}.")
    return None


def ledger(
    resource: Resource,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar=f"[{'|'.join(ENTRIES)}]", help="Enter one; without, the report.", autocompletion=one_of(ENTRIES)
        ),
    ] = None,
    amount: Annotated[str | None, typer.Argument(metavar="[AMOUNT]", help="Exact, like 12.50.")] = None,
    currency: Annotated[str, typer.Option(help="A code.")] = "USD",
    skill: Annotated[str, typer.Option(help="What was sold, bought or offered.")] = "",
    buyer: Annotated[str, typer.Option(help="Of an earning.")] = "",
    seller: Annotated[str, typer.Option(help="Of a spending.")] = "",
    note: Annotated[str, typer.Option(help="Anything else.")] = "",
    on: Annotated[str | None, typer.Option(metavar="DAY", help="When it was, if not now.")] = None,
    as_json: AsJson = False,
) -> None:
    """The books of a resource: what it earned, spent and offers. They go into The Niche with the next dream."""
    with existing_memory() as memory:
        name = known_resource(memory, resource)
        if what is not None:
            entered = memory.ledger.record(
                what,  # pyright: ignore[reportArgumentType] -- checked there, and refused by what it may be
                resource=name,
                amount=amount or "0",
                currency=currency,
                skill=skill,
                buyer=buyer,
                seller=seller,
                note=note,
                on=on,
            )
            if as_json:
                return print_json({"id": f"resource/{name}#{entered.first}"})
            say(f"Entered as resource/{name}#{entered.first}.")
            return None
        for field, given in {"skill": skill, "buyer": buyer, "seller": seller, "note": note, "on": on}.items():
            if given:
                raise InvalidInput(field=f"--{field}", value=given, expected="nothing without an entry")
        books = memory.ledger.report(name)
        if as_json:
            return print_json([_as_json(one) for one in books])
        for one in books:
            say(one.currency)
            for label, figure in _figures(one):
                say(f"  {label:<8} {figure}")
        if not books:
            say(f"The books of {name} are empty.")
    return None


def bar(level: str, value: float) -> Text:
    full = "█" * round(value * WIDTH)
    return Text(f"{level:<9} ").append(f"{full:░<{WIDTH}}", _COLOURS[level]).append(f" {value:.2f}", "default")


def _of_whom(memory: Memory, whose: str | None) -> str:
    """A resource by its name, or that of a session."""
    if whose is None or memory.knows(whose):
        return known_resource(memory, whose)
    if whose in memory:
        return known_resource(memory, memory.session(whose).resource)
    raise unknown("resource or session", whose, meant(memory, whose, nearest_resource, nearest_session))


def _figures(one: Economics) -> Iterator[tuple[str, str]]:
    yield "earned", f"{money(one.earned)} in {counted(one.earnings, 'sale')}, {counted(one.buyers, 'buyer')}"
    if one.spendings:
        yield "spent", f"{money(one.spent)}, {counted(one.spendings, 'time')}"
    if one.listed:
        yield "offered", ", ".join(one.listed)
    if one.top:
        yield "best", ", ".join(f"{skill} {money(earned)}" for skill, earned in one.top)
    week = _curve([float(day) for day in one.days], most=float(max(one.days)) or 1.0)
    yield "7 days", f"{money(one.week)} {week} after {money(one.week_before)} in the 7 before"


def _as_json(one: Economics) -> dict[str, Any]:
    return {
        **asdict(one),
        **{name: str(getattr(one, name)) for name in ("earned", "spent", "week", "week_before")},
        "top": {skill: str(earned) for skill, earned in one.top},
        "days": [str(day) for day in one.days],
    }


def _curve(values: Sequence[float], most: float) -> str:
    """A curve of one line, from nothing up to the most."""
    return "".join(_HEIGHTS[round(value / most * (len(_HEIGHTS) - 1))] for value in values)
