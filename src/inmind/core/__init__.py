"""Base of all other packages, which imports none of them: events, messages, JSON, text."""
