"""Embedders of the libraries fastembed (ONNX) and model2vec.

Both download models that are not cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from inmind.errors import InvalidInput
from inmind.search.embedders.base import require_packages
from inmind.search.embedders.function import FunctionEmbedder


def fastembed(model: str) -> FunctionEmbedder:
    require_packages("fastembed", embedder=f"fastembed:{model}", install="pip install fastembed")
    library = import_module("fastembed").TextEmbedding
    sizes: dict[str, int] = {supported["model"]: supported["dim"] for supported in library.list_supported_models()}
    if model not in sizes:
        raise InvalidInput(field="embedder", value=f"fastembed:{model}", expected="a model supported by fastembed")
    loaded = cache(lambda: library(model))

    def rows(texts: Sequence[str]) -> list[Any]:
        return list(loaded().embed(texts))

    return FunctionEmbedder(rows, name=f"fastembed:{model}", dimensions=sizes[model])


def model2vec(model: str) -> FunctionEmbedder:
    """Load the model at once, because only the model knows its dimensions."""
    require_packages("model2vec", embedder=f"model2vec:{model}", install="pip install model2vec")
    try:
        loaded = import_module("model2vec").StaticModel.from_pretrained(model)
    except Exception as error:  # errors of the library or of its download
        expected = f"a model that can be loaded ({type(error).__name__}: {error})"
        raise InvalidInput(field="embedder", value=f"model2vec:{model}", expected=expected) from error

    def rows(texts: Sequence[str]) -> Any:
        return loaded.encode(list(texts))

    return FunctionEmbedder(rows, name=f"model2vec:{model}", dimensions=int(loaded.dim))
