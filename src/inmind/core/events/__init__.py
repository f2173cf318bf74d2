"""All events, as typed payloads.

The journal is the single source of truth: every piece of state is a fold over its events, so reopening, undo, time
travel, explanation and crash recovery are one mechanism. Every event records its time, the author of its text
(`origin`), its trust, and the events that it was derived from.
"""
