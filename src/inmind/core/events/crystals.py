"""Events of crystals: notes, searches, consolidation."""

from __future__ import annotations

from inmind.core.events.base import EventPayload, coerce_pairs
from inmind.core.frozen import frozen


@frozen
class CrystalCreated(EventPayload):
    """Something to be found again, as long as there is memory: distilled by a dream, or brought along from elsewhere.

    Messages, pages and things need no such event: they are found as what they are.
    """

    kind = "crystallised"
    text: str
    importance: float = 0.5
    category: str = "general"
    """What kind of crystal it is: a fact, a preference, a goal and so on."""
    valence: float = 0.0
    valid_from: str = ""
    valid_to: str = ""
    consolidated: bool = False
    """It comes from what was gone through already."""


@frozen
class NoteAdded(EventPayload):
    """A note between two dreams: shown to the model until a dream has taken it in, and found again for ever."""

    kind = "note"
    text: str
    importance: float = 0.7
    category: str = "general"
    valence: float = 0.0
    valid_from: str = ""
    valid_to: str = ""


@frozen
class SearchRecorded(EventPayload):
    """Somebody looked something up in deep memory, and was shown these."""

    kind = "searched"
    query: str
    hits: tuple[str, ...] = ()
    """Crystals, the best first."""
    limit: int = 10
    """How many it would have taken."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hits", tuple(self.hits))


@frozen
class Consolidated(EventPayload):
    """A consolidation has gone through some crystals of a resource. Whatever is not named here stays as it was."""

    kind = "consolidated"
    last_crystal: str
    """The last crystal that was gone through; empty where the pass came to its end."""
    merged: tuple[tuple[str, str], ...] = ()
    """Crystals that others say in nearly the same words, each with the one that stays."""
    superseded: tuple[tuple[str, str], ...] = ()
    """Crystals that are said anew, each with the newer one."""
    expired: tuple[str, ...] = ()
    """Crystals that faded: they leave search."""

    def __post_init__(self) -> None:
        coerce_pairs(self, "merged", "superseded")
        object.__setattr__(self, "expired", tuple(self.expired))


@frozen
class CrystalPinned(EventPayload):
    """A crystal that shall never fade, or may again."""

    kind = "frozen"
    id: str
    pinned: bool = True
