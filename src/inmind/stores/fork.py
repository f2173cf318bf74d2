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
from typing import Protocol


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
_HELD: weakref.WeakSet[Held] = weakref.WeakSet()


class _Holding(threading.local):
    """Whom the fork in this thread is holding; two threads may fork at once."""

    owners: tuple[Held, ...] = ()


_holding = _Holding()


def tell_after_fork(owner: Forked) -> None:
    _TOLD.add(owner)


def hold_during_fork(owner: Held) -> None:
    _TOLD.add(owner)
    _HELD.add(owner)


def _hold_all() -> None:
    for owner in sorted(_HELD, key=id):  # one order for all, or two forks could wait for each other
        owner.before_fork()
        _holding.owners += (owner,)


def _let_go() -> None:
    owners, _holding.owners = _holding.owners, ()
    for owner in owners:
        owner.after_fork_here()


def _tell_all() -> None:
    _holding.owners = ()
    for owner in list(_TOLD):
        owner.after_fork()


os.register_at_fork(before=_hold_all, after_in_parent=_let_go, after_in_child=_tell_all)
