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


class Forked(Protocol):
    def after_fork(self) -> None:
        """In the child, before anything else runs: drop what belongs to the parent. Must not touch the world."""
        ...


class Held(Forked, Protocol):
    def before_fork(self) -> None:
        """In the thread that forks: let nobody in, and let go of everything that must not be copied."""
        ...

    def after_fork_here(self) -> None:
        """In the parent: let everybody in again."""
        ...


_TOLD: weakref.WeakSet[Forked] = weakref.WeakSet()
_HELD: weakref.WeakKeyDictionary[Held, None] = weakref.WeakKeyDictionary()
"""In the order in which they came. Who came later may be using who came earlier, and never the other way round: so the
last is held first, as its own calls would take the locks."""


class _Gate:
    """Held by the thread that forks, from its first look at who there is: nobody can join them meanwhile."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owners: list[Held] = []


_gate = _Gate()


def tell_after_fork(owner: Forked) -> None:
    _TOLD.add(owner)


def hold_during_fork(owner: Held) -> None:
    """Before it has anything to let go of."""
    with _gate.lock:
        _TOLD.add(owner)
        _HELD[owner] = None


class Connected:
    """Whoever has a connection to SQLite, and a lock around it: nobody is inside while a fork happens."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._connection: Any = None
        hold_during_fork(self)

    def before_fork(self) -> None:
        """With the lock in hand no thread is inside SQLite, whose own locks the child could never open again."""
        self._lock.acquire()
        if self._connection is not None and not self._connection.in_transaction:
            with suppress(apsw.Error):
                self._connection.close()
            self._connection = None

    def after_fork_here(self) -> None:
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


def _hold_all() -> None:
    _gate.lock.acquire()
    for owner in reversed(list(_HELD)):
        owner.before_fork()
        _gate.owners.append(owner)


def _let_go() -> None:
    while _gate.owners:
        _gate.owners.pop().after_fork_here()
    _gate.lock.release()


def _tell_all() -> None:
    global _gate
    _gate = _Gate()
    for owner in list(_TOLD):
        owner.after_fork()


os.register_at_fork(before=_hold_all, after_in_parent=_let_go, after_in_child=_tell_all)
