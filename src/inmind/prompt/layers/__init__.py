"""Layers: one for each kind of memory in a prompt."""
