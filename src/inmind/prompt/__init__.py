"""Building a prompt: layers within budgets, an anchored prefix, the history, and a tail with the changes since the
anchor.
"""
