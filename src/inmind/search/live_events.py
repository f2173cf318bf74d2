"""Which events of a stream still stand, after all that was undone and said over again.

An undo takes back what came since, and may itself be taken back; that of a dream takes back what the dream has made,
and nothing else that came since. A host that regenerates an answer, or whose user edits a message, takes away the end
of the conversation, with or without another in its place. What no longer stands is not to be found. What a host has
dropped from the front or the middle to save room stands: nobody has taken it back.
"""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.events.base import Event
from inmind.core.events.dreams import DreamUndone
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted


def live_sequence_numbers(events: Sequence[Event]) -> set[int]:
    """Numbers of those that stand. Of the stream every message, splice and undo, and whatever else is asked for."""
    targets = sorted({event.payload.to for event in events if isinstance(event.payload, Reverted)})
    conversation: list[int] = []
    other_live: set[int] = set()
    """All that stands and is not in the line: what was dropped from it, and what is no message."""
    states: dict[int, tuple[list[int], set[int]]] = {}
    for event in events:
        while targets and targets[0] < event.seq:
            states[targets.pop(0)] = (list(conversation), set(other_live))
        match event.payload:
            case Reverted(to=to):
                conversation, other_live = list(states[to][0]), set(states[to][1])
            case DreamUndone(crystals=crystals):
                other_live = {seq for seq in other_live if f"{event.stream}#{seq}" not in crystals}
            case MessageAdded():
                conversation.append(event.seq)
            case HistorySpliced(start=start, stop=stop, inserted=inserted):
                kept, new = conversation[: len(conversation) - inserted], conversation[len(conversation) - inserted :]
                is_retracted = start > 0 and stop >= len(kept)
                if not is_retracted:
                    other_live.update(kept[start:stop])
                conversation = [*kept[:start], *new, *kept[stop:]]
            case _:
                other_live.add(event.seq)
    return other_live.union(conversation)
