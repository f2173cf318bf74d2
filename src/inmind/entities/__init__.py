"""Entities: typed ids from tool results and messages, and reference resolution.

No model is needed. `ids` and `find_ids` recognise ids, `extract` turns tool results into sightings, `observe` turns
messages and results into events, `window` folds sightings into the entity window, `render` writes the block for the
model, `references` resolves "it" and "that page", `grounding` checks the ids of a tool call.
"""
