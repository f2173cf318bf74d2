"""Temporary signal handlers, and interrupts that only take effect at safe points."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def handle_signals(handler: Callable[[int, object], object], *signals: signal.Signals) -> Generator[None]:
    """Install a handler for the block; the previous handlers are restored at its end."""
    previous = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, old_handler in previous.items():
            signal.signal(number, old_handler)


_TERMINATING = (signal.SIGTERM, signal.SIGHUP)


class InterruptHandler:
    """Delivers Ctrl-C only while the process waits, never during a write.

    Python raises KeyboardInterrupt at any point. Here it is raised only while the process waits for a reply, a tool or
    input; a signal in between is kept and raised at the next wait. Nothing else in a chat may handle signals.
    """

    def __init__(self) -> None:
        self._is_interruptible = self._is_cancellable = False
        self._pending: int = 0

    @contextmanager
    def install(self) -> Generator[None]:
        """Handle SIGINT, SIGTERM and SIGHUP for the block."""
        with handle_signals(self._handle, signal.SIGINT, *_TERMINATING):
            yield

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """The block may raise KeyboardInterrupt, or SystemExit on SIGTERM and SIGHUP."""
        try:
            self._is_interruptible = True
            if number := self._pending:
                self._pending = 0
                raise _exception_for(number)
            yield
        finally:
            self._is_interruptible = False

    @contextmanager
    def cancellable(self) -> Generator[Callable[[], bool]]:
        """Yield a function that is True after the first Ctrl-C.

        A second one, or SIGTERM, raises at once.
        """
        self._is_cancellable = True
        try:
            yield lambda: self._pending != 0
        finally:
            self._is_cancellable = False

    def discard(self) -> None:
        """Drop a pending Ctrl-C that came too late for the previous step."""
        if self._pending == signal.SIGINT:
            self._pending = 0

    def _handle(self, number: int, _: object) -> None:
        if self._is_interruptible or (self._is_cancellable and (self._pending or number in _TERMINATING)):
            raise _exception_for(number)
        if self._pending not in _TERMINATING:  # a Ctrl-C must not replace a pending SIGTERM
            self._pending = number


def _exception_for(signum: int) -> BaseException:
    return SystemExit(128 + signum) if signum in _TERMINATING else KeyboardInterrupt()
