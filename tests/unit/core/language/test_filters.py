"""Filters over the word lists of all languages."""

from __future__ import annotations

import pytest

from inmind.core.language.languages import (
    any_word,
    is_negated,
    is_question,
    languages_of,
)


@pytest.mark.parametrize(
    "text",
    ["The API is not public.", "It won’t start.", "不要改这个页面", "Das ist nicht fertig.", "Kein Zucker"],
)
def test_a_negation_is_found_in_every_language(text: str) -> None:
    assert is_negated(text)


@pytest.mark.parametrize("text", ["Notice the north door.", "这个页面很好", "Die Seite ist fertig."])
def test_a_plain_statement_has_no_negation(text: str) -> None:
    assert not is_negated(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("hedges", "perhaps it is friday."),
        ("hedges", "也许是周五"),
        ("hedges", "vielleicht am freitag."),
        ("hypotheticals", "if it rains, stay."),
        ("hypotheticals", "如果下雨"),
        ("reports", "anna said so."),
    ],
)
def test_words_of_a_kind_are_found_in_every_language(kind: str, text: str) -> None:
    assert any_word(kind).search(text)
    assert not any_word(kind).search("it is friday.")


def test_questions_are_told_from_statements() -> None:
    assert is_question("Where is the file")
    assert is_question("这个页面好吗。")
    assert not is_question("The file is here.")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("delete the page", ["en"]),
        ("lösche bitte diese Seite und die andere", ["de"]),
        ("删除 About 页面", ["en", "zh"]),
        ("", ["en"]),
    ],
)
def test_the_languages_of_a_text_are_those_of_its_words_and_script(text: str, codes: list[str]) -> None:
    assert [language.code for language in languages_of(text)] == codes
