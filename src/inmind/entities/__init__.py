"""What is being talked about: typed ids taken from tools' results without a model, and what "it" means.

`ids` says what an id looks like, `extract` makes sightings of what happens, `window` folds them, `block` shows them;
`resolve` and `ground` answer questions about them.
"""
