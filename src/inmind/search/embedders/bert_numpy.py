"""A BERT encoder in numpy: tokens in, one vector per text out.

The texts of a batch are concatenated in one matrix, a row per token. Everything but attention works on single rows,
so there is no padding or masking, and the batch cannot influence a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Weights = Mapping[str, Matrix]

HEAD_WIDTH = 32
"""Width of one attention head."""

EPSILON = np.float32(1e-12)


class Dense(NamedTuple):
    weight: Matrix
    bias: Matrix

    @classmethod
    def of(cls, weights: Weights, name: str) -> Dense:
        return cls(weights[f"{name}.weight"].T, weights[f"{name}.bias"])

    def __call__(self, x: Matrix) -> Matrix:
        y = x @ self.weight
        y += self.bias
        return y


class Norm(NamedTuple):
    scale: Matrix
    shift: Matrix

    @classmethod
    def of(cls, weights: Weights, name: str) -> Norm:
        return cls(weights[f"{name}.weight"], weights[f"{name}.bias"])

    def __call__(self, x: Matrix) -> Matrix:
        x = x - x.mean(axis=1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(axis=1, keepdims=True) + EPSILON)
        x *= self.scale
        x += self.shift
        return x


class EncoderLayer(NamedTuple):
    query: Dense
    key: Dense
    value: Dense
    attention_output: Dense
    attention_norm: Norm
    intermediate: Dense
    output: Dense
    output_norm: Norm

    @classmethod
    def of(cls, weights: Weights, name: str) -> EncoderLayer:
        own, out = f"{name}.attention.self", f"{name}.attention.output"
        return cls(
            query=Dense.of(weights, f"{own}.query"),
            key=Dense.of(weights, f"{own}.key"),
            value=Dense.of(weights, f"{own}.value"),
            attention_output=Dense.of(weights, f"{out}.dense"),
            attention_norm=Norm.of(weights, f"{out}.LayerNorm"),
            intermediate=Dense.of(weights, f"{name}.intermediate.dense"),
            output=Dense.of(weights, f"{name}.output.dense"),
            output_norm=Norm.of(weights, f"{name}.output.LayerNorm"),
        )

    def __call__(self, x: Matrix, texts: Sequence[slice]) -> Matrix:
        query, key, value = self.query(x), self.key(x), self.value(x)
        attended = np.concatenate([attention(query[text], key[text], value[text]) for text in texts])
        x = self.attention_norm(x + self.attention_output(attended))
        return self.output_norm(x + self.output(gelu(self.intermediate(x))))


class Encoder(NamedTuple):
    word_embeddings: Matrix
    position_embeddings: Matrix
    norm: Norm
    layers: Sequence[EncoderLayer]

    @classmethod
    def of(cls, weights: Weights) -> Encoder:
        """Build from weights with the names of BERT models."""
        depth = sum(name.endswith(".intermediate.dense.bias") for name in weights)
        return cls(
            word_embeddings=weights["embeddings.word_embeddings.weight"],
            # All tokens have type 0, so its embedding is added to the positions.
            position_embeddings=weights["embeddings.position_embeddings.weight"]
            + weights["embeddings.token_type_embeddings.weight"][0],
            norm=Norm.of(weights, "embeddings.LayerNorm"),
            layers=[EncoderLayer.of(weights, f"encoder.layer.{number}") for number in range(depth)],
        )

    def __call__(self, texts: Sequence[Sequence[int]]) -> Matrix:
        """Return the mean of the token vectors of each text after the last layer."""
        lengths = np.array([len(ids) for ids in texts])
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        spans = [slice(start, end) for start, end in pairwise(bounds.tolist())]
        x = self.word_embeddings[np.concatenate(texts)] + np.concatenate(
            [self.position_embeddings[:length] for length in lengths]
        )
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, spans)
        sums: Matrix = np.add.reduceat(x, bounds[:-1])
        return sums / lengths[:, None].astype(np.float32)


def attention(*inputs: Matrix) -> Matrix:
    """Multi-head self-attention of one text, from its queries, keys and values."""
    query, key, value = (rows.reshape(len(rows), -1, HEAD_WIDTH).transpose(1, 0, 2) for rows in inputs)
    weight = query @ key.transpose(0, 2, 1)
    weight /= np.float32(HEAD_WIDTH**0.5)
    weight -= weight.max(axis=2, keepdims=True)  # avoids overflow
    np.exp(weight, out=weight)
    attended = weight @ value / weight.sum(axis=2, keepdims=True)
    return attended.transpose(1, 0, 2).reshape(query.shape[1], -1)


def gelu(x: Matrix) -> Matrix:
    y = erf(x * np.float32(0.5**0.5))
    y += 1
    y *= x
    y *= np.float32(0.5)
    return y


def erf(x: Matrix) -> Matrix:
    """Error function by Abramowitz and Stegun 7.1.26, to 1e-6 in float32; numpy has none."""
    size = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * size)
    series = np.float32(1.061405429) * t
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += np.float32(coefficient)
        series *= t
    series *= np.exp(-size * size)
    return np.copysign(1 - series, x)
