"""A few connections to one database, each lent to one thread at a time and made by whoever needs one more.

No thread works behind it. So what stands in the way of a connection is told at once to who asked for it, a server that
is back is found by the very next call, and a fork meets nothing that it would stop in the middle. (A pool that connects
in the background lets callers wait for its own next try, and knows of ten dead connections only one at a time.)
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import psycopg

from inmind.errors import Closed
from inmind.store.postgres.connection import Connection, is_alive

MAX_AGE_SECONDS = 3600.0
"""Seconds after which a connection is made anew: a name may have come to mean another server since."""

MAX_IDLE_SECONDS = 60.0
"""Seconds after which a connection that nobody has needed is given back to the server. One is kept."""


class PoolExhausted(Exception):
    """All connections were lent for as long as somebody could wait."""


class Pool:
    def __init__(self, create: Callable[[float], Connection], *, max_size: int) -> None:
        """`make`: a connection, by a deadline."""
        self._create, self._max_size = create, max_size
        self._changed = threading.Condition(threading.Lock())
        self._borrowed = 0
        self._idle: deque[Connection] = deque()
        self._all: set[Connection] = set()
        self._inherited: set[Connection] = set()
        self._closed = False

    def borrow(self, deadline: float) -> Connection:
        """Raises Exhausted, or whatever `make` raises."""
        with self._changed:
            while self._borrowed >= self._max_size:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise PoolExhausted
            self._borrowed += 1
        try:
            return self._take_idle(deadline) or self._create_connection(deadline)
        except BaseException:
            with self._changed:
                self._release_slot()
            raise

    def give_back(self, connection: Connection) -> None:
        """Kept for the next one, unless it is closed, was left in the middle of something, or is old."""
        idle = not connection.closed and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._changed:
            kept = idle and not self._closed and not _is_old(connection)
            if kept:
                self._idle.append(connection)
            gone = [*self._take_unneeded(), *([] if kept else [connection])]
            self._all.difference_update(gone)
            self._release_slot()
        for one in gone:
            one.close()

    def drop_idle(self) -> None:
        """Where one connection turns out to lead nowhere, the others lead there too."""
        with self._changed:
            idle = [*self._idle]
            self._idle.clear()
            self._all.difference_update(idle)
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Those that are lent are closed when they come back."""
        with self._changed:
            self._closed = True
        self.drop_idle()

    def after_fork(self) -> None:
        """In the child: all connections are the parent's.

        They must not be used here, nor closed, which would say good-bye for the parent. But as long as the child has
        them too the server would not notice when the parent is gone, nor let go of what it held: so each leads nowhere
        from now on.
        """
        for connection in self._all:
            with suppress(psycopg.Error, OSError):
                ours, nobody = socket.socketpair()
                nobody.close()
                os.dup2(ours.fileno(), connection.fileno(), inheritable=False)
                ours.close()
        self._changed, self._borrowed = threading.Condition(threading.Lock()), 0
        self._idle, self._inherited, self._all = deque(), self._all, set()

    def _take_idle(self, deadline: float) -> Connection | None:
        """The one that was used last: so the others rest, and are given back."""
        with self._changed:
            if self._closed:
                raise Closed
            gone = self._take_unneeded()
            while self._idle and _is_old(self._idle[-1]):
                gone.append(self._idle.pop())
            self._all.difference_update(gone)
            connection = self._idle.pop() if self._idle else None
        for one in gone:
            one.close()
        if connection is None or is_alive(connection, deadline):
            return connection
        with self._changed:
            self._all.discard(connection)
        connection.close()
        self.drop_idle()
        return None

    def _release_slot(self) -> None:
        self._borrowed -= 1
        self._changed.notify()

    def _take_unneeded(self) -> list[Connection]:
        """Those that have rested for long. They are in the order in which they came back."""
        gone: list[Connection] = []
        while len(self._idle) > 1 and time.monotonic() - self._idle[0].used_at > MAX_IDLE_SECONDS:
            gone.append(self._idle.popleft())
        return gone

    def _create_connection(self, deadline: float) -> Connection:
        connection = self._create(deadline)
        with self._changed:
            self._all.add(connection)
        return connection


def _is_old(connection: Connection) -> bool:
    return time.monotonic() - connection.created_at > MAX_AGE_SECONDS
