"""What stands around the three agents: a model to ask, the loop that asks it, and something to work on."""
