"""The base of every room: events, messages, JSON, text, tokens. It knows no subject."""
