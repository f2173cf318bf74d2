"""The memory tools that a model can call; `registry` has the table."""
