"""Pointers: a line that says what it was about and what finds it again."""

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
def test_other_lines_are_none(line: str) -> None:
    assert parse_pointer(line) is None


def test_names_come_before_long_words_and_little_words_do_not_count() -> None:
    said = "We spent 3 hours on debugging the CORS error of the P2P bridge, fixed by EigenTrust"
    assert distinctive_words(said)[:4] == ["EigenTrust", "CORS", "P2P", "debugging"]
    assert "the" not in distinctive_words(said)


def test_chinese_is_found_by_pieces_of_what_was_said() -> None:
    assert "喜欢" in next(candidate_pointers("李雷在周末喜欢爬山")).keywords


def test_the_last_candidate_has_the_maximum_number_of_keywords() -> None:
    said = "Ada once told Bob that deploys on Fridays had better be avoided by whoever watches the harbour"
    assert len([*candidate_pointers(said)][-1].keywords.split()) == MAX_KEYWORDS


def test_a_pointer_reads_by_words_before_it_reads_by_numbers() -> None:
    first, *_ = candidate_pointers("The harbour team moved 7 ledgers on day 31")
    assert first.keywords == "harbour ledgers"


def test_whatever_the_words_are_a_pointer_stays_a_pointer() -> None:
    made = make_pointer("a → `b`\nc", "second", keywords="x `y` -> " + "word " * 100)
    assert parse_pointer(format_pointer(made)) == made
    assert made.topic == "a b c; second"
    assert len(made.keywords) <= MAX_KEYWORDS_CHARACTERS
    assert made.keywords.endswith("word")
