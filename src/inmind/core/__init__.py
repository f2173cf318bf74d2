"""What every room builds on: events, messages, JSON, text, tokens. It knows no subject."""
