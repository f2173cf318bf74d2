"""`inmind status`: background work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from inmind.apps.cli.console import (
    json_option,
    open_existing_memory,
    print_json,
    print_lines,
    print_text,
    selected_place,
)
from inmind.apps.cli.upkeep import NO_START_DELAY
from inmind.apps.worker.status import MAX_COUNT, DreamStatus, WorkerStatus, get_status
from inmind.core.text import count_noun
from inmind.documents.notes_page import format_timestamp
from inmind.memory.memory import upkeep_runner_of
from inmind.store.protocol import QueueStatus


@json_option
def status(as_json: bool) -> None:
    """Show running and waiting background work. Changes nothing."""
    with open_existing_memory(NO_START_DELAY) as memory:
        upkeep, jobs = upkeep_runner_of(memory), None
        if not isinstance(selected_place(), Path):
            from inmind.apps.worker.postgres import job_queue

            jobs = job_queue(upkeep)
        worker_status = get_status(upkeep, jobs)
        if as_json:
            limits = [
                {"name": use.name, "used": use.used, "most": use.limit, "until": use.resets_at}
                for use in worker_status.limits
            ]
            return print_json({"place": memory.location, **asdict(worker_status), "limits": limits})
        print_text(memory.location)
        print_lines(_describe_status(worker_status))
    return None


def _describe_status(status: WorkerStatus) -> Iterator[str]:
    yield _line("queue", _describe_queue(status.queue))
    since = f", the oldest since {format_timestamp(status.due_since)}" if status.due_since else ""
    yield _line("due", f"{bounded_count_of(status.due, 'resource')}{since if status.due else ''}")
    yield _line(
        "index",
        f"{bounded_count_of(status.behind, 'resource')} behind, "
        f"{_bounded_count(status.without_vectors)} without embeddings",
    )
    for dream in status.dreams:
        yield _line("dream", _describe_running_dream(dream))
    for use in status.limits:
        yield _line(
            "limit", f"{use.name}: {_amount(use.used)} of {_amount(use.limit)}, until {format_timestamp(use.resets_at)}"
        )
    for one in status.given_up:
        until = f", until {format_timestamp(one.until)}" if one.until else ""
        yield _line("given up", f"{one.resource}: {one.reason}{until}")


def _describe_queue(queue: QueueStatus) -> str:
    waits = f" for {queue.waiting_seconds:g} s" if queue.waiting_seconds else ""
    parts = [f"{queue.waiting} waiting{waits}", f"{queue.running} running", f"{queue.stalled} stalled"]
    parts += [f"{queue.later} to be retried"] if queue.later else []
    parts += [f"{queue.failed} given up"]
    workers = "" if queue.workers is None else f"; {count_noun(queue.workers, 'worker')}"
    return ", ".join(parts) + workers


def _describe_running_dream(dream: DreamStatus) -> str:
    held = f"held by {dream.holder or 'an unknown process'} until {format_timestamp(dream.until)}"
    abandoned = f"abandoned, lease expired {format_timestamp(dream.until)}"
    state = held if dream.holds else abandoned
    return f"{dream.resource}: {dream.stage}, by {dream.by}, since {format_timestamp(dream.began)}, {state}"


def _amount(number: float) -> str:
    """Calls and tokens as integers, money to the millionth."""
    return f"{number:,.6f}".rstrip("0").rstrip(".")


def _line(label: str, text: str) -> str:
    return f"{label:<9} {text}"


def _bounded_count(count: int) -> str:
    return f"more than {MAX_COUNT}" if count > MAX_COUNT else str(count)


def bounded_count_of(count: int, noun: str) -> str:
    """A count with its noun; above MAX as "more than MAX"."""
    return f"more than {MAX_COUNT} {noun}s" if count > MAX_COUNT else count_noun(count, noun)
