"""Events of crystals: notes, searches, consolidation."""

from __future__ import annotations

from inmind.core.events.base import EventPayload
from inmind.core.frozen import frozen


@frozen
class CrystalCreated(EventPayload):
    """A crystal that a dream distilled or that was imported with MEMORY.md.

    Messages, pages and entities need no such event: they are searched directly.
    """

    kind = "crystallised"
    stored_names = (("category", "about"),)
    text: str
    importance: float = 0.5
    category: str = "general"
    """The kind of crystal: `fact`, `preference`, `goal` and so on."""
    valence: float = 0.0
    valid_from: str = ""
    valid_to: str = ""
    consolidated: bool = False
    """True if its sources were already consolidated."""


@frozen
class NoteAdded(EventPayload):
    """A note. It is shown to the model until a dream has processed it, and stays searchable."""

    kind = "note"
    stored_names = (("category", "about"),)
    text: str
    importance: float = 0.7
    category: str = "general"
    valence: float = 0.0
    valid_from: str = ""
    valid_to: str = ""


@frozen
class NoteWithdrawn(EventPayload):
    """A note was removed from the notes page and search, or restored (`withdrawn=False`)."""

    kind = "note_withdrawn"
    note: str
    """Id of the note's event."""
    on_page: bool = False
    """True if the note was on the notes page, so that an undo puts it back there."""
    withdrawn: bool = True


@frozen
class SearchRecorded(EventPayload):
    """A search and the crystals that it returned."""

    kind = "searched"
    stored_names = (("hits", "found"),)
    query: str
    hits: tuple[str, ...] = ()
    """Ids of crystals, best first."""
    limit: int = 10
    """The maximum number of hits that was requested."""


@frozen
class Consolidated(EventPayload):
    """A consolidation has processed a batch of a resource's crystals.

    Crystals not named here are unchanged.
    """

    kind = "consolidated"
    stored_names = (("last_crystal", "upto"),)
    last_crystal: str
    """The last crystal that was processed. Empty if the pass is complete."""
    merged: tuple[tuple[str, str], ...] = ()
    """Near-duplicates, each with the crystal that stays."""
    superseded: tuple[tuple[str, str], ...] = ()
    """Outdated crystals, each with the newer one."""
    expired: tuple[str, ...] = ()
    """Crystals whose score has decayed. They are removed from search."""


@frozen
class CrystalPinned(EventPayload):
    """A crystal was pinned, so that it never expires, or unpinned."""

    kind = "frozen"
    stored_names = (("pinned", "frozen"),)
    id: str
    pinned: bool = True
