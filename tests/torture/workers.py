"""Workers on a database, in separate processes that end at a chosen point."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torture.harness import ActorChannel
from torture.stages import PaidModel, record_answer

from inmind import Memory
from inmind.apps.worker.postgres import DatabaseWorker, job_queue
from inmind.core.events.dreams import DreamAnswered
from inmind.dreams.models import ModelReply, Question
from inmind.dreams.state import LEASE_DURATION
from inmind.jobs.dreaming import Dreamer
from inmind.jobs.upkeep import Upkeep
from inmind.memory.memory import upkeep_runner_of
from inmind.testing import ManualClock

SHORT = timedelta(seconds=1)
"""A lease short enough for a test to wait for."""

FAST_SETTINGS: Mapping[str, Any] = {
    "dream.first_minutes": 0,
    "dream.min_crystals": 1,
    "worker.poll_seconds": 0.05,
    "worker.stalled_seconds": 0.6,
}

NOTES = ("Ada prefers tabs over spaces", "The cat of Ada is called Pascal")

DONE = "done"
"""After all phases: the worker has finished the job, and the queue is not updated yet."""


class EndlessModel:
    """A model that never answers."""

    name = "endless"

    def __init__(self, on_request: Callable[[], object]) -> None:
        self._on_request = on_request

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- the port's
        self._on_request()
        threading.Event().wait()
        raise AssertionError("the model call was never stopped")


@contextmanager
def short_leases() -> Generator[None]:
    assert LEASE_DURATION > SHORT
    with patch("inmind.dreams.state.LEASE_DURATION", SHORT), patch("inmind.jobs.dream_lease.LEASE_DURATION", SHORT):
        yield


def fill(url: str, *resources: str) -> None:
    with Memory.open(url, embedder=None) as memory:
        for resource in resources:
            for note in NOTES:
                memory.resource(resource).note(note)


@contextmanager
def open_worker(
    url: str,
    *,
    model: Any = None,
    concurrency: int = 1,
    settings: Mapping[str, Any] | None = None,
    on_done: Callable[[str, Upkeep], None] | None = None,
    clock: Any = None,
    embedder: Any = None,
) -> Generator[DatabaseWorker]:
    all_settings = {**FAST_SETTINGS, **(settings or {})}
    with Memory.open(url, embedder=embedder, model=model, settings=all_settings, clock=clock) as memory:
        runner = upkeep_runner_of(memory)
        yield DatabaseWorker(
            runner, job_queue(runner), url, concurrency=concurrency, on_done=on_done or ignore_heartbeats
        )


def ignore_heartbeats(_: str, __: Upkeep) -> None:
    """The default callback."""


def die_in_phase(channel: ActorChannel, *, url: str, calls: str, phase: str) -> None:
    """Run all due jobs until the first dream reaches a phase, and die."""

    def kill() -> None:
        channel.report("ending", phase)
        os.kill(os.getpid(), signal.SIGKILL)

    report = Dreamer._report  # pyright: ignore[reportPrivateUsage]

    def stopping(dreamer: Dreamer, now: str, detail: str = "") -> None:
        if now == phase:
            kill()
        report(dreamer, now, detail)

    def on_done(_: str, done: Upkeep) -> None:
        if phase == DONE and done.dreams:
            kill()

    model = PaidModel(calls)
    with (
        short_leases(),
        patch.object(Dreamer, "_report", stopping),
        open_worker(url, model=model, on_done=on_done) as worker,
    ):
        worker.run_once()


def work_until_killed(channel: ActorChannel, *, url: str, calls: str) -> None:
    """Run until killed."""
    with (
        short_leases(),
        patch("inmind.apps.worker.postgres.RETRY_SECONDS", 0.2),
        open_worker(
            url,
            model=PaidModel(calls),
            settings={"worker.tries": 100},
            on_done=lambda owner, _: channel.report("maintained", owner),
        ) as worker,
    ):
        worker.run(1.0)


def die_after_answer(channel: ActorChannel, *, url: str, calls: str) -> None:
    """Work until a new answer is in the journal, and die."""

    def record_and_die(dreamer: Dreamer, answer: DreamAnswered) -> None:
        record_answer(dreamer, answer)
        channel.report("answered", answer.proposer)
        os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(Dreamer, "_record_answer", record_and_die):
        work_until_killed(channel, url=url, calls=calls)


def stop_during_model_call(channel: ActorChannel, *, url: str) -> None:
    """Stop on SIGTERM while a model call is running."""
    model = EndlessModel(lambda: channel.report("asked"))
    with open_worker(url, model=model) as worker:
        signal.signal(signal.SIGTERM, lambda _, __: worker.stop())
        worker.run(1.0)
    channel.report("left")


def dream_within_limits(
    channel: ActorChannel, *, url: str, calls: str, resources: list[str], limits: dict[str, Any]
) -> list[tuple[str, str]]:
    """Return proposer and outcome of each dream; one that has to wait is cancelled."""

    def dreamt(resource: str) -> tuple[str, str]:
        details: list[str] = []
        dream = memory.dream(
            resource,
            watch=lambda _, detail: details.append(detail),
            cancelled=lambda: bool(details) and details[-1].startswith("waiting until"),
        )
        return dream.by, dream.code or dream.status

    with Memory.open(url, embedder=None, model=PaidModel(calls), settings=limits, clock=ManualClock()) as memory:
        channel.wait()
        return [dreamt(resource) for resource in resources]


def count_requests(calls: Path) -> int:
    return len(calls.read_text().splitlines()) if calls.exists() else 0
