"""A BERT encoder in numpy: tokens in, one vector per text out.

The texts of a batch are concatenated in one matrix, a row per token. Everything but attention works on single rows,
so there is no padding or masking, and the batch cannot influence a text. Weights have the names of BERT models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, pairwise, takewhile

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Weights = Mapping[str, Matrix]

HEAD_WIDTH = 32
"""Width of one attention head."""

EPSILON = np.float32(1e-12)


def encode(weights: Weights, texts: Sequence[Sequence[int]]) -> Matrix:
    """Return the mean of the token vectors of each text after the last layer."""
    lengths = np.array([len(ids) for ids in texts])
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    spans = [slice(start, end) for start, end in pairwise(bounds.tolist())]
    words, positions, token_types = (
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    )
    x = words[np.concatenate(texts)] + np.concatenate([positions[:length] for length in lengths])
    x = _norm(weights, "embeddings", x + token_types[0])  # all tokens have type 0
    layers = (f"encoder.layer.{number}" for number in count())
    for layer in takewhile(lambda layer: f"{layer}.output.dense.bias" in weights, layers):
        x = _layer(weights, layer, x, spans)
    sums: Matrix = np.add.reduceat(x, bounds[:-1])
    return sums / lengths[:, None].astype(np.float32)


def _layer(weights: Weights, name: str, x: Matrix, texts: Sequence[slice]) -> Matrix:
    inputs = [_dense(weights, f"{name}.attention.self.{part}", x) for part in ("query", "key", "value")]
    attended = np.concatenate([_attention(*(rows[text] for rows in inputs)) for text in texts])
    x = _norm(weights, f"{name}.attention.output", x + _dense(weights, f"{name}.attention.output.dense", attended))
    inner = _gelu(_dense(weights, f"{name}.intermediate.dense", x))
    return _norm(weights, f"{name}.output", x + _dense(weights, f"{name}.output.dense", inner))


def _attention(*inputs: Matrix) -> Matrix:
    """Multi-head self-attention of one text, from its queries, keys and values."""
    query, key, value = (rows.reshape(len(rows), -1, HEAD_WIDTH).transpose(1, 0, 2) for rows in inputs)
    weight = query @ key.transpose(0, 2, 1) / np.float32(HEAD_WIDTH**0.5)
    weight = np.exp(weight - weight.max(axis=2, keepdims=True))  # the difference avoids overflow
    attended = weight @ value / weight.sum(axis=2, keepdims=True)
    return attended.transpose(1, 0, 2).reshape(query.shape[1], -1)


def _dense(weights: Weights, name: str, x: Matrix) -> Matrix:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(weights: Weights, name: str, x: Matrix) -> Matrix:
    x = x - x.mean(axis=1, keepdims=True)
    x /= np.sqrt(np.square(x).mean(axis=1, keepdims=True) + EPSILON)
    return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def _gelu(x: Matrix) -> Matrix:
    return x * (erf(x * np.float32(0.5**0.5)) + 1) * np.float32(0.5)


def erf(x: Matrix) -> Matrix:
    """Error function by Abramowitz and Stegun 7.1.26, to 1e-6 in float32; numpy has none."""
    size = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * size)
    series = np.float32(1.061405429) * t
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(coefficient)) * t
    return np.copysign(1 - series * np.exp(-size * size), x)
