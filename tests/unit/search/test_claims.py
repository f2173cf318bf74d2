"""Parsed statements: answers, overruled questions and equal wording."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.search.claims import MAX_STATEMENT_CHARS, answers_differ, parse_statement

pytestmark = pytest.mark.spec("H5")


@pytest.mark.parametrize(
    "texts",
    [
        ("The API's deadline is March 20", "The deadline of the API is 20 March", "API deadline is Mar 20th"),
        ("User doesn't smoke", "The user does not smoke."),
        ("Costs 12,000 EUR", "costs 12000 EUR"),
    ],
    ids=lambda texts: texts[0],
)
def test_spelling_and_filler_words_make_no_difference(texts: tuple[str, ...]) -> None:
    assert len({parse_statement(text).wording for text in texts}) == 1


@each_row(
    ("one", "other"),
    [
        ("Use port 80", "Use port 81"),
        ("User smokes", "User does not smoke"),
        ("Call Anna", "Call Berta"),
        ("Ship on March 3", "Ship on March 4"),
        ("Anna manages Bob", "Bob manages Anna"),
        ("User lived in Rome", "User lives in Rome"),
        ("Choose plan A", "Choose plan"),
        ("The password is Hunter2", "The password is hunter2"),
        ("Is Anna ill?", "Anna is ill"),
        ("...", "!!!"),
        ("", "the"),
        ("用户不吃辣", "用户吃辣"),
    ],
)
def test_a_number_name_negation_order_or_tense_makes_a_difference(one: str, other: str) -> None:
    assert parse_statement(one).wording != parse_statement(other).wording


@each_row(
    "text",
    [
        "The deadline might move to April 2",
        "If legal agrees, the deadline moves to April 2",
        "Anna says the deadline is April 2",
        "Is the deadline April 2?",
        "User lives in Rome and works at Fiat",
        "User now also speaks French",
        "User has 3 meetings today",
        "It moved to April 2" + " x" * MAX_STATEMENT_CHARS,
    ],
)
def test_a_hedged_statement_answers_nothing(text: str) -> None:
    assert parse_statement(text).answers == {}


def test_a_pronoun_is_not_a_subject() -> None:
    assert not any(question.startswith("is ") for question in parse_statement("It was moved to April 2").answers)


def test_a_qualified_statement_answers_another_question() -> None:
    wide, narrow = parse_statement("User prefers tabs"), parse_statement("User prefers spaces in YAML")
    assert wide.answers
    assert narrow.answers
    assert wide.answers.keys().isdisjoint(narrow.answers)


def test_a_reason_may_follow_a_new_value_but_makes_the_statement_incomplete() -> None:
    statement = parse_statement("The deadline moved to April 2, because legal needs time")
    assert not statement.is_complete
    assert statement.overrules & parse_statement("The deadline is March 20").answers.keys()


@each_row(
    ("one", "other", "differ"),
    [
        (("munich",), ("berlin",), True),
        (("munich",), ("munich", "germany"), False),
        (("mar", "20"), ("mar", "20", "2026"), False),
        (("mar", "20"), ("mar", "21"), True),
        (("GitHub",), ("github",), False),
    ],
)
def test_only_answers_that_cannot_both_be_right_differ(
    one: tuple[str, ...], other: tuple[str, ...], differ: bool
) -> None:
    assert answers_differ(one, other) == answers_differ(other, one) == differ


@given(
    st.text()
    | st.lists(st.sampled_from("User prefers over instead of to not the is from 用户 住在 , . ?".split())).map(" ".join)
)
def test_parsing_never_fails_and_overrules_only_its_answers(text: str) -> None:
    statement = parse_statement(text)
    assert statement.overrules <= statement.answers.keys()
