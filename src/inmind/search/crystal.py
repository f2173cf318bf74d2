"""The Crystal value: one searchable item and its origin.

Crystals are derived from the journal. A note, a message, a page section and an evicted entity each become a crystal
because of their event, so a crystal has the id of its event, and its lifecycle is folded from later events. All
crystals can be deleted and derived again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from inmind.core.events.base import Origin, Trust
from inmind.core.frozen import frozen

KINDS: Final = (
    "fact",
    "preference",
    "goal",
    "task_pattern",
    "skill",
    "insight",
    "relationship",
    "episode",
    "general",
)
"""Kinds of crystals. A message is an episode; a note is general unless its author says otherwise."""


Lifecycle = Literal["generated", "activated", "consolidated", "archived", "expired", "frozen"]
"""New; accessed since; processed by a consolidation; merged into another; expired; pinned (stored as "frozen")."""


HIDDEN_LIFECYCLES: Final[tuple[Lifecycle, ...]] = ("archived", "expired")
"""Lifecycles that search skips: an archived crystal is found as the one it was merged into, an expired one only as of
an earlier date."""


@frozen(kw_only=True)
class Crystal:
    """One searchable item with everything that decides its value."""

    id: str
    """Id of its event; for a section of a page, followed by a full stop and the number of the section."""
    text: str
    kind: str = "general"
    source: str = "memory"
    resource: str = ""
    session: str = ""
    sources: tuple[str, ...] = ()
    """Events it was made from; for a merged crystal, those of all merged ones."""
    origin: Origin = Origin.USER
    trust: Trust = Trust.PERSON
    at: datetime
    """Time of the statement."""
    speaker: str = ""
    """Name that its message declares, else the role. The text cannot change it."""
    path: str = ""
    """Page that it is a section of, if any."""
    importance: float = 0.5
    """As declared by the author. Never overwritten: later changes are in the fields below."""
    valence: float = 0.0
    """Emotional value from -1 to 1. Strong values of either sign are kept longer."""
    accesses: int = 0
    accessed: datetime | None = None
    """Time of the last access; None if never accessed."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_by: str = ""
    """Id of the crystal that states the same fact with a newer value."""
    merged_into: str = ""
    """Id of the crystal that says the same in nearly the same words."""
    lifecycle: Lifecycle = "generated"

    @property
    def last_used(self) -> datetime:
        """Time of the last access, else of the statement."""
        return self.accessed or self.at

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d} {self.kind}: {self.text}"
