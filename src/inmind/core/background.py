"""Work that nobody waits for: vectors of what was just said, the page of a note that was just taken.

It is one thread for a memory, which begins with the first piece of work, does what came in together as one, and has
done everything when `close` returns. Whatever it does could as well be done later or by another process, so a failure
is told in the log and stops nothing, and a fork simply leaves it to the parent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from inmind.core.fork import register_after_fork
from inmind.errors import InmindError

log = logging.getLogger("inmind")

TOGETHER = 0.1
"""Seconds in which more of the same may come in before it is done: well within the second that it may take."""


class BackgroundQueue:
    """What is to be done, by its name: the same twice is done once."""

    def __init__(self) -> None:
        self._begin_anew()
        register_after_fork(self)

    def submit(self, name: str, work: Callable[[], object]) -> None:
        """Do this in a moment. After `close` it is not done, and whoever needs it does it the next time."""
        with self._changed:
            if self._closing:
                return
            idle = not self._waiting
            self._waiting[name] = work
            self._asked += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="inmind-afterwards", daemon=True)
                self._thread.start()
            if idle:  # or it knows that there is something to do, and is waiting for more
                self._changed.notify_all()

    def flush(self) -> None:
        """Come back when all that is known now has been done; but work that asks for this does not wait for itself."""
        with self._changed:
            upto = self._urgent = self._asked
            self._changed.notify_all()
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._done >= upto)

    def close(self) -> None:
        self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def after_fork(self) -> None:
        """The thread is the parent's, and so is what it has to do."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None
        self._asked = self._done = self._urgent = 0
        """How often something was asked for, up to which of these all is done, and up to which somebody waits."""
        self._closing = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return
                self._changed.wait_for(lambda: self._urgent > self._done or self._closing, timeout=TOGETHER)
                work, self._waiting = list(self._waiting.values()), {}
                upto = self._asked
            for one in work:
                _carry_out(one)
            with self._changed:
                self._done = upto
                self._changed.notify_all()


def _carry_out(work: Callable[[], object]) -> None:
    """Nothing that goes wrong may end the thread, since others wait for it."""
    try:
        work()
    except InmindError as error:
        log.warning("left for later: %s", error)
    except BaseException:
        log.exception("work in the background failed; it is tried again with the next change")
