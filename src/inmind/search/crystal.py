"""A crystal: something that deep memory can find again, and where it comes from.

Nobody writes crystals beside the journal. A note, a message, a page, a thing that left the window each are a crystal
because their event is there; so a crystal is named after its event, and what it is worth by now is folded from events
too. All of it can be thrown away and made again.
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
"""What a crystal can be about. Messages are episodes; a note is general unless its writer says more."""


Lifecycle = Literal["generated", "activated", "consolidated", "archived", "expired", "frozen"]
"""New; found by somebody since; gone through by a consolidation; merged into another; faded; never to fade."""


HIDDEN_LIFECYCLES: Final[tuple[Lifecycle, ...]] = ("archived", "expired")
"""What search does not find: the one is found as what it was merged into, the other only as of an earlier day."""


@frozen(kw_only=True)
class Crystal:
    """One thing that can be found, with all that decides what it is worth."""

    id: str
    """Of the event that it comes from; of a page, with the number of its part behind a full stop."""
    text: str
    kind: str = "general"
    source: str = "memory"
    resource: str = ""
    session: str = ""
    sources: tuple[str, ...] = ()
    """Events that it was made of: of a merged one, those of all that went into it."""
    origin: Origin = Origin.USER
    trust: Trust = Trust.PERSON
    at: datetime
    """When it was said or written."""
    speaker: str = ""
    """Who said it: by the name that its message declares, or else by the role. No text can make itself another's."""
    path: str = ""
    """The page that it is part of, where it is."""
    importance: float = 0.5
    """As declared. Nothing overwrites it: what became of the crystal since is in the fields below."""
    valence: float = 0.0
    """How it felt, from -1 to 1. What touched somebody is kept longer, whichever way it did."""
    accesses: int = 0
    accessed: datetime | None = None
    """When it was last found for somebody; None where it never was."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_by: str = ""
    """The crystal that says the same thing anew."""
    merged_into: str = ""
    """The crystal that says the same in nearly the same words."""
    lifecycle: Lifecycle = "generated"
