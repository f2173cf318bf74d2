"""Threads: conversations that the provider holds.

A request in a thread has only the new messages. It names the reply that it continues from, or a conversation at the
provider. A recorded reply is found by its id. Any other reply, and a conversation, is taken for the whole recorded
conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inmind.history.conversation import Conversation, ConversationEntry


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
    while end < len(entries) and _continues_reply(entries[end - 1], entries[end]):
        end += 1
    return end


def _continues_reply(before: ConversationEntry, entry: ConversationEntry) -> bool:
    """True if a message is of the same reply as the one before it, or of the next round."""
    is_reply = bool(entry.reply_id) and (before.is_memory_reply or before.reply_id == entry.reply_id)
    return is_reply or entry.is_memory_reply


def _repeated_length(known: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> int:
    """Number of new messages that the conversation ends with.

    They are of a request that failed and is sent again.
    """
    lengths = range(min(len(known), len(new)), 0, -1)
    return next((length for length in lengths if list(known[-length:]) == list(new[:length])), 0)
