"""The scratchpad: a text, or an object with a schema, that the agent updates.

`update` validates an update (`values` copies it), `state` folds it, `schema` validates the result, `render` shows it,
and `merge3` merges a child's changes.
"""
