"""Grouping of similar texts, checked against a comparison of all pairs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.dreams.insights import MAX_GROUPS_PER_WORD, MIN_SIMILARITY, group_similar, jaccard

pytestmark = pytest.mark.spec("G3")

SETS = st.lists(st.frozensets(st.sampled_from("abcdefgh"), max_size=6), max_size=MAX_GROUPS_PER_WORD)


def a_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def test_texts_with_mostly_the_same_words_are_one_group() -> None:
    sets = [a_set("ada likes green tea"), a_set("the ferry is late"), a_set("ada likes green tea now")]
    assert group_similar(sets) == [[0, 2], [1]]


def test_an_empty_set_is_in_no_group() -> None:
    assert group_similar([a_set(""), a_set("tea"), a_set("")]) == [[1]]


@given(SETS)
def test_every_text_with_words_is_in_one_group(sets: list[frozenset[str]]) -> None:
    assert sorted(place for group in group_similar(sets) for place in group) == [n for n, one in enumerate(sets) if one]


@given(SETS)
def test_each_text_is_similar_to_the_first_of_its_group(sets: list[frozenset[str]]) -> None:
    assert all(
        jaccard(sets[group[0]], sets[place]) >= MIN_SIMILARITY for group in group_similar(sets) for place in group
    )


@given(SETS)
def test_the_first_texts_of_two_groups_are_not_similar(sets: list[frozenset[str]]) -> None:
    """The search by the rarest words misses no similar text."""
    firsts = [sets[group[0]] for group in group_similar(sets)]
    assert all(jaccard(one, other) < MIN_SIMILARITY for one, other in combinations(firsts, 2))
