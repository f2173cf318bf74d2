"""Builds prompts: layers within budgets, an anchored prefix, the history, and a tail with changes."""
