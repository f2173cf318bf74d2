"""Background work: dreams, upkeep, consolidation, and the limits on what it may spend."""
