"""wordllama: token vectors of a large language model, trained to be summed.

A text is the sum of its token vectors: no word order and mostly English, but half a millisecond and no network. The
weights are in the package. Only two of its files are read, because importing it configures the logging of the
process, and its `load()` looks for the tokenizer in the wrong folder and then downloads one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from inmind.search.embedders.base import package_folder, require_packages
from inmind.search.embedders.function import FunctionEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

PACKAGES = ("wordllama", "numpy", "safetensors", "tokenizers")


def wordllama() -> FunctionEmbedder:
    require_packages(*PACKAGES, embedder="wordllama")
    return FunctionEmbedder(_embed, name="wordllama-l2-supercat", dimensions=256)


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    import numpy as np

    vectors, tokenizer = _model()
    tokens = (tokenizer.encode(text, add_special_tokens=False).ids for text in texts)
    return np.stack([vectors[ids].sum(axis=0, dtype=np.float32) for ids in tokens])


@cache
def _model() -> tuple[NDArray[np.float16], Tokenizer]:
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] -- untyped path parameter
    from tokenizers import Tokenizer

    package = package_folder("wordllama")
    weights = load_file(package / "weights" / "l2_supercat_256.safetensors")
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return weights["embedding.weight"], tokenizer
