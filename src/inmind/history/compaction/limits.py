"""How much of the conversation may be sent, and how much of it stays whatever happens."""

from __future__ import annotations

from typing import NamedTuple

KEEP_ASKED = 5
"""Turns, or answers of tools, that stay when somebody asks for a compaction and does not say how many."""
KEEP_RECENT = 3
"""Turns that stay behind the active one when memory itself compacts."""
KEEP_ROUNDS = 3
"""Rounds that stay then of the turns that stay, when those are long."""


class Room(NamedTuple):
    """How many tokens the conversation may take."""

    aim: int
    """After a compaction."""
    most: int
    """Before one is due."""
    limit: int
    """At all."""
    recent: int
    """As far as what is recent is spared."""
    stub: int = 0
    """What a stub for messages may take of it."""
