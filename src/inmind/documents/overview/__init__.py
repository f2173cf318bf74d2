"""overview.md: the page on which the agent keeps its current state."""
