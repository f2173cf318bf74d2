"""What a rewrite of MEMORY.md stands on: whose each line is, what it is made of, and what a search would find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.dreams.page.sections import Section


@frozen(kw_only=True)
class Ground:
    now: datetime
    mood: str = ""
    lines: Mapping[str, PageLine]
    """Lines that dreams have written, by their text. Whatever else stands on the page is people's."""
    theirs: Mapping[str, str]
    """Entries of people that are crystals by now, each with its crystal: they may be found again."""
    seed: frozenset[str] = frozenset()
    """Entries that stood there before the first dream, which dreams may say in their own words."""
    weights: Mapping[Section, float]
    """How much each section counts right now."""
    finds: Callable[[str], frozenset[str]]
    """What a search for some words brings up: crystals, by their ids."""
    source_text: Callable[[str], str]
    """What a crystal or a note says; nothing where there is none of that id."""
    source_trust: Callable[[str], Trust]
    must: tuple[PageLine, ...] = ()
    """Lines that have to stand on the page, in these words, whatever else does."""
