"""The input of a dream as one value: the same material always results in the same proposal.

`DreamMaterial` is what a proposal is made of; `DreamInput` adds what the commit needs to record that it was processed.

A dream reads a limited number of new crystals of each kind, so that a day of messages cannot displace a preference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final, Literal

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap, LearnedSkill, PageLine
from inmind.core.frozen import frozen
from inmind.documents.notes_page import PageNote
from inmind.dreams.affect import Levels
from inmind.dreams.economics import CurrencyTotals
from inmind.dreams.page.page import MemoryPage
from inmind.search.crystal import Crystal

NEW_ID_PREFIX: Final = "new#"
"""Prefix of the temporary id of a typed note: prefix and place. The commit replaces it with an event id."""


@frozen(kw_only=True)
class PendingNote:
    """A note that waits for a dream, as it is on the notes page.

    A user may have written or changed it.
    """

    id: str
    """Event id. A note that a user typed has a temporary id until the dream commits."""
    text: str
    importance: float
    kind: str = "general"
    at: str
    trust: Trust = Trust.AGENT
    valence: float = 0.0
    superseded: bool = False
    """Another note says the same or replaces it. It is taken in with that one and gets no line."""


@frozen(kw_only=True)
class Insight:
    """A statement derived from several crystals."""

    text: str
    method: Literal["compression", "link", "open_loop"]
    key: str
    """Identifies the insight. An insight is recorded once for each key."""
    sources: tuple[str, ...]
    importance: float = 0.5
    trust: Trust = Trust.AGENT


@frozen(kw_only=True)
class DreamMaterial:
    """The input of a proposal."""

    now: datetime
    page: MemoryPage
    """MEMORY.md when the dream began."""
    dream_lines: Mapping[str, PageLine]
    """Lines on the page that dreams wrote, by their text. All other entries were written by users."""
    adopted: frozenset[str] = frozenset()
    """Entries from before the first dream. Dreams move them into their sections."""
    notes: tuple[PendingNote, ...] = ()
    crystals: tuple[Crystal, ...] = ()
    """New crystals, the best of each kind."""
    insights: tuple[Insight, ...] = ()
    closed_loops: tuple[str, ...] = ()
    """Lines of open loops that were closed since."""
    levels: Levels
    mood: str = ""
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    economics: tuple[CurrencyTotals, ...] = ()
    """Totals of each currency."""
    search: Callable[[str], frozenset[str]]
    """Ids of the crystals that a search for some words returns."""
    get_crystal: Callable[[str], Crystal | None]
    """A crystal by its id."""


@frozen(kw_only=True)
class DreamInput:
    """The input of a dream, and how far the journal was read for it."""

    material: DreamMaterial
    last_seq: int
    """The last event read from the resource's stream."""
    journal_position: int
    """The position up to which the whole journal was read."""
    note_ids: tuple[str, ...]
    """Event ids of the notes that the dream takes in."""
    page_notes: tuple[PageNote, ...]
    """These notes and the typed ones, as they are on the notes page."""
    remarks: tuple[str, ...]
    """Text that a user wrote between the notes."""
    typed_notes: tuple[PendingNote, ...]
    """Notes and remarks that have no event yet."""
    accessed_crystals: tuple[str, ...]
    crystal_counts: dict[str, int]
    """Number of new crystals, by kind."""


MAX_BY_KIND: Final[Mapping[str, int]] = {
    "preference": 60,
    "relationship": 60,
    "goal": 60,
    "fact": 60,
    "insight": 40,
    "skill": 40,
    "task_pattern": 40,
    "general": 60,
    "episode": 1_000,
}


def select_crystals(crystals: Iterable[Crystal]) -> tuple[Crystal, ...]:
    """The best crystals of each kind, in the order of time.

    The order of preference is trust, importance, age. Words of a user have the highest trust: dreams learn from these.
    """
    by_kind: defaultdict[str, list[Crystal]] = defaultdict(list)
    for crystal in crystals:
        by_kind[crystal.kind].append(crystal)
    selected = [
        crystal
        for kind, group in by_kind.items()
        for crystal in sorted(group, key=_rank, reverse=True)[: MAX_BY_KIND.get(kind, 0)]
    ]
    return tuple(sorted(selected, key=lambda crystal: (crystal.at, crystal.id)))


def count_by_kind(crystals: Iterable[Crystal]) -> dict[str, int]:
    """Number of crystals of each kind."""
    return dict(sorted(Counter(crystal.kind for crystal in crystals).items()))


def _rank(crystal: Crystal) -> tuple[int, float, float, str]:
    return crystal.trust, crystal.importance, crystal.at.timestamp(), crystal.id
