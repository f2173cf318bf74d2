"""MEMORY.md as a value: people's text above, the line of the last dream, and sections with their entries.

    # Working Memory State

    _Last dream: 2026-03-12T16:00:00Z | Mood: calm_

    ## The Bond

    - Prefers tabs over spaces

Everybody may write this page, so reading it never fails and never drops a word: whatever it does not understand is an
entry like any other, and comes out again where it stood.
"""

from __future__ import annotations

from inmind.frozen import frozen


@frozen
class Part:
    """What stands under one heading."""

    heading: str
    """The line itself, `## The Bond`; empty for what stands under none."""
    entries: tuple[str, ...] = ()
    """Verbatim, each a line with its indented ones, or a paragraph."""


@frozen(kw_only=True)
class Page:
    above: str = ""
    """What people wrote before the title of the state, verbatim."""
    header: str = ""
    """The line that tells of the last dream; empty before the first."""
    parts: tuple[Part, ...] = ()
