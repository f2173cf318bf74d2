"""The scratchpad: a text, or an object with a schema, that the agent updates.

`state` validates an update (`values` copies it), folds it and merges a child's changes, `schema` validates the result,
and `render` shows it.
"""
