"""A worker on a database: jobs until it is told to leave, or until nothing is left to do.

procrastinate runs the jobs, each in a thread. A database that is away for a while ends its worker, and here another one
is begun when it is back. Whoever is told to leave takes no more jobs, gives those that it has a moment, and lets go of
the rest: dreams stay as far as they came, and their jobs go back into the queue.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
from procrastinate import App
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker

from inmind.apps.worker.connector import TenantConnector
from inmind.apps.worker.db_outage import AWAY, Outage
from inmind.apps.worker.tasks import QUEUE, Told, Work, app_for
from inmind.core import metrics
from inmind.errors import Closed, InmindError, ReadOnly, StoreError
from inmind.jobs.upkeep import Housekeeping
from inmind.store.postgres import PostgresStore
from inmind.store.postgres.jobs import Jobs

log = logging.getLogger("inmind")

GRACE = 1.5
"""Seconds that jobs have to end by themselves, once a worker has to leave."""

PATIENCE = 5.0
"""Seconds that the queue has to hear of it: then its connections are shut, since somebody may wait for one."""

LOOKS = 0.1
"""Seconds between two looks at whether it has to leave."""

WAIT = 5.0
"""Seconds before a worker whose database is away tries again."""

LONG_ENOUGH = 600.0
"""Seconds of a consolidation, for a worker that is to come to an end by itself."""


class DatabaseWorker:
    def __init__(self, house: Housekeeping, jobs: Jobs, url: str, *, most: int, told: Told) -> None:
        """`most`: jobs at a time."""
        self._house, self._jobs, self._url, self._most, self._told = house, jobs, url, most, told
        self._leaving, self._outage = threading.Event(), Outage()
        self._worker: int | None = None
        """Its number in the queue, while it is there."""

    def run(self, every: float) -> None:
        """Until somebody says `leave`: a look around every so many seconds."""
        work = Work(self._house, self._jobs, self._told)
        rounds = threading.Thread(target=self._go_round, args=(work, every), name="inmind-rounds", daemon=True)
        while not self._leaving.is_set():
            try:
                self._jobs.make()
                if rounds.ident is None:
                    metrics.watch_queue(self._gauges)
                    rounds.start()
                asyncio.run(self._work(work, wait=True))
                if not self._leaving.is_set():
                    log.warning("the queue was left, though nobody said so: it is gone back to in %g s", WAIT)
            except ReadOnly:  # the queue is another version's, and stays so
                raise
            except StoreError as error:
                self._outage.met(error)
            except (ConnectorException, psycopg.Error, OSError) as error:
                self._queue_is_left(error)
            self._leaving.wait(WAIT)
        if rounds.ident is not None:
            rounds.join(GRACE)

    def run_once(self) -> None:
        """All that is due by now, and what waits in the queue; what has to be tried again later stays there."""
        self._jobs.make()
        now, work = self._house.clock(), Work(self._house, self._jobs, self._told, seconds=LONG_ENOUGH)
        work.sweep()
        work.look_around()
        found = 1
        while found and not self._leaving.is_set():
            asyncio.run(self._work(work, wait=False))
            found = work.look(now)  # what has come meanwhile

    def _look(self, work: Work, every: float) -> None:
        if isinstance(self._house.store, PostgresStore):
            self._house.store.clock.compare()
        work.look_around(every)

    def _go_round(self, work: Work, every: float) -> None:
        """Sweep, and look around, beside the queue: nothing that happens there keeps it from being looked at."""
        looks = time.monotonic()
        while not self._leaving.is_set():
            self._try("sweep", lambda: work.sweep(self._worker))
            if time.monotonic() >= looks:
                self._try("look around", lambda: self._look(work, every))
                looks = time.monotonic() + every
            self._leaving.wait(min(looks - time.monotonic(), self._unheard / 2))

    def _try(self, what: str, act: Callable[[], object]) -> None:
        """What fails is told, and tried again at the next round."""
        outcome = "failed"
        try:
            act()
            outcome = "done"
            self._outage.over()
        except Closed:
            return
        except AWAY as error:
            self._outage.met(error)
        except InmindError as error:
            log.warning("could not %s: %s", what, error)
        except Exception:
            log.exception("could not %s", what)
        finally:
            metrics.worked(task=what.replace(" ", "_"), outcome=outcome)

    def _queue_is_left(self, error: Exception) -> None:
        """The engine says that it had no connection, and not why: whoever asks for one of our own is told."""
        if self._leaving.is_set():
            return
        try:
            self._jobs.make()
        except StoreError as reason:
            self._outage.met(reason)
        else:
            self._outage.met(error)

    def leave(self) -> None:
        """From whichever thread, or from a signal."""
        if not self._leaving.is_set():
            self._leaving.set()
            later(GRACE, self._house.leave)

    @property
    def is_leaving(self) -> bool:
        return self._leaving.is_set()

    @property
    def _unheard(self) -> float:
        return self._house.settings.worker.stalled_seconds

    def _gauges(self) -> dict[str, float]:
        """Nothing, while the database is away, or once this worker has left: somebody may collect at the very end."""
        with suppress(StoreError, Closed):
            queue = self._jobs.queue(unheard=self._unheard)
            return {"waiting": queue.waiting, "running": queue.running, "lag": queue.waiting_seconds}
        return {}

    async def _work(self, work: Work, *, wait: bool) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(self._most + 2, thread_name_prefix="inmind-job"))
        connector = TenantConnector(self._url, self._jobs.schema, most=self._most + 2)
        app = app_for(work, connector)
        async with app.open_async():
            worker = self._of(app, wait=wait)
            stopping = asyncio.create_task(self._stop(worker, connector))
            try:
                await worker.run()
            finally:
                self._worker = None
                stopping.cancel()

    async def _stop(self, worker: Worker, connector: TenantConnector) -> None:
        """Whenever it is told to leave; and tell who it is in the queue. A signal cannot wake a loop by itself, and a
        worker that has only begun forgets that it was stopped: so somebody looks."""
        while not self._leaving.is_set():
            await asyncio.sleep(LOOKS)
            self._worker = worker.worker_id
        until = time.monotonic() + (GRACE if self._outage.goes_on else PATIENCE)
        while time.monotonic() < until:
            worker.stop()
            await asyncio.sleep(LOOKS)
        await connector.pool.close()

    def _of(self, app: App, *, wait: bool) -> Worker:
        settings = self._house.settings.worker
        return Worker(
            app,
            queues=[QUEUE],
            name=f"{socket.gethostname()}-{os.getpid()}",
            concurrency=self._most,
            wait=wait,
            fetch_job_polling_interval=settings.poll_seconds,
            listen_notify=False,
            delete_jobs="successful",
            install_signal_handlers=False,
            update_heartbeat_interval=settings.stalled_seconds / 3,
            stalled_worker_timeout=settings.stalled_seconds,
        )


def queue_of(house: Housekeeping) -> Jobs:
    if not isinstance(house.store, PostgresStore):
        raise TypeError("only a memory in a database has a queue")
    return Jobs(house.store.database)


def later(seconds: float, act: Callable[..., object], *args: object) -> None:
    """In a thread that keeps nobody from leaving before."""
    timer = threading.Timer(seconds, act, args)
    timer.daemon = True
    timer.start()
