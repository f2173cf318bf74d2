"""Upkeep in the terminal: one round of it, or round after round until somebody stops it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, NoReturn

import typer

from inmind import InmindError, Memory
from inmind.doors.cli.dreams import in_short, told
from inmind.doors.cli.endings import complain
from inmind.doors.cli.terminal import AsJson, existing_memory, print_json, progress, say, say_lines
from inmind.doors.signals import signals_go_to
from inmind.errors import InvalidInput
from inmind.housekeeping import Upkeep
from inmind.memory import LONGEST
from inmind.text import counted

AT_A_TIME = 10.0
"""Seconds of a worker's round. What is left goes on in the next one, at once."""

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
            return print_json(_as_json(done))
        say_lines(_told(done))
        say(
            "All upkeep that was due is done."
            if done.finished
            else f"Stopped after {seconds:g} s: the next upkeep goes on there."
        )
    return None


def worker(
    every: Annotated[float, typer.Option(help="Seconds between two rounds.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each busy round.")] = False,
) -> None:
    """Do the upkeep, round after round, until Ctrl-C or SIGTERM. Any number of workers may do it for one home."""
    if not 0 < every <= LONGEST:
        raise InvalidInput(field="every", value=every, expected=f"more than 0 seconds, and at most {LONGEST:,}")
    with signals_go_to(_stop, signal.SIGINT, signal.SIGTERM), existing_memory() as memory:
        if not as_json:
            say(f"Looking after {memory.place}, every {every:g} s.")
        with suppress(KeyboardInterrupt):
            for done in _round_after_round(memory, every):
                if as_json:
                    print(json.dumps(_as_json(done), ensure_ascii=False), flush=True)
                else:
                    say_lines(_told(done))
        if not as_json:
            say("Stopped.")


def _round_after_round(memory: Memory, every: float) -> Iterator[Upkeep]:
    """Never ends by itself; hands out the rounds in which something was done."""
    while True:
        finished = True
        try:
            done = memory.upkeep(seconds=AT_A_TIME)
            finished = done.finished
            if any(_told(done)):
                yield done
        except InmindError as error:  # a full disk has room again some day: the next round tries it
            complain(error.code, str(error))
        if finished:
            time.sleep(every)


def _told(done: Upkeep) -> Iterator[str]:
    """A line for each thing that was done."""
    for resource, one in done.consolidated.items():
        if one.merged or one.superseded or one.expired:
            yield f"{resource}: {one.merged} merged, {one.superseded} said anew, {one.expired} faded."
    if done.notes:
        yield f"{counted(done.notes, 'note')} taken of levels that stay high."
    for dream in done.dreams:
        yield next(told(dream))


def _as_json(done: Upkeep) -> dict[str, Any]:
    return {
        "finished": done.finished,
        "consolidated": {resource: asdict(one) for resource, one in done.consolidated.items()},
        "notes": done.notes,
        "dreams": [in_short(dream) for dream in done.dreams],
    }


def _stop(*_: object) -> NoReturn:
    """SIGTERM is what Ctrl-C is: a dream that is going on says that it was stopped, and has changed nothing."""
    raise KeyboardInterrupt("the worker was stopped")
