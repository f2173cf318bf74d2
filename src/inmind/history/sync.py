"""Finds new messages in a host's message list.

Most hosts keep the conversation and pass all of it on each call, without ids. The list is matched against the stored
conversation: the common prefix is known, the longest overlap with its end is known, and everything between is an
edit. A regenerated answer, a corrected question, a trimmed beginning and a summary in front all have this form. None
is an error.

Messages that compare equal are the same message: key order, or `1` and `1.0`, make no edit. The form that was stored
first is sent, which is also the one in the provider's cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inmind.core.encoding import digest_of
from inmind.core.frozen import frozen
from inmind.history.conversation import Conversation


@frozen
class SyncResult:
    """Difference of a host's list: `inserted` replaces `[start, stop)`; `appended` follows."""

    start: int
    stop: int
    inserted: Sequence[Mapping[str, Any]]
    appended: Sequence[Mapping[str, Any]]

    @property
    def has_edit(self) -> bool:
        return bool(self.inserted) or self.start != self.stop


def find_appended(conversation: Conversation, messages: Sequence[Any]) -> Sequence[Any] | None:
    """Return the messages after the known ones; None if the list has an edit.

    The fast path: one comparison.
    """
    known = len(conversation)
    return messages[known:] if list(messages[:known]) == conversation.wires else None


def match_messages(conversation: Conversation, messages: Sequence[Mapping[str, Any]]) -> SyncResult:
    """Return the edit and the appended messages of any list."""
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
    """Return length and start of the longest run in the list that ends the conversation.

    The longest run, because short messages repeat ("ok") and a short run would mistake old messages for new ones.
    """
    ours = [entry.digest for entry in conversation[start:]]
    theirs = [digest_of(wire) for wire in messages[start:]]
    longest, first = 0, 0
    for end in range(len(theirs), 0, -1):
        most = min(end, len(ours))
        if most <= longest:
            break
        length = next((n for n in range(most) if ours[-1 - n] != theirs[end - 1 - n]), most)
        if length > longest:
            longest, first = length, end - length
    return longest, start + first
