"""The conversation as it stands: the line of messages, how a host's list is matched against it, and what is sent."""

from inmind.history.conversation import Conversation, ConversationEntry
from inmind.history.history import Behind, Compaction, History
from inmind.history.sync import Sync, added_to, match

__all__ = ["Behind", "Compaction", "Conversation", "ConversationEntry", "History", "Sync", "added_to", "match"]
