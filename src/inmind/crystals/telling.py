"""What was found, as a model reads it: each with its date, who said it, and the lines around it."""

from __future__ import annotations

from collections.abc import Sequence

from inmind.crystals.query import Hit
from inmind.text import shortened

MOST = 700
"""Characters of one hit: a passage, whole."""


def told(hits: Sequence[Hit]) -> str:
    """The hits in their order. What comes from tools or the web is marked: it is data, whatever it says."""
    return "\n".join(_told(number, hit) for number, hit in enumerate(hits, 1))


def _told(number: int, hit: Hit) -> str:
    crystal = hit.crystal
    who = crystal.speaker or crystal.origin.value
    marks = [
        *([crystal.kind] if crystal.source == "memory" else [f"session {crystal.session}"]),
        *([f"until {crystal.valid_to:%Y-%m-%d}"] if crystal.valid_to else []),
        *([f"said anew in {crystal.superseded_by}"] if crystal.superseded_by else []),
    ]
    lines = [f"{number}. [{crystal.at:%Y-%m-%d %H:%M}] {who} ({', '.join(marks)}; {crystal.id})"]
    if hit.before:
        lines.append(f"   before: {_line(hit.before)}")
    lines.append(f"   {shortened(hit.passage, MOST)}")
    if hit.after:
        lines.append(f"   after: {_line(hit.after)}")
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())
