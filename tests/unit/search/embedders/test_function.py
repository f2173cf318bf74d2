"""FunctionEmbedder checks and normalises the results of any function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.errors import InvalidInput, ModelFailed, StoreBusy
from inmind.search.embedders import FunctionEmbedder
from inmind.search.embedders.base import MAX_TEXT_CHARS

pytestmark = pytest.mark.spec("H4")


def embedder_returning(answer: Any, *, dimensions: int = 2) -> FunctionEmbedder:
    return FunctionEmbedder(lambda _: answer, name="toy", dimensions=dimensions)


@given(row=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_vectors_are_scaled_to_unit_length(row: list[float]) -> None:
    [unit] = embedder_returning([row], dimensions=3).embed(["hello"])
    largest = max(map(abs, row))
    assert np.linalg.norm(unit) == pytest.approx(1 if largest else 0, abs=1e-6)
    if largest:
        assert unit / np.abs(unit).max() == pytest.approx([number / largest for number in row], abs=1e-6)


def test_the_model_gets_only_non_empty_texts() -> None:
    received: list[str] = []

    def record_texts(texts: Sequence[str]) -> list[list[float]]:
        received.extend(texts)
        return [[1.0, 0.0]] * len(texts)

    FunctionEmbedder(record_texts, name="toy", dimensions=2).embed(["", " hello\n", "\ud83d", "x" * 10_000])
    assert received == ["hello", "?", "x" * MAX_TEXT_CHARS]


def test_the_model_is_not_called_without_texts() -> None:
    def never(_: Sequence[str]) -> list[list[float]]:
        raise AssertionError

    assert not FunctionEmbedder(never, name="toy", dimensions=2).embed(["", " "]).any()


@each_row(
    ("answer", "reason"),
    [
        ([], "returned 0, expected 1 x 2"),
        ([[1.0, 2.0], [1.0, 2.0]], "returned 2 x 2, expected 1 x 2"),
        ([[1.0, 2.0, 3.0]], "returned 1 x 3, expected 1 x 2"),
        ([[1.0], [1.0, 2.0]], "did not return rows of numbers"),
        ([["a", "b"]], "did not return rows of numbers"),
        ({}, "did not return rows of numbers"),
        (None, "returned one number, expected 1 x 2"),
        ([[1.0, float("nan")]], "not finite"),
        ([[1.0, float("inf")]], "not finite"),
    ],
)
def test_an_invalid_result_is_rejected_with_the_model_name(answer: Any, reason: str) -> None:
    with pytest.raises(ModelFailed) as failed:
        embedder_returning(answer).embed(["hello"])
    assert failed.value.reason.startswith("toy#2 ")
    assert reason in failed.value.reason


def test_errors_of_the_model_are_wrapped_and_inmind_errors_pass() -> None:
    def broken(_: Sequence[str]) -> list[list[float]]:
        raise KeyError("weights")

    with pytest.raises(ModelFailed, match="toy#2 raised KeyError: 'weights'") as failed:
        FunctionEmbedder(broken, name="toy", dimensions=2).embed(["hello"])
    assert isinstance(failed.value.__cause__, KeyError)

    def busy(_: Sequence[str]) -> list[list[float]]:
        raise StoreBusy(place="the cache", seconds=1)

    with pytest.raises(StoreBusy):
        FunctionEmbedder(busy, name="toy", dimensions=2).embed(["hello"])


def test_an_asynchronous_function_is_rejected() -> None:
    async def later(_: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0]]

    function: Any = later
    with pytest.raises(ModelFailed, match="asynchronous"):
        FunctionEmbedder(function, name="toy", dimensions=2).embed(["hello"])


def test_the_dimensions_are_part_of_the_name() -> None:
    assert embedder_returning([], dimensions=2).name == "toy#2"
    assert embedder_returning([], dimensions=3).name == "toy#3"
    assert FunctionEmbedder(lambda _: [], name="toy#3", dimensions=3).name == "toy#3"


@pytest.mark.parametrize("name", ["", " ", None, 7])
def test_a_model_without_a_name_is_rejected(name: Any) -> None:
    with pytest.raises(InvalidInput, match="name of the model"):
        FunctionEmbedder(lambda _: [], name=name, dimensions=2)


@each_row("dimensions", [0, -1, 65_537, True, 2.0, "2", None])
def test_invalid_dimensions_are_rejected(dimensions: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        FunctionEmbedder(lambda _: [], name="toy", dimensions=dimensions)
    assert refused.value.field == "dimensions"
