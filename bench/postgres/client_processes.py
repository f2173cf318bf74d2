"""Clients that share only a server: one process each, as on separate machines."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_TIMEOUT_SECONDS = 3_600.0
"""For waiting at the barrier: by then another client has died."""


class Barrier(Protocol):
    """The part of a barrier that clients use."""

    def wait(self, timeout: float | None = None) -> int: ...


def run_clients(count: int, client: Callable[..., T], *arguments: object) -> list[T]:
    """Run `client(number, barrier, *arguments)` in `count` processes and return the results."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(count, timeout=_TIMEOUT_SECONDS)
    started: list[tuple[Any, Connection[Any, Any]]] = []
    for number in range(count):
        parent_end, child_end = context.Pipe()
        process = context.Process(
            target=_run_client, args=(child_end, client, number, barrier, *arguments), daemon=True
        )
        process.start()
        child_end.close()
        started.append((process, parent_end))
    try:
        return [parent_end.recv() for _, parent_end in started]
    finally:
        for process, _ in started:
            process.join(10)
            process.kill()


def _run_client(
    child_end: Connection[Any, Any], client: Callable[..., Any], number: int, barrier: Any, *arguments: object
) -> None:
    try:
        child_end.send(client(number, barrier, *arguments))
    except BaseException:
        barrier.abort()
        raise
