"""The edits that a dream may apply to MEMORY.md: add, rewrite and retire a line.

Rules and models propose the same edits. They name lines by their text, so a proposal can be applied to a page that was
edited since: either the line is still there, or the edit is refused.
"""

from __future__ import annotations

from inmind.core.events.base import Trust
from inmind.core.frozen import frozen
from inmind.dreams.page.sections import Section


@frozen(kw_only=True)
class Add:
    """Add a new line."""

    section: Section
    text: str
    sources: tuple[str, ...]
    importance: float = 0.5
    kind: str = "general"
    at: str = ""
    trust: Trust = Trust.AGENT


@frozen(kw_only=True)
class Rewrite:
    """Replace lines with one: a better wording, a merge of several, or another section."""

    lines: tuple[str, ...]
    """Their text on the page, without list marks."""
    section: Section
    text: str
    sources: tuple[str, ...] = ()
    """Sources in addition to those of the lines."""
    importance: float = 0.0
    """Minimum importance. It is never lower than that of the lines."""
    at: str = ""


@frozen(kw_only=True)
class Retire:
    """Remove a line from the page and put a pointer in its place.

    Expired gaps, refreshed skills or figures, and pointers whose topic is on the page again need no pointer: nothing is
    lost with them.
    """

    line: str
    topic: str = ""
    keywords: str = ""
    """Keywords that find the sources of the line; with a topic they become a pointer."""


Edit = Add | Rewrite | Retire


@frozen(kw_only=True)
class Proposal:
    """The proposed edits and their proposer."""

    edits: tuple[Edit, ...]
    by: str = "rules"
    fell_back: str = ""
    """Why rules proposed this instead of the model."""
    refused: tuple[str, ...] = ()
    """Edits of the model that were not accepted, each with the reason."""
