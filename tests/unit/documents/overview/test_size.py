"""The size warning of the overview, and fitting lines into a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.documents.overview import LANGUAGES
from inmind.documents.overview.size import SIZE_GOAL_BYTES, fit_round_robin, size_warning

pytestmark = pytest.mark.spec("F1")


def test_below_the_goal_nothing_is_said() -> None:
    assert size_warning("x" * (SIZE_GOAL_BYTES - 1), "en") == ""


def test_from_the_goal_on_the_warning_says_what_to_do() -> None:
    assert size_warning("关" * 2_100, "en").startswith("overview.md is over the goal of 5 KB: move ")
    assert "5 KB" in size_warning("关" * 2_100, "zh")


@each_row("language", LANGUAGES)
def test_the_warning_does_not_change_as_the_page_grows(language: str) -> None:
    assert size_warning("x" * SIZE_GOAL_BYTES, language) == size_warning("x" * SIZE_GOAL_BYTES * 9, language)


def test_each_list_has_its_first_before_any_has_its_second_and_the_first_without_room_is_its_last() -> None:
    assert fit_round_robin([["aa", "ab"], ["b", "b" * 9, "c"], ["dd"]], str, max_bytes=11) == ["aa", "b", "dd", "ab"]


@given(lists=st.lists(st.lists(st.text(max_size=9), max_size=6), max_size=5), most=st.integers(0, 60))
def test_selected_items_fit_and_no_item_stays_in_place_of_an_earlier_one(lists: list[list[str]], most: int) -> None:
    numbered = [[(place, number, text) for number, text in enumerate(one)] for place, one in enumerate(lists)]
    kept = fit_round_robin(numbered, lambda item: item[2], max_bytes=most)
    assert sum(len(text.encode()) + 1 for _, _, text in kept) <= most
    for place, one in enumerate(numbered):
        own = [item for item in kept if item[0] == place]
        assert own == one[: len(own)]
