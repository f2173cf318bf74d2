"""Ctrl-C stops what a person waits for, and never what memory is writing down.

Python raises wherever it happens to be when a signal comes. Here it raises only where something is being waited for: an
answer, a tool that looks, the next line. A signal that comes in between is noted, and raised where the next wait
begins. Nobody else in a chat handles signals: whoever did would hide them from the rest.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from inmind.apps.signals import handle_signals

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    def __init__(self) -> None:
        self._waiting = self._asking = False
        self._noted: int = 0

    @contextmanager
    def heeded(self) -> Generator[None]:
        """For as long as this lasts, signals come here."""
        with handle_signals(self._come, signal.SIGINT, *_ENDING):
            yield

    @contextmanager
    def may_stop(self) -> Generator[None]:
        """What is waited for inside may be stopped: by KeyboardInterrupt, or to the end by SystemExit."""
        try:
            self._waiting = True
            if noted := self._noted:
                self._noted = 0
                raise _raised(noted)
            yield
        finally:
            self._waiting = False

    @contextmanager
    def called_off(self) -> Generator[Callable[[], bool]]:
        """Whether what is done inside is to come to an end: Ctrl-C asks it to. A second one does not ask, and neither
        does whoever ends the process."""
        self._asking = True
        try:
            yield lambda: self._noted != 0
        finally:
            self._asking = False

    def forget(self) -> None:
        """A Ctrl-C that came too late for what it was meant for is not meant for what comes next."""
        if self._noted == signal.SIGINT:
            self._noted = 0

    def _come(self, which: int, _: object) -> None:
        if self._waiting or (self._asking and (self._noted or which in _ENDING)):
            raise _raised(which)
        if self._noted not in _ENDING:  # whoever is to end must not forget it over a Ctrl-C
            self._noted = which


def _raised(which: int) -> BaseException:
    return SystemExit(128 + which) if which in _ENDING else KeyboardInterrupt()
