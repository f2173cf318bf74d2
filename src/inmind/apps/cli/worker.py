"""A worker in the terminal: on a database it takes jobs, on a home it does round after round."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from inmind.apps.cli import TERMINATED
from inmind.apps.cli.console import chosen_place, existing_memory, say, say_lines
from inmind.apps.cli.exit_codes import complain
from inmind.apps.cli.status import some
from inmind.apps.cli.upkeep import WITHOUT_DELAY, done_in_lines, plain
from inmind.apps.signals import signals_go_to
from inmind.apps.worker.status import Left, left_of
from inmind.core.text import counted
from inmind.documents.notes_page import stamp
from inmind.errors import InvalidInput, ReadOnly
from inmind.jobs.upkeep import Upkeep
from inmind.memory.memory import LONGEST, Memory, house_of

MOST_JOBS = 64

AT_MOST = 8.0
"""Seconds after which a worker that has to leave does so, whatever its jobs are at: others find them."""


def worker(
    every: Annotated[float, typer.Option(help="Seconds between two looks at what is due.")] = 60.0,
    jobs: Annotated[int, typer.Option(help="Jobs at a time, on a database.")] = 1,
    once: Annotated[bool, typer.Option("--once", help="Do what is due, and leave.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for whatever was done.")] = False,
) -> None:
    """Do the upkeep, round after round, until Ctrl-C or SIGTERM. Any number of workers share the work."""
    if not 0 < every <= LONGEST:
        raise InvalidInput(field="every", value=every, expected=f"more than 0 seconds, and at most {LONGEST:,}")
    if not 1 <= jobs <= MOST_JOBS:
        raise InvalidInput(field="jobs", value=jobs, expected=f"from 1 to {MOST_JOBS}")
    place, out = chosen_place(), _Out(as_json=as_json)
    if not isinstance(place, Path):
        _on_a_database(place, out, every=every, jobs=jobs, once=once)
    elif jobs > 1:
        raise InvalidInput(field="jobs", value=jobs, expected="1 on a home folder: start more workers instead")
    else:
        _on_a_home(out, every=every, once=once)


class _Out:
    """What is said of what was done, from whichever thread."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json, self._lock = as_json, threading.Lock()

    def remark(self, text: str) -> None:
        if not self._as_json:
            say(text)

    def tell(self, done: Upkeep) -> None:
        lines = list(done_in_lines(done))
        with self._lock:
            if lines and self._as_json:
                print(json.dumps(plain(done), ensure_ascii=False), flush=True)
            elif lines:
                say_lines(lines)

    def end(self, left: Left) -> None:
        waits = left.dreams or left.jobs
        self.remark("All else that was due is done." if waits else "All that was due is done.")
        if left.dreams:
            limits = [f"{use.name} is reached until {stamp(use.until)}" for use in left.limits]
            self.remark(f"Still to come: {some(left.dreams, 'dream')}, {' and '.join(limits) or 'as soon as asked'}.")
        if left.jobs:
            self.remark(f"To be tried again: {counted(left.jobs, 'job')} that failed.")


def _on_a_home(out: _Out, *, every: float, once: bool) -> None:
    from inmind.apps.worker.folder import round_after_round, until_all_is_done

    with (
        signals_go_to(_stop, signal.SIGINT, signal.SIGTERM),
        existing_memory(WITHOUT_DELAY if once else None) as memory,
    ):
        house = house_of(memory)
        rounds: Iterable[Upkeep] = until_all_is_done(house)
        if not once:
            out.remark(f"Looking after {memory.place}, every {every:g} s.")
            rounds = round_after_round(house, every, lambda error: complain(error.code, str(error)))
        with suppress(KeyboardInterrupt):
            for done in rounds:
                out.tell(done)
            return out.end(left_of(house, None))
        out.remark("Stopped.")
    return None


def _on_a_database(url: str, out: _Out, *, every: float, jobs: int, once: bool) -> None:
    from inmind.apps.worker.postgres import DatabaseWorker, later, queue_of

    with ExitStack() as opened:
        _quieten()
        try:
            with signals_go_to(_stop, signal.SIGINT, signal.SIGTERM):
                memory = _as_soon_as_it_is_there(opened, once=once)
        except KeyboardInterrupt:
            return out.remark("Stopped.")
        house = house_of(memory)
        queue = queue_of(house)
        works = DatabaseWorker(house, queue, url, most=jobs, told=lambda _, done: out.tell(done))

        def leave(*_: object) -> None:
            works.leave()
            later(AT_MOST, os._exit, TERMINATED)

        with signals_go_to(leave, signal.SIGINT, signal.SIGTERM):
            if once:
                works.run_once()
            else:
                out.remark(f"Looking after {memory.place}, every {every:g} s, {jobs} at a time.")
                works.run(every)
            return out.remark("Stopped.") if works.is_leaving else out.end(left_of(house, queue))


def _as_soon_as_it_is_there(opened: ExitStack, *, once: bool) -> Memory:
    """A worker that comes before its database waits for it, as one that has lost it does."""
    from inmind.apps.worker.db_outage import AWAY, Outage
    from inmind.apps.worker.postgres import WAIT

    outage = Outage()
    while True:
        try:
            memory = opened.enter_context(existing_memory(WITHOUT_DELAY))
        except AWAY as error:
            if once or isinstance(error, ReadOnly):
                raise
            outage.met(error)
            time.sleep(WAIT)
        else:
            outage.over()
            return memory


def _quieten() -> None:
    """The engine tells of each step of each job: what matters of it is told by us."""
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        for name in ("procrastinate", "psycopg.pool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _stop(*_: object) -> NoReturn:
    """SIGTERM is what Ctrl-C is: a dream that is going on says that it was stopped, and has changed nothing."""
    raise KeyboardInterrupt("the worker was stopped")
