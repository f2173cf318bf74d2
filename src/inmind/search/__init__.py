"""Search over crystals: indexed and ranked messages, notes, pages and entities."""
