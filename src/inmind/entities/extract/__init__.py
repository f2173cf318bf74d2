"""Extracts entity sightings from tool results (`from_result`) and messages (`from_message`)."""
