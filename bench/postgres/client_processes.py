"""Clients that share a server and nothing else: a process each, as on as many machines."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_SECONDS = 3_600.0
"""After which whoever waits for others gives up: one of them has died."""


class Together(Protocol):
    """Where clients wait for each other."""

    def wait(self, timeout: float | None = None) -> int: ...


def crowd(number: int, client: Callable[..., T], *given: object) -> list[T]:
    """What each client answers, called with its number, a place to wait for the others, and what all are given."""
    spawning = multiprocessing.get_context("spawn")
    together = spawning.Barrier(number, timeout=_SECONDS)
    started: list[tuple[Any, Connection[Any, Any]]] = []
    for each in range(number):
        here, away = spawning.Pipe()
        process = spawning.Process(target=_answer, args=(away, client, each, together, *given), daemon=True)
        process.start()
        away.close()
        started.append((process, here))
    try:
        return [here.recv() for _, here in started]
    finally:
        for process, _ in started:
            process.join(10)
            process.kill()


def _answer(away: Connection[Any, Any], client: Callable[..., Any], number: int, together: Any, *given: object) -> None:
    try:
        away.send(client(number, together, *given))
    except BaseException:
        together.abort()
        raise
