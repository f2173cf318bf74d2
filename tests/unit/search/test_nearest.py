"""Nearest vectors in cases a property test does not reach: many, equal, and memory use."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from inmind.search.nearest import MAX_EXACT, NearestVectors

DIMENSIONS = 256


@pytest.mark.spec("H3")
@pytest.mark.parametrize("exact", [MAX_EXACT, 0], ids=["whole", "rounded"])
def test_equal_vectors_are_equally_near_and_ordered_by_key(exact: int) -> None:
    few = some_vectors(3)
    nearest = NearestVectors(DIMENSIONS, max_exact=exact)
    nearest.add(np.random.default_rng(7).permutation(18_000), np.repeat(few, 6_000, axis=0))
    everything = nearest.nearest(few[0], 18_000)
    assert len({cosine for _, cosine in everything}) == 3
    assert everything == sorted(everything, key=lambda hit: (-hit[1], hit[0]))
    assert nearest.nearest(few[0], 10) == everything[:10]


@pytest.mark.spec("H3")
def test_vectors_equal_in_single_precision_are_ordered_correctly() -> None:
    [query] = some_vectors(1)
    vectors = query + np.random.default_rng(5).standard_normal((2_000, DIMENSIONS), np.float32) * np.float32(1e-6)
    nearest = NearestVectors(DIMENSIONS)
    nearest.add(range(2_000), vectors)
    cosines = {key: float(np.dot(vector, query.astype(np.float64))) for key, vector in enumerate(vectors)}
    expected = sorted(cosines.items(), key=lambda hit: (-hit[1], hit[0]))
    assert nearest.nearest(query, 100) == expected[:100]


@pytest.mark.spec("H3")
def test_one_vector_above_the_limit_rounds_all_of_them() -> None:
    vectors = some_vectors(51)
    nearest = NearestVectors(DIMENSIONS, max_exact=50)
    nearest.add(range(50), vectors[:50])
    assert nearest.is_exact
    before = nearest.nearest(vectors[3], 50)
    nearest.add([50], vectors[50:])
    assert not nearest.is_exact
    rounded = dict(nearest.nearest(vectors[3], 51))
    assert {key: rounded[key] for key, _ in before} == pytest.approx(dict(before), abs=0.005)


@pytest.mark.spec("H3")
def test_replacing_a_vector_does_not_increase_the_count() -> None:
    vectors = some_vectors(50)
    nearest = NearestVectors(DIMENSIONS, max_exact=50)
    nearest.add(range(50), vectors)
    nearest.add(range(50), vectors[::-1])
    assert nearest.is_exact
    assert nearest.nearest(vectors[0], 1)[0][0] == 49


@pytest.mark.spec("H3")
@pytest.mark.parametrize("dimensions", [DIMENSIONS, 300])
def test_rounded_vectors_are_found_by_their_signs(dimensions: int) -> None:
    vectors = some_vectors(20_000, dimensions)
    nearest = NearestVectors(dimensions, max_exact=0)
    nearest.add(range(20_000), vectors)
    hits = total = 0
    for query in some_vectors(20_020, dimensions)[20_000:]:
        best = np.argsort(-(vectors @ query))[:10]
        hits += len({key for key, _ in nearest.nearest(query, 10)} & set(best.tolist()))
        total += len(best)
    assert hits / total >= 0.97


@pytest.mark.spec("H3")
@pytest.mark.parametrize("exact", [MAX_EXACT, 0], ids=["whole", "rounded"])
def test_a_zero_vector_is_near_nothing(exact: int) -> None:
    nearest = NearestVectors(DIMENSIONS, max_exact=exact)
    nearest.add([1, 2], np.concatenate([np.zeros((1, DIMENSIONS)), some_vectors(1)]))
    assert nearest.nearest(some_vectors(1)[0], 2) == [(2, pytest.approx(1.0, abs=0.005)), (1, 0.0)]


def test_vectors_must_match_the_keys_and_the_dimensions() -> None:
    nearest = NearestVectors(DIMENSIONS)
    with pytest.raises(ValueError, match="reshape"):
        nearest.add([1, 2], some_vectors(1))
    with pytest.raises(ValueError, match="reshape"):
        nearest.nearest([1.0, 0.0], 1)
    assert len(nearest) == 0


@pytest.mark.spec("H3")
def test_a_rounded_vector_takes_300_bytes() -> None:
    vectors, nearest = some_vectors(1 << 14), NearestVectors(DIMENSIONS, max_exact=0)
    tracemalloc.start()
    try:
        nearest.add(range(1 << 14), vectors)
        full, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert full / (1 << 14) == pytest.approx(300, abs=3)


def some_vectors(count: int, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    """Clustered vectors like those of texts, all distinct. A longer list starts with a shorter one."""
    subjects = np.random.default_rng(1).standard_normal((200, dimensions), np.float32)
    noise = np.random.default_rng(2).standard_normal((count, dimensions), np.float32)
    vectors = subjects[np.arange(count) * 7919 % 200] + noise
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
