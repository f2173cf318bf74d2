"""Ways in for people and programs: parse, one call, present."""
