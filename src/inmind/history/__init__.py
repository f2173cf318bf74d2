"""The conversation: all messages, those that are sent, and matching of a host's list."""
