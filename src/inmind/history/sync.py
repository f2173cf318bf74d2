"""What is new in a host's list of messages.

Most hosts keep the conversation themselves and hand in all of it on each call, without ids. So the list is
matched against the line: what agrees from the start is known, what agrees up to the end of the line is known
too, and what stands between is an edit. A regenerated answer, a corrected question, a trimmed beginning and
a summary in front are all that one shape, and none of them is an error.

Messages that compare equal are the same message: key order and `1` against `1.0` do not make an edit, and
what goes out is then the form that came in first, which is also the one the provider has in its cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inmind.core.encoding import digest_of
from inmind.core.frozen import frozen
from inmind.history.conversation import Conversation


@frozen
class SyncResult:
    """The host's list is the line with `[start, stop)` replaced by `new`, and `added` at the end."""

    start: int
    stop: int
    inserted: Sequence[Mapping[str, Any]]
    appended: Sequence[Mapping[str, Any]]

    @property
    def has_edit(self) -> bool:
        return bool(self.inserted) or self.start != self.stop


def find_appended(conversation: Conversation, messages: Sequence[Any]) -> Sequence[Any] | None:
    """The usual case at the speed of one comparison: what stands behind the known messages; None for an edit."""
    known = len(conversation)
    return messages[known:] if list(messages[:known]) == conversation.wires else None


def match_messages(conversation: Conversation, messages: Sequence[Mapping[str, Any]]) -> SyncResult:
    """The general case: what was replaced by what, and what came behind it."""
    length = len(conversation)
    start = _common_length(conversation.wires, messages)
    if start == length:
        return SyncResult(start=length, stop=length, inserted=(), appended=messages[length:])
    overlap, at = _overlap(conversation, messages, start)
    if not overlap:
        return SyncResult(start=start, stop=length, inserted=messages[start:], appended=())
    return SyncResult(
        start=start, stop=length - overlap, inserted=messages[start:at], appended=messages[at + overlap :]
    )


def _common_length(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> int:
    for index, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            return index
    return min(len(ours), len(theirs))


def _overlap(conversation: Conversation, messages: Sequence[Mapping[str, Any]], start: int) -> tuple[int, int]:
    """How many messages at the end of the line stand in the list after `start`, and where they begin there.

    The longest such run: short messages come again ("ok"), and a short run would take old ones for new.
    """
    ours = [entry.digest for entry in conversation[start:]]
    theirs = [digest_of(wire) for wire in messages[start:]]
    longest, begins = 0, 0
    for end in range(len(theirs), 0, -1):
        most = min(end, len(ours))
        if most <= longest:
            break
        length = next((n for n in range(most) if ours[-1 - n] != theirs[end - 1 - n]), most)
        if length > longest:
            longest, begins = length, end - length
    return longest, start + begins
