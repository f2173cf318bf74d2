"""How the memory budget is divided among layers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.errors import InvalidInput
from inmind.prompt.budget import LayerDemand, allocate
from inmind.prompt.layers.base import Budget


def test_every_layer_gets_its_demand_if_it_fits() -> None:
    assert allocate([LayerDemand(50, 10, 100), LayerDemand(500, 10, 100)], 1_000) == [50, 100]


def test_minimums_come_first_and_the_rest_is_divided_by_headroom() -> None:
    assert allocate([LayerDemand(100, 20, 100), LayerDemand(400, 20, 300)], 130) == [40, 90]


def test_minimums_that_do_not_fit_are_scaled_down_together() -> None:
    assert allocate([LayerDemand(100, 100, 100), LayerDemand(300, 300, 300)], 100) == [25, 75]


def test_without_tokens_every_layer_gets_nothing() -> None:
    assert allocate([LayerDemand(100, 100, 100)], -5) == [0]


def a_demand(sizes: tuple[int, int, int]) -> LayerDemand:
    desired, one, other = sizes
    return LayerDemand(desired, min(one, other), max(one, other))


def demands() -> st.SearchStrategy[list[LayerDemand]]:
    size = st.integers(0, 2_000)
    return st.lists(st.tuples(size, size, size).map(a_demand), max_size=8)


@pytest.mark.spec("D3")
@given(demands=demands(), tokens=st.integers(-100, 5_000))
def test_the_budget_is_never_exceeded_and_never_wasted(demands: list[LayerDemand], tokens: int) -> None:
    grants = allocate(demands, tokens)
    needs = [demand.need for demand in demands]
    assert sum(grants) == min(max(tokens, 0), sum(needs))
    assert all(0 <= grant <= need for grant, need in zip(grants, needs, strict=True))


@given(demands=demands(), tokens=st.integers(0, 5_000))
def test_every_layer_gets_its_minimum_if_all_minimums_fit(demands: list[LayerDemand], tokens: int) -> None:
    grants = allocate(demands, tokens)
    if sum(demand.floor for demand in demands) <= tokens:
        assert all(grant >= demand.floor for grant, demand in zip(grants, demands, strict=True))


def test_a_budget_whose_minimum_exceeds_its_maximum_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        Budget(min=10, max=5)
    assert caught.value.field == "budget"
