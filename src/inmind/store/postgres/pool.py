"""A pool of connections to one database, without threads.

A connection is used by one thread at a time and opened by the thread that needs it. So the caller gets a connection
error at once, a server that is back is used by the next call, and a fork interrupts no background work. (A pool that
connects in the background makes callers wait for its next attempt, and detects ten dead connections one at a time.)
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
"""Older connections are reopened: the host name may resolve to another server by now."""

MAX_IDLE_SECONDS = 60.0
"""Connections idle for longer are closed, except one."""


class PoolExhausted(Exception):
    """All connections were in use until the deadline."""


class Pool:
    """A pool of at most `max_size` connections."""

    def __init__(self, create: Callable[[float], Connection], *, max_size: int) -> None:
        """`create`: opens a connection before a deadline."""
        self._create, self._max_size = create, max_size
        self._changed = threading.Condition(threading.Lock())
        self._borrowed = 0
        self._idle: deque[Connection] = deque()
        self._all: set[Connection] = set()
        self._inherited: set[Connection] = set()
        self._closed = False

    def borrow(self, deadline: float) -> Connection:
        """Take a connection. Raises PoolExhausted, or an error of `create`."""
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
        """Return a connection. It is closed if it is broken, old, or inside a transaction."""
        idle = not connection.closed and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._changed:
            kept = idle and not self._closed and not _is_old(connection)
            if kept:
                self._idle.append(connection)
            unneeded = [*self._take_unneeded(), *([] if kept else [connection])]
            self._all.difference_update(unneeded)
            self._release_slot()
        for one in unneeded:
            one.close()

    def drop_idle(self) -> None:
        """Close all idle connections: if one is dead, the others probably are too."""
        with self._changed:
            idle = [*self._idle]
            self._idle.clear()
            self._all.difference_update(idle)
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close the pool. Borrowed connections are closed when they are given back."""
        with self._changed:
            self._closed = True
        self.drop_idle()

    def after_fork(self) -> None:
        """Detach the parent's connections in a forked child.

        The child must not use them, nor close them, which would end the parent's session. But while the child has their
        sockets open, the server would not notice the end of the parent and would keep its locks. So each descriptor
        is replaced by a socket without a peer.
        """
        for connection in self._all:
            with suppress(psycopg.Error, OSError):
                dead_end, peer = socket.socketpair()
                peer.close()
                os.dup2(dead_end.fileno(), connection.fileno(), inheritable=False)
                dead_end.close()
        self._changed, self._borrowed = threading.Condition(threading.Lock()), 0
        self._idle, self._inherited, self._all = deque(), self._all, set()

    def _take_idle(self, deadline: float) -> Connection | None:
        """Take the connection that was used last, so that the others become idle and are closed."""
        with self._changed:
            if self._closed:
                raise Closed
            unneeded = self._take_unneeded()
            while self._idle and _is_old(self._idle[-1]):
                unneeded.append(self._idle.pop())
            self._all.difference_update(unneeded)
            connection = self._idle.pop() if self._idle else None
        for one in unneeded:
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
        """Take connections that were idle for long.

        They are in the order in which they were given back.
        """
        unneeded: list[Connection] = []
        while len(self._idle) > 1 and time.monotonic() - self._idle[0].used_at > MAX_IDLE_SECONDS:
            unneeded.append(self._idle.popleft())
        return unneeded

    def _create_connection(self, deadline: float) -> Connection:
        connection = self._create(deadline)
        with self._changed:
            self._all.add(connection)
        return connection


def _is_old(connection: Connection) -> bool:
    return time.monotonic() - connection.created_at > MAX_AGE_SECONDS
