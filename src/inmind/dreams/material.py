"""All that a dream is made of, as one value: the same material always gives the same state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap, LearnedSkill, PageLine
from inmind.core.frozen import frozen
from inmind.dreams.affect.levels import Levels
from inmind.dreams.economics import Economics
from inmind.dreams.page.page import Page
from inmind.search.crystal import Crystal


@frozen(kw_only=True)
class Pending:
    """A note that waits for a dream: as its page has it, which a person may have written or changed."""

    id: str
    """Of its event; for one that a person has typed into the page, of the event that this dream will make of it."""
    text: str
    importance: float
    kind: str = "general"
    at: str
    trust: Trust = Trust.AGENT
    valence: float = 0.0
    gone: bool = False
    """Another says the same, or says it anew: it is taken in with that one, and needs no line of its own."""


@frozen(kw_only=True)
class Insight:
    """Something that no single crystal says."""

    text: str
    how: Literal["compression", "link", "open_loop"]
    about: str
    """What makes two insights the same one."""
    sources: tuple[str, ...]
    importance: float = 0.5
    trust: Trust = Trust.AGENT


@frozen(kw_only=True)
class Material:
    now: datetime
    page: Page
    """MEMORY.md as it was when the dream began."""
    lines: Mapping[str, PageLine]
    """Of those on the page the ones that dreams have written, by their text. Whatever else stands there is people's."""
    seed: frozenset[str] = frozenset()
    """Entries that stood there before the first dream: dreams work them in."""
    notes: tuple[Pending, ...] = ()
    crystals: tuple[Crystal, ...] = ()
    """New ones, the best of each kind."""
    insights: tuple[Insight, ...] = ()
    closed: tuple[str, ...] = ()
    """Lines of loops that somebody has closed."""
    levels: Levels
    mood: str = ""
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    economics: tuple[Economics, ...] = ()
    """Of each currency."""
    finds: Callable[[str], frozenset[str]]
    """What a search for some words brings up: crystals, by their ids."""
    known: Callable[[str], Crystal | None]
    """A crystal by its id."""
