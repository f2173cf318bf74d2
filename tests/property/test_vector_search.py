"""Properties of nearest vectors for any sequence of additions and queries."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.search.nearest import NearestVectors

DIMENSIONS = 8

Vector = tuple[float, ...]
Step = list[tuple[int, Vector]]

# Few keys, so that they repeat. The vectors have unit length, with one 1 or four halves, and their products are sums
# of quarters. These are exact in any order of addition, so equally near vectors have equal cosines.
KEYS = st.integers(-3, 12)
VECTORS = st.sampled_from(
    [
        tuple(dict(zip(places, numbers, strict=True)).get(place, 0.0) for place in range(DIMENSIONS))
        for size, count in ((1.0, 1), (0.5, 4))
        for places in combinations(range(DIMENSIONS), count)
        for numbers in product((-size, size), repeat=count)
    ]
)
PAIRS = st.lists(st.tuples(KEYS, VECTORS), max_size=8)

# The first step adds more vectors than most queries return, so that there is a choice.
STEPS = st.tuples(
    st.lists(st.tuples(KEYS, VECTORS), min_size=8, max_size=16),
    st.lists(PAIRS),
).map(lambda steps: [steps[0], *steps[1]])
LIMITS = st.integers(0, 4) | st.integers(0, 20)


@pytest.mark.spec("H3")
@given(STEPS, VECTORS, LIMITS)
def test_the_result_equals_a_full_sort(steps: list[Step], query: Vector, limit: int) -> None:
    nearest, vectors = apply_steps(steps, exact=1_000)
    assert nearest.is_exact
    assert len(nearest) == len(vectors)
    assert nearest.nearest(query, limit) == sort_by_cosine(vectors, query)[:limit]


@pytest.mark.spec("H3")
@given(STEPS, VECTORS, LIMITS, st.integers(0, 10))
def test_rounded_vectors_differ_only_in_the_last_digits(
    steps: list[Step], query: Vector, limit: int, exact: int
) -> None:
    nearest, vectors = apply_steps(steps, exact=exact)
    hits = nearest.nearest(query, limit)
    expected = sort_by_cosine(vectors, query)
    assert [cosine for _, cosine in hits] == pytest.approx([cosine for _, cosine in expected[:limit]], abs=1e-6)
    assert dict(hits) == pytest.approx({key: dict(expected)[key] for key, _ in hits}, abs=1e-6)


def apply_steps(steps: list[Step], *, exact: int) -> tuple[NearestVectors, dict[int, Vector]]:
    nearest, vectors = NearestVectors(DIMENSIONS, max_exact=exact), dict[int, Vector]()
    for pairs in steps:
        nearest.add([key for key, _ in pairs], [vector for _, vector in pairs])
        vectors.update(pairs)
    return nearest, vectors


def sort_by_cosine(vectors: dict[int, Vector], query: Vector) -> list[tuple[int, float]]:
    cosines = {key: sum(a * b for a, b in zip(vector, query, strict=True)) for key, vector in vectors.items()}
    return sorted(cosines.items(), key=lambda hit: (-hit[1], hit[0]))
