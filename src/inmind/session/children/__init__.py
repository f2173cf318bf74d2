"""Sessions that come from a session: what a child begins with, and how its changes come home."""
