"""The memory tools that a model can call."""
