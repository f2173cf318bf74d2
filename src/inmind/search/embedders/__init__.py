"""Embedders by name.

    "wordllama"                     static vectors, installed by the extra `vectors`: under a millisecond per text
    "minilm"                        a small transformer, if installed: better in short chats, far slower
    "auto"                          wordllama, else MiniLM, if installed; else none
    "openai:MODEL@URL#DIMENSIONS"   an endpoint, such as "openai:nomic-embed-text@http://localhost:11434/v1#768"
    "fastembed:MODEL"               a model of that library
    "model2vec:MODEL"               a model of that library, or its folder
    "none"                          search by words only

No text leaves the machine unless an endpoint is named. Only fastembed and model2vec download models, once.
"""

from __future__ import annotations

from inmind.errors import InvalidInput
from inmind.search.embedders.base import Embedder, are_installed
from inmind.search.embedders.function import FunctionEmbedder
from inmind.search.embedders.http import http_embedder, parse_http_embedder
from inmind.search.embedders.libraries import fastembed, model2vec
from inmind.search.embedders.minilm import PACKAGES as FOR_MINILM
from inmind.search.embedders.minilm import minilm
from inmind.search.embedders.wordllama import PACKAGES as FOR_WORDLLAMA
from inmind.search.embedders.wordllama import wordllama

__all__ = ["Embedder", "FunctionEmbedder", "create_embedder", "http_embedder"]


def create_embedder(value: str | Embedder | None) -> Embedder | None:
    """Return the embedder for a name, an Embedder or None.

    InvalidInput for an unknown name, and with the install command for a missing package. Weights are loaded when
    the first text is embedded.
    """
    if value is None or isinstance(value, FunctionEmbedder):
        return value
    if isinstance(value, str):
        return _by_name(value)
    if isinstance(value, Embedder):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host may pass anything
        return FunctionEmbedder(value.embed, name=value.name, dimensions=value.dimensions)
    raise _unknown_embedder(value)


def _by_name(name: str) -> Embedder | None:
    match name.partition(":"):
        case "none", "", _:
            return None
        case "auto", "", _:
            return wordllama() if are_installed(*FOR_WORDLLAMA) else minilm() if are_installed(*FOR_MINILM) else None
        case "wordllama", "", _:
            return wordllama()
        case "minilm", "", _:
            return minilm()
        case "openai", _, model if model:
            return parse_http_embedder(model)
        case "fastembed", _, model if model:
            return fastembed(model)
        case "model2vec", _, model if model:
            return model2vec(model)
        case _:
            raise _unknown_embedder(name)


def _unknown_embedder(value: object) -> InvalidInput:
    expected = (
        '"wordllama", "minilm", "auto", "none", "openai:MODEL@URL#DIMENSIONS", "fastembed:MODEL", "model2vec:MODEL", '
        "an Embedder, or FunctionEmbedder(function, name=…, dimensions=…)"
    )
    return InvalidInput(field="embedder", value=value, expected=expected)
