"""What a forked child must not inherit: connections, and locks that a thread of the parent was holding.

SQLite forbids using, and even closing, a connection in a child of the process that opened it; a lock that was
held at the moment of the fork is held for ever. So whoever owns either is told, in the child, to start anew.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    def after_fork(self) -> None:
        """In the child, before anything else runs: drop what belongs to the parent. Must not touch the world."""
        ...


_TOLD: weakref.WeakSet[Forked] = weakref.WeakSet()


def tell_after_fork(owner: Forked) -> None:
    _TOLD.add(owner)


def _tell_all() -> None:
    for owner in list(_TOLD):
        owner.after_fork()


os.register_at_fork(after_in_child=_tell_all)
