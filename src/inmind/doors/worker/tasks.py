"""What workers on a database do, as jobs of procrastinate: look around, tend, embed, sweep.

What there is to do is in the database, and so is who does it: any number of workers may come and go. A worker that dies
leaves its job to the others, which repeat all of it; so a job is made of what may be repeated. Its dream has the key of
the job, and is gone on with, or left as it is, by whoever gets the job next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from procrastinate import App, BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.jobs import Job

from inmind import metrics
from inmind.errors import InmindError, ModelFailed
from inmind.housekeeping import Housekeeping, Upkeep
from inmind.lease import LeftOff
from inmind.stores.postgres.jobs import Jobs, Standing

log = logging.getLogger("inmind")

QUEUE = "inmind"

FIRST = 10
"""Of a job's priority: who looks around, or sweeps, waits for nobody."""

SLICE = 2.0
"""Seconds of a consolidation, or of making vectors, at a time: a worker that has to leave waits for no more."""

BACKOFF, LONGEST_BACKOFF = 5.0, 600.0
"""Seconds until a job that has failed is tried again: at first, and at most."""

GIVEN_UP = timedelta(hours=1)
"""For which nobody tries what has failed every time."""

QUIET, LONGEST_QUIET = timedelta(days=1), timedelta(days=30)
"""Until somebody looks again where nothing is due and nothing comes in: what only fades does so by days. An owner for
whom nothing has happened since the last look waits twice as long for the next."""

TOO_LONG = 900.0
"""Seconds that no job takes, whatever is heard of its worker; and never less than the model may think for."""

Told = Callable[[str, Upkeep], None]
"""Is told what was done, and for whom."""


@dataclass(frozen=True)
class Work:
    """All that the tasks have in common."""

    house: Housekeeping
    jobs: Jobs
    told: Told
    seconds: float = SLICE

    @property
    def tries(self) -> int:
        return self.house.settings.worker.tries

    def look_around(self) -> None:
        """A job for everybody for whom there is something to do, and one for vectors."""
        if self.house.deep().embedder is not None:
            self.jobs.defer("embed")
        self.jobs.look(self.house.clock())

    def tend(self, owner: str, job: Job) -> None:
        standing, began = self.jobs.standing(owner), self.house.clock()
        try:
            tended = self.house.tend(owner, self.seconds, shared=True, key=f"job {job.id} of {self.jobs.identity}")
        except LeftOff:
            raise
        except Exception as error:
            log.warning("%s was not looked after, try %d of %d: %s", owner, job.attempts + 1, self.tries, error)
            if job.attempts + 1 >= self.tries:
                self._give_up(owner, standing, _in_words(error))
            raise
        again = tended.again or began + quiet(standing, began)
        self.jobs.tended(owner, seen=standing.position, at=began, due=again)
        self.told(owner, tended.done)

    def embed(self) -> None:
        """For a while; an embedder that fails is asked again at the next look."""
        try:
            if not self.house.embed(self.seconds):
                self.jobs.defer("embed")
        except ModelFailed as error:
            log.warning("what is new has no vectors: %s", error)

    def sweep(self) -> int:
        """Jobs of workers that are dead; how many go on elsewhere."""
        settings = self.house.settings
        longest = max(TOO_LONG, 4 * settings.model.seconds)
        again, given_up = self.jobs.sweep(unheard=settings.worker.stalled_seconds, longest=longest, tries=self.tries)
        for job in again:
            log.warning("a worker is gone in the middle of %s: others go on with it", _named(job.task, job.owner))
            metrics.worked(task=job.task, outcome="stalled")
        for job in given_up:
            log.error("%s is given up: %d workers died of it", _named(job.task, job.owner), job.tries + 1)
            metrics.worked(task=job.task, outcome="failed")
            if job.owner:
                self._give_up(job.owner, self.jobs.standing(job.owner), f"{job.tries + 1} workers died of it")
        return len(again)

    def _give_up(self, owner: str, standing: Standing, reason: str) -> None:
        now = self.house.clock()
        self.jobs.tended(owner, seen=standing.position, at=now, due=now + GIVEN_UP, reason=reason)


def app_for(work: Work, connector: Any, *, every: float) -> App:
    """The tasks, for a worker. `every`: seconds between two looks around."""
    app = App(connector=connector)
    retry = Backoff(work.tries)
    swept = min(every, work.house.settings.worker.stalled_seconds / 2)

    @app.periodic(cron=cron(every))
    @app.task(name="look_around", queue=QUEUE, lock="look_around", queueing_lock="look_around", priority=FIRST)
    def look_around(timestamp: int) -> None:  # noqa: ARG001 -- as a periodic task has it
        with _counted("look_around"):
            work.look_around()

    @app.periodic(cron=cron(swept))
    # Without a lock: that of a sweep whose worker died would keep everybody from finding out.
    @app.task(name="sweep", queue=QUEUE, queueing_lock="sweep", priority=FIRST)
    def sweep(timestamp: int) -> None:  # noqa: ARG001 -- as a periodic task has it
        with _counted("sweep"):
            work.sweep()

    @app.task(name="embed", queue=QUEUE)
    def embed() -> None:
        with _counted("embed"):
            work.embed()

    @app.task(name="tend", queue=QUEUE, pass_context=True, retry=retry)
    def tend(context: JobContext, owner: str) -> None:
        with _counted("tend", last=context.job.attempts + 1 >= work.tries):
            work.tend(owner, context.job)

    return app


class Backoff(BaseRetryStrategy):
    """Again after a while, each time twice as long; at once where a worker had to leave."""

    def __init__(self, tries: int) -> None:
        self._tries = tries

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, LeftOff):
            return RetryDecision()
        if job.attempts + 1 >= self._tries:
            return None
        return RetryDecision(retry_in={"seconds": int(min(LONGEST_BACKOFF, BACKOFF * 2**job.attempts))})


def cron(every: float) -> str:
    """As near to every so many seconds as a calendar of minutes and seconds has it."""
    if every < 60:
        return f"* * * * * */{max(1, round(every))}"
    return f"*/{round(every / 60)} * * * *" if every < 3600 else "0 * * * *"


def quiet(standing: Standing, now: datetime) -> timedelta:
    """Until somebody looks again, if nothing happens."""
    if standing.has_news:
        return QUIET
    return min(LONGEST_QUIET, max(QUIET, 2 * (now - standing.tended)))


@contextmanager
def _counted(task: str, *, last: bool = True) -> Generator[None]:
    outcome = "failed" if last else "again"
    try:
        yield
        outcome = "done"
    except LeftOff:
        outcome = "left"
        raise
    finally:
        metrics.worked(task=task, outcome=outcome)


def _named(task: str, owner: str) -> str:
    return f"{task} {owner}".rstrip()


def _in_words(error: Exception) -> str:
    code = error.code if isinstance(error, InmindError) else type(error).__name__
    return f"{code}: {error}"
