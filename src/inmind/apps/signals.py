"""Temporary signal handlers."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def handle_signals(handler: Callable[[int, object], object], *signals: signal.Signals) -> Generator[None]:
    """Install a handler for the block; the previous handlers are restored at its end."""
    previous = {one: signal.signal(one, handler) for one in signals}
    try:
        yield
    finally:
        for one, handler in previous.items():
            signal.signal(one, handler)
