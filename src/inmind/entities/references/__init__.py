"""Resolves references in text ("it", "the second image") to entities, without a model.

`english` and `chinese` parse a text into phrases (`phrase`); `context` holds the entities that may be meant,
`name_match` finds them by name; `candidates` decides one reference, `resolve` the whole text; `result` has the
values returned to the host.
"""
