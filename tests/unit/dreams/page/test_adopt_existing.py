"""Adoption of a page that existed before the first dream: kept in chunks, unchanged."""

from __future__ import annotations

from itertools import pairwise

import pytest

from inmind.core.tokens import estimator
from inmind.dreams.page.draft import (
    CHUNK_TOKENS,
    OVERLAP_TOKENS,
    add_separator,
    chunk_by_entry,
    entry_texts,
    split_chunks,
)

pytestmark = pytest.mark.spec("G10")

LONG = "# Me\n\n" + "".join(f"- line {n} says word{n} and more of it, {n * 7}\n" for n in range(300))


def test_chunks_have_the_configured_size_and_overlap() -> None:
    count, chunks = estimator(), split_chunks(LONG)
    assert all(CHUNK_TOKENS - 10 <= count(chunk) <= CHUNK_TOKENS for chunk in chunks[:-1])
    for one, other in pairwise(chunks):
        shared = next(n for n in range(len(one)) if other.startswith(one[n:]))
        assert OVERLAP_TOKENS - 10 <= count(one[shared:]) <= OVERLAP_TOKENS


def test_text_without_spaces_is_split_too() -> None:
    chunks = split_chunks("用户住在北京并且喜欢爬山，" * 200)
    assert len(chunks) > 3
    assert all(estimator()(chunk) <= CHUNK_TOKENS for chunk in chunks)


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_an_empty_text_has_no_chunks(text: str) -> None:
    assert (split_chunks(text), chunk_by_entry(text), add_separator(text)) == ([], {}, "")


def test_an_entry_belongs_to_a_chunk_that_contains_it() -> None:
    chunks = split_chunks(LONG)
    assert chunk_by_entry(LONG).keys() == entry_texts(LONG)
    assert all(entry in chunks[number] for entry, number in chunk_by_entry(LONG).items())


def test_an_entry_longer_than_a_chunk_belongs_to_the_chunk_with_its_start() -> None:
    text = f"- short\n- {'very ' * 900}long\n"
    assert sorted(chunk_by_entry(text).values()) == [0, 0]


@pytest.mark.parametrize("text", ["# Me\r\n- a", "a\n", "- [ ] todo\n\n\n"])
def test_the_text_above_the_separator_is_unchanged(text: str) -> None:
    assert add_separator(text).startswith(text)
    assert "\n---\n" in add_separator(text)


def test_an_entry_that_the_header_of_a_dream_interrupts_has_a_chunk() -> None:
    text = "# Working Memory State\n- Prefers tabs\n_Last dream: 2026-03-12T16:00:00Z | Mood: calm_\n  over spaces"
    assert chunk_by_entry(text) == {"Prefers tabs\nover spaces": 0}
