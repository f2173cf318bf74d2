"""What must survive a compaction: of what leaves, and of what had left before."""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.events.session import RetainedItem
from inmind.documents.document import checked_text
from inmind.errors import InvalidInput
from inmind.history import History
from inmind.history.compaction.retention import Merged, items_of, merged
from inmind.history.compaction.select import Leaving
from inmind.history.compaction.spoken import in_context
from inmind.history.token_meter import Meter
from inmind.history.turns import Spoken

MOST_KEPT = 8_000
"""Tokens of rules and decisions that are kept over all compactions; how many a prompt shows is its own matter."""

MOST_DECLARED = 1_000
"""Characters of a text that a host declares."""


def checked_item(text: object) -> str:
    """A text that may be retained: it will stand in every prompt, so it has to be short."""
    checked = checked_text(text)
    if not checked.strip() or len(checked) > MOST_DECLARED:
        raise InvalidInput(field="text", value=checked, expected=f"1 to {MOST_DECLARED} characters")
    return checked


def survivors(history: History, said: Sequence[Spoken], leaving: Leaving, meter: Meter) -> Merged:
    """What must survive, and what there is no room for."""
    seen = in_context(history, said, meter)
    gone = {place for place in (*leaving.whole, *leaving.cut) if not seen[place].stub}
    earlier = (*history.left_out, *history.items)
    # One that was released has been stated all the same: what is said next is no goal.
    stated = any(item.kind == "goal" for one in history.compactions for item in one.what.items)
    found = items_of(seen, first=not stated, at=gone)
    fresh = [item for item in found if item.text not in history.released]
    return merged(earlier, fresh, most_tokens=MOST_KEPT, count=meter.count)


def unsaid(items: Sequence[RetainedItem], said: Sequence[Spoken], leaving: Leaving) -> list[RetainedItem]:
    """Those of the items that no message will say any more."""
    touched = {said[place].seq for place in leaving.touched}
    stay = {one.seq for one in said if not one.stub} - touched
    return [item for item in items if item.seq not in stay]
