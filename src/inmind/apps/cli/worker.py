"""`inmind worker`: takes jobs from a database queue, or runs upkeep on a home in a loop."""

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
from typing import NoReturn

import click

from inmind.apps.cli import EXIT_SIGTERM
from inmind.apps.cli.console import open_existing_memory, print_lines, print_text, selected_place
from inmind.apps.cli.exit_codes import print_error
from inmind.apps.cli.status import bounded_count_of
from inmind.apps.cli.upkeep import NO_START_DELAY, describe_upkeep, upkeep_json
from inmind.apps.signals import handle_signals
from inmind.apps.worker.folder import run_rounds, run_until_done
from inmind.apps.worker.status import RemainingWork, remaining_work
from inmind.core.text import count_noun
from inmind.documents.notes_page import format_timestamp
from inmind.errors import InvalidInput, ReadOnly
from inmind.jobs.upkeep import Upkeep
from inmind.memory.memory import MAX_UPKEEP_INTERVAL_SECONDS, Memory, upkeep_runner_of

MAX_JOBS = 64

SHUTDOWN_SECONDS = 8.0
"""Time a worker has to stop after a signal; unfinished jobs are taken over by other workers."""


@click.option("--every", default=60.0, help="Seconds between two scans for due work.")
@click.option("--jobs", default=1, help="Number of concurrent jobs, on a database.")
@click.option("--once", is_flag=True, help="Do what is due and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per result.")
def worker(every: float, jobs: int, once: bool, as_json: bool) -> None:
    """Run upkeep continuously until Ctrl-C or SIGTERM. Any number of workers can run at once."""
    if not 0 < every <= MAX_UPKEEP_INTERVAL_SECONDS:
        raise InvalidInput(
            field="every", value=every, expected=f"more than 0 and at most {MAX_UPKEEP_INTERVAL_SECONDS:,}"
        )
    if not 1 <= jobs <= MAX_JOBS:
        raise InvalidInput(field="jobs", value=jobs, expected=f"from 1 to {MAX_JOBS}")
    place, out = selected_place(), _WorkerOutput(as_json=as_json)
    if not isinstance(place, Path):
        _run_on_database(place, out, every=every, jobs=jobs, once=once)
    elif jobs > 1:
        raise InvalidInput(field="jobs", value=jobs, expected="1 on a home folder: start more workers instead")
    else:
        _run_on_home(out, every=every, once=once)


class _WorkerOutput:
    """Output of the worker, from any thread."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json, self._lock = as_json, threading.Lock()

    def print_note(self, text: str) -> None:
        if not self._as_json:
            print_text(text)

    def print_upkeep(self, done: Upkeep) -> None:
        lines = list(describe_upkeep(done))
        with self._lock:
            if lines and self._as_json:
                print(json.dumps(upkeep_json(done), ensure_ascii=False), flush=True)
            elif lines:
                print_lines(lines)

    def print_summary(self, remaining: RemainingWork) -> None:
        waits = remaining.dreams or remaining.jobs
        self.print_note("All other due work is done." if waits else "All due work is done.")
        if remaining.dreams:
            limits = [f"{use.name} reached until {format_timestamp(use.resets_at)}" for use in remaining.limits]
            self.print_note(
                f"Waiting: {bounded_count_of(remaining.dreams, 'dream')}, {' and '.join(limits) or 'runs on request'}."
            )
        if remaining.jobs:
            self.print_note(f"To be retried: {count_noun(remaining.jobs, 'failed job')}.")


def _run_on_home(out: _WorkerOutput, *, every: float, once: bool) -> None:

    with (
        handle_signals(_stop, signal.SIGINT, signal.SIGTERM),
        open_existing_memory(NO_START_DELAY if once else None) as memory,
    ):
        upkeep = upkeep_runner_of(memory)
        rounds: Iterable[Upkeep] = run_until_done(upkeep)
        if not once:
            out.print_note(f"Running upkeep on {memory.location} every {every:g} s.")
            rounds = run_rounds(upkeep, every, lambda error: print_error(error.code, str(error)))
        with suppress(KeyboardInterrupt):
            for done in rounds:
                out.print_upkeep(done)
            return out.print_summary(remaining_work(upkeep, None))
        out.print_note("Stopped.")
    return None


def _run_on_database(url: str, out: _WorkerOutput, *, every: float, jobs: int, once: bool) -> None:
    from inmind.apps.worker.postgres import DatabaseWorker, job_queue, run_later

    with ExitStack() as opened:
        _silence_libraries()
        try:
            with handle_signals(_stop, signal.SIGINT, signal.SIGTERM):
                memory = _open_when_available(opened, once=once)
        except KeyboardInterrupt:
            return out.print_note("Stopped.")
        upkeep = upkeep_runner_of(memory)
        queue = job_queue(upkeep)
        database_worker = DatabaseWorker(
            upkeep, queue, url, concurrency=jobs, on_done=lambda _, done: out.print_upkeep(done)
        )

        def stop_worker(*_: object) -> None:
            database_worker.stop()
            run_later(SHUTDOWN_SECONDS, os._exit, EXIT_SIGTERM)

        with handle_signals(stop_worker, signal.SIGINT, signal.SIGTERM):
            if once:
                database_worker.run_once()
            else:
                out.print_note(
                    f"Running upkeep on {memory.location} every {every:g} s, {count_noun(jobs, 'concurrent job')}."
                )
                database_worker.run(every)
            return (
                out.print_note("Stopped.")
                if database_worker.is_stopping
                else out.print_summary(remaining_work(upkeep, queue))
            )


def _open_when_available(opened: ExitStack, *, once: bool) -> Memory:
    """Open the memory; wait while its database is unreachable, as a running worker does."""
    from inmind.apps.worker.postgres import OUTAGE_ERRORS, RETRY_SECONDS, Outage

    outage = Outage()
    while True:
        try:
            memory = opened.enter_context(open_existing_memory(NO_START_DELAY))
        except OUTAGE_ERRORS as error:
            if once or isinstance(error, ReadOnly):
                raise
            outage.record(error)
            time.sleep(RETRY_SECONDS)
        else:
            outage.end()
            return memory


def _silence_libraries() -> None:
    """Hide the logs of the job queue libraries unless debug logs are on.

    The worker itself reports relevant errors.
    """
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        for name in ("procrastinate", "psycopg.pool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _stop(*_: object) -> NoReturn:
    """Treat SIGTERM like Ctrl-C.

    A running dream records that it was stopped and changes nothing.
    """
    raise KeyboardInterrupt("the worker was stopped")
