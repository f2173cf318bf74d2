"""Builds prompts: layers within budgets, an anchored prefix, history, and a tail."""
