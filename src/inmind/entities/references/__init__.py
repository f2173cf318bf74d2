"""Resolves references in text ("it", "the second image") to entities, without a model.

`spaced` and `unspaced` find the phrases of a text from the tables of its language (`core.language`); `name_match` finds
entities by name; `result` has the values, and the context with the entities that may be meant; `candidates` decides one
reference, `resolve` the whole text.
"""
