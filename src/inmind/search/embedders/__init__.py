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
from inmind.search.embedders.base import Embedder, FunctionEmbedder, are_installed
from inmind.search.embedders.http import http_embedder, parse_http_embedder
from inmind.search.embedders.local import (
    MINILM_PACKAGES,
    WORDLLAMA_PACKAGES,
    fastembed,
    minilm,
    model2vec,
    wordllama,
)

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
    library, _, model = name.partition(":")
    if name == "auto":
        installed = [one for one, packages in _PACKAGES.items() if are_installed(*packages)]
        return _BUILT_IN[installed[0]]() if installed else None
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    if model and library in _BY_MODEL:
        return _BY_MODEL[library](model)
    if name == "none":
        return None
    raise _unknown_embedder(name)


_BUILT_IN = {"wordllama": wordllama, "minilm": minilm}
_PACKAGES = {"wordllama": WORDLLAMA_PACKAGES, "minilm": MINILM_PACKAGES}
"""In the order in which "auto" prefers them."""
_BY_MODEL = {"openai": parse_http_embedder, "fastembed": fastembed, "model2vec": model2vec}


def _unknown_embedder(value: object) -> InvalidInput:
    expected = (
        '"wordllama", "minilm", "auto", "none", "openai:MODEL@URL#DIMENSIONS", "fastembed:MODEL", "model2vec:MODEL", '
        "an Embedder, or FunctionEmbedder(function, name=…, dimensions=…)"
    )
    return InvalidInput(field="embedder", value=value, expected=expected)
