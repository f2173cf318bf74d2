"""Models of the library fastembed, by ONNX. It fetches a model that its cache lacks: naming one allows that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from inmind.errors import InvalidInput
from inmind.search.embedders.function import Called
from inmind.search.embedders.installed import needs


def fastembed(model: str) -> Called:
    needs("fastembed", embedder=f"fastembed:{model}", install="pip install fastembed")
    library = import_module("fastembed").TextEmbedding
    sizes: dict[str, int] = {one["model"]: one["dim"] for one in library.list_supported_models()}
    if model not in sizes:
        raise InvalidInput(field="embedder", value=f"fastembed:{model}", expected="a model that fastembed lists")
    loaded = cache(lambda: library(model))

    def rows(texts: Sequence[str]) -> list[Any]:
        return list(loaded().embed(texts))

    return Called(rows, name=f"fastembed:{model}", dimensions=sizes[model])
