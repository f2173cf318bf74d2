"""Runs a dream: lease, gather, ask the model, commit."""
