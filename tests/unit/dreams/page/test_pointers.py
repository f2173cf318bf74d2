"""Pointers: one line with a topic and the keywords that find it."""

from __future__ import annotations

import pytest
from tables import each_row

from inmind.dreams.page.pointers import (
    MAX_KEYWORDS,
    MAX_KEYWORDS_CHARACTERS,
    Pointer,
    candidate_pointers,
    distinctive_words,
    format_pointer,
    make_pointer,
    parse_pointer,
)

pytestmark = pytest.mark.spec("G8")


def test_a_pointer_is_one_line_with_its_keywords() -> None:
    pointer = Pointer("P2P bridge CORS debugging", "CORS P2P EigenTrust")
    assert format_pointer(pointer) == "Past: P2P bridge CORS debugging → search: `CORS P2P EigenTrust`"
    assert parse_pointer(format_pointer(pointer)) == pointer


@each_row("line", ["Past: nothing", "Past: a → search: ``", "search: `a`", "", "Past: a → search: `a` b"])
def test_other_lines_are_no_pointers(line: str) -> None:
    assert parse_pointer(line) is None


def test_names_rank_before_long_words_and_stop_words_are_dropped() -> None:
    text = "We spent 3 hours on debugging the CORS error of the P2P bridge, fixed by EigenTrust"
    assert distinctive_words(text)[:4] == ["EigenTrust", "CORS", "P2P", "debugging"]
    assert "the" not in distinctive_words(text)


def test_chinese_keywords_are_parts_of_the_text() -> None:
    assert "喜欢" in next(candidate_pointers("李雷在周末喜欢爬山")).keywords


def test_the_last_candidate_has_the_maximum_number_of_keywords() -> None:
    text = "Ada once told Bob that deploys on Fridays had better be avoided by whoever watches the harbour"
    assert len([*candidate_pointers(text)][-1].keywords.split()) == MAX_KEYWORDS


def test_words_are_preferred_to_numbers_as_keywords() -> None:
    first, *_ = candidate_pointers("The harbour team moved 7 ledgers on day 31")
    assert first.keywords == "harbour ledgers"


def test_any_text_makes_a_valid_pointer() -> None:
    pointer = make_pointer("a → `b`\nc", "second", keywords="x `y` -> " + "word " * 100)
    assert parse_pointer(format_pointer(pointer)) == pointer
    assert pointer.topic == "a b c; second"
    assert len(pointer.keywords) <= MAX_KEYWORDS_CHARACTERS
    assert pointer.keywords.endswith("word")
