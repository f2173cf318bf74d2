"""Models that embed texts, by name, and held to the promises of the port.

    "wordllama"                     static vectors, which the extra `vectors` brings: a fraction of a millisecond a text
    "minilm"                        a small transformer, where installed: it finds more in short chats, far slower
    "auto"                          wordllama, else MiniLM, whichever is installed; or none
    "openai:MODEL@URL#DIMENSIONS"   an endpoint, as in "openai:nomic-embed-text@http://localhost:11434/v1#768"
    "fastembed:MODEL"               a model of that library's
    "model2vec:MODEL"               likewise, or the folder of one
    "none"                          search by words alone

No text leaves the machine unless an endpoint is named; nothing is fetched but by those two libraries, which do it once.
"""

from __future__ import annotations

from inmind.errors import InvalidInput
from inmind.search.embedders.base import Embedder
from inmind.search.embedders.function import FunctionEmbedder
from inmind.search.embedders.http import http_embedder, parse_http_embedder
from inmind.search.embedders.installed import are_installed
from inmind.search.embedders.libraries import fastembed, model2vec
from inmind.search.embedders.minilm import PACKAGES as FOR_MINILM
from inmind.search.embedders.minilm import minilm
from inmind.search.embedders.wordllama import PACKAGES as FOR_WORDLLAMA
from inmind.search.embedders.wordllama import wordllama

__all__ = ["FunctionEmbedder", "Embedder", "create_embedder", "http_embedder"]


def create_embedder(value: str | Embedder | None) -> Embedder | None:
    """InvalidInput for what is unknown, and with what to install for what is missing.

    Weights are read when the first text is embedded: naming a model takes no time.
    """
    if value is None or isinstance(value, FunctionEmbedder):
        return value
    if isinstance(value, str):
        return _by_name(value)
    if isinstance(value, Embedder):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host may hand in anything
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
        "an Embedder, or Called(function, name=…, dimensions=…)"
    )
    return InvalidInput(field="embedder", value=value, expected=expected)
