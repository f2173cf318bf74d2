"""Decides which events of a stream are live after undos, edits and regenerated answers.

An undo retracts the events after its target and can itself be undone. Undoing a dream retracts only the crystals of
that dream. A withdrawn note is retracted until it is restored. A host that regenerates an answer, or whose user edits a
message, removes the end of the conversation. Retracted events must not be found. Messages that a host dropped from the
front or middle to save space stay live.
"""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.events.base import Event
from inmind.core.events.crystals import NoteWithdrawn
from inmind.core.events.dreams import DreamUndone
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted


def live_sequence_numbers(events: Sequence[Event]) -> set[int]:
    """Return the sequence numbers of the live events.

    `events` must hold every message, splice and undo of the stream, and the other events to check.
    """
    targets = sorted({event.payload.to for event in events if isinstance(event.payload, Reverted)})
    conversation: list[int] = []
    other_live: set[int] = set()
    """Live events outside the conversation: dropped messages, and events that are not messages."""
    states: dict[int, tuple[list[int], set[int]]] = {}
    for event in events:
        while targets and targets[0] < event.seq:
            states[targets.pop(0)] = (list(conversation), set(other_live))
        match event.payload:
            case Reverted(to=to):
                conversation, other_live = list(states[to][0]), set(states[to][1])
            case DreamUndone(crystals=crystals):
                other_live = {seq for seq in other_live if f"{event.stream}#{seq}" not in crystals}
            case NoteWithdrawn(note=note, withdrawn=withdrawn):
                stream, _, seq = note.rpartition("#")
                if stream == event.stream:
                    other_live = other_live - {int(seq)} if withdrawn else other_live | {int(seq)}
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
