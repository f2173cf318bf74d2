"""Properties of nearest vectors for any sequence of additions, removals and queries."""

from __future__ import annotations

from itertools import combinations, product
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.search.nearest import NearestVectors

DIMENSIONS = 8

Vector = tuple[float, ...]
Step = tuple[Literal["add", "remove"], list[tuple[int, Vector]]]

# Few keys, so that they meet again. The vectors are of unit length, a single 1 or four halves, and their products are
# sums of quarters: computers get those right in whatever order they add, so what is equally near is equal, and much is.
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

# Something is there at first, and fewer are wanted than that: otherwise there is nothing to choose.
STEPS = st.tuples(
    st.tuples(st.just("add"), st.lists(st.tuples(KEYS, VECTORS), min_size=8, max_size=16)),
    st.lists(st.tuples(st.sampled_from(["add", "remove"]), PAIRS)),
).map(lambda steps: [steps[0], *steps[1]])
MOST = st.integers(0, 4) | st.integers(0, 20)


@pytest.mark.spec("H3")
@given(STEPS, VECTORS, MOST)
def test_the_result_equals_a_full_sort(steps: list[Step], query: Vector, most: int) -> None:
    nearest, held = after(steps, exact=1_000)
    assert nearest.is_exact
    assert len(nearest) == len(held)
    assert nearest.nearest(query, most) == sorted_through(held, query)[:most]


@pytest.mark.spec("H3")
@given(STEPS, VECTORS, MOST, st.integers(0, 10))
def test_rounded_vectors_differ_only_in_the_last_digits(
    steps: list[Step], query: Vector, most: int, exact: int
) -> None:
    nearest, held = after(steps, exact=exact)
    found = nearest.nearest(query, most)
    right = sorted_through(held, query)
    assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in right[:most]], abs=1e-6)
    assert dict(found) == pytest.approx({key: dict(right)[key] for key, _ in found}, abs=1e-6)


def after(steps: list[Step], *, exact: int) -> tuple[NearestVectors, dict[int, Vector]]:
    nearest, held = NearestVectors(DIMENSIONS, max_exact=exact), dict[int, Vector]()
    for what, pairs in steps:
        keys = [key for key, _ in pairs]
        if what == "add":
            nearest.add(keys, [vector for _, vector in pairs])
            held.update(pairs)
        else:
            nearest.remove(keys)
            for key in keys:
                held.pop(key, None)
    return nearest, held


def sorted_through(held: dict[int, Vector], query: Vector) -> list[tuple[int, float]]:
    cosines = {key: sum(a * b for a, b in zip(vector, query, strict=True)) for key, vector in held.items()}
    return sorted(cosines.items(), key=lambda found: (-found[1], found[0]))
