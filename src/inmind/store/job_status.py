"""What waits to be done for a memory in the background, as it is told to whoever looks."""

from __future__ import annotations

from inmind.core.frozen import frozen


@frozen(kw_only=True)
class QueueStatus:
    """Jobs in a database. In a home, where nobody keeps a list: resources for which the same is so."""

    waiting: int = 0
    waiting_seconds: float = 0.0
    """For how long the first has."""
    later: int = 0
    """That have failed, and are tried again after a while."""
    running: int = 0
    stalled: int = 0
    """Of those that run: whoever has them was not heard of."""
    failed: int = 0
    """That were given up."""
    workers: int | None = None
    """None where nobody can tell."""
