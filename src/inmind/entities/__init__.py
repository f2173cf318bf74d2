"""What is being talked about: typed ids taken from tools' results without a model, and what "it" means.

`reading`, `calls`, `ids` say what a result, a tool's name, a key and a value are; `extract` and `mentions` make
sightings of them; `window` folds those; `block` shows them; `resolve` and `ground` answer questions about them.
"""
