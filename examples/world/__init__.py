"""Shared parts of the example agents: a model, the agent loop, and something to work on."""
