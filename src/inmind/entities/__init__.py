"""Entities: typed ids from tool results and messages, and reference resolution.

No model is needed. `extract` turns tool results and messages into sightings, `ids` recognises ids, `window` folds
sightings into the entity window, `render` writes the block for the model, `references` resolves "it" and "that page",
`grounding` checks the ids of a tool call.
"""
