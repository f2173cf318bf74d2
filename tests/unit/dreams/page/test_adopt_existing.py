"""A page that was there before the first dream: all of it is kept in chunks, and none of it is touched."""

from __future__ import annotations

from itertools import pairwise

import pytest

from inmind.core.tokens import estimator
from inmind.dreams.page.adopt_existing import (
    CHUNK_TOKENS,
    OVERLAP_TOKENS,
    add_separator,
    chunk_by_entry,
    entry_texts,
    split_chunks,
)

pytestmark = pytest.mark.spec("G10")

LONG = "# Me\n\n" + "".join(f"- line {n} says word{n} and more of it, {n * 7}\n" for n in range(300))


def test_chunks_are_of_the_size_that_was_asked_for_and_overlap() -> None:
    count, made = estimator(), split_chunks(LONG)
    assert all(CHUNK_TOKENS - 10 <= count(chunk) <= CHUNK_TOKENS for chunk in made[:-1])
    for one, other in pairwise(made):
        shared = next(n for n in range(len(one)) if other.startswith(one[n:]))
        assert OVERLAP_TOKENS - 10 <= count(one[shared:]) <= OVERLAP_TOKENS


def test_a_script_without_spaces_is_cut_as_well() -> None:
    made = split_chunks("用户住在北京并且喜欢爬山，" * 200)
    assert len(made) > 3
    assert all(estimator()(chunk) <= CHUNK_TOKENS for chunk in made)


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_nothing_makes_no_chunk(text: str) -> None:
    assert (split_chunks(text), chunk_by_entry(text), add_separator(text)) == ([], {}, "")


def test_an_entry_is_kept_by_a_chunk_that_has_all_of_it() -> None:
    made = split_chunks(LONG)
    assert chunk_by_entry(LONG).keys() == entry_texts(LONG)
    assert all(entry in made[number] for entry, number in chunk_by_entry(LONG).items())


def test_an_entry_that_no_chunk_holds_is_kept_by_the_one_with_its_beginning() -> None:
    text = f"- short\n- {'very ' * 900}long\n"
    assert sorted(chunk_by_entry(text).values()) == [0, 0]


@pytest.mark.parametrize("text", ["# Me\r\n- a", "a\n", "- [ ] todo\n\n\n"])
def test_the_text_above_the_separator_is_unchanged(text: str) -> None:
    assert add_separator(text).startswith(text)
    assert "\n---\n" in add_separator(text)
