"""Finds new messages in a host's message list, or in a thread.

Most hosts keep the conversation and pass all of it on each call, without ids. The list is matched against the stored
conversation: the common prefix is known, the longest overlap with its end is known, and everything between is an
edit. A regenerated answer, a corrected question, a trimmed beginning and a summary in front all have this form. None
is an error.

Messages that compare equal are the same message: key order, or `1` and `1.0`, make no edit. The form that was stored
first is sent, which is also the one in the provider's cache.

The provider holds the conversation of a thread, and a request in it has only the new messages. It names the reply that
it continues from, or a conversation at the provider. A recorded reply is found by its id. Any other reply, and a
conversation, is taken for the whole recorded conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from inmind.core.encoding import digest_of
from inmind.core.frozen import frozen
from inmind.history.history import Conversation


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
    pairs = zip(conversation.wires, messages, strict=False)
    start = next((place for place, (mine, other) in enumerate(pairs) if mine != other), min(length, len(messages)))
    if start == length:
        return SyncResult(start=length, stop=length, inserted=(), appended=messages[length:])
    overlap, at = _overlap(conversation, messages, start)
    if not overlap:
        return SyncResult(start=start, stop=length, inserted=messages[start:], appended=())
    return SyncResult(
        start=start, stop=length - overlap, inserted=messages[start:at], appended=messages[at + overlap :]
    )


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


class ThreadPosition(NamedTuple):
    """The place in the conversation at which a thread continues."""

    held_count: int
    """Number of messages that the provider holds."""
    end: int
    """Number of messages before the new ones. Those between are results of memory tools that it does not hold yet."""


def find_position(conversation: Conversation, thread: str, new: Sequence[Mapping[str, Any]] | None) -> ThreadPosition:
    """Return the position of new messages in a thread.

    None: they are in the conversation already.
    """
    end = _reply_end(conversation, thread)
    if end is None and new is None:
        end = max((place for place, entry in enumerate(conversation, start=1) if entry.reply_id), default=0)
    elif end is None:
        end = len(conversation) - _repeated_length(conversation.wires, new or ())
    held_count = end
    while held_count and conversation[held_count - 1].is_memory_reply:
        held_count -= 1
    return ThreadPosition(held_count, end)


def last_reply_id(conversation: Conversation, thread: str) -> str:
    """Return the id to continue a thread from.

    A reply that memory answered was followed by further replies, which the host was shown as one with the first id.
    """
    if _reply_end(conversation, thread) is None:
        return thread
    return conversation[find_position(conversation, thread, ()).held_count - 1].reply_id


def _reply_end(conversation: Conversation, reply_id: str) -> int | None:
    """Number of messages up to the end of a reply and its hidden rounds.

    None if the reply is not recorded.
    """
    entries = conversation[:]
    start = next((place for place in reversed(range(len(entries))) if entries[place].reply_id == reply_id), None)
    if start is None:
        return None
    end = start + 1
    for before, entry in pairwise(entries[start:]):
        # Of the same reply as the message before, or of the next round.
        is_reply = bool(entry.reply_id) and (before.is_memory_reply or before.reply_id == entry.reply_id)
        if not (is_reply or entry.is_memory_reply):
            break
        end += 1
    return end


def _repeated_length(known: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> int:
    """Number of new messages that the conversation ends with.

    They are of a request that failed and is sent again.
    """
    lengths = range(min(len(known), len(new)), 0, -1)
    return next((length for length in lengths if list(known[-length:]) == list(new[:length])), 0)
