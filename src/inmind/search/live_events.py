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


def standing(events: Sequence[Event]) -> set[int]:
    """Numbers of those that stand. Of the stream every message, splice and undo, and whatever else is asked for."""
    targets = sorted({event.payload.to for event in events if isinstance(event.payload, Reverted)})
    line: list[int] = []
    others: set[int] = set()
    """All that stands and is not in the line: what was dropped from it, and what is no message."""
    passed: dict[int, tuple[list[int], set[int]]] = {}
    for event in events:
        while targets and targets[0] < event.seq:
            passed[targets.pop(0)] = (list(line), set(others))
        match event.payload:
            case Reverted(to=to):
                line, others = list(passed[to][0]), set(passed[to][1])
            case DreamUndone(crystals=crystals):
                others = {seq for seq in others if f"{event.stream}#{seq}" not in crystals}
            case MessageAdded():
                line.append(event.seq)
            case HistorySpliced(start=start, stop=stop, inserted=inserted):
                kept, new = line[: len(line) - inserted], line[len(line) - inserted :]
                taken_back = start > 0 and stop >= len(kept)
                if not taken_back:
                    others.update(kept[start:stop])
                line = [*kept[:start], *new, *kept[stop:]]
            case _:
                others.add(event.seq)
    return others.union(line)
