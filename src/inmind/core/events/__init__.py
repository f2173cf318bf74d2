"""All events, as typed payloads.

The journal is the single source of truth: every piece of state is a fold over its events, so reopening, undo, time
travel, explanation and crash recovery are one mechanism. Every event records when it happened, where its text comes
from (`origin`), how far to trust it, and which events it was derived from.
"""
