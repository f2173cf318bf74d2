"""One round of upkeep in the terminal, and what is said of any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from inmind.apps.cli.console import AsJson, existing_memory, print_json, progress, say, say_lines
from inmind.apps.cli.dreams import in_short, told
from inmind.core.text import counted
from inmind.jobs.upkeep import Upkeep

WITHOUT_DELAY = {"dream.first_minutes": 0}
"""A process that does one round and ends has no five minutes to wait for."""


def upkeep(
    seconds: Annotated[float, typer.Option(help="For about so long, at most.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Do once what is due: consolidate, dream, make vectors. For all resources."""
    with existing_memory(WITHOUT_DELAY) as memory:
        with progress("upkeep"):
            done = memory.upkeep(seconds=seconds)
        if as_json:
            return print_json(plain(done))
        say_lines(done_in_lines(done))
        say(
            "All upkeep that was due is done."
            if done.finished
            else f"Stopped after {seconds:g} s: the next upkeep goes on there."
        )
    return None


def done_in_lines(done: Upkeep) -> Iterator[str]:
    """A line for each thing that was done."""
    for resource, one in done.consolidated.items():
        if one.merged or one.superseded or one.expired:
            yield f"{resource}: {one.merged} merged, {one.superseded} said anew, {one.expired} faded."
    if done.notes:
        yield f"{counted(done.notes, 'note')} taken of levels that stay high."
    for dream in done.dreams:
        yield next(told(dream))


def plain(done: Upkeep) -> dict[str, Any]:
    return {
        "finished": done.finished,
        "consolidated": {resource: asdict(one) for resource, one in done.consolidated.items()},
        "notes": done.notes,
        "dreams": [in_short(dream) for dream in done.dreams],
    }
