"""The conversation: all messages, those that are sent, and matching of a host's list."""

from inmind.history.history import ActiveCompaction, Conversation, ConversationEntry, EntriesByRange, History
from inmind.history.sync import SyncResult, find_appended, match_messages

__all__ = [
    "ActiveCompaction",
    "Conversation",
    "ConversationEntry",
    "EntriesByRange",
    "History",
    "SyncResult",
    "find_appended",
    "match_messages",
]
