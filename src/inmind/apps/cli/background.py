"""Background work: `upkeep` runs it once, `worker` continuously, `status` shows it."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from inmind.apps.cli import EXIT_SIGTERM
from inmind.apps.cli.console import (
    CommandResult,
    open_existing_memory,
    print_lines,
    print_text,
    prints_result,
    progress_bar,
    selected_place,
)
from inmind.apps.cli.exit_codes import print_error
from inmind.apps.cli.resource_commands import describe_dream, dream_summary_json
from inmind.apps.signals import handle_signals
from inmind.apps.worker.status import MAX_COUNT, WorkerStatus, bounded_count, describe_remaining_work, get_status
from inmind.core.text import count_noun
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.state import ActiveDream
from inmind.errors import InmindError, InvalidInput, ReadOnly
from inmind.jobs.upkeep import Upkeep, UpkeepScheduler
from inmind.memory.memory import MAX_UPKEEP_INTERVAL_SECONDS, Memory, upkeep_runner_of
from inmind.store.protocol import QueueStatus

if TYPE_CHECKING:
    from inmind.store.postgres.jobs import Jobs

NO_START_DELAY = {"dream.first_minutes": 0}
"""Setting without the start delay: a process that runs one round must not wait five minutes."""

MAX_JOBS = 64

ROUND_SECONDS = 10.0
"""Time of one round on a home; the rest continues in the next round without a pause."""

SHUTDOWN_SECONDS = 8.0
"""Time a worker has to stop after a signal; unfinished jobs are taken over by other workers."""


@click.option("--seconds", default=60.0, help="Maximum run time, approximately.")
@prints_result
def upkeep(seconds: float) -> CommandResult:
    """Run the upkeep that is due once: consolidation, dreams, embeddings. For all resources."""
    with open_existing_memory(NO_START_DELAY) as memory, progress_bar("upkeep"):
        done = memory.run_upkeep(seconds=seconds)
    last = "Upkeep finished." if done.finished else f"Stopped after {seconds:g} s; the next upkeep continues."
    return _upkeep_json(done), [*_describe_upkeep(done), last]


def _describe_upkeep(done: Upkeep) -> Iterator[str]:
    """One line per result."""
    for resource, one in done.consolidated.items():
        if one.merged or one.superseded or one.expired:
            yield f"{resource}: {one.merged} merged, {one.superseded} superseded, {one.expired} expired."
    if done.notes:
        yield f"{count_noun(done.notes, 'note')} added about affect levels that stay high."
    for dream in done.dreams:
        yield next(describe_dream(dream))


def _upkeep_json(done: Upkeep) -> dict[str, Any]:
    return {
        "finished": done.finished,
        "consolidated": {resource: asdict(one) for resource, one in done.consolidated.items()},
        "notes": done.notes,
        "dreams": [dream_summary_json(dream) for dream in done.dreams],
    }


@prints_result
def status() -> CommandResult:
    """Show running and waiting background work. Changes nothing."""
    with open_existing_memory(NO_START_DELAY) as memory:
        upkeep, jobs = upkeep_runner_of(memory), None
        if not isinstance(selected_place(), Path):
            from inmind.apps.worker.postgres import job_queue

            jobs = job_queue(upkeep)
        worker_status, now = get_status(upkeep, jobs), upkeep.clock()
    limits = [
        {"name": use.name, "used": use.used, "most": use.limit, "until": use.resets_at} for use in worker_status.limits
    ]
    lines = [memory.location, *(f"{label:<9} {text}" for label, text in _describe_status(worker_status, now))]
    dreams = [_running_dream_json(resource, dream, now) for resource, dream in worker_status.dreams.items()]
    return {"place": memory.location, **asdict(worker_status), "dreams": dreams, "limits": limits}, lines


def _describe_status(status: WorkerStatus, now: datetime) -> Iterator[tuple[str, str]]:
    yield "queue", _describe_queue(status.queue)
    since = f", the oldest since {format_timestamp(status.due_since)}" if status.due_since else ""
    yield "due", f"{bounded_count(status.due, 'resource')}{since if status.due else ''}"
    without_vectors = f"more than {MAX_COUNT}" if status.without_vectors > MAX_COUNT else status.without_vectors
    yield "index", f"{bounded_count(status.behind, 'resource')} behind, {without_vectors} without embeddings"
    for resource, dream in status.dreams.items():
        yield "dream", _describe_running_dream(resource, dream, now)
    for use in status.limits:
        used = f"{_amount(use.used)} of {_amount(use.limit)}"
        yield "limit", f"{use.name}: {used}, until {format_timestamp(use.resets_at)}"
    for one in status.given_up:
        until = f", until {format_timestamp(one.until)}" if one.until else ""
        yield "given up", f"{one.resource}: {one.reason}{until}"


def _describe_queue(queue: QueueStatus) -> str:
    waits = f" for {queue.waiting_seconds:g} s" if queue.waiting_seconds else ""
    later = f"{queue.later} to be retried, " if queue.later else ""
    workers = "" if queue.workers is None else f"; {count_noun(queue.workers, 'worker')}"
    return (
        f"{queue.waiting} waiting{waits}, {queue.running} running, {queue.stalled} stalled, "
        f"{later}{queue.failed} given up{workers}"
    )


def _describe_running_dream(resource: str, dream: ActiveDream, now: datetime) -> str:
    until = format_timestamp(dream.lease_until)
    if dream.is_held(now):
        state = f"held by {dream.holder or 'an unknown process'} until {until}"
    else:
        state = f"abandoned, lease expired {until}"
    began = format_timestamp(dream.started_at)
    return f"{resource}: {dream.phase}, by {dream.proposer}, since {began}, {state}"


def _running_dream_json(resource: str, dream: ActiveDream, now: datetime) -> dict[str, Any]:
    return {
        "resource": resource,
        "dream": dream.dream,
        "stage": dream.phase,
        "by": dream.proposer,
        "trigger": dream.trigger,
        "holder": dream.holder,
        "began": dream.started_at,
        "until": dream.lease_until,
        "holds": dream.is_held(now),
    }


def _amount(number: float) -> str:
    """Calls and tokens as integers, money to the millionth."""
    return f"{number:,.6f}".rstrip("0").rstrip(".")


@click.option("--every", default=60.0, help="Seconds between two scans for due work.")
@click.option("--jobs", default=1, help="Number of concurrent jobs, on a database.")
@click.option("--once", is_flag=True, help="Do what is due and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per result.")
def worker(every: float, jobs: int, once: bool, as_json: bool) -> None:
    """Run upkeep continuously until Ctrl-C or SIGTERM. Any number of workers can run at once."""
    if not 0 < every <= MAX_UPKEEP_INTERVAL_SECONDS:
        expected = f"more than 0 and at most {MAX_UPKEEP_INTERVAL_SECONDS:,}"
        raise InvalidInput(field="every", value=every, expected=expected)
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
        lines = list(_describe_upkeep(done))
        with self._lock:
            if lines and self._as_json:
                print(json.dumps(_upkeep_json(done), ensure_ascii=False), flush=True)
            elif lines:
                print_lines(lines)

    def print_summary(self, upkeep: UpkeepScheduler, jobs: Jobs | None) -> None:
        for line in describe_remaining_work(upkeep, jobs):
            self.print_note(line)


def _run_on_home(out: _WorkerOutput, *, every: float, once: bool) -> None:
    """Run upkeep on a home, until nothing due is left or, without `once`, forever.

    Several workers can share a home: leases and the store prevent double work.
    """
    with (
        handle_signals(_stop, signal.SIGINT, signal.SIGTERM),
        open_existing_memory(NO_START_DELAY if once else None) as memory,
    ):
        upkeep = upkeep_runner_of(memory)
        if not once:
            out.print_note(f"Running upkeep on {memory.location} every {every:g} s.")
        with suppress(KeyboardInterrupt):
            while True:
                is_finished = _run_round(upkeep, out, once=once)
                if is_finished and once:
                    return out.print_summary(upkeep, None)
                if is_finished:
                    time.sleep(every)
        out.print_note("Stopped.")
    return None


def _run_round(upkeep: UpkeepScheduler, out: _WorkerOutput, *, once: bool) -> bool:
    """Run upkeep for one round; True if no due work is left.

    With `once`, an error ends the worker.
    """
    try:
        if not once:
            upkeep.reload_settings()
        done = upkeep.run(ROUND_SECONDS, shared=True)
    except InmindError as error:
        if once:
            raise
        print_error(error.code, str(error))  # for example a full disk: the next round tries again
        return True
    out.print_upkeep(done)
    return done.finished


def _run_on_database(url: str, out: _WorkerOutput, *, every: float, jobs: int, once: bool) -> None:
    from inmind.apps.worker.postgres import DatabaseWorker, job_queue, run_later

    with ExitStack() as opened:
        if not logging.getLogger().isEnabledFor(logging.DEBUG):  # the worker itself reports relevant errors
            for name in ("procrastinate", "psycopg.pool"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
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
                count = count_noun(jobs, "concurrent job")
                out.print_note(f"Running upkeep on {memory.location} every {every:g} s, {count}.")
                database_worker.run(every)
            if database_worker.is_stopping:
                return out.print_note("Stopped.")
            return out.print_summary(upkeep, queue)


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


def _stop(*_: object) -> NoReturn:
    """Treat SIGTERM like Ctrl-C.

    A running dream records that it was stopped and changes nothing.
    """
    raise KeyboardInterrupt("the worker was stopped")
