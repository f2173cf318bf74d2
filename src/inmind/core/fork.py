"""Lifetime of objects with resources: closing, and forks.

A forked child must not inherit connections or held locks. A lock that was held at the moment of the fork is never
released in the child, so its owner must create a new one. A connection is worse. SQLite keeps the locks of a process in
memory, and the child gets a copy of it: every connection that it opens seems to hold locks that only the parent has,
and once the parent has ended, others delete the log that the child writes to. So no SQLite connection is open while a
fork happens.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, Protocol, Self

import apsw


class Closing(ABC):
    """Base class of objects with a `close` method: a `with` block calls it at its end."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HasAfterFork(Protocol):
    """An object with a handler for the child."""

    def after_fork(self) -> None:
        """Called in the child before anything else runs: drop what belongs to the parent.

        It must not do I/O.
        """
        ...


_AFTER_FORK: weakref.WeakSet[HasAfterFork] = weakref.WeakSet()
_CONNECTION_OWNERS: weakref.WeakKeyDictionary[SqliteConnectionOwner, None] = weakref.WeakKeyDictionary()
"""In order of registration. A later object may use an earlier one, never the other way round, so the last is locked
first: the same order in which its calls take the locks."""


class _ForkState:
    """Locked by the forking thread, so that no object can register during the fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owners: list[SqliteConnectionOwner] = []


_fork_state = _ForkState()


def register_after_fork(owner: HasAfterFork) -> None:
    """Call the object's `after_fork` in forked children."""
    _AFTER_FORK.add(owner)


class SqliteConnectionOwner:
    """Base class of objects with a SQLite connection and a lock.

    The connection is closed during a fork.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._connection: Any = None
        with _fork_state.lock:
            _AFTER_FORK.add(self)
            _CONNECTION_OWNERS[self] = None

    def before_fork(self) -> None:
        """Take the lock and close the connection.

        With the lock no thread is inside SQLite, whose mutexes the child could never unlock.
        """
        self._lock.acquire()
        if self._connection is not None and not self._connection.in_transaction:
            with suppress(apsw.Error):
                self._connection.close()
            self._connection = None

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork(self) -> None:
        """Leak the connection if the fork happened inside a transaction, as in a signal handler.

        It must not be closed in the child, not even by a destructor.
        """
        if self._connection is not None:
            import ctypes  # imported late: rarely needed

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None
        self._lock = threading.RLock()


def _before_fork() -> None:
    _fork_state.lock.acquire()
    for owner in reversed(list(_CONNECTION_OWNERS)):
        owner.before_fork()
        _fork_state.owners.append(owner)


def _after_fork_in_parent() -> None:
    while _fork_state.owners:
        _fork_state.owners.pop().after_fork_in_parent()
    _fork_state.lock.release()


def _after_fork_in_child() -> None:
    global _fork_state
    _fork_state = _ForkState()
    for owner in list(_AFTER_FORK):
        owner.after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
