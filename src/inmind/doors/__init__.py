"""Ways in: each parses, makes one call, and presents the answer."""
