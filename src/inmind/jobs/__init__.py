"""Background work: dreams, upkeep, consolidation, and rate limits."""
