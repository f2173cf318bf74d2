"""What a person's words refer to, without a model.

`english` and `chinese` read a text into the vocabulary of `reference`; `scene` is what may be meant, `naming` knows it
by name; `meaning` decides for one reference, `resolver` for the text. `resolution` is what a host is answered with.
"""
