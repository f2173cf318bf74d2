"""The memory tools that a model can call; `table` lists them."""
