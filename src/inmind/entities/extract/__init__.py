"""Extracts entity sightings from tool results and messages."""
