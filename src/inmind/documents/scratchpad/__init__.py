"""What an agent keeps before its eyes while it works: a text, or an object with a schema.

`update` checks what is handed in (`plain` copies it, `padding` tells what a model meant from what it merely filled in),
`merge` and `pad` fold it, `schema` keeps it in shape, `block` shows it, and `reconcile` brings back what a child did,
in a text by its `lines`.
"""
