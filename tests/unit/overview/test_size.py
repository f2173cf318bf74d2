"""A page that is paid for in every request says when it has grown too large."""

from __future__ import annotations

import pytest

from inmind.overview import LANGUAGES
from inmind.overview.size import GOAL, size_warning

pytestmark = pytest.mark.spec("F1")


def test_below_the_goal_nothing_is_said() -> None:
    assert size_warning("x" * (GOAL - 1), "en") == ""


def test_from_the_goal_on_the_model_is_told_what_to_do() -> None:
    assert size_warning("关" * 2_100, "en").startswith("overview.md is over the goal of 5 KB: move ")
    assert "5 KB" in size_warning("关" * 2_100, "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_says_the_same_however_much_the_page_grows(language: str) -> None:
    assert size_warning("x" * GOAL, language) == size_warning("x" * GOAL * 9, language)
