"""The size warning of the overview, and fitting lines into a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.documents.overview.page import LANGUAGES, SIZE_GOAL_BYTES, fit_round_robin, size_warning

pytestmark = pytest.mark.spec("F1")


def test_below_the_goal_there_is_no_warning() -> None:
    assert size_warning("x" * (SIZE_GOAL_BYTES - 1), "en") == ""


def test_at_the_goal_the_warning_names_the_next_step() -> None:
    assert size_warning("关" * 2_100, "en").startswith("overview.md is over the goal of 5 KB: move ")
    assert "5 KB" in size_warning("关" * 2_100, "zh")


@each_row("language", LANGUAGES)
def test_the_warning_does_not_change_as_the_page_grows(language: str) -> None:
    assert size_warning("x" * SIZE_GOAL_BYTES, language) == size_warning("x" * SIZE_GOAL_BYTES * 9, language)


def test_items_are_taken_in_turn_and_a_list_stops_at_its_first_item_that_does_not_fit() -> None:
    assert fit_round_robin([["aa", "ab"], ["b", "b" * 9, "c"], ["dd"]], str, max_bytes=11) == ["aa", "b", "dd", "ab"]


@given(lists=st.lists(st.lists(st.text(max_size=9), max_size=6), max_size=5), limit=st.integers(0, 60))
def test_selected_items_fit_and_are_a_prefix_of_each_list(lists: list[list[str]], limit: int) -> None:
    numbered = [[(index, number, text) for number, text in enumerate(items)] for index, items in enumerate(lists)]
    kept = fit_round_robin(numbered, lambda item: item[2], max_bytes=limit)
    assert sum(len(text.encode()) + 1 for _, _, text in kept) <= limit
    for index, items in enumerate(numbered):
        own = [item for item in kept if item[0] == index]
        assert own == items[: len(own)]
