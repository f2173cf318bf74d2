"""Order of hits, by example and not by exact scores."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.encoding import to_microseconds
from inmind.search.dates import DateSpan
from inmind.search.index.record import Record
from inmind.search.query import ParsedQuery, Query
from inmind.search.rank import (
    LATE_PERIOD,
    RankedRecord,
    ScoreField,
    length_factor,
    rank_records,
    score_by_meaning,
    score_by_words,
    word_rarity,
)

pytestmark = pytest.mark.spec("H3")

NOW = datetime(2026, 5, 20, tzinfo=UTC)
DAY = DateSpan(NOW - timedelta(days=10), NOW - timedelta(days=9))


def conversation_of(number: int) -> int | None:
    """The conversation of a line: a hundred numbers each up to a thousand; larger numbers have none."""
    return number // 100 if number < 1_000 else None


def a_line(number: int, *, at: datetime = NOW, **known: Any) -> Record:
    values: dict[str, Any] = dict.fromkeys(Record._fields, 0)
    values |= {"speaker": "", "superseded_by": "", "accessed": None, "valid_to": None}
    values |= {"number": number, "words": 10, "role": "user", "kind": "general", "at": to_microseconds(at)}
    return Record(**values | known)


def rank(own: Mapping[int, float], *lines: Record, limit: int = 10, **query: Any) -> list[RankedRecord]:
    field, parsed = ScoreField(own, conversation_of), ParsedQuery(words={}, **query)
    return rank_records(lines, field, parsed, Query(text="", limit=limit), NOW)


def order(own: Mapping[int, float], *lines: Record, **query: Any) -> list[int]:
    return [one.record.number for one in rank(own, *lines, **query)]


def test_a_rare_word_scores_more_than_a_common_one() -> None:
    rarities = [word_rarity(holding, 1_000) for holding in (0, 1, 10, 100, 500, 1_000)]
    assert rarities == sorted(rarities, reverse=True)
    assert all(rarity > 0 for rarity in rarities)


def test_a_word_scores_more_in_a_short_passage() -> None:
    assert length_factor(5) > length_factor(50) > length_factor(500) > 0


def test_words_alone_keep_their_order() -> None:
    own = score_by_words({1: 3.0, 2: 6.0}, words_only=True)
    assert own[1] < own[2] == 1.0


def test_closer_meaning_scores_more() -> None:
    own = score_by_meaning({1: 0.4, 2: 0.8}, floor=0.2)
    assert 0 < own[1] < own[2]


def test_a_cosine_at_the_floor_scores_nothing() -> None:
    assert set(score_by_meaning({1: 0.15, 2: 0.9}, floor=0.2)) == {2}


@given(
    lexical=st.dictionaries(st.integers(0, 9), st.floats(0, 100)),
    meaning=st.dictionaries(st.integers(0, 9), st.floats(-1, 1)),
    floor=st.floats(0, 1),
)
def test_scores_do_not_exceed_the_maximum(lexical: dict[int, float], meaning: dict[int, float], floor: float) -> None:
    words, meaning_scores = score_by_words(lexical, words_only=False), score_by_meaning(meaning, floor=floor)
    assert set(words) == set(lexical)
    assert set(meaning_scores) <= set(meaning)
    assert all(
        0 <= words.get(number, 0) + meaning_scores.get(number, 0) <= 1 + 1e-9 for number in {*words, *meaning_scores}
    )


def test_more_shared_words_rank_higher() -> None:
    assert order({150: 0.3, 250: 1.0}, a_line(150), a_line(250)) == [250, 150]


def test_a_neighbour_of_a_good_line_ranks_above_an_unrelated_line() -> None:
    """ "Fixed by tweaking the thresholds" shares no word with the question that its neighbour repeats."""
    own = {150: 1.0, 350: 0.3}
    assert order(own, a_line(150), a_line(151), a_line(350)) == [150, 151, 350]


def test_a_line_of_the_same_conversation_ranks_above_one_of_another() -> None:
    assert order({150: 1.0, 250: 0.1, 160: 0.1}, a_line(250), a_line(160)) == [160, 250]


def test_a_crystal_outside_conversations_has_no_neighbours() -> None:
    assert order({1_000: 1.0}, a_line(1_000), a_line(1_001)) == [1_000]


def test_the_answer_to_a_good_question_ranks_above_the_line_before_it() -> None:
    assert order({150: 1.0}, a_line(149), a_line(151, answers=1)) == [151, 149]


def test_a_long_message_gets_little_context_score() -> None:
    assert order({150: 1.0}, a_line(149, words=300), a_line(151, words=10)) == [151, 149]


def test_a_score_far_below_the_best_is_dropped() -> None:
    assert order({150: 1.0, 350: 0.3, 550: 0.1}, a_line(150), a_line(350), a_line(550)) == [150, 350]


def test_of_equal_scores_the_later_comes_first() -> None:
    assert order({1_000: 1.0, 1_001: 1.0}, a_line(1_000), a_line(1_001)) == [1_001, 1_000]


@each_row(
    ("query", "preferred"),
    [
        ({"role": "assistant"}, {"role": "assistant"}),
        ({"names": frozenset({"Caroline"})}, {"speaker": "Caroline"}),
        ({"span": DAY}, {"at": DAY.start}),
        ({"span": DAY}, {"at": DAY.end + LATE_PERIOD - timedelta(seconds=1)}),
        ({}, {"importance": 1.0}),
    ],
)
def test_speaker_dates_and_value_break_ties(query: dict[str, Any], preferred: dict[str, Any]) -> None:
    own = {1_000: 1.0, 1_001: 1.0}
    assert order(own, a_line(1_000, **preferred), a_line(1_001), **query) == [1_000, 1_001]


def test_a_superseded_crystal_ranks_below_its_successor() -> None:
    assert order({1_000: 0.9, 1_001: 1.0}, a_line(1_000), a_line(1_001, superseded_by="resource/ada#2")) == [
        1_000,
        1_001,
    ]


def test_a_message_in_the_dates_is_found_without_shared_words() -> None:
    assert order({}, a_line(1_000, at=DAY.start), a_line(1_001), span=DAY) == [1_000]


def test_an_unrelated_crystal_is_not_found() -> None:
    assert order({150: 1.0}, a_line(250), a_line(1_000)) == []


def test_the_parts_add_up_to_the_score() -> None:
    own = {150: 0.5, 151: 1.0}
    (best,) = rank(own, a_line(150, importance=0.8), role="user", span=DAY, limit=1)
    parts = best.parts
    together = own[150] + parts["neighbours"] + parts["conversation"]
    assert best.score == pytest.approx(together * parts["factor"] + parts["time"])


def test_the_most_promising_are_the_best_and_their_neighbours() -> None:
    field = ScoreField({150: 1.0, 250: 0.9, 1_000: 0.8}, conversation_of)
    assert set(field.most_promising(100)) >= {149, 150, 151, 249, 250, 251, 1_000}
    assert 1_001 not in field.most_promising(100)
    assert field.most_promising(1) == [150]


@given(own=st.dictionaries(st.integers(0, 1_500), st.floats(0, 1), max_size=30), limit=st.integers(1, 10))
def test_the_best_are_returned_in_order_up_to_the_limit(own: dict[int, float], limit: int) -> None:
    ranked = rank(own, *map(a_line, own), limit=limit)
    assert len(ranked) <= limit
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
