"""A page that is paid for in every request says when it has grown too large."""

from __future__ import annotations

import pytest

from inmind.overview.size import GOAL, size_warning

pytestmark = pytest.mark.spec("F1")


def test_below_the_goal_nothing_is_said() -> None:
    assert size_warning("x" * (GOAL - 1), "en") == ""


def test_from_the_goal_on_the_model_is_told_how_large_the_page_is_and_what_to_do() -> None:
    told = size_warning("关" * 2_100, "en")
    assert told.startswith("overview.md has 6.2 KB, the goal is below 5: move ")
    assert "6.2 KB" in size_warning("关" * 2_100, "zh")
