"""A worker on a database: runs jobs until it is stopped, or until nothing is left to do.

procrastinate runs the jobs, each in a thread. A database outage ends its worker; a new one is started when the database
is back. A stopping worker takes no more jobs, waits a moment for running ones, and releases the rest: dreams keep their
progress, and their jobs return to the queue.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker
from psycopg import sql
from psycopg_pool import AsyncConnectionPool

from inmind.apps.worker.tasks import QUEUE, DoneCallback, WorkerTasks, app_for
from inmind.core import metrics
from inmind.errors import Closed, InmindError, OutcomeUnknown, ReadOnly, StoreBusy, StoreError, StoreUnavailable
from inmind.jobs.upkeep import UpkeepScheduler
from inmind.store.postgres import PostgresStore
from inmind.store.postgres.connection import conninfo_for
from inmind.store.postgres.jobs import Jobs

log = logging.getLogger("inmind")

GRACE_SECONDS = 1.5
"""Time for running jobs to finish after a stop."""

STOP_SECONDS = 5.0
"""Time for procrastinate to stop; then its connections are closed, since a job may be waiting for one."""

POLL_SECONDS = 0.1
"""Interval of the check for a stop."""

RETRY_SECONDS = 5.0
"""Delay before another attempt during an outage."""

ONCE_SLICE_SECONDS = 600.0
"""Time of one consolidation with `run_once`."""


class DatabaseWorker:
    def __init__(
        self, upkeep: UpkeepScheduler, jobs: Jobs, url: str, *, concurrency: int, on_done: DoneCallback
    ) -> None:
        """`concurrency`: maximum number of concurrent jobs."""
        self._upkeep, self._jobs, self._url, self._concurrency, self._on_done = upkeep, jobs, url, concurrency, on_done
        self._stopping, self._outage = threading.Event(), Outage()
        self._worker: int | None = None
        """Its id in the queue, while it is registered."""

    def run(self, every: float) -> None:
        """Run until `stop`; scan for due work every `every` seconds."""
        work = WorkerTasks(self._upkeep, self._jobs, self._on_done)
        rounds = threading.Thread(target=self._scan_loop, args=(work, every), name="inmind-rounds", daemon=True)
        while not self._stopping.is_set():
            try:
                self._jobs.create_tables()
                if rounds.ident is None:
                    metrics.observe_queue(self._gauges)
                    rounds.start()
                asyncio.run(self._run_jobs(work, wait=True))
                if not self._stopping.is_set():
                    log.warning("worker stopped unexpectedly, restarting in %g s", RETRY_SECONDS)
            except ReadOnly:  # the schema of the queue has another version
                raise
            except StoreError as error:
                self._outage.record(error)
            except (ConnectorException, psycopg.Error, OSError) as error:
                self._record_queue_error(error)
            self._stopping.wait(RETRY_SECONDS)
        if rounds.ident is not None:
            rounds.join(GRACE_SECONDS)

    def run_once(self) -> None:
        """Run all due work and all queued jobs; jobs with a later retry stay in the queue."""
        self._jobs.create_tables()
        now = self._upkeep.clock()
        work = WorkerTasks(self._upkeep, self._jobs, self._on_done, seconds=ONCE_SLICE_SECONDS)
        work.recover_jobs()
        work.scan()
        enqueued = 1
        while enqueued and not self._stopping.is_set():
            asyncio.run(self._run_jobs(work, wait=False))
            enqueued = work.enqueue_due(now)  # work that became due in between

    def _scan(self, work: WorkerTasks, every: float) -> None:
        if isinstance(self._upkeep.store, PostgresStore):
            self._upkeep.store.clock.synchronize()
        work.scan(every)

    def _scan_loop(self, work: WorkerTasks, every: float) -> None:
        """Recover jobs and scan for due work in a separate thread.

        Problems of the queue cannot stop it.
        """
        next_scan = time.monotonic()
        while not self._stopping.is_set():
            self._try("sweep", lambda: work.recover_jobs(self._worker))
            if time.monotonic() >= next_scan:
                self._try("look_around", lambda: self._scan(work, every))
                next_scan = time.monotonic() + every
            self._stopping.wait(min(next_scan - time.monotonic(), self._stalled_seconds / 2))

    def _try(self, task: str, action: Callable[[], object]) -> None:
        """Run a periodic task; log an error, and try again in the next round."""
        outcome = "failed"
        try:
            action()
            outcome = "done"
            self._outage.end()
        except Closed:
            return
        except OUTAGE_ERRORS as error:
            self._outage.record(error)
        except InmindError as error:
            log.warning("%s failed: %s", task, error)
        except Exception:
            log.exception("%s failed", task)
        finally:
            metrics.count_job(task=task, outcome=outcome)

    def _record_queue_error(self, error: Exception) -> None:
        """Record an outage.

        procrastinate does not report the reason of a failed connection, so a connection of ours is tried.
        """
        if self._stopping.is_set():
            return
        try:
            self._jobs.create_tables()
        except StoreError as reason:
            self._outage.record(reason)
        else:
            self._outage.record(error)

    def stop(self) -> None:
        """Stop the worker. Can be called from any thread or a signal handler."""
        if not self._stopping.is_set():
            self._stopping.set()
            run_later(GRACE_SECONDS, self._upkeep.release)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def _stalled_seconds(self) -> float:
        return self._upkeep.settings.worker.stalled_seconds

    def _gauges(self) -> dict[str, float]:
        """Queue metrics; empty during an outage or after the worker has stopped."""
        with suppress(StoreError, Closed):
            queue = self._jobs.queue_status(dead_after=self._stalled_seconds)
            return {"waiting": queue.waiting, "running": queue.running, "lag": queue.waiting_seconds}
        return {}

    async def _run_jobs(self, work: WorkerTasks, *, wait: bool) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(self._concurrency + 2, thread_name_prefix="inmind-job"))
        connector = TenantConnector(self._url, self._jobs.schema, max_connections=self._concurrency + 2)
        app = app_for(work, connector)
        async with app.open_async():
            worker = self._make_worker(app, wait=wait)
            stopping = asyncio.create_task(self._watch_stop(worker, connector))
            try:
                await worker.run()
            finally:
                self._worker = None
                stopping.cancel()

    async def _watch_stop(self, worker: Worker, connector: TenantConnector) -> None:
        """Stop the procrastinate worker when asked, and keep track of its id.

        Polls, because a signal handler cannot wake the event loop, and a worker that is still starting forgets `stop`.
        """
        while not self._stopping.is_set():
            await asyncio.sleep(POLL_SECONDS)
            self._worker = worker.worker_id
        until = time.monotonic() + (GRACE_SECONDS if self._outage.is_active else STOP_SECONDS)
        while time.monotonic() < until:
            worker.stop()
            await asyncio.sleep(POLL_SECONDS)
        await connector.pool.close()

    def _make_worker(self, app: App, *, wait: bool) -> Worker:
        settings = self._upkeep.settings.worker
        return Worker(
            app,
            queues=[QUEUE],
            name=f"{socket.gethostname()}-{os.getpid()}",
            concurrency=self._concurrency,
            wait=wait,
            fetch_job_polling_interval=settings.poll_seconds,
            listen_notify=False,
            delete_jobs="successful",
            install_signal_handlers=False,
            update_heartbeat_interval=settings.stalled_seconds / 3,
            stalled_worker_timeout=settings.stalled_seconds,
        )


def job_queue(upkeep: UpkeepScheduler) -> Jobs:
    if not isinstance(upkeep.store, PostgresStore):
        raise TypeError("only a PostgreSQL memory has a queue")
    return Jobs(upkeep.store.database)


def run_later(seconds: float, action: Callable[..., object], *args: object) -> None:
    """Call a function after a delay, in a daemon thread."""
    timer = threading.Timer(seconds, action, args)
    timer.daemon = True
    timer.start()


_TABLE_PREFIX = re.compile(r"\bprocrastinate_")


class TenantConnector(PsycopgConnector):
    """A procrastinate connector that is limited to the schema of a tenant.

    procrastinate's statements name no schema and depend on the session's search path, which a transaction pooler does
    not keep. So the schema is inserted into each statement.
    """

    def __init__(self, url: str, schema: str, *, max_connections: int) -> None:
        """`max_connections`: of this worker, in addition to those of the memory."""
        super().__init__(  # pyright: ignore[reportUnknownMemberType] -- some parameters are untyped
            pool_factory=AsyncConnectionPool,
            conninfo=conninfo_for(url),
            kwargs={"prepare_threshold": None},
            min_size=1,
            max_size=max_connections,
        )
        name = sql.Identifier(schema).as_string(None)
        self._prefix = f"{name}.procrastinate_".replace("%", "%%").replace("\\", "\\\\")

    def qualify(self, query: str) -> Any:
        return cast(Any, _TABLE_PREFIX.sub(self._prefix, query))

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        await super().execute_query_async(self.qualify(query), **arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        return await super().execute_query_one_async(self.qualify(query), **arguments)

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        return await super().execute_query_all_async(self.qualify(query), **arguments)


OUTAGE_ERRORS = (StoreUnavailable, StoreBusy, ReadOnly, OutcomeUnknown)
"""Temporary errors. Retrying is safe: everything in a round can be repeated."""


REMINDER_SECONDS = 600.0
"""Interval of the log message during an outage."""


class Outage:
    """Logs the start and the end of a database outage, and a reminder in between.

    The object is safe for threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._logged_at = 0.0

    @property
    def is_active(self) -> bool:
        return self._since is not None

    def record(self, error: BaseException) -> None:
        now = time.monotonic()
        with self._lock:
            if self._since is not None and now - self._logged_at < REMINDER_SECONDS:
                return
            self._since = now if self._since is None else self._since
            self._logged_at = now
        log.warning("waiting for the database: %s", _root_cause(error))

    def end(self) -> None:
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            log.warning("the database is available again after %.0f s", time.monotonic() - since)


def _root_cause(error: BaseException) -> str:
    """Text of the underlying error, without wrappers."""
    while error.__cause__ is not None and not isinstance(error, OUTAGE_ERRORS):
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__
