"""The conversation as it stands: the line of messages, and how a host's list is matched against it."""

from inmind.history.line import Entry, Line
from inmind.history.sync import Sync, added_to, match

__all__ = ["Entry", "Line", "Sync", "added_to", "match"]
