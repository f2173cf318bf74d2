"""Status of background jobs."""

from __future__ import annotations

from inmind.core.frozen import frozen


@frozen(kw_only=True)
class QueueStatus:
    """Counts of jobs in a database.

    A home has no queue: there they count resources with work to do.
    """

    waiting: int = 0
    waiting_seconds: float = 0.0
    """How long the oldest job has been waiting."""
    later: int = 0
    """Jobs that have failed and will be retried."""
    running: int = 0
    stalled: int = 0
    """Running jobs whose worker has sent no heartbeat."""
    failed: int = 0
    """Jobs that failed permanently."""
    workers: int | None = None
    """None if it is not known."""
