"""Automatic compaction: in the bands that a host names, and with rates, when it pays off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind import CompressionPolicy
from inmind.errors import InvalidInput
from inmind.history.compaction.policy import pays_off
from inmind.history.view import BANDS, EMERGENCY_BAND
from inmind.types import Rates

NAMES = [*(name for _, name in BANDS), EMERGENCY_BAND]
RATES = Rates()


@pytest.mark.spec("E4")
@pytest.mark.parametrize("band", NAMES)
def test_no_band_is_automatic_unless_the_host_lists_it(band: str) -> None:
    assert CompressionPolicy().target_for(band) is None
    assert CompressionPolicy(automatic=(band,)).target_for(band) is not None


@pytest.mark.spec("E4")
def test_the_fuller_the_window_the_more_is_removed() -> None:
    policy = CompressionPolicy(automatic=tuple(NAMES))
    targets = [policy.target_for(band) or ("", 0) for band in NAMES]
    assert [target for target, _ in targets] == ["tools", "tools", "all", "all", "all"]
    assert [keep for _, keep in targets] == sorted((keep for _, keep in targets), reverse=True)


@pytest.mark.spec("E4")
def test_a_policy_that_looks_at_prices_compacts_in_any_band() -> None:
    assert {CompressionPolicy.when_it_pays(RATES).target_for(band) for band in NAMES} == {("all", 3)}


@pytest.mark.spec("E4", "J3")
@pytest.mark.parametrize(
    "given", [{"automatic": ["now and then"]}, {"keep_recent": -1}, {"keep_recent": True}, {"rates": 0.1}]
)
def test_invalid_values_are_refused_with_their_field(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        CompressionPolicy(**given)
    assert refused.value.field == next(iter(given))


@pytest.mark.spec("E4", "J3")
@each_row("given", ["normal", "", None, 7, {"normal": True}])
def test_automatic_must_be_a_tuple_and_a_single_name_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        CompressionPolicy(automatic=given)
    assert (refused.value.field, refused.value.value) == ("automatic", given)
    assert refused.value.expected == "a tuple of band names"


@pytest.mark.spec("E4")
def test_it_pays_off_if_reading_costs_more_than_rewriting() -> None:
    # sqrt(2 * 10,000 * 500 * (1.25 - 0.1) / 0.1), worked out by hand
    assert not pays_off(RATES, freed=10_723, rewritten=10_000, growth=500)
    assert pays_off(RATES, freed=10_724, rewritten=10_000, growth=500)


@pytest.mark.spec("E4")
@given(
    freed=st.integers(0, 10**6),
    rewritten=st.integers(0, 10**6),
    growth=st.floats(0, 10**4),
    more=st.integers(0, 10**5),
)
def test_it_still_pays_off_if_more_is_freed_or_less_is_rewritten(
    freed: int, rewritten: int, growth: float, more: int
) -> None:
    if pays_off(RATES, freed=freed, rewritten=rewritten, growth=growth):
        assert pays_off(RATES, freed=freed + more, rewritten=max(0, rewritten - more), growth=growth)


@pytest.mark.spec("E4")
def test_with_free_cache_reads_it_never_pays_off() -> None:
    assert not pays_off(Rates(cached=0), freed=10**6, rewritten=1, growth=1)
