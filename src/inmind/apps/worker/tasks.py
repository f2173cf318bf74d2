"""Tasks of a database worker: upkeep and embedding as jobs, and periodic scans.

Work and its assignment are in the database, so workers can start and stop at any time. If a worker dies, another one
repeats its whole job; so every job can be repeated. A dream has the key of its job: the next worker resumes
it or leaves it as it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from procrastinate import App, BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.jobs import Job

from inmind.core import metrics
from inmind.errors import InmindError, ModelFailed
from inmind.jobs.dream_lease import LeaseReleased
from inmind.jobs.upkeep import Upkeep, UpkeepScheduler
from inmind.store.postgres.jobs import Jobs, OwnerStatus

log = logging.getLogger("inmind")

QUEUE = "inmind"

SLICE_SECONDS = 2.0
"""Time of one slice of consolidation or embedding: a stopping worker waits at most this long."""

MAX_EMBED_JOBS = 8
"""Maximum number of concurrent embedding jobs, each for other resources."""

BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 5.0, 600.0
"""Delay before the first retry of a failed job, and its maximum."""

GIVE_UP_DELAY = timedelta(hours=1)
"""Pause after the last retry has failed."""

IDLE_DELAY, MAX_IDLE_DELAY = timedelta(days=1), timedelta(days=30)
"""Time until an owner without due work is checked again. It doubles as long as there are no new events: only decay goes
on then, which takes days."""

MAX_JOB_SECONDS = 900.0
"""A longer job is treated as stalled even if its worker is alive; at least four times the model timeout."""

REPORT_SECONDS = 5.0
"""Time for the end of a job to be written to the queue."""

DoneCallback = Callable[[str, Upkeep], None]
"""Called with the owner and the result of its upkeep."""


class WorkerTasks:
    """The tasks of one worker and their shared state."""

    def __init__(
        self, upkeep: UpkeepScheduler, jobs: Jobs, on_done: DoneCallback, *, seconds: float = SLICE_SECONDS
    ) -> None:
        self.upkeep, self.jobs, self.on_done, self.seconds = upkeep, jobs, on_done, seconds
        self._running: set[int] = set()
        self._unreported_since: dict[int, float] = {}
        """Jobs that the queue assigns to this worker but that do not run here, and since when."""

    @property
    def tries(self) -> int:
        return self.upkeep.settings.worker.tries

    @contextmanager
    def running(self, job: Job, *, last: bool = True) -> Generator[None]:
        """Mark a job as running here for the block, and count its outcome.

        `last`: a failed job is not retried.
        """
        id, outcome = job.id or 0, "failed" if last else "again"
        self._running.add(id)
        try:
            yield
            outcome = "done"
        except LeaseReleased:
            outcome = "left"
            raise
        finally:
            self._running.discard(id)
            metrics.count_job(task=job.task_name, outcome=outcome)

    def scan(self, every: float = 0.0) -> None:
        """Enqueue due jobs and one embedding job, unless another worker did within `every` seconds."""
        self.upkeep.reload_settings()
        if not self.jobs.claim_scan(every):
            return
        if self.upkeep.search.engine.crystal_embedder is not None:
            self.jobs.enqueue("embed")
        self.enqueue_due(self.upkeep.clock())

    def enqueue_due(self, now: datetime) -> int:
        """Enqueue one upkeep job per resource with due work; dreams only up to the rate limit."""
        room = self.upkeep.rate_limits.dreams_available()
        return self.jobs.enqueue_due(now) if room is None else self.jobs.enqueue_due(now, room)

    def maintain(self, owner: str, job: Job) -> None:
        status, began = self.jobs.owner_status(owner), self.upkeep.clock()
        positions = [status.position]
        try:
            result = self.upkeep.maintain(
                owner,
                self.seconds,
                shared=True,
                key=f"job {job.id} of {self.jobs.identity}",
                count_waiting=partial(self.jobs.dreams_ahead, owner),
                # Events of the upkeep are not new work.
                on_written=lambda: positions.append(self.jobs.owner_status(owner).position),
            )
        except LeaseReleased:
            raise
        except Exception as error:
            log.warning("upkeep of %s failed, attempt %d of %d: %s", owner, job.attempts + 1, self.tries, error)
            if job.attempts + 1 >= self.tries:
                self._give_up(owner, status, _error_text(error))
            raise
        due = result.next_at or began + idle_delay(status, began)
        self.jobs.mark_maintained(
            owner, position=positions[-1], at=began, due=due, waits_for_dream=result.waits_for_limit
        )
        self.on_done(owner, result.done)

    def embed(self) -> None:
        """Embed for one slice; enqueue more jobs if work is left.

        A failing embedder is retried at the next scan.
        """
        try:
            if not self.upkeep.embed(self.seconds):
                self.jobs.enqueue("embed", concurrency=MAX_EMBED_JOBS)
        except ModelFailed as error:
            log.warning("embedding failed, will be retried: %s", error)
        except Exception as error:
            log.warning("embed failed: %s", _error_text(error))
            raise

    def recover_jobs(self, worker: int | None = None) -> int:
        """Requeue jobs of dead workers and jobs lost by this one; return their number."""
        settings, lost = self.upkeep.settings, self._unreported_jobs(worker)
        dead_after, max_seconds = settings.worker.stalled_seconds, max(MAX_JOB_SECONDS, 4 * settings.model.seconds)
        restarted, given_up = self.jobs.recover_stalled(
            dead_after=dead_after, max_seconds=max_seconds, max_attempts=self.tries, lost=lost
        )
        for job in restarted:
            if job.is_worker_dead:
                why = f"no heartbeat of its worker for {dead_after:g} s"
            elif job.id in lost:
                why = "its end could not be written to the queue"
            else:
                why = f"it took longer than {max_seconds:g} s"
            log.warning("restarting job %s: %s", _job_name(job.task, job.owner), why)
            metrics.count_job(task=job.task, outcome="stalled")
        for job in given_up:
            why = f"{job.attempts + 1} workers died during it"
            log.error("giving up job %s: %s", _job_name(job.task, job.owner), why)
            metrics.count_job(task=job.task, outcome="failed")
            if job.owner:
                self._give_up(job.owner, self.jobs.owner_status(job.owner), why)
        return len(restarted)

    def _unreported_jobs(self, worker: int | None) -> list[int]:
        """Jobs that have ended here but whose end could not be written to the queue."""
        if worker is None:
            return []
        now, missed = time.monotonic(), set(self.jobs.jobs_of_worker(worker)) - self._running
        self._unreported_since = {job: self._unreported_since.get(job, now) for job in missed}
        return [job for job, since in self._unreported_since.items() if now - since >= REPORT_SECONDS]

    def _give_up(self, owner: str, status: OwnerStatus, reason: str) -> None:
        now = self.upkeep.clock()
        self.jobs.mark_maintained(owner, position=status.position, at=now, due=now + GIVE_UP_DELAY, reason=reason)


def app_for(work: WorkerTasks, connector: Any) -> App:
    app = App(connector=connector)

    @app.task(name="embed", queue=QUEUE, pass_context=True)
    def embed(context: JobContext) -> None:
        with work.running(context.job):
            work.embed()

    @app.task(name="tend", queue=QUEUE, pass_context=True, retry=JobBackoff(work.tries))
    def maintain(context: JobContext, owner: str) -> None:
        with work.running(context.job, last=context.job.attempts + 1 >= work.tries):
            work.maintain(owner, context.job)

    return app


class JobBackoff(BaseRetryStrategy):
    """Exponential backoff; no delay if the worker was stopped."""

    def __init__(self, tries: int) -> None:
        self._tries = tries

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, LeaseReleased):
            return RetryDecision()
        if job.attempts + 1 >= self._tries:
            return None
        return RetryDecision(retry_in={"seconds": int(min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2**job.attempts))})


def idle_delay(status: OwnerStatus, now: datetime) -> timedelta:
    """Time until the next check if there are no new events."""
    if status.has_new_events:
        return IDLE_DELAY
    return min(MAX_IDLE_DELAY, max(IDLE_DELAY, 2 * (now - status.maintained_at)))


def _job_name(task: str, owner: str) -> str:
    return f"{task} {owner}".rstrip()


def _error_text(error: Exception) -> str:
    code = error.code if isinstance(error, InmindError) else type(error).__name__
    return f"{code}: {error}"
