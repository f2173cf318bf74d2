"""Where a conversation stands, for whoever comes back to it: after a night, or from another terminal."""

from __future__ import annotations

from collections.abc import Iterator

from inmind.apps.chat.turn import Exchange, Meanwhile
from inmind.core.text import counted, shortened

UNANSWERED = "not answered yet: /retry"
LEAST = 20
"""Columns without which nothing is worth a beginning, however narrow a terminal is."""


def where_it_was(title: str, last: Exchange | None, *, width: int) -> Iterator[str]:
    """What it is about, and how it ended."""
    if title:
        yield shortened(f"About: {title}", max(LEAST, width))
    if last is not None:
        came = last.answer if last.answered else UNANSWERED
        room = max(LEAST, width - len("Last:  → "))
        said = shortened(last.said, max(room // 2, room - len(came)))  # each may have what the other leaves
        yield f"Last: {said} → {shortened(came, room - len(said))}"


def told(meanwhile: Meanwhile, *, width: int) -> Iterator[str]:
    """What others have done; nothing where nobody has."""
    if meanwhile.gone:
        yield f"Meanwhile elsewhere: {counted(meanwhile.gone, 'message')} taken back in this session."
    if meanwhile.said:
        *before, last = meanwhile.said
        more = f" and {len(before)} more" if before else ""
        begun = f"Meanwhile elsewhere in this session{more}: "
        yield f"{begun}{shortened(last, max(LEAST, width - len(begun)))}"
