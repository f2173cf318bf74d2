"""All that a dream is made of, as one value: the same material always gives the same state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final, Literal

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap, LearnedSkill, PageLine
from inmind.core.frozen import frozen
from inmind.dreams.affect.levels import Levels
from inmind.dreams.economics import CurrencyTotals
from inmind.dreams.page.page import MemoryPage
from inmind.search.crystal import Crystal


@frozen(kw_only=True)
class PendingNote:
    """A note that waits for a dream: as its page has it, which a person may have written or changed."""

    id: str
    """Of its event; for one that a person has typed into the page, of the event that this dream will make of it."""
    text: str
    importance: float
    kind: str = "general"
    at: str
    trust: Trust = Trust.AGENT
    valence: float = 0.0
    superseded: bool = False
    """Another says the same, or says it anew: it is taken in with that one, and needs no line of its own."""


@frozen(kw_only=True)
class Insight:
    """Something that no single crystal says."""

    text: str
    method: Literal["compression", "link", "open_loop"]
    key: str
    """What makes two insights the same one."""
    sources: tuple[str, ...]
    importance: float = 0.5
    trust: Trust = Trust.AGENT


@frozen(kw_only=True)
class DreamMaterial:
    now: datetime
    page: MemoryPage
    """MEMORY.md as it was when the dream began."""
    dream_lines: Mapping[str, PageLine]
    """Of those on the page the ones that dreams have written, by their text. Whatever else stands there is people's."""
    adopted: frozenset[str] = frozenset()
    """Entries that stood there before the first dream: dreams work them in."""
    notes: tuple[PendingNote, ...] = ()
    crystals: tuple[Crystal, ...] = ()
    """New ones, the best of each kind."""
    insights: tuple[Insight, ...] = ()
    closed_loops: tuple[str, ...] = ()
    """Lines of loops that somebody has closed."""
    levels: Levels
    mood: str = ""
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    economics: tuple[CurrencyTotals, ...] = ()
    """Of each currency."""
    search: Callable[[str], frozenset[str]]
    """What a search for some words brings up: crystals, by their ids."""
    get_crystal: Callable[[str], Crystal | None]
    """A crystal by its id."""


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
    """The best of each kind, by their importance and then the newest, in the order in which they were said.

    Of what was said in sessions a person's words come first: a dream learns from these.
    """
    by_kind: defaultdict[str, list[Crystal]] = defaultdict(list)
    for crystal in crystals:
        by_kind[crystal.kind].append(crystal)
    best = [
        crystal
        for kind, some in by_kind.items()
        for crystal in sorted(some, key=_rank, reverse=True)[: MAX_BY_KIND.get(kind, 0)]
    ]
    return tuple(sorted(best, key=lambda crystal: (crystal.at, crystal.id)))


def count_by_kind(crystals: Iterable[Crystal]) -> dict[str, int]:
    """How many there are of each kind."""
    kinds: defaultdict[str, int] = defaultdict(int)
    for crystal in crystals:
        kinds[crystal.kind] += 1
    return dict(sorted(kinds.items()))


def _rank(crystal: Crystal) -> tuple[int, float, float, str]:
    return crystal.trust, crystal.importance, crystal.at.timestamp(), crystal.id
