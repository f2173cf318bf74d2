"""One background thread per Memory.

It does what a caller does not wait for: embedding, records of searches, updates of notes pages. It starts with
the first task. Tasks that arrive together run as one batch, and `close` returns after all of them ran. Every task can
also run later or in another process, so a failure is logged and stops nothing, and a forked child drops the queue.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from inmind.core.fork import register_after_fork
from inmind.errors import InmindError

log = logging.getLogger("inmind")

BATCH_SECONDS = 0.1
"""How long the thread waits for more tasks before it runs a batch."""


class BackgroundQueue:
    """Tasks by name; a task that is submitted twice before it runs is run once."""

    def __init__(self) -> None:
        self._reset()
        register_after_fork(self)

    def submit(self, name: str, work: Callable[[], object]) -> None:
        """Run the task soon. After `close` it is dropped."""
        with self._changed:
            if self._closing:
                return
            idle = not self._pending
            self._pending[name] = work
            self._submitted += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="inmind-background", daemon=True)
                self._thread.start()
            if idle:  # otherwise the thread is already collecting a batch
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until everything submitted so far has run.

        A task that calls this does not wait for itself.
        """
        with self._changed:
            last_submitted = self._flush_upto = self._submitted
            self._changed.notify_all()
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._completed >= last_submitted)

    def close(self) -> None:
        self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def after_fork(self) -> None:
        """Drop the queue: its thread and its tasks belong to the parent."""
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._pending: dict[str, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None
        self._submitted = self._completed = self._flush_upto = 0
        """Number of submissions, how many of them have run, and up to which one a `flush` waits."""
        self._closing = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                if not self._pending:
                    return
                self._changed.wait_for(
                    lambda: self._flush_upto > self._completed or self._closing, timeout=BATCH_SECONDS
                )
                work, self._pending = list(self._pending.values()), {}
                last_submitted = self._submitted
            for one in work:
                _run_safely(one)
            with self._changed:
                self._completed = last_submitted
                self._changed.notify_all()


def _run_safely(work: Callable[[], object]) -> None:
    """Run a task; no error may end the thread."""
    try:
        work()
    except InmindError as error:
        log.warning("background task failed, will be retried: %s", error)
    except BaseException:
        log.exception("background task failed, will be retried with the next change")
