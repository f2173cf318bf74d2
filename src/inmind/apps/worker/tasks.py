"""What workers on a database do: tend and embed as jobs of procrastinate, and beside the queue look around and sweep.

What there is to do is in the database, and so is who does it: any number of workers may come and go. A worker that dies
leaves its job to the others, which repeat all of it; so a job is made of what may be repeated. Its dream has the key of
the job, and is gone on with, or left as it is, by whoever gets the job next.
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
from inmind.jobs.dreaming.lease import LeftOff
from inmind.jobs.upkeep import Housekeeping, Upkeep
from inmind.store.postgres.jobs import Jobs, Standing

log = logging.getLogger("inmind")

QUEUE = "inmind"

SLICE = 2.0
"""Seconds of a consolidation, or of making vectors, at a time: a worker that has to leave waits for no more."""

EMBEDDING = 8
"""Jobs that make vectors at the same time, each of other resources."""

BACKOFF, LONGEST_BACKOFF = 5.0, 600.0
"""Seconds until a job that has failed is tried again: at first, and at most."""

GIVEN_UP = timedelta(hours=1)
"""For which nobody tries what has failed every time."""

QUIET, LONGEST_QUIET = timedelta(days=1), timedelta(days=30)
"""Until somebody looks again where nothing is due and nothing comes in: what only fades does so by days. An owner for
whom nothing has happened since the last look waits twice as long for the next."""

TOO_LONG = 900.0
"""Seconds that no job takes, whatever is heard of its worker; and never less than the model may think for."""

TO_TELL = 5.0
"""Seconds that the end of a job may take to be told to the queue."""

Told = Callable[[str, Upkeep], None]
"""Is told what was done, and for whom."""


class Work:
    """All that the tasks have in common, of one worker."""

    def __init__(self, house: Housekeeping, jobs: Jobs, told: Told, *, seconds: float = SLICE) -> None:
        self.house, self.jobs, self.told, self.seconds = house, jobs, told, seconds
        self._in_hand: set[int] = set()
        self._missed: dict[int, float] = {}
        """Jobs that the queue says are done here and are not, and since when."""

    @property
    def tries(self) -> int:
        return self.house.settings.worker.tries

    @contextmanager
    def has(self, job: Job) -> Generator[None]:
        """While it is done here."""
        id = job.id or 0
        self._in_hand.add(id)
        try:
            yield
        finally:
            self._in_hand.discard(id)

    def look_around(self, every: float = 0.0) -> None:
        """A job for everybody for whom there is something to do, and one for vectors; unless somebody else has just
        done so, in less than so many seconds."""
        self.house.read_settings()
        if not self.jobs.may_look(every):
            return
        if self.house.deep().vectors is not None:
            self.jobs.defer("embed")
        self.look(self.house.clock())

    def look(self, now: datetime) -> int:
        """A job for everybody for whom there is something to do by then, of dreams no more than may begin."""
        room = self.house.allowances.dreams()
        return self.jobs.look(now) if room is None else self.jobs.look(now, room)

    def tend(self, owner: str, job: Job) -> None:
        standing, began = self.jobs.standing(owner), self.house.clock()
        seen = [standing.position]
        try:
            tended = self.house.tend(
                owner,
                self.seconds,
                shared=True,
                key=f"job {job.id} of {self.jobs.identity}",
                ahead=partial(self.jobs.ahead, owner),
                settled=lambda: seen.append(self.jobs.standing(owner).position),  # what it has written is no news
            )
        except LeftOff:
            raise
        except Exception as error:
            log.warning("%s was not looked after, try %d of %d: %s", owner, job.attempts + 1, self.tries, error)
            if job.attempts + 1 >= self.tries:
                self._give_up(owner, standing, _in_words(error))
            raise
        again = tended.again or began + quiet(standing, began)
        self.jobs.tended(owner, seen=seen[-1], at=began, due=again, waits=tended.waits)
        self.told(owner, tended.done)

    def embed(self) -> None:
        """For a while, and where more is left than that by several; an embedder that fails is asked again at the next
        look."""
        try:
            if not self.house.embed(self.seconds):
                self.jobs.defer("embed", beside=EMBEDDING)
        except ModelFailed as error:
            log.warning("what is new has no vectors: %s", error)

    def sweep(self, worker: int | None = None) -> int:
        """Jobs of workers that are dead, and of this one that it does not have; how many go on elsewhere."""
        settings, lost = self.house.settings, self._lost(worker)
        unheard, longest = settings.worker.stalled_seconds, max(TOO_LONG, 4 * settings.model.seconds)
        again, given_up = self.jobs.sweep(unheard=unheard, longest=longest, tries=self.tries, lost=lost)
        for job in again:
            why = "its end could not be told" if job.id in lost else f"it took longer than {longest:g} s"
            why = f"its worker was not heard of for {unheard:g} s" if job.unheard else why
            log.warning("%s is begun again: %s", _named(job.task, job.owner), why)
            metrics.worked(task=job.task, outcome="stalled")
        for job in given_up:
            log.error("%s is given up: %d workers died of it", _named(job.task, job.owner), job.tries + 1)
            metrics.worked(task=job.task, outcome="failed")
            if job.owner:
                self._give_up(job.owner, self.jobs.standing(job.owner), f"{job.tries + 1} workers died of it")
        return len(again)

    def _lost(self, worker: int | None) -> list[int]:
        """Jobs that are over here, and whose end the queue was not told of: it was away just then."""
        if worker is None:
            return []
        now, missed = time.monotonic(), set(self.jobs.of_worker(worker)) - self._in_hand
        self._missed = {job: self._missed.get(job, now) for job in missed}
        return [job for job, since in self._missed.items() if now - since >= TO_TELL]

    def _give_up(self, owner: str, standing: Standing, reason: str) -> None:
        now = self.house.clock()
        self.jobs.tended(owner, seen=standing.position, at=now, due=now + GIVEN_UP, reason=reason)


def app_for(work: Work, connector: Any) -> App:
    app = App(connector=connector)

    @app.task(name="embed", queue=QUEUE, pass_context=True)
    def embed(context: JobContext) -> None:
        with work.has(context.job), _counted("embed"):
            work.embed()

    @app.task(name="tend", queue=QUEUE, pass_context=True, retry=Backoff(work.tries))
    def tend(context: JobContext, owner: str) -> None:
        with work.has(context.job), _counted("tend", last=context.job.attempts + 1 >= work.tries):
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
    except Exception as error:
        if task != "tend":  # who was not tended is told with the owner
            log.warning("%s failed: %s", task, _in_words(error))
        raise
    finally:
        metrics.worked(task=task, outcome=outcome)


def _named(task: str, owner: str) -> str:
    return f"{task} {owner}".rstrip()


def _in_words(error: Exception) -> str:
    code = error.code if isinstance(error, InmindError) else type(error).__name__
    return f"{code}: {error}"
