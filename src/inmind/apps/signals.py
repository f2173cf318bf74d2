"""Who is told of the signals that ask a process to end: for a while, somebody else than Python."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def signals_go_to(told: Callable[[int, object], object], *which: signal.Signals) -> Generator[None]:
    """Whoever had them before gets them again at the end of the block."""
    before = {one: signal.signal(one, told) for one in which}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
