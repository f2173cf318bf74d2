"""Edit distance with a limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.entities.nouns import edit_distance

words = st.text(alphabet="abc#1", max_size=8)


@each_row(
    ("one", "other", "count"),
    [("about", "about", 0), ("about", "abuot", 1), ("W123", "#W123", 1), ("kitten", "sitting", 3), ("", "ab", 2)],
)
def test_each_edit_counts_once(one: str, other: str, count: int) -> None:
    assert edit_distance(one, other, max_distance=5) == count


@given(one=words, other=words, limit=st.integers(0, 4))
def test_the_limit_does_not_change_smaller_distances(one: str, other: str, limit: int) -> None:
    assert edit_distance(one, other, max_distance=limit) == min(edit_distance(one, other, max_distance=20), limit + 1)


@given(one=words, other=words)
def test_the_distance_is_symmetric(one: str, other: str) -> None:
    assert edit_distance(one, other, max_distance=9) == edit_distance(other, one, max_distance=9)
    assert (edit_distance(one, other, max_distance=9) == 0) == (one == other)


@given(word=st.text(alphabet="abc", min_size=2, max_size=8), index=st.integers(0, 6))
def test_a_swap_of_neighbours_is_one_edit(word: str, index: int) -> None:
    at = index % (len(word) - 1)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    assert edit_distance(word, swapped, max_distance=2) == int(word != swapped)
