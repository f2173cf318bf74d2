"""Static models of the library model2vec, from a folder or by name; one that is not on the disk it fetches."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from inmind.errors import InvalidInput
from inmind.search.embedders.function import Called
from inmind.search.embedders.installed import needs


def model2vec(model: str) -> Called:
    """Reads the model at once, since nothing else tells its dimensions."""
    needs("model2vec", embedder=f"model2vec:{model}", install="pip install model2vec")
    try:
        loaded = import_module("model2vec").StaticModel.from_pretrained(model)
    except Exception as error:  # a library's own, or those of the network it uses
        expected = f"a model that can be loaded ({type(error).__name__}: {error})"
        raise InvalidInput(field="embedder", value=f"model2vec:{model}", expected=expected) from error

    def rows(texts: Sequence[str]) -> Any:
        return loaded.encode(list(texts))

    return Called(rows, name=f"model2vec:{model}", dimensions=int(loaded.dim))
