"""What an agent keeps in front of it while it works: a text, or an object with a schema.

`update` takes in what a host or a model hands over, `padding` tells what a model meant from what it merely filled in,
`merge` and `pad` fold it, `schema` keeps it in shape, `block` shows it, and `homecoming` brings back what a child did.
"""
