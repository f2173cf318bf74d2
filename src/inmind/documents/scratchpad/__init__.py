"""The scratchpad: a text, or an object with a schema, that the agent updates.

`update` validates an update (`json_input` copies it, `filler_values` drops empty filler values),
`merge` and `state` fold it, `schema` validates the result, `render` shows it, and `merge3` merges a child's changes.
"""
