"""The conversation: its messages, matching a host's message list against them, and the messages that are sent."""

from inmind.history.conversation import Conversation, ConversationEntry
from inmind.history.history import ActiveCompaction, EntriesByRange, History
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
