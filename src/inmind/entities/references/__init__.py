"""Resolves references in text ("it", "the second image") to entities, without a model.

`spaced` and `unspaced` find the phrases of a text from the tables of its language (`core.language`); `context` holds
the entities that may be meant, `name_match` finds them by name; `candidates` decides one reference, `resolve` the whole
text; `result` has the values.
"""
