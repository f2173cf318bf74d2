"""The conversation as it stands: the line of messages, how a host's list is matched against it, and what is sent."""

from inmind.history.conversation import Conversation, ConversationEntry
from inmind.history.history import ActiveCompaction, EntriesByRange, History
from inmind.history.sync import SyncResult, find_appended, match_messages

__all__ = [
    "EntriesByRange",
    "ActiveCompaction",
    "Conversation",
    "ConversationEntry",
    "History",
    "SyncResult",
    "find_appended",
    "match_messages",
]
