"""What a forked child must not inherit: connections, and locks that a thread of the parent was holding.

A lock that was held at the moment of the fork is held for ever in the child, so its owner is told to start anew.
A connection is worse. SQLite keeps the locks of a process in its own memory, and the child gets a copy of that:
every connection it opens believes to hold locks that only the parent has, and once the parent is gone, others
delete the log that the child is writing to. So no connection is open while a fork happens.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Any, Protocol

import apsw


class HasAfterFork(Protocol):
    def after_fork(self) -> None:
        """In the child, before anything else runs: drop what belongs to the parent. Must not touch the world."""
        ...


class HasForkHooks(HasAfterFork, Protocol):
    def before_fork(self) -> None:
        """In the thread that forks: let nobody in, and let go of everything that must not be copied."""
        ...

    def after_fork_in_parent(self) -> None:
        """In the parent: let everybody in again."""
        ...


_AFTER_FORK: weakref.WeakSet[HasAfterFork] = weakref.WeakSet()
_AROUND_FORK: weakref.WeakKeyDictionary[HasForkHooks, None] = weakref.WeakKeyDictionary()
"""In the order in which they came. Who came later may be using who came earlier, and never the other way round: so the
last is held first, as its own calls would take the locks."""


class _ForkState:
    """Held by the thread that forks, from its first look at who there is: nobody can join them meanwhile."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owners: list[HasForkHooks] = []


_fork_state = _ForkState()


def register_after_fork(owner: HasAfterFork) -> None:
    _AFTER_FORK.add(owner)


def register_around_fork(owner: HasForkHooks) -> None:
    """Before it has anything to let go of."""
    with _fork_state.lock:
        _AFTER_FORK.add(owner)
        _AROUND_FORK[owner] = None


class SqliteConnectionOwner:
    """Whoever has a connection to SQLite, and a lock around it: nobody is inside while a fork happens."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._connection: Any = None
        register_around_fork(self)

    def before_fork(self) -> None:
        """With the lock in hand no thread is inside SQLite, whose own locks the child could never open again."""
        self._lock.acquire()
        if self._connection is not None and not self._connection.in_transaction:
            with suppress(apsw.Error):
                self._connection.close()
            self._connection = None

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork(self) -> None:
        """A connection is here only if the fork came from the middle of a transaction, as a signal handler's can.

        It then has to stay as it is, beyond any destructor's reach.
        """
        if self._connection is not None:
            import ctypes  # hardly any fork needs it

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None
        self._lock = threading.RLock()


def _before_fork() -> None:
    _fork_state.lock.acquire()
    for owner in reversed(list(_AROUND_FORK)):
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
