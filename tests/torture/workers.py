"""Workers on a database in separate processes that end where a test wants them to."""

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
from torture.stages import BEHIND, PaidModel

from inmind import Memory
from inmind.apps.worker.postgres import DatabaseWorker, job_queue
from inmind.dreams.models import ModelReply, Question
from inmind.dreams.page.edits import Proposal
from inmind.dreams.state import LEASE_DURATION
from inmind.jobs.dreaming.lease import DreamLease
from inmind.jobs.upkeep import Upkeep
from inmind.memory.memory import upkeep_runner_of
from inmind.testing import ManualClock

SHORT = timedelta(seconds=1)
"""A lease that a test can wait for."""

QUICKLY: Mapping[str, Any] = {
    "dream.first_minutes": 0,
    "dream.min_crystals": 1,
    "worker.poll_seconds": 0.05,
    "worker.stalled_seconds": 0.6,
}

NOTES = ("Ada prefers tabs over spaces", "The cat of Ada is called Pascal")

DONE = "done"
"""Behind all stages: its worker knows that the job is done, and the queue does not yet."""


class EndlessModel:
    """A model that never answers."""

    name = "endless"

    def __init__(self, asked: Callable[[], object]) -> None:
        self._asked = asked

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- the port's
        self._asked()
        threading.Event().wait()
        raise AssertionError("the model call was never stopped")


@contextmanager
def leases_are_short() -> Generator[None]:
    assert LEASE_DURATION > SHORT
    with patch("inmind.dreams.state.LEASE_DURATION", SHORT), patch("inmind.jobs.dreaming.lease.LEASE_DURATION", SHORT):
        yield


def fill(url: str, *resources: str) -> None:
    with Memory.open(url, embedder=None) as memory:
        for resource in resources:
            for note in NOTES:
                memory.resource(resource).note(note)


@contextmanager
def a_worker(
    url: str,
    *,
    model: Any = None,
    most: int = 1,
    settings: Mapping[str, Any] | None = None,
    told: Callable[[str, Upkeep], None] | None = None,
    clock: Any = None,
    embedder: Any = None,
) -> Generator[DatabaseWorker]:
    given = {**QUICKLY, **(settings or {})}
    with Memory.open(url, embedder=embedder, model=model, settings=given, clock=clock) as memory:
        house = upkeep_runner_of(memory)
        yield DatabaseWorker(house, job_queue(house), url, concurrency=most, on_done=told or ignore_heartbeats)


def ignore_heartbeats(_: str, __: Upkeep) -> None:
    """Ignore the report."""


def killed_behind(voice: ActorChannel, *, url: str, calls: str, stage: str) -> None:
    """Run all due jobs until the first dream reaches a stage, and die."""

    def kill() -> None:
        voice.tell("ending", stage)
        os.kill(os.getpid(), signal.SIGKILL)

    tell = DreamLease.report_phase

    def stopping(lease: DreamLease, phase: str, detail: str = "") -> None:
        if phase == BEHIND.get(stage):
            kill()
        tell(lease, phase, detail)

    def told(_: str, done: Upkeep) -> None:
        if stage == DONE and done.dreams:
            kill()

    model = PaidModel(calls)
    with (
        leases_are_short(),
        patch.object(DreamLease, "report_phase", stopping),
        a_worker(url, model=model, told=told) as worker,
    ):
        worker.run_once()


def goes_on(voice: ActorChannel, *, url: str, calls: str) -> None:
    """Run until killed."""
    with (
        leases_are_short(),
        patch("inmind.apps.worker.postgres.RETRY_SECONDS", 0.2),
        a_worker(
            url,
            model=PaidModel(calls),
            settings={"worker.tries": 100},
            told=lambda owner, _: voice.tell("tended", owner),
        ) as worker,
    ):
        worker.run(1.0)


def dies_of_a_proposal(voice: ActorChannel, *, url: str, calls: str) -> None:
    """Work until a new proposal is in the journal, and die."""
    proposed = DreamLease.record_proposal

    def dying(lease: DreamLease, proposal: Proposal) -> None:
        proposed(lease, proposal)
        voice.tell("proposed", lease.dream)
        os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(DreamLease, "record_proposal", dying):
        goes_on(voice, url=url, calls=calls)


def leaves_in_the_middle(voice: ActorChannel, *, url: str) -> None:
    """Stop on SIGTERM while a model call is running."""
    model = EndlessModel(lambda: voice.tell("asked"))
    with a_worker(url, model=model) as worker:
        signal.signal(signal.SIGTERM, lambda _, __: worker.stop())
        worker.run(1.0)
    voice.tell("left")


def dreams_within(
    voice: ActorChannel, *, url: str, calls: str, resources: list[str], limits: dict[str, Any]
) -> list[tuple[str, str]]:
    """Proposer and outcome of each of these dreams; one that has to wait is cancelled."""

    def dreamt(resource: str) -> tuple[str, str]:
        told: list[str] = []
        dream = memory.dream(
            resource,
            watch=lambda _, detail: told.append(detail),
            cancelled=lambda: bool(told) and told[-1].startswith("waiting until"),
        )
        return dream.by, dream.code or dream.status

    with Memory.open(url, embedder=None, model=PaidModel(calls), settings=limits, clock=ManualClock()) as memory:
        voice.wait()
        return [dreamt(resource) for resource in resources]


def asked(calls: Path) -> int:
    return len(calls.read_text().splitlines()) if calls.exists() else 0
